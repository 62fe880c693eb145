// SPDX-License-Identifier: Apache-2.0
// Generates C for scalar and vector expressions.
#include <cmath>
#include <limits>

#include "tenon/backend/c/codegen.h"
#include "tenon/backend/c/scalar_functions.h"
#include "tenon/backend/c/vectors.h"
#include "tenon/backend/limits.h"
#include "tenon/support/narrow_float.h"

namespace tenon::c_backend {

static bool is_small_float(DType t) { return t.is_float() && t.bits == 16; }

// Texts above this length become variables, for those who read the code.
static constexpr size_t kLongText = 240;
static constexpr size_t kLongSharedText = 40;

Text FunctionCodegen::hoist(DType dtype, const Text& value, const std::string& name) {
  const std::string variable = names_.take(name);
  line("const {} = {};", declare(dtype, variable), value.s);
  return {variable, Text::kAtom};
}

Text FunctionCodegen::value(const Expr& expr) {
  if (expr.as<Var>() || expr.as<IntImm>() || expr.as<FloatImm>() || expr.as<StringImm>())
    return generate(expr);
  const auto it = memo_.find(expr.get());
  if (it != memo_.end() && !index_arithmetic_) return it->second.second;
  Text result = generate(expr);
  const bool shared = count_[expr.get()] > 1;
  if (index_arithmetic_ || expr->dtype.is_void() || expr->dtype.is_handle()) return result;
  if (result.s.size() > (shared ? kLongSharedText : kLongText)) result = hoist(expr->dtype, result);
  if (shared) memo_.emplace(expr.get(), std::pair(expr, result));
  return result;
}

Text FunctionCodegen::index(const Expr& expr) {
  const bool saved = index_arithmetic_;
  index_arithmetic_ = backend::is_plain_index(expr);
  Text result = value(expr);
  index_arithmetic_ = saved;
  if (expr->dtype.is_vector() || expr->dtype.bits == 64 || as_int(expr)) return result;
  return {"(int64_t)" + result.at(Text::kUnary), Text::kUnary};
}

Text FunctionCodegen::apply(const std::string& function, const std::vector<Text>& args) const {
  std::string list;
  for (const Text& arg : args) list += (list.empty() ? "" : ", ") + arg.s;
  return {function + "(" + list + ")", Text::kAtom};
}

// `f($0)`, `f($0, $1)`, with no operator inside; a cast, as in `f((float)$0)`, is one.
static bool is_plain_call(std::string pattern) {
  if (pattern.find(")$") != std::string::npos) return false;
  for (size_t at = 0; (at = pattern.find(", ", at)) != std::string::npos;) pattern.erase(at, 2);
  return pattern.back() == ')' && pattern[0] != '(' && pattern.find(' ') == std::string::npos;
}

// How tightly the outermost operator of a pattern binds.
static int level_of(const std::string& pattern) {
  if (is_plain_call(pattern)) return Text::kAtom;
  if (pattern == "$0 + $1" || pattern == "$0 - $1") return Text::kSum;
  if (pattern == "$0 * $1" || pattern == "$0 / $1") return Text::kProduct;
  if (pattern[0] == '(' || pattern.find(' ') == std::string::npos) return Text::kUnary;
  if (pattern.back() == ')' && pattern.find('(') < pattern.find(' ')) return Text::kAtom;
  return Text::kAny;
}

Text FunctionCodegen::scalar(const std::string& pattern, const std::vector<Text>& args) const {
  if (pattern == "$0") return args[0];
  int least[2] = {Text::kUnary, Text::kUnary};
  if (is_plain_call(pattern)) least[0] = least[1] = Text::kAny;
  if (pattern == "$0 + $1") least[0] = least[1] = Text::kSum;
  if (pattern == "$0 - $1") least[0] = Text::kSum, least[1] = Text::kProduct;
  if (pattern == "$0 * $1" || pattern == "$0 / $1") least[0] = Text::kProduct;
  if (pattern.size() <= 8 && pattern.find_first_of("<>=") == 3) least[0] = least[1] = Text::kSum;
  std::vector<std::string> texts;
  for (size_t i = 0; i < args.size(); ++i) texts.push_back(args[i].at(least[i > 0]));
  return {fill(pattern, texts), level_of(pattern)};
}

Text FunctionCodegen::integer(DType dtype, int64_t value) const {
  if (dtype.is_bool()) return {value ? "1" : "0", Text::kAtom};
  if (dtype.is_uint()) {
    const auto number = static_cast<uint64_t>(value) & (~uint64_t{0} >> (64 - dtype.bits));
    if (dtype.bits < 32) return {std::to_string(number), Text::kAtom};
    return {fmt::format("{}u{}", number, dtype.bits == 64 && number >> 32 ? "ll" : ""),
            Text::kAtom};
  }
  if (value == std::numeric_limits<int64_t>::min()) return {"INT64_MIN", Text::kAtom};
  if (value == std::numeric_limits<int32_t>::min()) return {"INT32_MIN", Text::kAtom};
  const bool is_long =
      value > std::numeric_limits<int32_t>::max() || value < std::numeric_limits<int32_t>::min();
  return {fmt::format("{}{}", value, is_long ? "ll" : ""), value < 0 ? Text::kUnary : Text::kAtom};
}

Text FunctionCodegen::real(DType dtype, double value) {
  if (dtype.is_minifloat()) return integer(kUInt8, narrow_float_bits(dtype, value));
  if (is_small_float(dtype)) return narrowed(dtype, real(kFloat32, value));
  if (std::isnan(value) || std::isinf(value)) {
    m_.prelude().use_math();
    const std::string text = std::isnan(value) ? "NAN" : value < 0 ? "-INFINITY" : "INFINITY";
    return dtype.bits == 64 ? Text{"(double)" + text, Text::kUnary}
                            : Text{text, value < 0 ? Text::kUnary : Text::kAtom};
  }
  std::string text =
      dtype.bits == 32 ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (dtype.bits == 32) text += "f";
  return {text, text[0] == '-' ? Text::kUnary : Text::kAtom};
}

Text FunctionCodegen::widened(DType dtype, const Text& value) {
  const DType wide = kFloat32.with_lanes(dtype.lanes);
  if (dtype.is_vector()) return apply(vector_cast(m_.prelude(), dtype, wide), {value});
  return scalar(cast_pattern(m_.prelude(), dtype, wide), {value});
}

Text FunctionCodegen::narrowed(DType dtype, const Text& value) {
  const DType wide = kFloat32.with_lanes(dtype.lanes);
  if (dtype.is_vector()) return apply(vector_cast(m_.prelude(), wide, dtype), {value});
  return scalar(cast_pattern(m_.prelude(), wide, dtype), {value});
}

Text FunctionCodegen::generate(const Expr& expr) {
  const DType dtype = expr->dtype;
  switch (kind_of(expr)) {
    case ExprKind::kIntImm: return integer(dtype, expr.to<IntImm>().value);
    case ExprKind::kFloatImm: return real(dtype, expr.to<FloatImm>().value);
    case ExprKind::kStringImm: return {c_string(expr.to<StringImm>().value), Text::kAtom};
    case ExprKind::kVar: {
      const auto& node = expr.to<Var>();
      const auto it = vars_.find(&node);
      if (it == vars_.end())
        throw CompileError(kUndefined, expr->origin,
                           "variable `{}` is used where it is not defined", node.name);
      use(it->second.s);
      return it->second;
    }
    case ExprKind::kCast: return cast_to(expr.to<Cast>());
    case ExprKind::kBinary: return binary(expr.to<Binary>());
    case ExprKind::kNot: {
      const Text x = value(expr.to<Not>().value);
      if (dtype.is_vector()) return apply(vector_not(m_.prelude(), dtype.lanes), {x});
      return {"!" + x.at(Text::kAtom), Text::kUnary};
    }
    case ExprKind::kSelect: {
      const auto& node = expr.to<Select>();
      return conditional(node.condition, node.true_value, node.false_value, false);
    }
    case ExprKind::kRamp: {
      const auto& node = expr.to<Ramp>();
      const std::string c = c_type(dtype);
      return apply(vector_ramp(m_.prelude(), dtype), {value(node.base), value(node.stride)});
    }
    case ExprKind::kBroadcast: {
      const auto& node = expr.to<Broadcast>();
      Text x = value(node.value);
      if (node.value->dtype.is_bool()) x = {"-" + x.at(Text::kAtom), Text::kUnary};
      return apply(vector_splat(m_.prelude(), dtype), {x});
    }
    case ExprKind::kShuffle: return shuffle(expr.to<Shuffle>());
    case ExprKind::kLet: {
      const auto& node = expr.to<Let>();
      const Text bound = value(node.value);
      const std::string name = names_.take(node.var->name);
      if (is_used(name)) line("const {} = {};", declare(node.var->dtype, name), bound.s);
      vars_[node.var.get()] = {name, Text::kAtom};
      if (signs_.is_nonnegative(node.value)) signs_.add_nonnegative(node.var.get());
      return value(node.body);
    }
    case ExprKind::kBufferLoad: return load(expr.to<tir::BufferLoad>());
    case ExprKind::kCall: return call(expr.to<Call>());
    case ExprKind::kGlobalVar: break;
  }
  throw CompileError(kUnsupported, expr->origin, "expression `{}` has no C code", str(expr));
}

Text FunctionCodegen::shuffle(const Shuffle& node) {
  std::vector<Text> args;
  std::vector<DType> types;
  for (const Expr& vector : node.vectors) {
    args.push_back(value(vector));
    types.push_back(vector->dtype);
  }
  return apply(vector_pick(m_.prelude(), types, node.lanes), args);
}

Text FunctionCodegen::cast_to(const Cast& node) {
  const DType from = node.value->dtype, to = node.dtype;
  if (from == to) return value(node.value);
  for (const DType t : {from, to}) backend::check_wide(t, node.origin);
  for (const DType t : {from, to})
    if (!t.is_float() && !t.is_integer() && !t.is_bool())
      throw CompileError(kUnsupported, node.origin, "a cast from {} to {} has no C code",
                         from.str(), to.str());
  if (const auto number = as_int(node.value); number && to.is_integer() && to.is_scalar())
    return integer(to, *number);
  const Text x = value(node.value);
  if (to.is_vector()) return apply(vector_cast(m_.prelude(), from, to), {x});
  // Within index arithmetic a wider integer says nothing new.
  if (index_arithmetic_ && from.is_int() && to.is_int() && to.bits > from.bits && to.bits < 64)
    return x;
  return scalar(cast_pattern(m_.prelude(), from, to), {x});
}

// ---- arithmetic ---------------------------------------------------------------------------------

// Checked once in each scope: in index arithmetic the same divisor stands in every access, and
// compilers take long for functions of thousands of branches.
Text FunctionCodegen::divisor(const Binary& op, Text text) {
  const auto constant = as_int(op.rhs);
  // As in machine code: found by simplification in code that does not run. C compilers warn of a
  // division by 0 that they see.
  if (constant == 0) {
    fail_unless({"0", Text::kAtom}, 4, where(op.origin), "integer division by zero", "0", "0");
    return op.lhs->dtype.is_vector() ? value(imm(op.lhs->dtype, int64_t{1}))
                                     : integer(op.lhs->dtype, 1);
  }
  if (constant) return text;
  bool is_fixed = true;
  walk(op.rhs,
       [&](const NodePtr& node) { is_fixed &= !node.as<tir::BufferLoad>() && !node.as<Call>(); });
  const std::string key = text.s;
  if (const auto known = divisors_.find(key); is_fixed && known != divisors_.end())
    return known->second;
  const DType dtype = op.lhs->dtype;
  if (text.level < Text::kAtom) text = hoist(dtype, text);
  if (!signs_.is_positive(op.rhs)) {
    const Text holds = dtype.is_vector()
                           ? Text{"!" + apply(any_zero(m_.prelude(), dtype), {text}).s, Text::kAny}
                           : Text{text.at(Text::kUnary) + " != 0", Text::kAny};
    fail_unless(holds, 4, where(op.origin), "integer division by zero", "0", "0");
  }
  if (is_fixed) divisors_.emplace(key, text);
  return text;
}

Text FunctionCodegen::binary(const Binary& op) {
  const DType dtype = op.lhs->dtype;
  backend::check_wide(dtype, op.origin);
  if (is_logical(op.op) && dtype.is_scalar()) return guarded_logic(op);
  Text a = value(op.lhs), b = value(op.rhs);
  const bool divides = op.op >= BinaryOp::kDiv && op.op <= BinaryOp::kFloorMod;
  if (divides && !dtype.is_float()) b = divisor(op, b);
  BinaryTraits traits;
  traits.index = index_arithmetic_;
  traits.nonnegative = signs_.is_nonnegative(op.lhs) && signs_.is_nonnegative(op.rhs);
  if (dtype.is_float())
    traits.no_nan = backend::never_nan(op.lhs) ? 0 : backend::never_nan(op.rhs) ? 1 : -1;
  if (is_small_float(dtype)) {
    const DType wide = kFloat32.with_lanes(dtype.lanes);
    a = widened(dtype, a);
    b = widened(dtype, b);
    const Text result = dtype.is_vector()
                            ? apply(vector_binary(m_.prelude(), op.op, wide, traits), {a, b})
                            : scalar(binary_pattern(m_.prelude(), op.op, kFloat32, traits), {a, b});
    return is_comparison(op.op) ? result : narrowed(dtype, result);
  }
  if (dtype.is_vector()) return apply(vector_binary(m_.prelude(), op.op, dtype, traits), {a, b});
  // Floor division by a power of two.
  const auto divisor = as_int(op.rhs);
  if ((op.op == BinaryOp::kFloorDiv || op.op == BinaryOp::kFloorMod) && divisor && *divisor > 0 &&
      (*divisor & (*divisor - 1)) == 0 && dtype.is_int() && !traits.nonnegative) {
    if (op.op == BinaryOp::kFloorMod)
      return {fmt::format("{} & {}", a.at(Text::kUnary), *divisor - 1), Text::kAny};
    return {fmt::format("{} >> {}", a.at(Text::kUnary),
                        __builtin_ctzll(static_cast<uint64_t>(*divisor))),
            Text::kAny};
  }
  // Sums of floats are taken in their order: `x + (y - z)` is no `x + y - z`.
  if (dtype.is_float() && op.op == BinaryOp::kAdd) b = {b.at(Text::kProduct), Text::kProduct};
  // `x + -3` reads `x - 3`.
  if (traits.index && op.op == BinaryOp::kAdd && divisor && *divisor < 0 && *divisor > -(1 << 30))
    return {fmt::format("{} - {}", a.at(Text::kSum), -*divisor), Text::kSum};
  return scalar(binary_pattern(m_.prelude(), op.op, dtype, traits), {a, b});
}

// `and`, `or` stop at the first operand that decides, as the second may be guarded by it. What the
// second needs computed before it is computed under that guard.
Text FunctionCodegen::guarded_logic(const Binary& op) {
  const char* sign = op.op == BinaryOp::kAnd ? "&&" : "||";
  const Text a = value(op.lhs);
  const auto saved = memo_;
  Text b;
  const std::string before = inside([&] { b = value(op.rhs); });
  memo_ = saved;
  if (before.empty())
    return {fmt::format("{} {} {}", a.at(Text::kUnary), sign, b.at(Text::kUnary)), Text::kAny};
  const std::string name = names_.take("holds");
  line("int {} = {};", name, a.s);
  line("if ({}{}) {{", op.op == BinaryOp::kAnd ? "" : "!", name);
  *out_ += before;
  ++indent_;
  line("{} = {};", name, b.s);
  --indent_;
  line("}}");
  return {name, Text::kAtom};
}

Text FunctionCodegen::conditional(const Expr& condition, const Expr& a, const Expr& b, bool lazy) {
  const DType dtype = a->dtype;
  const Text decides = value(condition);
  if (condition->dtype.is_vector()) {
    if (lazy && (backend::needs_guard(a) || backend::needs_guard(b)))
      throw CompileError(kUnsupported, condition->origin,
                         "`T.if_then_else` guards reads by a condition of {} lanes",
                         condition->dtype.lanes);
    return apply(vector_select(m_.prelude(), dtype), {decides, value(a), value(b)});
  }
  if (!lazy) {  // both are computed; C's operator may leave one out
    const Text yes = value(a), no = value(b);
    return {fmt::format("{} ? {} : {}", decides.at(Text::kUnary), yes.at(Text::kSum),
                        no.at(Text::kSum)),
            Text::kAny};
  }
  const auto saved = memo_;  // values of one branch do not exist in the other
  Text yes, no;
  const std::string before_yes = inside([&] { yes = value(a); });
  memo_ = saved;
  const std::string before_no = inside([&] { no = value(b); });
  memo_ = saved;
  if (before_yes.empty() && before_no.empty())
    return {fmt::format("{} ? {} : {}", decides.at(Text::kUnary), yes.at(Text::kSum),
                        no.at(Text::kSum)),
            Text::kAny};
  const std::string name = names_.take("chosen");
  line("{};", declare(dtype, name));
  line("if ({}) {{", decides.s);
  *out_ += before_yes;
  ++indent_;
  line("{} = {};", name, yes.s);
  --indent_;
  line("}} else {{");
  *out_ += before_no;
  ++indent_;
  line("{} = {};", name, no.s);
  --indent_;
  line("}}");
  return {name, Text::kAtom};
}

}  // namespace tenon::c_backend
