// SPDX-License-Identifier: Apache-2.0
#include "draft.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "tenon/graph/shape.h"
#include "tenon/interp/interpreter.h"
#include "tenon/ir/visit.h"
#include "tenon/script/constants.h"

namespace tenon::fuzz {

using graph::Value;

// ---- items --------------------------------------------------------------------------------------

static constexpr double kGrid = 16;

double Item::magnitude() const { return std::max(std::fabs(least), std::fabs(most)); }

Item item_of(Value value, Ref<graph::TensorType> type, Ref<TensorData> data, bool exact) {
  Item item{std::move(value), std::move(type), std::move(data), exact};
  item.on_grid = true;
  bool first = true;
  for (int64_t i = 0; i < item.data->elements(); ++i) {
    const double x = item.data->at_float(i);
    if (!std::isfinite(x)) {
      item.finite = item.on_grid = false;
      continue;
    }
    item.least = first ? x : std::min(item.least, x);
    item.most = first ? x : std::max(item.most, x);
    first = false;
    item.on_grid = item.on_grid && x * kGrid == std::floor(x * kGrid);
  }
  return item;
}

// The largest magnitude up to which multiples of 1/16, and their sums in any order, are exact.
static double exact_limit(DType dtype) {
  if (dtype.is_integer() || dtype.is_bool()) return INFINITY;
  if (dtype.is_minifloat()) return 0;
  const int digits = dtype == kFloat64 ? 53 : dtype == kFloat32 ? 24 : dtype == kFloat16 ? 11 : 8;
  return std::ldexp(1, digits) / kGrid;
}

// ---- shapes and types ---------------------------------------------------------------------------

Draft::Draft(Choices& choices) : choices(choices) {
  scopes_.emplace_back();
  constant_share_ = choices.of({40u, 0u, 80u});
  symbolic_share_ = choices.of({0u, 0u, 0u, 30u});
  special_share_ = choices.below(16) == 15 ? 20 : 0;
  other_dtypes_ = choices.of({0u, 10u, 60u});
  grid_ = choices.below(2) == 0;
  run_time_share_ = choices.of({0u, 0u, 25u, 60u});
}

int64_t Draft::extent(int64_t most) {
  static const std::vector<int64_t> kExtents = {1,  2,  3,  4,  5,  7,  8,  9,  12, 15,
                                                16, 17, 24, 31, 32, 33, 48, 49, 64, 65};
  const auto end = std::upper_bound(kExtents.begin(), kExtents.end(), most);
  const auto count = static_cast<size_t>(end - kExtents.begin());
  return choices.of(std::span(kExtents).first(std::max<size_t>(count, 1)));
}

std::vector<int64_t> Draft::shape(size_t rank, int64_t elements) {
  std::vector<int64_t> out(rank, 1);
  for (size_t d = rank; d-- > 0;) {  // the last axes are the longer ones
    out[d] = extent(std::min<int64_t>(elements, 65));
    elements = std::max<int64_t>(1, elements / out[d]);
  }
  return out;
}

DType Draft::float_dtype() {
  if (!choices.chance(other_dtypes_)) return kFloat32;
  return choices.of({kFloat32, kFloat16, kFloat64, kBFloat16});
}
DType Draft::integer_dtype() {
  if (!choices.chance(other_dtypes_)) return choices.of({kInt32, kInt64});
  return choices.of({kInt32, kInt64, kInt8, kUInt8, kInt16, kUInt16, kUInt32, kUInt64});
}
DType Draft::number_dtype() { return choices.chance(20) ? integer_dtype() : float_dtype(); }
DType Draft::any_dtype() {
  // What has no arithmetic of its own is moved and compared only.
  if (other_dtypes_ > 10 && choices.chance(8))
    return choices.of({kFloat8e4m3fn, kFloat8e5m2, kFloat8e4m3fnuz, kFloat8e5m2fnuz, kFloat4e2m1fn,
                       kInt4, kUInt4, kInt2, kUInt2});
  return choices.chance(10) ? kBool : number_dtype();
}

// ---- operands -----------------------------------------------------------------------------------

std::optional<Item> Draft::find(const Fits& fits) {
  std::vector<const Item*> found;
  for (const Scope& scope : scopes_)
    for (const Item& item : scope.items)
      if (!item.is_last && (!fits || fits(item))) found.push_back(&item);
  if (found.empty()) return std::nullopt;
  // The latest first: chains grow, and a simple choice is the value just made.
  const size_t back = choices.chance(40)
                          ? choices.below(static_cast<uint32_t>(found.size()))
                          : choices.below(static_cast<uint32_t>(std::min<size_t>(2, found.size())));
  return *found[found.size() - 1 - back];
}

static void append(DType dtype, double value, std::vector<std::byte>& bytes) {
  const bool known = dtype.is_float()
                         ? script::append_element(dtype, value, bytes)
                         : script::append_element(dtype, static_cast<int64_t>(value), bytes);
  check(known, "an element type that the generator does not know");
}

Ref<TensorData> Draft::random_data(DType dtype, const std::vector<int64_t>& shape,
                                   const Content& content) {
  // One choice for all elements: a reduction leaves them as they are, or makes them the first ones.
  std::mt19937_64 random(choices.below(1u << 16));
  const auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  double least = content.least, most = content.most;
  if (dtype.is_integer() && content.kind == Content::Kind::kAny) {
    least = dtype.is_uint() ? 0 : -5;
    most = 9;
  }
  if (dtype.is_integer() && dtype.bits < 8) {
    const double span = std::ldexp(1, dtype.bits);
    least = std::max(least, dtype.is_uint() ? 0 : -span / 2);
    most = std::min(most, (dtype.is_uint() ? span : span / 2) - 1);
  }
  const bool full = dtype.bits >= 8 && content.kind == Content::Kind::kFull && dtype.is_integer();
  const bool special = dtype.is_float() && content.kind == Content::Kind::kAny &&
                       special_share_ > 0 && choices.chance(special_share_);
  // As fine a grid as the sums of a short float allow.
  const double grid = dtype.bits <= 16 ? 2 : 4;
  std::vector<std::byte> bytes;
  const int64_t count = checked_elements(shape);
  for (int64_t i = 0; i < count; ++i) {
    if (dtype.is_bool()) {
      append(dtype, static_cast<double>(random() & 1), bytes);
    } else if (full) {
      for (int64_t b = 0; b < dtype.bytes(); ++b) bytes.push_back(static_cast<std::byte>(random()));
    } else if (dtype.is_integer()) {
      append(dtype, least + std::floor(unit() * (std::floor(most) - std::ceil(least) + 1)), bytes);
    } else {
      double x = least + unit() * (most - least);
      if (grid_) x = std::clamp(std::round(x * grid) / grid, least, most);
      if (special && random() % 8 == 0) {
        const double inf = std::numeric_limits<double>::infinity();
        const double values[] = {std::nan(""), inf, -inf, -0.0, 0.0, 3e4, -3e4, 1e-7};
        x = values[random() % 8];
      }
      append(dtype, x, bytes);
    }
  }
  return TensorData::owned(dtype, shape, std::move(bytes));
}

int64_t Draft::value_of(const Expr& dim) const {
  const auto known = as_int(graph::simplify_dim(substitute(dim, symbols_)));
  check(known.has_value(), "a dimension that depends on data");
  return *known;
}

// A symbol whose value is `extent`, an old one or a new one.
Expr Draft::symbolic(int64_t extent) {
  for (const auto& [var, value] : extents_)
    if (value == extent) return var;
  if (extents_.size() == 2) return int64(extent);
  const auto var = tenon::Var::size(extents_.empty() ? "n" : "m");
  extents_.emplace_back(var, extent);
  symbols_.emplace(var.get(), int64(extent));
  return var;
}

Item Draft::fresh(DType dtype, const std::vector<int64_t>& shape, Content content) {
  std::vector<Expr> dims;
  bool any = false;
  for (const int64_t dim : shape) {
    const bool is_symbol = symbolic_share_ > 0 && choices.chance(symbolic_share_);
    dims.push_back(is_symbol ? symbolic(dim) : int64(dim));
    any = any || is_symbol;
  }
  return fresh(dtype, dims, content);
}

Item Draft::constant(DType dtype, const std::vector<int64_t>& shape, Content content) {
  Ref<TensorData> data = random_data(dtype, shape, content);
  const auto value = make<graph::Constant>(data);
  Ref<graph::TensorType> type = value->type;
  return item_of(value, std::move(type), std::move(data), true);
}

Item Draft::fresh(DType dtype, const std::vector<Expr>& shape, Content content) {
  std::vector<int64_t> extents;
  bool fixed = true, is_late = false;
  for (const Expr& dim : shape) {
    extents.push_back(value_of(dim));
    fixed = fixed && as_int(dim);
    walk<tenon::Var>(dim, [&](const tenon::Var& var) {
      is_late = is_late || std::none_of(extents_.begin(), extents_.end(), [&](const auto& symbol) {
                  return symbol.first.get() == &var;
                });
    });
  }
  if (is_late) {
    // Inputs have no such dimensions: what has them in this run is said to have them.
    std::vector<Expr> now;
    for (const int64_t extent : extents) now.push_back(int64(extent));
    return named(fresh(dtype, now, content), shape);
  }
  if (fixed && choices.chance(constant_share_)) {
    Item item = constant(dtype, extents, content);
    scopes_.back().items.push_back(item);
    return item;
  }
  return parameter(make<graph::TensorType>(shape, dtype), random_data(dtype, extents, content));
}

Item Draft::parameter(const Ref<graph::TensorType>& type, const Ref<TensorData>& data) {
  const auto var = make<graph::Var>(fmt::format("x{}", params_.size()), type);
  Item item = item_of(var, type, data, true);
  known_[var.get()] = make<graph::Constant>(data);
  exact_[var.get()] = true;
  params_.push_back(item);
  scopes_.front().items.push_back(item);
  return item;
}

Item Draft::operand(const std::function<DType()>& dtype, size_t least_rank, size_t most_rank,
                    const Fits& fits, Content content, int64_t elements) {
  if (!choices.chance(20)) {
    const auto found = find([&](const Item& item) {
      return item.ndim() >= least_rank && item.ndim() <= most_rank &&
             item.data->elements() <= elements && (!fits || fits(item));
    });
    if (found) return *found;
  }
  const DType drawn = dtype();
  const auto rank = least_rank + choices.below(static_cast<uint32_t>(most_rank - least_rank + 1));
  return fresh(drawn, shape(rank, elements), content);
}

Item Draft::like(DType dtype, const std::vector<Expr>& shape, const Fits& fits, Content content) {
  if (!choices.chance(40)) {
    const auto found = find([&](const Item& item) {
      return item.dtype() == dtype && item.type->shape &&
             graph::shapes_agree(*item.type->shape, shape) == graph::DimsAgree::kYes &&
             (!fits || fits(item));
    });
    if (found) return *found;
  }
  return fresh(dtype, shape, content);
}

// ---- calls --------------------------------------------------------------------------------------

// The value with everything in it known: variables as constants, symbols as numbers.
static Value concrete(const Value& value, const Known& known, const Substitution& symbols) {
  if (!value) return value;
  if (value.as<graph::Var>()) {
    const auto it = known.find(value.get());
    check(it != known.end(), "a variable without a value");
    return it->second;
  }
  if (const auto* get = value.as<graph::TupleGetItem>())
    return concrete(get->tuple, known, symbols)
        .as<graph::Tuple>()
        ->values.at(static_cast<size_t>(get->index));
  if (const auto* tuple = value.as<graph::Tuple>()) {
    std::vector<Value> values;
    for (const Value& item : tuple->values) values.push_back(concrete(item, known, symbols));
    return make<graph::Tuple>(std::move(values));
  }
  if (const auto* shape = value.as<graph::ShapeExpr>()) {
    std::vector<Expr> dims;
    for (const Expr& dim : shape->values)
      dims.push_back(graph::simplify_dim(substitute(dim, symbols)));
    return make<graph::ShapeExpr>(std::move(dims));
  }
  if (const auto* prim = value.as<graph::PrimValue>())
    return make<graph::PrimValue>(graph::simplify_dim(substitute(prim->value, symbols)));
  return value;
}

static Value evaluate(const Ref<graph::Call>& call) {
  const IRModule module;
  const auto result = interp::Interpreter(module).evaluate_call(call);
  check(result.has_value(), "the interpreter left a call without a value");
  return *result;
}

static std::vector<Ref<TensorData>> tensors_of(const Value& value) {
  if (const auto* constant = value.as<graph::Constant>()) return {constant->data};
  std::vector<Ref<TensorData>> out;
  if (const auto* tuple = value.as<graph::Tuple>())
    for (const Value& item : tuple->values)
      for (const auto& data : tensors_of(item)) out.push_back(data);
  return out;
}

// Whether rounding differences stay small in what follows, and infinities have a reason.
bool Draft::is_test(const Item& item, const std::vector<Item>& args) const {
  if (!item.dtype().is_float()) return true;
  bool finite = true;
  for (const Item& arg : args) finite = finite && arg.finite;
  if (!item.finite && finite) return false;
  const double most = item.dtype() == kFloat16 ? 1e3 : 1e5;
  return item.magnitude() <= most;
}

// Whether what a type rule takes for granted of symbols is so in this run. Where it is not (a window
// wider than its axis), the program ends with an error.
bool Draft::holds(const graph::AssumedDims& assumed) const {
  return std::all_of(
             assumed.pairs.begin(), assumed.pairs.end(),
             [&](const auto& pair) { return value_of(pair.first) == value_of(pair.second); }) &&
         std::all_of(assumed.conditions.begin(), assumed.conditions.end(),
                     [&](const auto& condition) { return value_of(condition.holds) == 1; });
}

std::vector<Item> Draft::calls(std::string_view op, const std::vector<Value>& args,
                               const Attrs& attrs, Rounds rounds) {
  Tally& tally = tally_[std::string(op)];
  Ref<graph::Call> call;
  graph::Type type;
  graph::AssumedDims assumed;
  try {
    call = graph::call_op(op, args, attrs);
    type = graph::type_of(call);
  } catch (const CompileError& error) {
    ++tally.refused;
    ++tally.reasons[error.first().message];
    return {};
  }
  std::vector<Ref<graph::TensorType>> types;
  const auto take = [&](const graph::Type& t) {
    const auto* tensor = t.as<graph::TensorType>();
    if (tensor && tensor->shape) types.push_back(downcast<graph::TensorType>(t));
    return tensor && tensor->shape;
  };
  bool shaped = true;
  if (const auto* tuple = type.as<graph::TupleType>()) {
    for (const graph::Type& item : tuple->types) shaped = shaped && take(item);
  } else {
    shaped = take(type);
  }
  if (!shaped) {
    ++tally.refused;
    ++tally.reasons["the shape of the result is not known"];
    return {};
  }
  if (!holds(assumed)) {
    ++tally.wild;
    return {};
  }
  int64_t elements = 0;
  bool is_negative = false;  // a dimension, which ends a program
  for (const auto& t : types) {
    int64_t count = 1;
    for (const Expr& dim : *t->shape) {
      is_negative |= value_of(dim) < 0;
      count *= value_of(dim);
    }
    elements += count;
  }
  constexpr int64_t kMostElements = 1 << 14;
  if (elements > kMostElements || is_negative) {
    ++tally.wild;
    return {};
  }

  Step step;
  step.var = make<graph::Var>(fmt::format("v{}", next_name_++), type);
  step.call = call;
  step.rounds = rounds;
  std::optional<Computed> computed;
  try {
    computed = compute(step, types);
  } catch (const CompileError& error) {
    std::string text;
    for (const Value& arg : args)
      text += (text.empty() ? "" : ", ") + (arg ? graph::str(graph::type_of(arg)) : "None");
    throw InternalError(fmt::format("`{}`({}) {} passes the type rules; the interpreter says: {}",
                                    op, text, call->attrs.str(), error.what()));
  }
  if (!computed) {
    ++tally.wild;
    return {};
  }
  ++tally.made;
  known_[step.var.get()] = computed->result;
  bool& all = exact_[step.var.get()] = true;
  for (const Item& item : computed->items) all = all && item.exact;
  Scope& scope = scopes_.back();
  scope.steps.push_back(std::move(step));
  for (const Item& item : computed->items) scope.items.push_back(item);
  operators_.emplace_back(op);
  return computed->items;
}

static Value as_doubles(const Value& value) {
  if (const auto* tuple = value.as<graph::Tuple>()) {
    std::vector<Value> items;
    for (const Value& item : tuple->values) items.push_back(as_doubles(item));
    return make<graph::Tuple>(std::move(items));
  }
  const auto* constant = value.as<graph::Constant>();
  if (!constant || !constant->data->dtype.is_integer()) return value;
  std::vector<double> values;
  for (int64_t i = 0; i < constant->data->elements(); ++i)
    values.push_back(static_cast<double>(constant->data->at_int(i)));
  return make<graph::Constant>(TensorData::of<double>(kFloat64, constant->data->shape, values));
}

// Whether integers wrap, which has no meaning: in float64 the same is another number.
static bool wraps(const graph::Call& call, const std::vector<Value>& operands,
                  const TensorData& result) {
  if (!result.dtype.is_integer() || call.attrs.contains("out_dtype")) return false;
  std::vector<Value> wide;
  for (const Value& operand : operands) wide.push_back(operand ? as_doubles(operand) : operand);
  try {
    const auto call_of_doubles = graph::call_op(call.op->name, wide, call.attrs);
    (void)graph::type_of(call_of_doubles);
    const auto data = tensors_of(evaluate(call_of_doubles)).at(0);
    for (int64_t i = 0; i < data->elements(); ++i)
      if (data->at_float(i) != static_cast<double>(result.at_int(i))) return true;
  } catch (const CompileError&) {  // no operator of floats
  }
  return false;
}

// \throws CompileError where the interpreter finds no value.
std::optional<Draft::Computed> Draft::compute(
    const Step& step, const std::vector<Ref<graph::TensorType>>& types) const {
  std::vector<Value> operands;
  std::vector<Item> tensors;
  bool exact = true, on_grid = true;
  for (const Value& arg : step.call->args) {
    operands.push_back(concrete(arg, known_, symbols_));
    exact = exact && is_exact(arg);
    if (!operands.back()) continue;
    for (const auto& data : tensors_of(operands.back())) {
      tensors.push_back(item_of({}, {}, data, true));
      on_grid = on_grid && tensors.back().on_grid;
    }
  }
  const std::string& op = step.call->op->name;
  Computed out;
  out.result = evaluate(graph::call_op(op, operands, step.call->attrs));
  const std::vector<Ref<TensorData>> data = tensors_of(out.result);
  check(data.size() == types.size(), "the interpreter gives another number of results");
  if (step.rounds == Rounds::kArithmetic && wraps(*step.call, operands, *data[0]))
    return std::nullopt;
  const bool is_tuple = step.var->type.as<graph::TupleType>() != nullptr;
  for (size_t i = 0; i < data.size(); ++i) {
    std::vector<int64_t> shape;
    for (const Expr& dim : *types[i]->shape) shape.push_back(value_of(dim));
    check(data[i]->shape == shape && data[i]->dtype == types[i]->dtype,
          fmt::format("`{}` is inferred as {} and computed as {} {}", op, str(types[i]),
                      data[i]->dtype.str(), str(data[i]->shape)));
    Item item =
        item_of(is_tuple ? Value(make<graph::TupleGetItem>(step.var, static_cast<int64_t>(i)))
                         : Value(step.var),
                types[i], data[i], exact);
    if (item.dtype().is_float()) {
      if (step.rounds == Rounds::kAlways) item.exact = false;
      if (step.rounds == Rounds::kArithmetic) {
        double largest = item.magnitude();
        for (const Item& tensor : tensors) largest = std::max(largest, tensor.magnitude());
        item.exact = exact && on_grid && item.on_grid && largest < exact_limit(item.dtype()) / 8;
      }
    }
    if (!is_test(item, tensors)) return std::nullopt;
    out.items.push_back(std::move(item));
  }
  return out;
}

bool Draft::is_exact(const Value& value) const {
  bool exact = true;
  if (value)
    walk(value, [&](const NodePtr& node) {
      if (node.as<graph::Var>()) exact = exact && exact_.at(node.get());
    });
  return exact;
}

Ref<TensorData> Draft::data_of(const Value& value) const {
  return tensors_of(concrete(value, known_, symbols_)).at(0);
}

std::optional<Item> Draft::call(std::string_view op, const std::vector<Value>& args,
                                const Attrs& attrs, Rounds rounds) {
  const std::vector<Item> items = calls(op, args, attrs, rounds);
  return items.empty() ? std::nullopt : std::optional(items[0]);
}

bool Draft::branch(const Item& condition, const Item& x,
                   const std::function<std::optional<Item>(const Item&)>& make_one) {
  Step step;
  step.kind = Step::Kind::kIf;
  step.condition = condition.value;
  Item results[2];
  for (size_t b = 0; b < 2; ++b) {
    scopes_.emplace_back();
    const auto made = make_one(x);
    step.branches[b] = std::move(scopes_.back().steps);
    scopes_.pop_back();
    if (!made || made->dtype() != x.dtype() ||
        graph::shapes_agree(*made->type->shape, *x.type->shape) != graph::DimsAgree::kYes)
      return false;
    results[b] = *made;
    step.results[b] = made->value;
  }
  const Item& taken = results[condition.data->at_int(0) != 0 ? 0 : 1];
  step.var = make<graph::Var>(fmt::format("v{}", next_name_++), x.type);
  known_[step.var.get()] = make<graph::Constant>(taken.data);
  exact_[step.var.get()] = taken.exact;
  Scope& scope = scopes_.back();
  scope.items.push_back(item_of(step.var, x.type, taken.data, taken.exact));
  scope.steps.push_back(std::move(step));
  operators_.emplace_back("if");
  return true;
}

// ---- the whole ----------------------------------------------------------------------------------

Value Draft::rebuilt(const Value& value, const Renamed& renamed) {
  if (!value) return value;
  if (value.as<graph::Var>()) return renamed.values.at(value.get());
  if (const auto* get = value.as<graph::TupleGetItem>()) {
    const auto found = renamed.items.find({get->tuple.get(), get->index});
    if (found != renamed.items.end()) return found->second;
    return make<graph::TupleGetItem>(rebuilt(get->tuple, renamed), get->index);
  }
  if (const auto* tuple = value.as<graph::Tuple>()) {
    std::vector<Value> values;
    for (const Value& item : tuple->values) values.push_back(rebuilt(item, renamed));
    return make<graph::Tuple>(std::move(values));
  }
  return value;
}

void Draft::rebuild_if(graph::BlockBuilder& builder, const Step& step, Renamed& renamed) const {
  Ref<graph::SeqExpr> branches[2];
  for (size_t b = 0; b < 2; ++b) {
    builder.begin_branch();
    rebuild(builder, step.branches[b], renamed);
    branches[b] = builder.end_branch(rebuilt(step.results[b], renamed));
  }
  renamed.values[step.var.get()] = builder.emit(
      make<graph::If>(rebuilt(step.condition, renamed), branches[0], branches[1]), step.var->name);
}

void Draft::rebuild(graph::BlockBuilder& builder, const std::vector<Step>& steps,
                    Renamed& renamed) const {
  for (const Step& step : steps) {
    switch (step.kind) {
      case Step::Kind::kIf: rebuild_if(builder, step, renamed); break;
      case Step::Kind::kLoop: rebuild_loop(builder, step, renamed); break;
      case Step::Kind::kAssert: builder.emit(step.call); break;
      case Step::Kind::kNumbers: {
        std::vector<Expr> dims(step.numbers.begin(), step.numbers.end());
        builder.match_cast(builder.op("tensor_to_shape", {rebuilt(step.source, renamed)}),
                           make<graph::ShapeType>(std::move(dims)));
        break;
      }
      case Step::Kind::kMatch:
        renamed.values[step.var.get()] =
            builder.match_cast(rebuilt(step.source, renamed), step.match, step.var->name);
        break;
      case Step::Kind::kCall: {
        std::vector<Value> args;
        for (const Value& arg : step.call->args) args.push_back(rebuilt(arg, renamed));
        renamed.values[step.var.get()] = builder.emit(
            make<graph::Call>(step.call->op, std::move(args), step.call->attrs), step.var->name);
      }
    }
  }
}

void each_value(const std::vector<Step>& steps, const std::function<void(const Value&)>& visit) {
  for (const Step& step : steps) {
    if (step.call)
      for (const Value& arg : step.call->args) visit(arg);
    visit(step.source);
    visit(step.condition);
    for (size_t b = 0; b < 2; ++b) {
      each_value(step.branches[b], visit);
      visit(step.results[b]);
    }
    if (!step.loop) continue;
    for (const auto* values :
         {&step.loop->states, &step.loop->slices, &step.loop->next, &step.loop->stacked})
      for (const Value& value : *values) visit(value);
    each_value(step.loop->body, visit);
  }
}

void Draft::change(const Item& item, const std::function<void(Item&)>& change) {
  for (Scope& scope : scopes_)
    for (Item& own : scope.items)
      if (own.value.same_as(item.value)) change(own);
}

void Draft::keep_apart(const Item& item, std::vector<bool> near_ties) {
  change(item, [](Item& own) { own.is_last = true; });
  near_ties_[item.value.get()] = std::move(near_ties);
}

void Draft::keep_inside(const Item& item) {
  change(item, [](Item& own) { own.is_last = own.is_inner = true; });
}

void Draft::declare_exact(const Item& item) {
  change(item, [](Item& own) { own.exact = true; });
  exact_[item.value.get()] = true;
}

Network Draft::finish() {
  const Scope& scope = scopes_.front();
  // Results that nothing uses are outputs, and some of the others.
  std::set<const Node*> used;
  each_value(scope.steps, [&](const Value& value) {
    if (value) walk(value, [&](const NodePtr& node) { used.insert(node.get()); });
  });
  std::vector<Item> outputs;
  for (const Item& item : scope.items) {
    if (!item.value.as<graph::Var>() && !item.value.as<graph::TupleGetItem>()) continue;
    const bool is_param = std::any_of(params_.begin(), params_.end(), [&](const Item& param) {
      return param.value.same_as(item.value);
    });
    const Node* var = item.value.as<graph::TupleGetItem>()
                          ? item.value.as<graph::TupleGetItem>()->tuple.get()
                          : item.value.get();
    if (is_param) continue;
    if (!used.count(var) || (!item.is_inner && choices.chance(10))) outputs.push_back(item);
  }
  if (outputs.empty()) outputs.push_back(scope.items.back());

  Network network;
  graph::BlockBuilder builder(network.module);
  std::vector<Ref<graph::Var>> params;
  Renamed renamed;
  for (const Item& param : params_) {
    params.push_back(downcast<graph::Var>(param.value));
    renamed.values[param.value.get()] = param.value;
    network.inputs.push_back(param.data);
  }
  builder.begin_function(std::move(params));
  const bool dataflow =
      choices.chance(50) && std::all_of(scope.steps.begin(), scope.steps.end(), [](const Step& s) {
        return s.kind == Step::Kind::kCall || s.kind == Step::Kind::kNumbers;
      });
  if (dataflow) builder.begin_dataflow();
  rebuild(builder, scope.steps, renamed);
  if (dataflow) builder.end_dataflow();
  std::vector<Value> results;
  for (const Item& output : outputs) {
    results.push_back(rebuilt(output.value, renamed));
    network.outputs.push_back(output.data);
    network.exact.push_back(output.exact);
    const auto near = near_ties_.find(output.value.get());
    network.near_ties.push_back(near == near_ties_.end() ? std::vector<bool>() : near->second);
  }
  const Value result = results.size() == 1 ? results[0] : Value(make<graph::Tuple>(results));
  network.module.set("main", builder.end_function(result));
  network.operators = operators_;
  return network;
}

}  // namespace tenon::fuzz
