// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms. Those of a few points are written out, others that are short are a
// product with a constant matrix. Long ones whose length has small factors are taken apart by them
// (Cooley and Tukey), each step again a product; others are sums of n terms for each element.
#include <algorithm>
#include <cmath>

#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

constexpr int64_t kMostWrittenOut = 16;   // points of a transform whose steps are all written
constexpr int64_t kLongestProduct = 256;  // points of a transform that is one product
constexpr int64_t kLargestRadix = 64;     // points of one step of a long transform
constexpr double kTurn = 2 * 3.14159265358979323846;

struct DftAttrs {
  int64_t axis = -2;
  std::optional<int64_t> length;
  bool inverse = false, onesided = false;
  static auto table() {
    return std::tuple{
        attr<&DftAttrs::axis>("axis", "transformed; not the last"),
        attr<&DftAttrs::length>("length",
                                "points: data is cut or padded with zeros; None: as many "
                                "as there are"),
        attr<&DftAttrs::inverse>("inverse", "with the opposite sign, divided by the points"),
        attr<&DftAttrs::onesided>("onesided",
                                  "forward: the first half of the result; inverse: of "
                                  "the data, and the result is real")};
  }
};

// The extents of a call.
struct Plan {
  size_t axis;
  Expr in, points, out;
  int64_t parts_in, parts_out;  // 1: real, 2: complex
  bool inverse, onesided;

  bool is_real_result() const { return inverse && onesided; }
};

std::optional<Plan> plan_of(const Call& call) {
  const auto attrs = attrs_as<DftAttrs>(call);
  const Ref<TensorType> x = tensor_arg(call, 0);
  check_float(call, 0);
  if (x->ndim < 0) return std::nullopt;
  const size_t axis = axis_of(call, attrs.axis, x->ndim);
  if (static_cast<int64_t>(axis) == x->ndim - 1)
    throw CompileError(kBadAttribute, call.origin,
                       "`{}` along axis {}, which has the real and the imaginary part",
                       call.op->name, attrs.axis);
  if (attrs.length && *attrs.length < 1)
    throw CompileError(kBadAttribute, call.origin, "`{}` of {} points; expected at least 1",
                       call.op->name, *attrs.length);
  if (!x->shape) return std::nullopt;
  const auto parts = as_int(x->dim(-1));
  if (!parts || (*parts != 1 && *parts != 2))
    throw CompileError(kShapeMismatch, call.origin,
                       "the last dimension of argument `data` of `{}` is {}; expected 1 or 2",
                       call.op->name, tenon::str(x->dim(-1)));
  Plan plan{axis, (*x->shape)[axis], {}, {}, *parts, 2, attrs.inverse, attrs.onesided};
  const bool real_result = plan.is_real_result();
  plan.points = attrs.length  ? int64(*attrs.length)
                : real_result ? simplify_dim((plan.in - 1) * 2)
                              : plan.in;
  if (as_int(plan.points).value_or(1) < 1)
    throw CompileError(kShapeMismatch, call.origin, "`{}` of {} points; expected at least 1",
                       call.op->name, tenon::str(plan.points));
  plan.parts_out = real_result ? 1 : 2;
  plan.out =
      attrs.onesided && !attrs.inverse ? simplify_dim(floordiv(plan.points, 2) + 1) : plan.points;
  return plan;
}

// ---- constant matrices --------------------------------------------------------------------------

Value constant_of(DType dtype, std::vector<int64_t> shape, const std::vector<double>& values) {
  if (dtype == kFloat64) return make<Constant>(TensorData::of(dtype, shape, values));
  const std::vector<float> narrow(values.begin(), values.end());
  return make<Constant>(TensorData::of(dtype, shape, narrow));
}

