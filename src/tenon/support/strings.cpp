// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/strings.h"

#include <deque>
#include <mutex>
#include <unordered_map>

#include "tenon/support/check.h"

namespace tenon {

namespace {

struct Table {
  std::mutex mutex;
  std::deque<std::string> texts{""};  // do not move
  std::unordered_map<std::string_view, int64_t> ids{{texts.front(), 0}};
};

Table& table() {
  static Table table;
  return table;
}

}  // namespace

int64_t intern_text(std::string_view text) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  if (const auto known = all.ids.find(text); known != all.ids.end()) return known->second;
  const auto id = static_cast<int64_t>(all.texts.size());
  all.ids.emplace(all.texts.emplace_back(text), id);
  return id;
}

const std::string& text_of(int64_t id) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  check(id >= 0 && static_cast<size_t>(id) < all.texts.size(), "a string that nobody interned");
  return all.texts[static_cast<size_t>(id)];
}

}  // namespace tenon
