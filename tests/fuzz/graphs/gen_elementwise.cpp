// SPDX-License-Identifier: Apache-2.0
// Operators that work element by element, with broadcasting.
#include <algorithm>
#include <cmath>

#include "generators.h"

namespace tenon::fuzz {

namespace {

using Fits = Draft::Fits;

// ---- one operand --------------------------------------------------------------------------------

struct UnaryRow {
  std::string_view op;
  Rounds rounds = Rounds::kAlways;
  double least = -8, most = 8;  // where it is defined and of moderate slope
  bool jumps = false;           // a rounded operand could fall on either side of a step
  enum class Takes : uint8_t { kFloats, kNumbers, kIntegers, kBools } takes = Takes::kFloats;
};
using enum UnaryRow::Takes;
constexpr Rounds kNever = Rounds::kNever, kArithmetic = Rounds::kArithmetic,
                 kAlways = Rounds::kAlways;

constexpr UnaryRow kUnary[] = {
    {"abs", kNever, -1e5, 1e5, false, kNumbers},
    {"acos", kAlways, -0.9, 0.9},
    {"acosh", kAlways, 1.1, 50},
    {"asin", kAlways, -0.9, 0.9},
    {"asinh"},
    {"atan"},
    {"atanh", kAlways, -0.9, 0.9},
    {"bitwise_not", kNever, -1e18, 1e18, false, kIntegers},
    {"ceil", kNever, -1e5, 1e5, true},
    {"cos"},
    {"cosh"},
    {"erf"},
    {"exp"},
    {"floor", kNever, -1e5, 1e5, true},
    {"isfinite", kNever, -1e5, 1e5, true},
    {"isinf", kNever, -1e5, 1e5, true},
    {"isnan", kNever, -1e5, 1e5, true},
    {"log", kAlways, 0.1, 1e4},
    {"log1p", kAlways, -0.8, 1e4},
    {"logical_not", kNever, 0, 1, false, kBools},
    {"negative", kNever, -1e5, 1e5, false, kNumbers},
    {"nn.celu"},
    {"nn.elu"},
    {"nn.gelu"},
    {"nn.gelu_tanh"},
    {"nn.hardsigmoid"},
    {"nn.hardswish"},
    {"nn.leakyrelu"},
    {"nn.mish"},
    {"nn.relu", kNever, -1e5, 1e5, false, kNumbers},
    {"nn.relu6", kNever, -1e5, 1e5, false, kNumbers},
    {"nn.selu"},
    {"nn.shrink", kArithmetic, -8, 8, true},
    {"nn.silu"},
    {"nn.softplus"},
    {"nn.softsign"},
    {"nn.swish"},
    {"nn.thresholdedrelu", kNever, -8, 8, true},
    {"reciprocal", kAlways, 0.2, 100},
    {"round", kNever, -1e5, 1e5, true},
    {"rsqrt", kAlways, 0.2, 100},
    {"sigmoid"},
    {"sign", kNever, -1e5, 1e5, true, kNumbers},
    {"sin"},
    {"sinh"},
    {"sqrt", kAlways, 0.1, 1e4},
    {"square", kArithmetic, -100, 100, false, kNumbers},
    {"tan", kAlways, -1.2, 1.2},
    {"tanh"},
    {"trunc", kNever, -1e5, 1e5, true},
};

bool accepts(UnaryRow::Takes takes, DType dtype) {
  switch (takes) {
    case kFloats: return dtype.is_float();
    case kNumbers: return dtype.is_float() || dtype.is_integer();
    case kIntegers: return dtype.is_integer();
    case kBools: return dtype.is_bool();
  }
  return false;
}

Attrs random_attrs(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  Attrs attrs;
  const auto set = [&](const char* name, std::initializer_list<double> values) {
    if (c.chance(60)) attrs.set(name, c.of(values));
  };
  if (op == "nn.celu" || op == "nn.elu" || op == "nn.swish") set("alpha", {1.0, 0.5, 2.0});
  if (op == "nn.leakyrelu") set("alpha", {0.25, 0.01, 1.5});
  if (op == "nn.thresholdedrelu") set("alpha", {0.5, 1.25, 0.0});
  if (op == "nn.selu") {
    set("alpha", {1.5, 0.25});
    set("gamma", {1.0, 2.0});
  }
  if (op == "nn.hardsigmoid") {
    set("alpha", {0.25, 0.5});
    set("beta", {0.25, 0.0});
  }
  if (op == "nn.shrink") {
    set("lambd", {0.5, 1.0, 0.0});
    set("bias", {0.25, 1.0});
  }
  if (op == "isinf") {
    attrs.set("detect_negative", !c.chance(30));
    attrs.set("detect_positive", !c.chance(30));
  }
  return attrs;
}

void unary(Draft& draft, std::string_view op) {
  const UnaryRow& row = *std::find_if(std::begin(kUnary), std::end(kUnary),
                                      [&](const UnaryRow& r) { return r.op == op; });
  const double most_of_dtype = 8;
  const auto dtype = [&] {
    switch (row.takes) {
      case kFloats: return draft.float_dtype();
      case kNumbers: return draft.number_dtype();
      case kIntegers: return draft.integer_dtype();
      case kBools: return kBool;
    }
    return kVoid;
  };
  const Item x = draft.operand(
      dtype, 0, 4,
      [&](const Item& item) {
        if (!accepts(row.takes, item.dtype()) || (row.jumps && !item.exact)) return false;
        const bool bounded = item.magnitude() < (op == "square" ? 10 : std::ldexp(1, 7) - 1);
        if (item.dtype().is_integer()) return row.takes == kIntegers || bounded;
        return item.least >= row.least && item.most <= row.most;
      },
      row.takes == kFloats ? from_to(std::max(row.least, -2.0), std::min(row.most, most_of_dtype))
                           : Content{});
  if (op == "square" && x.dtype().is_integer() && x.magnitude() > 10) return;
  draft.call(op, {x.value}, random_attrs(draft, op), row.rounds);
}

// ---- two operands -------------------------------------------------------------------------------

// A shape that broadcasts against `shape`: dimensions become 1, leading ones go.
std::vector<Expr> broadcastable(Draft& draft, const std::vector<Expr>& shape) {
  std::vector<Expr> out = shape;
  for (Expr& dim : out)
    if (draft.choices.chance(20)) dim = int64(1);
  while (!out.empty() && draft.choices.chance(20)) out.erase(out.begin());
  return out;
}

// An operand that broadcasts against x, of the same dtype.
Item partner(Draft& draft, const Item& x, const Fits& fits, Content content = {}) {
  if (draft.choices.chance(50)) {
    const auto found = draft.find([&](const Item& item) {
      if (item.dtype() != x.dtype() || (fits && !fits(item))) return false;
      const auto& a = *item.type->shape;
      const auto& b = *x.type->shape;
      for (size_t d = 0; d < std::min(a.size(), b.size()); ++d) {
        const Expr &m = a[a.size() - 1 - d], &n = b[b.size() - 1 - d];
        const auto i = as_int(m), j = as_int(n);
        const bool same = i && j ? *i == *j : m.same_as(n);
        if (!same && !(i && *i == 1) && !(j && *j == 1)) return false;
      }
      return true;
    });
    if (found) return *found;
  }
  return draft.fresh(x.dtype(), broadcastable(draft, *x.type->shape), content);
}

void binary(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const bool compares = op == "less" || op == "less_equal" || op == "greater" ||
                        op == "greater_equal" || op == "equal" || op == "not_equal";
  const bool divides = op == "divide" || op == "floor_divide" || op == "mod" || op == "floor_mod";
  const bool jumps = compares || op == "floor_divide" || op == "mod" || op == "floor_mod";
  const bool logical = op.starts_with("logical_");
  const bool bits = op.starts_with("bitwise_");
  const bool shifts = op == "left_shift" || op == "right_shift";
  const bool power = op == "power";
  const bool selects = op == "minimum" || op == "maximum";
  const auto dtype = [&] {
    if (logical) return kBool;
    if (bits) return c.chance(30) ? kBool : draft.integer_dtype();
    if (shifts) return draft.integer_dtype();
    if (op == "atan2" || op == "log_add_exp") return draft.float_dtype();
    return op == "equal" || op == "not_equal" || selects ? draft.any_dtype() : draft.number_dtype();
  };
  const auto allowed = [&](DType t) {
    if (logical) return t.is_bool();
    if (bits) return t.is_bool() || t.is_integer();
    if (shifts) return t.is_integer();
    if (op == "atan2" || op == "log_add_exp") return t.is_float();
    return op == "equal" || op == "not_equal" || selects || !t.is_bool();
  };
  // Products and sums of integers must not overflow: that is undefined.
  const auto small = [](const Item& item) {
    return !item.dtype().is_integer() || item.dtype().bits > 16 ? item.magnitude() < 3e4
                                                                : item.magnitude() < 11;
  };
  const bool any_integers = compares || selects || bits || logical;
  const auto fits = [&](const Item& item) {
    if (!allowed(item.dtype()) || (jumps && item.dtype().is_float() && !item.exact)) return false;
    if (power && item.dtype().is_float() && (item.least < 0.1 || item.most > 10)) return false;
    if (op == "atan2" && item.least < 0.1) return false;
    if (op == "left_shift" && item.least < 0) return false;
    return any_integers || small(item);
  };
  const Content start = op == "left_shift"             ? from_to(0, 9)
                        : power                        ? from_to(1, 3)
                        : op == "atan2"                ? from_to(0.25, 3)
                        : any_integers && c.chance(30) ? Content{Content::Kind::kFull}
                                                       : Content{};
  const Item x = draft.operand(dtype, 0, 4, fits, start);
  if (!fits(x)) return;
  const bool is_unsigned = x.dtype().is_uint();
  Content content = start;
  Fits second = fits;
  if (divides) {
    content = from_to(x.dtype().is_integer() ? 1 : 0.5, 7);
    second = [&](const Item& item) { return fits(item) && item.least > 0.2; };
  } else if (shifts) {
    content = from_to(0, 3);
    second = [&](const Item& item) { return item.least >= 0 && item.most <= 3 && item.exact; };
  } else if (power) {
    content = x.dtype().is_integer() ? from_to(0, 2) : from_to(-2, 3);
    second = [&](const Item& item) {
      return item.finite && item.least >= (item.dtype().is_integer() ? 0 : -3) && item.most <= 3;
    };
  }
  const Item y = partner(draft, x, second, content);
  if (power && x.dtype().is_integer() && x.magnitude() > 11) return;
  if (x.dtype().is_integer() &&
      (op == "multiply" || op == "left_shift" || op == "add" || op == "subtract" || power)) {
    const double limit = std::ldexp(1, x.dtype().bits - 2);
    const double bound = op == "multiply"     ? x.magnitude() * y.magnitude()
                         : op == "left_shift" ? x.magnitude() * 8
                         : power              ? std::pow(x.magnitude(), y.most)
                                              : x.magnitude() + y.magnitude();
    if (bound > limit || (op == "left_shift" && x.least < 0)) return;
    if (is_unsigned && op == "subtract") return;
  }
  const bool flip = !divides && !shifts && !power && c.chance(30);
  const Rounds rounds = any_integers || op == "mod" || op == "floor_mod"      ? kNever
                        : op == "add" || op == "subtract" || op == "multiply" ? kArithmetic
                                                                              : kAlways;
  draft.call(op, {flip ? y.value : x.value, flip ? x.value : y.value}, {}, rounds);
}

}  // namespace

std::vector<GeneratorRow> elementwise_generators() {
  std::vector<GeneratorRow> rows;
  for (const UnaryRow& row : kUnary) rows.push_back({row.op, unary, 1});
  for (const std::string_view op : {"add", "subtract", "multiply", "divide", "maximum", "minimum"})
    rows.push_back({op, binary, 4});
  for (const std::string_view op :
       {"floor_divide", "mod",         "floor_mod",  "power",       "atan2",
        "log_add_exp",  "logical_and", "logical_or", "logical_xor", "bitwise_and",
        "bitwise_or",   "bitwise_xor", "left_shift", "right_shift", "equal",
        "not_equal",    "less",        "less_equal", "greater",     "greater_equal"})
    rows.push_back({op, binary, 1});
  return rows;
}

}  // namespace tenon::fuzz
