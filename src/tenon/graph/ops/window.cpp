// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/ops/window.h"

#include <algorithm>

#include "tenon/graph/assumed_dims.h"

namespace tenon::graph {

std::string spatial_letters(size_t rank) { return std::string("DHW").substr(3 - rank); }

Layout parse_layout(const Call& call, const std::string& attr, const std::string& text,
                    const std::string& letters) {
  auto layout = Layout::parse(text);
  std::string axes = layout ? layout->primal() : "";
  std::string wanted = letters;
  std::sort(axes.begin(), axes.end());
  std::sort(wanted.begin(), wanted.end());
  if (!layout || axes != wanted)
    throw CompileError(kBadAttribute, call.origin,
                       "attribute `{}` of `{}` is \"{}\"; expected a layout of the axes {}", attr,
                       call.op->name, text, letters);
  return *layout;
}

std::vector<int64_t> along_axes(const Call& call, const std::string& name,
                                std::vector<int64_t> values, size_t rank, int64_t least) {
  if (values.size() == 1) values.assign(rank, values[0]);
  if (values.size() != rank || std::any_of(values.begin(), values.end(), [&](int64_t v) {
        return v < least || v > int64_t{1} << 30;
      }))
    throw CompileError(kBadAttribute, call.origin,
                       "attribute `{}` of `{}` is {}; expected {} numbers, each at least {}", name,
                       call.op->name, call.attrs.find(name)->str(), rank, least);
  return values;
}

bool Padding::any() const {
  const auto nonzero = [](int64_t v) { return v != 0; };
  return std::any_of(before.begin(), before.end(), nonzero) ||
         std::any_of(after.begin(), after.end(), nonzero);
}

Padding padding_of(const Call& call, const std::vector<int64_t>& values, size_t rank) {
  const bool fits = values.size() == 1 || values.size() == rank || values.size() == 2 * rank;
  if (!fits || std::any_of(values.begin(), values.end(),
                           [](int64_t v) { return v < 0 || v > int64_t{1} << 30; }))
    throw CompileError(kBadAttribute, call.origin,
                       "attribute `padding` of `{}` is {}; expected 1, {} or {} numbers, none "
                       "below 0",
                       call.op->name, AttrValue(values).str(), rank, 2 * rank);
  Padding out;
  for (size_t i = 0; i < rank; ++i) {
    out.before.push_back(values[values.size() == 1 ? 0 : i]);
    out.after.push_back(values[values.size() == 1 ? 0 : values.size() == rank ? i : rank + i]);
  }
  return out;
}

Expr AxisIndex::outer_of(int64_t size) const {
  if (size == block) return outer;
  if (inner && size % block == 0) return floordiv(outer, size / block);
  return floordiv(whole(), size);
}
Expr AxisIndex::inner_of(int64_t size) const {
  if (size == block && inner) return inner;
  if (inner && size % block == 0) return floormod(outer, size / block) * block + inner;
  return floormod(whole(), size);
}

AxisIndex axis_index(const Layout& layout, const Indices& at, char letter) {
  AxisIndex index;
  index.outer = at.at(static_cast<size_t>(layout.position(letter)));
  index.block = layout.block(letter);
  const int inner = layout.inner_position(letter);
  if (inner >= 0) index.inner = at.at(static_cast<size_t>(inner));
  return index;
}

Indices join_index(const Layout& layout, const std::map<char, AxisIndex>& along) {
  Indices out;
  for (const Layout::Axis& axis : layout.axes()) {
    const AxisIndex& index = along.at(axis.letter);
    out.push_back(axis.block ? index.inner_of(axis.block)
                             : index.outer_of(layout.block(axis.letter)));
  }
  return out;
}

Operand padded(KernelOf& kernel, const Operand& x, const Layout& layout,
               const std::vector<Expr>& before, const std::vector<Expr>& extents, const Expr& value,
               const std::vector<int64_t>& stride) {
  const std::string letters = spatial_letters(before.size());
  std::vector<Expr> shape = x.shape;
  bool changes = false;
  for (size_t d = 0; d < before.size(); ++d) {
    Expr& dim = shape[static_cast<size_t>(layout.position(letters[d]))];
    changes = changes || !is_int(before[d], 0) || dims_agree(dim, extents[d]) != DimsAgree::kYes ||
              (!stride.empty() && stride[d] != 1);
    dim = extents[d];
  }
  if (!changes) return x;
  return kernel.compute("pad_temp", shape, [&](const Indices& i) {
    Indices at = i;
    Expr inside = boolean(true);
    for (size_t d = 0; d < before.size(); ++d) {
      const auto axis = static_cast<size_t>(layout.position(letters[d]));
      const int64_t step = stride.empty() ? 1 : stride[d];
      const Expr offset = i[axis] - before[d];
      at[axis] = floordiv(offset, step);
      // A condition for each side on which something was added.
      if (as_int(before[d]).value_or(1) > 0) inside = logical_and(inside, offset >= int64(0));
      if (dims_agree(extents[d], x.shape[axis] * step - (step - 1) + before[d]) != DimsAgree::kYes)
        inside = logical_and(inside, at[axis] < x.shape[axis]);
      if (step != 1) inside = logical_and(inside, eq(floormod(offset, step), int64(0)));
    }
    return if_then_else(inside, x(at), tenon::cast(x.dtype, value));
  });
}

Expr window_count(const Call& call, const Expr& extent, int64_t before, int64_t after,
                  const Expr& size, int64_t stride, int64_t dilation, bool ceil_mode) {
  const Expr room = extent + (before + after) - (size - 1) * dilation - 1;
  const Expr left = simplify_dim(room);
  const auto known = as_int(left);
  if (!known || *known < 0) {
    const std::string problem =
        fmt::format("a window of `{}` covers {}, more than the {} of its axis with padding",
                    call.op->name, tenon::str(simplify_dim((size - 1) * dilation + 1)),
                    tenon::str(simplify_dim(extent + (before + after))));
    if (known) throw CompileError(kShapeMismatch, call.origin, "{}", problem);
    assume(left >= int64(0), problem);
  }
  if (!ceil_mode) return simplify_dim(floordiv(room, stride) + 1);
  // The last window must begin inside the tensor or the padding before it.
  const Expr rounded = floordiv(room + (stride - 1), stride) + 1;
  return simplify_dim(min(rounded, floordiv(extent + (before - 1), stride) + 1));
}

Indices apart(Expr flat, const std::vector<Expr>& extents) {
  Indices out(extents.size());
  for (size_t d = extents.size(); d-- > 0;) {
    out[d] = d == 0 ? flat : floormod(flat, extents[d]);
    flat = floordiv(flat, extents[d]);
  }
  return out;
}

}  // namespace tenon::graph
