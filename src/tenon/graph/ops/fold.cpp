// SPDX-License-Identifier: Apache-2.0
// Col2Im (sums of columns into images), and tensors cropped or padded around their centre.
#include "tenon/graph/ops/window.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

// ---- nn.col2im ----------------------------------------------------------------------------------

struct Col2ImAttrs {
  std::optional<std::vector<int64_t>> block_size;
  std::vector<int64_t> strides = {1}, padding = {0}, dilation = {1};
  static auto table() {
    return std::tuple{
        attr<&Col2ImAttrs::block_size>("block_size",
                                       "of each spatial axis; None: argument block_shape"),
        attr<&Col2ImAttrs::strides>("strides", "between blocks"),
        attr<&Col2ImAttrs::padding>(
            "padding", "before each axis, then after each; or one number for both ends"),
        attr<&Col2ImAttrs::dilation>("dilation", "between the elements of a block")};
  }
};

struct Col2Im {
  size_t rank;
  Shape block;
  std::vector<int64_t> strides, dilation;
  Padding padding;
  Expr taps = int64(1);

  explicit Col2Im(const Call& call) {
    const auto attrs = attrs_as<Col2ImAttrs>(call);
    const auto given = present(call, 2) ? dims_arg(call, 2) : std::nullopt;
    if (attrs.block_size.has_value() == given.has_value())
      throw CompileError(kBadArgument, call.origin,
                         "`{}` has both or none of attribute `block_size` and argument "
                         "`block_shape`; expected one",
                         call.op->name);
    rank = given ? given->size() : attrs.block_size->size();
    if (rank == 0)
      throw CompileError(kBadAttribute, call.origin, "`{}` has no spatial axes", call.op->name);
    block = given ? *given : to_exprs(along_axes(call, "block_size", *attrs.block_size, rank, 1));
    strides = along_axes(call, "strides", attrs.strides, rank, 1);
    dilation = along_axes(call, "dilation", attrs.dilation, rank, 1);
    padding = padding_of(call, attrs.padding, rank);
    // Held above 0, so that it divides in sizes, before anything is checked.
    for (const Expr& b : block) taps = simplify_dim(taps * (as_int(b) ? b : max(b, int64(1))));
  }
  // Blocks along each axis of an image.
  Shape blocks(const Call& call, const Shape& image) const {
    Shape out;
    for (size_t d = 0; d < rank; ++d)
      out.push_back(window_count(call, image[d], padding.before[d], padding.after[d], block[d],
                                 strides[d], dilation[d], false));
    return out;
  }
};

Type infer_col2im(const Call& call) {
  const Col2Im c(call);
  check_rank(call, 0, 3);
  const Ref<TensorType> x = tensor_arg(call, 0);
  if (!accepts(Takes::kNumber, x->dtype))
    throw CompileError(kDTypeMismatch, call.origin,
                       "argument `data` of `{}` has dtype {}; expected a number", call.op->name,
                       x->dtype.str());
  const auto image = dims_arg(call, 1);
  const auto ndim = static_cast<int64_t>(c.rank) + 2;
  if (image && image->size() != c.rank)
    throw CompileError(kBadArgument, call.origin,
                       "argument `image_shape` of `{}` has {} numbers; expected {}", call.op->name,
                       image->size(), c.rank);
  if (!x->shape || !image) return make<TensorType>(x->dtype, ndim);
  const auto rows = as_int(x->dim(1));
  const auto taps = as_int(c.taps);
  if (rows && taps && *taps > 0 && *rows % *taps != 0)
    throw CompileError(kShapeMismatch, call.origin,
                       "dimension 1 of argument `data` of `{}` is {}; expected a multiple of the "
                       "{} elements of a block",
                       call.op->name, *rows, *taps);
  check_dim(call, 0, x->dim(2), product(c.blocks(call, *image)), "dimension 2");
  Shape shape = {x->dim(0), simplify_dim(floordiv(x->dim(1), c.taps))};
  shape.insert(shape.end(), image->begin(), image->end());
  return tensor_of(shape, x->dtype, 0);
}

