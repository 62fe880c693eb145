// SPDX-License-Identifier: Apache-2.0
// `tenon bisect`: the first pass after which a program computes something else or that does not
// end well, the functions that it spoilt, and the smallest module that shows it.
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
#include "tenon/driver/pass_list.h"
#include "tenon/driver/reduction.h"
#include "tenon/driver/usage.h"
#include "tenon/driver/validate.h"
#include "tenon/driver/verify.h"
#include "tenon/driver/warnings.h"
#include "tenon/support/validation_codes.h"

namespace tenon {

namespace {

struct BisectOptions {
  std::string model, out;
  TargetOptions target;
  double time_limit = 600, run_limit = 300;
  bool json = false;
};

struct Finding {
  std::string pass;  // as text with its options; empty: code generation
  size_t number = 0, passes = 0;
  std::vector<std::string> functions;  // that the pass spoilt, where that can be told
  Outcome outcome;
  ReducedFile reduced;

  // Whether a pass was found wrong, and not only one whose result nothing can be compared with.
  bool is_fault() const { return outcome.key.find(kNotCompared.id) == std::string::npos; }
};

class Bisection {
 public:
  explicit Bisection(const BisectOptions& options) : options_(options) {
    limits_.time_limit = options.run_limit;
    const ModelOptions& model = options.target.model;
    input_ = pipeline_input(with_pools(model.read(options.model), options.target.c),
                            model.request(options.model, options.target.target));
  }

  std::optional<Finding> run() {
    Finding finding;
    finding.passes = input_.passes.size();
    if (!find_pass(finding) && !find_code_generation(finding)) return std::nullopt;
    progress_.clear();
    return finding;
  }

 private:
  // Runs all passes in a process of its own, which says how far it is.
  bool find_pass(Finding& finding) {
    progress_.show(options_.model + ": each pass against the interpreter");
    finding.outcome = probe_call(
        [&] {
          PipelineOptions options;
          options.validate = true;
          options.libraries = options_.target.model.libraries_of();
          size_t begun = 0;
          options.progress = [&](const std::string&) {
            fmt::print("@{}\n", ++begun);
            std::fflush(stdout);
          };
          run_pipeline(input_.module, input_.passes, options);
          return 0;
        },
        limits_);
    if (!finding.outcome.failed()) return false;
    if (!finding.is_fault()) {
      take_progress(finding.outcome.output);
      return true;
    }
    finding.number = take_progress(finding.outcome.output);
    check(finding.number > 0 && finding.number <= input_.passes.size(),
          "bisect: the passes failed before the first one began");
    // Those in front of it have just ended well.
    const auto at = input_.passes.begin() + static_cast<std::ptrdiff_t>(finding.number - 1);
    const Pass& pass = *at;
    const PipelineResult ran =
        run_pipeline(input_.module, {input_.passes.begin(), at}, {.verify = false});
    warn_of_unmatched(ran.remarks, options_.model);
    const IRModule& before = ran.module;
    finding.pass = pass_text(pass);
    if (finding.outcome.output.find("changed") != std::string::npos)
      finding.functions = spoilt_by(pass, before);
    FaultCommand command;
    command.arguments = own_command({"opt", "{}", "--passes", finding.pass, "--validate"});
    for (const std::string& file : options_.target.model.plugins.files)
      command.arguments.insert(command.arguments.end(), {"--plugin", file});
    add_libraries(command);
    reduce(before, command, finding);
    return true;
  }

  // The number of the pass that began last; its lines go.
  static size_t take_progress(std::string& output) {
    size_t number = 0;
    std::string text;
    for (size_t at = 0; at < output.size();) {
      const size_t end = std::min(output.find('\n', at), output.size() - 1) + 1;
      if (output[at] == '@')
        number = std::strtoul(output.c_str() + at + 1, nullptr, 10);
      else
        text += output.substr(at, end - at);
      at = end;
    }
    output = std::move(text);
    return number;
  }

  // The functions each of which alone, taken from after the pass, changes what the program
  // computes.
  std::vector<std::string> spoilt_by(const Pass& pass, const IRModule& before) const {
    const LibrariesOf libraries = options_.target.model.libraries_of();
    std::vector<std::string> spoilt;
    const IRModule after = run_pipeline(before, {pass}, {.verify = false}).module;
    for (const auto& [name, function] : after.functions()) {
      const BaseFunc old = before.find(name);
      if (!old || structural_equal(old, function)) continue;
      IRModule mixed = before;
      mixed.set(name, function);
      try {
        verify_module(mixed);
        Validator(libraries).compare(pass, before, mixed);
      } catch (const InternalError&) {
        spoilt.push_back(name);
      } catch (const CompileError&) {
        // It does not fit the others as they were: only the pass as a whole can be judged.
      }
    }
    return spoilt;
  }

