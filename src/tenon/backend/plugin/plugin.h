// SPDX-License-Identifier: Apache-2.0
// Back ends behind the C interface of include/tenon/backend.h, in a shared library outside of the
// tree or linked in. Both use the same code.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tenon/backend.h"
#include "tenon/backend/plugin/descriptor.h"
#include "tenon/graph/backend.h"

namespace tenon::plugin {

/// The back end that `entry` describes, as the passes see it: each answer is checked, and what is
/// wrong with it is an error that names the back end.
/// \param file  of its library; empty: linked in.
/// \throws CompileError (kBadPlugin, kPluginCrash).
graph::Backend adapt(TenonBackendFunction entry, const std::string& file = {});

/// One of this process: its hooks are in `d`, its patterns in `patterns`, beside those of `d`'s text.
/// Checks of its own that a pattern has are asked before the back end's.
/// \throws CompileError (kBadPlugin).
graph::Backend adapt(Descriptor d, std::vector<graph::FusionPattern> patterns);

/// Whether a back end takes options of the user's by name: plugins, and those of this process.
bool takes_options(const std::string& name);

/// Where the code of a back end runs, and how long a callback may take.
struct LoadPlugin {
  bool in_process = false;  // else in a process of its own, which may end as it likes
  double seconds = 60;      // of a callback there; 0: as long as it takes
};

/// Opens a shared library, reads its back end and registers it. One that is loaded already stays.
/// \throws CompileError (kFileError, kBadPlugin, kPluginCrash, kPluginExit, kPluginHang).
/// \returns the back end's name.
std::string load_plugin(const std::string& file, const LoadPlugin& how = {});

/// A plugin's library by its bare file name, as `external_mods` names it; empty: none is loaded.
std::string plugin_path(const std::string& file_name);

/// Options for back ends, as module attribute `backend_options` keeps them.
using BackendOptions = std::map<std::string, std::map<std::string, std::string>>;
AttrValue to_attr(const BackendOptions& options);

}  // namespace tenon::plugin
