// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/loop_body.h"

#include <algorithm>

#include "tenon/arith/analyzer.h"

namespace tenon::onnx {

using graph::TensorType;
using graph::Type;

namespace {

Type part_type(const Value& whole) {
  const Ref<TensorType> type = shaped(whole);
  return make<TensorType>(Dims(type->shape->begin() + 1, type->shape->end()), type->dtype);
}

// ---- functions that name nothing from outside ---------------------------------------------------

/// What a function under construction uses of what is around it: values, and numbers.
class Free {
 public:
  /// \param params  of the function; `known`: numbers that it is given in any case.
  Free(const std::vector<Ref<graph::Var>>& params, const Expr& known, const graph::SeqExpr& body) {
    defined_.insert(known.get());
    for (const Ref<graph::Var>& param : params) {
      defined_.insert(param.get());
      define_dims(param->type);
    }
    for (const Ref<graph::Var>& param : params) numbers_in(param->type);
    sequence(body);
  }

  const std::vector<Ref<graph::Var>>& values() const { return values_; }
  /// Those that no type of values() defines.
  Dims numbers() const {
    std::set<const tenon::Node*> defined;
    for (const Ref<graph::Var>& value : values_)
      for (const Expr& dim : *shaped(value)->shape)
        if (dim.as<tenon::Var>()) defined.insert(dim.get());
    Dims out;
    for (const Expr& number : numbers_)
      if (!defined.count(number.get())) out.push_back(number);
    return out;
  }

 private:
  void define_dims(const Type& type) {
    const auto* tensor = type.as<TensorType>();
    const auto* shape = type.as<graph::ShapeType>();
    const std::optional<Dims> none;
    for (const Expr& dim : (tensor ? tensor->shape : shape ? shape->values : none).value_or(Dims{}))
      if (dim.as<tenon::Var>() && !seen_.count(dim.get())) defined_.insert(dim.get());
  }
  void sequence(const graph::SeqExpr& seq) {
    for (const Ref<graph::BindingBlock>& block : seq.blocks)
      for (const Ref<graph::Binding>& binding : block->bindings) {
        if (const auto* branch = binding->value.as<graph::If>()) {
          use(branch->condition);
          sequence(*branch->then_branch);
          sequence(*branch->else_branch);
        } else {
          use(binding->value);
        }
        // A dimension that is seen here first is named here.
        if (binding->match) {
          define_dims(binding->match);
          numbers_in(binding->match);
        }
        numbers_in(binding->var->type);
        defined_.insert(binding->var.get());
      }
    use(seq.body);
  }
  void use(const tenon::NodePtr& node) {
    walk(node, [&](const tenon::NodePtr& inner) {
      const auto* var = inner.as<graph::Var>();
      if (var && defined_.insert(var).second) {
        values_.push_back(ref_to(var));
        numbers_in(var->type);
      }
    });
    numbers_in(node);
  }
  void numbers_in(const tenon::NodePtr& node) {
    walk<tenon::Var>(node, [&](const tenon::Var& var) {
      if (!defined_.count(&var) && seen_.insert(&var).second)
        numbers_.push_back(Expr(ref_to(&var)));
    });
  }

