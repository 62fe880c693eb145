// SPDX-License-Identifier: Apache-2.0
// Writes ONNX files by hand, so that they can be wrong in every way: protobuf's wire format and the
// few fields of onnx.proto that the cases use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::bad_input {

/// A protobuf message, field by field.
class Message {
 public:
  Message& number(int field, int64_t value) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& text(int field, const std::string& value) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

using Names = std::vector<std::string>;
using Dims = std::vector<int64_t>;
constexpr int kOnnxFloat = 1, kOnnxInt64 = 7, kOnnxString = 8;

/// AttributeProto.
inline Message attribute(const std::string& name, int64_t value) {
  return Message().text(1, name).number(3, value).number(20, 2);
}
inline Message attribute(const std::string& name, const Dims& values) {
  Message out = Message().text(1, name).number(20, 7);
  for (const int64_t value : values) out.number(8, value);
  return out;
}
inline Message attribute(const std::string& name, const std::string& value) {
  return Message().text(1, name).text(4, value).number(20, 3);
}
inline Message graph_attribute(const std::string& name, const Message& graph) {
  return Message().text(1, name).message(6, graph).number(20, 5);
}

/// NodeProto, named `NAME_of_its_first_output`.
inline Message node(const std::string& op_type, const Names& inputs, const Names& outputs,
                    const std::vector<Message>& attributes = {}, const std::string& domain = "") {
  Message out;
  for (const std::string& name : inputs) out.text(1, name);
  for (const std::string& name : outputs) out.text(2, name);
  if (!outputs.empty()) out.text(3, "node_" + outputs[0]);
  out.text(4, op_type);
  for (const Message& one : attributes) out.message(5, one);
  if (!domain.empty()) out.text(7, domain);
  return out;
}

/// ValueInfoProto of a tensor.
inline Message value(const std::string& name, const Dims& dims, int type = kOnnxFloat) {
  Message shape;
  for (const int64_t dim : dims) shape.message(1, Message().number(1, dim));
  const Message tensor = Message().number(1, type).message(2, shape);
  return Message().text(1, name).message(2, Message().message(1, tensor));
}

/// TensorProto with raw data.
inline Message tensor(const std::string& name, const Dims& dims, const std::string& raw,
                      int type = kOnnxFloat) {
  Message out;
  for (const int64_t dim : dims) out.number(1, dim);
  return out.number(2, type).text(8, name).text(9, raw);
}

/// TensorProto whose bytes lie in another file.
inline Message external(const std::string& name, const Dims& dims, const std::string& location,
                        const std::string& offset = "", const std::string& length = "") {
  Message out;
  for (const int64_t dim : dims) out.number(1, dim);
  out.number(2, kOnnxFloat).text(8, name);
  const auto entry = [&](const char* key, const std::string& value) {
    if (!value.empty()) out.message(13, Message().text(1, key).text(2, value));
  };
  entry("location", location);
  entry("offset", offset);
  entry("length", length);
  return out.number(14, 1);
}

struct Graph {
  std::vector<Message> nodes, inputs, outputs, initializers = {};

  Message message() const {
    Message out = Message().text(2, "g");
    for (const Message& one : nodes) out.message(1, one);
    for (const Message& one : initializers) out.message(5, one);
    for (const Message& one : inputs) out.message(11, one);
    for (const Message& one : outputs) out.message(12, one);
    return out;
  }
};

/// A model file of opset 17 by default.
inline std::string model(const Graph& graph, int64_t opset = 17, int64_t ir_version = 8) {
  return Message()
      .number(1, ir_version)
      .message(8, Message().text(1, "").number(2, opset))
      .message(7, graph.message())
      .bytes();
}

/// One float input `x` and one output `y` round some nodes.
inline std::string model(const std::vector<Message>& nodes, const Dims& x = {2, 3},
                         const std::vector<Message>& initializers = {}) {
  return model(Graph{nodes, {value("x", x)}, {value("y", {})}, initializers});
}

}  // namespace tenon::bad_input
