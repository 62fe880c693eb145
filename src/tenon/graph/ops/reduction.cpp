// SPDX-License-Identifier: Apache-2.0
// Reductions along axes, statistics, positions of extremes, running sums.
#include <algorithm>

#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

struct ReductionAttrs {
  std::optional<std::vector<int64_t>> axis;
  bool keepdims = false;
  static auto table() {
    return std::tuple{
        attr<&ReductionAttrs::axis>("axis", "axes reduced; None: all"),
        attr<&ReductionAttrs::keepdims>("keepdims", "reduced axes stay, with extent 1")};
  }
};

// The axes of a reduction: all where the attribute is None.
std::vector<size_t> reduced_axes(const Call& call, const ReductionAttrs& attrs, int64_t ndim) {
  if (attrs.axis) return axes_of(call, *attrs.axis, ndim);
  std::vector<size_t> all;
  for (int64_t i = 0; i < ndim; ++i) all.push_back(static_cast<size_t>(i));
  return all;
}

Type reduced_type(const Call& call, DType dtype) {
  const Ref<TensorType> x = tensor_arg(call, 0);
  const auto attrs = attrs_as<ReductionAttrs>(call);
  const bool keepdims = attrs.keepdims;
  if (x->ndim < 0)
    return make<TensorType>(dtype, attrs.axis || keepdims ? int64_t{-1} : int64_t{0});
  const std::vector<size_t> reduced = reduced_axes(call, attrs, x->ndim);
  if (!x->shape)
    return make<TensorType>(dtype,
                            keepdims ? x->ndim : x->ndim - static_cast<int64_t>(reduced.size()));
  return make<TensorType>(reduced_shape(*x->shape, reduced, keepdims), dtype);
}

// Where reductions of one call read and what they run over.
struct Reduction {
  std::vector<size_t> axes;
  std::vector<Expr> extents;
  bool keepdims;

  Reduction(const Call& call, const Operand& x) {
    const auto attrs = attrs_as<ReductionAttrs>(call);
    keepdims = attrs.keepdims;
    axes = reduced_axes(call, attrs, static_cast<int64_t>(x.ndim()));
    std::sort(axes.begin(), axes.end());
    for (const size_t axis : axes) extents.push_back(x.shape[axis]);
  }
  std::vector<Expr> shape(const Operand& x) const { return reduced_shape(x.shape, axes, keepdims); }
  Expr count() const { return tir::element_count(extents); }

  // The index of x for the index `at` of the result and `over` of the reduced axes.
  Indices join(const Operand& x, const Indices& at, const Indices& over) const {
    Indices out;
    size_t kept = 0, inner = 0;
    for (size_t i = 0; i < x.ndim(); ++i) {
      if (contains(axes, i)) {
        out.push_back(over.at(inner++));
        kept += keepdims;
      } else {
        out.push_back(at.at(kept++));
      }
    }
    return out;
  }
  // `over` as one number, row-major.
  Expr flat(const Indices& over) const {
    Expr index = int64(0);
    for (size_t i = 0; i < over.size(); ++i) index = index * extents[i] + over[i];
    return index;
  }
};

void check_number(const Call& call) {
  const DType dtype = tensor_arg(call, 0)->dtype;
  if (!dtype.is_void() && !dtype.is_float() && !dtype.is_integer())
    throw CompileError(kDTypeMismatch, call.origin,
                       "argument `x` of `{}` has dtype {}; expected a number", call.op->name,
                       dtype.str());
}

// ONNX's names of a reduction.
OnnxName onnx_reduction(std::string_view name) { return {std::string(name), {{"axes", "axis"}}}; }

struct ReductionRow {
  std::string_view name;
  std::string_view summary;
  tir::Reducer (*reducer)();
  bool takes_bool;
  std::string_view onnx;
  LayoutRule layout = LayoutRule::kPlanar;
};
constexpr ReductionRow kRows[] = {
    {"sum", "sum", tir::sum_reducer, false, "ReduceSum", LayoutRule::kSpatialReduction},
    {"prod", "product", tir::prod_reducer, false, "ReduceProd"},
    {"max", "greatest element; NaN where one is", tir::max_reducer, true, "ReduceMax",
     LayoutRule::kSpatialReduction},
    {"min", "least element; NaN where one is", tir::min_reducer, true, "ReduceMin"},
};

OpDef reduction_op(const ReductionRow& row) {
  const auto reducer = row.reducer;
  const bool takes_bool = row.takes_bool;
  OpDef op;
  op.name = row.name;
  op.summary = row.summary;
  op.inputs = {{"x", "any shape"}};
  op.attrs = attrs_of<ReductionAttrs>();
  op.infer_type = [takes_bool](const Call& call) {
    const DType dtype = tensor_arg(call, 0)->dtype;
    if (!takes_bool || !dtype.is_bool()) check_number(call);
    return reduced_type(call, dtype);
  };
  op.lower = [reducer, widens = !takes_bool](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = widens ? kernel.wide_arg(0) : kernel.arg(0);
    const Reduction r(call, x);
    return kernel.emit(
        {kernel.reduce(kernel.out_name(), kernel.shape(), r.extents, reducer(),
                       [&](const Indices& i, const Indices& k) { return x(r.join(x, i, k)); })});
  };
  op.fusion = FusionKind::kReduction;
  op.layout = row.layout;
  op.onnx = onnx_reduction(row.onnx);
  return op;
}

