// SPDX-License-Identifier: Apache-2.0
// Products with packed weights.
#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

// ---- nn.packed_matmul

struct PackedMatmulAttrs {
  int64_t units = 0;
  static auto table() {
    return std::tuple{required<&PackedMatmulAttrs::units>("units", "columns of the result")};
  }
};

Type infer_packed_matmul(const Call& call) {
  const Ref<TensorType> a = tensor_arg(call, 0), b = tensor_arg(call, 1);
  check_rank(call, 1, 3);
  const int64_t units = attrs_as<PackedMatmulAttrs>(call).units;
  if (a->ndim == 0)
    throw CompileError(kRankMismatch, call.origin, "`{}` of a scalar; expected at least a vector",
                       call.op->name);
  if (!a->shape) return make<TensorType>(a->dtype, a->ndim);
  if (b->shape) {
    check_dim(call, 1, b->dim(1), a->dim(-1), "rows");
    const auto panels = as_int(b->dim(0)), width = as_int(b->dim(2));
    if (units < 1 ||
        (panels && width && (units > *panels * *width || units <= (*panels - 1) * *width)))
      throw CompileError(kBadAttribute, call.origin, "`{}` has {} units; the weight is {}",
                         call.op->name, units, str(b));
  }
  std::vector<Expr> shape = *a->shape;
  shape.back() = int64(units);
  return make<TensorType>(std::move(shape), a->dtype);
}

Value lower_packed_matmul(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand a = KernelOf::wide(kernel.buffer_arg(0)), b = KernelOf::wide(kernel.buffer_arg(1));
  const Expr width = b.shape[2];
  return kernel.emit({kernel.reduce(kernel.out_name(), kernel.shape(), {a.shape.back()},
                                    tir::sum_reducer(), [&](const Indices& i, const Indices& k) {
                                      Indices at = i;
                                      at.back() = k[0];
                                      return a(at) * b({floordiv(i.back(), width), k[0],
                                                        floormod(i.back(), width)});
                                    })});
}

OpDef packed_matmul() {
  OpDef op;
  op.name = "nn.packed_matmul";
  op.summary =
      "Product with a matrix (k, units) packed in panels of w columns: what layout_transform makes "
      "of it "
      "from \"IO\" to \"OI{w}o\".";
  op.inputs = {{"a", "(..., k)"}, {"b", "(ceil(units / w), k, w)"}};
  op.attrs = attrs_of<PackedMatmulAttrs>();
  op.infer_type = infer_packed_matmul;
  op.lower = lower_packed_matmul;
  op.fusion = FusionKind::kContraction;
  op.source = "Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008";
  return op;
}

}  // namespace

std::vector<OpDef> packing_ops() { return {packed_matmul()}; }

}  // namespace tenon::graph
