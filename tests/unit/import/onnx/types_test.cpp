// SPDX-License-Identifier: Apache-2.0
// Element types: tensors of each in files, and conversions, in the interpreter.
#include <cmath>

#include "model_builder.h"
#include "tenon/import/onnx/model.h"
#include "tenon/interp/interpreter.h"

namespace tenon::onnx {

namespace {

using Numbers = std::vector<double>;
constexpr int kFloat = 1, kE4m3fn = 17, kE4m3fnuz = 18, kE5m2 = 19, kE5m2fnuz = 20, kU4 = 21,
              kI4 = 22, kE2m1 = 23, kE8m0 = 24, kU2 = 25, kI2 = 26;

Numbers numbers(const TensorData& tensor) {
  Numbers out;
  for (int64_t i = 0; i < tensor.elements(); ++i) out.push_back(tensor.at_float(i));
  return out;
}

// ---- files

Ref<TensorData> packed(int type, int64_t count, const std::string& bytes) {
  const Directory directory;
  pb::TensorProto t;
  t.set_data_type(type);
  t.add_dims(count);
  t.set_raw_data(bytes);
  return read_tensor_pb(directory.write("t.pb", t.SerializeAsString())).data;
}

TEST(ElementTypes, FilesPackWhatIsSmallerThanAByte) {
  const std::string bytes("\x78\xf1", 2);  // low bits first
  EXPECT_EQ(packed(kI4, 3, bytes)->to_ints(), (std::vector<int64_t>{-8, 7, 1}));
  EXPECT_EQ(packed(kU4, 4, bytes)->to_ints(), (std::vector<int64_t>{8, 7, 1, 15}));
  EXPECT_EQ(packed(kI2, 5, bytes)->to_ints(), (std::vector<int64_t>{0, -2, -1, 1, 1}));
  EXPECT_EQ(packed(kU2, 8, bytes)->to_ints(), (std::vector<int64_t>{0, 2, 3, 1, 1, 0, 3, 3}));
  EXPECT_EQ(numbers(*packed(kE2m1, 4, bytes)), (Numbers{-0.0, 6, 0.5, -6}));
  EXPECT_EQ(numbers(*packed(kE4m3fn, 2, bytes)), (Numbers{256, -144}));
  EXPECT_EQ(numbers(*packed(kE8m0, 2, std::string("\x00\x80", 2))), (Numbers{0x1p-127, 2}));
  EXPECT_EQ(packed(kI4, 0, "")->elements(), 0);
  EXPECT_THROW((void)packed(kI4, 5, bytes), CompileError);
  EXPECT_THROW((void)packed(kU2, 4, bytes), CompileError);
}

TEST(ElementTypes, ATypedFieldHoldsBytes) {
  const Directory directory;
  pb::TensorProto t;
  t.set_data_type(kI4);
  t.add_dims(3);
  t.add_int32_data(0x78);
  t.add_int32_data(0x01);
  const auto read = [&] { return read_tensor_pb(directory.write("t.pb", t.SerializeAsString())); };
  EXPECT_EQ(read().data->to_ints(), (std::vector<int64_t>{-8, 7, 1}));
  t.set_data_type(kE5m2);  // one element each
  EXPECT_THROW((void)read(), CompileError);
  t.add_int32_data(0x3c);
  EXPECT_EQ(read().data->at_float(2), 1);
}

// ---- conversions

/// Cast of constants of type `from`, whose bytes are given, to `to`.
struct Conversion {
  ModelBuilder model{25};
  pb::NodeProto* node = nullptr;

  Conversion(const std::vector<float>& values, int to) {
    model.tensor("x", {static_cast<int64_t>(values.size())}, values);
    start(to);
  }
  Conversion(int from, int64_t count, const std::string& bytes, int to) {
    auto& t = model.tensor("x", {count}, {});
    t.set_data_type(from);
    t.set_raw_data(bytes);
    start(to);
  }
  Conversion& wraps() {
    set_int(*node, "saturate", 0);
    return *this;
  }
  Conversion& rounds(const std::string& mode) {
    auto* a = node->add_attribute();
    a->set_name("round_mode");
    a->set_type(pb::AttributeProto::STRING);
    a->set_s(mode);
    return *this;
  }
  Numbers run() const {
    const Directory directory;
    const IRModule module = import_onnx(directory.write("m.onnx", model.bytes()));
    return numbers(*interp::Interpreter(module).run_main({}).at(0));
  }

 private:
  void start(int to) {
    node = &model.node("Cast", {"x"}, {"y"});
    set_int(*node, "to", to);
    model.output("y");
  }
};

void expect_numbers(const Numbers& got, const Numbers& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << i;
    } else {
      EXPECT_EQ(got[i], expected[i]) << i;
      EXPECT_EQ(std::signbit(got[i]), std::signbit(expected[i])) << i;
    }
  }
}

