// Back ends behind the C interface of include/tenon/backend.h, outside of the tree (a shared
// library) and inside (linked in). Both go the same way.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tenon/backend.h"
#include "tenon/graph/backend.h"

namespace tenon::plugin {

/// The back end that `entry` describes, as the passes see it: each answer is checked, and what is
/// wrong with it is an error that names the back end.
/// \param file  of its library; empty: linked in.
/// \throws CompileError (kBadPlugin, kPluginCrash).
graph::Backend adapt(TenonBackendFunction entry, const std::string& file = {});

/// Opens a shared library, reads its back end and registers it. One that is loaded already stays.
/// \throws CompileError (kFileError, kBadPlugin, kPluginCrash).
/// \returns the back end's name.
std::string load_plugin(const std::string& file);

/// A plugin's library by its bare file name, as `external_mods` names it; empty: none is loaded.
std::string plugin_path(const std::string& file_name);

/// Options for back ends, as module attribute `backend_options` keeps them.
using BackendOptions = std::map<std::string, std::map<std::string, std::string>>;
AttrValue to_attr(const BackendOptions& options);

}  // namespace tenon::plugin
