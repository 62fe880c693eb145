// SPDX-License-Identifier: Apache-2.0
// Sequences and optionals whose operands do not go together, and inputs whose length is not known.
#include <gmock/gmock.h>

#include "model_builder.h"

namespace tenon::onnx {
namespace {

using Nodes = std::function<void(ModelBuilder&)>;

// Nodes of float tensors a (2) and b (3), an int64 tensor k (1); y is the result.
ModelBuilder of(const Nodes& add) {
  ModelBuilder m(18);
  m.input("a", {"2"});
  m.input("b", {"3"});
  m.input("k", {"1"}, 7);
  m.ints("one", {1});
  m.ints("three", {3});
  m.ints("minus_three", {-3});
  add(m);
  m.output("y");
  return m;
}

void construct(ModelBuilder& m) { m.node("SequenceConstruct", {"a", "b"}, {"s"}); }

TEST(Sequences, WhatDoesNotGoTogether) {
  const std::vector<std::pair<Nodes, const char*>> cases = {
      {[](ModelBuilder& m) { m.node("SequenceAt", {"a", "one"}, {"y"}, "n"); },
       "TN0107: n: operand 0 of `SequenceAt` is a tensor; expected a sequence"},
      {[](ModelBuilder& m) {
         construct(m);
         m.node("Neg", {"s"}, {"y"}, "n");
       },
       "TN0107: n: operand 0 of `Neg` is a sequence; expected a tensor"},
      {[](ModelBuilder& m) {
         construct(m);
         m.node("SequenceInsert", {"s", "s"}, {"y"}, "n");
       },
       "TN0107: n: operand 1 of `SequenceInsert` is a sequence; expected a tensor"},
      {[](ModelBuilder& m) {
         construct(m);
         m.node("SequenceAt", {"s", "three"}, {"y"}, "n");
       },
       "TN0302: n: position 3 of `SequenceAt` in a sequence of 2; expected -2 to 1"},
      {[](ModelBuilder& m) {
         construct(m);
         m.node("SequenceInsert", {"s", "a", "minus_three"}, {"y"}, "n");
       },
       "TN0302: n: position -3 of `SequenceInsert` in a sequence of 2; expected -2 to 2"},
      {[](ModelBuilder& m) {
         construct(m);
         m.node("SequenceInsert", {"s", "k"}, {"y"}, "n");
       },
       "TN0102: n: `SequenceInsert` of a tensor of int64 and a sequence of float32"},
      {[](ModelBuilder& m) { m.node("SequenceConstruct", {"a", "k"}, {"y"}, "n"); },
       "TN0102: n: `SequenceConstruct` of a tensor of int64 and a sequence of float32"},
      {[](ModelBuilder& m) {
         m.node("SequenceEmpty", {}, {"s"});
         m.node("SequenceErase", {"s"}, {"y"}, "n");
       },
       "TN0302: n: `SequenceErase` of an empty sequence"},
      {[](ModelBuilder& m) {
         m.node("SequenceEmpty", {}, {"s"});
         m.node("SequenceAt", {"s", "k"}, {"y"}, "n");
       },
       "TN0302: n: `SequenceAt` of an empty sequence"},
      {[](ModelBuilder& m) {
         m.node("SequenceEmpty", {}, {"s"});
         set_int(m.node("ConcatFromSequence", {"s"}, {"y"}, "n"), "axis", 0);
       },
       "TN0105: n: `ConcatFromSequence` of an empty sequence"},
      {[](ModelBuilder& m) { m.node("SplitToSequence", {"a", "three"}, {"y"}, "n"); },
       "TN0101: n: `SplitToSequence` into sizes (3,) of an axis of 2"},
      {[](ModelBuilder& m) { m.node("Optional", {}, {"y"}, "n"); },
       "TN0104: n: `Optional` has neither an operand nor attribute `type`"},
      {[](ModelBuilder& m) {
         m.node("Optional", {"a"}, {"o"});
         m.node("Optional", {"o"}, {"y"}, "n");
       },
       "TN0107: n: `Optional` of an optional"},
      {[](ModelBuilder& m) {
         auto* type = m.node("Optional", {}, {"o"}).add_attribute();
         type->set_name("type");
         type->set_type(pb::AttributeProto::TYPE_PROTO);
         type->mutable_tp()->mutable_tensor_type()->set_elem_type(1);
         m.node("OptionalGetElement", {"o"}, {"y"}, "n");
       },
       "TN0105: n: `OptionalGetElement` of an optional that is absent"},
  };
  for (const auto& [nodes, says] : cases) {
    SCOPED_TRACE(says);
    EXPECT_THAT(error_of(of(nodes)), testing::HasSubstr(says));
  }
}

// A network of a sequence x and an optional o.
ModelBuilder of_inputs() {
  ModelBuilder m(18);
  auto& x = *m.graph().add_input();
  x.set_name("x");
  x.mutable_type()
      ->mutable_sequence_type()
      ->mutable_elem_type()
      ->mutable_tensor_type()
      ->set_elem_type(1);
  auto& o = *m.graph().add_input();
  o.set_name("o");
  auto* tensor =
      o.mutable_type()->mutable_optional_type()->mutable_elem_type()->mutable_tensor_type();
  tensor->set_elem_type(1);
  tensor->mutable_shape()->add_dim()->set_dim_value(2);
  m.input("t", {"2"});
  m.node("SequenceLength", {"x"}, {"n"});
  m.node("OptionalHasElement", {"o"}, {"h"});
  m.output("n");
  m.output("h");
  return m;
}

TEST(Sequences, LengthsOfInputs) {
  const Directory directory;
  const std::string file = directory.write("m.onnx", of_inputs().bytes());
  const auto says = [&](const ImportOptions& options) {
    return error_of([&](const std::string& path) { (void)import_onnx(path, options); }, directory);
  };
  using testing::HasSubstr;
  EXPECT_THAT(says({}), HasSubstr("`graph input` (a sequence, whose length --length x=N gives)"));
  EXPECT_THAT(says({.lengths = {{"y", 1}}}), HasSubstr("there is no input `y`"));
  EXPECT_THAT(says({.lengths = {{"t", 1}}}),
              HasSubstr("input `t` is a tensor, which has no length"));
  EXPECT_THAT(says({.lengths = {{"x", -1}}}),
              HasSubstr("the length of input `x` is none; expected 0 to 4096"));
  EXPECT_THAT(says({.lengths = {{"x", 5000}}}),
              HasSubstr("the length of input `x` is 5000; expected 0 to 4096"));
  EXPECT_THAT(says({.lengths = {{"x", 0}, {"o", 2}}}),
              HasSubstr("the length of input `o`, an optional, is 2; expected none or 1"));
  EXPECT_THAT(says({.lengths = {{"x", 1}}}),
              HasSubstr("a tensor of unknown rank; --shape gives it"));

  const IRModule module = import_onnx(file, {.input_shapes = {{"x[0]", {3}}, {"x[1]", {2, 2}}},
                                             .lengths = {{"o", ImportOptions::kAbsent}}});
  const auto main = module.find<graph::Function>("main");
  EXPECT_EQ(main->attrs.strings("input_names"), (std::vector<std::string>{"x[0]", "x[1]", "t"}));
  EXPECT_EQ(main->attrs.strings("output_names"), (std::vector<std::string>{"n", "h"}));
}

}  // namespace
}  // namespace tenon::onnx
