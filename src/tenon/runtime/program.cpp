// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/program.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "tenon/runtime/float_state.h"
#include "tenon/runtime/run_context.h"
#include "tenon/runtime/shared_object.h"
#include "tenon/runtime/strings.h"

namespace tenon::runtime {

static constexpr int kMaxThreads = 4096;

// Generated code is laid out by these, not by a C compiler that reads the header.
static_assert(sizeof(TenonTensorInfo) == 32 && offsetof(TenonTensorInfo, alignment) == 24);
static_assert(sizeof(TenonSymbol) == 40 && offsetof(TenonSymbol, index) == 16);
static_assert(offsetof(TenonContext, parallel_for) == 16 &&
              offsetof(TenonContext, output_dims) == 32 &&
              offsetof(TenonContext, call_packed) == 48);
static_assert(offsetof(TenonProgram, shapes) == 56 && offsetof(TenonProgram, manifest) == 112 &&
              offsetof(TenonProgram, packed) == 120 && offsetof(TenonProgram, strings) == 136 &&
              offsetof(TenonProgram, asked_by) == 152);

// The bytes of a declaration of a minor version.
static size_t declaration_size(uint32_t version) {
  switch (version & 0xffff) {
    case 0: return offsetof(TenonProgram, manifest) + sizeof(const char*);
    case 1: return offsetof(TenonProgram, packed_count) + sizeof(int64_t);
    default: return offsetof(TenonProgram, string_count) + sizeof(int64_t);
  }
}

static std::string version_text(uint32_t version) {
  return std::to_string(version >> 16) + "." + std::to_string(version & 0xffff);
}

static bool is_aligned(const void* pointer, int64_t alignment) {
  return (reinterpret_cast<uintptr_t>(pointer) & static_cast<uintptr_t>(alignment - 1)) == 0;
}

static int64_t alignment_of(const TenonProgram& program, const TenonTensorInfo& tensor) {
  return tensor.alignment > 0 ? tensor.alignment : program.alignment;
}

Program::Program(const TenonProgram* program, const void* constants, std::shared_ptr<void> owner,
                 Packed packed)
    : owner_(std::move(owner)) {
  if (program == nullptr) throw Error(TENON_ERROR_LOAD, "not a valid program: it is null");
  uint32_t version = program->abi_version;
  if (version >> 16 != TENON_ABI_MAJOR || version > TENON_ABI_VERSION)
    throw Error(TENON_ERROR_LOAD, "program was compiled for version " + version_text(version) +
                                      " of the runtime interface; this runtime provides " +
                                      version_text(TENON_ABI_VERSION));
  const size_t least = declaration_size(version);
  if (program->struct_size < least)
    throw Error(TENON_ERROR_LOAD, "not a valid program: its declaration has " +
                                      std::to_string(program->struct_size) + " bytes; version " +
                                      version_text(version) + " has " + std::to_string(least));
  std::memcpy(&program_, program, std::min<size_t>(program->struct_size, sizeof(TenonProgram)));
  check_declaration(program_);

  constants_ = program_.constants != nullptr ? program_.constants : constants;
  if (program_.constant_bytes > 0 && constants_ == nullptr)
    throw Error(TENON_ERROR_LOAD, "program has " + std::to_string(program_.constant_bytes) +
                                      " bytes of constants outside of it; none were given");
  if (program_.constant_bytes > 0 && !is_aligned(constants_, program_.alignment))
    throw Error(TENON_ERROR_LOAD,
                "constants are not aligned; the program declares an alignment of " +
                    std::to_string(program_.alignment) + " bytes");
  if (program_.packed_count < 0 || (program_.packed_count > 0 && program_.packed == nullptr))
    throw Error(TENON_ERROR_LOAD, "not a valid program: its packed functions are null");
  if (program_.string_count < 0 || (program_.string_count > 0 && program_.strings == nullptr))
    throw Error(TENON_ERROR_LOAD, "not a valid program: its strings are null");
  if (packed == Packed::kNeeded)
    packed_ = resolve_packed({program_.packed, static_cast<size_t>(program_.packed_count)});
}

std::shared_ptr<Program> Program::wrap(const TenonProgram* program, const void* constants,
                                       std::shared_ptr<void> owner) {
  return std::shared_ptr<Program>(
      new Program(program, constants, std::move(owner), Packed::kNeeded));
}

std::shared_ptr<Program> Program::load(const std::string& path, const std::string& prefix,
                                       const void* constants) {
  return open(path, prefix, constants, Packed::kNeeded);
}

std::shared_ptr<Program> Program::inspect(const std::string& path) {
  return open(path, "", nullptr, Packed::kMayBeMissing);
}

std::shared_ptr<Program> Program::open(const std::string& path, const std::string& prefix,
                                       const void* constants, Packed packed) {
  // Without a slash dlopen would look in the system's folders.
  std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* handle = open_shared_object(file);
  if (handle == nullptr) {
    const char* reason = dlerror();
    throw Error(TENON_ERROR_LOAD,
                "cannot load `" + path + "`: " + (reason != nullptr ? reason : "unknown reason"));
  }
  std::shared_ptr<void> library(handle, dlclose);
  std::string symbol = prefix.empty() ? TENON_PROGRAM_SYMBOL : prefix + "_" + TENON_PROGRAM_SYMBOL;
  void* address = dlsym(handle, symbol.c_str());
  if (address == nullptr)
    throw Error(TENON_ERROR_LOAD,
                "`" + path + "` has no function `" + symbol + "`; it is not a compiled program");
  auto function = reinterpret_cast<TenonProgramFunction>(address);
  try {
    return std::shared_ptr<Program>(new Program(function(), constants, std::move(library), packed));
  } catch (const Error& error) {
    throw Error(error.code(), "`" + path + "`: " + error.what());
  }
}

void Program::set_threads(int threads) {
  if (threads < 0 || threads > kMaxThreads)
    throw Error(TENON_ERROR_ARGUMENT,
                std::to_string(threads) + " threads wanted; possible are 1 to " +
                    std::to_string(kMaxThreads) + ", or 0 for as many as there are CPUs");
  std::lock_guard lock(mutex_);
  threads_ = threads;
  pool_ = nullptr;
}

Program::Shapes Program::shapes(std::span<const DLTensor* const> inputs) const {
  return shapes_of(check_inputs(program_, inputs));
}

Program::Shapes Program::shapes_of(std::vector<int64_t> symbols) const {
  check_symbols(program_, symbols);
  Shapes shapes;
  shapes.symbols = std::move(symbols);
  for (const TenonTensorInfo& output : outputs()) {
    for (int32_t i = 0; i < output.ndim; ++i) {
      int64_t dim = output.dims[i];
      if (dim < 0)
        dim = dim == TENON_DIM_COMPUTED ? (is_late(output) ? -1 : 0)
                                        : shapes.symbols[static_cast<size_t>(-1 - dim)];
      shapes.output_dims.push_back(dim);
    }
  }
  shapes.workspace_bytes = std::max<int64_t>(program_.workspace_bytes, 0);
  if (program_.shapes == nullptr) return shapes;

  RunContext context(nullptr);
  std::vector<int64_t> declared = shapes.output_dims;
  int32_t code = program_.shapes(context.context(), shapes.symbols.data(),
                                 shapes.output_dims.data(), &shapes.workspace_bytes);
  context.check(code, "computing the shapes");
  if (shapes.workspace_bytes < 0)
    throw Error(TENON_ERROR_SHAPE, "dimensions of the inputs give a workspace of " +
                                       std::to_string(shapes.workspace_bytes) +
                                       " bytes: a value in the program has a negative dimension");
  size_t at = 0;
  for (const TenonTensorInfo& output : outputs()) {
    for (int32_t i = 0; i < output.ndim; ++i, ++at) {
      if (is_late(output)) {
        shapes.output_dims[at] = output.dims[i] == TENON_DIM_COMPUTED ? -1 : declared[at];
        continue;
      }
      if (output.dims[i] != TENON_DIM_COMPUTED && shapes.output_dims[at] != declared[at])
        throw Error(TENON_ERROR_INTERNAL, std::string("program computes dimension ") +
                                              std::to_string(i) + " of output `" + output.name +
                                              "` as " + std::to_string(shapes.output_dims[at]) +
                                              " and declares it as " +
                                              std::to_string(declared[at]));
    }
  }
  return shapes;
}

/// The dimensions of each output, out of all concatenated.
static std::vector<std::vector<int64_t>> split(std::span<const TenonTensorInfo> outputs,
                                               std::span<const int64_t> dims) {
  std::vector<std::vector<int64_t>> shapes;
  for (const TenonTensorInfo& output : outputs) {
    std::span<const int64_t> own = dims.first(static_cast<size_t>(output.ndim));
    shapes.emplace_back(own.begin(), own.end());
    dims = dims.subspan(own.size());
  }
  return shapes;
}

/// A workspace, for one run.
struct Program::Lease {
  Program& program;
  Workspace workspace;
  std::shared_ptr<ThreadPool> pool;

