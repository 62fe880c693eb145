// SPDX-License-Identifier: Apache-2.0
// Writes the files beside a program's source: a main program that runs it on files, a Makefile, and
// the adapter by which the runtime calls it.
#include <fmt/core.h>

#include "tenon/backend/c/codegen.h"

namespace tenon::c_backend {

// Tables of the program in front of this; `typedef struct { const char* name; size_t element; int
// ndim; const int64_t* dims; const char* type; const char* dtype; } Tensor`.
static constexpr const char* kMainBody = R"c(
static void fail(const char* what, const char* name) {
  fprintf(stderr, "%s: %s\n", name, what);
  exit(1);
}

static void* memory(size_t bytes, unsigned char** start) {
  /* Guarded: the bytes around it are checked in the end. */
  unsigned char* all = (unsigned char*)malloc(bytes + 2 * GUARD + ALIGN);
  unsigned char* data;
  if (!all) fail("out of memory", "main");
  data = all + GUARD + (ALIGN - (size_t)((uintptr_t)(all + GUARD) % ALIGN)) % ALIGN;
  memset(data - GUARD, 0xA5, GUARD);
  memset(data, 0xCD, bytes);
  memset(data + bytes, 0xA5, GUARD);
  *start = all;
  return data;
}

static void check_guards(const void* data, size_t bytes, const char* name) {
  const unsigned char* p = (const unsigned char*)data;
  size_t i;
  for (i = 0; i < GUARD; ++i)
    if (p[(ptrdiff_t)i - GUARD] != 0xA5 || p[bytes + i] != 0xA5)
      fail("memory around it was written", name);
}

static unsigned char* read_file(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  unsigned char* data;
  long length;
  if (!file || fseek(file, 0, SEEK_END) != 0) fail("cannot be read", path);
  length = ftell(file);
  rewind(file);
  data = (unsigned char*)malloc(length > 0 ? (size_t)length : 1);
  if (!data || length < 0 || fread(data, 1, (size_t)length, file) != (size_t)length)
    fail("cannot be read", path);
  fclose(file);
  *size = (size_t)length;
  return data;
}

static size_t set_dim(const Tensor* tensor, int d, int64_t value, int64_t* symbols,
                      const char* path) {
  const int64_t declared = tensor->dims[d];
  if (declared < 0) {
    int64_t* symbol = &symbols[-1 - declared];
    if (*symbol < 0) *symbol = value;
    if (*symbol != value) fail("a dimension differs from another input's", path);
  } else if (declared != value) {
    fail("a dimension is not what the program declares", path);
  }
  return (size_t)value;
}

/* A .npy file, or elements alone; returns the bytes of the elements, and where they begin. */
static const unsigned char* elements(const unsigned char* file, size_t* size, const Tensor* tensor,
                                     int64_t* symbols, const char* path) {
  size_t at, count = 1;
  int d = 0;
  const char* shape;
  if (*size < 10 || memcmp(file, "\x93NUMPY", 6) != 0) {
    for (d = 0; d < tensor->ndim; ++d) {
      const int64_t dim = tensor->dims[d];
      if (dim < 0 && symbols[-1 - dim] < 0) fail("raw bytes of unknown shape; expected .npy", path);
      count *= (size_t)(dim < 0 ? symbols[-1 - dim] : dim);
    }
    if (*size != count * tensor->element) fail("its size is not that of the input", path);
    return file;
  }
  at = 10 + (size_t)file[8] + 256 * (size_t)file[9];
  shape = strstr((const char*)file + 10, "'shape':");
  if (file[6] != 1 || at > *size || !shape || (const unsigned char*)shape >= file + at)
    fail("not a .npy file of format 1", path);
  for (shape = strchr(shape, '('); *shape != ')' && *shape != '\n';) {
    if (*shape >= '0' && *shape <= '9') {
      char* end;
      const int64_t value = (int64_t)strtol(shape, &end, 10);
      if (d == tensor->ndim) fail("has too many dimensions", path);
      count *= set_dim(tensor, d++, value, symbols, path);
      shape = end;
    } else {
      ++shape;
    }
  }
  if (d != tensor->ndim) fail("has too few dimensions", path);
  if (*size - at != count * tensor->element) fail("its size is not that of the input", path);
  *size -= at;
  return file + at;
}

/* For timing without a file: small numbers; dimensions not known by then are 1. */
static unsigned char* made_up(const Tensor* tensor, int64_t* symbols, size_t* size) {
  size_t count = 1, i;
  int d;
  unsigned char* data;
  for (d = 0; d < tensor->ndim; ++d) {
    int64_t dim = tensor->dims[d];
    if (dim < 0 && symbols[-1 - dim] < 0) symbols[-1 - dim] = 1;
    if (dim < 0) dim = symbols[-1 - dim];
    count *= (size_t)dim;
  }
  *size = count * tensor->element;
  data = (unsigned char*)calloc(count + 1, tensor->element);
  if (!data) fail("out of memory", tensor->name);
  if (strcmp(tensor->type, "<f4") == 0)
    for (i = 0; i < count; ++i) {
      const float value = (float)(i % 17) / 17.0f - 0.5f;
      memcpy(data + 4 * i, &value, 4);
    }
  return data;
}

/* FOLDER and the folders that it lies in, where they are not there yet. */
static void make_folders(const char* folder) {
  char path[1024];
  size_t i;
  if (strlen(folder) >= sizeof(path)) fail("too long a name", folder);
  for (i = 0; i <= strlen(folder); ++i) {
    path[i] = folder[i];
    if (i == 0 || (folder[i] != '/' && folder[i] != '\0')) continue;
    path[i] = '\0';
    if (MAKE_FOLDER(path) != 0 && errno != EEXIST) fail(strerror(errno), path);
    path[i] = folder[i];
  }
}

static void write_npy(const char* folder, const Tensor* tensor, const int64_t* dims,
                      const void* data, size_t bytes) {
  char path[1024], header[512];
  size_t used;
  int d;
  FILE* file;
  if (strlen(folder) + strlen(tensor->name) + 8 > sizeof(path)) fail("too long a name", folder);
  sprintf(path, "%s/%s.npy", folder, tensor->name);
  used = (size_t)sprintf(header, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                         tensor->type);
  for (d = 0; d < tensor->ndim; ++d)
    used += (size_t)sprintf(header + used, "%ld, ", (long)dims[d]);
  used += (size_t)sprintf(header + used, "), }");
  while ((used + 11) % 64 != 0) header[used++] = ' ';
  header[used++] = '\n';
  file = fopen(path, "wb");
  if (!file) fail(strerror(errno), path);
  fwrite("\x93NUMPY\x01\x00", 1, 8, file);
  fputc((int)(used % 256), file);
  fputc((int)(used / 256), file);
  fwrite(header, 1, used, file);
  if (fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0) fail(strerror(errno), path);
  printf("wrote %s: %s (", path, tensor->dtype);
  for (d = 0; d < tensor->ndim; ++d) printf("%s%ld", d ? ", " : "", (long)dims[d]);
  printf(")\n");
}

static double seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }
)c";

