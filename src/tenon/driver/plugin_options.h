// SPDX-License-Identifier: Apache-2.0
// The options that load plugins and set options of back ends; every command that reads a model has
// them.
#pragma once

#include <string>
#include <vector>

#include "tenon/ir/module.h"

namespace CLI {
class App;
}

namespace tenon {

struct PluginOptions {
  std::vector<std::string> files;    // shared libraries (include/tenon/backend.h)
  std::vector<std::string> options;  // NAME.KEY=VALUE
  bool in_process = false;           // their code runs in this process
  double seconds = 60;               // that a callback may take elsewhere; 0: any

  bool empty() const { return files.empty() && options.empty(); }
  void add_to(CLI::App& app);
  /// Loads the plugins; those that are loaded stay as they are.
  /// \throws CompileError (kFileError, kBadPlugin, kPluginCrash).
  void load() const;
  /// The module with the plugins among its back ends (graph/user_placement.h), and the options as
  /// attribute `backend_options`. \throws UsageError where an option is malformed or for no back end.
  IRModule annotate(IRModule module) const;
};

}  // namespace tenon
