// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/arguments.h"

#include <algorithm>
#include <cstring>

namespace tenon::runtime {

static std::span<const TenonTensorInfo> inputs_of(const TenonProgram& program) {
  return {program.inputs, static_cast<size_t>(program.input_count)};
}

static std::span<const TenonTensorInfo> outputs_of(const TenonProgram& program) {
  return {program.outputs, static_cast<size_t>(program.output_count)};
}

static std::span<const int64_t> dims_of(const TenonTensorInfo& tensor) {
  return {tensor.dims, static_cast<size_t>(tensor.ndim)};
}

static std::span<const int64_t> shape_of(const DLTensor& tensor) {
  return {tensor.shape, static_cast<size_t>(tensor.ndim)};
}

static bool is_symbol(int64_t dim) { return dim < 0 && dim != TENON_DIM_COMPUTED; }
static size_t symbol_index(int64_t dim) { return static_cast<size_t>(-1 - dim); }

static std::string quoted(const std::string& text) { return "`" + text + "`"; }

[[noreturn]] static void reject(const std::string& message) {
  throw Error(TENON_ERROR_ARGUMENT, message);
}

std::string declared_shape(const TenonProgram& program, const TenonTensorInfo& tensor) {
  std::string text = "(";
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    int64_t dim = tensor.dims[i];
    if (i > 0) text += ", ";
    if (dim >= 0)
      text += std::to_string(dim);
    else
      text += is_symbol(dim) ? program.symbols[symbol_index(dim)].name : "?";
  }
  return text + (tensor.ndim == 1 ? ",)" : ")");
}

// The declaration.

static bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

static void require(bool holds, const std::string& what) {
  if (!holds) throw Error(TENON_ERROR_LOAD, "not a valid program: " + what);
}

// An output in the memory of an input.
static void check_shared(const TenonProgram& program, int32_t output, size_t input,
                         const std::string& name) {
  require(!is_late(program.outputs[output]) && input < static_cast<size_t>(program.input_count),
          name + " shares memory with an input that is not there");
  const TenonTensorInfo &a = program.outputs[output], &b = program.inputs[input];
  require(a.code == b.code && a.bits == b.bits && a.lanes == b.lanes && a.ndim == b.ndim,
          name + " shares memory with an input of another type");
  for (int32_t i = 0; i < output; ++i)
    require(shared_input(program.outputs[i]) != input, name + " shares memory with another output");
}

static void check_tensors(const TenonProgram& program, int32_t count,
                          const TenonTensorInfo* tensors, const std::string& kind) {
  require(count >= 0 && (count == 0 || tensors != nullptr),
          "no " + kind + "s where it counts some");
  for (int32_t i = 0; i < count; ++i) {
    const TenonTensorInfo& tensor = tensors[i];
    require(tensor.name != nullptr, kind + " " + std::to_string(i) + " has no name");
    std::string name = kind + " " + quoted(tensor.name);
    require(tensor.ndim >= 0 && (tensor.ndim == 0 || tensor.dims != nullptr),
            name + " has no shape");
    require(tensor.bits > 0 && tensor.lanes > 0, name + " has elements of no size");
    require(tensor.alignment == 0 || is_power_of_two(tensor.alignment),
            name + " has an alignment that is no power of 2");
    const std::optional<size_t> shared = shared_input(tensor);
    require((tensor.flags & (shared ? uint32_t{0xfc} : ~uint32_t{TENON_TENSOR_LATE})) == 0,
            name + " has flags that this version does not know");
    require(kind == "output" || tensor.flags == 0, name + " has a flag of outputs");
    if (shared) check_shared(program, i, *shared, name);
    for (int64_t dim : dims_of(tensor)) {
      if (dim == TENON_DIM_COMPUTED)
        require(kind == "output" && (program.shapes != nullptr || is_late(tensor)),
                name + " has a dimension that nothing computes");
      else if (dim < 0)
        require(symbol_index(dim) < static_cast<size_t>(program.symbol_count),
                name + " names a symbol that is not there");
    }
  }
}

static void check_symbol(const TenonProgram& program, const TenonSymbol& symbol) {
  require(symbol.name != nullptr, "a symbol has no name");
  std::string name = "symbol " + quoted(symbol.name);
  require(symbol.input >= 0 && symbol.input < program.input_count,
          name + " is read from an input that is not there");
  require(symbol.lower <= symbol.upper, name + " has a lower bound above the upper one");
  const TenonTensorInfo& input = program.inputs[symbol.input];
  if (symbol.source == TENON_SYMBOL_DIM) {
    require(symbol.index >= 0 && symbol.index < input.ndim,
            name + " is read from a dimension that is not there");
    return;
  }
  require(symbol.source == TENON_SYMBOL_VALUE,
          name + " has a source that this version does not know");
  bool integer = input.code == TENON_DTYPE_INT || input.code == TENON_DTYPE_UINT ||
                 input.code == TENON_DTYPE_BOOL;
  bool whole_bytes = input.bits == 8 || input.bits == 16 || input.bits == 32 || input.bits == 64;
  require(integer && whole_bytes && input.lanes == 1,
          name + " is read from elements that are no integers");
  require(symbol.index >= 0, name + " is read from a negative index");
}

