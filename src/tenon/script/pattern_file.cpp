// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/pattern_file.h"

#include "tenon/graph/patterns/pattern_context.h"
#include "tenon/script/pattern_reader.h"
#include "tenon/script/surroundings.h"

namespace tenon::script {

using ast::ExprKind;
using ast::StmtKind;
using graph::DFPattern;
using graph::FusionPattern;
using graph::PatternContext;
using graph::PatternRewriter;
using graph::PatternSeq;

graph::PatternRewriter PatternFile::rewriter() const {
  PatternRewriter out;
  for (const auto& [name, rewriter] : rewriters) out = out | rewriter;
  return out;
}

PatternFile PatternReader::read() {
  const ast::Body body = ast::parse_file(context_.file, diagnostics_, ast::OtherPython::kReported);
  diagnostics_.throw_if_any();
  Surroundings surroundings(context_);
  context_.surroundings = &surroundings;
  GraphBuilder builder(context_);
  builder_ = &builder;
  names_.emplace_back();
  read_functions(body);
  for (const auto& stmt : body) attempt(*stmt);
  diagnostics_.throw_if_any();
  finish();
  diagnostics_.throw_if_any();
  return std::move(out_);
}

void PatternReader::read_functions(const ast::Body& body) {
  bool has_functions = false;
  for (const ast::Stmt* stmt : definitions(body)) {
    if (stmt->kind == StmtKind::kFunction) {
      has_functions = true;
      continue;
    }
    ParseOptions options = parse_options_;
    options.module_name = stmt->text;
    try {
      module_of_class(*stmt, parse_module(context_.file, options));
    } catch (const CompileError& error) {
      diagnostics_.add(error);
    }
  }
  if (!has_functions) return;
  ParseOptions options = parse_options_;
  functions_ = functions_alone(body, options);
  for (const auto& [name, function] : functions_.functions()) names_[0][name] = function;
}

IRModule PatternReader::functions_alone(const ast::Body& body, const ParseOptions& options) {
  bool has_class = false;
  for (const ast::Stmt* stmt : definitions(body))
    has_class |= stmt->kind == StmtKind::kClass && decorator_name(*stmt) != "rewriter";
  if (!has_class) return parse_module(context_.file, options);
  for (const ast::Stmt* stmt : definitions(body))
    if (stmt->kind == StmtKind::kFunction)
      fail(kSyntax, stmt->name_place,
           "function `{}` beside a module; expected it in the module, or functions alone",
           stmt->text);
  return {};
}

void PatternReader::module_of_class(const ast::Stmt& stmt, const IRModule& module) {
  if (module.contains("pattern") && module.contains("replacement")) {
    const auto rewriter = PatternRewriter::from_module(module).named(stmt.text);
    out_.rewriters.emplace_back(stmt.text, rewriter);
    names_[0][stmt.text] = rewriter;
    return;
  }
  if (decorator_name(stmt) == "rewriter")
    fail(kBadPattern, stmt.name_place, "rewriter `{}` has no functions `pattern` and `replacement`",
         stmt.text);
  for (FusionPattern& pattern : graph::read_patterns(module, options_.backend))
    of_functions_.push_back(std::move(pattern));
}

static const bool* flag_of(const PatternValue& value) {
  const auto* object = value.as<Object>();
  return object ? object->as<bool>() : nullptr;
}

void PatternReader::finish() {
  if (const auto* rewriter = lookup("rewriter")) {
    if (const auto* chosen = rewriter->as<PatternRewriter>())
      out_.rewriters = {{"rewriter", *chosen}};
  }
  try {
    if (functions_.contains("pattern") && functions_.contains("replacement")) {
      out_.rewriters.emplace_back("pattern",
                                  PatternRewriter::from_module(functions_).named("pattern"));
    } else if (functions_.size() > 0) {
      IRModule patterns = functions_;
      for (const std::string& name : parts_) patterns.erase(name);
      for (FusionPattern& pattern : graph::read_patterns(patterns, options_.backend))
        of_functions_.push_back(std::move(pattern));
    }
  } catch (const CompileError& error) {
    diagnostics_.add(error);
  }
  if (listed_) {
    out_.patterns = std::move(*listed_);
  } else {
    for (const auto& [name, pattern] : out_.named) {
      if (name[0] == '_' || graph::pattern_size(pattern) == 0 || is_part(pattern)) continue;
      FusionPattern made;
      made.name = full_name(name);
      made.pattern = pattern;
      made.origin = pattern->origin;
      out_.patterns.push_back(std::move(made));
    }
  }
  for (FusionPattern& pattern : out_.patterns) name_constants(pattern);
  // `bind_constants = False` speaks for the patterns of the file that say nothing themselves.
  if (const PatternValue* bind = lookup("bind_constants")) {
    for (FusionPattern& pattern : out_.patterns)
      if (!pattern.bind_constants) pattern.bind_constants = *flag_of(*bind);
  }
  for (FusionPattern& pattern : out_.patterns) add_labels(pattern);
  for (FusionPattern& pattern : of_functions_) out_.patterns.push_back(std::move(pattern));
}

// `w = is_const()` is annotated as `w`, where the file says nothing else of it.
void PatternReader::name_constants(FusionPattern& pattern) const {
  if (!pattern.pattern) return;  // over TensorIR
  std::set<const Node*> inside, annotated;
  tenon::walk(pattern.pattern, [&](const NodePtr& node) { inside.insert(node.get()); });
  for (const auto& [name, part] : pattern.annotations) annotated.insert(part.get());
  for (const auto& [name, part] : out_.named) {
    if (!inside.count(part.get()) || annotated.count(part.get())) continue;
    bool is_constant = false;
    tenon::walk(part, [&](const NodePtr& node) {
      is_constant |= node.as<graph::ConstantPattern>() != nullptr;
    });
    if (is_constant && graph::pattern_size(part) == 0) pattern.annotations.emplace(name, part);
  }
}

// Python's names for the parts of a pattern; what it annotates itself goes first.
void PatternReader::add_labels(FusionPattern& pattern) const {
  if (!pattern.pattern) return;
  std::set<const Node*> parts, annotated;
  tenon::walk(pattern.pattern, [&](const NodePtr& node) { parts.insert(node.get()); });
  for (const auto& [name, part] : pattern.annotations) annotated.insert(part.get());
  for (const auto& [name, part] : out_.named)
    if (parts.count(part.get()) && !annotated.count(part.get()))
      pattern.annotations.emplace(name, part);
}

bool PatternReader::is_part(const DFPattern& pattern) const {
  for (const auto& [name, other] : out_.named) {
    if (other.same_as(pattern)) continue;
    bool found = false;
    tenon::walk(other, [&](const NodePtr& node) { found |= node.same_as(pattern); });
    if (found) return true;
  }
  for (const auto& [name, context] : out_.contexts)
    for (const DFPattern& other : context.patterns) {
      bool found = false;
      tenon::walk(other, [&](const NodePtr& node) { found |= node.same_as(pattern); });
      if (found) return true;
    }
  return false;
}

std::optional<PatternValue> PatternReader::statement(const ast::Stmt& stmt) {
  charge(stmt.place);
  switch (stmt.kind) {
    case StmtKind::kImport:
    case StmtKind::kPass:
    case StmtKind::kOther: return std::nullopt;
    case StmtKind::kClass: return std::nullopt;  // read already
    case StmtKind::kFunction:
      if (decorator_name(stmt).empty()) names_.back()[stmt.text] = &stmt;
      return std::nullopt;
    case StmtKind::kExpr: (void)eval(*stmt.value); return std::nullopt;
    case StmtKind::kAssign: {
      const PatternValue value = eval(*stmt.value);
      assign(*stmt.target, value);
      for (const auto& target : stmt.more_targets) assign(*target, value);
      return std::nullopt;
    }
    case StmtKind::kAugmented: {
      if (stmt.text != "|" && stmt.text != "&" && stmt.text != "+") break;
      const PatternValue lhs = eval(*stmt.target), rhs = eval(*stmt.value);
      assign(*stmt.target, stmt.text == "+" ? joined(lhs, rhs, stmt.place)
                                            : combined(stmt.text, lhs, rhs, stmt.place));
      return std::nullopt;
    }
    case StmtKind::kReturn: return stmt.value ? eval(*stmt.value) : PatternValue();
    case StmtKind::kIf: {
      const ast::Body& body = holds(*stmt.value) ? stmt.body : stmt.orelse;
      return statements(body);
    }
    case StmtKind::kFor: {
      const PatternValue list = eval(*stmt.value);
      for (const PatternValue& item : items(list, stmt.value->place)) {
        assign(*stmt.target, item);
        if (auto value = statements(stmt.body)) return value;
      }
      return std::nullopt;
    }
    case StmtKind::kWith: return with(stmt);
    default: break;
  }
  fail(kSyntax, stmt.place, "a statement that has no meaning in a pattern file");
}

std::optional<PatternValue> PatternReader::with(const ast::Stmt& stmt) {
  if (stmt.items.size() != 1 || stmt.items[0].context->kind != ExprKind::kCall ||
      last_name(*stmt.items[0].context->items[0]) != "PatternContext")
    fail(kSyntax, stmt.place, "`with` of something else than `PatternContext()`");
  bool incremental = false;
  for (const ast::Keyword& keyword : stmt.items[0].context->keywords)
    if (keyword.name == "incremental") incremental = keyword.value->kind == ExprKind::kTrue;
  auto context = std::make_shared<PatternContext>();
  if (incremental && !open_.empty()) *context = *open_.back();
  if (stmt.items[0].target) assign(*stmt.items[0].target, context);
  open_.push_back(context);
  const std::vector<DFPattern> made_outside = std::exchange(made_, {});
  const auto close = [&] {
    open_.pop_back();
    made_ = made_outside;
  };
  std::optional<PatternValue> result;
  try {
    result = statements(stmt.body);
  } catch (const CompileError&) {
    close();
    throw;
  }
  graph::add_outermost(*context, made_);
  close();
  const ast::Expr* target = stmt.items[0].target.get();
  out_.contexts.emplace_back(target && target->kind == ExprKind::kName ? target->text : "",
                             *context);
  return result;
}

void PatternReader::assign(const ast::Expr& target, const PatternValue& value) {
  if (target.kind == ExprKind::kTuple || target.kind == ExprKind::kList) {
    const std::vector<PatternValue>& values = items(value, target.place);
    if (values.size() != target.items.size())
      fail(kSyntax, target.place, "{} names for {} values", target.items.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) assign(*target.items[i], values[i]);
    return;
  }
  if (target.kind != ExprKind::kName)
    fail(kSyntax, target.place, "an assignment to something else than a name");
  names_.back()[target.text] = value;
  const bool is_outermost = names_.size() == 1;
  if (const auto* object = value.as<Object>()) builder_->set(target.text, *object);
  if (const auto* pattern = value.as<DFPattern>(); pattern && is_outermost) {
    for (auto& [name, known] : out_.named)
      if (name == target.text) {
        known = *pattern;
        return;
      }
    out_.named.emplace_back(target.text, *pattern);
  }
  if (target.text == "patterns" && is_outermost && value.as<Items>())
    listed_ = listed(value, target.place);
  if (target.text == "bind_constants" && is_outermost && !flag_of(value))
    fail(
        kBadPattern, target.place,
        "`bind_constants` is no flag; expected `bind_constants = False`, which makes the constants "
        "that patterns match arguments");
}

std::vector<FusionPattern> PatternReader::listed(const PatternValue& value, const Place& place) {
  std::vector<FusionPattern> out;
  for (const PatternValue& item : **value.as<Items>()) {
    if (const auto* pattern = item.as<std::shared_ptr<const FusionPattern>>()) {
      out.push_back(**pattern);
    } else if (const auto* parts = item.as<Items>()) {
      out.push_back(fusion_pattern(**parts, place));
    } else if (const auto* pattern = item.as<DFPattern>()) {
      FusionPattern made;
      for (const auto& [name, known] : out_.named)
        if (known.same_as(*pattern)) made.name = full_name(name);
      made.pattern = *pattern;
      if (made.name.empty())
        throw CompileError(kBadPattern, (*pattern)->origin,
                           "a pattern of the list `patterns` has no name; expected `(\"name\", "
                           "pattern)`");
      out.push_back(std::move(made));
    } else {
      fail(kBadPattern, place, "the list `patterns` holds something else than patterns");
    }
    out.back().origin = out.back().pattern ? out.back().pattern->origin : Origin();
  }
  return out;
}

FusionPattern PatternReader::fusion_pattern(const std::vector<PatternValue>& parts,
                                            const Place& place) {
  const auto* name = parts.empty() ? nullptr : parts[0].as<Object>();
  const auto* text = name ? name->as<std::string>() : nullptr;
  const auto* pattern = parts.size() > 1 ? parts[1].as<DFPattern>() : nullptr;
  if (!text || !pattern)
    fail(kBadPattern, place, "a pattern to register is no `(\"name\", pattern)`");
  FusionPattern out;
  out.name = full_name(*text);
  out.pattern = *pattern;
  out.origin = origin(place);
  if (parts.size() > 2 && parts[2].as<Items>()) {
    const auto& values = **parts[2].as<Items>();
    for (size_t i = 0; i < parts[2].keys.size(); ++i) {
      const auto* part = values[i].as<DFPattern>();
      if (!part) fail(kBadPattern, place, "annotation `{}` is no pattern", parts[2].keys[i]);
      out.annotations[parts[2].keys[i]] = *part;
    }
  }
  // A dictionary of options in the place of a check.
  if (parts.size() == 4 && parts[3].as<Items>() && !parts[3].keys.empty()) {
    for (size_t i = 0; i < parts[3].keys.size(); ++i) {
      const auto* value = (**parts[3].as<Items>())[i].as<Object>();
      const auto* flag = value ? value->as<bool>() : nullptr;
      const auto* number = value ? value->as<ast::Integer>() : nullptr;
      if (parts[3].keys[i] == "bind_constants" && flag)
        out.bind_constants = *flag;
      else if (parts[3].keys[i] == "priority" && number)
        out.priority = static_cast<int>(*number);
      else
        fail(kBadPattern, place,
             "option `{}` of a pattern; expected `bind_constants`, True or False, or `priority`, a "
             "number",
             parts[3].keys[i]);
    }
    return out;
  }
  if (parts.size() > 3)
    fail(kUnsupported, place,
         "a check of a pattern as text; back ends check in code, and patterns with has_dtype, "
         "has_shape, has_attr");
  return out;
}

const PatternValue* PatternReader::lookup(const std::string& name) const {
  for (size_t i = names_.size(); i-- > 0;) {
    // A function of Python sees its own names and those of the file.
    if (i != 0 && i + 1 != names_.size()) continue;
    const auto found = names_[i].find(name);
    if (found != names_[i].end()) return &found->second;
  }
  return nullptr;
}

bool PatternReader::holds(const ast::Expr& condition) {
  const PatternValue value = eval(condition);
  if (const auto* object = value.as<Object>()) {
    if (object->is_none()) return false;
    if (const auto* flag = object->as<bool>()) return *flag;
    if (const auto* number = object->as<ast::Integer>()) return *number != 0;
    if (const auto* text = object->as<std::string>()) return !text->empty();
  }
  return true;
}

PatternValue PatternReader::eval(const ast::Expr& expr) {
  charge(expr.place);
  switch (expr.kind) {
    case ExprKind::kName:
      if (const PatternValue* known = lookup(expr.text)) {
        if (const auto* function = known->as<BaseFunc>())
          if (function->as<tir::PrimFunc>()) parts_.insert(expr.text);
        return *known;
      }
      return builder_->eval(expr);
    case ExprKind::kTuple:
    case ExprKind::kList: {
      std::vector<PatternValue> values;
      for (const auto& item : expr.items) values.push_back(eval(*item));
      return std::make_shared<const std::vector<PatternValue>>(std::move(values));
    }
    case ExprKind::kDict: {
      std::vector<PatternValue> values;
      PatternValue out;
      for (size_t i = 0; i + 1 < expr.items.size(); i += 2) {
        out.keys.push_back(text(*expr.items[i]));
        values.push_back(eval(*expr.items[i + 1]));
      }
      out.value = std::make_shared<const std::vector<PatternValue>>(std::move(values));
      return out;
    }
    case ExprKind::kBinary: {
      const PatternValue lhs = eval(*expr.items[0]), rhs = eval(*expr.items[1]);
      if (lhs.as<Object>() && rhs.as<Object>()) return builder_->eval(expr);
      if (expr.text == "+") return joined(lhs, rhs, expr.place);
      return combined(expr.text, lhs, rhs, expr.place);
    }
    case ExprKind::kUnary:
      if (expr.text == "~") return made(~pattern(*expr.items[0]), expr.place);
      if (expr.text == "not") return Object(!holds(*expr.items[0]));
      return builder_->eval(expr);
    case ExprKind::kSubscript: {
      const PatternValue whole = eval(*expr.items[0]);
      if (const auto* list = whole.as<Items>()) {
        const int64_t index = number(*expr.items[1]);
        const int64_t size = static_cast<int64_t>((*list)->size());
        if (index >= size || index < -size)
          fail(kOutOfBounds, expr.place, "item {} of a list of {}", index, size);
        return (**list)[static_cast<size_t>(index < 0 ? index + size : index)];
      }
      if (const auto* base = whole.as<DFPattern>())
        return made((*base)[number(*expr.items[1])], expr.place);
      return builder_->eval(expr);
    }
    case ExprKind::kIfElse: return eval(*expr.items[holds(*expr.items[0]) ? 1 : 2]);
    case ExprKind::kCall: return call(expr);
    default: return builder_->eval(expr);
  }
}

PatternValue PatternReader::joined(const PatternValue& lhs, const PatternValue& rhs,
                                   const Place& place) {
  std::vector<PatternValue> out = items(lhs, place);
  for (const PatternValue& item : items(rhs, place)) out.push_back(item);
  return std::make_shared<const std::vector<PatternValue>>(std::move(out));
}

PatternValue PatternReader::combined(const std::string& op, const PatternValue& lhs,
                                     const PatternValue& rhs, const Place& place) {
  if (op == "|" && lhs.as<PatternRewriter>() && rhs.as<PatternRewriter>())
    return *lhs.as<PatternRewriter>() | *rhs.as<PatternRewriter>();
  const auto* a = lhs.as<DFPattern>();
  const auto* b = rhs.as<DFPattern>();
  if (op == "|" && a && b) return made(*a | *b, place);
  if (op == "&" && a && b) return made(*a & *b, place);
  const auto seq = [](const PatternValue& value) -> std::optional<PatternSeq> {
    if (const auto* known = value.as<PatternSeq>()) return *known;
    if (const auto* pattern = value.as<DFPattern>()) return PatternSeq(*pattern);
    return std::nullopt;
  };
  const auto x = seq(lhs), y = seq(rhs);
  if (op == "^" && x && y) return constrained(*x ^ *y, place);
  if (op == ">>" && x && y) return constrained(*x >> *y, place);
  fail(kTypeMismatch, place, "`{}` of something else than patterns", op);
}

PatternFile read_pattern_file(const std::shared_ptr<const SourceFile>& file,
                              const PatternOptions& options) {
  return PatternReader(file, options).read();
}

PatternFile read_pattern_file(const std::string& text, const PatternOptions& options) {
  return read_pattern_file(std::make_shared<const SourceFile>(SourceFile{"<patterns>", text}),
                           options);
}

}  // namespace tenon::script