// cos and sin of turn * t / n.
struct Root {
  double real, imag;
  Root(int64_t t, int64_t n, bool inverse) {
    t %= n;
    const double angle = kTurn * static_cast<double>(t) / static_cast<double>(n);
    // Exact on the axes: what is 0 by symmetry is 0.
    real = 4 * t == n || 4 * t == 3 * n ? 0 : std::cos(angle);
    imag = 2 * t % n == 0 ? 0 : inverse ? std::sin(angle) : -std::sin(angle);
  }
  // What part `from` of an element adds to part `to` of its product with the root.
  double between(int64_t from, int64_t to) const {
    if (from == to) return real;
    return from == 0 ? imag : -imag;
  }
};

class Transform {
 public:
  Transform(BlockBuilder& builder, const Plan& plan, DType dtype)
      : builder_(builder), plan_(plan), dtype_(dtype) {}

  // The whole transform of `x` (rows, extent, parts) as one product; (rows, out, parts).
  Value product(const Value& x, const Expr& rows, int64_t extent) {
    const int64_t n = *as_int(plan_.points), m = *as_int(plan_.out);
    const bool halves = plan_.is_real_result();
    const int64_t used = std::min(extent, halves ? n / 2 + 1 : n);
    std::vector<double> matrix;
    for (int64_t j = 0; j < extent; ++j)
      for (int64_t h = 0; h < plan_.parts_in; ++h)
        for (int64_t k = 0; k < m; ++k)
          for (int64_t p = 0; p < plan_.parts_out; ++p) {
            // Elements of a half stand for their mirror images too.
            const double times = halves && j != 0 && 2 * j != n ? 2 : 1;
            const double w = Root(j * k, n, plan_.inverse).between(h, p) * times;
            matrix.push_back(j >= used ? 0 : plan_.inverse ? w / static_cast<double>(n) : w);
          }
    const Value weights =
        constant_of(dtype_, {extent * plan_.parts_in, m * plan_.parts_out}, matrix);
    const Value flat = reshape(x, {rows, int64(extent * plan_.parts_in)});
    return reshape(builder_.op("matmul", {flat, weights}),
                   {rows, int64(m), int64(plan_.parts_out)});
  }

  // The same by steps of the radices, whose product is the number of points: of
  // (rows, parts, points) with real parts and imaginary ones apart; (rows, points, 2).
  Value steps(Value x, const Expr& rows, const std::vector<int64_t>& radices) {
    int64_t n = *as_int(plan_.points), parts = plan_.parts_in;
    Expr batch = rows;
    for (size_t s = 0; s + 1 < radices.size(); ++s) {
      const int64_t r = radices[s], rest = n / r;
      x = reshape(x, {batch, int64(parts * r), int64(rest)});
      x = builder_.op("matmul", {radix(r, parts, 1, false), x});
      x = reshape(x, {batch, int64(2), int64(r), int64(rest)});
      x = builder_.op("signal.twiddle", {x, twiddles(r, rest)});
      batch = simplify_dim(batch * r);
      n = rest;
      parts = 2;
    }
    const double scale = plan_.inverse ? 1 / static_cast<double>(*as_int(plan_.points)) : 1;
    x = reshape(x, {batch, int64(parts * n)});
    x = builder_.op("matmul", {x, radix(n, parts, scale, true)});
    // The digits of an index stand in the opposite order.
    Shape digits = {rows};
    for (size_t s = 0; s + 1 < radices.size(); ++s) digits.push_back(int64(radices[s]));
    digits.push_back(int64(2));
    digits.push_back(int64(n));
    std::vector<int64_t> order = {0};
    const auto count = static_cast<int64_t>(radices.size());
    order.push_back(count + 1);
    for (int64_t d = count - 1; d >= 1; --d) order.push_back(d);
    order.push_back(count);
    x = builder_.op("permute_dims", {reshape(x, digits)}, {{"axes", order}});
    return reshape(x, {rows, plan_.points, int64(2)});
  }

  Value reshape(const Value& x, Shape shape) {
    return builder_.op("reshape", {x, make<ShapeExpr>(std::move(shape))});
  }

