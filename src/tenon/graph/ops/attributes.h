// SPDX-License-Identifier: Apache-2.0
// Attributes of operators as structs. A struct has a member for each attribute, whose initial value
// is the default, and a table that gives each its name in text and its meaning, once:
//
//   struct FlipAttrs {
//     int64_t axis = 0;
//     static auto table() { return std::tuple{required<&FlipAttrs::axis>("axis", "reversed")}; }
//   };
//
//   op.attrs = attrs_of<FlipAttrs>();               // what text may say
//   const auto attrs = attrs_as<FlipAttrs>(call);   // in type rules and lowerings
//
// A member's type gives the kind of the attribute; std::optional is one that may be None.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tenon/graph/op.h"

namespace tenon::graph {

/// An attribute of kind `T`: its kind, its value in text, and the way back.
template <typename T>
struct AttrTraits {
  static constexpr AttrKind kKind = std::is_same_v<T, int64_t>       ? AttrKind::kInt
                                    : std::is_same_v<T, double>      ? AttrKind::kFloat
                                    : std::is_same_v<T, bool>        ? AttrKind::kBool
                                    : std::is_same_v<T, std::string> ? AttrKind::kString
                                                                     : AttrKind::kDType;
  static AttrKind kind(const T&) { return kKind; }
  static AttrValue write(const T& value) { return AttrValue(value); }
  static bool read(const AttrValue& value, T& out) {
    const T* typed = value.as<T>();
    if (typed) out = *typed;
    return typed != nullptr;
  }
};

template <typename T>
struct AttrTraits<std::vector<T>> {
  static constexpr AttrKind kKind = std::is_same_v<T, int64_t>  ? AttrKind::kInts
                                    : std::is_same_v<T, double> ? AttrKind::kFloats
                                                                : AttrKind::kStrings;
  static AttrKind kind(const std::vector<T>&) { return kKind; }
  static AttrValue write(const std::vector<T>& values) {
    return AttrList(values.begin(), values.end());
  }
  static bool read(const AttrValue& value, std::vector<T>& out) {
    const auto* list = value.as<AttrList>();
    if (!list) return false;
    out.resize(list->size());
    for (size_t i = 0; i < list->size(); ++i)
      if (!AttrTraits<T>::read((*list)[i], out[i])) return false;
    return true;
  }
};

/// Of several kinds: the operator looks at the value itself.
template <>
struct AttrTraits<AttrValue> {
  static constexpr AttrKind kKind = AttrKind::kAny;
  static AttrKind kind(const AttrValue&) { return kKind; }
  static AttrValue write(const AttrValue& value) { return value; }
  static bool read(const AttrValue& value, AttrValue& out) {
    out = value;
    return true;
  }
};

template <typename T>
struct AttrTraits<std::optional<T>> {
  // Where None is not the default it is a value like any other, which no kind but kAny lets through.
  static AttrKind kind(const std::optional<T>& value) {
    return value ? AttrKind::kAny : AttrTraits<T>::kKind;
  }
  static AttrValue write(const std::optional<T>& value) {
    return value ? AttrTraits<T>::write(*value) : AttrValue();
  }
  static bool read(const AttrValue& value, std::optional<T>& out) {
    out.reset();
    return value.is_none() || AttrTraits<T>::read(value, out.emplace());
  }
};

template <auto kMember>
struct AttrField {
  static constexpr auto kPlace = kMember;
  const char* name;
  std::string doc;
  bool is_required;
};
/// A row of a table: `member`, its name in text, its meaning.
template <auto kMember>
AttrField<kMember> attr(const char* name, std::string doc) {
  return {name, std::move(doc), false};
}
/// The same of an attribute that has no default.
template <auto kMember>
AttrField<kMember> required(const char* name, std::string doc) {
  return {name, std::move(doc), true};
}

/// Calls `use(field, member of attrs)` for each row of the table.
template <typename A, typename Use>
void each_attr(A& attrs, const Use& use) {
  std::apply([&](const auto&... field) { (use(field, attrs.*(field.kPlace)), ...); },
             std::remove_const_t<A>::table());
}

/// The attributes of an operator, with their defaults.
template <typename A>
std::vector<OpAttr> attrs_of(const A& defaults = {}) {
  std::vector<OpAttr> out;
  each_attr(defaults, [&]<typename T>(const auto& field, const T& value) {
    OpAttr attr{field.name, AttrTraits<T>::kind(value), std::nullopt, field.doc};
    if (!field.is_required) attr.default_value = AttrTraits<T>::write(value);
    out.push_back(std::move(attr));
  });
  return out;
}

/// The value of an attribute of a call; null where an attribute that may be None is left out.
/// \throws CompileError (kBadAttribute) where another is.
const AttrValue* given_attr(const Call& call, const char* name, bool may_be_none);
/// \throws CompileError (kBadAttribute): the attribute has a value of another kind.
[[noreturn]] void throw_bad_kind(const Call& call, const char* name, const AttrValue& value);

template <typename T>
inline constexpr bool kMayBeNone = false;
template <typename T>
inline constexpr bool kMayBeNone<std::optional<T>> = true;

/// The attributes of a call. \throws CompileError (kBadAttribute) where one is missing or of another
/// kind.
template <typename A>
A attrs_as(const Call& call) {
  A out;
  each_attr(out, [&]<typename T>(const auto& field, T& member) {
    const AttrValue* value = given_attr(call, field.name, kMayBeNone<T>);
    if (!value)
      member = T();
    else if (!AttrTraits<T>::read(*value, member))
      throw_bad_kind(call, field.name, *value);
  });
  return out;
}

/// The attributes of a call that is made.
template <typename A>
Attrs to_attrs(const A& attrs) {
  Attrs out;
  each_attr(attrs, [&]<typename T>(const auto& field, const T& value) {
    out.set(field.name, AttrTraits<T>::write(value));
  });
  return out;
}

}  // namespace tenon::graph
