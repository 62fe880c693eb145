// SPDX-License-Identifier: Apache-2.0
// Convolutions and pools.
#include <cmath>
#include <limits>

#include "tenon/arith/analyzer.h"
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

// The window's attributes as ONNX writes them.
struct Window {
  Dims kernel;                                    // of symbols where a weight says it alone
  std::vector<int64_t> strides, dilations, pads;  // pads: all begins, then all ends

  // `kernel` empty: from the attribute.
  Window(Context& c, Dims size) : kernel(std::move(size)) {
    if (c.has_attr("kernel_shape")) {
      const auto given = c.ints_attr("kernel_shape");
      bool fits = kernel.empty() || given.size() == kernel.size();
      for (size_t d = 0; fits && d < kernel.size(); ++d)
        fits = as_int(kernel[d]).value_or(given[d]) == given[d];
      if (!fits)
        c.bad(kShapeMismatch, "kernel_shape of `{}` is {}; the weight has {}", c.node().op_type,
              str(given), str(kernel));
      kernel = to_exprs(given);
    } else if (kernel.empty()) {
      c.bad(kBadAttribute, "`{}` has no attribute `kernel_shape`, a list of integers",
            c.node().op_type);
    }
    const auto rank = static_cast<size_t>(c.ndim(0)) - 2;
    if (kernel.size() != rank)
      c.bad(kRankMismatch, "kernel_shape of `{}` has {} dimensions; the input has {} spatial axes",
            c.node().op_type, kernel.size(), rank);
    if (const auto known = as_ints(kernel)) c.note("kernel_shape", *known);
    strides = sized(c, "strides", rank, 1, 1);
    dilations = sized(c, "dilations", rank, 1, 1);
    for (const Expr& k : kernel)
      c.require(k >= int64(1), kBadAttribute,
                fmt::format("kernel_shape of `{}` is {}; expected positive numbers",
                            c.node().op_type, str(kernel)));
    const std::string mode = c.string_attr("auto_pad", "NOTSET");
    pads = sized(c, "pads", 2 * rank, 0, mode == "NOTSET" ? 0 : INT64_MIN);
    if (mode == "NOTSET") return;
    pads.assign(2 * rank, 0);
    c.note("pads", pads);
    if (mode == "VALID") return;
    if (mode != "SAME_UPPER" && mode != "SAME_LOWER")
      c.bad(
          kBadAttribute,
          "attribute `auto_pad` of `{}` is `{}`; expected NOTSET, VALID, SAME_UPPER or SAME_LOWER",
          c.node().op_type, mode);
    same = mode == "SAME_LOWER" ? Same::kLower : Same::kUpper;
  }

  enum class Same : uint8_t { kNo, kUpper, kLower };
  Same same = Same::kNo;

  size_t rank() const { return kernel.size(); }

  static std::vector<int64_t> sized(Context& c, const char* name, size_t count, int64_t otherwise,
                                    int64_t least) {
    std::vector<int64_t> values = c.ints_attr(name, std::vector<int64_t>(count, otherwise));
    if (values.size() != count)
      c.bad(kBadAttribute, "attribute `{}` of `{}` has {} numbers; expected {}", name,
            c.node().op_type, values.size(), count);
    for (const int64_t v : values)
      if (v < least || v > (int64_t{1} << 40))
        c.bad(kBadAttribute, "attribute `{}` of `{}` is {}; expected at least {}", name,
              c.node().op_type, str(values), least);
    return values;
  }

  // Pads so that there are ceil(extent / stride) windows. How much that is hangs on the extent only
  // where the stride is not 1.
  void pad_to_same(Context& c) {
    if (same == Same::kNo) return;
    bool symbolic = false;
    for (size_t d = 0; d < rank(); ++d) {
      const Expr extent = c.shape(0)[d + 2];
      const Expr reach = (kernel[d] - 1) * dilations[d];  // without the first tap
      const Expr last = arith::simplify(floormod(extent - int64(1), int64(strides[d])));
      const Expr total = arith::simplify(max(reach - last, int64(0)));
      if (const auto known = as_int(total)) {
        split(d, *known, same);
      } else {
        symbolic = true;
        set_run_time_pads(d, total);
      }
    }
    if (!symbolic) c.note("pads", pads);
  }
  // The image with what is padded by numbers that only the run knows.
  Value padded(Context& c, const Value& image, const Value& fill = nullptr) const {
    if (run_time_pads.empty()) return image;
    std::vector<Value> args{image, c.shape_value(run_time_pads)};
    if (fill) args.push_back(fill);
    return c.op("nn.pad", std::move(args), {{"pad_mode", "constant"}});
  }
  Dims run_time_pads;  // before and after each axis of the image; empty: none
  void set_run_time_pads(size_t d, const Expr& total) {
    run_time_pads.resize(2 * (rank() + 2), int64(0));
    const Expr less = arith::simplify(floordiv(total, int64(2)));
    const Expr more = arith::simplify(total - less);
    run_time_pads[2 * d + 4] = same == Same::kLower ? more : less;
    run_time_pads[2 * d + 5] = same == Same::kLower ? less : more;
  }
  void split(size_t d, int64_t total, Same how) {
    const int64_t less = total / 2, more = total - less;
    pads[d] = how == Same::kLower ? more : less;
    pads[d + rank()] = how == Same::kLower ? less : more;
  }
};

