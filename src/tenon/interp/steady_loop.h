// SPDX-License-Identifier: Apache-2.0
// Innermost loops without branches. Their first iteration runs as written; later ones skip
// loop-invariant values and advance addresses by strides.
#pragma once

#include "tenon/interp/frame.h"

namespace tenon::interp {

/// Gives a steady form to the innermost loops that have one.
void find_steady_loops(Code& code);

/// Points the cursors at the elements of the iteration behind the one that the slots are of. False
/// where one of them may leave its memory within `left` iterations, or a store may change an
/// element that is kept in a slot.
bool open_cursors(const Code& code, const SteadyLoop& loop, Machine::Frame& frame, int64_t left);

}  // namespace tenon::interp
