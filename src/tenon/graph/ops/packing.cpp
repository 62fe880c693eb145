// Layouts of operands that kernels like: conversions between them, and products with packed
// weights.
#include "tenon/graph/layout.h"
#include "tenon/graph/ops/define.h"
#include "tenon/graph/ops/window.h"

namespace tenon::graph {

namespace {

// ---- layout_transform

struct Conversion {
  Layout from, to;
  std::string letters;

  explicit Conversion(const Call& call)
      : from(parse(call, "src_layout")),
        to(parse_layout(call, "dst_layout", string_attr(call, "dst_layout"), from.primal())),
        letters(from.primal()) {
    check_rank(call, 0, static_cast<int64_t>(from.ndim()));
  }

  static Layout parse(const Call& call, const std::string& attr) {
    const auto layout = Layout::parse(string_attr(call, attr));
    if (!layout)
      throw CompileError(kBadAttribute, call.origin,
                         "attribute `{}` of `{}` is \"{}\"; expected a layout such as \"NCHW16c\"",
                         attr, call.op->name, string_attr(call, attr));
    return *layout;
  }

  std::vector<Expr> extents(const std::vector<Expr>& shape) const {
    std::vector<Expr> out;
    for (const char letter : letters) out.push_back(simplify_dim(from.extent(shape, letter)));
    return out;
  }
};

Type infer_layout_transform(const Call& call) {
  const Conversion conversion(call);
  const Ref<TensorType> x = tensor_arg(call, 0);
  const auto ndim = static_cast<int64_t>(conversion.to.ndim());
  if (!x->shape) return make<TensorType>(x->dtype, ndim);
  std::vector<Expr> shape = conversion.to.shape(conversion.letters, conversion.extents(*x->shape));
  for (Expr& dim : shape) dim = simplify_dim(dim);
  return make<TensorType>(std::move(shape), x->dtype);
}

Value lower_layout_transform(BlockBuilder& builder, const Call& call) {
  const Conversion conversion(call);
  KernelOf kernel(builder, call);
  const Operand x = kernel.buffer_arg(0);
  const std::vector<Expr> extents = conversion.extents(x.shape);
  return kernel.emit_compute([&](const Indices& i) {
    std::vector<Expr> coordinates;
    Expr inside = boolean(true);
    for (size_t d = 0; d < conversion.letters.size(); ++d) {
      const char letter = conversion.letters[d];
      coordinates.push_back(conversion.to.coordinate(i, letter));
      // Elements beyond the source's extent are padding.
      const auto extent = as_int(extents[d]);
      const int64_t block = conversion.to.block(letter);
      if (block > 1 && (!extent || *extent % block != 0))
        inside = logical_and(inside, coordinates.back() < extents[d]);
    }
    const Expr element = x(conversion.from.index(conversion.letters, coordinates));
    return if_then_else(inside, element, imm(x.dtype, int64_t{0}));
  });
}

OpDef layout_transform() {
  OpDef op;
  op.name = "layout_transform";
  op.summary =
      "The same tensor with its axes in another order and blocking; blocks are filled up with "
      "zeros.";
  op.inputs = {{"x", "of src_layout"}};
  op.attrs = {{"src_layout", AttrKind::kString, {}, "axes of x, as \"NCHW\""},
              {"dst_layout",
               AttrKind::kString,
               {},
               "axes of the result, as \"NCHW16c\" (C in blocks of 16)"}};
  op.infer_type = infer_layout_transform;
  op.lower = lower_layout_transform;
  op.fusion = FusionKind::kInjective;
  op.source = "TVM's layout notation";
  return op;
}

// ---- nn.packed_matmul

Type infer_packed_matmul(const Call& call) {
  const Ref<TensorType> a = tensor_arg(call, 0), b = tensor_arg(call, 1);
  check_rank(call, 1, 3);
  const int64_t units = int_attr(call, "units");
  if (a->ndim == 0)
    throw CompileError(kRankMismatch, call.origin, "`{}` of a scalar; expected at least a vector",
                       call.op->name);
  if (!a->shape) return make<TensorType>(a->dtype, a->ndim);
  if (b->shape) {
    check_dim(call, 1, b->dim(1), a->dim(-1), "rows");
    const auto panels = as_int(b->dim(0)), width = as_int(b->dim(2));
    if (units < 1 ||
        (panels && width && (units > *panels * *width || units <= (*panels - 1) * *width)))
      throw CompileError(kBadAttribute, call.origin, "`{}` has {} units; the weight is {}",
                         call.op->name, units, str(b));
  }
  std::vector<Expr> shape = *a->shape;
  shape.back() = int64(units);
  return make<TensorType>(std::move(shape), a->dtype);
}

Value lower_packed_matmul(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand a = kernel.buffer_arg(0), b = kernel.buffer_arg(1);
  const Expr width = b.shape[2];
  return kernel.emit({kernel.reduce(kernel.out_name(), kernel.shape(), {a.shape.back()},
                                    tir::sum_reducer(), [&](const Indices& i, const Indices& k) {
                                      Indices at = i;
                                      at.back() = k[0];
                                      return a(at) * b({floordiv(i.back(), width), k[0],
                                                        floormod(i.back(), width)});
                                    })});
}

OpDef packed_matmul() {
  OpDef op;
  op.name = "nn.packed_matmul";
  op.summary =
      "Product with a matrix (k, units) packed in panels of w columns: what layout_transform makes "
      "of it "
      "from \"IO\" to \"OI{w}o\".";
  op.inputs = {{"a", "(..., k)"}, {"b", "(ceil(units / w), k, w)"}};
  op.attrs = {{"units", AttrKind::kInt, {}, "columns of the result"}};
  op.infer_type = infer_packed_matmul;
  op.lower = lower_packed_matmul;
  op.fusion = FusionKind::kContraction;
  op.source = "Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008";
  return op;
}

}  // namespace

std::vector<OpDef> packing_ops() { return {layout_transform(), packed_matmul()}; }

}  // namespace tenon::graph
