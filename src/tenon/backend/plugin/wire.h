// SPDX-License-Identifier: Apache-2.0
// Serialises matches and answers for back ends in another process. The bytes may come from anyone:
// every length is checked before it is used.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tenon/backend/plugin/answer.h"
#include "tenon/backend/plugin/match.h"

namespace tenon::plugin {

/// Bytes that cannot be what they should be.
struct BadWire {};

class WireWriter {
 public:
  template <typename T>
    requires std::is_arithmetic_v<T>
  void put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(std::string_view text) {
    put(static_cast<uint64_t>(text.size()));
    bytes_ += text;
  }
  void put(const std::string& text) { put(std::string_view(text)); }
  void put(const char* text) { put(std::string_view(text)); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, raw(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view text() { return raw(number<uint64_t>()); }
  std::string string() { return std::string(text()); }
  /// A number of items, each of one byte at least.
  size_t count() {
    const auto items = number<uint64_t>();
    if (items > rest_.size()) throw BadWire();
    return static_cast<size_t>(items);
  }
  bool done() const { return rest_.empty(); }

 private:
  std::string_view raw(uint64_t size) {
    if (size > rest_.size()) throw BadWire();
    const std::string_view out = rest_.substr(0, static_cast<size_t>(size));
    rest_.remove_prefix(static_cast<size_t>(size));
    return out;
  }
  std::string_view rest_;
};

void put(WireWriter& out, const Attrs& attrs);
Attrs read_attrs(WireReader& in);

/// Without the data of constants, of which it says only that there is some.
void put(WireWriter& out, const TenonMatch& match);
std::unique_ptr<TenonMatch> read_match_bytes(WireReader& in);

/// What a callback handed over.
void put(WireWriter& out, const TenonAnswer& answer);
/// Hands it over to `answer` by the host's own functions, so that the same rules hold.
void replay(WireReader& in, TenonAnswer& answer);

}  // namespace tenon::plugin
