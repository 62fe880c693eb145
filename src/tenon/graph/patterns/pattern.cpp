#include "tenon/graph/patterns/pattern.h"

#include <algorithm>
#include <set>

#include "tenon/graph/infer.h"
#include "tenon/graph/op.h"
#include "tenon/graph/transforms/rebuild.h"

namespace tenon::graph {

Pattern::Pattern(std::string name, Ref<Function> given)
    : name(std::move(name)), function(std::move(given)) {
  const auto bad = [&](const Origin& origin, const std::string& why) {
    return CompileError(kBadPattern, origin ? origin : function->origin, "pattern `{}` {}",
                        this->name, why);
  };
  for (const Ref<BindingBlock>& block : function->body->blocks)
    for (const Ref<Binding>& binding : block->bindings) {
      const auto* call = binding->value.as<Call>();
      if (call && !call->op) throw bad(call->origin, "calls a function; expected operators only");
      if (binding->value.as<If>() || binding->value.as<FunctionValue>() || binding->match)
        throw bad(binding->origin, "has control flow; expected operators only");
      operators += call != nullptr;
    }
  const auto* result = function->body->body.as<Var>();
  const auto values = bound_values(*function);
  if (!result || !values.count(result))
    throw bad(function->body->body->origin, "does not return the result of one operator");
  std::set<const Node*> used;
  walk<Var>(function->body, [&](const Var& var) { used.insert(&var); });
  for (const Ref<Var>& param : function->params)
    if (!used.count(param.get()))
      throw bad(param->origin, "does not use its parameter `" + param->name + "`");
}

PatternSearch::PatternSearch(const Function& function) : uses_(count_uses(function)) {
  size_t position = 0;
  for (const Ref<BindingBlock>& block : function.body->blocks)
    for (const Ref<Binding>& binding : block->bindings) {
      bindings_[binding->var.get()] = binding;
      positions_[binding->var.get()] = position++;
    }
}

namespace {

// Dimensions other than 1; nothing where the shape is not known.
std::optional<std::vector<Expr>> proper_dims(const Type& type) {
  const auto* tensor = type.as<TensorType>();
  if (!tensor || !tensor->shape) return std::nullopt;
  std::vector<Expr> out;
  for (const Expr& dim : *tensor->shape)
    if (!is_int(dim, 1)) out.push_back(dim);
  return out;
}

bool is_commutative(const OpDef& op) {
  return op.name == "add" || op.name == "multiply" || op.name == "maximum" || op.name == "minimum";
}

// Padding of 2 numbers is that of 4, and the like.
bool same_attr(const AttrValue& a, const AttrValue& b) {
  if (a == b) return true;
  const auto* x = a.as<AttrList>();
  const auto* y = b.as<AttrList>();
  if (!x || !y || x->empty() || y->empty()) return false;
  const AttrList& less = x->size() < y->size() ? *x : *y;
  const AttrList& more = x->size() < y->size() ? *y : *x;
  if (more.size() % less.size() != 0) return false;
  for (size_t i = 0; i < more.size(); ++i)
    if (!(more[i] == less[i % less.size()])) return false;
  return true;
}

// Axes that are left out are all of them in reverse.
bool same_axes(const AttrValue& a, const AttrValue& b, const Value& x) {
  const auto type = cast<TensorType>(type_of(x));
  if (!type || type->ndim < 0) return false;
  AttrList reversed;
  for (int64_t axis = type->ndim; axis-- > 0;) reversed.emplace_back(axis);
  return (a.is_none() ? AttrValue(reversed) : a) == (b.is_none() ? AttrValue(reversed) : b);
}

}  // namespace

/// One attempt. State is copied where two orders of operands are tried.
class PatternMatcher {
 public:
  PatternMatcher(const PatternSearch& search, const Pattern& pattern)
      : search_(search), pattern_(pattern), inner_(bound_values(*pattern.function)) {
    for (const Ref<Var>& param : pattern.function->params) params_.insert(param.get());
    const Attrs& attrs = pattern.function->attrs;
    any_attr_ = attrs.flag("any");
    for (const std::string& name : attrs.strings("any").value_or(std::vector<std::string>{}))
      any_.insert(name);
  }

