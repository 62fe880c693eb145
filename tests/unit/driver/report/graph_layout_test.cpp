// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/report/graph_layout.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

constexpr LayoutBox kBox{100, 40};

// No two boxes overlap, and none lies outside of the drawing.
void expect_apart(const GraphLayout& layout, const std::vector<LayoutBox>& boxes) {
  for (size_t i = 0; i < boxes.size(); ++i) {
    const LayoutPoint a = layout.boxes[i];
    EXPECT_GE(a.x, -1e-6);
    EXPECT_GE(a.y, -1e-6);
    EXPECT_LE(a.x + boxes[i].width, layout.width + 1e-6);
    EXPECT_LE(a.y + boxes[i].height, layout.height + 1e-6);
    for (size_t k = i + 1; k < boxes.size(); ++k) {
      const LayoutPoint b = layout.boxes[k];
      const bool apart = a.x + boxes[i].width <= b.x + 1e-6 || b.x + boxes[k].width <= a.x + 1e-6 ||
                         a.y + boxes[i].height <= b.y + 1e-6 || b.y + boxes[k].height <= a.y + 1e-6;
      EXPECT_TRUE(apart) << i << " and " << k;
    }
  }
}

TEST(GraphLayout, AChainIsAStraightLine) {
  const std::vector<LayoutBox> boxes(4, kBox);
  const std::vector<LayoutArrow> arrows = {{0, 1}, {1, 2}, {2, 3}};
  const GraphLayout layout = lay_out(boxes, arrows);
  expect_apart(layout, boxes);
  for (size_t i = 1; i < boxes.size(); ++i) {
    EXPECT_NEAR(layout.boxes[i].x, layout.boxes[0].x, 1e-6);
    EXPECT_GT(layout.boxes[i].y, layout.boxes[i - 1].y + kBox.height);
  }
  ASSERT_EQ(layout.paths.size(), 3U);
  EXPECT_NEAR(layout.paths[0].front().y, layout.boxes[0].y + kBox.height, 1e-6);
  EXPECT_NEAR(layout.paths[0].back().y, layout.boxes[1].y, 1e-6);
}

// A skip connection goes around the boxes that it skips.
TEST(GraphLayout, LongArrowsPassBetweenBoxes) {
  const std::vector<LayoutBox> boxes(4, kBox);
  const std::vector<LayoutArrow> arrows = {{0, 1}, {1, 2}, {2, 3}, {0, 3}};
  const GraphLayout layout = lay_out(boxes, arrows);
  expect_apart(layout, boxes);
  const std::vector<LayoutPoint>& path = layout.paths[3];
  ASSERT_EQ(path.size(), 6U);  // two layers between
  for (size_t i = 1; i + 1 < path.size(); ++i)
    for (const size_t box : {size_t{1}, size_t{2}}) {
      const LayoutPoint at = layout.boxes[box];
      const bool inside = path[i].x > at.x && path[i].x < at.x + kBox.width && path[i].y >= at.y &&
                          path[i].y <= at.y + kBox.height;
      EXPECT_FALSE(inside);
    }
}

TEST(GraphLayout, ADiamondCrossesNothing) {
  const std::vector<LayoutBox> boxes(6, kBox);
  // Two branches of two, whose second boxes are given in the other order.
  const std::vector<LayoutArrow> arrows = {{0, 1}, {0, 2}, {1, 4}, {2, 3}, {3, 5}, {4, 5}};
  const GraphLayout layout = lay_out(boxes, arrows);
  expect_apart(layout, boxes);
  EXPECT_EQ(layout.boxes[1].x < layout.boxes[2].x, layout.boxes[4].x < layout.boxes[3].x);
}

TEST(GraphLayout, CyclesAndLoopsEnd) {
  const std::vector<LayoutBox> boxes(3, kBox);
  const std::vector<LayoutArrow> arrows = {{0, 1}, {1, 2}, {2, 0}, {1, 1}};
  const GraphLayout layout = lay_out(boxes, arrows);
  expect_apart(layout, boxes);
  EXPECT_EQ(layout.paths.size(), 4U);
}

TEST(GraphLayout, NothingHasNoSize) {
  const GraphLayout layout = lay_out({}, {});
  EXPECT_EQ(layout.width, 0);
  EXPECT_EQ(layout.height, 0);
}

TEST(GraphLayout, TheSameGraphGivesTheSamePlaces) {
  std::vector<LayoutBox> boxes;
  std::vector<LayoutArrow> arrows;
  for (size_t i = 0; i < 200; ++i) {
    boxes.push_back(
        {80.0 + static_cast<double>(i * 7 % 50), 30.0 + static_cast<double>(i % 3) * 16});
    if (i > 0) arrows.push_back({i * 3 / 4, i});
    if (i > 9) arrows.push_back({i - 9, i});
  }
  const GraphLayout layout = lay_out(boxes, arrows), again = lay_out(boxes, arrows);
  expect_apart(layout, boxes);
  for (size_t i = 0; i < boxes.size(); ++i) {
    EXPECT_EQ(layout.boxes[i].x, again.boxes[i].x);
    EXPECT_EQ(layout.boxes[i].y, again.boxes[i].y);
  }
  for (const LayoutArrow& arrow : arrows)
    EXPECT_LT(layout.boxes[arrow.from].y, layout.boxes[arrow.to].y);
}

}  // namespace
}  // namespace tenon
