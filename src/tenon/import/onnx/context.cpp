// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/context.h"

#include <algorithm>
#include <functional>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/assertion.h"
#include "tenon/graph/assumed_dims.h"
#include "tenon/import/onnx/run_time_numbers.h"

namespace tenon::onnx {

using graph::TensorType;

Ref<TensorType> Item::type() const {
  if (value) return shaped(value);
  check(elements.has_value(), "an item without value and elements");
  return TensorType::of(elements->shape, elements->dtype);
}

const Item& Context::item(size_t i) const {
  if (!has(i)) throw CompileError(kBadModel, origin(), "`{}` has no input {}", node_.op_type, i);
  return *inputs_[i];
}

Value Context::value_of(const ItemRef& item) {
  Item& held = *item;
  if (held.value) return held.value;
  Value value = materialise(*held.elements);
  // What is emitted in a branch is not visible behind it.
  if (!in_branch_ || value.as<graph::Constant>()) held.value = value;
  return value;
}

const Elements* Context::elements(size_t i) {
  (void)item(i);
  Item& held = *inputs_[i];
  if (!held.elements && !held.elements_asked) {
    held.elements_asked = true;
    if (const auto* c = held.value.as<graph::Constant>()) held.elements = elements_of(*c->data);
  }
  return held.elements ? &*held.elements : nullptr;
}

const Elements* Context::run_time_elements(size_t i) {
  return run_time_ ? run_time_->of(inputs_[i]) : nullptr;
}

static constexpr size_t kMostVersions = 64;

// Every list of distinct axes of the length of `values`.
static std::vector<Ints> lists_of_axes(std::string_view what, size_t length, int64_t ndim) {
  std::vector<Ints> lists{{}};
  for (size_t k = 0; k < length; ++k) {
    std::vector<Ints> longer;
    for (const Ints& list : lists)
      for (int64_t axis = 0; axis < ndim; ++axis) {
        if (std::count(list.begin(), list.end(), axis)) continue;
        longer.push_back(list);
        longer.back().push_back(axis);
      }
    lists = std::move(longer);
    if (lists.size() > kMostVersions)
      unsupported("operand `{}` known only at run time, which may be one of {} lists and more",
                  what, lists.size());
  }
  return lists;
}

void Context::choose_axes(size_t i, std::string_view what, int64_t ndim) {
  if (ndim > 6)
    unsupported("operand `{}` of a length known only at run time, of a tensor of rank {}", what,
                ndim);
  Ints all;
  for (int64_t axis = 0; axis < ndim; ++axis) all.push_back(axis);
  // How often each axis is in the list.
  const Expr length = shape(i)[0];
  const Value given = reshape(cast(value(i), kInt64), {length, int64(1)});
  const auto is_axis = [&](int64_t first) {
    Ints row = all;
    for (int64_t& axis : row) axis += first;
    return op("equal", {given, reshape(ints_constant(row), {int64(1), int64(ndim)})});
  };
  const Value found = op("logical_or", {is_axis(0), is_axis(-ndim)});
  const Dims counts =
      numbers_of(op("sum", {cast(found, kInt64)}, {{"axis", Ints{0}}, {"keepdims", false}}), what);
  std::vector<Ints> lists;
  std::vector<Expr> conditions;
  for (uint64_t subset = 0; subset < uint64_t{1} << ndim; ++subset) {
    Ints list;
    Expr holds = boolean(true);
    for (int64_t axis = 0; axis < ndim; ++axis) {
      const bool is_in = (subset >> axis & 1) != 0;
      if (is_in) list.push_back(axis);
      holds = logical_and(holds, eq(counts[static_cast<size_t>(axis)], int64(is_in ? 1 : 0)));
    }
    conditions.push_back(logical_and(eq(length, int64(static_cast<int64_t>(list.size()))), holds));
    lists.push_back(std::move(list));
  }
  throw NumberChoice{i, std::string(what), std::move(lists), std::move(conditions),
                     fmt::format("distinct axes of a tensor of rank {}", ndim)};
}

Ints Context::axes_operand(size_t i, std::string_view what, int64_t ndim) {
  if (!elements(i) && this->ndim(i) == 1 && !type(i)->static_shape() && ndim > 0)
    choose_axes(i, what, ndim);
  const Dims values = dims(i, what);
  if (const auto known = as_ints(values)) return axes(*known, ndim);
  NumberChoice choice{i, std::string(what), lists_of_axes(what, values.size(), ndim), {}, {}};
  if (choice.lists.empty())
    bad(kBadAttribute, "operand `{}` of `{}` has {} axes for a tensor of rank {}", what, name(),
        values.size(), ndim);
  for (const Ints& list : choice.lists) {
    Expr all = boolean(true);
    for (size_t k = 0; k < list.size(); ++k)
      all = logical_and(
          all, logical_or(eq(values[k], int64(list[k])), eq(values[k], int64(list[k] - ndim))));
    choice.conditions.push_back(all);
  }
  choice.otherwise = fmt::format("distinct axes of a tensor of rank {}", ndim);
  throw choice;
}

bool Context::flag_operand(size_t i, std::string_view what) {
  const Dims values = dims(i, what);
  if (values.size() != 1)
    bad(kShapeMismatch, "operand `{}` of `{}` has {} elements; expected 1", what, name(),
        values.size());
  if (const auto known = as_int(values[0])) return *known != 0;
  const Expr holds = values[0]->dtype.is_bool() ? values[0] : ne(values[0], int64(0));
  throw NumberChoice{i, std::string(what), {{1}, {0}}, {holds, logical_not(holds)}, "a condition"};
}

Value Context::fitted(const Value& value, const Dims& dims, std::string_view what) {
  const Ref<TensorType> type = shaped(value);
  if (type->shape->size() != dims.size())
    bad(kRankMismatch, "{} of `{}` has rank {}; expected {}", what, name(), type->ndim,
        dims.size());
  Dims all = *type->shape;
  bool fits = true, agrees = true;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!dims[d] || arith::proves_equal(all[d], dims[d])) continue;
    agrees = agrees && graph::dims_agree(all[d], dims[d]) != graph::DimsAgree::kNo;
    all[d] = dims[d];
    fits = false;
  }
  if (!agrees)
    bad(kShapeMismatch, "{} of `{}` has shape {}; expected {}", what, name(), str(*type->shape),
        str(all));
  return fits ? value : builder().match_cast(value, make<TensorType>(std::move(all), type->dtype));
}

