// SPDX-License-Identifier: Apache-2.0
// Loop and Scan: bodies that do not fit, and what becomes of those that do.
#include <gmock/gmock.h>

#include "model_builder.h"

namespace tenon::onnx {
namespace {

constexpr int kFloat = 1, kInt64 = 7, kBool = 9;

struct Value {
  std::string name;
  std::vector<std::string> dims;
  int type = kFloat;
};

/// A body: `nodes` of operator, inputs and one output.
struct LoopBody {
  std::vector<Value> inputs;
  std::vector<std::tuple<std::string, std::vector<std::string>, std::string>> nodes;
  std::vector<Value> outputs;

  void add_to(pb::NodeProto& node) const {
    auto* a = node.add_attribute();
    a->set_name("body");
    a->set_type(pb::AttributeProto::GRAPH);
    for (const Value& v : inputs) declare(*a->mutable_g()->add_input(), v);
    for (const auto& [op, in, out] : nodes) ModelBuilder::add_node(*a->mutable_g(), op, in, {out});
    for (const Value& v : outputs) declare(*a->mutable_g()->add_output(), v);
  }
  static void declare(pb::ValueInfoProto& info, const Value& v) {
    ModelBuilder::declare(info, v.name, v.dims, v.type);
    if (v.type == 0) info.mutable_type()->mutable_tensor_type()->clear_elem_type();
  }
};

const Value kIndex{"i", {}, kInt64}, kGo{"go", {}, kBool}, kOn{"on", {}, kBool};
const std::tuple<std::string, std::vector<std::string>, std::string> kKeep{
    "Identity", {"go"}, "on"};

struct Case {
  const char* says;
  LoopBody body;
  std::vector<Value> operands = {{"n", {}, kInt64}, {"", {}}, {"x", {"2", "3"}}};
};

std::string refusal(const std::string& op, const Case& bad,
                    const std::function<void(pb::NodeProto&)>& change = {}, int64_t opset = 21) {
  ModelBuilder m(opset);
  std::vector<std::string> names;
  for (const Value& v : bad.operands) {
    names.push_back(v.name);
    if (!v.name.empty()) m.input(v.name, v.dims, v.type);
  }
  auto& node = m.node(op, names, {"y"}, "again");
  bad.body.add_to(node);
  if (change) change(node);
  m.output("y");
  return error_of(m);
}

TEST(Loops, BadBodies) {
  const Value s{"s", {"2", "3"}}, r{"r", {}, 0};
  const LoopBody good{{kIndex, kGo, s}, {kKeep, {"Relu", {"s"}, "r"}}, {kOn, r}};
  const std::vector<Case> cases = {
      {"the body of `Loop` has 2 inputs; expected 3",
       {{kIndex, kGo}, {kKeep, {"Relu", {"x"}, "r"}}, {kOn, r}}},
      {"the body of `Loop` has 1 outputs; expected 2 and more", {{kIndex, kGo, s}, {kKeep}, {kOn}}},
      {"the condition of `Loop` has dtype float32; expected bool",
       {{kIndex, kGo, s}, {{"Relu", {"s"}, "r"}}, {{"r", {}, 0}, {"r", {}, 0}}}},
      {"the body of `Loop` gets `s` of dtype float32; it is declared with int64",
       {{kIndex, kGo, {"s", {}, kInt64}}, {kKeep, {"Relu", {"s"}, "r"}}, {kOn, r}}},
      {"the body of `Loop` gives `r` of dtype float32; it is declared with int64",
       {{kIndex, kGo, s}, {kKeep, {"Relu", {"s"}, "r"}}, {kOn, {"r", {}, kInt64}}}},
      {"state `s` of `Loop` is of dtype float32 and becomes bool",
       {{kIndex, kGo, s}, {kKeep, {"IsNaN", {"s"}, "r"}}, {kOn, r}}},
      {"state `s` of `Loop` is of rank 2 and becomes one of rank 0",
       {{kIndex, kGo, s}, {kKeep, {"Size", {"s"}, "l"}, {"CastLike", {"l", "s"}, "r"}}, {kOn, r}}},
      {"operand `M` of `Loop` has 2 elements; expected 1",
       good,
       {{"n", {"2"}, kInt64}, {"", {}}, {"x", {"2", "3"}}}},
      {"the condition of `Loop` has dtype float32; expected bool",
       good,
       {{"n", {}, kInt64}, {"c", {}}, {"x", {"2", "3"}}}},
  };
  for (const Case& bad : cases)
    EXPECT_THAT(refusal("Loop", bad), ::testing::HasSubstr(bad.says)) << bad.says;
}

TEST(Loops, StackedShapesThatChange) {
  const Case bad{"",
                 {{kIndex, kGo, {"s", {}, 0}},
                  {kKeep, {"Concat", {"s", "x"}, "r"}},
                  {kOn, {"r", {}, 0}, {"s", {}, 0}}}};
  ModelBuilder m(21);
  m.input("n", {}, kInt64);
  m.input("x", {"3"});
  auto& node = m.node("Loop", {"n", "", "x"}, {"y", "z"}, "again");
  bad.body.add_to(node);
  set_int(*node.mutable_attribute(0)->mutable_g()->mutable_node(1), "axis", 0);
  m.output("z");
  // The program finds out.
  EXPECT_EQ(graph::type_of(import_main(m)->body->body).as<graph::TensorType>()->ndim, 2);
}

TEST(Loops, BadScans) {
  const LoopBody good{{{"s", {"3"}}, {"a", {"3"}}}, {{"Add", {"s", "a"}, "r"}}, {{"r", {}, 0}}};
  const Case scan{"", good, {{"x", {"3"}}, {"z", {"5", "3"}}}};
  const auto with = [&](const char* name, const std::vector<int64_t>& values, int64_t scanned = 1) {
    return refusal("Scan", scan, [&](pb::NodeProto& node) {
      set_int(node, "num_scan_inputs", scanned);
      if (name) set_ints(node, name, values);
    });
  };
  EXPECT_EQ(with(nullptr, {}), "");
  EXPECT_THAT(
      with(nullptr, {}, 3),
      ::testing::HasSubstr("attribute `num_scan_inputs` of `Scan` is 3; it has 2 operands"));
  EXPECT_THAT(
      with("scan_input_axes", {0, 0}),
      ::testing::HasSubstr("attribute `scan_input_axes` of `Scan` has 2 values; expected 1"));
  EXPECT_THAT(
      with("scan_input_directions", {2}),
      ::testing::HasSubstr("attribute `scan_input_directions` of `Scan` has 2; expected 0"));
  EXPECT_THAT(refusal("Scan", {"", {good.inputs, {}, {}}, scan.operands},
                      [](pb::NodeProto& node) { set_int(node, "num_scan_inputs", 1); }),
              ::testing::HasSubstr("the body of `Scan` has 0 outputs; expected 1 and more"));
  EXPECT_THAT(refusal("Scan", {"", good, {{"x", {"4", "3"}}, {"z", {"5", "3"}}}},
                      [](pb::NodeProto& node) { set_int(node, "num_scan_inputs", 2); }),
              ::testing::HasSubstr("what `Scan` goes over is of lengths 4 and 5"));
  const auto batched = [&](const std::vector<Value>& operands, bool reversed) {
    return refusal(
        "Scan", {"", good, operands},
        [&](pb::NodeProto& node) {
          set_int(node, "num_scan_inputs", 1);
          if (reversed) set_ints(node, "directions", {1});
        },
        8);
  };
  const Value state{"x", {"2", "3"}}, given{"z", {"2", "5", "3"}};
  EXPECT_EQ(batched({{"", {}}, state, given}, true), "");
  EXPECT_EQ(batched({{"l", {"2"}, kInt64}, state, given}, true), "");
  EXPECT_THAT(batched({{"l", {}, kInt64}, state, given}, false),
              ::testing::HasSubstr("operand `sequence_lens` of `Scan` has rank 0; expected 1"));
  EXPECT_THAT(batched({{"", {}}, state, {"z", {"2"}}}, false),
              ::testing::HasSubstr("operand 0 of `Scan` has rank 1; expected 2 and more"));
}

// A condition that is always true costs nothing, and one that never is ends behind an iteration.
TEST(Loops, ConditionsThatAreKnown) {
  ModelBuilder m(21);
  m.input("n", {}, kInt64);
  m.input("x", {"3"});
  auto& node = m.node("Loop", {"n", "", "x"}, {"y"}, "again");
  LoopBody{{kIndex, kGo, {"s", {"3"}}}, {kKeep, {"Relu", {"s"}, "r"}}, {kOn, {"r", {}, 0}}}.add_to(
      node);
  m.output("y");
  const auto main = import_main(m);
  int64_t loops = 0;
  walk<graph::Call>(main->body, [&](const graph::Call& call) {
    if (!call.is("loop")) return;
    ++loops;
    EXPECT_FALSE(call.attrs.flag("while_first"));
  });
  EXPECT_EQ(loops, 1);
}

}  // namespace
}  // namespace tenon::onnx
