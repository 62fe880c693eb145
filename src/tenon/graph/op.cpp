// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/op.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

namespace tenon::graph {

namespace {

struct Registry {
  std::vector<std::unique_ptr<const OpDef>> owned;
  std::vector<const OpDef*> sorted;
  std::unordered_map<std::string_view, const OpDef*> by_name;

  Registry() {
    using Family = std::vector<OpDef> (*)();
    static constexpr Family kFamilies[] = {
        unary_ops,          binary_ops,      reduction_ops, manipulate_ops, index_ops,
        linear_algebra_ops, nn_conv_ops,     nn_pool_ops,   nn_norm_ops,    nn_activation_ops,
        create_ops,         recurrent_ops,   packing_ops,   call_ops,       slice_ops,
        layout_ops,         sort_ops,        image_ops,     quantize_ops,   tree_ensemble_ops,
        resize_ops,         sampling_ops,    fold_ops,      region_ops,     signal_ops,
        random_ops,         determinant_ops, text_ops,      coupling_ops,   digit_ops,
    };
    for (const Family family : kFamilies)
      for (OpDef& op : family()) owned.push_back(std::make_unique<const OpDef>(std::move(op)));
    for (const auto& op : owned) {
      check(by_name.emplace(op->name, op.get()).second,
            fmt::format("two operators named `{}`", op->name));
      sorted.push_back(op.get());
    }
    std::sort(sorted.begin(), sorted.end(),
              [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
  }
};

const Registry& registry() {
  static const Registry kRegistry;
  return kRegistry;
}

std::string_view name_of(AttrKind kind) {
  switch (kind) {
    case AttrKind::kInt: return "an integer";
    case AttrKind::kFloat: return "a number";
    case AttrKind::kBool: return "a bool";
    case AttrKind::kString: return "a string";
    case AttrKind::kDType: return "a dtype";
    case AttrKind::kInts: return "a list of integers";
    case AttrKind::kFloats: return "a list of numbers";
    case AttrKind::kStrings: return "a list of strings";
    case AttrKind::kAny: return "a value";
  }
  unreachable("a kind of attribute");
}

template <typename T>
std::optional<AttrValue> list_of(const AttrValue& value) {
  const auto* list = value.as<AttrList>();
  if (!list) return std::nullopt;
  AttrList out;
  for (const AttrValue& item : *list) {
    if (item.as<T>()) {
      out.push_back(item);
    } else if (const auto* number = item.as<int64_t>(); number && std::is_same_v<T, double>) {
      out.push_back(static_cast<double>(*number));
    } else {
      return std::nullopt;
    }
  }
  return AttrValue(std::move(out));
}

// The value as `kind` holds it: an integer may stand for a float, one integer for a list of one, a
// string for a dtype. Nothing where it is of another kind.
std::optional<AttrValue> convert(const AttrValue& value, AttrKind kind) {
  switch (kind) {
    case AttrKind::kInt:
      if (value.as<int64_t>()) return value;
      return std::nullopt;
    case AttrKind::kFloat:
      if (value.as<double>()) return value;
      if (const auto* number = value.as<int64_t>()) return AttrValue(static_cast<double>(*number));
      return std::nullopt;
    case AttrKind::kBool:
      if (value.as<bool>()) return value;
      if (const auto* number = value.as<int64_t>(); number && (*number == 0 || *number == 1))
        return AttrValue(*number != 0);
      return std::nullopt;
    case AttrKind::kString:
      if (value.as<std::string>()) return value;
      return std::nullopt;
    case AttrKind::kDType:
      if (value.as<DType>()) return value;
      if (const auto* text = value.as<std::string>()) {
        if (text->empty()) return AttrValue(kVoid);
        if (const auto dtype = DType::parse(*text)) return AttrValue(*dtype);
      }
      return std::nullopt;
    case AttrKind::kInts:
      if (value.as<int64_t>()) return AttrValue(AttrList{value});
      return list_of<int64_t>(value);
    case AttrKind::kFloats: return list_of<double>(value);
    case AttrKind::kStrings: return list_of<std::string>(value);
    case AttrKind::kAny: return value;
  }
  unreachable("a kind of attribute");
}

std::string attr_names(const OpDef& op) {
  std::string names;
  for (const OpAttr& attr : op.attrs) names += (names.empty() ? "`" : ", `") + attr.name + "`";
  return names.empty() ? "none" : names;
}

// Rejects a number of arguments that the operator does not take.
void check_arguments(const OpDef& op, const std::vector<Value>& args, const Origin& origin) {
  size_t least = 0;
  const bool variadic = !op.inputs.empty() && op.inputs.back().variadic;
  for (size_t i = 0; i < op.inputs.size(); ++i)
    if (!op.inputs[i].optional && !op.inputs[i].variadic) least = i + 1;
  const size_t most = variadic ? args.size() : op.inputs.size();
  if (args.size() < least || args.size() > most) {
    const std::string wanted = least == op.inputs.size() && !variadic ? std::to_string(least)
                               : variadic ? fmt::format("at least {}", least)
                                          : fmt::format("{} to {}", least, op.inputs.size());
    throw CompileError(kBadArgument, origin, "`{}` has {} arguments; expected {}", op.name,
                       args.size(), wanted);
  }
  for (size_t i = 0; i < args.size(); ++i) {
    const OpInput& input = op.inputs[std::min(i, op.inputs.size() - 1)];
    if (!args[i] && !input.optional)
      throw CompileError(kBadArgument, origin, "`{}` is called without its argument `{}`", op.name,
                         input.name);
  }
}

}  // namespace

std::span<const OpDef* const> all_ops() { return registry().sorted; }

const OpDef* find_op(std::string_view name) {
  static constexpr std::string_view kPrefix = "relax.";
  if (name.substr(0, kPrefix.size()) == kPrefix) name.remove_prefix(kPrefix.size());
  const auto it = registry().by_name.find(name);
  return it == registry().by_name.end() ? nullptr : it->second;
}

Attrs checked_attrs(const OpDef& op, const Attrs& attrs, const Origin& origin) {
  Attrs out;
  for (const auto& [name, value] : attrs) {
    const auto attr = std::find_if(op.attrs.begin(), op.attrs.end(),
                                   [&](const OpAttr& known) { return known.name == name; });
    if (attr == op.attrs.end())
      throw CompileError(kBadAttribute, origin, "`{}` has no attribute `{}`; it has {}", op.name,
                         name, attr_names(op));
    // None leaves an attribute out, but where None is one of its values.
    if (value.is_none() && attr->default_value && attr->kind != AttrKind::kAny) {
      out.set(name, *attr->default_value);
      continue;
    }
    auto converted = convert(value, attr->kind);
    if (!converted)
      throw CompileError(kBadAttribute, origin, "attribute `{}` of `{}` is {}; expected {}", name,
                         op.name, value.str(), name_of(attr->kind));
    out.set(name, std::move(*converted));
  }
  for (const OpAttr& attr : op.attrs) {
    if (out.contains(attr.name)) continue;
    if (!attr.default_value)
      throw CompileError(kBadAttribute, origin, "`{}` needs attribute `{}`, {}", op.name, attr.name,
                         name_of(attr.kind));
    out.set(attr.name, *attr.default_value);
  }
  return out;
}

Ref<Call> call_op(std::string_view name, std::vector<Value> args, Attrs attrs, Origin origin) {
  const OpDef* op = find_op(name);
  if (!op) throw CompileError(kUnknownOperator, origin, "there is no operator `{}`", name);
  check_arguments(*op, args, origin);
  Attrs complete = checked_attrs(*op, attrs, origin);
  return make<Call>(op, std::move(args), std::move(complete), std::vector<Type>{},
                    std::move(origin));
}

}  // namespace tenon::graph