  std::set<const tenon::Node*> defined_, seen_;
  std::vector<Ref<graph::Var>> values_;
  Dims numbers_;
};

/// A call of `loop` of a function that was built among the values that it uses.
Value emit_loop(Context& c, const graph::Function& built, const Expr& index, const LoopParts& parts,
                const std::vector<Value>& states, bool while_first, std::vector<Type> results) {
  const Free free(built.params, index, *built.body);
  const Dims numbers = free.numbers();
  Dims given = {index};
  given.insert(given.end(), numbers.begin(), numbers.end());
  std::vector<Ref<graph::Var>> params = {
      make<graph::Var>("dims", make<graph::ShapeType>(std::move(given)))};
  params.insert(params.end(), built.params.begin(), built.params.end());
  tenon::Substitution inside;
  std::vector<Value> captured;
  for (const Ref<graph::Var>& value : free.values()) {
    params.push_back(make<graph::Var>(value->name, value->type, false, value->origin));
    inside.emplace(value.get(), params.back());
    captured.emplace_back(value);
  }
  const auto body = renew_definitions(
      with(make<graph::Function>(std::move(params), substitute(built.body, inside), built.result,
                                 Attrs(), true, c.origin()),
           [](graph::Function& copy) { copy.is_private = true; }));
  const std::string name = c.builder().module().add_unique(
      identifier(c.node().name.empty() ? c.node().op_type : c.node().name) + "_body", body);
  Attrs attrs;
  attrs.set("while_first", while_first);
  const auto list = [](const std::set<size_t>& places) {
    return Ints(places.begin(), places.end());
  };
  attrs.set("reversed_inputs", list(parts.reversed_inputs));
  attrs.set("reversed_outputs", list(parts.reversed_outputs));
  const Ref<graph::Call> checked =
      graph::call_op("loop",
                     {make<graph::FuncRef>(name), Context::prim(parts.count),
                      Context::shape_value(numbers), make<graph::Tuple>(states),
                      make<graph::Tuple>(parts.slices), make<graph::Tuple>(std::move(captured))},
                     std::move(attrs), c.origin());
  return c.builder().emit(
      make<graph::Call>(checked->op, checked->args, checked->attrs,
                        std::vector<Type>{make<graph::TupleType>(std::move(results))}, c.origin()),
      identifier(c.node().name.empty() ? c.node().op_type : c.node().name));
}

// ---- a graph, again and again -------------------------------------------------------------------

class Repeated {
 public:
  Repeated(Context& c, const Graph& graph, LoopParts parts)
      : c_(c), graph_(graph), parts_(std::move(parts)) {
    const size_t own = parts_.has_condition ? 2 : 0;
    if (graph_.inputs.size() != own + parts_.states.size() + parts_.slices.size())
      c_.bad(kBadModel, "the body of `{}` has {} inputs; expected {}", c_.name(),
             graph_.inputs.size(), own + parts_.states.size() + parts_.slices.size());
    const size_t results = graph_.outputs.size();
    if (results < parts_.states.size() + (parts_.has_condition ? 1 : 0))
      c_.bad(kBadModel, "the body of `{}` has {} outputs; expected {} and more", c_.name(), results,
             parts_.states.size() + (parts_.has_condition ? 1 : 0));
    for (const ItemRef& state : parts_.states)
      forms_.push_back(state->collection
                           ? item_of(packed(c_, *state->collection, most_dims(*state->collection)))
                           : state);
    begin();
  }

  std::vector<ItemRef> emit() {
    constexpr int kMostRounds = 64;
    for (int round = 0;; ++round) {
      if (round == kMostRounds) unsupported("states whose dimensions do not settle");
      build();
      if (generalise_forms())
        begin();
      else if (!generalise())
        break;
    }
    const std::vector<Value> values = call();
    std::vector<ItemRef> items;
    size_t next = 0;
    for (size_t k = 0; k < forms_.size(); ++k) {
      const ItemRef state = with_values(forms_[k], values, next);
      items.push_back(unwraps(k) ? held_by(c_, state) : state);
    }
    while (next < values.size()) items.push_back(item_of(values[next++]));
    return items;
  }

 private:
  struct Fresh {
    Expr var;
    std::vector<std::pair<size_t, size_t>> places;  // state, dimension
  };

  // States as tensors, by their forms.
  void begin() {
    states_.clear();
    types_.clear();
    state_of_.clear();
    fresh_.clear();
    for (size_t k = 0; k < forms_.size(); ++k) {
      if (forms_[k]->collection)
        add_values(c_, forms_[k], states_);
      else
        states_.push_back(c_.with_operands({forms_[k]}, c_.opset()).value(0));
      state_of_.resize(states_.size(), k);
    }
    for (const Value& state : states_) types_.push_back(shaped(state));
  }

