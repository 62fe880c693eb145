// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/option_table.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "tenon/driver/usage.h"
#include "tenon/driver/warnings.h"
#include "tenon/support/check.h"
#include "tenon/support/usage_codes.h"

namespace tenon {

namespace {

constexpr std::string_view kMachine = "it is of target c";
constexpr std::string_view kDone = "the model was compiled before";
constexpr std::string_view kInterprets = "the interpreter runs the model as it was read";
constexpr std::string_view kNoPasses = "no pass runs";
constexpr std::string_view kLists = "no module is read";
constexpr std::string_view kPage = "the page has all nodes and passes";

constexpr CommandForm kForms[] = {
    {"run", "native", "machine code", kMachine},
    {"run", "c", "--target c", ""},
    {"run", "compiled", "a compiled .so", kDone},
    {"run", "interpret", "--interpret", kInterprets},
    {"compile", "native", "machine code", kMachine},
    {"compile", "c", "--target c", ""},
    {"show", "compiled", "a compiled .so", kDone},
    {"show", "model", "a model", "a model's memory is planned when it is compiled"},
    {"bench", "native", "machine code", kMachine},
    {"bench", "c", "--target c", ""},
    {"bench", "compiled", "a compiled .so", kDone},
    {"generate", "native", "machine code", kMachine},
    {"generate", "c", "--target c", ""},
    {"generate", "compiled", "a compiled .so", kDone},
    {"test-onnx", "native", "machine code", kMachine},
    {"test-onnx", "c", "--target c", ""},
    {"test-onnx", "interpret", "--interpret", kInterprets},
    {"print", "read", "the module as it was read", kNoPasses},
    {"print", "passes", "--after, --passes or --pipeline", ""},
    {"opt", "list", "--list-passes", kLists},
    {"opt", "pipeline", "--print-pipeline", kLists},
    {"opt", "read", "a module without passes", kNoPasses},
    {"opt", "passes", "passes", ""},
    {"explain", "remarks", "all nodes", ""},
    {"explain", "node", "NODE", "the story of a node holds every pass"},
    {"explain", "page", "-o", kPage},
    {"report", "native", "machine code", kMachine},
    {"report", "c", "--target c", "a program in C is not run"},
    {"check", "files", "files and plugins", "it is of kernels"},
    {"check", "kernels", "--kernels or --kernel", ""},
    {"plan", "csv", "a CSV", ""},
    {"tune", "model", "a model", ""},
    {"measure", "job", "a job", ""},
    {"reduce", "model", "a model", ""},
    {"bisect", "native", "machine code", kMachine},
    {"bisect", "c", "--target c", ""},
    {"operators", "onnx", "ONNX's operators", ""},
    {"operators", "graph", "--graph or --kernels", ""},
    {"operators", "page", "--markdown", "the page of docs/ is of the operators that Tenon has"},
    {"passes", "table", "the table", ""},
    {"relay-operators", "table", "the table", ""},
    {"diagnostics", "table", "the table", ""},
    {"options", "table", "the table", ""},
};

// The back ends and kernels that take part are chosen by passes of the pipeline.
const std::vector<std::string_view> kPasses = {"--passes", "--pipeline"};
// Where these are not given, no pass runs over a model that is interpreted.
const std::vector<std::string_view> kAnyPass = {"--passes", "--pipeline", "--composite",
                                                "--call-by-name"};

// Cells: a word for each command that has the option, a letter (Use) for each of its forms.
// A table for each group of `--help`.
const OptionRow kFiles[] = {
    {"MODEL",
     "run:aaaa compile:aa show:aa bench:aaa print:aa explain:aaa report:aa reduce:a "
     "bisect:aa generate:aaa tune:a"},
    {"FILE", "opt:rraa check:aa"},
    {"DIR", "test-onnx:aaa"},
    {"PROBLEM", "plan:a"},
    {"JOB", "measure:a"},
    {"--db", "tune:a"},
    {"NODE", "explain:aar"},
    {"NAME", "operators:aaa"},
    {"--out",
     "run:aaaa compile:aa print:aa opt:rraa plan:a explain:ara report:aa reduce:a "
     "bisect:aa measure:a",
     {},
     kPage},
    {"--json",
     "run:aaaa show:aa bench:aaa test-onnx:aaa plan:a explain:aar report:aa reduce:a bisect:aa "
     "generate:aaa tune:a"},
    {"--markdown", "operators:aaa passes:a relay-operators:a diagnostics:a options:a"},
    {"--graph", "operators:aaa"},
    {"--emit", "compile:aa"},
    {"--name", "compile:aa"},
    {"--params",
     "run:aara compile:aa bisect:aa bench:aar test-onnx:rrr print:aa opt:rraa explain:aaa "
     "report:aa tune:a",
     {},
     "parameters are of .relay models"},
    {"--shape",
     "run:aara compile:aa bisect:aa bench:aar test-onnx:rrr print:aa opt:rraa explain:aaa "
     "report:aa tune:a",
     {},
     "shapes are of .onnx models"},
    {"--bound",
     "run:aarr compile:aa bisect:aa bench:aar test-onnx:rrr print:rr opt:rrrr explain:rra "
     "report:aa tune:a",
     {},
     "bounds are of programs that are compiled from a model"},
    {"--length",
     "run:aara compile:aa bisect:aa bench:aar test-onnx:rrr print:aa opt:rraa explain:aaa "
     "report:aa tune:a",
     {},
     "lengths are of .onnx models, and part of a compiled program"},
};

const OptionRow kRuns[] = {
    {"--input", "run:aaaa report:an"},
    {"--dim", "run:aaaa show:ar bench:aaa report:aa tune:a"},
    {"--seed", "run:aaaa check:ra tune:a"},
    {"--interpret", "run:aara test-onnx:aaa"},
    {"--compare", "run:aarr"},
    {"--repeat", "run:aaar bench:aaa report:an"},
    {"--threads",
     "run:aaan compile:nn bisect:aa bench:aaa test-onnx:aan report:an generate:aaa tune:a",
     {},
     "compiled code has a number of threads where it runs"},
    {"--max-steps",
     "run:aara compile:aa bisect:aa bench:aar test-onnx:aaa print:ra opt:rrrr explain:aaa "
     "report:aa tune:a"},
    {"--per-kernel", "bench:aar"},
    {"--profile", "run:aarr"},
    {"--tokens", "generate:aaa"},
    {"--prompt", "generate:aaa"},
    {"-k", "test-onnx:aaa"},
    {"--tolerance", "test-onnx:aaa check:ra"},
    {"--size", "check:ra"},
    {"--verbose", "test-onnx:aaa"},
    {"--trials", "check:ra tune:a"},
    {"--capacity", "plan:a"},
    {"--time-limit", "plan:a reduce:a bisect:aa"},
    {"--run-limit", "reduce:a bisect:aa tune:a"},
    {"--seconds", "tune:a"},
    {"--memory-limit", "tune:a"},
    {"--max-peak", "tune:a"},
    {"--launcher", "tune:a"},
    {"--launcher-option", "tune:a"},
    {"--launcher-folder", "tune:a"},
    {"--fails", "reduce:a"},
    {"--wrong", "reduce:a"},
    {"--crashes", "reduce:a"},
    {"--message", "reduce:a"},
};

const OptionRow kTargets[] = {
    {"--target",
     "run:aarN compile:aa bisect:aa bench:aar test-onnx:aaN print:na opt:rraa explain:aaa "
     "report:aa check:ra "
     "generate:aar tune:a",
     kPasses},
    {"--fp",
     "run:aarN compile:aa bisect:aa bench:aar test-onnx:aaN print:na opt:rrna explain:aaa "
     "report:aa tune:a",
     kPasses},
    {"--pool", "run:rarr compile:ra bisect:ra bench:rar test-onnx:rar report:ra plan:a tune:r"},
    {"--include",
     "run:rarr compile:ra bisect:rr bench:rar test-onnx:rar report:rn tune:r",
     {},
     "it is of C that is written, or compiled to be run"},
    {"--constants", "compile:ra"},
    {"--separate-arrays", "compile:ra"},
};

const OptionRow kLibraries[] = {
    {"--link",
     "run:aara compile:aa bisect:aa bench:aar test-onnx:aaa print:nn opt:rrnn explain:nna "
     "report:aa tune:a",
     {},
     "nothing is linked"},
    {"--allow-code",
     "run:aara compile:aa bisect:aa bench:aar test-onnx:aaa print:nn opt:rrnn explain:nna "
     "report:aa tune:a",
     {},
     "nothing is linked"},
    {"--call-by-name",
     "run:aara compile:aa bisect:aa bench:aar test-onnx:aaa print:Ra opt:rraa explain:aaa "
     "report:aa tune:a",
     {"--composite"}},
    {"--signatures",
     "run:aara compile:aa bisect:aa bench:aar test-onnx:aaa print:aa opt:rraa explain:aaa "
     "report:aa tune:a"},
    {"--composite",
     "run:aara compile:aa bisect:aa bench:aar test-onnx:aaa print:aa opt:rraa explain:aaa "
     "report:aa tune:a"},
    {"--composite-before",
     "run:RRrR compile:RR bisect:RR bench:RRr test-onnx:RRR print:RR opt:rrRR explain:RRR "
     "report:RR tune:R",
     {"--composite"}},
};

const OptionRow kBackends[] = {
    {"--plugin",
     "run:aarR compile:aa bisect:aa bench:aar test-onnx:aaR print:aa opt:araa explain:aaa "
     "report:aa check:aa tune:a",
     kPasses},
    {"--in-process",
     "run:aarR compile:aa bisect:aa bench:aar test-onnx:aaR print:aa opt:araa explain:aaa "
     "report:aa check:aa tune:a",
     kPasses},
    {"--plugin-timeout",
     "run:aarR compile:aa bisect:aa bench:aar test-onnx:aaR print:aa opt:araa explain:aaa "
     "report:aa check:aa tune:a",
     kPasses},
    {"--backend-option",
     "run:aarR compile:aa bisect:aa bench:aar test-onnx:aaR print:aa opt:rraa explain:aaa "
     "report:aa check:nn tune:a",
     kPasses},
    {"--libs",
     "run:aarR compile:aa bisect:aa bench:aar test-onnx:aaR print:aa opt:rraa explain:aaa "
     "report:aa tune:a",
     kPasses},
    {"--place",
     "run:aarR compile:aa bisect:aa bench:aar test-onnx:aaR print:aa opt:rraa explain:aaa "
     "report:aa tune:a",
     kPasses},
    {"--require-offload",
     "run:aaar compile:aa bisect:rr bench:aaa test-onnx:aar report:aa tune:r",
     {},
     "what back ends take is counted where a model is compiled to be run"},
};

const OptionRow kKernels[] = {
    {"--kernels",
     "run:aara compile:aa bisect:aa bench:aar test-onnx:aaa print:aa opt:rraa explain:aaa "
     "report:aa check:aa "
     "operators:aar tune:a"},
    {"--kernel",
     "run:aara compile:aa bisect:aa bench:aar test-onnx:aaa print:aa opt:rraa explain:aaa "
     "report:aa check:aa tune:a"},
};

const OptionRow kOfPasses[] = {
    {"--passes",
     "run:aara compile:aa bisect:aa bench:aar test-onnx:aaa print:aa opt:rraa explain:aaa "
     "report:aa tune:a"},
    {"--pipeline",
     "run:aara compile:aa bisect:aa bench:aar test-onnx:aaa print:aa opt:rraa explain:aaa "
     "report:aa tune:a"},
    {"--rewrite", "opt:rraa"},
    {"--plan", "run:aarr compile:aa bench:aar explain:aaa report:aa", {}, "no block is scheduled"},
    {"--tuned", "run:aarr compile:aa bench:aar explain:aaa report:aa", {}, "no block is scheduled"},
    {"--machine",
     "run:aarr compile:aa bench:aar explain:aaa report:aa tune:a",
     {},
     "no block is scheduled"},
    {"--write-plan", "compile:aa explain:aaa"},
    {"--after", "print:aa"},
    {"--pass", "explain:arr"},
    {"--print-after", "run:aarR compile:aa test-onnx:aaR opt:rrra", kAnyPass},
    {"--validate", "run:aarR compile:aa test-onnx:aaR opt:rrra", kAnyPass},
    {"--check-text", "run:aarR compile:aa test-onnx:aaR opt:rrra", kAnyPass},
    {"--no-verify", "run:aarN compile:aa test-onnx:aaN opt:rrna", kAnyPass},
    {"--unchecked",
     "run:aarr compile:aa bisect:rr bench:aar test-onnx:aar report:aa tune:a",
     {},
     "it is of code that is compiled to be run"},
    {"--timings", "opt:rrna"},
    {"--no-cache", "run:annn", {}, "nothing is compiled to machine code"},
    {"--list-passes", "opt:arrr"},
    {"--print-pipeline", "opt:rarr"},
};

const OptionGroup kGroups[] = {
    {"What is read, and what comes of it", kFiles},
    {"How it runs", kRuns},
    {"What it is compiled for", kTargets},
    {"Libraries, called by name", kLibraries},
    {"Back ends, and what is placed in them", kBackends},
    {"Kernels of your own", kKernels},
    {"Passes, and what is checked around them", kOfPasses},
};

// The letters of a command; empty where it has no such option.
std::string_view cells_of(const OptionRow& row, std::string_view command) {
  std::string_view rest = row.cells;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const size_t colon = word.find(':');
    if (word.substr(0, colon) == command) return word.substr(colon + 1);
  }
  return {};
}

std::string join(const std::vector<std::string_view>& words, std::string_view last) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? last : ", ";
    out += words[i];
  }
  return out;
}

