// SPDX-License-Identifier: Apache-2.0
#include "reduce.h"

#include <chrono>

#include "generators.h"

namespace tenon::fuzz {

namespace {

using List = std::vector<uint32_t>;
using Clock = std::chrono::steady_clock;

class Reducer {
 public:
  Reducer(List list, const std::function<bool(const List&)>& fails, double seconds)
      : best_(std::move(list)),
        fails_(fails),
        end_(Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}

  List run() {
    bool better = true;
    while (better && !over()) {
      better = drop_operators();
      better = drop_pieces() || better;
      better = lower() || better;
    }
    return best_;
  }

 private:
  bool over() const { return Clock::now() >= end_; }

  bool take(const List& list) {
    if (over() || list == best_ || !fails_(list)) return false;
    best_ = list;
    return true;
  }

  static List without(const List& list, size_t begin, size_t end) {
    List out(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(begin));
    out.insert(out.end(), list.begin() + static_cast<std::ptrdiff_t>(end), list.end());
    return out;
  }

  // Where the operators begin, in what this list makes.
  static std::vector<size_t> marks_of(const List& list) {
    Choices choices(list);
    random_network(choices);
    return choices.marks();
  }

  bool drop_operators() {
    bool any = false;
    const std::vector<size_t> marks = marks_of(best_);
    for (size_t i = marks.size(); i-- > 1;) {
      if (marks[i - 1] >= best_.size()) continue;
      any = take(without(best_, marks[i - 1], std::min(marks[i], best_.size()))) || any;
    }
    return any;
  }

  bool drop_pieces() {
    bool any = false;
    for (const size_t length : {16, 8, 4, 2, 1})
      for (size_t begin = best_.size(); begin-- > 0 && !over();)
        if (begin + length <= best_.size())
          any = take(without(best_, begin, begin + length)) || any;
    return any;
  }

  bool lower() {
    bool any = false;
    for (size_t i = 0; i < best_.size() && !over(); ++i) {
      if (best_[i] == 0) continue;
      List list = best_;
      for (const uint32_t value : {0u, best_[i] / 2, best_[i] - 1}) {
        list[i] = value;
        if (!take(list)) continue;
        any = true;
        break;
      }
    }
    return any;
  }

  List best_;
  const std::function<bool(const List&)>& fails_;
  Clock::time_point end_;
};

}  // namespace

List reduced(const Choices& choices, const std::function<bool(const List&)>& fails,
             double seconds) {
  return Reducer(choices.taken(), fails, seconds).run();
}

}  // namespace tenon::fuzz
