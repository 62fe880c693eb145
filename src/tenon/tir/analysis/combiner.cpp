// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/analysis/combiner.h"

#include "tenon/tir/compute.h"

namespace tenon::tir {

std::optional<Combiner> combiner_of(const BufferStore& store) {
  const auto* op = store.value.as<Binary>();
  if (!op || (op->op != BinaryOp::kAdd && op->op != BinaryOp::kMul && op->op != BinaryOp::kMin &&
              op->op != BinaryOp::kMax))
    return std::nullopt;
  const auto is_self = [&](const Expr& e) {
    const auto* load = e.as<BufferLoad>();
    if (!load || !load->buffer.same_as(store.buffer)) return false;
    for (size_t i = 0; i < store.indices.size(); ++i)
      if (!structural_equal(load->indices[i], store.indices[i])) return false;
    return true;
  };
  Combiner out{op->op, {}, is_self(op->lhs)};
  if (!out.on_left && !is_self(op->rhs)) return std::nullopt;
  out.value = out.on_left ? op->rhs : op->lhs;
  bool again = false;
  walk<BufferLoad>(out.value, [&](const BufferLoad& load) {
    again = again || load.buffer.same_as(store.buffer);
  });
  return again ? std::nullopt : std::optional(out);
}

Expr joined(const Combiner& combiner, const Expr& accumulator, const Expr& value) {
  return combiner.on_left ? make<Binary>(combiner.op, accumulator, value)
                          : make<Binary>(combiner.op, value, accumulator);
}

Expr neutral_value(BinaryOp op, DType dtype) {
  if (op == BinaryOp::kMax) return least_value(dtype);
  if (op == BinaryOp::kMin) return greatest_value(dtype);
  const int64_t value = op == BinaryOp::kMul;
  return dtype.is_float() ? imm(dtype, static_cast<double>(value)) : imm(dtype, value);
}

}  // namespace tenon::tir
