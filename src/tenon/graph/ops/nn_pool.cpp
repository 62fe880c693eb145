// SPDX-License-Identifier: Apache-2.0
// Pooling over one to three spatial axes.
#include <cmath>

#include "tenon/graph/ops/window.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

enum class PoolKind : uint8_t { kMax, kAverage, kLp };

struct PoolAttrs {
  std::vector<int64_t> pool_size = {1}, strides = {1}, padding = {0}, dilation = {1};
  bool ceil_mode = false, count_include_pad = false;
  std::string layout, out_layout;
  static auto table() {
    return std::tuple{
        attr<&PoolAttrs::pool_size>("pool_size", "of a window"),
        attr<&PoolAttrs::strides>("strides", "between windows"),
        attr<&PoolAttrs::padding>("padding",
                                  "before each axis, then after each; or one number for both ends"),
        attr<&PoolAttrs::dilation>("dilation", "between the taps of a window"),
        attr<&PoolAttrs::ceil_mode>("ceil_mode", "count windows that reach beyond the end"),
        attr<&PoolAttrs::count_include_pad>("count_include_pad",
                                            "padding counts in a mean; defaults as in Relax"),
        attr<&PoolAttrs::layout>("layout", "of data; C may have blocks"),
        attr<&PoolAttrs::out_layout>("out_layout", "of the result; empty: layout")};
  }
};
struct LpPoolAttrs : PoolAttrs {
  int64_t p = 2;
  static auto table() {
    return std::tuple_cat(PoolAttrs::table(),
                          std::tuple{attr<&LpPoolAttrs::p>("p", "of the norm, at least 1")});
  }
};

struct Pool {
  size_t rank;
  std::string letters;
  Layout layout, out;
  std::vector<int64_t> size, strides, dilation;
  Padding padding;
  bool ceil_mode;

  Pool(const Call& call, size_t rank) : Pool(call, attrs_as<PoolAttrs>(call), rank) {}
  Pool(const Call& call, const PoolAttrs& attrs, size_t rank)
      : rank(rank),
        letters(spatial_letters(rank)),
        layout(parse_layout(call, "layout", attrs.layout, "NC" + letters)),
        out(layout),
        size(along_axes(call, "pool_size", attrs.pool_size, rank, 1)),
        strides(along_axes(call, "strides", attrs.strides, rank, 1)),
        dilation(along_axes(call, "dilation", attrs.dilation, rank, 1)),
        padding(padding_of(call, attrs.padding, rank)),
        ceil_mode(attrs.ceil_mode) {
    if (!attrs.out_layout.empty())
      out = parse_layout(call, "out_layout", attrs.out_layout, "NC" + letters);
    check_rank(call, 0, static_cast<int64_t>(layout.ndim()));
  }
  const Expr& extent(const Shape& shape, size_t d) const {
    return shape[static_cast<size_t>(layout.position(letters[d]))];
  }
};

Shape pooled_shape(const Layout& from, const Layout& to, const std::string& letters,
                   const Shape& shape, const Shape& spatial) {
  Shape extents = {shape[static_cast<size_t>(from.position('N'))], from.extent(shape, 'C')};
  extents.insert(extents.end(), spatial.begin(), spatial.end());
  return to.shape("NC" + letters, extents);
}

Type infer_pool(const Call& call, size_t rank) {
  const Pool pool(call, rank);
  const Ref<TensorType> x = tensor_arg(call, 0);
  if (!x->shape) return make<TensorType>(x->dtype, static_cast<int64_t>(pool.out.ndim()));
  // Every lane of a block of the result has a channel.
  const auto channels = as_int(simplify_dim(pool.layout.extent(*x->shape, 'C')));
  if (channels && *channels % pool.out.block('C') != 0)
    throw CompileError(kShapeMismatch, call.origin,
                       "`{}` gives channels in blocks of {}, and its data has {} channels",
                       call.op->name, pool.out.block('C'), *channels);
  Shape spatial;
  for (size_t d = 0; d < rank; ++d)
    spatial.push_back(window_count(call, pool.extent(*x->shape, d), pool.padding.before[d],
                                   pool.padding.after[d], int64(pool.size[d]), pool.strides[d],
                                   pool.dilation[d], pool.ceil_mode));
  return tensor_of(pooled_shape(pool.layout, pool.out, pool.letters, *x->shape, spatial), x->dtype,
                   0);
}

