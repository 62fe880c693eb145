// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/report/graph_layout.h"

#include <algorithm>
#include <numeric>

namespace tenon {

namespace {

/// A box, or a point that an arrow passes in a layer between its ends.
struct Vertex {
  double width = 0, height = 0;
  size_t layer = 0;
  double x = 0;  // of its middle
  double weight = 1;
  std::vector<size_t> above, below;  // neighbours in the layers next to its own
};

// Boxes stand below one another before the arrows around them are straight.
constexpr double kPointWeight = 0.1;

class Layered {
 public:
  Layered(const std::vector<LayoutBox>& boxes, const std::vector<LayoutArrow>& arrows,
          const LayoutOptions& options)
      : options_(options), boxes_(boxes.size()) {
    for (const LayoutBox& box : boxes)
      vertices_.push_back({box.width, box.height, 0, 0, 1, {}, {}});
    find_layers(arrows);
    for (const LayoutArrow& arrow : arrows) add(arrow);
    fill_rows();
  }

  GraphLayout run(const std::vector<LayoutArrow>& arrows) {
    order_rows();
    place_columns();
    return result(arrows);
  }

 private:
  // By the longest way from a box without arrows to it; arrows that close a cycle are left out.
  void find_layers(const std::vector<LayoutArrow>& arrows) {
    std::vector<std::vector<size_t>> next(boxes_);
    std::vector<size_t> missing(boxes_, 0);
    for (const LayoutArrow& arrow : arrows) {
      if (arrow.from == arrow.to) continue;
      next[arrow.from].push_back(arrow.to);
      ++missing[arrow.to];
    }
    std::vector<bool> done(boxes_, false);
    std::vector<size_t> ready;
    size_t begin = 0, first_left = 0;
    const auto take = [&](size_t box) {
      done[box] = true;
      ready.push_back(box);
    };
    for (size_t box = 0; box < boxes_; ++box)
      if (missing[box] == 0) take(box);
    while (true) {
      for (; begin < ready.size(); ++begin)
        for (const size_t to : next[ready[begin]]) {
          if (done[to]) continue;
          vertices_[to].layer = std::max(vertices_[to].layer, vertices_[ready[begin]].layer + 1);
          if (--missing[to] == 0) take(to);
        }
      while (first_left < boxes_ && done[first_left]) ++first_left;
      if (first_left == boxes_) return;
      take(first_left);  // on a cycle
    }
  }

  void add(const LayoutArrow& arrow) {
    std::vector<size_t>& path = paths_.emplace_back();
    const size_t from = vertices_[arrow.from].layer, to = vertices_[arrow.to].layer;
    if (to <= from || to - from > options_.longest_detour) return;
    size_t last = arrow.from;
    for (size_t layer = from + 1; layer <= to; ++layer) {
      size_t vertex = arrow.to;
      if (layer < to) {
        vertex = vertices_.size();
        vertices_.push_back({1, 0, layer, 0, kPointWeight, {}, {}});
        path.push_back(vertex);
      }
      vertices_[last].below.push_back(vertex);
      vertices_[vertex].above.push_back(last);
      last = vertex;
    }
  }

  void fill_rows() {
    size_t layers = 0;
    for (const Vertex& vertex : vertices_) layers = std::max(layers, vertex.layer + 1);
    rows_.resize(layers);
    for (size_t i = 0; i < vertices_.size(); ++i) rows_[vertices_[i].layer].push_back(i);
  }

  static double mean(const std::vector<size_t>& neighbours, const std::vector<double>& place) {
    double sum = 0;
    for (const size_t neighbour : neighbours) sum += place[neighbour];
    return sum / static_cast<double>(neighbours.size());
  }

  void order_row(size_t layer, bool from_above, std::vector<double>& place) {
    std::vector<size_t>& row = rows_[layer];
    std::vector<std::pair<double, size_t>> keys;
    for (size_t i = 0; i < row.size(); ++i) {
      const Vertex& vertex = vertices_[row[i]];
      const std::vector<size_t>& near = from_above ? vertex.above : vertex.below;
      keys.emplace_back(near.empty() ? place[row[i]] : mean(near, place), i);
    }
    std::sort(keys.begin(), keys.end());
    std::vector<size_t> sorted;
    for (const auto& [key, i] : keys) sorted.push_back(row[i]);
    row = std::move(sorted);
    set_places(layer, place);
  }

  // As shares of the row, so that rows of different lengths can be compared.
  void set_places(size_t layer, std::vector<double>& place) const {
    const std::vector<size_t>& row = rows_[layer];
    for (size_t i = 0; i < row.size(); ++i)
      place[row[i]] = (static_cast<double>(i) + 0.5) / static_cast<double>(row.size());
  }

