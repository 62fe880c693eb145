// SPDX-License-Identifier: Apache-2.0
#include "protobuf_mutator.h"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace tenon::fuzz {

namespace {

constexpr uint32_t kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;
constexpr int kDeepest = 24;

struct Field;
using Message = std::vector<Field>;

struct Field {
  uint32_t number = 0, wire_type = kVarint;
  uint64_t value = 0;                   // of kVarint
  std::string bytes = {};               // of the others
  std::optional<Message> message = {};  // in place of `bytes`
};

// Bytes are taken for a message where they can be one; a name of two letters may be one too, and is
// mutated as one at times.
class Parser {
 public:
  explicit Parser(std::string_view bytes) : rest_(bytes) {}

  std::optional<Message> message(int depth) {
    Message out;
    while (!rest_.empty()) {
      Field field;
      uint64_t tag = 0, length = 0;
      if (!varint(tag) || tag >> 3 == 0 || tag >> 32 != 0) return std::nullopt;
      field.number = static_cast<uint32_t>(tag >> 3);
      field.wire_type = static_cast<uint32_t>(tag & 7);
      switch (field.wire_type) {
        case kVarint:
          if (!varint(field.value)) return std::nullopt;
          break;
        case kFixed64: length = 8; break;
        case kFixed32: length = 4; break;
        case kBytes:
          if (!varint(length)) return std::nullopt;
          break;
        default: return std::nullopt;
      }
      if (length > rest_.size()) return std::nullopt;
      field.bytes = rest_.substr(0, length);
      rest_.remove_prefix(length);
      if (field.wire_type == kBytes && !field.bytes.empty() && depth < kDeepest)
        field.message = Parser(field.bytes).message(depth + 1);
      out.push_back(std::move(field));
    }
    return out;
  }

 private:
  bool varint(uint64_t& value) {
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return true;
    }
    return false;
  }
  std::string_view rest_;
};

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

std::string serialize(const Message& message) {
  std::string out;
  for (const Field& field : message) {
    put_varint(out, uint64_t{field.number} << 3 | field.wire_type);
    if (field.wire_type == kVarint) {
      put_varint(out, field.value);
      continue;
    }
    const std::string bytes = field.message ? serialize(*field.message) : field.bytes;
    if (field.wire_type == kBytes) put_varint(out, bytes.size());
    out += bytes;
  }
  return out;
}

/// Where a field stands.
struct Place {
  Message* message;
  size_t index;
  Field& field() const { return (*message)[index]; }
};

void find_places(Message& message, std::vector<Place>& out) {
  for (size_t i = 0; i < message.size(); ++i) {
    out.push_back({&message, i});
    if (message[i].message) find_places(*message[i].message, out);
  }
}

void mutate_number(uint64_t& value, std::minstd_rand& random) {
  static constexpr uint64_t kNumbers[] = {
      0, 1, 2, 3, 7, 9, 10, 11, 16, 64, 1 << 16, 1U << 31, 1ULL << 32, 1ULL << 62, 1ULL << 63};
  switch (random() % 4) {
    case 0: value += 1; break;
    case 1: value -= 1; break;
    case 2: value = -kNumbers[random() % std::size(kNumbers)]; break;
    default: value = kNumbers[random() % std::size(kNumbers)];
  }
}

}  // namespace

std::string mutate_message(const std::string& bytes, const std::string& other, size_t room,
                           uint32_t seed, const MutateBytes& mutate_bytes) {
  std::minstd_rand random(seed);
  auto root = Parser(bytes).message(0);
  if (!root || root->empty()) return {};
  auto second = Parser(other).message(0);
  std::vector<Place> places, sources;
  find_places(*root, places);
  if (second) find_places(*second, sources);
  if (sources.empty()) sources = places;
  const auto any = [&](const std::vector<Place>& list) { return list[random() % list.size()]; };

  const Place place = any(places);
  Message& message = *place.message;
  Field& field = place.field();
  const auto at = message.begin() + static_cast<std::ptrdiff_t>(place.index);
  switch (random() % 8) {
    case 0: message.erase(at); break;
    case 1: message.insert(at, Field(field)); break;
    case 2: std::swap(field, message[random() % message.size()]); break;
    case 3: {  // a field of the same kind takes its place
      std::vector<Place> alike;
      for (const Place& source : sources)
        if (source.field().number == field.number && source.field().wire_type == field.wire_type)
          alike.push_back(source);
      if (!alike.empty()) field = Field(any(alike).field());
      break;
    }
    case 4: message.insert(at, Field(any(sources).field())); break;
    default:
      if (field.wire_type == kVarint) {
        mutate_number(field.value, random);
      } else if (!field.message || random() % 16 == 0) {
        std::string content = field.message ? serialize(*field.message) : field.bytes;
        const size_t size = content.size();
        mutate_bytes(content, size + (field.wire_type == kBytes ? 64 : 0));
        if (field.wire_type != kBytes) content.resize(size);
        field.message.reset();
        field.bytes = std::move(content);
      } else {
        message.insert(at, Field(any(sources).field()));
      }
  }
  std::string out = serialize(*root);
  if (out.size() > room) out.clear();
  return out;
}

}  // namespace tenon::fuzz
