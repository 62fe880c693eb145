// SPDX-License-Identifier: Apache-2.0
// Runs a kernel through the whole back end: a `main` that calls it on its buffers, compiled and
// linked in process, with a host of two threads' worth of parallel_for.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "tenon/backend/llvm/host.h"
#include "tenon/backend/llvm/jit.h"
#include "tenon/tir/stmt.h"

namespace tenon::llvm_backend {

struct Host {
  TenonContext context{};
  int32_t code = 0;
  std::string message, where;
  int64_t value = 0, bound = 0;
  int parallel_loops = 0;

  Host() {
    context.abi_version = TENON_ABI_VERSION;
    context.struct_size = sizeof(TenonContext);
    context.threads = 1;
    context.state = this;
    context.parallel_for = [](TenonContext* ctx, TenonTask body, void* env, int64_t tasks) {
      ++static_cast<Host*>(ctx->state)->parallel_loops;
      int32_t codes[2] = {0, 0};
      const auto half = [&](int which) {
        for (int64_t task = which; task < tasks && codes[which] == 0; task += 2)
          codes[which] = body(ctx, env, task);
      };
      std::thread other(half, 1);
      half(0);
      other.join();
      return codes[0] ? codes[0] : codes[1];
    };
    context.report = [](TenonContext* ctx, int32_t code, const char* where, const char* message,
                        int64_t value, int64_t bound) {
      auto* host = static_cast<Host*>(ctx->state);
      host->code = code;
      host->message = message;
      host->where = where;
      host->value = value;
      host->bound = bound;
      return code;
    };
  }
};

/// A buffer's bytes, aligned as programs expect.
struct Bytes {
  explicit Bytes(size_t size) : size(size), data(std::aligned_alloc(64, (size + 127) / 64 * 64)) {
    std::memset(data, 0xA5, size);
  }
  template <typename T>
  explicit Bytes(const std::vector<T>& values) : Bytes(values.size() * sizeof(T)) {
    std::memcpy(data, values.data(), size);
  }
  Bytes(Bytes&& other) noexcept : size(other.size), data(std::exchange(other.data, nullptr)) {}
  Bytes& operator=(Bytes&& other) noexcept {
    std::swap(size, other.size);
    std::swap(data, other.data);
    return *this;
  }
  ~Bytes() { std::free(data); }
  template <typename T>
  std::vector<T> as() const {
    std::vector<T> out(size / sizeof(T));
    std::memcpy(out.data(), data, size);
    return out;
  }
  size_t size;
  void* data;
};

/// `main` with the kernel's buffers as inputs (all but the last `outputs`) and outputs.
inline IRModule program_of(const Ref<tir::PrimFunc>& kernel, size_t outputs = 1) {
  IRModule module;
  module.set("kernel", kernel);
  Ref<tir::PrimFunc> renewed = renew_definitions(kernel);
  std::vector<NodePtr> args;
  std::vector<Ref<tir::Buffer>> buffers;
  for (const Ref<tir::Buffer>& buffer : renewed->buffers) {
    buffers.push_back(buffer);
    args.push_back(tir::BufferRegion::whole(buffer));
  }
  const auto inputs = static_cast<int64_t>(buffers.size() - outputs);
  module.set("main",
             tir::PrimFunc::of_buffers(buffers, make<tir::CallTir>(make<GlobalVar>("kernel"), args),
                                       Attrs{{"tenon.entry", true}, {"tenon.num_inputs", inputs}}));
  return module;
}

inline const Target& host() {
  static const Target target = host_target();
  return target;
}

inline std::unique_ptr<LoadedProgram> load(const IRModule& module, const Target& target = host()) {
  return link_in_process(compile(module, target));
}

inline int32_t run(const LoadedProgram& program, Host& host, const std::vector<Bytes>& buffers,
                   const std::vector<int64_t>& symbols = {}, void* workspace = nullptr) {
  std::vector<void*> pointers;
  for (const Bytes& bytes : buffers) pointers.push_back(bytes.data);
  return program.program()->run(&host.context, pointers.data(), symbols.data(), workspace,
                                program.program()->constants);
}

/// Runs `kernel` on `inputs` and returns its one output of `out_bytes` bytes.
inline Bytes run_kernel(const Ref<tir::PrimFunc>& kernel, std::vector<Bytes> inputs,
                        size_t out_bytes, const Target& target = host()) {
  const auto program = load(program_of(kernel), target);
  inputs.emplace_back(out_bytes);
  Host host;
  EXPECT_EQ(run(*program, host, inputs), 0) << host.message;
  return std::move(inputs.back());
}

}  // namespace tenon::llvm_backend
