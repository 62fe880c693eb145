// SPDX-License-Identifier: Apache-2.0
#include "tenon/interp/code.h"

#include <algorithm>
#include <tuple>

#include "tenon/ir/visit.h"
#include "tenon/support/content_hash.h"

namespace tenon::interp {

namespace {

template <typename T, typename Same>
bool all_same(const std::vector<T>& a, const std::vector<T>& b, const Same& same) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

// Slots are compared by their bits.
auto key_of(const Instr& i) {
  return std::tuple(i.op, i.code, i.lanes, i.dtype, i.dtype2, i.dst, i.a, i.b, i.c, i.immediate.i);
}
auto key_of(const Access& a) {
  return std::tuple(a.view, a.base, a.step, a.factor, a.offset, a.lane_stride, a.element);
}
auto key_of(const Code::DimCheck& c) { return std::tuple(c.param, c.dim, c.slot); }

bool same_views(const ViewInfo& a, const ViewInfo& b) {
  return a.has_strides == b.has_strides && a.has_offset == b.has_offset &&
         a.buffer->dtype == b.buffer->dtype && a.buffer->ndim() == b.buffer->ndim() &&
         a.buffer->is_compact() == b.buffer->is_compact() &&
         as_ints(a.buffer->shape) == as_ints(b.buffer->shape);
}

}  // namespace

bool same_code(const Code& a, const Code& b) {
  const auto by_key = [](const auto& x, const auto& y) { return key_of(x) == key_of(y); };
  return a.calls.empty() && b.calls.empty() && a.opaque_calls.empty() && b.opaque_calls.empty() &&
         a.watches.empty() && b.watches.empty() && a.slots == b.slots &&
         a.result_slot == b.result_slot && a.param_view == b.param_view &&
         a.param_slot == b.param_slot && a.functions == b.functions && a.tables == b.tables &&
         a.messages == b.messages && all_same(a.instrs, b.instrs, by_key) &&
         all_same(a.accesses, b.accesses, by_key) && all_same(a.checks, b.checks, by_key) &&
         all_same(a.constants_in_slots, b.constants_in_slots,
                  [](Slot x, Slot y) { return x.i == y.i; }) &&
         all_same(a.views, b.views, same_views) &&
         all_same(a.constants, b.constants,
                  [](const auto& x, const auto& y) { return structural_equal(x, y); });
}

uint64_t hash_of(const Code& code) {
  ContentHasher hasher;
  for (const Instr& i : code.instrs) {
    hasher.add((int64_t{static_cast<uint8_t>(i.op)} << 32) | i.c);
    hasher.add((int64_t{i.a} << 32) | i.b);
  }
  for (const Slot& slot : code.constants_in_slots) hasher.add(slot.i);
  return hasher.digest()[0];
}

}  // namespace tenon::interp
