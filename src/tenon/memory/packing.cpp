// SPDX-License-Identifier: Apache-2.0
#include "tenon/memory/packing.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "tenon/memory/problem.h"
#include "tenon/support/check.h"

namespace tenon::memory {

namespace {

/// Looks for a gap while the items that are in the way come by, in the order of their offsets.
struct GapSearch {
  int64_t bytes, alignment;
  GapChoice choice;
  int64_t position = 0;  // the least aligned offset above all that came by
  int64_t best = -1, best_gap = std::numeric_limits<int64_t>::max();

  /// True where the search is over: nothing that follows can matter.
  bool pass(int64_t offset, int64_t end) {
    if (offset - position >= bytes) {
      if (choice == GapChoice::kLowest) return true;
      if (offset - position < best_gap) {
        best_gap = offset - position;
        best = position;
      }
    }
    if (end > position) position = align_up(end, alignment);
    return false;
  }
  int64_t result() const { return best >= 0 ? best : position; }
};

}  // namespace

GapPacking::GapPacking(std::span<const Item> items, Work& work) : items_(items) {
  std::vector<int32_t> lowers, uppers;
  for (const Item& item : items) {
    lowers.push_back(item.lower);
    uppers.push_back(item.upper);
  }
  std::sort(lowers.begin(), lowers.end());
  std::sort(uppers.begin(), uppers.end());
  // An item conflicts with all those that have started before its end, less those that ended before
  // its start, less itself.
  int64_t pairs = 0;
  for (const Item& item : items) {
    pairs += std::lower_bound(lowers.begin(), lowers.end(), item.upper) - lowers.begin();
    pairs -= std::upper_bound(uppers.begin(), uppers.end(), item.lower) - uppers.begin();
    pairs -= 1;
  }
  const auto n = static_cast<int64_t>(items.size());
  // Neighbours have to be sorted by offset at each placement, the chunks are sorted already.
  by_neighbours_ = pairs <= (int64_t{1} << 25) && pairs * 8 < n * n / 2;
  work.used += 32 * n;
  if (!by_neighbours_) return;
  work.used += 8 * pairs;
  find_neighbours(pairs);
}

void GapPacking::find_neighbours(int64_t pairs) {
  std::vector<int32_t> by_start(items_.size());
  std::iota(by_start.begin(), by_start.end(), 0);
  std::sort(by_start.begin(), by_start.end(), [&](int32_t a, int32_t b) {
    return std::pair(items_[a].lower, a) < std::pair(items_[b].lower, b);
  });
  const auto each_pair = [&](auto&& f) {
    std::vector<int32_t> alive;
    for (const int32_t i : by_start) {
      std::erase_if(alive, [&](int32_t j) { return items_[j].upper <= items_[i].lower; });
      for (const int32_t j : alive) f(i, j);
      alive.push_back(i);
    }
  };
  first_neighbour_.assign(items_.size() + 1, 0);
  each_pair([&](int32_t i, int32_t j) {
    ++first_neighbour_[i + 1];
    ++first_neighbour_[j + 1];
  });
  std::partial_sum(first_neighbour_.begin(), first_neighbour_.end(), first_neighbour_.begin());
  check(first_neighbour_.back() == pairs, "conflicts counted in two ways differ");
  neighbours_.resize(pairs);
  std::vector<int64_t> next(first_neighbour_.begin(), first_neighbour_.end() - 1);
  each_pair([&](int32_t i, int32_t j) {
    neighbours_[next[i]++] = j;
    neighbours_[next[j]++] = i;
  });
}

int64_t GapPacking::find_by_scan(const Item& item, GapChoice choice, Work& work) const {
  GapSearch search{item.bytes, item.alignment, choice};
  for (const int32_t index : chunk_order_) {
    const Chunk& chunk = chunks_[index];
    ++work.used;
    if (choice == GapChoice::kLowest && chunk.offset[0] - search.position >= item.bytes) break;
    if (chunk.greatest_end <= search.position || chunk.first_lower >= item.upper ||
        chunk.last_upper <= item.lower)
      continue;
    work.used += chunk.count;
    for (int i = 0; i < chunk.count; ++i) {
      if (chunk.lower[i] >= item.upper || chunk.upper[i] <= item.lower) continue;
      if (search.pass(chunk.offset[i], chunk.end[i])) return search.result();
    }
  }
  return search.result();
}

int64_t GapPacking::find_by_neighbours(int32_t i, GapChoice choice, Work& work,
                                       const std::vector<int64_t>& offsets) {
  found_.clear();
  for (int64_t k = first_neighbour_[i]; k < first_neighbour_[i + 1]; ++k) {
    const int32_t j = neighbours_[k];
    if (offsets[j] >= 0) found_.push_back({offsets[j], offsets[j] + items_[j].bytes});
  }
  // Neighbours lie anywhere in memory.
  work.used += 3 * (first_neighbour_[i + 1] - first_neighbour_[i]);
  work.used += static_cast<int64_t>(found_.size()) * 8;
  std::sort(found_.begin(), found_.end(),
            [](const Placed& a, const Placed& b) { return a.offset < b.offset; });
  GapSearch search{items_[i].bytes, items_[i].alignment, choice};
  for (const Placed& placed : found_)
    if (search.pass(placed.offset, placed.end)) break;
  return search.result();
}

void GapPacking::insert(const Item& item, int64_t offset) {
  if (chunk_order_.empty()) {
    if (chunks_.empty()) chunks_.emplace_back();
    chunks_[0].count = 0;
    chunk_order_.push_back(0);
    chunks_used_ = 1;
  }
  // The last chunk that begins at or below the offset.
  auto it = std::upper_bound(chunk_order_.begin(), chunk_order_.end(), offset,
                             [&](int64_t value, int32_t c) {
                               return chunks_[c].count > 0 && value < chunks_[c].offset[0];
                             });
  if (it != chunk_order_.begin()) --it;
  const auto summarise = [](Chunk& c) {
    c.first_lower = *std::min_element(c.lower, c.lower + c.count);
    c.last_upper = *std::max_element(c.upper, c.upper + c.count);
    c.greatest_end = *std::max_element(c.end, c.end + c.count);
  };
  if (chunks_[*it].count == Chunk::kSize) {
    if (chunks_used_ == chunks_.size()) chunks_.emplace_back();
    const auto fresh = static_cast<int32_t>(chunks_used_++);
    Chunk& full = chunks_[*it];
    Chunk& upper = chunks_[fresh];
    constexpr int kHalf = Chunk::kSize / 2;
    full.count = upper.count = kHalf;
    std::copy_n(full.lower + kHalf, kHalf, upper.lower);
    std::copy_n(full.upper + kHalf, kHalf, upper.upper);
    std::copy_n(full.offset + kHalf, kHalf, upper.offset);
    std::copy_n(full.end + kHalf, kHalf, upper.end);
    summarise(full);
    summarise(upper);
    it = chunk_order_.insert(it + 1, fresh);
    if (offset < upper.offset[0]) --it;
  }
  Chunk& c = chunks_[*it];
  const auto at =
      static_cast<int>(std::upper_bound(c.offset, c.offset + c.count, offset) - c.offset);
  const auto put = [&](auto* column, auto value) {
    std::copy_backward(column + at, column + c.count, column + c.count + 1);
    column[at] = value;
  };
  put(c.lower, item.lower);
  put(c.upper, item.upper);
  put(c.offset, offset);
  put(c.end, offset + item.bytes);
  const bool first = c.count++ == 0;
  c.first_lower = first ? item.lower : std::min(c.first_lower, item.lower);
  c.last_upper = first ? item.upper : std::max(c.last_upper, item.upper);
  c.greatest_end = first ? offset + item.bytes : std::max(c.greatest_end, offset + item.bytes);
}

std::optional<int64_t> GapPacking::run(std::span<const int32_t> order, GapChoice choice,
                                       int64_t limit, Work& work, std::vector<int64_t>& offsets) {
  offsets.assign(items_.size(), -1);
  return repack(order, choice, limit, work, offsets);
}

std::optional<int64_t> GapPacking::repack(std::span<const int32_t> order, GapChoice choice,
                                          int64_t limit, Work& work,
                                          std::vector<int64_t>& offsets) {
  chunk_order_.clear();
  if (!by_neighbours_ && order.size() < items_.size())
    for (size_t i = 0; i < items_.size(); ++i)
      if (offsets[i] >= 0) {
        work.used += 32;
        insert(items_[i], offsets[i]);
      }
  int64_t peak = 0;
  for (const int32_t i : order) {
    work.used += 32;  // what a placement costs by itself
    if (!work.is_left()) return std::nullopt;
    const int64_t offset = by_neighbours_ ? find_by_neighbours(i, choice, work, offsets)
                                          : find_by_scan(items_[i], choice, work);
    if (offset + items_[i].bytes > limit) return std::nullopt;
    offsets[i] = offset;
    peak = std::max(peak, offset + items_[i].bytes);
    if (!by_neighbours_) insert(items_[i], offset);
  }
  return peak;
}

namespace {

/// The free gaps below the highest buffer alive, by offset and by size.
class FreeGaps {
 public:
  int64_t allocate(int64_t bytes, int64_t alignment, Work& work) {
    int tries = 64;  // of gaps that alignment makes too small
    for (auto it = by_size_.lower_bound({bytes, 0}); it != by_size_.end() && tries > 0; ++it) {
      --tries;
      ++work.used;
      const auto [size, begin] = *it;
      const int64_t offset = align_up(begin, alignment);
      if (offset + bytes > begin + size) continue;
      erase(begin, size);
      if (offset > begin) insert(begin, offset - begin);
      if (offset + bytes < begin + size) insert(offset + bytes, begin + size - offset - bytes);
      return offset;
    }
    const int64_t offset = align_up(top_, alignment);
    if (offset > top_) insert(top_, offset - top_);
    top_ = offset + bytes;
    return offset;
  }