 private:
  // The matrix of a transform of r points, with the parts of all points one after the other:
  // (2 * r, parts * r), or transposed.
  Value radix(int64_t r, int64_t parts, double scale, bool transposed) {
    const int64_t rows = 2 * r, columns = parts * r;
    std::vector<double> values(static_cast<size_t>(rows * columns));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t at = transposed ? j * rows + i : i * columns + j;
        values[static_cast<size_t>(at)] =
            scale * Root((i % r) * (j % r), r, plan_.inverse).between(j / r, i / r);
      }
    return transposed ? constant_of(dtype_, {columns, rows}, values)
                      : constant_of(dtype_, {rows, columns}, values);
  }

  // (2, 2, r, rest): what part h adds to part p of element (k, j).
  Value twiddles(int64_t r, int64_t rest) {
    std::vector<double> values;
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t p = 0; p < 2; ++p)
        for (int64_t k = 0; k < r; ++k)
          for (int64_t j = 0; j < rest; ++j)
            values.push_back(Root(k * j, r * rest, plan_.inverse).between(h, p));
    return constant_of(dtype_, {2, 2, r, rest}, values);
  }

  BlockBuilder& builder_;
  const Plan& plan_;
  DType dtype_;
};

// Numbers of at most kLargestRadix whose product is n, as few as a greedy search finds, the
// smallest first; empty where a prime factor is greater.
std::vector<int64_t> radices_of(int64_t n) {
  std::vector<int64_t> primes;
  for (int64_t p = 2; p * p <= n; ++p)
    for (; n % p == 0; n /= p) primes.push_back(p);
  if (n > 1) primes.push_back(n);
  std::sort(primes.rbegin(), primes.rend());
  if (primes.empty() || primes[0] > kLargestRadix) return {};
  double all = 1;
  for (const int64_t p : primes) all *= static_cast<double>(p);
  const auto count = static_cast<size_t>(
      std::ceil(std::log(all) / std::log(static_cast<double>(kLargestRadix)) - 1e-9));
  // The largest primes first, each to the least product.
  std::vector<int64_t> radices(std::max<size_t>(count, 2), 1);
  for (const int64_t p : primes) {
    auto least = std::min_element(radices.begin(), radices.end());
    if (*least * p > kLargestRadix) {
      radices.push_back(1);
      least = radices.end() - 1;
    }
    *least *= p;
  }
  std::erase(radices, 1);
  std::sort(radices.begin(), radices.end());
  return radices;
}

// ---- short transforms, written out --------------------------------------------------------------

struct Complex {
  Expr re, im;
};

// The statements of one transform of a few points. Each value is bound to a variable, and each
// step is rounded by itself.
class WrittenOut {
 public:
  WrittenOut(const Plan& plan, DType dtype) : dtype_(dtype), inverse_(plan.inverse) {}

  std::vector<Complex> transform(const std::vector<Complex>& x) {
    const size_t n = x.size(), r = radix_of(n);
    if (n == 1) return x;
    const size_t rest = n / r;
    std::vector<std::vector<Complex>> parts(r, std::vector<Complex>(rest));
    for (size_t j = 0; j < rest; ++j) {
      std::vector<Complex> taken;
      for (size_t i = 0; i < r; ++i) taken.push_back(x[i * rest + j]);
      const std::vector<Complex> out = butterfly(taken);
      for (size_t k = 0; k < r; ++k)
        parts[k][j] = turned(out[k], static_cast<int64_t>(j * k), static_cast<int64_t>(n));
    }
    std::vector<Complex> result(n);
    for (size_t k = 0; k < r; ++k) {
      const std::vector<Complex> part = transform(parts[k]);
      for (size_t j = 0; j < rest; ++j) result[k + r * j] = part[j];
    }
    return result;
  }
  Complex bound(const Complex& x) { return {bind(x.re), bind(x.im)}; }
  Expr number(double value) const { return imm(dtype_, value); }
  std::vector<tir::Stmt> stmts;

