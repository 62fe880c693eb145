// SPDX-License-Identifier: Apache-2.0
// Signal processing: Fourier transforms, filter banks, windows.
#include <algorithm>
#include <cmath>

#include "tenon/arith/analyzer.h"
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

template <typename T>
Ref<TensorData> vector_of(DType dtype, const std::vector<T>& values) {
  return TensorData::of(dtype, {static_cast<int64_t>(values.size())}, values);
}

// A tensor whose last axis holds a real part, or that and an imaginary one: only the run knows which
// where that is a symbol. `wanted`: of these two what the operator takes; 0: either, and a real one
// becomes complex.
Value with_parts(Context& c, const Value& x, int64_t wanted) {
  const Ref<graph::TensorType> type = shaped(x);
  const Expr parts = type->dim(-1);
  if (as_int(parts)) return x;
  Dims dims(static_cast<size_t>(type->ndim));
  dims.back() = int64(wanted == 0 ? 2 : wanted);
  if (wanted != 0) return c.fitted(x, dims, "operand 0");
  c.require(logical_and(parts >= int64(1), parts <= int64(2)), kShapeMismatch,
            fmt::format("`{}` of {} parts; expected 1 or 2", c.name(), str(parts)));
  Dims widths(static_cast<size_t>(2 * type->ndim), int64(0));
  widths.back() = arith::simplify(int64(2) - parts);
  const Value both = c.op("nn.pad", {x, c.shape_value(widths)}, {{"pad_mode", "constant"}});
  return c.fitted(both, dims, "operand 0");
}

Results convert_dft(Context& c) {
  const int64_t ndim = c.ndim(0);
  if (ndim < 2) c.bad(kRankMismatch, "`DFT` of a tensor of rank {}; expected at least 2", ndim);
  const bool inverse = c.flag_attr("inverse"), onesided = c.flag_attr("onesided");
  Attrs attrs{{"inverse", inverse}, {"onesided", onesided}};
  if (c.has(1)) {
    const int64_t length = c.int_scalar(1, "dft_length");
    if (length < 1) c.bad(kBadArgument, "`DFT` of {} points; expected at least 1", length);
    attrs.set("length", length);
  }
  Ints axes = {c.opset() < 20 ? c.axis(c.int_attr("axis", 1), ndim) : ndim - 2};
  if (c.opset() >= 20 && c.has(2)) axes = c.axes_operand(2, "axis", ndim);
  if (axes.size() != 1)
    c.bad(kShapeMismatch, "operand `axis` of `DFT` has {} elements; expected 1", axes.size());
  attrs.set("axis", axes[0]);
  return {c.op("signal.dft", {with_parts(c, c.value(0), onesided ? (inverse ? 2 : 1) : 0)}, attrs)};
}

Value float64_of(Context& c, const Expr& number) {
  return c.cast(c.materialise(Elements{kInt64, {}, {number}}), kFloat64);
}
// 0, 1, ..., below an extent that only the run knows.
Value counted(Context& c, const Expr& extent, DType dtype = kFloat64) {
  const Value numbers =
      c.op("arange", {c.prim(int64(0)), c.prim(extent), c.prim(int64(1))}, {{"dtype", dtype}});
  return c.reshape(numbers, {extent});  // which is not negative
}

Expr one_number(Context& c, size_t i, std::string_view what) {
  const Dims values = c.dims(i, what);
  if (values.size() != 1)
    c.bad(kShapeMismatch, "operand `{}` of `{}` has {} elements; expected 1", what, c.name(),
          values.size());
  return values[0];
}

