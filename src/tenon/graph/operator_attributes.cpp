// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/operator_attributes.h"

#include <algorithm>
#include <set>

#include "tenon/graph/kernels.h"

namespace tenon::graph {

std::optional<double> number_of(const AttrValue& value) {
  if (const auto* flag = value.as<bool>()) return *flag ? 1 : 0;
  if (const auto* number = value.as<int64_t>()) return static_cast<double>(*number);
  if (const auto* number = value.as<double>()) return *number;
  if (const auto* node = value.as<NodePtr>())
    if (const auto expr = cast<ExprNode>(*node)) return as_float(expr);
  return std::nullopt;
}

std::vector<const Binding*> operator_bindings(const Function& function) {
  std::vector<const Binding*> out;
  for (const Ref<BindingBlock>& block : function.body->blocks)
    for (const Ref<Binding>& binding : block->bindings) {
      const auto* call = binding->value.as<Call>();
      if (!call || !call->op) continue;
      const bool is_view = out.empty() && binding->var->name.starts_with("view") &&
                           (call->is("permute_dims") || call->is("reshape")) &&
                           std::any_of(function.params.begin(), function.params.end(),
                                       [&](const Ref<Var>& p) { return p.same_as(call->args[0]); });
      if (!is_view) out.push_back(binding.get());
    }
  return out;
}

OperatorAttributes OperatorAttributes::of(const IRModule& module, const Function& function) {
  OperatorAttributes out;
  if (const auto values = function.attrs.get<AttrValue::Map>("op_values")) {
    Attrs attrs;
    for (const auto& [name, value] : *values) attrs.set(name, value);
    out.add_whole(function.attrs.get<std::string>("op").value_or(""), std::move(attrs));
  }
  std::map<int64_t, std::string> labels;
  if (const auto given = function.attrs.get<AttrValue::Map>("labels"))
    for (const auto& [label, position] : *given)
      if (const auto* at = position.as<int64_t>()) labels.emplace(*at, label);
  int64_t position = 0;
  for (const Binding* binding : operator_bindings(function)) {
    const auto& call = *binding->value.as<Call>();
    const auto seen = operator_call(module, call);
    const auto label = labels.find(position++);
    out.add(call.op->name, seen ? seen->attrs : call.attrs,
            label == labels.end() ? std::string() : label->second);
  }
  return out;
}

void OperatorAttributes::add(std::string op, Attrs attrs, std::string label) {
  Attrs onnx = onnx_attributes(op, attrs);
  members_.push_back({std::move(op), std::move(label), std::move(attrs), std::move(onnx)});
}

void OperatorAttributes::add_whole(std::string op, Attrs attrs) {
  members_.push_back({std::move(op), "", std::move(attrs), {}, true});
}

const AttrValue* OperatorAttributes::of_member(const Member& member,
                                               const std::string& attr) const {
  const AttrValue* own = member.attrs.find(attr);
  return own ? own : member.onnx.find(attr);
}

// nn.conv2d: `nn.conv2d`, `conv2d`, `conv`, `Conv`.
bool OperatorAttributes::is_called(const Member& member, std::string_view qualifier) {
  if (qualifier == member.label || qualifier == member.op) return !qualifier.empty();
  const size_t end = member.op.find_last_of(".:");
  std::string_view last = std::string_view(member.op);
  if (end != std::string::npos) last.remove_prefix(end + 1);
  if (qualifier == last) return true;
  const size_t size = last.size();
  if (size > 2 && last[size - 1] == 'd' && last[size - 2] >= '1' && last[size - 2] <= '3' &&
      qualifier == last.substr(0, size - 2))
    return true;
  if (qualifier.empty() || qualifier[0] < 'A' || qualifier[0] > 'Z') return false;
  const auto named = operators_named(qualifier);
  return std::any_of(named.begin(), named.end(),
                     [&](const OpDef* op) { return op->name == member.op; });
}

namespace {

// `strides_1` as `strides` and 1.
std::optional<std::pair<std::string_view, size_t>> numbered(std::string_view name) {
  const size_t cut = name.rfind('_');
  constexpr size_t kMostDigits = 3;
  if (cut == std::string_view::npos || cut == 0 || cut + 1 == name.size() ||
      name.size() - cut - 1 > kMostDigits)
    return std::nullopt;
  size_t index = 0;
  for (const char c : name.substr(cut + 1)) {
    if (c < '0' || c > '9') return std::nullopt;
    index = index * 10 + static_cast<size_t>(c - '0');
  }
  return std::pair(name.substr(0, cut), index);
}

std::optional<std::pair<std::string_view, size_t>> bracketed(std::string_view name) {
  if (name.empty() || name.back() != ']') return std::nullopt;
  const size_t open = name.rfind('[');
  constexpr size_t kMostDigits = 3;
  if (open == std::string_view::npos || open == 0 || name.size() - open - 2 > kMostDigits ||
      name.size() - open == 2)
    return std::nullopt;
  size_t index = 0;
  for (const char c : name.substr(open + 1, name.size() - open - 2)) {
    if (c < '0' || c > '9') return std::nullopt;
    index = index * 10 + static_cast<size_t>(c - '0');
  }
  return std::pair(name.substr(0, open), index);
}

// One item of a list; of a list of one item, whichever is asked for.
std::optional<AttrValue> item(const AttrValue& value, size_t index) {
  const auto* list = value.as<AttrList>();
  if (!list || list->empty()) return std::nullopt;
  if (list->size() == 1) return list->front();
  if (index >= list->size()) return std::nullopt;
  return (*list)[index];
}

}  // namespace

std::vector<OperatorAttributes::Found> OperatorAttributes::all(std::string_view name) const {
  std::vector<Found> out;
  // `attr` of the operators called `qualifier` (empty: of all), or an item of it.
  const auto look = [&](std::string_view qualifier, std::string_view attr,
                        std::optional<size_t> index) {
    for (const Member& member : members_) {
      if (!qualifier.empty() && !is_called(member, qualifier)) continue;
      const AttrValue* value = of_member(member, std::string(attr));
      if (!value) continue;
      if (const auto found = index ? item(*value, *index) : std::optional(*value))
        out.push_back({&member, *found, std::string(attr), index});
    }
    return !out.empty();
  };
  std::optional<size_t> index;
  if (const auto parts = bracketed(name)) {
    name = parts->first;
    index = parts->second;
  }
  if (const size_t dot = name.rfind('.'); dot != std::string_view::npos) {
    const std::string_view qualifier = name.substr(0, dot), attr = name.substr(dot + 1);
    if (look(qualifier, attr, index) || index) return out;
    if (const auto parts = numbered(attr)) look(qualifier, parts->first, parts->second);
    return out;
  }
  if (look("", name, index) || index) return out;
  const auto parts = numbered(name);
  if (parts && look("", parts->first, parts->second)) return out;
  // `conv2d_strides`, `conv2d_strides_1`.
  for (size_t cut = name.find('_'); cut != std::string_view::npos; cut = name.find('_', cut + 1)) {
    const std::string_view qualifier = name.substr(0, cut), attr = name.substr(cut + 1);
    if (qualifier.empty() || attr.empty()) continue;
    if (look(qualifier, attr, std::nullopt)) return out;
    if (const auto rest = numbered(attr); rest && look(qualifier, rest->first, rest->second))
      return out;
  }
  return out;
}

std::optional<AttrValue> OperatorAttributes::find(std::string_view name) const {
  const auto found = all(name);
  if (found.empty()) return std::nullopt;
  for (const Found& one : found)
    if (one.member->is_whole) return one.value;
  for (const Found& one : found)
    if (!(one.value == found[0].value)) return std::nullopt;
  return found[0].value;
}

std::vector<OperatorAttributes::Place> OperatorAttributes::places(std::string_view name) const {
  std::vector<Place> out;
  for (const Found& one : all(name))
    out.push_back({static_cast<size_t>(one.member - members_.data()),
                   own_attribute(one.member->op, one.attr), one.index});
  return out;
}

std::optional<AttrValue> OperatorAttributes::scalar(std::string_view name) const {
  auto value = find(name);
  const auto* list = value ? value->as<AttrList>() : nullptr;
  if (!list) return value;
  return list->size() == 1 ? std::optional(list->front()) : std::nullopt;
}

Expr OperatorAttributes::number(std::string_view name) const {
  const auto value = scalar(name);
  const auto number = value ? number_of(*value) : std::nullopt;
  if (!number) return {};
  const bool whole = value->as<int64_t>() || value->as<bool>();
  return whole ? int64(static_cast<int64_t>(*number)) : imm(kFloat64, *number);
}

std::string OperatorAttributes::missing(std::string_view name) const {
  const auto found = all(name);
  std::string text;
  if (found.size() > 1 && !find(name)) {
    const auto called = [](const Member& member) {
      return member.label.empty() ? member.op : member.label;
    };
    for (const Found& one : found)
      text += fmt::format("{}{} of `{}`", text.empty() ? "" : ", ", one.value.str(),
                          called(*one.member));
    return fmt::format("`{}` is {}; say which, as in `{}.{}`", name, text, called(*found[0].member),
                       name);
  }
  if (!found.empty())
    return fmt::format("`{}` is {}; expected a number", name, found[0].value.str());
  for (const std::string& known : names())
    text += fmt::format("{}`{}`", text.empty() ? "" : ", ", known);
  return fmt::format("there is no attribute `{}`; there {}", name,
                     text.empty() ? "are none" : "are " + text);
}

std::vector<std::string> OperatorAttributes::names() const {
  std::set<std::string> out;
  for (const Member& member : members_)
    for (const Attrs* attrs : {&member.attrs, &member.onnx})
      for (const auto& [name, value] : *attrs) {
        const size_t cut = member.op.find_last_of(".:");
        out.insert(find(name) ? name
                              : (!member.label.empty()      ? member.label
                                 : cut == std::string::npos ? member.op
                                                            : member.op.substr(cut + 1)) +
                                    "." + name);
      }
  return {out.begin(), out.end()};
}

Attrs OperatorAttributes::values() const {
  Attrs out;
  for (const std::string& name : names())
    if (auto value = find(name)) out.set(name, std::move(*value));
  return out;
}

}  // namespace tenon::graph
