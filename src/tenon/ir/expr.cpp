// SPDX-License-Identifier: Apache-2.0
#include "tenon/ir/expr.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "tenon/ir/intrinsic_operands.h"
#include "tenon/support/narrow_float.h"

namespace tenon {

static_assert(kBinaryOpCount == 17);

std::string_view name_of(BinaryOp op) {
  static constexpr std::string_view kNames[] = {"Add",      "Sub", "Mul", "Div", "Mod", "FloorDiv",
                                                "FloorMod", "Min", "Max", "EQ",  "NE",  "LT",
                                                "LE",       "GT",  "GE",  "And", "Or"};
  return kNames[static_cast<int>(op)];
}

static void same_dtype(const Expr& a, const Expr& b, std::string_view what, const Origin& origin) {
  if (a->dtype == b->dtype) return;
  throw CompileError(kDTypeMismatch, origin, "operands of `{}` have dtypes {} and {}", what,
                     a->dtype.str(), b->dtype.str());
}

// Where a value of `bits` bits wraps to.
static int64_t wrap(DType dtype, int64_t value) {
  if (dtype.is_bool()) return value != 0;
  if (dtype.bits >= 64 || !dtype.is_integer()) return value;
  const uint64_t mask = (uint64_t{1} << dtype.bits) - 1;
  const uint64_t low = static_cast<uint64_t>(value) & mask;
  if (dtype.is_uint() || !(low >> (dtype.bits - 1))) return static_cast<int64_t>(low);
  return static_cast<int64_t>(low | ~mask);
}

IntImm::IntImm(DType dtype, int64_t value, Origin origin)
    : NodeOf(dtype, std::move(origin)), value(value) {
  finish_node(*this);
}
void IntImm::finish() {
  if ((!dtype.is_integer() && !dtype.is_bool() && !dtype.is_string()) || dtype.is_vector())
    throw CompileError(kDTypeMismatch, origin, "an integer constant cannot have dtype {}",
                       dtype.str());
  if (wrap(dtype, value) != value)
    throw CompileError(kBadLiteral, origin, "{} does not fit {}", value, dtype.str());
}
std::vector<FieldInfo> IntImm::fields() {
  return {field<&IntImm::dtype>("dtype"), field<&IntImm::value>("value")};
}

static double round_to(DType dtype, double value) {
  if (dtype.code == DType::Code::kFloat && dtype.bits == 32) return static_cast<float>(value);
  if (dtype.is_minifloat()) return narrow_float_value(dtype, narrow_float_bits(dtype, value));
  return value;  // 16-bit floats are rounded where they are stored
}

FloatImm::FloatImm(DType dtype, double value, Origin origin)
    : NodeOf(dtype, std::move(origin)), value(value) {
  finish_node(*this);
}
void FloatImm::finish() {
  if (!dtype.is_float() || dtype.is_vector())
    throw CompileError(kDTypeMismatch, origin, "a floating-point constant cannot have dtype {}",
                       dtype.str());
  value = round_to(dtype, value);
}
std::vector<FieldInfo> FloatImm::fields() {
  return {field<&FloatImm::dtype>("dtype"), field<&FloatImm::value>("value")};
}

StringImm::StringImm(std::string value, Origin origin)
    : NodeOf(kHandle, std::move(origin)), value(std::move(value)) {
  finish_node(*this);
}
std::vector<FieldInfo> StringImm::fields() { return {field<&StringImm::value>("value")}; }

Var::Var(std::string name, DType dtype, Origin origin)
    : NodeOf(dtype, std::move(origin)), name(std::move(name)), pointee(kVoid) {
  finish_node(*this);
}
Ref<Var> Var::pointer(std::string name, DType pointee, std::string scope, Origin origin) {
  return with(make<Var>(std::move(name), kHandle, std::move(origin)), [&](Var& var) {
    var.pointee = pointee;
    var.scope = std::move(scope);
  });
}
Ref<Var> Var::size(std::string name, DType dtype, Origin origin) {
  return with(make<Var>(std::move(name), dtype, std::move(origin)),
              [](Var& var) { var.is_size = true; });
}
std::vector<FieldInfo> Var::fields() {
  return {field<&Var::name>("name", FieldRole::kIgnored), field<&Var::dtype>("dtype"),
          field<&Var::pointee>("pointee"), field<&Var::scope>("scope"),
          field<&Var::is_size>("is_size", FieldRole::kIgnored)};
}

Cast::Cast(DType dtype, Expr value, Origin origin)
    : NodeOf(dtype, std::move(origin)), value(std::move(value)) {
  finish_node(*this);
}
void Cast::finish() {
  if (dtype.lanes != value->dtype.lanes)
    throw CompileError(kDTypeMismatch, origin, "a cast from {} to {} changes the lanes",
                       value->dtype.str(), dtype.str());
  if (value->dtype.is_string() != dtype.is_string())
    throw CompileError(kDTypeMismatch, origin, "a cast from {} to {}, which is no arithmetic",
                       value->dtype.str(), dtype.str());
  if ((value->dtype.is_handle() && dtype.is_float()) ||
      (dtype.is_handle() && value->dtype.is_float()))
    throw CompileError(kDTypeMismatch, origin, "a cast from {} to {}; expected an integer",
                       value->dtype.str(), dtype.str());
}
std::vector<FieldInfo> Cast::fields() {
  return {field<&Cast::dtype>("dtype"), field<&Cast::value>("value")};
}

Binary::Binary(BinaryOp op, Expr lhs, Expr rhs, Origin origin)
    : NodeOf(std::move(origin)), op(op), lhs(std::move(lhs)), rhs(std::move(rhs)) {
  finish_node(*this);
}
void Binary::finish() {
  same_dtype(lhs, rhs, name_of(op), origin);
  if (is_logical(op) && !lhs->dtype.is_bool())
    throw CompileError(kDTypeMismatch, origin, "operands of `{}` have dtype {}; expected bool",
                       name_of(op), lhs->dtype.str());
  if (lhs->dtype.is_string() && op != BinaryOp::kEQ && op != BinaryOp::kNE)
    throw CompileError(kDTypeMismatch, origin, "`{}` of strings; they are equal or not",
                       name_of(op));
  dtype = is_comparison(op) || is_logical(op) ? kBool.with_lanes(lhs->dtype.lanes) : lhs->dtype;
}
std::vector<FieldInfo> Binary::fields() {
  return {field<&Binary::op>("op"), field<&Binary::lhs>("lhs"), field<&Binary::rhs>("rhs")};
}

Not::Not(Expr value, Origin origin) : NodeOf(std::move(origin)), value(std::move(value)) {
  finish_node(*this);
}
void Not::finish() {
  if (!value->dtype.is_bool())
    throw CompileError(kDTypeMismatch, origin, "`not` of a value of dtype {}; expected bool",
                       value->dtype.str());
  dtype = value->dtype;
}
std::vector<FieldInfo> Not::fields() { return {field<&Not::value>("value")}; }

Select::Select(Expr condition, Expr true_value, Expr false_value, Origin origin)
    : NodeOf(std::move(origin)),
      condition(std::move(condition)),
      true_value(std::move(true_value)),
      false_value(std::move(false_value)) {
  finish_node(*this);
}
void Select::finish() {
  if (!condition->dtype.is_bool())
    throw CompileError(kDTypeMismatch, origin, "condition of `Select` has dtype {}; expected bool",
                       condition->dtype.str());
  same_dtype(true_value, false_value, "Select", origin);
  dtype = true_value->dtype;
}
std::vector<FieldInfo> Select::fields() {
  return {field<&Select::condition>("condition"), field<&Select::true_value>("true_value"),
          field<&Select::false_value>("false_value")};
}

static void check_lanes(int64_t lanes, const Origin& origin) {
  if (lanes < 1 || lanes > 1024)
    throw CompileError(kLimitExceeded, origin, "a vector of {} lanes; expected 1 to 1024", lanes);
}

Ramp::Ramp(Expr base, Expr stride, int64_t lanes, Origin origin)
    : NodeOf(std::move(origin)), base(std::move(base)), stride(std::move(stride)), lanes(lanes) {
  finish_node(*this);
}
void Ramp::finish() {
  check_lanes(lanes, origin);
  same_dtype(base, stride, "Ramp", origin);
  if (base->dtype.is_vector())
    throw CompileError(kDTypeMismatch, origin, "base of `Ramp` has dtype {}; expected a scalar",
                       base->dtype.str());
  dtype = base->dtype.with_lanes(static_cast<int>(lanes));
}
std::vector<FieldInfo> Ramp::fields() {
  return {field<&Ramp::base>("base"), field<&Ramp::stride>("stride"), field<&Ramp::lanes>("lanes")};
}

Broadcast::Broadcast(Expr value, int64_t lanes, Origin origin)
    : NodeOf(std::move(origin)), value(std::move(value)), lanes(lanes) {
  finish_node(*this);
}
void Broadcast::finish() {
  check_lanes(lanes, origin);
  if (value->dtype.is_vector())
    throw CompileError(kDTypeMismatch, origin,
                       "value of `Broadcast` has dtype {}; expected a scalar", value->dtype.str());
  dtype = value->dtype.with_lanes(static_cast<int>(lanes));
}
std::vector<FieldInfo> Broadcast::fields() {
  return {field<&Broadcast::value>("value"), field<&Broadcast::lanes>("lanes")};
}

Shuffle::Shuffle(std::vector<Expr> vectors, std::vector<int64_t> lanes, Origin origin)
    : NodeOf(std::move(origin)), vectors(std::move(vectors)), lanes(std::move(lanes)) {
  finish_node(*this);
}
void Shuffle::finish() {
  check_lanes(static_cast<int64_t>(lanes.size()), origin);
  if (vectors.empty()) throw CompileError(kBadArgument, origin, "`Shuffle` of no vectors");
  int64_t total = 0;
  for (const Expr& vector : vectors) {
    total += vector->dtype.lanes;
    if (vector->dtype.element() != vectors[0]->dtype.element())
      throw CompileError(kDTypeMismatch, origin, "vectors of `Shuffle` have dtypes {} and {}",
                         vectors[0]->dtype.str(), vector->dtype.str());
  }
  for (const int64_t lane : lanes)
    if (lane < 0 || lane >= total)
      throw CompileError(kOutOfBounds, origin, "lane {} of `Shuffle` is outside 0..{}", lane,
                         total - 1);
  dtype = vectors[0]->dtype.with_lanes(static_cast<int>(lanes.size()));
}
std::vector<FieldInfo> Shuffle::fields() {
  return {field<&Shuffle::vectors>("vectors"), field<&Shuffle::lanes>("lanes")};
}

Let::Let(Ref<Var> var, Expr value, Expr body, Origin origin)
    : NodeOf(std::move(origin)),
      var(std::move(var)),
      value(std::move(value)),
      body(std::move(body)) {
  finish_node(*this);
}
void Let::finish() {
  same_dtype(var, value, "Let", origin);
  dtype = body->dtype;
}
std::vector<FieldInfo> Let::fields() {
  return {field<&Let::value>("value"), field<&Let::var>("var", FieldRole::kDefinition),
          field<&Let::body>("body")};
}

GlobalVar::GlobalVar(std::string name, Origin origin)
    : NodeOf(kHandle, std::move(origin)), name(std::move(name)) {
  finish_node(*this);
}
std::vector<FieldInfo> GlobalVar::fields() { return {field<&GlobalVar::name>("name")}; }

Call::Call(const Intrinsic* op, std::vector<NodePtr> args, DType result, Origin origin)
    : NodeOf(std::move(origin)), op(op), args(std::move(args)), result(result) {
  finish_node(*this);
}
Call::Call(Ref<GlobalVar> callee, std::vector<NodePtr> args, DType result, Origin origin)
    : NodeOf(std::move(origin)),
      op(nullptr),
      callee(std::move(callee)),
      args(std::move(args)),
      result(result) {
  finish_node(*this);
}
void Call::finish() {
  check(op || callee, "a call of nothing");
  if (!op) {
    dtype = result;
    return;
  }
  if (op->arguments >= 0 && args.size() != static_cast<size_t>(op->arguments))
    throw CompileError(kBadArgument, origin, "`T.{}` has {} arguments; expected {}", op->name,
                       args.size(), op->arguments);
  check_operands(*op, args, origin);
  const auto dtype_of = [&](size_t i) -> DType {
    const auto* expr = args.at(i).as<ExprNode>();
    if (!expr)
      throw CompileError(kBadArgument, origin, "argument {} of `T.{}` is not an expression", i + 1,
                         op->name);
    return expr->dtype;
  };
  switch (op->result) {
    case Intrinsic::Result::kSame:
    case Intrinsic::Result::kLast:
      if (args.empty())
        throw CompileError(kBadArgument, origin, "`T.{}` without arguments", op->name);
      dtype = dtype_of(op->result == Intrinsic::Result::kSame ? 0 : args.size() - 1);
      break;
    case Intrinsic::Result::kBool:
      dtype = kBool.with_lanes(args.empty() ? 1 : dtype_of(0).lanes);
      break;
    case Intrinsic::Result::kGiven: dtype = result; break;
    case Intrinsic::Result::kVoid: dtype = kVoid; break;
    case Intrinsic::Result::kHandle: dtype = kHandle; break;
  }
  result = dtype;
}
std::vector<FieldInfo> Call::fields() {
  return {field<&Call::op>("op"), field<&Call::callee>("callee"), field<&Call::args>("args"),
          field<&Call::result>("result")};
}

// ---- building -----------------------------------------------------------------------------------

Expr broadcast_to_lanes(Expr value, int lanes) {
  if (lanes == 1 || value->dtype.lanes == lanes) return value;
  return make<Broadcast>(std::move(value), lanes);
}

Expr imm(DType dtype, int64_t value) {
  const DType element = dtype.element();
  Expr scalar = element.is_float() ? Expr(make<FloatImm>(element, static_cast<double>(value)))
                                   : Expr(make<IntImm>(element, value));
  return broadcast_to_lanes(scalar, dtype.lanes);
}

Expr imm(DType dtype, double value) {
  if (!dtype.is_float()) return imm(dtype, static_cast<int64_t>(value));
  return broadcast_to_lanes(make<FloatImm>(dtype.element(), value), dtype.lanes);
}

std::optional<int64_t> as_int(const Expr& expr) {
  if (const auto* value = expr.as<IntImm>()) return value->value;
  if (const auto* splat = expr.as<Broadcast>()) return as_int(splat->value);
  return std::nullopt;
}

std::optional<double> as_float(const Expr& expr) {
  if (const auto* value = expr.as<FloatImm>()) return value->value;
  if (const auto* splat = expr.as<Broadcast>()) return as_float(splat->value);
  return std::nullopt;
}

std::optional<std::vector<int64_t>> as_ints(const std::vector<Expr>& exprs) {
  std::vector<int64_t> out;
  for (const Expr& expr : exprs) {
    const auto value = as_int(expr);
    if (!value) return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

std::vector<Expr> to_exprs(const std::vector<int64_t>& values, DType dtype) {
  std::vector<Expr> out;
  for (const int64_t value : values) out.push_back(imm(dtype, value));
  return out;
}

std::optional<int64_t> fold_int(BinaryOp op, DType dtype, int64_t a, int64_t b) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  const bool is_unsigned = dtype.is_uint();
  const auto less = [&](int64_t x, int64_t y) {
    return is_unsigned ? static_cast<uint64_t>(x) < static_cast<uint64_t>(y) : x < y;
  };
  switch (op) {
    case BinaryOp::kAdd: return wrap(dtype, static_cast<int64_t>(ua + ub));
    case BinaryOp::kSub: return wrap(dtype, static_cast<int64_t>(ua - ub));
    case BinaryOp::kMul: return wrap(dtype, static_cast<int64_t>(ua * ub));
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod: {
      if (b == 0) return std::nullopt;
      if (is_unsigned) {
        const bool quotient = op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv;
        return wrap(dtype, static_cast<int64_t>(quotient ? ua / ub : ua % ub));
      }
      if (b == -1) {  // the one case that overflows
        const bool quotient = op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv;
        return quotient ? wrap(dtype, static_cast<int64_t>(0 - ua)) : 0;
      }
      const int64_t quotient = a / b, remainder = a % b;
      if (op == BinaryOp::kDiv) return quotient;
      if (op == BinaryOp::kMod) return remainder;
      const bool below = remainder != 0 && (remainder < 0) != (b < 0);
      return op == BinaryOp::kFloorDiv ? quotient - below : remainder + (below ? b : 0);
    }
    case BinaryOp::kMin: return less(b, a) ? b : a;
    case BinaryOp::kMax: return less(a, b) ? b : a;
    case BinaryOp::kEQ: return a == b;
    case BinaryOp::kNE: return a != b;
    case BinaryOp::kLT: return less(a, b);
    case BinaryOp::kLE: return !less(b, a);
    case BinaryOp::kGT: return less(b, a);
    case BinaryOp::kGE: return !less(a, b);
    case BinaryOp::kAnd: return a && b;
    case BinaryOp::kOr: return a || b;
  }
  return std::nullopt;
}

// Gives both sides one dtype: a constant follows the other side, integers meet in the wider,
// scalars are broadcast.
static void unify(Expr& lhs, Expr& rhs) {
  if (lhs->dtype == rhs->dtype) return;
  const int lanes = std::max(lhs->dtype.lanes, rhs->dtype.lanes);
  lhs = broadcast_to_lanes(std::move(lhs), lanes);
  rhs = broadcast_to_lanes(std::move(rhs), lanes);
  const DType a = lhs->dtype, b = rhs->dtype;
  if (a == b || !a.is_integer() || !b.is_integer()) return;
  const auto follows = [](Expr& value, DType dtype) {
    const auto number = as_int(value);
    if (!number || wrap(dtype.element(), *number) != *number) return false;
    value = imm(dtype, *number);
    return true;
  };
  if (as_int(rhs) && follows(rhs, a)) return;
  if (as_int(lhs) && follows(lhs, b)) return;
  if (a.is_int() != b.is_int()) return;  // Binary reports it
  if (a.bits < b.bits) {
    lhs = cast(b, std::move(lhs));
  } else {
    rhs = cast(a, std::move(rhs));
  }
}

Expr binary(BinaryOp op, Expr lhs, Expr rhs, Origin origin) {
  unify(lhs, rhs);
  const DType dtype = lhs->dtype;
  if (lhs->dtype == rhs->dtype && (dtype.is_integer() || dtype.is_bool())) {
    const auto a = as_int(lhs), b = as_int(rhs);
    if (a && b) {
      if (const auto value = fold_int(op, dtype.element(), *a, *b)) {
        const bool gives_bool = is_comparison(op) || is_logical(op);
        return imm(gives_bool ? kBool.with_lanes(dtype.lanes) : dtype, *value);
      }
    }
    switch (op) {
      case BinaryOp::kAdd:
        if (a == 0) return rhs;
        if (b == 0) return lhs;
        break;
      case BinaryOp::kSub:
        if (b == 0) return lhs;
        break;
      case BinaryOp::kMul:
        if (a == 1 || b == 0) return rhs;
        if (b == 1 || a == 0) return lhs;
        break;
      case BinaryOp::kDiv:
      case BinaryOp::kFloorDiv:
        if (b == 1) return lhs;
        if (a == 0) return lhs;
        break;
      case BinaryOp::kMod:
      case BinaryOp::kFloorMod:
        if (b == 1) return imm(dtype, int64_t{0});
        break;
      case BinaryOp::kAnd:
        if (a == 1 || b == 0) return rhs;
        if (b == 1 || a == 0) return lhs;
        break;
      case BinaryOp::kOr:
        if (a == 0 || b == 1) return rhs;
        if (b == 0 || a == 1) return lhs;
        break;
      default: break;
    }
  }
  return make<Binary>(op, std::move(lhs), std::move(rhs), std::move(origin));
}

Expr ceildiv(Expr a, Expr b) { return floordiv(a + b - 1, b); }

Expr logical_not(Expr a) {
  if (const auto value = as_int(a)) return imm(a->dtype, int64_t{!*value});
  if (const auto* inner = a.as<Not>()) return inner->value;
  return make<Not>(std::move(a));
}

Expr select(Expr condition, Expr a, Expr b) {
  if (const auto value = as_int(condition); value && condition->dtype.is_scalar())
    return *value ? a : b;
  unify(a, b);
  return make<Select>(std::move(condition), std::move(a), std::move(b));
}

Expr cast(DType dtype, Expr value) {
  if (value->dtype == dtype) return value;
  if (const auto number = as_int(value)) {
    if (dtype.is_integer()) return imm(dtype, wrap(dtype.element(), *number));
    if (dtype.is_bool()) return imm(dtype, int64_t{*number != 0});
    if (dtype.is_float() && value->dtype.is_int()) return imm(dtype, static_cast<double>(*number));
  }
  if (const auto number = as_float(value); number && dtype.is_float()) return imm(dtype, *number);
  return make<Cast>(dtype, std::move(value));
}

Expr call(IntrinsicId id, std::vector<NodePtr> args, DType result, Origin origin) {
  return make<Call>(id, std::move(args), result, std::move(origin));
}

Expr if_then_else(Expr condition, Expr a, Expr b) {
  if (const auto value = as_int(condition)) return *value ? a : b;
  unify(a, b);
  return call(IntrinsicId::kIfThenElse, {condition, a, b});
}

// ---- text for messages --------------------------------------------------------------------------

static int precedence(const Expr& expr) {
  const auto* op = expr.as<Binary>();
  if (!op) return 10;
  switch (op->op) {
    case BinaryOp::kOr: return 1;
    case BinaryOp::kAnd: return 2;
    case BinaryOp::kAdd:
    case BinaryOp::kSub: return 5;
    case BinaryOp::kMul:
    case BinaryOp::kDiv:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod: return 6;
    case BinaryOp::kMod:
    case BinaryOp::kMin:
    case BinaryOp::kMax: return 10;
    default: return 4;
  }
}

// What a message calls a node that is no expression: `x` for a buffer of that name.
static std::string name_of(const Node& node) {
  for (const FieldInfo& field : node.type().fields)
    if (field.name == "name") return *static_cast<const std::string*>(field.address(node));
  return std::string(node.type().name);
}

std::string str(const Expr& expr) {
  if (!expr) return "?";
  if (const auto* value = expr.as<IntImm>())
    return value->dtype.is_bool() ? (value->value ? "True" : "False")
                                  : std::to_string(value->value);
  if (const auto* value = expr.as<FloatImm>()) return fmt::format("{}", value->value);
  if (const auto* value = expr.as<StringImm>()) return '"' + value->value + '"';
  if (const auto* value = expr.as<Var>()) return value->name;
  if (const auto* value = expr.as<GlobalVar>()) return value->name;
  if (const auto* op = expr.as<Binary>()) {
    static constexpr std::string_view kSigns[] = {"+",  "-",  "*", "/",  "",  "//", "%",   "",  "",
                                                  "==", "!=", "<", "<=", ">", ">=", "and", "or"};
    const std::string_view sign = kSigns[static_cast<int>(op->op)];
    if (sign.empty()) return fmt::format("{}({}, {})", name_of(op->op), str(op->lhs), str(op->rhs));
    const int level = precedence(expr);
    const auto side = [&](const Expr& e, bool strict) {
      const int inner = precedence(e);
      return inner < level || (strict && inner == level) ? "(" + str(e) + ")" : str(e);
    };
    return fmt::format("{} {} {}", side(op->lhs, false), sign, side(op->rhs, true));
  }
  if (const auto* op = expr.as<Cast>())
    return fmt::format("{}({})", op->dtype.str(), str(op->value));
  std::vector<std::string> members;
  for (const FieldInfo& field : expr->type().fields) {
    if (!field.ops->holds_nodes) continue;
    field.ops->visit(field.address(*expr.get()), [&](const NodePtr& member) {
      if (member.as<GlobalVar>()) return;
      const auto inner = tenon::cast<ExprNode>(member);
      members.push_back(inner ? str(inner) : name_of(*member.get()));
    });
  }
  if (kind_of(expr) == ExprKind::kBufferLoad)
    return members.size() == 1 ? members[0] + "[()]"
                               : fmt::format("{}[{}]", members[0],
                                             fmt::join(members.begin() + 1, members.end(), ", "));
  std::string text = std::string(expr->type().name);
  if (const auto* op = expr.as<Call>())
    text = op->op ? std::string(op->op->name) : op->callee->name;
  return fmt::format("{}({})", text, fmt::join(members, ", "));
}

std::string str(const std::vector<Expr>& exprs) {
  std::string text = "(";
  for (size_t i = 0; i < exprs.size(); ++i) text += (i ? ", " : "") + str(exprs[i]);
  return text + (exprs.size() == 1 ? ",)" : ")");
}

}  // namespace tenon
