// SPDX-License-Identifier: Apache-2.0
// Flat code: what a PrimFunc is resolved to before it is run. Values live in slots of 64 bits (a
// vector in as many as it has lanes); an instruction names its slots.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tenon/tir/stmt.h"

namespace tenon::interp {

union Slot {
  int64_t i;
  double f;  // floats of every width, exactly
};

using FloatFunction = float (*)(float);

enum class Op : uint8_t {
  kImmediate,   // dst = immediate
  kMove,        // dst = a
  kSplat,       // every lane of dst = a
  kRamp,        // dst = a, a + b, a + 2b, ...
  kShuffle,     // dst[k] = slots[a + table[c + k]]
  kBinary,      // dst = a `code` b; dtype is that of the operands
  kNot,         // dst = !a
  kCast,        // dst = a, from dtype2 to dtype
  kSelect,      // dst = a ? b : c, lane by lane (b's dtype)
  kLoad,        // dst = view[a](indices in slots b..)
  kStore,       // view[a](indices in slots b..) = dst
  kMaskedLoad,  // the same where mask (slot c) holds; elsewhere dst keeps what it has
  kMaskedStore,
  kIntrinsic,   // dst = intrinsic `code`(a, b, c)
  kJump,        // to target c
  kJumpIfZero,  // to c where a is 0
  kJumpIfGE,    // to c where a >= b
  kAddImm,      // dst = a + immediate (loop counters)
  kAlloc,       // view[a]: fresh memory of the shape in slots b..
  kConstant,    // view[a]: constant table[c]
  kView,        // view[a]: over pointer in slot c with shape in slots b..
  kAddress,     // dst = pointer to the element of view[a] at indices in slots b..; `code` 1: inside
  kMovePointer,  // dst = pointer in slot a and slot b elements of dtype, with slot c behind
                 // it; into view[immediate]
  kViewPointer,  // dst = pointer to the start of view[a]
  kRegion,       // view[a] = region of view[dst] (mins in slots b.., extents after them)
  kCall,         // calls[c]
  kOpaque,       // dst = opaque_calls[c]
  kCheckDims,    // of the parameters, as `checks` has them
  kAssert,       // reports messages[c] where a is 0
  kEnterLoop,    // watches[c]: iterations of what follows may run at once
  kIterate,      // the iteration in slot a begins
  kLeaveLoop,
  kEnterBlock,  // watches[c]
  kLeaveBlock,
  kReturn,

