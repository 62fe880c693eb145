// SPDX-License-Identifier: Apache-2.0
// Operators of two tensors with broadcasting, element by element: rows of a table; `where`,
// `prelu`.
#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

struct BinaryTraits {
  bool commutes = false;
  bool finite_at_zero = false;  // where both operands are 0
  InputUse lhs = InputUse::kValue, rhs = InputUse::kValue;
  std::string_view onnx = {};
};

struct BinaryRow {
  std::string_view name;
  std::string_view summary;
  Takes takes;
  bool gives_bool;
  Expr (*element)(const Expr& a, const Expr& b);
  BinaryTraits traits = {};
};

Expr zero(const Expr& x) { return imm(x->dtype, int64_t{0}); }

// The remainder that has the divisor's sign, as Python's `%`.
Expr floor_mod(const Expr& a, const Expr& b) {
  if (!a->dtype.is_float()) return floormod(a, b);
  const Expr rest = float_call(IntrinsicId::kFmod, {a, b});
  const Expr signs_differ = ne(rest < zero(rest), b < zero(b));
  return select(logical_and(ne(rest, zero(rest)), signs_differ), rest + b, rest);
}
Expr mod(const Expr& a, const Expr& b) {
  return a->dtype.is_float() ? float_call(IntrinsicId::kFmod, {a, b})
                             : binary(BinaryOp::kMod, a, b);
}
Expr power(const Expr& a, const Expr& b) {
  const DType dtype = a->dtype;
  if (const auto exponent = as_float(b); exponent && dtype.is_float()) {
    // The exponents that networks use, exactly as repeated multiplication rounds.
    if (*exponent == 1) return a;
    if (*exponent == 2) return a * a;
    if (*exponent == 3) return a * a * a;
  }
  return dtype.is_float() ? float_call(IntrinsicId::kPow, {a, b})
                          : tenon::call(IntrinsicId::kPow, {a, b});
}
Expr floor_divide(const Expr& a, const Expr& b) {
  return a->dtype.is_float() ? float_call(IntrinsicId::kFloor, {a / b}) : floordiv(a, b);
}
Expr log_add_exp(const Expr& a, const Expr& b) {
  const Expr most = tenon::max(a, b), least = tenon::min(a, b);
  // The difference of two infinities of one sign is no number.
  const Expr difference = select(eq(least, most), zero(a), least - most);
  return most + float_call(IntrinsicId::kLog1p, {float_call(IntrinsicId::kExp, {difference})});
}
template <BinaryOp kOp>
Expr arithmetic(const Expr& a, const Expr& b) {
  return binary(kOp, a, b);
}
Expr minimum(const Expr& a, const Expr& b) {
  return a->dtype.is_bool() ? logical_and(a, b) : tenon::min(a, b);
}
Expr maximum(const Expr& a, const Expr& b) {
  return a->dtype.is_bool() ? logical_or(a, b) : tenon::max(a, b);
}
// `T.shift_left` takes bits that there are; a shift by anything else gives 0, or the sign.
Expr is_bit_of(const Expr& a, const Expr& b) {
  // int2 has no number that is too large.
  const bool all_below = b->dtype == kInt2 && a->dtype.bits == 2;
  const Expr below = all_below ? imm(kBool, int64_t{1}) : b < imm(b->dtype, int64_t{a->dtype.bits});
  return b->dtype.is_uint() ? below : logical_and(b >= zero(b), below);
}
Expr shifted(IntrinsicId shift, const Expr& a, const Expr& b) {
  const Expr last = imm(b->dtype, int64_t{a->dtype.bits - 1});
  if (const auto count = as_int(b))
    return *count >= 0 && *count < a->dtype.bits ? tenon::call(shift, {a, b}) : zero(a);
  const Expr bit = tenon::call(IntrinsicId::kBitwiseAnd, {b, last});
  return select(is_bit_of(a, b), tenon::call(shift, {a, bit}), zero(a));
}
Expr left_shift(const Expr& a, const Expr& b) { return shifted(IntrinsicId::kShiftLeft, a, b); }
Expr right_shift(const Expr& a, const Expr& b) {
  if (!a->dtype.is_int()) return shifted(IntrinsicId::kShiftRight, a, b);
  const Expr last = imm(b->dtype, int64_t{a->dtype.bits - 1});
  return tenon::call(IntrinsicId::kShiftRight, {a, select(is_bit_of(a, b), b, last)});
}
Expr bitwise_and(const Expr& a, const Expr& b) {
  return a->dtype.is_bool() ? logical_and(a, b) : tenon::call(IntrinsicId::kBitwiseAnd, {a, b});
}
Expr bitwise_or(const Expr& a, const Expr& b) {
  return a->dtype.is_bool() ? logical_or(a, b) : tenon::call(IntrinsicId::kBitwiseOr, {a, b});
}
Expr bitwise_xor(const Expr& a, const Expr& b) {
  return a->dtype.is_bool() ? ne(a, b) : tenon::call(IntrinsicId::kBitwiseXor, {a, b});
}

