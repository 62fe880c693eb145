// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/layout_choice.h"

#include <algorithm>

#include "tenon/tir/analysis/lane_lookup.h"
#include "tenon/tir/schedule/machine_model.h"

namespace tenon::tir {

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

ConvLayout choose_conv_layout(const ConvShape& shape, const Target& target) {
  const int64_t lanes = target.vector_lanes(shape.element_bits);
  const int64_t groups = shape.groups > 0 ? shape.groups : 1;
  const int64_t group_in = shape.in_channels / groups, group_out = shape.out_channels / groups;
  ConvLayout layout;
  layout.block = layout.input_block = lanes;
  if (groups > 1 && group_in == 1 && group_out == 1) {
    if (shape.in_channels * 2 < lanes) return {};
    layout.kind = ConvLayout::Kind::kDepthwise;
    return layout;
  }
  if (groups > 1 && (group_in % lanes != 0 || group_out % lanes != 0)) return {};
  if (group_out * 2 < lanes) return {};
  const bool is_few = shape.in_channels <= machine_model(target).planar_channels;
  layout.kind =
      is_few && shape.word == 1 ? ConvLayout::Kind::kPlanarInput : ConvLayout::Kind::kBlocked;
  if (is_few && shape.word > 1) layout.input_block = shape.word;
  const int64_t window = shape.kernel_depth * shape.kernel_height * shape.kernel_width;
  const bool planar = layout.kind == ConvLayout::Kind::kPlanarInput;
  const bool flat =
      window == 1 && shape.stride_depth == 1 && shape.stride_height == 1 && shape.stride_width == 1;
  std::vector<int64_t> reduction = {group_in, shape.kernel_depth, shape.kernel_height,
                                    shape.kernel_width};
  if (!planar) {
    reduction[0] = ceil_div(group_in, layout.input_block);
    reduction.push_back(layout.input_block / shape.word);
  }
  TileProblem problem = contraction(reduction, lanes * shape.element_bits / 8);
  problem.height = flat ? 1 : shape.out_height;
  problem.width = flat ? shape.out_height * shape.out_width : shape.out_width;
  problem.vectors = ceil_div(group_out, lanes);
  problem.stride = shape.stride_width;
  problem.window = window > 1;
  const TileChoice choice = choose_tile(problem, target);
  layout.tile = choice.tile;
  layout.weight_group = choice.tile.vectors;
  // The weights of two widths have no common panel: they stay single vectors.
  if (groups == 1 && problem.height * problem.width > 1 &&
      even_vectors(problem, choice, target) > 0)
    layout.weight_group = 1;
  return layout;
}

int64_t choose_panel_width(int64_t m, int64_t n, int64_t k, const Target& target,
                           int element_bits) {
  const MachineModel& model = machine_model(target);
  const int64_t lanes = target.vector_lanes(element_bits);
  TileProblem problem = contraction({k > 0 ? k : model.unknown_depth}, lanes * element_bits / 8);
  problem.width = m;
  problem.vectors = n > 0 ? ceil_div(n, lanes) : 0;
  problem.vectors_divide = false;
  if (m == 1) {
    // Bound by reading B: wide panels keep many loads in flight. All are about as wide: of a last
    // panel that is nearly empty, every row would be a cache line far from the one before.
    if (problem.vectors == 0) return lanes * model.row_vectors;
    return lanes * ceil_div(problem.vectors, ceil_div(problem.vectors, model.row_vectors));
  }
  return lanes * choose_tile(problem, target).tile.vectors;
}

bool packs_words(const Target& target) { return has_lane_lookup(target); }

bool takes_digits(const Target& target) {
  return target.kind == "llvm" && target.is_x86() && target.vector_bits >= 512 &&
         target.has("avx512vnni");
}

}  // namespace tenon::tir