  // What nearly all programs consist of, one dtype an operation: int64 (and narrower integers that
  // cannot wrap), float32, bool.
  kInnerLoop,   // kJumpIfGE in front of inner_loops[dst], of which it runs what it can
  kNext,        // a += 1; to c where a < b; `immediate` instructions were passed
  kNextSteady,  // kNext, and into steady_loops[dst] where that can be
  kSteadyNext,  // kNext of that, which leaves it where a >= b
  kLoadNextF,   // dst = cursors[a], of access b, which moves on
  kLoadNext,    // of any dtype
  kStoreNextF,  // cursors[a] = dst, and moves on
  kStoreNext,
  kMulAdd,  // dst = a + b * immediate
  kDivI,    // dst = a / immediate, for a >= 0 and immediate > 0
  kModI,    // the remainder of that
  kAddI,
  kSubI,
  kMulI,
  kAddI32,  // int32, which wraps
  kSubI32,
  kMulI32,
  kMinI,
  kMaxI,
  kEqualI,
  kNotEqualI,
  kLessI,
  kLessEqualI,
  kAddF,
  kSubF,
  kMulF,
  kDivF,
  kMinF,
  kMaxF,
  kLessF,
  kLessEqualF,
  kAndB,
  kOrB,
  kFunctionF,   // dst = function `code`(a)
  kCheckIndex,  // fails where slot a is outside 0..immediate - 1: dimension b of view c
  kLoadF,       // dst = access a
  kLoadI64,
  kLoadI32,
  kLoadAt,  // of any dtype
  kStoreF,  // access a = dst
  kStoreAt,
  kLoadLanes,    // float32: dst.. = access a, lane by lane
  kStoreLanes,   // float32: access a = dst..
  kBinaryLanes,  // float32: dst.. = a.. `code` b..
  kFmaLanes,     // float32: dst.. = a.. * b.. + c.., rounded once
  kAccumulate,   // float32: access a = access a + access b * access c; `code` 1: rounded once
  kAccumulateLanes,
};

struct Instr {
  Op op;
  uint8_t code = 0;  // BinaryOp; IntrinsicId; index into Code::functions
  uint16_t lanes = 1;
  DType dtype = {};
  DType dtype2 = {};
  int32_t dst = 0, a = 0, b = 0, c = 0;
  Slot immediate = {0};
};

inline constexpr int kMostQuickLanes = 64;  // of loads and stores of float32

/// An element, or lanes, of a view whose shape and strides are known when code is made: the byte at
/// slots[base] + slots[step] * factor + offset. Its indices are known to be inside.
struct Access {
  int32_t view, base, step;
  int64_t factor, offset;
  int64_t lane_stride;  // in bytes
  DType element;
};

/// Bytes from the view's first element.
inline int64_t offset_of(const Access& access, const Slot* slots) {
  return slots[access.base].i + slots[access.step].i * access.factor + access.offset;
}

/// A loop without loops and branches, of float32 elements (copies: of integers too), each access of
/// which moves by the same number of bytes in every iteration.
struct InnerLoop {
  enum class Form : uint8_t {
    kAccumulate,  // to = to + x * y; `is_fused`: rounded once
    kCombine,     // to = x `op` y
    kCopy,        // to = x
  } form = Form::kCopy;
  Op op = Op::kAddF;
  bool is_fused = false;
  struct Operand {
    int32_t access = -1, slot = -1;  // one of them
  };
  Operand to, x, y;
  int32_t counter = 0;  // slot
  int64_t length = 0;   // instructions of an iteration
};

/// What a loop without branches does from its second iteration on, behind all other code.
struct SteadyLoop {
  int32_t counter = 0, body = 0, exit = 0;  // exit: the instruction behind the loop
  /// An access that moves by `stride` bytes from one iteration to the next.
  struct Cursor {
    int32_t access;
    int64_t stride;
    bool stores;
  };
  std::vector<Cursor> cursors;
  struct Scattered {
    int32_t access;
    bool stores;
  };
  std::vector<Scattered> scattered;  // accesses that move otherwise
  std::vector<int32_t> kept;         // loads of the first iteration alone
  /// The access whose element is in a slot until the loop ends; -1: none.
  int32_t result = -1, result_slot = -1;
};

/// A buffer as code sees it: dims of shape, then the strides' slots where it has any.
struct ViewInfo {
  Ref<tir::Buffer> buffer;
  bool has_strides = false, has_offset = false;
};

struct CallInfo {
  std::string callee;
  struct Arg {
    bool is_view;
    int32_t index;              // of the view or the slot
    std::vector<bool> dropped;  // dimensions that the call's index drops
  };
  std::vector<Arg> args;
  int32_t result = -1;  // the slot that takes the value of a call inside an expression
  Origin origin;
};

struct WatchInfo;  // races.h

/// A call of a function that nothing declares.
struct OpaqueCallInfo {
  Ref<tenon::Call> call;
  struct Arg {
    enum class Kind : uint8_t { kScalar, kPointer, kView, kText } kind;
    int32_t index = 0;  // of the slot (of a pointer: what kAddress gave) or the view
    std::vector<bool> dropped = {};
  };
  std::vector<Arg> args;
};

struct Code {
  Ref<tir::PrimFunc> function;
  bool watched = false;  // as ResolveOptions asked for
  std::vector<Instr> instrs;
  std::vector<Origin> origins;  // of each instruction
  int32_t slots = 0;
  std::vector<Slot> constants_in_slots;  // what slots 0, 1, ... hold from the start
  std::vector<ViewInfo> views;
  std::vector<Access> accesses;
  std::vector<InnerLoop> inner_loops;
  std::vector<SteadyLoop> steady_loops;
  size_t cursors = 0;  // as many as the steady loop with most of them has
  std::vector<Ref<TensorData>> constants;
  std::vector<FloatFunction> functions;
  std::vector<std::vector<int64_t>> tables;  // of shuffles
  std::vector<CallInfo> calls;
  std::vector<std::shared_ptr<const WatchInfo>> watches;
  std::vector<OpaqueCallInfo> opaque_calls;
  std::vector<std::string> messages;
  // How parameters arrive: view of each buffer parameter (or -1), slot of each scalar one.
  std::vector<int32_t> param_view, param_slot;
  struct DimCheck {
    size_t param, dim;
    int32_t slot;  // holds the declared dimension when kCheckDims is reached
  };
  std::map<int32_t, int64_t> host_outputs;  // views that are outputs of the program, by index
  std::map<int32_t, int64_t> host_slots;    // views of memory that is asked for by slot
  std::vector<DimCheck> checks;
  int32_t result_slot = -1;  // of what the function returns, if it does
};

inline const Origin& origin_of(const Code& code, const Instr& instr) {
  return code.origins[static_cast<size_t>(&instr - code.instrs.data())];
}

/// Whether both do the same on the same arguments, instruction by instruction. Of code that calls
/// nothing: what a name stands for is no part of it.
bool same_code(const Code& a, const Code& b);
uint64_t hash_of(const Code& code);  // equal for the same code

/// Where a dimension, stride or offset that is a bare variable gets its value from.
struct DimSource {
  Ref<Var> var;
  size_t param;
  enum class What : uint8_t { kDim, kStride, kOffset } what;
  size_t dim;
};
/// Of each symbolic variable of the function's parameters, in order.
std::vector<DimSource> dim_sources(const tir::PrimFunc& function);

struct ResolveOptions {
  std::vector<int64_t> dims = {};  // values of dim_sources()
  bool watched = false;            // with instructions that tell a RaceTracker where it is
  bool random_rounding = false;    // float operations one by one, so that each can be disturbed
};

/// Resolves a PrimFunc for values of its symbolic dimensions.
/// \throws CompileError (kUnsupported) at what cannot be interpreted, kUndefined at a use without a
/// definition.
std::unique_ptr<Code> resolve(const Ref<tir::PrimFunc>& function, ResolveOptions options);

}  // namespace tenon::interp
