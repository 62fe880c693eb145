// SPDX-License-Identifier: Apache-2.0
// Words the report of iterations of a parallel loop that are not proved apart.
#include "tenon/support/kernel_codes.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/analysis/parallel_races.h"

namespace tenon::tir {

std::string subject_of(const Race& race) {
  const auto name = [](bool writes) { return writes ? "writes" : "reads"; };
  if (race.is_private)
    return fmt::format("what iterations of parallel loop `{}` read of `{}` before they write it",
                       race.loop->loop_var->name, race.buffer->name);
  if (race.first.writes && race.second.writes)
    return fmt::format("writes of `{}` in different iterations of parallel loop `{}`",
                       race.buffer->name, race.loop->loop_var->name);
  return fmt::format("{} and {} of `{}` in different iterations of parallel loop `{}`",
                     name(race.first.writes), name(race.second.writes), race.buffer->name,
                     race.loop->loop_var->name);
}

std::string owner_hint(const std::string& buffer, const std::string& owner,
                       const std::string& loop) {
  return fmt::format(
      "`T.alloc_buffer` belongs to the block around it: `{}` is block `{}`'s, one for all "
      "iterations of `{}`; to make it the iteration's own, allocate it in a `with T.block(...)` "
      "inside of the loop, and write it there before it is read",
      buffer, owner, loop);
}

static void add_access(Diagnostic& diagnostic, const Race::Access& access,
                       const std::string& iteration, const std::string& loop, bool is_note) {
  const char* verb = access.writes ? "writes" : "reads";
  if (is_note)
    diagnostic.notes.push_back(
        {access.origin, fmt::format("iteration {} of `{}` {} it here", iteration, loop, verb)});
  if (!access.callee.empty() && access.inner)
    diagnostic.notes.push_back({access.inner, fmt::format("`{}` {} it here", access.callee, verb)});
}

void report(const Race& race, Diagnostics& diagnostics) {
  const std::string& loop = race.loop->loop_var->name;
  const Race::Access &a = race.first, &b = race.second;
  if (race.is_private) {
    Diagnostic& diagnostic = diagnostics.error(
        kRace, b.origin,
        "`{}` is read by iterations of parallel loop `{}` that have not written it",
        race.buffer->name, loop);
    diagnostic.notes.push_back(
        {race.buffer->origin, owner_hint(race.buffer->name, race.owner, loop)});
    diagnostic.notes.push_back({race.loop->origin, "the loop is here"});
    return;
  }
  const std::string what =
      a.writes && b.writes
          ? fmt::format("written by iterations {} and {} of loop `{}`", race.first_iteration,
                        race.second_iteration, loop)
          : fmt::format("{} by iteration {} and {} by iteration {} of loop `{}`",
                        a.writes ? "written" : "read", race.first_iteration,
                        b.writes ? "written" : "read", race.second_iteration, loop);
  Diagnostic& diagnostic =
      diagnostics.error(kRace, b.origin, "element ({}) of `{}` is {}, which may run at once",
                        race.element, race.buffer->name, what);
  add_access(diagnostic, b, race.second_iteration, loop, false);
  const bool same =
      a.writes == b.writes && a.origin.str() == b.origin.str() && a.inner.str() == b.inner.str();
  if (!same) add_access(diagnostic, a, race.first_iteration, loop, true);
  diagnostic.notes.push_back({race.loop->origin, "the parallel loop is here"});
  for (const Race::Access* access : {&a, &b})
    if (!access->axis.empty()) {
      diagnostic.notes.push_back(
          {access->origin,
           fmt::format("axis `{}` of block `{}` is a reduction, whose steps depend on one another: "
                       "make the loop serial, or give each iteration a sum of its own (rfactor)",
                       access->axis, access->step_of)});
      break;
    }
}

IRModule verify_parallel_loops(IRModule module) {
  Diagnostics diagnostics;
  CallEffects effects(module);
  for (const auto& [name, function] : module.functions()) {
    const auto* prim = function.as<PrimFunc>();
    if (!prim) continue;
    find_races(*prim, module, effects, [&, &subject = name](const Race& race) {
      if (race.fails) return report(race, diagnostics);
      record({.pass = "VerifyParallelLoops",
              .subject = subject,
              .verdict = "unproved",
              .reason = std::string(race.reason),
              .numbers = {},
              .detail = subject_of(race),
              .origin = race.second.origin});
    });
  }
  diagnostics.throw_if_any();
  return module;
}

}  // namespace tenon::tir
