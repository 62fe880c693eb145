// SPDX-License-Identifier: Apache-2.0
// A table of operators that are read, made of those of its families.
#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <vector>

#include "tenon/support/diagnostics.h"

namespace tenon::importers {

/// `Row` has a `key()`, which no two rows share.
template <typename Row>
class OperatorTable {
 public:
  OperatorTable(std::initializer_list<std::vector<Row> (*)()> families) {
    for (const auto family : families)
      for (Row& row : family()) rows_.push_back(std::move(row));
    std::ranges::sort(rows_, std::less(), &Row::key);
    check(std::ranges::adjacent_find(rows_, std::equal_to(), &Row::key) == rows_.end(),
          "an operator has two rows");
  }

  /// Every row, by key.
  const std::vector<Row>& rows() const { return rows_; }
  /// Null where there is none.
  template <typename Key>
  const Row* find(const Key& key) const {
    const auto it = std::ranges::lower_bound(rows_, key, std::less(), &Row::key);
    return it != rows_.end() && it->key() == key ? &*it : nullptr;
  }

 private:
  std::vector<Row> rows_;
};

}  // namespace tenon::importers