  /// The factor that a transform of n points begins with: 4, 2, 3 or 5; 0 where n has another.
  static size_t radix_of(size_t n) {
    if (n % 4 == 2 || n == 2) return 2;
    for (const size_t r : {size_t{4}, size_t{3}, size_t{5}})
      if (n % r == 0) return r;
    return n == 1 ? 1 : 0;
  }

 private:
  Expr bind(const Expr& value) {
    if (value.as<FloatImm>() || value.as<tenon::Var>()) return value;
    const auto var = make<tenon::Var>(fmt::format("t{}", stmts.size()), dtype_);
    stmts.push_back(make<tir::Bind>(var, value));
    return var;
  }
  Complex sum(const Complex& a, const Complex& b) { return bound({a.re + b.re, a.im + b.im}); }
  Complex less(const Complex& a, const Complex& b) { return bound({a.re - b.re, a.im - b.im}); }
  Complex scaled(const Complex& a, double factor) {
    return bound({number(factor) * a.re, number(factor) * a.im});
  }
  // Times i, or -i of a transform forward.
  Complex quarter(const Complex& a) {
    const Expr zero = number(0);
    return inverse_ ? bound({zero - a.im, a.re}) : bound({a.im, zero - a.re});
  }
  Complex turned(const Complex& a, int64_t t, int64_t n) {
    if (t == 0) return a;
    const Root w(t, n, inverse_);
    return bound({a.re * number(w.real) - a.im * number(w.imag),
                  a.re * number(w.imag) + a.im * number(w.real)});
  }
  void pair(std::vector<Complex>& out, size_t k, const Complex& a, const Complex& b) {
    out[k] = sum(a, b);
    out[out.size() - k] = less(a, b);
  }

  std::vector<Complex> butterfly(const std::vector<Complex>& x) {
    std::vector<Complex> out(x.size());
    if (x.size() == 2) return {sum(x[0], x[1]), less(x[0], x[1])};
    if (x.size() == 4) {
      const Complex even = sum(x[0], x[2]), odd = sum(x[1], x[3]);
      out[0] = sum(even, odd);
      out[2] = less(even, odd);
      pair(out, 1, less(x[0], x[2]), quarter(less(x[1], x[3])));
      return out;
    }
    // Of an odd number of points: what pairs of opposite ones have in common and differ in.
    const size_t half = x.size() / 2;
    std::vector<Complex> common, apart;
    out[0] = x[0];
    for (size_t j = 1; j <= half; ++j) {
      common.push_back(sum(x[j], x[x.size() - j]));
      apart.push_back(less(x[j], x[x.size() - j]));
      out[0] = sum(out[0], common.back());
    }
    const auto n = static_cast<int64_t>(x.size());
    for (size_t k = 1; k <= half; ++k) {
      Complex a = x[0], b;
      for (size_t j = 1; j <= half; ++j) {
        const Root w(static_cast<int64_t>(j * k), n, true);
        a = sum(a, scaled(common[j - 1], w.real));
        const Complex term = scaled(apart[j - 1], w.imag);
        b = j == 1 ? term : sum(b, term);
      }
      pair(out, k, a, quarter(b));
    }
    return out;
  }

  DType dtype_;
  bool inverse_;
};

bool is_written_out(const Plan& plan) {
  const auto n = as_int(plan.points);
  if (!n || *n > kMostWrittenOut || !as_int(plan.in)) return false;
  for (auto rest = static_cast<size_t>(*n); rest > 1;) {
    const size_t r = WrittenOut::radix_of(rest);
    if (r == 0) return false;
    rest /= r;
  }
  return true;
}

