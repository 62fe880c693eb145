// SPDX-License-Identifier: Apache-2.0
// Patterns over TensorIR: what they find, and what they say where they do not.
#include "tenon/tir/patterns/block_pattern.h"

#include <gtest/gtest.h>

#include "schedule_kernels.h"
#include "tenon/tir/schedule/schedule.h"

namespace tenon::tir {
namespace {

using testing::compute;
using testing::function;
using testing::relu;
using testing::tensor;

/// c[m, n] = sum_k a[m, k] * b[k, n], all symbolic.
Ref<PrimFunc> product_pattern() {
  const Expr m = Var::size("m"), n = Var::size("n"), k = Var::size("k");
  const auto a = tensor("a", {m, k}), b = tensor("b", {k, n}), c = tensor("c", {m, n});
  return function(
      {a, b, c}, {},
      {compute(
          "product", c, {m, n, k},
          [&](const auto& v) { return load(a, {v[0], v[2]}) * load(b, {v[2], v[1]}); }, 1)});
}

/// product, then bias, then relu; what is between belongs to the pattern.
Ref<PrimFunc> dense_pattern() {
  const Expr m = Var::size("m"), n = Var::size("n"), k = Var::size("k");
  const auto a = tensor("a", {m, k}), b = tensor("b", {k, n}), bias = tensor("bias", {n});
  const auto c = tensor("c", {m, n}), t = tensor("t", {m, n}), u = tensor("u", {m, n});
  return function(
      {a, b, bias, c}, {t, u},
      {compute(
           "product", t, {m, n, k},
           [&](const auto& v) { return load(a, {v[0], v[2]}) * load(b, {v[2], v[1]}); }, 1),
       compute("add", u, {m, n},
               [&](const auto& v) { return load(t, {v[0], v[1]}) + load(bias, {v[1]}); }),
       compute("relu", c, {m, n}, [&](const auto& v) { return relu(load(u, {v[0], v[1]})); })});
}

/// The target of most tests: relu(scale(x) w + bias), with blocks around it.
Ref<PrimFunc> network() {
  const auto x = tensor("x", std::vector<int64_t>{6, 8}),
             w = tensor("w", std::vector<int64_t>{8, 5});
  const auto bias = tensor("bias", std::vector<int64_t>{5});
  const auto s = tensor("s", x->shape), p = tensor("p", to_exprs({6, 5}));
  const auto q = tensor("q", p->shape), r = tensor("r", p->shape), y = tensor("y", p->shape);
  return function(
      {x, w, bias, y}, {s, p, q, r},
      {compute("scale", s, x->shape,
               [&](const auto& v) { return load(x, v) * imm(kFloat32, 2.0); }),
       compute(
           "gemm", p, to_exprs({6, 5, 8}),
           [&](const auto& v) { return load(w, {v[2], v[1]}) * load(s, {v[0], v[2]}); }, 1),
       compute("plus", q, p->shape, [&](const auto& v) { return load(bias, {v[1]}) + load(p, v); }),
       compute("clip", r, p->shape, [&](const auto& v) { return relu(load(q, v)); }),
       compute("root", y, p->shape,
               [&](const auto& v) { return call(IntrinsicId::kSqrt, {load(r, v)}); })});
}

std::string names(const std::vector<Ref<Block>>& blocks) {
  std::string text;
  for (const Ref<Block>& block : blocks) text += (text.empty() ? "" : " ") + block->name;
  return text;
}

std::string found(const PrimFunc& pattern, const PrimFunc& target) {
  std::string why, text;
  for (const BlockMatch& match : match_blocks(pattern, target, &why))
    text += (text.empty() ? "" : "; ") + names(match.blocks);
  return text.empty() ? "none: " + why : text;
}

Expr value(const BlockMatch& match, const std::string& name) {
  for (const auto& [node, value] : match.values)
    if (static_cast<const Var*>(node)->name == name) return value;
  return {};
}

TEST(BlockPattern, FindsABlockBetweenOthers) {
  const auto pattern = product_pattern(), target = network();
  const auto matches = match_blocks(*pattern, *target);
  ASSERT_EQ(matches.size(), 1U);
  const BlockMatch& match = matches[0];
  EXPECT_EQ(names(match.blocks), "gemm");
  EXPECT_EQ(match.buffers[0].buffer->name, "s");
  EXPECT_EQ(match.buffers[1].buffer->name, "w");
  EXPECT_EQ(match.buffers[2].buffer->name, "p");
  EXPECT_EQ(as_int(value(match, "m")), 6);
  EXPECT_EQ(as_int(value(match, "n")), 5);
  EXPECT_EQ(as_int(value(match, "k")), 8);
  EXPECT_FALSE(match.buffers[1].is_permuted());
}

TEST(BlockPattern, FindsSeveralBlocksAndTheirIntermediates) {
  const auto pattern = dense_pattern(), target = network();
  const auto matches = match_blocks(*pattern, *target);
  ASSERT_EQ(matches.size(), 1U);
  EXPECT_EQ(names(matches[0].blocks), "gemm plus clip");
  ASSERT_EQ(matches[0].intermediates.size(), 2U);
  EXPECT_EQ(matches[0].intermediates[0]->name, "p");
}

TEST(BlockPattern, LooksThroughLoops) {
  const auto pattern = dense_pattern();
  Schedule sch(network());
  auto loops = sch.get_loops(sch.get_block("gemm"));
  const auto parts = sch.split(loops[0], 4);  // does not divide
  sch.reorder({loops[1], parts[0], parts[1]});
  sch.fuse({loops[1], parts[0]});
  sch.decompose_reduction(sch.get_block("gemm"), sch.get_loops(sch.get_block("gemm"))[0]);
  auto clip = sch.get_loops(sch.get_block("clip"));
  sch.parallel(sch.fuse(clip));
  const auto matches = match_blocks(*pattern, *sch.func());
  ASSERT_EQ(matches.size(), 1U);
  EXPECT_EQ(names(matches[0].blocks), "gemm plus clip");
  EXPECT_EQ(names(matches[0].starts), "gemm_init");
}

TEST(BlockPattern, LooksThroughAxes) {
  Schedule sch(network());
  sch.fuse_block_iters(sch.get_block("gemm"), 0, 2);
  EXPECT_EQ(found(*product_pattern(), *sch.func()), "gemm");
  sch.split_block_iter(sch.get_block("gemm"), 1, 4);
  EXPECT_EQ(found(*product_pattern(), *sch.func()), "gemm");
  sch.reorder_block_iters(sch.get_block("gemm"), {2, 0, 1});
  EXPECT_EQ(found(*dense_pattern(), *sch.func()), "gemm plus clip");
}

TEST(BlockPattern, LooksThroughSharedLoops) {
  Schedule sch(network());
  sch.compute_at(sch.get_block("gemm"), sch.get_loops(sch.get_block("plus"))[0]);
  sch.reverse_compute_at(sch.get_block("clip"), sch.get_loops(sch.get_block("plus"))[1]);
  EXPECT_EQ(found(*dense_pattern(), *sch.func()), "gemm plus clip");
  EXPECT_EQ(found(*product_pattern(), *sch.func()), "gemm");
}

TEST(BlockPattern, CapturesLayouts) {
  const auto x = tensor("x", std::vector<int64_t>{6, 8}),
             w = tensor("w", std::vector<int64_t>{5, 8});
  const auto y = tensor("y", std::vector<int64_t>{5, 6});
  const auto target = function(
      {x, w, y}, {},
      {compute(
          "gemm", y, to_exprs({5, 6, 8}),
          [&](const auto& v) { return load(x, {v[1], v[2]}) * load(w, {v[0], v[2]}); }, 1)});
  const auto pattern = product_pattern();
  const auto matches = match_blocks(*pattern, *target);
  ASSERT_EQ(matches.size(), 1U);
  // Read in the order of its parameters' places: b is x transposed, or c is y transposed.
  size_t permuted = 0;
  for (const BufferBinding& binding : matches[0].buffers) permuted += binding.is_permuted();
  EXPECT_EQ(permuted, 1U);
}

TEST(BlockPattern, CapturesScalars) {
  const auto alpha = var("alpha", kFloat32);
  const Expr n = Var::size("n");
  const auto a = tensor("a", {n}), c = tensor("c", {n});
  const auto base =
      function({a, c}, {},
               {compute("scale", c, {n}, [&](const auto& v) { return load(a, v) * Expr(alpha); })});
  auto params = base->params;
  auto buffers = base->buffers;
  params.push_back(alpha);
  buffers.emplace_back();
  const auto pattern = make<PrimFunc>(params, buffers, base->body, base->attrs);
  const auto target = network();
  const auto matches = match_blocks(*pattern, *target);
  ASSERT_EQ(matches.size(), 0U);  // x has two dimensions
  const auto x = tensor("x", std::vector<int64_t>{7}), y = tensor("y", x->shape),
             z = tensor("z", x->shape);
  const auto two = function(
      {x, z}, {y},
      {compute("half", y, x->shape, [&](const auto& v) { return imm(kFloat32, 0.5) * load(x, v); }),
       compute("copy", z, x->shape, [&](const auto& v) { return load(y, v); })});
  const auto both = match_blocks(*pattern, *two);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(as_float(value(both[0], "alpha")), 0.5);
  EXPECT_EQ(as_float(value(both[1], "alpha")), 1.0);
}

TEST(BlockPattern, CapturesScalarsInIndices) {
  const Expr n = Var::size("n"), m = Var::size("m"), k = Var::size("k");
  const auto stride = var("stride");
  const auto a = tensor("a", {m}), w = tensor("w", {k}), c = tensor("c", {n});
  const auto base = function(
      {a, w, c}, {},
      {compute(
          "conv", c, {n, k},
          [&](const auto& v) { return load(a, {v[0] * Expr(stride) + v[1]}) * load(w, {v[1]}); },
          1)});
  auto params = base->params;
  auto buffers = base->buffers;
  params.push_back(stride);
  buffers.emplace_back();
  const auto pattern = make<PrimFunc>(params, buffers, base->body, base->attrs);
  for (const int64_t s : {1, 2, 3}) {
    const auto x = tensor("x", std::vector<int64_t>{64}), f = tensor("f", std::vector<int64_t>{3});
    const auto y = tensor("y", std::vector<int64_t>{10});
    const auto target = function(
        {x, f, y}, {},
        {compute(
            "filter", y, to_exprs({10, 3}),
            [&](const auto& v) { return load(f, {v[1]}) * load(x, {v[1] + v[0] * s}); }, 1)});
    const auto matches = match_blocks(*pattern, *target);
    ASSERT_EQ(matches.size(), 1U) << s;
    EXPECT_EQ(as_int(value(matches[0], "stride")), s);
  }
}

TEST(BlockPattern, TellsWhatDiffers) {
  const auto with = [&](const std::function<Expr(const std::vector<Expr>&, const Ref<Buffer>&,
                                                 const Ref<Buffer>&)>& value,
                        BinaryOp op = BinaryOp::kAdd, double start = 0) {
    const auto x = tensor("x", std::vector<int64_t>{6, 8});
    const auto w = tensor("w", std::vector<int64_t>{8, 6}),
               y = tensor("y", std::vector<int64_t>{6, 6});
    return found(*product_pattern(),
                 *function({x, w, y}, {},
                           {compute(
                               "gemm", y, to_exprs({6, 6, 8}),
                               [&](const auto& v) { return value(v, x, w); }, 1, op, start)}));
  };
  const auto product = [](const auto& v, const auto& x, const auto& w) {
    return load(x, {v[0], v[2]}) * load(w, {v[2], v[1]});
  };
  EXPECT_EQ(with(product), "gemm");
  EXPECT_EQ(with(product, BinaryOp::kAdd, 1), "none: 1 is not 0");
  EXPECT_EQ(with(product, BinaryOp::kMax),
            "none: max(y[v0, v1], (x[v0, v2] * w[v2, v1])) is not (c[v0, v1] + (a[v0, v2] * b[v2, "
            "v1]))");
  EXPECT_EQ(with([](const auto& v, const auto& x, const auto& w) {
              return load(x, {v[0], v[2]}) + load(w, {v[2], v[1]});
            }),
            "none: (x[v0, v2] + w[v2, v1]) is not (a[v0, v2] * b[v2, v1])");
  EXPECT_EQ(with([](const auto& v, const auto& x, const auto& w) {
              return load(x, {v[0], floormod(v[2] + 1, 8)}) * load(w, {v[2], v[1]});
            }),
            "none: no index of x[v0, (v2 + 1) % 8] is v2, as in b[v2, v1]");
  EXPECT_EQ(with([](const auto& v, const auto& x, const auto& w) {
              return load(x, {v[0], v[2]}) * load(w, {v[2], v[0]});
            }),
            "none: v0 is not v1");
}

TEST(BlockPattern, KeepsWhatOthersRead) {
  const auto x = tensor("x", std::vector<int64_t>{6, 8}),
             w = tensor("w", std::vector<int64_t>{8, 5});
  const auto bias = tensor("bias", std::vector<int64_t>{5});
  const auto p = tensor("p", to_exprs({6, 5})), q = tensor("q", p->shape);
  const auto r = tensor("r", p->shape), y = tensor("y", p->shape);
  const auto target = function(
      {x, w, bias, r, y}, {p, q},
      {compute(
           "gemm", p, to_exprs({6, 5, 8}),
           [&](const auto& v) { return load(x, {v[0], v[2]}) * load(w, {v[2], v[1]}); }, 1),
       compute("plus", q, p->shape, [&](const auto& v) { return load(p, v) + load(bias, {v[1]}); }),
       compute("clip", r, p->shape, [&](const auto& v) { return relu(load(q, v)); }),
       compute("again", y, p->shape, [&](const auto& v) { return load(p, v) * load(r, v); })});
  EXPECT_EQ(found(*dense_pattern(), *target),
            "none: `p` is read by `again` too; the pattern has it for itself");
  EXPECT_EQ(found(*product_pattern(), *target), "gemm");
}

TEST(BlockPattern, WholeFunctions) {
  const auto x = tensor("x", std::vector<int64_t>{6, 8}),
             w = tensor("w", std::vector<int64_t>{8, 5});
  const auto y = tensor("y", std::vector<int64_t>{6, 5});
  const auto gemm = function(
      {w, x, y}, {},
      {compute(
          "gemm", y, to_exprs({6, 5, 8}),
          [&](const auto& v) { return load(x, {v[0], v[2]}) * load(w, {v[2], v[1]}); }, 1)});
  const auto pattern = product_pattern();
  const auto match = matches(*pattern, *gemm);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->params, (std::vector<size_t>{1, 0, 2}));
  std::string why;
  EXPECT_FALSE(matches(*pattern, *network(), &why));
  EXPECT_EQ(why, "the function does more than the pattern");
}

}  // namespace
}  // namespace tenon::tir
