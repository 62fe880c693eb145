// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/kernel_times.h"

#include <algorithm>
#include <chrono>

#include "tenon/tir/stmt.h"

namespace tenon {

using Clock = std::chrono::steady_clock;

static thread_local std::vector<KernelTime> times;
static thread_local int64_t running = -1;
static thread_local Clock::time_point since;

// Called by generated code: from now on, call `next` runs; -1: none.
extern "C" int32_t tenon_kernel_mark(int64_t next);
extern "C" int32_t tenon_kernel_mark(int64_t next) {
  const Clock::time_point now = Clock::now();
  if (running >= 0 && static_cast<size_t>(running) < times.size()) {
    KernelTime& kernel = times[static_cast<size_t>(running)];
    const double seconds = std::chrono::duration<double>(now - since).count();
    kernel.fastest = kernel.runs++ == 0 ? seconds : std::min(kernel.fastest, seconds);
  }
  running = next;
  since = now;
  return 0;
}

void reset_kernel_times(size_t calls) {
  times.assign(calls, {});
  running = -1;
}
const std::vector<KernelTime>& kernel_times() { return times; }

InstrumentedModule instrument(const IRModule& lowered) {
  backend::set_kernel_mark(reinterpret_cast<void*>(&tenon_kernel_mark));
  InstrumentedModule out{lowered, {}};
  const auto mark = [](int64_t call_number) -> tir::Stmt {
    return make<tir::Evaluate>(
        call(IntrinsicId::kCallExtern, {make<StringImm>(kKernelMark), int64(call_number)}, kInt32));
  };
  const auto is_piece = [&](const std::string& name) {
    const auto function = lowered.find<tir::PrimFunc>(name);
    bool calls = false;
    if (function)
      walk_if(function->body, [&](const NodePtr& node) {
        calls |= node.as<tir::CallTir>() != nullptr;
        return !calls && !node.as<ExprNode>();
      });
    return calls;
  };
  for (const auto& [name, base] : lowered.functions()) {
    const auto function = cast<tir::PrimFunc>(base);
    if (!function || !is_piece(name)) continue;
    tir::Stmt body = rewrite(function->body, [&](const NodePtr& node) -> std::optional<NodePtr> {
      const auto* call = node.as<tir::CallTir>();
      if (!call || is_piece(call->callee->name)) return std::nullopt;
      const auto number = static_cast<int64_t>(out.calls.size());
      out.calls.push_back(call->origin
                              ? fmt::format("{} [{}]", call->callee->name, call->origin.name())
                              : call->callee->name);
      return NodePtr(tir::seq({mark(number), ref_to(call)}));
    });
    if (function->attrs.flag("tenon.entry")) body = tir::seq({body, mark(-1)});
    out.module.set(name, function->with_body(body));
  }
  return out;
}

}  // namespace tenon
