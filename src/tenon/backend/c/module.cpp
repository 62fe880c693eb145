// SPDX-License-Identifier: Apache-2.0
// Writes the C source of a program: functions in order, constants, the entry.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tenon/backend/c/codegen.h"
#include "tenon/tir/scratch_query.h"
#include "tenon/tir/transforms.h"

namespace tenon::c_backend {

// A table of texts belongs to a run of the runtime, which C programs do without.
void ModuleCodegen::refuse_strings() const {
  for (size_t i = 0; i < entry_.inputs + entry_.outputs; ++i) {
    const bool is_input = i < entry_.inputs;
    const tir::Buffer& buffer = is_input ? entry_.input(i) : entry_.output(i - entry_.inputs);
    if (buffer.dtype.is_string())
      throw CompileError(kUnsupported, buffer.origin,
                         "{} `{}` of strings in a C program; target llvm has them",
                         is_input ? "input" : "output",
                         is_input ? entry_.input_names[i] : entry_.output_names[i - entry_.inputs]);
  }
  for (const backend::PackedFunction& function : program_.packed())
    if (function.name.starts_with("tenon.string."))
      throw CompileError(kUnsupported, function.origin,
                         "`{}` works on texts, which a C program does not have; target llvm does",
                         function.name);
}

ModuleCodegen::ModuleCodegen(const IRModule& module, const Target& target,
                             const EmitOptions& options)
    : module_(module),
      target_(target),
      options_(options),
      name_(c_identifier(options.name)),
      entry_(backend::entry_of(module)),
      program_(module, entry_.name),
      prelude_(upper(name_) + "_VECTORS") {
  refuse_strings();
  Names functions;
  for (const backend::ProgramFunction& function : program_.all()) {
    FunctionInfo& info = functions_.emplace_back();
    static_cast<backend::ProgramFunction&>(info) = function;
    info.c_name = functions.take("k_" + function.name);
    find_writes(info);
  }
  FunctionInfo& entry = functions_[program_.index_of(entry_.name, {})];
  entry.can_fail |= entry_.checks_addresses() || entry_.has_host_memory;
  can_fail_ = entry.can_fail;
  Names inputs, outputs, dims;
  for (const std::string& name : entry_.input_names) inputs_.push_back(inputs.take(name));
  for (const std::string& name : entry_.output_names) outputs_.push_back(outputs.take(name));
  for (const backend::EntrySymbol& symbol : entry_.symbols)
    dims_.push_back(dims.take(symbol.var->name));
  bool has_unknown_size = entry_.has_workspace && !as_int(entry_.workspace_bytes);
  for (size_t i = 0; i < entry_.outputs; ++i)
    for (const Expr& dim : entry_.output(i).shape)
      has_unknown_size |= !entry_.is_late(i) && !as_int(dim);
  dynamic_ = !entry_.symbols.empty() || has_unknown_size;
  for (std::string& symbol : tir::scratch_query_symbols(module)) queries_.insert(std::move(symbol));
  find_pools();
}

// Which parameters a function writes: itself, through views, and in what it calls.
void ModuleCodegen::find_writes(FunctionInfo& info) {
  const tir::PrimFunc& function = *info.function;
  std::unordered_map<const Node*, size_t> root;  // data pointer -> parameter
  for (size_t i = 0; i < function.params.size(); ++i)
    if (function.buffers[i]) root[function.buffers[i]->data.get()] = i;
  for (bool grows = true; grows;) {
    grows = false;
    walk<tir::DeclBuffer>(function.body, [&](const tir::DeclBuffer& view) {
      walk<Var>(view.data, [&](const Var& var) {
        const auto it = root.find(&var);
        if (it != root.end()) grows |= root.emplace(view.buffer->data.get(), it->second).second;
      });
      const auto* call = view.data.as<Call>();
      const auto* at = call && !call->args.empty() ? call->args[0].as<tir::BufferLoad>() : nullptr;
      if (!at) return;
      const auto it = root.find(at->buffer->data.get());
      if (it != root.end()) grows |= root.emplace(view.buffer->data.get(), it->second).second;
    });
  }
  info.writes.assign(function.params.size(), false);
  const auto write = [&](const Ref<tir::Buffer>& buffer) {
    const auto it = root.find(buffer->data.get());
    if (it != root.end()) info.writes[it->second] = true;
  };
  walk(function.body, [&](const NodePtr& node) {
    if (const auto* store = node.as<tir::BufferStore>()) write(store->buffer);
    if (const auto* call = node.as<Call>(); call && call->op &&
                                            call->op->effect == Effect::kOpaque &&
                                            !call->is(IntrinsicId::kPrefetch)) {
      for (const NodePtr& arg : call->args) {
        if (const auto* element = arg.as<tir::BufferLoad>()) {
          write(element->buffer);
        } else if (const auto* region = arg.as<tir::BufferRegion>()) {
          write(region->buffer);
        } else if (const auto buffer = cast<tir::Buffer>(arg)) {
          write(buffer);
        } else if (const auto it = root.find(arg.get()); it != root.end()) {
          info.writes[it->second] = true;  // its data pointer
        }
      }
    }
    if (const auto* call = node.as<tir::CallTir>()) {
      if (const auto library = library_function(call->callee->name)) {
        for (size_t i = 0; i < call->args.size() && i < library->uses.size(); ++i)
          if (const auto* region = call->args[i].as<tir::BufferRegion>();
              region && library->uses[i] != tir::ParamUse::kIn)
            write(region->buffer);
        return;
      }
      const FunctionInfo& inner = functions_[program_.index_of(call->callee->name, call->origin)];
      for (size_t i = 0; i < call->args.size() && i < inner.writes.size(); ++i)
        if (const auto* region = call->args[i].as<tir::BufferRegion>(); region && inner.writes[i])
          write(region->buffer);
    }
  });
}

std::string ModuleCodegen::constant(const tir::AllocConst& constant) {
  const size_t index = constants_.index_of(constant.data, constant.buffer->alignment);
  if (!has_constants_pointer()) return fmt::format("constant_{}", index);
  const int64_t offset = constants_.layout().items[index].offset;
  return offset == 0 ? "constants" : fmt::format("constants + {}", offset);
}

// ---- constants ----------------------------------------------------------------------------------

std::string ModuleCodegen::aligned(int64_t alignment) {
  if (alignment <= backend::kLeastAlignment) return "ALIGNED";
  uses_alignments_ = true;
  return fmt::format("ALIGNED_TO({})", alignment);
}

static std::string element_text(const TensorData& data, int64_t i) {
  const DType dtype = data.dtype;
  if (dtype == kFloat32 || dtype == kFloat64) {
    const double value = data.at_float(i);
    if (std::isnan(value)) return "NAN";
    if (std::isinf(value)) return value < 0 ? "-INFINITY" : "INFINITY";
    std::string text =
        dtype == kFloat32 ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return dtype == kFloat32 ? text + "f" : text;
  }
  if (dtype.is_float()) {  // its bits
    const auto bytes = data.data();
    uint16_t bits = 0;
    if (dtype.bytes() == 1)
      return std::to_string(static_cast<unsigned>(bytes[static_cast<size_t>(i)]));
    std::memcpy(&bits, bytes.data() + i * 2, 2);
    return std::to_string(bits);
  }
  const int64_t value = data.at_int(i);
  if (dtype == kUInt64) return fmt::format("{}u", static_cast<uint64_t>(value)) + "ll";
  if (dtype == kInt64 && value == std::numeric_limits<int64_t>::min()) return "INT64_MIN";
  if (dtype == kInt32 && value == std::numeric_limits<int32_t>::min()) return "INT32_MIN";
  return std::to_string(value) + (dtype == kInt64 ? "ll" : dtype == kUInt32 ? "u" : "");
}

std::string ModuleCodegen::constant_arrays() {
  std::string out;
  size_t index = 0;
  for (const backend::ConstantsLayout::Item& item : constants_.layout().items) {
    const TensorData& data = *item.data;
    const int64_t count = std::max<int64_t>(1, data.elements());
    out += fmt::format("/* {} {} */\nstatic const {} constant_{}[{}] {} = {{", data.dtype.str(),
                       comment_text(str(data.shape)), c_type(data.dtype), index++, count,
                       aligned(item.alignment));
    size_t column = 100;
    for (int64_t i = 0; i < count; ++i) {
      const std::string text = data.elements() == 0 ? "0" : element_text(data, i);
      if (column + text.size() + 2 > 100) {
        out += "\n ";
        column = 1;
      }
      out += " " + text + ",";
      column += text.size() + 2;
      if (text.find("N") != std::string::npos) prelude_.use_math();
    }
    out.back() = '}';
    out += ";\n\n";
  }
  return out;
}

// ---- the entry ----------------------------------------------------------------------------------

std::string ModuleCodegen::entry_prototype() const {
  std::string list;
  const auto add = [&](const std::string& one) { list += (list.empty() ? "" : ", ") + one; };
  if (!dims_.empty()) add(fmt::format("const {}_dims* dims", name_));
  add(fmt::format("const {}_inputs* inputs", name_));
  add(fmt::format("const {}_outputs* outputs", name_));
  for (const PoolParameter& pool : pools_) add("void* " + pool.name + (is_definition_ ? "_" : ""));
  if (has_constants_pointer())
    add("const void* " + options_.constants_pool + (is_definition_ ? "_" : ""));
  if (entry_.has_host_memory) add(fmt::format("const {}_late* late", name_));
  if (can_fail_) add(name_ + "_error* error");
  return fmt::format("int32_t {}_run({})", name_, list);
}

std::string ModuleCodegen::shapes_prototype() const {
  return fmt::format("int32_t {0}_shapes({1}{0}_sizes* sizes{2})", name_,
                     dims_.empty() ? "" : fmt::format("const {}_dims* dims, ", name_),
                     entry_.given_checks.empty() ? "" : fmt::format(", {}_error* error", name_));
}

std::string ModuleCodegen::function(const FunctionInfo& info) {
  // Until nothing more is found unused.
  std::string text;
  std::unordered_set<std::string> used;
  for (int round = 0; round < 6; ++round) {
    FunctionCodegen code(*this, info);
    std::string next = code.define(round == 0 ? nullptr : &used);
    const bool stable = round > 0 && next == text;
    text = std::move(next);
    used = code.used();
    if (stable) break;
  }
  return text;
}

std::string ModuleCodegen::shapes_function() {
  FunctionCodegen code(*this, callee(entry_.name, {}));
  std::string text = shapes_prototype() + " {\n";
  std::string body;
  for (size_t s = 0; s < entry_.symbols.size(); ++s) {
    const Ref<Var>& symbol = entry_.symbols[s].var;
    code.bind(*symbol, "dims->" + dims_[s]);
  }
  for (size_t s = 0; s < dims_.size(); ++s)
    if (!entry_.symbols[s].is_element)
      text += fmt::format("  if (dims->{} < 0) return 1;\n", dims_[s]);
  const bool has_elements = std::any_of(entry_.symbols.begin(), entry_.symbols.end(),
                                        [](const auto& symbol) { return symbol.is_element; });
  for (const Ref<tir::Assert>& check : entry_.given_checks) code.assertion(*check);
  for (const PoolParameter& pool : pools_)
    body += fmt::format("  sizes->{} = {};\n", pool.name, code.dimension(pool.bytes));
  // What a library asks for may be anything, and so may elements of inputs.
  for (const PoolParameter& pool : pools_)
    if ((!queries_.empty() || has_elements) && !as_int(pool.bytes))
      body += fmt::format("  if (sizes->{} < 0) return 1;\n", pool.name);
  for (size_t i = 0; i < entry_.outputs; ++i)
    for (size_t d = 0; d < entry_.output(i).ndim() && !entry_.is_late(i); ++d)
      body += fmt::format("  sizes->{}[{}] = {};\n", outputs_[i], d,
                          code.dimension(entry_.output(i).shape[d]));
  return text + code.written() + body + "  return 0;\n}\n";
}

std::string ModuleCodegen::source() {
  is_definition_ = true;
  std::string functions;
  for (const FunctionInfo& info : functions_) functions += function(info) + "\n";
  if (dynamic_) functions += shapes_function() + "\n";
  is_definition_ = false;
  const std::string arrays = has_constants_pointer() ? "" : constant_arrays();
  const std::string prelude = prelude_.text();
  const std::string macro = upper(name_) + "_VECTORS";
  std::string out = fmt::format(
      "/* {}: made by tenon for target `{}`. C99; the header says how to call it.\n"
      " *\n"
      " * Vectors are those of GNU C where {} is 1 (by default where the compiler has them), else\n"
      " * arrays and loops. Products and sums are rounded one by one: compile without contraction\n"
      " * (-ffp-contract=off, which is the default of `gcc -std=c99`). */\n"
      "#include \"{}.h\"\n\n",
      comment_text(options_.name), comment_text(target_.str()), macro, name_);
  std::set<std::string> headers = standard_headers_;
  if (prelude_.uses_math()) headers.insert("math.h");
  if (prelude_.uses_memcpy() || late_slots() > 0) headers.insert("string.h");
  for (const std::string& header : headers) out += "#include <" + header + ">\n";
  if (!headers.empty()) out += "\n";
  out +=
      "#if defined(__GNUC__) && !defined(__TINYC__)\n"
      "#define IS_GNU 1\n"
      "#define ALIGNED __attribute__((aligned(64)))\n"
      "#define NOINLINE __attribute__((noinline))\n"
      "#define INLINE static inline __attribute__((unused))\n"
      "#else\n"
      "#define IS_GNU 0\n"
      "#define ALIGNED\n"
      "#define NOINLINE\n"
      "#define INLINE static inline\n"
      "#endif\n"
      // Both vectorisers of GCC 12 are wrong at -O3: that of loops loads what an earlier iteration
      // stores, under a condition, too early; that of straight code makes all ones of comparisons
      // that become numbers. What should be vectors is written as vectors.
      "#if IS_GNU && !defined(__clang__)\n"
      "#pragma GCC optimize(\"no-tree-loop-vectorize\", \"no-tree-slp-vectorize\")\n"
      "#endif\n";
  if (uses_alignments_)
    out +=
        "#if IS_GNU\n#define ALIGNED_TO(n) __attribute__((aligned(n)))\n"
        "#else\n#define ALIGNED_TO(n)\n#endif\n";
  if (prelude_.uses_prefetch())
    out +=
        "#if IS_GNU\n"
        "#define PREFETCH(p, write, locality) __builtin_prefetch((p), (write), (locality))\n"
        "#else\n"
        "#define PREFETCH(p, write, locality) ((void)(p))\n"
        "#endif\n";
  out +=
      "#if defined(__clang__)\n"
      "#pragma STDC FP_CONTRACT OFF\n"
      "#endif\n";
  if (prelude_.has_vectors())
    out += fmt::format("#ifndef {0}\n#define {0} IS_GNU\n#endif\n", macro);
  if (prelude.find("HAS_ELEMENTWISE_FMA") != std::string::npos)
    out +=
        "#if defined(__has_builtin)\n"
        "#if __has_builtin(__builtin_elementwise_fma)\n"
        "#define HAS_ELEMENTWISE_FMA 1\n"
        "#endif\n#endif\n"
        "#ifndef HAS_ELEMENTWISE_FMA\n#define HAS_ELEMENTWISE_FMA 0\n#endif\n";
  out += "\n" + prelude + arrays;
  if (functions.find("fail(error, ") != std::string::npos)
    out += fmt::format(
        "static int32_t fail({0}_error* error, int32_t code, const char* where,\n"
        "                    const char* message, int64_t value, int64_t bound) {{\n"
        "  if (error) {{\n"
        "    error->code = code;\n    error->where = where;\n    error->message = message;\n"
        "    error->value = value;\n    error->bound = bound;\n  }}\n  return code;\n}}\n\n",
        name_);
  return out + functions;
}

Program ModuleCodegen::run() {
  Program program;
  program.name = name_;
  program.source = source();
  program.entry = entry_;
  program.pools = pools_;
  program.constants = constants_.layout();
  program.has_constants_parameter = has_constants_pointer();
  program.constants_parameter = options_.constants_pool;
  program.can_fail = can_fail_;
  program.inputs = inputs_;
  program.outputs = outputs_;
  program.dims = dims_;
  program.has_shapes = dynamic_;
  program.alignment = program.constants.alignment;
  for (const PoolParameter& pool : pools_)
    program.alignment = std::max(program.alignment, pool.alignment);
  for (const int64_t alignment : entry_.alignments)
    program.alignment = std::max(program.alignment, alignment);
  program.late_slots = late_slots();
  if (entry_.has_host_memory) program.source += "\n" + late_source(program);
  program.header = header(program);
  return program;
}

std::map<std::string, std::string> ModuleCodegen::run_functions() {
  is_definition_ = true;
  std::map<std::string, std::string> texts;
  for (const FunctionInfo& info : functions_) texts[info.name] = function(info);
  return texts;
}

std::map<std::string, std::string> emit_functions(const IRModule& lowered, const Target& target,
                                                  const EmitOptions& options) {
  const IRModule unrolled = tir::with_copies(lowered);
  return ModuleCodegen(unrolled, target, options).run_functions();
}

Program emit(const IRModule& lowered, const Target& target, const EmitOptions& options) {
  const IRModule unrolled = tir::with_copies(lowered);
  return ModuleCodegen(unrolled, target, options).run();
}

}  // namespace tenon::c_backend