Value lower_written_out(BlockBuilder& builder, const Call& call, const Plan& plan) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.wide_arg(0);
  const int64_t n = *as_int(plan.points), extent = *as_int(plan.in);
  const bool halves = plan.is_real_result();
  const Operand out = kernel.allocate(kernel.out_name(), kernel.shape(), kernel.dtype());
  Shape rows = x.shape;
  rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(plan.axis));
  rows.pop_back();
  const auto axes = tir::KernelBuilder::axes(rows);
  const Indices row = tir::KernelBuilder::indices(axes);
  const auto at = [&](int64_t point, int64_t part) {
    Indices all = row;
    all.insert(all.begin() + static_cast<std::ptrdiff_t>(plan.axis), int64(point));
    all.push_back(int64(part));
    return all;
  };
  WrittenOut steps(plan, x.dtype);
  std::vector<Complex> points;
  for (int64_t j = 0; j < n; ++j) {
    // The second half of a spectrum of real data mirrors the first.
    const bool mirrored = halves && 2 * j > n;
    const int64_t from = mirrored ? n - j : j;
    if (from >= extent) {
      points.push_back({steps.number(0), steps.number(0)});
      continue;
    }
    const Expr im = plan.parts_in == 2 ? x(at(from, 1)) : steps.number(0);
    points.push_back(steps.bound({x(at(from, 0)), mirrored ? steps.number(0) - im : im}));
  }
  std::vector<Complex> result = steps.transform(points);
  // The spectrum of real data is its own mirror image.
  for (size_t k = 0; plan.parts_in == 1 && 2 * k <= result.size(); ++k) {
    if (k == 0 || 2 * k == result.size())
      result[k].im = steps.number(0);
    else
      result[result.size() - k] = {result[k].re, steps.number(0) - result[k].im};
  }
  std::vector<tir::Stmt> body = steps.stmts;
  const auto store = [&](int64_t k, int64_t part, const Expr& value) {
    const Expr scaled = plan.inverse ? value * steps.number(1 / static_cast<double>(n)) : value;
    body.push_back(make<tir::BufferStore>(out.buffer, tenon::cast(out.dtype, scaled), at(k, part)));
  };
  for (int64_t k = 0; k < *as_int(plan.out); ++k) {
    store(k, 0, result[static_cast<size_t>(k)].re);
    if (!halves) store(k, 1, result[static_cast<size_t>(k)].im);
  }
  kernel.append(tir::define(out.buffer->name, axes, {}, tir::seq(std::move(body))));
  return kernel.emit({out});
}

// ---- signal.dft ---------------------------------------------------------------------------------

Value lower_sums(BlockBuilder& builder, const Call& call, const Plan& plan) {
  KernelOf kernel(builder, call);
  const Operand x = kernel.wide_arg(0);
  const DType dtype = x.dtype;
  const size_t last = x.ndim() - 1;
  // Exact on the axes: what is 0 by symmetry is 0.
  const auto root = [&](IntrinsicId id, const char* name) {
    return kernel.compute(name, {plan.points}, [&](const Indices& i) {
      const Expr turns = tenon::cast(kFloat64, i[0]) / tenon::cast(kFloat64, plan.points);
      const Expr value = tenon::cast(dtype, tenon::call(id, {turns * imm(kFloat64, kTurn)}));
      const Expr halves = eq(floormod(i[0] * 2, plan.points), int64(0));
      const Expr quarters = eq(floormod(i[0] * 4, plan.points), int64(0));
      const Expr is_zero =
          id == IntrinsicId::kSin ? halves : logical_and(quarters, tenon::logical_not(halves));
      return select(is_zero, imm(dtype, int64_t{0}), value);
    });
  };
  const Operand cosine = root(IntrinsicId::kCos, "cosine"), sine = root(IntrinsicId::kSin, "sine");
  const bool halves = plan.is_real_result();
  const Expr most = halves ? floordiv(plan.points, 2) + 1 : plan.points;
  const Expr used = simplify_dim(min(plan.in, most));
  const Operand sum = kernel.reduce(
      "sum", kernel.shape(), {used, int64(plan.parts_in)}, tir::sum_reducer(),
      [&](const Indices& i, const Indices& k) {
        Indices at = i;
        at[plan.axis] = k[0];
        at[last] = k[1];
        const Expr t = floormod(k[0] * i[plan.axis], plan.points);
        const Expr s = plan.inverse ? sine({t}) : imm(dtype, int64_t{0}) - sine({t});
        const Expr crossed = select(k[1] < i[last], s, imm(dtype, int64_t{0}) - s);
        Expr w = select(eq(k[1], i[last]), cosine({t}), crossed);
        if (halves) {
          const Expr alone = logical_or(eq(k[0], int64(0)), eq(k[0] * 2, plan.points));
          w = w * select(alone, imm(dtype, int64_t{1}), imm(dtype, int64_t{2}));
        }
        return x(at) * w;
      });
  return kernel.emit_compute([&](const Indices& i) {
    return plan.inverse ? sum(i) / tenon::cast(dtype, plan.points) : sum(i);
  });
}

