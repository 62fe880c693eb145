// SPDX-License-Identifier: Apache-2.0
// `tenon explain`: reports what the passes decided, and why.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "tenon/driver/commands.h"
#include "tenon/driver/console.h"
#include "tenon/driver/load.h"
#include "tenon/driver/option_table.h"
#include "tenon/driver/passes.h"
#include "tenon/driver/pipelines.h"
#include "tenon/driver/report_command.h"
#include "tenon/driver/story.h"
#include "tenon/driver/usage.h"
#include "tenon/driver/warnings.h"
#include "tenon/graph/kernels.h"
#include "tenon/support/nearest.h"

namespace tenon {

namespace {

struct ExplainOptions {
  std::string model, node, pass, out;
  std::string target = "native";
  bool json = false;
  ModelOptions places;
};

std::string number_text(double number) {
  return number == static_cast<double>(static_cast<int64_t>(number))
             ? std::to_string(static_cast<int64_t>(number))
             : fmt::format("{:.4g}", number);
}

std::string line_of(const Remark& remark) {
  std::string line = fmt::format("{}: {} {}", remark.pass, remark.subject, remark.verdict);
  if (!remark.reason.empty()) line += fmt::format(" ({})", remark.reason);
  for (const auto& [name, number] : remark.numbers)
    line += fmt::format(" {}={}", name, number_text(number));
  if (!remark.detail.empty()) line += ": " + remark.detail;
  if (remark.origin) line += "  [" + remark.origin.name() + "]";
  return line;
}

// A pass that --pass names: one that there is, or one that had something to say.
void check_pass(const std::string& name, const std::vector<Remark>& remarks) {
  if (name.empty()) return;
  std::vector<std::string> names;
  for (const Pass& pass : all_passes()) names.push_back(pass.name);
  for (const Remark& remark : remarks) names.push_back(remark.pass);
  names.emplace_back(kPlacementRemark);
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw UsageError("--pass {}: there is no such pass{}", name, did_you_mean(name, names));
}

// The same page as `tenon report` writes, by its defaults.
int explain_as_page(const ExplainOptions& options) {
  TargetOptions target;
  target.target = options.target;
  target.model = options.places;
  write_page(options.out, report_of(options.model, target, {}));
  return 0;
}

int explain(const ExplainOptions& options) {
  if (!options.out.empty()) return explain_as_page(options);
  Progress progress;
  CompileRequest request = options.places.request(options.model, options.target);
  request.pipeline.progress = [&](const std::string& what) {
    progress.show(options.model + ": " + what);
  };
  IRModule module = options.places.read(options.model);
  const IRModule prepared = module;
  std::optional<Storyteller> teller;
  if (!options.node.empty()) {
    teller.emplace(options.node, module);
    request.pipeline.after = [&](const Pass& pass, const IRModule& after) {
      teller->after(pass, after);
    };
  }
  const LoweredModule lowered = lower(std::move(module), request);
  const PipelineResult& result = lowered.pipeline;
  progress.clear();
  warn_of_unmatched(result.remarks, options.model);
  options.places.warn_of_unused(prepared, result, nullptr);
  options.places.write_plans(result.remarks, request.target);
  if (teller) {
    const Story story = teller->finish(result.remarks, request.target).at(0);
    if (options.json)
      print_json(json_of(story));
    else
      std::cout << text_of(story);
    return 0;
  }
  check_pass(options.pass, result.remarks);
  auto json = nlohmann::ordered_json::array();
  int64_t shown = 0;
  std::set<std::string> said;
  for (const Remark& remark : result.remarks) {
    if (!options.pass.empty() && remark.pass != options.pass) continue;
    // LegalizeOps asks for kernels again.
    if (remark.pass == graph::kSelectKernels && !said.insert(line_of(remark)).second) continue;
    ++shown;
    if (options.json)
      json.push_back(json_of(remark));
    else
      fmt::print("{}\n", line_of(remark));
  }
  if (options.json)
    print_json(json);
  else
    fmt::print("{} of {} remarks\n{}", shown, result.remarks.size(),
               account_lines({lowered.operators, lowered.kernels, lowered.library_calls,
                              lowered.offload, kernel_lines(result.remarks)}));
  return 0;
}

}  // namespace

void add_explain_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app.add_subcommand("explain", "what the passes decided, and why");
  command->add_option("MODEL", options->model, ".onnx, .py, .tvmscript or .relay")->required();
  command->add_option("NODE", options->node,
                      "the story of this node of the model, from the file to machine code");
  command->add_option("--pass", options->pass, "only remarks of this pass");
  command->add_option(
      "-o,--out", options->out,
      "report.html: all of it as a page, as `tenon report` writes it, and nothing else");
  command->add_option("--target", options->target, "what to compile for")->capture_default_str();
  command->add_flag("--json", options->json, "the remarks as JSON");
  options->places.add_to(*command);
  options->places.add_plan_to(*command);
  options->places.add_write_plan_to(*command);
  command->callback([options, command, &action] {
    action = [options, command] {
      check_options(*command, !options->node.empty()  ? "node"
                              : !options->out.empty() ? "page"
                                                      : "remarks");
      return explain(*options);
    };
  });
}

}  // namespace tenon
