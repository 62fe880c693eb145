// SPDX-License-Identifier: Apache-2.0
// Broken and hostile models: each is refused with its text, none crashes.
#include <random>

#include "model_builder.h"

namespace tenon::onnx {
namespace {

struct Case {
  const char* name;
  std::function<ModelBuilder()> model;
  const char* error;
};

// One node between `x` (2 x 3 floats) and `y`.
ModelBuilder one(const std::string& op, const std::vector<std::string>& inputs = {"x"},
                 const std::function<void(ModelBuilder&, pb::NodeProto&)>& more = {},
                 int64_t opset = 13) {
  ModelBuilder m(opset);
  m.input("x", {"2", "3"});
  pb::NodeProto& node = m.node(op, inputs, {"y"}, "n");
  if (more) more(m, node);
  m.output("y");
  return m;
}

std::vector<Case> cases() {
  using M = ModelBuilder;
  using N = pb::NodeProto;
  return {
      {"no_graph",
       [] {
         M m;
         m.model.clear_graph();
         return m;
       },
       "TN0501: `m.onnx`: not an ONNX model: it has no graph"},
      {"no_ir_version",
       [] {
         M m = relu_model();
         m.model.clear_ir_version();
         return m;
       },
       "TN0501: `m.onnx`: the model states no ir_version"},
      {"ir_version_from_the_future",
       [] {
         M m = relu_model();
         m.model.set_ir_version(99);
         return m;
       },
       "TN0501: `m.onnx`: ir_version 99; expected 1 to 64"},
      {"no_opset",
       [] {
         M m = relu_model();
         m.model.clear_opset_import();
         return m;
       },
       "TN0501: `m.onnx`: the model imports no operator set"},
      {"two_versions_of_one_opset",
       [] {
         M m = relu_model();
         m.import_opset("ai.onnx", 14);
         return m;
       },
       "TN0501: `m.onnx`: operator set `ai.onnx` is imported with versions 13 and 14"},
      {"opset_from_the_future",
       [] {
         M m = relu_model();
         m.model.mutable_opset_import(0)->set_version(99);
         return m;
       },
       "TN0502: m.onnx: the model imports opset 99 of ai.onnx; expected 1 to 27"},
      {"opset_not_imported",
       [] {
         M m = relu_model();
         m.graph().mutable_node(0)->set_domain("com.example");
         return m;
       },
       "TN0502: m.onnx: one node is not supported: `com.example.Relu` (the operator)\n"
       "  relu: the operator\n"
       "  : a file of --kernels may declare what is missing, by a graph function with {\"op\": "
       "\"com.example::Relu\"}, and a kernel compute it"},
      {"dangling_input", [] { return one("Relu", {"z"}); },
       "TN0501: n: input `z` is defined by no node, initialiser or graph input"},
      {"dangling_output",
       [] {
         M m = relu_model();
         m.output("z");
         return m;
       },
       "TN0501: m.onnx: graph output `z` is defined nowhere"},
      {"no_outputs",
       [] {
         M m = relu_model();
         m.graph().clear_output();
         return m;
       },
       "TN0501: m.onnx: the graph has no outputs"},
      {"defined_twice",
       [] {
         M m = relu_model();
         m.node("Abs", {"x"}, {"y"}, "abs");
         return m;
       },
       "TN0501: abs: `y` is defined twice\n  relu: first defined here"},
      {"redefines_an_input",
       [] {
         M m = relu_model();
         m.node("Abs", {"x"}, {"x"}, "abs");
         return m;
       },
       "TN0501: abs: `x` is an input or initialiser of the graph and defined again"},
      {"input_declared_twice",
       [] {
         M m = relu_model();
         m.input("x", {"2"});
         return m;
       },
       "TN0501: m.onnx: graph input `x` is declared twice"},
      {"initialiser_given_twice",
       [] {
         M m = relu_model();
         m.tensor("w", {1}, {1});
         m.tensor("w", {1}, {2});
         return m;
       },
       "TN0501: m.onnx: initialiser `w` is given twice"},
      {"cycle",
       [] {
         M m;
         m.input("x", {"2", "3"});
         m.node("Add", {"x", "b"}, {"a"}, "first");
         m.node("Relu", {"a"}, {"b"}, "second");
         m.output("b");
         return m;
       },
       "TN0501: first: the node depends on its own result\n  second: through this node"},
      {"own_result",
       [] {
         M m;
         m.input("x", {"2", "3"});
         m.node("Add", {"x", "a"}, {"a"}, "only");
         m.output("a");
         return m;
       },
       "TN0501: only: the node depends on its own result"},
      {"input_shape_overflows",
       [] {
         M m;
         m.input("x", {"4611686018427387904", "4"});
         m.node("Relu", {"x"}, {"y"});
         m.output("y");
         return m;
       },
       "TN0109: x: shape (4611686018427387904, 4) has more than 2^62 elements"},
      {"initialiser_shape_overflows",
       [] {
         M m = relu_model();
         m.tensor("w", {int64_t{1} << 40, int64_t{1} << 40}, {1});
         return m;
       },
       "TN0109: w: shape (1099511627776, 1099511627776) has more than 2^62 elements"},
      {"initialiser_of_a_petabyte",
       [] {
         M m = relu_model();
         m.tensor("w", {int64_t{1} << 50}, {1});
         return m;
       },
       "TN0504: w: float_data has 1 elements; a tensor of shape (1125899906842624,) and type "
       "float32 has 1125899906842624"},
      {"negative_initialiser_dimension",
       [] {
         M m = relu_model();
         m.tensor("w", {-1}, {1});
         return m;
       },
       "TN0504: w: shape (-1,) has a negative dimension"},
      {"too_few_elements",
       [] {
         M m = relu_model();
         m.tensor("w", {3}, {1, 2});
         return m;
       },
       "TN0504: w: float_data has 2 elements; a tensor of shape (3,) and type float32 has 3"},
      {"raw_data_too_short",
       [] {
         M m = relu_model();
         m.tensor("w", {3}, {}).set_raw_data(std::string(11, '\0'));
         return m;
       },
       "TN0504: w: raw_data has 11 bytes; a tensor of shape (3,) and type float32 has 12"},
      {"large_raw_data_too_short",
       [] {
         M m = relu_model();
         m.tensor("w", {1000}, {}).set_raw_data(std::string(3999, '\0'));
         return m;
       },
       "TN0504: w: raw_data has 3999 bytes; a tensor of shape (1000,) and type float32 has 4000"},
      {"no_data",
       [] {
         M m = relu_model();
         m.tensor("w", {2, 2}, {});
         return m;
       },
       "TN0504: w: float_data has 0 elements; a tensor of shape (2, 2) and type float32 has 4"},
      {"element_type_unknown",
       [] {
         M m = relu_model();
         m.tensor("w", {1}, {1}).set_data_type(77);
         return m;
       },
       "TN0504: w: a tensor's element type is 77; expected 1 to 26"},
      {"too_many_dimensions",
       [] {
         M m = relu_model();
         m.tensor("w", std::vector<int64_t>(65, 1), {1});
         return m;
       },
       "TN0003: w: a tensor has 65 dimensions; expected at most 64"},
      {"unknown_operators",
       [] {
         M m = one("Frobnicate");
         m.node("Twiddle", {"x"}, {"z"}, "l");
         m.node("Frobnicate", {"z"}, {"w"}, "n2");
         return m;
       },
       "TN0502: m.onnx: 3 nodes are not supported: `Frobnicate` (the operator, 2 nodes); "
       "`Twiddle` (the operator)\n  n: the operator\n  l: the operator\n  n2: the operator\n"
       "  : a file of --kernels may declare what is missing, by a graph function with {\"op\": "
       "\"ai.onnx::Frobnicate\"}, and a kernel compute it"},
      {"string_operand",
       [] {
         M m = one("Equal", {"x", "s"});
         auto& s = m.tensor("s", {1}, {});
         s.set_data_type(8);
         s.add_string_data("a");
         return m;
       },
       "TN0102: n: operands of `equal` have dtypes float32 and string\n"
       "  x: `lhs` is R.Tensor((2, 3), \"float32\")\n"
       "  s: `rhs` is R.Tensor((1,), \"string\")"},
      {"complex_operand",
       [] {
         M m = one("Equal", {"x", "s"});
         m.tensor("s", {1}, {}).set_data_type(14);
         return m;
       },
       "TN0502: m.onnx: one node is not supported: `Equal` (operand `s`, a tensor of type "
       "complex64)\n  n: operand `s`, a tensor of type complex64"},
      {"complex_input",
       [] {
         M m = relu_model();
         m.input("s", {"1"}, 14);
         return m;
       },
       "TN0502: m.onnx: one node is not supported: `graph input` (a tensor of complex64)\n"
       "  s: a tensor of complex64"},
      {"unranked_input",
       [] {
         M m = relu_model();
         m.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
         return m;
       },
       "TN0502: m.onnx: one node is not supported: `graph input` (a tensor of unknown rank; "
       "--shape "
       "gives it)\n"
       "  x: a tensor of unknown rank; --shape gives it"},
      {"map_input",
       [] {
         M m = relu_model();
         m.graph().mutable_input(0)->mutable_type()->mutable_map_type();
         return m;
       },
       "TN0502: m.onnx: one node is not supported: `graph input` (a map)\n  x: a map"},
      {"too_many_inputs", [] { return one("Relu", {"x", "x"}); },
       "TN0501: n: `Relu` has 2 inputs; expected 1"},
      {"too_few_inputs", [] { return one("Add"); }, "TN0501: n: `Add` has 1 inputs; expected 2"},
      {"input_left_out", [] { return one("Add", {"x", ""}); }, "TN0501: n: `Add` has no input 1"},
      {"attribute_of_another_kind",
       [] { return one("Softmax", {"x"}, [](M&, N& n) { set_ints(n, "axis", {1}); }); },
       "TN0104: n: attribute `axis` of `Softmax` is a list of integers; expected an integer"},
      {"attribute_unknown",
       [] { return one("Relu", {"x"}, [](M&, N& n) { set_int(n, "speed", 1); }); },
       "TN0502: m.onnx: one node is not supported: `Relu` (attribute `speed` in opset 13)\n"
       "  n: attribute `speed` in opset 13"},
      {"attribute_twice",
       [] {
         return one("Softmax", {"x"}, [](M&, N& n) {
           set_int(n, "axis", 1);
           set_int(n, "axis", 1);
         });
       },
       "TN0501: n: attribute `axis` is given twice"},
      {"attribute_missing", [] { return one("Cast"); },
       "TN0104: n: `Cast` has no attribute `to`, an integer"},
      {"attribute_refers_outside_a_function",
       [] {
         return one("Softmax", {"x"}, [](M&, N& n) {
           set_int(n, "axis", 1);
           n.mutable_attribute(0)->set_ref_attr_name("outer");
         });
       },
       "TN0501: n: attribute `axis` refers to `outer` outside a function"},
      {"axis_out_of_range",
       [] { return one("Softmax", {"x"}, [](M&, N& n) { set_int(n, "axis", 2); }); },
       "TN0104: n: `Softmax` has axis 2; expected -2 to 1 for a tensor of rank 2"},
      {"axis_given_twice",
       [] { return one("ReduceMean", {"x"}, [](M&, N& n) { set_ints(n, "axes", {0, -2}); }); },
       "TN0104: n: axis 0 is given twice to `ReduceMean`"},
      {"permutation_too_short",
       [] { return one("Transpose", {"x"}, [](M&, N& n) { set_ints(n, "perm", {0}); }); },
       "TN0104: n: attribute `perm` of `Transpose` has 1 numbers; expected 2"},
      {"reshape_to_another_size",
       [] { return one("Reshape", {"x", "s"}, [](M& m, N&) { m.ints("s", {-1, 4}); }); },
       "TN0101: n: `Reshape` of shape (2, 3) to (-1, 4): the sizes do not divide"},
      {"reshape_with_two_open_dimensions",
       [] { return one("Reshape", {"x", "s"}, [](M& m, N&) { m.ints("s", {-1, -1}); }); },
       "TN0101: n: `Reshape` to (-1, -1) has two dimensions of -1"},
      {"reshape_keeps_what_is_not_there",
       [] { return one("Reshape", {"x", "s"}, [](M& m, N&) { m.ints("s", {2, 3, 0}); }); },
       "TN0101: n: `Reshape` keeps dimension 2 of a tensor of rank 2"},
      {"slice_with_step_0",
       [] {
         return one("Slice", {"x", "a", "b", "c", "d"}, [](M& m, N&) {
           m.ints("a", {0});
           m.ints("b", {1});
           m.ints("c", {0});
           m.ints("d", {0});
         });
       },
       "TN0104: n: `Slice` has a step of 0"},
      {"split_into_the_wrong_sum",
       [] {
         M m = one("Split", {"x", "s"}, [](M& g, N& n) {
           g.ints("s", {1, 2});
           n.add_output("z");
         });
         return m;
       },
       "TN0101: n: `Split` into sizes (1, 2) of an axis of 2"},
      {"pads_of_the_wrong_number",
       [] { return one("Pad", {"x", "p"}, [](M& m, N&) { m.ints("p", {1, 1}); }); },
       "TN0101: n: `Pad` has 2 pads for 2 axes; expected 4"},
      {"gemm_of_rank_3",
       [] { return one("Gemm", {"w", "x"}, [](M& m, N&) { m.tensor("w", {1, 1, 2}, {1, 2}); }); },
       "TN0103: n: operand 0 of `Gemm` has rank 3; expected 2"},
      {"convolution_without_images", [] { return one("Conv", {"x", "x"}); },
       "TN0103: n: `Conv` has an operand of rank 2; expected at least 3"},
      {"operand_at_run_time",
       [] { return one("Reshape", {"x", "s"}, [](M& m, N&) { m.input("s", {"65"}, 7); }); },
       "TN0502: m.onnx: one node is not supported: `Reshape` (operand `shape` known only at run "
       "time)\n  n: operand `shape` known only at run time"},
      {"operands_of_two_types",
       [] { return one("Add", {"x", "i"}, [](M& m, N&) { m.ints("i", {1, 2, 3}); }); },
       "TN0102: n: operands of `add` have dtypes float32 and int64\n"
       "  x: `lhs` is R.Tensor((2, 3), \"float32\")\n  i: `rhs` is R.Tensor((3,), \"int64\")"},
      {"branch_without_outputs",
       [] {
         M m;
         m.input("c", {}, 9);
         auto& n = m.node("If", {"c"}, {"y"}, "if");
         for (const char* name : {"then_branch", "else_branch"}) {
           auto* a = n.add_attribute();
           a->set_name(name);
           a->set_type(pb::AttributeProto::GRAPH);
           a->mutable_g();
         }
         m.output("y");
         return m;
       },
       "TN0501: if: `If` has 1 outputs; a branch has 0"},
      {"function_calls_itself",
       [] {
         M m = relu_model();
         m.graph().mutable_node(0)->set_domain("local");
         m.graph().mutable_node(0)->set_op_type("F");
         m.import_opset("local", 1);
         auto* f = m.model.add_functions();
         f->set_domain("local");
         f->set_name("F");
         f->add_input("a");
         f->add_output("b");
         auto* opset = f->add_opset_import();
         opset->set_domain("");
         opset->set_version(13);
         auto* call = f->add_node();
         call->set_domain("local");
         call->set_op_type("F");
         call->set_name("inner");
         call->add_input("a");
         call->add_output("b");
         return m;
       },
       "TN0501: inner: function `F` calls itself"},
      {"control_characters_in_names", [] { return one("Relu", {"a\nb\x01"}); },
       "TN0501: n: input `a\\x0ab\\x01` is defined by no node, initialiser or graph input"},
  };
}

TEST(BadModels, EachIsRefusedWithItsText) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(error_of(c.model()), c.error);
  }
}

