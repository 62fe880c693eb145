// SPDX-License-Identifier: Apache-2.0
// Signal processing: Fourier transforms, filter banks, windows.
#include <cmath>

#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

template <typename T>
Ref<TensorData> vector_of(DType dtype, const std::vector<T>& values) {
  return TensorData::of(dtype, {static_cast<int64_t>(values.size())}, values);
}

Results convert_dft(Context& c) {
  const int64_t ndim = c.ndim(0);
  if (ndim < 2) c.bad(kRankMismatch, "`DFT` of a tensor of rank {}; expected at least 2", ndim);
  Attrs attrs{{"inverse", c.flag_attr("inverse")}, {"onesided", c.flag_attr("onesided")}};
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
  return {c.op("signal.dft", {c.value(0)}, attrs)};
}

Results convert_stft(Context& c) {
  Value signal = c.value(0);
  if (c.ndim(0) == 2) {
    Dims shape = c.shape(0);
    shape.push_back(int64(1));
    signal = c.reshape(signal, shape);
  }
  const int64_t step = c.int_scalar(1, "frame_step");
  const auto extent_of = [&](size_t i, int64_t axis) {
    const auto extent = as_int(c.shape(i)[static_cast<size_t>(axis)]);
    if (!extent) unsupported("a frame of symbolic length");
    return *extent;
  };
  if (c.has(2) && c.ndim(2) != 1)
    c.bad(kRankMismatch, "operand `window` of `STFT` has rank {}; expected 1", c.ndim(2));
  const int64_t length = c.has(3)   ? c.int_scalar(3, "frame_length")
                         : c.has(2) ? extent_of(2, 0)
                                    : extent_of(0, 1);
  if (step < 1 || length < 1)
    c.bad(kBadArgument, "`STFT` has frame_step {} and frame_length {}; expected at least 1", step,
          length);
  Value frames = c.op("signal.frame", {signal}, {{"length", length}, {"step", step}});
  if (c.has(2)) {
    if (!is_int(c.shape(2)[0], length))
      c.bad(kShapeMismatch, "operand `window` of `STFT` has {} elements for frames of {}",
            str(c.shape(2)[0]), length);
    frames = c.op("multiply", {frames, c.reshape(c.value(2), {int64(length), int64(1)})});
  }
  return {c.op("signal.dft", {frames}, {{"axis", 2}, {"onesided", c.flag_attr("onesided", true)}})};
}

double mel_of(double hertz) { return 2595 * std::log1p(hertz / 700) / std::log(10); }

// Triangles over the bins of a spectrum, between points that lie evenly on the mel scale.
Results convert_mel(Context& c) {
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
OperatorRow window(const char* name, double a0, double a1, double a2) {
  const auto convert = [=](Context& c) -> Results {
    const int64_t size = c.int_scalar(0, "size");
    const bool periodic = c.flag_attr("periodic", true);
    const auto dtype = dtype_of(c.int_attr("output_datatype", 1));
    if (size < 0 || size > (int64_t{1} << 24) || !dtype)
      unsupported("size {} or output_datatype {}", size, c.int_attr("output_datatype", 1));
    const auto over = static_cast<double>(periodic ? size : size - 1);
    std::vector<float> values;
    for (int64_t n = 0; n < size; ++n) {
      const double turn = 2 * 3.14159265358979323846 * static_cast<double>(n) / over;
      values.push_back(static_cast<float>(a0 - a1 * std::cos(turn) + a2 * std::cos(2 * turn)));
    }
    return {c.cast(make<graph::Constant>(vector_of(kFloat32, values)), *dtype)};
  };
  return {name, 17, 1, 1, convert, "integers", "size known at compile time"};
}

}  // namespace

std::vector<OperatorRow> signal_rows() {
  return {
      {"DFT", 17, 1, 3, convert_dft, "floats", "dft_length known at compile time"},
      {"STFT", 17, 2, 4, convert_stft, "floats",
       "frame_step and frame_length known at compile time"},
      {"MelWeightMatrix", 17, 5, 5, convert_mel, "numbers", "operands known at compile time"},
      window("HannWindow", 0.5, 0.5, 0),
      window("HammingWindow", 25.0 / 46.0, 21.0 / 46.0, 0),
      window("BlackmanWindow", 0.42, 0.5, 0.08),
  };
}

}  // namespace tenon::onnx
