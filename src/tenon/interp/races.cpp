// SPDX-License-Identifier: Apache-2.0
#include "tenon/interp/races.h"

#include <algorithm>

#include "tenon/support/kernel_codes.h"
#include "tenon/tir/analysis/parallel_races.h"

namespace tenon::interp {

void RaceTracker::begin() {
  if (running_++ > 0) return;
  paths_.clear();
  open_.clear();
  now_ = -1;
  instances_.clear();
  blocks_.clear();
  shadows_.clear();
}

void RaceTracker::enter_loop(const WatchInfo* loop) {
  open_.push_back(now_);
  paths_.push_back({now_, ++executions_, -1, loop});
  now_ = static_cast<int32_t>(paths_.size()) - 1;
}

void RaceTracker::iterate(int64_t iteration) {
  Path next = paths_[static_cast<size_t>(now_)];
  next.iteration = iteration;
  paths_.push_back(next);
  now_ = static_cast<int32_t>(paths_.size()) - 1;
}

void RaceTracker::leave_loop() {
  now_ = open_.back();
  open_.pop_back();
}

void RaceTracker::enter_block(const WatchInfo* block, const Slot* slots) {
  if (scope_ == Scope::kParallelLoops) return;
  Instance next{block, 0, {}};
  next.axes.reserve(block->slots.size());
  for (const int32_t slot : block->slots) next.axes.push_back(slots[slot].i);
  next.scope = blocks_.empty() ? -1 : blocks_.back();
  if (!instances_.empty()) {
    const Instance& last = instances_.back();  // the next step of a reduction
    if (last.block == block && last.scope == next.scope && last.axes == next.axes) {
      blocks_.push_back(static_cast<int32_t>(instances_.size()) - 1);
      return;
    }
  }
  instances_.push_back(std::move(next));
  blocks_.push_back(static_cast<int32_t>(instances_.size()) - 1);
}

void RaceTracker::leave_block() {
  if (scope_ != Scope::kParallelLoops) blocks_.pop_back();
}

RaceTracker::Cell& RaceTracker::cell(const View& view, int64_t at) {
  Shadow& shadow = shadows_[view.memory.get()];
  if (!shadow.keeper) shadow.keeper = view.memory;
  return shadow.cells[at];
}

std::string RaceTracker::element(const View& view, int64_t at) const {
  // Row-major: the strides that views of functions have, but for regions.
  std::string text;
  int64_t rest = (at - view.offset) / std::max<int64_t>(1, view.dtype.bytes());
  for (size_t d = 0; d < view.shape.size(); ++d) {
    const int64_t stride = std::max<int64_t>(1, view.strides[d]);
    text += fmt::format("{}{}", d ? ", " : "", rest / stride);
    rest %= stride;
  }
  return fmt::format("element ({}) of `{}`", text, view.buffer ? view.buffer->name : "?");
}

// The loop of which `a` and `b` are two iterations in one execution; null where one is before the
// other.
const RaceTracker::Path* RaceTracker::concurrent(int32_t a, int32_t b, int64_t& first,
                                                 int64_t& second) const {
  const Path* found = nullptr;
  for (int32_t x = a; x >= 0; x = paths_[static_cast<size_t>(x)].parent) {
    const Path& one = paths_[static_cast<size_t>(x)];
    for (int32_t y = b; y >= 0; y = paths_[static_cast<size_t>(y)].parent) {
      const Path& other = paths_[static_cast<size_t>(y)];
      if (one.execution != other.execution) continue;
      const bool counts = scope_ == Scope::kAll || !one.loop->in_lanes;
      if (counts && one.iteration != other.iteration) {
        found = &one;  // the outermost such loop decides
        first = one.iteration;
        second = other.iteration;
      }
      break;
    }
  }
  return found;
}

void RaceTracker::check(int32_t before, const View& view, int64_t at, const Origin& there,
                        const Origin& here, const char* what) const {
  if (before < 0 || before == now_) return;
  int64_t first = 0, second = 0;
  const Path* loop = concurrent(before, now_, first, second);
  if (!loop) return;
  fail(*loop, view, at, first, second, there, here, what);
}

void RaceTracker::fail(const Path& loop, const View& view, int64_t at, int64_t first,
                       int64_t second, const Origin& there, const Origin& here,
                       const char* what) const {
  CompileError error(kRace, here,
                     "{} is {} by iterations {} and {} of loop `{}`, which may run at once",
                     element(view, at), what, first, second, loop.loop->name);
  if (there) error.note(there, "iteration {} is here", first);
  if (loop.loop->origin) error.note(loop.loop->origin, "the loop is here");
  if (!view.memory->owner.empty())
    error.note(view.buffer ? view.buffer->origin : here, "{}",
               tir::owner_hint(view.memory->name, view.memory->owner, loop.loop->name));
  throw error;
}

// Whether an iteration of the execution of `loop` is under way.
bool RaceTracker::is_inside(const Path& loop) const {
  for (int32_t x = now_; x >= 0; x = paths_[static_cast<size_t>(x)].parent)
    if (paths_[static_cast<size_t>(x)].execution == loop.execution) return true;
  return false;
}

// Whether `writer` is of the iteration of the outermost loop that is under way.
bool RaceTracker::is_own(int32_t writer) const {
  if (writer < 0 || now_ < 0) return writer == now_;
  const auto outermost = [&](int32_t x) -> const Path& {
    while (paths_[static_cast<size_t>(x)].parent >= 0) x = paths_[static_cast<size_t>(x)].parent;
    return paths_[static_cast<size_t>(x)];
  };
  const Path &a = outermost(writer), &b = outermost(now_);
  return a.execution == b.execution && a.iteration == b.iteration;
}

void RaceTracker::load(const View& view, int64_t at, int64_t bytes, const Origin& origin) {
  (void)bytes;
  const bool is_scratch = !view.memory->owner.empty();
  if (now_ < 0 && !is_scratch) return;
  Cell& seen = cell(view, at);
  if (seen.clash_first >= 0) {
    const Path& first = paths_[static_cast<size_t>(seen.clash_first)];
    int64_t one = 0, other = 0;
    const Path* loop = concurrent(seen.clash_first, seen.clash_second, one, other);
    if (loop && !is_inside(first))
      fail(*loop, view, at, one, other, seen.clash_writer, seen.writer, "written");
  }
  if (now_ < 0) return;
  check(seen.written_by, view, at, seen.writer, origin, "written and then read");
  // What a block around the loop allocates becomes each iteration's own where no iteration reads
  // of it what it did not write.
  if (seen.read_by == now_ || (is_scratch && is_own(seen.written_by))) return;
  if (seen.read_by >= 0) seen.read_by_other = seen.read_by;
  seen.read_by = now_;
}

void RaceTracker::store(const View& view, int64_t at, int64_t bytes, const Origin& origin) {
  (void)bytes;
  Cell& seen = cell(view, at);
  const bool is_scratch = !view.memory->owner.empty();
  if (seen.clash_first >= 0 && !is_inside(paths_[static_cast<size_t>(seen.clash_first)]))
    seen.clash_first = seen.clash_second = -1;
  if (now_ >= 0) {
    int64_t first = 0, second = 0;
    if (!is_scratch) {
      check(seen.written_by, view, at, seen.writer, origin, "written");
    } else if (seen.written_by >= 0 && concurrent(seen.written_by, now_, first, second)) {
      seen.clash_first = seen.written_by;
      seen.clash_second = now_;
      seen.clash_writer = seen.writer;
    }
    check(seen.read_by, view, at, origin, origin, "read and then written");
    check(seen.read_by_other, view, at, origin, origin, "read and then written");
  }
  seen.written_by = now_;
  if (!blocks_.empty()) {
    const int32_t here = blocks_.back();
    const Instance& now = instances_[static_cast<size_t>(here)];
    const bool watched = !now.block->outputs_only || std::find(outputs_.begin(), outputs_.end(),
                                                               view.memory.get()) != outputs_.end();
    if (watched && seen.instance >= 0 && seen.instance != here) {
      const Instance& before = instances_[static_cast<size_t>(seen.instance)];
      if (before.block == now.block && before.scope == now.scope && before.axes != now.axes) {
        const auto text = [&](const Instance& instance) {
          std::string out;
          for (size_t i = 0; i < instance.axes.size(); ++i)
            out += fmt::format("{}{}={}", i ? ", " : "", now.block->axes[i], instance.axes[i]);
          return out;
        };
        throw CompileError(
            kRace, origin,
            "{} is written for {} and for {}: data-parallel axes of block `{}`, whose "
            "iterations may run at once and in any order",
            element(view, at), text(before), text(now), now.block->name)
            .note(now.block->origin, "the block is here; an axis of a sum is T.axis.reduce");
      }
    }
    seen.instance = here;
  }
  seen.writer = origin;
}

Origin RaceTracker::writer(const Memory* memory, int64_t at) const {
  const auto shadow = shadows_.find(memory);
  if (shadow == shadows_.end()) return {};
  const auto cell = shadow->second.cells.find(at);
  return cell == shadow->second.cells.end() ? Origin() : cell->second.writer;
}

void check_written(const std::vector<View>& views, const tir::PrimFunc& function) {
  size_t next = 0;
  for (const Ref<tir::Buffer>& buffer : function.buffers) {
    if (!buffer) continue;
    const View& view = views[next++];
    const std::vector<uint8_t>& written = view.memory->written;
    const auto hole = std::find(written.begin(), written.end(), 0);
    if (hole == written.end()) continue;
    int64_t rest = (hole - written.begin()) / std::max<int64_t>(1, view.dtype.bytes());
    std::string place;
    for (size_t d = 0; d < view.shape.size(); ++d) {
      place += fmt::format("{}{}", d ? ", " : "", rest / view.strides[d]);
      rest %= view.strides[d];
    }
    throw CompileError(kNotWritten, buffer->origin ? buffer->origin : function.origin,
                       "element ({}) of `{}`, of shape {}, is never written", place, buffer->name,
                       tenon::str(view.shape));
  }
}

std::unordered_set<const Node*> with_open_loops(const IRModule& module) {
  std::unordered_set<const Node*> open;
  tir::CallEffects effects(module);
  for (const auto& [name, function] : module.functions())
    if (const auto* prim = function.as<tir::PrimFunc>())
      tir::find_races(*prim, module, effects, [&](const tir::Race&) { open.insert(prim); });
  return open;
}

}  // namespace tenon::interp
