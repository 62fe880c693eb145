// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/tir_builder.h"

#include "tenon/script/implicit_root.h"
#include "tenon/script/surroundings.h"
#include "tenon/script/unsupported_names.h"

namespace tenon::script {

using namespace tir;
using ast::ExprKind;
using ast::Integer;
using ast::StmtKind;

// ---- functions ----------------------------------------------------------------------------------

// `T.Buffer`, `T.Buffer(...)`, `T.Buffer[...]`.
bool TirBuilder::names_buffer(const ast::Expr& annotation) {
  const bool has_parts =
      annotation.kind == ExprKind::kCall || annotation.kind == ExprKind::kSubscript;
  return path_of(has_parts ? *annotation.items[0] : annotation) == "T.Buffer";
}

void TirBuilder::parameters(const ast::Stmt& definition) {
  for (const auto& stmt : definition.body) {
    if (stmt->kind != StmtKind::kAssign || stmt->target->kind != ExprKind::kName) continue;
    const std::string path = callee_path(*stmt->value);
    if (!path.starts_with("T.") || stmt->value->items.size() != 1 || !stmt->value->keywords.empty())
      continue;
    const auto dtype = DType::parse(path.substr(2));
    if (dtype && dtype->is_integer()) declared_dims_.emplace(stmt->target->text, *dtype);
  }
  // Scalars first: shapes may name them wherever they stand.
  std::vector<size_t> position;  // of each parameter: several scalars may be one of C's
  for (size_t i = 0; i < definition.parameters.size(); ++i) {
    const ast::Parameter& parameter = definition.parameters[i];
    position.push_back(params_.size());
    for (size_t k = 0; k < i; ++k)
      if (definition.parameters[k].name == parameter.name)
        fail(kRedefined, parameter.place, "two parameters are named `{}`", parameter.name);
    if (!parameter.annotation)
      fail(kSyntax, parameter.place, "parameter `{}` has no annotation", parameter.name);
    if (is_extern_ && group_parameter(parameter)) continue;
    params_.emplace_back();
    buffers_.emplace_back();
    if (names_buffer(*parameter.annotation)) continue;
    const Object declared = this->declared(*parameter.annotation, parameter.name);
    const auto* expr = declared.as<Expr>();
    if (!expr || !expr->as<Var>())
      fail(kTypeMismatch, parameter.annotation->place,
           "{} annotates parameter `{}`; expected T.Buffer(...), T.handle or a dtype",
           describe(declared), parameter.name);
    params_.back() = downcast<Var>(*expr);
    define(parameter.name, declared);
  }
  for (size_t i = 0; i < definition.parameters.size(); ++i) {
    const ast::Parameter& parameter = definition.parameters[i];
    const size_t at = position[i];
    if (params_[at]) continue;
    const ast::Expr& annotation = *parameter.annotation;
    if (annotation.kind != ExprKind::kCall && annotation.kind != ExprKind::kSubscript)
      fail(kSyntax, annotation.place, "`T.Buffer` needs a shape");
    if (is_extern_ && annotation.items.size() > 1) define_dimensions(*annotation.items[1]);
    for (const ast::Keyword& keyword : annotation.keywords)
      if (is_extern_ && (keyword.name == "shape" || keyword.name == "strides"))
        define_dimensions(*keyword.value);
    Arguments args;
    if (annotation.kind == ExprKind::kCall) {
      args = arguments(annotation);
    } else {  // T.Buffer[(16, 4), "float32"]
      const Object inside = eval(*annotation.items[1]);
      const auto* list = inside.as<List>();
      const auto* last =
          list && list->items->size() == 2 ? (*list->items)[1].as<std::string>() : nullptr;
      const bool has_dtype = list && list->items->size() == 2 &&
                             ((*list->items)[0].as<List>() || (last && DType::parse(*last)));
      args.items.push_back(
          {has_dtype ? (*list->items)[0] : inside, annotation.items[1]->place, "", false});
      if (has_dtype)
        args.items.push_back({(*list->items)[1], annotation.items[1]->place, "", false});
      args.positional = args.items.size();
    }
    buffers_[at] = buffer(parameter.name, args, annotation, 0);
    finish(args, annotation);
    params_[at] = make<Var>(parameter.name + "_handle", kHandle, origin(parameter.place));
    define(parameter.name, buffers_[at]);
  }
}

Ref<PrimFunc> TirBuilder::function(const ast::Stmt& definition) {
  parameters(definition);
  DType result = kVoid;
  if (definition.returns) {
    const Object type = eval(*definition.returns);
    result = to_dtype(type, definition.returns->place);
  }
  bool implicit_root = true, is_private = false;
  for (const auto& decorator : definition.decorators) {
    for (const ast::Keyword& keyword : decorator->keywords) {
      const bool flag = keyword.value->kind == ExprKind::kTrue;
      if (keyword.name == "private") is_private = flag;
      if (keyword.name == "implicit_root") implicit_root = flag;
    }
  }
  mutable_ = mutable_definitions(definition);
  Statements list;
  statements(definition.body, 0, list);
  if (errors_ > 0 || definition.damaged) throw PoisonedUse(origin(definition.name_place));
  Stmt body = finish_body(std::move(list));
  if (implicit_root && gets_root_block(body, !root_.parts.alloc_buffers.empty())) {
    root_.parts.name = "root";
    root_.parts.body = body;
    body = make<BlockRealize>(std::vector<Expr>{}, boolean(true),
                              make<Block>(std::move(root_.parts), origin(definition.name_place)),
                              origin(definition.name_place));
  } else if (!root_.parts.alloc_buffers.empty()) {
    fail(kBadBlock, definition.name_place, "`T.alloc_buffer` outside a block");
  }
  if (const auto* symbol = attrs_.find("global_symbol"); symbol && !is_private) {
    const auto* text = symbol->as<std::string>();
    if (text && *text == definition.text) attrs_.erase("global_symbol");  // implied
  }
  auto function = make<PrimFunc>(params_, buffers_, body, attrs_, origin(definition.name_place));
  auto* writable = const_cast<PrimFunc*>(function.get());  // not shared yet
  writable->result = result;
  writable->is_private = is_private;
  return function;
}

// A variable of the annotation's type: `T.int32`, `T.handle("float32", "global")`.
Object TirBuilder::declared(const ast::Expr& annotation, const std::string& name) {
  const bool is_call = annotation.kind == ExprKind::kCall;
  if (annotation.kind == ExprKind::kSubscript) {  // T.let[T.int32], T.Ptr[T.float32]
    const std::string base = path_of(*annotation.items[0]);
    if (base == "T.let") return declared(*annotation.items[1], name);
    if (base == "T.handle") {
      const Object pointee = eval(*annotation.items[1]);
      return Expr(Var::pointer(name, to_dtype(pointee, annotation.place), "global",
                               origin(annotation.place)));
    }
  }
  const Object type = eval(is_call ? *annotation.items[0] : annotation);
  const auto* path = type.as<Path>();
  const auto dtype =
      path && path->text.starts_with("T.") ? DType::parse(path->text.substr(2)) : std::nullopt;
  if (!dtype) return type;
  Arguments args;
  if (is_call) args = arguments(annotation);
  auto var = new_var(name, *dtype, args, annotation.place);
  if (is_call) finish(args, annotation);
  return Expr(var);
}

Object TirBuilder::call_other(const ast::Expr& call, const Object& callee) {
  if (const auto* function = callee.as<FunctionName>()) return call_value(call, *function, 0);
  if (const auto* path = callee.as<Path>(); path && path->text == "T.call_tir")
    return call_value(call, callee_of_call(call), 1);
  if (const auto* path = callee.as<Path>()) {
    const std::string reason = why_unsupported(path->text);
    if (!reason.empty()) fail(kUnsupported, call.items[0]->place, "`{}`: {}", path->text, reason);
    fail(kUndefined, call.items[0]->place, "`{}` is not known here", path->text);
  }
  if (const auto* helper = callee.as<Helper>(); helper && helper->is_macro)
    fail(kBadArgument, call.place, "a macro as a value; it is called as a statement of its own");
  fail(kTypeMismatch, call.items[0]->place, "{} cannot be called", describe(callee));
}

// ---- statements ---------------------------------------------------------------------------------

Stmt TirBuilder::finish_body(Statements statements) {
  if (statements.keep_sequence || statements.list.empty())
    return make<Seq>(std::move(statements.list));
  return seq(std::move(statements.list));
}

Stmt TirBuilder::body(const ast::Body& list) {
  const Scope scope(*this);
  Statements out;
  statements(list, 0, out);
  return finish_body(std::move(out));
}

void TirBuilder::statements(const ast::Body& body, size_t begin, Statements& out) {
  constexpr int kMostErrors = 20;  // of one function
  for (size_t i = begin; i < body.size() && errors_ < kMostErrors; ++i) {
    const ast::Stmt& stmt = *body[i];
    if (module_.call_depth > 0) module_.charge(1, stmt.place);
    // A frame without `with` stays open to the end of the body.
    if (stmt.kind == StmtKind::kExpr && callee_path(*stmt.value) == "T.attr") {
      Statements rest;
      statements(body, i + 1, rest);
      guarded(stmt,
              [&] { out.list.push_back(attribute(*stmt.value, finish_body(std::move(rest)))); });
      return;
    }
    guarded(stmt, [&] { statement(stmt, out); });
  }
}

template <typename F>
void TirBuilder::guarded(const ast::Stmt& stmt, const F& read) {
  try {
    read();
  } catch (const CompileError& error) {
    module_.report(error);
    ++errors_;
    if (stmt.target) poison(*stmt.target);
    if (stmt.kind == StmtKind::kFunction) define(stmt.text, Unknown{});
    for (const ast::WithItem& item : stmt.items)
      if (item.target) poison(*item.target);
  }
}

void TirBuilder::statement(const ast::Stmt& stmt, Statements& out) {
  const Origin at = origin(stmt.place);
  switch (stmt.kind) {
    case StmtKind::kExpr: return expression_statement(stmt, out);
    case StmtKind::kAssign: return assign(stmt, out);
    case StmtKind::kAugmented: return augmented(stmt, out);
    case StmtKind::kDeclare: {
      if (stmt.target->kind != ExprKind::kName)
        fail(kSyntax, stmt.place, "a declaration of something that is no name");
      if (stmt.annotation->kind == ExprKind::kSubscript) {  // x: T.float32[4]
        const auto dtype = DType::parse(path_of(*stmt.annotation->items[0]).erase(0, 2));
        if (dtype) {
          const Object extents = eval(*stmt.annotation->items[1]);
          Buffer::Options options;
          options.scope = "local";
          const auto array =
              make<Buffer>(stmt.target->text, *dtype, to_shape(extents, stmt.annotation->place),
                           std::move(options), at);
          out.list.push_back(make<AllocBuffer>(array, Attrs(), at));
          return define(stmt.target->text, array);
        }
      }
      const Object value = declared(*stmt.annotation, stmt.target->text);
      if (!value.as<Expr>())
        fail(kSyntax, stmt.annotation->place, "{} is no dtype", describe(value));
      if (mutable_.count(&stmt) != 0) {
        declare_scalar(stmt.target->text, (*value.as<Expr>())->dtype, stmt.target->place, out);
        return;
      }
      return define(stmt.target->text, value);
    }
    case StmtKind::kFor: return for_loop(stmt, out);
    case StmtKind::kWhile: {
      const Expr condition = scalar(*stmt.value);
      out.list.push_back(make<While>(condition, body(stmt.body), at));
      return;
    }
    case StmtKind::kIf: return if_else(stmt, out);
    case StmtKind::kWith: return with(stmt, 0, out);
    case StmtKind::kReturn: {
      std::vector<NodePtr> values;
      if (stmt.value && stmt.value->kind != ExprKind::kNone) values.push_back(scalar(*stmt.value));
      out.list.push_back(
          make<Evaluate>(make<Call>(IntrinsicId::kRet, std::move(values), kVoid, at), at));
      return;
    }
    case StmtKind::kAssert: {
      const Expr condition = scalar(*stmt.value, kBool);
      std::string message = "assertion failed";
      if (stmt.message) message = assert_message(eval(*stmt.message), stmt.message->place);
      out.list.push_back(make<Assert>(condition, std::move(message), at));
      return;
    }
    case StmtKind::kPass: out.keep_sequence = true; return;
    case StmtKind::kFunction: {
      const std::string kind = decorator_name(stmt);
      if (kind == "macro" || stmt.decorators.empty())
        return define(stmt.text,
                      Helper{.definition = &stmt, .is_macro = kind == "macro", .visible = depth()});
      fail(kUnsupported, stmt.name_place, "function `{}` inside a PrimFunc", stmt.text);
    }
    case StmtKind::kBreak:
    case StmtKind::kContinue:
      fail(kUnsupported, stmt.place,
           "`{}`; a loop runs to its end, so put what it skips under `if`, or its condition into "
           "`while`",
           stmt.kind == StmtKind::kBreak ? "break" : "continue");
    case StmtKind::kImport:
    case StmtKind::kClass: fail(kSyntax, stmt.place, "a statement that has no meaning here");
    case StmtKind::kOther:
      if (stmt.target) return poison(*stmt.target);
      fail(kSyntax, stmt.place, "a statement that has no meaning here");
  }
}

void TirBuilder::expression_statement(const ast::Stmt& stmt, Statements& out) {
  const ast::Expr& expr = *stmt.value;
  if (expr.kind == ExprKind::kString) return;  // a docstring
  const std::string path = callee_path(expr);
  const Origin at = origin(expr.place);
  if (!path.empty() && block_statement(path, expr)) return;
  if (expand_macro(expr, out)) return;
  if (path == "T.let" && assign_let("", expr, out)) return;
  if (path == "T.call_tir" || (path == "T.call_extern" && expr.items.size() > 1 &&
                               eval(*expr.items[1]).as<FunctionName>())) {
    out.list.push_back(call_tir(expr, callee_of_call(expr), 1));
    return;
  }
  if (expr.kind == ExprKind::kCall && path.empty()) {  // `cls.f(...)`
    const Object callee = eval(*expr.items[0]);
    if (const auto* function = callee.as<FunctionName>()) {
      out.list.push_back(call_tir(expr, *function, 0));
      return;
    }
  }
  if (path == "T.evaluate") {
    Arguments args = arguments(expr);
    const auto& value = need(args, expr, 0, {"value"});
    finish(args, expr);
    out.list.push_back(make<Evaluate>(to_expr(value.value, value.place), at));
    return;
  }
  if (path == "T.Assert") {
    Arguments args = arguments(expr);
    const auto& condition = need(args, expr, 0, {"condition"});
    const auto& message = need(args, expr, 1, {"message"});
    finish(args, expr);
    out.list.push_back(make<Assert>(to_expr(condition.value, condition.place, kBool),
                                    assert_message(message.value, message.place), at));
    return;
  }
  if (expr.kind != ExprKind::kCall)
    fail(kSyntax, expr.place, "an expression as a statement; only calls are, or T.evaluate(...)");
  const Object value = eval(expr);
  if (value.is_none()) return;
  out.list.push_back(make<Evaluate>(to_expr(value, expr.place), at));
}

// A text, or as TVM has it lately a kind of error and a list of texts.
std::string TirBuilder::assert_message(const Object& message, const Place& place) {
  const auto* list = message.as<List>();
  if (!list) return to_string(message, place, "the message");
  std::string out;
  for (const Object& item : *list->items) {
    if (!item.as<List>() && list->is_tuple && out.empty() && &item == &list->items->front() &&
        list->items->size() == 2 && list->items->back().as<List>())
      continue;  // the kind
    out += assert_message(item, place);
  }
  return out;
}

// A macro's statements stand where it is called.
bool TirBuilder::expand_macro(const ast::Expr& call, Statements& out) {
  if (call.kind != ExprKind::kCall) return false;
  const ast::Expr& callee = *call.items[0];
  Object named;
  const Object* found = callee.kind == ExprKind::kName ? lookup(callee.text) : nullptr;
  if (callee.kind == ExprKind::kAttribute && callee.items[0]->kind == ExprKind::kName) {
    const Object* owner = lookup(callee.items[0]->text);  // a macro of another module of Python
    if (owner && owner->as<Host>()) named = eval(callee);
    found = &named;
  }
  const Helper* helper = found ? found->as<Helper>() : nullptr;
  if (!helper || !helper->is_macro) return false;
  const ast::Stmt& definition = *helper->definition;
  if (definition.damaged) throw PoisonedUse(origin(call.place));
  const bool hygienic = is_hygienic(definition);
  constexpr int kDeepest = 50;
  if (module_.call_depth >= kDeepest) fail(kLimitExceeded, call.place, "macros expand too far");
  const auto definitions = mutable_definitions(definition);
  mutable_.insert(definitions.begin(), definitions.end());
  Arguments args = arguments(call);
  const Scope scope(*this, hygienic ? std::min(helper->visible, depth()) : depth());
  bind_parameters(*helper, args, call);
  struct Depth {
    int& depth;
    explicit Depth(int& d) : depth(d) { ++depth; }
    ~Depth() { --depth; }
  } in_macro(module_.call_depth);
  const int before = errors_;
  {
    const InTextOf text(module_, *helper);
    statements(definition.body, 0, out);
  }
  if (errors_ != before) throw PoisonedUse(origin(call.place));
  return true;
}

TirBuilder::Frame& TirBuilder::current_block(const Place& place, std::string_view what) {
  if (frames_.empty()) fail(kBadBlock, place, "`{}` outside a block", what);
  return *frames_.back();
}

bool TirBuilder::block_statement(const std::string& path, const ast::Expr& call) {
  if (path == "T.func_attr" || path == "T.block_attr") {
    Arguments args = arguments(call);
    const auto& dict = need(args, call, 0, {"attrs"});
    finish(args, call);
    Attrs& into =
        path == "T.func_attr" ? attrs_ : current_block(call.place, path).parts.annotations;
    for (const auto& [name, value] : to_attrs(dict.value, dict.place)) {
      if (path != "T.func_attr") {
        into.set(name, value);
        continue;
      }
      // Later spellings: "tirx.noalias", T.bool(True).
      const auto* node = value.as<NodePtr>();
      const auto* flag = node ? node->as<IntImm>() : nullptr;
      into.set(name.starts_with("tirx.") ? "tir." + name.substr(5) : name,
               flag && flag->dtype.is_bool() ? AttrValue(flag->value != 0) : value);
    }
    return true;
  }
  if (path == "T.where") {
    Frame& frame = current_block(call.place, path);
    Arguments args = arguments(call);
    const auto& condition = need(args, call, 0, {"predicate"});
    finish(args, call);
    frame.predicate = to_expr(condition.value, condition.place, kBool);
    return true;
  }
  if (path != "T.reads" && path != "T.writes") return false;
  Frame& frame = frames_.empty() ? root_ : *frames_.back();
  const bool reads = path == "T.reads";
  if (reads ? frame.has_reads : frame.has_writes)
    fail(kRedefined, call.place, "a second `{}` in one block", path);
  (reads ? frame.has_reads : frame.has_writes) = true;
  auto& into = reads ? frame.parts.reads : frame.parts.writes;
  Arguments args = arguments(call);
  for (auto& item : args.items) {
    item.used = item.keyword.empty();
    if (const auto* list = item.value.as<List>()) {
      for (const Object& each : *list->items) into.push_back(to_region(each, item.place));
    } else {
      into.push_back(to_region(item.value, item.place));
    }
  }
  finish(args, call);
  return true;
}

Stmt TirBuilder::attribute(const ast::Expr& call, Stmt inner) {
  Arguments args = arguments(call);
  const auto& subject = need(args, call, 0, {"node"});
  const auto& key = need(args, call, 1, {"attr_key"});
  const auto& value = need(args, call, 2, {"value"});
  finish(args, call);
  NodePtr node;
  if (!subject.value.is_none()) node = to_argument(subject.value, subject.place);
  return make<AttrStmt>(node, to_string(key.value, key.place, "the key"),
                        to_attr(value.value, value.place), std::move(inner), origin(call.place));
}

}  // namespace tenon::script
