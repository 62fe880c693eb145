// SPDX-License-Identifier: Apache-2.0
// `--help` of every command, and messages about command lines that cannot be
// parsed.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tenon {

/// Options in the groups of the table of options, in its order, lines of at most 100 columns. Where
/// all options of a group share their limits, its title has them.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_subcommand(const CLI::App* command) const override;

 private:
  std::string groups_of(const CLI::App& command) const;
  std::string line_of(const CLI::Option& option, const std::string& limits) const;
};

/// Puts every command into its group of `tenon --help`.
/// \throws InternalError where one has none.
void arrange_commands(CLI::App& app);

/// What is wrong with the command line, and which command or option was probably meant.
std::string wrong_usage(const CLI::App& app, const CLI::ParseError& error);

}  // namespace tenon
