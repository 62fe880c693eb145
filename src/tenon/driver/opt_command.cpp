// SPDX-License-Identifier: Apache-2.0
// `tenon opt`: runs passes by name over a module.
#include <CLI/CLI.hpp>
#include <iostream>

#include "tenon/driver/commands.h"
#include "tenon/driver/console.h"
#include "tenon/driver/load.h"
#include "tenon/driver/option_table.h"
#include "tenon/driver/passes.h"
#include "tenon/driver/pipelines.h"
#include "tenon/driver/usage.h"
#include "tenon/driver/warnings.h"
#include "tenon/graph/backend.h"
#include "tenon/script/printer.h"

namespace tenon {

namespace {

struct OptOptions {
  std::string file, out, target;
  bool list = false, print_pipeline = false, timings = false;
  std::vector<std::string> rewrite;
  PassOptions run;
  ModelOptions places;
};

std::string_view form_of(const OptOptions& options) {
  const ModelOptions& places = options.places;
  if (options.list) return "list";
  if (options.print_pipeline) return "pipeline";
  const bool runs = !options.rewrite.empty() || !places.composite.empty() ||
                    !places.call_by_name.empty() || !places.chosen.passes.empty() ||
                    !places.chosen.file.empty();
  return runs ? "passes" : "read";
}

int opt(const OptOptions& options) {
  options.places.load();
  if (options.list) {
    for (const Pass& pass : all_passes()) fmt::print("{:<40} {}\n", pass.name, pass.summary);
    for (const auto& backend : graph::all_backends())
      for (const Pass& pass : backend->passes) fmt::print("{:<40} {}\n", pass.name, pass.summary);
    return 0;
  }
  if (options.print_pipeline) {
    std::cout << pipeline_text();
    return 0;
  }
  if (options.file.empty())
    throw UsageError("FILE is missing; or give --list-passes or --print-pipeline");
  const bool has_file = !options.places.chosen.file.empty();
  Pipeline pipeline;
  for (const std::string& file : options.rewrite) {
    pipeline.push_back(*find_pass("RewritePatterns"));
    pipeline.back().options = {{"file", file}};
  }
  for (const Pass& pass :
       has_file ? options.places.pipeline() : options.places.passes(ModelOptions::Then::kNothing))
    pipeline.push_back(pass);
  IRModule module = load_module(options.file, options.places.load_options());
  module = options.places.places() ? options.places.prepare(std::move(module))
                                   : options.places.with_fp(std::move(module));
  // A target that the file states stays, unless another is asked for.
  if (!options.target.empty() || !module.attrs.contains("target"))
    module =
        with_target(std::move(module), resolve(options.target.empty() ? "native" : options.target));
  const PipelineResult result =
      run_pipeline(std::move(module), pipeline, options.run.pipeline(options.places));
  warn_of_unmatched(result.remarks, options.file);
  options.run.tell();
  if (options.out.empty())
    std::cout << script::print(result.module);
  else
    write_module(result.module, options.out);
  if (options.timings)
    for (const PassTiming& timing : result.timings)
      fmt::print(stderr, "{:<40} {:>10}\n", timing.name, time_text(timing.seconds));
  return 0;
}

}  // namespace

void add_opt_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<OptOptions>();
  CLI::App* command = app.add_subcommand("opt", "run passes over a module");
  command->add_option("FILE", options->file, ".onnx, .py, .tvmscript or .relay");
  command->add_option("--rewrite", options->rewrite,
                      "a file of rewriters (docs/patterns.md), run before the passes; may be given "
                      "several times");
  command->add_option("-o,--out", options->out,
                      "file (default: the standard output); its constants go to FILE.constants");
  command->add_option("--target", options->target,
                      "for the passes that ask for one (default: the file's, else native)");
  command->add_flag("--list-passes", options->list, "the names of all passes, one a line");
  command->add_flag("--print-pipeline", options->print_pipeline,
                    "the standard pipeline, as --pipeline reads it");
  command->add_flag("--timings", options->timings, "how long each pass took");
  options->run.add_to(*command);
  options->places.add_to(*command);
  command->callback([options, command, &action] {
    action = [options, command] {
      check_options(*command, form_of(*options));
      return opt(*options);
    };
  });
}

}  // namespace tenon
