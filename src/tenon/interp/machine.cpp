// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <unordered_map>

#include "tenon/interp/call_memo.h"
#include "tenon/interp/frame.h"
#include "tenon/interp/races.h"
#include "tenon/interp/random_rounding.h"
#include "tenon/interp/scalar.h"
#include "tenon/support/deeper.h"
#include "tenon/support/interrupt.h"

namespace tenon::interp {

void Machine::keep_contents(int64_t slot, std::shared_ptr<Memory>& memory) {
  std::shared_ptr<Memory>& held = host_memory_[slot];
  if (held && held->bytes.size() >= memory->bytes.size()) {
    memory = held;
    return;
  }
  if (held) {
    std::copy(held->bytes.begin(), held->bytes.end(), memory->bytes.begin());
    std::copy(held->written.begin(), held->written.end(), memory->written.begin());
  }
  held = memory;
}

std::shared_ptr<Memory> allocate(int64_t bytes, std::string name, const Origin& origin) {
  constexpr int64_t kMost = int64_t{16} << 30;
  if (bytes < 0 || bytes > kMost)
    throw CompileError(kLimitExceeded, origin,
                       "buffer `{}` of {} bytes; the interpreter allocates at most {}", name, bytes,
                       kMost);
  auto memory = std::make_shared<Memory>();
  memory->bytes.resize(static_cast<size_t>(bytes));
  memory->written.resize(static_cast<size_t>(bytes));
  memory->name = std::move(name);
  return memory;
}

std::vector<int64_t> compact(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

void out_of_bounds(const View& view, size_t dim, int64_t index, const Origin& origin) {
  const std::string name = view.buffer ? view.buffer->name : "?";
  CompileError error(kOutOfBounds, origin,
                     "index {} of dimension {} of buffer `{}` lies outside of its extent {}", index,
                     dim, name, view.shape[dim]);
  if (view.buffer && view.buffer->origin)
    error.note(view.buffer->origin, "`{}` is defined here", name);
  throw error;
}

// Bytes from the memory's start to the element; `last` is the last index (the others stand before
// it in `indices`).
static int64_t element_offset(const View& view, const Slot* indices, int64_t last,
                              const Origin& origin) {
  int64_t offset = 0;
  const size_t ndim = view.shape.size();
  for (size_t d = 0; d < ndim; ++d) {
    const int64_t index = d + 1 == ndim ? last : indices[d].i;
    if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(view.shape[d]))
      out_of_bounds(view, d, index, origin);
    offset += index * view.strides[d];
  }
  return view.offset + offset * view.dtype.bytes();
}

static void check_extent(const View& view, int64_t at, int64_t bytes, const Origin& origin) {
  if (at < 0 || at + bytes > static_cast<int64_t>(view.memory->bytes.size()))
    throw CompileError(kOutOfBounds, origin,
                       "an access of {} bytes at byte {} of `{}`, which has {} bytes", bytes, at,
                       view.memory->name, view.memory->bytes.size());
}

// Calls `each(slot, byte)` for every element that the lanes of a load or store name: its slot among
// the instruction's values and its first byte in memory.
template <typename Each>
static void for_elements(const View& view, const Instr& instr, const Slot* slots,
                         const Origin& origin, const Each& each) {
  const int64_t width = view.dtype.element().bytes();
  const int per_index = view.dtype.lanes;
  const int count = instr.lanes / per_index;
  const bool masked = instr.op == Op::kMaskedLoad || instr.op == Op::kMaskedStore;
  const Slot* indices = slots + instr.b;
  const size_t last = view.shape.empty() ? 0 : view.shape.size() - 1;
  for (int lane = 0; lane < count; ++lane) {
    if (masked && !slots[instr.c + lane].i) continue;
    const int64_t at = element_offset(
        view, indices, view.shape.empty() ? 0 : indices[last + static_cast<size_t>(lane)].i,
        origin);
    check_extent(view, at, width * per_index, origin);
    for (int k = 0; k < per_index; ++k) each(lane * per_index + k, at + k * width);
  }
}

[[noreturn]] static void uninitialised(const View& view, const Slot* indices, int lane,
                                       const Origin& origin) {
  std::string where;
  const size_t ndim = view.shape.size();
  for (size_t d = 0; d < ndim; ++d)
    where += (d ? ", " : "") +
             std::to_string(indices[d + 1 == ndim ? d + static_cast<size_t>(lane) : d].i);
  throw CompileError(kUninitialisedRead, origin,
                     "element ({}) of buffer `{}` is read before it is written", where,
                     view.buffer ? view.buffer->name : view.memory->name);
}

static void load(const View& view, const Instr& instr, Slot* slots, const Origin& origin) {
  const DType element = view.dtype.element();
  const Memory& memory = *view.memory;
  for_elements(view, instr, slots, origin, [&](int slot, int64_t byte) {
    if (!memory.written.empty() && !memory.written[static_cast<size_t>(byte)])
      uninitialised(view, slots + instr.b, slot / view.dtype.lanes, origin);
    slots[instr.dst + slot] = read_element(element, memory.bytes.data() + byte);
  });
}

static void store(const View& view, const Instr& instr, const Slot* slots, const Origin& origin) {
  const DType element = view.dtype.element();
  Memory& memory = *view.memory;
  if (memory.read_only)
    throw CompileError(kRunFailed, origin, "constant buffer `{}` is written",
                       view.buffer ? view.buffer->name : "?");
  for_elements(view, instr, slots, origin, [&](int slot, int64_t byte) {
    write_element(element, memory.bytes.data() + byte, slots[instr.dst + slot]);
    if (!memory.written.empty())
      std::fill_n(memory.written.begin() + byte, element.bytes(), uint8_t{1});
  });
}

// Reads shape, strides and offset of a view from consecutive slots.
static int64_t read_geometry(const ViewInfo& info, const Slot* slots, View& view,
                             const Origin& origin) {
  const size_t ndim = info.buffer->ndim();
  view.shape.resize(ndim);
  for (size_t d = 0; d < ndim; ++d) {
    view.shape[d] = slots[d].i;
    if (view.shape[d] < 0)
      throw CompileError(kRunFailed, origin, "dimension {} of buffer `{}` is {}", d,
                         info.buffer->name, view.shape[d]);
  }
  view.dtype = info.buffer->dtype;
  view.buffer = info.buffer.get();
  size_t at = ndim;
  if (info.has_strides) {
    view.strides.resize(ndim);
    for (size_t d = 0; d < ndim; ++d) view.strides[d] = slots[at++].i;
  } else {
    view.strides = compact(view.shape);
  }
  return info.has_offset ? slots[at].i : 0;
}

void Machine::step(const Code& code, const Instr& instr, const Origin& origin, Frame& frame) {
  Slot* s = frame.slots;
  const int n = instr.lanes;
  switch (instr.op) {
    case Op::kImmediate:
      for (int k = 0; k < n; ++k) s[instr.dst + k] = instr.immediate;
      return;
    case Op::kMove:
      for (int k = 0; k < n; ++k) s[instr.dst + k] = s[instr.a + k];
      return;
    case Op::kSplat:
      for (int k = 0; k < n; ++k) s[instr.dst + k] = s[instr.a];
      return;
    case Op::kRamp:
      for (int k = 0; k < n; ++k) s[instr.dst + k].i = s[instr.a].i + k * s[instr.b].i;
      return;
    case Op::kShuffle: {
      const std::vector<int64_t>& table = code.tables[static_cast<size_t>(instr.c)];
      for (int k = 0; k < n; ++k) s[instr.dst + k] = s[instr.a + table[static_cast<size_t>(k)]];
      return;
    }
    case Op::kBinary:
      for (int k = 0; k < n; ++k) {
        const auto op = static_cast<BinaryOp>(instr.code);
        const Slot a = s[instr.a + k], b = s[instr.b + k];
        const Slot result = apply_binary(op, instr.dtype, a, b, origin);
        s[instr.dst + k] = rounding_ ? rounding_->binary(op, instr.dtype, a, b, result) : result;
      }
      return;
    case Op::kNot:
      for (int k = 0; k < n; ++k) s[instr.dst + k].i = !s[instr.a + k].i;
      return;
    case Op::kCast:
      for (int k = 0; k < n; ++k) {
        const Slot a = s[instr.a + k], result = apply_cast(instr.dtype, instr.dtype2, a);
        s[instr.dst + k] =
            rounding_ ? rounding_->cast(instr.dtype, instr.dtype2, a, result) : result;
      }
      return;
    case Op::kSelect:
      for (int k = 0; k < n; ++k)
        s[instr.dst + k] = s[instr.a + k].i ? s[instr.b + k] : s[instr.c + k];
      return;
    case Op::kLoad:
    case Op::kMaskedLoad: return load(frame.views[static_cast<size_t>(instr.a)], instr, s, origin);
    case Op::kStore:
    case Op::kMaskedStore:
      return store(frame.views[static_cast<size_t>(instr.a)], instr, s, origin);
    case Op::kIntrinsic:
      for (int k = 0; k < n; ++k) {
        const auto id = static_cast<IntrinsicId>(instr.code);
        const Slot a = s[instr.a + k], b = s[instr.b + k], c = s[instr.c + k];
        const Slot result = apply_intrinsic(id, instr.dtype, instr.dtype2, a, b, c, origin);
        s[instr.dst + k] =
            rounding_ ? rounding_->intrinsic(id, instr.dtype, a, b, c, result) : result;
      }
      return;
    case Op::kAddImm: s[instr.dst].i = s[instr.a].i + instr.immediate.i; return;
    case Op::kAlloc: {
      const ViewInfo& info = code.views[static_cast<size_t>(instr.a)];
      View view;
      const int64_t offset = read_geometry(info, s + instr.b, view, origin);
      int64_t elements = view.shape.empty() ? 1 : 0;
      bool empty = false;
      for (const int64_t dim : view.shape) empty |= dim == 0;
      if (!view.shape.empty() && !empty) {
        elements = 1;
        for (size_t d = 0; d < view.shape.size(); ++d)
          elements += (view.shape[d] - 1) * view.strides[d];
      }
      checked_elements(view.shape, std::max<int64_t>(1, view.dtype.bytes()), origin);
      view.memory = allocate((elements + offset) * view.dtype.bytes(), info.buffer->name, origin);
      if (const auto it = code.host_slots.find(instr.a); it != code.host_slots.end())
        keep_contents(it->second, view.memory);
      if (code.watched && instr.c >= 0)
        view.memory->owner = code.watches[static_cast<size_t>(instr.c)]->name;
      view.offset = offset * view.dtype.bytes();
      if (host_outputs_)
        if (const auto it = code.host_outputs.find(instr.a); it != code.host_outputs.end())
          (*host_outputs_)[it->second] = view;
      frame.set_view(instr.a, std::move(view));
      return;
    }
    case Op::kConstant: {
      const TensorData& data = *code.constants[static_cast<size_t>(instr.c)];
      const ViewInfo& info = code.views[static_cast<size_t>(instr.a)];
      View view;
      view.memory = std::make_shared<Memory>();
      view.memory->bytes.assign(data.data().begin(), data.data().end());
      view.memory->read_only = true;
      view.memory->name = info.buffer->name;
      view.shape = *as_ints(info.buffer->shape);
      view.strides = compact(view.shape);
      view.dtype = info.buffer->dtype;
      view.buffer = info.buffer.get();
      frame.set_view(instr.a, std::move(view));
      return;
    }
    case Op::kView: {
      const auto& [memory, start] = frame.pointers.at(static_cast<size_t>(s[instr.c].i));
      View view;
      const ViewInfo& info = code.views[static_cast<size_t>(instr.a)];
      const int64_t offset = read_geometry(info, s + instr.b, view, origin);
      // A match_buffer's address is that of its first element already; one without strides takes
      // its source's.
      const bool is_match = instr.code == 1;
      if (is_match && !info.has_strides) {
        const View& source = frame.views[static_cast<size_t>(instr.dst)];
        const size_t own = view.shape.size(), all = source.strides.size();
        if (own <= all)
          view.strides.assign(source.strides.end() - static_cast<std::ptrdiff_t>(own),
                              source.strides.end());
      }
      view.memory = memory;
      view.offset = start + (is_match ? 0 : offset * view.dtype.bytes());
      frame.set_view(instr.a, std::move(view));
      return;
    }
    case Op::kAddress: {
      const View& view = frame.views[static_cast<size_t>(instr.a)];
      int64_t offset = 0;  // one past the end is allowed, but where it is followed
      for (size_t d = 0; d < view.shape.size(); ++d) {
        const int64_t index = s[instr.b + static_cast<int>(d)].i;
        if (instr.code && static_cast<uint64_t>(index) >= static_cast<uint64_t>(view.shape[d]))
          out_of_bounds(view, d, index, origin);
        offset += index * view.strides[d];
      }
      frame.pointers.emplace_back(view.memory, view.offset + offset * view.dtype.bytes());
      s[instr.dst].i = static_cast<int64_t>(frame.pointers.size()) - 1;
      return;
    }
    case Op::kMovePointer: {
      auto [memory, start] = frame.pointers.at(static_cast<size_t>(s[instr.a].i));
      const int64_t begin = s[instr.b].i, count = s[instr.c].i, bytes = instr.dtype.bytes(),
                    room = (static_cast<int64_t>(memory->bytes.size()) - start) / bytes;
      if (begin < 0 || count < 0 || begin > room || count > room - begin)
        throw CompileError(kOutOfBounds, origin,
                           "a pointer to elements {}:{} of the memory of buffer `{}` leaves its {} "
                           "elements",
                           begin, begin + count,
                           code.views[static_cast<size_t>(instr.immediate.i)].buffer->name, room);
      frame.pointers.emplace_back(std::move(memory), start + begin * bytes);
      s[instr.dst].i = static_cast<int64_t>(frame.pointers.size()) - 1;
      return;
    }
    case Op::kViewPointer: {
      const View& view = frame.views[static_cast<size_t>(instr.a)];
      frame.pointers.emplace_back(view.memory, view.offset);
      s[instr.dst].i = static_cast<int64_t>(frame.pointers.size()) - 1;
      return;
    }
    case Op::kRegion: {
      View region = frame.views[static_cast<size_t>(instr.dst)];
      const size_t ndim = region.shape.size();
      int64_t offset = 0;
      for (size_t d = 0; d < ndim; ++d) {
        const int64_t min = s[instr.b + static_cast<int>(d)].i,
                      extent = s[instr.b + static_cast<int>(ndim + d)].i;
        if (min < 0 || extent < 0 || min + extent > region.shape[d])
          throw CompileError(
              kOutOfBounds, origin,
              "region {}:{} of dimension {} of buffer `{}` lies outside of its extent {}", min,
              min + extent, d, region.buffer ? region.buffer->name : "?", region.shape[d]);
        offset += min * region.strides[d];
        region.shape[d] = extent;
      }
      region.offset += offset * region.dtype.bytes();
      frame.set_view(instr.a, std::move(region));
      return;
    }
    case Op::kCall: return call(code, code.calls[static_cast<size_t>(instr.c)], frame);
    case Op::kOpaque:
      s[instr.dst] = call_opaque(code.opaque_calls[static_cast<size_t>(instr.c)], frame);
      return;
    case Op::kCheckDims: return check_dims(code, frame);
    case Op::kAssert:
      if (!s[instr.a].i)
        throw CompileError(kRunFailed, origin, "{}", code.messages[static_cast<size_t>(instr.c)]);
      return;
    case Op::kEnterLoop:
    case Op::kIterate:
    case Op::kLeaveLoop:
    case Op::kEnterBlock:
    case Op::kLeaveBlock: return;  // nobody watches
    default: break;
  }
  unreachable("a jump, or a quick instruction, is executed by the loop");
}

void Machine::check_dims(const Code& code, const Frame& frame) {
  for (const Code::DimCheck& check_ : code.checks) {
    const View& view = frame.views[static_cast<size_t>(code.param_view[check_.param])];
    const int64_t declared = frame.slots[check_.slot].i;
    if (view.shape[check_.dim] != declared)
      throw CompileError(kShapeMismatch, code.function->origin,
                         "dimension {} of parameter `{}` is {}; declared is {}", check_.dim,
                         code.function->buffers[check_.param]->name, view.shape[check_.dim],
                         declared);
  }
}

// Tells the tracker before the machine does it.
void Machine::watch(const Code& code, const Instr& instr, const Origin& origin, Frame& frame) {
  const Slot* s = frame.slots;
  switch (instr.op) {
    case Op::kEnterLoop:
      return races_->enter_loop(code.watches[static_cast<size_t>(instr.c)].get());
    case Op::kIterate: return races_->iterate(s[instr.a].i);
    case Op::kLeaveLoop: return races_->leave_loop();
    case Op::kEnterBlock:
      return races_->enter_block(code.watches[static_cast<size_t>(instr.c)].get(), s);
    case Op::kLeaveBlock: return races_->leave_block();
    case Op::kLoad:
    case Op::kMaskedLoad:
    case Op::kStore:
    case Op::kMaskedStore: {
      const bool stores = instr.op == Op::kStore || instr.op == Op::kMaskedStore;
      const View& view = frame.views[static_cast<size_t>(instr.a)];
      const int64_t bytes = view.dtype.element().bytes();
      for_elements(view, instr, s, origin, [&](int, int64_t at) {
        if (stores)
          races_->store(view, at, bytes, origin);
        else
          races_->load(view, at, bytes, origin);
      });
      return;
    }
    default: return;
  }
}

void Machine::pause(const Origin& origin) {
  if (steps_ >= step_limit_)
    throw CompileError(kLimitExceeded, origin, "the interpreter's limit of steps is reached");
  constexpr int64_t kBetween = 1 << 20;  // about 10 ms
  pause_at_ = std::min(step_limit_, steps_ + kBetween);
  check_interrupt();
}

void Machine::execute_watched(const Code& code, Frame& frame) {
  size_t at = 0;
  const size_t end = code.instrs.size();
  const auto slot = [&](int32_t index) -> Slot& { return frame.slots[index]; };
  while (at < end) {
    const Instr& instr = code.instrs[at];
    count_steps(1, code, instr);
    watch(code, instr, code.origins[at], frame);
    switch (instr.op) {
      case Op::kJump: at = static_cast<size_t>(instr.c); continue;
      case Op::kJumpIfZero: at = slot(instr.a).i ? at + 1 : static_cast<size_t>(instr.c); continue;
      case Op::kJumpIfGE:
        at = slot(instr.a).i >= slot(instr.b).i ? static_cast<size_t>(instr.c) : at + 1;
        continue;
      case Op::kNext:
        at = ++slot(instr.a).i < slot(instr.b).i ? static_cast<size_t>(instr.c) : at + 1;
        continue;
      case Op::kReturn: return;
      default: step(code, instr, code.origins[at], frame);
    }
    ++at;
  }
}

Slot Machine::call(const Code& code, std::vector<View> buffers, const std::vector<Slot>& scalars,
                   const Origin& caller) {
  MemoProgram* program = memo_ ? find_program_(code) : nullptr;
  if (!program) return run(code, std::move(buffers), scalars, caller);
  return memo_->call(*program, buffers, scalars, steps_, [&](std::vector<View> arguments) {
    return run(code, std::move(arguments), scalars, caller);
  });
}

Slot Machine::run(const Code& code, std::vector<View> buffers, const std::vector<Slot>& scalars,
                  const Origin& caller) {
  constexpr int kMostDepth = 64;
  const Deeper deeper(depth_);
  if (depth_ > kMostDepth)
    throw CompileError(kRecursion, caller, "calls nest deeper than {} functions", kMostDepth);
  Frame frame(code);
  size_t next_buffer = 0, next_scalar = 0;
  for (size_t p = 0; p < code.param_view.size(); ++p) {
    if (code.param_view[p] < 0) {
      frame.slots[code.param_slot[p]] = scalars.at(next_scalar++);
      continue;
    }
    const Ref<tir::Buffer>& declared = code.function->buffers[p];
    View view = std::move(buffers.at(next_buffer++));
    if (view.shape.size() != declared->ndim() || view.dtype != declared->dtype)
      throw CompileError(
          kRegionMismatch, caller,
          "an argument of rank {} and type {} for parameter `{}` of rank {} and type {}",
          view.shape.size(), view.dtype.str(), declared->name, declared->ndim(),
          declared->dtype.str());
    if (declared->is_compact() && view.strides != compact(view.shape)) {
      const std::vector<int64_t> expected = compact(view.shape);
      for (size_t d = 0; d < view.shape.size(); ++d)
        if (view.shape[d] > 1 && view.strides[d] != expected[d])
          throw CompileError(
              kRegionMismatch, caller, "argument `{}` has strides {}; parameter `{}` is compact",
              view.buffer ? view.buffer->name : "?", tenon::str(view.strides), declared->name);
      view.strides = expected;
    }
    view.buffer = declared.get();
    frame.set_view(code.param_view[p], std::move(view));
  }
  if (races_ && code.watched) {
    races_->begin();
    execute_watched(code, frame);
    races_->end();
  } else {
    execute(code, frame);
  }
  return code.result_slot < 0 ? Slot{0} : frame.slots[code.result_slot];
}

void allocate_missing(const tir::PrimFunc& function, std::vector<View>& buffers,
                      const std::vector<Slot>& scalars, const AskLibrary& ask) {
  // Dimensions bound by the given buffers, and scalars, feed the declared shapes of the missing
  // ones.
  Dims known;
  size_t next_buffer = 0, next_scalar = 0;
  std::vector<size_t> position(function.params.size());
  for (size_t p = 0; p < function.params.size(); ++p) {
    if (!function.buffers[p]) {
      known[function.params[p].get()] = scalars.at(next_scalar++).i;
    } else {
      position[p] = next_buffer++;
    }
  }
  for (size_t p = 0; p < function.params.size(); ++p) {
    const Ref<tir::Buffer>& declared = function.buffers[p];
    if (!declared || !buffers[position[p]].memory) continue;
    for (size_t d = 0; d < declared->shape.size() && d < buffers[position[p]].shape.size(); ++d)
      if (declared->shape[d].as<Var>())
        known.emplace(declared->shape[d].get(), buffers[position[p]].shape[d]);
  }
  for (size_t p = 0; p < function.params.size(); ++p) {
    const Ref<tir::Buffer>& declared = function.buffers[p];
    if (!declared || buffers[position[p]].memory) continue;
    View& view = buffers[position[p]];
    for (const Expr& dim : declared->shape) {
      const auto number = value_of(dim, known, ask);
      if (!number)
        throw CompileError(kBadInput, declared->origin,
                           "dimension {} of `{}` is not determined by the inputs", tenon::str(dim),
                           declared->name);
      view.shape.push_back(*number);
    }
    view.strides = compact(view.shape);
    view.dtype = declared->dtype;
    view.buffer = declared.get();
    const int64_t elements =
        checked_elements(view.shape, std::max<int64_t>(1, declared->dtype.bytes()));
    view.memory = allocate(elements * declared->dtype.bytes(), declared->name, declared->origin);
  }
}

std::vector<int64_t> dims_of(const tir::PrimFunc& function, const std::vector<View>& buffers) {
  std::vector<size_t> position(function.params.size());
  for (size_t p = 0, next = 0; p < function.params.size(); ++p)
    if (function.buffers[p]) position[p] = next++;
  std::vector<int64_t> dims;
  for (const DimSource& source : dim_sources(function)) {
    int64_t value = 0;
    // What does not fit is refused when the function is run.
    if (position[source.param] < buffers.size()) {
      const View& view = buffers[position[source.param]];
      const bool is_dim = source.what == DimSource::What::kDim;
      const std::vector<int64_t>& from = is_dim ? view.shape : view.strides;
      if (source.what != DimSource::What::kOffset && source.dim < from.size())
        value = from[source.dim];
    }
    dims.push_back(value);
  }
  return dims;
}

static void drop_dimensions(View& view, const std::vector<bool>& dropped) {
  for (size_t d = dropped.size(); d-- > 0;) {
    if (!dropped[d]) continue;
    view.shape.erase(view.shape.begin() + static_cast<std::ptrdiff_t>(d));
    view.strides.erase(view.strides.begin() + static_cast<std::ptrdiff_t>(d));
  }
}

Slot Machine::call_opaque(const OpaqueCallInfo& info, Frame& frame) {
  using Kind = OpaqueCallInfo::Arg::Kind;
  std::vector<OpaqueArgument> arguments;
  for (size_t i = 0; i < info.args.size(); ++i) {
    const OpaqueCallInfo::Arg& arg = info.args[i];
    OpaqueArgument out;
    const auto index = static_cast<size_t>(arg.index);
    switch (arg.kind) {
      case Kind::kScalar: out.scalar = frame.slots[arg.index]; break;
      case Kind::kText: out.text = info.call->args[i + 1].as<StringImm>()->value.c_str(); break;
      case Kind::kView:
        out.view = frame.views[index];
        drop_dimensions(*out.view, arg.dropped);
        break;
      case Kind::kPointer: {
        const auto& [memory, start] =
            frame.pointers.at(static_cast<size_t>(frame.slots[arg.index].i));
        View view;
        view.memory = memory;
        view.offset = start;
        view.dtype = kUInt8;
        out.view = std::move(view);
      }
    }
    // What the function does with memory is not known: all of it counts as written.
    if (out.view) {
      std::vector<uint8_t>& written = out.view->memory->written;
      std::fill(written.begin(), written.end(), uint8_t{1});
    }
    arguments.push_back(std::move(out));
  }
  if (!opaque_)
    throw CompileError(kUnsupported, info.call->origin,
                       "the interpreter runs no functions that nothing declares");
  return opaque_(*info.call, arguments);
}

void Machine::call(const Code&, const CallInfo& info, Frame& frame) {
  std::vector<View> buffers;
  std::vector<Slot> scalars;
  for (const CallInfo::Arg& arg : info.args) {
    if (!arg.is_view) {
      scalars.push_back(frame.slots[arg.index]);
      continue;
    }
    View view = frame.views[static_cast<size_t>(arg.index)];
    drop_dimensions(view, arg.dropped);
    buffers.push_back(std::move(view));
  }
  const Code* callee = find_(info.callee, buffers);
  if (!callee) {
    if (foreign_ && foreign_(info.callee, buffers, scalars, info.origin)) return;
    throw CompileError(kUnknownCallee, info.origin,
                       "call of `{}`, which is no PrimFunc of the module", info.callee);
  }
  size_t wanted_buffers = 0, wanted_scalars = 0;
  for (const int32_t view : callee->param_view) ++(view < 0 ? wanted_scalars : wanted_buffers);
  if (buffers.size() != wanted_buffers || scalars.size() != wanted_scalars)
    throw CompileError(kRegionMismatch, info.origin,
                       "call of `{}` with {} regions and {} scalars; it has {} and {}", info.callee,
                       buffers.size(), scalars.size(), wanted_buffers, wanted_scalars);
  const Slot result = call(*callee, std::move(buffers), scalars, info.origin);
  if (info.result >= 0) frame.slots[info.result] = result;
}

}  // namespace tenon::interp
