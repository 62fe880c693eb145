// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/plugin_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "tenon/backend/plugin/plugin.h"
#include "tenon/driver/usage.h"
#include "tenon/graph/user_placement.h"
#include "tenon/support/nearest.h"

namespace tenon {

void PluginOptions::add_to(CLI::App& app) {
  app.add_option(
      "--plugin", files,
      "x.so: a back end (tenon/backend.h), which may compute operators of the model and has "
      "passes; may be repeated");
  app.add_flag(
      "--in-process", in_process,
      "plugins run in this process, not in one of their own: faster to ask, and a fault of "
      "theirs is a fault of it");
  app.add_option("--plugin-timeout", seconds,
                 "seconds that a callback of a plugin may take; 0: as long as it takes")
      ->capture_default_str();
  app.add_option("--backend-option", options,
                 "NAME.KEY=VALUE: what a back end asks for as option KEY; may be repeated");
}

void PluginOptions::load() const {
  if (!(seconds >= 0)) throw UsageError("--plugin-timeout {} is below 0", seconds);
  if (files.empty() && in_process) throw UsageError("--in-process is of --plugin; there is none");
  for (const std::string& file : files) plugin::load_plugin(file, {in_process, seconds});
}

IRModule PluginOptions::annotate(IRModule module) const {
  graph::UserPlacement user = graph::UserPlacement::of(module);
  std::vector<std::string>& libs = user.backends;
  for (const std::string& file : files) {
    const std::string name = plugin::load_plugin(file, {in_process, seconds});
    if (std::find(libs.begin(), libs.end(), name) == libs.end()) libs.push_back(name);
  }
  module = user.in(std::move(module));
  plugin::BackendOptions all;
  for (const std::string& text : options) {
    const size_t dot = text.find('.'), equals = text.find('=');
    if (dot == std::string::npos || equals == std::string::npos || dot == 0 || dot + 1 >= equals)
      throw UsageError("--backend-option {}: expected NAME.KEY=VALUE", text);
    const std::string name = text.substr(0, dot);
    if (!graph::find_backend(name)) {
      std::vector<std::string> known;
      for (const auto& backend : graph::all_backends()) known.push_back(backend->name);
      throw UsageError("--backend-option {}: there is no back end `{}`{}", text, name,
                       did_you_mean(name, known));
    }
    if (!plugin::takes_options(name))
      throw UsageError("--backend-option {}: back end `{}` has no options; those of --plugin have",
                       text, name);
    all[name][text.substr(dot + 1, equals - dot - 1)] = text.substr(equals + 1);
  }
  if (!all.empty()) module.attrs.set("backend_options", plugin::to_attr(all));
  return module;
}

}  // namespace tenon
