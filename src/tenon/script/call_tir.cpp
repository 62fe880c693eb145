// SPDX-License-Identifier: Apache-2.0
// Parses calls of the module's functions from PrimFuncs: `T.call_tir(cls.f, ...)`, as a statement
// or for the scalar that it returns.
#include "tenon/arith/analyzer.h"
#include "tenon/script/tir_builder.h"

namespace tenon::script {

using namespace tir;
using ast::ExprKind, ast::StmtKind;

bool has_calls(const Stmt& body) {
  bool found = false;
  walk(body, [&](const NodePtr& node) {
    const auto* call = node.as<Call>();
    found |= node.as<CallTir>() || (call && call->callee);
  });
  return found;
}

FunctionName TirBuilder::callee_of_call(const ast::Expr& call) {
  if (call.items.size() < 2)
    fail(kBadArgument, call.place, "`{}` names no function", callee_path(call));
  const Object callee = eval(*call.items[1]);
  const auto* function = callee.as<FunctionName>();
  if (!function)
    fail(kUnknownCallee, call.items[1]->place, "{}; expected a function of the module",
         describe(callee));
  return *function;
}

const Declaration* TirBuilder::declaration_of(const FunctionName& function) const {
  return module_.function_named(function.name);
}

std::vector<NodePtr> TirBuilder::call_arguments(const ast::Expr& call, const FunctionName& function,
                                                size_t first, Attrs* annotations) {
  const Declaration* declaration = declaration_of(function);
  Arguments args = arguments(call);
  std::vector<NodePtr> values;
  for (size_t i = 0; i < args.items.size(); ++i) {
    auto& item = args.items[i];
    if (annotations && item.keyword == "annotations") {
      item.used = true;
      *annotations = to_attrs(item.value, item.place);
      continue;
    }
    item.used = item.keyword.empty();
    if (i < first || !item.used) continue;
    const Object& value = item.value;
    const Origin at = origin(item.place);
    const size_t param = i - first;
    const bool is_declared = declaration && param < declaration->buffer_params.size();
    if (const auto* region = value.as<Region>()) {
      const auto& drop = region->region->drop;
      bool drops = false;
      for (const bool d : drop) drops |= d;
      values.push_back(make<BufferRegion>(region->region->buffer, region->region->region,
                                          drops ? drop : std::vector<bool>{}, at));
      continue;
    }
    if (value.as<Ref<Buffer>>()) {
      const auto whole = to_region(value, item.place);
      values.push_back(make<BufferRegion>(whole->buffer, whole->region, std::vector<bool>{}, at));
      continue;
    }
    if (const auto* text = value.as<std::string>(); text && declaration && declaration->is_extern) {
      values.push_back(make<StringImm>(*text, at));
      continue;
    }
    // A literal takes the dtype of the parameter.
    DType expected = kVoid;
    if (is_declared && value.is_literal()) expected = declaration->scalar_dtypes[param];
    const Expr scalar = to_expr(value, item.place, expected);
    const auto* load = scalar.as<BufferLoad>();
    if (load && is_declared && declaration->buffer_params[param]) {
      for (const Expr& index : load->indices)
        if (const auto* ramp = index.as<Ramp>(); ramp && !is_int(ramp->stride, 1))
          fail(kUnsupported, item.place,
               "a region with step {} of `{}` as an argument of `{}`; a region has no "
               "steps: pass a region of a view, `T.decl_buffer(shape, dtype, data={}.data, "
               "strides=[...])`, to a parameter with strides",
               str(ramp->stride), load->buffer->name, function.name, load->buffer->name);
      // One element where a buffer is wanted: every dimension is dropped.
      const auto region = to_region(value, item.place);
      const std::vector<bool> drop(region->region.size(), true);
      values.push_back(make<BufferRegion>(region->buffer, region->region,
                                          drop.empty() ? std::vector<bool>{} : drop, at));
      continue;
    }
    values.push_back(scalar);
  }
  finish(args, call);
  return values;
}

Stmt TirBuilder::call_tir(const ast::Expr& call, const FunctionName& function, size_t first) {
  Attrs annotations;
  std::vector<NodePtr> args = call_arguments(call, function, first, &annotations);
  return make<CallTir>(make<GlobalVar>(function.name, origin(call.items[first]->place)),
                       std::move(args), std::move(annotations), origin(call.place));
}

Object TirBuilder::call_value(const ast::Expr& call, const FunctionName& function, size_t first) {
  const Declaration* declaration = declaration_of(function);
  if (declaration && declaration->is_prim_func && declaration->result.is_void())
    fail(kTypeMismatch, call.place,
         "`{}` returns no value; call it as a statement, with a buffer for what it computes",
         function.name);
  std::vector<NodePtr> args = call_arguments(call, function, first, nullptr);
  return Expr(make<Call>(make<GlobalVar>(function.name, origin(call.items[first]->place)),
                         std::move(args), declaration ? declaration->result : kVoid,
                         origin(call.place)));
}

bool TirBuilder::assign_result(const ast::Expr& target, const ast::Expr& call, Statements& out) {
  if (call.kind != ExprKind::kCall) return false;
  if (target.kind != ExprKind::kName && target.kind != ExprKind::kSubscript) return false;
  FunctionName function;
  size_t first = 0;
  if (callee_path(call) == "T.call_tir") {
    function = callee_of_call(call);
    first = 1;
  } else if (call.items[0]->kind == ExprKind::kAttribute &&
             call.items[0]->items[0]->kind == ExprKind::kName) {
    const std::string& owner = call.items[0]->items[0]->text;
    const Object* known = lookup(owner);
    const bool is_module =
        known ? known->as<ModuleName>() != nullptr : owner == "cls" || owner == module_.class_name;
    if (!is_module) return false;
    const Object callee = eval(*call.items[0]);
    const auto* named = callee.as<FunctionName>();
    if (!named) return false;
    function = *named;
  } else {
    return false;
  }
  const Declaration* declaration = declaration_of(function);
  if (!declaration || !declaration->is_prim_func || !declaration->result.is_void()) return false;
  Attrs annotations;
  std::vector<NodePtr> args = call_arguments(call, function, first, &annotations);
  const size_t params = declaration->buffer_params.size();
  if (params == 0 || !declaration->buffer_params.back())
    fail(kBadArgument, call.place,
         "`{}` has no last parameter that is a buffer for its result; call it as a statement",
         function.name);
  if (args.size() + 1 != params)
    fail(kBadArgument, call.place,
         "a call of `{}` for its result has {} arguments; expected {}: all but the last parameter, "
         "which is the result",
         function.name, args.size(), params - 1);
  args.push_back(result_region(target, call, function, args));
  out.list.push_back(make<CallTir>(make<GlobalVar>(function.name, origin(call.items[first]->place)),
                                   std::move(args), std::move(annotations), origin(call.place)));
  return true;
}

NodePtr TirBuilder::result_region(const ast::Expr& target, const ast::Expr& call,
                                  const FunctionName& function, const std::vector<NodePtr>& args) {
  const Origin at = origin(target.place);
  if (target.kind == ExprKind::kSubscript) {
    const Object place = eval(target);
    if (const auto* region = place.as<Region>())
      return make<BufferRegion>(region->region->buffer, region->region->region,
                                region->region->drop, at);
    const auto region = to_region(place, target.place);
    return make<BufferRegion>(region->buffer, region->region,
                              std::vector<bool>(region->region.size(), true), at);
  }
  if (const Object* known = lookup_own(target.text))
    if (const auto* buffer = known->as<Ref<Buffer>>()) {
      const auto whole = BufferRegion::whole(*buffer);
      return make<BufferRegion>(whole->buffer, whole->region, std::vector<bool>{}, at);
    }
  const Callee callee = header_of(function, call.place);
  const Buffer& declared = *callee.buffers.back();
  const Substitution bound = bind_symbols(callee, args);
  const auto has = [&](const Var& var) {
    for (const auto& [loop, domain] : loop_domains_)
      if (loop == &var) return true;
    return false;
  };
  std::vector<Expr> shape;
  for (const Expr& dim : declared.shape) {
    walk<Var>(dim, [&](const Var& var) {
      if (!bound.count(&var))
        fail(kShapeMismatch, call.place,
             "the result of `{}` has shape {}; no argument of the call determines `{}`: allocate "
             "the buffer and pass it as the last argument",
             function.name, str(declared.shape), var.name);
    });
    shape.push_back(arith::simplify(substitute(dim, bound)));
    walk<Var>(shape.back(), [&](const Var& var) {
      if (has(var))
        fail(kShapeMismatch, call.place,
             "the result of `{}` has extent {} here, which changes with loop `{}`; allocate a "
             "buffer of the largest extent and pass a region of it as the last argument",
             function.name, str(shape.back()), var.name);
    });
  }
  const auto buffer = make<Buffer>(target.text, declared.dtype, std::move(shape), at);
  (frames_.empty() ? root_ : *frames_.back()).parts.alloc_buffers.push_back(buffer);
  define(target.text, buffer);
  module_.result_calls.push_back({function.name, origin(call.place)});
  const auto whole = BufferRegion::whole(buffer);
  return make<BufferRegion>(whole->buffer, whole->region, std::vector<bool>{}, at);
}

Callee TirBuilder::header_of(const FunctionName& function, const Place& place) {
  const ast::Stmt& definition = *declaration_of(function)->definition;
  TirBuilder header(module_);
  header.parameters(definition);
  // Dimensions, and the buffers behind handles, stand first in the body.
  Statements none;
  for (const auto& stmt : definition.body) {
    const std::string path =
        stmt->kind == StmtKind::kAssign && stmt->value ? callee_path(*stmt->value) : "";
    const bool describes = stmt->kind == StmtKind::kExpr;  // T.func_attr, a text
    const bool declares =
        stmt->kind == StmtKind::kAssign &&
        (path == "T.match_buffer" || DType::parse(path.substr(std::min<size_t>(2, path.size()))) ||
         stmt->target->kind == ExprKind::kTuple);
    if (!describes && !declares) break;
    if (declares) header.statement(*stmt, none);
  }
  if (header.buffers_.empty() || !header.buffers_.back())
    fail(kBadArgument, place, "`{}` does not say what its last parameter is", function.name);
  return {function.name, header.params_, header.buffers_, kVoid, {}};
}

}  // namespace tenon::script
