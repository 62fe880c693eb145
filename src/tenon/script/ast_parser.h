// SPDX-License-Identifier: Apache-2.0
// The parser of Python's syntax, shared by ast.cpp (tokens, errors, entry points),
// ast_statements.cpp and ast_expressions.cpp. No other file includes this.
#pragma once

#include <algorithm>

#include "tenon/script/ast.h"
#include "tenon/support/identifiers.h"

namespace tenon::script::ast {

/// Reads a file in one of two moods. Inside a decorated function or module what is wrong is an
/// error, reported, and the next statement is read. Around them is other Python, of which only
/// constants, imports and helper functions matter: what is not understood there is left out
/// silently.
class Parser {
 public:
  Parser(std::shared_ptr<const SourceFile> file, std::vector<Token> tokens,
         Diagnostics& diagnostics, bool strict = false)
      : file_(std::move(file)),
        diagnostics_(diagnostics),
        tokens_(std::move(tokens)),
        strict_(strict) {}

  Body file();
  ExprPtr only_expression();
  std::vector<ExprPtr> expressions();

 private:
  // -- tokens
  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  const Token& next();
  bool at_line_start() const;
  bool accept(std::string_view op);
  bool accept_name(std::string_view name);
  const Token& expect(std::string_view op);
  const Token& expect_name(std::string_view what);
  void end_of_line();
  void skip_line();

  // -- errors
  Origin origin(const Place& place) const {
    return Origin::script(file_, place.line, place.column, place.length);
  }
  [[noreturn]] void unexpected(std::string_view expected);
  /// Runs `parse`, which adds one statement to `out`. After an error takes back what it added and
  /// goes on behind it.
  template <typename F>
  void guarded(Body& out, const F& parse);
  void resume(int level);

  /// Counts nesting while it lives.
  struct Depth {
    explicit Depth(Parser& parser) : parser(parser) {
      if (++parser.depth_ > kMaxDepth) {
        --parser.depth_;
        throw CompileError(kTooDeep, parser.origin(parser.peek().place),
                           "nesting of more than {} levels", kMaxDepth);
      }
    }
    ~Depth() { --parser.depth_; }
    Parser& parser;
  };
  /// Reports errors, or leaves them out, while it lives.
  struct Mood {
    Mood(Parser& parser, bool strict) : parser(parser), before(parser.strict_) {
      parser.strict_ = strict;
    }
    ~Mood() { parser.strict_ = before; }
    Parser& parser;
    bool before;
  };

  // -- statements (ast_statements.cpp)
  void decorated(Body& out);
  void definition(Body& out);
  StmtPtr names_assigned(size_t begin);
  void refuse_else();
  StmtPtr class_of(bool is_module);
  StmtPtr function(bool has_defaults);
  void parameters(Stmt& function, bool has_defaults);
  void block(Body& out);
  void block_lines(Body& out);
  void statement(Body& out);
  void for_loop(Body& out);
  void if_chain(Body& out);
  void with(Body& out);
  void import(Body& out);
  void simple_line(Body& out);
  void simple(Body& out);

  // -- expressions (ast_expressions.cpp)
  ExprPtr make(ExprKind kind, const Place& place) { return std::make_unique<Expr>(kind, place); }
  void extend(Expr& expr);
  bool begins_expression() const;
  template <typename F>
  ExprPtr list_of(const F& item, bool slices = false);
  ExprPtr expression_list();
  ExprPtr target_list();
  ExprPtr expression();
  ExprPtr lambda();
  ExprPtr binary(int least);
  ExprPtr unary();
  ExprPtr postfix();
  ExprPtr call(ExprPtr callee);
  ExprPtr slice();
  ExprPtr atom();
  ExprPtr list();
  ExprPtr dict();
  ExprPtr number();
  ExprPtr string();

  std::shared_ptr<const SourceFile> file_;
  Diagnostics& diagnostics_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int indent_ = 0, depth_ = 0, chain_ = 0, left_out_ = 0;
  bool strict_;
};

}  // namespace tenon::script::ast
