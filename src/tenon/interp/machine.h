// SPDX-License-Identifier: Apache-2.0
// Runs flat code.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tenon/interp/code.h"
#include "tenon/interp/dims.h"

namespace tenon::interp {

/// A block of memory. `written` has a byte for each byte where reads before writes are watched;
/// empty: all is written.
struct Memory {
  std::vector<std::byte> bytes;
  std::vector<uint8_t> written;
  bool read_only = false;
  std::string name;
  std::string owner = {};  // the block that allocates it, in code that is watched
};

/// A buffer at run time.
struct View {
  std::shared_ptr<Memory> memory;
  int64_t offset = 0;                   // bytes, of the first element
  std::vector<int64_t> shape, strides;  // strides in elements
  DType dtype;
  const tir::Buffer* buffer = nullptr;  // for messages
};

/// Finds the code of a function by its name, for these arguments; null where the module has no such
/// PrimFunc.
using FindCode =
    std::function<const Code*(const std::string& name, const std::vector<View>& buffers)>;

/// Runs a function that is no code: false where there is none of this name either.
using CallForeign = std::function<bool(const std::string& name, std::vector<View>& buffers,
                                       const std::vector<Slot>& scalars, const Origin& origin)>;

class RaceTracker;
class RandomRounding;

/// An argument of an opaque call: a view (of no dimensions: a pointer), a text, or a scalar.
struct OpaqueArgument {
  std::optional<View> view;
  const char* text = nullptr;
  Slot scalar = {0};
};
using RunOpaque =
    std::function<Slot(const tenon::Call& call, std::vector<OpaqueArgument>& arguments)>;

class CallMemo;
struct MemoProgram;
/// The program of a function for a CallMemo; null for one whose results are not kept.
using FindProgram = std::function<MemoProgram*(const Code& code)>;

class Machine {
 public:
  /// `races`, where it is given, is told of every access (of code that is resolved for it).
  /// `steps` counts instructions, up to `step_limit` (0: none).
  Machine(FindCode find, int64_t step_limit, int64_t& steps, CallForeign foreign = {},
          RunOpaque opaque = {}, RaceTracker* races = nullptr, RandomRounding* rounding = nullptr)
      : find_(std::move(find)),
        foreign_(std::move(foreign)),
        opaque_(std::move(opaque)),
        step_limit_(step_limit > 0 ? step_limit : INT64_MAX),
        steps_(steps),
        races_(races),
        rounding_(rounding) {}

  /// From now on results of calls are kept in `memo` and taken from there.
  void keep_results(CallMemo& memo, FindProgram find) {
    memo_ = &memo;
    find_program_ = std::move(find);
  }

  /// Outputs of the program that `run` runs are kept here, those that are no parameters.
  void keep_outputs(std::map<int64_t, View>& outputs) { host_outputs_ = &outputs; }

  /// Runs `code` on a view for each buffer parameter (in order) and values for the scalar ones;
  /// gives what the function returns.
  Slot run(const Code& code, std::vector<View> buffers, const std::vector<Slot>& scalars,
           const Origin& caller);
  /// The same, where its result is not known from an earlier call.
  Slot call(const Code& code, std::vector<View> buffers, const std::vector<Slot>& scalars,
            const Origin& caller);

  struct Frame;

 private:
  void execute(const Code& code, Frame& frame);
  // Watched by a RaceTracker: instruction after instruction, each told to it first.
  void execute_watched(const Code& code, Frame& frame);
  void count_steps(int64_t steps, const Code& code, const Instr& instr) {
    if ((steps_ += steps) >= pause_at_) [[unlikely]]
      pause(origin_of(code, instr));
  }
  // Asks whether to go on. \throws CompileError (kLimitExceeded), and what check_interrupt() does
  void pause(const Origin& origin);
  static void check_dims(const Code& code, const Frame& frame);
  void step(const Code& code, const Instr& instr, const Origin& origin, Frame& frame);
  // Memory of a slot holds what the slot held; it stays the same where that is large enough.
  void keep_contents(int64_t slot, std::shared_ptr<Memory>& memory);
  void call(const Code& code, const CallInfo& info, Frame& frame);
  Slot call_opaque(const OpaqueCallInfo& info, Frame& frame);
  void watch(const Code& code, const Instr& instr, const Origin& origin, Frame& frame);

  FindCode find_;
  CallForeign foreign_;
  RunOpaque opaque_;
  int64_t step_limit_;
  int64_t pause_at_ = 0;  // at most the limit
  int64_t& steps_;
  RaceTracker* races_;
  RandomRounding* rounding_;  // null: to the nearest
  int depth_ = 0;
  std::map<int64_t, View>* host_outputs_ = nullptr;
  std::map<int64_t, std::shared_ptr<Memory>> host_memory_;  // by slot
  CallMemo* memo_ = nullptr;
  FindProgram find_program_;
};

/// The views for a function's buffer parameters where some are missing (no memory): allocated from
/// their declared shapes, as far as the given ones, the scalars and what libraries answer determine
/// these.
void allocate_missing(const tir::PrimFunc& function, std::vector<View>& buffers,
                      const std::vector<Slot>& scalars, const AskLibrary& ask = {});

/// The values of dim_sources(function) for these arguments.
std::vector<int64_t> dims_of(const tir::PrimFunc& function, const std::vector<View>& buffers);

/// Fresh memory of `bytes` bytes, watched. \throws CompileError (kLimitExceeded) above 16 GiB.
std::shared_ptr<Memory> allocate(int64_t bytes, std::string name, const Origin& origin);
std::vector<int64_t> compact(const std::vector<int64_t>& shape);

}  // namespace tenon::interp
