// SPDX-License-Identifier: Apache-2.0
// Type rules of operators, with the texts of their errors.
#include <gtest/gtest.h>

#include "tenon/graph/builder.h"
#include "tenon/graph/shape.h"

namespace tenon::graph {
namespace {

Value symbolic(std::vector<Expr> shape, DType dtype = kFloat32) {
  return make<Var>("x", make<TensorType>(std::move(shape), dtype));
}
Value input(const std::vector<int64_t>& shape, DType dtype = kFloat32) {
  return symbolic(to_exprs(shape), dtype);
}
Value shape(std::vector<Expr> dims) { return make<ShapeExpr>(std::move(dims)); }

std::string type_text(std::string_view op, std::vector<Value> args, Attrs attrs = {}) {
  return str(type_of(call_op(op, std::move(args), std::move(attrs))));
}
std::string error_text(std::string_view op, std::vector<Value> args, Attrs attrs = {}) {
  try {
    (void)type_of(call_op(op, std::move(args), std::move(attrs)));
  } catch (const CompileError& error) {
    return std::string(error.first().code.name) + ": " + error.first().message;
  }
  return "no error";
}

TEST(Ops, EveryNameIsFoundAndListedOnce) {
  std::string last;
  for (const OpDef* op : all_ops()) {
    EXPECT_LT(last, op->name);
    EXPECT_EQ(find_op(op->name), op);
    EXPECT_EQ(find_op("relax." + op->name), op);
    EXPECT_FALSE(op->summary.empty()) << op->name;
    EXPECT_TRUE(static_cast<bool>(op->infer_type)) << op->name;
    last = op->name;
  }
  EXPECT_EQ(find_op("nn.conv4d"), nullptr);
}

TEST(Ops, AttributesAreCheckedAndCompleted) {
  const Value x = input({2, 3});
  const auto call = call_op("nn.softmax", {x});
  EXPECT_EQ(call->attrs.get<int64_t>("axis"), -1);
  EXPECT_EQ(error_text("nn.softmax", {x}, {{"axes", 1}}),
            "bad-attribute: `nn.softmax` has no attribute `axes`; it has `axis`");
  EXPECT_EQ(error_text("nn.softmax", {x}, {{"axis", "one"}}),
            "bad-attribute: attribute `axis` of `nn.softmax` is \"one\"; expected an integer");
  EXPECT_EQ(error_text("nn.softmax", {x}, {{"axis", 2}}),
            "bad-attribute: `nn.softmax` has axis 2; expected -2 to 1");
  EXPECT_EQ(error_text("nn.softmax", {}), "bad-argument: `nn.softmax` has 0 arguments; expected 1");
  EXPECT_EQ(error_text("astype", {x}), "bad-attribute: `astype` needs attribute `dtype`, a dtype");
  EXPECT_EQ(error_text("nn.sofmax", {x}), "unknown-operator: there is no operator `nn.sofmax`");
}

TEST(Ops, BitsAreThoseOfATypeOfAsMany) {
  EXPECT_EQ(type_text("bitcast", {input({2}, kInt4)}, {{"dtype", kFloat4e2m1fn}}),
            "R.Tensor((2,), \"float4_e2m1fn\")");
  EXPECT_EQ(type_text("words", {input({2, 8}, kInt8)}), "R.Tensor((2, 2), \"int32\")");
  EXPECT_EQ(error_text("words", {input({8})}),
            "dtype-mismatch: `words` of a tensor of dtype float32; expected int8 or uint8");
  EXPECT_EQ(error_text("words", {input({}, kInt8)}),
            "rank-mismatch: `words` of a scalar; expected at least a vector");
  EXPECT_EQ(error_text("words", {input({6}, kUInt8)}),
            "shape-mismatch: `words` of 6 numbers in a row; expected a multiple of 4");
  const std::vector<Value> bytes = {input({2, 3}, kUInt8), input({1, 3, 8}, kInt32)};
  EXPECT_EQ(error_text("nn.packed_matmul_of_words", bytes, {{"units", int64_t{8}}}),
            "dtype-mismatch: argument `a` of `nn.packed_matmul_of_words` has dtype uint8; expected "
            "words, int32 or uint32");
  const std::vector<Value> numbers = {input({2, 3}, kUInt32), input({1, 3, 8}, kInt32)};
  EXPECT_EQ(
      error_text("nn.packed_matmul_of_words", numbers, {{"units", int64_t{8}}}),
      "bad-attribute: `nn.packed_matmul_of_words` of words has out_dtype void; expected int32");
  EXPECT_EQ(error_text("bitcast", {input({2})}, {{"dtype", kInt64}}),
            "dtype-mismatch: `bitcast` of float32, which has 32 bits, to int64, which has 64");
  EXPECT_EQ(error_text("bitcast", {input({2}, kInt4)}, {{"dtype", kInt8}}),
            "dtype-mismatch: `bitcast` of int4, which has 4 bits, to int8, which has 8");
}

TEST(Ops, ScalesOfBlocks) {
  const Expr n = tenon::Var::size("n");
  const auto text = [](Value x, Value scale, Value zero, Attrs attrs) {
    attrs.set("out_dtype", kInt4);
    return error_text("quantize", {std::move(x), std::move(scale), std::move(zero)},
                      std::move(attrs));
  };
  const Value x = input({2, 5}), zero = input({2, 2}, kInt4);
  const Attrs blocks{{"axis", 1}, {"block_size", 3}};
  EXPECT_EQ(text(x, input({2, 2}), zero, blocks), "no error");
  EXPECT_EQ(text(symbolic({n, int64(5)}), symbolic({n, int64(2)}), symbolic({n, int64(2)}, kInt4),
                 blocks),
            "no error");
  EXPECT_EQ(text(x, input({2, 3}), zero, blocks),
            "shape-mismatch: dimension 1 of argument `scale` of `quantize` is 3; expected 2");
  EXPECT_EQ(text(x, input({2}), zero, blocks),
            "rank-mismatch: argument `scale` of `quantize` has rank 1; `data`, whose blocks it is "
            "for, has 2");
  EXPECT_EQ(text(x, input({2, 2}), zero, {{"axis", 1}, {"block_size", -1}}),
            "bad-attribute: `quantize` with a block_size of -1");
  EXPECT_EQ(text(x, input({}), input({}, kInt4), {{"precision", kInt8}}),
            "bad-attribute: `quantize` with precision int8");
}

TEST(Ops, WhatIsSelectedByData) {
  const Value size = make<ShapeExpr>(std::vector<Expr>{int64(4)});
  EXPECT_EQ(type_text("nonzero", {input({2, 3}), size}), "R.Tensor((2, 4), \"int64\")");
  EXPECT_EQ(type_text("nonzero", {input({2, 3})}), "R.Tensor(dtype=\"int64\", ndim=2)");
  EXPECT_EQ(
      error_text("nonzero", {input({}), size}),
      "rank-mismatch: argument `x` of `nonzero` is R.Tensor((), \"float32\"); expected rank 1 "
      "or more");
  EXPECT_EQ(error_text("nonzero", {input({2}), make<ShapeExpr>(to_exprs({4, 5}))}),
            "bad-argument: argument `size` of `nonzero` has 2 numbers; expected 1");
  EXPECT_EQ(error_text("unique_positions", {input({2}, kBool)}),
            "dtype-mismatch: argument `x` of `unique_positions` has dtype bool; expected a number");
  EXPECT_EQ(error_text("unique_positions", {input({2, 3, 4})}),
            "rank-mismatch: argument `x` of `unique_positions` is R.Tensor((2, 3, 4), "
            "\"float32\"); expected rank 1 or 2");
}

TEST(Ops, BroadcastingIsSymbolic) {
  const Expr n = tenon::Var::size("n"), m = tenon::Var::size("m");
  EXPECT_EQ(type_text("add", {symbolic({n, int64(1), int64(4)}), symbolic({int64(3), int64(1)})}),
            "R.Tensor((n, 3, 4), \"float32\")");
  EXPECT_EQ(type_text("add", {symbolic({n * 2}), symbolic({n + n})}),
            "R.Tensor((n * 2,), \"float32\")");
  // Neither equal nor different: the shape is not known.
  EXPECT_EQ(type_text("add", {symbolic({n}), symbolic({m})}),
            "R.Tensor(dtype=\"float32\", ndim=1)");
  EXPECT_EQ(type_text("less", {input({2, 3}), input({3})}), "R.Tensor((2, 3), \"bool\")");
  EXPECT_EQ(error_text("add", {input({2, 3}), input({4})}),
            "shape-mismatch: `add` cannot broadcast shapes (2, 3) and (4,): dimensions 3 and 4 "
            "differ");
  EXPECT_EQ(error_text("add", {input({2}), input({2}, kInt32)}),
            "dtype-mismatch: operands of `add` have dtypes float32 and int32");
}

TEST(Ops, MatmulTypes) {
  const Expr n = tenon::Var::size("n");
  EXPECT_EQ(type_text("matmul", {symbolic({n, int64(8)}), input({8, 5})}),
            "R.Tensor((n, 5), \"float32\")");
  EXPECT_EQ(type_text("matmul", {input({7, 1, 2, 8}), input({3, 8, 5})}),
            "R.Tensor((7, 3, 2, 5), \"float32\")");
  EXPECT_EQ(type_text("matmul", {input({8}), input({3, 8, 5})}), "R.Tensor((3, 5), \"float32\")");
  EXPECT_EQ(type_text("matmul", {input({8}), input({8})}), "R.Tensor((), \"float32\")");
  EXPECT_EQ(error_text("matmul", {input({2, 64}), input({32, 4})}),
            "shape-mismatch: `matmul` inner dimensions differ: 64 and 32");
}

TEST(Ops, GemmTypes) {
  const Expr n = tenon::Var::size("n");
  EXPECT_EQ(type_text("nn.gemm", {symbolic({n, int64(8)}), input({8, 5})}),
            "R.Tensor((n, 5), \"float32\")");
  EXPECT_EQ(type_text("nn.gemm", {input({8, 3}), input({5, 8}), input({5})},
                      {{"transpose_a", true}, {"transpose_b", true}}),
            "R.Tensor((3, 5), \"float32\")");
  EXPECT_EQ(error_text("nn.gemm", {input({3, 8}), input({5, 8})}),
            "shape-mismatch: `nn.gemm` inner dimensions differ: 8 and 5");
  EXPECT_EQ(
      error_text("nn.gemm", {input({1, 8}), input({8, 5}), input({3, 5})}),
      "shape-mismatch: `nn.gemm` adds R.Tensor((3, 5), \"float32\"); expected what broadcasts "
      "to R.Tensor((1, 5), \"float32\")");
  EXPECT_EQ(error_text("nn.gemm", {input({2, 3, 8}), input({8, 5})}).substr(0, 14),
            "rank-mismatch:");
}

TEST(Ops, ConvolutionTypes) {
  const Value x = input({1, 3, 224, 224}), w = input({64, 3, 7, 7});
  EXPECT_EQ(type_text("nn.conv2d", {x, w}, {{"strides", 2}, {"padding", 3}}),
            "R.Tensor((1, 64, 112, 112), \"float32\")");
  EXPECT_EQ(
      type_text("nn.conv2d", {input({1, 2, 9, 9, 16}), input({4, 2, 3, 3, 16, 16})},
                {{"padding", 1}, {"data_layout", "NCHW16c"}, {"kernel_layout", "OIHW16i16o"}}),
      "R.Tensor((1, 4, 9, 9, 16), \"float32\")");
  // Weights in smaller blocks do not read the empty half of the data's last block.
  const Attrs half = {{"padding", 1}, {"data_layout", "NCHW16c"}, {"kernel_layout", "OIHW8i16o"}};
  EXPECT_EQ(type_text("nn.conv2d", {input({1, 2, 9, 9, 16}), input({4, 3, 3, 3, 8, 16})}, half),
            "R.Tensor((1, 4, 9, 9, 16), \"float32\")");
  EXPECT_EQ(error_text("nn.conv2d", {input({1, 2, 9, 9, 16}), input({4, 2, 3, 3, 8, 16})}, half),
            "shape-mismatch: `nn.conv2d` of data with 32 channels; the kernel takes 16 in 1 "
            "groups");
  EXPECT_EQ(type_text("nn.conv2d_transpose", {input({1, 8, 5, 5}), input({8, 4, 3, 3})},
                      {{"strides", 2}, {"padding", 1}, {"output_padding", 1}}),
            "R.Tensor((1, 4, 10, 10), \"float32\")");
  EXPECT_EQ(error_text("nn.conv2d", {x, w, input({2})}),
            "shape-mismatch: argument `padding_value` of `nn.conv2d` is R.Tensor((2,), "
            "\"float32\"); expected one element");
  EXPECT_EQ(error_text("nn.conv2d", {x, w, input({}, kUInt8)}),
            "dtype-mismatch: argument `padding_value` of `nn.conv2d` has dtype uint8; expected "
            "float32");
  EXPECT_EQ(error_text("nn.conv2d", {x, input({64, 4, 7, 7})}),
            "shape-mismatch: `nn.conv2d` of data with 3 channels; the kernel takes 4 in 1 groups");
  EXPECT_EQ(error_text("nn.conv2d", {x, input({64, 3, 7})}),
            "rank-mismatch: argument `weight` of `nn.conv2d` is R.Tensor((64, 3, 7), \"float32\"); "
            "expected rank 4");
  EXPECT_EQ(error_text("nn.conv2d", {input({1, 3, 4, 4}), w}),
            "shape-mismatch: a window of `nn.conv2d` covers 7, more than the 4 of its axis with "
            "padding");
  EXPECT_EQ(error_text("nn.conv2d", {x, w}, {{"data_layout", "NCHH"}}),
            "bad-attribute: attribute `data_layout` of `nn.conv2d` is \"NCHH\"; expected a layout "
            "of the axes NCHW");
}

// Lanes of a block without a filter (a channel) would be read from nowhere.
TEST(Ops, BlocksOfTheResultAreFull) {
  const Value x = input({1, 2, 5, 5, 4});
  const Attrs blocked = {{"data_layout", "NCHW4c"}};
  EXPECT_EQ(type_text("nn.conv2d", {x, input({4, 8, 3, 3})}, blocked),
            "R.Tensor((1, 1, 3, 3, 4), \"float32\")");
  EXPECT_EQ(error_text("nn.conv2d", {x, input({1, 8, 3, 3})}, blocked),
            "shape-mismatch: `nn.conv2d` gives channels in blocks of 4, and the kernel has 1 "
            "filters");
  EXPECT_EQ(error_text("nn.conv2d_transpose", {x, input({8, 3, 3, 3})}, blocked),
            "shape-mismatch: `nn.conv2d_transpose` gives channels in blocks of 4, and the kernel "
            "has 3 filters");
  EXPECT_EQ(error_text("nn.max_pool2d", {input({1, 6, 5, 5})}, {{"out_layout", "NCHW4c"}}),
            "shape-mismatch: `nn.max_pool2d` gives channels in blocks of 4, and its data has 6 "
            "channels");
}

TEST(Ops, NoneIsAValueOfSomeAttributes) {
  const Value x = input({2, 3}), slope = input({2, 1});
  EXPECT_EQ(type_text("nn.prelu", {x, slope}, {{"axis", AttrValue()}}),
            "R.Tensor((2, 3), \"float32\")");
  EXPECT_TRUE(
      call_op("nn.prelu", {x, slope}, {{"axis", AttrValue()}})->attrs.find("axis")->is_none());
  EXPECT_EQ(call_op("nn.softmax", {x}, {{"axis", AttrValue()}})->attrs.get<int64_t>("axis"), -1);
}

TEST(Ops, TheBiasOfAnAttentionBroadcastsToTheScores) {
  const Value q = input({2, 5, 3, 8}), k = input({2, 7, 3, 8});
  const auto with = [&](const Value& bias) { return type_text("nn.attention", {q, k, k, bias}); };
  const auto refused = [&](const Value& bias) {
    return error_text("nn.attention", {q, k, k, bias});
  };
  const std::string full = "R.Tensor((2, 5, 3, 8), \"float32\")";
  EXPECT_EQ(with(input({2, 3, 5, 7})), full);
  EXPECT_EQ(with(input({1, 1, 5, 7})), full);
  EXPECT_EQ(with(input({7})), full);
  // Whether n is 1 or 2 is known when the program runs.
  EXPECT_EQ(with(symbolic({tenon::Var::size("n"), int64(1), int64(1), int64(7)})),
            "R.Tensor(dtype=\"float32\", ndim=4)");
  EXPECT_NE(refused(input({4, 2, 3, 5, 7})), "no error");
  EXPECT_NE(refused(input({2, 3, 5, 6})), "no error");
  EXPECT_NE(error_text("nn.attention", {input({1, 5, 3, 8}), input({1, 7, 3, 8}),
                                        input({1, 7, 3, 8}), input({2, 3, 5, 7})}),
            "no error");
}

TEST(Ops, ReshapeInfersOneDimension) {
  const Expr n = tenon::Var::size("n");
  EXPECT_EQ(type_text("reshape", {input({2, 3, 4}), shape({int64(6), int64(-1)})}),
            "R.Tensor((6, 4), \"float32\")");
  EXPECT_EQ(type_text("reshape", {symbolic({n, int64(12), int64(64)}), shape({n, int64(-1)})}),
            "R.Tensor((n, 768), \"float32\")");
  EXPECT_EQ(type_text("reshape", {symbolic({n, int64(6)}), shape({int64(-1), int64(2)})}),
            "R.Tensor((n * 3, 2), \"float32\")");
  EXPECT_EQ(error_text("reshape", {input({2, 3}), shape({int64(4), int64(2)})}),
            "shape-mismatch: `reshape` of shape (2, 3) with 6 elements to shape (4, 2) with 8");
  EXPECT_EQ(error_text("reshape", {input({2, 3}), shape({int64(4), int64(-1)})}),
            "shape-mismatch: `reshape` cannot give 6 elements the shape (4, -1)");
}

TEST(Builder, SharesKernelsOfOneStructure) {
  IRModule module;
  BlockBuilder builder(module);
  const Value x = input({2, 3});
  builder.begin_function({ref_to(x.as<Var>())});
  const auto relu = call_op("nn.relu", {x});
  const Value a = builder.emit(relu->op->lower(builder, *relu));
  const auto again = call_op("nn.relu", {a});
  const Value b = builder.emit(again->op->lower(builder, *again));
  const auto function = builder.end_function(b);
  EXPECT_EQ(module.size(), 1u);
  ASSERT_EQ(function->body->blocks.size(), 1u);
  const auto& bindings = function->body->blocks[0]->bindings;
  ASSERT_EQ(bindings.size(), 2u);
  EXPECT_TRUE(bindings[0]->var->is_dataflow);
  EXPECT_FALSE(bindings[1]->var->is_dataflow);  // returned, so visible outside its block
  EXPECT_TRUE(function->body->body.same_as(bindings[1]->var));
}

TEST(Builder, NormalisesNestedCallsAndNames) {
  IRModule module;
  BlockBuilder builder(module);
  const Value x = input({2, 3});
  builder.begin_function({ref_to(x.as<Var>())});
  const Value y = builder.emit(call_op("add", {call_op("exp", {x}), call_op("exp", {x})}), "x");
  const auto function = builder.end_function(y);
  const auto& bindings = function->body->blocks[0]->bindings;
  ASSERT_EQ(bindings.size(), 3u);
  EXPECT_EQ(bindings[0]->var->name, "lv");
  EXPECT_EQ(bindings[1]->var->name, "lv1");
  EXPECT_EQ(bindings[2]->var->name, "x1");
  EXPECT_EQ(builder.module().size(), 0u);
}

TEST(Ops, ImagesAndSignals) {
  const Expr n = tenon::Var::size("n");
  const Value image = input({2, 3, 8, 9}), rois = input({4, 5});
  const Attrs resize{{"axes", AttrList{2}}};
  EXPECT_EQ(type_text("image.resize", {image, shape({n})}, resize),
            "R.Tensor((2, 3, n, 9), \"float32\")");
  EXPECT_EQ(error_text("image.resize", {image, shape({n, n})}, resize),
            "bad-argument: argument `size` of `image.resize` has 2 numbers; expected 1");
  EXPECT_EQ(error_text("image.resize", {input({0}), shape({int64(3)})}, {{"axes", AttrList{0}}}),
            "shape-mismatch: `image.resize` of an axis without elements to 3; expected at least "
            "one");
  EXPECT_EQ(
      error_text("image.resize", {image, shape({n})},
                 {{"axes", AttrList{2}}, {"coordinate_transformation_mode", "tf_crop_and_resize"}}),
      "bad-argument: `image.resize` by \"tf_crop_and_resize\" has no roi; expected attribute "
      "`roi` or argument `roi_tensor`");
  EXPECT_EQ(type_text("image.grid_sample", {image, input({2, 2, 4, 5})}),
            "R.Tensor((2, 3, 4, 5), \"float32\")");
  EXPECT_EQ(error_text("image.grid_sample", {image, input({2, 3, 4, 5})}),
            "shape-mismatch: dimension 1 of argument `grid` of `image.grid_sample` is 3; expected "
            "2");
  EXPECT_EQ(error_text("image.grid_sample", {input({2, 3}), input({2, 3})}),
            "rank-mismatch: argument `data` of `image.grid_sample` is R.Tensor((2, 3), "
            "\"float32\"); expected 1 to 3 spatial axes");
  EXPECT_EQ(error_text("image.affine_grid", {input({2, 2, 3}), shape({n})}),
            "bad-argument: argument `size` of `image.affine_grid` has 1 numbers; expected 2 or 3");
  EXPECT_EQ(type_text("vision.roi_pool", {image, rois}, {{"pooled_size", AttrList{2, 3}}}),
            "R.Tensor((4, 3, 2, 3), \"float32\")");
  EXPECT_EQ(
      error_text("vision.roi_pool", {image, input({4, 4})}, {{"pooled_size", AttrList{2, 3}}}),
      "shape-mismatch: dimension 1 of argument `rois` of `vision.roi_pool` is 4; expected 5");
  EXPECT_EQ(
      error_text("nn.col2im", {input({1, 7, 4}), shape({int64(4)})}, {{"block_size", AttrList{2}}}),
      "shape-mismatch: dimension 1 of argument `data` of `nn.col2im` is 7; expected a "
      "multiple of the 2 elements of a block");
  EXPECT_EQ(error_text("nn.deformable_columns", {image, input({2, 16, 7, 8})},
                       {{"kernel_size", AttrList{2, 2}}, {"groups", 2}}),
            "shape-mismatch: `nn.deformable_columns` has 3 channels in 2 groups of offsets");
  EXPECT_EQ(error_text("center_crop_pad", {image, shape({n})}, {{"axes", AttrList{0, 1}}}),
            "bad-argument: argument `shape` of `center_crop_pad` has 1 numbers; expected 2");
  EXPECT_EQ(type_text("signal.dft", {input({2, 8, 1})}, {{"onesided", true}}),
            "R.Tensor((2, 5, 2), \"float32\")");
  EXPECT_EQ(error_text("signal.dft", {input({2, 8, 3})}),
            "shape-mismatch: the last dimension of argument `data` of `signal.dft` is 3; expected "
            "1 or 2");
  EXPECT_EQ(error_text("signal.dft", {input({2, 8, 1})}, {{"axis", 2}}),
            "bad-attribute: `signal.dft` along axis 2, which has the real and the imaginary part");
  EXPECT_EQ(error_text("signal.dft", {input({2, 8, 1})}, {{"length", 0}}),
            "bad-attribute: `signal.dft` of 0 points; expected at least 1");
  EXPECT_EQ(error_text("signal.frame", {input({2, 8, 1})}, {{"length", 9}, {"step", 1}}),
            "shape-mismatch: `signal.frame` of 8 elements into frames of 9; expected at least one "
            "frame");
  EXPECT_EQ(error_text("signal.frame", {input({2, 8, 1})}, {{"length", 3}, {"step", 0}}),
            "bad-attribute: `signal.frame` has length 3 and step 0; expected at least 1");
  EXPECT_EQ(error_text("linalg.det", {input({3})}),
            "rank-mismatch: argument `x` of `linalg.det` is R.Tensor((3,), \"float32\"); expected "
            "rank 2 or more");
}

}  // namespace
}  // namespace tenon::graph
