// SPDX-License-Identifier: Apache-2.0
// Faults that the verifier of graph functions reports, by code and text.
#include "tenon/graph/verifier.h"

#include <gtest/gtest.h>

#include "tenon/graph/builder.h"

namespace tenon::graph {
namespace {

std::vector<std::string> faults(const IRModule& module) {
  Diagnostics diagnostics;
  verify(module, diagnostics);
  std::vector<std::string> out;
  for (const Diagnostic& d : diagnostics.items())
    out.push_back(std::string(d.code.name) + ": " + d.message);
  return out;
}
using Faults = std::vector<std::string>;

Ref<Var> tensor(const std::string& name, const std::vector<int64_t>& shape, bool dataflow = false) {
  return make<Var>(name, TensorType::of(shape, kFloat32), dataflow);
}
Value relu(const Value& x) { return call_op("nn.relu", {x}); }

IRModule module_of(std::vector<Ref<Var>> params, std::vector<Ref<Binding>> bindings, Value result,
                   bool dataflow = true, Type type = {}) {
  IRModule module;
  module.set(
      "main",
      make<Function>(std::move(params),
                     make<SeqExpr>(std::vector{make<BindingBlock>(std::move(bindings), dataflow)},
                                   std::move(result)),
                     std::move(type)));
  return module;
}

TEST(GraphVerifier, AcceptsWhatTheBuilderMakes) {
  IRModule module;
  BlockBuilder builder(module);
  const Ref<tenon::Var> n = tenon::Var::size("n");
  const auto x = make<Var>("x", make<TensorType>(std::vector<Expr>{n, int64(4)}, kFloat32));
  builder.begin_function({x});
  const auto soft = call_op("nn.softmax", {x});
  const Value y = builder.emit(soft->op->lower(builder, *soft));
  module.set("main", builder.end_function(builder.op("add", {y, x})));
  EXPECT_EQ(faults(module), Faults{});
}

TEST(GraphVerifier, DefinitionsAndUses) {
  const auto x = tensor("x", {2}), y = tensor("y", {2}), z = tensor("z", {2}, true);
  EXPECT_EQ(faults(module_of({x}, {make<Binding>(y, relu(z))}, y)),
            Faults{"undefined: variable `z` is used in `main`, where it is not defined"});
  EXPECT_EQ(faults(module_of({x}, {make<Binding>(z, relu(x))}, z)),
            Faults{"undefined: variable `z` is used outside the block that defines it"});
  EXPECT_EQ(faults(module_of({x}, {make<Binding>(x, relu(x))}, x)),
            Faults{"redefined: variable `x` of `main` is defined twice"});
}

TEST(GraphVerifier, NormalForm) {
  const auto x = tensor("x", {2}), y = tensor("y", {2});
  EXPECT_EQ(
      faults(module_of({x}, {make<Binding>(y, relu(relu(x)))}, y)),
      Faults{"not-normal: an argument is a `graph.Call`; expected a variable, a constant or a "
             "tuple of these"});
  const auto none = make<Var>("none", void_type());
  EXPECT_EQ(faults(module_of({x}, {make<Binding>(none, call_op("print", {x}))}, x)),
            Faults{"not-normal: an impure call of `print` inside a dataflow block"});
}

TEST(GraphVerifier, DeclaredTypes) {
  const auto x = tensor("x", {2}), y = tensor("y", {3});
  EXPECT_EQ(
      faults(module_of({x}, {make<Binding>(y, relu(x))}, y)),
      Faults{"type-mismatch: `y` is declared with type R.Tensor((3,), \"float32\"); its value "
             "has type R.Tensor((2,), \"float32\")"});
  const auto less = make<Var>("less", make<TensorType>(kFloat32, 1));
  EXPECT_EQ(faults(module_of({x}, {make<Binding>(less, relu(x))}, less)), Faults{});
  const Ref<tenon::Var> m = tenon::Var::size("m");
  const auto loose = make<Var>("loose", make<TensorType>(std::vector<Expr>{m}, kFloat32));
  EXPECT_EQ(faults(module_of({x},
                             {make<Binding>(loose, call_op("nn.relu", {less}),
                                            make<TensorType>(std::vector<Expr>{m}, kFloat32))},
                             loose)),
            Faults{"undefined: variable `less` is used in `main`, where it is not defined"});
  EXPECT_EQ(faults(module_of({x}, {}, x, true, TensorType::of({5}, kFloat32))),
            Faults{"type-mismatch: function `main` returns a value of type R.Tensor((2,), "
                   "\"float32\"); it is declared to return R.Tensor((5,), \"float32\")"});
}

TEST(GraphVerifier, CallTirAgainstItsPrimFunc) {
  IRModule module;
  BlockBuilder builder(module);
  const auto x = tensor("x", {2, 3});
  builder.begin_function({x});
  const auto call = call_op("nn.relu", {x});
  (void)builder.emit(call->op->lower(builder, *call));
  (void)builder.end_function(x);

  const auto w = tensor("w", {2, 4}), y = tensor("y", {2, 3});
  const auto invoke = [&](const std::string& callee, std::vector<Value> args) {
    const auto tir =
        make<Call>(find_op("call_tir"),
                   std::vector<Value>{make<FuncRef>(callee), make<Tuple>(std::move(args))}, Attrs{},
                   std::vector<Type>{TensorType::of({2, 3}, kFloat32)});
    module.set("main", make<Function>(std::vector{w},
                                      make<SeqExpr>(std::vector{make<BindingBlock>(
                                                        std::vector{make<Binding>(y, tir)}, true)},
                                                    y)));
    return faults(module);
  };
  EXPECT_EQ(invoke("relu", {w}),
            Faults{"shape-mismatch: argument 1 of `relu` is R.Tensor((2, 4), \"float32\"); "
                   "parameter `x` is a buffer (2, 3) of float32"});
  EXPECT_EQ(invoke("relu", {}),
            Faults{"bad-argument: call_tir gives `relu` 1 tensors and 0 scalars; it has 2 "
                   "parameters"});
  EXPECT_EQ(invoke("gelu", {w}),
            Faults{"unknown-callee: `main` uses function `gelu`, which the module does not have"});
}

}  // namespace
}  // namespace tenon::graph
