// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/tensors.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "tenon/backend/dlpack_code.h"
#include "tenon/driver/npy.h"
#include "tenon/driver/usage.h"
#include "tenon/graph/shape.h"
#include "tenon/import/onnx/model.h"
#include "tenon/interp/scalar.h"
#include "tenon/ir/text_constant.h"
#include "tenon/runtime/strings.h"
#include "tenon/support/nearest.h"
#include "tenon/support/quoted.h"

namespace tenon {

Ref<TensorData> read_tensor(const std::string& path) {
  if (path.ends_with(".npy")) return read_npy(path);
  if (path.ends_with(".pb")) {
    const onnx::TensorFile file = onnx::read_tensor_pb(path);
    if (!file.data)
      throw CompileError(kUnsupported, {}, "{}: holds {}; expected a tensor", path,
                         file.unsupported);
    return file.data;
  }
  throw CompileError(kFileError, {}, "{}: expected a `.npy` or ONNX `.pb` file", path);
}

Ref<TensorData> random_tensor(DType dtype, std::vector<int64_t> shape, uint64_t seed) {
  return random_values(dtype, std::move(shape), seed, {});
}

// Elements of a type that NumPy does not have stand in its files as unsigned integers of as many
// bytes, or as bytes without a meaning (`V1`). The bits above those of a narrow integer are ignored.
static Ref<TensorData> as_declared(const Ref<TensorData>& tensor, DType declared) {
  const bool is_foreign = declared.is_narrow() || declared == kBFloat16;
  if (!is_foreign || !tensor->dtype.is_integer() || tensor->dtype.is_narrow() ||
      tensor->dtype.bytes() != declared.bytes())
    return tensor;
  const auto data = tensor->data();
  std::vector<std::byte> bytes(data.begin(), data.end());
  if (declared.is_integer())
    for (std::byte& byte : bytes)
      interp::write_element(declared, &byte, interp::read_element(declared, &byte));
  return TensorData::owned(declared, tensor->shape, std::move(bytes), tensor->origin);
}

static std::string type_text(const TensorData& tensor) {
  return tensor.dtype.str() + " " + str(tensor.shape);
}

std::map<std::string, int64_t> check_inputs(const Signature& signature,
                                            const std::vector<Ref<TensorData>>& inputs) {
  if (inputs.size() != signature.inputs.size())
    throw CompileError(kBadInput, {}, "{} inputs were given; the program takes {}", inputs.size(),
                       signature.inputs.size());
  std::map<std::string, int64_t> symbols;
  std::map<std::string, std::string> from;  // symbol -> the input that set it
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Port& port = signature.inputs[i];
    const TensorData& tensor = *inputs[i];
    const auto misfit = [&] {
      return CompileError(kBadInput, {}, "input `{}` is {}; the program takes {}", port.name,
                          type_text(tensor), port.str());
    };
    if (tensor.dtype != port.dtype || tensor.shape.size() != port.dims.size()) throw misfit();
    for (size_t d = 0; d < port.dims.size(); ++d) {
      const PortDim& dim = port.dims[d];
      if (dim.value >= 0 && dim.value != tensor.shape[d]) throw misfit();
      if (dim.symbol.empty()) continue;
      const auto [it, added] = symbols.emplace(dim.symbol, tensor.shape[d]);
      if (added) from[dim.symbol] = port.name;
      if (it->second != tensor.shape[d])
        throw CompileError(kBadInput, {},
                           "dimension `{}` is {} in input `{}` {} and {} in input `{}`", dim.symbol,
                           tensor.shape[d], port.name, port.str(), it->second, from[dim.symbol]);
    }
  }
  return symbols;
}

static std::vector<std::string> list_of(const std::vector<Port>& ports) {
  std::vector<std::string> names;
  for (const Port& port : ports) names.push_back(port.name);
  return names;
}

static std::vector<std::string> symbols_of(const Signature& signature) {
  std::vector<std::string> names;
  for (const Port& port : signature.inputs)
    for (const PortDim& dim : port.dims)
      if (!dim.symbol.empty()) names.push_back(dim.symbol);
  return names;
}

static std::string names_of(const std::vector<Port>& ports) {
  std::string text;
  for (const Port& port : ports) text += (text.empty() ? "`" : ", `") + port.name + "`";
  return text.empty() ? "none" : text;
}

