// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/callee.h"

#include <unordered_set>

namespace tenon::tir {

Callee callee_of(const std::string& name, const Ref<PrimFunc>& function) {
  return {name, function->params, function->buffers, function->result, function};
}
Callee callee_of(const std::string& name, const Ref<ExternFunction>& function) {
  return {name, function->params, function->buffers, function->result, function};
}

std::optional<Callee> callee_of(const IRModule& module, const std::string& name) {
  const BaseFunc function = module.find(name);
  if (const auto prim = tenon::cast<PrimFunc>(function)) return callee_of(name, prim);
  if (const auto external = tenon::cast<ExternFunction>(function)) return callee_of(name, external);
  return std::nullopt;
}

std::vector<Ref<Var>> Callee::symbols() const {
  std::vector<Ref<Var>> out;
  std::unordered_set<const Node*> seen;
  for (const Ref<Var>& param : params) seen.insert(param.get());
  const auto collect = [&](const Expr& expr) {
    if (const auto* var = expr.as<Var>(); var && seen.insert(var).second)
      out.push_back(ref_to(var));
  };
  for (const Ref<Buffer>& buffer : buffers) {
    if (!buffer) continue;
    for (const Expr& dim : buffer->shape) collect(dim);
    for (const Expr& stride : buffer->strides) collect(stride);
    if (buffer->elem_offset) collect(buffer->elem_offset);
  }
  return out;
}

std::string Callee::declaration(size_t i) const {
  const Ref<Buffer>& buffer = buffers.at(i);
  if (!buffer) return params[i]->name + ": " + params[i]->dtype.str();
  std::string text =
      fmt::format("{}: Buffer({}, \"{}\"", buffer->name, str(buffer->shape), buffer->dtype.str());
  if (!buffer->strides.empty()) text += ", strides=" + str(buffer->strides);
  return text + ")";
}

std::vector<Expr> kept_extents(const BufferRegion& region) {
  std::vector<Expr> out;
  for (size_t d = 0; d < region.region.size(); ++d)
    if (!region.drops(d)) out.push_back(region.region[d].extent);
  return out;
}

std::vector<Expr> kept_strides(const BufferRegion& region) {
  const Buffer& buffer = *region.buffer;
  const std::vector<Expr> strides =
      buffer.is_compact() ? compact_strides(buffer.shape) : buffer.strides;
  std::vector<Expr> out;
  for (size_t d = 0; d < strides.size(); ++d)
    if (!region.drops(d)) out.push_back(strides[d]);
  return out;
}

Substitution bind_symbols(const Callee& callee, const std::vector<NodePtr>& args) {
  Substitution bound;
  const auto bind = [&](const Expr& declared, const Expr& actual) {
    if (const auto* var = declared.as<Var>()) bound.emplace(var, tenon::cast(var->dtype, actual));
  };
  for (size_t i = 0; i < args.size() && i < callee.params.size(); ++i)
    if (const auto scalar = tenon::cast<ExprNode>(args[i]); scalar && !callee.buffers[i])
      bind(callee.params[i], scalar);
  for (size_t i = 0; i < args.size() && i < callee.params.size(); ++i) {
    const auto* region = args[i].as<BufferRegion>();
    const Ref<Buffer>& buffer = callee.buffers[i];
    if (!region || !buffer) continue;
    const std::vector<Expr> extents = kept_extents(*region), strides = kept_strides(*region);
    for (size_t d = 0; d < extents.size() && d < buffer->shape.size(); ++d)
      bind(buffer->shape[d], extents[d]);
    for (size_t d = 0; d < strides.size() && d < buffer->strides.size(); ++d)
      bind(buffer->strides[d], strides[d]);
    if (buffer->elem_offset && buffer->elem_offset.as<Var>())
      bind(buffer->elem_offset, imm(buffer->elem_offset->dtype, int64_t{0}));
  }
  return bound;
}

}  // namespace tenon::tir
