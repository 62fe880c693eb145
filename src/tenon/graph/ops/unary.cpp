// SPDX-License-Identifier: Apache-2.0
// Operators of one tensor, element by element: rows of a table.
#include <cmath>
#include <limits>

#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

struct UnaryTraits {
  bool finite_at_zero = true;
  InputUse x = InputUse::kValue;
  std::string_view onnx = {};
};

struct UnaryRow {
  std::string_view name;
  std::string_view summary;
  Takes takes;
  bool gives_bool;
  std::function<Expr(const Expr& x, const Call& call)> element;
  std::vector<OpAttr> attrs = {};
  UnaryTraits traits = {};
};

Expr zero(const Expr& x) { return imm(x->dtype, int64_t{0}); }
Expr constant(const Expr& x, double value) { return imm(x->dtype, value); }
// Whether `constant(x, value)` is `value`, but for digits behind the point: few bits hold no 6, and
// unsigned integers nothing below 0.
bool holds(const Expr& x, double value) {
  if (!x->dtype.is_integer()) return true;
  const int bits = x->dtype.bits - (x->dtype.is_uint() ? 0 : 1);
  const double above = std::ldexp(1.0, bits);
  return value < above && value > (x->dtype.is_uint() ? -1.0 : -above - 1);
}
Expr exp(const Expr& x) { return float_call(IntrinsicId::kExp, {x}); }

// log(1 + exp(x)) without overflow.
Expr softplus(const Expr& x) {
  const Expr magnitude = float_call(IntrinsicId::kFabs, {x});
  return tenon::max(x, zero(x)) + float_call(IntrinsicId::kLog1p, {exp(zero(x) - magnitude)});
}

Expr clamp01(const Expr& x) {
  return tenon::max(zero(x), tenon::min(imm(x->dtype, int64_t{1}), x));
}

Expr sign(const Expr& x, const Call&) {
  const Expr one = imm(x->dtype, int64_t{1});
  if (x->dtype.is_uint()) return select(x > zero(x), one, zero(x));
  // Zeros and NaN are their own sign.
  return select(x > zero(x), one, select(x < zero(x), imm(x->dtype, int64_t{-1}), x));
}

// Those whose element is the intrinsic of the same name.
struct IntrinsicRow {
  std::string_view name, summary;
  Takes takes = Takes::kFloat;
  bool gives_bool = false;
  UnaryTraits traits = {};
};
constexpr IntrinsicRow kIntrinsics[] = {
    {"acos", "inverse cosine", Takes::kFloat, false, {.x = InputUse::kUnit}},
    {"acosh", "inverse hyperbolic cosine", Takes::kFloat, false, {.finite_at_zero = false}},
    {"asin", "inverse sine", Takes::kFloat, false, {.x = InputUse::kUnit}},
    {"asinh", "inverse hyperbolic sine"},
    {"atan", "inverse tangent"},
    {"atanh", "inverse hyperbolic tangent", Takes::kFloat, false, {.x = InputUse::kUnit}},
    {"ceil", "least integer not below x", Takes::kNumber},
    {"cos", "cosine"},
    {"cosh", "hyperbolic cosine"},
    {"erf", "error function"},
    {"exp", "e to the power x"},
    {"floor", "greatest integer not above x", Takes::kNumber},
    {"isfinite", "neither NaN nor infinite", Takes::kFloat, true},
    {"isnan", "not a number", Takes::kFloat, true},
    {"log",
     "natural logarithm",
     Takes::kFloat,
     false,
     {.finite_at_zero = false, .x = InputUse::kPositive}},
    {"log1p", "log(1 + x)", Takes::kFloat, false, {.x = InputUse::kPositive}},
    {"round", "nearest integer, ties to even", Takes::kNumber},
    {"sigmoid", "1 / (1 + exp(-x))"},
    {"sin", "sine"},
    {"sinh", "hyperbolic sine"},
    {"sqrt", "square root", Takes::kFloat, false, {.x = InputUse::kPositive}},
    {"tan", "tangent"},
    {"tanh", "hyperbolic tangent"},
    {"trunc", "x towards zero", Takes::kNumber},
};

