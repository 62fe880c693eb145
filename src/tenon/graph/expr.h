// SPDX-License-Identifier: Apache-2.0
// Graph-level expressions: functions of whole tensors in A-normal form.
#pragma once

#include <string>
#include <vector>

#include "tenon/graph/type.h"
#include "tenon/ir/constant.h"
#include "tenon/ir/module.h"

namespace tenon::graph {

struct OpDef;  // graph/op.h

/// Kinds of graph expressions; OpValue exists while a pattern is matched only.
enum class ValueKind : uint8_t {
  kVar,
  kConstant,
  kShapeExpr,
  kPrimValue,
  kStringValue,
  kTuple,
  kTupleGetItem,
  kFuncRef,
  kExternRef,
  kCall,
  kSeqExpr,
  kIf,
  kFunctionValue,
  kOpValue,
};

/// Any graph expression. Its type is kept where it is named (Var) and follows from the members
/// elsewhere.
struct ValueNode : Node {
  using Kind = ValueKind;
  static constexpr NodeFamily kFamily = NodeFamily::kValue;

 protected:
  explicit ValueNode(Origin origin) : Node(std::move(origin)) {}
};
using Value = Ref<ValueNode>;

/// The type of a value: of a Var as declared, of leaves and tuples from their members, of a Call by
/// its operator's rule (not cached: in A-normal form the bound Var has it). Object where it is not
/// known (a FuncRef, a call of one).
/// \throws CompileError what the operator's rule finds wrong.
Type type_of(const Value& value);
/// As a tensor. \throws CompileError (kTypeMismatch) at the value's origin where it is something
/// else.
Ref<TensorType> tensor_type(const Value& value);

/// A variable: a parameter or the name of a binding. It is itself.
struct Var final : NodeOf<Var, ValueNode> {
  std::string name;
  Type type;         // never null: Object where nothing is known
  bool is_dataflow;  // visible inside its dataflow block only

  Var(std::string name, Type type, bool is_dataflow = false, Origin origin = {});
  void finish() {}
  static constexpr ValueKind kKind = ValueKind::kVar;
  static constexpr std::string_view kName = "graph.Var";
  static constexpr bool kIdentity = true;
  static std::vector<FieldInfo> fields();
};

struct Constant final : NodeOf<Constant, ValueNode> {
  Ref<TensorData> data;
  Ref<TensorType> type;  // derived

  explicit Constant(Ref<TensorData> data, Origin origin = {});
  void finish();
  static constexpr ValueKind kKind = ValueKind::kConstant;
  static constexpr std::string_view kName = "graph.Constant";
  static std::vector<FieldInfo> fields();
};

/// A shape as a value: `R.shape([n, 4])`.
struct ShapeExpr final : NodeOf<ShapeExpr, ValueNode> {
  std::vector<Expr> values;

  explicit ShapeExpr(std::vector<Expr> values, Origin origin = {});
  void finish() {}
  static constexpr ValueKind kKind = ValueKind::kShapeExpr;
  static constexpr std::string_view kName = "graph.ShapeExpr";
  static std::vector<FieldInfo> fields();
};

/// A scalar as a value: `R.prim_value(n)`.
struct PrimValue final : NodeOf<PrimValue, ValueNode> {
  Expr value;

  explicit PrimValue(Expr value, Origin origin = {});
  void finish() {}
  static constexpr ValueKind kKind = ValueKind::kPrimValue;
  static constexpr std::string_view kName = "graph.PrimValue";
  static std::vector<FieldInfo> fields();
};

struct StringValue final : NodeOf<StringValue, ValueNode> {
  std::string value;

  explicit StringValue(std::string value, Origin origin = {});
  void finish() {}
  static constexpr ValueKind kKind = ValueKind::kStringValue;
  static constexpr std::string_view kName = "graph.StringValue";
  static std::vector<FieldInfo> fields();
};

struct Tuple final : NodeOf<Tuple, ValueNode> {
  std::vector<Value> values;

  explicit Tuple(std::vector<Value> values, Origin origin = {});
  void finish() {}
  static constexpr ValueKind kKind = ValueKind::kTuple;
  static constexpr std::string_view kName = "graph.Tuple";
  static std::vector<FieldInfo> fields();
};

struct TupleGetItem final : NodeOf<TupleGetItem, ValueNode> {
  Value tuple;
  int64_t index;

  TupleGetItem(Value tuple, int64_t index, Origin origin = {});
  void finish();
  static constexpr ValueKind kKind = ValueKind::kTupleGetItem;
  static constexpr std::string_view kName = "graph.TupleGetItem";
  static std::vector<FieldInfo> fields();
};

/// A function of the module as a value (`cls.f`), and the first argument of R.call_tir.
struct FuncRef final : NodeOf<FuncRef, ValueNode> {
  std::string name;

