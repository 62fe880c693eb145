// SPDX-License-Identifier: Apache-2.0
// One run of a function: its slots and views.
#pragma once

#include "tenon/interp/machine.h"

namespace tenon::interp {

/// Where a view's elements are, for accesses whose indices are known to be inside.
struct Base {
  std::byte* load = nullptr;   // the first element; null: the view may leave its memory
  std::byte* store = nullptr;  // the same; null also where it is a constant
  uint8_t* written = nullptr;  // beside `load`; null: all is written
};

/// An element that the next iteration of a steady loop accesses.
struct Cursor {
  std::byte* at = nullptr;
  uint8_t* written = nullptr;  // null: all is written
  int64_t stride = 0;

  void next() {
    at += stride;
    if (written) written += stride;
  }
};

struct Machine::Frame {
  std::unique_ptr<Slot[]> memory;  // not initialised but for constants
  Slot* slots;
  std::vector<View> views;
  std::vector<Base> bases;
  std::vector<Cursor> cursors;  // of the steady loop that runs
  std::vector<std::pair<std::shared_ptr<Memory>, int64_t>> pointers;

  explicit Frame(const Code& code)
      : memory(new Slot[static_cast<size_t>(code.slots) + 1]),
        slots(memory.get()),
        views(code.views.size()),
        bases(code.views.size()),
        cursors(code.cursors) {
    std::copy(code.constants_in_slots.begin(), code.constants_in_slots.end(), slots);
  }

  void set_view(int32_t index, View&& view) {
    const auto at = static_cast<size_t>(index);
    bases[at] = base_of(view);
    views[at] = std::move(view);
  }

 private:
  static Base base_of(const View& view) {
    Memory& memory = *view.memory;
    int64_t first = 0, last = 0;  // elements
    for (size_t d = 0; d < view.shape.size(); ++d) {
      if (view.shape[d] == 0) return {};
      const int64_t reach = (view.shape[d] - 1) * view.strides[d];
      (reach < 0 ? first : last) += reach;
    }
    const int64_t bytes = view.dtype.bytes(), start = view.offset;
    if (start + first * bytes < 0 ||
        start + (last + 1) * bytes > static_cast<int64_t>(memory.bytes.size()))
      return {};
    Base base;
    base.load = memory.bytes.data() + start;
    base.store = memory.read_only ? nullptr : base.load;
    base.written = memory.written.empty() ? nullptr : memory.written.data() + start;
    return base;
  }
};

[[noreturn]] void out_of_bounds(const View& view, size_t dim, int64_t index, const Origin& origin);

}  // namespace tenon::interp
