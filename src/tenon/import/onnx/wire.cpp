// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/wire.h"

#include <cstdint>
#include <cstring>

namespace tenon::onnx {

namespace {

using Bytes = std::span<const std::byte>;

// Field numbers of onnx.proto.
constexpr uint64_t kModelGraph = 7, kGraphInitializer = 5, kTensorRawData = 9;
constexpr uint64_t kLengthDelimited = 2;
constexpr size_t kSmallest = 256;  // raw data below this stays where it is

struct Field {
  uint64_t number = 0, wire_type = 0;
  Bytes all;      // tag and value
  Bytes content;  // of a length-delimited one
};

// Reads the fields of one message in order.
class Reader {
 public:
  explicit Reader(Bytes bytes) : rest_(bytes) {}
  bool done() const { return rest_.empty(); }

  // False where the bytes are no field.
  bool next(Field& field) {
    const Bytes start = rest_;
    uint64_t tag = 0, value = 0;
    if (!varint(tag)) return false;
    field.number = tag >> 3;
    field.wire_type = tag & 7;
    field.content = {};
    switch (field.wire_type) {
      case 0:
        if (!varint(value)) return false;
        break;
      case 1:
        if (!skip(8)) return false;
        break;
      case kLengthDelimited:
        if (!varint(value) || value > rest_.size()) return false;
        field.content = rest_.first(static_cast<size_t>(value));
        rest_ = rest_.subspan(static_cast<size_t>(value));
        break;
      case 5:
        if (!skip(4)) return false;
        break;
      default: return false;  // groups: nothing that ONNX uses
    }
    field.all = start.first(start.size() - rest_.size());
    return true;
  }

 private:
  bool skip(size_t count) {
    if (count > rest_.size()) return false;
    rest_ = rest_.subspan(count);
    return true;
  }
  bool varint(uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return false;
      const auto byte = static_cast<uint64_t>(rest_.front());
      rest_ = rest_.subspan(1);
      value |= (byte & 127) << shift;
      if (byte < 128) return true;
    }
    return false;
  }
  Bytes rest_;
};

void append(std::string& out, Bytes bytes) {
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}
void append_message(std::string& out, uint64_t number, const std::string& content) {
  const auto varint = [&](uint64_t value) {
    for (; value >= 128; value >>= 7) out += static_cast<char>((value & 127) | 128);
    out += static_cast<char>(value);
  };
  varint(number << 3 | kLengthDelimited);
  varint(content.size());
  out += content;
}

// The tensor without its raw data, which goes to `raw`; nothing where it stays as it is.
std::optional<std::string> strip_tensor(Bytes tensor, Bytes& raw) {
  std::string out;
  bool found = false;
  Reader reader(tensor);
  for (Field field; !reader.done();) {
    if (!reader.next(field)) return std::nullopt;
    if (field.number == kTensorRawData) {
      if (found || field.wire_type != kLengthDelimited) return std::nullopt;
      found = true;
      raw = field.content;
    } else {
      append(out, field.all);
    }
  }
  if (!found || raw.size() < kSmallest) return std::nullopt;
  return out;
}

}  // namespace

std::optional<StrippedModel> strip_raw_data(Bytes model) {
  StrippedModel out;
  bool seen_graph = false;
  Reader top(model);
  for (Field field; !top.done();) {
    if (!top.next(field)) return std::nullopt;
    if (field.number != kModelGraph || field.wire_type != kLengthDelimited) {
      append(out.bytes, field.all);
      continue;
    }
    if (seen_graph) return std::nullopt;  // two that the parser would merge
    seen_graph = true;
    std::string graph;
    size_t position = 0;
    Reader inner(field.content);
    for (Field part; !inner.done();) {
      if (!inner.next(part)) return std::nullopt;
      if (part.number != kGraphInitializer || part.wire_type != kLengthDelimited) {
        append(graph, part.all);
        continue;
      }
      Bytes raw;
      if (const auto stripped = strip_tensor(part.content, raw)) {
        append_message(graph, kGraphInitializer, *stripped);
        out.raw_data.emplace(position, raw);
      } else {
        append(graph, part.all);
      }
      ++position;
    }
    append_message(out.bytes, kModelGraph, graph);
  }
  return out;
}

}  // namespace tenon::onnx
