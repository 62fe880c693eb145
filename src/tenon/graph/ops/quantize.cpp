// SPDX-License-Identifier: Apache-2.0
// Conversions between floats and quantised numbers: integers, and minifloats.
#include "tenon/graph/ops/define.h"
#include "tenon/support/narrow_float.h"

namespace tenon::graph {

namespace {

// Which elements share a scale.
struct ScaleAttrs {
  int64_t axis = -1;
  int64_t block_size = 0;
  static auto table() {
    return std::tuple{attr<&ScaleAttrs::axis>("axis", "of vectors of scales, and of blocks"),
                      attr<&ScaleAttrs::block_size>(
                          "block_size",
                          "elements along axis that share a scale, which has a shape like data's; "
                          "0: no blocks")};
  }
};
struct QuantizeAttrs : ScaleAttrs {
  DType out_dtype = kInt8;
  DType precision = kVoid;
  bool saturate = true;
  static auto table() {
    const auto [axis, block_size] = ScaleAttrs::table();
    return std::tuple{
        axis,
        attr<&QuantizeAttrs::out_dtype>("out_dtype",
                                        "an integer of 2 to 16 bits, or a float of 4 or 8"),
        block_size,
        attr<&QuantizeAttrs::precision>(
            "precision", "of the division; void: the wider of float32, data's and scale's"),
        attr<&QuantizeAttrs::saturate>(
            "saturate", "of float8: what is too large is the largest number, not infinity or NaN")};
  }
};
struct DequantizeAttrs : ScaleAttrs {
  DType out_dtype = kVoid;
  static auto table() {
    const auto [axis, block_size] = ScaleAttrs::table();
    return std::tuple{
        axis, attr<&DequantizeAttrs::out_dtype>("out_dtype", "of the result; void: that of scale"),
        block_size};
  }
};

// A parameter with a number for each block along `axis` of x.
void check_blocks(const Call& call, size_t i, const TensorType& x, const TensorType& parameter) {
  const auto& attrs = attrs_as<ScaleAttrs>(call);
  if (attrs.block_size < 0)
    throw CompileError(kBadAttribute, call.origin, "`{}` with a block_size of {}", call.op->name,
                       attrs.block_size);
  if (parameter.ndim != x.ndim)
    throw CompileError(kRankMismatch, call.origin,
                       "argument `{}` of `{}` has rank {}; `data`, whose blocks it is for, has {}",
                       input_name(call, i), call.op->name, parameter.ndim, x.ndim);
  if (!x.shape || !parameter.shape) return;
  const size_t axis = axis_of(call, attrs.axis, x.ndim);
  for (size_t d = 0; d < x.shape->size(); ++d) {
    const Expr extent = (*x.shape)[d];
    check_dim(call, i, parameter.dim(static_cast<int64_t>(d)),
              d == axis ? simplify_dim(ceildiv(extent, int64(attrs.block_size))) : extent,
              fmt::format("dimension {}", d));
  }
}

// Scale (1) and zero point (2): one element, a vector along `axis`, or one for each block.
void check_parameters(const Call& call) {
  const Ref<TensorType> x = tensor_arg(call, 0);
  for (size_t i = 1; i < 3; ++i) {
    const Ref<TensorType> type = tensor_arg(call, i);
    if (attrs_as<ScaleAttrs>(call).block_size != 0 && type->ndim > 0) {
      check_blocks(call, i, *x, *type);
      continue;
    }
    if (!type->shape || is_int(simplify_dim(tir::element_count(*type->shape)), 1)) continue;
    if (type->ndim != 1)
      throw CompileError(kUnsupported, call.origin,
                         "argument `{}` of `{}` is {}; one element and vectors are supported",
                         input_name(call, i), call.op->name, str(type));
    if (!x->shape) continue;
    const size_t axis = axis_of(call, attrs_as<ScaleAttrs>(call).axis, x->ndim);
    check_dim(call, i, type->dim(0), (*x->shape)[axis], "dimension 0");
  }
  const DType scale = tensor_arg(call, 1)->dtype;
  if (!scale.is_void() && !scale.is_float())
    throw CompileError(kDTypeMismatch, call.origin,
                       "argument `scale` of `{}` has dtype {}; expected a floating-point dtype",
                       call.op->name, scale.str());
}

// The element of a parameter for the element of x at i.
Expr parameter(const Call& call, const Operand& p, const Indices& i) {
  if (p.ndim() == 0) return p({});
  const auto& attrs = attrs_as<ScaleAttrs>(call);
  const size_t axis = axis_of(call, attrs.axis, static_cast<int64_t>(i.size()));
  if (attrs.block_size > 0) {
    Indices block = i;
    block[axis] = floordiv(i[axis], attrs.block_size);
    return p(block);
  }
  if (is_int(simplify_dim(tir::element_count(p.shape)), 1)) return p(Indices(p.ndim(), int64(0)));
  return p({i[axis]});
}

bool is_quantised(DType dtype) {
  if (dtype.is_minifloat()) return dtype != kFloat8e8m0fnu;
  return dtype.is_integer() && dtype.bits >= 2 && dtype.bits <= 16;
}

// In the wider type of both: half floats cannot hold the steps of 16-bit results, nor a scale that
// is given in float32.
DType division_dtype(const QuantizeAttrs& attrs, DType x, DType scale) {
  if (!attrs.precision.is_void()) return attrs.precision;
  return x == kFloat64 || scale == kFloat64 ? kFloat64 : DType(kFloat32);
}

// The quantised value of a number of steps: the zero point added.
Expr quantised(const Expr& steps, const Expr& zero, DType dtype, bool saturate) {
  const DType wide = steps->dtype.bits < 32 ? DType(kFloat32) : steps->dtype;
  if (dtype.is_minifloat()) {
    Expr value = tenon::cast(wide, steps);
    // The zero point of a float8 is 0.
    if (dtype == kFloat4e2m1fn) value = value + tenon::cast(wide, zero);
    const double most = largest_narrow_float(dtype);
    if (saturate) value = min(max(value, imm(wide, -most)), imm(wide, most));
    return tenon::cast(dtype, value);
  }
  // Held in the range before the zero point is added, and so rounded: whole bounds are the same
  // before. What is left fits 32 bits.
  const auto limit = [&](const Expr& value) -> Expr {
    const int64_t whole = *as_int(value);
    if (const auto known = as_int(zero)) return imm(wide, static_cast<double>(whole - *known));
    return imm(wide, static_cast<double>(whole)) - tenon::cast(wide, zero);
  };
  const Expr inside = min(max(tenon::cast(wide, steps), limit(tir::least_value(dtype))),
                          limit(tir::greatest_value(dtype)));
  return tenon::cast(dtype, tenon::cast(kInt32, float_call(IntrinsicId::kRound, {inside})) +
                                tenon::cast(kInt32, zero));
}

OpDef quantize() {
  OpDef op;
  op.name = "quantize";
  op.summary =
      "data / scale rounded to even, plus zero_point, held in the range of out_dtype; of a float8 "
      "without zero_point, which is 0.";
  op.inputs = {{"data", "floats, any shape"},
               OpInput{"scale", "one element, a vector along axis, or one for each block"}.used_as(
                   InputUse::kPositive),
               {"zero_point", "the same, of out_dtype"}};
  op.attrs = attrs_of<QuantizeAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    check_float(call, 0);
    check_parameters(call);
    const DType dtype = attrs_as<QuantizeAttrs>(call).out_dtype;
    if (!is_quantised(dtype))
      throw CompileError(kUnsupported, call.origin, "`quantize` to {}", dtype.str());
    const DType precision = attrs_as<QuantizeAttrs>(call).precision;
    if (!precision.is_void() && (!precision.is_float() || precision.bits < 16))
      throw CompileError(kBadAttribute, call.origin, "`quantize` with precision {}",
                         precision.str());
    check_dtype(call, 2, dtype);
    return same_shape(call, 0, dtype);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0), scale = kernel.arg(1), zero = kernel.arg(2);
    const DType dtype = kernel.dtype();
    const auto& attrs = attrs_as<QuantizeAttrs>(call);
    const DType wide = division_dtype(attrs, x.dtype, scale.dtype);
    return kernel.emit_compute([&](const Indices& i) {
      const Expr factor = parameter(call, scale, i), value = tenon::cast(wide, x(i));
      const bool is_one = as_float(factor) == 1;
      const Expr steps = is_one ? value : value / tenon::cast(wide, factor);
      return quantised(steps, parameter(call, zero, i), dtype, attrs.saturate);
    });
  };
  op.fusion = FusionKind::kBroadcast;
  op.layout = LayoutRule::kElementwise;
  op.source = "ONNX QuantizeLinear-25";
  return op;
}

