// Names of TVM's TensorIR that Tenon knows and does not take, with the reason.
#pragma once

#include <string>
#include <string_view>

namespace tenon::script {

/// Why `path` ("T.ptx_mma") is not taken; empty where the name is none of TVM's.
std::string why_unsupported(std::string_view path);

}  // namespace tenon::script