  bool run(const Ref<Binding>& root) {
    if (!match(pattern_.function->body->body, root->var)) return false;
    // What is inside is used inside only.
    for (const Node* var : state_.inside) {
      if (var == root->var.get()) continue;
      const auto total = search_.uses_.find(var);
      int within = 0;
      for (const Node* user : state_.inside)
        each_use(*search_.bindings_.at(user)->value.as<Call>(),
                 [&](const Value& used) { within += used.get() == var; });
      if (total == search_.uses_.end() || total->second == within) continue;
      why_ = "an inner value is used elsewhere too";
      return false;
    }
    return true;
  }

  PatternMatch result(const Ref<Binding>& root) const {
    PatternMatch out;
    for (const Ref<Var>& param : pattern_.function->params)
      out.arguments.push_back(state_.bound.at(param.get()).value);
    for (const Node* var : state_.inside) out.bindings.push_back(search_.bindings_.at(var));
    std::sort(out.bindings.begin(), out.bindings.end(), [&](const auto& a, const auto& b) {
      return search_.positions_.at(a->var.get()) < search_.positions_.at(b->var.get());
    });
    out.function = function(out, root);
    return out;
  }

  const std::string& why() const { return why_; }

 private:
  /// What a parameter is: a value of the searched function, seen as it stands there (`seen`).
  struct Bound {
    Value value;  // the argument: may be a call on `seen` (its transpose, a vector)
    Value seen;
  };
  struct State {
    std::unordered_map<const Node*, Bound> bound;
    std::vector<const Node*> inside;  // variables of matched bindings
    // A use of a parameter in the pattern's function that stands for a value of the searched one:
    // how the function computes that value from the parameter.
    std::vector<std::pair<Value, Value>> views;  // seen -> in terms of the parameter
  };

  static void each_use(const Call& call, const std::function<void(const Value&)>& visit) {
    const std::function<void(const Value&)> look = [&](const Value& value) {
      if (!value) return;
      if (const auto* tuple = value.as<Tuple>()) {
        for (const Value& item : tuple->values) look(item);
        return;
      }
      if (const auto* get = value.as<TupleGetItem>()) return look(get->tuple);
      visit(value);
    };
    for (const Value& arg : call.args) look(arg);
  }

  bool differ(std::string why) {
    if (why_.empty()) why_ = std::move(why);
    return false;
  }

  bool match(const Value& pattern, const Value& value) {
    if (!pattern || !value) return pattern.same_as(value);
    if (params_.count(pattern.get())) return bind(downcast<Var>(pattern), value, value, pattern);
    if (pattern.as<Var>()) {
      const auto inner = inner_.find(pattern.get());
      return inner != inner_.end() && match(inner->second, value);
    }
    if (const auto* call = pattern.as<Call>()) return match_call(*call, value);
    if (const auto* tuple = pattern.as<Tuple>()) {
      const auto* other = value.as<Tuple>();
      if (!other || other->values.size() != tuple->values.size()) return false;
      for (size_t i = 0; i < tuple->values.size(); ++i)
        if (!match(tuple->values[i], other->values[i])) return false;
      return true;
    }
    if (const auto* constant = pattern.as<Constant>()) {
      const auto* other = value.as<Constant>();
      return other && other->data->content_hash() == constant->data->content_hash();
    }
    return structural_equal(pattern, value);
  }

