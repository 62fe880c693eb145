// SPDX-License-Identifier: Apache-2.0
// Draws a memory plan: steps of the program from left to right, offsets from the bottom up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tenon/memory/bounds.h"
#include "tenon/memory/plan.h"

namespace tenon::memory {

/// What is drawn.
struct Picture {
  struct Block {
    std::string name, words;       // `words` go on after the name: "256 bytes at 0, of conv1"
    int64_t lower = 0, upper = 0;  // alive at the steps lower <= t < upper
    int64_t offset = 0, bytes = 0;
  };
  std::vector<Block> blocks;
  std::vector<Load> loads;  // bytes alive, as load_profile() gives them
  int64_t steps = 0;        // of the whole program
  int64_t peak = 0, bound = 0;
};

struct PictureOptions {
  int width = 960, height = 360;  // of the drawing's own coordinates; it is scaled to its place
  size_t max_blocks = 3000;       // the largest
};

/// An SVG element that needs nothing beside it: each block a rectangle whose title says what it is;
/// the bytes alive as a line; peak and lower bound as lines across, with their bytes. Texts are
/// escaped. Colours follow the scheme of the page, or of the reader's system. The same picture
/// gives the same text.
std::string picture_svg(const Picture& picture, const PictureOptions& options = {});

/// Of one pool of a plan.
Picture picture_of(const Problem& problem, const Plan& plan, int pool);

}  // namespace tenon::memory
