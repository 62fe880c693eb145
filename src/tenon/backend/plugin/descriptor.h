// What a plugin says about itself (TenonBackend), checked and copied.
#pragma once

#include <string>
#include <vector>

#include "tenon/backend.h"

namespace tenon::plugin {

struct PassDescriptor {
  std::string name, summary;
  int32_t (*run)(const TenonHost*, const char*, TenonAnswer*) = nullptr;
};

struct Descriptor {
  std::string file;  // of its library; empty: linked in
  std::string name, version, patterns, run_symbol;
  TenonBackend raw = {};  // callbacks and numbers; members that it does not have are zero
  std::vector<PassDescriptor> passes;

  bool has_flag(uint32_t flag) const { return (raw.flags & flag) != 0; }
  /// For messages: "back end `acc` (./acc.so)".
  std::string words() const;
};

/// Asks `entry` for the back end and checks what it gives.
/// \throws CompileError (kBadPlugin, kPluginCrash).
Descriptor read_descriptor(TenonBackendFunction entry, const std::string& file);

/// A C identifier.
bool is_identifier(const std::string& name);

}  // namespace tenon::plugin
