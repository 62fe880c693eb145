// SPDX-License-Identifier: Apache-2.0
// One random module, run in every way there is.
#pragma once

#include <string>
#include <vector>

#include "judge.h"

namespace tenon::fuzz {

/// A way to compile.
struct ProgramTarget {
  std::string name, text;
  int every = 1;  // of so many programs one is compiled for it
};
const std::vector<ProgramTarget>& program_targets();
constexpr size_t kLlvmTargets = 7;  // the first of them

struct ProgramCounts {
  int64_t compiled = 0;  // for a target
  struct Refusal {
    int64_t times = 0;
    uint64_t seed = 0;  // of the first
  };
  std::map<std::string, Refusal> refusals;  // diagnostics of modules that verify
};

/// The text of the module of `seed`, with what its run needs as comments.
std::string program_text(uint64_t seed);

/// Parses, verifies, prints and parses again, interprets; then lowers for each target, interprets
/// that, and runs its code on one thread and on several. \param only  a target's name, or "all";
/// empty: some in turn.
std::optional<Fault> run_program(const std::string& text, ProgramCounts* counts,
                                 const std::string& only = {});

/// The code and words of a refusal, alike for refusals that are alike.
std::string refusal_of(const CompileError& error);

/// Lowers a module whose entry is PrimFunc `kernel` for `target`, interprets what comes of it, and
/// runs its code. \param contents  of the kernel's buffers; \param expected  after the run.
/// \throws CompileError where the compiler refuses it.
std::optional<Fault> run_kernel(const IRModule& module, const Tensors& contents,
                                const Tensors& expected, double tolerance,
                                const ProgramTarget& target);

}  // namespace tenon::fuzz
