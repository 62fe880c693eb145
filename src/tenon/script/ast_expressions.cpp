// SPDX-License-Identifier: Apache-2.0
// Parses expressions of Python.
#include "tenon/script/ast_parser.h"
#include "tenon/script/literals.h"

namespace tenon::script::ast {

// From the start of `first` to the end of what was read last, on one line.
void Parser::extend(Expr& expr) {
  const Token& last = tokens_[at_ - 1];
  if (last.place.line != expr.place.line) return;
  const uint32_t end = last.place.column + last.place.length;
  if (end > expr.place.column) expr.place.length = end - expr.place.column;
}

bool Parser::begins_expression() const {
  const Token& token = peek();
  switch (token.kind) {
    case TokenKind::kName:
      return !is_python_keyword(token.text) || token.text == "not" || token.text == "lambda" ||
             token.text == "None" || token.text == "True" || token.text == "False";
    case TokenKind::kNumber:
    case TokenKind::kString: return true;
    case TokenKind::kOperator:
      return token.is("(") || token.is("[") || token.is("{") || token.is("-") || token.is("+") ||
             token.is("~") || token.is("*") || token.is("...");
    default: return false;
  }
}

// `a, b` without parentheses is a tuple.
template <typename F>
ExprPtr Parser::list_of(const F& item, bool slices) {
  ExprPtr first = item();
  if (!peek().is(",")) return first;
  ExprPtr out = make(ExprKind::kTuple, first->place);
  out->items.push_back(std::move(first));
  while (accept(",")) {
    if (!begins_expression() && !(slices && peek().is(":"))) break;
    out->items.push_back(item());
  }
  extend(*out);
  return out;
}

ExprPtr Parser::expression_list() {
  return list_of([&] { return expression(); });
}
// Targets of a loop stop before `in`.
ExprPtr Parser::target_list() {
  return list_of([&] {
    if (!peek().is("*")) return postfix();
    ExprPtr out = make(ExprKind::kStarred, next().place);
    out->items.push_back(postfix());
    return out;
  });
}

ExprPtr Parser::expression() {
  const Depth depth(*this);
  if (peek().is_name("lambda")) return lambda();
  if (peek().is("*")) {
    ExprPtr out = make(ExprKind::kStarred, next().place);
    out->items.push_back(expression());
    return out;
  }
  ExprPtr value = binary(0);
  if (!peek().is_name("if")) return value;
  next();
  ExprPtr out = make(ExprKind::kIfElse, value->place);
  out->items.push_back(binary(0));
  if (!accept_name("else")) unexpected("`else`");
  out->items.push_back(std::move(value));
  out->items.push_back(expression());
  extend(*out);
  return out;
}

ExprPtr Parser::lambda() {
  ExprPtr out = make(ExprKind::kLambda, next().place);
  while (!peek().is(":")) {
    if (accept("*")) {
      if (accept(",")) continue;  // parameters by name follow
      out->operators.emplace_back("*" + std::string(expect_name("a parameter").text));
    } else {
      const Token& name = expect_name("a parameter");
      out->operators.emplace_back(name.text);
      if (accept("=")) out->keywords.push_back({std::string(name.text), name.place, expression()});
    }
    if (!accept(",")) break;
  }
  expect(":");
  out->items.push_back(expression());
  extend(*out);
  return out;
}

static int strength_of(const Token& token) {
  if (token.kind == TokenKind::kName) {
    if (token.text == "or") return 1;
    if (token.text == "and") return 2;
    if (token.text == "in" || token.text == "is") return 4;
    return 0;
  }
  if (token.kind != TokenKind::kOperator) return 0;
  const std::string_view t = token.text;
  if (t == "<" || t == ">" || t == "<=" || t == ">=" || t == "==" || t == "!=") return 4;
  if (t == "|") return 5;
  if (t == "^") return 6;
  if (t == "&") return 7;
  if (t == "<<" || t == ">>") return 8;
  if (t == "+" || t == "-") return 9;
  if (t == "*" || t == "/" || t == "//" || t == "%" || t == "@") return 10;
  return 0;
}

// Precedence climbing: operators at least as strong as `least`.
ExprPtr Parser::binary(int least) {
  ExprPtr left;
  if (peek().is_name("not") && least <= 3) {
    const Depth depth(*this);
    left = make(ExprKind::kUnary, next().place);
    left->text = "not";
    left->items.push_back(binary(3));
    extend(*left);
  } else {
    left = unary();
  }
  int chain = 0;
  while (true) {
    const bool negated = peek().is_name("not") && peek(1).is_name("in");
    const int strength = negated ? 4 : strength_of(peek());
    if (strength == 0 || strength < least) return left;
    if (++chain > kMaxChain)
      throw CompileError(kTooDeep, origin(peek().place), "a chain of more than {} operators",
                         kMaxChain);
    const Token& op = peek();
    std::string text(op.text);
    next();
    if (negated || (text == "is" && peek().is_name("not"))) text += " " + std::string(next().text);
    const Depth depth(*this);
    if (strength <= 2) {
      ExprPtr right = binary(strength + 1);
      if (left->kind != ExprKind::kBool || left->text != op.text || left->parenthesised) {
        ExprPtr out = make(ExprKind::kBool, left->place);
        out->text = std::string(op.text);
        out->items.push_back(std::move(left));
        left = std::move(out);
      }
      left->items.push_back(std::move(right));
    } else if (strength == 4) {
      ExprPtr right = binary(strength + 1);
      if (left->kind != ExprKind::kCompare || left->parenthesised) {
        ExprPtr out = make(ExprKind::kCompare, left->place);
        out->items.push_back(std::move(left));
        left = std::move(out);
      }
      left->operators.push_back(std::move(text));
      left->items.push_back(std::move(right));
    } else {
      ExprPtr out = make(ExprKind::kBinary, left->place);
      out->text = std::string(op.text);
      ExprPtr right = binary(strength + 1);
      out->items.push_back(std::move(left));
      out->items.push_back(std::move(right));
      left = std::move(out);
    }
    extend(*left);
  }
}

ExprPtr Parser::unary() {
  const Token& token = peek();
  if (token.is("-") || token.is("+") || token.is("~")) {
    const Depth depth(*this);
    ExprPtr out = make(ExprKind::kUnary, next().place);
    out->text = std::string(token.text);
    out->items.push_back(unary());
    extend(*out);
    return out;
  }
  ExprPtr base = postfix();
  if (!peek().is("**")) return base;
  const Depth depth(*this);
  next();
  ExprPtr out = make(ExprKind::kBinary, base->place);
  out->text = "**";
  out->items.push_back(std::move(base));
  out->items.push_back(unary());
  extend(*out);
  return out;
}

ExprPtr Parser::postfix() {
  ExprPtr out = atom();
  int chain = 0;
  while (true) {
    if (++chain > kMaxDepth)
      throw CompileError(kTooDeep, origin(peek().place), "a chain of more than {} accesses",
                         kMaxDepth);
    if (accept(".")) {
      ExprPtr access = make(ExprKind::kAttribute, out->place);
      access->text = std::string(expect_name("the name of an attribute").text);
      access->items.push_back(std::move(out));
      out = std::move(access);
    } else if (peek().is("(")) {
      out = call(std::move(out));
    } else if (peek().is("[")) {
      next();
      ExprPtr access = make(ExprKind::kSubscript, out->place);
      access->items.push_back(std::move(out));
      if (peek().is("]")) unexpected("an index");
      access->items.push_back(list_of([&] { return slice(); }, true));
      expect("]");
      out = std::move(access);
    } else {
      return out;
    }
    extend(*out);
  }
}

ExprPtr Parser::call(ExprPtr callee) {
  const Depth depth(*this);
  next();
  ExprPtr out = make(ExprKind::kCall, callee->place);
  out->items.push_back(std::move(callee));
  while (!peek().is(")")) {
    if (peek().is("**")) throw CompileError(kUnsupported, origin(peek().place), "`**` in a call");
    if (peek().kind == TokenKind::kName && peek(1).is("=")) {
      Keyword keyword{std::string(peek().text), peek().place, nullptr};
      next();
      next();
      keyword.value = expression();
      out->keywords.push_back(std::move(keyword));
    } else {
      if (!out->keywords.empty()) unexpected("a keyword argument, or `)`");
      out->items.push_back(expression());
    }
    if (!accept(",")) break;
  }
  expect(")");
  return out;
}

ExprPtr Parser::slice() {
  const Place place = peek().place;
  ExprPtr begin;
  if (!peek().is(":")) begin = expression();
  if (!peek().is(":")) return begin;
  ExprPtr out = make(ExprKind::kSlice, place);
  out->items.push_back(std::move(begin));
  out->items.resize(3);
  for (size_t i = 1; i < 3 && accept(":"); ++i)
    if (!peek().is(":") && !peek().is(",") && !peek().is("]")) out->items[i] = expression();
  extend(*out);
  return out;
}

ExprPtr Parser::atom() {
  const Token& token = peek();
  if (token.kind == TokenKind::kNumber) return number();
  if (token.kind == TokenKind::kString) return string();
  if (token.kind == TokenKind::kName && !is_python_keyword(token.text)) {
    ExprPtr out = make(ExprKind::kName, token.place);
    out->text = std::string(next().text);
    return out;
  }
  if (token.is_name("True") || token.is_name("False") || token.is_name("None")) {
    next();
    return make(token.text == "True"    ? ExprKind::kTrue
                : token.text == "False" ? ExprKind::kFalse
                                        : ExprKind::kNone,
                token.place);
  }
  if (token.is("...")) return make(ExprKind::kEllipsis, next().place);
  if (token.is("(")) {
    next();
    ExprPtr out;
    if (peek().is(")")) {
      out = make(ExprKind::kTuple, token.place);
    } else {
      out = expression_list();
    }
    expect(")");
    out->parenthesised = true;
    if (out->kind == ExprKind::kTuple) {
      out->place = token.place;
      extend(*out);
    }
    return out;
  }
  if (token.is("[")) return list();
  if (token.is("{")) return dict();
  unexpected("an expression");
}

ExprPtr Parser::list() {
  ExprPtr out = make(ExprKind::kList, next().place);
  while (!peek().is("]")) {
    out->items.push_back(expression());
    if (out->items.size() == 1 && accept_name("for")) {
      out->kind = ExprKind::kListOf;
      out->items.push_back(target_list());
      if (!accept_name("in")) unexpected("`in`");
      out->items.push_back(binary(0));
      out->items.push_back(accept_name("if") ? binary(0) : nullptr);
      break;
    }
    if (!accept(",")) break;
  }
  expect("]");
  extend(*out);
  return out;
}

ExprPtr Parser::dict() {
  ExprPtr out = make(ExprKind::kDict, next().place);
  while (!peek().is("}")) {
    out->items.push_back(expression());
    expect(":");
    out->items.push_back(expression());
    if (!accept(",")) break;
  }
  expect("}");
  extend(*out);
  return out;
}

ExprPtr Parser::number() {
  const Token& token = next();
  const Number value = read_number(file_, token);
  ExprPtr out = make(value.is_float ? ExprKind::kFloat : ExprKind::kInteger, token.place);
  out->integer = value.integer;
  out->number = value.number;
  return out;
}

// Strings side by side are one.
ExprPtr Parser::string() {
  const Place place = peek().place;
  std::vector<ExprPtr> pieces;
  const auto text = [&]() -> std::string& {
    if (pieces.empty() || pieces.back()->kind != ExprKind::kString)
      pieces.push_back(make(ExprKind::kString, place));
    return pieces.back()->text;
  };
  text();
  bool is_format = false;
  while (peek().kind == TokenKind::kString) {
    const Token& token = next();
    if (!is_format_string(token)) {
      text() += read_string(file_, token);
      continue;
    }
    is_format = true;
    for (const FormatPiece& piece : read_format(file_, token)) {
      if (piece.is_expression) {
        const Depth depth(*this);
        pieces.push_back(parse_expression(file_, piece.text, token.place));
      } else {
        text() += piece.text;
      }
    }
  }
  ExprPtr out = is_format ? make(ExprKind::kFormat, place) : std::move(pieces[0]);
  if (is_format) out->items = std::move(pieces);
  extend(*out);
  return out;
}

}  // namespace tenon::script::ast
