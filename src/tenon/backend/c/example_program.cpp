// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/c/example_program.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/backend/c/names.h"

namespace tenon::c_backend {

std::string example_value(DType dtype, bool is_extent) {
  if (is_extent) return "1";
  if (dtype == kFloat32 || dtype == kFloat64)
    return fmt::format("({0})(i % 17) / 17 - ({0})0.5", c_type(dtype));
  return dtype.is_integer() || dtype.is_bool() ? "i % 2" : "0";
}

Printed printed_as(DType dtype) {
  if (dtype == kFloat32 || dtype == kFloat64) return {"%g", "double"};
  if (dtype.is_int() || dtype.is_bool()) return {"%lld", "long long"};
  if (dtype.is_uint()) return {"%llu", "unsigned long long"};
  return {"0x%llx", "unsigned long long"};  // the bits: C has no type for it
}

static constexpr const char* kAllocate = R"c(
/* Memory at a multiple of `alignment`. */
static void* allocate(int64_t bytes, int64_t alignment) {
  char* all = (char*)calloc((size_t)(bytes + alignment), 1);
  if (!all) {
    fprintf(stderr, "out of memory\n");
    exit(1);
  }
  return all + (size_t)(alignment - (int64_t)((uintptr_t)all % (uintptr_t)alignment));
}
)c";

static constexpr const char* kReadFile = R"c(
/* A whole file into memory at a multiple of `alignment`. */
static void* read_file(const char* path, int64_t bytes, int64_t alignment) {
  void* data = allocate(bytes, alignment);
  FILE* file = fopen(path, "rb");
  if (!file || fread(data, 1, (size_t)bytes, file) != (size_t)bytes) {
    fprintf(stderr, "%s: not the constants of this program\n", path);
    exit(1);
  }
  fclose(file);
  return data;
}
)c";

// The extents of a tensor as C: "dims.batch * 10".
static std::string count_of(const Program& program, const tir::Buffer& buffer, bool is_output,
                            const std::string& member) {
  std::string out;
  for (size_t d = 0; d < buffer.ndim(); ++d) {
    std::string extent = is_output ? fmt::format("sizes.{}[{}]", member, d) : "1";
    if (const auto number = as_int(buffer.shape[d])) extent = std::to_string(*number);
    for (size_t s = 0; s < program.entry.symbols.size(); ++s)
      if (buffer.shape[d].get() == program.entry.symbols[s].var.get())
        extent = "dims." + program.dims[s];
    out += (out.empty() ? "(int64_t)" : " * ") + extent;
  }
  return out.empty() ? "1" : out;
}

static std::string printing(const Program& program, size_t i) {
  const tir::Buffer& buffer = program.entry.output(i);
  const Printed printed = printed_as(buffer.dtype);
  const std::string& member = program.outputs[i];
  const bool is_late = program.entry.is_late(i);
  std::string shape, extents, count;
  for (size_t d = 0; d < buffer.ndim(); ++d) {
    shape += d > 0 ? ", %ld" : "%ld";
    const auto number = as_int(buffer.shape[d]);
    const std::string extent = is_late  ? fmt::format("pool.{}_dims[{}]", member, d)
                               : number ? std::to_string(*number)
                                        : fmt::format("sizes.{}[{}]", member, d);
    extents += ", (long)" + extent;
    count += (count.empty() ? "" : " * ") + extent;
  }
  if (!is_late) count = count_of(program, buffer, true, member);
  return fmt::format(
      "  printf(\"%s: {0} ({1})\\n\", {2}{3});\n"
      "  for (i = 0; i < {4} && i < 10; ++i) printf(\" {5}\", ({6}){8}.{7}[i]);\n"
      "  printf(\"\\n\");\n",
      buffer.dtype.str(), shape, c_string(program.entry.output_names[i]), extents,
      count.empty() ? "1" : count, printed.conversion, printed.type, member,
      is_late ? "pool" : "out");
}

