// SPDX-License-Identifier: Apache-2.0
#include "tenon/ir/attrs.h"

#include <cmath>

#include "tenon/support/quoted.h"

namespace tenon {

AttrValue::AttrValue(const AttrValue& other) = default;
AttrValue::AttrValue(AttrValue&& other) noexcept = default;
AttrValue& AttrValue::operator=(const AttrValue& other) = default;
AttrValue& AttrValue::operator=(AttrValue&& other) noexcept = default;
AttrValue::~AttrValue() = default;

AttrValue::AttrValue(const std::vector<int64_t>& v) : value(AttrList(v.begin(), v.end())) {}
AttrValue::AttrValue(const std::vector<std::string>& v) : value(AttrList(v.begin(), v.end())) {}

bool AttrValue::operator==(const AttrValue& other) const {
  if (value.index() != other.value.index()) return false;
  if (const auto* node = as<NodePtr>()) return node->same_as(*other.as<NodePtr>());
  if (const auto* number = as<double>())
    return FieldTraits<double>::equal(*number, *other.as<double>());
  if (const auto* list = as<AttrList>()) return *list == *other.as<AttrList>();
  if (const auto* map = as<Map>()) return *map == *other.as<Map>();
  if (const auto* text = as<std::string>()) return *text == *other.as<std::string>();
  if (const auto* number = as<int64_t>()) return *number == *other.as<int64_t>();
  if (const auto* flag = as<bool>()) return *flag == *other.as<bool>();
  if (const auto* dtype = as<DType>()) return *dtype == *other.as<DType>();
  return true;
}

std::string AttrValue::str() const {
  if (const auto* flag = as<bool>()) return *flag ? "True" : "False";
  if (const auto* number = as<int64_t>()) return std::to_string(*number);
  if (const auto* number = as<double>()) {
    if (std::isnan(*number)) return "float(\"nan\")";
    if (std::isinf(*number)) return *number > 0 ? "float(\"inf\")" : "float(\"-inf\")";
    std::string text = fmt::format("{}", *number);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
  }
  if (const auto* text = as<std::string>()) return quoted(*text);
  if (const auto* dtype = as<DType>()) return quoted(dtype->str());
  if (const auto* list = as<AttrList>()) {
    std::string text = "[";
    for (const AttrValue& item : *list) text += (text.size() > 1 ? ", " : "") + item.str();
    return text + "]";
  }
  if (const auto* map = as<Map>()) {
    std::string text = "{";
    for (const auto& [key, item] : *map)
      text += (text.size() > 1 ? ", " : "") + quoted(key) + ": " + item.str();
    return text + "}";
  }
  if (const auto* node = as<NodePtr>())
    return *node ? fmt::format("<{}>", node->get()->type().name) : "None";
  return "None";
}

Attrs::Attrs() = default;
Attrs::Attrs(std::initializer_list<std::pair<const std::string, AttrValue>> items)
    : items_(items) {}
Attrs::Attrs(const Attrs& other) = default;
Attrs::Attrs(Attrs&& other) noexcept = default;
Attrs& Attrs::operator=(const Attrs& other) = default;
Attrs& Attrs::operator=(Attrs&& other) noexcept = default;
Attrs::~Attrs() = default;

const AttrValue* Attrs::find(const std::string& name) const {
  const auto it = items_.find(name);
  return it == items_.end() ? nullptr : &it->second;
}

std::optional<std::vector<int64_t>> Attrs::ints(const std::string& name) const {
  const AttrValue* found = find(name);
  const AttrList* list = found ? found->as<AttrList>() : nullptr;
  if (!list) return std::nullopt;
  std::vector<int64_t> out;
  for (const AttrValue& item : *list) {
    const int64_t* number = item.as<int64_t>();
    if (!number) return std::nullopt;
    out.push_back(*number);
  }
  return out;
}

std::optional<std::vector<std::string>> Attrs::strings(const std::string& name) const {
  const AttrValue* found = find(name);
  const AttrList* list = found ? found->as<AttrList>() : nullptr;
  if (!list) return std::nullopt;
  std::vector<std::string> out;
  for (const AttrValue& item : *list) {
    const std::string* text = item.as<std::string>();
    if (!text) return std::nullopt;
    out.push_back(*text);
  }
  return out;
}

bool Attrs::flag(const std::string& name) const {
  const AttrValue* found = find(name);
  if (!found) return false;
  if (const bool* b = found->as<bool>()) return *b;
  const int64_t* number = found->as<int64_t>();
  return number && *number != 0;
}

void Attrs::set(const std::string& name, AttrValue value) { items_[name] = std::move(value); }

void Attrs::erase(const std::string& name) { items_.erase(name); }

bool Attrs::operator==(const Attrs& other) const { return items_ == other.items_; }

std::string Attrs::str() const { return AttrValue(items_).str(); }

Attrs Attrs::with(const std::string& name, AttrValue value) const {
  Attrs out = *this;
  out.set(name, std::move(value));
  return out;
}
Attrs Attrs::without(const std::string& name) const {
  Attrs out = *this;
  out.erase(name);
  return out;
}

void FieldTraits<AttrValue>::visit(const AttrValue& m, const NodeVisitor& v) {
  if (const auto* node = m.as<NodePtr>()) {
    if (*node) v(*node);
  } else if (const auto* list = m.as<AttrList>()) {
    for (const AttrValue& item : *list) visit(item, v);
  } else if (const auto* map = m.as<AttrValue::Map>()) {
    for (const auto& [key, item] : *map) visit(item, v);
  }
}

bool FieldTraits<AttrValue>::map(AttrValue& m, const NodeMapper& f) {
  bool changed = false;
  if (auto* node = std::get_if<NodePtr>(&m.value)) return FieldTraits<NodePtr>::map(*node, f);
  if (auto* list = std::get_if<AttrList>(&m.value)) {
    for (AttrValue& item : *list) changed |= map(item, f);
  } else if (auto* items = std::get_if<AttrValue::Map>(&m.value)) {
    for (auto& [key, item] : *items) changed |= map(item, f);
  }
  return changed;
}

bool FieldTraits<AttrValue>::equal(const AttrValue& a, const AttrValue& b) {
  if (a.value.index() != b.value.index()) return false;
  if (a.as<NodePtr>()) return true;
  if (const auto* list = a.as<AttrList>())
    return FieldTraits<AttrList>::equal(*list, *b.as<AttrList>());
  if (const auto* map = a.as<AttrValue::Map>()) {
    const auto* other = b.as<AttrValue::Map>();
    if (map->size() != other->size()) return false;
    for (auto i = map->begin(), j = other->begin(); i != map->end(); ++i, ++j)
      if (i->first != j->first || !equal(i->second, j->second)) return false;
    return true;
  }
  return a == b;
}

uint64_t FieldTraits<AttrValue>::hash(const AttrValue& m) {
  uint64_t h = m.value.index();
  if (const auto* list = m.as<AttrList>()) {
    for (const AttrValue& item : *list) h = hash_combine(h, hash(item));
  } else if (const auto* map = m.as<AttrValue::Map>()) {
    for (const auto& [key, item] : *map)
      h = hash_combine(hash_combine(h, hash_bytes(key.data(), key.size())), hash(item));
  } else if (!m.as<NodePtr>()) {
    h = hash_combine(h, FieldTraits<std::string>::hash(m.str()));
  }
  return h;
}

void FieldTraits<Attrs>::visit(const Attrs& m, const NodeVisitor& v) {
  for (const auto& [name, value] : m.items_) FieldTraits<AttrValue>::visit(value, v);
}
bool FieldTraits<Attrs>::map(Attrs& m, const NodeMapper& f) {
  bool changed = false;
  for (auto& [name, value] : m.items_) changed |= FieldTraits<AttrValue>::map(value, f);
  return changed;
}
bool FieldTraits<Attrs>::equal(const Attrs& a, const Attrs& b) {
  return FieldTraits<AttrValue>::equal(AttrValue(a.items_), AttrValue(b.items_));
}
uint64_t FieldTraits<Attrs>::hash(const Attrs& m) {
  return FieldTraits<AttrValue>::hash(AttrValue(m.items_));
}

}  // namespace tenon