std::vector<CLI::App*> commands_of(CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

}  // namespace

std::span<const CommandForm> command_forms() { return kForms; }
std::span<const OptionGroup> option_groups() { return kGroups; }

std::string limits_of(const OptionRow& row, const CLI::App& command) {
  std::map<Use, std::vector<std::string_view>> forms;
  for (const CommandForm& form : kForms)
    if (form.command == command.get_name()) forms[use_of(row, form)].push_back(form.text);
  std::string out;
  for (const auto& [use, texts] : forms) {
    if (use == Use::kApplies) continue;
    const bool refused = use == Use::kRefused || use == Use::kRefusedAlone;
    out += fmt::format("{}{} with {}", out.empty() ? "" : "; ", refused ? "refused" : "no effect",
                       join(texts, " and "));
    if (use == Use::kRefusedAlone || use == Use::kNoEffectAlone)
      out += " without " + join(row.needs, " or ");
  }
  return out;
}

Use use_of(const OptionRow& row, const CommandForm& form) {
  const std::string_view cells = cells_of(row, form.command);
  if (cells.empty()) return Use::kAbsent;
  size_t column = 0;
  for (const CommandForm& other : kForms) {
    if (other.command != form.command) continue;
    if (other.name == form.name) break;
    ++column;
  }
  check(column < cells.size(), "a row of the table of options has a letter for each form");
  return static_cast<Use>(cells[column]);
}