static const char* npy_type(DType dtype) {
  if (dtype.is_bool()) return "|b1";
  static thread_local std::string text;
  const char kind = dtype.is_int()                                         ? 'i'
                    : dtype.is_uint() || dtype.code != DType::Code::kFloat ? 'u'
                                                                           : 'f';
  text = fmt::format("{}{}{}", dtype.bytes() > 1 ? '<' : '|', kind, dtype.bytes());
  return text.c_str();
}

// The dimensions of a tensor as a table: symbol s as -1 - s; what is computed as 0.
static std::string dims_table(const Program& program, const tir::Buffer& buffer) {
  std::string text;
  for (const Expr& dim : buffer.shape) {
    int64_t number = as_int(dim).value_or(0);
    for (size_t s = 0; s < program.entry.symbols.size(); ++s)
      if (dim.get() == program.entry.symbols[s].var.get()) number = -1 - static_cast<int64_t>(s);
    text += fmt::format("{}{}", text.empty() ? "" : ", ", number);
  }
  return text.empty() ? "0" : text;
}

static std::string tables(const Program& program) {
  std::string text =
      "typedef struct {\n  const char* name;\n  size_t element; /* bytes */\n  int ndim;\n"
      "  const int64_t* dims; /* -1 - s is symbol s */\n  const char* type; /* of .npy */\n"
      "  const char* dtype;\n} Tensor;\n\n";
  const auto rows = [&](const char* what, size_t count, bool output,
                        const std::vector<std::string>& names) {
    for (size_t i = 0; i < count; ++i)
      text += fmt::format(
          "static const int64_t {}_{}_dims[] = {{{}}};\n", what, i,
          dims_table(program, output ? program.entry.output(i) : program.entry.input(i)));
    text += fmt::format("static const Tensor {}_table[] = {{\n", what);
    for (size_t i = 0; i < count; ++i) {
      const tir::Buffer& buffer = output ? program.entry.output(i) : program.entry.input(i);
      text += fmt::format("    {{\"{}\", {}, {}, {}_{}_dims, \"{}\", \"{}\"}},\n", names[i],
                          buffer.dtype.bytes(), buffer.ndim(), what, i, npy_type(buffer.dtype),
                          buffer.dtype.str());
    }
    if (count == 0) text += "    {0, 0, 0, 0, 0, 0},\n";
    text += "};\n\n";
  };
  rows("input", program.entry.inputs, false, program.inputs);
  rows("output", program.entry.outputs, true, program.outputs);
  return text;
}

