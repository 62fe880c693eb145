// SPDX-License-Identifier: Apache-2.0
#include "tenon/memory/picture.h"

#include <gtest/gtest.h>

#include <regex>

namespace tenon::memory {
namespace {

size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

Problem small_problem() {
  Problem problem;
  problem.buffers = {{"a", 100, 1, 0, 3}, {"b", 50, 1, 1, 4}, {"c", 100, 1, 3, 5}};
  return problem;
}

TEST(Picture, HasARectangleForEachBufferWithWhatItIs) {
  const Problem problem = small_problem();
  const Plan planned = plan(problem);
  const Picture picture = picture_of(problem, planned, 0);
  EXPECT_EQ(picture.peak, 150);
  EXPECT_EQ(picture.bound, 150);
  EXPECT_EQ(picture.steps, 5);
  const std::string svg = picture_svg(picture);
  EXPECT_EQ(count(svg, "<rect class=\"m-block"), 3U);
  EXPECT_NE(svg.find("<title>a: 100 bytes at " + std::to_string(planned.offsets[0]) +
                     "; steps 0 to 2</title>"),
            std::string::npos)
      << svg;
  EXPECT_NE(svg.find(">peak 150 bytes<"), std::string::npos);
  EXPECT_NE(svg.find(">lower bound 150 bytes<"), std::string::npos);
}

// Two buffers that live at once never overlap in the drawing either.
TEST(Picture, PlacesAreThoseOfThePlan) {
  Picture picture;
  picture.steps = 10;
  picture.peak = 400;
  picture.blocks = {{"low", "", 0, 5, 0, 100}, {"high", "", 0, 10, 100, 300}};
  const std::string svg = picture_svg(picture);
  const std::regex rect(
      "<rect class=\"m-block[^>]* x=\"([0-9.]+)\" y=\"([0-9.]+)\" width=\"([0-9.]+)\" "
      "height=\"([0-9.]+)\"");
  std::vector<std::array<double, 4>> found;
  for (std::sregex_iterator it(svg.begin(), svg.end(), rect), end; it != end; ++it)
    found.push_back(
        {std::stod((*it)[1]), std::stod((*it)[2]), std::stod((*it)[3]), std::stod((*it)[4])});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NEAR(found[1][2], 2 * found[0][2], 0.05);            // twice as long
  EXPECT_NEAR(found[1][3], 3 * found[0][3], 0.05);            // three times as large
  EXPECT_NEAR(found[1][1] + found[1][3], found[0][1], 0.05);  // on top of the other
  EXPECT_NEAR(found[0][0], found[1][0], 0.05);
}

TEST(Picture, NamesAreEscaped) {
  Picture picture;
  picture.steps = 1;
  picture.peak = 8;
  picture.blocks = {{"</svg><script>alert(1)</script>", "\"<b>\"", 0, 1, 0, 8}};
  const std::string svg = picture_svg(picture);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("<b>"), std::string::npos);
  EXPECT_EQ(count(svg, "</svg>"), 1U);
  EXPECT_NE(svg.find("&lt;/svg&gt;&lt;script&gt;alert(1)"), std::string::npos);
}

TEST(Picture, NothingIsDrawnAsNothing) {
  const std::string svg = picture_svg(Picture());
  EXPECT_NE(svg.find("nothing is allocated"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Picture, OfManyBuffersTheLargestAreDrawn) {
  Picture picture;
  picture.steps = 100;
  picture.peak = 1000;
  for (int i = 0; i < 100; ++i)
    picture.blocks.push_back({"b" + std::to_string(i), "", i, i + 1, 0, i + 1});
  const std::string svg = picture_svg(picture, {.max_blocks = 10});
  EXPECT_EQ(count(svg, "<rect class=\"m-block"), 10U);
  EXPECT_NE(svg.find("<title>b99:"), std::string::npos);
  EXPECT_EQ(svg.find("<title>b5:"), std::string::npos);
  EXPECT_NE(svg.find("90 small buffers are not drawn"), std::string::npos);
}

}  // namespace
}  // namespace tenon::memory
