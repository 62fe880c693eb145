// SPDX-License-Identifier: Apache-2.0
// Values that are given for inputs of a network.
#include "tenon/import/onnx/given_params.h"

#include <gtest/gtest.h>

#include "model_builder.h"
#include "tenon/interp/interpreter.h"

namespace tenon::onnx {
namespace {

// y = x (n, k) @ w (k, 3) + b
ModelBuilder dense() {
  ModelBuilder m;
  m.input("x", {"n", "k"});
  m.input("w", {"k", "3"});
  m.input("b", {"3"});
  m.node("MatMul", {"x", "w"}, {"p"});
  m.node("Add", {"p", "b"}, {"y"});
  m.output("y");
  return m;
}

Ref<TensorData> values(std::vector<int64_t> shape, const std::vector<float>& numbers) {
  return TensorData::of(kFloat32, std::move(shape), numbers);
}

std::string error_with(const ModelBuilder& model,
                       const std::map<std::string, Ref<TensorData>>& params) {
  const Directory directory;
  directory.write("m.onnx", model.bytes());
  std::map<std::string, int64_t> dims;
  return error_of(
      [&](const std::string& path) { (void)with_params(read_model(path), params, dims); },
      directory);
}

TEST(GivenParams, AreConstantsAndFixTheDimensionsThatTheyName) {
  const Directory directory;
  ImportOptions options;
  const Model model = with_params(
      read_model(directory.write("m.onnx", dense().bytes())),
      {{"w", values({2, 3}, {1, 2, 3, 4, 5, 6})}, {"b", values({3}, {7, 8, 9})}}, options.dims);
  const IRModule module = import_onnx(model, options);
  const auto main = module.find<graph::Function>("main");
  ASSERT_EQ(main->params.size(), 1u);
  EXPECT_EQ(main->params[0]->name, "x");
  EXPECT_EQ(str(main->params[0]->type), "R.Tensor((n, 2), \"float32\")");
  const auto y = interp::Interpreter(module).run_main({values({1, 2}, {1, 10})}).at(0);
  EXPECT_EQ(std::vector<float>(y->as_span<float>().begin(), y->as_span<float>().end()),
            (std::vector<float>{48, 60, 72}));
}

TEST(GivenParams, AreKnownInSumsOfDimensions) {
  ModelBuilder m;
  m.input("x", {"n", "k + 1"});
  m.input("w", {"k"});
  m.node("Relu", {"x"}, {"y"});
  m.output("y");
  const Directory directory;
  ImportOptions options;
  const Model model = with_params(read_model(directory.write("m.onnx", m.bytes())),
                                  {{"w", values({2}, {1, 2})}}, options.dims);
  const auto main = import_onnx(model, options).find<graph::Function>("main");
  EXPECT_EQ(str(main->params[0]->type), "R.Tensor((n, 3), \"float32\")");
}

TEST(GivenParams, TakeThePlaceOfTheFilesInitialisers) {
  ModelBuilder m = relu_model();
  m.input("unused", {"1"});
  m.tensor("unused", {1}, {5});
  const Directory directory;
  Model model = read_model(directory.write("m.onnx", m.bytes()));
  std::map<std::string, int64_t> dims;
  model = with_params(std::move(model), {{"unused", values({1}, {6})}}, dims);
  ASSERT_EQ(model.graph.initializers.size(), 1u);
  EXPECT_EQ(model.graph.initializers[0].data->at_float(0), 6);
  EXPECT_EQ(model.graph.inputs.size(), 1u);
}

TEST(GivenParams, ThatDoNotFitAreRefused) {
  ModelBuilder sequence;
  sequence.graph().add_input()->set_name("s");
  sequence.graph()
      .mutable_input(0)
      ->mutable_type()
      ->mutable_sequence_type()
      ->mutable_elem_type()
      ->mutable_tensor_type()
      ->set_elem_type(1);
  EXPECT_EQ(error_with(sequence, {{"s", values({1}, {1})}}),
            "TN0004: s: a value is given for input `s`, which is no tensor");
  EXPECT_EQ(error_with(dense(), {{"scale", values({1}, {1})}}),
            "TN0004: m.onnx: a value is given for `scale`, which is no input");
  EXPECT_EQ(error_with(dense(), {{"b", values({2}, {1, 2})}}),
            "TN0101: b: input `b` is given shape (2,); expected (3,)");
  EXPECT_EQ(
      error_with(dense(), {{"w", values({2, 3}, {1, 2, 3, 4, 5, 6})}, {"x", values({1, 1}, {1})}}),
      "TN0101: x: input `x` is given shape (1, 1); expected (n, k=2)");
  EXPECT_EQ(error_with(dense(), {{"b", TensorData::of<int64_t>(kInt64, {3}, {1, 2, 3})}}),
            "TN0102: b: input `b` is given elements of int64; expected float32");
}

}  // namespace
}  // namespace tenon::onnx
