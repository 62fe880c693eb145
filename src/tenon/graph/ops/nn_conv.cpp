// SPDX-License-Identifier: Apache-2.0
// Convolutions over one to three spatial axes, and their transposes.
#include "tenon/graph/assumed_dims.h"
#include "tenon/graph/ops/window.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

struct ConvAttrs {
  std::vector<int64_t> strides = {1}, padding = {0}, dilation = {1};
  int64_t groups = 1;
  std::string data_layout, kernel_layout, out_layout;
  DType out_dtype = kVoid;

  static auto window() {
    return std::tuple{
        attr<&ConvAttrs::strides>("strides", "between windows"),
        attr<&ConvAttrs::padding>(
            "padding", "zeros before each axis, then after each; or one number for both ends")};
  }
  static auto rest() {
    return std::tuple{
        attr<&ConvAttrs::dilation>("dilation", "between the taps of a window"),
        attr<&ConvAttrs::groups>("groups", "of channels that do not meet"),
        attr<&ConvAttrs::data_layout>("data_layout", "axes N, C and spatial; C may have blocks"),
        attr<&ConvAttrs::kernel_layout>("kernel_layout",
                                        "axes O, I and spatial; O and I may have blocks"),
        attr<&ConvAttrs::out_layout>("out_layout", "of the result; empty: data_layout"),
        attr<&ConvAttrs::out_dtype>("out_dtype", "of the result and the sums; void: that of data")};
  }
  static auto table() { return std::tuple_cat(window(), rest()); }
};
struct TransposedAttrs : ConvAttrs {
  std::vector<int64_t> output_padding = {0};
  static auto table() {
    return std::tuple_cat(window(),
                          std::tuple{attr<&TransposedAttrs::output_padding>(
                              "output_padding", "added to the extent of the result")},
                          rest());
  }
};

// A convolution's attributes, checked and spread over the axes.
struct Conv {
  size_t rank;
  std::string letters;  // spatial axes
  Layout data, kernel, out;
  std::vector<int64_t> strides, dilation, output_padding;
  Padding padding;
  int64_t groups;
  bool transposed;

  Conv(const Call& call, size_t rank, bool transposed)
      : Conv(call, attrs_as<ConvAttrs>(call), rank, transposed) {
    if (transposed)
      output_padding = along_axes(call, "output_padding",
                                  attrs_as<TransposedAttrs>(call).output_padding, rank, 0);
  }

  Conv(const Call& call, const ConvAttrs& attrs, size_t rank, bool transposed)
      : rank(rank),
        letters(spatial_letters(rank)),
        data(parse_layout(call, "data_layout", attrs.data_layout, "NC" + letters)),
        kernel(parse_layout(call, "kernel_layout", attrs.kernel_layout, "OI" + letters)),
        out(data),
        strides(along_axes(call, "strides", attrs.strides, rank, 1)),
        dilation(along_axes(call, "dilation", attrs.dilation, rank, 1)),
        padding(padding_of(call, attrs.padding, rank)),
        groups(attrs.groups),
        transposed(transposed) {
    if (!attrs.out_layout.empty())
      out = parse_layout(call, "out_layout", attrs.out_layout, "NC" + letters);
    if (groups < 1)
      throw CompileError(kBadAttribute, call.origin, "`{}` has {} groups; expected at least 1",
                         call.op->name, groups);
    check_rank(call, 0, static_cast<int64_t>(data.ndim()));
    check_rank(call, 1, static_cast<int64_t>(kernel.ndim()));
  }

  Expr out_channels(const Shape& w) const {
    const Expr o = kernel.extent(w, 'O');
    return transposed ? o * groups : o;
  }
};

