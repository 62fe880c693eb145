// SPDX-License-Identifier: Apache-2.0
// What only the run knows: numbers that are read from tensors, and loops.
//
// Each value of a network under construction has the numbers of this run. In the body of a loop these
// are those of the first iteration; what the loop gives is computed by going through the steps again
// for every iteration. A loop that is no test in one of them is given up as a whole.
#include <algorithm>
#include <set>

#include "draft.h"
#include "tenon/graph/assertion.h"
#include "tenon/graph/op.h"
#include "tenon/graph/shape.h"
#include "tenon/script/constants.h"

namespace tenon::fuzz {

using graph::Value;

// ---- numbers ------------------------------------------------------------------------------------

Item Draft::given(DType dtype, const std::vector<int64_t>& shape,
                  const std::vector<int64_t>& values) {
  std::vector<std::byte> bytes;
  for (const int64_t value : values)
    check(script::append_element(dtype, value, bytes), "a number that does not fit its type");
  Ref<TensorData> data = TensorData::owned(dtype, shape, std::move(bytes));
  std::vector<Expr> dims;
  for (const int64_t dim : shape) dims.push_back(int64(dim));
  return parameter(make<graph::TensorType>(std::move(dims), dtype), data);
}

// The same under the name of these dimensions, which are checked when the program runs.
Item Draft::named(const Item& item, const std::vector<Expr>& shape) {
  Step step;
  step.kind = Step::Kind::kMatch;
  step.source = item.value;
  step.match = make<graph::TensorType>(shape, item.dtype());
  step.var = make<graph::Var>(fmt::format("v{}", next_name_++), step.match);
  known_[step.var.get()] = make<graph::Constant>(item.data);
  exact_[step.var.get()] = item.exact;
  const Item out = item_of(step.var, step.match, item.data, item.exact);
  scopes_.back().items.push_back(out);
  scopes_.back().steps.push_back(std::move(step));
  return out;
}

Expr Draft::number(int64_t value) {
  if (run_time_share_ == 0 || !choices.chance(run_time_share_)) return int64(value);
  if (choices.chance(40)) {
    std::vector<Expr> same;
    for (const Scope& scope : scopes_)
      for (const auto& [var, now] : scope.numbers)
        if (now == value) same.push_back(var);
    if (!same.empty()) return choices.of(same);
  }
  constexpr int kMostNumbers = 6;
  if (next_number_ >= kMostNumbers) return int64(value);
  const bool is_short = value < INT32_MAX && value > INT32_MIN;
  const DType dtype = value >= 0 && value < 100
                          ? choices.of({kInt64, kInt32, kUInt8, kInt16, kUInt64})
                          : choices.of({kInt64, is_short ? kInt32 : kInt64});
  const bool is_scalar = choices.chance(40), is_late = choices.chance(50);
  const int64_t other = choices.between(0, 9);
  std::vector<int64_t> shape, values = {value};
  if (!is_scalar) {
    shape = {choices.between(1, 2)};
    if (shape[0] == 2) values.push_back(other);
  }
  if (!is_late) return numbers_of(given(dtype, shape, values))[0];
  // Added up by the program: of two rows, the second of which is 0, or what is there twice as far.
  shape.insert(shape.begin(), 2);
  const size_t count = values.size();
  values.resize(2 * count, 0);
  const Item rows = given(dtype == kUInt8 || dtype == kInt16 ? kInt32 : dtype, shape, values);
  const auto sum = call("sum", {rows.value}, {{"axis", AttrList{int64_t{0}}}}, Rounds::kNever);
  return sum ? numbers_of(*sum)[0] : int64(value);
}

std::vector<Expr> Draft::numbers_of(const Item& tensor) {
  Step step;
  step.kind = Step::Kind::kNumbers;
  step.source = tensor.value;
  std::vector<Expr> out;
  Scope& scope = scopes_.back();
  for (int64_t i = 0; i < tensor.data->elements(); ++i) {
    step.numbers.push_back(make<tenon::Var>(fmt::format("k{}", next_number_++), kInt64));
    const Expr var = step.numbers.back();
    const int64_t now = tensor.data->at_int(i);
    symbols_.insert_or_assign(var.get(), int64(now));
    scope.numbers.emplace_back(var, now);
    out.push_back(var);
  }
  scope.steps.push_back(std::move(step));
  operators_.emplace_back("tensor_to_shape");
  // A bound, by which memory may be planned before the number is known.
  if (choices.chance(30)) {
    const int64_t now = tensor.data->at_int(0);
    const Value assertion = graph::assertion(out[0] <= int64(now + choices.of({0, 1, 7, 40})),
                                             "a number is too large", {});
    Step bound;
    bound.kind = Step::Kind::kAssert;
    bound.call = downcast<graph::Call>(assertion);
    scope.steps.push_back(std::move(bound));
    operators_.emplace_back("assert_op");
  }
  return out;
}

// ---- loops --------------------------------------------------------------------------------------

// A part of the first axis; of none, zeros.
static Ref<TensorData> part_of(const TensorData& whole, int64_t at) {
  const std::vector<int64_t> shape(whole.shape.begin() + 1, whole.shape.end());
  const auto bytes = static_cast<size_t>(checked_elements(shape) * whole.dtype.bytes());
  std::vector<std::byte> out(bytes);
  if (whole.shape[0] > 0) {
    const auto from = whole.data().subspan(static_cast<size_t>(at) * bytes, bytes);
    out.assign(from.begin(), from.end());
  }
  return TensorData::owned(whole.dtype, shape, std::move(out));
}

static Ref<TensorData> stacked(DType dtype, std::vector<int64_t> shape,
                               std::vector<Ref<TensorData>> parts, bool from_the_end) {
  if (from_the_end) std::reverse(parts.begin(), parts.end());
  shape.insert(shape.begin(), static_cast<int64_t>(parts.size()));
  std::vector<std::byte> bytes;
  for (const auto& part : parts) {
    const auto own = part->data();
    bytes.insert(bytes.end(), own.begin(), own.end());
  }
  return TensorData::owned(dtype, std::move(shape), std::move(bytes));
}

static bool is_in(const std::vector<int64_t>& places, size_t place) {
  return std::find(places.begin(), places.end(), static_cast<int64_t>(place)) != places.end();
}

// The variables of a body itself.
static void inner_numbers(const LoopStep& loop, std::set<const Node*>& out) {
  out.insert(loop.iteration.get());
  for (const auto& rows : loop.rows) out.insert(rows.get());
  for (const Step& step : loop.body)
    for (const auto& var : step.numbers) out.insert(var.get());
}
static bool uses(const graph::TensorType& type, const std::set<const Node*>& vars) {
  bool found = false;
  for (const Expr& dim : *type.shape)
    walk<tenon::Var>(dim, [&](const tenon::Var& var) { found |= vars.count(&var) > 0; });
  return found;
}

static bool grows(const Draft::Loop& loop, size_t state) {
  return state < loop.grows.size() && loop.grows[state];
}

// The same type, but for the first dimension of a state that grows.
static bool continues(const Item& next, const Item& state, bool grows) {
  if (next.dtype() != state.dtype() || next.ndim() != state.ndim()) return false;
  const auto rest = [&](const Item& item) {
    return std::vector<Expr>(item.type->shape->begin() + (grows ? 1 : 0), item.type->shape->end());
  };
  return graph::shapes_agree(rest(next), rest(state)) == graph::DimsAgree::kYes;
}

// The body, on what is in the first iteration; nothing where `make_body` gives up.
std::optional<Draft::LoopBody> Draft::write_body(LoopStep& loop, const Loop& outside,
                                                 const std::function<bool(LoopBody&)>& make_body) {
  symbols_.insert_or_assign(loop.iteration.get(), int64(0));
  scopes_.emplace_back();
  scopes_.back().numbers.emplace_back(loop.iteration, 0);
  ++loops_;
  LoopBody body;
  const auto parameter = [&](Ref<graph::TensorType> type, Ref<TensorData> data, bool exact) {
    const auto var = make<graph::Var>(fmt::format("p{}", next_name_++), type);
    known_[var.get()] = make<graph::Constant>(data);
    exact_[var.get()] = exact;
    scopes_.back().items.push_back(item_of(var, type, data, exact));
    return var;
  };
  for (const Item& state : outside.states) {
    loop.states.push_back(state.value);
    // What is computed of floats again and again is exact now and then only.
    const bool exact = state.exact && (!state.dtype().is_float() || choices.chance(40));
    Ref<graph::TensorType> type = state.type;
    loop.rows.push_back(nullptr);
    if (grows(outside, loop.rows.size() - 1)) {
      loop.rows.back() = tenon::Var::size(fmt::format("k{}", next_number_++));
      symbols_.insert_or_assign(loop.rows.back().get(), int64(state.shape()[0]));
      std::vector<Expr> dims = *type->shape;
      dims[0] = loop.rows.back();
      type = make<graph::TensorType>(std::move(dims), state.dtype());
    }
    loop.state_params.push_back(parameter(type, state.data, exact));
    body.states.push_back(scopes_.back().items.back());
  }
  for (size_t k = 0; k < outside.slices.size(); ++k) {
    const Item& slice = outside.slices[k];
    loop.slices.push_back(slice.value);
    const bool last = is_in(loop.reversed_inputs, k);
    const auto type = make<graph::TensorType>(
        std::vector<Expr>(slice.type->shape->begin() + 1, slice.type->shape->end()), slice.dtype());
    loop.slice_params.push_back(
        parameter(type, part_of(*slice.data, last ? slice.shape()[0] - 1 : 0), slice.exact));
    body.slices.push_back(scopes_.back().items.back());
  }
  const bool made = make_body(body);
  --loops_;
  loop.body = std::move(scopes_.back().steps);
  scopes_.pop_back();
  return made ? std::optional(body) : std::nullopt;
}

// The types of what the loop gives; of what is stacked, what does not follow from the iteration.
void Draft::type_results(LoopStep& loop, const Loop& outside, const LoopBody& body) {
  for (const Item& item : body.next) loop.next.push_back(item.value);
  for (size_t k = 0; k < outside.states.size(); ++k) {
    const Item& item = outside.states[k];
    loop.types.push_back(
        grows(outside, k) ? make<graph::TensorType>(item.dtype(), static_cast<int64_t>(item.ndim()))
                          : item.type);
  }
  std::set<const Node*> inner;
  inner_numbers(loop, inner);
  for (const Item& item : body.stacked) {
    if (uses(*item.type, inner)) continue;
    const size_t k = loop.stacked.size();
    loop.stacked.push_back(item.value);
    if (is_in(outside.reversed_outputs, k))
      loop.reversed_outputs.push_back(static_cast<int64_t>(k));
    std::vector<Expr> dims = *item.type->shape;
    const auto ndim = static_cast<int64_t>(dims.size()) + 1;
    loop.part_shapes.push_back(dims);
    dims.insert(dims.begin(), graph::simplify_dim(max(loop.count, int64(0))));
    loop.types.push_back(loop.while_first  // as long as it ran
                             ? make<graph::TensorType>(item.dtype(), ndim)
                             : make<graph::TensorType>(dims, item.dtype()));
  }
}

// The number of iterations becomes a dimension.
void Draft::name_length(const Value& value, const std::vector<Expr>& part, Ref<TensorData> data,
                        bool exact) {
  const auto length = tenon::Var::size(fmt::format("k{}", next_number_++));
  symbols_.insert_or_assign(length.get(), int64(data->shape[0]));
  scopes_.back().numbers.emplace_back(length, data->shape[0]);
  std::vector<Expr> dims = part;
  dims.insert(dims.begin(), length);
  Step match;
  match.kind = Step::Kind::kMatch;
  match.source = value;
  match.numbers = {length};
  match.match = make<graph::TensorType>(dims, data->dtype);
  match.var = make<graph::Var>(fmt::format("v{}", next_name_++), match.match);
  known_[match.var.get()] = make<graph::Constant>(data);
  exact_[match.var.get()] = exact;
  scopes_.back().items.push_back(item_of(match.var, match.match, data, exact));
  scopes_.back().steps.push_back(std::move(match));
}

bool Draft::loop(const Loop& outside, const std::function<bool(LoopBody&)>& make_body) {
  Tally& tally = tally_["loop"];
  auto loop = std::make_shared<LoopStep>();
  loop->iteration = tenon::Var::size(fmt::format("i{}", next_name_++));
  loop->count = outside.count;
  loop->while_first = outside.while_first;
  loop->reversed_inputs = outside.reversed_inputs;
  const auto body = write_body(*loop, outside, make_body);
  if (!body) return false;
  bool fits = body->next.size() == outside.states.size();
  for (size_t k = 0; fits && k < body->next.size(); ++k)
    fits = continues(body->next[k], outside.states[k], grows(outside, k));
  if (!fits) {
    ++tally.refused;
    ++tally.reasons["states of other types"];
    return false;
  }
  type_results(*loop, outside, *body);
  const auto results = run(*loop);
  if (!results) {
    ++tally.wild;
    return false;
  }
  ++tally.made;
  Step step;
  step.kind = Step::Kind::kLoop;
  step.loop = loop;
  step.var =
      make<graph::Var>(fmt::format("v{}", next_name_++), make<graph::TupleType>(loop->types));
  const auto var = step.var;
  scopes_.back().steps.push_back(std::move(step));
  operators_.emplace_back("loop");
  bool all_exact = true;
  std::vector<Value> values;
  for (const auto& [data, exact] : *results) {
    values.push_back(make<graph::Constant>(data));
    all_exact = all_exact && exact;
  }
  known_[var.get()] = make<graph::Tuple>(values);
  exact_[var.get()] = all_exact;
  for (size_t k = 0; k < results->size(); ++k) {
    const auto& [data, exact] = (*results)[k];
    const Value value = make<graph::TupleGetItem>(var, static_cast<int64_t>(k));
    const auto type = downcast<graph::TensorType>(loop->types[k]);
    if (type->shape)
      scopes_.back().items.push_back(item_of(value, type, data, exact));
    else if (k < outside.states.size())
      name_length(
          value, {outside.states[k].type->shape->begin() + 1, outside.states[k].type->shape->end()},
          data, exact);
    else
      name_length(value, loop->part_shapes[k - outside.states.size()], data, exact);
  }
  return true;
}

// ---- every iteration ----------------------------------------------------------------------------

std::optional<std::vector<std::pair<Ref<TensorData>, bool>>> Draft::run(const LoopStep& loop) {
  std::vector<std::pair<Ref<TensorData>, bool>> results;
  for (const Value& state : loop.states) results.emplace_back(data_of(state), is_exact(state));
  std::vector<Ref<TensorData>> slices;
  for (const Value& slice : loop.slices) slices.push_back(data_of(slice));
  std::vector<std::vector<Ref<TensorData>>> parts(loop.stacked.size());
  std::vector<bool> exact(loop.stacked.size(), true);
  std::vector<std::vector<int64_t>> shapes;
  std::vector<DType> dtypes;
  for (size_t k = 0; k < parts.size(); ++k) {
    // By its type: without an iteration the value is that of another run, where its dimensions are
    // those of a loop around this one.
    std::vector<int64_t>& shape = shapes.emplace_back();
    for (const Expr& dim : loop.part_shapes[k]) shape.push_back(value_of(dim));
    dtypes.push_back(data_of(loop.stacked[k])->dtype);
  }
  const int64_t count = value_of(loop.count);
  for (int64_t t = 0; t < count; ++t) {
    if (loop.while_first && results[0].first->at_int(0) == 0) break;
    symbols_.insert_or_assign(loop.iteration.get(), int64(t));
    for (size_t k = 0; k < results.size(); ++k) {
      known_[loop.state_params[k].get()] = make<graph::Constant>(results[k].first);
      if (loop.rows[k])
        symbols_.insert_or_assign(loop.rows[k].get(), int64(results[k].first->shape[0]));
      exact_[loop.state_params[k].get()] =
          exact_.at(loop.state_params[k].get()) && results[k].second;
    }
    for (size_t k = 0; k < slices.size(); ++k)
      known_[loop.slice_params[k].get()] = make<graph::Constant>(
          part_of(*slices[k], is_in(loop.reversed_inputs, k) ? count - 1 - t : t));
    if (!replay(loop.body)) return std::nullopt;
    std::vector<std::pair<Ref<TensorData>, bool>> next;
    for (const Value& value : loop.next) next.emplace_back(data_of(value), is_exact(value));
    for (size_t k = 0; k < next.size(); ++k) {
      check(loop.rows[k] || next[k].first->shape == results[k].first->shape,
            "a state of another shape");
      next[k].second = next[k].second && results[k].second;
    }
    results = std::move(next);
    for (size_t k = 0; k < parts.size(); ++k) {
      parts[k].push_back(data_of(loop.stacked[k]));
      if (parts[k].back()->shape != shapes[k]) return std::nullopt;
      exact[k] = exact[k] && is_exact(loop.stacked[k]);
    }
  }
  for (size_t k = 0; k < parts.size(); ++k)
    results.emplace_back(stacked(dtypes[k], shapes[k], parts[k], is_in(loop.reversed_outputs, k)),
                         exact[k]);
  return results;
}

bool Draft::replay(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    switch (step.kind) {
      case Step::Kind::kCall:
        if (!replay_call(step)) return false;
        break;
      case Step::Kind::kAssert: {
        const auto& condition = step.call->args.at(0).to<graph::PrimValue>().value;
        if (as_int(graph::simplify_dim(substitute(condition, symbols_))) != 1) return false;
        break;
      }
      case Step::Kind::kNumbers: {
        const Ref<TensorData> data = data_of(step.source);
        for (size_t i = 0; i < step.numbers.size(); ++i)
          symbols_.insert_or_assign(step.numbers[i].get(),
                                    int64(data->at_int(static_cast<int64_t>(i))));
        break;
      }
      case Step::Kind::kMatch: {
        const Ref<TensorData> data = data_of(step.source);
        if (!step.numbers.empty())
          symbols_.insert_or_assign(step.numbers[0].get(), int64(data->shape[0]));
        for (size_t d = 0; d < data->shape.size(); ++d)
          if (value_of((*step.match->shape)[d]) != data->shape[d]) return false;
        known_[step.var.get()] = make<graph::Constant>(data);
        exact_[step.var.get()] = is_exact(step.source);
        break;
      }
      case Step::Kind::kIf: {
        const size_t b = data_of(step.condition)->at_int(0) != 0 ? 0 : 1;
        if (!replay(step.branches[b])) return false;
        known_[step.var.get()] = make<graph::Constant>(data_of(step.results[b]));
        exact_[step.var.get()] = is_exact(step.results[b]);
        break;
      }
      case Step::Kind::kLoop: {
        const auto results = run(*step.loop);
        if (!results) return false;
        std::vector<Value> values;
        bool exact = true;
        for (const auto& [data, is_exact] : *results) {
          values.push_back(make<graph::Constant>(data));
          exact = exact && is_exact;
        }
        known_[step.var.get()] = make<graph::Tuple>(values);
        exact_[step.var.get()] = exact;
      }
    }
  }
  return true;
}

