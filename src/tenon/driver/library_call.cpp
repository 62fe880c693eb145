// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/library_call.h"

#include <cstring>
#include <map>

#include "tenon/backend/llvm/host.h"
#include "tenon/backend/llvm/jit.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/tensors.h"
#include "tenon/ir/visit.h"
#include "tenon/runtime/error.h"
#include "tenon/runtime/registry.h"
#include "tenon/runtime/run_context.h"
#include "tenon/runtime/strings.h"
#include "tenon/runtime/tensor.h"
#include "tenon/support/strings.h"

namespace tenon {

namespace {

using interp::ExternArgument;
using tir::Buffer;
using tir::ExternFunction;

/// A program of one call: its parameters are the call's memory and, one element each, its scalars.
class Thunk {
 public:
  /// \param name  of what is called, for messages
  Thunk(IRModule module, std::vector<Ref<Buffer>> params, tir::Stmt call, const std::string& name,
        std::shared_ptr<const backend::Libraries> libraries) {
    const auto count = static_cast<int64_t>(params.size());
    std::vector<std::string> names;
    for (const Ref<Buffer>& param : params) names.push_back(param->name);
    module.set("main", tir::PrimFunc::of_buffers(std::move(params), std::move(call),
                                                 {{"tenon.entry", true},
                                                  {"tenon.num_inputs", count},
                                                  {"input_names", names},
                                                  {"output_names", std::vector<std::string>{}}}));
    llvm_backend::CompiledProgram compiled = llvm_backend::compile(
        module, llvm_backend::host_target(), {.name = name, .libraries = libraries.get()});
    check_registered(compiled.registered);
    program_ = llvm_backend::link_in_process(std::move(compiled), std::move(libraries));
    const TenonProgram& program = *program_->program();
    packed_ = runtime::resolve_packed({program.packed, static_cast<size_t>(program.packed_count)});
  }

  /// \param memory  that a packed function is handed; null for others
  void run(const std::vector<void*>& buffers, std::shared_ptr<runtime::RunMemory> memory) const {
    const TenonProgram& program = *program_->program();
    runtime::RunContext context(nullptr);
    context.set_packed(program.packed, packed_);
    context.set_memory(std::move(memory));
    const int32_t code = program.run(context.context(), buffers.data(), nullptr, nullptr, nullptr);
    try {
      context.check(code, "the call");
    } catch (const runtime::Error& error) {
      // Without the name of the program of one call.
      const std::string text = error.what();
      const size_t end = text.starts_with("`") ? text.find("`: ") : std::string::npos;
      throw CompileError(kRunFailed, {}, "{}",
                         end == std::string::npos ? text : text.substr(end + 3));
    }
  }

 private:
  std::unique_ptr<llvm_backend::LoadedProgram> program_;
  std::vector<runtime::PackedFunction> packed_;
};

/// A scalar as it lies in memory.
int64_t scalar_bytes(const ExternArgument& argument, DType dtype) {
  int64_t bytes = argument.integer;  // little endian: the low bytes come first
  if (dtype == kFloat32) {
    const auto narrow = static_cast<float>(argument.number);
    std::memcpy(&bytes, &narrow, sizeof narrow);
  } else if (dtype.is_float()) {
    std::memcpy(&bytes, &argument.number, sizeof bytes);
  }
  return bytes;
}

Ref<Buffer> scalar_param(size_t i, DType dtype) {
  return make<Buffer>(fmt::format("s{}", i), dtype, std::vector<Expr>{});
}
Ref<Buffer> tensor_param(size_t i, DType dtype, const ExternArgument& argument) {
  Buffer::Options options;
  options.strides = to_exprs(argument.strides);
  options.alignment = std::max<int64_t>(1, dtype.bytes());
  return make<Buffer>(fmt::format("x{}", i), dtype, to_exprs(argument.shape), options);
}

std::unique_ptr<Thunk> thunk_of(const ExternFunction& function,
                                const std::vector<ExternArgument>& arguments,
                                std::shared_ptr<const backend::Libraries> libraries) {
  IRModule module;
  const std::string name = function.symbol == "main" ? "main_" : function.symbol;
  const Ref<ExternFunction> declared = with(function, [](ExternFunction& copy) { copy.body = {}; });
  module.set(name, renew_definitions(declared));
  std::vector<Ref<Buffer>> params;
  std::vector<NodePtr> args;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].text) {
      args.push_back(make<StringImm>(arguments[i].text));
    } else if (!function.buffers[i]) {  // a scalar is read from memory
      params.push_back(scalar_param(i, function.params[i]->dtype));
      args.push_back(tir::load(params.back(), {}));
    } else {
      params.push_back(tensor_param(i, function.buffers[i]->dtype, arguments[i]));
      args.push_back(tir::BufferRegion::whole(params.back()));
    }
  }
  return std::make_unique<Thunk>(std::move(module), std::move(params),
                                 make<tir::CallTir>(make<GlobalVar>(name), std::move(args)),
                                 function.symbol, std::move(libraries));
}

