// SPDX-License-Identifier: Apache-2.0
// The commands of the command line: each adds itself, with its options, and sets what is to be done
// when it is chosen.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tenon/backend/llvm/compile.h"
#include "tenon/driver/c_program.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/input_meaning.h"
#include "tenon/driver/memory_use.h"
#include "tenon/driver/model_options.h"
#include "tenon/driver/offload.h"

namespace CLI {
class App;
}

namespace tenon {

/// What the chosen command does; returns the exit status. Throws CompileError, UsageError and
/// InternalError.
using Action = std::function<int()>;

void add_run_command(CLI::App& app, Action& action);
void add_compile_command(CLI::App& app, Action& action);
void add_show_command(CLI::App& app, Action& action);
void add_print_command(CLI::App& app, Action& action);
void add_check_command(CLI::App& app, Action& action);
void add_opt_command(CLI::App& app, Action& action);
void add_test_onnx_command(CLI::App& app, Action& action);
void add_plan_command(CLI::App& app, Action& action);
void add_bench_command(CLI::App& app, Action& action);
void add_generate_command(CLI::App& app, Action& action);
void add_explain_command(CLI::App& app, Action& action);
void add_report_command(CLI::App& app, Action& action);
void add_reduce_command(CLI::App& app, Action& action);
void add_bisect_command(CLI::App& app, Action& action);
void add_tune_command(CLI::App& app, Action& action);
void add_measure_command(CLI::App& app, Action& action);
/// `passes`, `operators`, `diagnostics`: the generated tables of docs/.
void add_table_commands(CLI::App& app, Action& action);

/// Options that commands share which compile for a machine.
struct TargetOptions {
  std::string target = "native";
  std::vector<std::string> required;  // of back ends: "90%", "dnnl=90%"
  bool unchecked = false;             // accesses at run time
  int threads = 0;                    // 0: as many as the process may use
  bool uses_cache = false;            // of programs compiled before (artefact_cache.h)
  COptions c;
  ModelOptions model;

  void add_to(CLI::App& app);
  /// \throws UsageError where an option is out of range or names a back end that is not there.
  void check() const;
  std::vector<Requirement> requirements() const;
  /// The form (option_table.h) of a command that runs or compiles `model`, where it has one.
  std::string_view form(const std::string& model = {}) const;
};

/// Options of every command that runs passes.
struct PassOptions {
  std::vector<std::string> print_after;
  bool validate = false, check_text = false, no_verify = false;

  void add_to(CLI::App& app);
  /// With printing to the standard output; `model` names the libraries that --validate calls.
  PipelineOptions pipeline(const ModelOptions& model) const;
  /// What the options --validate, --check-text and --no-verify came to, where one is given: a line
  /// on the error stream.
  void tell() const;

 private:
  std::shared_ptr<CheckCounts> counts_ = std::make_shared<CheckCounts>();
};

/// A model that was compiled in this process, and is not linked.
struct BuiltModel {
  IRModule prepared;  // what was compiled, with what the options add
  CompileRequest request;
  LoweredModule lowered;
  std::shared_ptr<const backend::Libraries> libraries;  // with what back ends generated
  std::optional<llvm_backend::CompiledProgram> code;
  std::optional<c_backend::Program> c;  // target c: instead
  double pass_seconds = 0, codegen_seconds = 0;
};
/// Compiles a module as it was loaded: adds what the options say, runs the passes and generates code.
/// \param name    of the program, and in warnings; a path is named by its stem.
/// \param adjust  sees the lowered module before code generation; may be empty.
BuiltModel build(IRModule loaded, const std::string& name, const TargetOptions& options,
                 const PipelineOptions& pipeline,
                 const std::function<void(LoweredModule&)>& adjust = {});
/// Ready to run in this process. \throws CompileError (kLinkFailed; kUnsupported where the target
/// is no machine like this one).
std::shared_ptr<runtime::Program> link(const BuiltModel& built);

/// A model as `run` and `bench` see it: compiled here, or loaded.
struct ReadyModel {
  std::map<std::string, InputMeaning> meanings;  // of inputs, where the model is no library
  std::shared_ptr<runtime::Program> program;
  std::string target;          // resolved
  double compile_seconds = 0;  // import, passes and code generation
  double import_seconds = 0, pass_seconds = 0, codegen_seconds = 0;
  double load_seconds = 0;  // linking, or loading the library
  bool is_cached = false;   // it was compiled before
  int64_t operators = 0, kernels = 0, library_calls = 0;
  double gflop = 0;
  std::vector<std::string> own_kernels;  // where those of --kernels run: a line for each
  Offload offload;
  MemoryUse memory;
};
/// `adjust`, where it is given, sees a module that is compiled here before code generation.
ReadyModel make_ready(const std::string& path, const TargetOptions& options,
                      const PipelineOptions& pipeline,
                      const std::function<void(LoweredModule&)>& adjust = {});

/// Who computes a model, as `run`, `compile` and `explain` print it.
struct AccountOptions {
  int64_t operators = 0, kernels = 0, library_calls = 0;
  const Offload& offload;
  std::vector<std::string> own_kernels = {};  // kernel_lines
  std::string_view more = {};                 // behind the first line
};
/// "operators  own code 6 of 6, in 2 kernels", or what every provider took; then a line for each
/// kernel of the user's.
std::string account_lines(const AccountOptions& account);

/// A model in the interpreter, after the passes that are asked for, where there are any.
struct InterpretedModel {
  std::unique_ptr<Executable> program;
  std::map<std::string, InputMeaning> meanings;  // of inputs
};
InterpretedModel make_interpreted(const std::string& path, const TargetOptions& options,
                                  const PipelineOptions& pipeline);

double median(std::vector<double> values);

}  // namespace tenon
