// SPDX-License-Identifier: Apache-2.0
// Scheduled kernels through the whole of kernel lowering and code generation.
#include <chrono>
#include <cmath>
#include <functional>

#include "run_program.h"
#include "tenon/tir/elementary.h"
#include "tenon/tir/transforms.h"

namespace tenon::llvm_backend {
namespace {

using namespace tir;

IRModule lower(IRModule module, const Target& target) {
  module.attrs.set("target", target.str());
  for (const auto pass :
       {lower_init_block, plan_and_update_buffer_allocation_location, convert_blocks_to_opaque,
        compact_buffer_allocation, lower_match_buffer, lower_opaque_block, tir::simplify,
        lift_scratch, flatten_buffer, vectorize_loop, unroll_loop, fuse_multiply_add,
        lower_intrinsics, tir::simplify, remove_no_op})
    module = pass(std::move(module));
  return module;
}

Ref<Buffer> buffer(const std::string& name, std::vector<Expr> shape, DType dtype = kFloat32) {
  return make<Buffer>(name, dtype, std::move(shape));
}
Expr n(int64_t value) { return int64(value); }

struct Axis {
  Ref<Var> var;
  Expr extent, value;
  IterKind kind = IterKind::kSpatial;
};

// A block of one store.
Stmt block(const std::string& name, const std::vector<Axis>& axes, const Ref<Buffer>& out,
           std::vector<Expr> indices, Expr value, Stmt init = {}, Expr predicate = boolean(true)) {
  std::vector<IterVar> iter_vars;
  std::vector<Expr> values;
  for (const Axis& axis : axes) {
    iter_vars.push_back({axis.var, {n(0), axis.extent}, axis.kind});
    values.push_back(axis.value);
  }
  std::vector<Ref<BufferRegion>> reads;
  walk<BufferLoad>(value, [&](const BufferLoad& load) {
    reads.push_back(BufferRegion::point(load.buffer, load.indices));
  });
  const auto inner = make<Block>(Block::Parts{.name = name,
                                              .iter_vars = iter_vars,
                                              .reads = reads,
                                              .writes = {BufferRegion::point(out, indices)},
                                              .init = init,
                                              .body = make<BufferStore>(out, value, indices)});
  return make<BlockRealize>(values, predicate, inner);
}

Stmt loop(const Ref<Var>& v, int64_t extent, ForKind kind, Stmt body) {
  return make<For>(v, n(0), n(extent), kind, body);
}

Ref<PrimFunc> function(std::vector<Ref<Buffer>> params, std::vector<Ref<Buffer>> allocs, Stmt body,
                       bool scheduled) {
  const auto root =
      make<Block>(Block::Parts{.name = "root", .alloc_buffers = allocs, .body = body});
  return PrimFunc::of_buffers(params, make<BlockRealize>(std::vector<Expr>{}, boolean(true), root),
                              Attrs{{"tir.is_scheduled", scheduled}});
}

// C = relu(A B), B packed in panels of `columns` vectors; tiles of rows x columns accumulators.
Ref<PrimFunc> matmul(int64_t m, int64_t k, int64_t width, int64_t lanes, int64_t rows,
                     int64_t columns) {
  const int64_t panel = lanes * columns;
  auto a = buffer("A", {n(m), n(k)}), b = buffer("B", {n(width / panel), n(k), n(panel)});
  auto c = buffer("C", {n(m), n(width)});
  auto acc = make<Buffer>("acc", kFloat32, std::vector<Expr>{n(m), n(width)},
                          Buffer::Options{.scope = "local"});
  auto jo = var("jo"), io = var("io"), ko = var("k");
  const auto nest_of = [&](const std::function<Stmt(Expr row, Expr column)>& f) {
    auto ii = var("ii"), jj = var("jj"), v = var("v");
    const Expr row = io * rows + ii, column = jo * panel + jj * lanes + v;
    return loop(ii, rows, ForKind::kUnrolled,
                loop(jj, columns, ForKind::kUnrolled,
                     loop(v, lanes, ForKind::kVectorized, f(row, column))));
  };
  const auto vi = [&] { return var("vi"); };
  auto i0 = vi(), j0 = vi();
  Stmt init = nest_of([&](Expr r, Expr q) {
    return block("init", {{i0, n(m), r}, {j0, n(width), q}}, acc, {i0, j0}, imm(kFloat32, 0.0));
  });
  auto i1 = vi(), j1 = vi(), k1 = vi();
  Stmt update = nest_of([&](Expr r, Expr q) {
    return block("update", {{i1, n(m), r}, {j1, n(width), q}, {k1, n(k), ko, IterKind::kReduce}},
                 acc, {i1, j1},
                 load(acc, {i1, j1}) +
                     load(a, {i1, k1}) * load(b, {floordiv(j1, panel), k1, floormod(j1, panel)}));
  });
  auto i2 = vi(), j2 = vi();
  Stmt back = nest_of([&](Expr r, Expr q) {
    return block("write", {{i2, n(m), r}, {j2, n(width), q}}, c, {i2, j2},
                 max(load(acc, {i2, j2}), imm(kFloat32, 0.0)));
  });
  Stmt body = seq({init, loop(ko, k, ForKind::kSerial, update), back});
  body = loop(jo, width / panel, ForKind::kParallel, loop(io, m / rows, ForKind::kSerial, body));
  return function({a, b, c}, {acc}, body, true);
}

// Stack accesses between the first and the last vector multiply-add of the innermost loop.
int spills_in_inner_loop(const std::string& assembly) {
  const size_t first = assembly.find("vfmadd"), last = assembly.rfind("vfmadd");
  EXPECT_NE(first, std::string::npos);
  const std::string inner = assembly.substr(first, last - first);
  int spills = 0;
  for (size_t at = inner.find("(%rsp)"); at != std::string::npos; at = inner.find("(%rsp)", at + 1))
    ++spills;
  return spills;
}

struct Tile {
  const char* target;
  int64_t lanes, rows, columns;
};

class Matmul : public testing::TestWithParam<Tile> {};

TEST_P(Matmul, KeepsAccumulatorsInRegisters) {
  Tile tile = GetParam();
  const Target target = resolve_target(tile.target);
  if (tile.lanes == 0) {  // of a host that is not known here
    tile.lanes = target.vector_lanes();
    tile.rows = target.vector_registers >= 32 ? 12 : 6;
  }
  const int64_t m = tile.rows * 16, k = 256, width = tile.lanes * tile.columns * 8;
  const IRModule module =
      lower(program_of(matmul(m, k, width, tile.lanes, tile.rows, tile.columns)), target);
  EXPECT_EQ(spills_in_inner_loop(emit_assembly(module, target)), 0);
  if (getenv("TENON_SHOW_ASSEMBLY")) puts(emit_assembly(module, target).c_str());
  if (!missing_here(target).empty()) GTEST_SKIP() << "this host has no " << missing_here(target);
  const auto program = load(module, target);
  std::vector<float> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * width));
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(static_cast<int>(i * 7 % 13) - 6);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(static_cast<int>(i * 5 % 11) - 5);
  std::vector<Bytes> buffers;
  buffers.emplace_back(a);
  buffers.emplace_back(b);
  buffers.emplace_back(static_cast<size_t>(m * width) * 4);
  Host host;
  ASSERT_EQ(run(*program, host, buffers), 0);
  const auto c = buffers[2].as<float>();
  const int64_t panel = tile.lanes * tile.columns;
  for (int64_t i = 0; i < m; i += 5)
    for (int64_t j = 0; j < width; j += 3) {
      float want = 0;
      for (int64_t l = 0; l < k; ++l)
        want += a[static_cast<size_t>(i * k + l)] *
                b[static_cast<size_t>((j / panel * k + l) * panel + j % panel)];
      ASSERT_EQ(c[static_cast<size_t>(i * width + j)], std::max(want, 0.0f));
    }
  host.context.parallel_for = [](TenonContext* ctx, TenonTask body, void* env, int64_t tasks) {
    for (int64_t task = 0; task < tasks; ++task) body(ctx, env, task);
    return 0;
  };
  double best = 1e9;
  for (int r = 0; r < 20; ++r) {
    const auto start = std::chrono::steady_clock::now();
    run(*program, host, buffers);
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  RecordProperty("gflops", std::to_string(2e-9 * static_cast<double>(m * k * width) / best));
  printf("%s: %.1f GFLOP/s on one core\n", tile.target,
         2e-9 * static_cast<double>(m * k * width) / best);
}

INSTANTIATE_TEST_SUITE_P(Tiles, Matmul,
                         testing::Values(Tile{"llvm -mcpu=haswell", 8, 6, 2},
                                         Tile{"llvm -mcpu=haswell", 8, 4, 3},
                                         Tile{"llvm -mcpu=skylake-avx512", 16, 6, 4},
                                         Tile{"llvm -mcpu=skylake-avx512", 16, 14, 2},
                                         Tile{"native", 0, 0, 2}));

// out[i] = sum_k x[i, k] with an init in the block: the plain form, not scheduled.
TEST(Lowering, PlainReductionWithInit) {
  auto x = buffer("x", {n(5), n(7)}), y = buffer("y", {n(5)});
  auto i = var("i"), k = var("k"), vi = var("vi"), vk = var("vk");
  Stmt init = make<BufferStore>(y, imm(kFloat32, 10.0), std::vector<Expr>{vi});
  Stmt body = nest({i, k}, {n(5), n(7)},
                   block("sum", {{vi, n(5), i}, {vk, n(7), k, IterKind::kReduce}}, y, {vi},
                         load(y, {vi}) + load(x, {vi, vk}), init));
  const IRModule module = lower(program_of(function({x, y}, {}, body, false)), host());
  const auto program = load(module);
  std::vector<float> in(35);
  for (size_t j = 0; j < 35; ++j) in[j] = static_cast<float>(j);
  std::vector<Bytes> buffers;
  buffers.emplace_back(in);
  buffers.emplace_back(20);
  Host host;
  ASSERT_EQ(run(*program, host, buffers), 0);
  for (size_t r = 0; r < 5; ++r)
    EXPECT_EQ(buffers[1].as<float>()[r], 10.f + static_cast<float>(49 * r + 21));
}

// The same of any length: over nothing it is what the init stores.
TEST(Lowering, AReductionOverNothingGivesItsInit) {
  const Ref<Var> length = Var::size("length");
  auto x = buffer("x", {n(5), length}), y = buffer("y", {n(5)});
  auto i = var("i"), k = var("k"), vi = var("vi"), vk = var("vk");
  Stmt init = make<BufferStore>(y, imm(kFloat32, 10.0), std::vector<Expr>{vi});
  Stmt body = nest({k, i}, {length, n(5)},
                   block("sum", {{vi, n(5), i}, {vk, length, k, IterKind::kReduce}}, y, {vi},
                         load(y, {vi}) + load(x, {vi, vk}), init));
  const auto program = load(lower(program_of(function({x, y}, {}, body, false)), host()));
  for (const int64_t count : {0, 3}) {
    std::vector<Bytes> buffers;
    buffers.emplace_back(std::vector<float>(static_cast<size_t>(5 * count), 1.0F));
    buffers.emplace_back(20);
    Host host;
    ASSERT_EQ(run(*program, host, buffers, {count}), 0);
    EXPECT_EQ(buffers[1].as<float>(), std::vector<float>(5, 10.0F + static_cast<float>(count)));
  }
}

// A tail under a predicate becomes masked vectors; an intermediate shrinks to the tile.
TEST(Lowering, TailsAreMasked) {
  constexpr int64_t kSize = 37;
  auto x = buffer("x", {n(kSize)}), y = buffer("y", {n(kSize)});
  auto t =
      make<Buffer>("t", kFloat32, std::vector<Expr>{n(kSize)}, Buffer::Options{.scope = "local"});
  auto io = var("io"), a = var("a"), b = var("b"), v0 = var("v0"), v1 = var("v1");
  const auto tile = [&](const Ref<Var>& inner) { return io * 16 + inner; };
  Stmt body = loop(io, 3, ForKind::kSerial,
                   seq({loop(a, 16, ForKind::kVectorized,
                             block("t", {{v0, n(kSize), tile(a)}}, t, {v0},
                                   load(x, {v0}) * imm(kFloat32, 2.0), {}, tile(a) < n(kSize))),
                        loop(b, 16, ForKind::kVectorized,
                             block("y", {{v1, n(kSize), tile(b)}}, y, {v1},
                                   load(t, {v1}) + imm(kFloat32, 1.0), {}, tile(b) < n(kSize)))}));
  const IRModule module = lower(program_of(function({x, y}, {t}, body, true)), host());
  int masked = 0;
  walk<Call>(module.find("kernel"),
             [&](const Call& call) { masked += call.is(IntrinsicId::kMaskedStore); });
  EXPECT_EQ(masked, 2);
  walk<AllocBuffer>(module.find("kernel"), [&](const AllocBuffer& alloc) {
    EXPECT_EQ(str(alloc.buffer->shape), "(16,)");
  });
  const auto program = load(module);
  std::vector<float> in(kSize);
  for (size_t j = 0; j < kSize; ++j) in[j] = static_cast<float>(j);
  std::vector<Bytes> buffers;
  buffers.emplace_back(in);
  buffers.emplace_back(kSize * 4);
  Host host;
  ASSERT_EQ(run(*program, host, buffers), 0);
  for (size_t j = 0; j < kSize; ++j)
    EXPECT_EQ(buffers[1].as<float>()[j], 2.f * static_cast<float>(j) + 1.f);
}

// Padding by T.if_then_else with a condition on the lane: a masked load that fills in zero.
TEST(Lowering, GuardedReadsBecomeMaskedLoads) {
  auto x = buffer("x", {n(30)}), y = buffer("y", {n(32)});
  auto i = var("i"), vi = var("vi");
  const Expr inside = logical_and(vi >= n(1), vi < n(31));
  Stmt body = loop(i, 32, ForKind::kVectorized,
                   block("pad", {{vi, n(32), i}}, y, {vi},
                         if_then_else(inside, load(x, {vi - 1}), imm(kFloat32, 5.0))));
  const IRModule module = lower(program_of(function({x, y}, {}, body, true)), host());
  int masked = 0;
  walk<Call>(module.find("kernel"),
             [&](const Call& call) { masked += call.is(IntrinsicId::kMaskedLoad); });
  EXPECT_EQ(masked, 1);
  const auto program = load(module);
  std::vector<Bytes> buffers;
  buffers.emplace_back(std::vector<float>(30, 1.f));
  buffers.emplace_back(128);
  Host host;
  ASSERT_EQ(run(*program, host, buffers), 0);
  const auto out = buffers[1].as<float>();
  EXPECT_EQ(out[0], 5.f);
  EXPECT_EQ(out[1], 1.f);
  EXPECT_EQ(out[30], 1.f);
  EXPECT_EQ(out[31], 5.f);
}

// Memory that is too large for the stack comes from the caller; each task has a slot.
TEST(Lowering, LargeIntermediatesBecomeScratch) {
  constexpr int64_t kRows = 4, kSize = 20000;
  auto x = buffer("x", {n(kRows), n(kSize)}), y = buffer("y", {n(kRows), n(kSize)});
  auto t = buffer("t", {n(kRows), n(kSize)});
  auto i = var("i"), a = var("a"), b = var("b");
  auto i0 = var("i0"), a0 = var("a0"), i1 = var("i1"), b0 = var("b0");
  Stmt body = loop(i, kRows, ForKind::kParallel,
                   seq({loop(a, kSize, ForKind::kSerial,
                             block("t", {{i0, n(kRows), i}, {a0, n(kSize), a}}, t, {i0, a0},
                                   load(x, {i0, a0}) * imm(kFloat32, 2.0))),
                        loop(b, kSize, ForKind::kSerial,
                             block("y", {{i1, n(kRows), i}, {b0, n(kSize), b}}, y, {i1, b0},
                                   load(t, {i1, n(kSize - 1) - b0})))}));
  const IRModule module = lower(program_of(function({x, y}, {t}, body, false)), host());
  const auto kernel = module.find<PrimFunc>("kernel");
  ASSERT_EQ(kernel->params.size(), 3U);
  EXPECT_EQ(str(kernel->buffers[2]->shape), "(4, 1, 20000)");
  int allocations = 0;
  walk<AllocBuffer>(module.find("main"), [&](const AllocBuffer&) { ++allocations; });
  EXPECT_EQ(allocations, 1);
}

std::vector<float> floats_of_all_sizes() {
  std::vector<float> in;
  for (float x = -110; x < 110; x += 0.173f) in.push_back(x);
  for (float x = 0x1.bcdp49f; x < 3e38f; x *= 5.37f) in.push_back(x);
  in.push_back(std::nanf(""));
  in.push_back(INFINITY);
  in.push_back(-INFINITY);
  while (in.size() % 16) in.push_back(0.f);
  return in;
}

// The arithmetic that code runs is the arithmetic on numbers, bit for bit.
void expect_equal_bits(const std::function<Expr(const Expr&)>& code,
                       const std::function<float(float)>& numbers) {
  const std::vector<float> in = floats_of_all_sizes();
  const auto size = static_cast<int64_t>(in.size());
  auto x = buffer("x", {n(size)}), y = buffer("y", {n(size)});
  auto io = var("io"), i = var("i"), vi = var("vi");
  Stmt body = loop(io, size / 16, ForKind::kSerial,
                   loop(i, 16, ForKind::kVectorized,
                        block("f", {{vi, n(size), io * 16 + i}}, y, {vi}, code(load(x, {vi})))));
  const auto program = load(lower(program_of(function({x, y}, {}, body, true)), host()));
  std::vector<Bytes> buffers;
  buffers.emplace_back(in);
  buffers.emplace_back(in.size() * 4);
  Host host;
  ASSERT_EQ(run(*program, host, buffers), 0);
  const auto out = buffers[1].as<float>();
  for (size_t j = 0; j < in.size(); ++j) {
    const float want = numbers(in[j]);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(out[j])) << in[j];
    } else {
      ASSERT_EQ(out[j], want) << in[j];
    }
  }
}