std::string option_name(const CLI::Option& option) {
  if (!option.get_lnames().empty()) return "--" + option.get_lnames()[0];
  if (!option.get_snames().empty()) return "-" + option.get_snames()[0];
  return option.get_name(true);
}

// The group of an option, and its row there.
static std::pair<const OptionGroup&, const OptionRow&> place_of(const CLI::App& command,
                                                                const CLI::Option& option) {
  const std::string name = option_name(option);
  for (const OptionGroup& group : kGroups)
    for (const OptionRow& row : group.rows)
      if (row.option == name && !cells_of(row, command.get_name()).empty()) return {group, row};
  throw InternalError(fmt::format("option {} of `tenon {}` is not in the table of options", name,
                                  command.get_name()));
}

const OptionRow& row_of(const CLI::App& command, const CLI::Option& option) {
  return place_of(command, option).second;
}

void arrange_options(CLI::App& app) {
  for (CLI::App* command : commands_of(app)) {
    for (CLI::Option* option : command->get_options()) {
      if (option == command->get_help_ptr()) continue;
      const OptionGroup& group = place_of(*command, *option).first;
      if (option->get_positional()) continue;
      option->group(std::string(group.title));
      if (option->get_expected_max() < CLI::detail::expected_max_vector_size) continue;
      // What follows the value is a positional of the command, or the next option.
      option->allow_extra_args(false);
      if (option->get_description().find("may be repeated") == std::string::npos)
        option->description(option->get_description() + "; may be repeated");
    }
  }
}

