// SPDX-License-Identifier: Apache-2.0
// What valid models become.
#include <gmock/gmock.h>

#include "model_builder.h"
#include "tenon/graph/kernels.h"
#include "tenon/graph/op.h"
#include "tenon/support/operator_id.h"

namespace tenon::onnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string result_type(const ModelBuilder& model, const ImportOptions& options = {}) {
  return graph::str(import_main(model, options)->result);
}

// The operators of `main`, in order.
std::string operators(const Ref<graph::Function>& main) {
  std::string names;
  for (const auto& block : main->body->blocks)
    for (const auto& binding : block->bindings) {
      const auto* call = binding->value.as<graph::Call>();
      names += (names.empty() ? "" : " ") + std::string(binding->match ? "match_cast"
                                                        : call         ? call->op->name
                                                                       : "other");
    }
  return names;
}

bool has_branches(const Ref<graph::Function>& main) {
  int branches = 0;
  walk<graph::If>(main->body, [&](const graph::If&) { ++branches; });
  return branches > 0;
}

TEST(Import, NodesOfOneNameAreTwoOperators) {
  ModelBuilder m;
  m.input("x", {"2", "3"});
  m.node("Relu", {"x"}, {"a"}, "act");
  m.node("Relu", {"a"}, {"b"}, "act");
  m.output("b");
  const Ref<graph::Function> main = import_main(m);
  std::vector<Origin> origins;
  walk<graph::Call>(main->body, [&](const graph::Call& call) { origins.push_back(call.origin); });
  ASSERT_EQ(origins.size(), 2);
  EXPECT_EQ(origins[0].str(), origins[1].str());
  EXPECT_NE(operator_id(origins[0]), operator_id(origins[1]));
}

// Freed one by one: calls within each other would need more stack than there is.
TEST(Import, AChainMayBeLong) {
  constexpr int kLength = 200000;
  ModelBuilder m;
  m.input("x0", {"2"});
  for (int i = 0; i < kLength; ++i)
    m.node("Relu", {"x" + std::to_string(i)}, {"x" + std::to_string(i + 1)});
  m.output("x" + std::to_string(kLength));
  EXPECT_EQ(import_main(m)->body->blocks.at(0)->bindings.size(), kLength);
}

// A declared operator whose inputs `scale` and `shift` have the default None.
TEST(Import, OptionalInputsOfDeclaredOperatorsMayBeLeftOut) {
  const auto tensor = [](const std::string& name) {
    return make<graph::Var>(name, make<graph::TensorType>(to_exprs({2, 3}), kFloat32));
  };
  const auto x = tensor("x");
  const graph::Type type = x->type;
  const auto declared = make<graph::Function>(
      std::vector<Ref<graph::Var>>{x, tensor("scale"), tensor("shift")}, graph::no_body(type), type,
      Attrs{{"op", "com.example::Affine"},
            {"op_attrs", AttrValue::Map{{"scale", AttrValue()}, {"shift", AttrValue()}}}});
  ImportOptions options;
  options.operators = {{"affine", declared}};
  const auto model = [](const std::vector<std::vector<std::string>>& calls) {
    ModelBuilder m;
    m.import_opset("com.example", 1);
    m.input("x", {"2", "3"});
    std::string last = "x";
    for (const std::vector<std::string>& more : calls) {
      std::vector<std::string> inputs = {last};
      inputs.insert(inputs.end(), more.begin(), more.end());
      last += "y";
      m.node("Affine", inputs, {last}, last).set_domain("com.example");
    }
    m.output(last);
    return m;
  };
  const auto callees = [&](const ModelBuilder& m) {
    std::string out;
    walk<graph::Call>(import_main(m, options)->body, [&](const graph::Call& call) {
      out += call.callee.as<graph::FuncRef>()->name + "/" + std::to_string(call.args.size()) + " ";
    });
    return out;
  };
  EXPECT_EQ(callees(model({{"x", "x"}, {"x"}, {"x", ""}, {"", "x"}, {}})),
            "affine/3 affine_without_shift/2 affine_without_shift/2 affine_without_scale/2 "
            "affine_without_scale_shift/1 ");
  // What has no default must be there.
  ModelBuilder without = model({});
  without.graph().clear_output();
  without.node("Affine", {"", "x"}, {"z"}, "z").set_domain("com.example");
  without.output("z");
  try {
    (void)import_main(without, options);
    FAIL() << "it was imported";
  } catch (const CompileError& error) {
    EXPECT_EQ(error.first().code.name, kUnsupportedOperator.name);
    EXPECT_NE(std::string(error.what()).find("operand `x` left out"), std::string::npos)
        << error.what();
  }
}

