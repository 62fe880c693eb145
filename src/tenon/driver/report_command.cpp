// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/report_command.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tenon/driver/c_program.h"
#include "tenon/driver/console.h"
#include "tenon/driver/entry.h"
#include "tenon/driver/load.h"
#include "tenon/driver/option_table.h"
#include "tenon/driver/report/page.h"
#include "tenon/driver/usage.h"
#include "tenon/driver/warnings.h"
#include "tenon/support/temporary_files.h"
#include "tenon/support/usage_codes.h"

namespace tenon {

namespace {

struct ReportCommand {
  std::string model, out;
  std::vector<std::string> inputs, dims;
  TargetOptions target;
  int repeat = ReportOptions().repeat;
  bool json = false;
};

int report(const ReportCommand& command) {
  if (command.out.empty() && !command.json)
    throw UsageError("neither -o nor --json is given; expected -o report.html");
  if (command.repeat < 0) throw UsageError("--repeat {} is below 0", command.repeat);
  command.target.check();
  ReportOptions options;
  options.repeat = command.repeat;
  options.threads = command.target.threads;
  options.inputs.dims = parse_dims(command.dims);
  options.inputs.files = parse_input_files(command.inputs);
  const Report report = report_of(command.model, command.target, std::move(options));
  if (!command.out.empty() && command.json)
    write_file(command.out, page_of(report));
  else if (!command.out.empty())
    write_page(command.out, report);
  if (command.json) print_json(json_of(report));
  return 0;
}

}  // namespace

Report report_of(const std::string& path, const TargetOptions& target, ReportOptions options) {
  Progress progress;
  CompileRequest request = target.model.request(path, target.target);
  request.pipeline.verify = false;  // the times are those of compiling alone
  request.pipeline.progress = [&](const std::string& what) { progress.show(path + ": " + what); };
  request.required = target.requirements();
  request.unchecked = target.unchecked;
  const auto libraries = target.model.libraries();
  const IRModule module = target.model.read(path);
  options.model = path;
  options.compiler = "Tenon " TENON_VERSION;
  options.link = target.model.link;
  options.c = target.c;
  options.lowered = [&](const LoweredModule& lowered) {
    progress.clear();
    warn_of_unmatched(lowered.pipeline.remarks, path);
    target.model.warn_of_unused(module, lowered.pipeline, nullptr);
    target.model.write_plans(lowered.pipeline.remarks, request.target);
  };
  return make_report(with_pools(module, target.c), request, libraries, options);
}

void write_page(const std::string& path, const Report& report) {
  const std::string page = page_of(report);
  write_file(path, page);
  fmt::print("{:<40} {}\n", path, bytes_text(static_cast<int64_t>(page.size())));
}

void add_report_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ReportCommand>();
  CLI::App* command =
      app.add_subcommand("report", "all about a compilation and a run as one page of HTML");
  command->add_option("MODEL", options->model, ".onnx, .py, .tvmscript or .relay")->required();
  command->add_option("-o,--out", options->out, "report.html: the page");
  command->add_flag("--json", options->json, "what the page shows, as JSON");
  command->add_option("-i,--input", options->inputs,
                      "NAME=FILE: a .npy or ONNX .pb file; inputs not given are random");
  command->add_option(
      "--dim", options->dims,
      fmt::format("NAME=N: a symbolic dimension of random inputs (default {})", kDefaultDim));
  command
      ->add_option("--repeat", options->repeat,
                   "timed runs, after one that is not; 0: it is not run")
      ->capture_default_str();
  options->target.add_to(*command);
  options->target.model.add_plan_to(*command);
  command->callback([options, command, &action] {
    action = [options, command] {
      check_options(*command, options->target.form());
      return report(*options);
    };
  });
}

}  // namespace tenon
