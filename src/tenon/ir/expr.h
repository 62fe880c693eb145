// SPDX-License-Identifier: Apache-2.0
// Scalar expressions: dimensions of tensors above, indices and arithmetic of kernels below.
// BufferLoad, which reads a buffer, is in tir/buffer.h.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "tenon/ir/attrs.h"
#include "tenon/ir/intrinsic.h"
#include "tenon/ir/node.h"

namespace tenon {

/// Kinds of scalar expressions; BufferLoad is in tir/buffer.h.
enum class ExprKind : uint8_t {
  kIntImm,
  kFloatImm,
  kStringImm,
  kVar,
  kCast,
  kBinary,
  kNot,
  kSelect,
  kRamp,
  kBroadcast,
  kShuffle,
  kLet,
  kGlobalVar,
  kCall,
  kBufferLoad,
};

/// Any scalar (or, with lanes, vector) expression.
struct ExprNode : Node {
  using Kind = ExprKind;
  static constexpr NodeFamily kFamily = NodeFamily::kExpr;
  DType dtype;  // derived by finish()

 protected:
  explicit ExprNode(Origin origin) : Node(std::move(origin)) {}
  ExprNode(DType dtype, Origin origin) : Node(std::move(origin)), dtype(dtype) {}
};
using Expr = Ref<ExprNode>;

/// An integer or bool constant; its value fits the dtype.
struct IntImm final : NodeOf<IntImm, ExprNode> {
  int64_t value;

  IntImm(DType dtype, int64_t value, Origin origin = {});
  void finish();
  static constexpr ExprKind kKind = ExprKind::kIntImm;
  static constexpr std::string_view kName = "IntImm";
  static std::vector<FieldInfo> fields();
};

/// A floating-point constant, kept as the double nearest to what was written, rounded to its dtype.
struct FloatImm final : NodeOf<FloatImm, ExprNode> {
  double value;

  FloatImm(DType dtype, double value, Origin origin = {});
  void finish();
  static constexpr ExprKind kKind = ExprKind::kFloatImm;
  static constexpr std::string_view kName = "FloatImm";
  static std::vector<FieldInfo> fields();
};

/// A text argument of an intrinsic call; dtype handle.
struct StringImm final : NodeOf<StringImm, ExprNode> {
  std::string value;

  explicit StringImm(std::string value, Origin origin = {});
  void finish() {}
  static constexpr ExprKind kKind = ExprKind::kStringImm;
  static constexpr std::string_view kName = "StringImm";
  static std::vector<FieldInfo> fields();
};

/// A scalar variable: a symbolic dimension, a loop or block variable, a scalar parameter, a
/// pointer. It is itself: two of the same name are different, and only its definition makes it.
struct Var final : NodeOf<Var, ExprNode> {
  std::string name;
  DType pointee;         // of a handle: what it points to; void where not known
  std::string scope;     // of a handle: the memory scope, "global" unless said
  bool is_size = false;  // known to be >= 0 (T.SizeVar; every dimension of a tensor)

  Var(std::string name, DType dtype, Origin origin = {});
  static Ref<Var> pointer(std::string name, DType pointee, std::string scope = "global",
                          Origin origin = {});
  static Ref<Var> size(std::string name, DType dtype = kInt64, Origin origin = {});
  void finish() {}
  static constexpr ExprKind kKind = ExprKind::kVar;
  static constexpr std::string_view kName = "Var";
  static constexpr bool kIdentity = true;
  static std::vector<FieldInfo> fields();
};

/// Conversion to another dtype of the same lanes. Float to integer truncates towards zero; out of
/// range is undefined in IR made by Tenon's importers only where the source operator leaves it so
/// (the interpreter saturates).
struct Cast final : NodeOf<Cast, ExprNode> {
  Expr value;

  Cast(DType dtype, Expr value, Origin origin = {});
  void finish();
  static constexpr ExprKind kKind = ExprKind::kCast;
  static constexpr std::string_view kName = "Cast";
  static std::vector<FieldInfo> fields();
};

enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,  // floats: IEEE division; integers: towards zero
  kMod,  // remainder of kDiv (sign of the dividend)
  kFloorDiv,
  kFloorMod,  // towards minus infinity; the remainder has the divisor's sign
  kMin,
  kMax,  // floats: NaN where either is NaN
  kEQ,
  kNE,
  kLT,
  kLE,
  kGT,
  kGE,  // give bool
  kAnd,
  kOr,  // of bools
};
inline constexpr int kBinaryOpCount = static_cast<int>(BinaryOp::kOr) + 1;

/// TVMScript's class name of the operation: "Add", "FloorDiv", "LT".
std::string_view name_of(BinaryOp op);
constexpr bool is_comparison(BinaryOp op) { return op >= BinaryOp::kEQ && op <= BinaryOp::kGE; }
constexpr bool is_logical(BinaryOp op) { return op >= BinaryOp::kAnd; }

