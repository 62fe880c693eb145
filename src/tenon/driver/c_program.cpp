// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/c_program.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <iterator>

#include "tenon/backend/c/prototypes.h"
#include "tenon/backend/c_compiler.h"
#include "tenon/backend/llvm/host.h"
#include "tenon/driver/console.h"
#include "tenon/driver/tensors.h"
#include "tenon/memory/pools.h"
#include "tenon/runtime/shared_object.h"

namespace tenon {

namespace fs = std::filesystem;

IRModule with_pools(IRModule module, const COptions& options) {
  if (options.pools.empty()) return module;
  std::string text;
  for (const std::string& pool : options.pools) text += (text.empty() ? "" : " ") + pool;
  (void)memory::parse_pools(text);  // its errors name the option
  module.attrs.set("pools", text);
  return module;
}

// `capacity`: of the pool for constants, where the module names one with a size.
static c_backend::EmitOptions emit_options(const IRModule& lowered, const CompileRequest& request,
                                           const COptions& options,
                                           std::optional<int64_t>& capacity) {
  c_backend::EmitOptions emit;
  emit.name = request.name;
  emit.separate_arrays = options.separate_arrays;
  emit.includes = options.includes;
  if (options.constants_file) emit.constants = c_backend::Constants::kPointer;
  if (const auto text = lowered.attrs.get<std::string>("pools"))
    for (const memory::PoolOption& pool : memory::parse_pools(*text)) {
      if (!pool.is_read_only) continue;
      emit.constants = c_backend::Constants::kPointer;
      emit.constants_pool = pool.name;
      capacity = pool.capacity;
    }
  return emit;
}

std::map<std::string, std::string> functions_in_c(const LoweredModule& lowered,
                                                  const CompileRequest& request,
                                                  const COptions& options) {
  std::optional<int64_t> capacity;
  const IRModule& module = lowered.pipeline.module;
  return c_backend::emit_functions(module, request.target,
                                   emit_options(module, request, options, capacity));
}

c_backend::Program generate_c(LoweredModule& lowered, const CompileRequest& request,
                              const COptions& options) {
  if (request.pipeline.progress) request.pipeline.progress("code generation");
  if (!options.includes.empty())
    for (Remark& remark : c_backend::check_prototypes(lowered.pipeline.module, options.includes))
      lowered.pipeline.remarks.push_back(std::move(remark));
  std::optional<int64_t> capacity;
  const c_backend::EmitOptions emit =
      emit_options(lowered.pipeline.module, request, options, capacity);
  c_backend::Program program = c_backend::emit(lowered.pipeline.module, request.target, emit);
  if (capacity && program.constants.bytes > *capacity)
    throw CompileError(kDoesNotFit, {},
                       "pool `{}` has {} bytes, and the constants need {}: {} bytes are missing",
                       emit.constants_pool, *capacity, program.constants.bytes,
                       program.constants.bytes - *capacity);
  return program;
}

static void write_constants(const backend::ConstantsLayout& layout, const std::string& path) {
  OutputFile file(path);
  backend::stream_constants(layout, [&](int64_t offset, std::span<const std::byte> bytes) {
    file.write_at(static_cast<uint64_t>(offset), bytes);
  });
  file.resize(static_cast<uint64_t>(layout.bytes));
  file.commit();
}

std::vector<std::string> write_c(const c_backend::Program& program, const Target& target,
                                 const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw CompileError(kFileError, {}, "cannot create folder `{}`: {}", folder, error.message());
  std::vector<std::string> files;
  const auto write = [&](const std::string& name, const std::string& text) {
    files.push_back((fs::path(folder) / name).string());
    write_file(files.back(), text);
  };
  write(program.name + ".c", program.source);
  write(program.name + ".h", program.header);
  write("main_" + program.name + ".c", c_backend::main_program(program));
  write("Makefile", c_backend::makefile(program, target));
  if (program.has_constants_parameter) {
    files.push_back((fs::path(folder) / (program.name + ".constants")).string());
    write_constants(program.constants, files.back());
  }
  return files;
}

namespace {

/// What the runtime is told about a program, in memory of its own.
class LoadedC {
 public:
  LoadedC(const c_backend::Program& program, const LoweredModule& lowered, const std::string& name,
          const std::string& library)
      : name_(name), manifest_(lowered.manifest) {
    handle_ = runtime::open_shared_object(library);
    if (!handle_)
      throw CompileError(kLinkFailed, {}, "the compiled C cannot be loaded: {}", dlerror());
    program_alignment_ = std::max(program.alignment, program.entry.workspace_alignment);
    copy_constants(program.constants);
    declare(program);
  }
  ~LoadedC() {
    if (handle_) dlclose(handle_);
    free(constants_);
  }
  LoadedC(const LoadedC&) = delete;
  LoadedC& operator=(const LoadedC&) = delete;
  const TenonProgram* program() const { return &program_; }