void check_declaration(const TenonProgram& program) {
  require(program.run != nullptr, "it has no function to run");
  require(is_power_of_two(program.alignment), "its alignment is no power of 2");
  require(program.constant_bytes >= 0, "its constants have a negative size");
  require(program.workspace_bytes >= -1, "its workspace has a negative size");
  require(program.symbol_count >= 0 && (program.symbol_count == 0 || program.symbols != nullptr),
          "no symbols where it counts some");
  check_tensors(program, program.input_count, program.inputs, "input");
  check_tensors(program, program.output_count, program.outputs, "output");
  for (int32_t i = 0; i < program.symbol_count; ++i) check_symbol(program, program.symbols[i]);
  require(program.shapes != nullptr || program.workspace_bytes >= 0,
          "nothing computes the size of its workspace");
}

// One tensor of the caller's.

/// Everything about one argument but its symbolic dimensions. `dims` is its shape: >= 0, or
/// negative for any extent.
static void check_argument(const std::string& name, const DLTensor* tensor,
                           const TenonTensorInfo& declared, std::span<const int64_t> dims,
                           const std::string& dims_text) {
  if (tensor == nullptr) reject(name + " is null");
  if (tensor->device.device_type != kDLCPU)
    reject(name + " lies on a device of DLPack type " + std::to_string(tensor->device.device_type) +
           "; the program runs in CPU memory (1)");
  if (tensor->ndim < 0 || (tensor->ndim > 0 && tensor->shape == nullptr))
    reject(name + " has rank " + std::to_string(tensor->ndim) + " and no shape");
  DLDataType dtype = declared_dtype(declared);
  if (tensor->dtype.code != dtype.code || tensor->dtype.bits != dtype.bits ||
      tensor->dtype.lanes != dtype.lanes)
    reject(name + " has dtype " + dtype_name(tensor->dtype) + "; the program declares " +
           dtype_name(dtype));

  std::span<const int64_t> shape = shape_of(*tensor);
  bool fits = shape.size() == dims.size();
  for (size_t i = 0; fits && i < dims.size(); ++i) fits = dims[i] < 0 || shape[i] == dims[i];
  if (!fits)
    reject(name + " has shape " + shape_text(shape) + "; the program declares " + dims_text);

  int64_t bytes = 0;
  try {
    bytes = byte_count(dtype, shape);
  } catch (const Error& error) {
    reject(name + ": " + error.what());
  }
  if (bytes > 0 && tensor->data == nullptr)
    reject(name + " has shape " + shape_text(shape) + " and no data");
  if (is_packed(*tensor)) return;
  std::vector<int64_t> packed(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) packed[i - 1] = packed[i] * shape[i];
  reject(name + " of shape " + shape_text(shape) + " has strides " +
         shape_text({tensor->strides, shape.size()}) +
         "; the program needs it packed, with strides " + shape_text(packed));
}

static std::string input_name(const TenonProgram& program, size_t i) {
  return "input " + quoted(program.inputs[i].name);
}
static std::string output_name(const TenonProgram& program, size_t i) {
  return "output " + quoted(program.outputs[i].name);
}

static void check_count(size_t given, std::span<const TenonTensorInfo> declared,
                        const std::string& kind) {
  if (given == declared.size()) return;
  std::string message = std::to_string(given) + " " + kind + (given == 1 ? "" : "s") +
                        " given; the program declares " + std::to_string(declared.size());
  for (size_t i = 0; i < declared.size(); ++i)
    message += (i == 0 ? ": " : ", ") + quoted(declared[i].name);
  reject(message);
}

// Symbols.

static std::string bounds_text(const TenonSymbol& symbol) {
  if (symbol.upper == INT64_MAX) return "at least " + std::to_string(symbol.lower);
  return "from " + std::to_string(symbol.lower) + " to " + std::to_string(symbol.upper);
}

template <typename T>
static int64_t load_as(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  if (sizeof(T) == 8 && value > static_cast<T>(INT64_MAX))
    return INT64_MAX;  // uint64: above any upper bound but "none"
  return static_cast<int64_t>(value);
}

static int64_t read_element(const DLTensor& tensor, int64_t index) {
  const char* at = static_cast<const char*>(data_of(tensor)) + index * (tensor.dtype.bits / 8);
  bool is_signed = tensor.dtype.code == TENON_DTYPE_INT;
  switch (tensor.dtype.bits) {
    case 8: return is_signed ? load_as<int8_t>(at) : load_as<uint8_t>(at);
    case 16: return is_signed ? load_as<int16_t>(at) : load_as<uint16_t>(at);
    case 32: return is_signed ? load_as<int32_t>(at) : load_as<uint32_t>(at);
    default: return is_signed ? load_as<int64_t>(at) : load_as<uint64_t>(at);
  }
}

