// SPDX-License-Identifier: Apache-2.0
#include "tenon/ir/text_constant.h"

namespace tenon {

Ref<TensorData> tensor_of_texts(std::vector<int64_t> shape, std::span<const std::string> texts,
                                Origin origin) {
  std::vector<int64_t> numbers;
  for (const std::string& text : texts) numbers.push_back(intern_text(text));
  return TensorData::of(kString, std::move(shape), numbers, std::move(origin));
}

const std::string& text_at(const TensorData& data, int64_t index) {
  check(data.dtype.is_string(), "text_at of a constant that has no texts");
  return text_of(data.at_int(index));
}

}  // namespace tenon
