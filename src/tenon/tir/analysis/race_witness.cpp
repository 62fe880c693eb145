// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/analysis/race_witness.h"

#include <algorithm>
#include <map>

#include "tenon/tir/analysis/points.h"
#include "tenon/tir/analysis/region.h"

namespace tenon::tir {

using Access = ParallelAccess;

namespace {

// Elements that are looked at one by one.
constexpr int64_t kMostTouches = int64_t{1} << 17;
constexpr int64_t kMostIterations = int64_t{1} << 20;  // which a guard may have left empty

// Every element of one memory that a loop touches, in each iteration of the loops around it.
class Elements {
 public:
  Elements(const ParallelLoop& loop, const std::vector<const Access*>& accesses)
      : loop_(loop), accesses_(accesses) {}

  RaceAnswer look(Meeting& meeting) {
    std::vector<Running> around;
    const std::vector<Running>& loops = accesses_.front()->loops;
    for (size_t l = 0; l < loop_.depth; ++l)
      if (std::any_of(accesses_.begin(), accesses_.end(), [&](const Access* access) {
            return uses_var(*access, loops[l].var.get()) ||
                   std::any_of(access->loops.begin(), access->loops.end(),
                               [&](const Running& inner) {
                                 return uses_var(inner.min, loops[l].var.get()) ||
                                        uses_var(inner.extent, loops[l].var.get());
                               });
          }))
        around.push_back(loops[l]);
    const RaceAnswer found = each(around, 0, [&] { return once(meeting); });
    return found == RaceAnswer::kNone && is_open_ ? RaceAnswer::kOpen : found;
  }

 private:
  struct Touch {
    int64_t writer = 0, reader = 0;
    const Access* wrote = nullptr;
    const Access* read = nullptr;
    bool is_sure = false;  // the write
  };

  // `body` for each point of `loops`; it ends where that finds something.
  template <typename F>
  RaceAnswer each(const std::vector<Running>& loops, size_t depth, const F& body) {
    if (depth == loops.size()) return body();
    const auto min = value_at(loops[depth].min, point_);
    const auto extent = value_at(loops[depth].extent, point_);
    if (!min || !extent) return RaceAnswer::kOpen;
    RaceAnswer found = RaceAnswer::kNone;
    for (int64_t k = 0; k < *extent && found == RaceAnswer::kNone; ++k) {
      if (--iterations_left_ < 0) return RaceAnswer::kOpen;
      point_[loops[depth].var.get()] = *min + k;
      found = each(loops, depth + 1, body);
    }
    point_.erase(loops[depth].var.get());
    return found;
  }

  RaceAnswer once(Meeting& meeting) {
    touches_.clear();
    for (const bool writes : {true, false})
      for (const Access* access : accesses_) {
        if (access->writes != writes) continue;
        // The parallel loop, and those inside that decide.
        std::vector<Running> inner{access->loops[loop_.depth]};
        for (size_t l = access->loops.size(); l-- > loop_.depth + 1;) {
          const Running& loop = access->loops[l];
          const bool decides =
              uses_var(*access, loop.var.get()) ||
              std::any_of(inner.begin() + 1, inner.end(), [&](const Running& other) {
                return uses_var(other.min, loop.var.get()) ||
                       uses_var(other.extent, loop.var.get());
              });
          const auto extent = as_int(loop.extent);
          if (extent && *extent <= 0) inner.clear();
          if (inner.empty()) break;
          if (decides || !extent) inner.insert(inner.begin() + 1, loop);
        }
        if (inner.empty()) continue;
        const RaceAnswer found = each(inner, 0, [&] { return touch(*access, meeting); });
        if (found != RaceAnswer::kNone) return found;
      }
    return RaceAnswer::kNone;
  }