Dims Context::numbers_of(const Value& value, std::string_view what) {
  const auto item = std::make_shared<Item>();
  item->value = value;
  const auto* constant = value.as<graph::Constant>();
  if (const auto known = constant ? elements_of(*constant->data) : std::nullopt)
    return known->values;
  const Elements* known = run_time_ ? run_time_->of(item) : nullptr;
  if (!known) unsupported("operand `{}` known only at run time", what);
  return known->values;
}

void Context::require(const Expr& condition, const Code& code, const std::string& message) {
  const Expr known = arith::simplify(condition);
  if (is_int(known, 1)) return;
  if (is_int(known, 0)) bad(code, "{}", message);
  builder().emit(graph::assertion(known, message, origin()));
}

Ref<TensorData> Context::constant(size_t i) const {
  (void)item(i);
  if (inputs_[i]->data) return inputs_[i]->data;
  if (const auto* c = inputs_[i]->value.as<graph::Constant>()) return c->data;
  return inputs_[i]->elements ? tensor_of(*inputs_[i]->elements) : nullptr;
}

void Context::used_as_number(size_t i, std::string_view what, const Dims& values) {
  numbers_.insert(i);
  AttrList floats;
  for (const Expr& value : values)
    if (const auto number = as_float(value)) floats.push_back(*number);
  if (const auto ints = as_ints(values))
    note(std::string(what), *ints);
  else if (floats.size() == values.size())
    note(std::string(what), std::move(floats));
  else
    has_symbolic_numbers_ = true;
}

// ---- attributes ---------------------------------------------------------------------------------

const Attribute* Context::find(const std::string& name) {
  read_.insert(name);
  const auto it = node_.attributes.find(name);
  if (it == node_.attributes.end()) return nullptr;
  if (it->second.ref.empty()) return &it->second;
  if (!enclosing_)
    bad(kBadModel, "attribute `{}` refers to `{}` outside a function", name,
        printable(it->second.ref));
  const auto given = enclosing_->find(it->second.ref);
  return given == enclosing_->end() ? nullptr : &given->second;
}

static std::string_view kind_of(const Attribute& attribute) {
  static constexpr std::string_view kKinds[] = {"of a kind that is not read",
                                                "an integer",
                                                "a float",
                                                "a string",
                                                "a tensor",
                                                "a graph",
                                                "a list of integers",
                                                "a list of floats",
                                                "a list of strings",
                                                "a type"};
  return kKinds[attribute.value.index()];
}

