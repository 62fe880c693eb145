// SPDX-License-Identifier: Apache-2.0
// ONNX networks of a node or a few, which `tenon check` reads.
#pragma once

#include <cstring>

#include "cases.h"
#include "onnx_bytes.h"

namespace tenon::bad_input {

constexpr int kOnnxInt8 = 3, kOnnxInt32 = 6, kOnnxBool = 9;

inline std::string zeros(size_t bytes) { return std::string(bytes, '\0'); }

inline Message ints(const std::string& name, const Dims& values) {
  std::string raw(8 * values.size(), '\0');
  std::memcpy(raw.data(), values.data(), raw.size());
  return tensor(name, {static_cast<int64_t>(values.size())}, raw, kOnnxInt64);
}

inline Message floats(const std::string& name, const std::vector<float>& values) {
  std::string raw(4 * values.size(), '\0');
  std::memcpy(raw.data(), values.data(), raw.size());
  return tensor(name, {static_cast<int64_t>(values.size())}, raw);
}

/// A tensor of zeros.
inline Message weight(const std::string& name, const Dims& dims) {
  size_t count = 1;
  for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
  return tensor(name, dims, zeros(4 * count));
}

inline Message text_attribute(const std::string& name, const std::string& value) {
  return attribute(name, value);
}

inline Message tensor_attribute(const std::string& name, const Message& value) {
  return Message().text(1, name).message(5, value).number(20, 4);
}

/// A tensor some of whose dimensions have names.
inline Message named(const std::string& name, const std::vector<std::string>& dims) {
  Message shape;
  for (const std::string& dim : dims) {
    const bool is_number = !dim.empty() && dim[0] >= '0' && dim[0] <= '9';
    shape.message(1, is_number ? Message().number(1, std::stoll(dim)) : Message().text(2, dim));
  }
  const Message type = Message().number(1, kOnnxFloat).message(2, shape);
  return Message().text(1, name).message(2, Message().message(1, type));
}

/// Nodes on input `x`; the last gives `y`.
struct Network {
  std::vector<Message> nodes;
  std::vector<Message> inputs;
  std::vector<Message> initializers = {};
  int64_t opset = 21;
};

inline Case bad(const std::string& name, const Network& network, const std::string& says) {
  const Graph graph{network.nodes, network.inputs, {value("y", {})}, network.initializers};
  return {name, {"check", "m.onnx"}, {{"m.onnx", model(graph, network.opset)}}, 1, says};
}

inline Message x(const Dims& dims, int type = kOnnxFloat) { return value("x", dims, type); }

}  // namespace tenon::bad_input
