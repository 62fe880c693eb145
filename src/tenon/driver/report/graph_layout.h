// SPDX-License-Identifier: Apache-2.0
// Places boxes and arrows of a directed graph in layers, from the top down.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace tenon {

struct LayoutBox {
  double width = 0, height = 0;
};

/// From one box to another: indices.
struct LayoutArrow {
  size_t from, to;
};

struct LayoutPoint {
  double x, y;
};

struct GraphLayout {
  double width = 0, height = 0;
  std::vector<LayoutPoint> boxes;               // their upper left corners
  std::vector<std::vector<LayoutPoint>> paths;  // of the arrows: first, between layers, last
};

struct LayoutOptions {
  double column_gap = 24, row_gap = 44;
  int sweeps = 12;
  /// Arrows over more layers than this are drawn straight.
  size_t longest_detour = 400;
};

/// Layers by the longest way to each box; within a layer, boxes are ordered by their neighbours'
/// places, then moved to them (Sugiyama, Tagawa and Toda, IEEE Trans. Syst. Man Cybern. 11(2), 1981;
/// places by isotonic regression). An arrow that closes a cycle, or leads to its own box, counts
/// for nothing but its path. The same graph gives the same layout.
GraphLayout lay_out(const std::vector<LayoutBox>& boxes, const std::vector<LayoutArrow>& arrows,
                    const LayoutOptions& options = {});

}  // namespace tenon