  // An optional of a sequence that each iteration gives as the sequence.
  bool unwraps(size_t k) const {
    return forms_[k]->collection && forms_[k]->collection->is_optional && is_there_[k];
  }

  // Sequences whose tensors have more dimensions, or several ranks. True where a form is another now.
  bool generalise_forms() {
    bool changed = false;
    for (size_t k = 0; k < forms_.size(); ++k) {
      if (!forms_[k]->collection) continue;
      ItemRef next = with_lost_form(k, either_form(c_, forms_[k], results_[k]));
      changed |= !same_form(next, forms_[k]);
      forms_[k] = std::move(next);
    }
    return changed;
  }

  // A sequence that begins empty takes the form of what an iteration inserts. Where one inserts tensors
  // of another rank, or of other dimensions, it has none from then on.
  ItemRef with_lost_form(size_t k, const ItemRef& next) {
    const Packed &before = *forms_[k]->collection->packed, &behind = *next->collection->packed;
    if (before.rank && !behind.rank) lost_ranks_.insert(k);
    if (before.dims && !behind.dims) lost_dims_.insert(k);
    Collection out = *next->collection;
    if (lost_ranks_.count(k)) out.packed->rank.reset();
    if (lost_dims_.count(k)) out.packed->dims.reset();
    return item_of(std::move(out));
  }

  bool is_fresh(const Expr& dim) const {
    return std::any_of(fresh_.begin(), fresh_.end(),
                       [&](const Fresh& fresh) { return fresh.var.same_as(dim); });
  }

  ItemRef item(const Value& value, size_t input) {
    check_declared(graph_.inputs[input], *shaped(value), "gets");
    auto out = std::make_shared<Item>();
    out->value = value;
    return out;
  }
  void check_declared(const ValueInfo& declared, const TensorType& type, std::string_view what) {
    if (declared.dtype && *declared.dtype != type.dtype)
      c_.bad(kDTypeMismatch, "the body of `{}` {} `{}` of dtype {}; it is declared with {}",
             c_.name(), what, printable(declared.name), type.dtype.str(), declared.dtype->str());
  }
  ItemRef known(DType dtype, const Expr& value, const ValueInfo& declared) {
    auto out = std::make_shared<Item>();
    Ints shape;
    if (declared.shape && declared.shape->size() == 1) shape = {1};
    out->elements = Elements{dtype, shape, {value}};
    return out;
  }

  // The graph as a function of states and slices.
  void build() {
    index_ = Expr(tenon::Var::size("i"));
    std::vector<Ref<graph::Var>> params;
    std::vector<ItemRef> items;
    const size_t own = parts_.has_condition ? 2 : 0;
    if (own > 0) {
      items.push_back(known(kInt64, index_, graph_.inputs[0]));
      // An iteration begins where the condition holds.
      items.push_back(known(kBool, boolean(true), graph_.inputs[1]));
    }
    const auto param = [&](const Type& type) {
      const std::string& name = graph_.inputs[items.size()].name;
      params.push_back(make<graph::Var>(fmt::format("{}_{}", identifier(name), params.size()), type,
                                        false, c_.origin()));
      items.push_back(item(params.back(), items.size()));
    };
    std::vector<Value> states;
    for (size_t i = 0; i < types_.size(); ++i) {
      const std::string& name = graph_.inputs[own + state_of_[i]].name;
      params.push_back(make<graph::Var>(fmt::format("{}_{}", identifier(name), params.size()),
                                        types_[i], false, c_.origin()));
      states.emplace_back(params.back());
    }
    size_t next = 0;
    for (const ItemRef& form : forms_) {
      items.push_back(with_values(form, states, next));
      if (!form->collection)
        check_declared(graph_.inputs[items.size() - 1], *items.back()->type(), "gets");
    }
    for (const Value& slice : parts_.slices) param(part_type(slice));
    c_.builder().begin_function(params);
    std::vector<Value> results;
    try {
      results = of_iteration(params, c_.inlined(graph_, items));
    } catch (...) {
      (void)c_.builder().end_function(make<graph::Tuple>(std::vector<Value>{}));
      throw;
    }
    function_ = c_.builder().end_function(make<graph::Tuple>(std::move(results)));
  }