  Lease(Program& owner, int64_t bytes) : program(owner) {
    {
      std::lock_guard lock(program.mutex_);
      if (program.pool_ == nullptr) program.pool_ = ThreadPool::shared(program.threads_);
      pool = program.pool_;
      auto best = std::max_element(
          program.idle_.begin(), program.idle_.end(),
          [](const Workspace& a, const Workspace& b) { return a.bytes < b.bytes; });
      if (best != program.idle_.end()) {
        workspace = std::move(*best);
        program.idle_.erase(best);
      }
    }
    if (workspace.data != nullptr && workspace.bytes >= bytes) return;
    workspace = {};  // before the larger one is there
    try {
      workspace = {allocate(bytes, program.program_.alignment), bytes};
    } catch (const Error& error) {
      throw Error(error.code(), program.asked_by(program.outputs().size()) + error.what());
    }
  }
  ~Lease() {
    if (workspace.data.use_count() > 1) return;  // a packed function kept it
    std::lock_guard lock(program.mutex_);
    try {
      program.idle_.push_back(std::move(workspace));
    } catch (const std::bad_alloc&) {  // then it is not kept
    }
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
};

static bool is_string(const TenonTensorInfo& tensor) { return tensor.code == TENON_DTYPE_STRING; }

/// What a run asks for while it goes on.
class Program::LateMemory final : public MemoryProvider {
 public:
  LateMemory(const Program& program, Shapes& shapes, const Provide& provide, RunMemory* memory)
      : program_(program), shapes_(shapes), provide_(provide), memory_(memory) {}

