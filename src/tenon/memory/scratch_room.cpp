// SPDX-License-Identifier: Apache-2.0
#include "tenon/memory/scratch_room.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_set>

#include "tenon/graph/transforms.h"
#include "tenon/memory/plan_module.h"
#include "tenon/support/parallel.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/effects.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tenon/tir/schedule/in_place.h"

namespace tenon::memory {

namespace {

/// What a kernel was called before some of its calls got a variant that computes in place.
constexpr const char* kOriginalName = "original_name";

using Rooms = std::map<std::string, int64_t>;

Target target_of(const IRModule& module) {
  const auto text = module.attrs.get<std::string>("target");
  return parse_target(text ? *text : "llvm");
}

/// The program as it is lowered before kernels are scheduled, with the kernels that may compute in place;
/// without `main` where it cannot be, which is told when it has to be.
IRModule lowered(IRModule module, const Rooms& rooms,
                 const graph::MayShareMemory& may_share = tir::may_share_memory) {
  const RemarkScope told_later;
  for (const auto& [name, room] : rooms)
    module.set(name, module.find<tir::PrimFunc>(name)->with_attr(kOriginalName, name));
  try {
    return graph::lower_graph(graph::use_inplace_calls(module, may_share));
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

using Kernels = std::map<std::string, Ref<tir::PrimFunc>>;

/// The forms that a kernel's blocks take where there are `room` bytes for each.
std::vector<std::pair<Ref<tir::Block>, tir::WinogradChoice>> forms_of(
    const tir::PrimFunc& kernel, const Target& target,
    int64_t room = std::numeric_limits<int64_t>::max()) {
  std::vector<std::pair<Ref<tir::Block>, tir::WinogradChoice>> out;
  walk<tir::Block>(kernel.body, [&](const tir::Block& block) {
    if (const auto choice = tir::choose_winograd(block, target, room))
      out.emplace_back(ref_to(&block), *choice);
  });
  return out;
}

/// Whether kernels compute in place as their forms of several blocks of tiles do: what the sums are made of is
/// read by later blocks.
graph::MayShareMemory share_by_forms(const Target& target) {
  return [target](const tir::PrimFunc& kernel, size_t input, size_t output) {
    if (!tir::may_share_memory(kernel, input, output)) return false;
    std::set<const Node*> read;  // by sums, or by what computes what they read
    for (const auto& [block, form] : forms_of(kernel, target))
      read.merge(tir::effects_of(block->body).reads);
    std::vector<tir::Effects> blocks;
    walk<tir::Block>(kernel.body, [&](const tir::Block& block) {
      if (!block.iter_vars.empty()) blocks.push_back(tir::effects_of(block.body));
    });
    for (size_t known = 0; known != read.size();) {
      known = read.size();
      for (const tir::Effects& block : blocks)
        if (std::any_of(block.writes.begin(), block.writes.end(),
                        [&](const Node* memory) { return read.count(memory) != 0; }))
          read.insert(block.reads.begin(), block.reads.end());
    }
    return read.count(kernel.buffers[input].get()) == 0;
  };
}

/// Bytes that are alive at calls, at most, by the name of what they call, and anywhere.
struct Alive {
  std::map<std::string, int64_t> at;
  /// At calls in place, as if their kernels did not compute in place.
  std::map<std::string, int64_t> at_apart;
  int64_t most = 0;
};

int64_t bytes_of(const std::vector<Ref<tir::Buffer>>& buffers) {
  int64_t sum = 0;
  for (const Ref<tir::Buffer>& buffer : buffers)
    if (buffer)
      sum += align_up(as_int(tir::element_count(buffer->shape)).value_or(0) * buffer->dtype.bytes(),
                      std::max<int64_t>(64, buffer->alignment));
  return sum;
}

/// Nothing where a size is not constant.
std::optional<Alive> alive_at_calls(const IRModule& module, const IRModule& program, Rooms& rooms) {
  const auto main = program.find<tir::PrimFunc>("main");
  if (!main) return std::nullopt;
  const ModuleProblem problem = extract_problem(*main);
  const std::vector<int64_t> bytes = alive_bytes(problem);
  if (bytes.empty()) return std::nullopt;
  Alive out;
  out.most = *std::max_element(bytes.begin(), bytes.end());
  const auto note = [](std::map<std::string, int64_t>& at, const std::string& name, int64_t alive) {
    int64_t& most = at[name];
    most = std::max(most, alive);
  };
  for (const ModuleProblem::Call& call : problem.calls) {
    const auto found = room_of(program, *call.call, rooms);
    if (found == rooms.end()) continue;
    const int64_t alive = bytes[static_cast<size_t>(call.step)];
    note(out.at, found->first, alive);
    const auto called = program.find<tir::PrimFunc>(call.call->callee->name);
    const auto original = module.find<tir::PrimFunc>(found->first);
    if (called->params.size() != original->params.size())
      note(out.at_apart, found->first,
           alive + bytes_of(original->buffers) - bytes_of(called->buffers));
  }
  return out;
}

/// These kernels as they are scheduled with direct sums.
Kernels scheduled_by_sums(const IRModule& module, const std::vector<std::string>& names,
                          const Target& target) {
  std::vector<Ref<tir::PrimFunc>> made(names.size());
  for_each_in_parallel(names.size(), [&](size_t i) {
    made[i] = tir::schedule_by_default(module.find<tir::PrimFunc>(names[i]), target).func();
  });
  Kernels out;
  for (size_t i = 0; i < names.size(); ++i) out.emplace(names[i], made[i]);
  return out;
}

/// Limits rooms to what is left below the most that is alive anywhere if all sums are direct. At the calls
/// of a kernel that may compute in place, what is alive if it takes its form counts. Whether a schedule of
/// direct sums computes in place shows in its statements, as pieces of rows do not: kernels are scheduled
/// where that could raise the peak.
void keep_peak(const IRModule& module, const IRModule& program, Rooms& rooms) {
  const Target target = target_of(module);
  std::optional<Alive> alive = alive_at_calls(module, program, rooms);
  if (!alive) return;
  const bool takes_forms = tir::takes_fast_forms(module, target);
  std::vector<std::string> names;
  for (const auto& [name, apart] : alive->at_apart)
    if (takes_forms && apart > alive->most) names.push_back(name);
  std::optional<Alive> direct = alive;
  if (!names.empty()) {
    IRModule changed = module;
    for (const auto& [name, kernel] : scheduled_by_sums(module, names, target))
      changed.set(name, kernel);
    direct = alive_at_calls(module, lowered(std::move(changed), rooms), rooms);
  }
  const auto by_forms =
      takes_forms ? alive_at_calls(module, lowered(module, rooms, share_by_forms(target)), rooms)
                  : alive;
  if (!direct || !by_forms) return;
  for (const auto& [name, at_forms] : by_forms->at) {
    int64_t at = at_forms;
    if (!takes_forms || forms_of(*module.find<tir::PrimFunc>(name), target).empty()) {
      const auto apart = alive->at_apart.find(name);
      const bool is_scheduled = std::find(names.begin(), names.end(), name) != names.end();
      if (is_scheduled)
        at = direct->at.at(name);
      else if (apart != alive->at_apart.end())
        at = apart->second;
    }
    int64_t& room = rooms[name];
    room = std::clamp<int64_t>(direct->most - at, 0, room);
  }
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
    keep_exact(program, extract_problem(*main), rooms);
    keep_peak(module, program, rooms);
  }
  for (const auto& [name, room] : rooms)
    if (room < std::numeric_limits<int64_t>::max())
      module.set(name, module.find<tir::PrimFunc>(name)->with_attr(tir::kScratchRoom, room));
  return module;
}

IRModule grow_scratch_room(IRModule module) {
  const Target target = target_of(module);
  if (tir::states_fast_forms(module) || !tir::takes_fast_forms(module, target)) return module;
  struct Taken {
    int64_t bytes = 0;
    bool in_one_block = true;
  };
  Rooms rooms;
  std::map<std::string, Taken> taken;
  for (const auto& [name, function] : module.functions())
    if (const auto kernel = cast<tir::PrimFunc>(function);
        kernel && kernel->attrs.contains(tir::kLayoutFreeBuffers)) {
      const int64_t room = kernel->attrs.get<int64_t>(tir::kScratchRoom)
                               .value_or(std::numeric_limits<int64_t>::max());
      for (const auto& [block, choice] : forms_of(*kernel, target, room)) {
        rooms[name] = room;
        taken[name] = {tir::winograd_bytes(*block, choice),
                       tir::winograd_blocks(*block, choice) == 1};
      }
    }
  if (rooms.empty()) return module;
  const auto alive = alive_at_calls(module, lowered(module, rooms), rooms);
  const auto by_forms =
      alive_at_calls(module, lowered(module, rooms, share_by_forms(target)), rooms);
  if (!alive || !by_forms) return module;
  // The peak that there is anyway, at least: one block of tiles may write over the windows that it has read.
  int64_t peak = alive->most;
  for (const auto& [name, at_forms] : by_forms->at) {
    const Taken& form = taken.at(name);
    peak = std::max(peak, (form.in_one_block ? alive->at.at(name) : at_forms) + form.bytes);
  }
  for (const auto& [name, at_forms] : by_forms->at)
    module.set(name, module.find<tir::PrimFunc>(name)->with_attr(
                         tir::kGrownRoom, std::max<int64_t>(peak - at_forms, 0)));
  return module;
}

}  // namespace tenon::memory
