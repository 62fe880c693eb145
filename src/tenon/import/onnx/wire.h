// SPDX-License-Identifier: Apache-2.0
// Reads protobuf's wire format as far as finding a model's weights without copies needs.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace tenon::onnx {

/// A model's bytes without the large raw data of its initialisers.
struct StrippedModel {
  std::string bytes;                                      // a ModelProto
  std::map<size_t, std::span<const std::byte>> raw_data;  // by position among the initialisers
};

/// Takes the raw data of the main graph's initialisers out of a serialised ModelProto. Nothing
/// where the bytes have another structure (a broken file too: the parser says what is wrong).
std::optional<StrippedModel> strip_raw_data(std::span<const std::byte> model);

}  // namespace tenon::onnx