  void* memory(int32_t slot, int64_t bytes) override {
    if (bytes < 0)
      throw Error(TENON_ERROR_SHAPE, "a value in the program has a negative dimension");
    if (slot < 0 || slot > kMostSlots) throw Error(TENON_ERROR_INTERNAL, "no such slot");
    const auto place = static_cast<size_t>(slot);
    if (slots_.size() <= place) slots_.resize(place + 1);
    Workspace& slot_memory = slots_[place];
    if (slot_memory.data == nullptr || slot_memory.bytes < bytes) {
      // What grows once grows again.
      const int64_t held = slot_memory.data == nullptr ? 0 : slot_memory.bytes;
      const int64_t taken = std::max(bytes, held < INT64_MAX / 2 ? 2 * held : held);
      Workspace larger = {allocate(taken, program_.program_.alignment), taken};
      if (held > 0)
        std::memcpy(larger.data.get(), slot_memory.data.get(), static_cast<size_t>(held));
      slot_memory = std::move(larger);
      if (memory_ != nullptr) {
        memory_->keep(slot_memory.data);
        memory_->add_writable(slot_memory.data.get(), taken);
      }
    }
    return slots_[place].data.get();
  }

  void* output(int32_t output, const int64_t* dims) override {
    const auto place = static_cast<size_t>(output);
    const std::span<const TenonTensorInfo> all = program_.outputs();
    if (output < 0 || place >= all.size()) throw Error(TENON_ERROR_INTERNAL, "no such output");
    size_t at = 0;
    for (size_t i = 0; i < place; ++i) at += static_cast<size_t>(all[i].ndim);
    const std::span<const int64_t> own(dims, static_cast<size_t>(all[place].ndim));
    std::copy(own.begin(), own.end(),
              shapes_.output_dims.begin() + static_cast<std::ptrdiff_t>(at));
    void* data = provide_(place, own);
    if (memory_ != nullptr)
      memory_->add_writable(
          data,
          byte_count(is_string(all[place]) ? kStringNumber : declared_dtype(all[place]), own));
    return data;
  }

 private:
  static constexpr int32_t kMostSlots = 1 << 20;
  const Program& program_;
  Shapes& shapes_;
  const Provide& provide_;
  RunMemory* memory_;
  std::vector<Workspace> slots_;
};

/// The strings of one run: numbers stand for those of the inputs.
class Program::Strings {
 public:
  Strings(const TenonProgram& program, std::span<const DLTensor* const> inputs)
      : inputs_(inputs.begin(), inputs.end()) {
    if (!uses_strings(program)) return;
    table_.emplace(std::span(program.strings, static_cast<size_t>(program.string_count)));
    numbers_.reserve(inputs.size());
    views_.reserve(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!is_string(program.inputs[i])) continue;
      numbers_.push_back(numbers_of(*table_, *inputs[i]));
      views_.push_back(numbers_.back().view());
      inputs_[i] = &views_.back();
    }
  }
  std::span<const DLTensor* const> inputs() const { return inputs_; }
  /// Null where the program has none.
  StringTable* table() { return table_ ? &*table_ : nullptr; }