// The mean as a buffer, in the dtype that x is read in.
Operand mean_of(KernelOf& kernel, const Operand& x, const Reduction& r, const std::string& name) {
  const Operand total =
      kernel.reduce("x_sum", r.shape(x), r.extents, tir::sum_reducer(),
                    [&](const Indices& i, const Indices& k) { return x(r.join(x, i, k)); });
  return kernel.compute(name, r.shape(x), [&](const Indices& i) {
    return total(i) / tenon::cast(x.dtype, r.count());
  });
}

Operand variance_of(KernelOf& kernel, const Operand& x, const Reduction& r,
                    const std::string& name) {
  const Operand mean = mean_of(kernel, x, r, "x_mean");
  const Operand squares = kernel.reduce("x_squares", r.shape(x), r.extents, tir::sum_reducer(),
                                        [&](const Indices& i, const Indices& k) {
                                          const Expr d = x(r.join(x, i, k)) - mean(i);
                                          return d * d;
                                        });
  return kernel.compute(name, r.shape(x), [&](const Indices& i) {
    return squares(i) / tenon::cast(x.dtype, r.count());
  });
}

OpDef statistic(std::string name, std::string summary, bool floats_only,
                std::function<Operand(KernelOf&, const Operand&, const Reduction&)> build) {
  OpDef op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {{"x", "any shape"}};
  op.attrs = attrs_of<ReductionAttrs>();
  op.infer_type = [floats_only](const Call& call) {
    check_number(call);
    if (floats_only) check_float(call, 0);
    return reduced_type(call, tensor_arg(call, 0)->dtype);
  };
  op.lower = [build = std::move(build)](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.wide_arg(0);
    return kernel.emit({build(kernel, x, Reduction(call, x))});
  };
  op.fusion = FusionKind::kReduction;
  return op;
}

Operand log_sum_exp(KernelOf& kernel, const Operand& x, const Reduction& r) {
  const std::vector<Expr> shape = r.shape(x);
  const Operand most =
      kernel.reduce("x_max", shape, r.extents, tir::max_reducer(),
                    [&](const Indices& i, const Indices& k) { return x(r.join(x, i, k)); });
  // An infinite maximum would give inf - inf.
  const auto shift = [&](const Indices& i) {
    return select(float_call(IntrinsicId::kIsfinite, {most(i)}), most(i), imm(x.dtype, int64_t{0}));
  };
  const Operand total = kernel.reduce(
      "x_sum", shape, r.extents, tir::sum_reducer(), [&](const Indices& i, const Indices& k) {
        return float_call(IntrinsicId::kExp, {x(r.join(x, i, k)) - shift(i)});
      });
  return kernel.compute(kernel.out_name(), shape, [&](const Indices& i) {
    return float_call(IntrinsicId::kLog, {total(i)}) + shift(i);
  });
}

struct ArgExtremeAttrs : ReductionAttrs {
  bool select_last_index = false;
  static auto table() {
    return std::tuple{
        attr<&ReductionAttrs::axis>("axis", "one axis; None: of the flattened tensor"),
        attr<&ReductionAttrs::keepdims>("keepdims", "reduced axes stay, with extent 1"),
        attr<&ArgExtremeAttrs::select_last_index>("select_last_index",
                                                  "of equal ones take the last, not the first")};
  }
};

// The position of an extreme: the extreme first, then the least (or greatest) position that has it.
OpDef arg_extreme(std::string name, std::string summary, tir::Reducer (*reducer)()) {
  OpDef op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {{"x", "any shape"}};
  op.attrs = attrs_of<ArgExtremeAttrs>();
  op.infer_type = [](const Call& call) {
    check_number(call);
    const auto axes = attrs_as<ArgExtremeAttrs>(call).axis;
    if (axes && axes->size() != 1)
      throw CompileError(kBadAttribute, call.origin, "`{}` has axes {}; expected one",
                         call.op->name, AttrValue(*axes).str());
    return reduced_type(call, kInt64);
  };
  op.lower = [reducer](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0);
    const Reduction r(call, x);
    const bool last = attrs_as<ArgExtremeAttrs>(call).select_last_index;
    const Operand extreme =
        kernel.reduce("extreme", kernel.shape(), r.extents, reducer(),
                      [&](const Indices& i, const Indices& k) { return x(r.join(x, i, k)); });
    const tir::Reducer position = last ? tir::max_reducer() : tir::min_reducer();
    return kernel.emit({kernel.reduce(kernel.out_name(), kernel.shape(), r.extents, position,
                                      [&](const Indices& i, const Indices& k) {
                                        const Expr value = x(r.join(x, i, k));
                                        // A NaN is the extreme, and equal to nothing.
                                        Expr hit = eq(value, extreme(i));
                                        if (x.dtype.is_float())
                                          hit = logical_or(hit, ne(value, value));
                                        return select(hit, r.flat(k), last ? int64(-1) : r.count());
                                      })});
  };
  op.fusion = FusionKind::kReduction;
  op.source = "ONNX ArgMax-13";
  return op;
}