  // Every pass keeps the meaning: what is left is the code made of the lowered module.
  bool find_code_generation(Finding& finding) {
    progress_.show(options_.model + ": generated code against the interpreter");
    const std::string lowered = folder_.file("lowered.tvmscript");
    const std::string none = out_path(".pipeline");
    const PipelineResult ran = run_pipeline(input_.module, input_.passes, {.verify = false});
    warn_of_unmatched(ran.remarks, options_.model);
    write_module(ran.module, lowered);
    FaultCommand command;
    command.limits = limits_;
    command.arguments = own_command(
        {"run", "{}", "--compare", "--pipeline", none, "--target", options_.target.target});
    add_libraries(command);
    write_file(none, "# no passes: the module is lowered already\n");
    finding.outcome = command.run(lowered);
    if (!finding.outcome.failed()) {
      std::filesystem::remove(none);
      return false;
    }
    reduce(load_module(lowered), command, finding);
    return true;
  }

  void add_libraries(FaultCommand& command) const {
    for (const std::string& file : options_.target.model.link)
      command.arguments.insert(command.arguments.end(), {"--link", file});
    if (options_.target.model.allow_code) command.arguments.emplace_back("--allow-code");
  }

  std::string out_path(const std::string& extension) const {
    if (!options_.out.empty())
      return std::filesystem::path(options_.out).replace_extension(extension).string();
    return std::filesystem::path(options_.model).stem().string() + ".bisected" + extension;
  }

  void reduce(const IRModule& module, const FaultCommand& command, Finding& finding) {
    const std::string file = folder_.file("fault.tvmscript");
    write_module(module, file);
    ReductionRequest request;
    request.model = file;
    request.out = out_path(".tvmscript");
    request.command = command;
    request.command.limits = limits_;
    request.outcome = request.command.run(file);
    const auto start = std::chrono::steady_clock::now();
    request.out_of_time = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() >
             options_.time_limit;
    };
    request.progress = [&](const std::string& text) {
      progress_.show(options_.model + ": " + text);
    };
    if (request.outcome.failed()) {
      finding.reduced = reduce_file(request);
      return;
    }
    // The text of the module does not show it: what is not in the text plays a part.
    finding.reduced.path = request.out;
    write_module(module, request.out);
    finding.reduced.before = finding.reduced.after = size_text(module);
  }

  const BisectOptions& options_;
  ProbeOptions limits_;
  PipelineInput input_;
  backend::TemporaryFolder folder_;
  Progress progress_;
};

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

int bisect(const BisectOptions& options) {
  options.target.check();
  const std::optional<Finding> found = Bisection(options).run();
  if (!found) {
    if (options.json)
      std::cout << nlohmann::ordered_json{{"model", options.model}, {"outcome", "success"}}.dump(2)
                << "\n";
    else
      fmt::print("{}: every pass and the generated code compute what the interpreter computes\n",
                 options.model);
    return 0;
  }
  if (!found->is_fault()) {
    if (options.json)
      std::cout << nlohmann::ordered_json{{"model", options.model}, {"outcome", found->outcome.key}}
                       .dump(2)
                << "\n";
    fmt::print(stderr, "{}", found->outcome.output);
    return kInputAtFault;
  }
  const std::string stage = found->pass.empty() ? "code generation" : found->pass;
  if (options.json) {
    nlohmann::ordered_json json = {{"model", options.model},
                                   {"outcome", found->outcome.key},
                                   {"pass", stage},
                                   {"number", found->number},
                                   {"passes", found->passes},
                                   {"functions", found->functions},
                                   {"file", found->reduced.path},
                                   {"before", found->reduced.before},
                                   {"after", found->reduced.after},
                                   {"command", found->reduced.command}};
    std::cout << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return kInputAtFault;
  }
  fmt::print("outcome    {}\n", found->outcome.key);
  if (found->pass.empty())
    fmt::print("pass       none of {}: code generation\n", found->passes);
  else
    fmt::print("pass       {}, number {} of {}\n", stage, found->number, found->passes);
  if (!found->functions.empty()) fmt::print("function   {}\n", joined(found->functions));
  fmt::print("reduced    {} to {}\n", found->reduced.before, found->reduced.after);
  fmt::print("written    {}\n", found->reduced.path);
  if (found->reduced.command.empty())
    fmt::print("again      not by the module's text alone\n");
  else
    fmt::print("again      {}\n", found->reduced.command);
  fmt::print("{}", found->outcome.output);
  return kInputAtFault;
}

}  // namespace

void add_bisect_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<BisectOptions>();
  CLI::App* command = app.add_subcommand(
      "bisect", "the pass, the function and the smallest module that change a result");
  command->add_option("MODEL", options->model, ".onnx, .py, .tvmscript or .relay")->required();
  command->add_option("-o,--out", options->out,
                      "where the module goes (default: MODEL's name with `.bisected` in it)");
  command->add_option("--time-limit", options->time_limit, "seconds for reducing the module")
      ->capture_default_str();
  command->add_option("--run-limit", options->run_limit, "seconds for one run")
      ->capture_default_str();
  command->add_flag("--json", options->json, "the result as JSON");
  options->target.add_to(*command);
  command->callback([options, command, &action] {
    action = [options, command] {
      check_options(*command, options->target.form());
      return bisect(*options);
    };
  });
}

}  // namespace tenon