 private:
  std::optional<RunStrings> table_;
  std::vector<Tensor> numbers_;
  std::vector<DLTensor> views_;
  std::vector<const DLTensor*> inputs_;
};

// Outputs in the memory of an input have its contents: where the caller gave other memory, a copy.
static void share_inputs(const TenonProgram& program, std::span<const DLTensor* const> inputs,
                         std::span<const int64_t> output_dims, std::span<void* const> buffers) {
  for (int32_t i = 0; i < program.output_count; ++i) {
    const TenonTensorInfo& output = program.outputs[i];
    const std::span<const int64_t> dims = output_dims.first(static_cast<size_t>(output.ndim));
    output_dims = output_dims.subspan(dims.size());
    const std::optional<size_t> input = shared_input(output);
    if (!input) continue;
    const DLTensor& given = *inputs[*input];
    const std::span<const int64_t> has(given.shape, static_cast<size_t>(given.ndim));
    if (!std::equal(dims.begin(), dims.end(), has.begin(), has.end()))
      throw Error(TENON_ERROR_SHAPE, std::string("output `") + output.name + "` of shape " +
                                         shape_text(dims) + " shares memory with input `" +
                                         program.inputs[*input].name + "` of shape " +
                                         shape_text(has));
    void* to = buffers[inputs.size() + static_cast<size_t>(i)];
    const void* from = buffers[*input];
    if (to != from) std::memcpy(to, from, static_cast<size_t>(byte_count(given.dtype, has)));
  }
}

/// Arguments have been checked; `outputs` has null for those that are provided later. Leaves the
/// outputs' actual dimensions in `shapes`.
void Program::execute(std::span<const DLTensor* const> inputs,
                      std::span<const DLTensor* const> outputs, Shapes& shapes,
                      const Provide& provide, StringTable* strings,
                      std::shared_ptr<RunMemory> memory) {
  alignas(kAlignment) static char
      nothing[kAlignment];  // where tensors without elements are said to lie
  std::vector<void*> buffers;
  std::vector<std::shared_ptr<void>> copies;
  buffers.reserve(inputs.size() + outputs.size());
  auto place = [&](const DLTensor& tensor, const TenonTensorInfo& declared) -> int64_t {
    int64_t bytes = byte_count(tensor.dtype, {tensor.shape, static_cast<size_t>(tensor.ndim)});
    int64_t alignment = alignment_of(program_, declared);
    void* data = data_of(tensor);
    bool needs_copy = (bytes == 0 ? alignment > kAlignment : !is_aligned(data, alignment));
    if (bytes == 0) data = nothing;
    if (needs_copy) data = copies.emplace_back(allocate(bytes, alignment)).get();
    if (needs_copy && memory != nullptr) memory->keep(copies.back());
    buffers.push_back(data);
    return needs_copy ? bytes : 0;
  };

  for (size_t i = 0; i < inputs.size(); ++i) {
    int64_t copied = place(*inputs[i], program_.inputs[i]);
    if (copied > 0) std::memcpy(buffers.back(), data_of(*inputs[i]), static_cast<size_t>(copied));
  }
  std::vector<size_t> copied_outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == nullptr)
      buffers.push_back(nullptr);
    else if (place(*outputs[i], program_.outputs[i]) > 0)
      copied_outputs.push_back(i);
    if (memory != nullptr && outputs[i] != nullptr)
      memory->add_writable(buffers.back(),
                           byte_count(outputs[i]->dtype,
                                      {outputs[i]->shape, static_cast<size_t>(outputs[i]->ndim)}));
  }

  share_inputs(program_, inputs, shapes.output_dims, buffers);

  std::vector<int64_t> bounds = shapes.output_dims;
  {
    Lease lease(*this, shapes.workspace_bytes);
    RunContext context(lease.pool.get(), shapes.output_dims.data());
    context.set_packed(program_.packed, packed_);
    if (memory != nullptr) {
      memory->keep(lease.workspace.data);
      memory->add_writable(lease.workspace.data.get(), lease.workspace.bytes);
      context.set_memory(memory);
    }
    LateMemory late(*this, shapes, provide, memory.get());
    context.set_provider(&late);
    context.set_strings(strings);
    FloatStateScope float_state;
    int32_t code = program_.run(context.context(), buffers.data(), shapes.symbols.data(),
                                lease.workspace.data.get(), constants_);
    context.check(
        code, program_.name != nullptr ? "`" + std::string(program_.name) + "`" : "the program");
    context.set_memory(nullptr);
    memory = nullptr;  // before the workspace goes back: who still holds it keeps it
  }
  for (size_t i = 0; i < bounds.size(); ++i)
    if (bounds[i] >= 0 && (shapes.output_dims[i] < 0 || shapes.output_dims[i] > bounds[i]))
      throw Error(TENON_ERROR_INTERNAL, "program gave an output an extent of " +
                                            std::to_string(shapes.output_dims[i]) +
                                            "; it may have at most " + std::to_string(bounds[i]));

  if (copied_outputs.empty()) return;
  std::vector<std::vector<int64_t>> actual = split(this->outputs(), shapes.output_dims);
  for (size_t i : copied_outputs)
    std::memcpy(data_of(*outputs[i]), buffers[inputs.size() + i],
                static_cast<size_t>(byte_count(outputs[i]->dtype, actual[i])));
}

