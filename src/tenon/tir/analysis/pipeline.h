// SPDX-License-Identifier: Apache-2.0
// Reads the annotations of software pipelines, and checks that the statements allow one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tenon/tir/analysis/call_accesses.h"

namespace tenon::tir {

/// On a loop: the stage of each statement of its body, as TVM writes it.
inline constexpr const char* kPipelineStage = "software_pipeline_stage";
/// On a loop, not needed: the order of the statements. Of stages that run at the same time it says
/// nothing; it must be a permutation.
inline constexpr const char* kPipelineOrder = "software_pipeline_order";
/// On a loop, not needed: the least number of versions of each buffer between stages.
inline constexpr const char* kPipelineVersions = "software_pipeline_versions";

/// The body of such a loop.
struct PipelineBody {
  std::vector<Ref<Buffer>> allocated;  // inside, for one iteration
  std::vector<Stmt> stmts;             // without allocations and bindings
};
PipelineBody pipeline_body(const For& loop);

/// A buffer of the pipeline that lives for one iteration only.
struct PipelineBuffer {
  Ref<Buffer> buffer;
  int64_t first = 0, last = 0;  // stages that use it
  int64_t versions = 1;         // 1: only one stage does
};

struct PipelinePlan {
  PipelineBody body;
  std::vector<int64_t> stage;  // of each statement
  int64_t stages = 0;
  std::vector<PipelineBuffer> buffers;
};

/// How the planner learns what statements do.
struct PipelineOracle {
  std::function<std::vector<ParamEffect>(const Stmt&, const std::vector<Ref<Buffer>>&)> effects;
  std::function<Accesses(const Stmt&)> accesses;
};
PipelineOracle pipeline_oracle(CallEffects& effects);

/// What a loop marked with kPipelineStage asks for. `outer`: buffers allocated around the loop that
/// nothing else uses. \throws CompileError (kScheduleIllegal) where it is malformed, or where
/// running the stages of different iterations at the same time would change what is computed.
PipelinePlan plan_pipeline(const For& loop, const std::vector<Ref<Buffer>>& outer,
                           const PipelineOracle& oracle);

}  // namespace tenon::tir