 private:
  template <typename F>
  F symbol(const char* name) const {
    return reinterpret_cast<F>(dlsym(handle_, name));
  }

  void copy_constants(const backend::ConstantsLayout& layout) {
    if (layout.bytes == 0) return;
    const auto alignment = static_cast<size_t>(program_alignment_);
    const auto bytes = static_cast<size_t>(layout.bytes);
    constants_ = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (!constants_)
      throw CompileError(kLinkFailed, {}, "{} bytes for constants could not be allocated",
                         layout.bytes);
    std::memset(constants_, 0, static_cast<size_t>(layout.bytes));
    backend::stream_constants(layout, [&](int64_t offset, std::span<const std::byte> bytes) {
      std::memcpy(static_cast<std::byte*>(constants_) + offset, bytes.data(), bytes.size());
    });
  }

  void add_tensor(const backend::Entry& entry, size_t i, const std::string& name,
                  std::vector<TenonTensorInfo>& out) {
    const bool is_output = i >= entry.inputs;
    const tir::Buffer& buffer = is_output ? entry.output(i - entry.inputs) : entry.input(i);
    std::vector<int64_t>& dims = dims_.emplace_back();
    for (const Expr& dim : buffer.shape) {
      int64_t stated = as_int(dim).value_or(TENON_DIM_COMPUTED);
      for (size_t s = 0; s < entry.symbols.size(); ++s)
        if (dim.get() == entry.symbols[s].var.get()) stated = TENON_DIM_SYMBOL(s);
      dims.push_back(stated);
    }
    const DLDataType dtype = dlpack_dtype(buffer.dtype);
    names_.push_back(name);
    out.push_back({names_.back().c_str(), dims.data(), static_cast<int32_t>(dims.size()),
                   dtype.code, dtype.bits, dtype.lanes,
                   static_cast<int32_t>(entry.stated_alignment(i, program_alignment_)),
                   is_output ? entry.output_flags(i - entry.inputs) : 0});
  }

  void declare(const c_backend::Program& program) {
    const backend::Entry& entry = program.entry;
    for (size_t i = 0; i < entry.inputs; ++i) add_tensor(entry, i, entry.input_names[i], inputs_);
    for (size_t i = 0; i < entry.outputs; ++i)
      add_tensor(entry, entry.inputs + i, entry.output_names[i], outputs_);
    for (const backend::EntrySymbol& symbol : entry.symbols) {
      names_.push_back(symbol.var->name);
      symbols_.push_back({names_.back().c_str(),
                          symbol.is_element ? TENON_SYMBOL_VALUE : TENON_SYMBOL_DIM,
                          static_cast<int32_t>(symbol.input), symbol.index,
                          symbol.is_element ? INT64_MIN : 0, INT64_MAX});
    }
    const int64_t workspace = as_int(entry.workspace_bytes).value_or(-1);
    program_.abi_version = TENON_ABI_VERSION;
    program_.struct_size = sizeof(TenonProgram);
    program_.name = name_.c_str();
    program_.input_count = static_cast<int32_t>(inputs_.size());
    program_.output_count = static_cast<int32_t>(outputs_.size());
    program_.inputs = inputs_.data();
    program_.outputs = outputs_.data();
    program_.symbol_count = static_cast<int32_t>(symbols_.size());
    program_.alignment = static_cast<int32_t>(program_alignment_);
    program_.symbols = symbols_.data();
    program_.shapes = symbol<decltype(program_.shapes)>("tenon_c_shapes");
    program_.run = symbol<decltype(program_.run)>("tenon_c_run");
    program_.constants = constants_;
    program_.constant_bytes = program.constants.bytes;
    program_.workspace_bytes = workspace;
    const auto stated = [&](const char* attribute) {
      return workspace < 0 ? -1 : entry.number(attribute).value_or(-1);
    };
    program_.planned_bytes = stated("tenon.planned_bytes");
    program_.bound_bytes = stated("tenon.bound_bytes");
    program_.manifest = manifest_.c_str();
    for (const std::string& node : entry.asked_by)
      asked_by_.push_back(names_.emplace_back(node).c_str());
    if (!asked_by_.empty()) program_.asked_by = asked_by_.data();
    if (!program_.run) throw CompileError(kLinkFailed, {}, "the compiled C has no entry");
  }

