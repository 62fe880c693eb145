// SPDX-License-Identifier: Apache-2.0
// Watches which iterations touch which elements: finds those of loops that may run at once
// (parallel, vectorized, thread-bound), and those of data-parallel axes of blocks, that depend on
// one another.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tenon/interp/machine.h"

namespace tenon::interp {

/// What is known about one block or loop that is watched.
struct WatchInfo {
  std::string name;               // of the loop variable or the block
  std::vector<std::string> axes;  // data-parallel axes of a block
  std::vector<int32_t> slots;     // their values
  bool outputs_only = false;      // scratch of a block that is no definition is its own affair
  Origin origin;
  bool in_lanes = false;  // a loop whose iterations are lanes of vectors
};

class RaceTracker {
 public:
  enum class Scope : uint8_t {
    kAll,            // loops of every kind that may run at once, and data-parallel axes
    kParallelLoops,  // in functions that ask for it
  };
  explicit RaceTracker(Scope scope) : scope_(scope) {}

  /// Around the run of code that is watched. What is watched again begins afresh.
  void begin();
  void end() { --running_; }
  bool is_running() const { return running_ > 0; }

  // ---- loops whose iterations may run at once

  void enter_loop(const WatchInfo* loop);
  void iterate(int64_t iteration);
  void leave_loop();

  // ---- blocks with data-parallel axes

  void enter_block(const WatchInfo* block, const Slot* slots);
  void leave_block();

  // ---- accesses of `bytes` bytes at `at`

  /// \throws CompileError (kRace) that names both iterations.
  void load(const View& view, int64_t at, int64_t bytes, const Origin& origin);
  void store(const View& view, int64_t at, int64_t bytes, const Origin& origin);

  /// Parameters of the function under test: what stays when it ends.
  void watch_output(const Memory* memory) { outputs_.push_back(memory); }
  /// Where the element at byte `at` was written last; empty where it was not.
  Origin writer(const Memory* memory, int64_t at) const;

 private:
  // A place in the tree of iterations: an iteration of a loop within one of another.
  struct Path {
    int32_t parent;
    int64_t execution;  // of the loop: each time it is entered
    int64_t iteration;
    const WatchInfo* loop;
  };
  struct Instance {  // of a block: values of its data-parallel axes
    const WatchInfo* block;
    int64_t scope;  // execution of what is around it
    std::vector<int64_t> axes;
  };
  struct Cell {
    int32_t written_by = -1, read_by = -1, read_by_other = -1;  // paths
    int32_t instance = -1;                                      // that wrote it
    // Iterations that may run at once wrote it: a race where it is read behind their loop.
    int32_t clash_first = -1, clash_second = -1;
    Origin writer, clash_writer;
  };
  struct Shadow {
    std::shared_ptr<Memory> keeper;
    std::unordered_map<int64_t, Cell> cells;  // by first byte of an element
  };

  bool is_inside(const Path& loop) const;
  bool is_own(int32_t writer) const;
  [[noreturn]] void fail(const Path& loop, const View& view, int64_t at, int64_t first,
                         int64_t second, const Origin& there, const Origin& here,
                         const char* what) const;
  const Path* concurrent(int32_t a, int32_t b, int64_t& first, int64_t& second) const;
  void check(int32_t before, const View& view, int64_t at, const Origin& there, const Origin& here,
             const char* what) const;
  std::string element(const View& view, int64_t at) const;
  Cell& cell(const View& view, int64_t at);

  Scope scope_;
  int running_ = 0;
  std::vector<Path> paths_;
  std::vector<int32_t> open_;  // paths of the loops that are open
  int32_t now_ = -1;
  int64_t executions_ = 0;
  std::vector<Instance> instances_;
  std::vector<int32_t> blocks_;  // instances that are open; -1: nothing to watch
  std::unordered_map<const Memory*, Shadow> shadows_;
  std::vector<const Memory*> outputs_;
};

/// \throws CompileError (kNotWritten) where an element of what a function was given to fill was not
/// written.
void check_written(const std::vector<View>& views, const tir::PrimFunc& function);

/// The PrimFuncs with parallel loops that are not proved free of races.
std::unordered_set<const Node*> with_open_loops(const IRModule& module);

}  // namespace tenon::interp