// How it is called, and what each input is: on the error stream, unless it was asked for.
static std::string usage_function(const Program& program) {
  std::string names, lines;
  for (size_t i = 0; i < program.entry.inputs; ++i) {
    const tir::Buffer& buffer = program.entry.input(i);
    names += " " + program.inputs[i];
    lines += "  fputs(" +
             c_string(fmt::format("  {}  {} {}\n", program.inputs[i], buffer.dtype.str(),
                                  comment_text(str(buffer.shape)))) +
             ", to);\n";
  }
  return "static int usage(const char* given) {\n"
         "  const int asked = strcmp(given, \"-h\") == 0 || strcmp(given, \"--help\") == 0;\n"
         "  FILE* to = asked ? stdout : stderr;\n"
         "  fputs(" +
         c_string(fmt::format("usage: main_{} [-o FOLDER] [-n REPEAT]{}{}\n", program.name,
                              program.has_constants_parameter ? " [-c CONSTANTS]" : "", names)) +
         ", to);\n" + lines +
         "  fputs(\"Inputs are .npy files, files of their elements, or - for numbers that are made "
         "\"\n"
         "        \"up.\\n\", to);\n"
         "  return asked ? 0 : 2;\n}\n\n";
}

static std::string dims_of_symbols(const Program& program) {
  std::string out;
  for (size_t s = 0; s < program.dims.size(); ++s)
    out += fmt::format("  dims.{} = symbols[{}];\n", program.dims[s], s);
  return out;
}

// Sets the structs of inputs and outputs from an array of pointers.
static std::string tensors(const Program& program, const char* pointers) {
  const size_t inputs = program.entry.inputs, outputs = program.entry.outputs;
  std::string out;
  for (size_t i = 0; i < inputs; ++i)
    out += fmt::format("  in.{} = (const {}*){}[{}];\n", program.inputs[i],
                       c_type(program.entry.input(i).dtype), pointers, i);
  if (inputs == 0) out += "  in.unused = 0;\n";
  bool is_empty = true;
  for (size_t i = 0; i < outputs; ++i) {
    if (program.entry.is_late(i)) continue;
    is_empty = false;
    out += fmt::format("  out.{} = ({}*){}[{}];\n", program.outputs[i],
                       c_type(program.entry.output(i).dtype), pointers, inputs + i);
  }
  if (is_empty) out += "  out.unused = 0;\n";
  return out;
}

static size_t most_dims(const Program& program) {
  size_t most = 1;
  for (size_t i = 0; i < program.entry.outputs; ++i)
    most = std::max(most, program.entry.output(i).ndim());
  return most;
}

