// SPDX-License-Identifier: Apache-2.0
// What a text takes from the program that it stands in: functions of other modules, values, and
// helpers of other texts.
#include <set>

#include "tenon/graph/expr.h"
#include "tenon/script/evaluator.h"
#include "tenon/support/names.h"
#include "tenon/tir/extern_function.h"

namespace tenon::script {

using ast::ExprKind;
using ast::Integer;

// ---- functions of other modules -----------------------------------------------------------------

// The functions of `module` that `function` names.
static std::vector<std::string> named_in(const BaseFunc& function, const IRModule& module) {
  std::vector<std::string> out;
  tenon::walk(function, [&](const NodePtr& node) {
    const auto* ref = node.as<graph::FuncRef>();
    const auto* var = node.as<GlobalVar>();
    if (!ref && !var) return;
    const std::string& name = ref ? ref->name : var->name;
    if (module.contains(name)) out.push_back(name);
  });
  return out;
}

static BaseFunc renamed(const BaseFunc& function, const std::map<std::string, std::string>& names) {
  return rewrite(function, [&](const NodePtr& node) -> std::optional<NodePtr> {
    const auto* ref = node.as<graph::FuncRef>();
    const auto* var = node.as<GlobalVar>();
    if (!ref && !var) return std::nullopt;
    const auto found = names.find(ref ? ref->name : var->name);
    if (found == names.end() || found->first == found->second) return std::nullopt;
    if (ref) return make<graph::FuncRef>(found->second, ref->origin);
    return make<GlobalVar>(found->second, var->origin);
  });
}

static Declaration declaration_of(const std::string& name, const BaseFunc& function) {
  Declaration out;
  out.name = name;
  out.function = function;
  const auto parameters = [&](const auto& of) {
    for (size_t i = 0; i < of.params.size(); ++i) {
      out.buffer_params.push_back(static_cast<bool>(of.buffers[i]));
      out.scalar_dtypes.push_back(of.buffers[i] ? kVoid : of.params[i]->dtype);
    }
    out.result = of.result;
  };
  if (const auto* kernel = function.as<tir::PrimFunc>()) {
    out.is_prim_func = true;
    parameters(*kernel);
  } else if (const auto* outside = function.as<tir::ExternFunction>()) {
    out.is_extern = true;
    parameters(*outside);
  } else if (function.as<ExternFunc>()) {
    out.is_extern = true;
  }
  return out;
}

FunctionName ModuleContext::capture(const CapturedFunction& function, const Place& place,
                                    const std::string& name) {
  const IRModule& from = *function.module;
  const auto key = [&](const std::string& of) { return std::make_pair(&from, of); };
  const auto known = captured_names_.find(key(function.name));
  if (known != captured_names_.end() && (name.empty() || known->second == name))
    return FunctionName{known->second};
  if (!name.empty() && function_named(name))
    throw CompileError(kRedefined, Origin::script(file, place.line, place.column, place.length),
                       "a second function `{}` in one module", name);
  captured_modules_.push_back(function.module);
  // It and what it reaches, each once.
  std::vector<std::string> reached = {function.name};
  std::set<std::string> seen = {function.name};
  for (size_t i = 0; i < reached.size(); ++i)
    for (const std::string& callee : named_in(from.find(reached[i]), from))
      if (!captured_names_.count(key(callee)) && seen.insert(callee).second)
        reached.push_back(callee);
  const auto is_taken = [&](const std::string& text) { return function_named(text) != nullptr; };
  for (const std::string& each : reached) {
    const bool is_named = each == function.name && !name.empty();
    const std::string taken = is_named ? name : fresh_name(each, is_taken);
    captured_names_[key(each)] = taken;
    Declaration& declared = captured_declarations_[taken];
    declared = declaration_of(taken, from.find(each));
    by_module_name.emplace(taken, &declared);
  }
  std::map<std::string, std::string> names;
  for (const auto& [of, taken] : captured_names_)
    if (of.first == &from) names[of.second] = taken;
  for (const std::string& each : reached)
    captured.set(names.at(each), renamed(from.find(each), names));
  return FunctionName{names.at(function.name)};
}

// ---- helpers of other texts ---------------------------------------------------------------------

InTextOf::InTextOf(ModuleContext& module, const Helper& helper)
    : module_(module),
      file_(module.file),
      surroundings_(module.surroundings),
      names_(module.names) {
  if (!helper.text) return;
  module.file = helper.text->file;
  module.surroundings = nullptr;
  module.names = helper.text->names.get();
}

InTextOf::~InTextOf() {
  module_.file = file_;
  module_.surroundings = surroundings_;
  module_.names = names_;
}

Helper read_helper(const std::shared_ptr<const SourceFile>& file, LineRange lines,
                   std::shared_ptr<const HostNames> names) {
  auto text = std::make_shared<HelperText>();
  text->file = file;
  text->names = std::move(names);
  Diagnostics diagnostics;
  text->body = ast::parse_file(file, diagnostics, ast::OtherPython::kReported, lines);
  diagnostics.throw_if_any();
  if (text->body.size() != 1 || text->body[0]->kind != ast::StmtKind::kFunction)
    throw CompileError(kSyntax, Origin::script(file, lines.first, 1),
                       "something else than one function");
  Helper out;
  out.definition = text->body[0].get();
  for (const auto& decorator : out.definition->decorators) {
    const ast::Expr* at =
        decorator->kind == ExprKind::kCall ? decorator->items[0].get() : decorator.get();
    out.is_macro |= at->text == "macro" || at->text == "inline";
  }
  out.text = std::move(text);
  return out;
}

Helper read_lambda(const std::shared_ptr<const SourceFile>& file, const std::string& source,
                   const Place& place, std::shared_ptr<const HostNames> names) {
  auto text = std::make_shared<HelperText>();
  text->file = file;
  text->names = std::move(names);
  text->expression = ast::parse_expression(file, source, place);
  if (text->expression->kind != ExprKind::kLambda)
    throw CompileError(kSyntax, Origin::script(file, place.line, place.column),
                       "something else than a lambda");
  Helper out;
  out.lambda = text->expression.get();
  out.text = std::move(text);
  return out;
}

// ---- values of the program ----------------------------------------------------------------------

static Object element_of(const TensorData& data, int64_t index) {
  if (data.dtype.is_bool()) return data.at_int(index) != 0;
  if (data.dtype.is_integer()) return Integer(data.at_int(index));
  return data.at_float(index);
}

std::optional<Object> Evaluator::attribute_of_host(const Object& base, const std::string& name,
                                                   const ast::Expr& expr) {
  if (const auto* module = base.as<CapturedModule>()) {
    if (!module->module->contains(name))
      fail(kUndefined, expr.place, "the module has no function `{}`", name);
    return module_.capture({module->module, name}, expr.place);
  }
  if (const auto* data = base.as<Ref<TensorData>>()) {
    const std::vector<int64_t>& shape = (*data)->shape;
    if (name == "shape") {
      std::vector<Object> dims;
      dims.reserve(shape.size());
      for (const int64_t dim : shape) dims.emplace_back(Integer(dim));
      return make_list(std::move(dims), true);
    }
    if (name == "dtype") return (*data)->dtype.str();
    if (name == "ndim") return Integer(shape.size());
    if (name == "size") return Integer((*data)->elements());
  }
  const auto* host = base.as<Host>();
  if (!host) return std::nullopt;
  auto value = host->value->attribute(name);
  if (!value) fail(kUndefined, expr.place, "{} has no attribute `{}`", describe(base), name);
  if (const auto* function = value->as<CapturedFunction>())
    return module_.capture(*function, expr.place);
  return value;
}

Object Evaluator::call_host(const HostValue& host, const ast::Expr& call) {
  Arguments args = arguments(call);
  module_.charge(1, call.place);
  std::vector<Object> positional;
  HostValue::Keywords keywords;
  for (const Arguments::Item& item : args.items) {
    if (item.keyword.empty()) {
      positional.push_back(item.value);
    } else {
      keywords.emplace_back(item.keyword, item.value);
    }
  }
  if (host.is_operator())
    if (auto out = call_operator(host, args, call)) return std::move(*out);
  if (auto out = host.call(positional, keywords)) return std::move(*out);
  if (const auto helper = host.helper(); helper && !helper->is_macro)
    return call_helper(*helper, std::move(args), call);
  fail(kTypeMismatch, call.place,
       "{} is called with what is known only when the program runs; expected values of Python, or "
       "a function whose text can be read",
       host.describe());
}

std::optional<Object> Evaluator::item_of_host(const Object& object, const ast::Expr& expr) {
  const ast::Expr& index = *expr.items[1];
  if (const auto* host = object.as<Host>()) {
    auto item = host->value->item(eval(index));
    if (!item) fail(kBadArgument, expr.place, "{} has no such item", describe(object));
    return item;
  }
  const auto* data = object.as<Ref<TensorData>>();
  if (!data) return std::nullopt;
  const std::vector<int64_t>& shape = (*data)->shape;
  const Object at = eval(index);
  const std::vector<Object> indices =
      at.as<List>() ? *at.as<List>()->items : std::vector<Object>{at};
  if (indices.size() != shape.size())
    fail(kIndexRank, expr.place, "a constant of {} dimensions is indexed with {}", shape.size(),
         indices.size());
  int64_t offset = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t given = to_int(indices[i], index.place, "the index of a constant");
    const int64_t k = given < 0 ? given + shape[i] : given;
    if (k < 0 || k >= shape[i])
      fail(kOutOfBounds, index.place, "index {} of a dimension of {}", given, shape[i]);
    offset = offset * shape[i] + k;
  }
  return element_of(**data, offset);
}

}  // namespace tenon::script