std::string Program::asked_by(size_t i) const {
  const char* nodes = program_.asked_by != nullptr ? program_.asked_by[i] : nullptr;
  return nodes != nullptr && *nodes != 0 ? "`" + std::string(nodes) + "`: " : "";
}

Tensor Program::new_output(size_t i, DLDataType dtype, std::span<const int64_t> dims) const {
  try {
    return Tensor(dtype, {dims.begin(), dims.end()});
  } catch (const Error& error) {
    // What is wrong with a shape is said of it; other errors do not know it.
    const std::string what = error.what();
    throw Error(
        error.code(),
        // The place of a late one is known to who asks.
        (is_late(program_.outputs[i]) ? "" : asked_by(i)) + "output `" +
            std::string(program_.outputs[i].name) + "` of " +
            (what.starts_with("shape ") ? what : "shape " + shape_text(dims) + ": " + what));
  }
}

Tensor Program::new_output(size_t i, std::span<const int64_t> dims) const {
  return new_output(i, declared_dtype(program_.outputs[i]), dims);
}

// What the program writes: of strings numbers.
Tensor Program::new_result(size_t i, std::span<const int64_t> dims) const {
  const TenonTensorInfo& info = program_.outputs[i];
  return new_output(i, is_string(info) ? kStringNumber : declared_dtype(info), dims);
}

std::shared_ptr<RunMemory> Program::run_memory(std::shared_ptr<const void> keeper) const {
  if (packed_.empty()) return nullptr;
  auto memory = std::make_shared<RunMemory>();
  memory->keep(owner_);  // constants
  memory->keep(std::move(keeper));
  return memory;
}

std::vector<Tensor> Program::run(std::span<const DLTensor* const> inputs,
                                 std::shared_ptr<const void> keeper) {
  Shapes found = shapes(inputs);
  Strings strings(program_, inputs);
  std::vector<std::vector<int64_t>> dims = split(outputs(), found.output_dims);
  std::vector<Tensor> results(dims.size());
  std::vector<DLTensor> views;
  std::vector<const DLTensor*> pointers(dims.size(), nullptr);
  views.reserve(dims.size());
  std::shared_ptr<RunMemory> memory = run_memory(std::move(keeper));
  const auto kept = [memory = memory.get()](const Tensor& tensor) {
    if (memory != nullptr) memory->keep(std::make_shared<const Tensor>(tensor));
  };
  for (size_t i = 0; i < dims.size(); ++i) {
    if (is_late(program_.outputs[i])) continue;
    results[i] = new_result(i, dims[i]);
    kept(results[i]);
    views.push_back(results[i].view());
    pointers[i] = &views.back();
  }
  std::vector<int64_t> bounds = found.output_dims;
  const auto provide = [&](size_t i, std::span<const int64_t> own) {
    results[i] = new_result(i, own);
    kept(results[i]);
    return results[i].data();
  };
  execute(strings.inputs(), pointers, found, provide, strings.table(), std::move(memory));
  if (found.output_dims != bounds) {
    dims = split(outputs(), found.output_dims);
    for (size_t i = 0; i < dims.size(); ++i) results[i] = results[i].reshaped(dims[i]);
  }
  for (size_t i = 0; i < results.size(); ++i)
    if (is_string(program_.outputs[i])) results[i] = texts_of(*strings.table(), results[i]);
  return results;
}

