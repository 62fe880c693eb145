// SPDX-License-Identifier: Apache-2.0
// `tenon reduce`: the smallest module, network or text that still shows a fault.
#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tenon/backend/c_compiler.h"
#include "tenon/driver/commands.h"
#include "tenon/driver/console.h"
#include "tenon/driver/guarded.h"
#include "tenon/driver/load.h"
#include "tenon/driver/option_table.h"
#include "tenon/driver/probe.h"
#include "tenon/driver/reduction.h"
#include "tenon/driver/usage.h"
#include "tenon/support/kernel_codes.h"

namespace tenon {

namespace {

struct ReduceOptions {
  std::string model, out, fails, message;
  bool wrong = false, crashes = false, json = false;
  double time_limit = 600, run_limit = 60;
  std::vector<std::string> rest;  // options of `tenon run`
};

// The command whose failure is looked for, as a function of the model's file.
FaultCommand command_of(const ReduceOptions& options) {
  const int chosen = static_cast<int>(!options.fails.empty()) + static_cast<int>(options.wrong) +
                     static_cast<int>(options.crashes);
  if (chosen != 1) throw UsageError("reduce: expected one of --fails CMD, --wrong and --crashes");
  FaultCommand command;
  command.message = options.message;
  command.limits.time_limit = options.run_limit;
  if (!options.fails.empty()) {
    if (!options.rest.empty())
      throw UsageError("reduce: {} is an option of `tenon run`; with --fails write it into CMD",
                       options.rest[0]);
    command.line = options.fails;
    return command;
  }
  command.arguments = own_command({"run", "{}"});
  if (options.wrong) command.arguments.push_back("--compare");
  command.arguments.insert(command.arguments.end(), options.rest.begin(), options.rest.end());
  return command;
}

// Whether the outcome is of the kind that was asked for.
void check_outcome(const ReduceOptions& options, const Outcome& outcome,
                   const FaultCommand& command) {
  const std::string shown = command.shown(options.model);
  if (!outcome.failed())
    throw CompileError(kBadInput, {}, "nothing to reduce: `{}` succeeds", shown);
  if (options.wrong && outcome.key.find(kWrongResult.id) == std::string::npos)
    throw CompileError(kBadInput, {},
                       "`{}` ends with {}, not with a wrong result; expected error[{}]\n{}", shown,
                       outcome.key, kWrongResult.id, outcome.output);
  const bool crashed = outcome.kind != Outcome::Kind::kFailure || outcome.status == kInternal;
  if (options.crashes && !crashed)
    throw CompileError(kBadInput, {},
                       "`{}` ends with {}; expected a signal, an internal error or the time "
                       "limit; --fails takes any failure\n{}",
                       shown, outcome.key, outcome.output);
  if (!options.message.empty() && outcome.output.find(options.message) == std::string::npos)
    throw CompileError(kBadInput, {}, "`{}` does not say `{}`\n{}", shown, options.message,
                       outcome.output);
}

int reduce(const ReduceOptions& options) {
  const FaultCommand command = command_of(options);
  const Outcome outcome = command.run(options.model);
  check_outcome(options, outcome, command);

  Progress progress;
  const auto start = std::chrono::steady_clock::now();
  ReductionRequest request;
  request.model = options.model;
  request.out = options.out;
  request.command = command;
  request.outcome = outcome;
  request.out_of_time = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() >
           options.time_limit;
  };
  request.progress = [&](const std::string& text) { progress.show(options.model + ": " + text); };
  const ReducedFile reduced = reduce_file(request);
  progress.clear();
  const bool stopped = request.out_of_time();
  if (options.json) {
    std::cout << nlohmann::ordered_json{{"model", options.model}, {"file", reduced.path},
                                        {"outcome", outcome.key}, {"before", reduced.before},
                                        {"after", reduced.after}, {"runs", reduced.runs},
                                        {"stopped", stopped},     {"command", reduced.command}}
                     .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
              << "\n";
    return 0;
  }
  fmt::print("outcome    {}\n", outcome.key);
  fmt::print("reduced    {} to {}, in {} runs{}\n", reduced.before, reduced.after, reduced.runs,
             stopped ? " (stopped by --time-limit)" : "");
  fmt::print("written    {}\n", reduced.path);
  fmt::print("again      {}\n", reduced.command);
  return 0;
}

}  // namespace

void add_reduce_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ReduceOptions>();
  CLI::App* command = app.add_subcommand("reduce", "the smallest model that still shows a fault");
  command->add_option("MODEL", options->model, ".onnx, .py, .tvmscript or .relay")->required();
  command->add_option("--fails", options->fails,
                      "CMD: a line for the shell that fails, {} in it the model's file (default: "
                      "at its end)");
  command->add_flag("--wrong", options->wrong,
                    "`tenon run` computes something else than the interpreter");
  command->add_flag("--crashes", options->crashes,
                    "`tenon run` ends with a signal, an internal error or the time limit");
  command->add_option("--message", options->message, "what the failing command also says");
  command->add_option("-o,--out", options->out,
                      "where the result goes (default: MODEL's name with `.reduced` in it)");
  command->add_option("--time-limit", options->time_limit, "seconds in all")->capture_default_str();
  command->add_option("--run-limit", options->run_limit, "seconds for one run of the command")
      ->capture_default_str();
  command->add_flag("--json", options->json, "the result as JSON");
  command->allow_extras();
  command->footer("Other options are those of `tenon run`: --target, --libs, --passes, --dim, ...");
  command->callback([options, command, &action] {
    options->rest = command->remaining();
    action = [options, command] {
      check_options(*command, "model");
      return reduce(*options);
    };
  });
}

}  // namespace tenon
