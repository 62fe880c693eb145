// SPDX-License-Identifier: Apache-2.0
// The reference interpreter: executes any module at any level, slowly and exactly. It is the
// meaning of the IR; every pass and every back end is checked against it.
//
// A PrimFunc is resolved once to flat code over slots (code.h) and then run. Every access is
// checked against its buffer's shape, and memory that a function allocates is watched for reads
// before writes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tenon/graph/expr.h"
#include "tenon/ir/module.h"
#include "tenon/tir/extern_function.h"

namespace tenon::interp {

/// An argument of a library function: the address of a buffer's first element with its shape and
/// strides (in elements), a pointer alone, a text, or a scalar.
struct ExternArgument {
  void* data = nullptr;        // null: a scalar or a text
  const char* text = nullptr;  // null: none
  std::vector<int64_t> shape, strides;
  int64_t integer = 0;  // of a scalar of an integer dtype
  double number = 0;    // of a scalar of a float dtype
};
/// Calls a library function, an argument for each parameter. \throws CompileError (kRunFailed)
/// where it returned another code than 0; kLinkFailed where it is in no library.
using CallLibrary = std::function<void(const tir::ExternFunction& function,
                                       const std::vector<ExternArgument>& arguments)>;

/// Calls what no function of the module declares (T.call_extern("int32", "f", ...), T.call_packed)
/// with the arguments after its name; gives its scalar result. \throws CompileError as above.
using CallOpaque =
    std::function<ExternArgument(const tenon::Call& call, const std::vector<ExternArgument>&)>;

class CallMemo;

struct Options {
  /// Stops with kLimitExceeded after so many steps of scalar code, all runs together; 0: no limit.
  int64_t step_limit = 0;
  /// Extern functions with a reference body are that; the others are called through this. Empty:
  /// they cannot be run (kUnsupported).
  CallLibrary call_library = {};
  /// run_prim_func() also finds iterations that may run at once and depend on one another (kRace),
  /// and elements of outputs that are never written (kNotWritten). Much slower.
  bool find_races = false;
  /// Parallel loops that are not proved free of races (tir/analysis/parallel_races.h) are watched
  /// in every run: of the functions that have them, and of what these call. The rest is as fast as
  /// ever.
  bool watch_open_loops = false;
  CallOpaque call_opaque = {};  // empty: such calls cannot be run
  /// Not 0: floating-point operations that are not exact are rounded at random from this seed, for
  /// estimates of what rounding does to a result (random_rounding.h).
  uint64_t rounding_seed = 0;
  /// Keeps results of calls, also for other modules (call_memo.h). Not used where what a call does
  /// depends on more than its arguments: with `find_races` or `rounding_seed`.
  std::shared_ptr<CallMemo> memo = {};
};

/// Executes functions of one module, keeping their resolved code between calls.
class Interpreter {
 public:
  explicit Interpreter(const IRModule& module, Options options = {});
  ~Interpreter();

  /// Runs `main` (a graph function, or the PrimFunc that it was lowered to) on its inputs in order
  /// and returns its outputs in order. \throws CompileError: kBadInput where an input does not fit
  /// its parameter; kOutOfBounds, kUninitialisedRead, kRunFailed with the place of the access;
  /// kUnsupported.
  std::vector<Ref<TensorData>> run_main(const std::vector<Ref<TensorData>>& inputs);

  /// Runs a PrimFunc on buffers: the inputs' contents are given; the others (null) are allocated
  /// from their declared shapes, which the inputs' shapes and `scalars` (values of the scalar
  /// parameters, in order) must determine. Returns the contents of every buffer parameter
  /// afterwards.
  std::vector<Ref<TensorData>> run_prim_func(const std::string& name,
                                             const std::vector<Ref<TensorData>>& buffers,
                                             const std::vector<double>& scalars = {});

  /// Steps of scalar code so far, about.
  int64_t steps_used() const;

  /// After run_prim_func() with `find_races`: the place in the text that wrote element `element`
  /// (row-major) of buffer parameter `buffer` last.
  Origin last_writer(size_t buffer, int64_t element) const;

  /// Evaluates a pure graph call whose arguments are constants. Nothing where an argument is no
  /// constant.
  std::optional<graph::Value> evaluate_call(const Ref<graph::Call>& call);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::interp