void check_images(Context& c, size_t i) {
  if (c.ndim(i) < 3)
    c.bad(kRankMismatch, "`{}` has an operand of rank {}; expected at least 3", c.node().op_type,
          c.ndim(i));
  if (c.ndim(i) > 5) unsupported("{} spatial axes", c.ndim(i) - 2);
}

Dims kernel_of(Context& c, size_t weight) {
  if (c.ndim(weight) != c.ndim(0))
    c.bad(kRankMismatch, "`{}` has a weight of rank {} for an input of rank {}", c.node().op_type,
          c.ndim(weight), c.ndim(0));
  const Dims shape = c.shape(weight);
  return Dims(shape.begin() + 2, shape.end());
}

// The weight with the extents that the attribute states where its own are symbols.
Value with_kernel(Context& c, const Value& weight, const Window& window) {
  Dims dims(2);
  dims.insert(dims.end(), window.kernel.begin(), window.kernel.end());
  return c.fitted(weight, dims, "the weight");
}

Value with_bias(Context& c, const Value& result, const Value& bias) {
  if (!bias) return result;
  const auto type = shaped(bias);
  if (type->ndim != 1)
    c.bad(kRankMismatch, "the bias of `{}` has rank {}; expected 1", c.node().op_type, type->ndim);
  Dims dims(static_cast<size_t>(shaped(result)->ndim), int64(1));
  dims[1] = type->dim(0);
  return c.op("add", {result, c.reshape(bias, dims)});
}

Value convolve(Context& c, const Value& x, const Value& w, const Window& window) {
  // Narrow floats are summed in float32.
  const DType dtype = shaped(x)->dtype;
  const bool narrow = dtype.is_float() && dtype.bits < 32;
  const Value y = c.op(fmt::format("nn.conv{}d", window.rank()), {x, w},
                       {{"strides", window.strides},
                        {"padding", window.pads},
                        {"dilation", window.dilations},
                        {"groups", c.int_attr("group", 1)},
                        {"out_dtype", narrow ? kFloat32 : kVoid}});
  return c.cast(y, dtype);
}

Results convert_conv(Context& c) {
  check_images(c, 0);
  Window window(c, kernel_of(c, 1));
  window.pad_to_same(c);
  const Value x = window.padded(c, c.value(0));
  const Value w = with_kernel(c, c.value(1), window);
  return {with_bias(c, convolve(c, x, w, window), c.value_or_null(2))};
}

Value less_zero_point(Context& c, size_t operand, size_t zero_point) {
  Value x = c.cast(c.value(operand), kInt32);
  if (!c.has(zero_point)) return x;
  Value zero = c.cast(c.value(zero_point), kInt32);
  const auto type = shaped(zero);
  if (type->ndim == 1 && !is_int(type->dim(0), 1)) {
    Dims dims(static_cast<size_t>(c.ndim(operand)), int64(1));
    dims[0] = type->dim(0);
    zero = c.reshape(zero, dims);
  } else {
    zero = c.reshape(zero, {});
  }
  return c.op("subtract", {x, zero});
}

Results convert_conv_integer(Context& c) {
  check_images(c, 0);
  Window window(c, kernel_of(c, 1));
  window.pad_to_same(c);
  const Value x = window.padded(c, less_zero_point(c, 0, 2));
  const Value w = with_kernel(c, less_zero_point(c, 1, 3), window);
  return {convolve(c, x, w, window)};
}

// ONNX: of the padding of a transposed convolution, the larger half goes to the begin unless
// SAME_UPPER is asked for.
Window::Same smaller_half(const Window& window) {
  return window.same == Window::Same::kUpper ? Window::Same::kUpper : Window::Same::kLower;
}

// A result, by axis of the window, with so many more elements, zeros behind, or fewer, cut from both
// ends: only the run knows which.
Value resized(Context& c, const Value& y, const std::vector<std::pair<size_t, Expr>>& changes,
              Window::Same half) {
  Dims widths(static_cast<size_t>(2 * shaped(y)->ndim), int64(0));
  for (const auto& [d, more] : changes) {
    const Expr cut = max(int64(0) - more, int64(0)), less = floordiv(cut, int64(2));
    const Expr begin = half == Window::Same::kUpper ? less : cut - less;
    widths[2 * (d + 2)] = arith::simplify(int64(0) - begin);
    widths[2 * (d + 2) + 1] = arith::simplify(max(more, int64(0)) - (cut - begin));
  }
  return c.op("nn.pad", {y, c.shape_value(widths)}, {{"pad_mode", "constant"}});
}