// Whether the call is a test in this iteration too: what jumps still sees exact numbers.
bool Draft::replay_call(const Step& step) {
  std::vector<Ref<graph::TensorType>> types;
  if (const auto* tuple = step.var->type.as<graph::TupleType>()) {
    for (const graph::Type& type : tuple->types) types.push_back(downcast<graph::TensorType>(type));
  } else {
    types.push_back(downcast<graph::TensorType>(step.var->type));
  }
  std::optional<Computed> computed;
  try {
    computed = compute(step, types);
  } catch (const CompileError&) {  // an index out of range, a division by zero
    return false;
  }
  if (!computed) return false;
  bool exact = true;
  for (const Item& item : computed->items) exact = exact && item.exact;
  if (exact_.at(step.var.get()) && !exact) return false;
  known_[step.var.get()] = computed->result;
  exact_[step.var.get()] = exact;
  return true;
}

// ---- the program --------------------------------------------------------------------------------

namespace {

// What a body uses that stands outside of it.
class Outside {
 public:
  explicit Outside(const LoopStep& loop) {
    for (const auto& rows : loop.rows) inner_.insert(rows.get());
    for (const auto* params : {&loop.state_params, &loop.slice_params})
      for (const auto& param : *params) {
        inner_.insert(param.get());
        add_numbers(param->type);
      }
    inner_.insert(loop.iteration.get());
    define(loop.body);
    each_value(loop.body, [&](const Value& value) { add(value); });
    for (const auto* values : {&loop.next, &loop.stacked})
      for (const Value& value : *values) add(value);
    add_types(loop.body);
  }
  const std::vector<Value>& values() const { return values_; }  // variables, items of tuples
  const std::vector<Expr>& numbers() const { return numbers_; }