OpDef dequantize() {
  OpDef op;
  op.name = "dequantize";
  op.summary = "(data - zero_point) * scale.";
  op.inputs = {{"data", "integers or floats of 4 or 8 bits, any shape"},
               OpInput{"scale", "one element, a vector along axis, or one for each block"}.used_as(
                   InputUse::kPositive),
               {"zero_point", "the same, of the dtype of data"}};
  op.attrs = attrs_of<DequantizeAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    const DType dtype = tensor_arg(call, 0)->dtype;
    if (!dtype.is_void() && !is_quantised(dtype) && dtype != kInt32)
      throw CompileError(kUnsupported, call.origin, "`dequantize` of {}", dtype.str());
    check_dtype(call, 2, dtype);
    check_parameters(call);
    const DType asked = attrs_as<DequantizeAttrs>(call).out_dtype;
    if (!asked.is_void() && !asked.is_float())
      throw CompileError(kBadAttribute, call.origin, "`dequantize` to {}", asked.str());
    return same_shape(call, 0, asked.is_void() ? tensor_arg(call, 1)->dtype : asked);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0), scale = kernel.arg(1), zero = kernel.arg(2);
    return kernel.emit_compute([&](const Indices& i) {
      // Half floats cannot hold the steps of 16-bit integers, nor the products of large ones.
      const DType steps_in = x.dtype.is_float() ? kFloat32 : DType(kInt32);
      const Expr steps =
          tenon::cast(steps_in, x(i)) - tenon::cast(steps_in, parameter(call, zero, i));
      const DType wide = scale.dtype == kFloat64 ? kFloat64 : DType(kFloat32);
      const Expr factor = tenon::cast(wide, parameter(call, scale, i));
      return tenon::cast(kernel.dtype(), tenon::cast(wide, steps) * factor);
    });
  };
  op.fusion = FusionKind::kBroadcast;
  op.layout = LayoutRule::kElementwise;
  op.source = "ONNX DequantizeLinear-25";
  return op;
}

}  // namespace

std::vector<OpDef> quantize_ops() { return {quantize(), dequantize()}; }

}  // namespace tenon::graph
