// SPDX-License-Identifier: Apache-2.0
// Which accesses of a function lie inside of their buffers: proved inside, proved outside in an
// iteration that happens, or neither.
//
// An access is judged where it stands: with the loops around it, the values of the axes, and what
// branches, predicates, assertions and `and`, `or`, `T.if_then_else` before it say. Both sides of a
// `T.Select` are evaluated, so its condition says nothing of them. What is known of an element of
// memory holds until something may write there. Dimensions are at least 0; where the fault is
// shown, at least 1, in loops that run.
#pragma once

#include <functional>
#include <string>

#include "tenon/support/access_codes.h"
#include "tenon/support/diagnostics.h"
#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// One expression that must lie in a range, where it was not proved to.
struct AccessCheck {
  enum class Kind : uint8_t {
    kIndex,    // 0 <= index < extent
    kRegion,   // 0 <= index and index + length <= extent
    kDivisor,  // index != 0, of an integer division or remainder
    kShift,    // 0 <= index < extent, the bits of what is shifted
    kView,     // index <= extent: elements that a view takes, and that what it shows has
    kPointer,  // 0 <= index, 0 <= length, index + length <= extent: elements behind a pointer
    kWhole,    // memory that a C function is given without an end: nothing is known of what it does
  };
  Kind kind = Kind::kIndex;
  NodePtr node =
      {};  // BufferLoad, BufferStore, BufferRegion, Binary, Call; of a view what makes it
  Ref<Buffer> buffer = {};  // of an index or region; the view
  size_t dim = 0;
  Expr index = {}, length = {}, extent = {};
  Origin origin = {};
  bool masked = false;  // an index of T.masked_load or T.masked_store
  bool fails = false;   // proved outside in an iteration that happens; else not proved inside
  // Where it fails: the index or region there, and the iteration ("i = 0, j = 7"; empty where the
  // index names nothing that runs).
  std::string value = {}, extent_value = {}, iteration = {};
};

/// Calls `see` for each access of `function` that is not proved inside, in order.
void find_unproved(const PrimFunc& function, const std::function<void(const AccessCheck&)>& see);

/// "index i + 1 of dimension 0 of buffer `x`", "region 4:i + 8 of ...", "divisor `n - 1`".
std::string subject_of(const AccessCheck& check);
/// Reports a check of function `in` that fails.
void report(const AccessCheck& check, const std::string& in, Diagnostics& diagnostics);

}  // namespace tenon::tir
