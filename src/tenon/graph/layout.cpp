// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/layout.h"

#include <algorithm>

namespace tenon::graph {

std::optional<Layout> Layout::parse(const std::string& text) {
  Layout layout;
  layout.text_ = text;
  int64_t number = 0;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      number = number * 10 + (c - '0');
      if (number > 65536) return std::nullopt;
    } else if (c >= 'A' && c <= 'Z') {
      if (number != 0 || layout.has(c)) return std::nullopt;
      layout.axes_.push_back({c, 0});
    } else if (c >= 'a' && c <= 'z') {
      const char capital = static_cast<char>(c - 'a' + 'A');
      if (number < 1 || layout.inner_position(capital) >= 0) return std::nullopt;
      layout.axes_.push_back({capital, number});
      number = 0;
    } else {
      return std::nullopt;
    }
  }
  if (number != 0) return std::nullopt;
  for (const Axis& axis : layout.axes_)
    if (axis.block && !layout.has(axis.letter)) return std::nullopt;
  return layout;
}

int Layout::find(char letter, bool inner) const {
  for (size_t i = 0; i < axes_.size(); ++i)
    if (axes_[i].letter == letter && (axes_[i].block != 0) == inner) return static_cast<int>(i);
  return -1;
}

int64_t Layout::block(char letter) const {
  const int inner = inner_position(letter);
  return inner < 0 ? 1 : axes_[static_cast<size_t>(inner)].block;
}

std::string Layout::primal() const {
  std::string out;
  for (const Axis& axis : axes_)
    if (!axis.block) out += axis.letter;
  return out;
}

Expr Layout::extent(const std::vector<Expr>& shape, char letter) const {
  return shape.at(static_cast<size_t>(position(letter))) * block(letter);
}

std::vector<Expr> Layout::index(const std::string& letters,
                                const std::vector<Expr>& indices) const {
  std::vector<Expr> out;
  for (const Axis& axis : axes_) {
    const size_t i = letters.find(axis.letter);
    const Expr& whole = indices.at(i);
    const int64_t size = block(axis.letter);
    out.push_back(axis.block ? floormod(whole, size) : floordiv(whole, size));
  }
  return out;
}

Expr Layout::coordinate(const std::vector<Expr>& at, char letter) const {
  const Expr& outer = at.at(static_cast<size_t>(position(letter)));
  const int inner = inner_position(letter);
  return inner < 0 ? outer : outer * block(letter) + at.at(static_cast<size_t>(inner));
}

std::vector<Expr> Layout::shape(const std::string& letters,
                                const std::vector<Expr>& extents) const {
  std::vector<Expr> out;
  for (const Axis& axis : axes_) {
    const Expr& whole = extents.at(letters.find(axis.letter));
    out.push_back(axis.block ? int64(axis.block) : ceildiv(whole, int64(block(axis.letter))));
  }
  return out;
}

}  // namespace tenon::graph
