// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/specialize.h"

namespace tenon::tir {

// Arithmetic on what are constants now.
static Ref<PrimFunc> folded(const Ref<PrimFunc>& function) {
  return rewrite(function, [](const NodePtr& node) -> std::optional<NodePtr> {
    if (const auto* op = node.as<Binary>();
        op && !op->lhs->dtype.is_float() && as_int(op->lhs) && as_int(op->rhs))
      return binary(op->op, op->lhs, op->rhs, op->origin);
    if (const auto* op = node.as<Cast>(); op && as_int(op->value) && op->dtype.is_integer())
      return tenon::cast(op->dtype, op->value);
    return std::nullopt;
  });
}

Ref<PrimFunc> specialize(const PrimFunc& function, const Substitution& constants) {
  Substitution values = constants;
  std::vector<Ref<Var>> params;
  std::vector<Ref<Buffer>> buffers;
  for (size_t i = 0; i < function.params.size(); ++i) {
    const Ref<Buffer>& buffer = function.buffers[i];
    if (!buffer) {
      if (constants.count(function.params[i].get())) continue;
      params.push_back(function.params[i]);
      buffers.push_back(buffer);
      continue;
    }
    const auto replaced = [&](const std::vector<Expr>& exprs) {
      std::vector<Expr> out;
      for (const Expr& expr : exprs) out.push_back(substitute(expr, constants));
      return out;
    };
    const std::vector<Expr> shape = replaced(buffer->shape);
    std::vector<Expr> strides = replaced(buffer->strides);
    const auto given = as_ints(strides), row_major = as_ints(compact_strides(shape));
    const auto extents = as_ints(shape);
    if (!strides.empty() && given && row_major && extents) {
      bool compact = true;
      for (size_t d = 0; d < given->size(); ++d)
        compact = compact && ((*extents)[d] == 1 || (*given)[d] == (*row_major)[d]);
      if (compact) strides.clear();
    }
    Expr offset = buffer->elem_offset;
    if (offset) offset = substitute(offset, constants);
    if (offset && is_int(offset, 0)) offset = {};
    params.push_back(function.params[i]);
    buffers.push_back(make<Buffer>(buffer->name, buffer->dtype, shape,
                                   Buffer::Options{.strides = strides,
                                                   .elem_offset = offset,
                                                   .scope = buffer->scope,
                                                   .alignment = buffer->alignment,
                                                   .offset_factor = buffer->offset_factor,
                                                   .data = buffer->data},
                                   buffer->origin));
    values.emplace(buffer.get(), buffers.back());
  }
  const Ref<PrimFunc> copy =
      with(make<PrimFunc>(std::move(params), std::move(buffers), substitute(function.body, values),
                          function.attrs, function.origin),
           [&](PrimFunc& made) {
             made.result = function.result;
             made.is_private = true;
           });
  return renew_definitions(folded(copy));
}

}  // namespace tenon::tir