Results convert_conv_transpose(Context& c) {
  check_images(c, 0);
  Window window(c, kernel_of(c, 1));
  const size_t rank = window.rank();
  std::vector<int64_t> extra = Window::sized(c, "output_padding", rank, 0, 0);
  const bool sized = c.has_attr("output_shape");
  std::vector<std::pair<size_t, Expr>> changes;
  if (sized || window.same != Window::Same::kNo) {
    std::vector<int64_t> target = c.ints_attr("output_shape", {});
    if (sized && target.size() == rank + 2) target.erase(target.begin(), target.begin() + 2);
    if (sized && target.size() != rank)
      c.bad(kBadAttribute,
            "attribute `output_shape` of `ConvTranspose` has {} numbers; expected {}",
            target.size(), rank);
    for (size_t d = 0; d < rank; ++d) {
      const Expr extent = c.shape(0)[d + 2];
      const Expr wanted = sized ? int64(target[d]) : extent * window.strides[d];
      const Expr full = (extent - 1) * window.strides[d] +
                        (window.kernel[d] - 1) * window.dilations[d] + (1 + extra[d]);
      const Expr more = arith::simplify(wanted - full);
      const auto known = as_int(more);
      window.split(d, known ? std::max<int64_t>(-*known, 0) : 0, smaller_half(window));
      if (known)
        extra[d] += std::max<int64_t>(*known, 0);
      else
        changes.emplace_back(d, more);
    }
  }
  c.note("pads", window.pads);
  c.note("output_padding", extra);
  const Value w = with_kernel(c, c.value(1), window);
  Value y = c.op(fmt::format("nn.conv{}d_transpose", rank), {c.value(0), w},
                 {{"strides", window.strides},
                  {"padding", window.pads},
                  {"dilation", window.dilations},
                  {"output_padding", extra},
                  {"groups", c.int_attr("group", 1)}});
  if (!changes.empty()) y = resized(c, y, changes, smaller_half(window));
  return {with_bias(c, y, c.value_or_null(2))};
}

// The p of a norm: a float in opset 1.
int64_t norm_of(Context& c) {
  const double p = c.opset() < 2 ? c.float_attr("p", 2.0) : static_cast<double>(c.int_attr("p", 2));
  if (!(p >= 1) || p != std::floor(p) || p > 1e6) unsupported("p = {}", p);
  return static_cast<int64_t>(p);
}

// A pool that is padded by numbers which only the run knows.
Results pool_padded(Context& c, const Window& window, const std::string& pool, const Attrs& attrs) {
  if (c.output_count() > 1 && !c.node().outputs[1].empty())
    unsupported("positions under auto_pad of a symbolic dimension");
  const DType dtype = c.dtype(0);
  Value fill;
  if (pool.starts_with("nn.max")) {
    // Exact in a double.
    fill = c.scalar(dtype, dtype.is_float() ? -std::numeric_limits<double>::infinity()
                           : dtype.is_int() ? -std::ldexp(1.0, dtype.bits - 1)
                                            : 0);
  }
  const Value pooled = c.op(pool, {window.padded(c, c.value(0), fill)}, attrs);
  if (!pool.starts_with("nn.avg") || attrs.get<bool>("count_include_pad").value_or(false))
    return {pooled};
  // The share of each window that lies in the image.
  Dims shape = c.shape(0);
  shape[0] = shape[1] = int64(1);
  const Value ones = c.op("ones", {c.shape_value(shape)}, {{"dtype", dtype}});
  return {c.op("divide", {pooled, c.op(pool, {window.padded(c, ones)}, attrs)})};
}

Results convert_pool(Context& c, const char* kind) {
  check_images(c, 0);
  Window window(c, {});
  window.pad_to_same(c);
  const Ints size = as_ints(window.kernel).value();
  Attrs attrs{{"pool_size", size},
              {"strides", window.strides},
              {"padding", window.pads},
              {"dilation", window.dilations},
              {"ceil_mode", c.flag_attr("ceil_mode")}};
  const std::string name = kind;
  if (name == "avg") attrs.set("count_include_pad", c.flag_attr("count_include_pad"));
  if (name == "lp") attrs.set("p", norm_of(c));
  const bool column_major = name == "max" && c.flag_attr("storage_order");
  const std::string pool = fmt::format("nn.{}_pool{}d", name, window.rank());
  if (!window.run_time_pads.empty()) return pool_padded(c, window, pool, attrs);
  const Value pooled = c.op(pool, {c.value(0)}, attrs);
  if (c.output_count() < 2 || c.node().outputs[1].empty()) return {pooled};
  return {pooled, c.op("nn.max_pool_positions", {c.value(0), pooled},
                       {{"pool_size", size},
                        {"strides", window.strides},
                        {"padding", window.pads},
                        {"dilation", window.dilations},
                        {"column_major", column_major}})};
}