  bool match_call(const Call& pattern, const Value& value) {
    const auto found = search_.bindings_.find(value.get());
    const Call* call = found == search_.bindings_.end() ? nullptr : found->second->value.as<Call>();
    if (!call || found->second->match || call->op != pattern.op)
      return match_transposed(pattern, value);
    if (call->args.size() != pattern.args.size()) return false;
    for (const auto& [name, wanted] : pattern.attrs) {
      if (any_attr_ || any_.count(name)) continue;
      const AttrValue* given = call->attrs.find(name);
      if (given && call->is("permute_dims") && name == "axes" &&
          same_axes(wanted, *given, call->args[0]))
        continue;
      if (!given || !same_attr(wanted, *given))
        return differ(fmt::format("`{}` of `{}` is {} and {} in the pattern", name, call->op->name,
                                  given ? given->str() : "missing", wanted.str()));
    }
    state_.inside.push_back(value.get());
    const State before = state_;
    const auto in_order = [&](bool swapped) {
      for (size_t i = 0; i < pattern.args.size(); ++i)
        if (!match(pattern.args[i], call->args[swapped ? pattern.args.size() - 1 - i : i]))
          return false;
      return true;
    };
    if (in_order(false)) return true;
    if (!is_commutative(*pattern.op) || pattern.args.size() != 2) return false;
    state_ = before;
    return in_order(true);
  }

  // permute_dims of a parameter and a constant that is written transposed already.
  bool match_transposed(const Call& pattern, const Value& value) {
    if (!pattern.is("permute_dims") || !value.as<Constant>()) return false;
    if (pattern.args.empty() || !params_.count(pattern.args[0].get())) return false;
    const auto type = cast<TensorType>(type_of(value));
    if (!type || type->ndim != 2) return false;
    const Value transposed = call_op("permute_dims", {value});
    return bind(downcast<Var>(pattern.args[0]), transposed, value,
                call_op("permute_dims", {pattern.args[0]}));
  }

  bool bind(const Ref<Var>& param, Value argument, const Value& seen, Value in_function) {
    Type type = type_of(argument);
    const auto* declared = param->type.as<TensorType>();
    // A vector that is broadcast: the function takes the vector.
    const auto* tensor = type.as<TensorType>();
    const auto proper = proper_dims(type);
    if (declared && declared->ndim == 1 && tensor && tensor->ndim > 1 && proper &&
        proper->size() <= 1) {
      const std::vector<Expr> dims = proper->empty() ? std::vector<Expr>{int64(1)} : *proper;
      in_function = call_op("reshape", {param, make<ShapeExpr>(*tensor->shape)});
      argument = vector_of(argument, dims);
      type = type_of(argument);
    }
    const auto known = state_.bound.find(param.get());
    if (known != state_.bound.end()) return same(known->second.seen, seen);
    if (!allows(param->type, type))
      return differ(fmt::format("`{}` is {} and {} in the pattern", param->name, str(type),
                                str(param->type)));
    state_.bound[param.get()] = {argument, seen};
    state_.views.emplace_back(seen, in_function);
    return true;
  }

  static bool same(const Value& a, const Value& b) {
    if (a.same_as(b)) return true;
    const auto *x = a.as<Constant>(), *y = b.as<Constant>();
    return x && y && x->data->content_hash() == y->data->content_hash();
  }

  // The vector itself where it was only reshaped.
  Value vector_of(const Value& value, const std::vector<Expr>& dims) const {
    const auto found = search_.bindings_.find(value.get());
    const auto* call = found == search_.bindings_.end() ? nullptr : found->second->value.as<Call>();
    if (call && (call->is("reshape") || call->is("expand_dims"))) {
      const auto source = cast<TensorType>(type_of(call->args[0]));
      if (source && source->shape && source->ndim == 1) return call->args[0];
    }
    return call_op("reshape", {value, make<ShapeExpr>(dims)});
  }

