// SPDX-License-Identifier: Apache-2.0
// Writes the C header of a program.
#include "tenon/backend/c/codegen.h"

namespace tenon::c_backend {

static std::string shape_text(const tir::Buffer& buffer) {
  return comment_text(buffer.dtype.str() + " " + str(buffer.shape));
}

static std::string size_macro(const std::string& name, const std::string& what, const Expr& bytes) {
  const auto number = as_int(bytes);
  if (!number) return "";
  return fmt::format("#define {}_{}_SIZE {}\n", upper(name), upper(what), *number);
}

// What the program fills in and hands to a library: `typedef struct {...} conv_params;`.
static std::string struct_definition(const tir::ExternFunction& function,
                                     const tir::ParamGroup& group) {
  std::string_view type = group.struct_type;
  const bool is_tagged = type.starts_with("struct ");
  std::string out = is_tagged ? group.struct_type + " {\n" : "typedef struct {\n";
  size_t next = group.first;
  for (const tir::ParamGroup::Member& member : group.members) {
    out += fmt::format("  {} {}", function.c_type(next).str(), member.name);
    out += member.count == 0 ? ";\n" : fmt::format("[{}];\n", member.count);
    next += static_cast<size_t>(member.size());
  }
  return out + (is_tagged ? "};\n" : fmt::format("}} {};\n", type));
}

// Each once, in the order of their first calls.
std::string ModuleCodegen::library_prototypes() const {
  std::string out;
  Names known;
  std::map<std::string, std::string> structs;
  for (const FunctionInfo& info : functions_)
    walk<tir::CallTir>(info.function->body, [&](const tir::CallTir& call) {
      const auto library = library_function(call.callee->name);
      if (!library || library->is_packed || known.has(library->symbol)) return;
      known.reserve(library->symbol);
      for (const tir::ParamGroup& group : library->groups) {
        if (!group.is_struct()) continue;
        const std::string text = struct_definition(*library, group);
        const auto [defined, is_new] = structs.emplace(group.struct_type, text);
        if (is_new) out += text;
        if (defined->second != text)
          throw CompileError(kDTypeMismatch, library->origin,
                             "struct `{}` of library function `{}` has other members than where "
                             "another function takes it",
                             group.struct_type, library->symbol);
      }
      out += library->prototype() + ";\n";
    });
  for (const auto& [symbol, prototype] : foreign_)
    if (!known.has(symbol)) out += prototype + ";\n";
  return out.empty()
             ? out
             : "/* Functions of libraries, which the program is linked with. */\n" + out + "\n";
}

// Arguments of library functions that are more than pointers and scalars.
static constexpr const char* kTensors =
    "/* As dlpack.h has it, which is included before this file where both are used. */\n"
    "#if !defined(DLPACK_DLPACK_H_) && !defined(TENON_DLTENSOR)\n"
    "#define TENON_DLTENSOR\n"
    "typedef struct {\n  int32_t device_type, device_id; /* 1, 0: memory of the CPU */\n"
    "} DLDevice;\n"
    "typedef struct {\n  uint8_t code, bits; /* 0 int, 1 uint, 2 float, 4 bfloat, 6 bool */\n"
    "  uint16_t lanes;\n} DLDataType;\n"
    "typedef struct {\n  void* data;\n  DLDevice device;\n  int32_t ndim;\n"
    "  DLDataType dtype;\n  int64_t* shape;\n  int64_t* strides; /* in elements */\n"
    "  uint64_t byte_offset;\n} DLTensor;\n"
    "#endif\n\n";
static constexpr const char* kValues =
    "/* What packed functions take and give: a value with a code beside it: 0 a signed integer,\n"
    " * 1 an unsigned one, 2 a float, 3 a pointer, 4 nothing, 7 a DLTensor*, 11 a text. Results\n"
    " * are tensors to be filled. */\n"
    "#if !defined(TENON_RUNTIME_ABI_H_) && !defined(TENON_VALUE)\n"
    "#define TENON_VALUE\n"
    "typedef union {\n  int64_t integer;\n  double number;\n  void* pointer;\n"
    "  const char* text;\n} TenonValue;\n"
    "#endif\n\n";

std::string ModuleCodegen::error_type() const {
  return fmt::format(
      "/* What went wrong: a code other than 0, the operator, and a message, in which {{value}} "
      "and\n * {{bound}} stand for the numbers. */\n"
      "typedef struct {{\n  int32_t code;\n  const char* where;\n  const char* message;\n"
      "  int64_t value, bound;\n}} {}_error;\n\n",
      name_);
}

std::string ModuleCodegen::header(const Program& program) const {
  const std::string guard = upper(name_) + "_H_", macro = upper(name_);
  std::string out = fmt::format(
      "/* {}: made by tenon. Call {}_run() with memory of the sizes below; it allocates nothing,\n"
      " * keeps no state, and may run in several threads at once, each with its own memory. */\n"
      "#ifndef {}\n#define {}\n\n#include <stddef.h>\n#include <stdint.h>\n\n",
      comment_text(options_.name), name_, guard, guard);
  const std::string prototypes = options_.includes.empty() ? library_prototypes() : "";
  if (prototypes.find("bool ") != std::string::npos) out += "#include <stdbool.h>\n\n";
  for (const std::string& include : options_.includes)
    out += fmt::format("#include \"{}\"\n\n", include);
  out += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";

  if (uses_tensors_) out += kTensors;
  if (uses_packed_) out += kValues;
  out += prototypes;
  if (!pools_.empty()) {
    out += "/* Bytes that the caller provides, and what their address is a multiple of. */\n";
    for (const PoolParameter& pool : pools_) {
      out += size_macro(name_, pool.name, pool.bytes);
      out += fmt::format("#define {}_{}_ALIGN {}\n", macro, upper(pool.name), pool.alignment);
    }
    out += "\n";
  }
  if (program.constants.bytes > 0 && has_constants_pointer())
    out += fmt::format(
        "/* Constant bytes that the caller provides: the file {0}.constants. */\n"
        "#define {1}_CONSTANTS_SIZE {2}\n#define {1}_CONSTANTS_ALIGN {3}\n\n",
        name_, macro, program.constants.bytes, program.constants.alignment);
  else
    out += fmt::format(
        "/* Bytes of constants that the caller provides: they are in the source. */\n"
        "#define {}_CONSTANTS_SIZE {}\n\n",
        macro, has_constants_pointer() ? program.constants.bytes : 0);

  if (!dims_.empty()) {
    out += "/* The dimensions that are known only at run time. */\ntypedef struct {\n";
    for (size_t s = 0; s < dims_.size(); ++s) {
      const backend::EntrySymbol& symbol = entry_.symbols[s];
      out += fmt::format("  int64_t {}; /* {} {} of `{}` */\n", dims_[s],
                         symbol.is_element ? "element" : "dimension", symbol.index,
                         comment_text(entry_.input_names[symbol.input]));
    }
    out += fmt::format("}} {}_dims;\n\n", name_);
  }
  if (dynamic_) {
    out += dims_.empty()
               ? "/* Bytes of memory that a library is asked for, and dimensions of outputs. */\n"
               : "/* What follows from them: bytes of memory, and dimensions of outputs. */\n";
    out += "typedef struct {\n";
    for (const PoolParameter& pool : pools_) out += fmt::format("  int64_t {};\n", pool.name);
    for (size_t i = 0; i < entry_.outputs; ++i)
      if (entry_.output(i).ndim() > 0 && !entry_.is_late(i))
        out += fmt::format("  int64_t {}[{}]; /* {} */\n", outputs_[i], entry_.output(i).ndim(),
                           shape_text(entry_.output(i)));
    out += fmt::format("}} {}_sizes;\n\n", name_);
    if (!entry_.given_checks.empty()) out += error_type();
    out += std::string("/* 0; 1 where a dimension is negative") +
           (queries_.empty() ? "" : ", or what a library asks for is too much") +
           (entry_.given_checks.empty() ? ""
                                        : ";\n * the code in `error`, which may be null, where an "
                                          "element of an input is not allowed") +
           ". */\n" + shapes_prototype() + ";\n\n";
  }

  out += "/* Elements are packed, row-major. No output overlaps another buffer. */\n";
  const auto members = [&](const char* what, size_t count, const std::vector<std::string>& names,
                           bool is_output) {
    out += "typedef struct {\n";
    bool is_empty = true;
    for (size_t i = 0; i < count; ++i) {
      if (is_output && entry_.is_late(i)) continue;
      is_empty = false;
      const tir::Buffer& buffer = is_output ? entry_.output(i) : entry_.input(i);
      const int64_t alignment = entry_.alignments[is_output ? entry_.inputs + i : i];
      out += fmt::format(
          "  {}{}* {}; /* {}{} */\n", is_output ? "" : "const ", c_type(buffer.dtype), names[i],
          shape_text(buffer),
          alignment > 1 ? fmt::format(", its address a multiple of {}", alignment) : "");
    }
    if (is_empty) out += "  int unused;\n";
    out += fmt::format("}} {}_{};\n\n", name_, what);
  };
  members("inputs", entry_.inputs, inputs_, false);
  members("outputs", entry_.outputs, outputs_, true);
  if (entry_.has_host_memory) out += late_header(program);

  if (can_fail_ && entry_.given_checks.empty()) out += error_type();
  if (can_fail_)
    out += fmt::format(
        "/* Codes: {}2 an index out of range, 3 a shape, 4 a value, 6 a library's function "
        "failed{}.\n"
        " * `error` may be null. */\n",
        entry_.checks_addresses() ? "1 an address, " : "",
        entry_.has_host_memory ? ", others as `late` returns them" : "");
  else
    out += "/* Returns 0. */\n";
  out += entry_prototype() + ";\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif /* " + guard + " */\n";
  return out;
}

}  // namespace tenon::c_backend