// Frames whose length or step only the run knows: each place of a frame is an index.
Value frames_by_numbers(Context& c, const Value& signal, const Expr& length, const Expr& step) {
  const auto type = shaped(signal);
  const Expr extent = type->dim(1);
  c.require(logical_and(step >= int64(1), logical_and(length >= int64(1), length <= extent)),
            kBadArgument,
            fmt::format("`{}` has a frame_step or frame_length below 1, or frames longer than the "
                        "signal",
                        c.name()));
  const Expr count = arith::simplify(floordiv(extent - length, max(step, int64(1))) + 1);
  const Value starts = c.op("multiply", {c.reshape(counted(c, count, kInt64), {count, int64(1)}),
                                         c.materialise(Elements{kInt64, {}, {step}})});
  const Value places = c.op("add", {starts, counted(c, length, kInt64)});
  return c.op("take", {signal, places}, {{"axis", 1}});
}

Results convert_stft(Context& c) {
  Value signal = c.value(0);
  if (c.ndim(0) == 2) {
    Dims shape = c.shape(0);
    shape.push_back(int64(1));
    signal = c.reshape(signal, shape);
  }
  const bool onesided = c.flag_attr("onesided", true);
  if (c.ndim(0) == 3) signal = with_parts(c, signal, onesided ? 1 : 0);
  if (c.has(2) && c.ndim(2) != 1)
    c.bad(kRankMismatch, "operand `window` of `STFT` has rank {}; expected 1", c.ndim(2));
  const Expr step = one_number(c, 1, "frame_step");
  const Expr length = c.has(3)   ? one_number(c, 3, "frame_length")
                      : c.has(2) ? c.shape(2)[0]
                                 : c.shape(0)[1];
  const auto known_step = as_int(step), known_length = as_int(length);
  if (known_step.value_or(1) < 1 || known_length.value_or(1) < 1)
    c.bad(kBadArgument, "`STFT` has frame_step {} and frame_length {}; expected at least 1",
          str(step), str(length));
  Value frames =
      known_step && known_length
          ? c.op("signal.frame", {signal}, {{"length", *known_length}, {"step", *known_step}})
          : frames_by_numbers(c, signal, length, step);
  if (c.has(2)) {
    const Expr taps = c.shape(2)[0];
    if (as_int(taps) && known_length && !is_int(taps, *known_length))
      c.bad(kShapeMismatch, "operand `window` of `STFT` has {} elements for frames of {}",
            str(taps), str(length));
    c.require(eq(taps, length), kShapeMismatch,
              "operand `window` of `STFT` has another length than the frames");
    frames = c.op("multiply",
                  {frames, c.op("reshape", {c.value(2), c.shape_value({length, int64(1)})})});
  }
  return {c.op("signal.dft", {frames}, {{"axis", 2}, {"onesided", onesided}})};
}

double mel_of(double hertz) { return 2595 * std::log1p(hertz / 700) / std::log(10); }

