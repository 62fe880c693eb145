// SPDX-License-Identifier: Apache-2.0
// Layouts of tensors by name: "NCHW", "NHWC", "NCHW16c" (channels in blocks of 16 that lie last),
// "OIHW16i16o". A capital letter is an axis; a number with a small letter is the part of that axis
// below the block's size, whose capital then counts blocks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tenon/ir/expr.h"

namespace tenon::graph {

class Layout {
 public:
  struct Axis {
    char letter;    // capital
    int64_t block;  // 0: the (outer part of the) axis itself; else the size of the inner part
  };

  /// Nothing where `text` is no layout: a letter twice, a part without its axis, a block below 1.
  static std::optional<Layout> parse(const std::string& text);

  const std::string& text() const { return text_; }
  const std::vector<Axis>& axes() const { return axes_; }
  size_t ndim() const { return axes_.size(); }
  /// Where the axis, or its inner part, stands; -1 where it does not.
  int position(char letter) const { return find(letter, false); }
  int inner_position(char letter) const { return find(letter, true); }
  bool has(char letter) const { return position(letter) >= 0; }
  /// Size of the inner part; 1 where the axis is not split.
  int64_t block(char letter) const;
  /// The axes without inner parts, in order: "NCHW" of "NCHW16c".
  std::string primal() const;
  bool operator==(const Layout& other) const { return text_ == other.text_; }

  /// The whole extent of an axis of a tensor of this layout (blocks times their size).
  Expr extent(const std::vector<Expr>& shape, char letter) const;
  /// The index of the element whose index along each axis of `letters` is `indices`.
  std::vector<Expr> index(const std::string& letters, const std::vector<Expr>& indices) const;
  /// The index along `letter` of the element at `at`.
  Expr coordinate(const std::vector<Expr>& at, char letter) const;
  /// The shape of a tensor whose axes `letters` have `extents`; blocks are rounded up.
  std::vector<Expr> shape(const std::string& letters, const std::vector<Expr>& extents) const;

 private:
  int find(char letter, bool inner) const;
  std::string text_;
  std::vector<Axis> axes_;
};

}  // namespace tenon::graph