// What the program asks for while it runs.
static std::string late_functions(const Program& program) {
  if (!program.entry.has_host_memory) return "";
  std::string flags;
  for (size_t i = 0; i < program.entry.outputs; ++i)
    flags += fmt::format("{}{}", i ? ", " : "", program.entry.is_late(i) ? 1 : 0);
  const size_t outputs = program.entry.outputs;
  return fmt::format(
      "static const int is_late[] = {{{0}}};\n"
      "static void* late_data[{1}];\nstatic unsigned char* late_owned[{1}];\n"
      "static size_t late_bytes[{1}];\nstatic int64_t late_dims[{1}][{2}];\n"
      "static void* slot_data[{3}];\nstatic unsigned char* slot_owned[{3}];\n"
      "static size_t slot_bytes[{3}];\n\n"
      "static int32_t give_workspace(void* state, int32_t slot, int64_t bytes, void** place) {{\n"
      "  unsigned char* owned = slot_owned[slot];\n  (void)state;\n  if (bytes < 0) return 3;\n"
      "  *place = memory((size_t)bytes, &slot_owned[slot]);\n"
      "  if (owned) {{\n"
      "    check_guards(slot_data[slot], slot_bytes[slot], \"workspace\");\n"
      "    memcpy(*place, slot_data[slot],\n"
      "           slot_bytes[slot] < (size_t)bytes ? slot_bytes[slot] : (size_t)bytes);\n"
      "    free(owned);\n  }}\n"
      "  slot_data[slot] = *place;\n  slot_bytes[slot] = (size_t)bytes;\n  return 0;\n}}\n\n"
      "static int32_t give_output(void* state, int32_t index, const int64_t* dims, void** place) "
      "{{\n"
      "  size_t bytes = output_table[index].element;\n  int d;\n  (void)state;\n"
      "  for (d = 0; d < output_table[index].ndim; ++d) {{\n"
      "    if (dims[d] < 0) return 3;\n"
      "    late_dims[index][d] = dims[d];\n    bytes *= (size_t)dims[d];\n  }}\n"
      "  free(late_owned[index]);\n  late_bytes[index] = bytes;\n"
      "  *place = late_data[index] = memory(bytes, &late_owned[index]);\n  return 0;\n}}\n\n",
      flags, std::max<size_t>(1, outputs), most_dims(program), program.late_slots + 1);
}

// The variables of main().
static std::string declarations(const Program& program) {
  const std::string& name = program.name;
  const bool dynamic = program.has_shapes, maps = program.has_constants_parameter;
  const size_t inputs = program.entry.inputs, outputs = program.entry.outputs;
  std::string out = "  const char* folder = \".\";\n";
  if (maps) out += fmt::format("  const char* constants_path = \"{}.constants\";\n", name);
  out += "  int repeat = 1, given = 0, i, d;\n  double best = 0;\n";
  out += fmt::format("  const char* paths[{}] = {{0}};\n", inputs + 1);
  out += fmt::format("  int64_t symbols[{}] = {{0}};\n", program.dims.size() + 1);
  out += fmt::format("  void* data[{}] = {{0}};\n  size_t bytes[{}] = {{0}};\n",
                     inputs + outputs + 1, inputs + outputs + 1);
  out +=
      fmt::format("  unsigned char* owned[{}] = {{0}};\n  unsigned char* file;\n  size_t size;\n",
                  inputs + outputs + program.pools.size() + 2);
  if (!program.dims.empty()) out += fmt::format("  {0}_dims dims;\n", name);
  if (dynamic) out += fmt::format("  {0}_sizes sizes;\n", name);
  out += fmt::format("  {0}_inputs in;\n  {0}_outputs out;\n", name);
  if (program.can_fail) out += fmt::format("  {}_error error = {{0, 0, 0, 0, 0}};\n", name);
  if (program.entry.has_host_memory)
    out += fmt::format("  const {}_late late = {{0, give_workspace, give_output}};\n", name);
  for (const PoolParameter& pool : program.pools)
    out += fmt::format("  void* {0};\n  size_t {0}_bytes;\n", pool.name + "_pool");
  if (maps) out += "  void* constants;\n";
  out += "  int32_t code = 0;\n\n";
  return out;
}

