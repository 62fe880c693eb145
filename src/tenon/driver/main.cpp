// The command line. Exit status: 0 success, 1 the input is at fault, 2 wrong usage, 70 a fault of
// Tenon.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <new>

#include "tenon/driver/commands.h"
#include "tenon/driver/library_backends.h"
#include "tenon/driver/usage.h"

namespace tenon {

static constexpr int kInputAtFault = 1, kWrongUsage = 2, kInternal = 70;

static void print_error(std::string_view text) {
  std::fflush(stdout);
  std::cout.flush();
  std::cerr << text << (text.ends_with('\n') ? "" : "\n");
}

static int guarded(const Action& action) {
  try {
    const int status = action();
    std::cout.flush();
    std::fflush(stdout);
    if (std::cout.fail() || std::ferror(stdout)) {
      print_error("error: cannot write to the standard output");
      return kInputAtFault;
    }
    return status;
  } catch (const UsageError& error) {
    print_error(error.what());
    return kWrongUsage;
  } catch (const CompileError& error) {
    print_error(error.what());
    return kInputAtFault;
  } catch (const std::bad_alloc&) {
    print_error(fmt::format("error[{}]: out of memory", kLimitExceeded.id));
    return kInputAtFault;
  } catch (const std::exception& error) {
    print_error(fmt::format("internal error: {}\nThis is a fault of Tenon, not of the input.",
                            error.what()));
    return kInternal;
  }
}

static int run(int argc, char** argv) {
  CLI::App app("Tenon: compiles machine-learning models, with kernels and libraries, to fast code.",
               "tenon");
  app.require_subcommand(0, 1);  // none is told apart from an unknown one below
  app.set_version_flag("--version", "tenon " TENON_VERSION "\nlibraries: " + library_backends());
  Action action;
  add_run_command(app, action);
  add_compile_command(app, action);
  add_print_command(app, action);
  add_check_command(app, action);
  add_opt_command(app, action);
  add_test_onnx_command(app, action);
  add_plan_command(app, action);
  add_bench_command(app, action);
  add_explain_command(app, action);
  add_table_commands(app, action);
  add_absent_commands(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version arrive here too, with status 0.
    return app.exit(error, std::cout, std::cerr) == 0 ? 0 : kWrongUsage;
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

int main(int argc, char** argv) { return tenon::run(argc, argv); }
