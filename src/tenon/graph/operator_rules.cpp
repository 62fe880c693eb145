// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/operator_rules.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "tenon/graph/kernels.h"
#include "tenon/support/codes.h"
#include "tenon/support/nearest.h"

namespace tenon::graph {

namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const OperatorRule>> rules;
};
Registry& registry() {
  static auto* const one = new Registry;  // never destroyed: rules may be code of another language
  return *one;
}

std::vector<std::string> attribute_names(const OperatorRule& rule) {
  std::vector<std::string> names;
  for (const Ref<Var>& param : rule.schema->params)
    if (!param->type.as<TensorType>()) names.push_back(param->name);
  return names;
}

}  // namespace

void register_operator_rule(OperatorRule rule, bool replaces) {
  std::string name = rule.name;
  auto made = std::make_shared<const OperatorRule>(std::move(rule));
  Registry& all = registry();
  // What was there ends outside of the lock: its code may ask the registry.
  const std::lock_guard lock(all.mutex);
  std::shared_ptr<const OperatorRule>& place = all.rules[name];
  if (place && !replaces)
    throw CompileError(kRedefined, made->schema->origin, "operator `{}` is declared twice", name)
        .note(place->schema->origin, "it is declared here");
  std::swap(place, made);
}

bool unregister_operator_rule(const std::string& name) {
  Registry& all = registry();
  std::map<std::string, std::shared_ptr<const OperatorRule>>::node_type taken;
  const std::lock_guard lock(all.mutex);
  taken = all.rules.extract(name);
  return !taken.empty();
}

std::shared_ptr<const OperatorRule> find_operator_rule(const std::string& name) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.rules.find(name);
  return found == all.rules.end() ? nullptr : found->second;
}

Attrs attributes_of_call(const OperatorRule& rule, const Attrs& given, const Origin& origin) {
  const std::vector<std::string> names = attribute_names(rule);
  for (const auto& [name, value] : given)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw CompileError(kBadAttribute, origin, "operator `{}` has no attribute `{}`{}", rule.name,
                         name, did_you_mean(name, names));
  const auto defaults = rule.schema->attrs.get<AttrValue::Map>("op_attrs");
  Attrs out;
  for (const std::string& name : names) {
    const AttrValue* value = given.find(name);
    if (!value && defaults)
      if (const auto found = defaults->find(name); found != defaults->end()) value = &found->second;
    if (!value)
      throw CompileError(kBadAttribute, origin,
                         "a call of operator `{}` needs attribute `{}`, which has no default",
                         rule.name, name);
    out.set(name, *value);
  }
  return out;
}

std::vector<Type> inputs_of_call(const OperatorRule& rule, std::vector<Type> given,
                                 const Origin& origin) {
  const std::vector<std::string> optional = optional_inputs(*rule.schema);
  size_t inputs = 0;
  for (const Ref<Var>& param : rule.schema->params) {
    if (!param->type.as<TensorType>()) continue;
    if (given.size() <= inputs) given.emplace_back();
    if (!given[inputs++] &&
        std::find(optional.begin(), optional.end(), param->name) == optional.end())
      throw CompileError(kBadArgument, origin, "a call of operator `{}` lacks input `{}`",
                         rule.name, param->name);
  }
  if (given.size() > inputs)
    throw CompileError(kBadArgument, origin, "a call of operator `{}` has {} inputs; it takes {}",
                       rule.name, given.size(), inputs);
  return given;
}

Value attribute_value(const Var& param, const AttrValue& value, const Origin& origin) {
  const auto wrong = [&] {
    return CompileError(kBadAttribute, origin, "attribute `{}` is {}; expected {}", param.name,
                        value.str(), str(param.type));
  };
  if (const auto* prim = param.type.as<PrimType>()) {
    const auto* whole = value.as<int64_t>();
    const auto* flag = value.as<bool>();
    const auto* real = value.as<double>();
    if (prim->dtype.is_float() && (real || whole))
      return make<PrimValue>(imm(prim->dtype, real ? *real : static_cast<double>(*whole)), origin);
    if (!prim->dtype.is_float() && (whole || flag))
      return make<PrimValue>(imm(prim->dtype, whole ? *whole : int64_t{*flag}), origin);
    throw wrong();
  }
  if (param.type.as<ShapeType>()) {
    const auto values = Attrs{{param.name, value}}.ints(param.name);
    if (!values) throw wrong();
    return make<ShapeExpr>(to_exprs(*values), origin);
  }
  const auto* text = value.as<std::string>();
  if (!text) throw wrong();
  return make<StringValue>(*text, origin);
}

AttrValue attribute_of(const Value& argument) {
  if (const auto* scalar = argument.as<PrimValue>()) {
    if (const auto whole = as_int(scalar->value)) return *whole;
    if (const auto real = as_float(scalar->value)) return *real;
  }
  if (const auto* text = argument.as<StringValue>()) return text->value;
  AttrList items;
  if (const auto* shape = argument.as<ShapeExpr>())
    for (const Expr& item : shape->values) items.push_back(as_int(item).value_or(0));
  return items;
}

std::string add_form(IRModule& module, const OperatorRule::Form& form) {
  std::map<std::string, std::string> names;
  for (const auto& [name, function] : form.module->functions()) {
    const BaseFunc known = module.find(name);
    if (known && structural_equal(known, function))
      names[name] = name;
    else
      names[name] = module.add_unique(name, function);
  }
  for (const auto& [name, taken] : names) {
    const BaseFunc renamed =
        rewrite(module.find(taken), [&](const NodePtr& node) -> std::optional<NodePtr> {
          if (const auto* ref = node.as<FuncRef>())
            if (const auto to = names.find(ref->name); to != names.end() && to->second != ref->name)
              return NodePtr(make<FuncRef>(to->second, ref->origin));
          return std::nullopt;
        });
    module.set(taken, renamed);
  }
  return names.at(form.name);
}

}  // namespace tenon::graph