// Reads options and inputs.
static std::string reading(const Program& program) {
  const bool maps = program.has_constants_parameter;
  const size_t inputs = program.entry.inputs;
  std::string out =
      "  for (i = 1; i < argc; ++i) {\n"
      "    if (strcmp(argv[i], \"-o\") == 0 && i + 1 < argc) folder = argv[++i];\n"
      "    else if (strcmp(argv[i], \"-n\") == 0 && i + 1 < argc) repeat = atoi(argv[++i]);\n";
  if (maps)
    out +=
        "    else if (strcmp(argv[i], \"-c\") == 0 && i + 1 < argc) constants_path = argv[++i];\n";
  out += fmt::format(
      "    else if (given < {} && (argv[i][0] != '-' || !argv[i][1])) paths[given++] = argv[i];\n",
      inputs);
  out += "    else return usage(argv[i]);\n  }\n";
  out += fmt::format("  if (given != {}) return usage(\"\");\n", inputs);
  out += fmt::format("  for (i = 0; i < {}; ++i) symbols[i] = -1;\n", program.dims.size() + 1);
  out +=
      "  for (i = 0; i < given; ++i) {\n"
      "    const unsigned char* from;\n"
      "    if (strcmp(paths[i], \"-\") == 0) {\n"
      "      from = file = made_up(&input_table[i], symbols, &size);\n"
      "    } else {\n"
      "      file = read_file(paths[i], &size);\n"
      "      from = elements(file, &size, &input_table[i], symbols, paths[i]);\n"
      "    }\n"
      "    data[i] = memory(size, &owned[i]);\n    bytes[i] = size;\n"
      "    memcpy(data[i], from, size);\n    free(file);\n  }\n";
  return out;
}

// Sets dimensions, and takes memory for outputs, pools and constants.
static std::string allocation(const Program& program) {
  const std::string& name = program.name;
  const std::string macro = upper(program.name);
  const bool dynamic = program.has_shapes, maps = program.has_constants_parameter;
  const size_t inputs = program.entry.inputs, outputs = program.entry.outputs;
  std::string out = dims_of_symbols(program);
  if (dynamic)
    out += program.entry.given_checks.empty()
               ? fmt::format("  if ({}_shapes({}&sizes) != 0) fail(\"dimensions\", argv[0]);\n",
                             name, program.dims.empty() ? "" : "&dims, ")
               : fmt::format(
                     "  if ({}_shapes(&dims, &sizes, &error) != 0)\n"
                     "    fail(error.message ? error.message : \"dimensions\", argv[0]);\n",
                     name);
  for (size_t i = 0; i < outputs; ++i) {
    if (program.entry.is_late(i)) continue;
    std::string count = fmt::format("{}", program.entry.output(i).dtype.bytes());
    for (size_t d = 0; d < program.entry.output(i).ndim(); ++d)
      count += dynamic ? fmt::format(" * (size_t)sizes.{}[{}]", program.outputs[i], d)
                       : fmt::format(" * {}", *as_int(program.entry.output(i).shape[d]));
    out += fmt::format("  bytes[{}] = (size_t){};\n", inputs + i, count);
  }
  const bool has_late = program.entry.has_host_memory;
  out += fmt::format("  for (i = {}; i < {}; ++i){}\n    data[i] = memory(bytes[i], &owned[i]);\n",
                     inputs, inputs + outputs,
                     has_late ? fmt::format(" if (!is_late[i - {}])", inputs) : "");
  for (size_t p = 0; p < program.pools.size(); ++p) {
    const std::string& pool = program.pools[p].name;
    const auto number = as_int(program.pools[p].bytes);
    out += fmt::format(
        "  {}_pool_bytes = (size_t){};\n", pool,
        number ? fmt::format("{}_{}_SIZE", macro, upper(pool)) : fmt::format("sizes.{}", pool));
    out += fmt::format("  {0}_pool = memory({0}_pool_bytes, &owned[{1}]);\n", pool,
                       inputs + outputs + p);
  }
  const size_t constants_at = inputs + outputs + program.pools.size();
  if (maps)
    out += fmt::format(
        "  file = read_file(constants_path, &size);\n"
        "  if (size != {}_CONSTANTS_SIZE) fail(\"not the constants of this program\", "
        "constants_path);\n"
        "  constants = memory(size, &owned[{}]);\n  memcpy(constants, file, size);\n"
        "  free(file);\n",
        macro, constants_at);
  return out;
}