  void release(int64_t offset, int64_t bytes) {
    int64_t begin = offset, end = offset + bytes;
    if (auto above = by_offset_.find(end); above != by_offset_.end()) {
      end += above->second;
      erase(above->first, above->second);
    }
    auto below = by_offset_.lower_bound(offset);
    if (below != by_offset_.begin() && (--below)->first + below->second == offset) {
      begin = below->first;
      erase(below->first, below->second);
    }
    if (end == top_) {
      top_ = begin;
    } else {
      insert(begin, end - begin);
    }
  }

 private:
  void insert(int64_t begin, int64_t size) {
    by_offset_.emplace(begin, size);
    by_size_.emplace(size, begin);
  }
  void erase(int64_t begin, int64_t size) {
    by_size_.erase({size, begin});
    by_offset_.erase(begin);
  }

  std::map<int64_t, int64_t> by_offset_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
  int64_t top_ = 0;
};

}  // namespace

int64_t best_fit_in_time_order(std::span<const Item> items, Work& work,
                               std::vector<int64_t>& offsets) {
  std::vector<int32_t> starts(items.size());
  std::iota(starts.begin(), starts.end(), 0);
  std::vector<int32_t> ends = starts;
  std::sort(starts.begin(), starts.end(), [&](int32_t a, int32_t b) {
    return std::tuple(items[a].lower, -items[a].bytes, a) <
           std::tuple(items[b].lower, -items[b].bytes, b);
  });
  std::sort(ends.begin(), ends.end(), [&](int32_t a, int32_t b) {
    return std::pair(items[a].upper, a) < std::pair(items[b].upper, b);
  });
  offsets.assign(items.size(), -1);
  FreeGaps gaps;
  int64_t peak = 0;
  size_t next_end = 0;
  for (const int32_t i : starts) {
    for (; items[ends[next_end]].upper <= items[i].lower; ++next_end)
      gaps.release(offsets[ends[next_end]], items[ends[next_end]].bytes);
    offsets[i] = gaps.allocate(items[i].bytes, items[i].alignment, work);
    peak = std::max(peak, offsets[i] + items[i].bytes);
    work.used += 64;
  }
  return peak;
}

}  // namespace tenon::memory
