// SPDX-License-Identifier: Apache-2.0
// Operators that change shapes and order: reshape, transpose, concatenation, slices, padding.
#include <algorithm>

#include "tenon/arith/analyzer.h"
#include "tenon/import/relay/operators.h"

namespace tenon::relay {

namespace {

// Relay's rules: 0 keeps a dimension, -1 is inferred, -2 keeps all that are left, -3 joins two,
// -4 splits one into the two numbers that follow.
Dims target_shape(OpCall& c, const Dims& from, const Ints& target) {
  Dims out;
  std::optional<size_t> open;
  size_t next = 0;
  const auto take = [&]() -> Expr {
    if (next >= from.size())
      c.bad(kShapeMismatch, "`{}` of shape {} to {}: there are too few dimensions", c.name(),
            str(from), AttrValue(target).str());
    return from[next++];
  };
  for (size_t i = 0; i < target.size(); ++i) {
    const int64_t dim = target[i];
    if (dim > 0) {
      out.push_back(int64(dim));
      if (next < from.size()) ++next;
    } else if (dim == 0) {
      out.push_back(take());
    } else if (dim == -1) {
      if (open)
        c.bad(kShapeMismatch, "`{}` to {} has two dimensions of -1", c.name(),
              AttrValue(target).str());
      open = out.size();
      out.push_back(int64(1));
      if (next < from.size()) ++next;
    } else if (dim == -2) {
      while (next < from.size()) out.push_back(from[next++]);
    } else if (dim == -3) {
      const Expr a = take(), b = take();
      out.push_back(arith::simplify(a * b));
    } else if (dim == -4 && i + 2 < target.size()) {
      const Expr whole = take();
      int64_t a = target[i + 1], b = target[i + 2];
      i += 2;
      if ((a < 1 && a != -1) || (b < 1 && b != -1) || (a == -1 && b == -1))
        c.bad(kShapeMismatch, "`{}` to {} splits a dimension into {} and {}", c.name(),
              AttrValue(target).str(), a, b);
      const Expr known = int64(a == -1 ? b : a);
      const Expr rest = graph::exact_quotient({whole}, {known});
      out.push_back(a == -1 ? rest : int64(a));
      out.push_back(b == -1 ? rest : int64(b));
    } else {
      c.bad(kShapeMismatch, "`{}` to {}: {} is none of Relay's dimensions", c.name(),
            AttrValue(target).str(), dim);
    }
  }
  if (open) {
    Dims rest = out;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(*open));
    if (is_int(graph::product(rest), 0))
      c.bad(kShapeMismatch, "`{}` to {} cannot infer the dimension of -1", c.name(),
            AttrValue(target).str());
    out[*open] = graph::exact_quotient(from, rest);
  }
  const auto total = as_int(graph::product(from)), all = as_int(graph::product(out));
  if (total && all && *total != *all)
    c.bad(kShapeMismatch, "`{}` of shape {} to {}: {} and {} elements", c.name(), str(from),
          AttrValue(target).str(), *total, *all);
  return out;
}

Value convert_reshape(OpCall& c) {
  c.ignore({"reverse"});
  const Ints target =
      c.has("newshape") || c.count() < 2 ? c.list("newshape") : c.ints(1, "newshape");
  if (c.flag("allowzero", false)) unsupported("allowzero=True");
  return c.reshape(c.arg(0), target_shape(c, c.shape(0), target));
}

// The rules hold from the last dimension on.
Value convert_reverse_reshape(OpCall& c) {
  c.ignore({"reverse"});
  Ints target = c.list("newshape");
  for (const int64_t dim : target)
    if (dim == -4) unsupported("newshape with -4");
  Dims from = c.shape(0);
  std::reverse(target.begin(), target.end());
  std::reverse(from.begin(), from.end());
  Dims dims = target_shape(c, from, target);
  std::reverse(dims.begin(), dims.end());
  return c.reshape(c.arg(0), dims);
}

Value convert_reshape_like(OpCall& c) {
  if (c.integer("lhs_begin", 0) != 0 || c.has("lhs_end") || c.integer("rhs_begin", 0) != 0 ||
      c.has("rhs_end"))
    unsupported("part of the dimensions");
  return c.reshape(c.arg(0), c.shape(1));
}

Value convert_batch_flatten(OpCall& c) {
  const Dims shape = c.shape(0);
  if (shape.empty()) c.bad(kRankMismatch, "`{}` of a tensor of rank 0", c.name());
  return c.reshape(c.arg(0), {shape[0], graph::product({shape.begin() + 1, shape.end()})});
}

Value convert_transpose(OpCall& c) {
  const int64_t ndim = c.ndim(0);
  Ints axes = c.axes(c.list("axes", Ints{}), ndim);
  if (axes.empty())
    for (int64_t d = ndim; d-- > 0;) axes.push_back(d);
  if (static_cast<int64_t>(axes.size()) != ndim)
    c.bad(kBadAttribute, "attribute `axes` of `{}` has {} numbers; expected {}", c.name(),
          axes.size(), ndim);
  return c.transpose(c.arg(0), axes);
}

Value convert_expand_dims(OpCall& c) {
  const int64_t ndim = c.ndim(0), count = c.integer("num_newaxis", 1);
  const int64_t given = c.integer("axis");
  constexpr int64_t kMost = 32;
  if (given < -ndim - 1 || given > ndim || count < 0 || count > kMost)
    c.bad(kBadAttribute, "`{}` at axis {}, {} times, of a tensor of rank {}", c.name(), given,
          count, ndim);
  const int64_t axis = given < 0 ? given + ndim + 1 : given;
  Dims dims = c.shape(0);
  dims.insert(dims.begin() + axis, static_cast<size_t>(count), int64(1));
  return c.reshape(c.arg(0), dims);
}

Value convert_squeeze(OpCall& c) {
  const Dims from = c.shape(0);
  const bool given = c.has("axis");
  const Ints axes = c.axes(c.list("axis", Ints{}), c.ndim(0));
  Dims dims;
  for (size_t d = 0; d < from.size(); ++d) {
    const bool named = std::count(axes.begin(), axes.end(), static_cast<int64_t>(d)) != 0;
    if (!(given ? named : is_int(from[d], 1))) {
      dims.push_back(from[d]);
      continue;
    }
    if (as_int(from[d]) && !is_int(from[d], 1))
      c.bad(kShapeMismatch, "`{}` of axis {} of shape {}, which is not 1", c.name(), d, str(from));
    if (!as_int(from[d])) unsupported("an axis of symbolic extent {}", str(from[d]));
  }
  return c.reshape(c.arg(0), dims);
}

Value convert_concatenate(OpCall& c) {
  std::vector<Value> parts = c.items(0);
  if (parts.empty()) c.bad(kBadArgument, "`{}` of no tensors", c.name());
  const int64_t axis = c.axis(c.integer("axis", 0), shaped(parts[0])->ndim);
  if (parts.size() == 1) return parts[0];
  return c.op("concat", {make<graph::Tuple>(std::move(parts))}, {{"axis", axis}});
}

Value convert_stack(OpCall& c) {
  std::vector<Value> parts;
  int64_t axis = 0;
  for (const Value& item : c.items(0)) {
    Dims dims = *shaped(item)->shape;
    axis = c.axis(c.integer("axis", 0), static_cast<int64_t>(dims.size()) + 1);
    dims.insert(dims.begin() + axis, int64(1));
    parts.push_back(c.reshape(item, dims));
  }
  if (parts.empty()) c.bad(kBadArgument, "`stack` of no tensors");
  if (parts.size() == 1) return parts[0];
  return c.op("concat", {make<graph::Tuple>(std::move(parts))}, {{"axis", axis}});
}

// A number of equal parts, or the places of the cuts.
Value convert_split(OpCall& c) {
  const int64_t axis = c.axis(c.integer("axis", 0), c.ndim(0));
  const Ints cuts = c.list("indices_or_sections");
  const bool listed = c.is_list("indices_or_sections");
  if (!listed && cuts[0] < 1) c.bad(kBadAttribute, "`split` into {} parts", cuts[0]);
  const Expr extent = c.shape(0)[static_cast<size_t>(axis)];
  const auto known = as_int(extent);
  if (!listed && known && *known % cuts[0] != 0)
    c.bad(kShapeMismatch, "`split` of an axis of {} into {} equal parts", *known, cuts[0]);
  if (!listed && cuts[0] == 1) return make<graph::Tuple>(std::vector<Value>{c.arg(0)});
  const AttrValue parts = listed ? AttrValue(cuts) : AttrValue(cuts[0]);
  return c.op("split", {c.arg(0)}, {{"indices_or_sections", parts}, {"axis", axis}});
}

Value convert_tile(OpCall& c) { return c.op("tile", {c.arg(0)}, {{"repeats", c.list("reps")}}); }

Value convert_repeat(OpCall& c) {
  const AttrValue axis =
      c.has("axis") ? AttrValue(c.axis(c.integer("axis"), c.ndim(0))) : AttrValue();
  return c.op("repeat", {c.arg(0)}, {{"repeats", c.integer("repeats")}, {"axis", axis}});
}

Value convert_reverse(OpCall& c) {
  return c.op("flip", {c.arg(0)}, {{"axis", c.axis(c.integer("axis"), c.ndim(0))}});
}

Value convert_broadcast_to(OpCall& c) {
  c.ignore({"dtype"});
  const Ints shape = c.has("shape") || c.count() < 2 ? c.list("shape") : c.ints(1, "shape");
  const Dims dims = to_exprs(shape);
  if (arith::proves_equal(c.shape(0), dims)) return c.arg(0);
  return c.op("broadcast_to", {c.arg(0), OpCall::shape_value(dims)});
}

Value convert_broadcast_to_like(OpCall& c) {
  if (arith::proves_equal(c.shape(0), c.shape(1))) return c.arg(0);
  return c.op("broadcast_to", {c.arg(0), OpCall::shape_value(c.shape(1))});
}

// begin and end of each of `axes`, or of the first axes; `slice_mode` "size" gives extents for
// ends.
Value convert_strided_slice(OpCall& c) {
  const Dims shape = c.shape(0);
  const auto bound = [&](const char* name, size_t operand) {
    return c.count() > operand ? c.ints(operand, name) : c.list(name, Ints{});
  };
  Ints begin = bound("begin", 1), end = bound("end", 2), strides = bound("strides", 3);
  Ints axes = c.axes(c.list("axes", Ints{}), c.ndim(0));
  const bool sizes = c.text("slice_mode", "end") == "size";
  const size_t count = std::max(begin.size(), end.size());
  if (axes.empty())
    for (size_t d = 0; d < count; ++d) axes.push_back(static_cast<int64_t>(d));
  if (count > shape.size() || axes.size() != count ||
      (strides.size() > 1 && strides.size() != count))
    c.bad(kBadAttribute,
          "`strided_slice` with {} begins, {} ends, {} strides and {} axes of a "
          "tensor of rank {}",
          begin.size(), end.size(), strides.size(), axes.size(), shape.size());
  constexpr int64_t kEnd = int64_t{1} << 40;
  if (strides.empty()) strides = {1};
  if (strides.size() == 1) strides.resize(count, strides[0]);
  for (const int64_t stride : strides)
    if (stride == 0) c.bad(kBadAttribute, "`strided_slice` with a stride of 0");
  const auto held = [&](int64_t v) { return std::clamp(v, -kEnd, kEnd); };
  for (int64_t& value : begin) value = held(value);
  for (int64_t& value : end) value = held(value);
  begin.resize(count, 0);
  if (sizes) {
    strides.assign(count, 1);
    end.resize(count, -1);
    for (size_t d = 0; d < count; ++d) {
      if (begin[d] < 0) unsupported("slice_mode \"size\" from the end");
      end[d] = end[d] < 0 ? kEnd : begin[d] + end[d];
    }
  }
  for (size_t d = end.size(); d < count; ++d) end.push_back(strides[d] > 0 ? kEnd : -kEnd);
  // Bounds beyond a known axis print as its ends.
  for (size_t d = 0; d < count; ++d) {
    const auto extent = as_int(shape[static_cast<size_t>(axes[d])]);
    if (!extent || strides[d] < 0) continue;
    begin[d] = std::clamp(begin[d], -*extent, *extent);
    end[d] = std::clamp(end[d], -*extent, *extent);
  }
  const auto list = [](const Ints& values) { return OpCall::shape_value(to_exprs(values)); };
  return c.op("strided_slice", {c.arg(0), list(axes), list(begin), list(end), list(strides)});
}

// The leading part of the first operand that has the second's extents.
Value convert_slice_like(OpCall& c) {
  const Dims from = c.shape(0), like = c.shape(1);
  Ints axes = c.axes(c.list("axes", Ints{}), c.ndim(0));
  if (axes.empty()) {
    if (from.size() != like.size())
      c.bad(kRankMismatch, "`slice_like` of tensors of rank {} and {}", from.size(), like.size());
    for (size_t d = 0; d < from.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  }
  Dims begin(axes.size(), int64(0)), end, ones(axes.size(), int64(1));
  for (const int64_t a : axes) {
    if (static_cast<size_t>(a) >= like.size())
      c.bad(kRankMismatch, "`slice_like` of axis {} like a tensor of rank {}", a, like.size());
    end.push_back(like[static_cast<size_t>(a)]);
  }
  return c.op("strided_slice",
              {c.arg(0), OpCall::shape_value(to_exprs(axes)), OpCall::shape_value(begin),
               OpCall::shape_value(end), OpCall::shape_value(ones)});
}

Value convert_pad(OpCall& c) {
  const auto widths = c.pairs("pad_width");
  if (static_cast<int64_t>(widths.size()) != 2 * c.ndim(0))
    c.bad(kBadAttribute, "attribute `pad_width` of `nn.pad` has {} pairs; expected {}",
          widths.size() / 2, c.ndim(0));
  std::string mode = c.text("pad_mode", "constant");
  const double value = c.count() > 1 ? c.float_scalar(1, "pad_value") : c.real("pad_value", 0);
  return c.op("nn.pad", {c.arg(0)},
              {{"pad_width", widths}, {"pad_mode", mode}, {"pad_value", value}});
}

Value convert_mirror_pad(OpCall& c) {
  const std::string mode = c.text("mode", "SYMMETRIC");
  if (mode != "REFLECT") unsupported("mode \"{}\"", mode);
  return c.op("nn.pad", {c.arg(0)}, {{"pad_width", c.pairs("pad_width")}, {"pad_mode", "reflect"}});
}

Value convert_layout_transform(OpCall& c) {
  const std::string from = c.text("src_layout", ""), to = c.text("dst_layout", "");
  if (from == to) return c.arg(0);
  return c.op("layout_transform", {c.arg(0)}, {{"src_layout", from}, {"dst_layout", to}});
}

Value convert_depth_to_space(OpCall& c) {
  if (c.text("layout", "NCHW") != "NCHW") unsupported("layout \"{}\"", c.text("layout", "NCHW"));
  return c.op("nn.depth_to_space", {c.arg(0)},
              {{"block_size", c.integer("block_size")}, {"mode", c.text("mode", "DCR")}});
}

Value convert_space_to_depth(OpCall& c) {
  if (c.text("layout", "NCHW") != "NCHW") unsupported("layout \"{}\"", c.text("layout", "NCHW"));
  return c.op("nn.space_to_depth", {c.arg(0)}, {{"block_size", c.integer("block_size")}});
}

}  // namespace

std::vector<OperatorRow> shape_rows() {
  return {
      {"reshape", 1, 2, convert_reshape, "reshape", "newshape with 0, -1, -2, -3, -4; constant"},
      {"dyn.reshape", 2, 2, convert_reshape, "reshape", "newshape a constant"},
      {"contrib_reverse_reshape", 1, 1, convert_reverse_reshape, "reshape", "not -4"},
      {"reshape_like", 2, 2, convert_reshape_like, "reshape", "all dimensions"},
      {"nn.batch_flatten", 1, 1, convert_batch_flatten, "reshape"},
      {"transpose", 1, 1, convert_transpose, "permute_dims"},
      {"expand_dims", 1, 1, convert_expand_dims, "reshape"},
      {"squeeze", 1, 1, convert_squeeze, "reshape"},
      {"concatenate", 1, 1, convert_concatenate, "concat"},
      {"stack", 1, 1, convert_stack, "reshape, concat"},
      {"split", 1, 1, convert_split, "split, a tuple"},
      {"tile", 1, 1, convert_tile},
      {"repeat", 1, 1, convert_repeat},
      {"reverse", 1, 1, convert_reverse, "flip"},
      {"broadcast_to", 1, 2, convert_broadcast_to, "broadcast_to", "shape a constant"},
      {"dyn.broadcast_to", 2, 2, convert_broadcast_to, "broadcast_to", "shape a constant"},
      {"broadcast_to_like", 2, 2, convert_broadcast_to_like, "broadcast_to"},
      {"strided_slice", 1, 4, convert_strided_slice, "strided_slice", "constant bounds"},
      {"dyn.strided_slice", 4, 4, convert_strided_slice, "strided_slice", "constant bounds"},
      {"slice_like", 2, 2, convert_slice_like, "strided_slice"},
      {"nn.pad", 1, 2, convert_pad, "nn.pad", "a constant value"},
      {"nn.mirror_pad", 1, 1, convert_mirror_pad, "nn.pad", "mode REFLECT"},
      {"layout_transform", 1, 1, convert_layout_transform},
      {"nn.depth_to_space", 1, 1, convert_depth_to_space, "nn.depth_to_space", "layout NCHW"},
      {"nn.space_to_depth", 1, 1, convert_space_to_depth, "nn.space_to_depth", "layout NCHW"},
  };
}

}  // namespace tenon::relay
