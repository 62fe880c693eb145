// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/named_options.h"

#include <CLI/CLI.hpp>

#include "tenon/driver/option_table.h"
#include "tenon/driver/usage.h"
#include "tenon/support/nearest.h"

namespace tenon {

namespace {

/// A command line with these options alone, under the name that the table of options has.
class Command {
 public:
  explicit Command(CompileOptions& options) : command_(app_.add_subcommand("run")) {
    options.target.add_to(*command_);
    options.passes.add_to(*command_);
    options.target.model.add_plan_to(*command_);
    arrange_options(app_);
  }
  std::vector<CLI::Option*> options() const {
    std::vector<CLI::Option*> out;
    for (CLI::Option* option : command_->get_options())
      if (option != command_->get_help_ptr()) out.push_back(option);
    return out;
  }
  CLI::App& command() { return *command_; }

 private:
  CLI::App app_;
  CLI::App* command_;
};

std::string name_of(const CLI::Option& option) { return option_name(option).substr(2); }

}  // namespace

std::vector<OptionInfo> compile_options() {
  CompileOptions options;
  const Command command(options);
  std::vector<OptionInfo> out;
  for (const CLI::Option* option : command.options())
    out.push_back(
        {.name = name_of(*option),
         .text = option->get_description(),
         .default_text = option->get_default_str(),
         .is_flag = option->get_expected_max() == 0,
         .is_list = option->get_items_expected_max() > 1 || option->get_delimiter() != '\0'});
  return out;
}

CompileOptions compile_options(std::span<const NamedOption> given) {
  CompileOptions options;
  Command command(options);
  for (const NamedOption& named : given) {
    CLI::Option* found = nullptr;
    std::vector<std::string> names;
    for (CLI::Option* option : command.options()) {
      names.push_back(name_of(*option));
      if (names.back() == named.name) found = option;
    }
    if (!found)
      throw UsageError("no option is called `{}`{}", named.name, did_you_mean(named.name, names));
    try {
      if (named.values.empty()) found->add_result("true");
      for (const std::string& value : named.values) found->add_result(value);
      found->run_callback();
    } catch (const CLI::ParseError& error) {
      throw UsageError("--{}: {}", named.name, error.what());
    }
  }
  check_options(command.command(), options.target.form());
  options.target.check();
  return options;
}

}  // namespace tenon