// "Conv(x, w, b) pads=[1, 1, 2, 2] ...; Relu(...)": the nodes that `whole` keeps, with attributes.
std::string whole_nodes(const ModelBuilder& model, const std::set<std::string>& operators,
                        const std::set<std::string>& nodes = {}) {
  const Directory directory;
  ImportOptions options;
  options.whole = operators;
  options.whole_nodes = nodes;
  const IRModule module = import_onnx(directory.write("m.onnx", model.bytes()), options);
  std::string text;
  for (const auto& [name, function] : module.functions()) {
    if (!graph::is_node_function(*function)) continue;
    text += fmt::format("{}{}(", text.empty() ? "" : "; ", *function->attrs.get<std::string>("op"));
    for (const auto& param : cast<graph::Function>(function)->params)
      text += fmt::format("{}{}", text.ends_with('(') ? "" : ", ", param->name);
    text += ") " + function->attrs.find("op_values")->str();
  }
  return text;
}

TEST(Import, ANodeThatStaysWholeHasItsAttributesInEffect) {
  ModelBuilder m;
  m.input("x", {"n", "1", "5", "5"});
  m.tensor("w", {1, 1, 2, 2}, {1, 2, 3, 4});
  m.tensor("b", {1}, {1});
  m.node("Conv", {"x", "w", "b"}, {"y"}, "first").add_attribute()->CopyFrom([] {
    pb::AttributeProto a;
    a.set_name("auto_pad");
    a.set_type(pb::AttributeProto::STRING);
    a.set_s("SAME_UPPER");
    return a;
  }());
  auto& second = m.node("Conv", {"y", "w"}, {"z"}, "second");
  set_ints(second, "strides", {2, 1});
  m.node("Relu", {"z"}, {"r"}, "relu");
  m.output("r");
  const std::string second_text =
      "ai.onnx::Conv(y, w) {\"auto_pad\": \"NOTSET\", \"dilations\": [1, 1], \"group\": 1, "
      "\"kernel_shape\": [2, 2], \"pads\": [0, 0, 0, 0], \"strides\": [2, 1]}";
  EXPECT_EQ(
      whole_nodes(m, {"ai.onnx::Conv"}),
      "ai.onnx::Conv(x, w, b) {\"auto_pad\": \"SAME_UPPER\", \"dilations\": [1, 1], "
      "\"group\": 1, \"kernel_shape\": [2, 2], \"pads\": [0, 0, 1, 1], \"strides\": [1, 1]}; " +
          second_text);
  EXPECT_EQ(whole_nodes(m, {}, {"second"}), second_text);
  EXPECT_EQ(whole_nodes(m, {"ai.onnx::Relu"}), "ai.onnx::Relu(z) {}");
  EXPECT_EQ(whole_nodes(m, {}), "");
}

TEST(Import, OperandsThatAreNumbersAreAttributesOfAWholeNode) {
  ModelBuilder m(18);
  m.input("x", {"n", "4"});
  m.tensor("low", {}, {-1});
  m.tensor("high", {}, {2});
  m.ints("axes", {1});
  m.node("Clip", {"x", "low", "high"}, {"c"}, "clip");
  m.node("ReduceMax", {"c", "axes"}, {"y"}, "max");
  m.output("y");
  EXPECT_EQ(whole_nodes(m, {"ai.onnx::Clip", "ai.onnx::ReduceMax"}),
            "ai.onnx::Clip(x) {\"max\": 2.0, \"min\": -1.0}; ai.onnx::ReduceMax(c) {\"axes\": [1], "
            "\"keepdims\": 1, \"noop_with_empty_axes\": 0}");
}

TEST(Import, ANodeThatMeantSomethingElseIsTakenApart) {
  // Before opset 13 a softmax runs over all axes from `axis` on.
  for (const int64_t opset : {11, 13}) {
    ModelBuilder m(opset);
    m.input("x", {"2", "3", "4"});
    set_int(m.node("Softmax", {"x"}, {"y"}, "s"), "axis", 1);
    m.output("y");
    EXPECT_EQ(whole_nodes(m, {"ai.onnx::Softmax"}),
              opset < 13 ? "" : "ai.onnx::Softmax(x) {\"axis\": 1}");
  }
}

