// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/help.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>

#include "tenon/driver/option_table.h"
#include "tenon/support/check.h"
#include "tenon/support/nearest.h"

namespace tenon {

static constexpr size_t kWidth = 100, kIndent = 30;  // columns

struct CommandGroup {
  std::string_view title;
  std::vector<std::string_view> commands;
};

static const std::vector<CommandGroup>& command_groups() {
  static const std::vector<CommandGroup> groups = {
      {"Run and compile", {"run", "compile", "bench", "generate", "tune"}},
      {"Look at", {"show", "print", "explain", "report", "check"}},
      {"Passes", {"opt", "passes"}},
      {"Find faults", {"bisect", "reduce", "test-onnx"}},
      {"Parts alone", {"plan", "measure"}},
      {"Tables", {"operators", "relay-operators", "options", "diagnostics"}},
  };
  return groups;
}

void arrange_commands(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const auto group =
        std::find_if(command_groups().begin(), command_groups().end(), [&](const auto& each) {
          return std::count(each.commands.begin(), each.commands.end(), command->get_name()) > 0;
        });
    check(group != command_groups().end(), "a command is in a group of the help");
    command->group(std::string(group->title));
  }
}

// `name`, then words that go on below one another.
static std::string in_columns(const std::string& name, const std::string& words) {
  std::string out = "  " + name, word;
  size_t column = out.size();
  const auto new_line = [&] {
    out += "\n" + std::string(kIndent, ' ');
    column = kIndent;
  };
  if (column + 1 > kIndent) {
    new_line();
  } else {
    out += std::string(kIndent - column, ' ');
    column = kIndent;
  }
  for (std::istringstream in(words); in >> word;) {
    if (column > kIndent && column + 1 + word.size() > kWidth) new_line();
    if (column > kIndent) out += ' ', ++column;
    out += word;
    column += word.size();
  }
  return out + "\n";
}

std::string HelpFormatter::line_of(const CLI::Option& option, const std::string& limits) const {
  std::string name = make_option_name(&option, option.get_positional());
  if (option.get_type_size() != 0) {
    if (!option.get_positional()) name += " " + option.get_type_name();
    if (!option.get_default_str().empty()) name += "=" + option.get_default_str();
  }
  if (option.get_required()) name += " (required)";
  return in_columns(name, option.get_description() + (limits.empty() ? "" : " [" + limits + "]"));
}

std::string HelpFormatter::groups_of(const CLI::App& command) const {
  std::vector<const CLI::Option*> options =
      command.get_options([](const CLI::Option* option) { return option->nonpositional(); });
  std::string out;
  for (const OptionGroup& group : option_groups()) {
    std::vector<std::pair<const CLI::Option*, std::string>> lines;
    for (const OptionRow& row : group.rows)
      for (const CLI::Option* option : options)
        if (option->get_group() == group.title && &row_of(command, *option) == &row)
          lines.emplace_back(option, limits_of(row, command));
    if (lines.empty()) continue;
    const std::string& common = lines[0].second;
    const bool is_common = lines.size() > 1 && !common.empty() &&
                           std::all_of(lines.begin(), lines.end(),
                                       [&](const auto& line) { return line.second == common; });
    out += fmt::format("\n{}{}:\n", group.title, is_common ? " [" + common + "]" : "");
    for (const auto& [option, limits] : lines) out += line_of(*option, is_common ? "" : limits);
  }
  std::string others;  // --help, --version
  for (const CLI::Option* option : options)
    if (option->get_group() == "Options") others += line_of(*option, "");
  return out + "\n" + others;
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode) const {
  std::string out = app->get_description() + "\n" + make_usage(app, name);
  std::string positionals;
  for (const CLI::Option* option :
       app->get_options([](const CLI::Option* each) { return each->get_positional(); }))
    positionals += line_of(*option, limits_of(row_of(*app, *option), *app));
  if (!positionals.empty()) out += "\n" + positionals;
  for (const CommandGroup& group : command_groups()) {
    std::string lines;
    for (const CLI::App* command : app->get_subcommands(
             [&](const CLI::App* each) { return each->get_group() == group.title; }))
      lines += make_subcommand(command);
    if (!lines.empty()) out += fmt::format("\n{}:\n{}", group.title, lines);
  }
  out += groups_of(*app);
  if (!app->get_footer().empty()) out += "\n" + app->get_footer() + "\n";
  return out;
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return in_columns(command->get_name(), command->get_description());
}

static std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

static std::string positionals_of(const CLI::App& command) {
  std::string out;
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional()) out += (out.empty() ? "" : " ") + option->get_name(true);
  return out;
}

std::string wrong_usage(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<const CLI::App*> chosen = [&] {
    std::vector<const CLI::App*> out;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
      if (command->parsed()) out.push_back(command);
    return out;
  }();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  const std::string line = chosen.empty() ? "tenon" : "tenon " + command.get_name();
  const std::string more = fmt::format("; `{} --help` lists what there is", line);
  // An option that there is not may be why another one is missing.
  const std::vector<std::string> rest = command.remaining();
  for (const std::string& word : rest) {
    if (!word.starts_with('-') || word == "-" || word == "--") continue;
    const std::string name = word.substr(0, word.find('='));
    const bool is_word = name.starts_with("--");  // letters are all near to one another
    const std::string meant = is_word ? did_you_mean(name, options_of(command)) : "";
    return fmt::format("`{}` has no option `{}`{}", line, name, meant.empty() ? more : meant);
  }
  if (rest.empty()) return fmt::format("`{}`: {}{}", line, error.what(), more);
  if (chosen.empty()) {
    std::vector<std::string> names;
    for (const CommandGroup& group : command_groups())
      names.insert(names.end(), group.commands.begin(), group.commands.end());
    const std::string meant = did_you_mean(rest[0], names);
    return fmt::format("there is no command `{}`{}", rest[0], meant.empty() ? more : meant);
  }
  const std::string taken = positionals_of(command);
  return fmt::format("`{}` takes {}, and `{}` is left over; an option takes one value each time",
                     line, taken.empty() ? "options alone" : taken, rest[0]);
}

}  // namespace tenon