// The same of operands that only the run knows, by arithmetic on tensors.
Value mel_by_numbers(Context& c) {
  const Expr bands = one_number(c, 0, "num_mel_bins"), points = one_number(c, 1, "dft_length"),
             rate = one_number(c, 2, "sample_rate");
  const Expr most = int64(int64_t{1} << 24);
  c.require(
      logical_and(logical_and(bands >= int64(1), bands <= most),
                  logical_and(logical_and(points >= int64(0), points <= most), rate >= int64(1))),
      kBadArgument, "`MelWeightMatrix` has bands, points or a sample rate out of range");
  const auto number = [&](double value) { return c.scalar(kFloat64, value); };
  const auto op = [&](const char* name, const Value& a, const Value& b) {
    return c.op(name, {a, b});
  };
  const auto mel = [&](size_t i) {
    const Value hertz = c.reshape(c.cast(c.value(i), kFloat64), {});
    const Value curve = c.op("log", {op("add", op("divide", hertz, number(700)), number(1))});
    return op("multiply", curve, number(2595 / std::log(10)));
  };
  const Value first = mel(3);
  const Value step = op("divide", op("subtract", mel(4), first), float64_of(c, bands + 2));
  const Value mels = op("add", op("multiply", counted(c, bands + 2), step), first);
  const Value grown = c.op("exp", {op("multiply", mels, number(std::log(10) / 2595))});
  const Value hertz = op("multiply", op("subtract", grown, number(1)), number(700));
  const Value edges =
      c.op("floor",
           {op("divide", op("multiply", hertz, float64_of(c, points + 1)), float64_of(c, rate))});
  const auto edge = [&](int64_t from) {
    return c.op("strided_slice",
                {edges, c.shape_value({int64(0)}), c.shape_value({int64(from)}),
                 c.shape_value({arith::simplify(bands + from)}), c.shape_value({int64(1)})},
                {{"assume_inbound", true}});
  };
  const Expr rows = arith::simplify(floordiv(points, 2) + 1);
  const Value low = edge(0), peak = edge(1), high = edge(2);
  const Value bin = c.op("reshape", {counted(c, rows), c.shape_value({rows, int64(1)})});
  const Value width = op("subtract", peak, low);
  const Value rising = op("divide", op("subtract", bin, low), op("maximum", width, number(1)));
  const Value falling =
      op("divide", op("subtract", high, bin), op("maximum", op("subtract", high, peak), number(1)));
  const auto both = [&](const Value& a, const Value& b) { return op("logical_and", a, b); };
  const Value rises = both(op("greater_equal", bin, low), op("less_equal", bin, peak));
  const Value falls = both(op("greater_equal", bin, peak), op("less", bin, high));
  const Value one = c.op("where", {op("equal", width, number(0)), number(1), rising});
  const Value left = c.op("where", {rises, one, number(0)});
  return c.cast(c.op("where", {falls, falling, left}), kFloat32);
}

bool is_known(Context& c, std::initializer_list<size_t> operands) {
  return std::ranges::all_of(operands, [&](size_t i) { return static_cast<bool>(c.constant(i)); });
}

// Triangles over the bins of a spectrum, between points that lie evenly on the mel scale.
Results convert_mel(Context& c) {
  if (!is_known(c, {0, 1, 2, 3, 4})) {
    const auto to = dtype_of(c.int_attr("output_datatype", 1));
    if (!to) unsupported("output_datatype {}", c.int_attr("output_datatype", 1));
    return {c.cast(mel_by_numbers(c), *to)};
  }
  const int64_t bands = c.int_scalar(0, "num_mel_bins"), points = c.int_scalar(1, "dft_length");
  const int64_t rate = c.int_scalar(2, "sample_rate");
  const double lowest = c.float_scalar(3, "lower_edge_hertz");
  const double highest = c.float_scalar(4, "upper_edge_hertz");
  const auto dtype = dtype_of(c.int_attr("output_datatype", 1));
  constexpr int64_t kMost = int64_t{1} << 24;
  if (!dtype) unsupported("output_datatype {}", c.int_attr("output_datatype", 1));
  if (bands < 1 || points < 0 || rate < 1 || bands > kMost || points > kMost ||
      bands * (points / 2 + 1) > kMost || !(lowest > -700) || !(highest > -700))
    c.bad(kBadArgument,
          "`MelWeightMatrix` of {} bands, {} points, sample rate {} and edges {} and {}", bands,
          points, rate, lowest, highest);
  const int64_t rows = points / 2 + 1;
  const double first = mel_of(lowest),
               step = (mel_of(highest) - first) / static_cast<double>(bands + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bands + 2; ++i) {
    const double mel = static_cast<double>(i) * step + first;
    const double hertz = 700 * std::expm1(mel / 2595 * std::log(10));
    edges.push_back(static_cast<int64_t>(
        std::floor(static_cast<double>(points + 1) * hertz / static_cast<double>(rate))));
  }
  std::vector<float> values(static_cast<size_t>(rows * bands));
  const auto set = [&](int64_t row, int64_t band, double value) {
    if (row < 0 || row >= rows)
      c.bad(kBadArgument, "`MelWeightMatrix` has a band at bin {} of a spectrum of {}", row, rows);
    values[static_cast<size_t>(row * bands + band)] = static_cast<float>(value);
  };
  for (int64_t band = 0; band < bands; ++band) {
    const auto at = static_cast<size_t>(band);
    const int64_t low = edges[at], peak = edges[at + 1], high = edges[at + 2];
    if (low == peak) set(peak, band, 1);
    for (int64_t row = low; row <= peak && low != peak; ++row)
      set(row, band, static_cast<double>(row - low) / static_cast<double>(peak - low));
    for (int64_t row = peak; row < high; ++row)
      set(row, band, static_cast<double>(high - row) / static_cast<double>(high - peak));
  }
  const Value matrix = make<graph::Constant>(TensorData::of(kFloat32, {rows, bands}, values));
  return {c.cast(matrix, *dtype)};
}

