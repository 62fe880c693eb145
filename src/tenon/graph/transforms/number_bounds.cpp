// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/transforms/number_bounds.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace tenon::graph {

NumberBounds::NumberBounds(const IRModule& module) {
  const AttrValue* all = module.attrs.find("bounds");
  if (!all) return;
  const auto* bounds = all->as<AttrValue::Map>();
  const bool are_numbers = bounds && std::all_of(bounds->begin(), bounds->end(), [](const auto& b) {
                             return b.second.template as<int64_t>() != nullptr;
                           });
  if (!are_numbers)
    throw CompileError(kBadAttribute, {},
                       "module attribute `bounds` is {}; expected a number for each name",
                       all->str());
  bounds_ = *bounds;
}

void NumberBounds::read(const tenon::Var& number, const Origin& origin,
                        std::vector<tir::Stmt>& out) {
  names_.push_back(number.name);
  const auto found = bounds_.find(number.name);
  if (found == bounds_.end()) return;
  const int64_t most = *found->second.as<int64_t>();
  out.push_back(make<tir::Assert>(ref_to(&number) <= int64(most),
                                  fmt::format("`{}` is above its bound of {}", number.name, most),
                                  origin));
}

void NumberBounds::check_all_read() const {
  for (const auto& [name, most] : bounds_)
    if (std::find(names_.begin(), names_.end(), name) == names_.end())
      throw CompileError(
          kBadOption, {}, "bound of `{}`: the program reads no number of that name; it reads {}",
          name, names_.empty() ? "none" : fmt::format("`{}`", fmt::join(names_, "`, `")));
}

}  // namespace tenon::graph