// Calls the program, as often as it was asked for.
static std::string run_loop(const Program& program) {
  std::string out = tensors(program, "data");
  std::string args = program.dims.empty() ? "&in, &out" : "&dims, &in, &out";
  for (const PoolParameter& pool : program.pools) args += ", " + pool.name + "_pool";
  if (program.has_constants_parameter) args += ", constants";
  if (program.entry.has_host_memory) args += ", &late";
  if (program.can_fail) args += ", &error";
  out += fmt::format(
      "  for (i = 0; i < repeat && code == 0; ++i) {{\n"
      "    const double begin = seconds();\n    double took;\n    code = {}_run({});\n"
      "    took = seconds() - begin;\n    if (i == 0 || took < best) best = took;\n  }}\n",
      program.name, args);
  if (program.can_fail)
    out +=
        "  if (code != 0) {\n"
        "    fprintf(stderr, \"%s: error %ld in %s: %s (value %ld, bound %ld)\\n\", argv[0],\n"
        "            (long)code, error.where ? error.where : \"?\",\n"
        "            error.message ? error.message : \"?\", (long)error.value, "
        "(long)error.bound);\n    return 1;\n  }\n";
  else
    out += "  if (code != 0) return 1;\n";
  return out;
}

// Checks what lies around the memory, writes the outputs and frees all.
static std::string results(const Program& program) {
  const bool maps = program.has_constants_parameter;
  const size_t inputs = program.entry.inputs, outputs = program.entry.outputs;
  std::string out;
  if (program.entry.has_host_memory)
    out += fmt::format(
        "  for (i = 0; i < {0}; ++i) if (is_late[i]) {{\n    data[{1} + i] = late_data[i];\n"
        "    bytes[{1} + i] = late_bytes[i];\n    owned[{1} + i] = late_owned[i];\n  }}\n",
        outputs, inputs);
  out += fmt::format(
      "  for (i = 0; i < {}; ++i) check_guards(data[i], bytes[i], i < {} ? "
      "input_table[i].name : output_table[i - {}].name);\n",
      inputs + outputs, inputs, inputs);
  for (const PoolParameter& pool : program.pools)
    out += fmt::format("  check_guards({0}_pool, {0}_pool_bytes, \"{0}\");\n", pool.name);
  if (maps)
    out += fmt::format("  check_guards(constants, {}_CONSTANTS_SIZE, \"constants\");\n",
                       upper(program.name));
  out += "  if (repeat > 1) printf(\"%.6f ms\\n\", best * 1e3);\n  make_folders(folder);\n";
  out += fmt::format("  for (i = 0; i < {}; ++i) {{\n    int64_t shape[{}] = {{0}};\n", outputs,
                     most_dims(program));
  out += "    for (d = 0; d < output_table[i].ndim; ++d) shape[d] = output_table[i].dims[d];\n";
  if (program.has_shapes)
    for (size_t i = 0; i < outputs; ++i)
      if (program.entry.output(i).ndim() > 0 && !program.entry.is_late(i))
        out += fmt::format("    if (i == {}) memcpy(shape, sizes.{}, sizeof(sizes.{}));\n", i,
                           program.outputs[i], program.outputs[i]);
  if (program.entry.has_host_memory)
    out += "    if (is_late[i]) memcpy(shape, late_dims[i], sizeof(shape));\n";
  out += fmt::format(
      "    write_npy(folder, &output_table[i], shape, data[{0} + i], bytes[{0} + i]);\n  }}\n",
      inputs);
  out += fmt::format("  for (i = 0; i < {}; ++i) free(owned[i]);\n",
                     inputs + outputs + program.pools.size() + (maps ? 1 : 0));
  return out;
}

