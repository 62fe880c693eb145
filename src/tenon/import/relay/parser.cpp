// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/relay/parser.h"

#include <map>
#include <set>

#include "tenon/import/relay/number.h"

namespace tenon::relay {

namespace {

constexpr int kDeepest = 200;       // levels of brackets, functions and types
constexpr uint32_t kHighest = 600;  // of a tree: chains such as `a + b + c` add to it too

using Kind = Tree::Kind;

class Parser {
 public:
  Parser(const std::shared_ptr<const SourceFile>& file, const std::vector<Token>& tokens)
      : file_(file), tokens_(tokens) {}

  ModuleTree module() {
    std::vector<Parameter> free_vars;
    while (peek().kind != RelayToken::kEnd) {
      const Token& token = peek();
      if (token.kind == RelayToken::kScript) {
        tree_.scripts.emplace_back(token.text, token.place);
        ++at_;
      } else if (token.is_name("def")) {
        definition();
      } else if (token.is_name("free_var")) {
        ++at_;
        free_vars.push_back(parameter());
        accept(";");
      } else if (token.is_name("type") || token.is_name("extern")) {
        skip_type_definition();
      } else if (token.kind == RelayToken::kGlobal && peek(1).is("=")) {
        at_ += 2;
        if (peek().kind != RelayToken::kScript)
          fail(kUnsupported, token.place,
               "a PrimFunc in the text of TVM 0.9; expected TVMScript, `@T.prim_func`");
      } else {
        whole_expression(std::move(free_vars));
        break;
      }
    }
    if (peek().kind != RelayToken::kEnd) unexpected("the end of the text");
    if (tree_.definitions.empty() && tree_.scripts.empty())
      fail(kSyntax, peek().place, "the text has no function; expected `def @main(...)`");
    return std::move(tree_);
  }

  TypeTree only_type() {
    TypeTree out = type();
    return out;
  }

 private:
  // ---- tokens

  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  bool accept(std::string_view op) {
    if (!peek().is(op)) return false;
    ++at_;
    return true;
  }
  const Token& expect(std::string_view op, std::string_view where) {
    if (!peek().is(op)) unexpected(fmt::format("`{}` {}", op, where));
    return tokens_[at_++];
  }
  const Token& expect(RelayToken kind, std::string_view what) {
    if (peek().kind != kind) unexpected(what);
    return tokens_[at_++];
  }

  template <typename... Args>
  [[noreturn]] void fail(const Code& code, const Place& at, fmt::format_string<Args...> format,
                         Args&&... args) const {
    throw CompileError(code, Origin::script(file_, at.line, at.column, at.length), format,
                       std::forward<Args>(args)...);
  }
  [[noreturn]] void unexpected(std::string_view wanted) const {
    const Token& seen = peek();
    if (seen.kind == RelayToken::kEnd)
      fail(kSyntax, seen.place, "the text ends here; expected {}", wanted);
    fail(kSyntax, seen.place, "`{}` here; expected {}", spelled(seen), wanted);
  }
  static std::string spelled(const Token& token) {
    constexpr size_t kMost = 60;
    const std::string text(token.text.substr(0, kMost));
    if (token.kind == RelayToken::kLocal) return "%" + text;
    return token.kind == RelayToken::kGlobal ? "@" + text : text;
  }

  class Deeper {
   public:
    explicit Deeper(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kDeepest)
        parser_.fail(kTooDeep, parser_.peek().place, "nested more than {} deep", kDeepest);
    }
    ~Deeper() { --parser_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    Parser& parser_;
  };

  // From an opening bracket to behind the one that closes it.
  void skip_balanced() {
    const Token& opened = peek();
    size_t depth = 0;
    do {
      const Token& token = peek();
      if (token.kind == RelayToken::kEnd)
        fail(kSyntax, opened.place, "`{}` is not closed", opened.text);
      if (token.is("(") || token.is("[") || token.is("{")) ++depth;
      if (token.is(")") || token.is("]") || token.is("}")) --depth;
      ++at_;
    } while (depth > 0);
  }

  // ---- module level

  void definition() {
    ++at_;
    const Token& name = expect(RelayToken::kGlobal, "a name, `@...`, after `def`");
    Definition out;
    out.name = std::string(name.text);
    out.place = name.place;
    out.generic = peek().is("[");
    if (out.generic) skip_balanced();
    callees_.clear();
    out.function = function_after_name(name.place);
    out.callees = std::move(callees_);
    if (!names_.insert(out.name).second)
      fail(kRedefined, name.place, "function `@{}` is defined twice", out.name);
    tree_.definitions.push_back(std::move(out));
  }