struct CumulativeAttrs {
  std::optional<int64_t> axis;
  DType dtype = kVoid;
  bool exclusive = false, reverse = false;
  static auto table() {
    return std::tuple{
        attr<&CumulativeAttrs::axis>("axis", "None: rank 1 only"),
        attr<&CumulativeAttrs::dtype>("dtype", "of the result; void: that of the input"),
        attr<&CumulativeAttrs::exclusive>("exclusive", "element i is not part of result i"),
        attr<&CumulativeAttrs::reverse>("reverse", "from the last element to the first")};
  }
};

OpDef cumulative(std::string name, std::string summary, tir::Reducer (*reducer)()) {
  OpDef op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {{"data", "any shape"}};
  op.attrs = attrs_of<CumulativeAttrs>();
  op.infer_type = [](const Call& call) {
    check_number(call);
    const Ref<TensorType> x = tensor_arg(call, 0);
    const auto attrs = attrs_as<CumulativeAttrs>(call);
    if (!attrs.axis) check_rank(call, 0, 1);
    if (x->ndim >= 0) (void)axis_of(call, attrs.axis.value_or(0), x->ndim);
    return same_shape(call, 0, attrs.dtype.is_void() ? x->dtype : attrs.dtype);
  };
  op.lower = [reducer](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0);
    const auto attrs = attrs_as<CumulativeAttrs>(call);
    const size_t axis = axis_of(call, attrs.axis.value_or(0), static_cast<int64_t>(x.ndim()));
    const bool exclusive = attrs.exclusive, reverse = attrs.reverse;
    const DType dtype = wide_dtype(kernel.dtype());
    const auto place = [&](Indices at, int64_t back) {
      at[axis] = at[axis] - back;
      if (reverse) at[axis] = x.shape[axis] - 1 - at[axis];
      return at;
    };
    // The scan runs over positions from the end that it starts at.
    const auto [combine, identity] = std::pair(reducer().combine, reducer().identity(dtype));
    const Operand sums = kernel.scan(
        reverse ? "sums" : kernel.out_name(), kernel.shape(), axis, dtype,
        [&](const Indices& i, const Operand& out) {
          Indices before = i;
          before[axis] = i[axis] - 1;
          const Expr element = tenon::cast(dtype, x(place(i, exclusive ? 1 : 0)));
          const Expr first = exclusive ? identity : element;
          return if_then_else(eq(i[axis], int64(0)), first, combine(out(before), element));
        });
    if (!reverse) return kernel.emit({sums});
    return kernel.emit_compute([&](const Indices& i) { return sums(place(i, 0)); });
  };
  op.fusion = FusionKind::kOpaque;
  op.source = "ONNX CumSum-14";
  return op;
}

}  // namespace

std::vector<OpDef> reduction_ops() {
  std::vector<OpDef> ops;
  for (const ReductionRow& row : kRows) ops.push_back(reduction_op(row));
  ops.push_back(
      statistic("mean", "mean", false, [](KernelOf& kernel, const Operand& x, const Reduction& r) {
        return mean_of(kernel, x, r, kernel.out_name());
      }));
  ops.back().layout = LayoutRule::kSpatialReduction;
  ops.back().onnx = onnx_reduction("ReduceMean");
  ops.push_back(statistic("variance", "mean of the squared distances from the mean", true,
                          [](KernelOf& kernel, const Operand& x, const Reduction& r) {
                            return variance_of(kernel, x, r, kernel.out_name());
                          }));
  ops.push_back(statistic("std", "square root of the variance", true,
                          [](KernelOf& kernel, const Operand& x, const Reduction& r) {
                            const Operand variance = variance_of(kernel, x, r, "x_variance");
                            return kernel.compute(
                                kernel.out_name(), r.shape(x), [&](const Indices& i) {
                                  return float_call(IntrinsicId::kSqrt, {variance(i)});
                                });
                          }));
  ops.push_back(statistic("logsumexp", "log(sum(exp(x))) without overflow", true, log_sum_exp));
  ops.push_back(arg_extreme("argmax", "position of the greatest element", tir::max_reducer));
  ops.push_back(arg_extreme("argmin", "position of the least element", tir::min_reducer));
  ops.push_back(cumulative("cumsum", "sums of all elements up to each", tir::sum_reducer));
  ops.push_back(cumulative("cumprod", "products of all elements up to each", tir::prod_reducer));
  return ops;
}

}  // namespace tenon::graph