  // `declared` is what the pattern says: nothing known allows everything.
  bool allows(const Type& declared, const Type& given) {
    const auto* wanted = declared.as<TensorType>();
    const auto* is = given.as<TensorType>();
    if (!wanted) return !declared.as<TupleType>() || given.as<TupleType>();
    if (!is) return false;
    if (!wanted->dtype.is_void() && wanted->dtype != is->dtype) return false;
    if (wanted->ndim >= 0 && wanted->ndim != is->ndim) return false;
    if (!wanted->shape) return true;
    if (!is->shape) return false;
    for (size_t d = 0; d < wanted->shape->size(); ++d) {
      const Expr& dim = (*wanted->shape)[d];
      if (dim.as<tenon::Var>()) {
        const auto known = dims_.emplace(dim.get(), (*is->shape)[d]);
        if (!known.second && !structural_equal(known.first->second, (*is->shape)[d])) return false;
      } else if (as_int(dim) != as_int((*is->shape)[d])) {
        return false;
      }
    }
    return true;
  }

  // The matched bindings over parameters of their own.
  Ref<Function> function(const PatternMatch& match, const Ref<Binding>& root) const {
    std::vector<Ref<Var>> params;
    Substitution values;
    for (size_t i = 0; i < match.arguments.size(); ++i) {
      const Ref<Var>& declared = pattern_.function->params[i];
      params.push_back(make<Var>(declared->name, type_of(match.arguments[i])));
      values.emplace(declared.get(), params.back());
    }
    std::vector<Ref<Binding>> body;
    // What stands for a value of the searched function: an inner variable, or a view of a
    // parameter, which is bound first.
    std::vector<std::pair<Value, Value>> stands;
    for (const auto& [seen, view] : state_.views) {
      Value value = substitute(view, values);
      if (value.as<Call>()) {
        const auto var = make<Var>("view", type_of(value), true);
        body.push_back(make<Binding>(var, value, Type(), root->origin));
        value = var;
      }
      stands.emplace_back(seen, value);
    }
    const std::function<Value(const Value&)> stand = [&](const Value& value) -> Value {
      if (!value) return value;
      for (const auto& [seen, known] : stands)
        if (same(seen, value)) return known;
      if (const auto* tuple = value.as<Tuple>()) {
        std::vector<Value> items;
        for (const Value& item : tuple->values) items.push_back(stand(item));
        return make<Tuple>(std::move(items));
      }
      return value;
    };
    std::vector<Origin> origins;
    for (const Ref<Binding>& binding : match.bindings) {
      const auto* call = binding->value.as<Call>();
      std::vector<Value> args;
      for (const Value& arg : call->args) args.push_back(stand(arg));
      const bool last = binding.same_as(root);
      const auto var = make<Var>(binding->var->name, binding->var->type, !last);
      body.push_back(make<Binding>(
          var, make<Call>(call->op, std::move(args), call->attrs, call->type_args, call->origin),
          Type(), binding->origin));
      stands.emplace_back(binding->var, var);
      origins.push_back(binding->origin ? binding->origin : call->origin);
    }
    const Value result = body.back()->var;
    const auto block = make<BindingBlock>(std::move(body), true);
    auto* function = new Function(
        std::move(params), make<SeqExpr>(std::vector<Ref<BindingBlock>>{block}, result),
        root->var->type, {{"Composite", pattern_.name}}, true, Origin::merge(origins));
    function->is_private = true;
    return renew_definitions(Ref<Function>(function));
  }

  const PatternSearch& search_;
  const Pattern& pattern_;
  std::unordered_map<const Node*, Value> inner_;  // of the pattern
  std::unordered_map<const Node*, Expr> dims_;    // of the pattern's types
  std::set<const Node*> params_;
  std::set<std::string> any_;
  bool any_attr_ = false;
  State state_;
  std::string why_;
};

std::optional<PatternMatch> PatternSearch::match(const Pattern& pattern, const Ref<Binding>& root,
                                                 std::string* why) const {
  PatternMatcher matcher(*this, pattern);
  if (matcher.run(root)) return matcher.result(root);
  if (why && why->empty()) *why = matcher.why();
  return std::nullopt;
}

}  // namespace tenon::graph
