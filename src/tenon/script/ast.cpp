// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/ast.h"

#include "tenon/script/ast_parser.h"

namespace tenon::script::ast {

// A chain `a + b + c + ...` leans to the left as deep as it is long.
Expr::~Expr() {
  std::vector<ExprPtr> pending;
  const auto take = [&](Expr& expr) {
    for (ExprPtr& item : expr.items)
      if (item) pending.push_back(std::move(item));
    expr.items.clear();
  };
  if (kind != ExprKind::kBinary && kind != ExprKind::kAttribute && kind != ExprKind::kCall &&
      kind != ExprKind::kSubscript)
    return;
  take(*this);
  while (!pending.empty()) {
    const ExprPtr next = std::move(pending.back());
    pending.pop_back();
    take(*next);
  }
}

// ---- tokens -------------------------------------------------------------------------------------

const Token& Parser::next() {
  const Token& token = tokens_[at_];
  if (token.kind == TokenKind::kIndent) ++indent_;
  if (token.kind == TokenKind::kDedent) --indent_;
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::at_line_start() const {
  if (at_ == 0) return true;
  const TokenKind before = tokens_[at_ - 1].kind;
  return before == TokenKind::kNewline || before == TokenKind::kIndent ||
         before == TokenKind::kDedent;
}

bool Parser::accept(std::string_view op) {
  if (!peek().is(op)) return false;
  next();
  return true;
}

bool Parser::accept_name(std::string_view name) {
  if (!peek().is_name(name)) return false;
  next();
  return true;
}

const Token& Parser::expect(std::string_view op) {
  if (!peek().is(op)) unexpected(fmt::format("`{}`", op));
  return next();
}

const Token& Parser::expect_name(std::string_view what) {
  if (peek().kind != TokenKind::kName || is_python_keyword(peek().text)) unexpected(what);
  return next();
}

void Parser::end_of_line() {
  if (accept(";") && peek().kind != TokenKind::kNewline) return;
  if (peek().kind != TokenKind::kNewline) unexpected("the end of the line");
  next();
}

void Parser::skip_line() {
  while (peek().kind != TokenKind::kNewline && peek().kind != TokenKind::kEnd) next();
  if (peek().kind == TokenKind::kNewline) next();
}

// ---- errors -------------------------------------------------------------------------------------

static std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kNewline: return "the end of the line";
    case TokenKind::kIndent: return "more indentation";
    case TokenKind::kDedent: return "the end of the block";
    case TokenKind::kEnd: return "the end of the file";
    default: {
      constexpr size_t kShown = 40;
      std::string text(token.text.substr(0, std::min(token.text.find('\n'), kShown)));
      return "`" + text + "`";
    }
  }
}

void Parser::unexpected(std::string_view expected) {
  const Token& token = peek();
  if (token.kind == TokenKind::kError)
    throw CompileError(kSyntax, origin(token.place), "{}", token.message);
  throw CompileError(kSyntax, origin(token.place), "{}; expected {}", describe(token), expected);
}

// To the next line at indentation `level`, past the block that what was wrong may have.
void Parser::resume(int level) {
  while (peek().kind != TokenKind::kEnd) {
    if (indent_ <= level && at_line_start() && peek().kind != TokenKind::kDedent &&
        peek().kind != TokenKind::kIndent)
      break;
    if (peek().kind == TokenKind::kDedent && indent_ == level) break;
    next();
  }
}

// ---- entry points -------------------------------------------------------------------------------

Body Parser::file() {
  Body out;
  while (peek().kind != TokenKind::kEnd) {
    block_lines(out);
    if (peek().kind == TokenKind::kDedent) next();
  }
  return out;
}

ExprPtr Parser::only_expression() {
  ExprPtr out = expression_list();
  if (peek().kind == TokenKind::kNewline) next();
  if (peek().kind != TokenKind::kEnd) unexpected("the end of the expression");
  return out;
}

std::vector<ExprPtr> Parser::expressions() {
  std::vector<ExprPtr> out;
  const auto is_at_line_end = [&] { return peek().kind == TokenKind::kNewline; };
  while (is_at_line_end()) next();
  while (peek().kind != TokenKind::kEnd) {
    out.push_back(expression());
    if (!accept(",") && !is_at_line_end()) unexpected("`,` or the end of the line");
    while (is_at_line_end()) next();
  }
  return out;
}

Body parse_file(const std::shared_ptr<const SourceFile>& file, Diagnostics& diagnostics,
                OtherPython other, LineRange lines) {
  return Parser(file, tokenize(file, lines), diagnostics, other == OtherPython::kReported).file();
}

std::vector<ExprPtr> parse_expressions(const std::shared_ptr<const SourceFile>& file) {
  std::vector<Token> tokens = tokenize(file);
  std::erase_if(tokens, [](const Token& token) {
    return token.kind == TokenKind::kIndent || token.kind == TokenKind::kDedent;
  });
  Diagnostics diagnostics;
  return Parser(file, std::move(tokens), diagnostics).expressions();
}

ExprPtr parse_expression(const std::shared_ptr<const SourceFile>& file, const std::string& text,
                         const Place& place) {
  const auto inner = std::make_shared<const SourceFile>(SourceFile{file->name, text});
  std::vector<Token> tokens = tokenize(inner);
  for (Token& token : tokens) token.place = place;
  Diagnostics diagnostics;
  return Parser(file, std::move(tokens), diagnostics).only_expression();
}

}  // namespace tenon::script::ast