template <typename T>
const T* Context::typed(const std::string& name, std::string_view wanted) {
  const Attribute* attribute = find(name);
  if (!attribute) return nullptr;
  if (!attribute->unsupported.empty())
    unsupported("attribute `{}` {}", name, attribute->unsupported);
  const T* value = std::get_if<T>(&attribute->value);
  if (!value)
    bad(kBadAttribute, "attribute `{}` of `{}` is {}; expected {}", name, node_.op_type,
        kind_of(*attribute), wanted);
  return value;
}

bool Context::has_attr(const std::string& name) { return find(name) != nullptr; }

int64_t Context::int_attr(const std::string& name, int64_t otherwise) {
  const auto* value = typed<int64_t>(name, "an integer");
  note(name, value ? *value : otherwise);
  return value ? *value : otherwise;
}
int64_t Context::int_attr(const std::string& name) {
  if (!has_attr(name))
    bad(kBadAttribute, "`{}` has no attribute `{}`, an integer", node_.op_type, name);
  return int_attr(name, 0);
}
bool Context::flag_attr(const std::string& name, bool otherwise) {
  return int_attr(name, otherwise ? 1 : 0) != 0;
}
double Context::float_attr(const std::string& name, double otherwise) {
  const auto* value = typed<double>(name, "a float");
  note(name, value ? *value : otherwise);
  return value ? *value : otherwise;
}
double Context::float_attr(const std::string& name) {
  if (!has_attr(name))
    bad(kBadAttribute, "`{}` has no attribute `{}`, a float", node_.op_type, name);
  return float_attr(name, 0);
}
std::string Context::string_attr(const std::string& name, const std::string& otherwise) {
  const auto* value = typed<std::string>(name, "a string");
  note(name, value ? *value : otherwise);
  return value ? *value : otherwise;
}
std::vector<int64_t> Context::ints_attr(const std::string& name, std::vector<int64_t> otherwise) {
  const auto* value = typed<std::vector<int64_t>>(name, "a list of integers");
  note(name, value ? *value : otherwise);
  return value ? *value : otherwise;
}
std::vector<int64_t> Context::ints_attr(const std::string& name) {
  if (!has_attr(name))
    bad(kBadAttribute, "`{}` has no attribute `{}`, a list of integers", node_.op_type, name);
  return ints_attr(name, {});
}
std::vector<double> Context::floats_attr(const std::string& name, std::vector<double> otherwise) {
  const auto* value = typed<std::vector<double>>(name, "a list of floats");
  const std::vector<double>& values = value ? *value : otherwise;
  note(name, AttrList(values.begin(), values.end()));
  return values;
}
std::vector<std::string> Context::strings_attr(const std::string& name,
                                               std::vector<std::string> otherwise) {
  const auto* value = typed<std::vector<std::string>>(name, "a list of strings");
  note(name, value ? *value : otherwise);
  return value ? *value : otherwise;
}
Tensor Context::tensor_attr(const std::string& name) {
  const auto* value = typed<Tensor>(name, "a tensor");
  if (!value) bad(kBadAttribute, "`{}` has no attribute `{}`, a tensor", node_.op_type, name);
  if (!value->data) unsupported("attribute `{}` of {}", name, value->unsupported);
  return *value;
}
std::shared_ptr<const Graph> Context::graph_attr(const std::string& name) {
  const auto* value = typed<std::shared_ptr<const Graph>>(name, "a graph");
  if (!value) bad(kBadAttribute, "`{}` has no attribute `{}`, a graph", node_.op_type, name);
  return *value;
}
const ValueInfo& Context::type_attr(const std::string& name) {
  const auto* value = typed<std::shared_ptr<const ValueInfo>>(name, "a type");
  if (!value) bad(kBadAttribute, "`{}` has no attribute `{}`, a type", node_.op_type, name);
  return **value;
}
void Context::ignore(std::initializer_list<const char*> names) {
  for (const char* name : names) read_.insert(name);
}
std::string Context::unread_attribute() const {
  for (const auto& [name, attribute] : node_.attributes)
    if (!read_.count(name)) return name;
  return "";
}