std::string main_program(const Program& program) {
  const std::string head = fmt::format(
      "/* Runs `{0}` on files: main_{0} [-o FOLDER] [-n REPEAT]{1} INPUT...\n"
      " * Inputs in the order of {0}_inputs, each a .npy file, its elements alone, or - for "
      "numbers\n"
      " * that are made up; outputs are written to FOLDER/OUTPUT.npy (default: here), which is "
      "made "
      "where it is\n"
      " * not there. With -n it prints the processor time of a run. */\n"
      "#include <errno.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
      "#include <time.h>\n\n"
      "#ifdef _WIN32\n#include <direct.h>\n#define MAKE_FOLDER(path) _mkdir(path)\n#else\n"
      "#include <sys/stat.h>\n#define MAKE_FOLDER(path) mkdir(path, 0777)\n#endif\n\n"
      "#include \"{0}.h\"\n\n#define GUARD 256\n#define ALIGN {2}\n\n",
      program.name, program.has_constants_parameter ? " [-c CONSTANTS]" : "", program.alignment);
  return head + tables(program) + std::string(kMainBody + 1) + "\n" + late_functions(program) +
         usage_function(program) + "int main(int argc, char** argv) {\n" + declarations(program) +
         reading(program) + allocation(program) + run_loop(program) + results(program) +
         "  return 0;\n}\n";
}

// One word of the shell's in a recipe, whatever is in it.
static std::string make_word(const std::string& text) {
  static constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-:,=";
  if (text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (c == '$')
      out += "$$";
    else if (static_cast<unsigned char>(c) >= ' ')
      out += c;
  }
  return out + "'";
}

// What a compiler is told that does not know the name of the processor: the instructions of its
// vectors.
static std::string vector_options(const Target& target) {
  std::string out;
  if (target.vector_bits >= 512) out += " -mavx512f -mavx512dq -mavx512bw -mavx512vl";
  if (target.vector_bits >= 256) out += " -mavx2";
  return out + (target.has_fma ? " -mfma" : "");
}

std::string makefile(const Program& program, const Target& target) {
  std::string linked;
  for (const Program::Linked& file : program.linked) {
    const bool is_shared = file.name.find(".so") != std::string::npos;
    linked += " " + make_word((!is_shared ? "" : file.is_beside ? "./" : "-l:") + file.name);
    // Found beside the program that is built.
    if (file.is_beside && is_shared) linked += " -Wl,-rpath,'$$ORIGIN'";
  }
  std::string machine;
  if (!target.cpu.empty())
    machine = fmt::format(
        "# The processor that the C was written for; older compilers know its instructions, not "
        "its "
        "name.\n"
        "MACHINE := $(shell $(CC) {0} -E -x c /dev/null > /dev/null 2>&1 && echo {0} || echo{1})\n",
        make_word("-march=" + target.cpu), vector_options(target));
  return fmt::format(
      "# Builds main_{0}, which runs the model on files. Options of the compiler: CFLAGS; "
      "libraries, objects\n"
      "# or sources of the functions that the program calls: LDLIBS.\n"
      "CC ?= cc\n{1}CFLAGS ?= -O3{2}\n"
      "# Results do not depend on the compiler where it contracts nothing.\n"
      "STRICT := -std=c99 -pedantic -Wall -Wextra -ffp-contract=off -fno-math-errno\n\n"
      "main_{0}: main_{0}.c {0}.c {0}.h\n"
      "\t$(CC) $(STRICT) $(CFLAGS) -o $@ main_{0}.c {0}.c{3} $(LDLIBS) -lm\n\n"
      ".PHONY: clean\nclean:\n\trm -f main_{0}\n",
      program.name, machine, machine.empty() ? "" : " $(MACHINE)", linked);
}

