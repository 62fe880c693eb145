// SPDX-License-Identifier: Apache-2.0
// Conversions between floats and quantised integers.
#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

struct QuantizeAttrs {
  int64_t axis = -1;
  DType out_dtype = kInt8;
  static auto table() {
    return std::tuple{attr<&QuantizeAttrs::axis>("axis", "of vectors of scales"),
                      attr<&QuantizeAttrs::out_dtype>("out_dtype", "int8, uint8, int16 or uint16")};
  }
};
struct DequantizeAttrs : QuantizeAttrs {
  DequantizeAttrs() { out_dtype = kVoid; }
  static auto table() {
    return std::tuple{
        attr<&QuantizeAttrs::axis>("axis", "of vectors of scales"),
        attr<&QuantizeAttrs::out_dtype>("out_dtype", "of the result; void: that of scale")};
  }
};

// Scale (1) and zero point (2): one element, or a vector along `axis`.
void check_parameters(const Call& call) {
  const Ref<TensorType> x = tensor_arg(call, 0);
  for (size_t i = 1; i < 3; ++i) {
    const Ref<TensorType> type = tensor_arg(call, i);
    if (!type->shape || is_int(simplify_dim(tir::element_count(*type->shape)), 1)) continue;
    if (type->ndim != 1)
      throw CompileError(kUnsupported, call.origin,
                         "argument `{}` of `{}` is {}; one element and vectors are supported",
                         input_name(call, i), call.op->name, str(type));
    if (!x->shape) continue;
    const size_t axis = axis_of(call, attrs_as<QuantizeAttrs>(call).axis, x->ndim);
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
  if (is_int(simplify_dim(tir::element_count(p.shape)), 1)) return p(Indices(p.ndim(), int64(0)));
  return p({i[axis_of(call, attrs_as<QuantizeAttrs>(call).axis, static_cast<int64_t>(i.size()))]});
}

bool is_quantised(DType dtype) {
  return dtype.is_integer() && (dtype.bits == 8 || dtype.bits == 16);
}

OpDef quantize() {
  OpDef op;
  op.name = "quantize";
  op.summary = "data / scale rounded to even, plus zero_point, held in the range of out_dtype.";
  op.inputs = {{"data", "floats, any shape"},
               OpInput{"scale", "one element, or a vector along axis"}.used_as(InputUse::kPositive),
               {"zero_point", "the same"}};
  op.attrs = attrs_of<QuantizeAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    check_float(call, 0);
    check_parameters(call);
    const DType dtype = attrs_as<QuantizeAttrs>(call).out_dtype;
    if (!is_quantised(dtype))
      throw CompileError(kUnsupported, call.origin, "`quantize` to {}", dtype.str());
    check_dtype(call, 2, dtype);
    return same_shape(call, 0, dtype);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0), scale = kernel.arg(1), zero = kernel.arg(2);
    const DType dtype = kernel.dtype();
    return kernel.emit_compute([&](const Indices& i) {
      // In the wider type of both: half floats cannot hold the steps of 16-bit results, nor a
      // scale that is given in float32.
      const DType wide =
          x.dtype == kFloat64 || scale.dtype == kFloat64 ? kFloat64 : DType(kFloat32);
      const Expr factor = parameter(call, scale, i), value = tenon::cast(wide, x(i));
      const bool is_one = as_float(factor) == 1;
      const Expr steps = is_one ? value : value / tenon::cast(wide, factor);
      const Expr shifted = float_call(IntrinsicId::kRound, {steps}) +
                           tenon::cast(steps->dtype, parameter(call, zero, i));
      const auto limit = [&](const Expr& value) {
        return imm(steps->dtype, static_cast<double>(*as_int(value)));
      };
      return tenon::cast(dtype, min(max(shifted, limit(tir::least_value(dtype))),
                                    limit(tir::greatest_value(dtype))));
    });
  };
  op.fusion = FusionKind::kBroadcast;
  op.layout = LayoutRule::kElementwise;
  op.source = "ONNX QuantizeLinear-19";
  return op;
}

OpDef dequantize() {
  OpDef op;
  op.name = "dequantize";
  op.summary = "(data - zero_point) * scale.";
  op.inputs = {{"data", "integers, any shape"},
               OpInput{"scale", "one element, or a vector along axis"}.used_as(InputUse::kPositive),
               {"zero_point", "the same, of the dtype of data"}};
  op.attrs = attrs_of<DequantizeAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    const DType dtype = tensor_arg(call, 0)->dtype;
    if (!dtype.is_void() && !is_quantised(dtype) && dtype != kInt32)
      throw CompileError(kUnsupported, call.origin, "`dequantize` of {}", dtype.str());
    check_dtype(call, 2, dtype);
    check_parameters(call);
    const DType asked = attrs_as<QuantizeAttrs>(call).out_dtype;
    if (!asked.is_void() && !asked.is_float())
      throw CompileError(kBadAttribute, call.origin, "`dequantize` to {}", asked.str());
    return same_shape(call, 0, asked.is_void() ? tensor_arg(call, 1)->dtype : asked);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0), scale = kernel.arg(1), zero = kernel.arg(2);
    return kernel.emit_compute([&](const Indices& i) {
      const Expr steps = tenon::cast(kInt32, x(i)) - tenon::cast(kInt32, parameter(call, zero, i));
      const Expr factor = parameter(call, scale, i);
      return tenon::cast(kernel.dtype(), tenon::cast(factor->dtype, steps) * factor);
    });
  };
  op.fusion = FusionKind::kBroadcast;
  op.layout = LayoutRule::kElementwise;
  op.source = "ONNX DequantizeLinear-19";
  return op;
}

}  // namespace

std::vector<OpDef> quantize_ops() { return {quantize(), dequantize()}; }

}  // namespace tenon::graph