void Context::note_number(size_t i, const std::string& name, const Expr& value) {
  numbers_.insert(i);
  if (const auto whole = as_int(value))
    note(name, *whole);
  else if (const auto real = as_float(value))
    note(name, *real);
  else
    has_symbolic_numbers_ = true;
}

// ---- building -----------------------------------------------------------------------------------

static bool shares_var(const Expr& a, const Expr& b) {
  bool shares = false;
  walk<tenon::Var>(a, [&](const tenon::Var& one) {
    walk<tenon::Var>(b, [&](const tenon::Var& other) { shares |= &one == &other; });
  });
  return shares;
}

void Context::clamps(Expr clamped, Expr plain, const Expr& extent) {
  for (const ClampedDim& known : clamped_)
    if (structural_equal(known.clamped, clamped)) return;
  // An extent of the same dimensions as the length is computed to hold it.
  const bool may_be_one =
      !shares_var(extent, plain) && !arith::Analyzer().proves_less(int64(1), extent);
  clamped_.push_back({std::move(clamped), std::move(plain), may_be_one});
}

static bool has_dim(const TensorType& type, const Expr& dim, std::optional<int64_t> but_axis) {
  for (size_t d = 0; type.shape && d < type.shape->size(); ++d)
    if (static_cast<int64_t>(d) != but_axis && structural_equal((*type.shape)[d], dim)) return true;
  return false;
}

Value Context::with_plain_dims(const Value& value, std::optional<int64_t> but_axis,
                               bool broadcasts) {
  if (const auto* tuple = value.as<graph::Tuple>()) {
    std::vector<Value> items;
    for (const Value& item : tuple->values)
      items.push_back(with_plain_dims(item, but_axis, broadcasts));
    return make<graph::Tuple>(std::move(items));
  }
  if (const auto* shape = value.as<graph::ShapeExpr>()) {
    Dims dims;
    for (const Expr& dim : shape->values)
      dims.push_back(rewrite(dim, [&](const NodePtr& node) -> std::optional<NodePtr> {
        for (const ClampedDim& known : clamped_)
          if (known.is_asserted && structural_equal(node, known.clamped)) return known.plain;
        return std::nullopt;
      }));
    return shape_value(dims);
  }
  const graph::Type held = graph::type_of(value);
  const auto* type = held.as<TensorType>();
  if (!type) return value;
  // The dimensions that are taken to be equal, and those with the others that are broadcast.
  std::optional<Dims> equal = type->shape, all = type->shape;
  bool casts = false, spreads = false;
  for (ClampedDim& known : clamped_) {
    if (!has_dim(*type, known.clamped, but_axis)) continue;
    const bool spread = broadcasts && known.may_be_one;
    if (spread)
      require(logical_or(eq(known.clamped, int64(1)), eq(known.clamped, known.plain)),
              kShapeMismatch,
              fmt::format("dimensions {} and {} cannot be broadcast", str(known.clamped),
                          str(known.plain)));
    else
      known.is_asserted |= !in_branch_;  // a branch that is not taken asserts nothing
    (spread ? spreads : casts) = true;
    for (size_t d = 0; d < all->size(); ++d)
      if (static_cast<int64_t>(d) != but_axis && structural_equal((*type->shape)[d], known.clamped))
        (*all)[d] = spread ? known.plain : ((*equal)[d] = known.plain);
  }
  const Value cast =
      casts ? builder().match_cast(value, make<TensorType>(std::move(*equal), type->dtype)) : value;
  return spreads ? ConverterContext::op("broadcast_to", {cast, shape_value(*all)}) : cast;
}

// A shape with a clamped dimension, of a tensor that has the plain one, is taken to have that.
void Context::plain_shape(std::vector<Value>& args) {
  const graph::Type held = graph::type_of(args.at(0));
  const auto* type = held.as<TensorType>();
  const auto* shape = args.at(1).as<graph::ShapeExpr>();
  if (!type || !type->shape || !shape) return;
  for (ClampedDim& known : clamped_) {
    if (known.is_asserted) continue;
    Dims dims;
    for (const Expr& dim : shape->values)
      dims.push_back(rewrite(dim, [&](const NodePtr& node) -> std::optional<NodePtr> {
        return structural_equal(node, known.clamped) ? std::optional<NodePtr>(known.plain)
                                                     : std::nullopt;
      }));
    const Expr elements = product(*type->shape);
    if (arith::proves_equal(elements, product(shape->values)) ||
        !arith::proves_equal(elements, product(dims)))
      continue;
    require(eq(known.clamped, known.plain), kShapeMismatch,
            fmt::format("dimensions {} and {} of `reshape` differ", str(known.clamped),
                        str(known.plain)));
    known.is_asserted |= !in_branch_;
    args[1] = shape_value(dims);
    return;
  }
}

