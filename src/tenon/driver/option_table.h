// SPDX-License-Identifier: Apache-2.0
// The table of all options in every form of every command. From it command lines are checked,
// `--help` is printed (help.h) and docs/options.md is made.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tenon {

/// A way to use a command, by what it reads or makes: a column of the table.
struct CommandForm {
  std::string_view command;
  std::string_view name;  // as commands call it: "compiled"
  std::string_view text;  // as users read it: "a compiled .so"
  std::string_view why;   // options do not apply there
};
std::span<const CommandForm> command_forms();

/// An option of some commands: a row of the table.
struct OptionRow {
  std::string_view option;  // "--libs"; "MODEL" where it is positional
  std::string_view cells;   // a word for each command, a letter for each of its forms (Use)
  std::vector<std::string_view> needs = {};  // of `R` and `N`: any of these
  std::string_view why = {};                 // it does not apply; empty: what the form says
};

/// Options that `--help` shows together.
struct OptionGroup {
  std::string_view title;
  std::span<const OptionRow> rows;
};
std::span<const OptionGroup> option_groups();

enum class Use : char {
  kAbsent = '.',         // the command has no such option
  kApplies = 'a',        //
  kRefused = 'r',        // an error (TN0011)
  kNoEffect = 'n',       // a warning (TN0010)
  kRefusedAlone = 'R',   // an error unless an option of `needs` is given
  kNoEffectAlone = 'N',  // a warning unless an option of `needs` is given
};
Use use_of(const OptionRow& row, const CommandForm& form);

/// As rows name it.
std::string option_name(const CLI::Option& option);
/// \throws InternalError where the option is not in the table.
const OptionRow& row_of(const CLI::App& command, const CLI::Option& option);

/// What the help of a command says beside an option: "refused with a compiled .so"; empty where the
/// option applies everywhere.
std::string limits_of(const OptionRow& row, const CLI::App& command);

/// Puts every option of every command into its group; one that may be given several times takes one
/// value each time. To be called when all are added.
/// \throws InternalError where an option is not in the table.
void arrange_options(CLI::App& app);

/// Looks at the options that a command was given, in the form that it is used in.
/// \throws UsageError at those that are refused; those without effect are told.
void check_options(const CLI::App& command, std::string_view form);

}  // namespace tenon