// Scalars come as memory, memory as a pointer or as a region; the last parameter takes the result.
std::unique_ptr<Thunk> thunk_of(const Call& call, const std::vector<ExternArgument>& arguments,
                                std::shared_ptr<const backend::Libraries> libraries) {
  std::vector<Ref<Buffer>> params;
  std::vector<NodePtr> args{call.args[0]};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const NodePtr& arg = call.args[i + 1];
    if (arguments[i].text) {
      args.push_back(arg);
      continue;
    }
    const auto* region = arg.as<tir::BufferRegion>();
    const Buffer* buffer = region ? region->buffer.get() : arg.as<Buffer>();
    if (buffer) {
      params.push_back(tensor_param(i, buffer->dtype, arguments[i]));
      args.push_back(tir::BufferRegion::whole(params.back()));
    } else if (arguments[i].data) {
      params.push_back(tensor_param(i, kUInt8, arguments[i]));
      args.push_back(params.back()->data);
    } else {
      params.push_back(scalar_param(i, downcast<ExprNode>(arg)->dtype));
      args.push_back(tir::load(params.back(), {}));
    }
  }
  const Expr again = make<Call>(call.op, std::move(args), call.dtype, call.origin);
  tir::Stmt statement = make<tir::Evaluate>(again);
  if (!call.dtype.is_void()) {
    params.push_back(make<Buffer>("result", call.dtype, std::vector<Expr>{}));
    statement = make<tir::BufferStore>(params.back(), again, std::vector<Expr>{});
  }
  return std::make_unique<Thunk>(IRModule(), std::move(params), std::move(statement),
                                 call.args[0].as<StringImm>()->value, std::move(libraries));
}

/// Memory of the interpreter, which aligns nothing, as a function asks for it: itself, or a copy.
class AlignedCopy {
 public:
  /// \param memory  of a packed function, which may keep what it is handed: always a copy
  AlignedCopy(const ExternArgument& argument, const Buffer& declared,
              const std::shared_ptr<runtime::RunMemory>& memory, bool is_written)
      : original_(argument.data) {
    const auto alignment = static_cast<size_t>(std::max<int64_t>(1, declared.alignment));
    if (!memory && reinterpret_cast<uintptr_t>(original_) % alignment == 0) return;
    int64_t elements = 1;
    for (size_t d = 0; d < argument.shape.size(); ++d)
      elements += std::max<int64_t>(0, argument.shape[d] - 1) * argument.strides[d];
    bytes_ = static_cast<size_t>(elements * std::max<int64_t>(1, declared.dtype.bytes()));
    for (const int64_t dim : argument.shape)
      if (dim == 0) bytes_ = 0;
    copy_ = runtime::allocate(static_cast<int64_t>(bytes_), static_cast<int64_t>(alignment));
    std::memcpy(copy_.get(), original_, bytes_);
    if (!memory) return;
    memory->keep(copy_);
    if (is_written) memory->add_writable(copy_.get(), static_cast<int64_t>(bytes_));
  }
  void* data() const { return copy_ ? copy_.get() : original_; }
  void write_back() const {
    // What is only read may be memory that cannot be written.
    if (copy_ && std::memcmp(original_, copy_.get(), bytes_) != 0)
      std::memcpy(original_, copy_.get(), bytes_);
  }

 private:
  void* original_;
  std::shared_ptr<void> copy_;
  size_t bytes_ = 0;
};

/// What one function was compiled to, by the shapes and texts that it is called with.
struct Known {
  NodePtr node;  // two of one address cannot be mixed up: the first is kept
  std::map<std::pair<std::vector<std::vector<int64_t>>, std::vector<std::string>>,
           std::unique_ptr<Thunk>>
      thunks;

  std::unique_ptr<Thunk>& find(const std::vector<ExternArgument>& arguments) {
    std::vector<std::vector<int64_t>> shapes;
    std::vector<std::string> texts;
    for (const ExternArgument& argument : arguments) {
      shapes.push_back(argument.shape);
      shapes.push_back(argument.strides);
      texts.emplace_back(argument.text ? argument.text : "");
    }
    return thunks[{std::move(shapes), std::move(texts)}];
  }
};
using AllKnown = std::map<const Node*, Known>;

}  // namespace

// The compiler's own texts, as functions of the runtime ask for them.
class CompilerStrings final : public runtime::StringTable {
 public:
  int64_t intern(std::string_view text) override { return intern_text(text); }
  std::string_view text(int64_t id) override { return text_of(id); }
};

