// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/relay/op_call.h"

#include <algorithm>
#include <functional>

#include "tenon/arith/analyzer.h"
#include "tenon/script/constants.h"

namespace tenon::relay {

using graph::TensorType;

const Value& OpCall::arg(size_t i) const {
  if (i >= args_.size())
    bad(kBadArgument, "`{}` has {} arguments; expected at least {}", name(), args_.size(), i + 1);
  return args_[i];
}

Ref<TensorType> OpCall::shaped(const Value& value) {
  Ref<TensorType> type = graph::tensor_type(value);
  if (!type->shape || type->dtype.is_void())
    unsupported("an operand whose shape is known only at run time");
  return type;
}

std::vector<Value> OpCall::items(size_t i) const {
  const Value& value = arg(i);
  if (const auto* tuple = value.as<graph::Tuple>()) return tuple->values;
  const graph::Type type = graph::type_of(value);
  const auto* items = type.as<graph::TupleType>();
  if (!items) return {value};  // as TVM does: one tensor is a tuple of it
  std::vector<Value> out;
  for (size_t k = 0; k < items->types.size(); ++k)
    out.push_back(make<graph::TupleGetItem>(value, static_cast<int64_t>(k), origin()));
  return out;
}

Ref<TensorData> OpCall::constant(size_t i) const {
  const auto* constant = arg(i).as<graph::Constant>();
  return constant ? constant->data : nullptr;
}

Ints OpCall::ints(size_t i, std::string_view what) const {
  const auto data = constant(i);
  if (!data) unsupported("operand `{}` known only at run time", what);
  if (!data->dtype.is_integer())
    bad(kDTypeMismatch, "operand `{}` of `{}` has dtype {}; expected integers", what, name(),
        data->dtype.str());
  constexpr int64_t kMost = 4096;
  if (data->elements() > kMost) unsupported("operand `{}` of {} elements", what, data->elements());
  return data->to_ints();
}

double OpCall::number(size_t i, std::string_view what) const {
  const auto data = constant(i);
  if (!data) unsupported("operand `{}` known only at run time", what);
  if (data->elements() != 1)
    bad(kShapeMismatch, "operand `{}` of `{}` has {} elements; expected 1", what, name(),
        data->elements());
  return data->at_float(0);
}

Expr OpCall::scalar(size_t i, std::string_view what) const {
  const double value = number(i, what);
  const auto data = constant(i);
  if (data->dtype.is_float()) return imm(data->dtype, value);
  return imm(data->dtype, data->at_int(0));
}

// ---- attributes

const Attribute* OpCall::find(const std::string& name) {
  read_.insert(name);
  for (const Attribute& attr : tree_.attrs) {
    if (attr.name != name) continue;
    if (attr.is_none) return nullptr;
    if (attr.opaque || attr.tree) unsupported("attribute `{}` that is no literal", name);
    return &attr;
  }
  return nullptr;
}

void OpCall::wrong_kind(const Attribute& attr, std::string_view wanted) const {
  bad(kBadAttribute, "attribute `{}` of `{}` is {}; expected {}", attr.name, name(),
      attr.value.str(), wanted);
}

bool OpCall::has(const std::string& name) { return find(name) != nullptr; }

int64_t OpCall::integer(const std::string& name, std::optional<int64_t> otherwise) {
  const Attribute* attr = find(name);
  if (!attr) {
    if (!otherwise) bad(kBadAttribute, "`{}` has no attribute `{}`, an integer", tree_.text, name);
    return *otherwise;
  }
  if (const auto* value = attr->value.as<int64_t>()) return *value;
  if (const auto* value = attr->value.as<bool>()) return *value;
  // A list of one stands for its item.
  if (const auto* list = attr->value.as<AttrList>(); list && list->size() == 1)
    if (const auto* value = (*list)[0].as<int64_t>()) return *value;
  wrong_kind(*attr, "an integer");
}

bool OpCall::flag(const std::string& name, bool otherwise) {
  const Attribute* attr = find(name);
  if (!attr) return otherwise;
  if (const auto* value = attr->value.as<bool>()) return *value;
  if (const auto* value = attr->value.as<int64_t>()) return *value != 0;
  wrong_kind(*attr, "True or False");
}

double OpCall::real(const std::string& name, std::optional<double> otherwise) {
  const Attribute* attr = find(name);
  if (!attr) {
    if (!otherwise) bad(kBadAttribute, "`{}` has no attribute `{}`, a number", tree_.text, name);
    return *otherwise;
  }
  if (const auto* value = attr->value.as<double>()) return *value;
  if (const auto* value = attr->value.as<int64_t>()) return static_cast<double>(*value);
  wrong_kind(*attr, "a number");
}

std::string OpCall::text(const std::string& name, const std::string& otherwise) {
  const Attribute* attr = find(name);
  if (!attr) return otherwise;
  if (const auto* value = attr->value.as<std::string>()) return *value;
  wrong_kind(*attr, "a string");
}

Ints OpCall::list(const std::string& name, std::optional<Ints> otherwise) {
  const Attribute* attr = find(name);
  if (!attr) {
    if (!otherwise)
      bad(kBadAttribute, "`{}` has no attribute `{}`, a list of integers", tree_.text, name);
    return *otherwise;
  }
  if (const auto* value = attr->value.as<int64_t>()) return {*value};
  const auto* items = attr->value.as<AttrList>();
  if (!items) wrong_kind(*attr, "a list of integers");
  Ints out;
  for (const AttrValue& item : *items) {
    const auto* value = item.as<int64_t>();
    if (!value) wrong_kind(*attr, "a list of integers");
    out.push_back(*value);
  }
  return out;
}

bool OpCall::is_list(const std::string& name) {
  const Attribute* attr = find(name);
  return attr && attr->value.as<AttrList>();
}

Ints OpCall::pairs(const std::string& name) {
  const Attribute* attr = find(name);
  if (!attr) bad(kBadAttribute, "`{}` has no attribute `{}`, a list of pairs", tree_.text, name);
  const auto* items = attr->value.as<AttrList>();
  if (!items) wrong_kind(*attr, "a list of pairs");
  Ints out;
  for (const AttrValue& item : *items) {
    const auto* pair = item.as<AttrList>();
    if (!pair || pair->size() != 2) wrong_kind(*attr, "a list of pairs");
    for (const AttrValue& number : *pair) {
      const auto* value = number.as<int64_t>();
      if (!value) wrong_kind(*attr, "a list of pairs of integers");
      out.push_back(*value);
    }
  }
  return out;
}

DType OpCall::dtype_attr(const std::string& name, DType otherwise) {
  std::string written = text(name, "");
  if (written.empty() || written == "void") return otherwise;
  if (written == "uint1") written = "bool";
  const auto dtype = DType::parse(written);
  if (!dtype || dtype->is_vector() || dtype->is_handle())
    bad(kBadAttribute, "attribute `{}` of `{}` is \"{}\"; expected a dtype", name, tree_.text,
        written);
  return *dtype;
}

void OpCall::ignore(std::initializer_list<const char*> names) {
  for (const char* name : names) read_.insert(name);
}

std::string OpCall::unread() const {
  // How a schedule rewrote a weight's layout: "" in what the printer shows of a graph.
  static const std::set<std::string> kNever = {
      "auto_scheduler_rewritten_layout", "meta_schedule_original_shape", "schedule_rule", "span"};
  for (const Attribute& attr : tree_.attrs)
    if (!attr.is_none && !read_.count(attr.name) && !kNever.count(attr.name)) return attr.name;
  return "";
}

// ---- building

Value OpCall::op(std::string_view name, std::vector<Value> args, Attrs attrs) {
  return builder_.op(name, std::move(args), std::move(attrs), hint_);
}

Value OpCall::scalar_value(DType dtype, double value) const { return filled(dtype, {}, value); }

Value OpCall::filled(DType dtype, const Ints& shape, double value) const {
  std::vector<std::byte> element;
  const bool known = dtype.is_float()
                         ? script::append_element(dtype, value, element)
                         : script::append_element(dtype, static_cast<int64_t>(value), element);
  if (!known) bad(kBadArgument, "{} is no value of {}", value, dtype.str());
  return make<graph::Constant>(TensorData::splat(dtype, shape, std::move(element)));
}

Value OpCall::ints_value(const Ints& values) {
  return make<graph::Constant>(
      TensorData::of(kInt64, {static_cast<int64_t>(values.size())}, values));
}

Value OpCall::cast(const Value& value, DType dtype) {
  if (graph::tensor_type(value)->dtype == dtype) return value;
  return op("astype", {value}, {{"dtype", dtype}});
}

Value OpCall::reshape(const Value& value, const Dims& dims) {
  if (arith::proves_equal(*shaped(value)->shape, dims)) return value;
  return op("reshape", {value, shape_value(dims)});
}

Value OpCall::transpose(const Value& value, const Ints& axes) {
  if (std::is_sorted(axes.begin(), axes.end())) return value;
  return op("permute_dims", {value}, {{"axes", axes}});
}

// ---- arithmetic

int64_t OpCall::axis(int64_t axis, int64_t ndim) const {
  if (axis < -ndim || axis >= ndim)
    bad(kBadAttribute, "`{}` has axis {}; expected {} to {} for a tensor of rank {}", name(), axis,
        -ndim, ndim - 1, ndim);
  return axis < 0 ? axis + ndim : axis;
}

Ints OpCall::axes(Ints axes, int64_t ndim) const {
  std::set<int64_t> seen;
  for (int64_t& a : axes) {
    a = axis(a, ndim);
    if (!seen.insert(a).second) bad(kBadAttribute, "axis {} is given twice to `{}`", a, name());
  }
  return axes;
}

}  // namespace tenon::relay
