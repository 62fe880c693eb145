// SPDX-License-Identifier: Apache-2.0
// Software pipelines on the threads of the pool: results, any number of threads, failures.
#include "tenon/tir/schedule/pipeline.h"

#include "run_program.h"
#include "tenon/memory/plan_module.h"
#include "tenon/runtime/error.h"
#include "tenon/runtime/run_context.h"
#include "tenon/script/parser.h"
#include "tenon/tir/analysis/verifier.h"
#include "tenon/tir/call_transforms.h"

namespace tenon::llvm_backend {
namespace {

using namespace tir;

IRModule lowered(IRModule module) {
  module.attrs.set("target", host().str());
  for (const auto pass :
       {inject_software_pipeline, lower_init_block, plan_and_update_buffer_allocation_location,
        convert_blocks_to_opaque, compact_buffer_allocation, lower_match_buffer, lower_opaque_block,
        tir::simplify, lift_scratch})
    module = pass(std::move(module));
  Diagnostics diagnostics;
  tir::verify(module, diagnostics);
  diagnostics.throw_if_any();
  module = memory::plan_memory(std::move(module), {});
  for (const auto pass : {flatten_buffer, vectorize_loop, unroll_loop, tir::simplify, remove_no_op})
    module = pass(std::move(module));
  return module;
}

// Three stages over 32 tiles; the third keeps a sum over all tiles, and stops at a large value.
constexpr const char* kModule = R"(
@I.ir_module
class Module:
    @T.prim_func
    def twice(x: T.Buffer((2048,), "float32"), y: T.Buffer((2048,), "float32")):
        for i in range(2048):
            y[i] = x[i] * T.float32(2)

    @T.prim_func
    def add(x: T.Buffer((2048,), "float32"), y: T.Buffer((2048,), "float32"), s: T.Buffer((2048,), "float32")):
        assert x[0] < T.float32(1000), "a tile is too large"
        for i in range(2048):
            s[i] = s[i] * T.float32(0.5) + x[i] + y[i]

    @T.prim_func
    def main(X: T.Buffer((32, 2048), "float32"), S: T.Buffer((2048,), "float32")):
        T.func_attr({"tenon.entry": True, "tenon.num_inputs": 1})
        cls = Module
        for i in range(2048):
            S[i] = T.float32(0)
        for t in T.serial(32, annotations={"software_pipeline_stage": [0, 1, 2]}):
            with T.block("tile"):
                h = T.alloc_buffer((2048,), "float32")
                k = T.alloc_buffer((2048,), "float32")
                T.call_tir(cls.twice, X[t, 0:2048], h)
                T.call_tir(cls.twice, h, k)
                T.call_tir(cls.add, h, k, S)
)";

struct Ran {
  int32_t code;
  std::string message;
  std::vector<float> sums;
};

Ran run(const LoadedProgram& program, int threads, float last = 1.0f) {
  std::vector<float> x(32 * 2048);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 97) * 0.25f;
  x[20 * 2048] = last;
  std::vector<Bytes> buffers;
  buffers.emplace_back(x);
  buffers.emplace_back(2048 * sizeof(float));
  std::vector<void*> pointers{buffers[0].data, buffers[1].data};
  const Bytes workspace(static_cast<size_t>(program.program()->workspace_bytes) + 64);
  runtime::ThreadPool pool(threads);
  runtime::RunContext context(&pool);
  Ran out{program.program()->run(context.context(), pointers.data(), nullptr, workspace.data,
                                 program.program()->constants),
          {},
          buffers[1].as<float>()};
  try {
    context.check(out.code, "main");
  } catch (const runtime::Error& error) {
    out.message = error.what();
  }
  return out;
}

TEST(Pipeline, GivesTheSameBitsOnAnyNumberOfThreads) {
  const auto program = load(lowered(script::parse_module(kModule)));
  const Ran serial = run(*program, 1);
  ASSERT_EQ(serial.code, 0) << serial.message;
  EXPECT_EQ(serial.sums[5], run(*program, 1).sums[5]);
  // Fewer threads than stages, as many, and more.
  for (const int threads : {2, 3, 5})
    for (int again = 0; again < 5; ++again) EXPECT_EQ(run(*program, threads).sums, serial.sums);
}

TEST(Pipeline, ReportsWhatStoppedAStage) {
  const auto program = load(lowered(script::parse_module(kModule)));
  for (const int threads : {1, 2, 3}) {
    const Ran ran = run(*program, threads, 1e6f);
    EXPECT_NE(ran.code, 0);
    EXPECT_NE(ran.message.find("a tile is too large"), std::string::npos) << ran.message;
  }
}

TEST(Pipeline, IsMadeByASchedulePrimitive) {
  const IRModule module = script::parse_module(R"(
@T.prim_func
def main(X: T.Buffer((16, 64), "float32"), Y: T.Buffer((16, 64), "float32")):
    with T.block("root"):
        h = T.alloc_buffer((16, 64), "float32")
        for t, i in T.grid(16, 64):
            with T.block("first"):
                vt, vi = T.axis.remap("SS", [t, i])
                h[vt, vi] = X[vt, vi] + T.float32(1)
        for t, i in T.grid(16, 64):
            with T.block("second"):
                vt, vi = T.axis.remap("SS", [t, i])
                Y[vt, vi] = h[vt, vi] * T.float32(2)
)");
  Schedule schedule(module.find<PrimFunc>("main"));
  const auto second = schedule.get_block("second");
  const LoopRV row = schedule.get_loops(second)[0];
  schedule.compute_at(schedule.get_block("first"), row);
  EXPECT_THROW(software_pipeline(schedule, row, {1, 0}), CompileError);
  EXPECT_THROW(software_pipeline(schedule, row, {0}), CompileError);
  software_pipeline(schedule, row, {0, 1});
  EXPECT_NE(schedule.trace().str().find("software_pipeline_stage"), std::string::npos);
  IRModule marked;
  marked.set("main", schedule.func());
  const IRModule injected = inject_software_pipeline(marked);
  int parallel = 0;
  walk<For>(injected.find("main"),
            [&](const For& loop) { parallel += loop.kind == ForKind::kParallel; });
  EXPECT_EQ(parallel, 1);
}

}  // namespace
}  // namespace tenon::llvm_backend
