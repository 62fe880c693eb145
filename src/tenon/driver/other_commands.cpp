// `tenon plan`, and commands that are to come: these say so, instead of being unknown words.
#include <CLI/CLI.hpp>
#include <iostream>

#include "tenon/driver/commands.h"
#include "tenon/driver/option_table.h"
#include "tenon/driver/plan_command.h"
#include "tenon/driver/usage.h"

namespace tenon {

void add_plan_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<PlanCommand>();
  CLI::App* command =
      app.add_subcommand("plan", "the memory planner alone, on a CSV of MiniMalloc's form");
  command->add_option("PROBLEM", options->problem, "CSV: id,lower,upper,size")->required();
  command->add_option("--capacity", options->capacity, "bytes: fail where more is needed");
  command->add_option("--time-limit", options->time_limit, "seconds of a usual processor");
  command->add_option("-o,--out", options->out, "CSV: the problem with offsets");
  command->add_flag_callback(
      "--json", [options] { options->format = PlanCommand::Format::kJson; }, "the plan as JSON");
  command->callback([options, command, &action] {
    action = [options, command] {
      check_options(*command, "csv");
      return run_plan_command(*options, std::cout, std::cerr);
    };
  });
}

void add_absent_commands(CLI::App& app, Action& action) {
  for (const char* name : {"tune"}) {
    CLI::App* command = app.add_subcommand(name, "(not there yet)");
    command->allow_extras();
    command->callback([name, &action] {
      action = [name]() -> int {
        throw UsageError("`tenon {}` is not there yet in this version", name);
      };
    });
  }
}

}  // namespace tenon
