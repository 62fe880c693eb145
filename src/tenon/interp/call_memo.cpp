// SPDX-License-Identifier: Apache-2.0
#include "tenon/interp/call_memo.h"

#include <algorithm>
#include <cstring>

#include "tenon/ir/visit.h"
#include "tenon/tir/call_effects.h"
#include "tenon/tir/extern_function.h"

namespace tenon::interp {

// What costs fewer steps is run sooner than it is looked up.
static constexpr int64_t kFewSteps = 4096;
static constexpr int kMostCheapRuns = 16;

struct MemoProgram {
  int64_t number = 0;
  std::optional<Code> code;                                 // of one that calls nothing; else:
  std::vector<std::pair<std::string, BaseFunc>> functions;  // it, then what it calls
  // What it does to its buffer parameters, in order. What it writes counts as not read until a run
  // shows otherwise: scratch holds what others left there, and that is no argument.
  std::vector<tir::ParamEffect> effects, stated;
  bool is_kept = true;  // false: it is cheap, or needs more than its arguments
  int cheap_runs = 0;   // one after another
};

namespace {

bool is_foreign(const tenon::Call& call) {
  return call.is(IntrinsicId::kCallExtern) || call.is(IntrinsicId::kCallPureExtern) ||
         call.is(IntrinsicId::kCallPacked) || call.is(IntrinsicId::kCallCpacked);
}

/// `root` and what it calls, in the order in which the text does; nothing where a library is
/// called.
std::optional<std::vector<std::pair<std::string, BaseFunc>>> reached_from(
    const IRModule& module, const Ref<tir::PrimFunc>& root) {
  std::vector<std::pair<std::string, BaseFunc>> functions{{"", root}};
  std::set<std::string> seen;
  bool foreign = false;
  for (size_t i = 0; i < functions.size() && !foreign; ++i) {
    Ref<tir::PrimFunc> function = cast<tir::PrimFunc>(functions[i].second);
    if (const auto* external = functions[i].second.as<tir::ExternFunction>())
      function = external->reference();
    for (size_t p = 0; p < function->params.size(); ++p)
      foreign |= !function->buffers[p] && function->params[p]->dtype.is_handle();
    walk(function->body, [&](const NodePtr& node) {
      const GlobalVar* callee = nullptr;
      if (const auto* call = node.as<tir::CallTir>()) callee = call->callee.get();
      if (const auto* call = node.as<tenon::Call>()) {
        callee = call->callee.get();
        foreign |= is_foreign(*call);
      }
      if (!callee || !seen.insert(callee->name).second) return;
      const BaseFunc next = module.find(callee->name);
      const auto* external = next.as<tir::ExternFunction>();
      if (external ? static_cast<bool>(external->body)
                   : static_cast<bool>(next.as<tir::PrimFunc>()))
        functions.emplace_back(callee->name, next);
      else
        foreign = true;
    });
  }
  if (foreign) return std::nullopt;
  return functions;
}

bool same(const std::vector<std::pair<std::string, BaseFunc>>& a,
          const std::vector<std::pair<std::string, BaseFunc>>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && structural_equal(x.second, y.second);
  });
}

/// The bytes of its memory that a view lies in.
struct Span {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};
/// Nothing where the view leaves its memory.
std::optional<Span> span_of(const View& view) {
  const int64_t bytes = view.dtype.bytes();
  Span span{view.offset, view.offset + bytes};
  for (size_t d = 0; d < view.shape.size(); ++d) {
    if (view.shape[d] == 0) return Span{view.offset, view.offset};
    const int64_t reach = (view.shape[d] - 1) * view.strides[d] * bytes;
    (reach < 0 ? span.begin : span.end) += reach;
  }
  if (span.begin < 0 || span.end > static_cast<int64_t>(view.memory->bytes.size()))
    return std::nullopt;
  return span;
}

bool overlap(const View& a, const Span& x, const View& b, const Span& y) {
  return a.memory == b.memory && x.begin < y.end && y.begin < x.end;
}

// Memory that holds what the view sees of its own (everything between its first and its last
// element); of a result nothing, so that what is written can be told.
View isolated(const View& view, const Span& span, const tir::ParamEffect& effect) {
  const Memory& from = *view.memory;
  View copy = view;
  copy.memory = std::make_shared<Memory>();
  Memory& to = *copy.memory;
  to.name = from.name;
  copy.offset -= span.begin;
  const auto size = static_cast<size_t>(span.size());
  if (effect.is_out()) {
    to.bytes.resize(size);
    to.written.resize(size);
    return copy;
  }
  to.bytes.assign(from.bytes.begin() + span.begin, from.bytes.begin() + span.end);
  if (!from.written.empty())
    to.written.assign(from.written.begin() + span.begin, from.written.begin() + span.end);
  to.read_only = from.read_only || !effect.writes;
  return copy;
}

// Puts what a run wrote where the view is.
void write_back(const Memory& result, const View& view, const Span& span) {
  Memory& to = *view.memory;
  std::byte* bytes = to.bytes.data() + span.begin;
  const size_t size = result.bytes.size();
  if (result.written.empty()) {
    std::copy_n(result.bytes.begin(), size, bytes);
    if (!to.written.empty()) std::fill_n(to.written.begin() + span.begin, size, uint8_t{1});
    return;
  }
  for (size_t i = 0; i < size; ++i) {
    if (!result.written[i]) continue;
    bytes[i] = result.bytes[i];
    if (!to.written.empty()) to.written[static_cast<size_t>(span.begin) + i] = 1;
  }
}

}  // namespace