  // Text of an expression: a function, or one over free variables.
  void whole_expression(std::vector<Parameter> free_vars) {
    const Place place = peek().place;
    if (!tree_.definitions.empty()) unexpected("`def` or the end of the text");
    callees_.clear();
    Definition out;
    out.name = "main";
    out.place = place;
    out.function.place = place;
    out.function.body = block();
    Tree& result = *out.function.body.result;
    if (free_vars.empty() && out.function.body.bindings.empty() && result.kind == Kind::kFunction) {
      FunctionTree function = std::move(*result.function);
      out.function = std::move(function);
    } else {
      out.function.params = std::move(free_vars);
    }
    out.callees = std::move(callees_);
    tree_.definitions.push_back(std::move(out));
  }

  // Algebraic data types are read over: who uses one is refused.
  void skip_type_definition() {
    const bool is_extern = peek().is_name("extern");
    ++at_;
    if (is_extern && peek().is_name("type")) ++at_;
    expect(RelayToken::kName, "the name of a type");
    if (peek().is("[")) skip_balanced();
    if (peek().is("{")) skip_balanced();
  }

  // ---- functions

  FunctionTree function_after_name(const Place& place) {
    FunctionTree out;
    out.place = place;
    expect("(", "before the parameters");
    while (!peek().is(")")) {
      const Token& token = peek();
      if (token.kind == RelayToken::kLocal) {
        if (!out.attrs.empty()) unexpected("an attribute, `name=value`");
        out.params.push_back(parameter());
      } else if (token.kind == RelayToken::kName || token.kind == RelayToken::kString) {
        add_attribute(out.attrs);
      } else {
        unexpected("a parameter, `%name`, or an attribute, `name=value`");
      }
      if (!accept(",")) break;
    }
    expect(")", "after the parameters");
    if (accept("->")) out.result = type();
    expect("{", "before the body of a function");
    out.body = block();
    expect("}", "after the body of a function");
    return out;
  }

  Parameter parameter() {
    const Token& name = expect(RelayToken::kLocal, "a variable, `%name`");
    Parameter out{std::string(name.text), name.place, std::nullopt, {}};
    if (peek().is("{")) skip_balanced();  // a virtual device
    if (accept(":")) out.type = type();
    if (peek().is("{")) skip_balanced();
    out.comment = tokens_[at_ - 1].comment;
    return out;
  }

  Block block() {
    Block out;
    while (true) {
      const bool is_let = peek().is_name("let");
      const bool is_graph = peek().kind == RelayToken::kLocal && peek(1).is("=");
      if (!is_let && !is_graph) break;
      if (is_let) ++at_;
      const Token& name = expect(RelayToken::kLocal, "a variable, `%name`, after `let`");
      Binding binding{std::string(name.text), name.place, std::nullopt, nullptr};
      if (peek().is("{")) skip_balanced();
      if (accept(":")) binding.type = type();
      expect("=", "after the variable of a binding");
      binding.value = expression();
      // The printer's comment stands before or behind the semicolon.
      const Token& semicolon = expect(";", "after a binding");
      if (binding.value->comment.empty()) binding.value->comment = semicolon.comment;
      out.bindings.push_back(std::move(binding));
    }
    out.result = expression();
    if (accept(";") && out.result->comment.empty()) out.result->comment = tokens_[at_ - 1].comment;
    return out;
  }

  // ---- types

