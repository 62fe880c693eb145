// SPDX-License-Identifier: Apache-2.0
// Operators on quantised tensors: values, in the interpreter.
#include <cmath>

#include "model_builder.h"
#include "tenon/interp/interpreter.h"

namespace tenon::onnx {

namespace {

using Ints = std::vector<int64_t>;
constexpr int kUint8 = 2, kInt8 = 3, kInt32 = 6, kBool = 9, kHalf = 10;

/// A model with one node, whose operands are constants.
struct Case {
  ModelBuilder model{21};
  std::vector<std::string> inputs;

  Case() { model.import_opset("com.microsoft", 1); }
  Case& ints(int type, const Ints& dims, const Ints& values) {
    auto& t = model.tensor(next(), dims, {});
    t.set_data_type(type);
    for (const int64_t v : values) t.add_int32_data(static_cast<int32_t>(v));
    return *this;
  }
  Case& floats(const Ints& dims, const std::vector<float>& values) {
    model.tensor(next(), dims, values);
    return *this;
  }
  Case& scale(float value) { return floats({}, {value}); }
  Case& zero(int type, int64_t value) { return ints(type, {}, {value}); }
  Case& absent() {
    inputs.emplace_back();
    return *this;
  }
  pb::NodeProto& node(const std::string& op, const std::string& domain = "com.microsoft") {
    auto& node = model.node(op, inputs, {"y"});
    node.set_domain(domain);
    model.output("y");
    return node;
  }
  Ref<TensorData> run() const {
    const Directory directory;
    const IRModule module = import_onnx(directory.write("m.onnx", model.bytes()));
    return interp::Interpreter(module).run_main({}).at(0);
  }

