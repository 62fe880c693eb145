// SPDX-License-Identifier: Apache-2.0
// Times kernels of the default schedule one by one: their plain definition is scheduled, lowered,
// compiled for a target and run on one thread. Usage: bench_kernels [-t TARGET] [-k SUBSTRING] [-s]
// [-d]; -s prints the assembly of the kernel, -d the schedule's trace. The best of many short runs,
// in GFLOP/s and as a share of what the core does on multiply-adds in registers.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "schedule_kernels.h"
#include "tenon/backend/llvm/host.h"
#include "tenon/backend/llvm/jit.h"
#include "tenon/memory/plan_module.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tenon/tir/schedule/layout_choice.h"
#include "tenon/tir/transforms.h"

namespace tenon {
namespace {

using namespace tir;
using tir::testing::compute;
using tir::testing::tensor;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

IRModule lower(IRModule module) {
  for (const auto pass : {lower_init_block, plan_and_update_buffer_allocation_location,
                          convert_blocks_to_opaque, compact_buffer_allocation, lower_match_buffer,
                          lower_opaque_block, tir::simplify, lift_scratch})
    module = pass(std::move(module));
  module = memory::plan_memory(std::move(module));
  for (const auto pass : {flatten_buffer, vectorize_loop, unroll_loop, fuse_multiply_add,
                          lower_intrinsics, tir::simplify, remove_no_op})
    module = pass(std::move(module));
  return module;
}

IRModule program_of(const Ref<PrimFunc>& kernel, const Target& target) {
  IRModule module;
  module.attrs.set("target", target.str());
  module.set("kernel", kernel);
  const Ref<PrimFunc> renewed = renew_definitions(kernel);
  std::vector<NodePtr> args;
  for (const Ref<Buffer>& buffer : renewed->buffers) args.push_back(BufferRegion::whole(buffer));
  module.set("main",
             PrimFunc::of_buffers(
                 renewed->buffers, make<CallTir>(make<GlobalVar>("kernel"), args),
                 Attrs{{"tenon.entry", true},
                       {"tenon.num_inputs", static_cast<int64_t>(renewed->buffers.size()) - 1}}));
  return module;
}

struct Case {
  std::string name;
  Ref<PrimFunc> function;
  double flops;
};

std::vector<Case> cases(const Target& target) {
  std::vector<Case> out;
  const auto conv = [&](std::string name, int64_t ic, int64_t oc, int64_t size, int64_t kernel = 1,
                        int64_t stride = 1, bool residual = false) {
    ConvShape shape;
    shape.in_channels = ic;
    shape.out_channels = oc;
    const int64_t pad = kernel / 2;
    const int64_t n = (size + 2 * pad - kernel) / stride + 1;
    shape.out_height = shape.out_width = n;
    shape.kernel_height = shape.kernel_width = kernel;
    shape.stride_height = shape.stride_width = stride;
    const ConvLayout layout = choose_conv_layout(shape, target);
    out.push_back({name,
                   testing::conv({.ic = ic,
                                  .oc = oc,
                                  .h = size,
                                  .w = size,
                                  .kernel = kernel,
                                  .stride = stride,
                                  .pad = pad,
                                  .v = layout.block,
                                  .group = layout.weight_group,
                                  .residual = residual}),
                   2.0 * static_cast<double>(ic * oc * n * n * kernel * kernel)});
  };
  const auto dense = [&](int64_t m, int64_t n, int64_t k) {
    out.push_back({fmt::format("dense {}x{}x{}", m, n, k),
                   testing::dense(int64(m), n, k, choose_panel_width(m, n, k, target)),
                   2.0 * static_cast<double>(m * n * k)});
  };
  conv("1x1 64->256 56", 64, 256, 56);
  conv("1x1 64->256 56 residual", 64, 256, 56, 1, 1, true);
  conv("1x1 256->64 56", 256, 64, 56);
  conv("1x1 512->128 28", 512, 128, 28);
  conv("1x1 256->1024 14", 256, 1024, 14);
  conv("1x1 1024->256 14", 1024, 256, 14);
  conv("1x1 512->2048 7", 512, 2048, 7);
  conv("1x1 2048->512 7", 2048, 512, 7);
  conv("1x1s2 256->512 56", 256, 512, 56, 1, 2);
  conv("3x3 64 56", 64, 64, 56, 3);
  conv("3x3 128 28", 128, 128, 28, 3);
  conv("3x3 256 14", 256, 256, 14, 3);
  conv("3x3 512 7", 512, 512, 7, 3);
  conv("3x3s2 128 56", 128, 128, 56, 3, 2);
  conv("1x1 72->264 57 odd", 72, 264, 57);
  conv("3x3 72 57 odd", 72, 72, 57, 3);
  dense(128, 768, 768);
  dense(128, 3072, 768);
  dense(128, 768, 3072);
  dense(197, 192, 768);
  dense(64, 500, 800);
  dense(120, 1000, 801);
  dense(1, 1000, 2048);
  dense(64, 10, 500);
  return out;
}

int main_of(int argc, char** argv) {
  std::string text = "native", filter;
  bool assembly = false, trace = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "-t") && i + 1 < argc)
      text = argv[++i];
    else if (!std::strcmp(argv[i], "-k") && i + 1 < argc)
      filter = argv[++i];
    else if (!std::strcmp(argv[i], "-s"))
      assembly = true;
    else if (!std::strcmp(argv[i], "-d"))
      trace = true;
  }
  const Target target = llvm_backend::resolve_target(text);
  std::printf("%s\n", target.str().c_str());
  TenonContext context{};
  context.abi_version = TENON_ABI_VERSION;
  context.struct_size = sizeof(TenonContext);
  context.parallel_for = [](TenonContext* ctx, TenonTask body, void* env, int64_t tasks) {
    for (int64_t task = 0; task < tasks; ++task)
      if (const int32_t code = body(ctx, env, task)) return code;
    return int32_t{0};
  };
  context.report = [](TenonContext*, int32_t code, const char*, const char* message, int64_t,
                      int64_t) {
    std::printf("failed: %s\n", message);
    return code;
  };
  for (const Case& c : cases(target)) {
    if (c.name.find(filter) == std::string::npos) continue;
    const double start = now();
    const Schedule schedule = schedule_by_default(c.function, target);
    const double scheduled = now();
    if (trace) std::printf("%s\n", schedule.trace().str().c_str());
    const Ref<PrimFunc> kernel = schedule.func()->with_attr("tir.is_scheduled", true);
    const IRModule module = lower(program_of(kernel, target));
    const double lowered = now();
    if (assembly) std::printf("%s\n", llvm_backend::emit_assembly(module, target).c_str());
    const auto program = llvm_backend::link_in_process(llvm_backend::compile(module, target));
    const double compiled = now();
    std::vector<void*> buffers;
    for (const Ref<Buffer>& buffer : c.function->buffers) {
      size_t count = 1;
      const std::vector<int64_t> shape = as_ints(buffer->shape).value();
      for (const int64_t dim : shape) count *= static_cast<size_t>(dim);
      auto* data = static_cast<float*>(std::aligned_alloc(64, (count * 4 + 127) / 64 * 64));
      for (size_t i = 0; i < count; ++i) data[i] = static_cast<float>(i % 17) * 0.01f - 0.05f;
      buffers.push_back(data);
    }
    const auto bytes = module.find<PrimFunc>("main")->attrs.get<int64_t>("tenon.workspace_bytes");
    void* workspace =
        std::aligned_alloc(64, static_cast<size_t>(bytes.value_or(0) + 127) / 64 * 64);
    double best = 1e9;
    const double end = now() + 0.25;
    for (int i = 0; i < 5 || now() < end; ++i) {
      const double begin = now();
      program->program()->run(&context, buffers.data(), nullptr, workspace,
                              program->program()->constants);
      best = std::min(best, now() - begin);
    }
    std::printf("%-28s %8.1f us %7.1f GFLOP/s   schedule %5.1f ms, lower %5.1f, compile %5.1f\n",
                c.name.c_str(), best * 1e6, c.flops / best * 1e-9, (scheduled - start) * 1e3,
                (lowered - scheduled) * 1e3, (compiled - lowered) * 1e3);
    std::fflush(stdout);
    for (void* data : buffers) std::free(data);
    std::free(workspace);
  }
  return 0;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  try {
    return tenon::main_of(argc, argv);
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
