// SPDX-License-Identifier: Apache-2.0
// Parses the conditions of `op_when` and the like: Python's expressions over numbers.
#include <charconv>
#include <set>

#include "tenon/graph/kernels.h"
#include "tenon/support/kernel_codes.h"

namespace tenon::graph {

namespace {

class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, const ExpressionNames& names, const Origin& origin,
                   std::string_view what, const Code& code)
      : text_(text), names_(names), origin_(origin), what_(what), code_(code) {
    skip();
  }

  Expr parse() {
    const Expr out = disjunction();
    if (at_ < text_.size()) fail("the end");
    return out;
  }

 private:
  static constexpr int kMostDepth = 64;

  [[noreturn]] void fail(std::string_view expected) const {
    throw CompileError(code_, origin_, "{} `{}`: found {} at column {}; expected {}", what_, text_,
                       at_ < text_.size() ? fmt::format("`{}`", text_.substr(at_, 8)) : "the end",
                       at_ + 1, expected);
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(std::string_view token) {
    if (text_.substr(at_, token.size()) != token) return false;
    const size_t after = at_ + token.size();
    if (is_word(token.back()) && after < text_.size() && is_word(text_[after])) return false;
    at_ = after;
    skip();
    return true;
  }
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }

  struct Deeper {
    explicit Deeper(ExpressionParser& parser) : parser(parser) {
      if (++parser.depth_ > kMostDepth) parser.fail("an expression that nests less");
    }
    ~Deeper() { --parser.depth_; }
    ExpressionParser& parser;
  };

