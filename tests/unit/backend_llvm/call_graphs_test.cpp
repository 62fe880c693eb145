// SPDX-License-Identifier: Apache-2.0
// Random graphs of calls compute the same in the interpreter and compiled: inlined or not,
// pipelined or not, on one thread and on two. TENON_CALL_GRAPHS says how many (10000 takes some
// minutes).
#include "call_graphs.h"

#include <cstdlib>

#include "../../targets/machines.h"
#include "run_program.h"
#include "tenon/interp/interpreter.h"
#include "tenon/memory/plan_module.h"
#include "tenon/runtime/run_context.h"
#include "tenon/script/parser.h"
#include "tenon/script/printer.h"
#include "tenon/tir/analysis/verifier.h"
#include "tenon/tir/call_transforms.h"

namespace tenon::llvm_backend {
namespace {

using Outputs = std::vector<std::vector<float>>;
constexpr size_t kElements = 16 * 16;

uint64_t graphs() {
  const char* count = std::getenv("TENON_CALL_GRAPHS");
  return count ? std::strtoull(count, nullptr, 10) : 40;
}

void verified(const IRModule& module) {
  Diagnostics diagnostics;
  tir::verify(module, diagnostics);
  diagnostics.throw_if_any();
}

std::vector<float> input(int which) {
  std::vector<float> values(kElements);
  for (size_t i = 0; i < kElements; ++i)
    values[i] =
        static_cast<float>(static_cast<int>((i * 7 + static_cast<size_t>(which) * 13) % 17) - 8) /
        4;
  return values;
}

Outputs interpreted(const IRModule& module) {
  std::vector<Ref<TensorData>> buffers;
  for (int i = 0; i < 4; ++i) {
    const std::vector<float> values = input(i);
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    buffers.push_back(i < 2 ? TensorData::owned(kFloat32, {16, 16}, std::move(bytes)) : nullptr);
  }
  const auto results = interp::Interpreter(module).run_prim_func("main", buffers);
  Outputs out;
  for (size_t i = 2; i < 4; ++i) {
    std::vector<float> values(kElements);
    std::memcpy(values.data(), results.at(i)->data().data(), kElements * sizeof(float));
    out.push_back(std::move(values));
  }
  return out;
}

IRModule lowered(IRModule module, const Target& target) {
  module.attrs.set("target", target.str());
  for (const auto pass :
       {tir::lower_init_block, tir::plan_and_update_buffer_allocation_location,
        tir::convert_blocks_to_opaque, tir::compact_buffer_allocation, tir::lower_match_buffer,
        tir::lower_opaque_block, tir::simplify, tir::lift_scratch})
    module = pass(std::move(module));
  verified(module);
  module = memory::plan_memory(std::move(module), {});
  for (const auto pass : {tir::flatten_buffer, tir::vectorize_loop, tir::unroll_loop, tir::simplify,
                          tir::remove_no_op})
    module = pass(std::move(module));
  return module;
}

Outputs executed(const LoadedProgram& program, runtime::ThreadPool& pool) {
  std::vector<Bytes> buffers;
  for (int i = 0; i < 4; ++i) buffers.emplace_back(input(i));
  std::vector<void*> pointers;
  for (const Bytes& bytes : buffers) pointers.push_back(bytes.data);
  const Bytes workspace(
      static_cast<size_t>(std::max<int64_t>(program.program()->workspace_bytes, 1)));
  runtime::RunContext context(&pool);
  const int32_t code = program.program()->run(context.context(), pointers.data(), nullptr,
                                              workspace.data, program.program()->constants);
  context.check(code, "the graph");
  return {buffers[2].as<float>(), buffers[3].as<float>()};
}

struct Variant {
  const char* name;
  IRModule (*make)(IRModule);
};
const Variant kVariants[] = {
    {"as written", [](IRModule m) { return m; }},
    {"pipelined", [](IRModule m) { return tir::inject_software_pipeline(std::move(m)); }},
    {"inlined", [](IRModule m) { return tir::inline_calls(std::move(m), true); }},
    {"specialised, cleaned, pipelined",
     [](IRModule m) {
       return tir::inject_software_pipeline(tir::inline_calls(tir::remove_dead_calls(
           tir::eliminate_common_calls(tir::specialize_calls(std::move(m))))));
     }},
    {"pipelined, then inlined",
     [](IRModule m) {
       return tir::inline_calls(tir::inject_software_pipeline(std::move(m)), true);
     }},
};

TEST(CallGraphs, ComputeTheSameInEveryForm) {
  runtime::ThreadPool one(1), two(2);
  const std::vector<Target> machines = testing_targets::machines_here();
  int64_t pipelines = 0, calls = 0;
  for (uint64_t seed = 0; seed < graphs(); ++seed) {
    const std::string text = CallGraph(seed).text();
    SCOPED_TRACE("graph " + std::to_string(seed) + "\n" + text);
    try {
      const IRModule module = script::parse_module(text);
      verified(module);
      const Outputs expected = interpreted(module);
      for (size_t v = 0; v < std::size(kVariants); ++v) {
        SCOPED_TRACE(kVariants[v].name);
        const IRModule variant = kVariants[v].make(module);
        verified(variant);
        ASSERT_EQ(interpreted(variant), expected) << script::print(variant);
        // Compiling is most of the time: two forms of each graph in turn.
        if (v != seed % std::size(kVariants) && v != (seed + 2) % std::size(kVariants)) continue;
        const Target& target = machines[seed % machines.size()];
        SCOPED_TRACE(target.str());
        const auto program = link_in_process(
            compile(lowered(variant, target), target, {.optimize = seed % 8 == 0 ? 2 : 0}));
        ASSERT_EQ(executed(*program, one), expected) << script::print(variant);
        ASSERT_EQ(executed(*program, two), expected) << script::print(variant);
      }
      for (const auto& [name, function] : module.functions()) {
        walk<tir::CallTir>(function, [&](const tir::CallTir&) { ++calls; });
        walk<tir::For>(function, [&](const tir::For& loop) {
          pipelines += loop.annotations.contains("software_pipeline_stage");
        });
      }
    } catch (const std::exception& error) {
      FAIL() << error.what();
    }
  }
  // The graphs are worth something.
  EXPECT_GT(calls, static_cast<int64_t>(graphs()) * 2);
  EXPECT_GT(pipelines, static_cast<int64_t>(graphs()) / 4);
}

}  // namespace
}  // namespace tenon::llvm_backend