  TypeTree type() {
    const Deeper deeper(*this);
    const Token& token = peek();
    TypeTree out;
    out.place = token.place;
    if (token.is("(")) {
      ++at_;
      out.kind = TypeTree::Kind::kTuple;
      bool comma = false;
      while (!peek().is(")")) {
        out.items.push_back(type());
        comma = accept(",");
        if (!comma) break;
      }
      expect(")", "after the types of a tuple");
      if (out.items.size() == 1 && !comma) return std::move(out.items[0]);
      return out;
    }
    if (token.is("?")) {
      ++at_;
      out.text = "?";
      return out;
    }
    expect(RelayToken::kName, "a type");
    if (token.text == "Tensor") {
      tensor(out);
      return out;
    }
    if (token.text == "fn") {
      out.kind = TypeTree::Kind::kFunction;
      if (peek().is("[")) skip_balanced();
      expect("(", "before the types of a function's parameters");
      while (!peek().is(")")) {
        out.items.push_back(type());
        if (!accept(",")) break;
      }
      expect(")", "after the types of a function's parameters");
      expect("->", "before the type of a function's result");
      out.items.push_back(type());
      return out;
    }
    const std::string name = token.text == "uint1" ? "bool" : std::string(token.text);
    if (const auto dtype = DType::parse(name); dtype && !dtype->is_void() && !dtype->is_handle()) {
      out.kind = TypeTree::Kind::kTensor;
      out.dtype = name;
      return out;
    }
    out.text = std::string(token.text);
    if (peek().is("[") || peek().is("(")) skip_balanced();
    return out;
  }

  void tensor(TypeTree& out) {
    out.kind = TypeTree::Kind::kTensor;
    expect("[", "after `Tensor`");
    expect("(", "before the dimensions of a tensor");
    while (!peek().is(")")) {
      out.dims.push_back(dimension());
      if (!accept(",")) break;
    }
    expect(")", "after the dimensions of a tensor");
    expect(",", "after the dimensions of a tensor");
    const Token& dtype = peek();
    if (dtype.kind == RelayToken::kString) {
      ++at_;
      out.dtype = std::string(dtype.text.substr(1, dtype.text.size() - 2));
    } else {
      out.dtype = std::string(expect(RelayToken::kName, "an element type").text);
    }
    if (out.dtype == "uint1") out.dtype = "bool";
    const auto known = DType::parse(out.dtype);
    if (!known || known->is_void() || known->is_handle() || known->is_vector())
      fail(kBadLiteral, dtype.place, "`{}` is no element type", out.dtype);
    expect("]", "after the element type of a tensor");
  }

  Dimension dimension() {
    const Token& token = peek();
    if (token.is("(") && peek(1).kind == RelayToken::kName && peek(2).is(")")) {
      at_ += 3;  // a cast in front, `(int64)64`
      return dimension();
    }
    ++at_;
    if (token.is("?")) return {};
    if (token.kind == RelayToken::kName || token.kind == RelayToken::kLocal)
      return {std::nullopt, std::string(token.text)};
    if (token.kind != RelayToken::kNumber) {
      --at_;
      unexpected("a dimension: a number, `?` or a name");
    }
    const auto number = read_number(token.text, false);
    if (!number || number->is_float || number->integer < 0)
      fail(kBadLiteral, token.place, "`{}` is no dimension", token.text);
    return {number->integer, {}};
  }

  // ---- attributes

  void add_attribute(std::vector<Attribute>& attrs) {
    constexpr size_t kMost = 256;
    Attribute attr = attribute();
    for (const Attribute& other : attrs)
      if (other.name == attr.name)
        fail(kRedefined, attr.place, "attribute `{}` is given twice", attr.name);
    if (attrs.size() >= kMost) fail(kLimitExceeded, attr.place, "more than {} attributes", kMost);
    attrs.push_back(std::move(attr));
  }

  Attribute attribute() {
    const Token& name = tokens_[at_++];
    Attribute out;
    out.name = name.kind == RelayToken::kString ? unescaped(name) : std::string(name.text);
    out.place = name.place;
    expect("=", fmt::format("after attribute `{}`", out.name));
    attribute_value(out);
    return out;
  }

  void attribute_value(Attribute& out) {
    const Deeper deeper(*this);
    const Token& token = peek();
    if (token.kind == RelayToken::kString) {
      ++at_;
      out.value = unescaped(token);
      return;
    }
    const bool negative = token.is("-");
    if (const auto number = number_at(negative ? 1 : 0, negative)) {
      at_ += negative ? 2 : 1;
      out.value = number->is_float ? AttrValue(number->real) : AttrValue(number->integer);
      return;
    }
    if (token.is("[") || token.is("(")) return list(out);
    if (token.is("{")) {
      skip_balanced();
      out.opaque = true;
      return;
    }
    if (token.kind == RelayToken::kName) {
      if (token.text == "True" || token.text == "False") {
        ++at_;
        out.value = token.text == "True";
        return;
      }
      if (token.text == "None" || token.text == "nullptr") {
        ++at_;
        out.is_none = true;
        return;
      }
      if (token.text == "meta") {
        (void)expression();
        out.opaque = true;
        return;
      }
      if (!peek(1).is("(")) {
        ++at_;
        out.value = std::string(token.text);
        return;
      }
      if (!DType::parse(token.text)) {  // `VirtualDevice(...)`
        ++at_;
        skip_balanced();
        out.opaque = true;
        return;
      }
    }
    TreePtr tree = expression();
    if (tree->kind == Kind::kConstant) {
      const auto dtype = DType::parse(tree->dtype);
      if (dtype->is_bool()) {
        out.value = tree->integer != 0;
      } else {
        out.value = dtype->is_float() ? AttrValue(tree->number) : AttrValue(tree->integer);
      }
      return;
    }
    out.tree = std::move(tree);
  }

