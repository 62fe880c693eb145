// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/kernel_times.h"

#include <algorithm>
#include <deque>
#include <map>

#include "tenon/tir/call_graph.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tenon/tir/stmt.h"

namespace tenon {

static thread_local std::vector<KernelTime> times;
static thread_local std::vector<KernelEvent> events;
static thread_local size_t most_events = 0;
static thread_local int64_t running = -1;
static thread_local KernelClock::time_point since;

// Called by generated code: from now on, call `next` runs; -1: none.
extern "C" int32_t tenon_kernel_mark(int64_t next);
extern "C" int32_t tenon_kernel_mark(int64_t next) {
  const KernelClock::time_point now = KernelClock::now();
  if (running >= 0 && static_cast<size_t>(running) < times.size()) {
    KernelTime& kernel = times[static_cast<size_t>(running)];
    const double seconds = std::chrono::duration<double>(now - since).count();
    kernel.fastest = kernel.runs++ == 0 ? seconds : std::min(kernel.fastest, seconds);
    if (events.size() < most_events) events.push_back({running, since, now});
  }
  running = next;
  since = most_events == 0 ? now : KernelClock::now();
  return 0;
}

void reset_kernel_times(size_t calls, size_t most) {
  times.assign(calls, {});
  events.clear();
  most_events = most;
  running = -1;
}
const std::vector<KernelTime>& kernel_times() { return times; }
const std::vector<KernelEvent>& kernel_events() { return events; }

double milliseconds_of(const KernelTime& kernel, size_t runs) {
  return runs == 0
             ? 0
             : kernel.fastest * 1e3 * static_cast<double>(kernel.runs) / static_cast<double>(runs);
}

std::string InstrumentedCall::str() const {
  return origin ? fmt::format("{} [{}]", kernel, origin.name()) : kernel;
}

std::vector<int64_t> planned_calls(const std::vector<InstrumentedCall>& calls,
                                   const ProgramPlan& plan) {
  std::map<std::pair<std::string, std::string>, std::deque<int64_t>> left;
  for (size_t i = 0; i < plan.calls.size(); ++i) {
    const ProgramPlan::Call& call = plan.calls[i];
    left[{call.callee, call.origin ? call.origin.str() : ""}].push_back(static_cast<int64_t>(i));
  }
  std::vector<int64_t> out;
  for (const InstrumentedCall& call : calls) {
    const auto found = left.find({call.kernel, call.origin ? call.origin.str() : ""});
    if (found == left.end() || found->second.empty()) {
      out.push_back(-1);
      continue;
    }
    out.push_back(found->second.front());
    found->second.pop_front();
  }
  return out;
}

// Marks are of one thread: a loop whose iterations are on several is measured as a whole.
static bool is_parallel(const NodePtr& node) {
  const auto* loop = node.as<tir::For>();
  return loop && loop->kind == tir::ForKind::kParallel;
}

InstrumentedModule instrument(const IRModule& lowered) {
  backend::set_kernel_mark(reinterpret_cast<void*>(&tenon_kernel_mark));
  InstrumentedModule out{lowered, {}};
  const auto mark = [](int64_t call_number) -> tir::Stmt {
    return make<tir::Evaluate>(
        call(IntrinsicId::kCallExtern, {make<StringImm>(kKernelMark), int64(call_number)}, kInt32));
  };
  // A kernel that calls others is one call: its own work may stand between theirs.
  const auto is_piece = [&](const std::string& name) {
    const auto function = lowered.find<tir::PrimFunc>(name);
    return function && !function->attrs.flag(tir::kScheduled) &&
           !function->attrs.flag(tir::kScheduledBetweenCalls) && tir::first_call(function->body);
  };
  for (const auto& [name, base] : lowered.functions()) {
    const auto function = cast<tir::PrimFunc>(base);
    if (!function || !is_piece(name)) continue;
    tir::Stmt body = rewrite(function->body, [&](const NodePtr& node) -> std::optional<NodePtr> {
      const bool is_loop = is_parallel(node);
      const tir::CallTir* call = is_loop ? tir::first_call(node) : node.as<tir::CallTir>();
      if (!call || (!is_loop && is_piece(call->callee->name))) return std::nullopt;
      const auto number = static_cast<int64_t>(out.calls.size());
      out.calls.push_back({call->callee->name, call->origin});
      return NodePtr(tir::seq({mark(number), downcast<tir::StmtNode>(node)}));
    });
    if (function->attrs.flag("tenon.entry")) body = tir::seq({body, mark(-1)});
    out.module.set(name, function->with_body(body));
  }
  return out;
}

}  // namespace tenon
