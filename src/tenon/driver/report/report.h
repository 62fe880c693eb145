// SPDX-License-Identifier: Apache-2.0
// All that is known of a compilation, as data: what became of each node, who computes it, where its
// memory lies, how long it takes. The page (page.h) and the JSON are renderings of it.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tenon/backend/libraries.h"
#include "tenon/driver/c_program.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/program_plan.h"
#include "tenon/driver/signature.h"
#include "tenon/driver/story.h"
#include "tenon/driver/tensors.h"

namespace tenon {

struct Report {
  struct Step {
    std::string name;
    double seconds = 0;
  };
  /// An operator of the model, as the origin of a call names it.
  struct Operator {
    std::string node, type;  // "conv1", "Conv"; `file:line` of a script, which has no type
  };
  /// A call that the program makes: one box of the graph. As many as plan.calls, in their order.
  struct Call {
    std::string
        provider;  // a back end, "kernels", "extern", or the library of a symbol; empty: own
    std::vector<Operator> operators;
    std::optional<double> flop;          // of its contractions; nothing where a size is symbolic
    std::optional<double> milliseconds;  // of one run of the program; nothing: not measured
    int64_t runs = 0;                    // of the call, in one run of the program
  };
  /// A value that one call writes and another reads.
  struct Edge {
    static constexpr int64_t kOutside = -1;
    int64_t from = kOutside, to = kOutside;  // indices of calls; kOutside: the program's caller
    size_t memory = 0;                       // index into plan.memories
  };
  /// A function that calls run, from TensorIR to machine code. Texts are empty where there is none.
  struct Kernel {
    std::string function, symbol;
    std::vector<size_t> calls;
    std::string tensor_ir, scheduled, assembly, c;
  };
  /// What is around the kernels of a program in C: its header, and the function that is called.
  struct CText {
    std::string name, text;
  };
  struct Run {
    int threads = 0;
    size_t runs = 0;
    double fastest = 0, median = 0;  // seconds; with the marks that measure kernels
  };

  std::string model, target, compiler;
  Signature signature;
  std::map<std::string, int64_t> dims;  // an example: values of the symbolic dimensions
  int64_t operators = 0;
  double gflop = 0;  // of the model; 0 where sizes are symbolic
  int64_t constant_bytes = 0;
  std::string account;  // who computes it: account_lines
  std::vector<Step> steps;
  ProgramPlan plan;
  MemoryUse memory;
  std::vector<Call> calls;
  std::vector<Edge> edges;
  std::vector<Kernel> kernels;  // in the order of their first call
  std::vector<CText> c;         // empty where the target is a machine
  std::vector<Story> stories;
  std::vector<Remark> remarks;
  std::optional<Run> run;
  std::string not_run;  // why not
};

struct ReportOptions {
  std::string model;     // as the page names it
  std::string compiler;  // "tenon 0.1"
  int repeat = 10;       // timed runs, after one that is not; 0: it is not run
  int threads = 0;       // 0: as many as the process may use
  InputOptions inputs = {};
  COptions c = {};
  std::vector<std::string> link = {};  // files of the libraries that the program calls
  /// Before the program is run: warnings, plans that are written.
  std::function<void(const LoweredModule&)> lowered = {};
};

/// Compiles a module, runs it with random inputs where they are not given, and reports. The module
/// and the request are those of `lower`; `libraries` those that the program calls.
/// \throws CompileError what compiling and running find.
Report make_report(const IRModule& module, CompileRequest request,
                   std::shared_ptr<const backend::Libraries> libraries,
                   const ReportOptions& options);

/// All of it. Calls that edges come from and lead to are numbers, null outside of the program.
nlohmann::ordered_json json_of(const Report& report);

}  // namespace tenon
