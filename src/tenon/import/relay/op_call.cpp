// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/relay/op_call.h"

namespace tenon::relay {

const Value& OpCall::arg(size_t i) const {
  if (i >= args_.size())
    bad(kBadArgument, "`{}` has {} arguments; expected at least {}", name(), args_.size(), i + 1);
  return args_[i];
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

const Elements* OpCall::elements(size_t i) {
  const auto data = constant(i);
  if (data && !known_[i]) known_[i] = elements_of(*data);
  return known_[i] ? &*known_[i] : nullptr;
}

Expr OpCall::scalar_expr(size_t i, std::string_view what) {
  const double value = float_scalar(i, what);
  const auto data = constant(i);
  return data->dtype.is_float() ? imm(data->dtype, value) : imm(data->dtype, data->at_int(0));
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

}  // namespace tenon::relay
