// SPDX-License-Identifier: Apache-2.0
#include "tenon/memory/scratch_room.h"

#include <algorithm>
#include <limits>
#include <map>

#include "tenon/graph/transforms.h"
#include "tenon/memory/plan_module.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/schedule/default_schedule.h"

namespace tenon::memory {

namespace {

/// The program as it is lowered before kernels are scheduled; nothing where it cannot be, which is
/// told when it has to be.
Ref<tir::PrimFunc> lowered_main(const IRModule& module) {
  const RemarkScope told_later;
  try {
    const IRModule lowered = graph::lower_graph(graph::use_inplace_calls(module));
    return lowered.find<tir::PrimFunc>("main");
  } catch (const CompileError&) {
    return {};
  }
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

}  // namespace

IRModule annotate_scratch_room(IRModule module) {
  if (module.attrs.contains(tir::kFloatingPoint)) return module;
  std::map<std::string, int64_t> rooms;
  for (const auto& [name, function] : module.functions())
    if (const auto kernel = cast<tir::PrimFunc>(function);
        kernel && kernel->attrs.contains(tir::kLayoutFreeBuffers))
      rooms.emplace(name, std::numeric_limits<int64_t>::max());
  const Ref<tir::PrimFunc> main = rooms.empty() ? Ref<tir::PrimFunc>() : lowered_main(module);
  if (!main) return module;
  const ModuleProblem problem = extract_problem(*main);
  const std::vector<int64_t> alive = alive_bytes(problem);
  if (alive.empty()) return module;
  const int64_t most = *std::max_element(alive.begin(), alive.end());
  for (const ModuleProblem::Call& call : problem.calls)
    if (const auto found = rooms.find(call.call->callee->name); found != rooms.end())
      found->second = std::min(found->second, most - alive[static_cast<size_t>(call.step)]);
  for (const auto& [name, room] : rooms)
    module.set(name, module.find<tir::PrimFunc>(name)->with_attr(tir::kScratchRoom, room));
  return module;
}

}  // namespace tenon::memory
