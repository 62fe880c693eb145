// SPDX-License-Identifier: Apache-2.0
// Memory whose size a program knows only when part of it has run: callbacks of the caller, and a pool
// that answers them.
#include "tenon/backend/c/codegen.h"
#include "tenon/tir/host_memory.h"

namespace tenon::c_backend {

using tir::Buffer;

namespace {

// As in runtime/abi.h.
constexpr int kErrorShape = 3, kErrorMemory = 5;

std::string count_of_dims(const Buffer& buffer) {
  return std::to_string(std::max<size_t>(1, buffer.ndim()));
}

}  // namespace

int64_t ModuleCodegen::late_slots() const {
  int64_t slots = 0;
  walk<tir::AllocBuffer>(entry_.function->body, [&](const tir::AllocBuffer& alloc) {
    slots = std::max(slots, tir::host_workspace(alloc).value_or(0));
  });
  return slots;
}

std::string ModuleCodegen::late_header(const Program& program) const {
  std::string out = fmt::format(
      "/* Memory that the program asks for while it runs, when its size is known. Both set "
      "*place,\n"
      " * aligned to {1}_LATE_ALIGN, and return 0, or a code that ends the run.\n"
      " *   workspace: `bytes` bytes, which live until the run ends or `slot`, from 1 to {2}, is "
      "asked\n"
      " *              for again; they hold what the slot held\n"
      " *   output:    output `index`, counted from 0 among all, of dimensions `dims` */\n"
      "#define {1}_LATE_ALIGN {3}\n"
      "typedef struct {{\n  void* state;\n"
      "  int32_t (*workspace)(void* state, int32_t slot, int64_t bytes, void** place);\n"
      "  int32_t (*output)(void* state, int32_t index, const int64_t* dims, void** place);\n"
      "}} {0}_late;\n\n"
      "/* A pool of the caller that such memory is taken from, in the order in which it is asked\n"
      " * for. Where it is too small the run returns {1}_TOO_SMALL, and `used` is what it needed "
      "so\n"
      " * far. Outputs stand in it: their places and dimensions are set. */\n"
      "#define {1}_TOO_SMALL {4}\n"
      "typedef struct {{\n  void* data; /* aligned to {1}_LATE_ALIGN */\n  int64_t bytes, used;\n",
      name_, upper(name_), program.late_slots, program.alignment, kErrorMemory);
  if (program.late_slots > 0)
    out += fmt::format("  void* slots[{0}];\n  int64_t slot_bytes[{0}];\n", program.late_slots);
  for (size_t i = 0; i < entry_.outputs; ++i)
    if (entry_.is_late(i))
      out += fmt::format(
          "  {0}* {1}; /* {2} */\n  int64_t {1}_dims[{3}];\n", c_type(entry_.output(i).dtype),
          outputs_[i],
          comment_text(entry_.output(i).dtype.str() + " " + str(entry_.output(i).shape)),
          count_of_dims(entry_.output(i)));
  return out + fmt::format(
                   "}} {0}_pool;\n\n"
                   "/* What gives memory of `pool`, for one run. */\n"
                   "{0}_late {0}_late_of({0}_pool* pool);\n\n",
                   name_);
}

std::string ModuleCodegen::late_source(const Program& program) const {
  std::string out = fmt::format(
      "static int32_t pool_take({0}_pool* pool, int64_t bytes, void** place) {{\n"
      "  const int64_t begin = (pool->used + {1}_LATE_ALIGN - 1) / {1}_LATE_ALIGN * "
      "{1}_LATE_ALIGN;\n"
      "  if (bytes < 0 || bytes > INT64_MAX - begin) return {2};\n"
      "  pool->used = begin + bytes;\n"
      "  if (pool->used > pool->bytes) return {1}_TOO_SMALL;\n"
      "  *place = (uint8_t*)pool->data + begin;\n  return 0;\n}}\n\n"
      "static int32_t pool_workspace(void* state, int32_t slot, int64_t bytes, void** place) {{\n"
      "  {0}_pool* const pool = ({0}_pool*)state;\n",
      name_, upper(name_), kErrorShape);
  if (program.late_slots > 0)
    out +=
        "  void* const held = pool->slots[slot - 1];\n"
        "  int32_t code = 0;\n"
        "  if (!held || pool->slot_bytes[slot - 1] < bytes) {\n"
        "    code = pool_take(pool, bytes, &pool->slots[slot - 1]);\n"
        "    if (code != 0) return code;\n"
        "    if (held) memcpy(pool->slots[slot - 1], held, (size_t)pool->slot_bytes[slot - 1]);\n"
        "    pool->slot_bytes[slot - 1] = bytes;\n  }\n"
        "  *place = pool->slots[slot - 1];\n  return code;\n}\n\n";
  else
    out += "  (void)slot;\n  return pool_take(pool, bytes, place);\n}\n\n";
  out += fmt::format(
      "static int32_t pool_output(void* state, int32_t index, const int64_t* dims, void** place) "
      "{{\n"
      "  {0}_pool* const pool = ({0}_pool*)state;\n  int64_t bytes = 0;\n  int32_t code = 0;\n"
      "  int d;\n  (void)dims;\n  (void)d;\n  switch (index) {{\n",
      name_);
  for (size_t i = 0; i < entry_.outputs; ++i) {
    if (!entry_.is_late(i)) continue;
    const Buffer& buffer = entry_.output(i);
    out += fmt::format("    case {}:\n      bytes = {};\n", i, buffer.dtype.bytes());
    // The program has checked that these are at most 2^44 elements.
    if (buffer.ndim() > 0)
      out += fmt::format("      for (d = 0; d < {0}; ++d) bytes *= pool->{1}_dims[d] = dims[d];\n",
                         buffer.ndim(), outputs_[i]);
    out += fmt::format(
        "      code = pool_take(pool, bytes, place);\n"
        "      if (code == 0) pool->{0} = ({1}*)*place;\n      break;\n",
        outputs_[i], c_type(buffer.dtype));
  }
  out += "    default: break;\n  }\n  return code;\n}\n\n";
  out += fmt::format(
      "{0}_late {0}_late_of({0}_pool* pool) {{\n  {0}_late late;\n"
      "  late.state = pool;\n  late.workspace = pool_workspace;\n  late.output = pool_output;\n"
      "  pool->used = 0;\n",
      name_);
  for (int64_t slot = 0; slot < program.late_slots; ++slot)
    out += fmt::format("  pool->slots[{}] = 0;\n", slot);
  for (size_t i = 0; i < entry_.outputs; ++i)
    if (entry_.is_late(i)) out += fmt::format("  pool->{} = 0;\n", outputs_[i]);
  return out + "  return late;\n}\n\n";
}

// Memory that the caller gives: an output by its dimensions, a part of the workspace by its bytes.
void FunctionCodegen::take_late_memory(const tir::AllocBuffer& alloc) {
  const Buffer& buffer = *alloc.buffer;
  const auto output = tir::host_output(alloc);
  const std::string place = names_.take(buffer.name + "_place");
  const std::string size = names_.take(buffer.name + (output ? "_dims" : "_bytes"));
  line("void* {} = 0;", place);
  std::string call;
  if (output) {
    std::string dims;
    for (const Expr& dim : buffer.shape) dims += (dims.empty() ? "" : ", ") + dimension(dim);
    line("const int64_t {}[{}] = {{{}}};", size, count_of_dims(buffer), dims.empty() ? "0" : dims);
    call = fmt::format("late->output(late->state, {}, {}, &{})", *output, size, place);
  } else {
    const Expr bytes = tir::element_count(buffer.shape) * buffer.dtype.bytes();
    line("const int64_t {} = {};", size, dimension(bytes));
    call = fmt::format("late->workspace(late->state, {}, {}, &{})", *tir::host_workspace(alloc),
                       size, place);
  }
  use("code");
  use("late");
  line("code = {};", call);
  const std::string what = output
                               ? fmt::format("memory of output `{}` was not given",
                                             m_.entry().output_names[static_cast<size_t>(*output)])
                               : "workspace of {value} bytes was not given";
  line("if (code != 0)");
  std::string node = output ? buffer.origin.name() : tir::asked_by(*m_.entry().function, buffer);
  if (node.empty()) node = m_.name();
  line("  return fail(error, code, {}, {}, {}, 0);", c_string(node), c_string(what),
       output ? "0" : size);
  use("error");
  Place at;
  at.element = buffer.dtype;
  at.pointer = at.own_name = names_.take(buffer.name);
  if (is_used(at.own_name))
    line("{0}* const {1} = ({0}*){2};", c_type(buffer.dtype), at.own_name, place);
  places_[&buffer] = at;
  data_[buffer.data.get()] = at;
}

}  // namespace tenon::c_backend
