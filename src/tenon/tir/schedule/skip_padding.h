// SPDX-License-Identifier: Apache-2.0
// Sums of products without the steps whose products are with zeros of a padding.
#pragma once

#include <vector>

#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// Attribute of a PrimFunc: the numbers of parameters whose elements are known to be finite. What
/// DefaultSchedule schedules loses it.
inline constexpr char kFiniteParams[] = "tir.finite_params";

/// The floating-point parameters that have to be finite before `skip_padding` leaves out a loop's
/// steps: those that elements of a padding are multiplied with, by taps that often meet no data.
std::vector<int64_t> factors_of_padding(const PrimFunc& definition);

/// `scheduled` with loops over taps that go from the first to the last one that meets data, where a
/// quarter of their steps at least meet none: those of wide dilations, or of small pictures. Only
/// where the other factor of their products is known to be finite: an integer, a constant, or a
/// parameter of `kFiniteParams`. A zero times what is not finite is NaN.
/// \param definition  the function before it was scheduled, with the same buffers: its paddings are
///                    single blocks
Ref<PrimFunc> skip_padding(const Ref<PrimFunc>& scheduled, const PrimFunc& definition);

}  // namespace tenon::tir