std::string example_program(const Program& program) {
  const std::string& name = program.name;
  const std::string macro = upper(name);
  const bool dynamic = !program.dims.empty();
  std::string arguments;
  for (const std::string& dim : program.dims) arguments += " " + dim;
  std::string out = fmt::format(
      "/* Runs `{0}` once, on made-up numbers: {0}_example{1}\n *\n"
      " *     cc {0}_example.c {0}.c -lm -o {0}_example\n */\n"
      "#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n\n#include \"{0}.h\"\n",
      name, arguments);
  out += kAllocate;
  if (program.has_constants_parameter) out += kReadFile;
  out += "\nint main(int argc, char** argv) {\n  int64_t i;\n  int32_t code;\n";
  if (dynamic) out += fmt::format("  {0}_dims dims;\n  {0}_sizes sizes;\n", name);
  out += fmt::format("  {0}_inputs in;\n  {0}_outputs out;\n", name);
  if (program.can_fail) out += fmt::format("  {}_error error = {{0, 0, 0, 0, 0}};\n", name);
  if (program.entry.has_host_memory)
    out += fmt::format("  {0}_pool pool;\n  {0}_late late;\n", name);
  for (const PoolParameter& pool : program.pools)
    out += fmt::format("  void* {}_pool;\n", pool.name);
  if (program.has_constants_parameter) out += "  void* constants;\n";
  if (dynamic) {
    out += "\n  /* The dimensions that are known only here, and what follows from them. */\n";
    for (size_t s = 0; s < program.dims.size(); ++s)
      out +=
          fmt::format("  dims.{0} = argc > {1} ? atoll(argv[{1}]) : 4;\n", program.dims[s], s + 1);
    out += fmt::format(
        "  if ({}_shapes(&dims, &sizes) != 0) {{\n"
        "    fprintf(stderr, \"a dimension is negative\\n\");\n    return 1;\n  }}\n",
        name);
  } else {
    out += "  (void)argc;\n  (void)argv;\n";
  }
  const auto memory = [&](const std::string& variable, const tir::Buffer& buffer,
                          const std::string& count, const std::string& qualifier) {
    return fmt::format("  {0} = ({1}{2}*)allocate({3} * {4}, 64);\n", variable, qualifier,
                       c_type(buffer.dtype), count, buffer.dtype.bytes());
  };
  out += "\n  /* Inputs and outputs: put your own numbers here. */\n";
  for (size_t i = 0; i < program.entry.inputs; ++i) {
    const tir::Buffer& buffer = program.entry.input(i);
    const std::string count = count_of(program, buffer, false, program.inputs[i]);
    out += memory("in." + program.inputs[i], buffer, count, "const ");
    out += fmt::format("  for (i = 0; i < {0}; ++i) (({1}*)in.{2})[i] = ({1})({3});\n", count,
                       c_type(buffer.dtype), program.inputs[i], example_value(buffer.dtype, false));
  }
  if (program.entry.inputs == 0) out += "  in.unused = 0;\n";
  bool is_empty = true;
  for (size_t i = 0; i < program.entry.outputs; ++i) {
    if (program.entry.is_late(i)) continue;
    is_empty = false;
    out += memory("out." + program.outputs[i], program.entry.output(i),
                  count_of(program, program.entry.output(i), true, program.outputs[i]), "");
  }
  if (is_empty) out += "  out.unused = 0;\n";
  if (!program.pools.empty()) out += "\n  /* The memory that a run needs besides. */\n";
  std::string args = dynamic ? "&dims, &in, &out" : "&in, &out";
  for (const PoolParameter& pool : program.pools) {
    const std::string bytes = as_int(pool.bytes)
                                  ? fmt::format("{}_{}_SIZE", macro, upper(pool.name))
                                  : fmt::format("sizes.{}", pool.name);
    out += fmt::format("  {0}_pool = allocate({1}, {2}_{3}_ALIGN);\n", pool.name, bytes, macro,
                       upper(pool.name));
    args += ", " + pool.name + "_pool";
  }
  if (program.has_constants_parameter) {
    out += fmt::format("  constants = read_file(\"{0}.constants\", {1}_CONSTANTS_SIZE, 64);\n",
                       name, macro);
    args += ", constants";
  }
  if (program.entry.has_host_memory) {
    out += fmt::format(
        "\n  /* What the run asks for when it knows how much it is: twice as much until it is "
        "enough. */\n"
        "  pool.bytes = 1 << 16;\n  do {{\n    pool.bytes *= 2;\n"
        "    pool.data = allocate(pool.bytes, {1}_LATE_ALIGN);\n    late = {0}_late_of(&pool);\n"
        "    code = {0}_run({2}, &late, &error);\n  }} while (code == {1}_TOO_SMALL);\n"
        "  if (code != 0) {{\n",
        name, macro, args);
  } else {
    out += fmt::format("\n  code = {}_run({}{});\n  if (code != 0) {{\n", name, args,
                       program.can_fail ? ", &error" : "");
  }
  out += program.can_fail ? "    fprintf(stderr, \"%s: %s\\n\", error.where, error.message);\n"
                          : "    fprintf(stderr, \"code %ld\\n\", (long)code);\n";
  out += "    return 1;\n  }\n\n";
  for (size_t i = 0; i < program.entry.outputs; ++i) out += printing(program, i);
  if (program.entry.outputs == 0 && program.entry.inputs == 0) out += "  (void)i;\n";
  return out + "  return 0;\n}\n";
}

}  // namespace tenon::c_backend
