// SPDX-License-Identifier: Apache-2.0
// Prints scalar expressions, indices and regions as TVMScript.
#include <cmath>

#include "tenon/script/printer_impl.h"
#include "tenon/support/limit_codes.h"

namespace tenon::script {

std::string Printer::integer(DType dtype, int64_t value, DType expected) {
  const std::string number =
      dtype.is_uint() ? std::to_string(static_cast<uint64_t>(value)) : std::to_string(value);
  if (dtype.is_bool()) return value ? "T.bool(True)" : "T.bool(False)";
  return dtype == expected ? number : fmt::format("T.{}({})", dtype.str(), number);
}

std::string Printer::expr_as(const Expr& value, DType expected, int level) {
  if (const auto* constant = value.as<IntImm>())
    return integer(constant->dtype, constant->value, expected);
  return expr(value, level);
}

std::string Printer::exprs(const std::vector<Expr>& exprs) {
  std::string text;
  for (size_t i = 0; i < exprs.size(); ++i) text += (i ? ", " : "") + expr(exprs[i]);
  return text;
}

std::string Printer::tuple(const std::vector<Expr>& exprs) {
  return "(" + this->exprs(exprs) + (exprs.size() == 1 ? ",)" : ")");
}

static std::pair<std::string_view, int> sign_of(const Binary& op) {
  switch (op.op) {
    case BinaryOp::kAdd: return {"+", kSum};
    case BinaryOp::kSub: return {"-", kSum};
    case BinaryOp::kMul: return {"*", kProduct};
    case BinaryOp::kDiv: return {op.lhs->dtype.is_float() ? "/" : "", kProduct};
    case BinaryOp::kFloorDiv: return {"//", kProduct};
    case BinaryOp::kFloorMod: return {"%", kProduct};
    case BinaryOp::kEQ: return {"==", kCompare};
    case BinaryOp::kNE: return {"!=", kCompare};
    case BinaryOp::kLT: return {"<", kCompare};
    case BinaryOp::kLE: return {"<=", kCompare};
    case BinaryOp::kGT: return {">", kCompare};
    case BinaryOp::kGE: return {">=", kCompare};
    case BinaryOp::kAnd: return {op.lhs->dtype.is_scalar() ? "and" : "", kAnd};
    case BinaryOp::kOr: return {op.lhs->dtype.is_scalar() ? "or" : "", kOr};
    case BinaryOp::kMod:
    case BinaryOp::kMin:
    case BinaryOp::kMax: break;
  }
  return {"", kAtom};
}

std::string Printer::binary(const Binary& op, int level) {
  const auto is_constant = [](const Expr& e) { return e.as<IntImm>() || e.as<FloatImm>(); };
  const auto [sign, strength] = sign_of(op);
  // A bare number beside a narrower integer would be an int32.
  const auto expected = [](const Expr& other) {
    return other->dtype.is_integer() && other->dtype.bits < 32 ? kVoid : other->dtype;
  };
  // Two constants side by side would be folded by Python before we see them.
  const bool folds = is_constant(op.lhs) && is_constant(op.rhs);
  if (sign.empty() || folds) {
    std::string_view name = tenon::name_of(op.op);
    if (op.op == BinaryOp::kMin && !folds) name = "min";
    if (op.op == BinaryOp::kMax && !folds) name = "max";
    if (folds) return fmt::format("T.{}({}, {})", name, expr(op.lhs), expr(op.rhs));
    return fmt::format("T.{}({}, {})", name, expr_as(op.lhs, expected(op.rhs)),
                       expr_as(op.rhs, expected(op.lhs)));
  }
  const int left = strength == kCompare ? strength + 1 : strength;  // comparisons would chain
  std::string text = fmt::format("{} {} {}", expr_as(op.lhs, expected(op.rhs), left), sign,
                                 expr_as(op.rhs, expected(op.lhs), strength + 1));
  return strength < level ? "(" + text + ")" : text;
}

std::string Printer::call_arg(const NodePtr& arg) {
  if (const auto scalar = tenon::cast<ExprNode>(arg)) return expr(scalar);
  if (const auto region = tenon::cast<tir::BufferRegion>(arg))
    return "T.region(" + this->region(*region, false) + ")";
  return name_of(arg);
}

std::string Printer::call_args(const GlobalVar& callee, const std::vector<NodePtr>& args) {
  std::string text = function_ref(callee.name);
  for (const NodePtr& arg : args) {
    const auto region = tenon::cast<tir::BufferRegion>(arg);
    text += ", " + (region ? this->region(*region, true) : call_arg(arg));
  }
  return text;
}

std::string Printer::call(const Call& call) {
  if (!call.op) return "T.call_tir(" + call_args(*call.callee, call.args) + ")";
  std::vector<std::string> args;
  if (call.op->result == Intrinsic::Result::kGiven) {
    // The packed forms give an int32 unless they say otherwise; the others begin with their dtype.
    const bool packed =
        call.op->id == IntrinsicId::kCallPacked || call.op->id == IntrinsicId::kCallCpacked;
    if (!packed) args.push_back(quoted(call.dtype.str()));
    for (const NodePtr& arg : call.args) args.push_back(call_arg(arg));
    if (packed && call.dtype != kInt32) args.push_back("dtype=" + quoted(call.dtype.str()));
  } else {
    for (const NodePtr& arg : call.args) args.push_back(call_arg(arg));
  }
  std::string text = "T." + std::string(call.op->name);
  text += "(";
  for (size_t i = 0; i < args.size(); ++i) text += (i ? ", " : "") + args[i];
  return text + ")";
}

// Values may share their parts, and text cannot: n squared thirty times has 2^30 factors.
static constexpr int64_t kMostValues = 20'000'000;

std::string Printer::expr(const Expr& value, int level) {
  if (++printed_ > kMostValues)
    throw CompileError(kTooMuchWork, value->origin,
                       "the module's text has more than {} values, since its expressions share "
                       "their parts and text repeats them",
                       kMostValues);
  switch (kind_of(value)) {
    case ExprKind::kIntImm: {
      const auto& imm = value.to<IntImm>();
      return integer(imm.dtype, imm.value, default_int_);
    }
    case ExprKind::kFloatImm: {
      const auto& imm = value.to<FloatImm>();
      const std::string text = float_text(imm.dtype, imm.value);
      const bool finite = std::isfinite(imm.value);
      return fmt::format("T.{}({})", imm.dtype.str(), finite ? text : quoted(text));
    }
    case ExprKind::kStringImm: return quoted(value.to<StringImm>().value);
    case ExprKind::kVar: return name_of(value);
    case ExprKind::kGlobalVar: return function_ref(value.to<GlobalVar>().name);
    case ExprKind::kBinary: return binary(value.to<Binary>(), level);
    case ExprKind::kNot: {
      const auto& op = value.to<Not>();
      if (op.dtype.is_vector()) return "T.Not(" + expr(op.value) + ")";
      const std::string text = "not " + expr(op.value, kNot);
      return level > kNot ? "(" + text + ")" : text;
    }
    case ExprKind::kCast: {
      const auto& op = value.to<Cast>();
      return fmt::format("T.Cast({}, {})", quoted(op.dtype.str()), expr(op.value));
    }
    case ExprKind::kSelect: {
      const auto& op = value.to<Select>();
      return fmt::format("T.Select({}, {}, {})", expr(op.condition), expr(op.true_value),
                         expr(op.false_value));
    }
    case ExprKind::kRamp: {
      const auto& op = value.to<Ramp>();
      return fmt::format("T.Ramp({}, {}, {})", expr(op.base), expr(op.stride), op.lanes);
    }
    case ExprKind::kBroadcast: {
      const auto& op = value.to<Broadcast>();
      return fmt::format("T.Broadcast({}, {})", expr(op.value), op.lanes);
    }
    case ExprKind::kShuffle: {
      const auto& op = value.to<Shuffle>();
      std::string lanes;
      for (const int64_t lane : op.lanes)
        lanes += (lanes.empty() ? "" : ", ") + std::to_string(lane);
      return fmt::format("T.Shuffle([{}], [{}])", exprs(op.vectors), lanes);
    }
    case ExprKind::kLet: {
      const auto& op = value.to<Let>();
      std::string bound = expr(op.value);
      declare_symbolic(op.var);
      return fmt::format("T.Let({}, where={{{}: {}}})", expr(op.body), name_of(op.var), bound);
    }
    case ExprKind::kCall: return call(value.to<Call>());
    case ExprKind::kBufferLoad: {
      const auto& load = value.to<tir::BufferLoad>();
      return element(*load.buffer, load.indices);
    }
  }
  unreachable("an expression of no known kind");
}

std::string Printer::index(const Expr& index, DType expected) {
  // `base:base + lanes` is a vector of consecutive elements.
  if (const auto* ramp = index.as<Ramp>(); ramp && is_int(ramp->stride, 1)) {
    if (!ramp->base.as<IntImm>() || ramp->base->dtype == expected)
      return range({ramp->base, imm(ramp->base->dtype, ramp->lanes)}, expected, false);
  }
  return expr_as(index, expected);
}

static DType dim_dtype(const tir::Buffer& buffer, size_t i) {
  return i < buffer.shape.size() ? buffer.shape[i]->dtype : kInt32;
}

std::string Printer::element(const tir::Buffer& buffer, const std::vector<Expr>& indices) {
  std::string text = name_of(ref_to(&buffer)) + "[";
  for (size_t i = 0; i < indices.size(); ++i)
    text += (i ? ", " : "") + index(indices[i], dim_dtype(buffer, i));
  return text + (indices.empty() ? "()]" : "]");
}

std::string Printer::range(const tir::Range& range, DType expected, bool point) {
  const auto min = as_int(range.min), extent = as_int(range.extent);
  if (point && extent == 1 && range.min->dtype == range.extent->dtype)
    return expr_as(range.min, expected);
  const std::string begin = expr_as(range.min, expected);
  if (min == 0 && range.extent->dtype == range.min->dtype)
    return begin + ":" + expr_as(range.extent, expected);
  if (min && extent && range.min->dtype == range.extent->dtype)
    return begin + ":" + expr_as(imm(range.min->dtype, *min + *extent), expected);
  if (range.min->dtype != range.extent->dtype) {  // only in modules that are not well formed
    return fmt::format("{}:{} + {}", begin, expr(range.min, kSum), expr(range.extent, kProduct));
  }
  return begin + ":" + expr(make<Binary>(BinaryOp::kAdd, range.min, range.extent));
}

std::string Printer::region(const tir::BufferRegion& region, bool is_argument) {
  const tir::Buffer& buffer = *region.buffer;
  const std::string name = name_of(region.buffer);
  if (is_argument) {
    bool whole = true;
    for (size_t i = 0; i < region.region.size() && whole; ++i)
      whole = !region.drops(i) && is_int(region.region[i].min, 0) &&
              region.region[i].min->dtype == buffer.shape[i]->dtype &&
              structural_equal(region.region[i].extent, buffer.shape[i]);
    if (whole) return name;
  }
  std::string text = name + "[";
  for (size_t i = 0; i < region.region.size(); ++i) {
    const bool point = !is_argument || region.drops(i);
    text += (i ? ", " : "") + range(region.region[i], dim_dtype(buffer, i), point);
  }
  return text + (region.region.empty() ? "()]" : "]");
}

std::string Printer::bounds(const Expr& min, const Expr& extent) {
  if (is_int(min, 0) && min->dtype == extent->dtype) return expr(extent);
  const auto a = as_int(min), b = as_int(extent);
  if (a && b) return expr(min) + ", " + expr(imm(min->dtype, *a + *b));
  return expr(min) + ", " + expr(make<Binary>(BinaryOp::kAdd, min, extent));
}

}  // namespace tenon::script