static int64_t read_symbol(const TenonProgram& program, const TenonSymbol& symbol,
                           std::span<const DLTensor* const> inputs) {
  size_t i = static_cast<size_t>(symbol.input);
  const DLTensor& input = *inputs[i];
  std::string name = input_name(program, i);
  if (symbol.source == TENON_SYMBOL_DIM) {
    int64_t value = input.shape[symbol.index];
    if (value < symbol.lower || value > symbol.upper)
      reject(name + " has shape " + shape_text(shape_of(input)) + "; the program declares " +
             declared_shape(program, program.inputs[i]) + " with " + symbol.name + " " +
             bounds_text(symbol));
    return value;
  }
  int64_t count = element_count(shape_of(input));
  if (symbol.index >= count)
    reject(name + " has " + std::to_string(count) + " elements; the program reads " + symbol.name +
           " from element " + std::to_string(symbol.index));
  int64_t value = read_element(input, symbol.index);
  if (value < symbol.lower || value > symbol.upper)
    reject("element " + std::to_string(symbol.index) + " of " + name + " is " +
           std::to_string(value) + "; the program declares it as " + symbol.name + ", " +
           bounds_text(symbol));
  return value;
}

static std::string source_text(const TenonProgram& program, const TenonSymbol& symbol) {
  std::string kind = symbol.source == TENON_SYMBOL_DIM ? "dimension " : "element ";
  return kind + std::to_string(symbol.index) + " of " +
         input_name(program, static_cast<size_t>(symbol.input));
}

std::vector<int64_t> check_inputs(const TenonProgram& program,
                                  std::span<const DLTensor* const> inputs) {
  check_count(inputs.size(), inputs_of(program), "input");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TenonTensorInfo& declared = program.inputs[i];
    check_argument(input_name(program, i), inputs[i], declared, dims_of(declared),
                   declared_shape(program, declared));
  }
  std::vector<int64_t> symbols(static_cast<size_t>(program.symbol_count));
  for (size_t s = 0; s < symbols.size(); ++s)
    symbols[s] = read_symbol(program, program.symbols[s], inputs);

  for (size_t i = 0; i < inputs.size(); ++i) {
    std::span<const int64_t> dims = dims_of(program.inputs[i]);
    for (size_t d = 0; d < dims.size(); ++d) {
      if (!is_symbol(dims[d])) continue;
      const TenonSymbol& symbol = program.symbols[symbol_index(dims[d])];
      int64_t value = symbols[symbol_index(dims[d])];
      if (inputs[i]->shape[d] == value) continue;
      reject(input_name(program, i) + " has shape " + shape_text(shape_of(*inputs[i])) +
             "; the program declares " + declared_shape(program, program.inputs[i]) + " with " +
             symbol.name + " = " + std::to_string(value) + ", " + source_text(program, symbol));
    }
  }
  return symbols;
}

void check_symbols(const TenonProgram& program, std::span<const int64_t> symbols) {
  if (symbols.size() != static_cast<size_t>(program.symbol_count))
    reject(std::to_string(symbols.size()) + " values of symbols given; the program declares " +
           std::to_string(program.symbol_count));
  for (size_t i = 0; i < symbols.size(); ++i) {
    const TenonSymbol& symbol = program.symbols[i];
    if (symbols[i] < symbol.lower || symbols[i] > symbol.upper)
      reject(std::string(symbol.name) + " is " + std::to_string(symbols[i]) +
             "; the program declares it " + bounds_text(symbol));
  }
}

// Outputs.

static bool overlap(const DLTensor& a, const DLTensor& b) {
  int64_t a_bytes = byte_count(a.dtype, shape_of(a)), b_bytes = byte_count(b.dtype, shape_of(b));
  if (a_bytes == 0 || b_bytes == 0) return false;
  uintptr_t a_begin = reinterpret_cast<uintptr_t>(data_of(a)),
            b_begin = reinterpret_cast<uintptr_t>(data_of(b));
  return a_begin < b_begin + static_cast<uintptr_t>(b_bytes) &&
         b_begin < a_begin + static_cast<uintptr_t>(a_bytes);
}

void check_outputs(const TenonProgram& program, std::span<const DLTensor* const> inputs,
                   std::span<const DLTensor* const> outputs, std::span<const int64_t> output_dims) {
  check_count(outputs.size(), outputs_of(program), "output");
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TenonTensorInfo& declared = program.outputs[i];
    std::span<const int64_t> dims = output_dims.first(static_cast<size_t>(declared.ndim));
    output_dims = output_dims.subspan(dims.size());
    std::string text = declared_shape(program, declared);
    if (text != shape_text(dims) && !is_late(declared)) text += ", here " + shape_text(dims);
    check_argument(output_name(program, i), outputs[i], declared, dims, text);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t k = 0; k < inputs.size(); ++k)
      if (overlap(*outputs[i], *inputs[k]) &&
          (shared_input(program.outputs[i]) != k || data_of(*outputs[i]) != data_of(*inputs[k])))
        reject(output_name(program, i) + " overlaps " + input_name(program, k) +
               " in memory; the program needs them apart");
    for (size_t k = 0; k < i; ++k)
      if (overlap(*outputs[i], *outputs[k]))
        reject(output_name(program, i) + " overlaps " + output_name(program, k) +
               " in memory; the program needs them apart");
  }
}

}  // namespace tenon::runtime