TEST(Import, NodesOfAnOperatorWithARandomResultAreDeclared) {
  const auto shape = make<graph::Var>(
      "shape", make<graph::ShapeType>(std::vector<Expr>{Var::size("n"), Var::size("m")}));
  const auto seed = make<graph::Var>("seed", make<graph::PrimType>(kFloat32));
  const auto* dims = shape->type.as<graph::ShapeType>();
  const graph::Type type = make<graph::TensorType>(*dims->values, kFloat32);
  const auto declared = make<graph::Function>(
      std::vector<Ref<graph::Var>>{shape, seed}, graph::no_body(type), type,
      Attrs{{"op", "ai.onnx::RandomNormal"}, {"op_attrs", AttrValue::Map{{"seed", "node"}}}});
  ImportOptions options;
  options.operators = {{"random_normal", declared}};
  ModelBuilder m;
  for (const char* name : {"a", "b"})
    set_ints(m.node("RandomNormal", {}, {name}, name), "shape", {2, 3});
  m.node("Add", {"a", "b"}, {"y"});
  m.output("y");
  std::string seeds;
  walk<graph::PrimValue>(import_main(m, options)->body,
                         [&](const graph::PrimValue& value) { seeds += str(value.value) + " "; });
  EXPECT_EQ(seeds, "1 2 ");
  EXPECT_EQ(result_type(m, options), "R.Tensor((2, 3), \"float32\")");
}

TEST(Import, NamesAndOrigins) {
  ModelBuilder m;
  m.input("image:0", {"2", "3"});
  m.node("Relu", {"image:0"}, {"/out/y.1"}, "the relu");
  m.output("/out/y.1");
  const auto main = import_main(m);
  EXPECT_EQ(main->params.at(0)->name, "image_0");
  EXPECT_EQ(main->attrs.strings("input_names"), std::vector<std::string>{"image:0"});
  EXPECT_EQ(main->attrs.strings("output_names"), std::vector<std::string>{"/out/y.1"});
  const auto& binding = main->body->blocks.at(0)->bindings.at(0);
  EXPECT_EQ(binding->var->name, "out_y_1");
  EXPECT_EQ(binding->origin->node_name, "the relu");
  EXPECT_EQ(binding->origin->op_type, "Relu");
}

TEST(Import, InitialisersAreNoParameters) {
  ModelBuilder m;
  m.input("x", {"2"});
  m.input("w", {"2"});
  m.tensor("w", {2}, {1, 2});
  m.node("Add", {"x", "w"}, {"y"});
  m.output("y");
  EXPECT_EQ(import_main(m)->params.size(), 1U);
}

TEST(Import, LargeWeightsStayInTheMappedFile) {
  ModelBuilder m;
  m.input("x", {"1000"});
  std::string bytes(4000, '\0');
  const float seven = 7;
  std::memcpy(bytes.data() + 3996, &seven, 4);
  m.tensor("w", {1000}, {}).set_raw_data(bytes);
  m.node("Add", {"x", "w"}, {"y"});
  m.output("y");
  const Directory directory;
  const Model model = read_model(directory.write("m.onnx", m.bytes()));
  const auto& data = model.graph.initializers.at(0).data;
  EXPECT_EQ(data->at_float(999), 7);
  EXPECT_EQ(data->at_float(998), 0);
}

TEST(Import, NodesMayStandInAnyOrder) {
  ModelBuilder m;
  m.input("x", {"2"});
  m.node("Exp", {"h"}, {"y"});
  m.node("Relu", {"x"}, {"h"});
  m.output("y");
  EXPECT_EQ(operators(import_main(m)), "nn.relu exp");
}

TEST(Import, NamedDimensionsAreOneVariableEach) {
  ModelBuilder m;
  m.input("a", {"n", "3"});
  m.input("b", {"n", ""});
  m.node("Relu", {"a"}, {"y"});
  m.output("y");
  const auto main = import_main(m);
  const auto a = graph::tensor_type(main->params[0]), b = graph::tensor_type(main->params[1]);
  EXPECT_TRUE(a->dim(0).same_as(b->dim(0)));
  EXPECT_EQ(graph::str(b), "R.Tensor((n, b_d1), \"float32\")");
  EXPECT_EQ(result_type(m, {.input_shapes = {}, .dims = {{"n", 5}}}),
            "R.Tensor((5, 3), \"float32\")");
  EXPECT_EQ(result_type(m, {.input_shapes = {{"a", {7, -1}}}, .dims = {}}),
            "R.Tensor((7, 3), \"float32\")");
}

TEST(Import, NegativeDimensionsAreSymbols) {
  ModelBuilder m;
  m.input("x", {"-1", "3", "-7"});
  m.node("Relu", {"x"}, {"y"});
  m.output("y");
  EXPECT_EQ(result_type(m), "R.Tensor((x_d0, 3, x_d2), \"float32\")");
}