// A rounding leaves an integer as it is.
Expr intrinsic(const Expr& x, const Call& call) {
  return x->dtype.is_float() ? float_call(find_intrinsic(call.op->name)->id, {x}) : x;
}

struct CurveAttrs {
  double alpha = 1.0;
  static auto table() {
    return std::tuple{attr<&CurveAttrs::alpha>("alpha", "factor of the curve")};
  }
};
struct SlopeAttrs {
  double alpha = 0.01;
  static auto table() { return std::tuple{attr<&SlopeAttrs::alpha>("alpha", "slope below zero")}; }
};
struct IsInfAttrs {
  bool detect_negative = true, detect_positive = true;
  static auto table() {
    return std::tuple{attr<&IsInfAttrs::detect_negative>("detect_negative", "-inf counts"),
                      attr<&IsInfAttrs::detect_positive>("detect_positive", "inf counts")};
  }
};
struct HardSigmoidAttrs {
  double alpha = 0.2, beta = 0.5;
  static auto table() {
    return std::tuple{attr<&HardSigmoidAttrs::alpha>("alpha", "factor of the curve"),
                      attr<&HardSigmoidAttrs::beta>("beta", "value at 0")};
  }
};
struct SeluAttrs {
  double alpha = 1.67326319217681884765625, gamma = 1.05070102214813232421875;
  static auto table() {
    return std::tuple{attr<&SeluAttrs::alpha>("alpha", "factor of the curve"),
                      attr<&SeluAttrs::gamma>("gamma", "factor of the result")};
  }
};
struct ShrinkAttrs {
  double lambd = 0.5, bias = 0.0;
  static auto table() {
    return std::tuple{attr<&ShrinkAttrs::lambd>("lambd", "half-width of the zero range"),
                      attr<&ShrinkAttrs::bias>("bias", "step at its ends")};
  }
};

// A row of an operator with attributes.
template <typename A>
UnaryRow row(std::string_view name, std::string_view summary, Takes takes,
             Expr (*element)(const Expr& x, const A& attrs), bool gives_bool = false) {
  const auto of_call = [element](const Expr& x, const Call& call) {
    return element(x, attrs_as<A>(call));
  };
  return {name, summary, takes, gives_bool, of_call, attrs_of<A>()};
}

