// SPDX-License-Identifier: Apache-2.0
// Names of TVM's TensorIR that Tenon recognises but does not support, with the reason.
#pragma once

#include <string>
#include <string_view>

namespace tenon::script {

/// Why `path` ("T.ptx_mma") is not taken; empty where the name is none of TVM's.
std::string why_unsupported(std::string_view path);

}  // namespace tenon::script