void check_options(const CLI::App& command, std::string_view name) {
  const auto form = std::find_if(std::begin(kForms), std::end(kForms), [&](const auto& each) {
    return each.command == command.get_name() && each.name == name;
  });
  check(form != std::end(kForms), "a form of a command is in the table of options");
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option == command.get_help_ptr()) continue;
    const OptionRow& row = row_of(command, *option);
    const Use use = use_of(row, *form);
    if (use == Use::kApplies) continue;
    const bool alone = use == Use::kRefusedAlone || use == Use::kNoEffectAlone;
    if (alone && std::any_of(row.needs.begin(), row.needs.end(), [&](std::string_view needed) {
          const CLI::Option* found = command.get_option_no_throw(std::string(needed));
          return found && found->count() > 0;
        }))
      continue;
    const std::string why = fmt::format("{}{}", row.why.empty() ? form->why : row.why,
                                        alone ? "; give it with " + join(row.needs, " or ") : "");
    if (use == Use::kRefused || use == Use::kRefusedAlone)
      throw UsageDiagnostic(CompileError(kOptionRefused, {}, "{} would have no effect with {}: {}",
                                         row.option, form->text, why));
    warn(kOptionWithoutEffect, {}, "{} has no effect with {}: {}", row.option, form->text, why);
  }
}

}  // namespace tenon
