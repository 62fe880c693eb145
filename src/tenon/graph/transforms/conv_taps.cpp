// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/transforms/conv_taps.h"

#include <algorithm>
#include <cmath>

namespace tenon::graph {

namespace {

// Taps `first` to `last` of an axis, without that one.
struct Taps {
  int64_t first, last;
};

// A convolution along one axis.
struct Axis {
  int64_t data, windows, taps, stride, dilation, before, after;

  // Window o reads data element `o * stride + tap * dilation - before`.
  bool meets_data(int64_t tap) const {
    const int64_t place = tap * dilation - before;
    if (place >= data) return false;
    if (place >= 0) return true;
    const int64_t window = (-place + stride - 1) / stride;
    return window < windows && place + window * stride < data;
  }
  // The padding that is left is not negative.
  Taps kept() const {
    Taps kept{0, taps};
    while (kept.first + 1 < kept.last && !meets_data(kept.first) &&
           before - (kept.first + 1) * dilation >= 0)
      ++kept.first;
    while (kept.last - 1 > kept.first && !meets_data(kept.last - 1) &&
           after - (taps - kept.last + 1) * dilation >= 0)
      --kept.last;
    return kept;
  }
};

// The numbers of an attribute for an axis; `ends`: those behind the axes follow those in front.
int64_t number(const Call& call, const char* attr, size_t axis, size_t rank, int64_t otherwise,
               bool end = false) {
  const auto all = call.attrs.ints(attr).value_or(std::vector<int64_t>{otherwise});
  if (all.size() == 1) return all[0];
  return all.at(end && all.size() == 2 * rank ? rank + axis : axis);
}

// The weights [O, I, ...] of these taps; null where others are not finite, whose products with zeros
// are not 0.
Ref<TensorData> taken(const TensorData& weights, const std::vector<Taps>& taps) {
  std::vector<int64_t> shape(weights.shape.begin(), weights.shape.begin() + 2);
  for (const Taps& axis : taps) shape.push_back(axis.last - axis.first);
  const auto bytes = weights.data();
  const auto width = static_cast<size_t>(weights.dtype.bytes());
  std::vector<std::byte> out;
  const int64_t outer = weights.shape[0] * weights.shape[1];
  const int64_t window = outer == 0 ? 0 : weights.elements() / outer;
  for (int64_t i = 0; i < weights.elements(); ++i) {
    int64_t rest = i % window;
    bool inside = true;
    for (size_t d = taps.size(); d-- > 0; rest /= weights.shape[2 + d]) {
      const int64_t tap = rest % weights.shape[2 + d];
      inside = inside && tap >= taps[d].first && tap < taps[d].last;
    }
    const auto at = bytes.subspan(static_cast<size_t>(i) * width, width);
    if (inside) out.insert(out.end(), at.begin(), at.end());
    if (!inside && !std::isfinite(weights.at_float(i))) return {};
  }
  return TensorData::owned(weights.dtype, std::move(shape), std::move(out));
}

}  // namespace

Value without_padding_taps(const Call& conv) {
  const auto* weights = conv.args[1].as<Constant>();
  const Ref<TensorType> x = tensor_type(conv.args[0]), y = tensor_type(ref_to(&conv));
  if (!weights || (conv.args.size() > 2 && conv.args[2]) || !x->has_shape() || !y->has_shape() ||
      x->ndim < 3 || x->ndim != static_cast<int64_t>(weights->data->shape.size()))
    return {};
  const auto rank = static_cast<size_t>(x->ndim - 2);
  const std::string letters = std::string("DHW").substr(3 - rank);
  const std::string out = conv.attrs.get<std::string>("out_layout").value_or("");
  if (conv.attrs.get<std::string>("data_layout") != "NC" + letters ||
      conv.attrs.get<std::string>("kernel_layout") != "OI" + letters ||
      !(out.empty() || out == "NC" + letters))
    return {};
  std::vector<Taps> taps;
  std::vector<int64_t> before, after;
  bool drops = false;
  for (size_t d = 0; d < rank; ++d) {
    const auto axis = static_cast<int64_t>(2 + d);
    const auto data = as_int(x->dim(axis)), windows = as_int(y->dim(axis));
    Axis along{data.value_or(0),
               windows.value_or(0),
               weights->data->shape[2 + d],
               number(conv, "strides", d, rank, 1),
               number(conv, "dilation", d, rank, 1),
               number(conv, "padding", d, rank, 0),
               number(conv, "padding", d, rank, 0, true)};
    const bool is_known = data && windows && *data > 0 && *windows > 0;
    taps.push_back(is_known ? along.kept() : Taps{0, along.taps});
    drops = drops || taps.back().last - taps.back().first < along.taps;
    before.push_back(along.before - taps.back().first * along.dilation);
    after.push_back(along.after - (along.taps - taps.back().last) * along.dilation);
  }
  const Ref<TensorData> left = drops ? taken(*weights->data, taps) : Ref<TensorData>();
  if (!left) return {};
  before.insert(before.end(), after.begin(), after.end());
  Attrs attrs = conv.attrs;
  attrs.set("padding", before);
  return make<Call>(conv.op, std::vector<Value>{conv.args[0], make<Constant>(left)},
                    std::move(attrs), conv.type_args, conv.origin);
}

}  // namespace tenon::graph