Value lower_col2im(BlockBuilder& builder, const Call& call) {
  const Col2Im c(call);
  KernelOf kernel(builder, call);
  const Operand x = kernel.wide_arg(0);
  const Shape image(kernel.shape().begin() + 2, kernel.shape().end());
  const Shape blocks = c.blocks(call, image);
  // Each element is the sum of what the blocks that cover it hold for it.
  return kernel.emit(
      {kernel.reduce(kernel.out_name(), kernel.shape(), c.block, tir::sum_reducer(),
                     [&](const Indices& i, const Indices& k) {
                       Expr column = int64(0), row = i[1], in = boolean(true);
                       for (size_t d = 0; d < c.rank; ++d) {
                         const Expr offset = i[2 + d] + c.padding.before[d] - k[d] * c.dilation[d];
                         const Expr at = floordiv(offset, c.strides[d]);
                         in = logical_and(in, logical_and(offset >= int64(0), at < blocks[d]));
                         if (c.strides[d] != 1)
                           in = logical_and(in, eq(floormod(offset, c.strides[d]), int64(0)));
                         column = column * blocks[d] + at;
                         row = row * c.block[d] + k[d];
                       }
                       return if_then_else(in, x({i[0], row, column}), imm(x.dtype, int64_t{0}));
                     })});
}

OpDef col2im() {
  OpDef op;
  op.name = "nn.col2im";
  op.summary = "Images from the columns of their blocks; where blocks overlap, the sum.";
  op.inputs = {{"data", "(n, channels * elements of a block, blocks)"},
               {"image_shape", "a shape: the spatial axes"},
               {"block_shape", "a shape, where attribute block_size is None", true}};
  op.attrs = attrs_of<Col2ImAttrs>();
  op.infer_type = infer_col2im;
  op.lower = lower_col2im;
  op.fusion = FusionKind::kReduction;
  op.source = "ONNX Col2Im-18";
  return op;
}

// ---- center_crop_pad ----------------------------------------------------------------------------

struct CenterAttrs {
  std::vector<int64_t> axes;
  static auto table() { return std::tuple{required<&CenterAttrs::axes>("axes", "cut or padded")}; }
};

OpDef center_crop_pad() {
  OpDef op;
  op.name = "center_crop_pad";
  op.summary = "A tensor cut, or padded with zeros, around its centre to other extents.";
  op.inputs = {{"x", "any shape"}, {"shape", "a shape: the extents of axes"}};
  op.attrs = attrs_of<CenterAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    const auto attrs = attrs_as<CenterAttrs>(call);
    const Ref<TensorType> x = tensor_arg(call, 0);
    const auto wanted = dims_arg(call, 1);
    if (wanted && wanted->size() != attrs.axes.size())
      throw CompileError(kBadArgument, call.origin,
                         "argument `shape` of `{}` has {} numbers; expected {}", call.op->name,
                         wanted->size(), attrs.axes.size());
    if (x->ndim < 0) return x;
    const std::vector<size_t> places = axes_of(call, attrs.axes, x->ndim);
    if (!x->shape || !wanted) return make<TensorType>(x->dtype, x->ndim);
    Shape shape = *x->shape;
    for (size_t d = 0; d < places.size(); ++d) shape[places[d]] = (*wanted)[d];
    return tensor_of(shape, x->dtype, 0);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0);
    const std::vector<size_t> places =
        axes_of(call, attrs_as<CenterAttrs>(call).axes, static_cast<int64_t>(x.ndim()));
    return kernel.emit_compute([&](const Indices& i) {
      Indices at = i;
      Expr in = boolean(true);
      for (const size_t d : places) {
        const Expr& from = x.shape[d];
        const Expr& to = kernel.shape()[d];
        if (dims_agree(from, to) == DimsAgree::kYes) continue;
        // The greater half of an odd difference comes after the data.
        const Expr cut = floordiv(max(from - to, int64(0)), 2);
        const Expr before = floordiv(max(to - from, int64(0)), 2);
        at[d] = i[d] + cut - before;
        const auto known_from = as_int(from), known_to = as_int(to);
        if (known_from && known_to && *known_to <= *known_from) continue;
        in = logical_and(in, logical_and(at[d] >= int64(0), at[d] < from));
      }
      return if_then_else(in, x(at), imm(x.dtype, int64_t{0}));
    });
  };
  op.fusion = FusionKind::kInjective;
  op.source = "ONNX CenterCropPad-18";
  return op;
}

}  // namespace

std::vector<OpDef> fold_ops() { return {col2im(), center_crop_pad()}; }

}  // namespace tenon::graph
