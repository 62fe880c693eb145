// SPDX-License-Identifier: Apache-2.0
#include "tenon/memory/pools.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "tenon/memory/bounds.h"
#include "tenon/support/check.h"
#include "tenon/support/diagnostics.h"
#include "tenon/support/identifiers.h"

namespace tenon::memory {

// ---- the option ---------------------------------------------------------------------------------

static std::optional<int64_t> parse_size(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  const std::string_view ending(end, static_cast<size_t>(text.data() + text.size() - end));
  const int shift = ending.empty() || ending == "B" ? 0
                    : ending == "KiB"               ? 10
                    : ending == "MiB"               ? 20
                    : ending == "GiB"               ? 30
                                                    : -1;
  if (shift < 0 || number > (kMaxTotalBytes >> shift)) return std::nullopt;
  return number << shift;
}

static PoolOption parse_pool(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return CompileError(kBadOption, {},
                        "--pool {}: {}; expected NAME, NAME=SIZE, NAME=ro or NAME=SIZE,ro with a "
                        "SIZE such as 65536 or 64KiB",
                        text, why);
  };
  PoolOption pool;
  const size_t equals = text.find('=');
  pool.name = std::string(text.substr(0, equals));
  if (!is_identifier(pool.name)) throw wrong("the name is no identifier");
  if (is_c_keyword(pool.name))
    throw wrong(fmt::format("`{}` is a word of C, and the name is one of a parameter", pool.name));
  for (const char* own : {"dims", "inputs", "outputs", "constants", "error", "code"})
    if (pool.name == own)
      throw wrong(fmt::format("`{}` is a parameter that programs have already", pool.name));
  if (equals == std::string_view::npos) return pool;
  std::string_view rest = text.substr(equals + 1);
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const auto size = parse_size(word);
    if (word == "ro" && !pool.is_read_only) {
      pool.is_read_only = true;
    } else if (size && !pool.capacity) {
      pool.capacity = size;
    } else {
      throw wrong(fmt::format("`{}` is no size", word));
    }
  }
  if (!pool.capacity && !pool.is_read_only) throw wrong("nothing follows `=`");
  return pool;
}

static std::string in_capitals(std::string name) {
  for (char& c : name)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return name;
}

std::vector<PoolOption> parse_pools(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<PoolOption> pools;
  bool has_read_only = false;
  for (std::string word; in >> word;) {
    PoolOption pool = parse_pool(word);
    for (const PoolOption& other : pools) {
      if (other.name == pool.name)
        throw CompileError(kBadOption, {}, "--pool {}: the name is given twice", word);
      if (in_capitals(other.name) == in_capitals(pool.name))
        throw CompileError(kBadOption, {},
                           "--pool {}: `{}` and `{}` differ in capitals only, and both would be "
                           "{}_SIZE in C",
                           word, other.name, pool.name, in_capitals(pool.name));
    }
    if (pool.is_read_only && has_read_only)
      throw CompileError(kBadOption, {}, "--pool {}: there is a read-only pool already", word);
    has_read_only |= pool.is_read_only;
    pools.push_back(std::move(pool));
  }
  return pools;
}

// ---- spilling -----------------------------------------------------------------------------------

namespace {

/// Fills one pool: which of the buffers that want to be in it stay.
class PoolFill {
 public:
  PoolFill(Problem& problem, int pool, const PlanOptions& options)
      : problem_(problem), pool_(pool), options_(options) {}

  /// Buffers that do not stay go to the next pool. \throws as plan() does where there is none.
  void run() {
    if (!problem_.pools[static_cast<size_t>(pool_)].capacity) return;
    if (static_cast<size_t>(pool_) + 1 == problem_.pools.size())
      return;  // plan() says what is missing
    spill_by_load();
    while (!fits()) spill_at(lower_bound(problem_, pool_).step, 1);
    bring_back();
  }

 private:
  int64_t capacity() const { return *problem_.pools[static_cast<size_t>(pool_)].capacity; }

  void move_on(size_t buffer) {
    problem_.buffers[buffer].pool = pool_ + 1;
    moved_.push_back(buffer);
  }

  /// Makes room at a step: the smallest buffer there that is large enough, else the largest.
  void spill_at(int64_t step, int64_t missing) {
    std::optional<size_t> enough, largest;
    for (size_t i = 0; i < problem_.buffers.size(); ++i) {
      const Allocation& b = problem_.buffers[i];
      if (b.pool != pool_ || b.lower > step || b.upper <= step || b.bytes == 0) continue;
      if (b.bytes >= missing && (!enough || b.bytes < problem_.buffers[*enough].bytes)) enough = i;
      if (!largest || b.bytes > problem_.buffers[*largest].bytes) largest = i;
    }
    check(largest.has_value(), "a pool is too small where nothing is alive");
    move_on(enough ? *enough : *largest);
  }

  void spill_by_load() {
    for (Load load = lower_bound(problem_, pool_); load.bytes > capacity();
         load = lower_bound(problem_, pool_))
      spill_at(load.step, load.bytes - capacity());
  }

  /// Whether a packing of this pool alone is found.
  bool fits() const {
    if (lower_bound(problem_, pool_).bytes > capacity()) return false;
    Problem alone;
    for (const Allocation& b : problem_.buffers) {
      if (b.pool != pool_) continue;
      alone.buffers.push_back(b);
      alone.buffers.back().pool = 0;
    }
    return plan(alone, options_).pools[0].peak <= capacity();
  }

  void bring_back() {
    std::sort(moved_.begin(), moved_.end(), [&](size_t a, size_t b) {
      return std::pair(-problem_.buffers[a].bytes, a) < std::pair(-problem_.buffers[b].bytes, b);
    });
    for (const size_t i : moved_) {
      problem_.buffers[i].pool = pool_;
      if (!fits()) problem_.buffers[i].pool = pool_ + 1;
    }
  }

  Problem& problem_;
  int pool_;
  const PlanOptions& options_;
  std::vector<size_t> moved_;
};

}  // namespace

std::vector<Pool> writable_pools(std::span<const std::string> options) {
  std::string text;
  for (const std::string& option : options) text += (text.empty() ? "" : " ") + option;
  std::vector<Pool> pools;
  for (const PoolOption& pool : parse_pools(text)) {
    if (pool.is_read_only)
      throw CompileError(kBadOption, {},
                         "--pool {}=ro: the buffers of a problem are written; expected {}=SIZE",
                         pool.name, pool.name);
    pools.push_back({pool.name, pool.capacity});
  }
  return pools;
}

Plan plan_pools(Problem& problem, const PlanOptions& options) {
  for (Allocation& buffer : problem.buffers) buffer.pool = 0;
  validate(problem);
  for (size_t pool = 0; pool < problem.pools.size(); ++pool)
    PoolFill(problem, static_cast<int>(pool), options).run();
  if (problem.pools.size() == 1) return plan(problem, options);
  const Plan placed = plan_without_limits(problem, options);
  const size_t last = problem.pools.size() - 1;
  if (const auto capacity = problem.pools[last].capacity;
      capacity && placed.pools[last].peak > *capacity) {
    // Every other pool is full.
    int64_t all = 0;
    for (const PoolPlan& pool : placed.pools) all += pool.peak;
    Problem alone = problem;
    for (Allocation& buffer : alone.buffers) buffer.pool = 0;
    require_fit(problem, placed,
                fmt::format(" ({} in all); `{}` alone would need {}", all, problem.pools[0].name,
                            plan_without_limits(alone, options).pools[0].peak));
  }
  return plan(problem, options);
}

}  // namespace tenon::memory
