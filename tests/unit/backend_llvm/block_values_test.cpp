// SPDX-License-Identifier: Apache-2.0
// What a block of code has in registers is not loaded again, and is forgotten where memory changes.
#include "run_program.h"
#include "tenon/support/random.h"

namespace tenon::llvm_backend {
namespace {

using namespace tir;

constexpr int64_t kSize = 64;  // elements of each buffer
constexpr int64_t kView = 24;  // where the view of the local one begins
constexpr int64_t kRounds = 3;

/// `to`[at] = `from`[read] + addend, in `lanes` elements from there. Places move with the loop.
struct Step {
  int to, from;  // 0: the input, 1: the output, 2: memory of the function's own, 3: a view of it
  int64_t at, read, at_factor, read_factor, lanes;
};

std::vector<Step> random_steps(uint64_t seed) {
  Random random(seed);
  const auto below = [&](int64_t end) {
    return static_cast<int64_t>(random.bits() % static_cast<uint64_t>(end));
  };
  std::vector<Step> steps;
  for (int i = 0; i < 60; ++i) {
    Step step{};
    step.to = static_cast<int>(1 + below(3));
    step.from = static_cast<int>(below(4));
    step.at = below(8);
    step.read = below(8);
    // Most places are a constant apart, so that much is known of them.
    const auto factor = [&] { return below(12) ? static_cast<int64_t>(seed % 3) : below(3); };
    step.at_factor = factor();
    step.read_factor = factor();
    step.lanes = below(2) ? 1 : 4;
    steps.push_back(step);
  }
  return steps;
}

Ref<PrimFunc> kernel_of(const std::vector<Step>& steps) {
  const auto a = make<Buffer>("a", kFloat32, std::vector<Expr>{int64(kSize)});
  const auto c = make<Buffer>("c", kFloat32, std::vector<Expr>{int64(kSize)});
  const auto t = make<Buffer>("t", kFloat32, std::vector<Expr>{int64(kSize)});
  const auto v = make<Buffer>("v", kFloat32, std::vector<Expr>{int64(kSize - kView)},
                              Buffer::Options{.elem_offset = int64(kView)});
  const Ref<Buffer> buffers[] = {a, c, t, v};
  const auto i = var("i"), j = var("j");
  std::vector<Stmt> body;
  for (const Step& step : steps) {
    const auto place = [&](int64_t first, int64_t factor) {
      const Expr index = int64(first) + i * int64(factor);
      return step.lanes == 1 ? index : Expr(make<Ramp>(index, int64(1), step.lanes));
    };
    const Expr one = imm(kFloat32.with_lanes(static_cast<int>(step.lanes)), 1.0);
    body.push_back(make<BufferStore>(
        buffers[step.to], load(buffers[step.from], {place(step.read, step.read_factor)}) + one,
        std::vector<Expr>{place(step.at, step.at_factor)}));
  }
  const Stmt clear = nest({j}, {int64(kSize)},
                          seq({make<BufferStore>(c, imm(kFloat32, 0.0), std::vector<Expr>{j}),
                               make<BufferStore>(t, imm(kFloat32, 0.0), std::vector<Expr>{j})}));
  return PrimFunc::of_buffers({a, c}, seq({make<AllocBuffer>(t), make<DeclBuffer>(v, t->data),
                                           clear, nest({i}, {int64(kRounds)}, seq(body))}));
}

std::vector<float> expected_of(const std::vector<Step>& steps, std::vector<float> a) {
  std::vector<float> c(kSize, 0), t(kSize, 0);
  float* const memory[] = {a.data(), c.data(), t.data(), t.data() + kView};
  for (int64_t i = 0; i < kRounds; ++i)
    for (const Step& step : steps) {
      std::vector<float> read;  // all lanes, before any is written
      for (int64_t lane = 0; lane < step.lanes; ++lane)
        read.push_back(memory[step.from][step.read + i * step.read_factor + lane] + 1);
      for (int64_t lane = 0; lane < step.lanes; ++lane)
        memory[step.to][step.at + i * step.at_factor + lane] = read[static_cast<size_t>(lane)];
    }
  return c;
}

TEST(BlockValues, AreForgottenWhereMemoryChanges) {
  std::vector<float> a(kSize);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(100 * i);
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<Step> steps = random_steps(seed);
    std::vector<Bytes> inputs;
    inputs.emplace_back(a);
    const auto got =
        run_kernel(kernel_of(steps), std::move(inputs), kSize * sizeof(float)).as<float>();
    ASSERT_EQ(got, expected_of(steps, a));
  }
}

// The same index is another place in a view of other elements.
TEST(BlockValues, OfViewsOfOtherElementsAreApart) {
  const auto c = make<Buffer>("c", kInt8, std::vector<Expr>{int64(64)});
  const auto floats = make<Buffer>("t", kFloat32, std::vector<Expr>{int64(16)});
  const auto bytes = make<Buffer>("b", kInt8, std::vector<Expr>{int64(64)});
  const auto i = var("i"), j = var("j");
  const auto at = [](const Expr& index) { return std::vector<Expr>{index}; };
  for (const bool moves : {false, true}) {
    const Expr place = moves ? i + int64(4) : int64(4);
    const Stmt body = seq({make<BufferStore>(bytes, imm(kInt8, int64_t{7}), at(place)),
                           make<BufferStore>(floats, imm(kFloat32, 1.0), at(place)),
                           make<BufferStore>(c, load(bytes, at(place)), at(place))});
    const Stmt clear = nest({j}, {int64(64)},
                            seq({make<BufferStore>(bytes, imm(kInt8, int64_t{0}), at(j)),
                                 make<BufferStore>(c, imm(kInt8, int64_t{0}), at(j))}));
    const auto kernel = PrimFunc::of_buffers(
        {c}, seq({make<AllocBuffer>(floats), make<DeclBuffer>(bytes, floats->data), clear,
                  nest({i}, {int64(2)}, body)}));
    const auto got = run_kernel(kernel, {}, 64).as<int8_t>();
    EXPECT_EQ(got[4], 7) << moves;
    EXPECT_EQ(got[5], moves ? 7 : 0);
  }
}

// As LLVM's own passes find it out: here none of them runs.
TEST(BlockValues, AreNotLoadedAgain) {
  const auto a = make<Buffer>("a", kFloat32, std::vector<Expr>{int64(16)});
  const auto c = make<Buffer>("c", kFloat32, std::vector<Expr>{int64(16)});
  const auto at = [](int64_t i) { return std::vector<Expr>{int64(i)}; };
  const auto kernel = PrimFunc::of_buffers(
      {a, c}, seq({make<BufferStore>(c, load(a, at(3)) * load(a, at(4)), at(0)),
                   make<BufferStore>(c, load(a, at(4)) + load(c, at(0)), at(1)),
                   make<BufferStore>(c, load(a, at(3)) + load(c, at(1)), at(2))}));
  CompileOptions options;
  options.optimize = 0;
  const std::string text = emit_llvm(program_of(kernel), host(), options);
  size_t loads = 0;
  for (size_t i = text.find("load float"); i != std::string::npos;
       i = text.find("load float", i + 1))
    ++loads;
  EXPECT_EQ(loads, 2U) << text;
}

}  // namespace
}  // namespace tenon::llvm_backend
