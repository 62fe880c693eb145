// SPDX-License-Identifier: Apache-2.0
// Makes a function of a match.
#include <algorithm>

#include "tenon/graph/dimensions.h"
#include "tenon/graph/infer.h"
#include "tenon/graph/patterns/constant_order.h"
#include "tenon/graph/patterns/match_index.h"
#include "tenon/ir/visit.h"

namespace tenon::graph {

namespace {

class Outline {
 public:
  Outline(const std::string& name, const Match& match, const CompositeOptions& options)
      : name_(name), match_(match), options_(options) {}

  Composite run() {
    const std::vector<MatchInput> inputs = this->inputs();
    for (const MatchInput& input : inputs) parameter(input);
    std::vector<Origin> origins;
    const std::vector<Ref<Var>>& outputs =
        options_.outputs.empty() ? match_.outputs : options_.outputs;
    check(!outputs.empty(), "a composite without a result");
    for (const Ref<Binding>& binding : match_.bindings) {
      const bool is_output = outputs.size() == 1 && outputs[0].same_as(binding->var);
      const auto var = make<Var>(binding->var->name, binding->var->type, !is_output);
      body_.push_back(make<Binding>(var, inside(binding->value), binding->match, binding->origin));
      stands_.emplace(binding->var.get(), var);
      origins.push_back(binding->origin ? binding->origin : binding->value->origin);
    }
    Value result;
    Type type;
    if (outputs.size() == 1) {
      result = inside(outputs[0]);
      type = outputs[0]->type;
    } else {
      std::vector<Value> items;
      std::vector<Type> types;
      for (const Ref<Var>& output : outputs) {
        items.push_back(inside(output));
        types.push_back(output->type);
      }
      type = make<TupleType>(std::move(types));
      const auto var = make<Var>("outputs", type);
      body_.push_back(make<Binding>(var, make<Tuple>(std::move(items))));
      result = var;
    }
    const auto block = make<BindingBlock>(std::move(body_), true);
    const Ref<Function> function =
        with(make<Function>(std::move(params_),
                            make<SeqExpr>(std::vector<Ref<BindingBlock>>{block}, result), type,
                            Attrs{{"Composite", name_}}, true, Origin::merge(origins)),
             [&](Function& made) {
               made.is_private = true;
               if (!constants_.empty()) made.attrs.set("constants", std::move(constants_));
               if (const auto names = names_of(inputs)) made.attrs.set(kOperandNames, *names);
               if (options_.bind_constants) set_constant_order(made.attrs);
             });
    return {with_own_dimensions(renew_definitions(function)), std::move(arguments_)};
  }

 private:
  void parameter(const MatchInput& input) {
    if (captured(input)) return;
    const auto param = make<Var>(input.name, type_of(input.argument));
    params_.push_back(param);
    arguments_.push_back(input.argument);
    Value stand = param;
    if (input.view != MatchInput::View::kItself) {
      const Type seen = type_of(input.seen);
      const Value view =
          input.view == MatchInput::View::kTranspose
              ? call_op("permute_dims", {param})
              : call_op("reshape", {param, make<ShapeExpr>(*seen.as<TensorType>()->shape)});
      const auto var = make<Var>("view", type_of(view), true);
      body_.push_back(make<Binding>(var, view, Type(), input.seen->origin));
      stand = var;
    }
    if (input.seen.as<Var>())
      stands_.emplace(input.seen.get(), stand);
    else
      leaves_.emplace_back(input.seen, stand);
  }

  // A number is a part of what the composite computes; who calls it finds it by the pattern's name.
  bool captured(const MatchInput& input) {
    const auto* number = input.argument.as<PrimValue>();
    if (!number) return false;
    if (const auto whole = as_int(number->value))
      constants_.emplace(input.name, *whole);
    else if (const auto real = as_float(number->value))
      constants_.emplace(input.name, *real);
    else
      return false;
    return true;
  }