constexpr BinaryRow kRows[] = {
    {"add",
     "a + b",
     Takes::kNumber,
     false,
     arithmetic<BinaryOp::kAdd>,
     {.commutes = true, .finite_at_zero = true}},
    {"subtract",
     "a - b",
     Takes::kNumber,
     false,
     arithmetic<BinaryOp::kSub>,
     {.finite_at_zero = true, .onnx = "Sub"}},
    {"multiply",
     "a * b",
     Takes::kNumber,
     false,
     arithmetic<BinaryOp::kMul>,
     {.commutes = true, .finite_at_zero = true, .onnx = "Mul"}},
    {"divide",
     "a / b; of integers towards zero",
     Takes::kNumber,
     false,
     arithmetic<BinaryOp::kDiv>,
     {.rhs = InputUse::kDivisor, .onnx = "Div"}},
    {"floor_divide",
     "a / b towards minus infinity",
     Takes::kNumber,
     false,
     floor_divide,
     {.rhs = InputUse::kDivisor}},
    {"mod",
     "remainder with the dividend's sign",
     Takes::kNumber,
     false,
     mod,
     {.rhs = InputUse::kDivisor}},
    {"floor_mod",
     "remainder with the divisor's sign",
     Takes::kNumber,
     false,
     floor_mod,
     {.rhs = InputUse::kDivisor}},
    {"power",
     "a to the power b; of integers modulo 2 to their bits, a negative power towards zero",
     Takes::kNumber,
     false,
     power,
     {.lhs = InputUse::kPositive, .onnx = "Pow"}},
    {"minimum",
     "the lesser; NaN where either is",
     Takes::kAny,
     false,
     minimum,
     {.commutes = true, .finite_at_zero = true}},
    {"maximum",
     "the greater; NaN where either is",
     Takes::kAny,
     false,
     maximum,
     {.commutes = true, .finite_at_zero = true}},
    {"atan2",
     "angle of (b, a)",
     Takes::kFloat,
     false,
     [](const Expr& a, const Expr& b) { return float_call(IntrinsicId::kAtan2, {a, b}); },
     {.finite_at_zero = true}},
    {"log_add_exp",
     "log(exp(a) + exp(b))",
     Takes::kFloat,
     false,
     log_add_exp,
     {.commutes = true, .finite_at_zero = true}},
    {"logical_and",
     "and",
     Takes::kBool,
     false,
     [](const Expr& a, const Expr& b) { return logical_and(a, b); },
     {.commutes = true}},
    {"logical_or",
     "or",
     Takes::kBool,
     false,
     [](const Expr& a, const Expr& b) { return logical_or(a, b); },
     {.commutes = true}},
    {"logical_xor",
     "either, not both",
     Takes::kBool,
     false,
     [](const Expr& a, const Expr& b) { return ne(a, b); },
     {.commutes = true}},
    {"bitwise_and", "and of every bit", Takes::kBits, false, bitwise_and, {.commutes = true}},
    {"bitwise_or", "or of every bit", Takes::kBits, false, bitwise_or, {.commutes = true}},
    {"bitwise_xor",
     "exclusive or of every bit",
     Takes::kBits,
     false,
     bitwise_xor,
     {.commutes = true}},
    {"left_shift",
     "a << b; 0 where b is none of a's bits",
     Takes::kBits,
     false,
     left_shift,
     {.rhs = InputUse::kShift}},
    {"right_shift",
     "a >> b; arithmetic for signed a",
     Takes::kBits,
     false,
     right_shift,
     {.rhs = InputUse::kShift}},
    {"equal", "a == b", Takes::kAny, true, arithmetic<BinaryOp::kEQ>, {.commutes = true}},
    {"not_equal", "a != b", Takes::kAny, true, arithmetic<BinaryOp::kNE>, {.commutes = true}},
    {"less", "a < b", Takes::kNumber, true, arithmetic<BinaryOp::kLT>},
    {"less_equal", "a <= b", Takes::kNumber, true, arithmetic<BinaryOp::kLE>},
    {"greater", "a > b", Takes::kNumber, true, arithmetic<BinaryOp::kGT>},
    {"greater_equal", "a >= b", Takes::kNumber, true, arithmetic<BinaryOp::kGE>},
};

// The common dtype of arguments a and b. \throws CompileError where they differ.
DType common_dtype(const Call& call, size_t a, size_t b) {
  const DType x = tensor_arg(call, a)->dtype, y = tensor_arg(call, b)->dtype;
  if (x.is_void()) return y;
  if (!y.is_void() && x != y)
    throw CompileError(kDTypeMismatch, call.origin, "operands of `{}` have dtypes {} and {}",
                       call.op->name, x.str(), y.str())
        .note(call.args[a]->origin, "`{}` is {}", input_name(call, a), str(tensor_arg(call, a)))
        .note(call.args[b]->origin, "`{}` is {}", input_name(call, b), str(tensor_arg(call, b)));
  return x;
}