const std::vector<float> kSpecial = {0,        -0.0F,     NAN,  INFINITY, -INFINITY,
                                     100000.F, -100000.F, 0.1F, 1.5F,     -3.3F};

TEST(Casts, Float8Saturates) {
  expect_numbers(Conversion(kSpecial, kE4m3fn).run(),
                 {0, -0.0, NAN, 448, -448, 448, -448, 0.1015625, 1.5, -3.25});
  expect_numbers(Conversion(kSpecial, kE4m3fnuz).run(),
                 {0, 0, NAN, 240, -240, 240, -240, 0.1015625, 1.5, -3.25});
  expect_numbers(Conversion(kSpecial, kE5m2).run(),
                 {0, -0.0, NAN, 57344, -57344, 57344, -57344, 0.09375, 1.5, -3.5});
  expect_numbers(Conversion(kSpecial, kE5m2fnuz).run(),
                 {0, 0, NAN, 57344, -57344, 57344, -57344, 0.09375, 1.5, -3.5});
}

TEST(Casts, Float8OrNot) {
  expect_numbers(Conversion(kSpecial, kE4m3fn).wraps().run(),
                 {0, -0.0, NAN, NAN, NAN, NAN, NAN, 0.1015625, 1.5, -3.25});
  expect_numbers(Conversion(kSpecial, kE5m2).wraps().run(),
                 {0, -0.0, NAN, INFINITY, -INFINITY, INFINITY, -INFINITY, 0.09375, 1.5, -3.5});
  expect_numbers(Conversion(kSpecial, kE5m2fnuz).wraps().run(),
                 {0, 0, NAN, NAN, NAN, NAN, NAN, 0.09375, 1.5, -3.5});
}

TEST(Casts, Float4) {
  expect_numbers(Conversion({0.25F, 0.2500001F, 5, 5.1F, -1.75F, 1e9F, -INFINITY}, kE2m1).run(),
                 {0, 0.5, 4, 6, -2, 6, -6});
}

TEST(Casts, PowersOfTwoRoundAsAsked) {
  const std::vector<float> x = {1, 1.25F, 1.5F, 1.75F, 0, 0x1p-149F, 0x1.8p127F, INFINITY, NAN};
  constexpr double kLeast = 0x1p-127, kMost = 0x1p127;
  expect_numbers(Conversion(x, kE8m0).run(), {1, 2, 2, 2, kLeast, kLeast, kMost, kMost, NAN});
  expect_numbers(Conversion(x, kE8m0).rounds("down").run(),
                 {1, 1, 1, 1, kLeast, kLeast, kMost, kMost, NAN});
  expect_numbers(Conversion(x, kE8m0).rounds("nearest").run(),
                 {1, 1, 2, 2, kLeast, kLeast, kMost, kMost, NAN});
  expect_numbers(Conversion(x, kE8m0).rounds("nearest").wraps().run(),
                 {1, 1, 2, 2, NAN, NAN, NAN, NAN, NAN});
  expect_numbers(Conversion(x, kE8m0).rounds("up").wraps().run(),
                 {1, 2, 2, 2, NAN, NAN, NAN, NAN, NAN});
  expect_numbers(Conversion(x, kE8m0).rounds("down").wraps().run(),
                 {1, 1, 1, 1, NAN, NAN, kMost, NAN, NAN});
  EXPECT_THROW((void)Conversion(x, kE8m0).rounds("even").run(), CompileError);
}

// What does not fit an integer keeps its low bits.
TEST(Casts, SmallIntegersWrap) {
  const std::vector<float> x = {0, 1.7F, -1.7F, 7, 8, -8, -9, 17};
  expect_numbers(Conversion(x, kI4).run(), {0, 1, -1, 7, -8, -8, 7, 1});
  expect_numbers(Conversion(x, kU4).run(), {0, 1, 15, 7, 8, 8, 7, 1});
  expect_numbers(Conversion(x, kI2).run(), {0, 1, -1, -1, 0, 0, -1, 1});
  expect_numbers(Conversion(x, kU2).run(), {0, 1, 3, 3, 0, 0, 3, 1});
  expect_numbers(Conversion(kI4, 4, "\x98\x21", kU2).run(), {0, 1, 1, 2});
}

