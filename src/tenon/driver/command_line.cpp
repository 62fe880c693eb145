// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/command_line.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "tenon/driver/commands.h"
#include "tenon/driver/guarded.h"
#include "tenon/driver/help.h"
#include "tenon/driver/library_backends.h"
#include "tenon/driver/option_table.h"
#include "tenon/driver/show_command.h"

namespace tenon {

// The compiled program that a command with --help was given: "tenon run x.so --help".
static std::string compiled_program_of(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands())
    if (const CLI::Option* model = command->get_option_no_throw("MODEL"))
      for (const std::string& given : model->results())
        if (given.ends_with(".so")) return given;
  return "";
}

int command_line(int argc, char** argv) {
  CLI::App app("Tenon: compiles machine-learning models, with kernels and libraries, to fast code.",
               "tenon");
  app.require_subcommand(0, 1);  // none is told apart from an unknown one below
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", "tenon " TENON_VERSION "\nlibraries: " + library_backends());
  Action action;
  add_run_command(app, action);
  add_compile_command(app, action);
  add_show_command(app, action);
  add_print_command(app, action);
  add_check_command(app, action);
  add_opt_command(app, action);
  add_test_onnx_command(app, action);
  add_plan_command(app, action);
  add_bench_command(app, action);
  add_generate_command(app, action);
  add_explain_command(app, action);
  add_report_command(app, action);
  add_reduce_command(app, action);
  add_bisect_command(app, action);
  add_tune_command(app, action);
  add_measure_command(app, action);
  add_table_commands(app, action);
  arrange_options(app);
  arrange_commands(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // of --help and --version
    const int status = app.exit(success, std::cout, std::cerr);
    const std::string program = compiled_program_of(app);
    if (program.empty()) return status;
    return guarded([&] {
      std::cout << "\n" << program << ", as `tenon show` tells:\n\n" << interface_text(program);
      return 0;
    });
  } catch (const CLI::ParseError& error) {
    print_error("error: " + wrong_usage(app, error));
    return kWrongUsage;
  }
  if (!action) {
    print_error("error: no command is given; `tenon --help` lists them");
    return kWrongUsage;
  }
  return guarded([&] {
    register_library_backends();
    return action();
  });
}

}  // namespace tenon
