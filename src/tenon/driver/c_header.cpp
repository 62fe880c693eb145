// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/c_header.h"

#include <fmt/core.h>

#include "tenon/backend/c/names.h"
#include "tenon/driver/signature.h"
#include "tenon/driver/tensors.h"

namespace tenon {

using c_backend::c_type;
using c_backend::comment_text;
using c_backend::Names;
using c_backend::upper;

std::string c_header(const TenonProgram& program, const std::string& model_name) {
  const std::string name = c_backend::c_identifier(model_name);
  const Signature signature = signature_of(program);
  std::vector<std::string> inputs, outputs;
  Names input_names, output_names, symbol_names;
  for (const Port& port : signature.inputs) inputs.push_back(input_names.take(port.name));
  for (const Port& port : signature.outputs) outputs.push_back(output_names.take(port.name));
  // Parameters of the function stand beside the symbols.
  for (const char* own : {"model", "in", "out"}) symbol_names.take(own);
  std::map<std::string, std::string> symbols;
  std::string parameters;
  for (int32_t i = 0; i < program.symbol_count; ++i) {
    const std::string symbol = symbol_names.take(program.symbols[i].name);
    symbols[program.symbols[i].name] = symbol;
    parameters += ", int64_t " + symbol;
  }

  std::string text = fmt::format(
      "/* `{}`, compiled by tenon: what it takes and gives, and how to run it. Load it with\n"
      " * tenon_model_load(); link with tenon_runtime (see tenon/runtime/tenon_runtime.h). */\n"
      "#ifndef {}_H_\n#define {}_H_\n\n#include \"tenon/runtime/tenon_runtime.h\"\n\n"
      "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n",
      comment_text(model_name), upper(name), upper(name));
  const auto members = [&](const char* what, const std::vector<Port>& ports,
                           const std::vector<std::string>& names, const char* qualifier) {
    text += fmt::format("/* Packed, row-major; aligned to {} bytes they are not copied. */\n",
                        program.alignment);
    text += "typedef struct {\n";
    for (size_t i = 0; i < ports.size(); ++i)
      text += fmt::format("  {}{}* {}; /* {} */\n", qualifier, c_type(ports[i].dtype), names[i],
                          comment_text(ports[i].str()));
    if (ports.empty()) text += "  int unused;\n";
    text += fmt::format("}} {}_{};\n\n", name, what);
  };
  members("inputs", signature.inputs, inputs, "const ");
  members("outputs", signature.outputs, outputs, "");

  text += fmt::format(
      "/* Runs the model. Returns TENON_OK or an error code, with tenon_last_error(). */\n"
      "static inline int32_t {}_run(TenonModel* model, const {}_inputs* in,\n"
      "    const {}_outputs* out{}) {{\n",
      name, name, name, parameters);
  text += fmt::format("  DLTensor inputs[{}], outputs[{}];\n", std::max<size_t>(1, inputs.size()),
                      std::max<size_t>(1, outputs.size()));
  text += fmt::format("  const DLTensor* input_list[{}];\n  DLTensor* output_list[{}];\n",
                      std::max<size_t>(1, inputs.size()), std::max<size_t>(1, outputs.size()));
  size_t output_dims = 0;
  for (const Port& port : signature.outputs) output_dims += port.dims.size();
  text += fmt::format("  int64_t output_dims[{}];\n  int32_t code;\n",
                      std::max<size_t>(1, output_dims));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Port& port = signature.inputs[i];
    text += fmt::format("  int64_t dims_{}[{}];\n", i, std::max<size_t>(1, port.dims.size()));
  }
  const auto tensor = [&](const char* which, size_t i, const Port& port, const std::string& data,
                          const std::string& shape) {
    const DLDataType dtype = dlpack_dtype(port.dtype);
    text += fmt::format(
        "  {0}s[{1}].data = (void*){2};\n  {0}s[{1}].device.device_type = kDLCPU;\n"
        "  {0}s[{1}].device.device_id = 0;\n  {0}s[{1}].ndim = {3};\n"
        "  {0}s[{1}].dtype.code = {4};\n  {0}s[{1}].dtype.bits = {5};\n"
        "  {0}s[{1}].dtype.lanes = 1;\n  {0}s[{1}].shape = {6};\n"
        "  {0}s[{1}].strides = 0;\n  {0}s[{1}].byte_offset = 0;\n"
        "  {0}_list[{1}] = &{0}s[{1}];\n",
        which, i, data, port.dims.size(), int{dtype.code}, int{dtype.bits}, shape);
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Port& port = signature.inputs[i];
    for (size_t d = 0; d < port.dims.size(); ++d)
      text += fmt::format("  dims_{}[{}] = {};\n", i, d,
                          port.dims[d].value >= 0 ? std::to_string(port.dims[d].value)
                                                  : symbols[port.dims[d].symbol]);
    tensor("input", i, port, "in->" + inputs[i], fmt::format("dims_{}", i));
  }
  if (inputs.empty()) text += "  (void)in;\n  (void)inputs;\n";
  text += fmt::format(
      "  code = tenon_model_shapes(model, input_list, {}, output_dims, 0);\n"
      "  if (code != TENON_OK) return code;\n",
      inputs.size());
  size_t at = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Port& port = signature.outputs[i];
    tensor("output", i, port, "out->" + outputs[i], fmt::format("output_dims + {}", at));
    at += port.dims.size();
  }
  text += fmt::format(
      "  return tenon_model_run(model, input_list, {}, output_list, {});\n}}\n\n"
      "#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {}_H_ */\n",
      inputs.size(), outputs.size(), upper(name));
  return text;
}

}  // namespace tenon
