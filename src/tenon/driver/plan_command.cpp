// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/plan_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tenon/driver/commands.h"
#include "tenon/driver/option_table.h"
#include "tenon/memory/csv.h"
#include "tenon/memory/pools.h"
#include "tenon/memory/report.h"
#include "tenon/support/diagnostics.h"
#include "tenon/support/temporary_files.h"

namespace tenon {

static constexpr double kMaxSeconds = 1e6;

static void write_solution(const std::string& path, const memory::Problem& problem,
                           const memory::Plan& plan) {
  std::ostringstream text;
  memory::write_csv(problem, plan, text);
  write_file(path, text.view());
}

static std::vector<memory::Pool> pools_of(const PlanCommand& command) {
  std::vector<memory::Pool> pools = memory::writable_pools(command.pools);
  if (command.capacity)
    throw CompileError(kBadOption, {}, "--capacity {}: the pools have their own",
                       *command.capacity);
  if (pools.size() > 1 && !command.out.empty())
    throw CompileError(kBadOption, {},
                       "-o {}: the form has no column for pools; expected one --pool, or --json",
                       command.out);
  return pools;
}

static void plan_and_report(const PlanCommand& command, std::ostream& out) {
  memory::Problem problem = memory::read_csv(command.problem).problem;
  problem.pools[0].capacity = command.capacity;
  if (!command.pools.empty()) problem.pools = pools_of(command);
  memory::PlanOptions options;
  if (command.time_limit)
    options.work_limit = std::llround(*command.time_limit * memory::kWorkPerSecond);
  const memory::Plan plan = memory::plan_pools(problem, options);
  if (!command.out.empty()) write_solution(command.out, problem, plan);
  if (command.format == PlanCommand::Format::kJson) {
    // An id need not be UTF-8.
    out << plan_json(problem, plan).dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
        << "\n";
    return;
  }
  out << plan_report(problem, plan);
  int64_t peak = 0, bound = 0;
  for (const memory::PoolPlan& pool : plan.pools) {
    peak += pool.peak;
    bound += pool.lower_bound;
  }
  out << fmt::format("peak {} bytes, lower bound {} bytes\n", peak, bound);
}

int run_plan_command(const PlanCommand& command, std::ostream& out, std::ostream& err) {
  if (command.capacity && *command.capacity < 0) {
    err << fmt::format("error: --capacity {} is negative\n", *command.capacity);
    return 2;
  }
  if (command.time_limit && !(*command.time_limit >= 0 && *command.time_limit <= kMaxSeconds)) {
    err << fmt::format("error: --time-limit {} is not between 0 and {} seconds\n",
                       *command.time_limit, kMaxSeconds);
    return 2;
  }
  try {
    plan_and_report(command, out);
  } catch (const CompileError& error) {
    err << error.what();
    if (!std::string_view(error.what()).ends_with('\n')) err << "\n";
    return 1;
  }
  return 0;
}

void add_plan_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<PlanCommand>();
  CLI::App* command =
      app.add_subcommand("plan", "the memory planner alone, on a CSV of MiniMalloc's form");
  command->add_option("PROBLEM", options->problem, "CSV: id,lower,upper,size")->required();
  command->add_option("--capacity", options->capacity, "bytes: fail where more is needed");
  command->add_option("--pool", options->pools,
                      "NAME=SIZE: several pools, in order of preference, instead of --capacity");
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

}  // namespace tenon