/// Two operands of one dtype (lanes included). Integer arithmetic wraps; division by zero is an
/// error at run time.
struct Binary final : NodeOf<Binary, ExprNode> {
  BinaryOp op;
  Expr lhs, rhs;

  Binary(BinaryOp op, Expr lhs, Expr rhs, Origin origin = {});  // kDTypeMismatch where they differ
  void finish();
  static constexpr ExprKind kKind = ExprKind::kBinary;
  static constexpr std::string_view kName = "Binary";
  static std::vector<FieldInfo> fields();
};

/// Logical not of a bool.
struct Not final : NodeOf<Not, ExprNode> {
  Expr value;

  explicit Not(Expr value, Origin origin = {});
  void finish();
  static constexpr ExprKind kKind = ExprKind::kNot;
  static constexpr std::string_view kName = "Not";
  static std::vector<FieldInfo> fields();
};

/// Both values are evaluated (T.if_then_else is the intrinsic that evaluates one only).
struct Select final : NodeOf<Select, ExprNode> {
  Expr condition, true_value, false_value;

  Select(Expr condition, Expr true_value, Expr false_value, Origin origin = {});
  void finish();
  static constexpr ExprKind kKind = ExprKind::kSelect;
  static constexpr std::string_view kName = "Select";
  static std::vector<FieldInfo> fields();
};

/// The vector base, base + stride, ..., base + (lanes - 1) * stride.
struct Ramp final : NodeOf<Ramp, ExprNode> {
  Expr base, stride;
  int64_t lanes;

  Ramp(Expr base, Expr stride, int64_t lanes, Origin origin = {});
  void finish();
  static constexpr ExprKind kKind = ExprKind::kRamp;
  static constexpr std::string_view kName = "Ramp";
  static std::vector<FieldInfo> fields();
};

/// A scalar repeated in every lane.
struct Broadcast final : NodeOf<Broadcast, ExprNode> {
  Expr value;
  int64_t lanes;

  Broadcast(Expr value, int64_t lanes, Origin origin = {});
  void finish();
  static constexpr ExprKind kKind = ExprKind::kBroadcast;
  static constexpr std::string_view kName = "Broadcast";
  static std::vector<FieldInfo> fields();
};

/// Lanes picked by constant indices from the concatenation of the vectors.
struct Shuffle final : NodeOf<Shuffle, ExprNode> {
  std::vector<Expr> vectors;
  std::vector<int64_t> lanes;

  Shuffle(std::vector<Expr> vectors, std::vector<int64_t> lanes, Origin origin = {});
  void finish();
  static constexpr ExprKind kKind = ExprKind::kShuffle;
  static constexpr std::string_view kName = "Shuffle";
  static std::vector<FieldInfo> fields();
};

/// `var` stands for `value` in `body`.
struct Let final : NodeOf<Let, ExprNode> {
  Ref<Var> var;
  Expr value, body;

  Let(Ref<Var> var, Expr value, Expr body, Origin origin = {});
  void finish();
  static constexpr ExprKind kKind = ExprKind::kLet;
  static constexpr std::string_view kName = "Let";
  static std::vector<FieldInfo> fields();
};

/// A function of the module by its name. Two of one name are equal: names are unique in a module.
struct GlobalVar final : NodeOf<GlobalVar, ExprNode> {
  std::string name;

  explicit GlobalVar(std::string name, Origin origin = {});
  void finish() {}
  static constexpr ExprKind kKind = ExprKind::kGlobalVar;
  static constexpr std::string_view kName = "GlobalVar";
  static std::vector<FieldInfo> fields();
};

/// A call of an intrinsic, or (where `callee` is set) of a PrimFunc of the module that returns a
/// scalar.
struct Call final : NodeOf<Call, ExprNode> {
  const Intrinsic* op;  // null where callee is set
  Ref<GlobalVar> callee;
  std::vector<NodePtr> args;  // Exprs; of intrinsics that take them also Buffers and BufferRegions
  DType result;               // as stated; finish() sets dtype from it or from the intrinsic's rule

  Call(const Intrinsic* op, std::vector<NodePtr> args, DType result = kVoid, Origin origin = {});
  Call(IntrinsicId id, std::vector<NodePtr> args, DType result = kVoid, Origin origin = {})
      : Call(&intrinsic(id), std::move(args), result, std::move(origin)) {}
  Call(Ref<GlobalVar> callee, std::vector<NodePtr> args, DType result, Origin origin = {});
  void finish();
  /// Argument i, which must be an expression.
  Expr arg(size_t i) const { return downcast<ExprNode>(args.at(i)); }
  bool is(IntrinsicId id) const { return op && op->id == id; }
  static constexpr ExprKind kKind = ExprKind::kCall;
  static constexpr std::string_view kName = "Call";
  static std::vector<FieldInfo> fields();
};