 private:
  void define(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      if (step.var) inner_.insert(step.var.get());
      for (const auto& var : step.numbers) inner_.insert(var.get());
      define(step.branches[0]);
      define(step.branches[1]);
      if (!step.loop) continue;
      inner_.insert(step.loop->iteration.get());
      for (const auto& rows : step.loop->rows) inner_.insert(rows.get());
      for (const auto* params : {&step.loop->state_params, &step.loop->slice_params})
        for (const auto& param : *params) inner_.insert(param.get());
      define(step.loop->body);
    }
  }
  void add_types(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      if (step.var) add_numbers(step.var->type);
      add_types(step.branches[0]);
      add_types(step.branches[1]);
      if (!step.loop) continue;
      add_numbers(make<graph::PrimValue>(step.loop->count));
      add_types(step.loop->body);
    }
  }
  void add(const Value& value) {
    if (!value) return;
    if (const auto* get = value.as<graph::TupleGetItem>()) {
      if (!inner_.count(get->tuple.get()) && seen_.emplace(get->tuple.get(), get->index).second) {
        values_.push_back(value);
        add_numbers(graph::type_of(value));
      }
      return;
    }
    if (const auto* tuple = value.as<graph::Tuple>()) {
      for (const Value& item : tuple->values) add(item);
      return;
    }
    if (value.as<graph::Var>()) {
      if (inner_.count(value.get()) || !seen_.emplace(value.get(), -1).second) return;
      values_.push_back(value);
      add_numbers(graph::type_of(value));
      return;
    }
    add_numbers(value);
  }
  void add_numbers(const NodePtr& node) {
    walk<tenon::Var>(node, [&](const tenon::Var& var) {
      if (!inner_.count(&var) && numbers_seen_.insert(&var).second)
        numbers_.push_back(Expr(ref_to(&var)));
    });
  }

  std::set<const Node*> inner_, numbers_seen_;
  std::set<std::pair<const Node*, int64_t>> seen_;
  std::vector<Value> values_;
  std::vector<Expr> numbers_;
};

}  // namespace