void Context::reconcile(std::string_view name, std::vector<Value>& args, const Attrs& attrs) {
  std::vector<Ref<TensorType>> tensors;
  for (const Value& arg : args) {
    const auto* tuple = arg.as<graph::Tuple>();
    for (const Value& item : tuple ? tuple->values : std::vector<Value>{arg}) {
      const graph::Type held = item ? graph::type_of(item) : graph::Type();
      if (const auto* type = held.as<TensorType>()) tensors.push_back(ref_to(type));
    }
  }
  std::optional<int64_t> but_axis;
  if (name == "concat" && !tensors.empty())
    but_axis = axis(attrs.get<int64_t>("axis").value_or(0), tensors[0]->ndim);
  if (name == "reshape") plain_shape(args);
  bool any = false;
  for (const ClampedDim& known : clamped_)
    for (const auto& type : tensors) any |= known.is_asserted || has_dim(*type, known.clamped, {});
  const bool reshapes = name == "reshape" || name == "broadcast_to";
  if (!any || (tensors.size() == 1 && !reshapes)) return;
  const Ref<graph::Call> call = graph::call_op(name, args, attrs, origin());
  const bool broadcasts =
      call->op->fusion == graph::FusionKind::kBroadcast && name != "broadcast_to";
  if (broadcasts) {
    const graph::Type type = graph::type_of(call);
    const auto* result = type.as<TensorType>();
    if (result && result->shape) return;
  }
  if (name == "reshape") {
    const auto* shape = args.at(1).as<graph::ShapeExpr>();
    if (shape && arith::proves_equal(product(*tensors.at(0)->shape), product(shape->values)))
      return;
  }
  for (Value& arg : args)
    if (arg) arg = with_plain_dims(arg, but_axis, broadcasts);
}

std::string Context::hint_of(const Node& node) {
  return identifier(node.outputs.empty() || node.outputs[0].empty() ? node.op_type
                                                                    : node.outputs[0]);
}

void Context::check_dims(std::string_view name, const std::vector<Value>& args,
                         const Attrs& attrs) {
  const bool symbolic = std::ranges::any_of(args, [](const Value& arg) {
    const graph::Type held = arg ? graph::type_of(arg) : graph::Type();
    const auto* type = held.as<TensorType>();
    return held && !(type && type->static_shape());
  });
  if (!symbolic) return;
  graph::AssumedDims assumed;
  (void)graph::type_of(graph::call_op(name, args, attrs, origin()));
  for (const auto& [a, b] : assumed.pairs)
    require(eq(a, b), kShapeMismatch,
            fmt::format("dimensions {} and {} of `{}` differ", str(a), str(b), name));
}

Value Context::op(std::string_view name, std::vector<Value> args, Attrs attrs) {
  if (!clamped_.empty()) reconcile(name, args, attrs);
  broadcast_args(name, args, attrs);
  check_dims(name, args, attrs);
  return ConverterContext::op(name, std::move(args), std::move(attrs));
}

std::vector<Value> Context::inlined(const Graph& graph, const std::vector<Value>& inputs) const {
  std::vector<ItemRef> items;
  for (const Value& input : inputs) {
    items.push_back(std::make_shared<Item>());
    items.back()->value = input;
  }
  std::vector<Value> results;
  for (const ItemRef& result : inlined(graph, items))
    results.push_back(with_operands({result}, opset_).value(0));
  return results;
}

Value Context::materialise(const Elements& elements) {
  if (auto data = tensor_of(elements)) return make<graph::Constant>(std::move(data), origin());
  if (!elements.dtype.is_integer() && !elements.dtype.is_bool())
    unsupported("a tensor of type {} computed from symbolic dimensions", elements.dtype.str());
  Dims numbers = elements.values;
  for (Expr& number : numbers)
    if (number->dtype.is_bool()) number = select(number, int64(1), int64(0));
  Value value = op("shape_to_tensor", {shape_value(numbers)});
  if (elements.ndim() != 1) value = reshape(value, to_exprs(elements.shape));
  return cast(value, elements.dtype);
}

}  // namespace tenon::onnx
