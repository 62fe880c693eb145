// SPDX-License-Identifier: Apache-2.0
// Measures one plan of one kernel beside the plan that the model of the machine chooses, or a part of a
// graph by a library beside own code: what a job of the tuner asks for.
#pragma once

#include <string>

#include "tenon/ir/module.h"
#include "tenon/ir/pass.h"
#include "tenon/tir/stmt.h"
#include "tenon/tune/job.h"

namespace tenon {

/// The number of a kernel's parameters that it reads alone, which stand before those that it writes; -1
/// where it has others (scalars, buffers that it reads and writes): nothing calls such a kernel on
/// tensors alone.
int64_t inputs_of(const tir::PrimFunc& kernel);

/// A program whose `main` calls the kernel once. Parameters of attribute tir::kLayoutFreeBuffers are
/// constants of values that `seed` decides, the others are inputs.
IRModule one_kernel_program(const IRModule& module, const std::string& kernel, uint64_t seed);

/// The standard pipeline from the pass that plans on: what is left for a kernel of a job.
Pipeline planned_pipeline();

/// Runs the job in a process of its own, within its limits: compiles the kernel by the default plan and by
/// the job's (the part as own code and by its library), compares what they compute with each other and,
/// where that is cheap, with the interpreter, and times them in turn. What the plan has wrong, and how the process ended where it
/// ended otherwise, is in the result.
/// \throws CompileError (kBadJob, kSyntax, ...) where the job is not one of this kernel.
tune::JobResult measure(const tune::Job& job, const std::string& path);

/// The result before anything is known.
tune::JobResult result_of(const tune::Job& job);

}  // namespace tenon
