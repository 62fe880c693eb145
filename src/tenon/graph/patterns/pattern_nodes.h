// SPDX-License-Identifier: Apache-2.0
// The nodes that dataflow patterns are made of (graph/patterns/dataflow_pattern.h builds them).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tenon/graph/op.h"
#include "tenon/tir/stmt.h"

namespace tenon::graph {

/// Kinds of patterns.
enum class PatternKind : uint8_t {
  kWildcard,
  kVar,
  kGlobalVar,
  kExternFunc,
  kPrimFunc,
  kConstant,
  kExpr,
  kOp,
  kCall,
  kFunction,
  kTuple,
  kTupleGetItem,
  kOr,
  kAnd,
  kNot,
  kDType,
  kShape,
  kAttr,
  kType,
  kShapeExpr,
  kParam,
  kTransposed,
  kGraph,
};

/// Any pattern. A node is itself: what it matched, it matches wherever it stands again.
struct PatternNode : Node {
  using Kind = PatternKind;
  static constexpr NodeFamily kFamily = NodeFamily::kPattern;

 protected:
  explicit PatternNode(Origin origin) : Node(std::move(origin)) {}
};
using PatternPtr = Ref<PatternNode>;

/// Anything.
struct WildcardPattern final : NodeOf<WildcardPattern, PatternNode> {
  explicit WildcardPattern(Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kWildcard;
  static constexpr std::string_view kName = "wildcard";
  static std::vector<FieldInfo> fields();
};

/// A variable; of this name where it is not empty.
struct VarPattern final : NodeOf<VarPattern, PatternNode> {
  std::string name;
  bool dataflow;  // only one of a dataflow block

  VarPattern(std::string name, bool dataflow, Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kVar;
  static constexpr std::string_view kName = "is_var";
  static std::vector<FieldInfo> fields();
};

/// A function of the module by its name; any where that is empty.
struct GlobalVarPattern final : NodeOf<GlobalVarPattern, PatternNode> {
  std::string name;

  explicit GlobalVarPattern(std::string name, Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kGlobalVar;
  static constexpr std::string_view kName = "is_gv";
  static std::vector<FieldInfo> fields();
};

/// A foreign function by its symbol; any where that is empty.
struct ExternFuncPattern final : NodeOf<ExternFuncPattern, PatternNode> {
  std::string symbol;

  explicit ExternFuncPattern(std::string symbol, Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kExternFunc;
  static constexpr std::string_view kName = "extern_func";
  static std::vector<FieldInfo> fields();
};

/// A PrimFunc of the module that this one matches (tir/patterns/block_pattern.h).
struct PrimFuncPattern final : NodeOf<PrimFuncPattern, PatternNode> {
  Ref<tir::PrimFunc> function;

  explicit PrimFuncPattern(Ref<tir::PrimFunc> function, Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kPrimFunc;
  static constexpr std::string_view kName = "prim_func";
  static std::vector<FieldInfo> fields();
};

/// A constant tensor.
struct ConstantPattern final : NodeOf<ConstantPattern, PatternNode> {
  explicit ConstantPattern(Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kConstant;
  static constexpr std::string_view kName = "is_const";
  static std::vector<FieldInfo> fields();
};

/// A value that is structurally equal; of constants their content.
struct ExprPattern final : NodeOf<ExprPattern, PatternNode> {
  Value value;

  explicit ExprPattern(Value value, Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kExpr;
  static constexpr std::string_view kName = "is_expr";
  static std::vector<FieldInfo> fields();
};

/// An operator: the callee of a call.
struct OpPattern final : NodeOf<OpPattern, PatternNode> {
  const OpDef* op;

  explicit OpPattern(const OpDef* op, Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kOp;
  static constexpr std::string_view kName = "is_op";
  static std::vector<FieldInfo> fields();
};

/// A call. Operands of add, multiply, maximum and minimum match in either order.
struct CallPattern final : NodeOf<CallPattern, PatternNode> {
  PatternPtr callee;
  std::optional<std::vector<PatternPtr>> args;  // none: any arguments
  bool more_args;                               // further arguments may follow

  CallPattern(PatternPtr callee, std::optional<std::vector<PatternPtr>> args, bool more_args,
              Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kCall;
  static constexpr std::string_view kName = "call";
  static std::vector<FieldInfo> fields();
};

/// A function as a value, or one of the module, by its parameters and result.
struct FunctionPattern final : NodeOf<FunctionPattern, PatternNode> {
  std::vector<PatternPtr> params;
  PatternPtr body;

  FunctionPattern(std::vector<PatternPtr> params, PatternPtr body, Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kFunction;
  static constexpr std::string_view kName = "function_pattern";
  static std::vector<FieldInfo> fields();
};

struct TuplePattern final : NodeOf<TuplePattern, PatternNode> {
  std::vector<PatternPtr> items;
  bool unordered;