  // What becomes a parameter, in order, with the pattern's names.
  std::vector<MatchInput> inputs() const {
    std::vector<MatchInput> out = match_.inputs;
    if (!options_.bind_constants) {
      if (!match_.states_inputs) out.clear();
      const size_t stated = out.size();
      for (const MatchInput& operand : match_.operands) {
        const bool known = std::any_of(
            out.begin(), out.begin() + static_cast<std::ptrdiff_t>(stated),
            [&](const MatchInput& input) { return is_same_value(input.seen, operand.seen); });
        if (known || is_stated(operand.seen)) continue;
        if (operand.seen.as<Constant>() || !match_.states_inputs) out.push_back(operand);
      }
    }
    if (match_.states_inputs) return out;
    for (MatchInput& input : out) {
      if (const std::string* name = name_of(input))
        input.name = *name;
      else
        while (options_.names.count(input.name)) input.name += "_";
    }
    return out;
  }

  // The pattern names its value.
  bool is_stated(const Value& value) const {
    return std::any_of(match_.values.begin(), match_.values.end(), [&](const auto& entry) {
      return NodePtr(entry.first).template as<ExprPattern>() && is_same_value(entry.second, value);
    });
  }

  // Null where the pattern has none.
  const std::string* name_of(const MatchInput& input) const {
    for (const auto& [name, matched] : options_.names)
      if (is_same_value(matched, input.matched)) return &name;
    return nullptr;
  }

  // Nothing where an input has no name of the pattern's own, or a graph function states the order.
  std::optional<AttrList> names_of(const std::vector<MatchInput>& inputs) const {
    if (match_.states_inputs || inputs.empty()) return std::nullopt;
    AttrList out;
    for (const MatchInput& input : inputs) {
      if (!name_of(input)) return std::nullopt;
      out.emplace_back(input.name);
    }
    return out;
  }

  // Bindings are in the order of the network, which is not to say which constant is which.
  void set_constant_order(Attrs& attrs) const {
    if (match_.states_inputs) return;
    std::vector<Value> in_body;
    for (const Ref<Binding>& binding : match_.bindings)
      each_input(binding->value, [&](const Value& value) {
        const auto* constant = value.as<Constant>();
        if (constant && std::ranges::none_of(in_body, [&](const Value& known) {
              return known.as<Constant>()->data.same_as(constant->data);
            }))
          in_body.push_back(value);
      });
    std::vector<int64_t> order;
    for (const MatchInput& operand : match_.operands)
      for (size_t i = 0; operand.seen.as<Constant>() && i < in_body.size(); ++i)
        if (is_same_value(operand.seen, in_body[i])) order.push_back(static_cast<int64_t>(i));
    if (order.size() != in_body.size() || std::ranges::is_sorted(order)) return;
    attrs.set(kConstantOrder, AttrList(order.begin(), order.end()));
  }

  // What stands for a constant or an item of a tuple that is a parameter; null where none is.
  Value leaf(const Value& value) const {
    for (const auto& [seen, stand] : leaves_)
      if (is_same_value(seen, value)) return stand;
    return {};
  }

  Value inside(const Value& value) const {
    if (!value) return value;
    const auto all = [&](const std::vector<Value>& values) {
      std::vector<Value> out;
      for (const Value& item : values) out.push_back(inside(item));
      return out;
    };
    if (value.as<Var>()) {
      const auto found = stands_.find(value.get());
      return found == stands_.end() ? value : downcast<ValueNode>(found->second);
    }
    if (const Value stand = leaf(value)) return stand;
    if (const auto* tuple = value.as<Tuple>()) return make<Tuple>(all(tuple->values));
    if (const auto* get = value.as<TupleGetItem>())
      return make<TupleGetItem>(inside(get->tuple), get->index, get->origin);
    if (const auto* call = value.as<Call>())
      return call->op
                 ? make<Call>(call->op, all(call->args), call->attrs, call->type_args, call->origin)
                 : make<Call>(inside(call->callee), all(call->args), call->attrs, call->type_args,
                              call->origin);
    return substitute(value, stands_);
  }

  const std::string& name_;
  const Match& match_;
  const CompositeOptions& options_;
  std::vector<Ref<Var>> params_;
  AttrValue::Map constants_;  // numbers that parameters of the pattern matched
  std::vector<Value> arguments_;
  std::vector<Ref<Binding>> body_;
  Substitution stands_;                          // by variable
  std::vector<std::pair<Value, Value>> leaves_;  // of other inputs
};

}  // namespace

Composite make_composite(const std::string& name, const Match& match,
                         const CompositeOptions& options) {
  return Outline(name, match, options).run();
}

}  // namespace tenon::graph
