// SPDX-License-Identifier: Apache-2.0
// The standard pipelines: from an imported model to lowered PrimFuncs, as lists with reasons.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tenon/ir/pass.h"

namespace tenon {

struct PipelineStep {
  std::string_view pass;
  std::string_view reason;  // why it stands here
};

/// The stages of a compilation, in order.
struct Stage {
  std::string_view name;  // "clean up"
  std::span<const PipelineStep> steps;
};
std::span<const Stage> stages();

/// All stages, for a module with a graph function `main` and module attribute `target`.
Pipeline standard_pipeline();

/// The standard pipeline as a text that reads back as the same passes: one a line under its stage,
/// with its reason as a comment.
std::string pipeline_text();

/// `pipeline` up to (and including) the last occurrence of a pass.
/// \throws UsageError where it has none of this name.
Pipeline pipeline_until(std::string_view pass, Pipeline pipeline = standard_pipeline());

}  // namespace tenon
