// SPDX-License-Identifier: Apache-2.0
// Constants of strings in converters.
#pragma once

#include <string>
#include <vector>

#include "tenon/import/converter_context.h"

namespace tenon::onnx {

using namespace importers;

/// A constant of strings.
Value text_table(const std::vector<std::string>& texts, const Ints& shape);
}  // namespace tenon::onnx