// Of an input without a shape, by what is done with it.
TEST(Import, RanksFollowFromUses) {
  const auto rank = [](const std::function<void(ModelBuilder&)>& use) -> int64_t {
    ModelBuilder m;
    m.input("x", {});
    m.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
    m.tensor("w", {1, 1, 1, 2}, {1, 2});
    m.tensor("matrix", {2, 1}, {1, 2});
    m.tensor("number", {}, {1});
    use(m);
    m.output("y");
    try {
      return graph::tensor_type(import_main(m)->params[0])->ndim;
    } catch (const CompileError& error) {
      EXPECT_EQ(error.first().code.name, kUnsupportedOperator.name);
      return -1;
    }
  };
  EXPECT_EQ(rank([](auto& m) { m.node("Conv", {"x", "w"}, {"y"}); }), 4);
  EXPECT_EQ(rank([](auto& m) { m.node("Gemm", {"x", "matrix"}, {"y"}); }), 2);
  EXPECT_EQ(rank([](auto& m) {
              m.node("Relu", {"x"}, {"r"});
              m.node("Add", {"number", "r"}, {"s"});
              m.node("Conv", {"s", "w"}, {"y"});
            }),
            4);
  EXPECT_EQ(rank([](auto& m) { m.node("MatMul", {"x", "matrix"}, {"y"}); }), -1);
  EXPECT_EQ(rank([](auto& m) {
              m.ints("axes", {1});
              m.node("Unsqueeze", {"x", "axes"}, {"u"});
              m.node("Conv", {"u", "w"}, {"y"});
            }),
            3);
  EXPECT_EQ(rank([](auto& m) {
              set_ints(m.node("ReduceMean", {"x"}, {"u"}), "axes", {1, 2});
              set_int(*m.graph().mutable_node(0), "keepdims", 0);
              m.node("Gemm", {"u", "matrix"}, {"y"});
            }),
            4);
  EXPECT_EQ(rank([](auto& m) { set_int(m.node("Concat", {"x", "w"}, {"y"}), "axis", 0); }), 4);
  EXPECT_EQ(rank([](auto& m) {
              m.node("Cast", {"x"}, {"at"});
              set_int(*m.graph().mutable_node(0), "to", 7);
              m.node("Gather", {"matrix", "at"}, {"g"});
              set_ints(m.node("Transpose", {"g"}, {"y"}), "perm", {2, 0, 1});
            }),
            2);
  EXPECT_EQ(rank([](auto& m) {
              m.node("MatMul", {"x", "matrix"}, {"p"});
              ModelBuilder::declare(*m.graph().add_value_info(), "p", {"batch", "steps", "1"});
              m.node("Relu", {"p"}, {"y"});
            }),
            3);
}

TEST(Import, RanksThatNoUseSaysAreTheOptions) {
  ModelBuilder m;
  m.input("x", {});
  m.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  m.node("Relu", {"x"}, {"y"});
  m.output("y");
  ImportOptions options;
  options.rank_of = [](const std::string& name) { return name == "x" ? 2 : 0; };
  EXPECT_EQ(result_type(m, options), "R.Tensor((x_d0, x_d1), \"float32\")");
}

TEST(Import, WarnsOfTypesThatTheNodesContradict) {
  ModelBuilder m;
  m.input("x", {"n", "3"});
  m.node("Relu", {"x"}, {"r"});
  m.node("Abs", {"r"}, {"a"});
  m.node("Neg", {"a"}, {"y"});
  m.output("y");
  ModelBuilder::declare(*m.graph().add_value_info(), "r", {"7", "3"});  // n may be 7
  ModelBuilder::declare(*m.graph().add_value_info(), "a", {"n", "4"});
  ModelBuilder::declare(*m.graph().add_value_info(), "gone", {"4"});
  const Directory folder;
  std::vector<std::string> warnings;
  ImportOptions options;
  options.warn = [&](const Code& code, const Origin& origin, const std::string& message) {
    warnings.push_back(fmt::format("{} {}: {}", code.id, origin.name(), message));
  };
  (void)import_onnx(folder.write("m.onnx", m.bytes()), options);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr(
                            "the file declares float32 (n, 4); its nodes give R.Tensor((n, 3), "
                            "\"float32\")")));

  ModelBuilder::declare(*m.graph().add_value_info(), "y", {"n", "3"}, 7);
  warnings.clear();
  (void)import_onnx(folder.write("m.onnx", m.bytes()), options);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("others that differ: 1")));

  options.input_shapes = {{"x", {2, 3}}};
  warnings.clear();
  (void)import_onnx(folder.write("m.onnx", m.bytes()), options);
  EXPECT_TRUE(warnings.empty());
}

