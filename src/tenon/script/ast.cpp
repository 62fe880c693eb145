#include "tenon/script/ast.h"

#include <algorithm>

#include "tenon/script/literals.h"

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

namespace {

class Parser {
 public:
  Parser(std::shared_ptr<const SourceFile> file, Diagnostics& diagnostics)
      : file_(std::move(file)), diagnostics_(diagnostics), tokens_(tokenize(file_)) {}
  Parser(std::shared_ptr<const SourceFile> file, std::vector<Token> tokens,
         Diagnostics& diagnostics)
      : file_(std::move(file)), diagnostics_(diagnostics), tokens_(std::move(tokens)) {}

  Body file() {
    Body out;
    while (peek().kind != TokenKind::kEnd) {
      if (peek().is("@") && at_line_start()) {
        recover(out, [&] { decorated(out); });
      } else {
        next();  // Python around the module
      }
    }
    return out;
  }

  ExprPtr only_expression() {
    ExprPtr out = expression_list();
    if (peek().kind == TokenKind::kNewline) next();
    if (peek().kind != TokenKind::kEnd) unexpected("the end of the expression");
    return out;
  }

 private:
  // -- tokens

  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  const Token& next() {
    const Token& token = tokens_[at_];
    if (token.kind == TokenKind::kIndent) ++indent_;
    if (token.kind == TokenKind::kDedent) --indent_;
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool at_line_start() const {
    if (at_ == 0) return true;
    const TokenKind before = tokens_[at_ - 1].kind;
    return before == TokenKind::kNewline || before == TokenKind::kIndent ||
           before == TokenKind::kDedent;
  }
  bool accept(std::string_view op) {
    if (!peek().is(op)) return false;
    next();
    return true;
  }
  bool accept_name(std::string_view name) {
    if (!peek().is_name(name)) return false;
    next();
    return true;
  }
  Origin origin(const Place& place) const {
    return Origin::script(file_, place.line, place.column, place.length);
  }

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

  [[noreturn]] void unexpected(std::string_view expected) {
    const Token& token = peek();
    if (token.kind == TokenKind::kError)
      throw CompileError(kSyntax, origin(token.place), "{}", token.message);
    throw CompileError(kSyntax, origin(token.place), "{}; expected {}", describe(token), expected);
  }

  const Token& expect(std::string_view op) {
    if (!peek().is(op)) unexpected(fmt::format("`{}`", op));
    return next();
  }
  const Token& expect_name(std::string_view what) {
    if (peek().kind != TokenKind::kName || is_keyword(peek().text)) unexpected(what);
    return next();
  }
  void end_of_line() {
    if (accept(";") && peek().kind != TokenKind::kNewline) return;
    if (peek().kind != TokenKind::kNewline) unexpected("the end of the line");
    next();
  }

  static bool is_keyword(std::string_view text) {
    static constexpr std::string_view kKeywords[] = {
        "and",   "as",     "assert",   "break", "class", "continue", "def",   "del",    "elif",
        "else",  "except", "finally",  "for",   "from",  "global",   "if",    "import", "in",
        "is",    "lambda", "nonlocal", "not",   "or",    "pass",     "raise", "return", "try",
        "while", "with",   "yield",    "None",  "True",  "False"};
    for (const std::string_view keyword : kKeywords)
      if (keyword == text) return true;
    return false;
  }

  /// Counts nesting while it lives.
  struct Depth {
    explicit Depth(Parser& parser) : parser(parser) {
      if (++parser.depth_ > kMaxDepth)
        throw CompileError(kTooDeep, parser.origin(parser.peek().place),
                           "nesting of more than {} levels", kMaxDepth);
    }
    ~Depth() { --parser.depth_; }
    Parser& parser;
  };

  /// Runs `parse`, which adds to `out`; after an error, takes back what it added and skips to the
  /// next line at this indentation.
  template <typename F>
  void recover(Body& out, const F& parse) {
    const size_t complete = out.size();
    const int level = indent_;
    const size_t begin = at_;
    try {
      parse();
    } catch (const CompileError& error) {
      diagnostics_.add(error);
      out.resize(complete);
      depth_ = 0;
      if (at_ == begin) next();
      while (peek().kind != TokenKind::kEnd) {
        if (indent_ <= level && at_line_start() && peek().kind != TokenKind::kDedent) break;
        if (peek().kind == TokenKind::kDedent && indent_ == level) break;
        next();
      }
    }
  }

  // -- statements

  void decorated(Body& out) {
    const Place place = peek().place;
    std::vector<ExprPtr> decorators;
    while (accept("@")) {
      decorators.push_back(expression());
      end_of_line();
    }
    StmtPtr declaration;
    if (peek().is_name("def")) {
      declaration = function();
    } else if (peek().is_name("class")) {
      declaration = class_of(decorators);
    } else {
      unexpected("`def` or `class` after a decorator");
    }
    if (!declaration) return;
    declaration->decorators = std::move(decorators);
    declaration->place = place;
    out.push_back(std::move(declaration));
  }

  // A decorator that begins a module, under any import: `ir_module`, `I.ir_module`.
  static bool is_module(const std::vector<ExprPtr>& decorators) {
    for (const ExprPtr& decorator : decorators) {
      const Expr* name =
          decorator->kind == ExprKind::kCall ? decorator->items[0].get() : decorator.get();
      if ((name->kind == ExprKind::kAttribute || name->kind == ExprKind::kName) &&
          name->text == "ir_module")
        return true;
    }
    return false;
  }

  StmtPtr class_of(const std::vector<ExprPtr>& decorators) {
    next();
    const Token& name = expect_name("the name of the class");
    auto out = std::make_unique<Stmt>(StmtKind::kClass, name.place);
    out->text = std::string(name.text);
    out->name_place = name.place;
    if (accept("(")) {
      while (!peek().is(")")) {
        expression();
        if (!accept(",")) break;
      }
      expect(")");
    }
    expect(":");
    if (!is_module(decorators)) return nullptr;  // its members are looked at like the file's
    if (peek().kind != TokenKind::kNewline) {
      simple_line(out->body);
      return out;
    }
    next();
    if (peek().kind != TokenKind::kIndent) unexpected("the indented members of the class");
    next();
    while (peek().kind != TokenKind::kDedent && peek().kind != TokenKind::kEnd) {
      recover(out->body, [&] {
        if (peek().is("@")) {
          decorated(out->body);
        } else {
          statement(out->body);
        }
      });
    }
    if (peek().kind == TokenKind::kDedent) next();
    return out;
  }

  StmtPtr function() {
    const Depth depth(*this);
    next();
    const Token& name = expect_name("the name of the function");
    auto out = std::make_unique<Stmt>(StmtKind::kFunction, name.place);
    out->text = std::string(name.text);
    out->name_place = name.place;
    expect("(");
    while (!peek().is(")")) {
      const Token& parameter = expect_name("a parameter");
      Parameter item{std::string(parameter.text), parameter.place, nullptr};
      if (accept(":")) item.annotation = expression();
      if (peek().is("=")) unexpected("`,` or `)`; parameters have no defaults here");
      out->parameters.push_back(std::move(item));
      if (!accept(",")) break;
    }
    expect(")");
    if (accept("->")) out->returns = expression();
    expect(":");
    block(out->body);
    return out;
  }

  void block(Body& out) {
    const Depth depth(*this);
    if (peek().kind != TokenKind::kNewline) return simple_line(out);
    next();
    if (peek().kind != TokenKind::kIndent) unexpected("an indented block");
    next();
    while (peek().kind != TokenKind::kDedent && peek().kind != TokenKind::kEnd) statement(out);
    if (peek().kind == TokenKind::kDedent) next();
  }

  void statement(Body& out) {
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
        out.push_back(std::move(stmt));
        return;
      }
      if (token.text == "if") return if_chain(out);
      if (token.text == "with") return with(out);
      if (token.text == "def") {
        out.push_back(function());
        return;
      }
      if (token.text == "class" || token.text == "try")
        throw CompileError(kSyntax, origin(token.place), "`{}` has no meaning here", token.text);
    }
    simple_line(out);
  }

