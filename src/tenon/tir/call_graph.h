// SPDX-License-Identifier: Apache-2.0
// The call graph of a module.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tenon/ir/module.h"

namespace tenon::tir {

struct CallSite {
  std::string callee;
  Origin origin;
};

/// What PrimFunc `name` calls (or the reference of an extern function): the first call of each
/// function, in order; none of another function.
std::vector<CallSite> calls_of(const IRModule& module, const std::string& name);

struct CallTir;
/// The first statement in `root` that calls a function; null: there is none.
const CallTir* first_call(const NodePtr& root);

struct ExternFunction;
/// An extern function that is not thread-safe and that a call of `name` reaches; null: there is
/// none.
const ExternFunction* unsafe_function(const IRModule& module, const std::string& name);

/// How deep calls may nest: what follows them (and a running program) recurses.
inline constexpr int kMaxCallDepth = 128;
/// How much deeper passes may nest them: an entry around `main`, parts of a long one.
inline constexpr int kAddedCallDepth = 8;

/// The functions of the module, each after those that it calls (as `calls` tells; a pointer that
/// stays valid). Reports cycles, and calls that nest deeper than `most_deep`.
std::vector<std::string> callees_first(
    const IRModule& module,
    const std::function<const std::vector<CallSite>*(const std::string&)>& calls,
    Diagnostics& diagnostics, int most_deep = kMaxCallDepth);

}  // namespace tenon::tir
