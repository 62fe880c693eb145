// SPDX-License-Identifier: Apache-2.0
// `tenon print` and `tenon check`: print modules as text, and verify them.
#include <CLI/CLI.hpp>
#include <iostream>

#include "tenon/backend/plugin/plugin.h"
#include "tenon/driver/check_kernels.h"
#include "tenon/driver/commands.h"
#include "tenon/driver/console.h"
#include "tenon/driver/load.h"
#include "tenon/driver/option_table.h"
#include "tenon/driver/pipelines.h"
#include "tenon/driver/usage.h"
#include "tenon/driver/warnings.h"
#include "tenon/graph/backend.h"
#include "tenon/script/printer.h"

namespace tenon {

namespace {

struct PrintCommandOptions {
  std::string model, after, out, target = "native";
  ModelOptions places;
};

int print(const PrintCommandOptions& options) {
  const PipelineChoice& chosen = options.places.chosen;
  IRModule module = load_module(options.model, options.places.load_options());
  Pipeline pipeline;
  if (!options.after.empty()) {
    pipeline = options.places.passes();
    const std::optional<Pipeline> whole = options.places.whole();
    for (Pass& pass : for_form(whole ? *whole : standard_pipeline(), module))
      pipeline.push_back(std::move(pass));
    pipeline = pipeline_until(options.after, std::move(pipeline));
  } else if (!chosen.passes.empty() || !chosen.file.empty()) {
    pipeline = chosen.file.empty() ? options.places.passes(ModelOptions::Then::kNothing)
                                   : options.places.pipeline();
  }
  if (!pipeline.empty() || options.places.places())
    module = options.places.prepare(std::move(module));
  if (!pipeline.empty()) {
    Progress progress;
    PipelineOptions run;
    run.progress = [&](const std::string& what) { progress.show(options.model + ": " + what); };
    PipelineResult result =
        run_pipeline(with_target(std::move(module), resolve(options.target)), pipeline, run);
    progress.clear();
    module = std::move(result.module);
    warn_of_unmatched(result.remarks, options.model);
  }
  if (options.out.empty())
    std::cout << script::print(module);
  else
    write_module(module, options.out);
  return 0;
}

int check_files(const std::vector<std::string>& files, const PluginOptions& plugins) {
  int status = 0;
  if (files.empty() && plugins.files.empty()) throw UsageError("FILE is missing; or give --plugin");
  for (const std::string& file : plugins.files) {
    const std::string name = plugin::load_plugin(file, {plugins.in_process, plugins.seconds});
    const auto backend = graph::find_backend(name);
    fmt::print("{}: ok, back end `{}` {} with {} patterns and {} passes\n", file, name,
               backend->version, backend->patterns.size(), backend->passes.size());
  }
  for (const std::string& file : files) {
    try {
      load_module(file);
      fmt::print("{}: ok\n", file);
    } catch (const CompileError& error) {
      std::fflush(stdout);
      std::cerr << error.what() << "\n";
      status = 1;
    }
  }
  return status;
}

}  // namespace

void add_print_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<PrintCommandOptions>();
  CLI::App* command = app.add_subcommand("print", "print a module as TVMScript");
  command->add_option("MODEL", options->model, ".onnx, .py, .tvmscript or .relay")->required();
  command->add_option("--after", options->after,
                      "after this pass of the pipeline (its last place)");
  command->add_option("-o,--out", options->out,
                      "file: write it there, its constants beside it as FILE.constants");
  command->add_option("--target", options->target, "for the passes that ask for one")
      ->capture_default_str();
  options->places.add_to(*command);
  command->callback([options, command, &action] {
    action = [options, command] {
      const PipelineChoice& chosen = options->places.chosen;
      const bool runs = !options->after.empty() || !chosen.passes.empty() || !chosen.file.empty();
      check_options(*command, runs ? "passes" : "read");
      return print(*options);
    };
  });
}

void add_check_command(CLI::App& app, Action& action) {
  struct Options {
    std::vector<std::string> files;
    PluginOptions plugins;
    CheckKernels kernels;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "check", "parse and verify files and plugins; run kernels of your own against operators");
  command->add_option("FILE", options->files, ".onnx, .py or .tvmscript");
  CheckKernels& kernels = options->kernels;
  command
      ->add_option("--kernels", kernels.kernels.files,
                   "TVMScript file: run each kernel on random shapes and compare with its "
                   "operator; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--kernel", kernels.kernels.choices,
                   "OPERATOR=FILE:FUNCTION: the same of one PrimFunc")
      ->allow_extra_args(false);
  command->add_option("--trials", kernels.trials, "shapes for each kernel")->capture_default_str();
  command->add_option("--size", kernels.sizes,
                      "NAME=N: a symbolic dimension of kernels; may be repeated");
  command->add_option("--tolerance", kernels.tolerance,
                      "T: |a - b| <= T (1 + max |b|), for kernels that approximate (default: what "
                      "rounding explains)");
  command->add_option("--seed", kernels.seed, "of shapes and inputs")->capture_default_str();
  command->add_option("--target", kernels.target, "that kernels are compiled for")
      ->capture_default_str();
  options->plugins.add_to(*command);
  command->callback([options, command, &action] {
    action = [options, command] {
      const CheckKernels& kernels = options->kernels;
      check_options(*command, kernels.kernels.empty() ? "files" : "kernels");
      if (kernels.kernels.empty()) return check_files(options->files, options->plugins);
      const bool others = !options->files.empty() || !options->plugins.empty();
      const int status = others ? check_files(options->files, options->plugins) : 0;
      return std::max(status, check_kernels(kernels));
    };
  });
}

}  // namespace tenon
