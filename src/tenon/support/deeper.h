// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon {

/// One level more for as long as it lives, exceptions included.
struct Deeper {
  explicit Deeper(int& depth) : depth(depth) { ++depth; }
  ~Deeper() { --depth; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  int& depth;
};

}  // namespace tenon