Type infer_conv(const Call& call, size_t rank, bool transposed) {
  const Conv conv(call, rank, transposed);
  const Ref<TensorType> x = tensor_arg(call, 0), w = tensor_arg(call, 1);
  const DType asked = attrs_as<ConvAttrs>(call).out_dtype;
  if (is_of_words(call)) check_words(call, asked);
  if (arg_or_null(call, 2)) {
    const Ref<TensorType> value = tensor_arg(call, 2);
    check_dtype(call, 2, x->dtype);
    if (value->shape && !is_int(simplify_dim(tir::element_count(*value->shape)), 1))
      throw CompileError(kShapeMismatch, call.origin,
                         "argument `padding_value` of `{}` is {}; expected one element",
                         call.op->name, str(value));
  }
  if (!x->dtype.is_void() && !w->dtype.is_void() && x->dtype != w->dtype && asked.is_void())
    throw CompileError(kDTypeMismatch, call.origin,
                       "`{}` of data of dtype {} with a kernel of dtype {}, and no out_dtype is "
                       "given",
                       call.op->name, x->dtype.str(), w->dtype.str());
  const DType dtype = asked.is_void() ? x->dtype : asked;
  const auto ndim = static_cast<int64_t>(conv.out.ndim());
  if (!x->shape || !w->shape) return make<TensorType>(dtype, ndim);

  const Expr channels = simplify_dim(conv.data.extent(*x->shape, 'C'));
  const Expr taken = conv.kernel.extent(*w->shape, 'I');
  Expr expected = simplify_dim(transposed ? taken : taken * conv.groups);
  // A kernel in smaller blocks than the data need not read the last block's pad lanes.
  if (const int64_t block = conv.data.block('C'); !transposed && block > conv.kernel.block('I'))
    expected = simplify_dim(ceildiv(expected, int64(block)) * block);
  if (!may_agree(channels, expected))
    throw CompileError(kShapeMismatch, call.origin,
                       "`{}` of data with {} channels; the kernel takes {} in {} groups",
                       call.op->name, tenon::str(channels), tenon::str(taken), conv.groups)
        .note(call.args[0]->origin, "data is {}", str(x))
        .note(call.args[1]->origin, "kernel is {}", str(w));
  const Expr filters = simplify_dim(conv.out_channels(*w->shape));
  for (const Expr& count : {filters, channels}) {
    const auto known = as_int(count);
    if (known && *known % conv.groups != 0)
      throw CompileError(kShapeMismatch, call.origin, "`{}` has {} channels in {} groups",
                         call.op->name, *known, conv.groups);
  }
  // Every lane of a block of the result has a filter: kernels in blocks hold them as pad lanes.
  if (const auto known = as_int(filters); known && *known % conv.out.block('C') != 0)
    throw CompileError(kShapeMismatch, call.origin,
                       "`{}` gives channels in blocks of {}, and the kernel has {} filters",
                       call.op->name, conv.out.block('C'), *known)
        .note(call.args[1]->origin, "kernel is {}", str(w));
  Shape extents = {(*x->shape)[static_cast<size_t>(conv.data.position('N'))], filters};
  for (size_t d = 0; d < rank; ++d) {
    const Expr extent = conv.data.extent(*x->shape, conv.letters[d]);
    const Expr size = conv.kernel.extent(*w->shape, conv.letters[d]);
    if (!transposed) {
      extents.push_back(window_count(call, extent, conv.padding.before[d], conv.padding.after[d],
                                     size, conv.strides[d], conv.dilation[d], false));
      continue;
    }
    const Expr out =
        simplify_dim((extent - 1) * conv.strides[d] + (size - 1) * conv.dilation[d] +
                     (1 + conv.output_padding[d] - conv.padding.before[d] - conv.padding.after[d]));
    if (const auto known = as_int(out); known && *known < 0)
      throw CompileError(kShapeMismatch, call.origin, "`{}` gives an axis of {} elements",
                         call.op->name, *known);
    extents.push_back(out);
  }
  return tensor_of(conv.out.shape("NC" + conv.letters, extents), dtype, ndim);
}

// The reduction: input channels of a group (outer part), taps, input channels (inner part).
struct Taps {
  Shape extents;
  size_t rank;
  int64_t block;

  Taps(const Conv& conv, const Operand& w, const Expr& channels) : rank(conv.rank) {
    block = conv.kernel.block('I');
    extents.push_back(block == 1 ? channels : ceildiv(channels, int64(block)));
    for (const char letter : conv.letters) extents.push_back(conv.kernel.extent(w.shape, letter));
    if (block != 1) extents.push_back(int64(block));
  }
  AxisIndex channel(const Indices& k) const {
    return block == 1 ? AxisIndex{k[0], {}, 1} : AxisIndex{k[0], k.back(), block};
  }
  const Expr& tap(const Indices& k, size_t d) const { return k[1 + d]; }
};