TEST(Import, ShapesThatTheNetworkComputes) {
  // As exporters write x.view(x.size(0) * x.size(1), -1), and a slice to the length of x.
  ModelBuilder m;
  m.input("x", {"batch", "steps", "8"});
  m.ints("zero", {0});
  m.ints("one", {1});
  m.ints("minus", {-1});
  m.tensor("table", {1, 16}, std::vector<float>(16, 1));
  m.node("Shape", {"x"}, {"s"});
  m.node("Gather", {"s", "zero"}, {"b"});
  m.node("Gather", {"s", "one"}, {"t"});
  m.node("Mul", {"b", "t"}, {"rows"});
  m.node("Concat", {"rows", "minus"}, {"shape"});
  set_int(*m.graph().mutable_node(4), "axis", 0);
  m.node("Reshape", {"x", "shape"}, {"y"});
  m.node("Slice", {"table", "zero", "t", "one"}, {"z"});
  m.output("y");
  m.output("z");
  EXPECT_EQ(result_type(m),
            "R.Tuple(R.Tensor((batch * steps, 8), \"float32\"), R.Tensor((1, Min(steps, 16)), "
            "\"float32\"))");
  EXPECT_EQ(operators(import_main(m)), "reshape strided_slice");

  // Beside a tensor of that many steps the slice must have them all.
  m.input("w", {"1", "steps"});
  m.node("Sin", {"z"}, {"sines"});
  m.node("Add", {"sines", "w"}, {"sum"});
  m.graph().mutable_output()->RemoveLast();
  m.output("sum");
  EXPECT_EQ(
      result_type(m),
      "R.Tuple(R.Tensor((batch * steps, 8), \"float32\"), R.Tensor((1, steps), \"float32\"))");
  EXPECT_EQ(operators(import_main(m)), "reshape strided_slice sin match_cast add");
}

// Of an axis that may have an extent of 1: a slice of that is broadcast, as ONNX does.
TEST(Import, SlicesThatMayHaveOneElementAreBroadcast) {
  ModelBuilder m;
  m.input("x", {"1", "room"});
  m.input("w", {"batch", "steps"});
  m.ints("zero", {0});
  m.ints("one", {1});
  m.node("Shape", {"w"}, {"s"});
  m.node("Gather", {"s", "one"}, {"t"});
  m.node("Slice", {"x", "zero", "t", "one"}, {"z"});
  m.node("Add", {"z", "w"}, {"sum"});
  m.output("sum");
  EXPECT_EQ(result_type(m), "R.Tensor((batch, steps), \"float32\")");
  EXPECT_EQ(operators(import_main(m)), "strided_slice assert_op broadcast_to add");
  // Where another operator needs the length itself, the two are equal.
  m.node("Shape", {"z"}, {"zs"});
  m.node("Gather", {"zs", "one"}, {"zt"});
  m.ints("minus", {-1});
  m.node("Concat", {"minus", "zt"}, {"shape"});
  set_int(*m.graph().mutable_node(6), "axis", 0);
  m.node("Reshape", {"sum", "shape"}, {"rows"});
  m.graph().mutable_output()->RemoveLast();
  m.output("rows");
  EXPECT_EQ(result_type(m), "R.Tensor((batch, steps), \"float32\")");
}

// Whatever its operators are: of numbers known now, and of symbolic dimensions where integer
// arithmetic and moves lead from them to the shape.
TEST(Import, AnyOperatorMayComputeAShape) {
  ModelBuilder m;
  m.input("x", {"batch", "steps", "8"});
  m.node("Shape", {"x"}, {"s"});
  m.ints("step", {3});
  m.node("Mod", {"s", "step"}, {"rest"});  // of 8: 2
  m.ints("two", {2});
  m.node("Gather", {"rest", "two"}, {"last"});
  m.ints("base", {5});
  m.node("Pow", {"base", "last"}, {"power"});  // 25
  m.node("Cast", {"power"}, {"number"});
  set_int(*m.graph().mutable_node(4), "to", 1);
  m.node("Sqrt", {"number"}, {"root"});
  m.node("Cast", {"root"}, {"five"});
  set_int(*m.graph().mutable_node(6), "to", 7);
  m.ints("axis", {0});
  m.node("CumSum", {"s", "axis"}, {"sums"});  // batch, batch + steps, batch + steps + 8
  m.ints("one", {1});
  m.node("Gather", {"sums", "one"}, {"rows"});
  m.node("Concat", {"rows", "five"}, {"shape"});
  set_int(*m.graph().mutable_node(9), "axis", 0);
  m.tensor("v", {1}, {1});
  m.node("Expand", {"v", "shape"}, {"y"});
  m.output("y");
  EXPECT_EQ(result_type(m), "R.Tensor((batch + steps, 5), \"float32\")");
  EXPECT_EQ(operators(import_main(m)), "broadcast_to");
}

TEST(Import, AComputedShapeAsATensor) {
  ModelBuilder m;
  m.input("x", {"batch", "3"});
  m.node("Shape", {"x"}, {"s"});
  m.output("s");
  const auto main = import_main(m);
  EXPECT_EQ(graph::str(main->result), "R.Tensor((2,), \"int64\")");
  EXPECT_EQ(operators(main), "shape_to_tensor");
}

