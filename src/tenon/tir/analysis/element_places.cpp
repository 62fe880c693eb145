// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/analysis/element_places.h"

namespace tenon::tir {

Expr lane_of(const Expr& vector, int64_t i) {
  if (vector->dtype.is_scalar()) return vector;
  if (const auto* ramp = vector.as<Ramp>()) return ramp->base + ramp->stride * i;
  if (const auto* splat = vector.as<Broadcast>()) return splat->value;
  if (const auto* op = vector.as<Binary>()) {
    const Expr a = lane_of(op->lhs, i), b = lane_of(op->rhs, i);
    return a && b ? tenon::binary(op->op, a, b) : Expr();
  }
  if (const auto* op = vector.as<Not>()) {
    const Expr value = lane_of(op->value, i);
    return value ? logical_not(value) : Expr();
  }
  return {};
}

Expr span_of(const Buffer& buffer) {
  Expr span;
  if (buffer.is_compact()) {
    span = element_count(buffer.shape);
  } else {
    span = int64(1);
    for (size_t d = 0; d < buffer.ndim(); ++d)
      span = span + cast(kInt64, buffer.strides[d]) * (cast(kInt64, buffer.shape[d]) - 1);
  }
  span = cast(kInt64, span);
  return buffer.elem_offset ? span + cast(kInt64, buffer.elem_offset) : span;
}

Expr place_of(const BufferLoad& element) {
  const Buffer& buffer = *element.buffer;
  Expr place = buffer.elem_offset ? cast(kInt64, buffer.elem_offset) : int64(0);
  Expr stride = int64(1);
  for (size_t d = buffer.ndim(); d-- > 0;) {
    if (!buffer.strides.empty()) stride = cast(kInt64, buffer.strides[d]);
    place = place + cast(kInt64, element.indices[d]) * stride;
    if (buffer.strides.empty()) stride = stride * cast(kInt64, buffer.shape[d]);
  }
  return place;
}

DType element_of_access_ptr(const Call& call) {
  const auto* type = call.args.size() == 5 ? call.args[0].as<StringImm>() : nullptr;
  const auto dtype = type ? DType::parse(type->value) : std::nullopt;
  if (!dtype || dtype->bytes() < 1)
    throw CompileError(kBadArgument, call.origin,
                       "`T.tvm_access_ptr` has {} arguments, the first of which must be a dtype; "
                       "expected type, data, offset, extent and mode",
                       call.args.size());
  return *dtype;
}

}  // namespace tenon::tir
