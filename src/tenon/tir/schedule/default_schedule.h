// SPDX-License-Identifier: Apache-2.0
// The analytic default: every kernel gets a schedule by its structure, never by its name.
#pragma once

#include "tenon/ir/pass.h"
#include "tenon/support/target.h"
#include "tenon/tir/schedule/plan_file.h"
#include "tenon/tir/schedule/schedule.h"

namespace tenon::tir {

/// Schedules each PrimFunc with a root block for the module's target (attrs["target"], as
/// parse_target() reads it; a generic one where there is none) and sets its attribute
/// "tir.is_scheduled". Functions that have it already are left alone. A kernel whose structure is
/// not recognised keeps its plain loops.
IRModule default_schedule(IRModule module, const Attrs& options = {});

/// The same, with plans that are taken instead of what the model would choose. A remark for each tells
/// whether a block took it ("matched", "unmatched"; reason "plan"). \throws CompileError (kBadPlan) at those that do
/// not fit their block. Those of a database are told of where they are taken ("matched"; reason "tuned"), or
/// do not fit their block ("refused"), which the model then plans.
IRModule schedule_by_plans(IRModule module, const GivenPlans& given);

/// The name of a kernel's structure, by which plans find it: 16 hex digits, of the function before it is
/// scheduled, without what it is called, and without what is known of it in one program only.
std::string plan_hash(const Ref<PrimFunc>& kernel);

/// Attribute of a PrimFunc: the numbers of its parameters that are constants of which a schedule may
/// make others before the program runs (AttachAttrLayoutFreeBuffers). TVM's name.
inline constexpr const char* kLayoutFreeBuffers = "layout_free_buffers";

/// Attribute of a PrimFunc: the program's constants together are larger than the second cache, so that
/// the kernel's own are no longer in it when it is called again (AttachAttrLayoutFreeBuffers).
inline constexpr const char* kFarConstants = "tir.far_constants";

/// Attribute of a PrimFunc: bytes of memory of its own that the program has to spare where it is called
/// (AnnotateScratchRoom). Forms that need more are not chosen.
inline constexpr const char* kScratchRoom = "tir.scratch_room";
/// Attribute of a PrimFunc: bytes that a form which was chosen by kScratchRoom may take to be faster
/// (GrowScratchRoom).
inline constexpr const char* kGrownRoom = "tir.grown_room";

/// Attributes of PrimFuncs that the default schedule is done with: all of it, or the stretches between
/// the calls of other functions. Without the first, LLVM's loop transformations stay on.
inline constexpr const char* kScheduled = "tir.is_scheduled";
inline constexpr const char* kScheduledBetweenCalls = "tir.is_scheduled_between_calls";

/// The function without an attribute, which need not be there.
Ref<PrimFunc> without_attr(const Ref<PrimFunc>& function, const std::string& name);

/// Attribute of a module: how sums of floats may be computed. "strict": term by term, in any order;
/// "fast": also by forms with fewer operations, of which docs/design/0016-winograd.md bounds the errors;
/// "auto", or no attribute: by such forms where the program's peak of memory stays.
inline constexpr const char* kFloatingPoint = "fp";
/// Whether the attribute says "fast" or "strict"; nothing where it leaves that open.
/// \throws CompileError (kBadAttribute) where it is something else
std::optional<bool> states_fast_forms(const IRModule& module);
/// Whether such forms may be used. Where that is left open they may, but for target C: their filters take
/// up to four times the memory, which programs for small devices do not have.
bool takes_fast_forms(const IRModule& module, const Target& target);

/// The schedule that the pass gives to one function, with its trace. `plans` gets what was chosen for
/// its blocks, or `given`. `is_fast`: the module's attribute kFloatingPoint.
Schedule schedule_by_default(const Ref<PrimFunc>& function, const Target& target,
                             std::vector<BlockPlan>* plans = nullptr,
                             const std::vector<const GivenPlan*>& given = {}, bool is_fast = false);

}  // namespace tenon::tir
