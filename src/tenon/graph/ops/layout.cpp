// SPDX-License-Identifier: Apache-2.0
// Changes of layout, and of blocks of space into channels.
#include "tenon/arith/analyzer.h"
#include "tenon/graph/assumed_dims.h"
#include "tenon/graph/ops/window.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

// ---- layout_transform ---------------------------------------------------------------------------

struct TransformAttrs {
  std::string src_layout, dst_layout;
  std::optional<std::vector<int64_t>> extents;
  static auto table() {
    return std::tuple{
        required<&TransformAttrs::src_layout>("src_layout", "\"NCHW\", \"OIHW\", ..."),
        required<&TransformAttrs::dst_layout>("dst_layout", "\"NCHW16c\", \"OIHW16i16o\", ..."),
        attr<&TransformAttrs::extents>(
            "extents",
            "along the capital axes of the result, in its order; -1 or None: all of the source, "
            "whose last block may hold fill")};
  }
};

struct Transform {
  TransformAttrs attrs;
  Layout from, to;

  explicit Transform(const Call& call)
      : attrs(attrs_as<TransformAttrs>(call)), from(source(call, attrs.src_layout)), to(from) {
    to = parse_layout(call, "dst_layout", attrs.dst_layout, from.primal());
  }
  // Extents along the primal axes of the result, in its order.
  Shape extents(const Call& call, const Shape& shape) const {
    Shape out;
    const auto& given = attrs.extents;
    if (given && given->size() != to.primal().size())
      throw CompileError(kBadAttribute, call.origin,
                         "attribute `extents` of `layout_transform` has {} numbers; expected {}",
                         given->size(), to.primal().size());
    for (const char letter : to.primal()) {
      const int64_t own = given ? (*given)[out.size()] : -1;
      out.push_back(own >= 0 ? int64(own) : simplify_dim(from.extent(shape, letter)));
    }
    return out;
  }

 private:
  static Layout source(const Call& call, const std::string& text) {
    const auto layout = Layout::parse(text);
    if (!layout)
      throw CompileError(
          kBadAttribute, call.origin,
          "attribute `src_layout` of `layout_transform` is \"{}\", which is no layout", text);
    return *layout;
  }
};

OpDef layout_transform() {
  OpDef op;
  op.name = "layout_transform";
  op.summary =
      "The same elements in another layout: axes reordered, split into blocks that are "
      "filled up with zeros, or joined.";
  op.inputs = {OpInput{"x", "of src_layout"}.as_moved()};
  op.attrs = attrs_of<TransformAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    const Transform transform(call);
    check_rank(call, 0, static_cast<int64_t>(transform.from.ndim()));
    const Ref<TensorType> x = tensor_arg(call, 0);
    if (!x->shape) return make<TensorType>(x->dtype, static_cast<int64_t>(transform.to.ndim()));
    for (size_t d = 0; d < transform.from.ndim(); ++d)
      if (const int64_t block = transform.from.axes()[d].block)
        check_dim(call, 0, (*x->shape)[d], int64(block), fmt::format("dimension {}", d));
    return tensor_of(transform.to.shape(transform.to.primal(), transform.extents(call, *x->shape)),
                     x->dtype, 0);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    const Transform transform(call);
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0);
    const Shape extents = transform.extents(call, x.shape);
    const std::string letters = transform.to.primal();
    return kernel.emit_compute([&](const Indices& i) {
      std::map<char, AxisIndex> along;
      Expr inside = boolean(true);
      for (size_t a = 0; a < letters.size(); ++a) {
        const AxisIndex index = axis_index(transform.to, i, letters[a]);
        along[letters[a]] = index;
        // What lies beyond the source, and beyond the extent that is asked for, is fill.
        const Expr whole = simplify_dim(transform.from.extent(x.shape, letters[a]));
        const auto outer = static_cast<size_t>(transform.to.position(letters[a]));
        const Expr covered = simplify_dim(kernel.shape()[outer] * transform.to.block(letters[a]));
        for (const Expr& end : {whole, extents[a]}) {
          arith::Analyzer analyzer;
          if (!analyzer.proves_less_equal(covered, end))
            inside = logical_and(inside, index.whole() < end);
          if (dims_agree(whole, extents[a]) == DimsAgree::kYes) break;
        }
      }
      return if_then_else(inside, x(join_index(transform.from, along)),
                          tenon::cast(x.dtype, imm(kInt64, int64_t{0})));
    });
  };
  op.fusion = FusionKind::kInjective;
  return op;
}