  void list(Attribute& out) {
    const std::string_view close = peek().is("[") ? "]" : ")";
    ++at_;
    AttrList items;
    while (!peek().is(close)) {
      Attribute item;
      attribute_value(item);
      out.opaque = out.opaque || item.opaque || item.tree;
      items.push_back(item.is_none ? AttrValue() : std::move(item.value));
      if (!accept(",")) break;
    }
    expect(close, "after the items of a list");
    if (!out.opaque) out.value = std::move(items);
  }

  std::string unescaped(const Token& token) const {
    std::string out;
    const std::string_view inside = token.text.substr(1, token.text.size() - 2);
    for (size_t i = 0; i < inside.size(); ++i) {
      if (inside[i] != '\\' || i + 1 == inside.size()) {
        out += inside[i];
        continue;
      }
      const char c = inside[++i];
      out += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
    }
    return out;
  }

  // ---- values

  TreePtr make_tree(Kind kind, const Place& place) const {
    auto tree = std::make_unique<Tree>();
    tree->kind = kind;
    tree->place = place;
    return tree;
  }

  // With its height set.
  TreePtr measured(TreePtr tree) const {
    uint32_t most = 0;
    const auto add = [&](const TreePtr& part) {
      if (part) most = std::max(most, part->height);
    };
    const auto add_block = [&](const Block& block) {
      for (const Binding& binding : block.bindings) add(binding.value);
      add(block.result);
    };
    for (const TreePtr& item : tree->items) add(item);
    for (const Attribute& attr : tree->attrs) add(attr.tree);
    for (const Block& block : tree->blocks) add_block(block);
    if (tree->function) add_block(tree->function->body);
    tree->height = most + 1;
    if (tree->height > kHighest)
      fail(kTooDeep, tree->place, "an expression of more than {} levels", kHighest);
    return tree;
  }

  static TreePtr make_call(const Place& place, std::string op, TreePtr a, TreePtr b = nullptr) {
    auto tree = std::make_unique<Tree>();
    tree->kind = Kind::kOperator;
    tree->place = place;
    tree->text = std::move(op);
    tree->items.push_back(std::move(a));
    if (b) tree->items.push_back(std::move(b));
    return tree;
  }

  struct Infix {
    std::string_view text, op;
    int level;
  };
  static const Infix* infix(const Token& token) {
    static constexpr Infix kInfix[] = {{"*", "multiply", 12}, {"/", "divide", 12},
                                       {"+", "add", 10},      {"-", "subtract", 10},
                                       {"<", "less", 8},      {"<=", "less_equal", 8},
                                       {">", "greater", 8},   {">=", "greater_equal", 8},
                                       {"==", "equal", 7},    {"!=", "not_equal", 7}};
    if (token.kind != RelayToken::kOperator) return nullptr;
    for (const Infix& row : kInfix)
      if (token.text == row.text) return &row;
    return nullptr;
  }

  TreePtr expression(int level = 0) {
    const Deeper deeper(*this);
    TreePtr lhs = operand();
    while (const Infix* row = infix(peek())) {
      if (row->level <= level) break;
      const Place place = peek().place;
      ++at_;
      TreePtr rhs = expression(row->level);
      lhs = measured(make_call(place, std::string(row->op), std::move(lhs), std::move(rhs)));
    }
    return lhs;
  }