TEST(Import, OldAndNewFormsAgree) {
  for (const int64_t opset : {9, 13}) {
    ModelBuilder m(opset);
    m.input("x", {"4", "6"});
    auto& slice = m.node(
        "Slice",
        opset < 10 ? std::vector<std::string>{"x"} : std::vector<std::string>{"x", "b", "e", "a"},
        {"s"});
    auto& squeeze = m.node(
        "Unsqueeze",
        opset < 13 ? std::vector<std::string>{"s"} : std::vector<std::string>{"s", "a"}, {"y"});
    if (opset < 10) {
      set_ints(slice, "starts", {1});
      set_ints(slice, "ends", {-1});
      set_ints(slice, "axes", {1});
      set_ints(squeeze, "axes", {1});
    } else {
      m.ints("b", {1});
      m.ints("e", {-1});
      m.ints("a", {1});
    }
    m.output("y");
    EXPECT_EQ(result_type(m), "R.Tensor((4, 1, 4), \"float32\")") << opset;
  }
}

TEST(Import, SoftmaxBeforeOpset13IsOverAllThatFollows) {
  ModelBuilder old(12), now(13);
  for (ModelBuilder* m : {&old, &now}) {
    m->input("x", {"2", "3", "4"});
    set_int(m->node("Softmax", {"x"}, {"y"}), "axis", 1);
    m->output("y");
  }
  EXPECT_EQ(operators(import_main(old)), "reshape nn.softmax reshape");
  EXPECT_EQ(operators(import_main(now)), "nn.softmax");
}

TEST(Import, FunctionsAreInlined) {
  ModelBuilder m = relu_model();
  m.graph().mutable_node(0)->set_domain("local");
  m.graph().mutable_node(0)->set_op_type("Twice");
  set_int(*m.graph().mutable_node(0), "over", 0);
  auto* f = m.model.add_functions();
  f->set_domain("local");
  f->set_name("Twice");
  f->add_input("a");
  f->add_output("c");
  f->add_attribute("over");
  auto* opset = f->add_opset_import();
  opset->set_version(13);
  for (const auto& [from, to] : {std::pair("a", "b"), std::pair("b", "c")}) {
    auto* node = f->add_node();
    node->set_op_type("Softmax");
    node->add_input(from);
    node->add_output(to);
    auto* a = node->add_attribute();
    a->set_name("axis");
    a->set_type(pb::AttributeProto::INT);
    a->set_ref_attr_name("over");
  }
  const auto main = import_main(m);
  EXPECT_EQ(operators(main), "nn.softmax nn.softmax");
  const auto* call = main->body->blocks[0]->bindings[0]->value.as<graph::Call>();
  EXPECT_EQ(call->attrs.get<int64_t>("axis"), 0);
}

TEST(Import, BranchesAreChosenNowOrAtRunTime) {
  const auto model = [](bool known) {
    ModelBuilder m;
    m.input("x", {"2"});
    if (known) {
      auto& c = m.tensor("c", {}, {});
      c.set_data_type(9);
      c.add_int32_data(0);
    } else {
      m.input("c", {}, 9);
    }
    auto& n = m.node("If", {"c"}, {"y"}, "if");
    for (const auto& [name, op] :
         {std::pair("then_branch", "Exp"), std::pair("else_branch", "Relu")}) {
      auto* a = n.add_attribute();
      a->set_name(name);
      a->set_type(pb::AttributeProto::GRAPH);
      ModelBuilder::add_node(*a->mutable_g(), op, {"x"}, {std::string(op) + "_out"});
      ModelBuilder::declare(*a->mutable_g()->add_output(), std::string(op) + "_out", {});
    }
    m.output("y");
    return m;
  };
  EXPECT_EQ(operators(import_main(model(true))), "nn.relu");
  const auto main = import_main(model(false));
  EXPECT_TRUE(main->body->blocks.back()->bindings.back()->value.as<graph::If>());
  EXPECT_EQ(graph::str(main->result), "R.Tensor((2,), \"float32\")");
}