std::map<std::string, InputMeaning> named_meanings(const IRModule& module) {
  std::map<std::string, InputMeaning> out;
  try {
    const std::vector<InputMeaning> meanings = input_meanings(module);
    const std::vector<Port> inputs = signature_of(module).inputs;
    for (size_t i = 0; i < inputs.size() && i < meanings.size(); ++i)
      out.emplace(inputs[i].name, meanings[i]);
  } catch (const CompileError&) {  // no `main`, or one whose parameters are no tensors
  }
  return out;
}

// Symbols without a value have the default one.
static std::optional<int64_t> value_of(const Expr& expr,
                                       const std::map<std::string, int64_t>& symbols) {
  Substitution sizes;
  walk<Var>(expr, [&](const Var& var) {
    const auto known = symbols.find(var.name);
    sizes.emplace(&var, imm(var.dtype, known == symbols.end() ? kDefaultDim : known->second));
  });
  return as_int(graph::simplify_dim(substitute(expr, sizes)));
}

// What the declaration of an input computes from other dimensions is no symbol to choose.
static std::vector<int64_t> shape_of(const Port& port, const InputMeaning& meaning,
                                     const std::map<std::string, int64_t>& symbols) {
  std::vector<int64_t> shape = shape_of(port, symbols, kDefaultDim);
  for (size_t d = 0; d < shape.size() && d < meaning.shape.size(); ++d) {
    const Expr& declared = meaning.shape[d];
    if (as_int(declared) || declared.as<Var>() || symbols.count(port.dims[d].symbol)) continue;
    shape[d] = std::max<int64_t>(0, value_of(declared, symbols).value_or(shape[d]));
  }
  return shape;
}

RandomRange range_of(const InputMeaning& meaning, const std::map<std::string, int64_t>& symbols,
                     Values values) {
  RandomRange range;
  range.kind = meaning.kind;
  range.from_end = meaning.from_end;
  range.values = values;
  if (meaning.extent) range.extent = value_of(meaning.extent, symbols).value_or(1);
  return range;
}

std::map<std::string, int64_t> parse_dims(const std::vector<std::string>& texts) {
  constexpr int64_t kLargest = int64_t{1} << 40;
  std::map<std::string, int64_t> dims;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      throw UsageError("--dim {}: expected NAME=VALUE", text);
    int64_t number = -1;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + equals + 1, end, number);
    if (read.ec != std::errc() || read.ptr != end || number < 0 || number > kLargest)
      throw UsageError("--dim {}: expected a number from 0 to {}", text, kLargest);
    dims[text.substr(0, equals)] = number;
  }
  return dims;
}

std::map<std::string, std::string> parse_input_files(const std::vector<std::string>& texts) {
  std::map<std::string, std::string> files;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      throw UsageError("--input {}: expected NAME=VALUE", text);
    if (!files.emplace(text.substr(0, equals), text.substr(equals + 1)).second)
      throw UsageError("--input {}: the input is given twice", text);
  }
  return files;
}

std::vector<Ref<TensorData>> make_inputs(const Signature& signature, const InputOptions& options) {
  for (const auto& [name, file] : options.files) {
    const bool known = std::any_of(signature.inputs.begin(), signature.inputs.end(),
                                   [&](const Port& port) { return port.name == name; });
    if (!known)
      throw CompileError(kBadInput, {}, "no input is named `{}`; the program takes {}{}", name,
                         names_of(signature.inputs), did_you_mean(name, list_of(signature.inputs)));
  }
  // Symbols that a given file or option decides hold for the others.
  std::map<std::string, int64_t> symbols = options.dims;
  std::vector<Ref<TensorData>> inputs(signature.inputs.size());
  std::map<std::string, bool> mentioned;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Port& port = signature.inputs[i];
    for (const PortDim& dim : port.dims) mentioned[dim.symbol] = true;
    const auto file = options.files.find(port.name);
    const auto tensor = options.tensors.find(port.name);
    if (tensor != options.tensors.end())
      inputs[i] = tensor->second;
    else if (file != options.files.end())
      inputs[i] = as_declared(read_tensor(file->second), port.dtype);
    else
      continue;
    for (size_t d = 0; d < port.dims.size() && d < inputs[i]->shape.size(); ++d) {
      const std::string& symbol = port.dims[d].symbol;
      if (symbol.empty()) continue;
      const int64_t size = inputs[i]->shape[d];
      if (const auto asked = options.dims.find(symbol);
          asked != options.dims.end() && asked->second != size)
        throw UsageError("--dim {}={}: it is {} in the file of input `{}`", symbol, asked->second,
                         size, port.name);
      symbols.emplace(symbol, size);
    }
  }
  for (const auto& [symbol, value] : options.dims) {
    if (!mentioned.count(symbol))
      throw UsageError("--dim {}={}: no input has a dimension `{}`{}", symbol, value, symbol,
                       did_you_mean(symbol, symbols_of(signature)));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]) continue;
    const Port& port = signature.inputs[i];
    const auto known = options.meanings.find(port.name);
    const InputMeaning meaning = known == options.meanings.end() ? InputMeaning{} : known->second;
    inputs[i] =
        random_values(port.dtype, shape_of(port, meaning, symbols), options.seed * 1000003 + i + 1,
                      range_of(meaning, symbols, options.values));
  }
  check_inputs(signature, inputs);
  return inputs;
}

