// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/c_example.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/backend/c/example_program.h"
#include "tenon/backend/c/names.h"
#include "tenon/driver/signature.h"
#include "tenon/driver/tensors.h"

namespace tenon {

using c_backend::c_string;
using c_backend::c_type;
using c_backend::comment_text;
using c_backend::Names;

static constexpr const char* kHelpers = R"c(
/* Ends the program with the runtime's message where a call failed. */
static void must(int32_t code) {
  if (code == TENON_OK) return;
  fprintf(stderr, "%s\n", tenon_last_error());
  exit(1);
}

static int64_t elements(const int64_t* shape, int32_t ndim) {
  int64_t count = 1;
  int32_t d;
  for (d = 0; d < ndim; ++d) count *= shape[d];
  return count;
}

/* Memory at an address that is a multiple of ALIGNMENT: other memory is right too, but copied. */
static void* allocate(int64_t bytes) {
  const size_t size = ((size_t)bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
  char* all = (char*)calloc(1, size + ALIGNMENT);
  if (!all) {
    fprintf(stderr, "out of memory\n");
    exit(1);
  }
  return all + (ALIGNMENT - (uintptr_t)all % ALIGNMENT);
}

/* A packed tensor, row-major, over memory that somebody else owns. */
static DLTensor tensor_over(void* data, int64_t* shape, int32_t ndim, uint8_t code, uint8_t bits) {
  DLTensor tensor;
  memset(&tensor, 0, sizeof(tensor));
  tensor.data = data;
  tensor.device.device_type = kDLCPU;
  tensor.ndim = ndim;
  tensor.dtype.code = code;
  tensor.dtype.bits = bits;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  return tensor;
}

static void print_shape(const char* name, const char* dtype, const DLTensor* tensor) {
  int32_t d;
  printf("%s: %s (", name, dtype);
  for (d = 0; d < tensor->ndim; ++d) printf("%s%ld", d ? ", " : "", (long)tensor->shape[d]);
  printf(")\n");
}

)c";

namespace {

/// The text of `main`, line by line.
class Example {
 public:
  explicit Example(const TenonProgram& program)
      : program_(program), signature_(signature_of(program)) {
    for (const char* own : {"main", "argc", "argv", "model", "inputs", "outputs", "dims", "path",
                            "i", "count", "program", "workspace_bytes"})
      names_.take(own);
    for (int32_t s = 0; s < program.symbol_count; ++s)
      symbols_.push_back(names_.take(program.symbols[s].name));
    for (const Port& port : signature_.inputs) inputs_.push_back(take(port));
    for (const Port& port : signature_.outputs) outputs_.push_back(take(port));
  }

  std::string text(const std::string& file) {
    out_ = fmt::format(
        "int main(int argc, char** argv) {{\n"
        "  const char* path = argc > 1 ? argv[1] : {};\n",
        c_string(file.find('/') == std::string::npos ? "./" + file : file));
    for (size_t s = 0; s < symbols_.size(); ++s)
      out_ += fmt::format("  int64_t {0} = argc > {1} ? atoll(argv[{1}]) : {2};\n", symbols_[s],
                          s + 2, first_value(program_.symbols[s]));
    out_ +=
        "  int64_t i, count, workspace_bytes = 0;\n"
        "  TenonModel* model = NULL;\n"
        "  must(tenon_model_load(path, NULL, &model));\n";
    for (size_t i = 0; i < inputs_.size(); ++i) add_input(i);
    out_ +=
        fmt::format("\n  const DLTensor* inputs[{}] = {{{}}};\n",
                    std::max<size_t>(1, inputs_.size()), inputs_.empty() ? "NULL" : list(inputs_));
    size_t dims = 0;
    for (const Port& port : signature_.outputs) dims += port.dims.size();
    out_ += fmt::format(
        "\n  /* What follows from the shapes of the inputs. */\n"
        "  int64_t dims[{}];\n"
        "  must(tenon_model_shapes(model, inputs, {}, dims, &workspace_bytes));\n"
        "  printf(\"a run takes %ld bytes of memory\\n\", (long)workspace_bytes);\n",
        std::max<size_t>(1, dims), inputs_.size());
    size_t at = 0;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Port& port = signature_.outputs[i];
      out_ +=
          fmt::format("\n  {0}* {1} = ({0}*)allocate(elements(dims + {2}, {3}) * {4});\n",
                      c_type(port.dtype), outputs_[i], at, port.dims.size(), port.dtype.bytes());
      add_tensor(outputs_[i], port, fmt::format("dims + {}", at));
      at += port.dims.size();
    }
    out_ +=
        fmt::format("\n  DLTensor* outputs[{}] = {{{}}};\n", std::max<size_t>(1, outputs_.size()),
                    outputs_.empty() ? "NULL" : list(outputs_));
    out_ += fmt::format("  must(tenon_model_run(model, inputs, {}, outputs, {}));\n\n",
                        inputs_.size(), outputs_.size());
    for (size_t i = 0; i < outputs_.size(); ++i) add_print(i);
    if (signature_.outputs.empty() && signature_.inputs.empty()) out_ += "  (void)elements;\n";
    return out_ + "  tenon_model_free(model);\n  return 0;\n}\n";
  }