  TuplePattern(std::vector<PatternPtr> items, bool unordered, Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kTuple;
  static constexpr std::string_view kName = "is_tuple";
  static std::vector<FieldInfo> fields();
};

struct TupleGetItemPattern final : NodeOf<TupleGetItemPattern, PatternNode> {
  PatternPtr tuple;
  int64_t index;  // -1: any

  TupleGetItemPattern(PatternPtr tuple, int64_t index, Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kTupleGetItem;
  static constexpr std::string_view kName = "is_tuple_get_item";
  static std::vector<FieldInfo> fields();
};

struct OrPattern final : NodeOf<OrPattern, PatternNode> {
  PatternPtr lhs, rhs;

  OrPattern(PatternPtr lhs, PatternPtr rhs, Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kOr;
  static constexpr std::string_view kName = "or";
  static std::vector<FieldInfo> fields();
};

struct AndPattern final : NodeOf<AndPattern, PatternNode> {
  PatternPtr lhs, rhs;

  AndPattern(PatternPtr lhs, PatternPtr rhs, Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kAnd;
  static constexpr std::string_view kName = "and";
  static std::vector<FieldInfo> fields();
};

/// Whatever `pattern` does not match; binds nothing.
struct NotPattern final : NodeOf<NotPattern, PatternNode> {
  PatternPtr pattern;

  explicit NotPattern(PatternPtr pattern, Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kNot;
  static constexpr std::string_view kName = "not";
  static std::vector<FieldInfo> fields();
};

struct DTypePattern final : NodeOf<DTypePattern, PatternNode> {
  PatternPtr pattern;
  DType dtype;

  DTypePattern(PatternPtr pattern, DType dtype, Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kDType;
  static constexpr std::string_view kName = "has_dtype";
  static std::vector<FieldInfo> fields();
};

/// A tensor of this shape. A bare variable stands for any dimension, the same wherever it is used.
struct ShapePattern final : NodeOf<ShapePattern, PatternNode> {
  PatternPtr pattern;
  std::vector<Expr> dims;

  ShapePattern(PatternPtr pattern, std::vector<Expr> dims, Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kShape;
  static constexpr std::string_view kName = "has_shape";
  static std::vector<FieldInfo> fields();
};

/// A call, function or operator that has these attributes. An operator has `TOpPattern` (its
/// FusionKind as a number) and `FPurity`.
struct AttrPattern final : NodeOf<AttrPattern, PatternNode> {
  PatternPtr pattern;
  Attrs attrs;

  AttrPattern(PatternPtr pattern, Attrs attrs, Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kAttr;
  static constexpr std::string_view kName = "has_attr";
  static std::vector<FieldInfo> fields();
};

/// A value of this type: what the type leaves open may be anything, bare variables as dimensions
/// are as in ShapePattern.
struct TypePattern final : NodeOf<TypePattern, PatternNode> {
  PatternPtr pattern;
  Type value_type;

  TypePattern(PatternPtr pattern, Type value_type, Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kType;
  static constexpr std::string_view kName = "has_type";
  static std::vector<FieldInfo> fields();
};

/// The pattern around which one of these four puts a condition; null of others.
PatternPtr conditioned(const PatternPtr& pattern);

/// `R.shape([...])` of these numbers; bare variables as in ShapePattern.
struct ShapeExprPattern final : NodeOf<ShapeExprPattern, PatternNode> {
  std::vector<Expr> dims;

  explicit ShapeExprPattern(std::vector<Expr> dims, Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kShapeExpr;
  static constexpr std::string_view kName = "is_shape";
  static std::vector<FieldInfo> fields();
};

/// A parameter of a graph function that is a pattern: anything of its type. One of rank 1 is also
/// what has one dimension other than 1, as a bias that is broadcast: then it is that vector.
struct ParamPattern final : NodeOf<ParamPattern, PatternNode> {
  std::string name;
  Type value_type;

  ParamPattern(std::string name, Type value_type, Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kParam;
  static constexpr std::string_view kName = "param";
  static std::vector<FieldInfo> fields();
};

/// A constant matrix, of which `param` is the transpose.
struct TransposedPattern final : NodeOf<TransposedPattern, PatternNode> {
  PatternPtr param;

  explicit TransposedPattern(PatternPtr param, Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kTransposed;
  static constexpr std::string_view kName = "transposed";
  static std::vector<FieldInfo> fields();
};

/// The body of a graph function: its results from its parameters, several found together. Stands at
/// the root only.
struct GraphPattern final : NodeOf<GraphPattern, PatternNode> {
  std::vector<PatternPtr> params;   // ParamPattern
  std::vector<PatternPtr> results;  // the first is matched at the root
  bool tuple;                       // the function returns a tuple, of whatever length
  bool exclusive;                   // values inside have no other use but for the results

  GraphPattern(std::vector<PatternPtr> params, std::vector<PatternPtr> results, bool tuple,
               bool exclusive, Origin origin = {});
  void finish() {}
  static constexpr PatternKind kKind = PatternKind::kGraph;
  static constexpr std::string_view kName = "graph_pattern";
  static std::vector<FieldInfo> fields();
};

}  // namespace tenon::graph