// `offset + index` along an axis.
AxisIndex shifted(const AxisIndex& index, const Expr& offset) {
  if (is_int(offset, 0)) return index;
  return {offset + index.whole(), {}, 1};
}

Value lower_conv(BlockBuilder& builder, const Call& call, size_t rank) {
  const Conv conv(call, rank, false);
  KernelOf kernel(builder, call);
  const Operand x = kernel.buffer_arg(0), w = kernel.buffer_arg(1);
  const bool words = is_of_words(call);
  Shape extents;
  for (size_t d = 0; d < rank; ++d)
    extents.push_back(
        simplify_dim(x.shape[static_cast<size_t>(conv.data.position(conv.letters[d]))] +
                     (conv.padding.before[d] + conv.padding.after[d])));
  Expr outside = imm(x.dtype, int64_t{0});
  if (arg_or_null(call, 2)) {
    const Operand given = kernel.arg(2);
    outside = given(Indices(given.ndim(), int64(0)));
  }
  const Operand data =
      padded(kernel, x, conv.data, to_exprs(conv.padding.before), extents, outside);
  const Expr taken = simplify_dim(conv.kernel.extent(w.shape, 'I'));
  const Expr per_group = simplify_dim(floordiv(conv.kernel.extent(w.shape, 'O'), conv.groups));
  const Taps taps(conv, w, taken);
  return kernel.emit_contraction(
      taps.extents, [&](const Indices& i, const Indices& k, DType dtype) {
        const AxisIndex filter = axis_index(conv.out, i, 'C');
        std::map<char, AxisIndex> at_x, at_w;
        at_x['N'] = axis_index(conv.out, i, 'N');
        at_w['O'] = filter;
        at_w['I'] = taps.channel(k);
        if (conv.groups == 1) {
          at_x['C'] = taps.channel(k);
        } else if (is_int(per_group, 1) && is_int(taken, 1)) {
          at_x['C'] = filter;  // depthwise: each filter has a channel of its own
        } else {
          at_x['C'] = shifted(taps.channel(k), floordiv(filter.whole(), per_group) * taken);
        }
        for (size_t d = 0; d < rank; ++d) {
          const Expr start = axis_index(conv.out, i, conv.letters[d]).outer * conv.strides[d];
          at_x[conv.letters[d]] = {start + taps.tap(k, d) * conv.dilation[d], {}, 1};
          at_w[conv.letters[d]] = {taps.tap(k, d), {}, 1};
        }
        return product_of(words, data(join_index(conv.data, at_x)),
                          w(join_index(conv.kernel, at_w)), dtype);
      });
}

