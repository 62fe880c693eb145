// SPDX-License-Identifier: Apache-2.0
#include "tenon/memory/scratch_room.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_set>

#include "tenon/graph/transforms.h"
#include "tenon/memory/plan_module.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/effects.h"
#include "tenon/tir/schedule/default_schedule.h"

namespace tenon::memory {

namespace {

/// What a kernel was called before some of its calls got a variant that computes in place.
constexpr const char* kOriginalName = "original_name";

using Rooms = std::map<std::string, int64_t>;

/// The program as it is lowered before kernels are scheduled, with the kernels that compute in place;
/// without `main` where it cannot be, which is told when it has to be.
IRModule lowered(IRModule module, const Rooms& rooms) {
  const RemarkScope told_later;
  for (const auto& [name, room] : rooms)
    module.set(name, module.find<tir::PrimFunc>(name)->with_attr(kOriginalName, name));
  try {
    return graph::lower_graph(graph::use_inplace_calls(module));
  } catch (const CompileError&) {
    return {};
  }
}

/// The room of what is called; end() where it has none.
Rooms::iterator room_of(const IRModule& program, const tir::CallTir& call, Rooms& rooms) {
  const auto kernel = program.find<tir::PrimFunc>(call.callee->name);
  const auto name = kernel ? kernel->attrs.get<std::string>(kOriginalName) : std::nullopt;
  return name ? rooms.find(*name) : rooms.end();
}

/// Bytes that are alive at each step; nothing where a size is not constant.
std::vector<int64_t> alive_bytes(const ModuleProblem& problem) {
  std::vector<int64_t> change(static_cast<size_t>(problem.steps) + 1);
  for (const SymbolicAllocation& buffer : problem.allocations) {
    const auto bytes = as_int(buffer.bytes);
    if (!bytes) return {};
    const int64_t padded = align_up(*bytes, buffer.alignment);
    change[static_cast<size_t>(buffer.lower)] += padded;
    change[static_cast<size_t>(buffer.upper)] -= padded;
  }
  for (size_t step = 1; step < change.size(); ++step) change[step] += change[step - 1];
  return change;
}

/// Whether the kernel makes integers of floats that it reads or computes: places of elements that
/// follow from sizes alone are none.
bool rounds_to_integers(const tir::PrimFunc& kernel) {
  bool rounds = false;
  walk<Cast>(kernel.body, [&](const Cast& cast) {
    if (rounds || !cast.dtype.is_integer() || !cast.value->dtype.is_float()) return;
    walk<tir::BufferLoad>(cast.value, [&](const tir::BufferLoad&) { rounds = true; });
  });
  return rounds;
}

/// Takes the room of kernels whose results another kernel rounds to integers. What lies halfway
/// between two integers, as sums of quantised numbers do, rounds to one or the other by an error in
/// the last place.
void keep_exact(const IRModule& module, const ModuleProblem& problem, Rooms& rooms) {
  std::map<std::string, bool> known;
  const auto rounds = [&](const std::string& name) {
    const auto [entry, is_new] = known.emplace(name, false);
    const auto kernel = is_new ? module.find<tir::PrimFunc>(name) : nullptr;
    if (kernel) entry->second = rounds_to_integers(*kernel);
    return entry->second;
  };
  // What a call does to the memory of its argument.
  const auto effects = [&](const tir::CallTir& call, const auto& visit) {
    const auto kernel = module.find<tir::PrimFunc>(call.callee->name);
    if (!kernel) return;
    const tir::Effects all = tir::effects_of(kernel->body);
    for (size_t i = 0; i < std::min(call.args.size(), kernel->buffers.size()); ++i)
      if (const auto* region = call.args[i].as<tir::BufferRegion>(); region && kernel->buffers[i])
        visit(region->buffer->data.get(), kernel->buffers[i], all);
  };
  std::unordered_set<const Node*> rounded;  // memory that a kernel reads and rounds
  for (const ModuleProblem::Call& call : problem.calls)
    if (rounds(call.call->callee->name))
      effects(*call.call, [&](const Node* memory, const auto& buffer, const tir::Effects& all) {
        if (all.reads_buffer(buffer)) rounded.insert(memory);
      });
  for (const ModuleProblem::Call& call : problem.calls) {
    const auto room = room_of(module, *call.call, rooms);
    if (room == rooms.end()) continue;
    effects(*call.call, [&](const Node* memory, const auto& buffer, const tir::Effects& all) {
      if (all.writes_buffer(buffer) && rounded.count(memory)) room->second = 0;
    });
  }
}

/// Limits rooms to what is left below the most that is alive anywhere.
void keep_peak(const IRModule& module, const ModuleProblem& problem, Rooms& rooms) {
  const std::vector<int64_t> alive = alive_bytes(problem);
  if (alive.empty()) return;
  const int64_t most = *std::max_element(alive.begin(), alive.end());
  for (const ModuleProblem::Call& call : problem.calls)
    if (const auto found = room_of(module, *call.call, rooms); found != rooms.end())
      found->second = std::min(found->second, most - alive[static_cast<size_t>(call.step)]);
}

}  // namespace

IRModule annotate_scratch_room(IRModule module) {
  if (tir::states_fast_forms(module)) return module;
  Rooms rooms;
  for (const auto& [name, function] : module.functions())
    if (const auto kernel = cast<tir::PrimFunc>(function);
        kernel && kernel->attrs.contains(tir::kLayoutFreeBuffers))
      rooms.emplace(name, rounds_to_integers(*kernel) ? 0 : std::numeric_limits<int64_t>::max());
  const IRModule program = rooms.empty() ? IRModule() : lowered(module, rooms);
  if (const auto main = program.find<tir::PrimFunc>("main")) {
    const ModuleProblem problem = extract_problem(*main);
    keep_exact(program, problem, rooms);
    keep_peak(program, problem, rooms);
  }
  for (const auto& [name, room] : rooms)
    if (room < std::numeric_limits<int64_t>::max())
      module.set(name, module.find<tir::PrimFunc>(name)->with_attr(tir::kScratchRoom, room));
  return module;
}

}  // namespace tenon::memory
