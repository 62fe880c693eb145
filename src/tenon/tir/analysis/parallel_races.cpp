// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/analysis/parallel_races.h"

#include <algorithm>

#include "tenon/tir/analysis/race_proof.h"
#include "tenon/tir/analysis/race_witness.h"
#include "tenon/tir/analysis/region.h"

namespace tenon::tir {

using Access = ParallelAccess;

namespace {

// Pairs of accesses of one loop that are looked at.
constexpr size_t kMostPairs = 1024;

bool same_box(const Access& a, const Access& b) {
  if (a.is_flat != b.is_flat || a.box.size() != b.box.size()) return false;
  for (size_t d = 0; d < a.box.size(); ++d)
    if (!structural_equal(a.box[d].min, b.box[d].min) ||
        !structural_equal(a.box[d].extent, b.box[d].extent))
      return false;
  return true;
}

class Judge {
 public:
  Judge(const PrimFunc& function, const IRModule& module, CallEffects& effects,
        const std::function<void(const Race&)>& see)
      : found_(parallel_accesses(function, module, effects)), see_(see) {}

  void run() {
    for (const ParallelLoop& loop : found_.loops) judge(loop);
  }

 private:
  void judge(const ParallelLoop& loop) {
    const auto extent = as_int(loop.loop->extent);
    if (extent && *extent <= 1) return;
    // In order of first access.
    std::vector<const Buffer*> order;
    std::unordered_map<const Node*, std::vector<const Access*>> by_memory;
    for (size_t i = loop.begin; i < loop.end; ++i) {
      const Access& access = found_.accesses[i];
      auto& list = by_memory[access.memory.get()];
      if (list.empty()) order.push_back(access.memory.get());
      list.push_back(&access);
    }
    for (const Buffer* memory : order) {
      const auto place = found_.allocated.find(memory);
      if (place != found_.allocated.end() && place->second.depth > loop.depth) continue;
      std::vector<const Access*>& accesses = by_memory.at(memory);
      if (std::none_of(accesses.begin(), accesses.end(),
                       [](const Access* access) { return access->writes; }))
        continue;
      const bool is_private = place != found_.allocated.end() && place->second.block &&
                              is_used_inside_only(memory, loop);
      if (is_private)
        scratch(loop, accesses, *place->second.block);
      else
        shared(loop, distinct(accesses));
    }
  }

  bool is_used_inside_only(const Buffer* memory, const ParallelLoop& loop) const {
    for (size_t i = 0; i < found_.accesses.size(); ++i)
      if ((i < loop.begin || i >= loop.end) && found_.accesses[i].memory.get() == memory)
        return false;
    return true;
  }

  // Without those that say no more than others.
  static std::vector<const Access*> distinct(const std::vector<const Access*>& accesses) {
    std::vector<const Access*> out;
    for (const bool writes : {true, false})
      for (const Access* access : accesses) {
        if (access->writes != writes) continue;
        const bool known = std::any_of(out.begin(), out.end(), [&](const Access* other) {
          return other->is_known && access->is_known && same_box(*other, *access) &&
                 other->is_certain == access->is_certain &&
                 other->loops.size() == access->loops.size() &&
                 std::equal(
                     other->loops.begin(), other->loops.end(), access->loops.begin(),
                     [](const Running& a, const Running& b) { return a.var.same_as(b.var); }) &&
                 other->guards.size() <= access->guards.size() &&
                 std::equal(other->guards.begin(), other->guards.end(), access->guards.begin(),
                            [](const Access::Guard& a, const Access::Guard& b) {
                              return structural_equal(a.condition, b.condition);
                            });
        });
        if (!known) out.push_back(access);
      }
    return out;
  }