// As a convolution with the mirrored kernel over the input with zeros between and around its
// elements.
Value lower_transposed(BlockBuilder& builder, const Call& call, size_t rank) {
  const Conv conv(call, rank, true);
  KernelOf kernel(builder, call);
  const Operand x = kernel.buffer_arg(0), w = kernel.buffer_arg(1);
  Shape extents, before;
  for (size_t d = 0; d < rank; ++d) {
    const Expr reach = (conv.kernel.extent(w.shape, conv.letters[d]) - 1) * conv.dilation[d];
    before.push_back(simplify_dim(reach - conv.padding.before[d]));
    extents.push_back(simplify_dim(
        kernel.shape()[static_cast<size_t>(conv.out.position(conv.letters[d]))] + reach));
  }
  const Operand data =
      padded(kernel, x, conv.data, before, extents, imm(x.dtype, int64_t{0}), conv.strides);
  const Expr taken = simplify_dim(floordiv(conv.data.extent(x.shape, 'C'), conv.groups));
  const Expr per_group = simplify_dim(conv.kernel.extent(w.shape, 'O'));
  const Taps taps(conv, w, taken);
  return kernel.emit_contraction(taps.extents, [&](const Indices& i, const Indices& k,
                                                   DType dtype) {
    const AxisIndex filter = axis_index(conv.out, i, 'C');
    const Expr first = conv.groups == 1 ? int64(0) : floordiv(filter.whole(), per_group) * taken;
    std::map<char, AxisIndex> at_x, at_w;
    at_x['N'] = axis_index(conv.out, i, 'N');
    at_x['C'] = at_w['I'] = shifted(taps.channel(k), first);
    at_w['O'] = conv.groups == 1 ? filter : AxisIndex{floormod(filter.whole(), per_group), {}, 1};
    for (size_t d = 0; d < rank; ++d) {
      const Expr start = axis_index(conv.out, i, conv.letters[d]).outer;
      const Expr last = conv.kernel.extent(w.shape, conv.letters[d]) - 1;
      at_x[conv.letters[d]] = {start + taps.tap(k, d) * conv.dilation[d], {}, 1};
      at_w[conv.letters[d]] = {last - taps.tap(k, d), {}, 1};
    }
    return tenon::cast(dtype, data(join_index(conv.data, at_x))) *
           tenon::cast(dtype, w(join_index(conv.kernel, at_w)));
  });
}

// The products of a convolution: each element of the result, or where transposed of the data, takes
// part in those of one filter.
template <bool kTransposed>
std::optional<double> conv_macs(const std::vector<KnownShape>& args, const KnownShape& result) {
  const KnownShape &elements = kTransposed ? args[0] : result, &weights = args[1];
  if (!elements || !weights || weights->empty() || weights->front() == 0) return std::nullopt;
  return product_of(*elements) * product_of(*weights) / weights->front();
}

OpDef conv_op(size_t rank, bool transposed) {
  const std::string letters = spatial_letters(rank);
  OpDef op;
  op.name = fmt::format("nn.conv{}d{}", rank, transposed ? "_transpose" : "");
  op.summary = transposed ? "The transpose (gradient) of a convolution."
                          : "Convolution (correlation) over the spatial axes.";
  op.inputs = {{"data", "of data_layout"}, {"weight", "of kernel_layout"}};
  if (!transposed)
    op.inputs.push_back({"padding_value",
                         "one element of data's dtype: what the padding holds in "
                         "place of zeros",
                         true});
  TransposedAttrs defaults;
  defaults.data_layout = "NC" + letters;
  defaults.kernel_layout = (transposed ? "IO" : "OI") + letters;
  op.attrs = transposed ? attrs_of(defaults) : attrs_of<ConvAttrs>(defaults);
  op.infer_type = [rank, transposed](const Call& call) {
    return infer_conv(call, rank, transposed);
  };
  op.lower = [rank, transposed](BlockBuilder& builder, const Call& call) {
    return transposed ? lower_transposed(builder, call, rank) : lower_conv(builder, call, rank);
  };
  op.fusion = FusionKind::kContraction;
  if (rank == 2 || !transposed) op.layout = LayoutRule::kConvolution;
  op.macs = transposed ? conv_macs<true> : conv_macs<false>;
  op.onnx = {transposed ? "ConvTranspose" : "Conv",
             {{"dilations", "dilation"}, {"group", "groups"}, {"pads", "padding"}}};
  op.source = transposed ? "ONNX ConvTranspose-11" : "ONNX Conv-11";
  return op;
}

OpDef conv2d_of_words() {
  OpDef op = conv_op(2, false);
  op.name += "_of_words";
  op.summary =
      "A convolution whose elements, of data and weight, are four numbers of 8 bits each "
      "(R.words), "
      "of which a product is the sum of the products: of four channels at once.";
  op.layout = LayoutRule::kPlanar;
  op.onnx = {};
  op.source = "";
  return op;
}

}  // namespace

std::vector<OpDef> nn_conv_ops() {
  std::vector<OpDef> ops;
  for (size_t rank = 1; rank <= 3; ++rank) {
    ops.push_back(conv_op(rank, false));
    ops.push_back(conv_op(rank, true));
  }
  ops.push_back(conv2d_of_words());
  return ops;
}

}  // namespace tenon::graph
