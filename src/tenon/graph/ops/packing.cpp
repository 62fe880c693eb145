// SPDX-License-Identifier: Apache-2.0
// Products with packed weights, and numbers that are packed in words.
#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

// ---- words

Type infer_words(const Call& call) {
  const Ref<TensorType> x = tensor_arg(call, 0);
  if (!x->dtype.is_void() && x->dtype != kInt8 && x->dtype != kUInt8)
    throw CompileError(kDTypeMismatch, call.origin,
                       "`words` of a tensor of dtype {}; expected int8 or uint8", x->dtype.str());
  const DType dtype = x->dtype.is_void() ? kVoid : x->dtype == kInt8 ? kInt32 : kUInt32;
  if (x->ndim == 0)
    throw CompileError(kRankMismatch, call.origin,
                       "`words` of a scalar; expected at least a vector");
  if (!x->shape) return make<TensorType>(dtype, x->ndim);
  if (const auto last = as_int(x->dim(-1)); last && *last % 4 != 0)
    throw CompileError(kShapeMismatch, call.origin,
                       "`words` of {} numbers in a row; expected a multiple of 4", *last);
  std::vector<Expr> shape = *x->shape;
  shape.back() = simplify_dim(floordiv(shape.back(), int64(4)));
  return make<TensorType>(std::move(shape), dtype);
}

Value lower_words(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.arg(0);
  return kernel.emit_compute([&](const Indices& i) {
    Expr word;
    for (int64_t byte = 0; byte < 4; ++byte) {
      Indices at = i;
      at.back() = i.back() * 4 + byte;
      Expr bits = tenon::cast(kUInt32, tenon::cast(kUInt8, x(at)));
      if (byte > 0) bits = tenon::call(IntrinsicId::kShiftLeft, {bits, imm(kUInt32, byte * 8)});
      word = byte == 0 ? bits : tenon::call(IntrinsicId::kBitwiseOr, {word, bits});
    }
    return tenon::cast(kernel.dtype(), word);
  });
}

OpDef words() {
  OpDef op;
  op.name = "words";
  op.summary =
      "Four numbers of 8 bits in a row as one of 32 bits, the first in the lowest: the same "
      "memory.";
  op.inputs = {{"x", "(..., 4 n), int8 or uint8"}};
  op.infer_type = infer_words;
  op.lower = lower_words;
  op.traits.legal = true;
  op.fusion = FusionKind::kOpaque;
  return op;
}

// ---- nn.packed_matmul

struct PackedMatmulAttrs {
  int64_t units = 0;
  DType out_dtype = kVoid;
  static auto table() {
    return std::tuple{required<&PackedMatmulAttrs::units>("units", "columns of the result"),
                      attr<&PackedMatmulAttrs::out_dtype>(
                          "out_dtype", "of the result and of the sums; void: that of a")};
  }
};

Type infer_packed_matmul(const Call& call) {
  const Ref<TensorType> a = tensor_arg(call, 0), b = tensor_arg(call, 1);
  check_rank(call, 1, 3);
  const auto attrs = attrs_as<PackedMatmulAttrs>(call);
  const int64_t units = attrs.units;
  if (is_of_words(call)) check_words(call, attrs.out_dtype);
  const DType dtype = attrs.out_dtype.is_void() ? a->dtype : attrs.out_dtype;
  if (a->ndim == 0)
    throw CompileError(kRankMismatch, call.origin, "`{}` of a scalar; expected at least a vector",
                       call.op->name);
  if (!a->shape) return make<TensorType>(dtype, a->ndim);
  if (b->shape) {
    check_dim(call, 1, b->dim(1), a->dim(-1), "rows");
    check_units(call, units, *b);
  }
  std::vector<Expr> shape = *a->shape;
  shape.back() = int64(units);
  return make<TensorType>(std::move(shape), dtype);
}

