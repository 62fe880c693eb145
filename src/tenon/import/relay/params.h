// SPDX-License-Identifier: Apache-2.0
// Reads files of parameters, as TVM's `relay.save_param_dict` writes them.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "tenon/ir/constant.h"

namespace tenon::relay {

using Params = std::map<std::string, Ref<TensorData>>;

/// Tensors by name; aligned ones stay views of `bytes`, which `keeper` keeps alive. `name` is the
/// file's, for diagnostics. \throws CompileError kBadTensor where it is malformed.
Params read_params(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper,
                   const std::string& name);

}  // namespace tenon::relay
