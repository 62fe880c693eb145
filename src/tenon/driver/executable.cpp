// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/executable.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "tenon/driver/library_call.h"
#include "tenon/driver/tensors.h"
#include "tenon/interp/interpreter.h"
#include "tenon/runtime/arguments.h"
#include "tenon/runtime/program.h"
#include "tenon/runtime/strings.h"

namespace tenon {

void rethrow(const runtime::Error& error) {
  const bool argument = error.code() == TENON_ERROR_ARGUMENT;
  const bool unsupported = error.code() == TENON_ERROR_UNSUPPORTED;
  if (error.code() == TENON_ERROR_INTERNAL) throw InternalError(error.what());
  throw CompileError(argument      ? kBadInput
                     : unsupported ? kUnsupported
                                   : kRunFailed,
                     {}, "{}", error.what());
}

std::vector<Ref<TensorData>> Executable::run(const std::vector<Ref<TensorData>>& inputs) {
  check_inputs(signature_, inputs);
  return execute(inputs);
}

namespace {

class Interpreted final : public Executable {
 public:
  Interpreted(const IRModule& module, std::shared_ptr<const backend::Libraries> libraries,
              uint64_t rounding_seed)
      : Executable(signature_of(module)),
        interpreter_(module, options(std::move(libraries), rounding_seed)) {}

 private:
  std::vector<Ref<TensorData>> execute(const std::vector<Ref<TensorData>>& inputs) override {
    return interpreter_.run_main(inputs);
  }
  static interp::Options options(std::shared_ptr<const backend::Libraries> libraries,
                                 uint64_t rounding_seed) {
    interp::Options options;
    options.rounding_seed = rounding_seed;
    options.watch_open_loops = true;
    if (!libraries)
      libraries = std::make_shared<const backend::Libraries>(std::vector<std::string>{});
    options.call_library = library_caller(libraries);
    options.call_opaque = opaque_caller(libraries);
    return options;
  }
  interp::Interpreter interpreter_;
};

DLTensor view_of(DType dtype, const std::vector<int64_t>& dims, std::byte* data) {
  DLTensor view{};
  view.data = data;
  view.device = {kDLCPU, 0};
  view.ndim = static_cast<int32_t>(dims.size());
  view.dtype = dlpack_dtype(dtype);
  view.shape = const_cast<int64_t*>(dims.data());  // DLPack's struct has no const
  return view;
}
// Of an input: programs only read it.
DLTensor view_of(const TensorData& tensor) {
  return view_of(tensor.dtype, tensor.shape, const_cast<std::byte*>(tensor.data().data()));
}

class Compiled final : public Executable {
 public:
  explicit Compiled(std::shared_ptr<runtime::Program> program)
      : Executable(signature_of(program->declaration())), program_(std::move(program)) {}

