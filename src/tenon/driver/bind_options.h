// SPDX-License-Identifier: Apache-2.0
// The passes that bind parameters and dimensions, with options that name files.
#pragma once

#include <map>
#include <string>

#include "tenon/ir/constant.h"
#include "tenon/ir/module.h"

namespace tenon {

/// BindParams(params=P, func_name="main"): P is a file as relay.save_param_dict writes it, or a
/// dictionary from names to .npy files, numbers and lists of numbers (of the parameter's dtype).
/// The values that these options give to parameters of the function, by their names.
std::map<std::string, Ref<TensorData>> bound_params(const IRModule& module, const Attrs& options);
IRModule run_bind_params(IRModule module, const Attrs& options);

/// BindSymbolicVars(binding_map={"n": 4}, func_name=None).
IRModule run_bind_symbolic_vars(IRModule module, const Attrs& options);

/// LiftTransformParams(shared_transform=False): True, or a list of functions that share it.
IRModule run_lift_transform_params(IRModule module, const Attrs& options);

}  // namespace tenon
