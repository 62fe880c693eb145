// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/expr.h"

#include "tenon/graph/infer.h"
#include "tenon/graph/op.h"

namespace tenon::graph {

// An operator's type rule that makes a type which cannot be knows no place.
static Type infer_operator(const Call& call) {
  try {
    return call.op->infer_type(call);
  } catch (const CompileError& error) {
    if (error.first().origin) throw;
    std::vector<Diagnostic> placed = error.diagnostics();
    placed.front().origin = call.origin;
    throw CompileError(std::move(placed));
  }
}

Type type_of(const Value& value) {
  if (!value) return make<ObjectType>();  // an argument left out
  switch (kind_of(value)) {
    case ValueKind::kVar: return value.to<Var>().type;
    case ValueKind::kConstant: return value.to<Constant>().type;
    case ValueKind::kShapeExpr: return make<ShapeType>(value.to<ShapeExpr>().values);
    case ValueKind::kPrimValue: {
      const auto& prim = value.to<PrimValue>();
      return make<PrimType>(prim.value->dtype, prim.value);
    }
    case ValueKind::kTuple: {
      std::vector<Type> types;
      for (const Value& item : value.to<Tuple>().values) types.push_back(type_of(item));
      return make<TupleType>(std::move(types));
    }
    case ValueKind::kTupleGetItem: {
      const auto& get = value.to<TupleGetItem>();
      const Type type = type_of(get.tuple);
      const auto* tuple = type.as<TupleType>();
      if (!tuple) return make<ObjectType>();
      if (get.index < 0 || get.index >= static_cast<int64_t>(tuple->types.size()))
        throw CompileError(kTypeMismatch, get.origin, "item {} of a tuple of {}", get.index,
                           tuple->types.size());
      return tuple->types[static_cast<size_t>(get.index)];
    }
    case ValueKind::kCall: {
      const auto& call = value.to<Call>();
      if (call.op) return infer_operator(call);
      if (call.type_args.size() == 1) return call.type_args[0];
      if (call.type_args.size() > 1) return make<TupleType>(call.type_args);
      if (call.callee.as<FuncRef>() || call.callee.as<ExternRef>()) return make<ObjectType>();
      const Type callee = type_of(call.callee);
      if (callee.as<ObjectType>()) return make<ObjectType>();
      const auto* function = callee.as<FuncType>();
      if (!function)
        throw CompileError(kTypeMismatch, call.origin, "a call of {}; expected a function",
                           str(callee));
      if (!function->params || function->params->size() != call.args.size())
        return function->result;
      return result_type(*function->params, function->result, call.args);
    }
    case ValueKind::kSeqExpr: return type_of(value.to<SeqExpr>().body);
    case ValueKind::kIf: {
      const auto& branch = value.to<If>();
      const Type a = type_of(branch.then_branch), b = type_of(branch.else_branch);
      return structural_equal(a, b) ? a : make<ObjectType>();
    }
    case ValueKind::kFunctionValue: {
      const Function& function = *value.to<FunctionValue>().function;
      std::vector<Type> params;
      for (const Ref<Var>& param : function.params) params.push_back(param->type);
      const Type result = function.result ? function.result : type_of(function.body);
      return make<FuncType>(std::move(params), result, function.pure);
    }
    case ValueKind::kStringValue:
    case ValueKind::kFuncRef:
    case ValueKind::kExternRef:
    case ValueKind::kOpValue: break;
  }
  return make<ObjectType>();
}

Ref<TensorType> tensor_type(const Value& value) {
  const Type type = type_of(value);
  if (const auto* tensor = type.as<TensorType>()) return ref_to(tensor);
  throw CompileError(kTypeMismatch, value->origin, "a value of type {}; expected a tensor",
                     str(type));
}

bool is_leaf(const Value& value) {
  if (!value) return true;
  switch (kind_of(value)) {
    case ValueKind::kVar:
    case ValueKind::kConstant:
    case ValueKind::kShapeExpr:
    case ValueKind::kPrimValue:
    case ValueKind::kStringValue:
    case ValueKind::kTuple:
    case ValueKind::kTupleGetItem:
    case ValueKind::kFuncRef:
    case ValueKind::kExternRef:
    case ValueKind::kOpValue: return true;
    case ValueKind::kCall:
    case ValueKind::kSeqExpr:
    case ValueKind::kIf:
    case ValueKind::kFunctionValue: return false;
  }
  unreachable("a kind of value");
}

Var::Var(std::string name, Type type, bool is_dataflow, Origin origin)
    : NodeOf(std::move(origin)),
      name(std::move(name)),
      type(std::move(type)),
      is_dataflow(is_dataflow) {
  if (!this->type) this->type = make<ObjectType>();
  finish_node(*this);
}
std::vector<FieldInfo> Var::fields() {
  return {field<&Var::name>("name", FieldRole::kIgnored), field<&Var::type>("type"),
          field<&Var::is_dataflow>("is_dataflow")};
}

Constant::Constant(Ref<TensorData> data, Origin origin)
    : NodeOf(std::move(origin)), data(std::move(data)) {
  finish_node(*this);
}
void Constant::finish() { type = TensorType::of(data->shape, data->dtype); }
std::vector<FieldInfo> Constant::fields() { return {field<&Constant::data>("data")}; }

ShapeExpr::ShapeExpr(std::vector<Expr> values, Origin origin)
    : NodeOf(std::move(origin)), values(std::move(values)) {
  finish_node(*this);
}
std::vector<FieldInfo> ShapeExpr::fields() { return {field<&ShapeExpr::values>("values")}; }

PrimValue::PrimValue(Expr value, Origin origin)
    : NodeOf(std::move(origin)), value(std::move(value)) {
  finish_node(*this);
}
std::vector<FieldInfo> PrimValue::fields() { return {field<&PrimValue::value>("value")}; }

StringValue::StringValue(std::string value, Origin origin)
    : NodeOf(std::move(origin)), value(std::move(value)) {
  finish_node(*this);
}
std::vector<FieldInfo> StringValue::fields() { return {field<&StringValue::value>("value")}; }

Tuple::Tuple(std::vector<Value> values, Origin origin)
    : NodeOf(std::move(origin)), values(std::move(values)) {
  finish_node(*this);
}
std::vector<FieldInfo> Tuple::fields() { return {field<&Tuple::values>("values")}; }

TupleGetItem::TupleGetItem(Value tuple, int64_t index, Origin origin)
    : NodeOf(std::move(origin)), tuple(std::move(tuple)), index(index) {
  finish_node(*this);
}
void TupleGetItem::finish() {}
std::vector<FieldInfo> TupleGetItem::fields() {
  return {field<&TupleGetItem::tuple>("tuple"), field<&TupleGetItem::index>("index")};
}

FuncRef::FuncRef(std::string name, Origin origin)
    : NodeOf(std::move(origin)), name(std::move(name)) {
  finish_node(*this);
}
std::vector<FieldInfo> FuncRef::fields() { return {field<&FuncRef::name>("name")}; }

ExternRef::ExternRef(std::string symbol, Origin origin)
    : NodeOf(std::move(origin)), symbol(std::move(symbol)) {
  finish_node(*this);
}
std::vector<FieldInfo> ExternRef::fields() { return {field<&ExternRef::symbol>("symbol")}; }

Call::Call(const OpDef* op, std::vector<Value> args, Attrs attrs, std::vector<Type> type_args,
           Origin origin)
    : NodeOf(std::move(origin)),
      op(op),
      args(std::move(args)),
      attrs(std::move(attrs)),
      type_args(std::move(type_args)) {
  finish_node(*this);
}
Call::Call(Value callee, std::vector<Value> args, Attrs attrs, std::vector<Type> type_args,
           Origin origin)
    : NodeOf(std::move(origin)),
      op(nullptr),
      callee(std::move(callee)),
      args(std::move(args)),
      attrs(std::move(attrs)),
      type_args(std::move(type_args)) {
  finish_node(*this);
}
bool Call::is(std::string_view op_name) const { return op && op->name == op_name; }
std::vector<FieldInfo> Call::fields() {
  return {field<&Call::op>("op"), field<&Call::callee>("callee"), field<&Call::args>("args"),
          field<&Call::attrs>("attrs"), field<&Call::type_args>("type_args")};
}

Binding::Binding(Ref<Var> var, Value value, Type match, Origin origin)
    : NodeOf(std::move(origin)),
      value(std::move(value)),
      match(std::move(match)),
      var(std::move(var)) {
  finish_node(*this);
}
std::vector<FieldInfo> Binding::fields() {
  return {field<&Binding::value>("value"), field<&Binding::match>("match"),
          field<&Binding::var>("var", FieldRole::kDefinition)};
}

BindingBlock::BindingBlock(std::vector<Ref<Binding>> bindings, bool is_dataflow, Origin origin)
    : NodeOf(std::move(origin)), bindings(std::move(bindings)), is_dataflow(is_dataflow) {
  finish_node(*this);
}
std::vector<FieldInfo> BindingBlock::fields() {
  return {field<&BindingBlock::bindings>("bindings"),
          field<&BindingBlock::is_dataflow>("is_dataflow")};
}

// Plain bindings that follow one another are one block, as text has no border between them: passes
// that drop what stood between them need not mind.
static std::vector<Ref<BindingBlock>> joined(std::vector<Ref<BindingBlock>> blocks) {
  std::vector<Ref<BindingBlock>> out;
  for (size_t i = 0; i < blocks.size();) {
    size_t end = i + 1;
    while (!blocks[i]->is_dataflow && end < blocks.size() && !blocks[end]->is_dataflow) ++end;
    if (end == i + 1) {
      out.push_back(std::move(blocks[i]));
    } else {
      std::vector<Ref<Binding>> bindings;
      for (size_t b = i; b < end; ++b)
        bindings.insert(bindings.end(), blocks[b]->bindings.begin(), blocks[b]->bindings.end());
      out.push_back(make<BindingBlock>(std::move(bindings), false, blocks[i]->origin));
    }
    i = end;
  }
  return out;
}

SeqExpr::SeqExpr(std::vector<Ref<BindingBlock>> blocks, Value body, Origin origin)
    : NodeOf(std::move(origin)), blocks(joined(std::move(blocks))), body(std::move(body)) {
  finish_node(*this);
}
std::vector<FieldInfo> SeqExpr::fields() {
  return {field<&SeqExpr::blocks>("blocks"), field<&SeqExpr::body>("body")};
}

If::If(Value condition, Ref<SeqExpr> then_branch, Ref<SeqExpr> else_branch, Origin origin)
    : NodeOf(std::move(origin)),
      condition(std::move(condition)),
      then_branch(std::move(then_branch)),
      else_branch(std::move(else_branch)) {
  finish_node(*this);
}
std::vector<FieldInfo> If::fields() {
  return {field<&If::condition>("condition"), field<&If::then_branch>("then_branch"),
          field<&If::else_branch>("else_branch")};
}

Function::Function(std::vector<Ref<Var>> params, Ref<SeqExpr> body, Type result, Attrs attrs,
                   bool pure, Origin origin)
    : NodeOf(std::move(origin)),
      params(std::move(params)),
      result(std::move(result)),
      pure(pure),
      body(std::move(body)) {
  this->attrs = std::move(attrs);
  finish_node(*this);
}
Ref<Function> Function::with_body(Ref<SeqExpr> body) const {
  return with(*this, [&](Function& copy) { copy.body = std::move(body); });
}
std::vector<FieldInfo> Function::fields() {
  return {field<&Function::params>("params", FieldRole::kDefinition),
          field<&Function::attrs>("attrs"), field<&Function::pure>("pure"),
          field<&Function::result>("result"), field<&Function::body>("body")};
}

FunctionValue::FunctionValue(Ref<Function> function, Origin origin)
    : NodeOf(std::move(origin)), function(std::move(function)) {
  finish_node(*this);
}
std::vector<FieldInfo> FunctionValue::fields() {
  return {field<&FunctionValue::function>("function")};
}

}  // namespace tenon::graph
