// SPDX-License-Identifier: Apache-2.0
// Runs pipelines over modules and makes programs of them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/backend/libraries.h"
#include "tenon/backend/llvm/compile.h"
#include "tenon/driver/memory_use.h"
#include "tenon/driver/offload.h"
#include "tenon/driver/program_plan.h"
#include "tenon/graph/backend.h"
#include "tenon/graph/user_placement.h"
#include "tenon/ir/pass.h"
#include "tenon/runtime/program.h"
#include "tenon/support/remarks.h"
#include "tenon/support/target.h"

namespace tenon::tir {
struct GivenPlans;
}

namespace tenon {

/// What was looked at around passes.
struct CheckCounts {
  int64_t passes = 0, verified = 0, validated = 0, texts = 0;
};

struct PipelineOptions {
  /// Verify after every pass.
  bool verify = true;
  /// Run the interpreter before and after every pass and compare (validate.h).
  bool validate = false;
  /// Where it calls foreign functions: the libraries of a module (empty: its own artefacts).
  std::function<std::shared_ptr<const backend::Libraries>(const IRModule&)> libraries = {};
  /// Print, parse back and compare after every pass.
  bool check_text = false;
  /// Called with the module after every pass of these names ("all": of every pass).
  std::vector<std::string> print_after = {};
  std::function<void(const Pass&, const IRModule&)> print = {};
  /// Called before and after every pass, with the module that it gets and the one that it gave.
  std::function<void(const Pass&, const IRModule&)> before = {}, after = {};
  /// Called before every pass.
  std::function<void(const std::string& what)> progress = {};
  /// Counts on, where it is there.
  std::shared_ptr<CheckCounts> counts = {};
};

struct PipelineResult {
  IRModule module;
  std::vector<PassTiming> timings;
  std::vector<Remark> remarks;
};

/// The pass that chooses plans, or takes those that are given.
inline constexpr std::string_view kTakesPlans = "DefaultSchedule";

/// Runs passes as `options` say. \throws CompileError; InternalError where a pass gives a module
/// that is not well formed, or (validate) one that computes something else.
PipelineResult run_pipeline(IRModule module, const Pipeline& pipeline,
                            const PipelineOptions& options = {});

/// The module with its target written into it. \throws CompileError (kBadOption).
IRModule with_target(IRModule module, const Target& target);
/// "native", "llvm -mcpu=...", "c". \throws CompileError (kBadOption).
Target resolve(const std::string& target);

struct CompileRequest {
  std::string name = "model";
  Target target;
  PipelineOptions pipeline = {};
  Pipeline first = {};                     // passes in front of the pipeline
  std::optional<Pipeline> whole = {};      // instead of the standard pipeline
  bool unchecked = false;                  // accesses are not checked at run time
  std::vector<Requirement> required = {};  // of what back ends take
  /// Libraries that are asked, while compiling, for the scratch that their functions need; null:
  /// the program asks.
  std::shared_ptr<const backend::Libraries> libraries = {};
  std::shared_ptr<const tir::GivenPlans> plans = {};  // of blocks; null: none are given
  graph::UserPlacement::Providers measured = {};  // parts of the graph (UserPlacement::measured)
  std::vector<graph::Backend> backends = {};      // that take parts of the graph, in this order
};

/// A module lowered as far as code generation needs it, and what is known about it.
struct LoweredModule {
  PipelineResult pipeline;
  int64_t operators = 0;      // calls of graph operators in `main` as it came
  int64_t kernels = 0;        // calls of kernels in `main` as it became
  int64_t library_calls = 0;  // and of library functions
  Offload offload;            // what back ends took, where any was asked for
  MemoryUse memory;           // what its pools hold
  ProgramPlan plan;           // its calls, and where its memory lies
  double gflop = 0;  // 10^9 operations of contractions in one run; 0 where sizes are symbolic
  /// Of the module as it came: of its text, which names constants by their content.
  std::string module_hash;
  std::string manifest;  // JSON
};
LoweredModule lower(IRModule module, const CompileRequest& request);

/// What `lower` runs: the module with its entry and its target, and the passes for its form.
struct PipelineInput {
  IRModule module;
  Pipeline passes;
};
/// The passes of `pipeline` for a module in this form: one of PrimFuncs alone enters where the
/// graph has been lowered.
Pipeline for_form(Pipeline pipeline, const IRModule& module);
PipelineInput pipeline_input(IRModule module, const CompileRequest& request);

/// A remark for each call of a function that has no signature: nothing of it is checked.
std::vector<Remark> unchecked_calls(const IRModule& module);

/// The libraries of `files`, then what back ends generated: the module's `external_mods`.
/// \throws CompileError (kFileError, kLinkFailed, kBadExternalModule; kUntrustedCode at what came
/// with a file where `trust` is not Trust::kAnything).
std::shared_ptr<const backend::Libraries> open_libraries(
    const IRModule& module, std::vector<std::string> files,
    backend::Trust trust = backend::Trust::kNamed);
inline std::shared_ptr<const backend::Libraries> open_libraries(const LoweredModule& lowered,
                                                                std::vector<std::string> files) {
  return open_libraries(lowered.pipeline.module, std::move(files));
}
/// `opened`, the libraries of `files`, where the module has no artefacts.
std::shared_ptr<const backend::Libraries> with_external_modules(
    const IRModule& module, std::shared_ptr<const backend::Libraries> opened,
    const std::vector<std::string>& files);

/// Machine code of a lowered module. `libraries`: where its packed functions may be.
llvm_backend::CompiledProgram generate(const LoweredModule& lowered, const CompileRequest& request,
                                       const backend::Libraries* libraries = nullptr);

/// \throws CompileError (kLinkFailed) at the calls of those that are not registered.
void check_registered(const std::vector<backend::PackedFunction>& functions);

/// Ready to run in this process, with the libraries that it calls. \throws CompileError
/// (kLinkFailed).
std::shared_ptr<runtime::Program> link(const llvm_backend::CompiledProgram& program,
                                       std::shared_ptr<const backend::Libraries> libraries = {});

/// Of a shared library. \throws CompileError (kLinkFailed).
std::shared_ptr<runtime::Program> load_program(const std::string& path);

}  // namespace tenon