// ---- depth_to_space, space_to_depth -------------------------------------------------------------

struct SpaceToDepthAttrs {
  int64_t block_size = 1;
  static auto table() {
    return std::tuple{required<&SpaceToDepthAttrs::block_size>("block_size", "of the blocks")};
  }
};
struct DepthToSpaceAttrs : SpaceToDepthAttrs {
  std::string mode = "DCR";
  static auto table() {
    return std::tuple_cat(
        SpaceToDepthAttrs::table(),
        std::tuple{attr<&DepthToSpaceAttrs::mode>(
            "mode",
            "\"DCR\": channels are (block row, block column, channel); \"CRD\": (channel, block "
            "row, block column)")});
  }
};

int64_t block_size(const Call& call) {
  const int64_t size = attrs_as<SpaceToDepthAttrs>(call).block_size;
  if (size < 1 || size > 65536)
    throw CompileError(kBadAttribute, call.origin, "`{}` has block_size {}; expected at least 1",
                       call.op->name, size);
  return size;
}

void check_divides(const Call& call, const Expr& dim, int64_t factor) {
  if (!may_agree(simplify_dim(floormod(dim, factor)), int64(0)))
    throw CompileError(kShapeMismatch, call.origin,
                       "`{}` of an axis of {}; expected a multiple of {}", call.op->name,
                       tenon::str(dim), factor);
}

OpDef depth_to_space() {
  OpDef op;
  op.name = "nn.depth_to_space";
  op.summary = "Moves channels into blocks of space.";
  op.inputs = {{"data", "(n, c, h, w)"}};
  op.attrs = attrs_of<DepthToSpaceAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    check_rank(call, 0, 4);
    const int64_t size = block_size(call);
    const std::string mode = attrs_as<DepthToSpaceAttrs>(call).mode;
    if (mode != "DCR" && mode != "CRD")
      throw CompileError(kBadAttribute, call.origin,
                         "attribute `mode` of `{}` is \"{}\"; expected \"DCR\" or \"CRD\"",
                         call.op->name, mode);
    const Ref<TensorType> x = tensor_arg(call, 0);
    if (!x->shape) return x;
    check_divides(call, x->dim(1), size * size);
    return tensor_of(
        Shape{x->dim(0), floordiv(x->dim(1), size * size), x->dim(2) * size, x->dim(3) * size},
        x->dtype, 4);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0);
    const int64_t size = block_size(call);
    const bool depth_first = attrs_as<DepthToSpaceAttrs>(call).mode == "DCR";
    return kernel.emit_compute([&](const Indices& i) {
      const Expr block = floormod(i[2], size) * size + floormod(i[3], size);
      const Expr channel =
          depth_first ? block * kernel.shape()[1] + i[1] : i[1] * (size * size) + block;
      return x({i[0], channel, floordiv(i[2], size), floordiv(i[3], size)});
    });
  };
  op.fusion = FusionKind::kInjective;
  op.source = "ONNX DepthToSpace-13";
  return op;
}

OpDef space_to_depth() {
  OpDef op;
  op.name = "nn.space_to_depth";
  op.summary = "Moves blocks of space into channels: (block row, block column, channel).";
  op.inputs = {{"data", "(n, c, h, w)"}};
  op.attrs = attrs_of<SpaceToDepthAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    check_rank(call, 0, 4);
    const int64_t size = block_size(call);
    const Ref<TensorType> x = tensor_arg(call, 0);
    if (!x->shape) return x;
    check_divides(call, x->dim(2), size);
    check_divides(call, x->dim(3), size);
    return tensor_of(Shape{x->dim(0), x->dim(1) * (size * size), floordiv(x->dim(2), size),
                           floordiv(x->dim(3), size)},
                     x->dtype, 4);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0);
    const int64_t size = block_size(call);
    return kernel.emit_compute([&](const Indices& i) {
      const Expr block = floordiv(i[1], x.shape[1]);
      return x({i[0], floormod(i[1], x.shape[1]), i[2] * size + floordiv(block, size),
                i[3] * size + floormod(block, size)});
    });
  };
  op.fusion = FusionKind::kInjective;
  op.source = "ONNX SpaceToDepth-13";
  return op;
}

}  // namespace

std::vector<OpDef> layout_ops() { return {layout_transform(), depth_to_space(), space_to_depth()}; }

}  // namespace tenon::graph
