// `tenon explain`: what the passes decided, and why.
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "tenon/driver/commands.h"
#include "tenon/driver/console.h"
#include "tenon/driver/load.h"
#include "tenon/driver/pipelines.h"
#include "tenon/graph/kernels.h"

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

int explain(const ExplainOptions& options) {
  if (!options.out.empty())
    throw CompileError(kUnsupported, {}, "-o {}: the report as a page is not written yet",
                       options.out);
  Progress progress;
  PipelineOptions run;
  run.progress = [&](const std::string& what) { progress.show(options.model + ": " + what); };
  const PipelineResult result = run_pipeline(
      with_target(options.places.prepare(load_module(options.model, options.places.load_options())),
                  resolve(options.target)),
      pipeline_until(standard_pipeline().back().name, options.places.passes()), run);
  progress.clear();
  auto json = nlohmann::ordered_json::array();
  int64_t shown = 0;
  std::set<std::string> said;
  for (const Remark& remark : result.remarks) {
    const auto names = [&](const std::string& text) {
      return text.find(options.node) != std::string::npos;
    };
    if (!names(remark.subject) && !(remark.origin && names(remark.origin.str()))) continue;
    if (!options.pass.empty() && remark.pass != options.pass) continue;
    // LegalizeOps asks for kernels again.
    if (remark.pass == graph::kSelectKernels && !said.insert(line_of(remark)).second) continue;
    ++shown;
    if (!options.json) {
      fmt::print("{}\n", line_of(remark));
      continue;
    }
    nlohmann::ordered_json numbers = nlohmann::ordered_json::object();
    for (const auto& [name, number] : remark.numbers) numbers[name] = number;
    json.push_back({{"pass", remark.pass},
                    {"subject", remark.subject},
                    {"verdict", remark.verdict},
                    {"reason", remark.reason},
                    {"numbers", numbers},
                    {"detail", remark.detail},
                    {"origin", remark.origin ? remark.origin.str() : ""}});
  }
  if (options.json)
    std::cout << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  else
    fmt::print("{} of {} remarks\n", shown, result.remarks.size());
  return 0;
}

}  // namespace

void add_explain_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app.add_subcommand("explain", "what the passes decided, and why");
  command->add_option("MODEL", options->model, ".onnx, .py or .tvmscript")->required();
  command->add_option("NODE", options->node,
                      "only remarks whose subject or origin contains this name");
  command->add_option("--pass", options->pass, "only remarks of this pass");
  command->add_option("-o,--out", options->out, "report.html: the report as a page");
  command->add_option("--target", options->target, "what to compile for")->capture_default_str();
  command->add_flag("--json", options->json, "the remarks as JSON");
  options->places.add_to(*command);
  command->callback([options, &action] { action = [options] { return explain(*options); }; });
}

}  // namespace tenon
