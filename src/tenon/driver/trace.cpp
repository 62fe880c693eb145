// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/trace.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

namespace tenon {

void StepClock::begin(const std::string& name) {
  end();
  const KernelClock::time_point now = KernelClock::now();
  steps_.push_back({name, {now, now}});
  is_open_ = true;
}

void StepClock::end() {
  if (is_open_) steps_.back().time.end = KernelClock::now();
  is_open_ = false;
}

namespace {

struct RecordedParts {
  std::mutex mutex;
  std::vector<runtime::ThreadPool::Part> parts;
  size_t most = 0;
};
RecordedParts& recorded() {
  static RecordedParts parts;
  return parts;
}

void record_part(const runtime::ThreadPool::Part& part) {
  RecordedParts& to = recorded();
  const std::lock_guard lock(to.mutex);
  if (to.parts.size() < to.most) to.parts.push_back(part);
}

}  // namespace

TraceRecorder::TraceRecorder(size_t calls, size_t most) {
  {
    RecordedParts& parts = recorded();
    const std::lock_guard lock(parts.mutex);
    parts.parts.clear();
    parts.most = most;
  }
  reset_kernel_times(calls, most);
  runtime::ThreadPool::observe(record_part);
}

TraceRecorder::~TraceRecorder() {
  runtime::ThreadPool::observe(nullptr);
  reset_kernel_times(0);
}

void TraceRecorder::take(Trace& trace) const {
  trace.events = kernel_events();
  int64_t runs = 0;
  for (const KernelTime& kernel : kernel_times()) runs += kernel.runs;
  trace.left_out = runs - static_cast<int64_t>(trace.events.size());
  RecordedParts& parts = recorded();
  const std::lock_guard lock(parts.mutex);
  trace.parts = parts.parts;
}

namespace {

using Json = nlohmann::ordered_json;

constexpr int kCompilation = 1, kRuns = 2;  // processes of the trace

/// Events with their times counted from the first of all.
class Events {
 public:
  explicit Events(KernelClock::time_point origin) : origin_(origin) {}

  void name(int process, const std::string& text) {
    json_.push_back(
        {{"ph", "M"}, {"pid", process}, {"name", "process_name"}, {"args", {{"name", text}}}});
    json_.push_back({{"ph", "M"},
                     {"pid", process},
                     {"name", "process_sort_index"},
                     {"args", {{"sort_index", process}}}});
  }
  void name(int process, int64_t thread, const std::string& text) {
    json_.push_back({{"ph", "M"},
                     {"pid", process},
                     {"tid", thread},
                     {"name", "thread_name"},
                     {"args", {{"name", text}}}});
    json_.push_back({{"ph", "M"},
                     {"pid", process},
                     {"tid", thread},
                     {"name", "thread_sort_index"},
                     {"args", {{"sort_index", thread}}}});
  }
  void slice(int process, int64_t thread, const std::string& name, const char* category,
             const TimeSpan& time, Json args = Json::object()) {
    Json event = {{"ph", "X"},
                  {"pid", process},
                  {"tid", thread},
                  {"name", name},
                  {"cat", category},
                  {"ts", microseconds(time.begin)},
                  {"dur", rounded(time.end - time.begin)}};
    if (!args.empty()) event["args"] = std::move(args);
    json_.push_back(std::move(event));
  }
  void counter(const char* name, KernelClock::time_point at, int64_t bytes) {
    json_.push_back({{"ph", "C"},
                     {"pid", kRuns},
                     {"name", name},
                     {"ts", microseconds(at)},
                     {"args", {{"bytes", bytes}}}});
  }
  Json take() { return std::move(json_); }

 private:
  double microseconds(KernelClock::time_point at) const { return rounded(at - origin_); }
  // Microseconds, to the nanosecond.
  static double rounded(KernelClock::duration time) {
    return std::round(std::chrono::duration<double, std::nano>(time).count()) / 1e3;
  }
  KernelClock::time_point origin_;
  Json json_ = Json::array();
};

KernelClock::time_point first_time(const Trace& trace) {
  KernelClock::time_point first = KernelClock::time_point::max();
  for (const StepClock::Step& step : trace.steps) first = std::min(first, step.time.begin);
  for (const TimeSpan& run : trace.runs) first = std::min(first, run.begin);
  for (const KernelEvent& event : trace.events) first = std::min(first, event.begin);
  for (const auto& part : trace.parts) first = std::min(first, part.begin);
  return first;
}

}  // namespace

// The kernel that ran at a time; null: none.
static const InstrumentedCall* call_at(const Trace& trace, KernelClock::time_point at) {
  const auto after = std::upper_bound(
      trace.events.begin(), trace.events.end(), at,
      [](KernelClock::time_point t, const KernelEvent& event) { return t < event.begin; });
  if (after == trace.events.begin()) return nullptr;
  const KernelEvent& event = *(after - 1);
  return at <= event.end ? &trace.calls[static_cast<size_t>(event.call)] : nullptr;
}

static void add_kernels(const Trace& trace, Events& events) {
  for (size_t i = 0; i < trace.runs.size(); ++i)
    events.slice(kRuns, 0, fmt::format("run {}", i + 1), "run", trace.runs[i]);
  for (const KernelEvent& event : trace.events) {
    const auto call = static_cast<size_t>(event.call);
    const InstrumentedCall& what = trace.calls[call];
    Json args = {{"node", what.origin ? what.origin.name() : ""}, {"call", event.call}};
    const int64_t live = call < trace.live_bytes.size() ? trace.live_bytes[call] : -1;
    if (live >= 0) {
      args["workspace_bytes"] = live;
      events.counter("workspace", event.begin, live);
    }
    events.slice(kRuns, 0, what.kernel, "kernel", {event.begin, event.end}, std::move(args));
  }
  for (const TimeSpan& run : trace.runs)
    if (!trace.live_bytes.empty()) events.counter("workspace", run.end, 0);
  for (const auto& part : trace.parts) {
    const InstrumentedCall* call = call_at(trace, part.begin);
    const std::string name = fmt::format("{} ({} {})", call ? call->kernel : "loop", part.tasks,
                                         part.tasks == 1 ? "task" : "tasks");
    events.slice(kRuns, part.thread, name, "loop", {part.begin, part.end}, {{"tasks", part.tasks}});
  }
}

Json json_of(const Trace& trace) {
  Events events(first_time(trace));
  if (!trace.steps.empty()) {
    events.name(kCompilation, "compilation of " + trace.model);
    events.name(kCompilation, 0, "passes");
    for (const StepClock::Step& step : trace.steps)
      events.slice(kCompilation, 0, step.name, "pass", step.time);
  }
  events.name(kRuns, "run of " + trace.model);
  std::set<int64_t> threads = {0};
  for (const auto& part : trace.parts) threads.insert(part.thread);
  for (const int64_t thread : threads)
    events.name(kRuns, thread, thread == 0 ? "caller" : fmt::format("worker {}", thread));
  add_kernels(trace, events);
  return {{"traceEvents", events.take()},
          {"displayTimeUnit", "ms"},
          {"otherData", {{"model", trace.model}, {"kernel_runs_left_out", trace.left_out}}}};
}

}  // namespace tenon
