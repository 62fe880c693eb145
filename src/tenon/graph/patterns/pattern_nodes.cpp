// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/patterns/pattern_nodes.h"

namespace tenon::graph {

WildcardPattern::WildcardPattern(Origin origin) : NodeOf(std::move(origin)) { finish_node(*this); }
std::vector<FieldInfo> WildcardPattern::fields() { return {}; }

VarPattern::VarPattern(std::string name, bool dataflow, Origin origin)
    : NodeOf(std::move(origin)), name(std::move(name)), dataflow(dataflow) {
  finish_node(*this);
}
std::vector<FieldInfo> VarPattern::fields() {
  return {field<&VarPattern::name>("name"), field<&VarPattern::dataflow>("dataflow")};
}

GlobalVarPattern::GlobalVarPattern(std::string name, Origin origin)
    : NodeOf(std::move(origin)), name(std::move(name)) {
  finish_node(*this);
}
std::vector<FieldInfo> GlobalVarPattern::fields() {
  return {field<&GlobalVarPattern::name>("name")};
}

ExternFuncPattern::ExternFuncPattern(std::string symbol, Origin origin)
    : NodeOf(std::move(origin)), symbol(std::move(symbol)) {
  finish_node(*this);
}
std::vector<FieldInfo> ExternFuncPattern::fields() {
  return {field<&ExternFuncPattern::symbol>("symbol")};
}

PrimFuncPattern::PrimFuncPattern(Ref<tir::PrimFunc> function, Origin origin)
    : NodeOf(std::move(origin)), function(std::move(function)) {
  finish_node(*this);
}
std::vector<FieldInfo> PrimFuncPattern::fields() {
  return {field<&PrimFuncPattern::function>("function")};
}

ConstantPattern::ConstantPattern(Origin origin) : NodeOf(std::move(origin)) { finish_node(*this); }
std::vector<FieldInfo> ConstantPattern::fields() { return {}; }

ExprPattern::ExprPattern(Value value, Origin origin)
    : NodeOf(std::move(origin)), value(std::move(value)) {
  finish_node(*this);
}
std::vector<FieldInfo> ExprPattern::fields() { return {field<&ExprPattern::value>("value")}; }

OpPattern::OpPattern(const OpDef* op, Origin origin) : NodeOf(std::move(origin)), op(op) {
  finish_node(*this);
}
std::vector<FieldInfo> OpPattern::fields() { return {field<&OpPattern::op>("op")}; }

CallPattern::CallPattern(PatternPtr callee, std::optional<std::vector<PatternPtr>> args,
                         bool more_args, Origin origin)
    : NodeOf(std::move(origin)),
      callee(std::move(callee)),
      args(std::move(args)),
      more_args(more_args) {
  finish_node(*this);
}
std::vector<FieldInfo> CallPattern::fields() {
  return {field<&CallPattern::callee>("callee"), field<&CallPattern::args>("args"),
          field<&CallPattern::more_args>("more_args")};
}

FunctionPattern::FunctionPattern(std::vector<PatternPtr> params, PatternPtr body, Origin origin)
    : NodeOf(std::move(origin)), params(std::move(params)), body(std::move(body)) {
  finish_node(*this);
}
std::vector<FieldInfo> FunctionPattern::fields() {
  return {field<&FunctionPattern::params>("params"), field<&FunctionPattern::body>("body")};
}

TuplePattern::TuplePattern(std::vector<PatternPtr> items, bool unordered, Origin origin)
    : NodeOf(std::move(origin)), items(std::move(items)), unordered(unordered) {
  finish_node(*this);
}
std::vector<FieldInfo> TuplePattern::fields() {
  return {field<&TuplePattern::items>("items"), field<&TuplePattern::unordered>("unordered")};
}

TupleGetItemPattern::TupleGetItemPattern(PatternPtr tuple, int64_t index, Origin origin)
    : NodeOf(std::move(origin)), tuple(std::move(tuple)), index(index) {
  finish_node(*this);
}
std::vector<FieldInfo> TupleGetItemPattern::fields() {
  return {field<&TupleGetItemPattern::tuple>("tuple"), field<&TupleGetItemPattern::index>("index")};
}

OrPattern::OrPattern(PatternPtr lhs, PatternPtr rhs, Origin origin)
    : NodeOf(std::move(origin)), lhs(std::move(lhs)), rhs(std::move(rhs)) {
  finish_node(*this);
}
std::vector<FieldInfo> OrPattern::fields() {
  return {field<&OrPattern::lhs>("lhs"), field<&OrPattern::rhs>("rhs")};
}

AndPattern::AndPattern(PatternPtr lhs, PatternPtr rhs, Origin origin)
    : NodeOf(std::move(origin)), lhs(std::move(lhs)), rhs(std::move(rhs)) {
  finish_node(*this);
}
std::vector<FieldInfo> AndPattern::fields() {
  return {field<&AndPattern::lhs>("lhs"), field<&AndPattern::rhs>("rhs")};
}

NotPattern::NotPattern(PatternPtr pattern, Origin origin)
    : NodeOf(std::move(origin)), pattern(std::move(pattern)) {
  finish_node(*this);
}
std::vector<FieldInfo> NotPattern::fields() { return {field<&NotPattern::pattern>("pattern")}; }

DTypePattern::DTypePattern(PatternPtr pattern, DType dtype, Origin origin)
    : NodeOf(std::move(origin)), pattern(std::move(pattern)), dtype(dtype) {
  finish_node(*this);
}
std::vector<FieldInfo> DTypePattern::fields() {
  return {field<&DTypePattern::pattern>("pattern"), field<&DTypePattern::dtype>("dtype")};
}

ShapePattern::ShapePattern(PatternPtr pattern, std::vector<Expr> dims, Origin origin)
    : NodeOf(std::move(origin)), pattern(std::move(pattern)), dims(std::move(dims)) {
  finish_node(*this);
}
std::vector<FieldInfo> ShapePattern::fields() {
  return {field<&ShapePattern::pattern>("pattern"),
          field<&ShapePattern::dims>("dims", FieldRole::kSymbolic)};
}

AttrPattern::AttrPattern(PatternPtr pattern, Attrs attrs, Origin origin)
    : NodeOf(std::move(origin)), pattern(std::move(pattern)), attrs(std::move(attrs)) {
  finish_node(*this);
}
std::vector<FieldInfo> AttrPattern::fields() {
  return {field<&AttrPattern::pattern>("pattern"), field<&AttrPattern::attrs>("attrs")};
}

TypePattern::TypePattern(PatternPtr pattern, Type value_type, Origin origin)
    : NodeOf(std::move(origin)), pattern(std::move(pattern)), value_type(std::move(value_type)) {
  finish_node(*this);
}
std::vector<FieldInfo> TypePattern::fields() {
  return {field<&TypePattern::pattern>("pattern"), field<&TypePattern::value_type>("value_type")};
}

PatternPtr conditioned(const PatternPtr& pattern) {
  if (const auto* p = pattern.as<DTypePattern>()) return p->pattern;
  if (const auto* p = pattern.as<ShapePattern>()) return p->pattern;
  if (const auto* p = pattern.as<AttrPattern>()) return p->pattern;
  const auto* p = pattern.as<TypePattern>();
  return p ? p->pattern : PatternPtr();
}

ShapeExprPattern::ShapeExprPattern(std::vector<Expr> dims, Origin origin)
    : NodeOf(std::move(origin)), dims(std::move(dims)) {
  finish_node(*this);
}
std::vector<FieldInfo> ShapeExprPattern::fields() {
  return {field<&ShapeExprPattern::dims>("dims", FieldRole::kSymbolic)};
}

ParamPattern::ParamPattern(std::string name, Type value_type, Origin origin)
    : NodeOf(std::move(origin)), name(std::move(name)), value_type(std::move(value_type)) {
  finish_node(*this);
}
std::vector<FieldInfo> ParamPattern::fields() {
  return {field<&ParamPattern::name>("name"), field<&ParamPattern::value_type>("value_type")};
}

TransposedPattern::TransposedPattern(PatternPtr param, Origin origin)
    : NodeOf(std::move(origin)), param(std::move(param)) {
  finish_node(*this);
}
std::vector<FieldInfo> TransposedPattern::fields() {
  return {field<&TransposedPattern::param>("param")};
}

GraphPattern::GraphPattern(std::vector<PatternPtr> params, std::vector<PatternPtr> results,
                           bool tuple, bool exclusive, Origin origin)
    : NodeOf(std::move(origin)),
      params(std::move(params)),
      results(std::move(results)),
      tuple(tuple),
      exclusive(exclusive) {
  finish_node(*this);
}
std::vector<FieldInfo> GraphPattern::fields() {
  return {field<&GraphPattern::params>("params"), field<&GraphPattern::results>("results"),
          field<&GraphPattern::tuple>("tuple"), field<&GraphPattern::exclusive>("exclusive")};
}

}  // namespace tenon::graph