  explicit FuncRef(std::string name, Origin origin = {});
  void finish() {}
  static constexpr ValueKind kKind = ValueKind::kFuncRef;
  static constexpr std::string_view kName = "graph.FuncRef";
  static std::vector<FieldInfo> fields();
};

/// A foreign function by its symbol, as a value: `R.ExternFunc("f")`.
struct ExternRef final : NodeOf<ExternRef, ValueNode> {
  std::string symbol;

  explicit ExternRef(std::string symbol, Origin origin = {});
  void finish() {}
  static constexpr ValueKind kKind = ValueKind::kExternRef;
  static constexpr std::string_view kName = "graph.ExternRef";
  static std::vector<FieldInfo> fields();
};

/// A call: of an operator (`op` set), or of `callee` (a FuncRef, an ExternRef, a Var that holds a
/// function). The call primitives are operators too: `call_tir` has args (FuncRef, Tuple of tensors
/// [, ShapeExpr tir_vars]) and one out type in type_args; `call_dps_packed` has (ExternRef or
/// FuncRef, Tuple).
struct Call final : NodeOf<Call, ValueNode> {
  const OpDef* op;  // null where callee is set
  Value callee;
  std::vector<Value> args;
  Attrs attrs;                  // of the operator, complete and checked (graph/op.h)
  std::vector<Type> type_args;  // out_sinfo / sinfo_args

  Call(const OpDef* op, std::vector<Value> args, Attrs attrs = {}, std::vector<Type> type_args = {},
       Origin origin = {});
  Call(Value callee, std::vector<Value> args, Attrs attrs = {}, std::vector<Type> type_args = {},
       Origin origin = {});
  void finish() {}
  bool is(std::string_view op_name) const;  // "matmul", "nn.conv2d", "call_tir"
  static constexpr ValueKind kKind = ValueKind::kCall;
  static constexpr std::string_view kName = "graph.Call";
  static std::vector<FieldInfo> fields();
};

/// `var = value`, or `var = R.match_cast(value, type)`.
struct Binding final : NodeOf<Binding, Node> {
  Value value;
  Type match;  // null but for a match_cast, whose type may define symbolic variables
  Ref<Var> var;

  Binding(Ref<Var> var, Value value, Type match = {}, Origin origin = {});
  void finish() {}
  static constexpr PartKind kKind = PartKind::kBinding;
  static constexpr std::string_view kName = "graph.Binding";
  static std::vector<FieldInfo> fields();
};

/// Bindings in order; a dataflow block holds pure ones only.
struct BindingBlock final : NodeOf<BindingBlock, Node> {
  std::vector<Ref<Binding>> bindings;
  bool is_dataflow;

  BindingBlock(std::vector<Ref<Binding>> bindings, bool is_dataflow, Origin origin = {});
  void finish() {}
  static constexpr PartKind kKind = PartKind::kBindingBlock;
  static constexpr std::string_view kName = "graph.BindingBlock";
  static std::vector<FieldInfo> fields();
};

/// Blocks, then the value that they give.
struct SeqExpr final : NodeOf<SeqExpr, ValueNode> {
  std::vector<Ref<BindingBlock>> blocks;
  Value body;

  SeqExpr(std::vector<Ref<BindingBlock>> blocks, Value body, Origin origin = {});
  void finish() {}
  static constexpr ValueKind kKind = ValueKind::kSeqExpr;
  static constexpr std::string_view kName = "graph.SeqExpr";
  static std::vector<FieldInfo> fields();
};

struct If final : NodeOf<If, ValueNode> {
  Value condition;
  Ref<SeqExpr> then_branch, else_branch;

  If(Value condition, Ref<SeqExpr> then_branch, Ref<SeqExpr> else_branch, Origin origin = {});
  void finish() {}
  static constexpr ValueKind kKind = ValueKind::kIf;
  static constexpr std::string_view kName = "graph.If";
  static std::vector<FieldInfo> fields();
};

/// A graph function of the module.
struct Function final : NodeOf<Function, FunctionNode> {
  std::vector<Ref<Var>> params;
  Type result;  // null: that of the body
  bool pure;
  Ref<SeqExpr> body;

  Function(std::vector<Ref<Var>> params, Ref<SeqExpr> body, Type result = {}, Attrs attrs = {},
           bool pure = true, Origin origin = {});
  Ref<Function> with_body(Ref<SeqExpr> body) const;
  void finish() {}
  static constexpr FunctionKind kKind = FunctionKind::kFunction;
  static constexpr std::string_view kName = "graph.Function";
  static std::vector<FieldInfo> fields();
};

/// A function as the value of a binding (a closure, a composite inside a region).
struct FunctionValue final : NodeOf<FunctionValue, ValueNode> {
  Ref<Function> function;

  explicit FunctionValue(Ref<Function> function, Origin origin = {});
  void finish() {}
  static constexpr ValueKind kKind = ValueKind::kFunctionValue;
  static constexpr std::string_view kName = "graph.FunctionValue";
  static std::vector<FieldInfo> fields();
};

/// Leaves may be arguments of calls: everything but Call, If, SeqExpr and FunctionValue.
bool is_leaf(const Value& value);

}  // namespace tenon::graph