// Functions of the runtime on strings are called here: there is nothing to compile.
static void call_on_strings(runtime::StringFunction run, const ExternFunction& function,
                            std::vector<ExternArgument> arguments) {
  std::vector<DLTensor> tensors(arguments.size());
  std::vector<TenonValue> values;
  const DLTensor* result = nullptr;
  for (size_t i = 0; i < arguments.size(); ++i) {
    ExternArgument& argument = arguments[i];
    TenonValue value{};
    if (const Ref<Buffer>& buffer = function.buffers[i]) {
      DLTensor& tensor = tensors[i];
      tensor.data = argument.data;
      tensor.device = {kDLCPU, 0};
      tensor.ndim = static_cast<int32_t>(argument.shape.size());
      tensor.dtype =
          buffer->dtype.is_string() ? runtime::kStringNumber : dlpack_dtype(buffer->dtype);
      tensor.shape = argument.shape.data();
      if (function.uses[i] == tir::ParamUse::kOut) {
        result = &tensor;
        continue;
      }
      value.pointer = &tensor;
    } else if (argument.text) {
      value.text = argument.text;
    } else {
      value.integer = argument.integer;
    }
    values.push_back(value);
  }
  check(result != nullptr, "a function on strings without a result");
  CompilerStrings table;
  try {
    run(table, values, *result);
  } catch (const runtime::Error& error) {
    throw CompileError(kRunFailed, {}, "{}", error.what());
  }
}

interp::CallLibrary library_caller(std::shared_ptr<const backend::Libraries> libraries) {
  const auto known = std::make_shared<AllKnown>();
  return [libraries, known](const ExternFunction& function,
                            const std::vector<ExternArgument>& arguments) {
    if (const auto run = runtime::find_string_function(function.symbol); run && function.is_packed)
      return call_on_strings(run, function, arguments);
    Known& found = (*known)[&function];
    if (!found.node) found.node = ref_to(&function);
    std::unique_ptr<Thunk>& thunk = found.find(arguments);
    if (!thunk) thunk = thunk_of(function, arguments, libraries);
    std::vector<int64_t> scalars(arguments.size());
    std::vector<void*> buffers;
    std::vector<std::unique_ptr<AlignedCopy>> copies;
    const auto memory = function.is_packed ? std::make_shared<runtime::RunMemory>() : nullptr;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].text) continue;
      if (const Ref<Buffer>& buffer = function.buffers[i]) {
        copies.push_back(std::make_unique<AlignedCopy>(arguments[i], *buffer, memory,
                                                       function.uses[i] != tir::ParamUse::kIn));
        buffers.push_back(copies.back()->data());
      } else {
        scalars[i] = scalar_bytes(arguments[i], function.params[i]->dtype);
        buffers.push_back(&scalars[i]);
      }
    }
    thunk->run(buffers, memory);
    for (size_t i = 0, next = 0; i < arguments.size(); ++i) {
      if (!function.buffers[i]) continue;
      if (function.uses[i] != tir::ParamUse::kIn) copies[next]->write_back();
      ++next;
    }
  };
}

interp::CallOpaque opaque_caller(std::shared_ptr<const backend::Libraries> libraries) {
  const auto known = std::make_shared<AllKnown>();
  return [libraries, known](const Call& call, const std::vector<ExternArgument>& arguments) {
    Known& found = (*known)[&call];
    if (!found.node) found.node = ref_to(&call);
    std::unique_ptr<Thunk>& thunk = found.find(arguments);
    if (!thunk) thunk = thunk_of(call, arguments, libraries);
    std::vector<int64_t> scalars(arguments.size());
    std::vector<void*> buffers;
    std::vector<std::unique_ptr<AlignedCopy>> copies;
    const bool is_packed = call.is(IntrinsicId::kCallPacked) || call.is(IntrinsicId::kCallCpacked);
    const auto memory = is_packed ? std::make_shared<runtime::RunMemory>() : nullptr;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].text) continue;
      const NodePtr& arg = call.args[i + 1];
      const auto* region = arg.as<tir::BufferRegion>();
      const Buffer* buffer = region ? region->buffer.get() : arg.as<Buffer>();
      if (memory && buffer) {
        copies.push_back(std::make_unique<AlignedCopy>(arguments[i], *buffer, memory, true));
        buffers.push_back(copies.back()->data());
        continue;
      }
      if (!arguments[i].data)
        scalars[i] = scalar_bytes(arguments[i], downcast<ExprNode>(arg)->dtype);
      buffers.push_back(arguments[i].data ? arguments[i].data : &scalars[i]);
    }
    int64_t result = 0;
    if (!call.dtype.is_void()) buffers.push_back(&result);
    thunk->run(buffers, memory);
    for (const auto& copy : copies) copy->write_back();
    ExternArgument out;
    if (call.dtype == kFloat32) {
      float narrow = 0;
      std::memcpy(&narrow, &result, sizeof narrow);
      out.number = narrow;
    } else if (call.dtype == kFloat64) {
      std::memcpy(&out.number, &result, sizeof result);
    } else {
      const int shift = 64 - call.dtype.bits;
      const auto high = static_cast<uint64_t>(result) << shift;
      out.integer = call.dtype.is_int() ? static_cast<int64_t>(high) >> shift
                                        : static_cast<int64_t>(high >> shift);
    }
    return out;
  };
}

}  // namespace tenon
