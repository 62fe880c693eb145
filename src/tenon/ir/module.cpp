// SPDX-License-Identifier: Apache-2.0
#include "tenon/ir/module.h"

#include "tenon/support/names.h"

namespace tenon {

ExternFunc::ExternFunc(std::string symbol, Attrs attrs, Origin origin)
    : NodeOf(std::move(origin)), symbol(std::move(symbol)) {
  this->attrs = std::move(attrs);
  finish_node(*this);
}
std::vector<FieldInfo> ExternFunc::fields() {
  return {field<&ExternFunc::symbol>("symbol"), field<&ExternFunc::attrs>("attrs")};
}

int IRModule::index_of(const std::string& name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? -1 : static_cast<int>(it->second);
}

BaseFunc IRModule::find(const std::string& name) const {
  const int i = index_of(name);
  return i < 0 ? BaseFunc() : functions_[static_cast<size_t>(i)].second;
}

void IRModule::set(const std::string& name, BaseFunc function) {
  check(static_cast<bool>(function), "a module entry without a function");
  const int i = index_of(name);
  if (i >= 0) {
    functions_[static_cast<size_t>(i)].second = std::move(function);
    return;
  }
  index_.emplace(name, functions_.size());
  functions_.emplace_back(name, std::move(function));
}

std::string IRModule::add_unique(const std::string& name, BaseFunc function) {
  std::string taken =
      fresh_name(name, [&](const std::string& other) { return contains(other); }, next_name_[name]);
  set(taken, std::move(function));
  return taken;
}

void IRModule::erase(const std::string& name) {
  const int i = index_of(name);
  if (i < 0) return;
  functions_.erase(functions_.begin() + i);
  index_.clear();
  for (size_t k = 0; k < functions_.size(); ++k) index_.emplace(functions_[k].first, k);
}

std::optional<Difference> structural_difference(const IRModule& a, const IRModule& b) {
  for (const auto& [name, function] : b.functions())
    if (!a.contains(name)) return Difference{name, "only in the second module"};
  for (const auto& [name, function] : a.functions()) {
    const BaseFunc other = b.find(name);
    if (!other) return Difference{name, "only in the first module"};
    if (function->is_private != other->is_private)
      return Difference{name, "private in one module only"};
    if (auto difference = structural_difference(function, other)) {
      difference->where = name + (difference->where.empty() ? "" : "." + difference->where);
      return difference;
    }
  }
  if (!FieldTraits<Attrs>::equal(a.attrs, b.attrs))
    return Difference{"attrs", a.attrs.str() + " and " + b.attrs.str()};
  return std::nullopt;
}

uint64_t structural_hash(const IRModule& module) {
  std::map<std::string, uint64_t> hashes;
  for (const auto& [name, function] : module.functions())
    hashes.emplace(name, structural_hash(function));
  uint64_t h = FieldTraits<Attrs>::hash(module.attrs);
  for (const auto& [name, hash] : hashes)
    h = hash_combine(hash_combine(h, hash_bytes(name.data(), name.size())), hash);
  return h;
}

}  // namespace tenon