  RaceAnswer touch(const Access& access, Meeting& meeting) {
    bool sure = access.is_certain;
    for (const Access::Guard& guard : access.guards) {
      const auto holds = value_at(guard.condition, point_);
      if (holds && *holds == 0) return RaceAnswer::kNone;
      sure = sure && (holds || guard.depth <= loop_.depth);
    }
    std::vector<std::pair<int64_t, int64_t>> box;
    int64_t count = 1;
    for (const Range& range : access.box) {
      const auto min = value_at(range.min, point_), extent = value_at(range.extent, point_);
      if (!min || !extent || *extent < 0 || *extent > kMostTouches) return RaceAnswer::kOpen;
      box.emplace_back(*min, *extent);
      if (__builtin_mul_overflow(count, *extent, &count)) return RaceAnswer::kOpen;
    }
    if ((left_ -= std::max<int64_t>(count, 1)) < 0) return RaceAnswer::kOpen;
    if (count == 0) return RaceAnswer::kNone;
    const int64_t now = point_.at(access.loops[loop_.depth].var.get());
    std::vector<int64_t> at;
    for (const auto& [min, extent] : box) at.push_back(min);
    while (true) {
      Touch& seen = touches_[at];
      const bool meets = seen.wrote && seen.writer != now;
      if (meets && sure && seen.is_sure) {
        // The earlier iteration first.
        const bool in_order = seen.writer < now;
        meeting.first = in_order ? seen.wrote : &access;
        meeting.second = in_order ? &access : seen.wrote;
        meeting.first_iteration = fmt::format("{}", std::min(seen.writer, now));
        meeting.second_iteration = fmt::format("{}", std::max(seen.writer, now));
        meeting.element = fmt::format("{}", fmt::join(at, ", "));
        return RaceAnswer::kRace;
      }
      is_open_ = is_open_ || meets;
      if (access.writes && (!seen.wrote || (sure && !seen.is_sure))) {
        seen.wrote = &access;
        seen.writer = now;
        seen.is_sure = sure;
      }
      size_t d = at.size();
      while (d > 0 && ++at[d - 1] == box[d - 1].first + box[d - 1].second) {
        at[d - 1] = box[d - 1].first;
        --d;
      }
      if (d == 0) return RaceAnswer::kNone;
    }
  }

  const ParallelLoop& loop_;
  const std::vector<const Access*>& accesses_;
  std::map<std::vector<int64_t>, Touch> touches_;
  Point point_;
  int64_t left_ = kMostTouches, iterations_left_ = kMostIterations;
  bool is_open_ = false;
};

// The first iteration and the one after it, whatever the sizes.
class Corner {
 public:
  Corner(const ParallelLoop& loop, const std::vector<Ref<Var>>& symbols) : loop_(loop) {
    for (const Ref<Var>& symbol : symbols) analyzer_.bind_lower(symbol, 1);
  }

  bool shows(const Access& a, const Access& b, Meeting& meeting) {
    if (!a.is_certain || !b.is_certain || a.is_flat != b.is_flat) return false;
    const auto scope = analyzer_.enter();
    for (size_t l = 0; l < loop_.depth; ++l)
      analyzer_.bind(a.loops[l].var, a.loops[l].min, a.loops[l].extent);
    const Running& running = a.loops[loop_.depth];
    const Expr extent = running.extent;
    if (analyzer_.proves(extent < imm(extent->dtype, int64_t{2}))) return false;
    for (const Access* access : {&a, &b})
      for (const Access::Guard& guard : access->guards)
        if (guard.depth <= loop_.depth) analyzer_.assume(guard.condition);
    if (analyzer_.proves(extent < imm(extent->dtype, int64_t{2}))) return false;
    analyzer_.assume(extent >= imm(extent->dtype, int64_t{2}));
    const Expr min = cast(running.var->dtype, running.min);
    const auto first = box_of(a, min);
    const auto second = box_of(b, min + imm(min->dtype, int64_t{1}));
    if (!first || !second) return false;
    std::vector<Expr> at;
    for (size_t d = 0; d < first->size(); ++d) {
      const Range &x = (*first)[d], &y = (*second)[d];
      if (!analyzer_.proves(cast(kInt64, x.min) < cast(kInt64, y.min) + cast(kInt64, y.extent)) ||
          !analyzer_.proves(cast(kInt64, y.min) < cast(kInt64, x.min) + cast(kInt64, x.extent)))
        return false;
      at.push_back(analyzer_.simplify(
          analyzer_.proves(cast(kInt64, x.min) <= cast(kInt64, y.min)) ? y.min : x.min));
    }
    meeting.first = &a;
    meeting.second = &b;
    meeting.first_iteration = str(analyzer_.simplify(min));
    meeting.second_iteration = str(analyzer_.simplify(min + imm(min->dtype, int64_t{1})));
    std::string element;
    for (const Expr& index : at) element += (element.empty() ? "" : ", ") + str(index);
    meeting.element = element;
    return true;
  }