  // States and what is stacked, behind a condition where there is one.
  std::vector<Value> of_iteration(const std::vector<Ref<graph::Var>>& params,
                                  const std::vector<ItemRef>& given) {
    std::vector<Value> results;
    stops_ = static_cast<bool>(parts_.condition);
    ends_ = false;
    size_t first = 0;
    if (parts_.has_condition) {
      first = 1;
      Context own = c_.with_operands({given[0]}, c_.opset());
      if (own.dtype(0) != kBool)
        c_.bad(kDTypeMismatch, "the condition of `{}` has dtype {}; expected bool", c_.name(),
               own.dtype(0).str());
      const Elements* known = own.elements(0);
      const auto holds =
          known && known->values.size() == 1 ? as_int(known->values[0]) : std::nullopt;
      stops_ |= !holds.has_value();
      ends_ = holds == 0;
      if (stops_) results.push_back(c_.reshape(own.value(0), {}));
    }
    is_there_.assign(forms_.size(), false);
    results_.assign(given.begin() + static_cast<std::ptrdiff_t>(first), given.end());
    for (size_t k = first; k < given.size(); ++k) {
      if (const size_t state = k - first; state < forms_.size() && forms_[state]->collection) {
        ItemRef& result = results_[state];
        is_there_[state] = result->collection && !result->collection->is_optional;
        result = with_form(c_, result, *forms_[state]->collection);
        add_values(c_, result, results);
        continue;
      }
      Value value = c_.with_operands({given[k]}, c_.opset()).value(0);
      const Ref<TensorType> type = shaped(value);
      check_declared(graph_.outputs[k], *type, "gives");
      if (parts_.length) {
        Value index = c_.materialise({kInt64, {}, {index_}});
        const Value runs = c_.op("less", {index, c_.cast(parts_.length, kInt64)});
        const size_t state = k - first;
        value = c_.op("where",
                      {runs, value,
                       state < forms_.size() ? Value(params[state]) : c_.scalar(type->dtype, 0)});
      }
      results.push_back(value);
    }
    return results;
  }

  const TensorType& result(size_t k) const {
    return graph::type_of(function_->body->body)
        .to<graph::TupleType>()
        .types.at(k + (stops_ ? 1 : 0))
        .to<TensorType>();
  }

  std::string name_of_state(size_t value) const {
    return printable(graph_.inputs[state_of_[value] + (parts_.has_condition ? 2 : 0)].name);
  }

