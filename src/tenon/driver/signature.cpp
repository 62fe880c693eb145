// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/signature.h"

#include "tenon/backend/dlpack_code.h"
#include "tenon/graph/expr.h"
#include "tenon/tir/host_memory.h"
#include "tenon/tir/scalar_sources.h"
#include "tenon/tir/stmt.h"

namespace tenon {

std::string Port::str() const {
  std::string text = dtype.str() + " (";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ", ";
    text += dims[i].value >= 0       ? std::to_string(dims[i].value)
            : dims[i].symbol.empty() ? "?"
                                     : dims[i].symbol;
  }
  return text + (dims.size() == 1 ? ",)" : ")");
}

static PortDim dim_of(const Expr& expr) {
  if (const auto value = as_int(expr)) return {*value, ""};
  if (const auto* var = expr.as<Var>()) return {-1, var->name};
  return {};
}

static Port port_of(std::string name, const graph::Type& type, const Origin& origin) {
  const auto* tensor = type.as<graph::TensorType>();
  if (!tensor || tensor->ndim < 0 || tensor->dtype.is_void())
    throw CompileError(kUnsupported, origin,
                       "`{}` of `main` has type {}; expected a tensor of known rank and type", name,
                       graph::str(type));
  Port port{std::move(name), tensor->dtype, {}};
  port.dims.resize(static_cast<size_t>(tensor->ndim));
  for (size_t i = 0; tensor->shape && i < port.dims.size(); ++i)
    port.dims[i] = dim_of((*tensor->shape)[i]);
  return port;
}

static void flatten(const graph::Type& type, std::vector<graph::Type>& out) {
  if (const auto* tuple = type.as<graph::TupleType>()) {
    for (const graph::Type& item : tuple->types) flatten(item, out);
  } else {
    out.push_back(type);
  }
}

static std::string name_at(const std::optional<std::vector<std::string>>& names, size_t i,
                           const std::string& otherwise) {
  return names && i < names->size() ? (*names)[i] : otherwise;
}

static std::string output_name(size_t i, size_t count) {
  return count == 1 ? "output" : fmt::format("output_{}", i);
}

static Signature signature_of(const graph::Function& function) {
  const auto inputs = function.attrs.strings("input_names");
  const auto outputs = function.attrs.strings("output_names");
  Signature signature;
  for (size_t i = 0; i < function.params.size(); ++i) {
    const Ref<graph::Var>& param = function.params[i];
    signature.inputs.push_back(
        port_of(name_at(inputs, i, param->name), param->type, param->origin));
  }
  std::vector<graph::Type> results;
  flatten(graph::type_of(function.body->body), results);
  for (size_t i = 0; i < results.size(); ++i)
    signature.outputs.push_back(
        port_of(name_at(outputs, i, output_name(i, results.size())), results[i], function.origin));
  return signature;
}

static Signature signature_of(const tir::PrimFunc& function) {
  const auto inputs = function.attrs.strings("input_names");
  const auto outputs = function.attrs.strings("output_names");
  const auto stated = function.attrs.get<int64_t>("tenon.num_inputs");
  if (!stated)
    throw CompileError(kWrongForm, function.origin,
                       "PrimFunc `main` does not say how many inputs it has; expected attribute "
                       "`tenon.num_inputs`");
  Signature signature;
  const auto count = static_cast<size_t>(std::max<int64_t>(0, *stated));
  const size_t scalars = tir::scalar_sources(function).size();
  const size_t buffers =
      function.params.size() - scalars - (function.attrs.contains("tenon.workspace_bytes") ? 1 : 0);
  for (size_t i = 0; i < buffers; ++i)
    if (!function.buffers[i])
      throw CompileError(kUnsupported, function.origin, "parameter `{}` of `main` is no buffer",
                         function.params[i]->name);
  const auto port = [](const tir::Buffer& buffer, const std::string& name) {
    Port out{name, buffer.dtype, {}};
    for (const Expr& dim : buffer.shape) out.dims.push_back(dim_of(dim));
    return out;
  };
  const std::span<const Ref<tir::Buffer>> all(function.buffers);
  for (size_t i = 0; i < std::min(count, buffers); ++i)
    signature.inputs.push_back(port(*all[i], name_at(inputs, i, all[i]->name)));
  const auto given = tir::program_outputs(
      function, all.subspan(signature.inputs.size(), buffers - signature.inputs.size()));
  for (size_t i = 0; i < given.size(); ++i)
    signature.outputs.push_back(port(*given[i].buffer, name_at(outputs, i, given[i].buffer->name)));
  return signature;
}

Signature signature_of(const IRModule& module) {
  if (const auto function = module.find<graph::Function>("main")) return signature_of(*function);
  if (const auto function = module.find<tir::PrimFunc>("main")) return signature_of(*function);
  throw CompileError(kUndefined, {}, "the module has no function `main`");
}

static DType dtype_of(const TenonTensorInfo& info) {
  if (info.code == TENON_DTYPE_STRING) return kString;
  return {backend::code_of_dlpack(info.code), info.bits, info.lanes};
}

static Port port_of(const TenonProgram& program, const TenonTensorInfo& info) {
  Port port{info.name ? info.name : "", dtype_of(info), {}};
  for (int32_t i = 0; i < info.ndim; ++i) {
    const int64_t dim = info.dims[i];
    if (dim >= 0)
      port.dims.push_back({dim, ""});
    else if (dim == TENON_DIM_COMPUTED || -1 - dim >= program.symbol_count)
      port.dims.push_back({});
    else
      port.dims.push_back({-1, program.symbols[-1 - dim].name});
  }
  return port;
}

Signature signature_of(const TenonProgram& program) {
  Signature signature;
  for (int32_t i = 0; i < program.input_count; ++i)
    signature.inputs.push_back(port_of(program, program.inputs[i]));
  for (int32_t i = 0; i < program.output_count; ++i)
    signature.outputs.push_back(port_of(program, program.outputs[i]));
  return signature;
}

std::vector<int64_t> shape_of(const Port& port, const std::map<std::string, int64_t>& symbols,
                              int64_t otherwise) {
  std::vector<int64_t> shape;
  for (const PortDim& dim : port.dims) {
    const auto it = symbols.find(dim.symbol);
    shape.push_back(dim.value >= 0 ? dim.value : it != symbols.end() ? it->second : otherwise);
  }
  return shape;
}

}  // namespace tenon
