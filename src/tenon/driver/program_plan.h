// SPDX-License-Identifier: Apache-2.0
// What a program does call by call, and where its memory lies: the entry function as PlanMemory saw
// it and left it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tenon/ir/expr.h"
#include "tenon/ir/module.h"
#include "tenon/ir/pass.h"
#include "tenon/memory/picture.h"

namespace tenon {

struct PipelineOptions;

/// Steps count the statements of the entry function in order.
struct ProgramPlan {
  struct Allocation {
    std::string name;
    std::string type;              // "float32 (1, 64, 56, 56)"
    std::string memory;            // "workspace"; another name where its size is known in the run
    Expr offset, bytes;            // in it; over `symbols`
    int64_t alignment = 1;         //
    int64_t lower = 0, upper = 0;  // alive at the steps lower <= t < upper
    Origin origin;
  };
  /// A buffer that calls read and write.
  struct Memory {
    enum class Kind : uint8_t { kInput, kOutput, kTemporary, kConstant };
    Kind kind = Kind::kTemporary;
    std::string name, type;
  };
  struct Argument {
    size_t memory;  // index into `memories`
    bool reads = false, writes = false;
  };
  struct Call {
    int64_t step = 0;
    std::string callee;
    std::string symbol;  // of a foreign function; empty: a kernel of the program's own
    Origin origin;
    std::vector<Argument> args;  // those that are buffers
  };
  std::vector<Ref<Var>> symbols;  // the program's symbolic dimensions
  std::vector<Allocation> allocations;
  std::vector<Memory> memories;
  std::vector<Call> calls;  // in the order of their steps
  int64_t steps = 0;
  Expr bytes;  // of the workspace; null: no pass planned it
};

/// A value for each symbol: that of `dims`, otherwise kDefaultDim (tensors.h).
std::map<std::string, int64_t> dims_for(const ProgramPlan& plan,
                                        const std::map<std::string, int64_t>& dims);

/// The workspace over time, for these dimensions; what is asked for in the run is left out, and what
/// depends on no given symbol. `bound`: the bytes alive at the step where most are.
memory::Picture picture_of(const ProgramPlan& plan, const std::map<std::string, int64_t>& dims);

/// For each call, the bytes of the workspace that are alive at its step, for these dimensions.
std::vector<int64_t> live_bytes(const ProgramPlan& plan,
                                const std::map<std::string, int64_t>& dims);

/// Gathers the plan while passes run.
class PlanWatch {
 public:
  /// `options`, which are called as before; valid as long as this object is.
  PipelineOptions around(const PipelineOptions& options);
  ProgramPlan take() { return std::move(plan_); }

  void before(const Pass& pass, const IRModule& module);
  void after(const Pass& pass, const IRModule& module);

 private:
  ProgramPlan plan_;
  std::vector<NodePtr> buffers_;  // of plan_.allocations
};

}  // namespace tenon
