// SPDX-License-Identifier: Apache-2.0
// Faults that the verifier of PrimFuncs reports, by code and text.
#include "tenon/tir/analysis/verifier.h"

#include <gtest/gtest.h>

#include "tenon/tir/call_effects.h"
#include "tenon/tir/compute.h"

namespace tenon::tir {
namespace {

using Faults = std::vector<std::string>;

Faults faults(const IRModule& module) {
  Diagnostics diagnostics;
  verify(module, diagnostics);
  Faults out;
  for (const Diagnostic& d : diagnostics.items())
    out.push_back(std::string(d.code.name) + ": " + d.message);
  return out;
}
Faults faults(const Ref<PrimFunc>& function) {
  IRModule module;
  module.set("f", function);
  return faults(module);
}
Ref<Buffer> buffer(const std::string& name, const std::vector<int64_t>& shape,
                   DType dtype = kFloat32) {
  return make<Buffer>(name, dtype, to_exprs(shape));
}
Stmt store(const Ref<Buffer>& b, const Expr& value, const Expr& index) {
  return make<BufferStore>(b, value, std::vector<Expr>{index});
}
Stmt loop(const Ref<Var>& var, int64_t extent, Stmt body) {
  return nest({var}, {int64(extent)}, body);
}

// y[i] = x[i] + 1 over n elements.
Ref<PrimFunc> add_one(const Expr& n) {
  KernelBuilder kernel;
  const Operand x = kernel.input("x", {n}, kFloat32);
  const Operand y =
      kernel.compute("y", {n}, [&](const Indices& i) { return x(i) + imm(kFloat32, 1.0); });
  return kernel.finish({y}, {}).function;
}

TEST(TirVerifier, AcceptsPlainKernels) {
  EXPECT_EQ(faults(add_one(int64(8))), Faults{});
  EXPECT_EQ(faults(add_one(Var::size("n"))), Faults{});
}

TEST(TirVerifier, DefinitionsAndUses) {
  const auto a = buffer("a", {8}), b = buffer("b", {8});
  const auto i = var("i"), j = var("j");
  EXPECT_EQ(faults(PrimFunc::of_buffers({a}, loop(i, 8, store(a, imm(kFloat32, 0.0), j)))),
            Faults{"undefined: variable `j` is used in `f`, where it is not defined"});
  EXPECT_EQ(faults(PrimFunc::of_buffers({a}, loop(i, 8, store(b, imm(kFloat32, 0.0), i)))),
            Faults{"undefined: buffer `b` is used in `f`, where it is not defined"});
  EXPECT_EQ(
      faults(PrimFunc::of_buffers({a}, loop(i, 8, loop(i, 8, store(a, imm(kFloat32, 0.0), i))))),
      Faults{"redefined: `i` of `f` is defined again inside of its scope"});
  // Two loops one after the other may share a variable's name and a temporary its place.
  EXPECT_EQ(faults(PrimFunc::of_buffers(
                {a}, seq({make<AllocBuffer>(b), loop(i, 8, store(b, imm(kFloat32, 0.0), i)),
                          loop(j, 8, store(a, load(b, {j}), j))}))),
            Faults{});
}

TEST(TirVerifier, Accesses) {
  const auto a = buffer("a", {8});
  const auto i = var("i");
  EXPECT_EQ(faults(PrimFunc::of_buffers({a}, loop(i, 8, store(a, imm(kFloat32, 0.0), i + 8)))),
            Faults{"out-of-bounds: index i + 8 of dimension 0 of buffer `a` is 8 where i = 0; its "
                   "extent is 8"});
  // Behind a condition it may never happen.
  EXPECT_EQ(
      faults(PrimFunc::of_buffers(
          {a}, loop(i, 8, make<IfThenElse>(i < int64(0), store(a, imm(kFloat32, 0.0), i + 8))))),
      Faults{});
}

TEST(TirVerifier, BlocksListWhatTheyTouch) {
  const auto a = buffer("a", {8}), b = buffer("b", {8});
  const auto axes = KernelBuilder::axes({int64(8)});
  const Indices at = KernelBuilder::indices(axes);
  const Stmt good = define("copy", axes, {}, store(b, load(a, at), at[0]));
  const Stmt bad = rewrite(good, [](const NodePtr& node) -> std::optional<NodePtr> {
    const auto* block = node.as<Block>();
    if (!block) return std::nullopt;
    Block::Parts parts = block->parts();
    parts.reads.clear();
    return make<Block>(std::move(parts));
  });
  EXPECT_EQ(faults(PrimFunc::of_buffers({a, b}, good)), Faults{});
  EXPECT_EQ(faults(PrimFunc::of_buffers({a, b}, bad)),
            Faults{"bad-block: block `copy` reads buffer `a`, which is not among its reads"});
}

class TirVerifierCalls : public ::testing::Test {
 protected:
  Faults call(const std::string& callee, std::vector<NodePtr> args) {
    IRModule module;
    module.set("kernel", add_one(Var::size("n")));
    module.set("fixed", add_one(int64(8)));
    module.set("f", PrimFunc::of_buffers({a_, b_, h_},
                                         make<CallTir>(make<GlobalVar>(callee), std::move(args))));
    return faults(module);
  }
  Ref<BufferRegion> part(const Ref<Buffer>& b, int64_t min, int64_t extent) {
    return make<BufferRegion>(b, std::vector<Range>{{int64(min), int64(extent)}});
  }
  const Ref<Buffer> a_ = buffer("a", {16}), b_ = buffer("b", {16}),
                    h_ = buffer("h", {16}, kFloat16);
};

TEST_F(TirVerifierCalls, Fit) {
  EXPECT_EQ(call("kernel", {part(a_, 2, 5), part(b_, 0, 5)}), Faults{});
  EXPECT_EQ(call("fixed", {part(a_, 0, 8), part(a_, 8, 8)}), Faults{});
}
TEST_F(TirVerifierCalls, CalleeAndCount) {
  EXPECT_EQ(call("none", {part(a_, 0, 8)}),
            Faults{"unknown-callee: `f` calls `none`, which the module does not have"});
  EXPECT_EQ(call("kernel", {part(a_, 0, 8)}),
            Faults{"bad-argument: `f` calls `kernel` with 1 arguments; it has 2"});
  EXPECT_EQ(call("kernel", {part(a_, 0, 8), int64(3)}),
            Faults{"bad-argument: argument 2 of `kernel` is a scalar; parameter `y` is a buffer"});
}
TEST_F(TirVerifierCalls, ShapesAndTypes) {
  EXPECT_EQ(call("kernel", {part(a_, 0, 8), part(b_, 0, 7)}),
            Faults{"region-mismatch: argument 2 of `kernel` is b[0:7] of extents (7,); parameter "
                   "`y` has shape (n,)"});
  EXPECT_EQ(call("fixed", {part(a_, 0, 9), part(b_, 0, 8)}),
            Faults{"region-mismatch: argument 1 of `fixed` is a[0:9] of extents (9,); parameter "
                   "`x` has shape (8,)"});
  EXPECT_EQ(call("fixed", {part(h_, 0, 8), part(b_, 0, 8)}),
            Faults{"dtype-mismatch: argument 1 of `fixed` is h[0:8] of dtype float16; parameter "
                   "`x` has float32"});
}
TEST_F(TirVerifierCalls, BoundsAndOverlap) {
  EXPECT_EQ(call("fixed", {part(a_, 9, 8), part(b_, 0, 8)}),
            Faults{"out-of-bounds: region 9:17 of dimension 0 of buffer `a` lies outside of its "
                   "extent 16"});
  EXPECT_EQ(call("fixed", {part(a_, 0, 8), part(a_, 7, 8)}),
            Faults{"aliasing: argument 2 of `fixed`, a[7:15], is written and not proved apart from "
                   "argument 1, a[0:8]"});
}

TEST(TirVerifier, Recursion) {
  const auto a = buffer("a", {8}), b = buffer("b", {8});
  IRModule module;
  const auto calling = [](const std::string& callee, const Ref<Buffer>& b) {
    return PrimFunc::of_buffers(
        {b}, make<CallTir>(make<GlobalVar>(callee), std::vector<NodePtr>{BufferRegion::whole(b)}));
  };
  module.set("ping", calling("pong", a));
  module.set("pong", calling("ping", b));
  EXPECT_EQ(faults(module), Faults{"recursion: `ping` calls `pong` calls `ping`"});
}

TEST(CallEffects, FollowCalls) {
  IRModule module;
  module.set("kernel", add_one(int64(8)));
  const auto a = buffer("a", {8}), b = buffer("b", {8});
  module.set("outer", PrimFunc::of_buffers(
                          {a, b}, make<CallTir>(make<GlobalVar>("kernel"),
                                                std::vector<NodePtr>{BufferRegion::whole(a),
                                                                     BufferRegion::whole(b)})));
  CallEffects effects(module);
  const auto& of = effects.of("outer");
  ASSERT_EQ(of.size(), 2u);
  EXPECT_TRUE(of[0].reads && !of[0].writes);
  EXPECT_TRUE(!of[1].reads && of[1].writes);
}

// y += x, and y = the sum of each row of x.
TEST(CallEffects, TellAccumulatorsFromOutputs) {
  IRModule module;
  const auto x = buffer("x", {8}), y = buffer("y", {8});
  const auto i = var("i");
  module.set("add",
             PrimFunc::of_buffers({x, y}, loop(i, 8, store(y, load(y, {i}) + load(x, {i}), i))));
  KernelBuilder kernel;
  const Operand a = kernel.input("a", {int64(4), int64(8)}, kFloat32);
  const Operand sum =
      kernel.reduce("sum", {int64(4)}, {int64(8)}, sum_reducer(),
                    [&](const Indices& s, const Indices& r) { return a({s[0], r[0]}); });
  module.set("sum", kernel.finish({sum}, {}).function);
  CallEffects effects(module);
  EXPECT_EQ(effects.of("add", 1), (ParamEffect{true, true, false}));
  EXPECT_TRUE(effects.of("sum", 1).is_out());
  EXPECT_EQ(effects.of("none", 0), (ParamEffect{true, true, false}));
}

}  // namespace
}  // namespace tenon::tir
