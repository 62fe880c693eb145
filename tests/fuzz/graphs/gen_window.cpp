// SPDX-License-Identifier: Apache-2.0
// Convolutions, pooling, resizing.
#include <algorithm>

#include "generators.h"
#include "tenon/graph/layout.h"
#include "tenon/graph/shape.h"

namespace tenon::fuzz {

namespace {

using graph::Layout;
using graph::Value;
using Shape = std::vector<Expr>;

std::string letters_of(size_t rank) { return std::string("DHW").substr(3 - rank); }
size_t rank_of(std::string_view op) {
  return static_cast<size_t>(op[op.find('d', op.find_first_of("123")) - 1] - '0');
}

// The channels in front, behind, or in blocks.
std::string data_layout(Draft& draft, size_t rank) {
  const std::string letters = letters_of(rank);
  switch (draft.choices.of({0, 0, 0, 0, 1, 2, 3})) {
    case 1: return "N" + letters + "C";
    case 2: return "NC" + letters + "4c";
    case 3: return "NC" + letters + "8c";
    default: return "NC" + letters;
  }
}

// A tensor with these extents along "NC" + letters. Of the network where one has this layout's
// rank and is not empty, else new.
struct Image {
  Item item;
  Layout layout;
  int64_t batch = 1, channels = 1;
  std::vector<int64_t> space;
};

Image image(Draft& draft, size_t rank, const std::string& text, DType dtype, int64_t channels,
            bool integers = false) {
  const Layout layout = *Layout::parse(text);
  const std::string letters = letters_of(rank);
  const auto read = [&](const Item& item) {
    Image out{item, layout, 1, 1, {}};
    out.batch = item.shape()[static_cast<size_t>(layout.position('N'))];
    out.channels = item.shape()[static_cast<size_t>(layout.position('C'))] * layout.block('C');
    for (const char letter : letters)
      out.space.push_back(item.shape()[static_cast<size_t>(layout.position(letter))]);
    return out;
  };
  if (draft.choices.chance(70)) {
    const auto found = draft.find([&](const Item& item) {
      if (item.ndim() != layout.ndim() || item.data->elements() == 0 ||
          item.data->elements() > 4096 || item.dtype().is_bool() ||
          (!integers && !item.dtype().is_float()))
        return false;
      for (size_t d = 0; d < layout.ndim(); ++d)
        if (layout.axes()[d].block && layout.axes()[d].block != item.shape()[d]) return false;
      // Channels are numbers.
      return as_int(item.type->dim(layout.position('C'))).has_value();
    });
    if (found) return read(*found);
  }
  std::vector<int64_t> shape;
  for (const auto& axis : layout.axes()) {
    if (axis.block) {
      shape.push_back(axis.block);
    } else if (axis.letter == 'C') {
      shape.push_back((channels + layout.block('C') - 1) / layout.block('C'));
    } else {
      shape.push_back(draft.extent(axis.letter == 'N' ? 3 : rank == 1 ? 33 : rank == 2 ? 9 : 5));
    }
  }
  // The channels of a new one are a number: weights have as many.
  Shape dims;
  for (const int64_t dim : shape) dims.push_back(int64(dim));
  return read(draft.fresh(dtype, dims));
}

std::vector<int64_t> random_padding(Draft& draft, size_t rank, int64_t most) {
  Choices& c = draft.choices;
  std::vector<int64_t> out;
  const size_t count = c.of({size_t{1}, rank, 2 * rank});
  for (size_t i = 0; i < count; ++i) out.push_back(c.below(static_cast<uint32_t>(most + 1)));
  return out;
}
std::vector<int64_t> steps(Draft& draft, size_t rank, int64_t most) {
  std::vector<int64_t> out;
  const size_t count = draft.choices.chance(30) ? rank : 1;
  for (size_t i = 0; i < count; ++i) out.push_back(draft.choices.between(1, most));
  return out;
}

// The kernel's axes in another order, or in blocks.
std::string kernel_layout(Draft& draft, size_t rank, bool transposed, bool grouped) {
  const std::string letters = letters_of(rank);
  const std::string plain = (transposed ? "IO" : "OI") + letters;
  if (!draft.choices.chance(25)) return plain;
  if (grouped || transposed) return transposed ? "OI" + letters : "O" + letters + "I";
  return draft.choices.of({letters + "IO", "O" + letters + "I", "OI" + letters + "4i8o"});
}

// What nobody else reads, by a window for each channel: kernels that become one row by row.
void window_for_each_channel(Draft& draft, const Item& x) {
  Choices& c = draft.choices;
  const std::vector<int64_t>& shape = x.data->shape;
  if (x.magnitude() > 1e3) return;
  const int64_t rows = std::min<int64_t>(c.of({3, 3, 5, 2}), shape[2]),
                columns = std::min<int64_t>(c.of({3, 3, 5, 1}), shape[3]);
  const Attrs attrs{{"padding", random_padding(draft, 2, std::max(rows, columns))},
                    {"strides", steps(draft, 2, c.of({1, 1, 2, 3}))},
                    {"dilation", steps(draft, 2, c.chance(20) ? 2 : 1)},
                    {"groups", shape[1]}};
  const Item w = draft.constant(x.dtype(), {shape[1], 1, rows, columns});
  const auto y = draft.call("nn.conv2d", {x.value, w.value}, attrs, Rounds::kArithmetic);
  if (y && c.chance(50)) draft.call("nn.relu", {y->value});
}

void convolution(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const size_t rank = rank_of(op);
  const bool transposed = op.ends_with("transpose");
  const std::string text = data_layout(draft, rank);
  const Image x = image(draft, rank, text, draft.float_dtype(), draft.extent(rank == 3 ? 9 : 33));
  if (x.item.magnitude() > 1e3) return;
  // Groups that divide the channels: none, all of them (depthwise), or some.
  int64_t groups = 1;
  if (c.chance(30)) groups = x.channels;
  if (c.chance(15) && x.channels % 2 == 0) groups = 2;
  const int64_t per_group = x.channels / groups;
  int64_t filters = groups == x.channels && groups > 1 ? c.of({1, 1, 1, 2}) : draft.extent(33);
  const std::string weights = kernel_layout(draft, rank, transposed, groups > 1);
  const Layout layout = *Layout::parse(weights);
  std::vector<int64_t> size;
  int64_t taps = 1;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t most = std::min<int64_t>(c.of({1, 3, 3, 5, 2}), x.space[d]);
    size.push_back(transposed ? c.between(1, 4) : most);
    taps *= size.back();
  }
  const int64_t positions = x.item.data->elements() / std::max<int64_t>(1, x.channels);
  constexpr int64_t kMostMacs = 1 << 17;
  while (filters > 1 && positions * taps * per_group * filters * groups > kMostMacs) filters /= 2;
  const int64_t in = transposed ? x.channels : per_group;
  const int64_t out = transposed ? filters : filters * groups;
  Shape shape;
  for (const auto& axis : layout.axes()) {
    const auto blocks = [&](int64_t count) {
      return (count + layout.block(axis.letter) - 1) / layout.block(axis.letter);
    };
    const size_t space = letters_of(rank).find(axis.letter);
    shape.push_back(int64(axis.block           ? axis.block
                          : axis.letter == 'O' ? blocks(out)
                          : axis.letter == 'I' ? blocks(in)
                                               : size[space]));
  }
  const Item w = c.chance(60) ? draft.constant(x.item.dtype(),
                                               [&] {
                                                 std::vector<int64_t> extents;
                                                 for (const Expr& dim : shape)
                                                   extents.push_back(*as_int(dim));
                                                 return extents;
                                               }())
                              : draft.fresh(x.item.dtype(), shape);
  const int64_t stride = c.of({1, 1, 2, 3});
  Attrs attrs{{"padding", random_padding(draft, rank, *std::max_element(size.begin(), size.end()))},
              {"strides", steps(draft, rank, stride)},
              {"dilation", steps(draft, rank, c.chance(20) ? 2 : 1)},
              {"groups", groups},
              {"data_layout", text},
              {"kernel_layout", weights}};
  if (c.chance(10)) attrs.set("out_layout", data_layout(draft, rank));
  if (x.item.dtype().bits < 32 && c.chance(30)) attrs.set("out_dtype", kFloat32);
  if (transposed && c.chance(30) && stride > 1)
    attrs.set("output_padding", std::vector<int64_t>{1});
  const auto y = draft.call(op, {x.item.value, w.value}, attrs, Rounds::kArithmetic);
  if (y && rank == 2 && text == "NCHW" && !attrs.contains("out_layout") && c.chance(40))
    window_for_each_channel(draft, *y);
}

void pool(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const size_t rank = rank_of(op);
  const bool selects = op.starts_with("nn.max");
  const std::string text = data_layout(draft, rank);
  const Image x = image(draft, rank, text, selects ? draft.number_dtype() : draft.float_dtype(),
                        draft.extent(17), selects);
  std::vector<int64_t> size;
  for (size_t d = 0; d < rank; ++d)
    size.push_back(std::min<int64_t>(x.space[d], c.of({1, 2, 3, 3, 5})));
  const int64_t least = *std::min_element(size.begin(), size.end());
  Attrs attrs{{"pool_size", size},
              {"strides", steps(draft, rank, 3)},
              {"padding", random_padding(draft, rank, std::max<int64_t>(0, least - 1))},
              {"ceil_mode", c.chance(30)},
              {"layout", text}};
  if (c.chance(15)) attrs.set("dilation", steps(draft, rank, 2));
  if (c.chance(40)) attrs.set("count_include_pad", c.chance(60));
  if (c.chance(10)) attrs.set("out_layout", data_layout(draft, rank));
  if (op.starts_with("nn.lp")) attrs.set("p", c.of({2, 1, 3}));
  draft.call(op, {x.item.value}, attrs, selects ? Rounds::kNever : Rounds::kAlways);
}

void adaptive_pool(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const size_t rank = rank_of(op);
  const std::string text = data_layout(draft, rank);
  const Image x = image(draft, rank, text, draft.float_dtype(), draft.extent(17));
  Attrs attrs{{"layout", text}};
  if (c.chance(80)) {
    std::vector<int64_t> size;
    for (size_t d = 0; d < rank; ++d)
      size.push_back(1 + c.below(static_cast<uint32_t>(x.space[d])));
    attrs.set("output_size", size);
  }
  draft.call(op, {x.item.value}, attrs);
}

void resize(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const std::string text = data_layout(draft, 2);
  const std::string method = c.of({"nearest_neighbor", "linear", "cubic"});
  const bool moves = method == "nearest_neighbor";
  const Image x = image(draft, 2, text, moves ? draft.number_dtype() : draft.float_dtype(),
                        draft.extent(9), moves);
  // A weight of 0 makes NaN of what is infinite, and a size that turns out to be the old one has none.
  if (!moves && !x.item.finite) return;
  Shape size;
  for (const int64_t extent : x.space)
    size.push_back(draft.number(c.chance(40) ? extent * c.between(1, 3) : draft.extent(17)));
  Attrs attrs{
      {"layout", text},
      {"method", method},
      {"coordinate_transformation_mode", c.of({"half_pixel", "asymmetric", "pytorch_half_pixel",
                                               "align_corners", "half_pixel_symmetric"})},
      {"rounding_method",
       c.of({"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "round"})}};
  if (c.chance(30)) attrs.set("cubic_exclude", 1);
  if (c.chance(30)) attrs.set("cubic_alpha", -0.5);
  draft.call(op, {x.item.value, make<graph::ShapeExpr>(size)}, attrs,
             moves ? Rounds::kNever : Rounds::kAlways);
}

}  // namespace

std::vector<GeneratorRow> window_generators() {
  return {{"nn.conv1d", convolution, 3},
          {"nn.conv2d", convolution, 14},
          {"nn.conv3d", convolution, 2},
          {"nn.conv1d_transpose", convolution, 1},
          {"nn.conv2d_transpose", convolution, 2},
          {"nn.conv3d_transpose", convolution, 1},
          {"nn.max_pool1d", pool, 1},
          {"nn.max_pool2d", pool, 3},
          {"nn.max_pool3d", pool, 1},
          {"nn.avg_pool1d", pool, 1},
          {"nn.avg_pool2d", pool, 3},
          {"nn.avg_pool3d", pool, 1},
          {"nn.lp_pool1d", pool, 1},
          {"nn.lp_pool2d", pool, 1},
          {"nn.lp_pool3d", pool, 1},
          {"nn.adaptive_avg_pool1d", adaptive_pool, 1},
          {"nn.adaptive_avg_pool2d", adaptive_pool, 2},
          {"nn.adaptive_avg_pool3d", adaptive_pool, 1},
          {"image.resize2d", resize, 3}};
}

}  // namespace tenon::fuzz
