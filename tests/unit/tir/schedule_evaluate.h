// SPDX-License-Identifier: Apache-2.0
// Executes a scheduled function slowly, whatever the kinds of its loops, and checks each access:
// what schedules must not change. The interpreter of interp/ is another room, below this one.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/tir/stmt.h"

namespace tenon::tir::testing {

using Data = std::unordered_map<const Buffer*, std::vector<double>>;
using Env = std::unordered_map<const Var*, int64_t>;

/// Runs `function` on the data of its parameters (by buffer); what it writes is changed in place.
/// \throws std::runtime_error at an access out of bounds, a read of what nobody wrote, an axis
/// outside its domain.
void run(const PrimFunc& function, Data& data, Env symbols = {});

/// Random inputs from a fixed seed, outputs zero; results of the parameters in order.
std::vector<std::vector<double>> results(const PrimFunc& function, const Env& symbols = {});

/// An indented text of the function for messages.
std::string dump(const PrimFunc& function);

}  // namespace tenon::tir::testing
