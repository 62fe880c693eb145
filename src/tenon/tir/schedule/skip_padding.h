// SPDX-License-Identifier: Apache-2.0
// Sums of products without the steps whose products are with zeros of a padding.
#pragma once

#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// `scheduled` with loops over taps that go from the first to the last one that meets data, where a
/// quarter of their steps at least meet none: those of wide dilations, or of small pictures. Zeros are
/// taken to give zeros, as they do with finite weights.
/// \param definition  the function before it was scheduled, with the same buffers: its paddings are
///                    single blocks
Ref<PrimFunc> skip_padding(const Ref<PrimFunc>& scheduled, const PrimFunc& definition);

}  // namespace tenon::tir
