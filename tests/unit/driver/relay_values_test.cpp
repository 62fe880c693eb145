// SPDX-License-Identifier: Apache-2.0
// What Relay operators compute, as the interpreter runs them: where Relay's meaning is not that of
// the graph's operator of the same name.
#include <gtest/gtest.h>

#include "tenon/driver/verify.h"
#include "tenon/import/relay/read_relay.h"
#include "tenon/interp/interpreter.h"

namespace tenon {
namespace {

Ref<TensorData> floats(std::vector<int64_t> shape, const std::vector<float>& values) {
  return TensorData::of(kFloat32, std::move(shape), values);
}

std::vector<double> values_of(const TensorData& tensor) {
  std::vector<double> out;
  for (int64_t i = 0; i < tensor.elements(); ++i) out.push_back(tensor.at_float(i));
  return out;
}

// The body over `%x`, 0, 1, 2, ... of this shape.
Ref<TensorData> run(const std::string& shape, std::vector<int64_t> dims, const std::string& body) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
  const IRModule module =
      relay::read_relay("def @main(%x: Tensor[" + shape + ", float32]) {\n" + body + "\n}\n");
  verify_module(module);
  return interp::Interpreter(module).run_main({floats(std::move(dims), values)}).at(0);
}

using Doubles = std::vector<double>;
using Shape = std::vector<int64_t>;

TEST(RelayValues, DenseTakesTheTransposedWeight) {
  const auto y = run("(2, 3)", {2, 3}, "nn.dense(%x, %x, units=2)");
  EXPECT_EQ(y->shape, (Shape{2, 2}));
  EXPECT_EQ(values_of(*y), (Doubles{5, 14, 14, 50}));
}

TEST(RelayValues, BatchMatmulTransposesByDefault) {
  EXPECT_EQ(values_of(*run("(1, 2, 3)", {1, 2, 3}, "nn.batch_matmul(%x, %x)")),
            (Doubles{5, 14, 14, 50}));
  EXPECT_EQ(values_of(*run("(1, 2, 2)", {1, 2, 2}, "nn.batch_matmul(%x, %x, transpose_b=False)")),
            (Doubles{2, 3, 6, 11}));
  EXPECT_EQ(values_of(*run("(1, 2, 2)", {1, 2, 2},
                           "nn.batch_matmul(%x, %x, transpose_a=True, transpose_b=False)")),
            (Doubles{4, 6, 6, 10}));
}

TEST(RelayValues, BiasAddsAlongItsAxis) {
  const char* body =
      "%0 = strided_slice(%x, begin=[0, 0], end=[2, 1]);\n"
      "nn.bias_add(%x, reshape(%0, newshape=[-1]), axis=0)";
  EXPECT_EQ(values_of(*run("(2, 2)", {2, 2}, body)), (Doubles{0, 1, 4, 5}));
}

TEST(RelayValues, ReshapeRules) {
  const auto shape = [](const char* target) {
    return run("(2, 3, 4)", {2, 3, 4}, std::string("reshape(%x, newshape=") + target + ")")->shape;
  };
  EXPECT_EQ(shape("[0, -1]"), (Shape{2, 12}));
  EXPECT_EQ(shape("[-2]"), (Shape{2, 3, 4}));
  EXPECT_EQ(shape("[-2, 1, 1]"), (Shape{2, 3, 4, 1, 1}));
  EXPECT_EQ(shape("[-3, 4]"), (Shape{6, 4}));
  EXPECT_EQ(shape("[0, -3]"), (Shape{2, 12}));
  EXPECT_EQ(shape("[-4, 1, 2, -2]"), (Shape{1, 2, 3, 4}));
  EXPECT_EQ(shape("[0, 0, -4, -1, 2]"), (Shape{2, 3, 2, 2}));
  EXPECT_EQ(shape("[4, 0, 2]"), (Shape{4, 3, 2}));
  EXPECT_EQ(run("(10, 5, 4)", {10, 5, 4}, "contrib_reverse_reshape(%x, newshape=[-1, 0])")->shape,
            (Shape{50, 4}));
}

TEST(RelayValues, TakeHoldsItsIndices) {
  const char* index = "%i = cast(multiply(%x, 3f), dtype=\"int32\");\n";  // 0, 3, 6
  EXPECT_EQ(values_of(*run("(3)", {3}, std::string(index) + "take(%x, %i)")), (Doubles{0, 2, 2}));
  EXPECT_EQ(values_of(*run("(3)", {3}, std::string(index) + "take(%x, %i, mode=\"wrap\")")),
            (Doubles{0, 0, 0}));
  EXPECT_EQ(values_of(*run("(2, 2)", {2, 2}, "take(%x, 3)")), (Doubles{3}));
  EXPECT_EQ(values_of(*run("(2, 2)", {2, 2}, "take(%x, -1, axis=0)")), (Doubles{0, 1}));
}

TEST(RelayValues, CoordinatesOfGatherNdLieAlongTheFirstAxis) {
  // Rows (0, 1) and columns (1, 2): elements (0, 1) and (1, 2).
  const char* body =
      "%0 = arange(0, 2, 1, start=0, stop=2, step=1, dtype=\"int32\");\n"
      "%1 = stack((%0, add(%0, 1)), axis=0);\n"
      "gather_nd(%x, %1)";
  EXPECT_EQ(values_of(*run("(2, 3)", {2, 3}, body)), (Doubles{1, 5}));
}

TEST(RelayValues, Slices) {
  EXPECT_EQ(
      values_of(*run("(5)", {5}, "strided_slice(%x, begin=[1], end=[2], slice_mode=\"size\")")),
      (Doubles{1, 2}));
  EXPECT_EQ(values_of(*run("(5)", {5}, "strided_slice(%x, begin=[4], end=[0], strides=[-2])")),
            (Doubles{4, 2}));
  EXPECT_EQ(values_of(*run("(2, 2)", {2, 2}, "strided_slice(%x, begin=[1], end=[2], axes=[1])")),
            (Doubles{1, 3}));
  EXPECT_EQ(values_of(*run("(3)", {3}, "reverse(%x, axis=0)")), (Doubles{2, 1, 0}));
}

TEST(RelayValues, Reductions) {
  EXPECT_EQ(values_of(*run("(2, 2)", {2, 2}, "sum(%x, axis=[0], exclude=True)")), (Doubles{1, 5}));
  EXPECT_EQ(values_of(*run("(2, 2)", {2, 2}, "max(%x)")), (Doubles{3}));
  const auto position = run("(2, 2)", {2, 2}, "argmax(%x, axis=[1])");
  EXPECT_EQ(position->dtype, kInt32);
  EXPECT_EQ(position->to_ints(), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(
      values_of(*run("(4)", {4}, "variance(%x, mean(%x, axis=[0], keepdims=True), axis=[0])")),
      (Doubles{1.25}));
  EXPECT_NEAR(
      run("(4)", {4}, "variance(%x, mean(%x, axis=[0], keepdims=True), axis=[0], unbiased=True)")
          ->at_float(0),
      5.0 / 3, 1e-6);
  EXPECT_EQ(values_of(*run("(2, 2)", {2, 2}, "all(cast(%x, dtype=\"bool\"), axis=1)")),
            (Doubles{0, 1}));
}

TEST(RelayValues, SortingKeepsRelaysDirections) {
  const auto y = run("(3)", {3}, "topk(%x, k=2, ret_type=\"indices\")");
  EXPECT_EQ(y->dtype, kInt32);
  EXPECT_EQ(y->to_ints(), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(run("(3)", {3}, "argsort(%x, is_ascend=False)")->to_ints(),
            (std::vector<int64_t>{2, 1, 0}));
}

TEST(RelayValues, Activations) {
  EXPECT_EQ(values_of(*run("(2)", {2}, "nn.leaky_relu(subtract(%x, 1f))")), (Doubles{-0.25, 0}));
  EXPECT_EQ(values_of(*run("(1, 2)", {1, 2}, "nn.prelu(negative(%x), reshape(%x, newshape=[-1]))")),
            (Doubles{0, -1}));
  EXPECT_EQ(values_of(*run("(3)", {3}, "clip(%x, a_min=0.5f, a_max=1.5f)")),
            (Doubles{0.5, 1, 1.5}));
  EXPECT_NEAR(run("(2)", {2}, "nn.l2_normalize(%x, eps=1e-12f, axis=[0])")->at_float(1), 1, 1e-6);
}

TEST(RelayValues, Windows) {
  // Depthwise, the layouts of TensorFlow.
  const char* depthwise =
      "%0 = full(1f, shape=[2, 2, 2, 1], dtype=\"float32\");\n"
      "nn.conv2d(%x, %0, padding=[0], groups=2, channels=2, kernel_size=[2, 2], "
      "data_layout=\"NHWC\", kernel_layout=\"HWOI\")";
  EXPECT_EQ(values_of(*run("(1, 2, 2, 2)", {1, 2, 2, 2}, depthwise)), (Doubles{12, 16}));
  // Two numbers: rows and columns; four: top, left, bottom, right.
  const auto padded = [](const char* padding) {
    return run("(1, 1, 3, 3)", {1, 1, 3, 3},
               std::string("nn.max_pool2d(%x, pool_size=[1, 1], padding=") + padding + ")")
        ->shape;
  };
  EXPECT_EQ(padded("[1, 0]"), (Shape{1, 1, 5, 3}));
  EXPECT_EQ(padded("[1, 2, 0, 0]"), (Shape{1, 1, 4, 5}));
  EXPECT_EQ(
      values_of(*run("(1, 1, 1, 2)", {1, 1, 1, 2}, "nn.upsampling(%x, scale_h=1, scale_w=2)")),
      (Doubles{0, 0, 1, 1}));
  EXPECT_EQ(values_of(*run("(1, 1, 2, 4)", {1, 1, 2, 4},
                           "nn.adaptive_max_pool2d(%x, output_size=[1, 2])")),
            (Doubles{5, 7}));
}

TEST(RelayValues, PadsAndTables) {
  EXPECT_EQ(values_of(*run("(2)", {2}, "nn.pad(%x, 7f, pad_width=[[1, 2]])")),
            (Doubles{7, 0, 1, 7, 7}));
  EXPECT_EQ(values_of(*run("(2)", {2},
                           "one_hot(cast(%x, dtype=\"int32\"), 2f, 0f, depth=2, axis=-1, "
                           "dtype=\"float32\")")),
            (Doubles{2, 0, 0, 2}));
  EXPECT_EQ(values_of(*run("(2)", {2}, "tile(%x, reps=[2, 1])")), (Doubles{0, 1, 0, 1}));
  EXPECT_EQ(values_of(*run("(2)", {2}, "repeat(%x, repeats=2, axis=0)")), (Doubles{0, 0, 1, 1}));
  EXPECT_EQ(values_of(*run("(2)", {2}, "where(greater(%x, 0f), %x, full(9f, shape=[2]))")),
            (Doubles{9, 1}));
}

}  // namespace
}  // namespace tenon
