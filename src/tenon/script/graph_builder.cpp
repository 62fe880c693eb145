// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/graph_builder.h"

#include <set>

#include "tenon/graph/infer.h"
#include "tenon/graph/kernels.h"

namespace tenon::script {

using ast::ExprKind;
using ast::StmtKind;
using graph::Type;
using graph::Value;

// ---- functions ----------------------------------------------------------------------------------

// A string dimension that is a name defines a variable, wherever in the signature it stands.
void GraphBuilder::define_dimensions(const ast::Expr& annotation, bool in_shape) {
  if (annotation.kind == ExprKind::kString && in_shape) {
    const ast::ExprPtr dim = ast::parse_expression(module_.file, annotation.text, annotation.place);
    if (dim->kind == ExprKind::kName && !lookup_own(dim->text))
      define(dim->text, Expr(Var::size(dim->text, kInt64, origin(annotation.place))));
    return;
  }
  const bool is_shape = annotation.kind == ExprKind::kTuple || annotation.kind == ExprKind::kList;
  for (const auto& item : annotation.items)
    if (item) define_dimensions(*item, is_shape);
  for (const ast::Keyword& keyword : annotation.keywords)
    define_dimensions(*keyword.value, keyword.name == "value");
}

// A body that ends in `...`: what the function computes is not said here.
static bool is_declaration(const ast::Body& body) {
  return !body.empty() && body.back()->kind == StmtKind::kExpr &&
         body.back()->value->kind == ExprKind::kEllipsis;
}

GraphBuilder::Signature GraphBuilder::signature(const ast::Stmt& definition) {
  for (const ast::Parameter& parameter : definition.parameters) {
    if (!parameter.annotation)
      fail(kSyntax, parameter.place, "parameter `{}` has no annotation", parameter.name);
    define_dimensions(*parameter.annotation, false);
  }
  Signature signature;
  std::set<std::string> names;
  for (const ast::Parameter& parameter : definition.parameters) {
    if (!names.insert(parameter.name).second)
      fail(kRedefined, parameter.place, "two parameters are named `{}`", parameter.name);
    const Type type = to_type(eval(*parameter.annotation), parameter.annotation->place);
    signature.params.push_back(
        make<graph::Var>(parameter.name, type, false, origin(parameter.place)));
  }
  for (const auto& param : signature.params) define(param->name, Value(param));
  if (definition.returns) {
    define_dimensions(*definition.returns, false);
    // Expressions of what the body reads from tensors name what it declares.
    for (const auto& stmt : definition.body)
      if (stmt->kind == StmtKind::kAssign && stmt->target && stmt->value &&
          stmt->target->kind == ExprKind::kName && declares_dimension(*stmt->value))
        declare_dimension(*stmt->target, *stmt->value);
    signature.result = to_type(eval(*definition.returns), definition.returns->place);
  }
  return signature;
}

Ref<graph::Function> GraphBuilder::function(const ast::Stmt& definition) {
  const Scope scope(*this);
  const Attrs outer_attrs = std::exchange(attrs_, Attrs());
  const auto outer_result = std::exchange(result_, std::nullopt);
  auto [params, result] = signature(definition);
  bool pure = true, is_private = false;
  for (const auto& decorator : definition.decorators) {
    for (const ast::Keyword& keyword : decorator->keywords) {
      const bool flag = keyword.value->kind == ExprKind::kTrue;
      if (keyword.name == "private") is_private = flag;
      if (keyword.name == "pure") pure = flag;
    }
  }
  const Origin at = origin(definition.name_place);
  const auto body = is_declaration(definition.body)
                        ? declaration(definition, result, at)
                        : sequence(definition.body, at, definition.text);
  if (const auto* symbol = attrs_.find("global_symbol"); symbol && !is_private) {
    const auto* text = symbol->as<std::string>();
    if (text && *text == definition.text) attrs_.erase("global_symbol");  // implied
  }
  auto function = make<graph::Function>(std::move(params), body, result, attrs_, pure, at);
  const_cast<graph::Function*>(function.get())->is_private = is_private;  // not shared yet
  attrs_ = outer_attrs;
  result_ = outer_result;
  return function;
}

Ref<graph::SeqExpr> GraphBuilder::declaration(const ast::Stmt& definition, const Type& result,
                                              const Origin& at) {
  if (!result && definition.body.size() > 1)
    fail(kSyntax, definition.body.back()->place,
         "`...` in the place of the rest of `{}`; expected statements that end with `return`",
         definition.text);
  if (!result)
    fail(kSyntax, definition.name_place, "function `{}` has no body and no result type",
         definition.text);
  sequences_.emplace_back();
  for (size_t i = 0; i + 1 < definition.body.size(); ++i) {
    statement(*definition.body[i]);
    if (result_ || !sequences_.back().open.empty() || !sequences_.back().blocks.empty())
      fail(kSyntax, definition.body[i]->place, "a statement before `...`; only attributes are");
  }
  sequences_.pop_back();
  return graph::no_body(result, at);
}

Type GraphBuilder::type(const ast::Expr& expr) {
  define_dimensions(expr, false);
  return to_type(eval(expr), expr.place);
}

std::vector<Expr> GraphBuilder::dimensions(const ast::Expr& expr) {
  define_dimensions(expr, true);
  return to_shape(eval(expr), expr.place);
}

Value GraphBuilder::value(const ast::Expr& expr) { return to_value(eval(expr), expr.place); }

Ref<graph::SeqExpr> GraphBuilder::sequence(const ast::Body& body, const Origin& at,
                                           const std::string& name) {
  sequences_.emplace_back();
  for (size_t i = 0; i < body.size(); ++i) {
    if (result_) fail(kSyntax, body[i]->place, "a statement after `return`");
    statement(*body[i]);
  }
  if (!result_) throw CompileError(kSyntax, at, "function `{}` does not end with `return`", name);
  flush();
  auto out = make<graph::SeqExpr>(std::move(sequences_.back().blocks), *result_, at);
  sequences_.pop_back();
  return out;
}

void GraphBuilder::flush() {
  Sequence& sequence = sequences_.back();
  if (sequence.open.empty() && !sequence.in_dataflow) return;
  const Origin at = sequence.open.empty() ? Origin() : sequence.open[0]->origin;
  sequence.blocks.push_back(
      make<graph::BindingBlock>(std::move(sequence.open), sequence.in_dataflow, at));
  sequence.open.clear();
  sequence.in_dataflow = false;
}

Ref<graph::Var> GraphBuilder::emit(const std::string& name, Value value, Type type, Type match,
                                   const Place& place) {
  if (sequences_.empty()) fail(kSyntax, place, "a call where a type is expected");
  if (!type) type = match ? match : infer(value);
  Sequence& sequence = sequences_.back();
  const bool is_dataflow = sequence.in_dataflow && !outputs_.count(name);
  const auto var = make<graph::Var>(name, std::move(type), is_dataflow, origin(place));
  sequence.open.push_back(
      make<graph::Binding>(var, std::move(value), std::move(match), origin(place)));
  return var;
}

Type GraphBuilder::infer(const Value& value) {
  const auto* call = value.as<graph::Call>();
  const auto* callee =
      call && !call->op && call->type_args.empty() ? call->callee.as<graph::FuncRef>() : nullptr;
  const Declaration* declaration = callee ? module_.function_named(callee->name) : nullptr;
  if (!declaration || declaration->is_prim_func) return graph::type_of(value);
  const auto* known = declaration->function.as<graph::Function>();
  if (!declaration->definition && !known) return graph::type_of(value);
  const auto result_of = [&](const std::vector<Ref<graph::Var>>& params, const Type& result) {
    std::vector<Type> types;
    types.reserve(params.size());
    for (const auto& param : params) types.push_back(param->type);
    return graph::result_type(types, result, call->args);
  };
  try {
    if (known && known->result) return result_of(known->params, known->result);
    if (known) return result_of(known->params, graph::type_of(known->body->body));
    GraphBuilder reader(module_);
    const auto [params, result] = reader.signature(*declaration->definition);
    if (result) return result_of(params, result);
  } catch (const CompileError&) {
    return graph::type_of(value);  // reported where the function itself is read
  }
  return graph::type_of(value);
}

// ---- statements ---------------------------------------------------------------------------------

void GraphBuilder::statement(const ast::Stmt& stmt) {
  switch (stmt.kind) {
    case StmtKind::kExpr: {
      const ast::Expr& expr = *stmt.value;
      if (expr.kind == ExprKind::kString) return;  // a docstring
      const std::string path = callee_path(expr);
      if (path == "R.func_attr") {
        Arguments args = arguments(expr);
        const auto& dict = need(args, expr, 0, {"attrs"});
        finish(args, expr);
        for (const auto& [name, value] : to_attrs(dict.value, dict.place)) attrs_.set(name, value);
        return;
      }
      if (path == "R.output")
        fail(kSyntax, expr.place, "`R.output` that does not end a dataflow block");
      if (expr.kind != ExprKind::kCall)
        fail(kSyntax, expr.place, "an expression as a statement; only calls are");
      call_statement(expr);
      return;
    }
    case StmtKind::kAssign: return assign(stmt);
    case StmtKind::kWith: return dataflow(stmt);
    case StmtKind::kIf: return if_else(stmt);
    case StmtKind::kReturn: {
      if (sequences_.size() != 1 && sequences_.back().in_dataflow)
        fail(kSyntax, stmt.place, "`return` inside a dataflow block");
      if (!stmt.value) {
        result_ = make<graph::Tuple>(std::vector<Value>{}, origin(stmt.place));
        return;
      }
      result_ = leaf(to_value(eval(*stmt.value), stmt.value->place), stmt.value->place);
      return;
    }
    case StmtKind::kPass: return;
    case StmtKind::kFunction: {
      const auto inner = function(stmt);
      const Value value = make<graph::FunctionValue>(inner, origin(stmt.name_place));
      const auto var = emit(stmt.text, value, nullptr, nullptr, stmt.name_place);
      define(stmt.text, Value(var));
      return;
    }
    default: fail(kUnsupported, stmt.place, "this statement in a graph function");
  }
}

bool GraphBuilder::declares_dimension(const ast::Expr& call) {
  const std::string path = callee_path(call);
  return path.starts_with("T.") && call.items.size() == 1 && DType::parse(path.substr(2));
}

// `n = T.int64()` declares a symbolic variable, once.
void GraphBuilder::declare_dimension(const ast::Expr& target, const ast::Expr& call) {
  if (target.kind != ExprKind::kName) fail(kSyntax, target.place, "a name is expected");
  const Object* known = lookup_own(target.text);
  const auto* expr = known ? known->as<Expr>() : nullptr;
  if (expr && expr->as<Var>()) return;
  Arguments args = arguments(call);
  const auto var =
      new_var(target.text, *DType::parse(callee_path(call).substr(2)), args, target.place);
  finish(args, call);
  define(target.text, Expr(var));
}

void GraphBuilder::assign(const ast::Stmt& stmt) {
  if (!stmt.more_targets.empty()) fail(kUnsupported, stmt.place, "an assignment with several `=`");
  const ast::Expr& target = *stmt.target;
  const ast::Expr& call = *stmt.value;
  const std::string path = callee_path(call);
  Type type;
  if (stmt.annotation) type = to_type(eval(*stmt.annotation), stmt.annotation->place);
  if (target.kind == ExprKind::kTuple) {
    // `m, n = T.int64(), T.int64()`.
    if (call.kind == ExprKind::kTuple && call.items.size() == target.items.size() &&
        std::ranges::all_of(call.items,
                            [&](const auto& item) { return declares_dimension(*item); })) {
      for (size_t i = 0; i < target.items.size(); ++i)
        declare_dimension(*target.items[i], *call.items[i]);
      return;
    }
    const Object object = eval(call);
    // Values of Python's, one by one; else the items of a value that is a tuple.
    const auto* list = object.as<List>();
    if (list && list->items->size() != target.items.size())
      fail(kBadArgument, target.place, "{} values for {} names", list->items->size(),
           target.items.size());
    const Value tuple = list ? Value() : argument(object, call.place);
    for (size_t i = 0; i < target.items.size(); ++i) {
      const ast::Expr& name = *target.items[i];
      if (name.kind != ExprKind::kName) fail(kSyntax, name.place, "a name is expected");
      const Value item = list ? to_value((*list->items)[i], call.place)
                              : Value(make<graph::TupleGetItem>(tuple, static_cast<int64_t>(i),
                                                                origin(name.place)));
      define(name.text, Value(emit(name.text, item, nullptr, nullptr, name.place)));
    }
    return;
  }
  if (target.kind != ExprKind::kName) fail(kSyntax, target.place, "a name is expected");
  if (declares_dimension(call)) return declare_dimension(target, call);
  if (path == "R.match_cast") {
    Arguments args = arguments(call);
    const auto& value = need(args, call, 0, {"value"});
    const auto& match_item = need(args, call, 1, {"struct_info", "ty"});
    finish(args, call);
    const Type match = to_type(match_item.value, match_item.place);
    const Value source = argument(value.value, value.place);
    return define(target.text, Value(emit(target.text, source, type, match, target.place)));
  }
  const Object object = eval(call);
  // Names for what is no value of the graph.
  if (object.as<ModuleName>() || object.as<Path>() || object.as<Type>() || object.as<Expr>() ||
      object.as<DType>() || object.as<std::string>() || object.as<Helper>())
    return define(target.text, object);
  define(target.text,
         Value(emit(target.text, to_value(object, call.place), type, nullptr, target.place)));
}

void GraphBuilder::dataflow(const ast::Stmt& stmt) {
  const ast::Expr& context = *stmt.items[0].context;
  if (stmt.items.size() != 1 || callee_path(context) != "R.dataflow")
    fail(kSyntax, context.place, "a `with` of something else; expected R.dataflow()");
  if (sequences_.empty() || sequences_.back().in_dataflow)
    fail(kSyntax, context.place, "a dataflow block inside another");
  flush();
  // Which statements define the outputs: the last ones to assign their names.
  std::set<std::string> outputs;
  std::map<std::string, size_t> last;
  for (size_t i = 0; i < stmt.body.size(); ++i) {
    const ast::Stmt& inner = *stmt.body[i];
    if (inner.kind == StmtKind::kExpr && callee_path(*inner.value) == "R.output") {
      if (i + 1 != stmt.body.size())
        fail(kSyntax, inner.place, "`R.output` that does not end its dataflow block");
      for (size_t k = 1; k < inner.value->items.size(); ++k) {
        const ast::Expr& name = *inner.value->items[k];
        if (name.kind != ExprKind::kName) fail(kSyntax, name.place, "an output that is no name");
        outputs.insert(name.text);
      }
      continue;
    }
    if (inner.kind == StmtKind::kFunction) last[inner.text] = i;
    if (inner.kind != StmtKind::kAssign) continue;
    if (inner.target->kind == ExprKind::kName) last[inner.target->text] = i;
    if (inner.target->kind == ExprKind::kTuple)
      for (const auto& name : inner.target->items) last[name->text] = i;
  }
  const size_t inner_count =
      stmt.body.size() - (!stmt.body.empty() && stmt.body.back()->kind == StmtKind::kExpr &&
                                  callee_path(*stmt.body.back()->value) == "R.output"
                              ? 1
                              : 0);
  std::map<std::string, Object> defined;
  {
    const Scope scope(*this);
    sequences_.back().in_dataflow = true;
    for (size_t i = 0; i < inner_count; ++i) {
      const ast::Stmt& inner = *stmt.body[i];
      if (inner.kind == StmtKind::kIf)
        fail(kNotNormal, inner.place, "an `if` inside a dataflow block");
      if (inner.kind == StmtKind::kReturn)
        fail(kSyntax, inner.place, "`return` inside a dataflow block");
      const auto defines_output = [&](const std::string& name) {
        return outputs.count(name) != 0 && last[name] == i;
      };
      const auto mark = [&](const std::string& name) {
        if (defines_output(name)) outputs_.insert(name);
      };
      if (inner.kind == StmtKind::kFunction) mark(inner.text);
      if (inner.kind == StmtKind::kAssign && inner.target->kind == ExprKind::kName)
        mark(inner.target->text);
      if (inner.kind == StmtKind::kAssign && inner.target->kind == ExprKind::kTuple)
        for (const auto& name : inner.target->items) mark(name->text);
      statement(inner);
      outputs_.clear();
    }
    for (const std::string& name : outputs) {
      const Object* found = lookup_own(name);
      if (!found || !last.count(name))
        fail(kUndefined, stmt.body.back()->place,
             "output `{}` is not defined in this dataflow block", name);
      defined.emplace(name, *found);
    }
    flush();
  }
  for (const auto& [name, object] : defined) define(name, object);
}

// The name that the last statement of an arm defines; empty where it defines none.
static std::string last_name(const ast::Body& body) {
  if (body.empty()) return "";
  const ast::Stmt& last = *body.back();
  if (last.kind == StmtKind::kAssign && last.target->kind == ExprKind::kName)
    return last.target->text;
  if (last.kind == StmtKind::kIf) return last_name(last.body);
  return "";
}

Ref<graph::SeqExpr> GraphBuilder::arm(const ast::Body& body, const ast::Stmt& stmt,
                                      Type& annotation) {
  const Scope scope(*this);
  sequences_.emplace_back();
  for (size_t i = 0; i + 1 < body.size(); ++i) {
    statement(*body[i]);
    if (result_) fail(kSyntax, body[i]->place, "`return` inside a branch");
  }
  const ast::Stmt& last = *body.back();
  Value value;
  if (last.kind == StmtKind::kAssign && callee_path(*last.value) != "R.match_cast") {
    if (last.annotation && !annotation)
      annotation = to_type(eval(*last.annotation), last.annotation->place);
    value = to_value(eval(*last.value), last.value->place);
    if (!graph::is_leaf(value))
      value = emit(last.target->text, value, last.annotation ? annotation : nullptr, nullptr,
                   last.target->place);
  } else {
    statement(last);
    value = to_value(*lookup_own(last_name(body)), last.place);
  }
  flush();
  auto out = make<graph::SeqExpr>(std::move(sequences_.back().blocks), value, origin(stmt.place));
  sequences_.pop_back();
  return out;
}

void GraphBuilder::if_else(const ast::Stmt& stmt) {
  if (stmt.orelse.empty()) fail(kSyntax, stmt.place, "an `if` without `else` in a graph function");
  const std::string name = last_name(stmt.body), other = last_name(stmt.orelse);
  if (name.empty() || name != other)
    fail(kSyntax, stmt.place,
         "the branches of an `if` end by assigning {} and {}; expected one name in both",
         name.empty() ? "nothing" : "`" + name + "`",
         other.empty() ? "nothing" : "`" + other + "`");
  const Value condition = argument(eval(*stmt.value), stmt.value->place);
  Type type;
  const auto then_branch = arm(stmt.body, stmt, type);
  const auto else_branch = arm(stmt.orelse, stmt, type);
  const Value branch = make<graph::If>(condition, then_branch, else_branch, origin(stmt.place));
  define(name, Value(emit(name, branch, type, nullptr, stmt.place)));
}

}  // namespace tenon::script