// Each element to the place that the pool it comes from found it at.
Results convert_max_unpool(Context& c) {
  check_images(c, 0);
  const Window window(c, {});
  const size_t rank = window.rank();
  const Dims from = c.shape(0);
  Dims shape = {from[0], from[1]};
  for (size_t d = 0; d < rank; ++d)
    shape.push_back(arith::simplify((from[2 + d] - 1) * window.strides[d] + window.kernel[d] -
                                    (window.pads[d] + window.pads[d + rank])));
  const DType dtype = c.dtype(0);
  const Value zeros = c.op("zeros", {c.shape_value({product(shape)})}, {{"dtype", dtype}});
  const Value flat = c.op("scatter_elements", {zeros, c.reshape(c.value(1), {product(from)}),
                                               c.reshape(c.value(0), {product(from)})});
  const Value unpooled = c.reshape(flat, shape);
  if (!c.has(2)) return {unpooled};
  // A larger shape has zeros behind.
  const Dims wanted = c.dims(2, "output_shape");
  if (wanted.size() != shape.size())
    c.bad(kShapeMismatch, "operand `output_shape` of `MaxUnpool` is {}; expected {} numbers",
          str(wanted), shape.size());
  std::vector<int64_t> pads;
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto more = as_int(arith::simplify(wanted[d] - shape[d]));
    if (!more) unsupported("output_shape with symbolic dimensions");
    if (*more < 0)
      c.bad(kShapeMismatch, "operand `output_shape` of `MaxUnpool` is {}; expected at least {}",
            str(wanted), str(shape));
    pads.insert(pads.end(), {0, *more});
  }
  return {c.op("nn.pad", {unpooled}, {{"pad_width", pads}})};
}

// Over all spatial axes.
Results convert_global(Context& c, const char* op) {
  if (c.ndim(0) < 2)
    c.bad(kRankMismatch, "`{}` of a tensor of rank {}; expected at least 2", c.node().op_type,
          c.ndim(0));
  std::vector<int64_t> axes;
  for (int64_t d = 2; d < c.ndim(0); ++d) axes.push_back(d);
  if (axes.empty()) return {c.value(0)};
  return {c.op(op, {c.value(0)}, {{"axis", axes}, {"keepdims", true}})};
}

Results convert_global_lp(Context& c) {
  const int64_t p = norm_of(c);
  std::vector<int64_t> axes;
  for (int64_t d = 2; d < c.ndim(0); ++d) axes.push_back(d);
  const DType dtype = c.dtype(0), wide = dtype.bits < 32 ? kFloat32 : dtype;
  Value x = c.cast(c.value(0), wide);
  x = c.op(p == 2 ? "square" : "abs", {x});
  if (p > 2) x = c.op("power", {x, c.scalar(wide, static_cast<double>(p))});
  if (!axes.empty()) x = c.op("sum", {x}, {{"axis", axes}, {"keepdims", true}});
  if (p == 2) x = c.op("sqrt", {x});
  if (p > 2) x = c.op("power", {x, c.scalar(wide, 1 / static_cast<double>(p))});
  return {c.cast(x, dtype)};
}

}  // namespace

std::vector<OperatorRow> window_rows() {
  return {
      {"Conv", 1, 2, 3, convert_conv, "floats", "1 to 3 spatial axes"},
      {"ConvInteger", 10, 2, 4, convert_conv_integer, "int8, uint8", "1 to 3 spatial axes"},
      {"ConvTranspose", 1, 2, 3, convert_conv_transpose, "floats", "1 to 3 spatial axes"},
      {"MaxPool", 1, 1, 1, [](Context& c) { return convert_pool(c, "max"); }, "numbers",
       "1 to 3 spatial axes"},
      {"MaxUnpool", 9, 2, 3, convert_max_unpool, "numbers",
       "1 to 3 spatial axes; output_shape known at compile time"},
      {"AveragePool", 1, 1, 1, [](Context& c) { return convert_pool(c, "avg"); }, "floats",
       "1 to 3 spatial axes"},
      {"LpPool", 1, 1, 1, [](Context& c) { return convert_pool(c, "lp"); }, "floats",
       "1 to 3 spatial axes"},
      {"GlobalAveragePool", 1, 1, 1, [](Context& c) { return convert_global(c, "mean"); },
       "floats"},
      {"GlobalMaxPool", 1, 1, 1, [](Context& c) { return convert_global(c, "max"); }, "numbers"},
      {"GlobalLpPool", 1, 1, 1, convert_global_lp, "floats"},
  };
}

}  // namespace tenon::onnx
