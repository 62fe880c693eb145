// SPDX-License-Identifier: Apache-2.0
// Which parallel loops have iterations that touch one element, one of them writing it: proved free
// of that, proved to have them, or neither.
//
// Accesses are followed through blocks, views and calls. Memory that a block around the loop
// allocates and only the loop uses is each iteration's own, as
// PlanAndUpdateBufferAllocationLocation makes it: there an iteration must not read what it has not
// written. Dimensions are at least 0; where the fault is shown, at least 1, in loops that run, the
// parallel one twice at least.
#pragma once

#include <functional>
#include <string>

#include "tenon/support/diagnostics.h"
#include "tenon/tir/call_effects.h"

namespace tenon::tir {

/// Two accesses of a parallel loop that are not proved apart in different iterations.
struct Race {
  struct Access {
    bool writes = false;
    Origin origin;        // in the function
    Origin inner;         // in the callee that makes it
    std::string callee;   // empty where there is no call
    std::string step_of;  // the block whose reduction it is a step of, and the axis
    std::string axis;
  };
  Ref<For> loop;
  Ref<Buffer> buffer;
  Access first, second;  // in the order in which one iteration after the other makes them
  bool fails = false;    // proved to meet
  // Where it fails: the element, and the values of the loop's variable.
  std::string element, first_iteration, second_iteration;
  // Where it is open: "index-from-memory", "unknown-memory", "private-memory", "not-proved".
  std::string_view reason;
  // Memory that is each iteration's own, of which an iteration reads what it did not write: the
  // block that it belongs to.
  bool is_private = false;
  std::string owner;
};

/// Calls `see` for each loop and buffer of `function` that is not proved free of races.
void find_races(const PrimFunc& function, const IRModule& module, CallEffects& effects,
                const std::function<void(const Race&)>& see);

/// Whether `function` itself has a parallel loop of more than one iteration.
bool has_parallel_loop(const PrimFunc& function);

/// The pass: refuses races that are proved (kRace), and records a remark, "unproved", for each loop
/// and buffer where that is open. The interpreter looks at these when it runs them. Any form.
IRModule verify_parallel_loops(IRModule module);

/// "accesses of `Y` in different iterations of parallel loop `i`".
std::string subject_of(const Race& race);
/// Reports a race that fails.
void report(const Race& race, Diagnostics& diagnostics);
/// What is said of memory that belongs to a block around a parallel loop.
std::string owner_hint(const std::string& buffer, const std::string& owner,
                       const std::string& loop);

}  // namespace tenon::tir