/// Outputs of one run that the caller's memory does not take as the program writes them: late ones
/// that are aligned less, and the numbers of strings.
class Program::Staged {
 public:
  Staged(const Program& program, std::span<DLTensor* const> outputs, RunMemory* memory)
      : program_(program), outputs_(outputs), memory_(memory), staged_(outputs.size()) {}

  /// The memory of an output of strings, whose dimensions are known.
  const DLTensor* numbers(size_t i, const std::vector<int64_t>& dims) {
    staged_[i] = {Tensor(kStringNumber, dims), {}};
    keep(i);
    staged_[i]->view = staged_[i]->tensor.view();
    return &staged_[i]->view;
  }

  /// Of a late output.
  void* provide(size_t i, std::span<const int64_t> own) {
    const DLTensor& given = *outputs_[i];
    const TenonTensorInfo& declared = program_.program_.outputs[i];
    const int64_t needed = byte_count(given.dtype, own),
                  has = byte_count(given.dtype, {given.shape, static_cast<size_t>(given.ndim)});
    if (needed > has)
      throw Error(TENON_ERROR_MEMORY, "output `" + std::string(declared.name) + "` of shape " +
                                          shape_text(own) + " takes " + std::to_string(needed) +
                                          " bytes; " + std::to_string(has) + " are given");
    if (!is_string(declared) && has > 0 &&
        is_aligned(data_of(given), alignment_of(program_.program_, declared)))
      return data_of(given);
    staged_[i] = {
        Tensor(is_string(declared) ? kStringNumber : given.dtype, {own.begin(), own.end()}), {}};
    keep(i);
    return staged_[i]->tensor.data();
  }

  /// Into the caller's memory, when the program has run.
  void give_out(StringTable* strings, const std::vector<int64_t>& output_dims) {
    const std::vector<std::vector<int64_t>> dims = split(program_.outputs(), output_dims);
    for (size_t i = 0; i < staged_.size(); ++i) {
      if (!staged_[i]) continue;
      const Tensor& tensor = staged_[i]->tensor;
      if (is_string(program_.program_.outputs[i]))
        copy_texts(*strings, tensor.reshaped(dims[i]), *outputs_[i]);
      else if (tensor.bytes() > 0)
        std::memcpy(data_of(*outputs_[i]), tensor.data(), static_cast<size_t>(tensor.bytes()));
    }
  }

 private:
  struct One {
    Tensor tensor;
    DLTensor view;
  };
  void keep(size_t i) {
    if (memory_ != nullptr) memory_->keep(std::make_shared<const Tensor>(staged_[i]->tensor));
  }
  const Program& program_;
  std::span<DLTensor* const> outputs_;
  RunMemory* memory_;
  std::vector<std::optional<One>> staged_;
};

void Program::run(std::span<const DLTensor* const> inputs, std::span<DLTensor* const> outputs,
                  std::shared_ptr<const void> keeper) {
  Shapes found = shapes(inputs);
  std::vector<const DLTensor*> pointers(outputs.begin(), outputs.end());
  check_outputs(program_, inputs, pointers, found.output_dims);
  Strings strings(program_, inputs);
  std::shared_ptr<RunMemory> memory = run_memory(std::move(keeper));
  Staged staged(*this, outputs, memory.get());
  const std::vector<std::vector<int64_t>> dims = split(this->outputs(), found.output_dims);
  for (size_t i = 0; i < pointers.size(); ++i) {
    if (is_late(program_.outputs[i]))
      pointers[i] = nullptr;
    else if (is_string(program_.outputs[i]))
      pointers[i] = staged.numbers(i, dims[i]);
  }
  std::vector<int64_t> bounds = found.output_dims;
  const auto provide = [&](size_t i, std::span<const int64_t> own) {
    return staged.provide(i, own);
  };
  execute(strings.inputs(), pointers, found, provide, strings.table(), std::move(memory));
  staged.give_out(strings.table(), found.output_dims);
  if (found.output_dims == bounds) return;
  size_t at = 0;
  for (DLTensor* output : outputs)
    for (int i = 0; i < output->ndim; ++i) output->shape[i] = found.output_dims[at++];
}

}  // namespace tenon::runtime