 private:
  // On the memory of the inputs, and what it returns is in the memory that the program wrote: both may
  // be large constants.
  std::vector<Ref<TensorData>> execute(const std::vector<Ref<TensorData>>& inputs) override {
    std::vector<runtime::Tensor> texts;
    texts.reserve(inputs.size());  // views point into them
    std::vector<DLTensor> views;
    views.reserve(inputs.size());
    for (const Ref<TensorData>& input : inputs)
      views.push_back(input->dtype.is_string() ? texts.emplace_back(to_runtime(*input)).view()
                                               : view_of(*input));
    std::vector<const DLTensor*> pointers;
    pointers.reserve(inputs.size());
    for (const DLTensor& view : views) pointers.push_back(&view);
    try {
      if (const auto dims = only_shape()) return {only_output(pointers, *dims)};
      const std::vector<runtime::Tensor> results = program_->run(pointers);
      std::vector<Ref<TensorData>> outputs;
      outputs.reserve(results.size());
      for (size_t i = 0; i < results.size(); ++i)
        outputs.push_back(taken_over(results[i], signature().outputs[i].dtype));
      return outputs;
    } catch (const runtime::Error& error) {
      rethrow(error);
    }
  }
  // Of the only output, numbers of a shape that is known before the run.
  std::optional<std::vector<int64_t>> only_shape() const {
    const auto outputs = program_->outputs();
    if (outputs.size() != 1 || outputs[0].code == TENON_DTYPE_STRING) return std::nullopt;
    std::vector<int64_t> dims(outputs[0].dims, outputs[0].dims + outputs[0].ndim);
    if (std::ranges::any_of(dims, [](int64_t dim) { return dim < 0; })) return std::nullopt;
    return dims;
  }
  // In memory that a program with it as a constant takes over.
  Ref<TensorData> only_output(const std::vector<const DLTensor*>& inputs,
                              const std::vector<int64_t>& dims) {
    const DType dtype = signature().outputs.at(0).dtype;
    return TensorData::filled(dtype, dims, [&](std::span<std::byte> bytes) {
      DLTensor view = view_of(dtype, dims, bytes.data());
      DLTensor* output = &view;
      program_->run(inputs, std::span(&output, 1));
    });
  }
  std::shared_ptr<runtime::Program> program_;
};

}  // namespace

std::unique_ptr<Executable> interpreted(const IRModule& module,
                                        std::shared_ptr<const backend::Libraries> libraries,
                                        uint64_t rounding_seed) {
  return std::make_unique<Interpreted>(module, std::move(libraries), rounding_seed);
}
std::unique_ptr<Executable> compiled(std::shared_ptr<runtime::Program> program) {
  return std::make_unique<Compiled>(std::move(program));
}

BoundRun::BoundRun(std::shared_ptr<runtime::Program> program,
                   const std::vector<Ref<TensorData>>& inputs)
    : program_(std::move(program)), signature_(signature_of(program_->declaration())) {
  check_inputs(signature_, inputs);
  try {
    for (const Ref<TensorData>& input : inputs) inputs_.push_back(to_runtime(*input));
    for (const runtime::Tensor& input : inputs_) input_views_.push_back(input.view());
    std::vector<const DLTensor*> pointers;
    for (const DLTensor& view : input_views_) pointers.push_back(&view);
    const runtime::Program::Shapes shapes = program_->shapes(pointers);
    workspace_bytes_ = shapes.workspace_bytes;
    size_t at = 0;
    for (const TenonTensorInfo& info : program_->outputs()) {
      const auto begin = shapes.output_dims.begin() + static_cast<std::ptrdiff_t>(at);
      output_shapes_.emplace_back(begin, begin + info.ndim);
      at += static_cast<size_t>(info.ndim);
      is_late_ |= runtime::is_late(info);
      outputs_.push_back(runtime::is_late(info)
                             ? runtime::Tensor()
                             : program_->new_output(outputs_.size(), output_shapes_.back()));
      if (info.code == TENON_DTYPE_STRING && !runtime::is_late(info))
        std::memset(outputs_.back().data(), 0, static_cast<size_t>(outputs_.back().bytes()));
    }
  } catch (const runtime::Error& error) {
    rethrow(error);
  }
}

// What the last run left in outputs of strings.
void BoundRun::release_strings() {
  if (is_late_) return;  // they own them
  for (const runtime::Tensor& output : outputs_) {
    DLTensor view = output.view();
    runtime::release_texts(view);
  }
}

BoundRun::~BoundRun() { release_strings(); }

double BoundRun::run() {
  release_strings();
  std::vector<const DLTensor*> inputs;
  for (const DLTensor& view : input_views_) inputs.push_back(&view);
  if (is_late_) return run_late(inputs);
  output_views_.clear();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    output_shapes_[i] = outputs_[i].shape();
    output_views_.push_back(outputs_[i].view());
    output_views_.back().shape = output_shapes_[i].data();
  }
  std::vector<DLTensor*> outputs;
  for (DLTensor& view : output_views_) outputs.push_back(&view);
  try {
    const auto start = std::chrono::steady_clock::now();
    program_->run(inputs, outputs);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  } catch (const runtime::Error& error) {
    rethrow(error);
  }
}

double BoundRun::run_late(const std::vector<const DLTensor*>& inputs) {
  try {
    const auto start = std::chrono::steady_clock::now();
    outputs_ = program_->run(inputs);
    const auto end = std::chrono::steady_clock::now();
    for (size_t i = 0; i < outputs_.size(); ++i) output_shapes_[i] = outputs_[i].shape();
    return std::chrono::duration<double>(end - start).count();
  } catch (const runtime::Error& error) {
    rethrow(error);
  }
}

std::vector<Ref<TensorData>> BoundRun::outputs() const {
  std::vector<Ref<TensorData>> out;
  for (size_t i = 0; i < outputs_.size(); ++i)
    out.push_back(
        from_runtime(outputs_[i].reshaped(output_shapes_[i]), signature_.outputs[i].dtype));
  return out;
}

}  // namespace tenon
