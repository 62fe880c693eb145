// SPDX-License-Identifier: Apache-2.0
// Constants of strings (support/strings.h).
#pragma once

#include <span>
#include <string>

#include "tenon/ir/constant.h"
#include "tenon/support/strings.h"

namespace tenon {

Ref<TensorData> tensor_of_texts(std::vector<int64_t> shape, std::span<const std::string> texts,
                                Origin origin = {});
const std::string& text_at(const TensorData& data, int64_t index);

}  // namespace tenon