// From every type to every other: 1 is a number of each.
TEST(Casts, AllPairs) {
  const std::string f32("\x00\x00\x80\x3f", 4), f64("\x00\x00\x00\x00\x00\x00\xf0\x3f", 8);
  const std::vector<std::pair<int, std::string>> ones = {
      {1, f32},
      {2, "\x01"},
      {3, "\x01"},
      {4, std::string("\x01\x00", 2)},
      {5, std::string("\x01\x00", 2)},
      {6, std::string("\x01\x00\x00\x00", 4)},
      {7, std::string("\x01\x00\x00\x00\x00\x00\x00\x00", 8)},
      {9, "\x01"},
      {10, std::string("\x00\x3c", 2)},
      {11, f64},
      {12, std::string("\x01\x00\x00\x00", 4)},
      {13, std::string("\x01\x00\x00\x00\x00\x00\x00\x00", 8)},
      {16, std::string("\x80\x3f", 2)},
      {kE4m3fn, "\x38"},
      {kE4m3fnuz, "\x40"},
      {kE5m2, "\x3c"},
      {kE5m2fnuz, "\x40"},
      {kU4, "\x01"},
      {kI4, "\x01"},
      {kE2m1, "\x02"},
      {kE8m0, "\x7f"},
      {kU2, "\x01"},
      {kI2, "\x01"}};
  for (const auto& [from, bytes] : ones)
    for (const auto& [to, unused] : ones) {
      SCOPED_TRACE(std::to_string(from) + " to " + std::to_string(to));
      EXPECT_EQ(Conversion(from, 1, bytes, to).run(), Numbers{1});
    }
}

TEST(Casts, BitCastKeepsBits) {
  ModelBuilder m(26);
  m.tensor("x", {2}, {1, -0.0F});
  set_int(m.node("BitCast", {"x"}, {"y"}), "to", 6);
  m.output("y");
  const Directory directory;
  const auto y =
      interp::Interpreter(import_onnx(directory.write("m.onnx", m.bytes()))).run_main({}).at(0);
  EXPECT_EQ(y->to_ints(), (std::vector<int64_t>{0x3f800000, INT32_MIN}));
}

// ---- quantised

struct Quantising {
  ModelBuilder model{25};
  pb::NodeProto* node = nullptr;

  Quantising(const std::string& op, const std::vector<std::string>& inputs) {
    node = &model.node(op, inputs, {"y"});
    model.output("y");
  }
  Quantising& narrow(const std::string& name, int type, const std::vector<int64_t>& dims,
                     const std::string& bytes) {
    auto& t = model.tensor(name, dims, {});
    t.set_data_type(type);
    t.set_raw_data(bytes);
    return *this;
  }
  Quantising& with(const std::string& name, int64_t value) {
    set_int(*node, name, value);
    return *this;
  }
  Numbers run() const {
    const Directory directory;
    const IRModule module = import_onnx(directory.write("m.onnx", model.bytes()));
    return numbers(*interp::Interpreter(module).run_main({}).at(0));
  }
};

TEST(Quantising, BlocksOfAnAxis) {
  Quantising q("QuantizeLinear", {"x", "s", "z"});
  q.model.tensor("x", {2, 3}, {1, 2, 3, -4, -5, 60});
  q.model.tensor("s", {2, 2}, {1, 0.5F, 2, 4});
  q.narrow("z", kI4, {2, 2}, "\x10\x02").with("axis", 1).with("block_size", 2);
  // Zero points 0, 1, 2, 0.
  expect_numbers(q.run(), {1, 2, 7, 0, 0, 7});
}

TEST(Quantising, BlocksBack) {
  Quantising q("DequantizeLinear", {"x", "s"});
  q.narrow("x", kU2, {1, 3}, "\x39");  // 1, 2, 3
  q.model.tensor("s", {1, 2}, {0.5F, 10});
  q.with("axis", -1).with("block_size", 2);
  expect_numbers(q.run(), {0.5, 1, 30});
}

TEST(Quantising, TheTypeOfTheScaleIsThatOfTheDivision) {
  Quantising q("QuantizeLinear", {"x", "s"});
  q.model.tensor("x", {1}, {2.5005F});
  q.narrow("s", 10, {}, std::string("\x00\x3c", 2));
  EXPECT_EQ(q.run(), Numbers{2});  // 2.5 in float16
  q.with("precision", kFloat);
  EXPECT_EQ(q.run(), Numbers{3});
}

TEST(Quantising, Float8) {
  Quantising q("QuantizeLinear", {"x", "s"});
  q.model.tensor("x", {3}, {1, 1000, -0.0F});
  q.model.tensor("s", {}, {0.5F});
  q.with("output_dtype", kE4m3fn);
  expect_numbers(q.run(), {2, 448, -0.0});
  q.with("saturate", 0);
  expect_numbers(q.run(), {2, NAN, -0.0});
}

TEST(Quantising, WhatDoesNotFit) {
  Quantising rank("QuantizeLinear", {"x", "s"});
  rank.model.tensor("x", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  rank.model.tensor("s", {2, 2}, {1, 1, 1, 1});
  EXPECT_THROW((void)rank.run(), CompileError);
  rank.with("block_size", 3);
  EXPECT_NO_THROW((void)rank.run());
  Quantising zero("QuantizeLinear", {"x", "s", "z"});
  zero.model.tensor("x", {1}, {1});
  zero.model.tensor("s", {}, {1});
  zero.narrow("z", kE5m2, {}, "\x3c");
  EXPECT_THROW((void)zero.run(), CompileError);
}

}  // namespace

}  // namespace tenon::onnx