  // Dimensions that an iteration changes become variables. True where there are new ones.
  bool generalise() {
    bool changed = split();
    std::map<std::pair<std::string, std::string>, size_t> together;
    for (size_t k = 0; k < types_.size(); ++k) {
      const TensorType& next = result(k);
      const TensorType& before = *types_[k];
      if (next.dtype != before.dtype)
        c_.bad(kDTypeMismatch, "state `{}` of `{}` is of dtype {} and becomes {}", name_of_state(k),
               c_.name(), before.dtype.str(), next.dtype.str());
      if (next.ndim != before.ndim)
        c_.bad(kRankMismatch, "state `{}` of `{}` is of rank {} and becomes one of rank {}",
               name_of_state(k), c_.name(), before.ndim, next.ndim);
      Dims dims = *before.shape;
      for (size_t d = 0; d < dims.size(); ++d) {
        if (is_fresh(dims[d]) || arith::proves_equal(dims[d], (*next.shape)[d])) continue;
        // Those that begin alike and change alike are one.
        const auto key = std::pair(str(dims[d]), str((*next.shape)[d]));
        const auto [it, is_new] = together.try_emplace(key, fresh_.size());
        if (is_new) fresh_.push_back({Expr(tenon::Var::size(fmt::format("m{}", vars_++))), {}});
        fresh_[it->second].places.emplace_back(k, d);
        dims[d] = fresh_[it->second].var;
        changed = true;
      }
      types_[k] = make<TensorType>(std::move(dims), before.dtype);
    }
    return changed;
  }
  // Dimensions that were taken for one and are not.
  bool split() {
    bool changed = false;
    for (size_t f = 0; f < fresh_.size(); ++f) {
      std::vector<std::pair<size_t, size_t>> apart;
      std::vector<std::pair<size_t, size_t>>& places = fresh_[f].places;
      const auto dim = [&](const std::pair<size_t, size_t>& place) {
        return (*result(place.first).shape)[place.second];
      };
      for (size_t i = places.size(); i-- > 1;)
        if (!arith::proves_equal(dim(places[i]), dim(places[0]))) {
          apart.push_back(places[i]);
          places.erase(places.begin() + static_cast<std::ptrdiff_t>(i));
        }
      for (const auto& [k, d] : apart) {
        fresh_.push_back({Expr(tenon::Var::size(fmt::format("m{}", vars_++))), {{k, d}}});
        Dims dims = *types_[k]->shape;
        dims[d] = fresh_.back().var;
        types_[k] = make<TensorType>(std::move(dims), types_[k]->dtype);
        changed = true;
      }
    }
    return changed;
  }

  // The variables of the function itself: nothing outside may name them.
  bool is_inner(const Expr& dim) const {
    std::set<const tenon::Node*> inner = {index_.get()};
    for (const Fresh& fresh : fresh_) inner.insert(fresh.var.get());
    walk<graph::Binding>(function_->body, [&](const graph::Binding& binding) {
      if (const auto* shape = binding.match.as<graph::ShapeType>(); shape && shape->values)
        for (const Expr& value : *shape->values) inner.insert(value.get());
      if (const auto* tensor = binding.match.as<TensorType>(); tensor && tensor->shape)
        for (const Expr& value : *tensor->shape) inner.insert(value.get());
    });
    bool found = false;
    walk<tenon::Var>(dim, [&](const tenon::Var& var) { found |= inner.count(&var) > 0; });
    return found;
  }

  // What is stacked is of one shape, or gathered in another way.
  void check_stacked(size_t outputs) const {
    OpenShapes open;
    for (size_t k = types_.size(); k < outputs; ++k)
      for (const Expr& dim : *result(k).shape)
        if (is_inner(dim)) open.results.emplace(k - types_.size() + forms_.size(), result(k).dtype);
    if (open.results.empty()) return;
    if (!parts_.has_condition)
      unsupported("output {} of a shape that may change from iteration to iteration",
                  open.results.begin()->first);
    throw OpenShapes(open);
  }