std::vector<UnaryRow> rows() {
  return {
      {"abs", "absolute value", Takes::kNumber, false,
       [](const Expr& x, const Call&) {
         if (x->dtype.is_float()) return float_call(IntrinsicId::kFabs, {x});
         return x->dtype.is_uint() ? x : select(x < zero(x), zero(x) - x, x);
       }},
      {"bitwise_not", "complement of every bit", Takes::kInteger, false,
       [](const Expr& x, const Call&) { return tenon::call(IntrinsicId::kBitwiseNot, {x}); }},
      row<IsInfAttrs>(
          "isinf", "infinite", Takes::kFloat,
          [](const Expr& x, const IsInfAttrs& attrs) {
            const double inf = std::numeric_limits<double>::infinity();
            if (attrs.detect_positive)
              return attrs.detect_negative ? float_call(IntrinsicId::kIsinf, {x})
                                           : eq(x, constant(x, inf));
            return attrs.detect_negative ? eq(x, constant(x, -inf)) : boolean(false);
          },
          true),
      {"logical_not", "not", Takes::kBool, false,
       [](const Expr& x, const Call&) { return tenon::logical_not(x); }},
      {"negative",
       "-x",
       Takes::kNumber,
       false,
       [](const Expr& x, const Call&) {
         // Not 0 - x, which gives 0 for 0.
         return x->dtype.is_float() ? x * imm(x->dtype, int64_t{-1}) : zero(x) - x;
       },
       {},
       {.onnx = "Neg"}},
      {"reciprocal",
       "1 / x",
       Takes::kFloat,
       false,
       [](const Expr& x, const Call&) { return imm(x->dtype, int64_t{1}) / x; },
       {},
       {.finite_at_zero = false, .x = InputUse::kDivisor}},
      {"rsqrt",
       "1 / sqrt(x)",
       Takes::kFloat,
       false,
       [](const Expr& x, const Call&) {
         return imm(x->dtype, int64_t{1}) / float_call(IntrinsicId::kSqrt, {x});
       },
       {},
       {.finite_at_zero = false, .x = InputUse::kPositive}},
      {"sign", "-1, 0 or 1", Takes::kNumber, false, sign},
      {"square", "x * x", Takes::kNumber, false, [](const Expr& x, const Call&) { return x * x; }},

      row<CurveAttrs>("nn.celu", "max(0, x) + min(0, alpha * (exp(x / alpha) - 1))", Takes::kFloat,
                      [](const Expr& x, const CurveAttrs& attrs) {
                        const Expr a = constant(x, attrs.alpha);
                        const Expr below = a * (exp(x / a) - constant(x, 1));
                        return tenon::max(zero(x), x) + tenon::min(zero(x), below);
                      }),
      row<CurveAttrs>("nn.elu", "x above 0, alpha * (exp(x) - 1) below", Takes::kFloat,
                      [](const Expr& x, const CurveAttrs& attrs) {
                        const Expr below = constant(x, attrs.alpha) * (exp(x) - constant(x, 1));
                        return select(x > zero(x), x, below);
                      }),
      {"nn.gelu", "x * (1 + erf(x / sqrt(2))) / 2", Takes::kFloat, false,
       [](const Expr& x, const Call&) {
         const Expr scaled = float_call(IntrinsicId::kErf, {x * constant(x, std::sqrt(0.5))});
         return x * constant(x, 0.5) * (constant(x, 1) + scaled);
       }},
      {"nn.gelu_tanh", "gelu through tanh", Takes::kFloat, false,
       [](const Expr& x, const Call&) {
         const Expr cubic = x + constant(x, 0.044715) * x * x * x;
         const Expr t = float_call(IntrinsicId::kTanh, {constant(x, std::sqrt(2 / M_PI)) * cubic});
         return x * constant(x, 0.5) * (constant(x, 1) + t);
       }},
      row<HardSigmoidAttrs>("nn.hardsigmoid", "alpha * x + beta, held in 0 to 1", Takes::kFloat,
                            [](const Expr& x, const HardSigmoidAttrs& attrs) {
                              return clamp01(constant(x, attrs.alpha) * x +
                                             constant(x, attrs.beta));
                            }),
      {"nn.hardswish", "x * hardsigmoid(x) with slope 1 / 6", Takes::kFloat, false,
       [](const Expr& x, const Call&) {
         return x * clamp01(x * constant(x, 1.0 / 6) + constant(x, 0.5));
       }},
      row<SlopeAttrs>("nn.leakyrelu", "x above 0, alpha * x below", Takes::kFloat,
                      [](const Expr& x, const SlopeAttrs& attrs) {
                        return select(x > zero(x), x, x * constant(x, attrs.alpha));
                      }),
      {"nn.mish", "x * tanh(softplus(x))", Takes::kFloat, false,
       [](const Expr& x, const Call&) {
         return x * float_call(IntrinsicId::kTanh, {softplus(x)});
       }},
      {"nn.relu", "max(x, 0)", Takes::kNumber, false,
       [](const Expr& x, const Call&) { return tenon::max(x, zero(x)); }},
      {"nn.relu6", "x held in 0 to 6", Takes::kNumber, false,
       [](const Expr& x, const Call&) {
         const Expr positive = tenon::max(x, zero(x));
         return holds(x, 6) ? tenon::min(positive, constant(x, 6)) : positive;
       }},
      row<SeluAttrs>("nn.selu", "gamma * (x above 0, alpha * (exp(x) - 1) below)", Takes::kFloat,
                     [](const Expr& x, const SeluAttrs& attrs) {
                       const Expr below = constant(x, attrs.alpha) * (exp(x) - constant(x, 1));
                       return constant(x, attrs.gamma) * select(x > zero(x), x, below);
                     }),
      row<ShrinkAttrs>("nn.shrink", "x + bias below -lambd, x - bias above lambd, 0 between",
                       Takes::kNumber,
                       [](const Expr& x, const ShrinkAttrs& attrs) {
                         const Expr bias = constant(x, attrs.bias);
                         Expr out = zero(x);  // nothing is beyond a bound that the dtype lacks
                         if (holds(x, attrs.lambd))
                           out = select(x > constant(x, attrs.lambd), x - bias, out);
                         if (holds(x, -attrs.lambd))
                           out = select(x < constant(x, -attrs.lambd), x + bias, out);
                         return out;
                       }),
      {"nn.silu", "x * sigmoid(x)", Takes::kFloat, false,
       [](const Expr& x, const Call&) { return x * float_call(IntrinsicId::kSigmoid, {x}); }},
      {"nn.softplus", "log(1 + exp(x))", Takes::kFloat, false,
       [](const Expr& x, const Call&) { return softplus(x); }},
      {"nn.softsign", "x / (1 + abs(x))", Takes::kFloat, false,
       [](const Expr& x, const Call&) {
         return x / (constant(x, 1) + float_call(IntrinsicId::kFabs, {x}));
       }},
      row<CurveAttrs>("nn.swish", "x * sigmoid(alpha * x)", Takes::kFloat,
                      [](const Expr& x, const CurveAttrs& attrs) {
                        return x *
                               float_call(IntrinsicId::kSigmoid, {constant(x, attrs.alpha) * x});
                      }),
      row<CurveAttrs>("nn.thresholdedrelu", "x above alpha, 0 elsewhere", Takes::kNumber,
                      [](const Expr& x, const CurveAttrs& attrs) {
                        return select(x > constant(x, attrs.alpha), x, zero(x));
                      }),
  };
}

