// SPDX-License-Identifier: Apache-2.0
// Taps of convolutions that meet zeros of the padding only.
#pragma once

#include "tenon/graph/op.h"

namespace tenon::graph {

/// A convolution of planar data of known extents and constant weights without the taps at the ends of
/// an axis that never meet data, and with as much less padding. Null where there are none.
Value without_padding_taps(const Call& conv);

}  // namespace tenon::graph
