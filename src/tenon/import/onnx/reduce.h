// SPDX-License-Identifier: Apache-2.0
// Reduces networks that cannot be imported, as ONNX files.
#pragma once

#include <functional>
#include <string>

namespace tenon::onnx {

/// The smallest network for which `shows(file contents)` holds, made of `contents` by leaving out
/// nodes (what they computed becomes an input), outputs, attributes, functions and texts. A file
/// that is no protocol buffer is reduced as bytes. Data in other files stays there: candidates
/// refer to it by the same paths.
std::string reduce_network(const std::string& contents,
                           const std::function<bool(const std::string&)>& shows,
                           const std::function<bool()>& out_of_time = {});

}  // namespace tenon::onnx