OpDef unary(const UnaryRow& row) {
  const Takes takes = row.takes;
  const bool gives_bool = row.gives_bool;
  const auto element = row.element;
  OpDef op;
  op.name = row.name;
  op.summary = row.summary;
  op.inputs = {OpInput{"x", "any shape"}.used_as(row.traits.x)};
  op.attrs = row.attrs;
  const bool gives_numbers = !gives_bool && (takes == Takes::kFloat || takes == Takes::kNumber);
  if (gives_numbers && row.traits.finite_at_zero) op.layout = LayoutRule::kElementwise;
  op.onnx.name = row.traits.onnx;
  op.infer_type = [takes, gives_bool](const Call& call) -> Type {
    const Ref<TensorType> x = tensor_arg(call, 0);
    if (!accepts(takes, x->dtype))
      throw CompileError(kDTypeMismatch, call.origin,
                         "argument `x` of `{}` has dtype {}; expected {}", call.op->name,
                         x->dtype.str(), name_of(takes));
    return same_shape(call, 0, gives_bool ? kBool : x->dtype);
  };
  op.lower = [element](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0);
    return kernel.emit_compute([&](const Indices& i) { return element(x(i), call); });
  };
  op.fusion = FusionKind::kElementwise;
  return op;
}

// ---- clip, astype -------------------------------------------------------------------------------

// A bound as the tensor's dtype holds it: of an integer type the nearest of its values.
Expr bound(const Expr& value, DType dtype) {
  if (!dtype.is_integer()) return tenon::cast(dtype, value);
  if (const auto number = as_int(value)) {
    if (*number < 0 && dtype.is_uint()) return tir::least_value(dtype);
    const bool holds_all = dtype.is_uint() && dtype.bits == 64;  // of those that int64 holds
    if (*number < *as_int(tir::least_value(dtype))) return tir::least_value(dtype);
    if (!holds_all && *number > *as_int(tir::greatest_value(dtype)))
      return tir::greatest_value(dtype);
    return imm(dtype, *number);
  }
  if (const auto number = as_float(value)) {
    const auto least = static_cast<double>(*as_int(tir::least_value(dtype)));
    if (*number <= least) return tir::least_value(dtype);
    const double most = dtype.is_uint() && dtype.bits == 64
                            ? 18446744073709551615.0
                            : static_cast<double>(*as_int(tir::greatest_value(dtype)));
    if (*number >= most) return tir::greatest_value(dtype);
    return imm(dtype, static_cast<int64_t>(*number));
  }
  return tenon::cast(dtype, value);
}