// The windows of signal processing: a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N).
constexpr double kTurn = 2 * 3.14159265358979323846;

Value window_by_number(Context& c, const Expr& size, bool periodic, double a0, double a1,
                       double a2) {
  c.require(logical_and(size >= int64(0), size <= int64(int64_t{1} << 40)), kBadArgument,
            fmt::format("operand `size` of `{}` is negative, or too large", c.name()));
  const auto scalar = [&](double value) { return c.scalar(kFloat64, value); };
  const Value over = float64_of(c, arith::simplify(periodic ? size : size - 1));
  const Value turn = c.op("divide", {c.op("multiply", {counted(c, size), scalar(kTurn)}), over});
  const Value once = c.op("multiply", {c.op("cos", {turn}), scalar(a1)});
  const Value first = c.op("subtract", {scalar(a0), once});
  if (a2 == 0) return first;
  const Value twice = c.op("cos", {c.op("multiply", {turn, scalar(2)})});
  return c.op("add", {first, c.op("multiply", {twice, scalar(a2)})});
}

OperatorRow window(const char* name, double a0, double a1, double a2) {
  const auto convert = [=](Context& c) -> Results {
    const Dims sizes = c.dims(0, "size");
    if (sizes.size() != 1)
      c.bad(kShapeMismatch, "operand `size` of `{}` has {} elements; expected 1", c.name(),
            sizes.size());
    const bool periodic = c.flag_attr("periodic", true);
    const auto dtype = dtype_of(c.int_attr("output_datatype", 1));
    if (!dtype) unsupported("output_datatype {}", c.int_attr("output_datatype", 1));
    const auto known = as_int(sizes[0]);
    if (!known)
      return {
          c.cast(c.cast(window_by_number(c, sizes[0], periodic, a0, a1, a2), kFloat32), *dtype)};
    const int64_t size = *known;
    if (size < 0 || size > (int64_t{1} << 24)) unsupported("size {}", size);
    const auto over = static_cast<double>(periodic ? size : size - 1);
    std::vector<float> values;
    for (int64_t n = 0; n < size; ++n) {
      const double turn = kTurn * static_cast<double>(n) / over;
      values.push_back(static_cast<float>(a0 - a1 * std::cos(turn) + a2 * std::cos(2 * turn)));
    }
    return {c.cast(make<graph::Constant>(vector_of(kFloat32, values)), *dtype)};
  };
  return {name, 17, 1, 1, convert, "integers"};
}

}  // namespace

std::vector<OperatorRow> signal_rows() {
  return {
      {"DFT", 17, 1, 3, convert_dft, "floats", "dft_length known at compile time"},
      {"STFT", 17, 2, 4, convert_stft, "floats"},
      {"MelWeightMatrix", 17, 5, 5, convert_mel, "numbers"},
      window("HannWindow", 0.5, 0.5, 0),
      window("HammingWindow", 25.0 / 46.0, 21.0 / 46.0, 0),
      window("BlackmanWindow", 0.42, 0.5, 0.08),
  };
}

}  // namespace tenon::onnx