TEST(BadModels, WhatIsNoModel) {
  const std::string damaged =
      "TN0501: `m.onnx`: not an ONNX model, truncated, or damaged: its bytes are no protobuf "
      "message ModelProto";
  EXPECT_EQ(error_of(std::string()), "TN0501: `m.onnx`: the file is empty; expected an ONNX model");
  EXPECT_EQ(error_of("\x89PNG\r\n\x1a\n" + std::string(64, 'x')),
            "TN0501: `m.onnx`: not an ONNX model: it has no graph");
  EXPECT_EQ(error_of("# from tvm.script import ir as I\n"), damaged);
  EXPECT_EQ(error_of(std::string(4096, '\xff')), damaged);
}

TEST(BadModels, MissingFileAndDirectory) {
  const Directory directory;
  const auto run = [](const std::string& path) { (void)import_onnx(path); };
  EXPECT_EQ(error_of(run, directory), "TN0002: cannot open `m.onnx`: No such file or directory");
  std::filesystem::create_directory(directory / "m.onnx");
  EXPECT_EQ(error_of(run, directory), "TN0002: `m.onnx` is not a regular file");
}

// A model with a node of each kind of attribute, weights small and large.
std::string varied_model() {
  ModelBuilder m;
  m.input("x", {"batch", "3"});
  m.tensor("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  m.tensor("large", {100}, {}).set_raw_data(std::string(400, '\x3f'));
  set_int(m.node("Gemm", {"x", "w"}, {"h"}, "gemm"), "transB", 0);
  m.node("Shape", {"h"}, {"s"});
  m.node("Reshape", {"h", "s"}, {"r"});
  set_ints(m.node("Transpose", {"r"}, {"t"}), "perm", {1, 0});
  m.output("t");
  m.output("large");
  return m.bytes();
}

// Whatever the bytes, there is a module or a diagnostic.
void import_any(const Directory& directory, const std::string& bytes) {
  const std::string path = directory.write("m.onnx", bytes);
  try {
    (void)import_onnx(path);
  } catch (const CompileError& error) {
    EXPECT_FALSE(error.first().message.empty());
  }
}

TEST(BadModels, TruncatedAnywhere) {
  const std::string model = varied_model();
  EXPECT_EQ(error_of(model), "");
  const Directory directory;
  for (size_t size = 0; size < model.size(); ++size) import_any(directory, model.substr(0, size));
}

TEST(BadModels, BitsFlippedAnywhere) {
  const std::string model = varied_model();
  const Directory directory;
  for (size_t at = 0; at < model.size(); ++at) {
    // The bytes of the large weight are data.
    if (at > 8 && model.compare(at - 8, 16, std::string(16, '\x3f')) == 0) continue;
    for (const int bit : {0, 3, 6, 7}) {
      std::string changed = model;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      import_any(directory, changed);
    }
  }
}

TEST(BadModels, RandomBytesOverwritten) {
  const std::string model = varied_model();
  const Directory directory;
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string changed = model;
    for (int k = 0; k < 4; ++k) changed[random() % changed.size()] = static_cast<char>(random());
    import_any(directory, changed);
  }
}

}  // namespace
}  // namespace tenon::onnx
