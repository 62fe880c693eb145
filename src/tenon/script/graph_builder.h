// SPDX-License-Identifier: Apache-2.0
// Builds a graph function from the tree of its text. Used by the parser of modules and that of
// pattern files.
#pragma once

#include <set>

#include "tenon/graph/op.h"
#include "tenon/script/evaluator.h"

namespace tenon::script {

class GraphBuilder final : public Evaluator {
 public:
  /// What arguments that are calls become: names of bindings, or parts of the expression.
  enum class Form : uint8_t { kBindings, kTrees };
  explicit GraphBuilder(ModuleContext& module, Form form = Form::kBindings)
      : Evaluator(module, kInt64), form_(form) {}

  Ref<graph::Function> function(const ast::Stmt& definition);
  struct Signature {
    std::vector<Ref<graph::Var>> params;
    graph::Type result;  // null where none is declared
  };
  /// Defines the parameters and dimensions of a function.
  Signature signature(const ast::Stmt& definition);

  // -- outside of functions, for pattern_file.cpp: names in dimensions are defined where they stand
  graph::Type type(const ast::Expr& expr);
  std::vector<Expr> dimensions(const ast::Expr& expr);
  graph::Value value(const ast::Expr& expr);
  void set(const std::string& name, Object value) { define(name, std::move(value)); }

 protected:
  Object call_other(const ast::Expr& call, const Object& callee) override;
  std::optional<Object> call_operator(const HostValue& host, const Arguments& args,
                                      const ast::Expr& call) override;
  std::optional<Object> operate(const std::string& op, const Object& a, const Object& b,
                                const Place& place) override;
  std::optional<Object> subscript_other(const Object& object, const ast::Expr& expr) override;
  std::vector<Expr> to_shape(const Object& object, const Place& place) override;
  Object held(const Object& value, const std::string& name, const Place& place) override;
  Object unpacked(const Object& value, const Place& place) override;
  bool call_statement(const ast::Expr& call) override;

 private:
  /// Bindings while they are read: finished blocks, and the one that is open.
  struct Sequence {
    std::vector<Ref<graph::BindingBlock>> blocks;
    std::vector<Ref<graph::Binding>> open;
    bool in_dataflow = false;
  };

  // -- types
  graph::Type to_type(const Object& object, const Place& place);
  graph::Type type_of_call(const std::string& name, const ast::Expr& call);
  std::vector<graph::Type> to_types(const Object& object, const Place& place);
  Expr dimension(const Object& object, const Place& place);
  void define_dimensions(const ast::Expr& annotation, bool in_shape);

  // -- values
  graph::Value to_value(const Object& object, const Place& place, DType expected = kVoid);
  /// A leaf: what is none gets a name in the open block.
  graph::Value leaf(graph::Value value, const Place& place);
  graph::Value argument(const Object& object, const Place& place) {
    return leaf(to_value(object, place), place);
  }
  graph::Value constant(const Object& object, std::optional<DType> dtype, const Place& place);
  graph::Value printed_constant(const std::string& name, Arguments& args, const ast::Expr& call);
  std::optional<Object> call_relax(const std::string& name, const ast::Expr& call);
  std::optional<Object> call_unary(const std::string& name, Arguments& args, const ast::Expr& call);
  std::optional<graph::Type> type_of_shape(Arguments& args, const Arguments::Item& item);
  graph::Value call_operator(const graph::OpDef& op, Arguments& args, const ast::Expr& call);
  std::vector<graph::Type> take_type_args(Arguments& args);
  graph::Type infer(const graph::Value& value);

  // -- statements
  Ref<graph::SeqExpr> declaration(const ast::Stmt& definition, const graph::Type& result,
                                  const Origin& at);
  Ref<graph::SeqExpr> sequence(const ast::Body& body, const Origin& at, const std::string& name);
  void statement(const ast::Stmt& stmt);
  void assign(const ast::Stmt& stmt);
  bool declares_dimension(const ast::Expr& call);
  void declare_dimension(const ast::Expr& target, const ast::Expr& call);
  void dataflow(const ast::Stmt& stmt);
  void if_else(const ast::Stmt& stmt);
  Ref<graph::SeqExpr> arm(const ast::Body& body, const ast::Stmt& stmt, graph::Type& annotation);
  Ref<graph::Var> emit(const std::string& name, graph::Value value, graph::Type type,
                       graph::Type match, const Place& place);
  void flush();

  Form form_;
  std::vector<Sequence> sequences_;
  std::set<std::string>
      outputs_;  // names that the statement being read defines for after its block
  std::optional<graph::Value> result_;
  Attrs attrs_;
};

}  // namespace tenon::script