// Broadcasts the shapes of the tensors at `args`.
Type broadcast_type(const Call& call, const std::vector<size_t>& args, DType dtype) {
  std::optional<std::vector<Expr>> shape = std::vector<Expr>{};
  int64_t ndim = 0;
  for (const size_t i : args) {
    const Ref<TensorType> type = tensor_arg(call, i);
    ndim = ndim < 0 || type->ndim < 0 ? -1 : std::max(ndim, type->ndim);
    if (shape && type->shape) {
      shape = broadcast_shapes(*shape, *type->shape, call.op->name, call.origin);
    } else {
      shape = std::nullopt;
    }
  }
  return tensor_of(shape, dtype, ndim);
}

OpDef binary_op(const BinaryRow& row) {
  const Takes takes = row.takes;
  const bool gives_bool = row.gives_bool;
  const auto element = row.element;
  OpDef op;
  op.name = row.name;
  op.summary = row.summary;
  op.inputs = {OpInput{"lhs", "any shape"}.used_as(row.traits.lhs),
               OpInput{"rhs", "broadcast against lhs"}.used_as(row.traits.rhs)};
  op.traits.commutative = row.traits.commutes;
  op.traits.broadcasts = true;
  op.layout = row.traits.finite_at_zero ? LayoutRule::kElementwise : LayoutRule::kPlanar;
  op.onnx.name = row.traits.onnx;
  op.infer_type = [takes, gives_bool](const Call& call) -> Type {
    const DType dtype = common_dtype(call, 0, 1);
    if (!accepts(takes, dtype))
      throw CompileError(kDTypeMismatch, call.origin, "operands of `{}` have dtype {}; expected {}",
                         call.op->name, dtype.str(), name_of(takes));
    return broadcast_type(call, {0, 1}, gives_bool ? kBool : dtype);
  };
  op.lower = [element](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand lhs = kernel.arg(0), rhs = kernel.arg(1);
    return kernel.emit_compute(
        [&](const Indices& i) { return element(lhs.broadcast(i), rhs.broadcast(i)); });
  };
  op.fusion = FusionKind::kBroadcast;
  return op;
}

OpDef where() {
  OpDef op;
  op.name = "where";
  op.summary = "Elements of x1 where the condition holds, of x2 elsewhere, with broadcasting.";
  op.inputs = {{"condition", "bool"},
               OpInput{"x1", "any shape"}.as_moved(),
               OpInput{"x2", "any shape"}.as_moved()};
  op.infer_type = [](const Call& call) -> Type {
    check_dtype(call, 0, kBool);
    return broadcast_type(call, {0, 1, 2}, common_dtype(call, 1, 2));
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand condition = kernel.arg(0), a = kernel.arg(1), b = kernel.arg(2);
    return kernel.emit_compute([&](const Indices& i) {
      return select(condition.broadcast(i), a.broadcast(i), b.broadcast(i));
    });
  };
  op.traits.broadcasts = true;
  op.fusion = FusionKind::kBroadcast;
  op.source = "ONNX Where-16";
  return op;
}

struct PReluAttrs {
  std::optional<int64_t> axis = 1;
  static auto table() {
    return std::tuple{attr<&PReluAttrs::axis>("axis", "of the slope; None: NumPy's broadcasting")};
  }
};

OpDef prelu() {
  OpDef op;
  op.name = "nn.prelu";
  op.summary =
      "x above 0, slope * x below; the slope runs over `axis`, or with axis None is "
      "broadcast to x.";
  op.inputs = {{"data", "any shape"}, {"alpha", "(data.shape[axis],), or any shape"}};
  op.attrs = attrs_of<PReluAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    const Ref<TensorType> x = tensor_arg(call, 0), slope = tensor_arg(call, 1);
    (void)common_dtype(call, 0, 1);
    const auto attrs = attrs_as<PReluAttrs>(call);
    if (attrs.axis) {
      check_rank(call, 1, 1);
      if (x->shape && slope->shape) {
        const size_t axis = axis_of(call, *attrs.axis, x->ndim);
        if (!is_int(slope->dim(0), 1))
          check_dim(call, 1, slope->dim(0), (*x->shape)[axis], "dimension 0");
      }
    } else if (x->shape && slope->shape) {
      const auto shape = broadcast_shapes(*x->shape, *slope->shape, call.op->name, call.origin);
      if (shape && shapes_agree(*shape, *x->shape) == DimsAgree::kNo)
        throw CompileError(kShapeMismatch, call.origin,
                           "`alpha` of `nn.prelu` is {}; expected to broadcast to {}", str(slope),
                           str(x));
    }
    return x;
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0), slope = kernel.arg(1);
    const auto attrs = attrs_as<PReluAttrs>(call);
    return kernel.emit_compute([&](const Indices& i) {
      const Expr a =
          attrs.axis
              ? slope.broadcast({i[axis_of(call, *attrs.axis, static_cast<int64_t>(i.size()))]})
              : slope.broadcast(i);
      return select(x(i) > zero(x(i)), x(i), x(i) * a);
    });
  };
  op.fusion = FusionKind::kBroadcast;
  op.source = "ONNX PRelu-16";
  return op;
}

}  // namespace

std::vector<OpDef> binary_ops() {
  std::vector<OpDef> ops;
  for (const BinaryRow& row : kRows) ops.push_back(binary_op(row));
  ops.push_back(where());
  ops.push_back(prelu());
  return ops;
}

}  // namespace tenon::graph