OpDef clip() {
  OpDef op;
  op.name = "clip";
  op.summary = "Holds every element between two scalars; where min > max the result is max.";
  op.inputs = {{"x", "any shape"}, {"min", "a scalar"}, {"max", "a scalar"}};
  op.infer_type = [](const Call& call) -> Type {
    // A parameter that is a number may be any, as in a pattern.
    for (const size_t i : {size_t{1}, size_t{2}})
      if (!call.args.at(i) || !type_of(call.args[i]).as<PrimType>()) (void)scalar_arg(call, i);
    return tensor_arg(call, 0);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0);
    const Expr least = bound(scalar_arg(call, 1), x.dtype);
    const Expr most = bound(scalar_arg(call, 2), x.dtype);
    return kernel.emit_compute(
        [&](const Indices& i) { return tenon::min(tenon::max(x(i), least), most); });
  };
  op.fusion = FusionKind::kElementwise;
  op.layout = LayoutRule::kElementwise;
  op.source = "ONNX Clip-13";
  return op;
}

struct AsTypeAttrs {
  DType dtype;
  static auto table() {
    return std::tuple{required<&AsTypeAttrs::dtype>("dtype", "of the result")};
  }
};

OpDef astype() {
  OpDef op;
  op.name = "astype";
  op.summary =
      "Converts to another dtype: floats to integers towards zero, anything to bool by `!= 0`.";
  op.inputs = {OpInput{"x", "any shape"}.as_moved()};
  op.attrs = attrs_of<AsTypeAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    return same_shape(call, 0, attrs_as<AsTypeAttrs>(call).dtype);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0);
    const DType dtype = kernel.dtype();
    return kernel.emit_compute([&](const Indices& i) {
      const Expr value = x(i);
      if (dtype.is_bool() && !value->dtype.is_bool()) return ne(value, zero(value));
      return tenon::cast(dtype, value);
    });
  };
  op.fusion = FusionKind::kElementwise;
  op.layout = LayoutRule::kElementwise;
  op.onnx.name = "Cast";
  op.source = "ONNX Cast-13";
  return op;
}

OpDef bitcast() {
  OpDef op;
  op.name = "bitcast";
  op.summary = "The bits of every element as those of another dtype of as many bits.";
  op.inputs = {OpInput{"x", "any shape"}.as_moved()};
  op.attrs = attrs_of<AsTypeAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    const DType from = tensor_arg(call, 0)->dtype, to = attrs_as<AsTypeAttrs>(call).dtype;
    if (!from.is_void() && from.bits != to.bits)
      throw CompileError(kDTypeMismatch, call.origin,
                         "`bitcast` of {}, which has {} bits, to {}, which has {}", from.str(),
                         int{from.bits}, to.str(), int{to.bits});
    return same_shape(call, 0, to);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0);
    const DType to = kernel.dtype();
    return kernel.emit_compute([&](const Indices& i) {
      // Integers of as many bits wrap into one another, and hold a bool as well.
      const auto bits_of = [](DType t) { return DType{DType::Code::kUInt, t.bits}; };
      Expr value = x(i);
      if (value->dtype == to) return value;
      if (value->dtype.is_bool()) value = tenon::cast(kUInt8, value);
      if (to.is_bool())
        return ne(tenon::call(IntrinsicId::kReinterpret, {value}, kUInt8), imm(kUInt8, int64_t{0}));
      if (value->dtype.is_integer() && to.is_integer()) return tenon::cast(to, value);
      if (value->dtype.is_float())
        value = tenon::call(IntrinsicId::kReinterpret, {value}, bits_of(value->dtype));
      else
        value = tenon::cast(bits_of(value->dtype), value);
      return to.is_float() ? tenon::call(IntrinsicId::kReinterpret, {value}, to)
                           : tenon::cast(to, value);
    });
  };
  op.fusion = FusionKind::kElementwise;
  op.onnx.name = "BitCast";
  op.source = "ONNX BitCast-26";
  return op;
}

}  // namespace

std::vector<OpDef> unary_ops() {
  std::vector<OpDef> ops;
  for (const IntrinsicRow& row : kIntrinsics)
    ops.push_back(
        unary({row.name, row.summary, row.takes, row.gives_bool, intrinsic, {}, row.traits}));
  for (const UnaryRow& row : rows()) ops.push_back(unary(row));
  ops.push_back(clip());
  ops.push_back(astype());
  ops.push_back(bitcast());
  return ops;
}

}  // namespace tenon::graph