// `axes` of a tensor, with `from` moved to `to`.
std::vector<int64_t> moved(size_t ndim, size_t from, size_t to) {
  std::vector<int64_t> axes;
  for (size_t d = 0; d < ndim; ++d)
    if (d != from) axes.push_back(static_cast<int64_t>(d));
  axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(to), static_cast<int64_t>(from));
  return axes;
}

Value lower_dft(BlockBuilder& builder, const Call& call) {
  const Plan plan = *plan_of(call);
  const Ref<TensorType> type = shaped_arg(call, 0);
  if (is_written_out(plan)) return lower_written_out(builder, call, plan);
  const auto n = as_int(plan.points), extent = as_int(plan.in);
  const bool short_one = n && extent && *n <= kLongestProduct && *extent <= 2 * kLongestProduct;
  const std::vector<int64_t> radices =
      n && extent && !short_one && !plan.is_real_result() ? radices_of(*n) : std::vector<int64_t>{};
  if (!short_one && radices.empty()) return lower_sums(builder, call, plan);
  const DType dtype = type->dtype, wide = wide_dtype(dtype);
  Transform transform(builder, plan, wide);
  const size_t ndim = type->shape->size();
  Value x = call.args[0];
  if (dtype != wide) x = builder.op("astype", {x}, {{"dtype", wide}});
  x = builder.op("permute_dims", {x}, {{"axes", moved(ndim, plan.axis, ndim - 2)}});
  Shape lead = *type->shape;
  lead.erase(lead.begin() + static_cast<std::ptrdiff_t>(plan.axis));
  lead.pop_back();
  const Expr rows = product(lead);
  x = transform.reshape(x, {rows, plan.in, int64(plan.parts_in)});
  if (short_one) {
    x = transform.product(x, rows, *extent);
  } else {
    const auto shape = [](int64_t v) { return make<ShapeExpr>(Shape{int64(v)}); };
    if (*extent > *n) x = builder.op("strided_slice", {x, shape(1), shape(0), shape(*n)});
    if (*extent < *n)
      x = builder.op("nn.pad", {x},
                     {{"pad_width", std::vector<int64_t>{0, 0, 0, *n - *extent, 0, 0}}});
    x = builder.op("permute_dims", {x}, {{"axes", std::vector<int64_t>{0, 2, 1}}});
    x = transform.steps(x, rows, radices);
    if (!is_int(plan.out, *n))
      x = builder.op("strided_slice", {x, shape(1), shape(0), shape(*as_int(plan.out))});
  }
  Shape full = lead;
  full.push_back(plan.out);
  full.push_back(int64(plan.parts_out));
  x = transform.reshape(x, full);
  x = builder.op("permute_dims", {x}, {{"axes", moved(ndim, ndim - 2, plan.axis)}});
  if (dtype != wide) x = builder.op("astype", {x}, {{"dtype", dtype}});
  return x;
}

OpDef dft() {
  OpDef op;
  op.name = "signal.dft";
  op.summary = "The discrete Fourier transform along an axis.";
  op.inputs = {{"data", "(..., 1) real, or (..., 2) real and imaginary parts"}};
  op.attrs = attrs_of<DftAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    const auto plan = plan_of(call);
    const Ref<TensorType> x = tensor_arg(call, 0);
    if (!plan) return make<TensorType>(x->dtype, x->ndim);
    Shape shape = *x->shape;
    shape[plan->axis] = plan->out;
    shape.back() = int64(plan->parts_out);
    return tensor_of(shape, x->dtype, 0);
  };
  op.lower = lower_dft;
  op.source = "ONNX DFT-20";
  return op;
}