// How many taps of the window that starts at `start` lie in [0, extent).
Expr taps_inside(const Expr& start, const Expr& extent, int64_t size, int64_t dilation) {
  const Expr first = max(int64(0), floordiv(int64(dilation - 1) - start, dilation));
  const Expr last = min(int64(size - 1), floordiv(extent - 1 - start, dilation));
  return last - first + 1;
}

Value lower_pool(BlockBuilder& builder, const Call& call, size_t rank, PoolKind kind) {
  const Pool pool(call, rank);
  KernelOf kernel(builder, call);
  const Operand x = kind == PoolKind::kMax ? kernel.arg(0) : kernel.wide_arg(0);
  const DType dtype = x.dtype;
  Shape taps, extents;
  for (size_t d = 0; d < rank; ++d) {
    taps.push_back(int64(pool.size[d]));
    const auto axis = static_cast<size_t>(pool.out.position(pool.letters[d]));
    const int64_t reach = (pool.size[d] - 1) * pool.dilation[d] + 1;
    extents.push_back(simplify_dim(pool.ceil_mode
                                       ? (kernel.shape()[axis] - 1) * pool.strides[d] + reach
                                       : pool.extent(x.shape, d) +
                                             (pool.padding.before[d] + pool.padding.after[d])));
    // The input may reach beyond the last window.
    if (pool.ceil_mode && !pool.padding.any())
      extents.back() = simplify_dim(max(extents.back(), pool.extent(x.shape, d)));
  }
  const Expr around = kind == PoolKind::kMax ? tir::least_value(dtype) : imm(dtype, int64_t{0});
  const Operand data =
      padded(kernel, x, pool.layout, to_exprs(pool.padding.before), extents, around);
  const auto start = [&](const Indices& i, size_t d) {
    return i[static_cast<size_t>(pool.out.position(pool.letters[d]))] * pool.strides[d];
  };
  const auto element = [&](const Indices& i, const Indices& k) {
    std::map<char, AxisIndex> at;
    at['N'] = axis_index(pool.out, i, 'N');
    at['C'] = axis_index(pool.out, i, 'C');
    for (size_t d = 0; d < rank; ++d)
      at[pool.letters[d]] = {start(i, d) + k[d] * pool.dilation[d], {}, 1};
    return data(join_index(pool.layout, at));
  };
  if (kind == PoolKind::kMax)
    return kernel.emit(
        {kernel.reduce(kernel.out_name(), kernel.shape(), taps, tir::max_reducer(), element)});
  if (kind == PoolKind::kLp) {
    const auto p = static_cast<double>(attrs_as<LpPoolAttrs>(call).p);
    const Operand sum = kernel.reduce(
        "pool_sum", kernel.shape(), taps, tir::sum_reducer(),
        [&](const Indices& i, const Indices& k) {
          const Expr value = element(i, k);
          if (p == 2) return value * value;
          const Expr magnitude = float_call(IntrinsicId::kFabs, {value});
          return p == 1 ? magnitude : float_call(IntrinsicId::kPow, {magnitude, imm(dtype, p)});
        });
    return kernel.emit_compute([&](const Indices& i) {
      if (p == 2) return float_call(IntrinsicId::kSqrt, {sum(i)});
      return p == 1 ? sum(i) : float_call(IntrinsicId::kPow, {sum(i), imm(dtype, 1 / p)});
    });
  }
  const bool counts_padding = attrs_as<PoolAttrs>(call).count_include_pad;
  const Operand sum = kernel.reduce("pool_sum", kernel.shape(), taps, tir::sum_reducer(), element);
  return kernel.emit_compute([&](const Indices& i) {
    Expr count = int64(1);
    for (size_t d = 0; d < rank; ++d) {
      const int64_t before = pool.padding.before[d], after = pool.padding.after[d];
      // Whole windows, unless some reach outside of what counts.
      const bool whole =
          counts_padding ? !pool.ceil_mode : before == 0 && after == 0 && !pool.ceil_mode;
      if (whole) {
        count = count * pool.size[d];
        continue;
      }
      const Expr first = counts_padding ? start(i, d) : start(i, d) - before;
      const Expr extent = pool.extent(x.shape, d) + (counts_padding ? before + after : int64_t{0});
      count = count * taps_inside(first, extent, pool.size[d], pool.dilation[d]);
    }
    if (!as_int(count)) count = max(count, int64(1));
    return sum(i) / tenon::cast(dtype, count);
  });
}