TensorSummary summarise(const TensorData& tensor) {
  TensorSummary summary;
  const int64_t count = tensor.elements();
  const int64_t distinct = tensor.is_splat() ? std::min<int64_t>(1, count) : count;
  double sum = 0;
  int64_t numbers = 0;
  for (int64_t i = 0; i < distinct; ++i) {
    const double value = tensor.at_float(i);
    if (std::isnan(value)) {
      summary.nan += tensor.is_splat() ? count : 1;
      continue;
    }
    summary.min = numbers == 0 ? value : std::min(summary.min, value);
    summary.max = numbers == 0 ? value : std::max(summary.max, value);
    sum += value;
    ++numbers;
  }
  if (numbers > 0) summary.mean = sum / static_cast<double>(numbers);
  constexpr int64_t kFirst = 6;
  for (int64_t i = 0; i < std::min(count, kFirst); ++i)
    summary.first.push_back(tensor.at_float(tensor.is_splat() ? 0 : i));
  return summary;
}

std::string summary_line(const std::string& name, const TensorData& tensor, size_t name_width) {
  std::string line = fmt::format("{:<{}}  {}", name, name_width, type_text(tensor));
  if (tensor.elements() == 0) return line + "  empty";
  if (tensor.dtype.is_string()) {
    constexpr int64_t kMost = 6;
    line += "  [";
    for (int64_t i = 0; i < std::min(tensor.elements(), kMost); ++i)
      line += fmt::format("{}{}", i == 0 ? "" : ", ", quoted(text_at(tensor, i)));
    return line + (tensor.elements() > kMost ? ", ...]" : "]");
  }
  const TensorSummary summary = summarise(tensor);
  line +=
      fmt::format("  min {:.6g}  mean {:.6g}  max {:.6g}", summary.min, summary.mean, summary.max);
  if (summary.nan > 0) line += fmt::format("  {} NaN", summary.nan);
  line += "  [";
  for (size_t i = 0; i < summary.first.size(); ++i)
    line += fmt::format("{}{:.6g}", i == 0 ? "" : ", ", summary.first[i]);
  return line + (static_cast<size_t>(tensor.elements()) > summary.first.size() ? ", ...]" : "]");
}

DLDataType dlpack_dtype(DType dtype) {
  if (dtype.is_string()) return runtime::kStringElement;
  DLDataType out{};
  out.bits = dtype.bits;
  out.lanes = dtype.lanes;
  out.code = backend::dlpack_code(dtype);
  return out;
}

runtime::Tensor to_runtime(const TensorData& tensor) {
  if (tensor.dtype.is_string()) {
    std::vector<std::string_view> texts;
    for (int64_t i = 0; i < tensor.elements(); ++i) texts.push_back(text_at(tensor, i));
    return runtime::Tensor::of_texts(tensor.shape, texts);
  }
  runtime::Tensor out(dlpack_dtype(tensor.dtype), tensor.shape);
  const auto data = tensor.data();
  if (!data.empty()) std::memcpy(out.data(), data.data(), data.size());
  return out;
}

Ref<TensorData> from_runtime(const runtime::Tensor& tensor, DType dtype) {
  if (dtype.is_string()) return tensor_of_texts(tensor.shape(), tensor.texts());
  const auto* data = static_cast<const std::byte*>(tensor.data());
  return TensorData::owned(dtype, tensor.shape(),
                           std::vector<std::byte>(data, data + tensor.bytes()));
}

Ref<TensorData> taken_over(const runtime::Tensor& tensor, DType dtype) {
  if (dtype.is_string()) return tensor_of_texts(tensor.shape(), tensor.texts());
  const auto keeper = std::make_shared<const runtime::Tensor>(tensor);
  const auto* data = static_cast<const std::byte*>(keeper->data());
  return TensorData::view(dtype, keeper->shape(), {data, static_cast<size_t>(keeper->bytes())},
                          keeper);
}

}  // namespace tenon
