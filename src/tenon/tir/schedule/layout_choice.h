// SPDX-License-Identifier: Apache-2.0
// The layouts that the default schedule prefers, as pure functions of shapes and target, so that
// ConvertLayout and the schedule agree.
#pragma once

#include <cstdint>

#include "tenon/support/target.h"
#include "tenon/tir/schedule/tile_rules.h"

namespace tenon::tir {

/// What is known of a convolution, of three spatial axes at most; an extent that is symbolic is 0.
struct ConvShape {
  int64_t batch = 1;
  int64_t in_channels = 1, out_channels = 1, groups = 1;
  int64_t out_height = 0, out_width = 0;
  int64_t kernel_depth = 1, kernel_height = 1, kernel_width = 1;
  int64_t stride_depth = 1, stride_height = 1, stride_width = 1;
  int element_bits = 32;  // of the result
  int64_t word = 1;       // input channels in an element of the data: 4 of 8 bits, or 1
};

/// How a convolution wants its operands. V is `block`:
///  - blocked activations: [N, ceil(C / V), H, W, V], pad lanes zero;
///  - planar activations: [N, C, H, W];
///  - weights, dense (blocked input): [ceil(OC/V) / G][ceil(IC/V)][KH][KW][V of IC][G * V of OC],
///    with G = `weight_group`: O[n, ob, h, w, oi] += P[n, ib, .., ii] *
///    W[ob // G, ib, kh, kw, ii, ob % G * V + oi]. Grouped convolutions: IC is that of a group.
///  - weights, planar input: [ceil(OC/V) / G][IC][KH][KW][G * V];
///  - weights, depthwise: [ceil(C/V)][KH][KW][V].
/// Pad lanes of weights are zero, in both directions, so pad lanes of outputs are what the epilogue
/// makes of 0: a reader of blocked activations must not let pad lanes count (zero weights do that).
struct ConvLayout {
  enum class Kind : uint8_t {
    kPlain,        // NCHW in and out, OIHW weights: too few channels for vectors
    kPlanarInput,  // NCHW in, blocked out (first layers of 1 to 4 channels)
    kBlocked,      // blocked in and out
    kDepthwise,    // blocked in and out, one input channel for each output channel
  };
  Kind kind = Kind::kPlain;
  int64_t block = 1;
  int64_t input_block = 1;   // channels to a block of the data; of words 4 where there are few
  int64_t weight_group = 1;  // vectors of `tile`
  Tile tile;                 // that DefaultSchedule plans for a dense convolution of this layout
};

ConvLayout choose_conv_layout(const ConvShape& shape, const Target& target);

/// Columns NR of the panels in which a constant B of a product [M, K] x [K, N] is packed:
/// [ceil(N / NR)][K][NR], pad lanes zero; C[m, n] += A[m, k] * B[n // NR, k, n % NR]. A multiple of
/// the target's lanes. Unknown extents are 0.
int64_t choose_panel_width(int64_t m, int64_t n, int64_t k, const Target& target,
                           int element_bits = 32);

/// Whether numbers of a few bits are packed in words, the lanes of a vector each: where floats are
/// made of them by looking up their lowest bits (tir/analysis/lane_lookup.h). Elsewhere bytes are,
/// which are widened as they are loaded.
bool packs_words(const Target& target);

/// Whether products of floats with numbers of a few bits are sums of products of 8 bits (nn.digits):
/// where one instruction adds four of them to each lane of a vector of 512 bits. [int4 weights from beyond
/// the second cache: 25 GB/s by one core in the place of 16]
bool takes_digits(const Target& target);

}  // namespace tenon::tir