 private:
  // What all of an iteration touches, as far as it is one box; of the rest the first part.
  std::optional<std::vector<Range>> box_of(const Access& access, const Expr& iteration) {
    Substitution values{{access.loops[loop_.depth].var.get(), iteration}};
    std::vector<Range> box = access.box;
    for (size_t l = access.loops.size(); l-- > loop_.depth + 1;) {
      const Running& loop = access.loops[l];
      if (analyzer_.proves(loop.extent < imm(loop.extent->dtype, int64_t{1}))) return std::nullopt;
      grow(access, box, l);
    }
    for (size_t l = loop_.depth + 1; l < access.loops.size(); ++l) {
      const Running& loop = access.loops[l];
      values[loop.var.get()] = cast(loop.var->dtype, substitute(loop.min, values));
      analyzer_.assume(substitute(loop.extent, values) >= imm(loop.extent->dtype, int64_t{1}));
    }
    for (const Access::Guard& guard : access.guards)
      if (guard.depth > loop_.depth && !analyzer_.proves(substitute(guard.condition, values)))
        return std::nullopt;
    for (Range& range : box)
      range = {substitute(range.min, values), substitute(range.extent, values)};
    return box;
  }

  // Joins the places of all iterations of loop `l`, where they follow one another.
  void grow(const Access& access, std::vector<Range>& box, size_t l) {
    const Running& loop = access.loops[l];
    const Var* var = loop.var.get();
    for (const Access::Guard& guard : access.guards)
      if (uses_var(guard.condition, var)) return;
    for (size_t inner = l + 1; inner < access.loops.size(); ++inner)
      if (uses_var(access.loops[inner].min, var) || uses_var(access.loops[inner].extent, var))
        return;
    size_t dim = box.size();
    for (size_t d = 0; d < box.size(); ++d) {
      if (uses_var(box[d].extent, var)) return;
      if (!uses_var(box[d].min, var)) continue;
      if (dim < box.size()) return;
      dim = d;
    }
    if (dim == box.size()) return;
    const Ref<Var> vars[] = {loop.var};
    const auto form = analyzer_.linear(box[dim].min, vars);
    const auto factor = form ? as_int(form->coefficients[0]) : std::nullopt;
    const auto length = as_int(analyzer_.simplify(box[dim].extent));
    if (!factor || *factor < 1 || !length || *length < *factor) return;
    box[dim] = {substitute(box[dim].min, {{var, cast(loop.var->dtype, loop.min)}}),
                box[dim].extent + (loop.extent - imm(loop.extent->dtype, int64_t{1})) * *factor};
  }

  const ParallelLoop& loop_;
  arith::Analyzer analyzer_;
};

}  // namespace

RaceAnswer look_at_elements(const ParallelLoop& loop,
                            const std::vector<const ParallelAccess*>& accesses, Meeting& meeting) {
  return Elements(loop, accesses).look(meeting);
}

bool meet_at_corner(const ParallelAccess& a, const ParallelAccess& b, const ParallelLoop& loop,
                    const std::vector<Ref<Var>>& symbols, Meeting& meeting) {
  return Corner(loop, symbols).shows(a, b, meeting);
}

}  // namespace tenon::tir
