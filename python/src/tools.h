// SPDX-License-Identifier: Apache-2.0
// Parts of Tenon alone.
#pragma once

#include <string>
#include <vector>

#include "common.h"
#include "tenon/driver/signature.h"
#include "tenon/ir/constant.h"
#include "tenon/ir/module.h"

namespace tenon::python {

/// The inputs in order, of what is given by position and by name.
std::vector<Ref<TensorData>> inputs_of(const Signature& signature, const nb::tuple& args,
                                       const nb::dict& kwargs);

/// Runs a function of a module in the interpreter. `link`: libraries where foreign functions are.
/// Gives numpy arrays: one, or a tuple.
nb::object interpret(const IRModule& module, const std::string& function,
                     const std::vector<std::string>& link, const nb::tuple& args,
                     const nb::dict& kwargs);

}  // namespace tenon::python