  std::vector<Value> call() {
    const size_t outputs = types_.size() + results_.size() - forms_.size();
    check_stacked(outputs);
    if (ends_) parts_.count = arith::simplify(min(parts_.count, int64(1)));
    std::vector<Type> results;  // of the loop
    std::vector<Type> wanted;   // of its values, by names
    if (stops_) {
      results.push_back(TensorType::of({}, kBool));
      wanted.push_back(results.back());
      states_.insert(states_.begin(),
                     parts_.condition ? c_.reshape(parts_.condition, {}) : c_.scalar(kBool, 1));
    }
    const auto add = [&](Dims dims, DType dtype) {
      const bool is_known =
          std::none_of(dims.begin(), dims.end(), [](const Expr& d) { return !d; });
      const auto ndim = static_cast<int64_t>(dims.size());
      for (size_t d = 0; d < dims.size(); ++d)
        if (!dims[d])
          dims[d] =
              tenon::Var::size(fmt::format("{}_{}_{}", identifier(c_.name()), results.size(), d));
      wanted.push_back(make<TensorType>(std::move(dims), dtype));
      results.push_back(is_known ? wanted.back() : make<TensorType>(dtype, ndim));
    };
    for (const Ref<TensorType>& type : types_) {
      Dims dims = *type->shape;
      for (Expr& dim : dims)
        if (is_fresh(dim)) dim = nullptr;
      add(std::move(dims), type->dtype);
    }
    for (size_t k = types_.size(); k < outputs; ++k) {
      Dims dims = *result(k).shape;
      dims.insert(dims.begin(), stops_ ? Expr() : arith::simplify(max(parts_.count, int64(0))));
      add(std::move(dims), result(k).dtype);
    }
    if (stops_)  // the condition that an iteration begins with holds: nobody asks for it
      function_ = with(*function_, [&](graph::Function& copy) {
        copy.params.insert(copy.params.begin(),
                           make<graph::Var>("condition", TensorType::of({}, kBool)));
      });
    const Value loop = emit_loop(c_, *function_, index_, parts_, states_, stops_, results);
    std::vector<Value> values;
    for (size_t k = stops_ ? 1 : 0; k < results.size(); ++k) {
      const Value one = make<graph::TupleGetItem>(loop, static_cast<int64_t>(k));
      values.push_back(results[k].same_as(wanted[k])
                           ? c_.builder().emit(one)
                           : c_.builder().match_cast(one, wanted[k], identifier(c_.name())));
    }
    return values;
  }

  Context& c_;
  const Graph& graph_;
  LoopParts parts_;
  std::vector<ItemRef> forms_;               // of the states: tensors, and what is packed
  std::vector<ItemRef> results_;             // of an iteration, without the condition
  std::set<size_t> lost_ranks_, lost_dims_;  // of the forms
  std::vector<bool> is_there_;    // whether it gives a state that is an optional as what it holds
  std::vector<Value> states_;     // the tensors of the states
  std::vector<size_t> state_of_;  // each of them belongs to
  std::vector<Ref<TensorType>> types_;  // of them, in the body
  std::vector<Fresh> fresh_;
  int64_t vars_ = 0;
  Expr index_;
  Ref<graph::Function> function_;
  bool stops_ = false, ends_ = false;  // by a condition; behind the first iteration
};

}  // namespace

std::vector<ItemRef> repeat(Context& context, const Graph& graph, const LoopParts& parts) {
  return Repeated(context, graph, parts).emit();
}

std::vector<Value> for_each(
    Context& c, const Expr& count, const std::vector<Value>& slices,
    const std::function<std::vector<Value>(const std::vector<Value>&)>& build) {
  std::vector<Ref<graph::Var>> params;
  std::vector<Value> parts;
  for (const Value& slice : slices) {
    params.push_back(make<graph::Var>(fmt::format("part_{}", params.size()), part_type(slice),
                                      false, c.origin()));
    parts.emplace_back(params.back());
  }
  const Expr index = tenon::Var::size("b");
  c.builder().begin_function(params);
  std::vector<Value> results;
  try {
    results = build(parts);
  } catch (...) {
    (void)c.builder().end_function(make<graph::Tuple>(std::vector<Value>{}));
    throw;
  }
  std::vector<Type> types;
  for (const Value& result : results) {
    const Ref<TensorType> one = shaped(result);
    Dims dims = *one->shape;
    dims.insert(dims.begin(), count);
    types.push_back(make<TensorType>(std::move(dims), one->dtype));
  }
  const size_t outputs = results.size();
  const auto function = c.builder().end_function(make<graph::Tuple>(std::move(results)));
  LoopParts loop;
  loop.count = count;
  loop.slices = slices;
  const Value all = emit_loop(c, *function, index, loop, {}, false, std::move(types));
  std::vector<Value> values;
  for (size_t k = 0; k < outputs; ++k)
    values.push_back(c.builder().emit(make<graph::TupleGetItem>(all, static_cast<int64_t>(k))));
  return values;
}

}  // namespace tenon::onnx