  Expr boolean_of(const Expr& value) const {
    if (value->dtype.is_bool()) return value;
    return ne(value, imm(value->dtype, int64_t{0}));
  }
  Expr disjunction() {
    const Deeper deeper(*this);
    Expr out = conjunction();
    while (accept("or")) out = logical_or(boolean_of(out), boolean_of(conjunction()));
    return out;
  }
  Expr conjunction() {
    Expr out = negation();
    while (accept("and")) out = logical_and(boolean_of(out), boolean_of(negation()));
    return out;
  }
  Expr negation() {
    const Deeper deeper(*this);
    if (accept("not")) return logical_not(boolean_of(negation()));
    return comparison();
  }
  Expr comparison() {
    Expr left = sum(), all;
    for (;;) {
      std::optional<BinaryOp> op;
      if (accept("==")) {
        op = BinaryOp::kEQ;
      } else if (accept("!=")) {
        op = BinaryOp::kNE;
      } else if (accept("<=")) {
        op = BinaryOp::kLE;
      } else if (accept(">=")) {
        op = BinaryOp::kGE;
      } else if (accept("<")) {
        op = BinaryOp::kLT;
      } else if (accept(">")) {
        op = BinaryOp::kGT;
      }
      if (!op) return all ? all : left;
      const Expr right = sum();
      const Expr one = arithmetic(*op, left, right);
      all = all ? logical_and(all, one) : one;
      left = right;
    }
  }
  Expr sum() {
    Expr out = product();
    for (;;) {
      if (accept("+")) {
        out = arithmetic(BinaryOp::kAdd, out, product());
      } else if (accept("-")) {
        out = arithmetic(BinaryOp::kSub, out, product());
      } else {
        return out;
      }
    }
  }
  Expr product() {
    Expr out = unary();
    for (;;) {
      if (accept("//")) {
        out = division(BinaryOp::kFloorDiv, out, unary());
      } else if (accept("/")) {
        out = arithmetic(BinaryOp::kDiv, tenon::cast(kFloat64, out), unary());
      } else if (accept("%")) {
        out = division(BinaryOp::kFloorMod, out, unary());
      } else if (accept("*")) {
        out = arithmetic(BinaryOp::kMul, out, unary());
      } else {
        return out;
      }
    }
  }
  Expr unary() {
    const Deeper deeper(*this);
    if (accept("-")) {
      const Expr value = unary();
      return arithmetic(BinaryOp::kSub, imm(value->dtype, int64_t{0}), value);
    }
    return primary();
  }
  Expr primary() {
    if (accept("(")) {
      const Expr out = disjunction();
      if (!accept(")")) fail("`)`");
      return out;
    }
    if (accept("True")) return boolean(true);
    if (accept("False")) return boolean(false);
    const size_t begin = at_;
    if (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') return number();
    while (at_ < text_.size() && (is_word(text_[at_]) || (text_[at_] == '.' && at_ > begin))) ++at_;
    if (at_ == begin) fail("a name or a number");
    std::string name(text_.substr(begin, at_ - begin));
    skip();
    if (accept("[")) {
      const Expr index = number();
      if (!accept("]")) fail("`]`");
      name += fmt::format("[{}]", as_int(index).value_or(-1));
    }
    return named(name);
  }
  Expr named(const std::string& name) const {
    if (const auto known = names_.values.find(name); known != names_.values.end())
      return known->second;
    if (names_.attributes)
      if (const Expr number = names_.attributes->number(name)) return number;
    if (names_.attributes && names_.attributes->has(name))
      throw CompileError(code_, origin_, "{} `{}`: {}", what_, text_,
                         names_.attributes->missing(name));
    std::set<std::string> known;
    for (const auto& [key, value] : names_.values) known.insert(key);
    if (names_.attributes)
      for (const std::string& key : names_.attributes->names()) known.insert(key);
    std::string all;
    for (const std::string& key : known) all += (all.empty() ? "`" : ", `") + key + "`";
    throw CompileError(code_, origin_, "{} `{}` names `{}`; it may use {}", what_, text_, name,
                       all.empty() ? "numbers only" : all);
  }
  Expr number() {
    int64_t whole = 0;
    const char *first = text_.data() + at_, *last = text_.data() + text_.size();
    const auto integer = std::from_chars(first, last, whole);
    if (integer.ec != std::errc()) fail("a number");
    if (integer.ptr != last && (*integer.ptr == '.' || *integer.ptr == 'e')) {
      double real = 0;
      const auto part = std::from_chars(first, last, real);
      at_ = static_cast<size_t>(part.ptr - text_.data());
      skip();
      return imm(kFloat64, real);
    }
    at_ = static_cast<size_t>(integer.ptr - text_.data());
    skip();
    return int64(whole);
  }

  // Attributes that are no whole numbers: nothing is to be proved of them.
  static Expr of_floats(BinaryOp op, double x, double y) {
    switch (op) {
      case BinaryOp::kEQ: return boolean(x == y);
      case BinaryOp::kNE: return boolean(x != y);
      case BinaryOp::kLT: return boolean(x < y);
      case BinaryOp::kLE: return boolean(x <= y);
      case BinaryOp::kGT: return boolean(x > y);
      case BinaryOp::kGE: return boolean(x >= y);
      case BinaryOp::kAdd: return imm(kFloat64, x + y);
      case BinaryOp::kSub: return imm(kFloat64, x - y);
      case BinaryOp::kMul: return imm(kFloat64, x * y);
      default: return {};
    }
  }
  Expr arithmetic(BinaryOp op, const Expr& a, const Expr& b) const {
    const auto operand = [&](const Expr& e, const Expr& other) {
      const DType wanted = other->dtype.is_float() ? other->dtype
                           : e->dtype.is_float()   ? e->dtype
                                                   : kInt64;
      return e->dtype == wanted ? e : tenon::cast(wanted, e);
    };
    const Expr left = operand(a, b), right = operand(b, a);
    const auto x = as_float(left), y = as_float(right);
    if (left->dtype.is_float() && x && y)
      if (const Expr known = of_floats(op, *x, *y)) return known;
    return binary(op, left, right);
  }
  Expr division(BinaryOp op, const Expr& a, const Expr& b) const {
    if (is_int(b, 0) || b->dtype.is_float() || a->dtype.is_float()) fail("a divisor other than 0");
    return arithmetic(op, a, b);
  }

  std::string_view text_;
  const ExpressionNames& names_;
  const Origin& origin_;
  std::string_view what_;
  const Code& code_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Expr parse_expression(std::string_view text, const ExpressionNames& names, const Origin& origin,
                      std::string_view what, const Code& code) {
  constexpr size_t kLongest = 4096;
  if (text.size() > kLongest)
    throw CompileError(code, origin, "{} of {} characters; expected at most {}", what, text.size(),
                       kLongest);
  return ExpressionParser(text, names, origin, what, code).parse();
}

Expr parse_condition(std::string_view text, const ExpressionNames& names, const Origin& origin) {
  const Expr out = parse_expression(text, names, origin, "condition", kBadKernel);
  if (!out->dtype.is_bool())
    throw CompileError(kBadKernel, origin, "condition `{}` is a number; expected a comparison",
                       text);
  return out;
}

}  // namespace tenon::graph
