// SPDX-License-Identifier: Apache-2.0
#include "tenon/ir/node.h"

#include <bit>
#include <cstring>
#include <mutex>

namespace tenon {

void set_height(Node& node) {
  uint32_t tallest = 0;
  for (const FieldInfo& field : node.type().fields) {
    if (!field.ops->holds_nodes) continue;
    field.ops->visit(field.address(node), [&](const NodePtr& member) {
      if (member.get()->height() > tallest) tallest = member.get()->height();
    });
  }
  node.height_ = static_cast<uint16_t>(tallest + 1);
  if (node.height_ > kMaxHeight)
    throw CompileError(kTooDeep, node.origin, "`{}` nests {} levels deep; at most {} are accepted",
                       node.type().name, node.height_, kMaxHeight);
}

void claim_tag(uint16_t tag, std::string_view name) {
  static std::mutex mutex;
  static std::map<uint16_t, std::string_view> names;
  const std::lock_guard lock(mutex);
  const auto [it, is_new] = names.emplace(tag, name);
  check(is_new || it->second == name,
        fmt::format("`{}` and `{}` state one kind of node", it->second, name));
}

uint64_t hash_bytes(const void* data, size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint64_t h = 0xcbf29ce484222325ULL ^ bytes;
  for (; bytes >= 8; bytes -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    h = hash_combine(h, word);
  }
  uint64_t tail = 0;
  std::memcpy(&tail, p, bytes);
  return hash_combine(h, tail);
}

bool FieldTraits<double>::equal(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (a != a && b != b);
}
uint64_t FieldTraits<double>::hash(double m) {
  return m != m ? 0x7ff8ULL : std::bit_cast<uint64_t>(m);
}
std::string FieldTraits<double>::text(double m) { return fmt::format("{}", m); }

}  // namespace tenon