 private:
  std::string next() { return inputs.emplace_back("i" + std::to_string(inputs.size())); }
};

void set_float(pb::NodeProto& node, const std::string& name, float value) {
  auto* a = node.add_attribute();
  a->set_name(name);
  a->set_type(pb::AttributeProto::FLOAT);
  a->set_f(value);
}

int64_t held(double value, int type) {
  const double least = type == kInt8 ? -128 : 0, most = type == kInt8 ? 127 : 255;
  return static_cast<int64_t>(std::min(std::max(value, least), most));
}

// Both sides have zero points; the scales are powers of two, so that ties are ties.
TEST(QLinear, MatMulOfAllSigns) {
  for (const int a : {kUint8, kInt8})
    for (const int b : {kUint8, kInt8}) {
      const Ints x = {1, 2, 3, 100, 5, 127}, w = {7, 1, 2, 120, 3, 90};
      Case c;
      c.ints(a, {2, 3}, x).scale(0.5F).zero(a, 4);
      c.ints(b, {3, 2}, w).floats({2}, {0.25F, 0.125F}).ints(b, {2}, {3, 2});
      c.scale(8).zero(a, 9);
      c.node("QLinearMatMul", "");
      Ints expected;
      for (size_t i = 0; i < 2; ++i)
        for (size_t j = 0; j < 2; ++j) {
          int64_t sum = 0;
          for (size_t k = 0; k < 3; ++k) sum += (x[i * 3 + k] - 4) * (w[k * 2 + j] - (j ? 2 : 3));
          const double scale = 0.5 * (j ? 0.125 : 0.25) / 8;
          expected.push_back(held(std::nearbyint(static_cast<double>(sum) * scale) + 9, a));
        }
      EXPECT_EQ(c.run()->to_ints(), expected);
    }
}

TEST(QLinear, ConvWithBiasPadsByTheZeroPoint) {
  Case c;
  c.ints(kUint8, {1, 1, 3}, {10, 20, 30}).scale(1).zero(kUint8, 10);
  c.ints(kInt8, {2, 1, 3}, {1, 1, 1, 2, 0, -2}).floats({2}, {0.5F, 1}).ints(kInt8, {2}, {0, 0});
  c.scale(1).zero(kInt8, -1).ints(kInt32, {2}, {1, 3});
  set_ints(c.node("QLinearConv", ""), "pads", {1, 1});
  // Sums 10, 30, 30 and -20, -40, 20, then the bias.
  EXPECT_EQ(c.run()->to_ints(), (Ints{5, 15, 15, -18, -38, 22}));  // 5.5 and 15.5 are ties
}

TEST(QLinear, GemmGivesFloatsWithoutAScale) {
  Case c;
  c.ints(kUint8, {2, 1}, {3, 5}).scale(0.5F).zero(kUint8, 1);
  c.ints(kInt8, {1, 2}, {4, -4}).scale(0.25F).zero(kInt8, 0).ints(kInt32, {1}, {2});
  auto& node = c.node("QGemm");
  set_float(node, "alpha", 2);
  set_int(node, "transA", 1);
  set_int(node, "transB", 1);
  const auto y = c.run();  // (2 * 4 + 4 * -4 + 2) * 0.25
  ASSERT_EQ(y->elements(), 1);
  EXPECT_EQ(y->at_float(0), -1.5);
}

TEST(QLinear, ProductsOfFloats) {
  Case c;
  c.floats({1, 2}, {0, 255}).ints(kInt8, {2, 1}, {5, -3}).scale(0.5F).zero(kInt8, 1);
  c.floats({1}, {100});
  c.node("DynamicQuantizeMatMul");
  EXPECT_EQ(c.run()->at_float(0), 255 * -4 * 0.5 + 100);
  Case d;
  d.ints(kUint8, {1, 2}, {3, 9}).ints(kUint8, {2, 1}, {5, 2}).scale(0.5F).scale(2);
  d.zero(kUint8, 1).zero(kUint8, 3);
  d.node("MatMulIntegerToFloat");
  EXPECT_EQ(d.run()->at_float(0), 2 * 2 + 8 * -1);
}

TEST(QLinear, AddAndMultiplyBroadcast) {
  for (const bool adds : {true, false}) {
    Case c;
    c.ints(kInt8, {2, 2}, {10, -20, 30, 127}).scale(0.5F).zero(kInt8, 2);
    c.ints(kInt8, {2}, {4, -4}).scale(0.25F).absent().scale(2);
    c.node(adds ? "QLinearAdd" : "QLinearMul");
    // x: 4, -11, 14, 62.5; the other: 1, -1
    EXPECT_EQ(c.run()->to_ints(), adds ? (Ints{2, -6, 8, 31}) : (Ints{2, 6, 7, -31}));
  }
}

TEST(QLinear, PoolsAndMeans) {
  const auto tensor = [](Case& c) -> Case& {
    return c.ints(kUint8, {1, 1, 2, 2}, {10, 12, 14, 20}).scale(0.5F).zero(kUint8, 10);
  };
  Case pool, everywhere, mean;
  tensor(pool).scale(0.25F).zero(kUint8, 1);
  auto& node = pool.node("QLinearAveragePool");
  set_ints(node, "kernel_shape", {1, 2});
  set_int(node, "channels_last", 0);
  EXPECT_EQ(pool.run()->to_ints(), (Ints{3, 15}));
  tensor(everywhere).scale(0.25F).zero(kUint8, 1);
  set_int(everywhere.node("QLinearGlobalAveragePool"), "channels_last", 1);
  EXPECT_EQ(everywhere.run()->to_ints(), (Ints{5, 13}));
  tensor(mean).scale(0.25F).zero(kUint8, 1);
  auto& reduce = mean.node("QLinearReduceMean");
  set_ints(reduce, "axes", {2, 3});
  set_int(reduce, "keepdims", 0);
  EXPECT_EQ(mean.run()->to_ints(), (Ints{9}));
}

TEST(QLinear, ConcatWhereAndCurves) {
  Case concat;
  concat.scale(0.5F).zero(kUint8, 5);
  concat.ints(kUint8, {2}, {1, 2}).scale(1).zero(kUint8, 1);
  concat.ints(kUint8, {1}, {200}).scale(2).zero(kUint8, 0);
  set_int(concat.node("QLinearConcat"), "axis", 0);
  EXPECT_EQ(concat.run()->to_ints(), (Ints{5, 7, 255}));
  Case where;
  where.ints(kBool, {2}, {1, 0}).ints(kInt8, {2}, {1, 2}).scale(1).zero(kInt8, 0);
  where.ints(kInt8, {1}, {-3}).scale(2).zero(kInt8, 1).scale(1).zero(kInt8, 3);
  where.node("QLinearWhere");
  EXPECT_EQ(where.run()->to_ints(), (Ints{4, -5}));
  Case leaky;
  leaky.ints(kInt8, {2}, {-8, 8}).scale(1).zero(kInt8, 0).scale(1).zero(kInt8, 0);
  set_float(leaky.node("QLinearLeakyRelu"), "alpha", 0.25F);
  EXPECT_EQ(leaky.run()->to_ints(), (Ints{-2, 8}));
  Case sigmoid;
  sigmoid.ints(kUint8, {3}, {0, 10, 255}).scale(1).zero(kUint8, 10).scale(0.00390625F).absent();
  sigmoid.node("QLinearSigmoid");
  EXPECT_EQ(sigmoid.run()->to_ints(), (Ints{0, 128, 255}));
  Case softmax;
  softmax.ints(kUint8, {1, 2, 2}, {3, 3, 3, 3}).scale(1).absent().scale(0.125F).zero(kUint8, 1);
  set_int(softmax.node("QLinearSoftmax"), "opset", 11);
  EXPECT_EQ(softmax.run()->to_ints(), (Ints{3, 3, 3, 3}));  // one vector of four
}

TEST(QLinear, ScalesOfHalfPrecision) {
  Case c;
  c.ints(kInt8, {1, 1}, {100}).ints(kHalf, {}, {0x3800}).zero(kInt8, 0);  // 0.5
  c.ints(kInt8, {1, 1}, {7}).ints(kHalf, {}, {0x3800}).zero(kInt8, 0);
  c.ints(kHalf, {}, {0x4400}).zero(kInt8, 1);  // 4
  c.node("QLinearMatMul", "");
  EXPECT_EQ(c.run()->to_ints(), (Ints{45}));  // 43.75 + 1
}

TEST(QLinear, WhatDoesNotFit) {
  Case zero;
  zero.ints(kInt8, {1, 1}, {1}).scale(1).zero(kUint8, 0).scale(1);
  set_int(zero.node("QLinearLeakyRelu"), "unused", 1);
  EXPECT_EQ(error_of(zero.model),
            "TN0102: y: operand 2 of `QLinearLeakyRelu`, a zero point, has dtype uint8; its tensor "
            "has int8");
  Case scale;
  scale.ints(kInt8, {2}, {1, 2}).floats({2}, {1, 2}).absent().scale(1);
  scale.node("QLinearSigmoid");
  EXPECT_NE(error_of(scale.model).find("operand 1, a scale or zero point of shape (2,)"),
            std::string::npos);
}

}  // namespace

}  // namespace tenon::onnx