  void shared(const ParallelLoop& loop, const std::vector<const Access*>& accesses) {
    std::vector<std::pair<const Access*, const Access*>> open;
    size_t pairs = 0;
    const bool all_known = std::all_of(accesses.begin(), accesses.end(), [&](const Access* access) {
      return access->is_known && access->is_flat == accesses[0]->is_flat;
    });
    for (size_t i = 0; i < accesses.size() && accesses[i]->writes; ++i)
      for (size_t k = i; k < accesses.size(); ++k) {
        const Access &a = *accesses[i], &b = *accesses[k];
        const bool apart = a.is_known && b.is_known && ++pairs <= kMostPairs &&
                           proves_apart(a, b, loop, found_.symbols) &&
                           (i == k || proves_apart(b, a, loop, found_.symbols));
        if (!apart) open.push_back({&a, &b});
      }
    if (open.empty()) return;
    Meeting meeting;
    RaceAnswer answer = all_known ? look_at_elements(loop, accesses, meeting) : RaceAnswer::kOpen;
    if (answer == RaceAnswer::kNone) return;
    for (size_t i = 0; i < open.size() && answer == RaceAnswer::kOpen; ++i) {
      const auto& [a, b] = open[i];
      if (!a->is_known || !b->is_known) continue;
      if (meet_at_corner(*a, *b, loop, found_.symbols, meeting) ||
          meet_at_corner(*b, *a, loop, found_.symbols, meeting))
        answer = RaceAnswer::kRace;
    }
    Race race = race_of(loop, *open[0].first, *open[0].second);
    if (answer == RaceAnswer::kRace) {
      race = race_of(loop, *meeting.first, *meeting.second);
      race.fails = true;
      race.element = meeting.element;
      race.first_iteration = meeting.first_iteration;
      race.second_iteration = meeting.second_iteration;
    }
    see_(race);
  }

  void scratch(const ParallelLoop& loop, const std::vector<const Access*>& accesses,
               const Block& owner) {
    size_t at = 0;
    const RaceAnswer answer = look_at_scratch(loop, accesses, found_.symbols, at);
    if (answer == RaceAnswer::kNone) return;
    const auto write = std::find_if(accesses.begin(), accesses.end(),
                                    [](const Access* access) { return access->writes; });
    Race race = race_of(loop, **write, *accesses[at]);
    race.fails = answer == RaceAnswer::kRace;
    race.is_private = true;
    race.reason = "private-memory";
    race.owner = owner.name;
    see_(race);
  }

  static Race::Access shown(const Access& access, const ParallelLoop& loop) {
    Race::Access out{access.writes, access.origin, access.inner, access.callee, {}, {}};
    const Block* block = access.block;
    if (!block) return out;
    // The block's axis that the parallel loop runs through: where its places do not move with it.
    for (const IterVar& axis : block->iter_vars)
      if (axis.kind == IterKind::kReduce && !uses_var(access, loop.loop->loop_var.get())) {
        out.step_of = block->name;
        out.axis = axis.var->name;
        break;
      }
    return out;
  }
  static Race race_of(const ParallelLoop& loop, const Access& a, const Access& b) {
    Race race;
    race.loop = ref_to(loop.loop);
    race.buffer = a.memory;
    race.first = shown(a, loop);
    race.second = shown(b, loop);
    const auto reads = [](const Access& access) {
      bool found = access.from_memory;
      for (const Range& range : access.box)
        walk<BufferLoad>(range.min, [&](const BufferLoad&) { found = true; });
      return found;
    };
    const bool whole = !a.is_known || !b.is_known;
    race.reason = whole                  ? "unknown-memory"
                  : reads(a) || reads(b) ? "index-from-memory"
                                         : "not-proved";
    return race;
  }

  const ParallelAccesses found_;
  const std::function<void(const Race&)>& see_;
};

}  // namespace

bool has_parallel_loop(const PrimFunc& function) {
  bool found = false;
  walk_if(function.body, [&](const NodePtr& node) {
    const auto* loop = node.as<For>();
    if (loop && loop->kind == ForKind::kParallel) {
      const auto extent = as_int(loop->extent);
      found = found || !extent || *extent > 1;
    }
    return !found && (node.as<StmtNode>() != nullptr);
  });
  return found;
}

void find_races(const PrimFunc& function, const IRModule& module, CallEffects& effects,
                const std::function<void(const Race&)>& see) {
  if (has_parallel_loop(function)) Judge(function, module, effects, see).run();
}

}  // namespace tenon::tir