std::string adapter(const Program& program) {
  const std::string& name = program.name;
  const bool dynamic = program.has_shapes, has_dims = !program.dims.empty();
  // The head of TenonContext, which is fixed within a major version of runtime/abi.h.
  std::string out = fmt::format(
      "#include \"{}.h\"\n\n"
      "typedef struct Context {{\n  uint32_t abi_version, struct_size;\n  void* state;\n"
      "  void (*parallel_for)(void);\n"
      "  int32_t (*report)(struct Context*, int32_t, const char*, const char*, int64_t, int64_t);\n"
      "  int64_t* output_dims;\n  int32_t threads, reserved;\n  void (*call_packed)(void);\n"
      "  int32_t (*provide_memory)(struct Context*, int32_t, int64_t, void**);\n"
      "  int32_t (*provide_output)(struct Context*, int32_t, const int64_t*, void**);\n"
      "}} Context;\n\n",
      name);
  if (program.entry.has_host_memory)
    out +=
        "static int32_t give_workspace(void* state, int32_t slot, int64_t bytes, void** place) {\n"
        "  Context* const context = (Context*)state;\n"
        "  return context->provide_memory(context, slot, bytes, place);\n}\n\n"
        "static int32_t give_output(void* state, int32_t index, const int64_t* dims, void** place) "
        "{\n  Context* const context = (Context*)state;\n"
        "  return context->provide_output(context, index, dims, place);\n}\n\n";
  if (dynamic) {
    out +=
        "int32_t tenon_c_shapes(Context* context, const int64_t* symbols, int64_t* output_dims, "
        "int64_t* workspace_bytes) {\n";
    if (has_dims) out += fmt::format("  {}_dims dims;\n", name);
    out += fmt::format("  {}_sizes sizes;\n  int32_t code;\n", name);
    if (!program.entry.given_checks.empty())
      out += fmt::format("  {}_error error = {{0, 0, 0, 0, 0}};\n", name);
    out += "  (void)symbols;\n";
    out += dims_of_symbols(program);
    const bool checks = !program.entry.given_checks.empty();
    out += fmt::format("  code = {0}_shapes({1}&sizes{2});\n", name, has_dims ? "&dims, " : "",
                       checks ? ", &error" : "");
    if (checks)
      out +=
          "  if (error.code != 0)\n    return context->report(context, code, error.where, "
          "error.message, error.value, error.bound);\n";
    out += fmt::format(
        "  if (code != 0) return context->report(context, code, \"{}\", \"{}\", 0, 0);\n", name,
        has_dims ? "a dimension is negative" : "a library asks for too much scratch");
    size_t at = 0;
    for (size_t i = 0; i < program.entry.outputs; ++i)
      for (size_t d = 0; d < program.entry.output(i).ndim(); ++d)
        out += program.entry.is_late(i) ? fmt::format("  output_dims[{}] = 0;\n", at++)
                                        : fmt::format("  output_dims[{}] = sizes.{}[{}];\n", at++,
                                                      program.outputs[i], d);
    if (program.pools.empty())
      out += "  *workspace_bytes = 0;\n";
    else
      out += fmt::format("  *workspace_bytes = {} + sizes.{};\n", program.pools.back().offset,
                         program.pools.back().name);
    out += "  (void)output_dims;\n  return 0;\n}\n\n";
  }
  out +=
      "int32_t tenon_c_run(Context* context, void* const* buffers, const int64_t* symbols, void* "
      "workspace, const void* constants) {\n";
  if (has_dims) out += fmt::format("  {}_dims dims;\n", name);
  out += fmt::format("  {0}_inputs in;\n  {0}_outputs out;\n", name);
  if (program.can_fail) out += fmt::format("  {}_error error = {{0, 0, 0, 0, 0}};\n", name);
  if (program.entry.has_host_memory) out += fmt::format("  {}_late late;\n", name);
  out += "  int32_t code;\n  (void)symbols;\n  (void)workspace;\n  (void)constants;\n";
  if (program.entry.has_host_memory)
    out +=
        "  late.state = context;\n  late.workspace = give_workspace;\n"
        "  late.output = give_output;\n";
  out += dims_of_symbols(program);
  out += tensors(program, "buffers");
  std::string args = has_dims ? "&dims, &in, &out" : "&in, &out";
  for (const PoolParameter& pool : program.pools)
    args += fmt::format(", (char*)workspace + {}", pool.offset);
  if (program.has_constants_parameter) args += ", constants";
  if (program.entry.has_host_memory) args += ", &late";
  if (program.can_fail) args += ", &error";
  out += fmt::format("  code = {}_run({});\n", name, args);
  if (program.can_fail)
    out +=
        "  if (code != 0)\n    return context->report(context, code, error.where, error.message, "
        "error.value, error.bound);\n";
  else
    out += "  (void)context;\n";
  return out + "  return code;\n}\n";
}

}  // namespace tenon::c_backend