MemoProgram* CallMemo::program_of(const IRModule& module, const Code& code) {
  const Ref<tir::PrimFunc>& function = code.function;
  auto functions = reached_from(module, function);
  if (!functions) return nullptr;
  // What other passes leave is often the same to the last instruction, where the text is not.
  const bool is_leaf = functions->size() == 1;
  uint64_t hash = is_leaf ? hash_of(code) : 0;
  if (!is_leaf)
    for (const auto& [name, reached] : *functions)
      hash = hash * 0x9e3779b97f4a7c15 + structural_hash(reached);
  const auto [first, last] = programs_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const MemoProgram& known = *it->second;
    if (is_leaf ? known.code && same_code(*known.code, code) : same(known.functions, *functions))
      return it->second.get();
  }
  const auto program = std::make_shared<MemoProgram>();
  program->number = next_program_++;
  if (is_leaf)
    program->code = code;
  else
    program->functions = std::move(*functions);
  tir::CallEffects effects(module);
  std::vector<Ref<tir::Buffer>> buffers;
  for (const Ref<tir::Buffer>& buffer : function->buffers)
    if (buffer) buffers.push_back(buffer);
  program->stated = tir::effects_on(function->body, buffers, effects);
  program->effects = program->stated;
  for (tir::ParamEffect& effect : program->effects) effect.reads &= !effect.writes;
  programs_.emplace(hash, program);
  return program.get();
}

CallMemo::Key CallMemo::key_of(const MemoProgram& program, const std::vector<View>& arguments,
                               const std::vector<Slot>& scalars) {
  ContentHasher hasher;
  hasher.add(program.number);
  for (const Slot& scalar : scalars) hasher.add(scalar.i);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const View& view = arguments[i];
    for (const std::vector<int64_t>* numbers : {&view.shape, &view.strides}) {
      hasher.add(static_cast<int64_t>(numbers->size()));
      for (const int64_t number : *numbers) hasher.add(number);
    }
    hasher.add(int64_t{program.effects[i].is_out()});
    if (program.effects[i].is_out()) continue;
    const Span span = *span_of(view);
    const Memory& memory = *view.memory;
    const auto size = static_cast<size_t>(span.size());
    hasher.add(std::span(memory.bytes).subspan(static_cast<size_t>(span.begin), size));
    const uint8_t* written = memory.written.empty() ? nullptr : memory.written.data() + span.begin;
    const bool whole = !written || !std::memchr(written, 0, size);
    hasher.add(int64_t{whole});
    if (!whole) hasher.add(std::as_bytes(std::span(written, size)));
  }
  return hasher.digest();
}

void CallMemo::keep(Result result) {
  if (result.bytes > most_bytes_ / 4) return;
  bytes_ += result.bytes;
  results_.push_front(std::move(result));
  found_[results_.front().key] = results_.begin();
  while (bytes_ > most_bytes_) {
    bytes_ -= results_.back().bytes;
    found_.erase(results_.back().key);
    results_.pop_back();
  }
}

Slot CallMemo::call(MemoProgram& program, const std::vector<View>& arguments,
                    const std::vector<Slot>& scalars, const int64_t& steps, const Run& run) {
  if (!program.is_kept || arguments.size() != program.effects.size()) return run(arguments);
  std::vector<Span> spans;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto span = span_of(arguments[i]);
    if (!span || (program.effects[i].writes && arguments[i].memory->read_only))
      return run(arguments);
    spans.push_back(*span);
  }
  for (size_t i = 0; i < arguments.size(); ++i)
    for (size_t k = 0; k < arguments.size(); ++k)
      if (i != k && program.effects[i].writes &&
          overlap(arguments[i], spans[i], arguments[k], spans[k]))
        return run(arguments);

  const Key key = key_of(program, arguments, scalars);
  if (const auto found = found_.find(key); found != found_.end()) {
    ++hits_;
    results_.splice(results_.begin(), results_, found->second);
    const Result& result = *found->second;
    for (size_t i = 0; i < arguments.size(); ++i)
      if (result.memories[i]) write_back(*result.memories[i], arguments[i], spans[i]);
    return result.value;
  }
  std::vector<View> own;
  for (size_t i = 0; i < arguments.size(); ++i)
    own.push_back(isolated(arguments[i], spans[i], program.effects[i]));
  Result result;
  result.key = key;
  const int64_t before = steps;
  try {
    result.value = run(own);
  } catch (const CompileError&) {
    if (program.effects != program.stated) {
      program.effects = program.stated;
      return call(program, arguments, scalars, steps, run);
    }
    // An error of its own, which says where, or a need for more than it was given.
    program.is_kept = false;
    return run(arguments);
  }
  ++runs_;
  for (size_t i = 0; i < arguments.size(); ++i) {
    result.memories.emplace_back();
    if (!program.effects[i].writes) continue;
    std::vector<uint8_t>& written = own[i].memory->written;
    if (std::find(written.begin(), written.end(), 0) == written.end())
      written = std::vector<uint8_t>();
    write_back(*own[i].memory, arguments[i], spans[i]);
    result.bytes +=
        static_cast<int64_t>(own[i].memory->bytes.size() + own[i].memory->written.size());
    result.memories[i] = std::move(own[i].memory);
  }
  if (steps - before < kFewSteps) {
    program.is_kept = ++program.cheap_runs < kMostCheapRuns;
    return result.value;
  }
  program.cheap_runs = 0;
  const Slot value = result.value;
  keep(std::move(result));
  return value;
}

}  // namespace tenon::interp