  std::string name_, manifest_;
  void* handle_ = nullptr;
  void* constants_ = nullptr;
  int64_t program_alignment_ = backend::kLeastAlignment;
  std::deque<std::vector<int64_t>> dims_;
  std::deque<std::string> names_;
  std::vector<TenonTensorInfo> inputs_, outputs_;
  std::vector<TenonSymbol> symbols_;
  std::vector<const char*> asked_by_;
  TenonProgram program_{};
};

}  // namespace

std::shared_ptr<runtime::Program> compile_c(
    const c_backend::Program& program, const CompileRequest& request, const LoweredModule& lowered,
    const std::shared_ptr<const backend::Libraries>& libraries) {
  if (request.pipeline.progress) request.pipeline.progress("C compiler");
  const backend::Libraries none({});
  const backend::ProgramFunctions functions(lowered.pipeline.module, program.entry.name);
  // Nothing is registered where freestanding C runs: packed functions are C functions.
  std::vector<backend::LibraryFunction> called = functions.libraries();
  for (const backend::PackedFunction& packed : functions.packed())
    called.push_back({backend::packed_symbol(packed.name), {}, packed.caller, packed.origin});
  (libraries ? *libraries : none).check(called);
  const TemporaryFolder folder;
  write_file(folder.file(program.name + ".c"), program.source);
  write_file(folder.file(program.name + ".h"), program.header);
  write_file(folder.file("adapter.c"), c_backend::adapter(program));
  std::vector<std::string> command = {
      "-std=c99", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fPIC", "-shared", "-w"};
  const std::string& cpu = request.target.cpu;
  // The compiler may not know LLVM's name of this processor.
  const bool is_host = !llvm_backend::host_is_assumed() && cpu == llvm_backend::host_target().cpu;
  if (!cpu.empty()) command.push_back("-march=" + (is_host ? std::string("native") : cpu));
  command.insert(command.end(), {"-o", folder.file("program.so"), folder.file(program.name + ".c"),
                                 folder.file("adapter.c")});
  if (libraries) {
    // Objects first: a linker that keeps only needed libraries asks what came before them.
    const auto is_code = [](const std::string& file) {
      return file.ends_with(".o") || file.ends_with(".a");
    };
    const std::vector<std::string>& inputs = libraries->linker_inputs();
    std::copy_if(inputs.begin(), inputs.end(), std::back_inserter(command), is_code);
    for (const std::string& library : inputs) {
      if (is_code(library)) continue;
      command.push_back(library);
      // As one word of the linker's, whatever is in it.
      command.insert(command.end(), {"-Xlinker", "-rpath", "-Xlinker",
                                     std::filesystem::path(library).parent_path().string()});
    }
  }
  command.emplace_back("-lm");
  backend::run_c_compiler(command, "the program in C");
  const auto loaded =
      std::make_shared<LoadedC>(program, lowered, request.name, folder.file("program.so"));
  try {
    return runtime::Program::wrap(loaded->program(), nullptr, loaded);
  } catch (const runtime::Error& error) {
    throw CompileError(kLinkFailed, {}, "{}", error.what());
  }
}

}  // namespace tenon
