// SPDX-License-Identifier: Apache-2.0
// Samples of pictures and signals, what lies in few bits, random numbers.
#include <algorithm>
#include <cmath>

#include "generators.h"

namespace tenon::fuzz {

namespace {

using graph::Value;
using Shape = std::vector<int64_t>;
constexpr Rounds kNever = Rounds::kNever, kArithmetic = Rounds::kArithmetic,
                 kAlways = Rounds::kAlways;

Value sizes(const Shape& shape) {
  std::vector<Expr> dims;
  for (const int64_t dim : shape) dims.push_back(int64(dim));
  return make<graph::ShapeExpr>(dims);
}

// ---- bits ---------------------------------------------------------------------------------------

void bits_of(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const auto has_bits = [](const Item& item) {
    return item.exact && !item.dtype().is_bool() && item.dtype().bits >= 8;
  };
  // The sign of a zero that is computed is the target's choice (minimum(0, -0)), as is a NaN's.
  const auto fits = [&](const Item& item) {
    if (!has_bits(item)) return false;
    for (int64_t i = 0; item.dtype().is_float() && i < item.data->elements(); ++i)
      if (const double x = item.data->at_float(i); x == 0 || std::isnan(x)) return false;
    return true;
  };
  const Item x = draft.operand([&] { return draft.number_dtype(); }, 0, 3, fits);
  if (!has_bits(x)) return;
  const auto bits = x.dtype().bits;
  const DType dtype = DType{c.chance(50) ? DType::Code::kInt : DType::Code::kUInt, bits};
  draft.call(op, {x.value}, {{"dtype", dtype}}, kNever);
}

void weights_of_few_bits(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const int64_t bits = c.of({4, 4, 2, 8}), blocks = 1 + c.below(3), bytes = c.of({8, 4, 16, 2}),
                units = draft.extent(49);
  const DType dtype = c.of({kFloat32, kFloat32, kFloat16});
  Shape rows = draft.shape(c.below(3), 16);
  rows.push_back(blocks * bytes * (8 / bits));
  const Item x = draft.fresh(dtype, rows);
  if (!x.finite) return;  // sums in integers give NaN where floats may give an infinity
  const Item b = draft.constant(kUInt8, {blocks, bytes, units}, Content{Content::Kind::kFull});
  const Item scales = draft.constant(dtype, {blocks, units}, from_to(-0.25, 0.25));
  std::vector<Value> args = {x.value, b.value, scales.value};
  if (c.chance(50))
    args.push_back(
        draft.constant(kUInt8, {blocks, units}, from_to(0, static_cast<double>((1 << bits) - 1)))
            .value);
  draft.call(op, args, {{"bits", bits}}, kAlways);
}

// ---- pictures -----------------------------------------------------------------------------------

void affine_grid(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const int64_t axes = c.of({2, 2, 3});
  const Item theta = draft.fresh(kFloat32, Shape{1 + c.below(2), axes, axes + 1});
  draft.call(op, {theta.value, sizes(draft.shape(static_cast<size_t>(axes), 512))},
             {{"align_corners", c.chance(50)}}, kAlways);
}

// Between the nearest elements, so that a last digit of a place moves nothing far.
void grid_sample(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const size_t axes = c.of({2, 2, 1, 3});
  const int64_t batch = 1 + c.below(2);
  Shape x = draft.shape(axes, 256), grid = draft.shape(axes, 128);
  x.insert(x.begin(), {batch, draft.extent(5)});
  grid.insert(grid.begin(), {batch, static_cast<int64_t>(axes)});
  Attrs attrs{{"method", std::string(axes == 2 && c.chance(30) ? "bicubic" : "bilinear")},
              {"padding_mode", std::string(c.of({"zeros", "border", "reflection"}))},
              {"align_corners", c.chance(50)}};
  const Item data = draft.fresh(kFloat32, x);
  if (!data.finite) return;
  draft.call(op, {data.value, draft.fresh(kFloat32, grid, from_to(-1.25, 1.25)).value}, attrs,
             kAlways);
}

void resize(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = draft.operand([] { return kFloat32; }, 1, 4,
                               [](const Item& item) {
                                 return item.dtype() == kFloat32 && item.ndim() > 0 &&
                                        item.finite && item.data->elements() > 0;
                               },
                               {}, 256);
  if (!x.finite || x.ndim() == 0) return;
  const auto axis = static_cast<int64_t>(c.below(static_cast<uint32_t>(x.ndim())));
  const int64_t extent = x.shape()[static_cast<size_t>(axis)];
  Attrs attrs{{"axes", AttrList{axis}}};
  attrs.set("coordinate_transformation_mode",
            std::string(c.of({"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel",
                              "half_pixel_symmetric"})));
  int64_t size = draft.extent(33);
  if (c.chance(30)) {  // whole steps: no place lies between two elements by a last digit
    attrs.set("method", std::string("nearest_neighbor"));
    attrs.set("coordinate_transformation_mode", std::string("asymmetric"));
    attrs.set("rounding_method", std::string("floor"));
    size = extent * c.of({1, 2, 4});
  } else if (c.chance(50)) {
    attrs.set("method", std::string("cubic"));
    if (c.chance(50)) attrs.set("cubic_alpha", -0.5);
    if (c.chance(50)) attrs.set("exclude_outside", true);
  }
  if (c.chance(20) && !attrs.contains("rounding_method")) attrs.set("antialias", true);
  draft.call(op, {x.value, sizes({size})}, attrs, kAlways);
}

// Boxes (0, x1, y1, x2, y2) of a picture.
std::optional<Item> boxes(Draft& draft, int64_t count) {
  const Item first = draft.fresh(kFloat32, Shape{count, 1}, from_to(0, 0));
  const Item begin = draft.fresh(kFloat32, Shape{count, 2}, from_to(0, 3.75));
  const Item end = draft.fresh(kFloat32, Shape{count, 2}, from_to(4, 9));
  return draft.call("concat",
                    {make<graph::Tuple>(std::vector<Value>{first.value, begin.value, end.value})},
                    {{"axis", 1}}, kNever);
}

void regions(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  Shape shape = {1, draft.extent(5), draft.extent(12), draft.extent(12)};
  const Item x = draft.fresh(kFloat32, shape);
  const auto places = boxes(draft, 1 + c.below(4));
  if (!places || !x.finite) return;
  Attrs attrs{{"pooled_size", AttrList{1 + int64_t{c.below(4)}, 1 + int64_t{c.below(4)}}},
              {"spatial_scale", c.of({1.0, 0.5})}};
  if (op == "vision.roi_align") {
    attrs.set("sample_ratio", 1 + int64_t{c.below(3)});
    attrs.set("aligned", c.chance(50));
    attrs.set("layout", std::string("NCHW"));
    attrs.set("mode", std::string(c.of({"avg", "max"})));
  }
  draft.call(op, {x.value, places->value}, attrs, kAlways);
}

void columns_of_image(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const int64_t h = 1 + c.below(3), w = 1 + c.below(3), stride = 1 + c.below(2),
                rows = h + c.below(6), columns = w + c.below(6);
  const int64_t places = ((rows - h) / stride + 1) * ((columns - w) / stride + 1);
  const Item x =
      draft.fresh(draft.float_dtype(), Shape{1 + c.below(2), draft.extent(4) * h * w, places});
  draft.call(op, {x.value, sizes({rows, columns})},
             {{"block_size", AttrList{h, w}}, {"strides", AttrList{stride}}}, kArithmetic);
}

void deformable(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const int64_t groups = 1 + c.below(2), h = 1 + c.below(3), w = 1 + c.below(3),
                rows = h + c.below(6), columns = w + c.below(6), batch = 1 + c.below(2);
  const Item x = draft.fresh(kFloat32, Shape{batch, groups * draft.extent(4), rows, columns});
  if (!x.finite) return;
  const Shape places = {rows - h + 1, columns - w + 1};
  const Item offset = draft.fresh(kFloat32, Shape{batch, groups * 2 * h * w, places[0], places[1]},
                                  from_to(-1.5, 1.5));
  std::vector<Value> args = {x.value, offset.value};
  if (c.chance(50))
    args.push_back(
        draft.fresh(kFloat32, Shape{batch, groups * h * w, places[0], places[1]}, from_to(0, 1))
            .value);
  draft.call(op, args, {{"kernel_size", AttrList{h, w}}, {"groups", groups}}, kAlways);
}

// Where the greatest elements are that a pooling found.
void positions(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x =
      draft.fresh(kFloat32, Shape{1 + c.below(2), draft.extent(5), 3 + c.below(7), 3 + c.below(7)});
  if (!x.finite) return;
  Attrs attrs{{"pool_size", AttrList{1 + int64_t{c.below(3)}, 1 + int64_t{c.below(3)}}},
              {"strides", AttrList{1 + int64_t{c.below(2)}}}};
  const auto pooled = draft.call("nn.max_pool2d", {x.value}, attrs, kNever);
  if (!pooled) return;
  attrs.set("column_major", c.chance(30));
  draft.call(op, {x.value, pooled->value}, attrs, kNever);
}

void crop(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = draft.operand([&] { return draft.any_dtype(); }, 1, 3, {}, {}, 512);
  if (x.ndim() == 0) return;
  const auto axis = static_cast<int64_t>(c.below(static_cast<uint32_t>(x.ndim())));
  const std::vector<Expr> size = {draft.number(draft.extent(17))};
  draft.call(op, {x.value, make<graph::ShapeExpr>(size)}, {{"axes", AttrList{axis}}}, kNever);
}

// ---- signals ------------------------------------------------------------------------------------

void transform(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const bool is_complex = c.chance(50);
  const Item x = draft.fresh(
      c.of({kFloat32, kFloat32, kFloat64}),
      Shape{1 + c.below(3), c.of({8, 20, 1, 7, 17, 64, 30}), is_complex ? 2 : 1}, from_to(-1, 1));
  Attrs attrs{{"axis", c.of({1, -2, 0})}};
  if (is_complex && c.chance(40)) attrs.set("inverse", true);
  if (!is_complex && c.chance(50)) attrs.set("onesided", true);
  draft.call(op, {x.value}, attrs, kAlways);
}

void frames(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const int64_t length = 1 + c.below(9), step = 1 + c.below(5);
  const Item x =
      draft.fresh(draft.float_dtype(), Shape{1 + c.below(3), length + c.below(30), 1 + c.below(2)});
  draft.call(op, {x.value}, {{"length", length}, {"step", step}}, kNever);
}

// ---- others -------------------------------------------------------------------------------------

void determinant(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  Shape shape = draft.shape(c.below(3), 16);
  const int64_t n = 1 + c.below(5);
  shape.insert(shape.end(), {n, n});
  draft.call(op, {draft.fresh(c.of({kFloat32, kFloat64}), shape, from_to(-1, 1)).value}, {},
             kAlways);
}

void linear_attention(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const int64_t batch = 1 + c.below(2), steps = 1 + c.below(7), groups = 1 + c.below(2),
                heads = groups * c.of({1, 2}), width = draft.extent(9), depth = draft.extent(9);
  const auto small = [&](const Shape& shape) {
    return draft.fresh(kFloat32, shape, from_to(-0.5, 0.5)).value;
  };
  std::vector<Value> args = {
      small({batch, steps, heads, width}), small({batch, steps, groups, width}),
      small({batch, steps, groups, depth}), small({batch, groups, width, depth})};
  if (c.chance(50)) args.push_back(small({batch, steps, groups, 1}));
  if (args.size() == 5 && c.chance(50)) args.push_back(small({batch, steps, groups}));
  draft.calls(op, args, {{"scale", c.of({1.0, 0.5})}}, kAlways);
}

void random_numbers(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  std::vector<Expr> shape;
  for (const int64_t dim : draft.shape(c.below(4), 512)) shape.push_back(draft.number(dim));
  draft.call(op, {make<graph::ShapeExpr>(shape)},
             {{"seed", c.of({0, 1, -5, 12345})}, {"dtype", c.of({kFloat32, kFloat32, kFloat64})}},
             op == "random.uniform" ? kNever : kAlways);
}

void write_rows(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const int64_t batch = 1 + c.below(3), rows = draft.extent(17),
                written = 1 + c.below(static_cast<uint32_t>(rows)), width = draft.extent(9);
  const DType dtype = draft.number_dtype();
  const Item x = draft.fresh(dtype, Shape{batch, rows, width});
  const Item y = draft.fresh(dtype, Shape{batch, written, width});
  const bool is_circular = c.chance(50);
  const auto last = static_cast<double>(is_circular ? rows - 1 : rows - written);
  draft.call(op, {x.value, y.value, draft.fresh(kInt64, Shape{batch}, from_to(0, last)).value},
             {{"mode", std::string(is_circular ? "circular" : "linear")}}, kNever);
}

}  // namespace

std::vector<GeneratorRow> signal_generators() {
  return {{"bitcast", bits_of, 1},
          {"center_crop_pad", crop, 1},
          {"image.affine_grid", affine_grid, 1},
          {"image.grid_sample", grid_sample, 1},
          {"image.resize", resize, 2},
          {"linalg.det", determinant, 1},
          {"nn.col2im", columns_of_image, 1},
          {"nn.deformable_columns", deformable, 1},
          {"nn.linear_attention", linear_attention, 1},
          {"nn.matmul_nbits", weights_of_few_bits, 3},
          {"nn.max_pool_positions", positions, 1},
          {"random.normal", random_numbers, 1},
          {"random.uniform", random_numbers, 1},
          {"signal.dft", transform, 1},
          {"signal.frame", frames, 1},
          {"tensor_scatter", write_rows, 1},
          {"vision.roi_align", regions, 1},
          {"vision.roi_pool", regions, 1}};
}

}  // namespace tenon::fuzz