// A vector where the condition holds and a number elsewhere: what broadcasts takes either.
TEST(Import, BranchesOfSeveralRanks) {
  const auto model = [](const std::vector<std::pair<std::string, std::vector<std::string>>>& uses) {
    ModelBuilder m;
    m.input("x", {"2"});
    m.input("c", {}, 9);
    auto& n = m.node("If", {"c"}, {"y0"}, "if");
    for (const auto& [name, op] : {std::pair("then_branch", "Exp"), {"else_branch", "ReduceSum"}}) {
      auto* a = n.add_attribute();
      a->set_name(name);
      a->set_type(pb::AttributeProto::GRAPH);
      const std::string out = std::string(op) + "_out";
      auto& node = ModelBuilder::add_node(*a->mutable_g(), op, {"x"}, {out});
      if (out == "ReduceSum_out") set_int(node, "keepdims", 0);
      ModelBuilder::declare(*a->mutable_g()->add_output(), out, {});
    }
    std::string last = "y0";
    for (size_t i = 0; i < uses.size(); ++i) {
      std::vector<std::string> operands = {last};
      operands.insert(operands.end(), uses[i].second.begin(), uses[i].second.end());
      last = "y" + std::to_string(i + 1);
      m.node(uses[i].first, operands, {last});
    }
    m.output(last);
    return m;
  };
  EXPECT_EQ(
      graph::str(import_main(model({{"Neg", {}}, {"Add", {"x"}}, {"Transpose", {}}}))->result),
      "R.Tensor((2,), \"float32\")");
  // How many dimensions there are: two versions, of which each counts its own.
  const auto counted = import_main(model({{"Transpose", {}}, {"Shape", {}}, {"Size", {}}}));
  EXPECT_EQ(graph::str(counted->result), "R.Tensor((), \"int64\")");
  EXPECT_TRUE(has_branches(counted));
  // One that a node does not take is not taken.
  const auto checked = import_main(model({{"Softmax", {}}, {"Add", {"x"}}}));
  EXPECT_FALSE(has_branches(checked));
  std::string checks;
  walk<graph::StringValue>(checked->body,
                           [&](const graph::StringValue& text) { checks += text.value; });
  EXPECT_EQ(checks, "`If` takes its other branch, whose results node `Softmax` does not take");
  const std::string open =
      "whose branches have several ranks, which only operators that broadcast take";
  for (const auto& bad : {model({}), model({{"Neg", {}}}), model({{"Neg", {}}, {"Transpose", {}}})})
    EXPECT_NE(error_of(bad).find("graph output` (" + open), std::string::npos) << error_of(bad);
}

// Each of them doubles what stands behind all.
TEST(Import, TooManyBranchesOfSeveralRanks) {
  const auto model = [](int count) {
    ModelBuilder m;
    m.input("x", {"2"});
    m.input("c", {}, 9);
    m.ints("axis", {0});
    std::string last = "x";
    for (int i = 0; i < count; ++i) {
      const std::string next = "y" + std::to_string(i);
      auto& n = m.node("If", {"c"}, {next}, "if" + std::to_string(i));
      for (const auto& [name, op] :
           {std::pair("then_branch", "Exp"), {"else_branch", "Unsqueeze"}}) {
        auto* a = n.add_attribute();
        a->set_name(name);
        a->set_type(pb::AttributeProto::GRAPH);
        std::vector<std::string> operands = {last};
        if (name == std::string("else_branch")) operands.emplace_back("axis");
        ModelBuilder::add_node(*a->mutable_g(), op, operands, {op + next});
        ModelBuilder::declare(*a->mutable_g()->add_output(), op + next, {});
      }
      last = next + "_turned";
      m.node("Transpose", {next}, {last});
    }
    m.node("ReduceSum", {last}, {"y"});
    set_int(*m.graph().mutable_node(m.graph().node_size() - 1), "keepdims", 0);
    m.output("y");
    return m;
  };
  EXPECT_EQ(error_of(model(6)), "");
  EXPECT_NE(error_of(model(7)).find(
                "more than 64 versions of what stands behind branches of several ranks"),
            std::string::npos)
      << error_of(model(7));
}

TEST(Import, ABranchThatCountsWhileItHoldsStrings) {
  constexpr int kString = 8, kBool = 9;
  ModelBuilder m(20);
  m.input("x", {"4"});
  m.input("s", {"4"}, kString);
  m.input("c", {}, kBool);
  auto& n = m.node("If", {"c"}, {"y"}, "if");
  const auto branch = [&](const char* name) -> pb::GraphProto& {
    auto* a = n.add_attribute();
    a->set_name(name);
    a->set_type(pb::AttributeProto::GRAPH);
    return *a->mutable_g();
  };
  auto& then_graph = branch("then_branch");
  ModelBuilder::add_node(then_graph, "StringConcat", {"s", "s"}, {"twice"});
  ModelBuilder::add_node(then_graph, "NonZero", {"x"}, {"places"});
  ModelBuilder::add_node(then_graph, "Gather", {"twice", "places"}, {"some"});
  ModelBuilder::declare(*then_graph.add_output(), "some", {"1", "n"}, kString);
  auto& else_graph = branch("else_branch");
  ModelBuilder::add_node(else_graph, "Unsqueeze", {"s", "axis"}, {"all"});
  ModelBuilder::declare(*else_graph.add_output(), "all", {"1", "4"}, kString);
  m.ints("axis", {0});
  m.output("y");
  EXPECT_NE(
      error_of(m).find("a branch that reads a number while it holds R.Tensor((4,), \"string\")"),
      std::string::npos)
      << error_of(m);
}