void Draft::rebuild_loop(graph::BlockBuilder& builder, const Step& step, Renamed& renamed) const {
  const LoopStep& loop = *step.loop;
  const Outside outside(loop);
  std::vector<Expr> dims = {loop.iteration};
  dims.insert(dims.end(), outside.numbers().begin(), outside.numbers().end());
  std::vector<Ref<graph::Var>> params = {
      make<graph::Var>("dims", make<graph::ShapeType>(std::move(dims)))};
  Renamed inside;
  for (const auto* own : {&loop.state_params, &loop.slice_params})
    for (const auto& param : *own) {
      params.push_back(param);
      inside.values[param.get()] = param;
    }
  std::vector<Value> captured;
  for (const Value& value : outside.values()) {
    captured.push_back(rebuilt(value, renamed));
    params.push_back(make<graph::Var>(fmt::format("c{}", captured.size()), graph::type_of(value)));
    if (const auto* get = value.as<graph::TupleGetItem>())
      inside.items[{get->tuple.get(), get->index}] = params.back();
    else
      inside.values[value.get()] = params.back();
  }
  builder.begin_function(params);
  rebuild(builder, loop.body, inside);
  std::vector<Value> results;
  for (const auto* values : {&loop.next, &loop.stacked})
    for (const Value& value : *values) results.push_back(rebuilt(value, inside));
  const auto built = builder.end_function(make<graph::Tuple>(results));
  // Variables of its own: those around it are another function's.
  const auto body =
      renew_definitions(with(*built, [](graph::Function& copy) { copy.is_private = true; }));
  const std::string name = builder.module().add_unique("body", body);
  const auto list = [&](const std::vector<Value>& values) {
    std::vector<Value> out;
    for (const Value& value : values) out.push_back(rebuilt(value, renamed));
    return make<graph::Tuple>(std::move(out));
  };
  const Ref<graph::Call> checked =
      graph::call_op("loop",
                     {make<graph::FuncRef>(name), make<graph::PrimValue>(loop.count),
                      make<graph::ShapeExpr>(outside.numbers()), list(loop.states),
                      list(loop.slices), make<graph::Tuple>(captured)},
                     {{"while_first", loop.while_first},
                      {"reversed_inputs", loop.reversed_inputs},
                      {"reversed_outputs", loop.reversed_outputs}});
  renamed.values[step.var.get()] =
      builder.emit(make<graph::Call>(checked->op, checked->args, checked->attrs,
                                     std::vector<graph::Type>{make<graph::TupleType>(loop.types)}),
                   step.var->name);
}

}  // namespace tenon::fuzz