OpDef pool_op(size_t rank, PoolKind kind) {
  const std::string letters = spatial_letters(rank);
  static constexpr std::string_view kNames[] = {"max", "avg", "lp"};
  OpDef op;
  op.name = fmt::format("nn.{}_pool{}d", kNames[static_cast<int>(kind)], rank);
  op.summary = kind == PoolKind::kMax       ? "Greatest element of each window."
               : kind == PoolKind::kAverage ? "Mean of each window."
                                            : "p-norm of each window.";
  op.inputs = {{"data", "of layout"}};
  LpPoolAttrs defaults;
  defaults.count_include_pad = kind == PoolKind::kAverage && rank != 2;
  defaults.layout = "NC" + letters;
  op.attrs = kind == PoolKind::kLp ? attrs_of(defaults) : attrs_of<PoolAttrs>(defaults);
  op.infer_type = [rank, kind](const Call& call) {
    if (kind != PoolKind::kMax) check_float(call, 0);
    const int64_t p = kind == PoolKind::kLp ? attrs_as<LpPoolAttrs>(call).p : 1;
    if (p < 1)
      throw CompileError(kBadAttribute, call.origin, "`{}` has p {}; expected at least 1",
                         call.op->name, p);
    return infer_pool(call, rank);
  };
  op.lower = [rank, kind](BlockBuilder& builder, const Call& call) {
    return lower_pool(builder, call, rank, kind);
  };
  op.fusion = FusionKind::kReduction;
  if (kind != PoolKind::kLp) {
    op.onnx = {kind == PoolKind::kMax ? "MaxPool" : "AveragePool",
               {{"dilations", "dilation"}, {"kernel_shape", "pool_size"}, {"pads", "padding"}}};
    if (rank == 2) op.layout = LayoutRule::kPooling;
  }
  op.source = kind == PoolKind::kMax       ? "ONNX MaxPool-12"
              : kind == PoolKind::kAverage ? "ONNX AveragePool-19"
                                           : "ONNX LpPool-18";
  return op;
}

// ---- adaptive_avg_pool --------------------------------------------------------------------------

struct AdaptivePoolAttrs {
  std::optional<std::vector<int64_t>> output_size;
  std::string layout;
  static auto table() {
    return std::tuple{
        attr<&AdaptivePoolAttrs::output_size>("output_size", "of each axis; None: that of data"),
        attr<&AdaptivePoolAttrs::layout>("layout", "of data; C may have blocks")};
  }
};

Type infer_adaptive(const Call& call, size_t rank) {
  const std::string letters = spatial_letters(rank);
  const auto attrs = attrs_as<AdaptivePoolAttrs>(call);
  const Layout layout = parse_layout(call, "layout", attrs.layout, "NC" + letters);
  check_rank(call, 0, static_cast<int64_t>(layout.ndim()));
  check_float(call, 0);
  const Ref<TensorType> x = tensor_arg(call, 0);
  if (!x->shape) return x;
  Shape spatial;
  if (attrs.output_size) {
    spatial = to_exprs(along_axes(call, "output_size", *attrs.output_size, rank, 1));
  } else {
    for (const char letter : letters) spatial.push_back(layout.extent(*x->shape, letter));
  }
  return tensor_of(pooled_shape(layout, layout, letters, *x->shape, spatial), x->dtype, 0);
}