TEST(Lowering, ElementaryFunctionsEqualTheInterpretersBitForBit) {
  if (!host().has_fma) GTEST_SKIP();
  for (const char* name :
       {"exp", "tanh", "erf", "sigmoid", "log", "sin", "tan", "atan", "log1p", "exp2"}) {
    SCOPED_TRACE(name);
    const IntrinsicId id = find_intrinsic(name)->id;
    expect_equal_bits([&](const Expr& x) { return call(id, {x}); },
                      [&](float x) { return elementary(id, x); });
  }
}

TEST(Lowering, FunctionsAreJoinedWithWhatTheyAreAddedToAndMultipliedWith) {
  if (!host().has_fma) GTEST_SKIP();
  const auto constant = [](double value) { return imm(kFloat32, value); };
  const auto erf = [](const Expr& x) { return call(IntrinsicId::kErf, {x}); };
  const auto tanh = [](const Expr& x) { return call(IntrinsicId::kTanh, {x}); };
  expect_equal_bits([&](const Expr& x) { return constant(1) + erf(x); },
                    [](float x) { return one_plus_erf(x, 1); });
  expect_equal_bits([&](const Expr& x) { return erf(x / constant(1.25)) + constant(1); },
                    [](float x) { return one_plus_erf(x, 0.8); });
  expect_equal_bits([&](const Expr& x) { return constant(1) + erf(constant(1.75) * x); },
                    [](float x) { return one_plus_erf(x, 1.75); });
  // The scale is 1 where that of the argument does not go into the constants.
  expect_equal_bits([&](const Expr& x) { return constant(1) + erf(constant(-2) * x); },
                    [](float x) { return one_plus_erf(-2 * x, 1); });
  expect_equal_bits([&](const Expr& x) { return constant(1) + tanh(x); },
                    [](float x) { return logistic(x, -2, 2); });
  expect_equal_bits([&](const Expr& x) { return x * constant(0.5) * (constant(1) + tanh(x)); },
                    [](float x) { return logistic(x, -2, x); });
  expect_equal_bits([&](const Expr& x) { return (tanh(x) + constant(1)) * (x - constant(3)); },
                    [](float x) { return logistic(x, -2, (x - 3) * 2); });
  expect_equal_bits([&](const Expr& x) { return call(IntrinsicId::kSigmoid, {x}) * x; },
                    [](float x) { return logistic(x, -1, x); });
}

