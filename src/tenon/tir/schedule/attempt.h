// SPDX-License-Identifier: Apache-2.0
// Trying a change of a schedule that may be refused. Internal to the default schedule.
#pragma once

#include <optional>
#include <utility>

#include "tenon/support/codes.h"
#include "tenon/tir/schedule/schedule.h"

namespace tenon::tir {

/// Applies `change`, which changes `schedule`. \returns nothing where it did; where a primitive
/// refuses (kScheduleIllegal), why: the schedule is then as before. Every other error is a fault of
/// the module or of the compiler, and gets out.
template <typename F>
std::optional<Diagnostic> refusal_of(Schedule& schedule, const F& change) {
  Schedule before = schedule;
  try {
    change();
    return std::nullopt;
  } catch (const CompileError& error) {
    if (error.first().code.id != kScheduleIllegal.id) throw;
    schedule = std::move(before);
    return error.first();
  }
}

/// Whether `change` was applied.
template <typename F>
bool attempt(Schedule& schedule, const F& change) {
  return !refusal_of(schedule, change);
}

}  // namespace tenon::tir
