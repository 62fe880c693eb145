// SPDX-License-Identifier: Apache-2.0
// The printer's class, shared by printer.cpp (modules, names, scalars), print_tir.cpp and
// print_graph.cpp. No other file includes this.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tenon/graph/op.h"
#include "tenon/script/printer.h"
#include "tenon/support/identifiers.h"
#include "tenon/support/names.h"
#include "tenon/tir/extern_function.h"

namespace tenon::script {

/// Python's binding strengths, loosest first.
enum Level : int { kAny, kOr, kAnd, kNot, kCompare, kSum, kProduct, kUnary, kAtom };

class Printer {
 public:
  Printer(const PrintOptions& options, const IRModule* module);

  std::string module(const IRModule& module);
  void function(const std::string& name, const BaseFunc& function);
  std::string fragment(const NodePtr& node);
  std::string take() { return std::move(out_); }

 private:
  // -- text and names (printer.cpp)
  void line(const std::string& text);
  /// Points at `words` of the line before, which is `text`, where `node` is marked.
  void point_at(const NodePtr& node, const std::string& text, const std::string& words);
  struct Scope {  // names defined while it lives are free again afterwards
    explicit Scope(Printer& printer, bool indent = true);
    ~Scope();
    Printer& printer;
    bool indent;
  };
  std::string define(const NodePtr& node, const std::string& hint);
  std::string name_of(const NodePtr& node);  // gives an undefined one a name too
  bool is_named(const NodePtr& node) const { return names_.count(node.get()) != 0; }
  const std::string& function_name(const std::string& name);
  std::string function_ref(const std::string& name) { return "cls." + function_name(name); }
  void declare_symbolic(const Ref<Var>& var);
  void declare_variables(const Expr& expr);

  // -- attributes and constants (printer.cpp)
  std::string attr(const AttrValue& value);
  std::string attrs(const Attrs& attrs);
  std::string elements(const TensorData& data);
  std::string tensor(const Ref<TensorData>& data, char dialect);

  // -- scalar expressions (print_expr.cpp)
  std::string expr(const Expr& expr, int level = kAny);
  /// As `expr`, but a constant of dtype `expected` is a bare number (and no other is).
  std::string expr_as(const Expr& value, DType expected, int level = kAny);
  std::string exprs(const std::vector<Expr>& exprs);  // "a, b"
  std::string tuple(const std::vector<Expr>& exprs);  // "(a,)"
  std::string integer(DType dtype, int64_t value, DType expected);
  std::string binary(const Binary& op, int level);
  std::string call(const Call& call);
  std::string call_arg(const NodePtr& arg);
  std::string call_args(const GlobalVar& callee, const std::vector<NodePtr>& args);
  std::string index(const Expr& index, DType expected);
  std::string element(const tir::Buffer& buffer, const std::vector<Expr>& indices);
  /// "min:min + extent", or nothing where it is one point and `point` allows that form.
  std::string range(const tir::Range& range, DType expected, bool point);
  std::string region(const tir::BufferRegion& region, bool is_argument);
  std::string bounds(const Expr& min, const Expr& extent);  // "min, min + extent", or "extent"

  // -- TensorIR (print_tir.cpp)
  void prim_func(const std::string& name, const tir::PrimFunc& function);
  void body(const tir::Stmt& stmt);
  void stmt(const tir::Stmt& stmt);
  void for_loop(const tir::For& loop);
  void realize(const tir::BlockRealize& realize);
  void block(const tir::Block& block, const tir::BlockRealize* realize);
  void axes(const tir::Block& block, const tir::BlockRealize* realize);
  std::string regions(const std::vector<Ref<tir::BufferRegion>>& regions);
  /// Defines `buffer` and gives what stands between the parentheses of T.Buffer and the like;
  /// symbolic variables first seen in it are declared before.
  std::string buffer_args(const Ref<tir::Buffer>& buffer, bool with_shape = true);
  /// `data` is the pointer, where it is not the buffer's own.
  std::string buffer_args(const Ref<tir::Buffer>& buffer, bool with_shape, const std::string& data);
  void define_buffer(const Ref<tir::Buffer>& buffer);
  bool is_plain_param(const Ref<Var>& param, const Ref<tir::Buffer>& buffer,
                      const std::unordered_map<const Node*, int>& uses) const;
  bool elides_root(const tir::PrimFunc& function) const;
  std::string var_type(const Var& var);

  // -- extern functions (print_extern.cpp)
  void extern_function(const std::string& name, const tir::ExternFunction& function);

  // -- graph level (print_graph.cpp)
  void graph_function(const std::string& name, const graph::Function& function, bool nested);
  void seq_expr(const graph::SeqExpr& seq, const graph::Var* result);
  void binding(const graph::Binding& binding);
  std::string value(const graph::Value& value);
  std::string graph_call(const graph::Call& call);
  std::string type(const graph::Type& type);
  std::string dims(const std::vector<Expr>& dims);
  std::string type_args(const graph::Call& call);

  const PrintOptions& options_;
  const IRModule* module_;
  std::string out_;
  int64_t printed_ = 0;  // values
  int indent_ = 0;
  std::unordered_map<const Node*, std::string> names_;
  std::vector<NodePtr> kept_;  // nodes that names_ points to
  NameSupply supply_;
  std::vector<std::vector<const Node*>> scopes_;
  std::map<std::string, std::string> function_names_;
  std::unordered_map<const Node*, std::pair<Expr, Expr>> loop_domains_;
  DType default_int_ = kInt32;  // what a bare integer is here
  bool in_signature_ = false;   // dimensions are strings
};

}  // namespace tenon::script