 private:
  // A name of which NAME_shape and NAME_tensor are free, too.
  std::string take(const Port& port) {
    std::string name = names_.take(port.name);
    while (names_.has(name + "_shape") || names_.has(name + "_tensor"))
      name = names_.take(port.name);
    for (const char* ending : {"_shape", "_tensor"}) names_.reserve(name + ending);
    return name;
  }

  static int64_t first_value(const TenonSymbol& symbol) {
    return std::clamp<int64_t>(symbol.source == TENON_SYMBOL_DIM ? kDefaultDim : 1, symbol.lower,
                               symbol.upper);
  }

  static std::string list(const std::vector<std::string>& names) {
    std::string out;
    for (const std::string& name : names) out += (out.empty() ? "&" : ", &") + name + "_tensor";
    return out;
  }

  void add_tensor(const std::string& name, const Port& port, const std::string& shape) {
    const DLDataType dtype = dlpack_dtype(port.dtype);
    out_ += fmt::format("  DLTensor {0}_tensor = tensor_over({0}, {1}, {2}, {3}, {4});\n", name,
                        shape, port.dims.size(), int{dtype.code}, int{dtype.bits});
  }

  void add_input(size_t i) {
    const Port& port = signature_.inputs[i];
    const std::string& name = inputs_[i];
    std::string shape;
    for (const PortDim& dim : port.dims)
      shape += (shape.empty() ? "" : ", ") +
               (dim.value >= 0 ? std::to_string(dim.value) : symbol_named(dim.symbol));
    bool is_dimension = false;
    for (int32_t s = 0; s < program_.symbol_count; ++s)
      is_dimension |= program_.symbols[s].source == TENON_SYMBOL_VALUE &&
                      program_.symbols[s].input == static_cast<int32_t>(i);
    out_ += fmt::format(
        "\n  /* {0} */\n  int64_t {1}_shape[{2}] = {{{3}}};\n"
        "  count = elements({1}_shape, {4});\n"
        "  {5}* {1} = ({5}*)allocate(count * {6});\n"
        "  for (i = 0; i < count; ++i) {1}[i] = ({5})({7}); /* put your own numbers here */\n",
        comment_text(port.name + ": " + port.str()), name, std::max<size_t>(1, port.dims.size()),
        shape.empty() ? "1" : shape, port.dims.size(), c_type(port.dtype), port.dtype.bytes(),
        c_backend::example_value(port.dtype, is_dimension));
    add_tensor(name, port, name + "_shape");
  }

  void add_print(size_t i) {
    const Port& port = signature_.outputs[i];
    const std::string& name = outputs_[i];
    const c_backend::Printed printed = c_backend::printed_as(port.dtype);
    out_ += fmt::format(
        "  print_shape({0}, {1}, &{2}_tensor);\n"
        "  count = elements({2}_tensor.shape, {3});\n"
        "  for (i = 0; i < count && i < 10; ++i) printf(\" {4}\", ({5}){2}[i]);\n"
        "  printf(count > 10 ? \" ...\\n\" : \"\\n\");\n",
        c_string(port.name), c_string(port.dtype.str()), name, port.dims.size(), printed.conversion,
        printed.type);
  }

  std::string symbol_named(const std::string& name) const {
    for (int32_t s = 0; s < program_.symbol_count; ++s)
      if (name == program_.symbols[s].name) return symbols_[static_cast<size_t>(s)];
    return "1";
  }

  const TenonProgram& program_;
  const Signature signature_;
  Names names_;
  std::vector<std::string> symbols_, inputs_, outputs_;
  std::string out_;
};

}  // namespace

std::string c_example(const TenonProgram& program, const std::string& name, const std::string& file,
                      const std::string& source) {
  std::string arguments;
  for (int32_t s = 0; s < program.symbol_count; ++s)
    arguments += fmt::format(" [{}", comment_text(program.symbols[s].name));
  arguments += std::string(static_cast<size_t>(program.symbol_count), ']');
  return fmt::format(
             "/* Runs `{0}` once, on made-up numbers: {1} [PROGRAM.so{2}]\n"
             " *\n"
             " *     cc {3} $(pkg-config --cflags --libs tenon) -o {1}\n"
             " */\n"
             "#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n"
             "#include <tenon/runtime/tenon_runtime.h>\n\n#define ALIGNMENT {4}\n",
             comment_text(name), comment_text(source.substr(0, source.rfind('.'))), arguments,
             comment_text(source), program.alignment) +
         kHelpers + Example(program).text(file);
}

}  // namespace tenon
