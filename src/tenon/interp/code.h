// Flat code: what a PrimFunc is resolved to before it is run. Values live in slots of 64 bits (a
// vector in as many as it has lanes); an instruction names its slots.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tenon/tir/stmt.h"

namespace tenon::interp {

union Slot {
  int64_t i;
  double f;  // floats of every width, exactly
};

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
  kIntrinsic,    // dst = intrinsic `code`(a, b, c)
  kJump,         // to target c
  kJumpIfZero,   // to c where a is 0
  kJumpIfGE,     // to c where a >= b
  kAddImm,       // dst = a + immediate (loop counters)
  kAlloc,        // view[a]: fresh memory of the shape in slots b..
  kConstant,     // view[a]: constant table[c]
  kView,         // view[a]: over pointer in slot c with shape in slots b..
  kAddress,      // dst = pointer to the element of view[a] at indices in slots b..
  kViewPointer,  // dst = pointer to the start of view[a]
  kRegion,       // view[a] = region of view[dst] (mins in slots b.., extents after them)
  kCall,         // calls[c]
  kOpaque,       // dst = opaque_calls[c]
  kAssert,       // reports asserts[c] where a is 0
  kEnterLoop,    // watches[c]: iterations of what follows may run at once
  kIterate,      // the iteration in slot a begins
  kLeaveLoop,
  kEnterBlock,  // watches[c]
  kLeaveBlock,
  kReturn,
};

/// What the machine can execute without asking for the dtype each time.
enum class Fast : uint8_t { kNo, kInt64, kFloat32 };

struct Instr {
  Op op;
  Fast fast = Fast::kNo;  // of scalar kBinary, kLoad and kStore
  uint8_t code = 0;       // BinaryOp; index into Code::intrinsics
  uint16_t lanes = 1;
  DType dtype = {};
  DType dtype2 = {};
  int32_t dst = 0, a = 0, b = 0, c = 0;
  Slot immediate = {0};
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
  std::vector<Instr> instrs;
  std::vector<Origin> origins;  // of each instruction
  int32_t slots = 0;
  std::vector<Slot> constants_in_slots;  // what slots 0, 1, ... hold from the start
  std::vector<ViewInfo> views;
  std::vector<Ref<TensorData>> constants;
  std::vector<const Intrinsic*> intrinsics;
  std::vector<std::vector<int64_t>> tables;  // of shuffles
  std::vector<CallInfo> calls;
  std::vector<std::shared_ptr<const WatchInfo>> watches;
  std::vector<OpaqueCallInfo> opaque_calls;
  std::vector<std::string> messages;
  // How parameters arrive: view of each buffer parameter (or -1), slot of each scalar one.
  std::vector<int32_t> param_view, param_slot;
  struct DimBinding {
    int32_t slot;  // of the symbolic Var
    size_t param;
    enum class What : uint8_t { kDim, kStride, kOffset } what;
    size_t dim;
  };
  std::vector<DimBinding> bindings;
  struct DimCheck {
    size_t param, dim;
    int32_t slot;  // holds the declared dimension after `prologue` ran
  };
  std::vector<DimCheck> checks;
  int32_t result_slot = -1;  // of what the function returns, if it does
  int32_t body_start = 0;    // instructions before it compute what `checks` need
};

/// Resolves a PrimFunc; `watched`: with instructions that tell a RaceTracker where it is.
/// \throws CompileError (kUnsupported) at what cannot be interpreted, kUndefined at a use without a
/// definition.
std::unique_ptr<Code> resolve(const Ref<tir::PrimFunc>& function, bool watched = false);

}  // namespace tenon::interp
