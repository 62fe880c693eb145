// SPDX-License-Identifier: Apache-2.0
// A compilation and runs over time, in the trace event format that Perfetto and Chrome read.
// Source of the format: "Trace Event Format", Google, 2016.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tenon/driver/kernel_times.h"
#include "tenon/driver/program_plan.h"
#include "tenon/runtime/thread_pool.h"

namespace tenon {

struct TimeSpan {
  KernelClock::time_point begin, end;
};

/// The steps of a compilation, each from its announcement to the next.
class StepClock {
 public:
  struct Step {
    std::string name;
    TimeSpan time;
  };
  void begin(const std::string& name);
  void end();
  const std::vector<Step>& steps() const { return steps_; }

 private:
  std::vector<Step> steps_;
  bool is_open_ = false;
};

/// What is drawn.
struct Trace {
  std::string model;
  std::vector<StepClock::Step> steps;
  std::vector<InstrumentedCall> calls;
  std::vector<int64_t> live_bytes;  // of the workspace, at each call; -1: not known
  std::vector<TimeSpan> runs;
  std::vector<KernelEvent> events;
  std::vector<runtime::ThreadPool::Part> parts;  // of loops, by thread
  int64_t left_out = 0;                          // runs of kernels that were not recorded
};

/// Records kernels and loops while it lives. One at a time in a process; kernels are those that the
/// calling thread runs.
class TraceRecorder {
 public:
  /// \param most  runs of kernels, and parts of loops, that are kept: the first ones
  explicit TraceRecorder(size_t calls, size_t most = kMostEvents);
  ~TraceRecorder();
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  /// Puts what was recorded into `trace`.
  void take(Trace& trace) const;

  static constexpr size_t kMostEvents = 200'000;
};

/// `{"traceEvents": [...], "displayTimeUnit": "ms", "otherData": {...}}`: process 1 has the steps of
/// the compilation, process 2 a track for each thread of the runs (the caller's has the runs, the
/// kernels in them, and its part of their loops), and a counter of the bytes alive in the workspace.
nlohmann::ordered_json json_of(const Trace& trace);

}  // namespace tenon
