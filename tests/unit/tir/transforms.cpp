// What each lowering pass does, and where it must not act.
#include "tenon/tir/transforms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tenon/support/remarks.h"

namespace tenon::tir {
namespace {

Ref<Buffer> buffer(const std::string& name, std::vector<Expr> shape,
                   const std::string& scope = "global") {
  return make<Buffer>(name, kFloat32, std::move(shape), Buffer::Options{.scope = scope});
}
Expr n(int64_t value) { return int64(value); }
Expr f(double value) { return imm(kFloat32, value); }
Stmt loop(const Ref<Var>& v, Expr extent, ForKind kind, Stmt body) {
  return make<For>(v, n(0), extent, kind, body);
}
Stmt store(const Ref<Buffer>& to, std::vector<Expr> indices, Expr value) {
  return make<BufferStore>(to, value, indices);
}

struct Axis {
  Ref<Var> var;
  Expr extent, value;
  IterKind kind = IterKind::kSpatial;
};
Stmt block(std::vector<Axis> axes, const Ref<Buffer>& out, std::vector<Expr> indices, Expr value,
           Stmt init = {}) {
  Block::Parts parts{.name = out->name, .init = init, .body = store(out, indices, value)};
  std::vector<Expr> values;
  for (const Axis& axis : axes) {
    parts.iter_vars.push_back({axis.var, {n(0), axis.extent}, axis.kind});
    values.push_back(axis.value);
  }
  parts.writes = {BufferRegion::point(out, indices)};
  return make<BlockRealize>(values, boolean(true), make<Block>(std::move(parts)));
}

Ref<PrimFunc> function(std::vector<Ref<Buffer>> params, std::vector<Ref<Buffer>> allocs,
                       Stmt body) {
  const auto root =
      make<Block>(Block::Parts{.name = "root", .alloc_buffers = allocs, .body = body});
  return PrimFunc::of_buffers(params, make<BlockRealize>(std::vector<Expr>{}, boolean(true), root));
}

Ref<PrimFunc> apply(const Ref<PrimFunc>& f, std::vector<IRModule (*)(IRModule)> passes) {
  IRModule module;
  module.set("f", f);
  for (const auto pass : passes) module = pass(std::move(module));
  return module.find<PrimFunc>("f");
}

template <typename T>
int count(const NodePtr& root) {
  int found = 0;
  walk<T>(root, [&](const T&) { ++found; });
  return found;
}

// The loops around the allocation of `name`.
int loops_around_allocation(const Stmt& stmt, const std::string& name, int depth = 0) {
  if (const auto* sequence = stmt.as<Seq>()) {
    for (const Stmt& inner : sequence->stmts)
      if (const int found = loops_around_allocation(inner, name, depth); found >= 0) return found;
  }
  if (const auto* alloc = stmt.as<AllocBuffer>(); alloc && alloc->buffer->name == name)
    return depth;
  if (const auto* loop = stmt.as<For>())
    return loops_around_allocation(loop->body, name, depth + 1);
  if (const auto* realize = stmt.as<BlockRealize>())
    return loops_around_allocation(realize->block->body, name, depth);
  return -1;
}

// Loops of 16 in one another, all marked unrolled, around one store.
Ref<PrimFunc> nested_unrolling(int depth) {
  std::vector<Expr> shape, indices;
  std::vector<Ref<Var>> vars;
  for (int i = 0; i < depth; ++i) {
    shape.push_back(n(16));
    vars.push_back(make<Var>("i" + std::to_string(i), kInt64));
    indices.push_back(vars.back());
  }
  const auto a = buffer("A", shape);
  Stmt body = store(a, indices, f(1));
  for (size_t i = vars.size(); i-- > 0;) body = loop(vars[i], n(16), ForKind::kUnrolled, body);
  return make<PrimFunc>(std::vector<Ref<Var>>{make<Var>("a", kHandle)}, std::vector<Ref<Buffer>>{a},
                        body);
}

TEST(UnrollLoop, LoopsAroundLoopsShareTheRoom) {
  constexpr int64_t kFunctions = 4;
  for (const int depth : {2, 3, 5}) {
    IRModule module;
    for (int k = 0; k < kFunctions; ++k)
      module.set("f" + std::to_string(k), nested_unrolling(depth));
    const RemarkScope scope;
    const IRModule unrolled = unroll_loop(module);
    int64_t stores = 0, loops = 0;
    for (const auto& [name, function] : unrolled.functions())
      walk(function, [&](const NodePtr& node) {
        stores += node.as<BufferStore>() != nullptr;
        loops += node.as<For>() != nullptr;
      });
    const bool is_small = depth <= 3;
    if (is_small) EXPECT_EQ(stores, kFunctions * (depth == 2 ? 256 : 4096));
    EXPECT_LE(stores, kFunctions * 8192) << depth;
    EXPECT_EQ(loops == 0, is_small) << depth;
    EXPECT_EQ(scope.remarks().empty(), is_small) << depth;
    for (const Remark& remark : scope.remarks()) EXPECT_EQ(remark.reason, "too-large");
  }
}

// A copy of an elementary function is dozens of operations, one of a long vector several.
TEST(UnrollLoop, CountsTheWorkOfACopy) {
  const auto copies = [](const std::function<Expr(Expr)>& value) {
    auto x = buffer("x", {n(2000)}), y = buffer("y", {n(2000)});
    auto i = var("i");
    const auto out =
        apply(PrimFunc::of_buffers({x, y}, loop(i, n(1500), ForKind::kUnrolled,
                                                store(y, {Expr(i)}, value(load(x, {Expr(i)}))))),
              {unroll_loop});
    return count<BufferStore>(out);
  };
  EXPECT_EQ(copies([](Expr x) { return x + f(1); }), 1500);
  EXPECT_EQ(copies([](Expr x) { return call("exp", {x}); }), 1);
}

TEST(Buffer, StridesOfMoreThan32Bits) {
  const auto extent = [](int64_t value) { return imm(kInt32, value); };
  const auto strides = compact_strides({extent(8), extent(65536), extent(65536)});
  EXPECT_EQ(as_int(strides[0]), int64_t{1} << 32);
  EXPECT_EQ(as_int(element_count({extent(8), extent(65536), extent(65536)})), int64_t{1} << 35);
}

TEST(PlanAndUpdateBufferAllocationLocation, StaysOutsideTheLoopsOfAReduction) {
  // t[i] += x[i, k] over k, then y[i] = t[i]; all in the loop over i.
  auto x = buffer("x", {n(8), n(9)}), y = buffer("y", {n(8)}), t = buffer("t", {n(8)});
  auto i = var("i"), k = var("k"), vi = var("vi"), vk = var("vk"), wi = var("wi");
  Stmt sum = loop(k, n(9), ForKind::kSerial,
                  block({{vi, n(8), i}, {vk, n(9), k, IterKind::kReduce}}, t, {vi},
                        load(t, {vi}) + load(x, {vi, vk}), store(t, {vi}, f(0))));
  Stmt copy = block({{wi, n(8), i}}, y, {wi}, load(t, {wi}));
  const auto all = function({x, y}, {t}, loop(i, n(8), ForKind::kSerial, seq({sum, copy})));
  const auto planned = apply(all, {lower_init_block, plan_and_update_buffer_allocation_location});
  EXPECT_EQ(loops_around_allocation(planned->body, "t"), 1);
  // Where the sum alone uses it, it still lives across the iterations of k.
  const auto alone = function({x, y}, {t}, loop(i, n(8), ForKind::kSerial, sum));
  EXPECT_EQ(
      loops_around_allocation(apply(renew_definitions(alone),
                                    {lower_init_block, plan_and_update_buffer_allocation_location})
                                  ->body,
                              "t"),
      1);
}

TEST(PlanAndUpdateBufferAllocationLocation, RefusesInits) {
  auto y = buffer("y", {n(8)});
  auto i = var("i"), vi = var("vi");
  const auto kernel = function(
      {y}, {},
      loop(i, n(8), ForKind::kSerial, block({{vi, n(8), i}}, y, {vi}, f(1), store(y, {vi}, f(0)))));
  try {
    apply(kernel, {plan_and_update_buffer_allocation_location});
    FAIL();
  } catch (const CompileError& error) {
    EXPECT_EQ(error.first().code.id, kWrongForm.id);
  }
}

TEST(CompactBufferAllocation, ShrinksToTheTile) {
  // Tiles of 4 of a buffer of n rows, with a halo of 1 on either side.
  auto rows = Var::size("rows");
  auto x = buffer("x", {rows * 4 + 2}), y = buffer("y", {rows * 4}),
       t = buffer("t", {rows * 4 + 2}, "local");
  auto o = var("o"), i = var("i"), j = var("j"), vi = var("vi"), vj = var("vj");
  Stmt body = loop(
      o, rows, ForKind::kSerial,
      seq({loop(i, n(6), ForKind::kSerial,
                block({{vi, rows * 4 + 2, o * 4 + i}}, t, {vi}, load(x, {vi}))),
           loop(j, n(4), ForKind::kSerial,
                block({{vj, rows * 4, o * 4 + j}}, y, {vj}, load(t, {vj}) + load(t, {vj + 2})))}));
  auto r = var("r");
  auto kernel = function({buffer("shape", {rows}), x, y}, {t}, body);
  const auto compact = apply(kernel, {lower_init_block, plan_and_update_buffer_allocation_location,
                                      convert_blocks_to_opaque, compact_buffer_allocation});
  walk<AllocBuffer>(compact,
                    [&](const AllocBuffer& alloc) { EXPECT_EQ(str(alloc.buffer->shape), "(6,)"); });
  EXPECT_EQ(count<AllocBuffer>(compact), 1);
}

TEST(CompactBufferAllocation, KeepsWhatDependsOnData) {
  auto x = make<Buffer>("x", kInt64, std::vector<Expr>{n(5)});
  auto y = buffer("y", {n(5)}), t = buffer("t", {n(100)}, "local");
  auto i = var("i"), vi = var("vi");
  const auto kernel = function(
      {x, y}, {t},
      loop(i, n(5), ForKind::kSerial, block({{vi, n(5), i}}, y, {vi}, load(t, {load(x, {vi})}))));
  const auto compact = apply(kernel, {plan_and_update_buffer_allocation_location,
                                      convert_blocks_to_opaque, compact_buffer_allocation});
  walk<AllocBuffer>(
      compact, [&](const AllocBuffer& alloc) { EXPECT_EQ(str(alloc.buffer->shape), "(100,)"); });
}

TEST(LowerMatchBuffer, AccessesGoToTheSource) {
  auto x = buffer("x", {n(4), n(8)});
  auto stride = var("s");
  auto view = make<Buffer>("view", kFloat32, std::vector<Expr>{n(2), n(3)},
                           Buffer::Options{.strides = {stride, n(1)}});
  auto i = var("i");
  const auto source = make<BufferRegion>(x, std::vector<Range>{{i, n(2)}, {n(5), n(3)}});
  const auto inner =
      make<Block>(Block::Parts{.name = "b",
                               .match_buffers = {{view, source}},
                               .body = store(view, {n(1), n(2)}, cast(kFloat32, stride))});
  const auto kernel = function({x}, {},
                               loop(i, n(2), ForKind::kSerial,
                                    make<BlockRealize>(std::vector<Expr>{}, boolean(true), inner)));
  const auto lowered = apply(kernel, {lower_match_buffer});
  walk<BufferStore>(lowered, [&](const BufferStore& s) {
    EXPECT_EQ(s.buffer.get(), x.get());
    EXPECT_EQ(str(s.indices), "(i + 1, 7)");
    EXPECT_EQ(str(s.value), "float32(8)");
  });
  EXPECT_EQ(count<BufferStore>(lowered), 1);
}

TEST(LowerOpaqueBlock, PredicatesBecomeBranchesAndSingleIterationsGo) {
  auto y = buffer("y", {n(8)});
  auto i = var("i"), j = var("j");
  const auto inner = make<Block>(Block::Parts{.name = "b", .body = store(y, {i + j}, f(1))});
  const auto kernel =
      function({y}, {},
               loop(i, n(8), ForKind::kSerial,
                    loop(j, n(1), ForKind::kSerial,
                         make<BlockRealize>(std::vector<Expr>{}, Expr(i) < n(5), inner))));
  const auto lowered = apply(kernel, {lower_opaque_block});
  EXPECT_EQ(count<For>(lowered), 1);
  EXPECT_EQ(count<IfThenElse>(lowered), 1);
  EXPECT_EQ(count<Block>(lowered), 0);
}

TEST(Simplify, DropsWhatIsKnown) {
  auto y = buffer("y", {n(64)});
  auto i = var("i"), j = var("j");
  const Expr index = floordiv(i * 16 + j, 16) * 16 + floormod(i * 16 + j, 16);
  Stmt body = make<IfThenElse>(index < n(64), store(y, {index}, f(1)));
  const auto kernel = PrimFunc::of_buffers(
      {y}, loop(i, n(4), ForKind::kSerial, loop(j, n(16), ForKind::kSerial, body)));
  const auto simple = apply(kernel, {tir::simplify});
  EXPECT_EQ(count<IfThenElse>(simple), 0);
  walk<BufferStore>(simple,
                    [&](const BufferStore& s) { EXPECT_EQ(str(s.indices), "(i * 16 + j,)"); });
}

TEST(Simplify, DoesNotTrustMemoryAcrossWrites) {
  auto x = make<Buffer>("x", kInt32, std::vector<Expr>{n(1)});
  const Expr positive = load(x, {n(0)}) > int32(0);
  Stmt inner = make<IfThenElse>(positive, store(x, {n(0)}, int32(2)));
  Stmt body = make<IfThenElse>(positive, seq({store(x, {n(0)}, int32(-1)), inner}));
  EXPECT_EQ(count<IfThenElse>(apply(PrimFunc::of_buffers({x}, body), {tir::simplify})), 2);
}

TEST(FlattenBuffer, KeepsSignaturesAndStrides) {
  auto s = Var::size("s");
  auto x = make<Buffer>("x", kFloat32, std::vector<Expr>{n(4), n(8)},
                        Buffer::Options{.strides = {s, n(1)}});
  auto t = buffer("t", {n(2), n(3)}, "local");
  auto i = var("i");
  const auto kernel = PrimFunc::of_buffers(
      {x}, seq({make<AllocBuffer>(t),
                loop(i, n(4), ForKind::kSerial, store(x, {i, n(3)}, load(t, {n(1), n(2)})))}));
  const auto flat = apply(kernel, {flatten_buffer});
  EXPECT_EQ(str(flat->buffers[0]->shape), "(4, 8)");
  EXPECT_EQ(count<DeclBuffer>(flat), 1);  // a flat view of the parameter
  walk<AllocBuffer>(flat, [&](const AllocBuffer& a) { EXPECT_EQ(str(a.buffer->shape), "(6,)"); });
  walk<BufferLoad>(flat, [&](const BufferLoad& l) { EXPECT_EQ(str(l.indices), "(5,)"); });
  walk<BufferStore>(flat, [&](const BufferStore& st) { EXPECT_EQ(st.indices.size(), 1U); });
}

// What a view or a foreign function has of a buffer is its pointer, which must stay defined.
TEST(FlattenBuffer, KeepsWhatViewsAndForeignCallsPointTo) {
  for (const bool is_view : {true, false}) {
    auto x = buffer("x", {n(6)});
    auto t = buffer("t", {n(2), n(3)});
    auto view = buffer("view", {n(6)});
    std::vector<Stmt> body = {make<AllocBuffer>(t), store(t, {n(1), n(2)}, imm(kFloat32, 1.0))};
    if (is_view) {
      body.push_back(make<DeclBuffer>(view, t->data));
      body.push_back(store(x, {n(0)}, load(view, {n(5)})));
    } else {
      body.push_back(make<Evaluate>(
          make<tenon::Call>(find_intrinsic("call_extern"),
                            std::vector<NodePtr>{make<StringImm>("f"), t->data}, kInt32)));
    }
    const auto flat = apply(PrimFunc::of_buffers({x}, seq(std::move(body))), {flatten_buffer});
    std::set<const Node*> defined;
    walk<AllocBuffer>(flat, [&](const AllocBuffer& a) { defined.insert(a.buffer->data.get()); });
    int pointers = 0;
    const auto expect_defined = [&](const NodePtr& data) {
      EXPECT_TRUE(defined.count(data.get()));
      ++pointers;
    };
    walk<DeclBuffer>(flat, [&](const DeclBuffer& d) { expect_defined(d.data); });
    walk<tenon::Call>(flat, [&](const tenon::Call& call) { expect_defined(call.args.at(1)); });
    EXPECT_EQ(pointers, 2);  // and the flat view of t
  }
}

Ref<PrimFunc> vectorized(const std::function<Stmt(Expr lane)>& body,
                         std::vector<Ref<Buffer>> params) {
  auto v = var("v");
  return apply(PrimFunc::of_buffers(params, loop(v, n(8), ForKind::kVectorized, body(v))),
               {vectorize_loop});
}

TEST(VectorizeLoop, BecomesRamps) {
  auto x = buffer("x", {n(64)}), y = buffer("y", {n(64)});
  const auto out = vectorized(
      [&](Expr v) { return store(y, {v + 8}, load(x, {v * 2 + 1}) + load(x, {n(3)})); }, {x, y});
  EXPECT_EQ(count<For>(out), 0);
  walk<BufferStore>(out, [&](const BufferStore& s) {
    EXPECT_EQ(s.value->dtype, kFloat32.with_lanes(8));
    ASSERT_NE(s.indices[0].as<Ramp>(), nullptr);
    EXPECT_TRUE(is_int(s.indices[0].as<Ramp>()->base, 8));
  });
}

TEST(VectorizeLoop, ManyLanesAreALoopOfVectors) {
  for (const int lanes : {64, 66, 130, 1024, 5000}) {
    auto x = buffer("x", {n(lanes)}), y = buffer("y", {n(lanes)});
    auto v = var("v");
    const auto out =
        apply(PrimFunc::of_buffers({x, y}, loop(v, n(lanes), ForKind::kVectorized,
                                                store(y, {Expr(v)}, load(x, {Expr(v)}) + f(1)))),
              {vectorize_loop});
    EXPECT_EQ(count<For>(out), lanes > 64 ? 1 : 0);
    EXPECT_EQ(count<BufferStore>(out), lanes > 64 && lanes % 64 ? 2 : 1);
    int64_t stored = 0;
    walk<For>(out, [&](const For& l) { stored += 64 * *as_int(l.extent); });
    for (const Stmt& stmt : stmts_of(out->body))
      if (const auto* rest = stmt.as<BufferStore>()) stored += rest->value->dtype.lanes;
    EXPECT_EQ(stored, lanes);
    walk<BufferStore>(out, [&](const BufferStore& s) { EXPECT_LE(s.value->dtype.lanes, 64); });
  }
}

TEST(VectorizeLoop, LeavesALoopWhereLanesMeet) {
  auto x = buffer("x", {n(64)}), y = buffer("y", {n(1)});
  const auto out =
      vectorized([&](Expr v) { return store(y, {n(0)}, load(y, {n(0)}) + load(x, {v})); }, {x, y});
  walk<For>(out, [&](const For& l) { EXPECT_EQ(l.kind, ForKind::kSerial); });
  EXPECT_EQ(count<For>(out), 1);
}

TEST(VectorizeLoop, TailsAreMaskedUnderABranch) {
  auto x = buffer("x", {n(64)}), y = buffer("y", {n(64)});
  auto m = var("m");
  auto params = std::vector<Ref<Buffer>>{x, y};
  const auto out = vectorized(
      [&](Expr v) -> Stmt {
        return make<IfThenElse>(v < n(5), store(y, {v}, load(x, {v}) * load(x, {m})));
      },
      params);
  EXPECT_EQ(count<For>(out), 0);
  EXPECT_EQ(count<BufferStore>(out), 0);
  int loads = 0, stores = 0;
  walk<Call>(out, [&](const Call& c) {
    loads += c.is("masked_load");
    stores += c.is("masked_store");
  });
  EXPECT_EQ(loads, 1);
  EXPECT_EQ(stores, 1);
  // A lower bound: no single lane decides, and the load that all lanes share could be outside.
  const auto other = vectorized(
      [&](Expr v) -> Stmt {
        return make<IfThenElse>(v > n(5), store(y, {v}, load(x, {v}) * load(x, {m})));
      },
      params);
  EXPECT_EQ(count<For>(other), 1);
}

TEST(UnrollLoop, CopiesRenewDefinitions) {
  auto y = buffer("y", {n(64)});
  auto i = var("i"), j = var("j");
  const auto out = apply(
      PrimFunc::of_buffers({y}, loop(i, n(3), ForKind::kUnrolled,
                                     loop(j, n(4), ForKind::kSerial, store(y, {i * 4 + j}, f(1))))),
      {unroll_loop});
  std::vector<const Var*> vars;
  walk<For>(out, [&](const For& l) { vars.push_back(l.loop_var.get()); });
  ASSERT_EQ(vars.size(), 3U);
  std::sort(vars.begin(), vars.end());
  EXPECT_EQ(std::unique(vars.begin(), vars.end()), vars.end());
}

TEST(FuseMultiplyAdd, JoinsFloatsOnTargetsThatCan) {
  auto x = buffer("x", {n(3)}), y = buffer("y", {n(3)});
  const Expr a = load(x, {n(0)}), b = load(x, {n(1)}), c = load(x, {n(2)});
  const auto kernel = PrimFunc::of_buffers(
      {x, y},
      seq({store(y, {n(0)}, a * b + c), store(y, {n(1)}, a * b - c), store(y, {n(2)}, c - a * b)}));
  for (const char* target : {"llvm -mcpu=haswell", "llvm -mcpu=x86-64"}) {
    IRModule module;
    module.set("f", kernel);
    module.attrs.set("target", target);
    int joined = 0;
    walk<Call>(fuse_multiply_add(module).find("f"),
               [&](const Call& call) { joined += call.is("fma"); });
    EXPECT_EQ(joined, std::string(target) == "llvm -mcpu=haswell" ? 3 : 0);
  }
}

TEST(RemoveNoOp, DropsWhatDoesNothing) {
  auto i = var("i");
  const auto out = apply(
      PrimFunc::of_buffers(
          {buffer("y", {n(1)})},
          loop(i, n(4), ForKind::kSerial, make<IfThenElse>(Expr(i) > n(2), make<Evaluate>(n(0))))),
      {remove_no_op});
  EXPECT_EQ(count<For>(out), 0);
}

}  // namespace
}  // namespace tenon::tir