// A dimension that arithmetic alone takes for perhaps -1, which would ask for what is left.
TEST(Import, AShapeOfTheTensorsOwnDimensions) {
  ModelBuilder m(14);
  m.input("x", {"1", "2", "n"});
  m.tensor("w", {2, 2, 10}, std::vector<float>(40, 1.0f));
  set_ints(m.node("Conv", {"x", "w"}, {"conv"}), "strides", {5});
  m.node("Shape", {"conv"}, {"shape"});
  m.node("Transpose", {"conv"}, {"turned"});
  m.node("Reshape", {"turned", "shape"}, {"y"});
  m.output("y");
  EXPECT_EQ(graph::str(import_main(m)->result), "R.Tensor((1, 2, n // 5 - 1), \"float32\")");
}

TEST(Import, ADimensionThatGrowsWithEachNode) {
  ModelBuilder m(14);
  m.input("x0", {"n"});
  m.ints("one", {1});
  m.ints("all", {int64_t{1} << 62});
  for (int i = 0; i < 16; ++i) {
    const auto at = [&](const char* name) { return name + std::to_string(i); };
    m.node("Slice", {at("x"), "one", "all"}, {at("rest")});
    // One of the two has one element, or they cannot be added.
    m.node("Add", {at("x"), at("rest")}, {"x" + std::to_string(i + 1)});
  }
  m.output("x16");
  EXPECT_NE(error_of(m).find("`Add` (a dimension that is an expression of more than 100000 parts)"),
            std::string::npos)
      << error_of(m).substr(0, 1000);
}

// Sums of many dimensions have a name, so that what is made of them is small.
TEST(Import, ADimensionOfManyTerms) {
  ModelBuilder m(14);
  m.input("x", {"4"});
  std::vector<std::string> all;
  for (int i = 0; i < 200; ++i) {
    all.push_back("places" + std::to_string(i));
    m.node("NonZero", {"x"}, {all.back()});
  }
  set_int(m.node("Concat", all, {"joined"}), "axis", 1);
  set_int(m.node("Concat", {"joined", "joined"}, {"y"}), "axis", 1);
  m.output("y");
  EXPECT_EQ(graph::str(import_main(m)->result), "R.Tensor((1, joined_dim_0 * 2), \"int64\")");
}

TEST(Import, AVeryLongChain) {
  ModelBuilder m;
  m.input("x", {"2"});
  constexpr int kLength = 20000;
  for (int i = 0; i < kLength; ++i)
    m.node("Relu", {i ? "v" + std::to_string(i) : "x"}, {"v" + std::to_string(i + 1)});
  m.output("v" + std::to_string(kLength));
  EXPECT_EQ(import_main(m)->body->blocks.at(0)->bindings.size(), size_t{kLength});
}

// ---- files of test data

TEST(TensorFiles, EveryWayOfHoldingElements) {
  const Directory directory;
  const auto read = [&](const pb::TensorProto& t) {
    return read_tensor_pb(directory.write("t.pb", t.SerializeAsString()));
  };
  pb::TensorProto t;
  t.set_name("t");
  t.add_dims(2);
  t.set_data_type(3);  // int8
  t.add_int32_data(-1);
  t.add_int32_data(5);
  EXPECT_EQ(read(t).data->to_ints(), (std::vector<int64_t>{-1, 5}));
  EXPECT_EQ(read(t).data->dtype, kInt8);
  EXPECT_EQ(read(t).name, "t");
  t.set_data_type(10);  // float16 as bits
  t.set_int32_data(0, 0x3c00);
  t.set_int32_data(1, 0xc000);
  EXPECT_EQ(read(t).data->at_float(1), -2.0);
  t.set_data_type(9);  // bool: any number but 0 is true
  t.clear_int32_data();
  t.set_raw_data(std::string("\x02\x00", 2));
  EXPECT_EQ(read(t).data->to_ints(), (std::vector<int64_t>{1, 0}));
  t.set_data_type(14);
  EXPECT_EQ(read(t).unsupported, "type complex64");
  pb::TensorProto empty;
  empty.set_data_type(1);
  empty.add_dims(0);
  EXPECT_EQ(read(empty).data->elements(), 0);
}

TEST(TensorFiles, WhatIsNoTensor) {
  const Directory directory;
  const auto run = [](const std::string& path) { (void)read_tensor_pb(path); };
  directory.write("m.onnx", std::string(64, '\xff'));
  EXPECT_EQ(error_of(run, directory),
            "TN0501: `m.onnx`: not a tensor, truncated, or damaged: its bytes are no protobuf "
            "message TensorProto");
}

}  // namespace
}  // namespace tenon::onnx