Value lower_adaptive(BlockBuilder& builder, const Call& call, size_t rank) {
  const std::string letters = spatial_letters(rank);
  const Layout layout =
      parse_layout(call, "layout", attrs_as<AdaptivePoolAttrs>(call).layout, "NC" + letters);
  KernelOf kernel(builder, call);
  const Operand x = kernel.wide_arg(0);
  // Window i along an axis is [i * in // out, ceil((i + 1) * in / out)).
  struct Axis {
    size_t place;
    Expr in, out, most;
    bool even;
  };
  std::vector<Axis> axes;
  Shape taps;
  for (const char letter : letters) {
    Axis axis;
    axis.place = static_cast<size_t>(layout.position(letter));
    axis.in = x.shape[axis.place];
    axis.out = kernel.shape()[axis.place];
    axis.even = dims_agree(simplify_dim(floormod(axis.in, axis.out)), int64(0)) == DimsAgree::kYes;
    axis.most =
        simplify_dim(axis.even ? floordiv(axis.in, axis.out) : ceildiv(axis.in, axis.out) + 1);
    taps.push_back(axis.most);
    axes.push_back(axis);
  }
  const auto first = [](const Axis& axis, const Expr& i) {
    return axis.even ? i * axis.most : floordiv(i * axis.in, axis.out);
  };
  const auto end = [](const Axis& axis, const Expr& i) {
    return ceildiv((i + 1) * axis.in, axis.out);
  };
  const Operand sum =
      kernel.reduce("pool_sum", kernel.shape(), taps, tir::sum_reducer(),
                    [&](const Indices& i, const Indices& k) {
                      Indices at = i;
                      Expr inside = boolean(true);
                      for (size_t d = 0; d < axes.size(); ++d) {
                        const Axis& axis = axes[d];
                        at[axis.place] = first(axis, i[axis.place]) + k[d];
                        if (!axis.even)
                          inside = logical_and(inside, at[axis.place] < end(axis, i[axis.place]));
                      }
                      return if_then_else(inside, x(at), imm(x.dtype, int64_t{0}));
                    });
  return kernel.emit_compute([&](const Indices& i) {
    Expr count = int64(1);
    for (const Axis& axis : axes)
      count =
          count * (axis.even ? axis.most : end(axis, i[axis.place]) - first(axis, i[axis.place]));
    return sum(i) / tenon::cast(x.dtype, count);
  });
}

OpDef adaptive_op(size_t rank) {
  OpDef op;
  op.name = fmt::format("nn.adaptive_avg_pool{}d", rank);
  op.summary = "Means of as many windows of nearly equal size as the result has elements.";
  op.inputs = {{"data", "of layout"}};
  op.attrs = attrs_of(AdaptivePoolAttrs{.output_size = {}, .layout = "NC" + spatial_letters(rank)});
  op.infer_type = [rank](const Call& call) { return infer_adaptive(call, rank); };
  op.lower = [rank](BlockBuilder& builder, const Call& call) {
    return lower_adaptive(builder, call, rank);
  };
  op.fusion = FusionKind::kReduction;
  if (rank == 2) op.layout = LayoutRule::kPooling;
  return op;
}

}  // namespace

std::vector<OpDef> nn_pool_ops() {
  std::vector<OpDef> ops;
  for (size_t rank = 1; rank <= 3; ++rank) {
    for (const PoolKind kind : {PoolKind::kMax, PoolKind::kAverage, PoolKind::kLp})
      ops.push_back(pool_op(rank, kind));
    ops.push_back(adaptive_op(rank));
  }
  return ops;
}

}  // namespace tenon::graph