// Remainders and quarter turns of float64, whose steps differ where nothing joins products and
// sums.
TEST(Lowering, ReductionsOfLargeArgumentsAreExact) {
  std::vector<double> in;
  for (double x = -0x1.23456789abcdep-1060; std::fabs(x) < 1e307; x *= -7.654321e5) in.push_back(x);
  while (in.size() % 4) in.push_back(0);
  const auto size = static_cast<int64_t>(in.size());
  const double divisor = -0x1.921fb54442d18p-3;
  struct Case {
    const char* name;
    Expr (*element)(const Expr& x, const Expr& y);
  };
  const Case cases[] = {
      {"fmod", [](const Expr& x, const Expr& y) { return binary(BinaryOp::kMod, x, y); }},
      {"fmod", [](const Expr& x, const Expr& y) { return call(IntrinsicId::kFmod, {x, y}); }},
      {"floormod", [](const Expr& x, const Expr& y) { return binary(BinaryOp::kFloorMod, x, y); }},
      {"sin", [](const Expr& x, const Expr&) { return call(IntrinsicId::kSin, {x}); }},
  };
  for (const Target& target : {parse_target("llvm -mcpu=x86-64-v2"), host()})
    for (const auto& [name, element] : cases) {
      auto x = buffer("x", {n(size)}, kFloat64), y = buffer("y", {n(size)}, kFloat64);
      auto io = var("io"), i = var("i"), vi = var("vi");
      const Expr value = element(load(x, {vi}), imm(kFloat64, divisor));
      Stmt body = loop(io, size / 4, ForKind::kSerial,
                       loop(i, 4, ForKind::kVectorized,
                            block("f", {{vi, n(size), io * 4 + i}}, y, {vi}, value)));
      const auto program = load(lower(program_of(function({x, y}, {}, body, true)), target));
      std::vector<Bytes> buffers;
      buffers.emplace_back(in);
      buffers.emplace_back(in.size() * 8);
      Host host;
      ASSERT_EQ(run(*program, host, buffers), 0);
      const auto out = buffers[1].as<double>();
      for (size_t j = 0; j < in.size(); ++j) {
        const double want = name == std::string("floormod")
                                ? elementary_floormod(in[j], divisor)
                                : elementary(find_intrinsic(name)->id, in[j], divisor);
        if (name == std::string("sin") && !target.has_fma) {
          EXPECT_NEAR(out[j], want, 4e-16) << "sin(" << in[j] << ")";
        } else {
          EXPECT_EQ(out[j], want) << name << "(" << in[j] << ") " << target.cpu;
        }
      }
    }
}

}  // namespace
}  // namespace tenon::llvm_backend
