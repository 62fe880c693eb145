// Which functions of a module call which.
#pragma once

#include <string>
#include <vector>

#include "tenon/ir/module.h"

namespace tenon::tir {

/// The functions that PrimFunc `name` calls (or the reference of an extern function), each once, in
/// order of the first call; none of another function.
std::vector<std::string> callees_of(const IRModule& module, const std::string& name);

/// How deep calls may nest: what follows them (and a running program) recurses.
inline constexpr int kMaxCallDepth = 128;

/// Reports cycles of calls, and calls that nest deeper than kMaxCallDepth.
void verify_calls(const IRModule& module, Diagnostics& diagnostics);

}  // namespace tenon::tir
