// SPDX-License-Identifier: Apache-2.0
// A plugin's description of itself (TenonBackend), checked and copied.
#pragma once

#include <string>
#include <vector>

#include "tenon/backend.h"
#include "tenon/backend/plugin/hooks.h"
#include "tenon/support/identifiers.h"

namespace tenon::plugin {

/// Characters of a symbol.
inline constexpr size_t kMostSymbol = 255;

struct PassDescriptor {
  std::string name, summary;
};

/// Which callbacks a back end has, as bits.
enum CallbackBits : uint32_t {
  kHasCheck = 1,
  kHasCost = 2,
  kHasScratch = 4,
  kHasPack = 8,
  kHasGenerate = 16,
};

struct Descriptor {
  std::string file;  // of its library; empty: linked in
  std::string name, version, patterns, run_symbol;
  uint64_t size = 0;
  uint32_t abi = 0, unit = 0, threads = 0, flags = 0;
  int32_t priority = 0;
  uint32_t callbacks = 0;  // CallbackBits
  std::vector<PassDescriptor> passes;
  std::shared_ptr<Hooks> hooks;

  bool has(CallbackBits callback) const { return (callbacks & callback) != 0; }
  bool has_flag(uint32_t flag) const { return (flags & flag) != 0; }
  /// For messages: "back end `acc` (./acc.so)".
  std::string words() const;
};

/// What a back end in this process says about itself.
struct Described {
  Descriptor descriptor;  // without hooks
  TenonBackend raw = {};  // members that it does not have are zero
};
/// Asks `entry` for the back end and checks what it gives. Foreign code runs unguarded.
/// \throws CompileError (kBadPlugin).
Described describe(TenonBackendFunction entry, const std::string& file);

/// The same with its hooks, which run in this process, guarded.
/// \throws CompileError (kBadPlugin, kPluginCrash).
Descriptor read_descriptor(TenonBackendFunction entry, const std::string& file);

/// Whether a back end has patterns: in its text or nowhere; beside that; or none, and is told by the
/// user what is its own.
enum class HasPatterns : uint8_t { kInText, kYes, kNotNeeded };
/// The strings and numbers are what they may be, wherever they come from.
/// \throws CompileError (kBadPlugin).
void check_descriptor(const Descriptor& d, HasPatterns patterns = HasPatterns::kInText);

}  // namespace tenon::plugin