  void order_rows() {
    std::vector<double> place(vertices_.size(), 0);
    for (size_t layer = 0; layer < rows_.size(); ++layer) set_places(layer, place);
    for (int sweep = 0; sweep < options_.sweeps; ++sweep) {
      for (size_t layer = 1; layer < rows_.size(); ++layer) order_row(layer, true, place);
      for (size_t layer = rows_.size(); layer-- > 0;) order_row(layer, false, place);
    }
    for (size_t layer = 1; layer < rows_.size(); ++layer) order_row(layer, true, place);
  }

  // The middles nearest to the wanted ones (least squares) that keep the order and the gaps.
  void place_row(size_t layer, bool from_above) {
    struct Run {
      double sum, weight;
      size_t count;
      double mean() const { return sum / weight; }
    };
    const std::vector<size_t>& row = rows_[layer];
    std::vector<double> shift(row.size(), 0);
    std::vector<Run> runs;
    for (size_t i = 0; i < row.size(); ++i) {
      const Vertex& vertex = vertices_[row[i]];
      if (i > 0)
        shift[i] =
            shift[i - 1] + (vertices_[row[i - 1]].width + vertex.width) / 2 + options_.column_gap;
      const std::vector<size_t>& near = from_above ? vertex.above : vertex.below;
      double wanted = vertex.x;
      if (!near.empty()) {
        double sum = 0, weight = 0;
        for (const size_t neighbour : near) {
          sum += vertices_[neighbour].x * vertices_[neighbour].weight;
          weight += vertices_[neighbour].weight;
        }
        wanted = sum / weight;
      }
      runs.push_back({(wanted - shift[i]) * vertex.weight, vertex.weight, 1});
      while (runs.size() > 1 && runs[runs.size() - 2].mean() >= runs.back().mean()) {
        Run& before = runs[runs.size() - 2];
        before.sum += runs.back().sum;
        before.weight += runs.back().weight;
        before.count += runs.back().count;
        runs.pop_back();
      }
    }
    size_t i = 0;
    for (const Run& run : runs)
      for (size_t end = i + run.count; i < end; ++i) vertices_[row[i]].x = run.mean() + shift[i];
  }

  void place_columns() {
    for (const std::vector<size_t>& row : rows_) {
      double x = 0;
      for (const size_t vertex : row) {
        vertices_[vertex].x = x + vertices_[vertex].width / 2;
        x += vertices_[vertex].width + options_.column_gap;
      }
    }
    for (int sweep = 0; sweep < options_.sweeps; ++sweep) {
      for (size_t layer = 1; layer < rows_.size(); ++layer) place_row(layer, true);
      for (size_t layer = rows_.size(); layer-- > 0;) place_row(layer, false);
    }
    for (size_t layer = 1; layer < rows_.size(); ++layer) place_row(layer, true);
  }

  GraphLayout result(const std::vector<LayoutArrow>& arrows) const {
    GraphLayout out;
    double left = 0, right = 0;
    for (size_t i = 0; i < vertices_.size(); ++i) {
      const double half = vertices_[i].width / 2;
      left = i == 0 ? vertices_[i].x - half : std::min(left, vertices_[i].x - half);
      right = i == 0 ? vertices_[i].x + half : std::max(right, vertices_[i].x + half);
    }
    std::vector<double> top(rows_.size(), 0), tall(rows_.size(), 0);
    double y = 0;
    for (size_t layer = 0; layer < rows_.size(); ++layer) {
      for (const size_t vertex : rows_[layer])
        tall[layer] = std::max(tall[layer], vertices_[vertex].height);
      top[layer] = y;
      y += tall[layer] + options_.row_gap;
    }
    out.width = right - left;
    out.height = rows_.empty() ? 0 : y - options_.row_gap;
    const auto point = [&](size_t vertex, double below) {
      return LayoutPoint{vertices_[vertex].x - left, top[vertices_[vertex].layer] + below};
    };
    for (size_t i = 0; i < boxes_; ++i) {
      const LayoutPoint middle = point(i, 0);
      out.boxes.push_back({middle.x - vertices_[i].width / 2, middle.y});
    }
    for (size_t i = 0; i < arrows.size(); ++i) {
      std::vector<LayoutPoint>& path = out.paths.emplace_back();
      path.push_back(point(arrows[i].from, vertices_[arrows[i].from].height));
      for (const size_t vertex : paths_[i]) {
        path.push_back(point(vertex, 0));
        path.push_back(point(vertex, tall[vertices_[vertex].layer]));
      }
      path.push_back(point(arrows[i].to, 0));
    }
    return out;
  }

  const LayoutOptions& options_;
  size_t boxes_;                            // the first vertices
  std::vector<Vertex> vertices_;            //
  std::vector<std::vector<size_t>> rows_;   // vertices of each layer, from left to right
  std::vector<std::vector<size_t>> paths_;  // the points that each arrow passes
};

}  // namespace

GraphLayout lay_out(const std::vector<LayoutBox>& boxes, const std::vector<LayoutArrow>& arrows,
                    const LayoutOptions& options) {
  return Layered(boxes, arrows, options).run(arrows);
}

}  // namespace tenon
