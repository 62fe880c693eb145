// SPDX-License-Identifier: Apache-2.0
// The options of compiling, given by name and not on a command line: for front ends of other
// languages. They are those of `tenon run`, from the same declarations.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tenon/driver/commands.h"

namespace tenon {

/// An option and what it is given.
struct NamedOption {
  std::string name;                 // "libs": without dashes
  std::vector<std::string> values;  // as on the command line; of a flag none
};

/// What an option is.
struct OptionInfo {
  std::string name;  // "libs"
  std::string text;  // what --help says
  std::string default_text;
  bool is_flag = false;
  bool is_list = false;  // takes several values
};
/// All of them, in the order of `tenon run --help`.
std::vector<OptionInfo> compile_options();

struct CompileOptions {
  TargetOptions target;
  PassOptions passes;
};
/// \throws UsageError at an option that is not there (with the nearest name) or has a value that is
/// none of its kind, and at those that are refused for the target; those without effect are told.
CompileOptions compile_options(std::span<const NamedOption> given);

}  // namespace tenon
