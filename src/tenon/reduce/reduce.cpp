// SPDX-License-Identifier: Apache-2.0
#include "tenon/reduce/reduce.h"

#include <algorithm>
#include <set>

#include "tenon/reduce/steps.h"

namespace tenon::reduce {

const std::vector<Step>& steps() {
  static const std::vector<Step> kSteps = [] {
    std::vector<Step> all = graph_steps();
    for (const Step& step : tir_steps()) all.push_back(step);
    return all;
  }();
  return kSteps;
}

namespace {

class Reduction {
 public:
  Reduction(IRModule module, const Shows& shows, const Options& options)
      : options_(options), shows_(shows), result_{std::move(module)} {
    seen_.insert(structural_hash(result_.module));
  }

  Result run() {
    // What one step removes makes room for the others: again until nothing changes.
    for (bool changed = true; changed && !stopped();) {
      changed = false;
      for (const Step& step : steps()) changed |= shrink(step);
    }
    return std::move(result_);
  }

 private:
  bool stopped() const { return options_.out_of_time && options_.out_of_time(); }

  // Parts of half the places, then of a quarter, ... then single places; from the end, since what
  // stands last is needed by nothing.
  bool shrink(const Step& step) {
    bool changed = false;
    size_t count = step.places(result_.module);
    for (size_t part = count; part > 0; part /= 2) {
      for (size_t end = count; end > 0 && !stopped();) {
        const size_t begin = end > part ? end - part : 0;
        if (accept(step, begin, end)) {
          changed = true;
          count = step.places(result_.module);
          end = std::min(begin, count);
        } else {
          end = begin;
        }
      }
    }
    return changed;
  }

  bool accept(const Step& step, size_t begin, size_t end) {
    IRModule candidate;
    try {
      auto smaller = step.apply(result_.module, begin, end);
      if (!smaller) return false;
      candidate = std::move(*smaller);
      // What was asked once is not asked again, nor what the step leaves as it is.
      if (!seen_.insert(structural_hash(candidate)).second) return false;
      if (options_.verify) options_.verify(candidate);
    } catch (const CompileError&) {
      return false;
    }
    ++result_.tried;
    if (!shows_(candidate)) return false;
    ++result_.kept;
    result_.module = std::move(candidate);
    if (options_.progress) options_.progress(result_.module, step.name);
    return true;
  }

  const Options& options_;
  const Shows& shows_;
  Result result_;
  std::set<uint64_t> seen_;
};

}  // namespace

Result reduce(IRModule module, const Shows& shows, const Options& options) {
  return Reduction(std::move(module), shows, options).run();
}

std::vector<size_t> minimise(size_t count,
                             const std::function<bool(const std::vector<size_t>& kept)>& shows,
                             const std::function<bool()>& out_of_time) {
  std::vector<size_t> kept(count);
  for (size_t i = 0; i < count; ++i) kept[i] = i;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t part = kept.size(); part > 0; part /= 2)
      for (size_t end = kept.size(); end > 0;) {
        if (out_of_time && out_of_time()) return kept;
        const size_t begin = end > part ? end - part : 0;
        std::vector<size_t> fewer(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(begin));
        fewer.insert(fewer.end(), kept.begin() + static_cast<std::ptrdiff_t>(end), kept.end());
        if (shows(fewer)) {
          kept = std::move(fewer);
          changed = true;
        }
        end = begin;
      }
    // One more round finds what only the removal of something later made possible.
    if (kept.empty()) break;
  }
  return kept;
}

static std::string reduce_parts(const std::vector<std::string>& parts,
                                const std::function<bool(const std::string&)>& shows,
                                const std::function<bool()>& out_of_time) {
  const auto joined = [&](const std::vector<size_t>& kept) {
    std::string text;
    for (const size_t i : kept) text += parts[i];
    return text;
  };
  return joined(minimise(
      parts.size(), [&](const std::vector<size_t>& kept) { return shows(joined(kept)); },
      out_of_time));
}

std::string reduce_text(std::string text, const std::function<bool(const std::string&)>& shows,
                        const std::function<bool()>& out_of_time) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  text = reduce_parts(lines, shows, out_of_time);
  // Characters of a long text would take too many runs: words then.
  constexpr size_t kFewCharacters = 300;
  std::vector<std::string> parts;
  for (const char c : text) {
    const bool is_word = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    if (text.size() > kFewCharacters && is_word && !parts.empty() &&
        std::isalnum(static_cast<unsigned char>(parts.back().back())))
      parts.back() += c;
    else
      parts.emplace_back(1, c);
  }
  return reduce_parts(parts, shows, out_of_time);
}

}  // namespace tenon::reduce
