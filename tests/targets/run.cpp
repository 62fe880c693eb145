// SPDX-License-Identifier: Apache-2.0
#include "run.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "tenon/backend/llvm/host.h"
#include "tenon/backend/llvm/shared_library.h"
#include "tenon/driver/c_program.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/console.h"
#include "tenon/driver/executable.h"
#include "tenon/support/narrow_float.h"

namespace tenon::testing_targets {

Way way_of(const Target& target) {
  if (llvm_backend::missing_here(target).empty()) return Way::kHere;
#ifdef TENON_EMULATED_RUN
  if (target.triple == kArmTriple) return Way::kEmulated;
#endif
  return Way::kInterpreted;
}

#ifdef TENON_EMULATED_RUN

// The rank, the dimensions, then the elements, as emulated_run.cpp reads them.
static void write_tensor(const std::string& path, const TensorData& tensor) {
  std::ofstream out(path, std::ios::binary);
  const auto rank = static_cast<int64_t>(tensor.shape.size());
  out.write(reinterpret_cast<const char*>(&rank), sizeof(rank));
  out.write(reinterpret_cast<const char*>(tensor.shape.data()), rank * 8);
  out.write(reinterpret_cast<const char*>(tensor.data().data()), tensor.bytes());
}

static Ref<TensorData> read_written(const std::string& path, DType dtype) {
  const std::string all = read_file(path);
  int64_t rank = 0;
  std::memcpy(&rank, all.data(), 8);
  std::vector<int64_t> shape(static_cast<size_t>(rank));
  std::memcpy(shape.data(), all.data() + 8, shape.size() * 8);
  std::vector<std::byte> bytes(all.size() - 8 - shape.size() * 8);
  std::memcpy(bytes.data(), all.data() + all.size() - bytes.size(), bytes.size());
  return TensorData::owned(dtype, std::move(shape), std::move(bytes));
}

static Tensors emulate(const LoweredModule& lowered, const CompileRequest& request,
                       const Tensors& inputs, int threads) {
  const backend::TemporaryFolder folder;
  llvm_backend::write_shared_library(generate(lowered, request), folder.file("program.so"));
  std::string command = std::string(TENON_EMULATED_RUN) + " " + folder.file("program.so") + " " +
                        std::to_string(threads);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string file = folder.file("in" + std::to_string(i));
    write_tensor(file, *inputs[i]);
    command += " " + file;
  }
  command += " --";
  const Signature signature = signature_of(lowered.pipeline.module);
  for (size_t i = 0; i < signature.outputs.size(); ++i)
    command += " " + folder.file("out" + std::to_string(i));
  command += " > " + folder.file("said") + " 2>&1";
  if (std::system(command.c_str()) != 0)
    throw std::runtime_error("the emulated program fails: " + read_file(folder.file("said")));
  Tensors outputs;
  for (size_t i = 0; i < signature.outputs.size(); ++i)
    outputs.push_back(
        read_written(folder.file("out" + std::to_string(i)), signature.outputs[i].dtype));
  return outputs;
}

#endif

static Tensors run_program(const std::shared_ptr<runtime::Program>& program, const Tensors& inputs,
                           int threads) {
  program->set_threads(threads);
  BoundRun bound(program, inputs);
  bound.run();
  return bound.outputs();
}

Tensors run_for(const IRModule& module, const Target& target, const Tensors& inputs, int threads,
                const std::shared_ptr<const backend::Libraries>& libraries,
                const std::optional<Pipeline>& pipeline) {
  CompileRequest request;
  request.name = "model";
  request.target = target;
  request.whole = pipeline;
  LoweredModule lowered = lower(module, request);
  const Way way = way_of(target);
  if (way == Way::kInterpreted) return interpreted(lowered.pipeline.module, libraries)->run(inputs);
#ifdef TENON_EMULATED_RUN
  if (way == Way::kEmulated) return emulate(lowered, request, inputs, threads);
#endif
  if (target.kind == "llvm")
    return run_program(link(generate(lowered, request, libraries.get()), libraries), inputs,
                       threads);
  COptions options;
  options.constants_file = true;
  const c_backend::Program program = generate_c(lowered, request, options);
  return run_program(compile_c(program, request, lowered, libraries), inputs, threads);
}

Ref<TensorData> random_elements(DType dtype, std::vector<int64_t> shape, unsigned seed,
                                int64_t below) {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  std::mt19937 random(seed);
  std::vector<std::byte> bytes;
  const auto put = [&](const auto value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), from, from + sizeof(value));
  };
  for (int64_t i = 0; i < count; ++i) {
    const auto integer = static_cast<int64_t>(random() % static_cast<uint64_t>(below));
    const float real = static_cast<float>(random() >> 8) / static_cast<float>(1 << 23) - 1;
    if (dtype == kFloat32)
      put(real);
    else if (dtype == kInt64)
      put(integer);
    else if (dtype == kInt32)
      put(static_cast<int32_t>(integer));
    else if (dtype == kInt8)
      put(static_cast<int8_t>(integer));
    else if (dtype == kUInt8)
      put(static_cast<uint8_t>(integer));
    else if (dtype == kFloat16)
      put(double_to_half(static_cast<double>(real)));
    else
      throw std::invalid_argument("no random elements of " + dtype.str());
  }
  return TensorData::owned(dtype, std::move(shape), std::move(bytes));
}

}  // namespace tenon::testing_targets