  // A value with what is called on it, and the comment behind.
  TreePtr operand() {
    TreePtr value = measured(primary());
    while (true) {
      if (peek().is("(")) {
        TreePtr call = make_tree(Kind::kCall, value->place);
        call->items.push_back(std::move(value));
        arguments(*call);
        value = std::move(call);
      } else if (peek().is(".") && peek(1).kind == RelayToken::kNumber) {
        const Token& number = peek(1);
        const auto index = read_number(number.text, false);
        if (!index || index->is_float || index->dtype != "int32")
          fail(kBadLiteral, number.place, "`{}` is no index of a tuple", number.text);
        at_ += 2;
        TreePtr item = make_tree(Kind::kProjection, value->place);
        item->index = index->integer;
        item->items.push_back(std::move(value));
        value = std::move(item);
      } else {
        break;
      }
      value = measured(std::move(value));
    }
    value->comment = tokens_[at_ - 1].comment;
    return value;
  }

  void arguments(Tree& call) {
    expect("(", "before the arguments");
    while (!peek().is(")")) {
      const Token& token = peek();
      const bool named =
          (token.kind == RelayToken::kName || token.kind == RelayToken::kString) && peek(1).is("=");
      if (named) {
        add_attribute(call.attrs);
      } else {
        if (!call.attrs.empty()) unexpected("an attribute, `name=value`");
        call.items.push_back(expression());
      }
      if (!accept(",")) break;
    }
    expect(")", "after the arguments");
  }

  std::optional<Number> number_at(size_t ahead, bool negative) const {
    const Token& token = peek(ahead);
    const bool special = token.kind == RelayToken::kName && !peek(ahead + 1).is("(") &&
                         (token.text.starts_with("inf") || token.text.starts_with("nan"));
    if (token.kind != RelayToken::kNumber && !special) return std::nullopt;
    auto number = read_number(token.text, negative);
    if (!number && !special) fail(kBadLiteral, token.place, "`{}` is no number", token.text);
    return number;
  }

  TreePtr constant(const Number& number, const Place& place) const {
    TreePtr out = make_tree(Kind::kConstant, place);
    out->dtype = number.dtype;
    out->number = number.is_float ? number.real : static_cast<double>(number.integer);
    out->integer = number.integer;
    return out;
  }

  TreePtr primary() {
    const Token& token = peek();
    if (token.is("-")) {
      if (const auto number = number_at(1, true)) {
        at_ += 2;
        return constant(*number, token.place);
      }
      ++at_;
      const Deeper deeper(*this);
      return make_call(token.place, "negative", operand());
    }
    if (const auto number = number_at(0, false)) {
      ++at_;
      return constant(*number, token.place);
    }
    switch (token.kind) {
      case RelayToken::kLocal: {
        ++at_;
        TreePtr out = make_tree(Kind::kLocal, token.place);
        out->text = std::string(token.text);
        return out;
      }
      case RelayToken::kGlobal: {
        ++at_;
        TreePtr out = make_tree(Kind::kGlobal, token.place);
        out->text = std::string(token.text);
        callees_.push_back(out->text);
        return out;
      }
      case RelayToken::kName: return named();
      default: break;
    }
    if (token.is("(")) return parenthesised();
    if (token.is("{")) return braced();
    unexpected("a value");
  }

  TreePtr braced() {
    const Place place = peek().place;
    ++at_;
    TreePtr out = make_tree(Kind::kBlock, place);
    out->blocks.push_back(block());
    expect("}", "after a block");
    return out;
  }

  TreePtr parenthesised() {
    const Place place = peek().place;
    ++at_;
    if (peek().is_name("let") || (peek().kind == RelayToken::kLocal && peek(1).is("="))) {
      TreePtr out = make_tree(Kind::kBlock, place);
      out->blocks.push_back(block());
      expect(")", "after a block");
      return out;
    }
    TreePtr out = make_tree(Kind::kTuple, place);
    bool comma = false;
    while (!peek().is(")")) {
      out->items.push_back(expression());
      comma = accept(",");
      if (!comma) break;
    }
    expect(")", "after the items of a tuple");
    if (out->items.size() == 1 && !comma) return std::move(out->items[0]);
    return out;
  }

