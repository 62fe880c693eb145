// SPDX-License-Identifier: Apache-2.0
// Parses statements of Python, and decides which of them belong to modules.
#include "tenon/script/ast_parser.h"

namespace tenon::script::ast {

template <typename F>
void Parser::guarded(Body& out, const F& parse) {
  const size_t complete = out.size(), begin = at_;
  const int level = indent_, depth = depth_;
  try {
    parse();
  } catch (const CompileError& error) {
    out.resize(complete);
    depth_ = depth;
    chain_ = 0;
    if (strict_) {
      diagnostics_.add(error);
      if (StmtPtr names = names_assigned(begin)) out.push_back(std::move(names));
      if (at_ == begin) next();
      resume(level);
    } else {
      constexpr int kMost = 100000;  // of a file that is no Python at all
      if (++left_out_ > kMost)
        throw CompileError(kLimitExceeded, origin(peek().place),
                           "more than {} lines that are no Python", kMost);
      skip_line();  // what it encloses is read as if it stood alone
    }
  }
}

static bool is_decorator(std::string_view name) {
  return name == "ir_module" || name == "prim_func" || name == "function" ||
         name == "extern_func" || name == "macro" || name == "inline";
}

// The last name of a decorator that makes a function or class ours, under any import.
static bool is_ours(const Expr& decorator) {
  const Expr* name = decorator.kind == ExprKind::kCall ? decorator.items[0].get() : &decorator;
  if (name->kind != ExprKind::kAttribute && name->kind != ExprKind::kName) return false;
  if (name->text == "function" && name->kind == ExprKind::kAttribute &&
      name->items[0]->kind == ExprKind::kName)
    return name->items[0]->text == "R" || name->items[0]->text.ends_with("relax") ||
           name->items[0]->text == "rx";
  return is_decorator(name->text);
}

// What a statement that cannot be read would have defined: the names before its `=` or `:`.
StmtPtr Parser::names_assigned(size_t begin) {
  auto out = std::make_unique<Stmt>(StmtKind::kOther, tokens_[begin].place);
  out->target = make(ExprKind::kTuple, out->place);
  for (size_t i = begin; i + 1 < tokens_.size(); i += 2) {
    const Token &name = tokens_[i], &after = tokens_[i + 1];
    if (name.kind != TokenKind::kName || is_python_keyword(name.text)) return nullptr;
    out->target->items.push_back(make(ExprKind::kName, name.place));
    out->target->items.back()->text = std::string(name.text);
    if (after.is("=") || after.is(":")) return out;
    if (!after.is(",")) return nullptr;
  }
  return nullptr;
}

void Parser::decorated(Body& out) {
  const size_t begin = at_;
  const int level = indent_;
  try {
    definition(out);
  } catch (const CompileError& error) {
    // Another's decorator and what stands under it may be anything.
    bool ours = strict_;
    for (size_t i = begin; i <= at_ && !ours; ++i)
      ours = tokens_[i].kind == TokenKind::kName && is_decorator(tokens_[i].text);
    if (!ours) throw;
    diagnostics_.add(error);
    resume(level);
  }
}

void Parser::definition(Body& out) {
  const Place place = peek().place;
  std::vector<ExprPtr> decorators;
  bool ours = false, is_module = false, is_macro = false;
  while (peek().is("@")) {
    const size_t begin = at_;
    try {
      next();
      decorators.push_back(expression());
      end_of_line();
    } catch (const CompileError&) {
      bool named = false;
      for (size_t i = begin; i <= at_ && !named; ++i)
        named = tokens_[i].kind == TokenKind::kName && is_decorator(tokens_[i].text);
      if (named || strict_) throw;
      skip_line();
      continue;
    }
    const Expr& last = *decorators.back();
    if (!is_ours(last)) continue;
    ours = true;
    const std::string& name = last.kind == ExprKind::kCall ? last.items[0]->text : last.text;
    is_module |= name == "ir_module";
    is_macro |= name == "macro" || name == "inline";
  }
  const Mood mood(*this, ours);
  StmtPtr declaration;
  if (peek().is_name("def")) {
    declaration = function(!ours || is_macro);
  } else if (peek().is_name("class")) {
    declaration = class_of(is_module);
  } else {
    unexpected("`def` or `class` after a decorator");
  }
  declaration->decorators = std::move(decorators);
  declaration->place = place;
  out.push_back(std::move(declaration));
}

StmtPtr Parser::class_of(bool is_module) {
  const Mood mood(*this, is_module);
  next();
  const Token& name = expect_name("the name of the class");
  auto out = std::make_unique<Stmt>(StmtKind::kClass, name.place);
  out->text = std::string(name.text);
  out->name_place = name.place;
  if (accept("(")) {
    while (!peek().is(")")) {
      if (peek().kind == TokenKind::kName && peek(1).is("=")) {
        next();
        next();
      }
      expression();
      if (!accept(",")) break;
    }
    expect(")");
  }
  expect(":");
  if (is_module && peek().kind == TokenKind::kNewline && peek(1).kind != TokenKind::kIndent) {
    next();
    unexpected("the indented members of the class");
  }
  block(out->body);
  return out;
}

void Parser::parameters(Stmt& function, bool has_defaults) {
  expect("(");
  while (!peek().is(")")) {
    const bool starred = has_defaults && (peek().is("*") || peek().is("**") || peek().is("/"));
    if (starred) {
      next();
      if (accept(",")) continue;
      if (peek().is(")")) break;
    }
    const Token& parameter = expect_name("a parameter");
    Parameter item{std::string(parameter.text), parameter.place, nullptr, nullptr, starred};
    if (accept(":")) item.annotation = expression();
    if (peek().is("=")) {
      if (!has_defaults) unexpected("`,` or `)`; parameters have no defaults here");
      next();
      item.otherwise = expression();
    }
    function.parameters.push_back(std::move(item));
    if (!accept(",")) break;
  }
  expect(")");
}

StmtPtr Parser::function(bool has_defaults) {
  const Depth depth(*this);
  const size_t errors = diagnostics_.size();
  next();
  const Token& name = expect_name("the name of the function");
  auto out = std::make_unique<Stmt>(StmtKind::kFunction, name.place);
  out->text = std::string(name.text);
  out->name_place = name.place;
  parameters(*out, has_defaults);
  if (accept("->")) out->returns = expression();
  expect(":");
  block(out->body);
  out->damaged = diagnostics_.size() != errors;
  return out;
}

void Parser::block(Body& out) {
  const Depth depth(*this);
  if (peek().kind != TokenKind::kNewline) return simple_line(out);
  next();
  if (peek().kind != TokenKind::kIndent) unexpected("an indented block");
  next();
  block_lines(out);
  if (peek().kind == TokenKind::kDedent) next();
}

void Parser::block_lines(Body& out) {
  int inside = 0;  // blocks of what was left out
  while (peek().kind != TokenKind::kEnd) {
    if (peek().kind == TokenKind::kDedent) {
      if (inside == 0) return;
      --inside;
      next();
      continue;
    }
    if (!strict_ && peek().kind == TokenKind::kIndent) {
      ++inside;
      next();
      continue;
    }
    guarded(out, [&] { statement(out); });
  }
}

void Parser::statement(Body& out) {
  const Token& token = peek();
  if (token.kind == TokenKind::kIndent) unexpected("a statement at the indentation of its block");
  if (token.is("@")) return decorated(out);
  if (token.kind == TokenKind::kName) {
    if (token.text == "for") return for_loop(out);
    if (token.text == "while") {
      auto stmt = std::make_unique<Stmt>(StmtKind::kWhile, token.place);
      next();
      stmt->value = expression();
      expect(":");
      block(stmt->body);
      refuse_else();
      out.push_back(std::move(stmt));
      return;
    }
    if (token.text == "if") return if_chain(out);
    if (token.text == "with") return with(out);
    if (token.text == "def") {
      const Mood mood(*this, strict_);
      out.push_back(function(true));
      return;
    }
    if (token.text == "class" && !strict_) {
      out.push_back(class_of(false));
      return;
    }
    if (token.text == "try" && strict_) {
      while (peek().is_name("try") || peek().is_name("except") || peek().is_name("else") ||
             peek().is_name("finally")) {
        while (peek().kind != TokenKind::kNewline && peek().kind != TokenKind::kEnd) next();
        Body left_out;
        block(left_out);
      }
      throw CompileError(kSyntax, origin(token.place), "`try` has no meaning here");
    }
    if (token.text == "class" || token.text == "try")
      throw CompileError(kSyntax, origin(token.place), "`{}` has no meaning here", token.text);
  }
  simple_line(out);
}

void Parser::for_loop(Body& out) {
  auto stmt = std::make_unique<Stmt>(StmtKind::kFor, next().place);
  stmt->target = target_list();
  if (!accept_name("in")) unexpected("`in`");
  stmt->value = expression_list();
  expect(":");
  block(stmt->body);
  refuse_else();
  out.push_back(std::move(stmt));
}

void Parser::refuse_else() {
  if (!peek().is_name("else")) return;
  const Place place = next().place;
  expect(":");
  Body left_out;
  block(left_out);
  throw CompileError(kUnsupported, origin(place), "`else` of a loop");
}

void Parser::if_chain(Body& out) {
  // `elif` nests in the tree, not on the stack.
  Body* into = &out;
  while (true) {
    auto stmt = std::make_unique<Stmt>(StmtKind::kIf, next().place);
    stmt->value = expression();
    expect(":");
    block(stmt->body);
    Stmt* added = stmt.get();
    into->push_back(std::move(stmt));
    if (peek().is_name("elif")) {
      into = &added->orelse;
      if (++chain_ > kMaxDepth)
        throw CompileError(kTooDeep, origin(peek().place), "more than {} branches", kMaxDepth);
      continue;
    }
    chain_ = 0;
    if (accept_name("else")) {
      expect(":");
      block(added->orelse);
    }
    return;
  }
}

void Parser::with(Body& out) {
  auto stmt = std::make_unique<Stmt>(StmtKind::kWith, next().place);
  // Parentheses round all items, over several lines; otherwise they belong to the first.
  bool enclosed = false;
  if (peek().is("(")) {
    int open = 0;
    for (size_t i = at_; i < tokens_.size() && !enclosed; ++i) {
      const Token& token = tokens_[i];
      if (token.is("(") || token.is("[") || token.is("{")) ++open;
      if (token.is(")") || token.is("]") || token.is("}")) --open;
      if (open == 1 && token.is_name("as")) enclosed = true;
      if (open == 0 || token.kind == TokenKind::kNewline) break;
    }
  }
  if (enclosed) next();
  do {
    if (enclosed && peek().is(")")) break;
    WithItem item;
    item.context = expression();
    if (accept_name("as")) item.target = postfix();
    stmt->items.push_back(std::move(item));
  } while (accept(","));
  if (enclosed) expect(")");
  expect(":");
  block(stmt->body);
  out.push_back(std::move(stmt));
}

// `import a.b as c`, `from a.b import c as d, e`: a name and the path that it stands for, each.
void Parser::import(Body& out) {
  auto stmt = std::make_unique<Stmt>(StmtKind::kImport, peek().place);
  const auto path = [&] {
    std::string text;
    while (peek().is(".") || peek().is("...")) text += next().text;
    if (!text.empty() && peek().is_name("import")) return text;
    text += expect_name("the name of a package").text;
    while (accept(".")) text += "." + std::string(expect_name("the name of a package").text);
    return text;
  };
  const auto bind = [&](const std::string& name, const std::string& what) {
    Parameter binding{name, peek().place, make(ExprKind::kString, stmt->place), nullptr, false};
    binding.annotation->text = what;
    stmt->parameters.push_back(std::move(binding));
  };
  if (accept_name("import")) {
    do {
      const std::string package = path();
      if (accept_name("as")) {
        bind(std::string(expect_name("a name").text), package);
      } else {
        const std::string top = package.substr(0, package.find('.'));
        bind(top, top);
      }
    } while (accept(","));
  } else {
    next();  // from
    const std::string package = path();
    if (!accept_name("import")) unexpected("`import`");
    const bool enclosed = accept("(");
    if (!accept("*")) {
      do {
        if (enclosed && peek().is(")")) break;
        const std::string name(expect_name("a name").text);
        bind(accept_name("as") ? std::string(expect_name("a name").text) : name,
             package + "." + name);
      } while (accept(","));
    }
    if (enclosed) expect(")");
  }
  out.push_back(std::move(stmt));
}

void Parser::simple_line(Body& out) {
  while (true) {
    simple(out);
    if (accept(";")) {
      if (peek().kind == TokenKind::kNewline) break;
      continue;
    }
    break;
  }
  if (peek().kind != TokenKind::kNewline) unexpected("the end of the line");
  next();
}

void Parser::simple(Body& out) {
  const Token& token = peek();
  const auto add = [&](StmtKind kind) -> Stmt& {
    out.push_back(std::make_unique<Stmt>(kind, token.place));
    return *out.back();
  };
  const auto ends = [&] { return peek().kind == TokenKind::kNewline || peek().is(";"); };
  if (token.kind == TokenKind::kName) {
    if (token.text == "pass" || token.text == "break" || token.text == "continue") {
      add(token.text == "pass"    ? StmtKind::kPass
          : token.text == "break" ? StmtKind::kBreak
                                  : StmtKind::kContinue);
      next();
      return;
    }
    if (token.text == "return") {
      Stmt& stmt = add(StmtKind::kReturn);
      next();
      if (!ends()) stmt.value = expression_list();
      return;
    }
    if (token.text == "assert") {
      Stmt& stmt = add(StmtKind::kAssert);
      next();
      stmt.value = expression();
      if (accept(",")) stmt.message = expression();
      return;
    }
    if (token.text == "import" || token.text == "from") return import(out);
    if (token.text == "global" || token.text == "nonlocal" || token.text == "del") {
      add(StmtKind::kOther).text = std::string(token.text);
      while (!ends() && peek().kind != TokenKind::kEnd) next();
      return;
    }
  }
  ExprPtr first = expression_list();
  if (accept(":")) {
    Stmt& stmt = add(StmtKind::kDeclare);
    stmt.target = std::move(first);
    stmt.annotation = expression();
    if (accept("=")) {
      stmt.kind = StmtKind::kAssign;
      stmt.value = expression_list();
    }
    return;
  }
  if (peek().kind == TokenKind::kOperator && peek().text.size() >= 2 && peek().text.back() == '=' &&
      !peek().is("==") && !peek().is("!=") && !peek().is("<=") && !peek().is(">=") &&
      !peek().is(":=")) {
    Stmt& stmt = add(StmtKind::kAugmented);
    const std::string_view text = next().text;
    stmt.text = std::string(text.substr(0, text.size() - 1));
    stmt.target = std::move(first);
    stmt.value = expression_list();
    return;
  }
  if (peek().is("=")) {
    Stmt& stmt = add(StmtKind::kAssign);
    stmt.target = std::move(first);
    while (accept("=")) {
      if (stmt.value) stmt.more_targets.push_back(std::move(stmt.value));
      stmt.value = expression_list();
    }
    return;
  }
  Stmt& stmt = add(StmtKind::kExpr);
  stmt.place = first->place;
  stmt.value = std::move(first);
}

}  // namespace tenon::script::ast