// ---- signal.twiddle -----------------------------------------------------------------------------

OpDef twiddle() {
  OpDef op;
  op.name = "signal.twiddle";
  op.summary =
      "The step between two of a Fourier transform: products with roots of unity, with the parts "
      "moved next to the last axis.";
  op.inputs = {{"data", "(rows, 2, r, m): real parts, then imaginary ones"},
               {"roots", "(2, 2, r, m): what part i adds to part j of a product"}};
  op.infer_type = [](const Call& call) -> Type {
    check_rank(call, 0, 4);
    check_rank(call, 1, 4);
    check_float(call, 0);
    const Ref<TensorType> x = tensor_arg(call, 0), roots = tensor_arg(call, 1);
    check_dtype(call, 1, x->dtype);
    if (!x->shape || !roots->shape) return make<TensorType>(x->dtype, 4);
    check_dim(call, 0, x->dim(1), int64(2), "dimension 1");
    const Shape expected = {int64(2), int64(2), x->dim(2), x->dim(3)};
    for (size_t d = 0; d < 4; ++d)
      check_dim(call, 1, (*roots->shape)[d], expected[d], fmt::format("dimension {}", d));
    return tensor_of(Shape{x->dim(0), x->dim(2), int64(2), x->dim(3)}, x->dtype, 0);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.wide_arg(0), roots = kernel.wide_arg(1);
    return kernel.emit_compute([&](const Indices& i) {
      const auto term = [&](int64_t part) {
        return x({i[0], int64(part), i[1], i[3]}) * roots({int64(part), i[2], i[1], i[3]});
      };
      return term(0) + term(1);
    });
  };
  op.fusion = FusionKind::kInjective;
  return op;
}

// ---- signal.frame -------------------------------------------------------------------------------

struct FrameAttrs {
  int64_t length = 1, step = 1;
  static auto table() {
    return std::tuple{required<&FrameAttrs::length>("length", "of a frame"),
                      required<&FrameAttrs::step>("step", "between the starts of frames")};
  }
};

OpDef frame() {
  OpDef op;
  op.name = "signal.frame";
  op.summary = "The frames of signals, which may overlap.";
  op.inputs = {{"data", "(batch, elements, parts)"}};
  op.attrs = attrs_of<FrameAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    const auto attrs = attrs_as<FrameAttrs>(call);
    check_rank(call, 0, 3);
    if (attrs.length < 1 || attrs.step < 1)
      throw CompileError(kBadAttribute, call.origin,
                         "`{}` has length {} and step {}; expected at least 1", call.op->name,
                         attrs.length, attrs.step);
    const Ref<TensorType> x = tensor_arg(call, 0);
    if (!x->shape) return make<TensorType>(x->dtype, 4);
    const auto elements = as_int(x->dim(1));
    if (elements && *elements < attrs.length)
      throw CompileError(kShapeMismatch, call.origin,
                         "`{}` of {} elements into frames of {}; expected at least one frame",
                         call.op->name, *elements, attrs.length);
    const Expr frames = simplify_dim(floordiv(x->dim(1) - attrs.length, attrs.step) + 1);
    return tensor_of(Shape{x->dim(0), frames, int64(attrs.length), x->dim(2)}, x->dtype, 0);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0);
    const int64_t step = attrs_as<FrameAttrs>(call).step;
    return kernel.emit_compute(
        [&](const Indices& i) { return x({i[0], i[1] * step + i[2], i[3]}); });
  };
  op.fusion = FusionKind::kInjective;
  op.source = "ONNX STFT-17";
  return op;
}

}  // namespace

std::vector<OpDef> signal_ops() { return {dft(), twiddle(), frame()}; }

}  // namespace tenon::graph