  TreePtr named() {
    const Token& token = peek();
    ++at_;
    if (token.text == "fn") {
      TreePtr out = make_tree(Kind::kFunction, token.place);
      if (peek().is("[")) fail(kUnsupported, token.place, "a function with type parameters");
      out->function = std::make_unique<FunctionTree>(function_after_name(token.place));
      return out;
    }
    if (token.text == "if") {
      TreePtr out = make_tree(Kind::kIf, token.place);
      expect("(", "before a condition");
      out->items.push_back(expression());
      expect(")", "after a condition");
      for (const bool first : {true, false}) {
        if (!first) {
          if (!peek().is_name("else")) unexpected("`else` after a branch");
          ++at_;
        }
        expect("{", "before a branch");
        out->blocks.push_back(block());
        expect("}", "after a branch");
      }
      return out;
    }
    if (token.text == "True" || token.text == "False") {
      TreePtr out = make_tree(Kind::kConstant, token.place);
      out->dtype = "bool";
      out->integer = token.text == "True";
      return out;
    }
    if (token.text == "meta") return reference(token);
    if (token.text == "match" || token.text == "ref" || token.text == "ref_read" ||
        token.text == "ref_write")
      fail(kUnsupported, token.place, "`{}`: algebraic data types and references are not read",
           token.text);
    if (token.text == "def" || token.text == "else" || token.text == "let") {
      --at_;
      unexpected("a value");
    }
    if (peek().is("[")) skip_balanced();  // type arguments
    if (!peek().is("(")) {
      if (peek().is("=")) {
        --at_;
        unexpected("a value");
      }
      fail(kSyntax, token.place, "operator `{}` is not called; expected `(` after it", token.text);
    }
    // `int64(1)`: a constant of a dtype that has no suffix.
    const bool negative = peek(1).is("-");
    if (const auto dtype = DType::parse(token.text);
        dtype && peek(negative ? 3 : 2).is(")") && dtype->is_scalar() && !dtype->is_void()) {
      if (const auto number = number_at(negative ? 2 : 1, negative)) {
        at_ += negative ? 4 : 3;
        TreePtr out = constant(*number, token.place);
        if (!dtype->is_float() && number->is_float)
          fail(kBadLiteral, token.place, "a number with a fraction as {}", token.text);
        out->dtype = std::string(token.text);
        return out;
      }
    }
    TreePtr out = make_tree(Kind::kOperator, token.place);
    out->text = std::string(token.text);
    arguments(*out);
    return out;
  }

  // meta[relay.Constant][3]
  TreePtr reference(const Token& token) {
    TreePtr out = make_tree(Kind::kMeta, token.place);
    expect("[", "after `meta`");
    out->text = std::string(expect(RelayToken::kName, "the kind of a metadata node").text);
    expect("]", "after the kind of a metadata node");
    expect("[", "before the index of a metadata node");
    const Token& index = expect(RelayToken::kNumber, "the index of a metadata node");
    const auto number = read_number(index.text, false);
    if (!number || number->is_float) fail(kBadLiteral, index.place, "`{}` is no index", index.text);
    out->index = number->integer;
    expect("]", "after the index of a metadata node");
    return out;
  }

  const std::shared_ptr<const SourceFile>& file_;
  const std::vector<Token>& tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  ModuleTree tree_;
  std::vector<std::string> callees_;
  std::set<std::string> names_;
};

}  // namespace

ModuleTree parse(const std::shared_ptr<const SourceFile>& file, const TokenText& text) {
  return Parser(file, text.tokens).module();
}

std::optional<TypeTree> type_in(std::string_view comment) {
  const size_t at = comment.find("ty=");
  if (at == std::string_view::npos) return std::nullopt;
  try {
    const auto file = std::make_shared<const SourceFile>(
        SourceFile{"", std::string(comment.substr(at + 3, comment.find("span=") - (at + 3)))});
    const TokenText text = tokenize(file);
    return Parser(file, text.tokens).only_type();
  } catch (const CompileError&) {
    return std::nullopt;  // a comment
  }
}

std::string span_in(std::string_view comment) {
  const size_t at = comment.find("span=");
  if (at == std::string_view::npos) return {};
  std::string_view span = comment.substr(at + 5);
  while (!span.empty() && (span.back() == ' ' || span.back() == '\n')) span.remove_suffix(1);
  // `name:line:column`
  for (int i = 0; i < 2; ++i) {
    const size_t colon = span.rfind(':');
    if (colon == std::string_view::npos || colon + 1 == span.size()) break;
    if (span.substr(colon + 1).find_first_not_of("0123456789") != std::string_view::npos) break;
    span = span.substr(0, colon);
  }
  constexpr size_t kLongest = 200;
  return std::string(span.substr(0, kLongest));
}

}  // namespace tenon::relay