  void for_loop(Body& out) {
    auto stmt = std::make_unique<Stmt>(StmtKind::kFor, next().place);
    stmt->target = target_list();
    if (!accept_name("in")) unexpected("`in`");
    stmt->value = expression_list();
    expect(":");
    block(stmt->body);
    out.push_back(std::move(stmt));
  }

  void if_chain(Body& out) {
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

  void with(Body& out) {
    auto stmt = std::make_unique<Stmt>(StmtKind::kWith, next().place);
    do {
      WithItem item;
      item.context = expression();
      if (accept_name("as")) item.target = target_list();
      stmt->items.push_back(std::move(item));
    } while (accept(","));
    expect(":");
    block(stmt->body);
    out.push_back(std::move(stmt));
  }

  void simple_line(Body& out) {
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

  void simple(Body& out) {
    const Token& token = peek();
    const auto add = [&](StmtKind kind) -> Stmt& {
      out.push_back(std::make_unique<Stmt>(kind, token.place));
      return *out.back();
    };
    const auto ends = [&] { return peek().kind == TokenKind::kNewline || peek().is(";"); };
    if (token.kind == TokenKind::kName) {
      if (token.text == "pass") {
        add(StmtKind::kPass);
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
      if (token.text == "import" || token.text == "from" || token.text == "global" ||
          token.text == "del") {
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
    if (peek().kind == TokenKind::kOperator && peek().text.size() >= 2 &&
        peek().text.back() == '=' && !peek().is("==") && !peek().is("!=") && !peek().is("<=") &&
        !peek().is(">=") && !peek().is(":=")) {
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

  // -- expressions

  ExprPtr make(ExprKind kind, const Place& place) { return std::make_unique<Expr>(kind, place); }

  // From the start of `first` to the end of what was read last, on one line.
  void extend(Expr& expr) {
    const Token& last = tokens_[at_ - 1];
    if (last.place.line != expr.place.line) return;
    const uint32_t end = last.place.column + last.place.length;
    if (end > expr.place.column) expr.place.length = end - expr.place.column;
  }

  bool begins_expression() const {
    const Token& token = peek();
    switch (token.kind) {
      case TokenKind::kName:
        return !is_keyword(token.text) || token.text == "not" || token.text == "lambda" ||
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
  ExprPtr list_of(const F& item) {
    ExprPtr first = item();
    if (!peek().is(",")) return first;
    ExprPtr out = make(ExprKind::kTuple, first->place);
    out->items.push_back(std::move(first));
    while (accept(",")) {
      if (!begins_expression()) break;
      out->items.push_back(item());
    }
    extend(*out);
    return out;
  }

  ExprPtr expression_list() {
    return list_of([&] { return expression(); });
  }
  // Targets of a loop stop before `in`.
  ExprPtr target_list() {
    return list_of([&] { return postfix(); });
  }

  ExprPtr expression() {
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

  ExprPtr lambda() {
    ExprPtr out = make(ExprKind::kLambda, next().place);
    while (!peek().is(":")) {
      if (accept("*")) out->operators.emplace_back("*");
      out->operators.emplace_back(expect_name("a parameter").text);
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
  ExprPtr binary(int least) {
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
      const int strength = strength_of(peek());
      if (strength == 0 || strength < least) return left;
      if (++chain > kMaxChain)
        throw CompileError(kTooDeep, origin(peek().place), "a chain of more than {} operators",
                           kMaxChain);
      const Token& op = peek();
      if (op.is_name("in") || op.is_name("is"))
        throw CompileError(kUnsupported, origin(op.place), "operator `{}`", op.text);
      next();
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
        left->operators.emplace_back(op.text);
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

  ExprPtr unary() {
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

  ExprPtr postfix() {
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
        access->items.push_back(list_of([&] { return slice(); }));
        expect("]");
        out = std::move(access);
      } else {
        return out;
      }
      extend(*out);
    }
  }

  ExprPtr call(ExprPtr callee) {
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

  ExprPtr slice() {
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

  ExprPtr atom() {
    const Token& token = peek();
    if (token.kind == TokenKind::kNumber) return number();
    if (token.kind == TokenKind::kString) return string();
    if (token.kind == TokenKind::kName && !is_keyword(token.text)) {
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
    if (token.is("[")) {
      ExprPtr out = make(ExprKind::kList, next().place);
      while (!peek().is("]")) {
        out->items.push_back(expression());
        if (!accept(",")) break;
      }
      expect("]");
      extend(*out);
      return out;
    }
    if (token.is("{")) {
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
    unexpected("an expression");
  }

  ExprPtr number() {
    const Token& token = next();
    const Number value = read_number(file_, token);
    ExprPtr out = make(value.is_float ? ExprKind::kFloat : ExprKind::kInteger, token.place);
    out->integer = value.integer;
    out->number = value.number;
    return out;
  }

  // Strings side by side are one.
  ExprPtr string() {
    ExprPtr out = make(ExprKind::kString, peek().place);
    while (peek().kind == TokenKind::kString) out->text += read_string(file_, next());
    extend(*out);
    return out;
  }

  std::shared_ptr<const SourceFile> file_;
  Diagnostics& diagnostics_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int indent_ = 0, depth_ = 0, chain_ = 0;
};

}  // namespace

Body parse_file(const std::shared_ptr<const SourceFile>& file, Diagnostics& diagnostics) {
  return Parser(file, diagnostics).file();
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