Value lower_packed_matmul(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand a = kernel.buffer_arg(0), b = kernel.buffer_arg(1);
  const Expr width = b.shape[2];
  const bool words = is_of_words(call);
  return kernel.emit_contraction(
      {a.shape.back()}, [&](const Indices& i, const Indices& k, DType dtype) {
        Indices at = i;
        at.back() = k[0];
        const Expr weight = b({floordiv(i.back(), width), k[0], floormod(i.back(), width)});
        return product_of(words, a(at), weight, dtype);
      });
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

OpDef packed_matmul_of_words() {
  OpDef op = packed_matmul();
  op.name += "_of_words";
  op.summary =
      "nn.packed_matmul whose elements are four numbers of 8 bits each (R.words), of which a "
      "product "
      "is the sum of the products.";
  return op;
}

// ---- nn.matmul_nbits

struct MatmulNBitsAttrs {
  int64_t bits = 4, units = 0;
  static auto table() {
    return std::tuple{attr<&MatmulNBitsAttrs::bits>("bits", "of a weight: 2, 4 or 8"),
                      attr<&MatmulNBitsAttrs::units>(
                          "units", "columns of the result, of weights in panels; 0: the others")};
  }
};

enum NBits : size_t { kA, kB, kScales, kZeroPoints };

// Weights of a byte or word.
int64_t weights_of_element(const TensorType& b, int64_t bits) {
  return (b.dtype == kUInt32 ? 32 : 8) / bits;
}

Type infer_matmul_nbits(const Call& call) {
  const Ref<TensorType> a = tensor_arg(call, kA), b = tensor_arg(call, kB);
  const auto [bits, units] = attrs_as<MatmulNBitsAttrs>(call);
  if (bits != 2 && bits != 4 && bits != 8)
    throw CompileError(kBadAttribute, call.origin, "`{}` of {} bits; expected 2, 4 or 8",
                       call.op->name, bits);
  check_float(call, kA);
  const int64_t panels = units == 0 ? 0 : 1;  // an axis more
  check_rank(call, kB, 3 + panels);
  if (b->dtype != kUInt32) check_dtype(call, kB, kUInt8);
  check_rank(call, kScales, 2 + panels);
  check_dtype(call, kScales, a->dtype);
  if (a->ndim == 0) check_rank(call, kA, 2);
  if (arg_or_null(call, kZeroPoints)) check_rank(call, kZeroPoints, 2 + panels);
  if (!a->shape || !b->shape) return make<TensorType>(a->dtype, a->ndim);
  check_dim(call, kA, a->dim(-1),
            simplify_dim(b->dim(panels) * b->dim(panels + 1) * weights_of_element(*b, bits)),
            "the last dimension");
  for (const size_t i : {kScales, kZeroPoints}) {
    if (!arg_or_null(call, i)) continue;
    const Ref<TensorType> type = tensor_arg(call, i);
    if (!type->shape) continue;
    // But for the axis of bytes, the dimensions of b.
    for (int64_t d = 0; d < 2 + panels; ++d)
      check_dim(call, i, type->dim(d), b->dim(d + (d > panels)), fmt::format("dimension {}", d));
  }
  if (units != 0) check_units(call, units, *b);
  std::vector<Expr> shape = *a->shape;
  shape.back() = units == 0 ? b->dim(2) : int64(units);
  return make<TensorType>(std::move(shape), a->dtype);
}

Value lower_matmul_nbits(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand a = KernelOf::wide(kernel.buffer_arg(kA)), b = kernel.buffer_arg(kB);
  const Operand scales = KernelOf::wide(kernel.buffer_arg(kScales));
  const Operand zeros = arg_or_null(call, kZeroPoints) ? kernel.buffer_arg(kZeroPoints) : Operand();
  const auto [bits, units] = attrs_as<MatmulNBitsAttrs>(call);
  const int64_t each = weights_of_element(*tensor_arg(call, kB), bits);
  const int64_t mask = (int64_t{1} << bits) - 1;
  // A byte is taken apart as a signed number, which vectors convert faster.
  const DType whole = b.dtype == kUInt32 ? kUInt32 : kInt32;
  const size_t first = units == 0 ? 0 : 1;  // the axis of blocks
  const Expr blocks = b.shape[first], elements = b.shape[first + 1], width = b.shape.back();
  const Expr middle = imm(a.dtype, int64_t{1} << (bits - 1));
  // Where the numbers of a column stand: in its panel, where there are panels.
  const auto of_column = [&](Indices at, const Expr& column) {
    if (units == 0) {
      at.push_back(column);
      return at;
    }
    at.insert(at.begin(), floordiv(column, width));
    at.push_back(floormod(column, width));
    return at;
  };
  // Axes of the sum: blocks, bytes or words of a block, weights of one.
  return kernel.emit({kernel.reduce(
      kernel.out_name(), kernel.shape(), {blocks, elements, int64(each)}, tir::sum_reducer(),
      [&](const Indices& i, const Indices& k) {
        Indices at = i;
        at.back() = (k[0] * elements + k[1]) * each + k[2];
        Expr weight = tenon::cast(whole, b(of_column({k[0], k[1]}, i.back())));
        if (each > 1)
          weight = tenon::call(
              IntrinsicId::kBitwiseAnd,
              {tenon::call(IntrinsicId::kShiftRight, {weight, tenon::cast(whole, k[2] * bits)}),
               imm(whole, mask)});
        const Indices block = of_column({k[0]}, i.back());
        const Expr zero = zeros ? tenon::cast(a.dtype, zeros(block)) : middle;
        return a(at) * ((tenon::cast(a.dtype, weight) - zero) * scales(block));
      })});
}

OpDef matmul_nbits() {
  OpDef op;
  op.name = "nn.matmul_nbits";
  op.summary =
      "Product with weights of few bits, (weight - zero point) * scale, each block of which has a "
      "scale; lower bits of a byte first.";
  op.inputs = {
      {"a", "(..., blocks * bytes * 8 / bits)"},
      {"b",
       "(blocks, bytes, units), uint8; in panels (ceil(units / w), blocks, bytes, w); words of "
       "uint32 for four bytes each"},
      {"scales", "(blocks, units); in panels (ceil(units / w), blocks, w)"},
      {"zero_points", "as scales, numbers; 2^(bits - 1) where there are none", true}};
  op.attrs = attrs_of<MatmulNBitsAttrs>();
  op.layout = LayoutRule::kProduct;
  op.infer_type = infer_matmul_nbits;
  op.lower = lower_matmul_nbits;
  op.fusion = FusionKind::kContraction;
  op.macs = [](const std::vector<KnownShape>& args, const KnownShape& result) {
    std::optional<double> macs;
    if (result && args[kA]) macs = product_of(*result) * args[kA]->back();
    return macs;
  };
  op.source = "ONNX Runtime, MatMulNBits";
  return op;
}

}  // namespace

std::vector<OpDef> packing_ops() {
  return {words(), packed_matmul(), packed_matmul_of_words(), matmul_nbits()};
}

}  // namespace tenon::graph