// ---- building -----------------------------------------------------------------------------------

/// A constant of `dtype` (splat where it has lanes).
Expr imm(DType dtype, int64_t value);
Expr imm(DType dtype, double value);
inline Expr int64(int64_t value) { return imm(kInt64, value); }
inline Expr int32(int64_t value) { return imm(kInt32, value); }
inline Expr boolean(bool value) { return imm(kBool, int64_t{value}); }
inline Ref<Var> var(std::string name, DType dtype = kInt64) {
  return make<Var>(std::move(name), dtype);
}

/// Builds a Binary, folding constants and the neutral elements 0 and 1. Operands of two integer
/// dtypes meet in the wider one; a constant takes the dtype of the other side; a scalar is
/// broadcast to a vector.
Expr binary(BinaryOp op, Expr lhs, Expr rhs, Origin origin = {});
inline Expr operator+(Expr a, Expr b) { return binary(BinaryOp::kAdd, std::move(a), std::move(b)); }
inline Expr operator-(Expr a, Expr b) { return binary(BinaryOp::kSub, std::move(a), std::move(b)); }
inline Expr operator*(Expr a, Expr b) { return binary(BinaryOp::kMul, std::move(a), std::move(b)); }
inline Expr operator/(Expr a, Expr b) { return binary(BinaryOp::kDiv, std::move(a), std::move(b)); }
inline Expr floordiv(Expr a, Expr b) {
  return binary(BinaryOp::kFloorDiv, std::move(a), std::move(b));
}
inline Expr floormod(Expr a, Expr b) {
  return binary(BinaryOp::kFloorMod, std::move(a), std::move(b));
}
inline Expr min(Expr a, Expr b) { return binary(BinaryOp::kMin, std::move(a), std::move(b)); }
inline Expr max(Expr a, Expr b) { return binary(BinaryOp::kMax, std::move(a), std::move(b)); }
inline Expr operator<(Expr a, Expr b) { return binary(BinaryOp::kLT, std::move(a), std::move(b)); }
inline Expr operator<=(Expr a, Expr b) { return binary(BinaryOp::kLE, std::move(a), std::move(b)); }
inline Expr operator>(Expr a, Expr b) { return binary(BinaryOp::kGT, std::move(a), std::move(b)); }
inline Expr operator>=(Expr a, Expr b) { return binary(BinaryOp::kGE, std::move(a), std::move(b)); }
inline Expr eq(Expr a, Expr b) { return binary(BinaryOp::kEQ, std::move(a), std::move(b)); }
inline Expr ne(Expr a, Expr b) { return binary(BinaryOp::kNE, std::move(a), std::move(b)); }
inline Expr logical_and(Expr a, Expr b) {
  return binary(BinaryOp::kAnd, std::move(a), std::move(b));
}
inline Expr logical_or(Expr a, Expr b) { return binary(BinaryOp::kOr, std::move(a), std::move(b)); }
inline Expr operator+(Expr a, int64_t b) { return a + imm(a->dtype, b); }
inline Expr operator-(Expr a, int64_t b) { return a - imm(a->dtype, b); }
inline Expr operator*(Expr a, int64_t b) { return a * imm(a->dtype, b); }
inline Expr floordiv(Expr a, int64_t b) { return floordiv(a, imm(a->dtype, b)); }
inline Expr floormod(Expr a, int64_t b) { return floormod(a, imm(a->dtype, b)); }
Expr ceildiv(Expr a, Expr b);
Expr logical_not(Expr a);
Expr select(Expr condition, Expr a, Expr b);
Expr cast(DType dtype, Expr value);  // folds constants; itself where the dtype is the same already
/// `call(IntrinsicId::kExp, {x})`.
Expr call(IntrinsicId id, std::vector<NodePtr> args, DType result = kVoid, Origin origin = {});
Expr if_then_else(Expr condition, Expr a, Expr b);
Expr broadcast_to_lanes(Expr value, int lanes);

/// The value where `expr` is an integer or bool constant (a splat of one too).
std::optional<int64_t> as_int(const Expr& expr);
std::optional<double> as_float(const Expr& expr);
inline bool is_int(const Expr& expr, int64_t value) { return as_int(expr) == value; }
/// All of them, where each is a constant.
std::optional<std::vector<int64_t>> as_ints(const std::vector<Expr>& exprs);
std::vector<Expr> to_exprs(const std::vector<int64_t>& values, DType dtype = kInt64);
/// Exact result of a binary operation on constants in `dtype`, wrapped to its width; nothing for a
/// division by 0.
std::optional<int64_t> fold_int(BinaryOp op, DType dtype, int64_t a, int64_t b);

/// A short text for messages: `n * 4 + 1`. The printer of script/ is for programs.
std::string str(const Expr& expr);
std::string str(const std::vector<Expr>& exprs);  // "(n, 4)"

}  // namespace tenon
