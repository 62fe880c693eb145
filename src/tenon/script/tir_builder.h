// SPDX-License-Identifier: Apache-2.0
// Builds a PrimFunc from the tree of its text. Used by parser.cpp only.
#pragma once

#include <set>

#include "tenon/script/evaluator.h"
#include "tenon/script/mutable_names.h"
#include "tenon/tir/callee.h"
#include "tenon/tir/extern_function.h"

namespace tenon::script {

/// On a block whose reads (1), writes (2) or both (3) are those of its body, which has calls; until
/// all functions are read.
inline constexpr const char* kInferred = "tenon.inferred";
bool has_calls(const tir::Stmt& body);

class TirBuilder final : public Evaluator {
 public:
  explicit TirBuilder(ModuleContext& module) : Evaluator(module, kInt32) {}

  Ref<tir::PrimFunc> function(const ast::Stmt& definition);
  /// A definition under `@T.extern_func` (extern_function.cpp).
  Ref<tir::ExternFunction> extern_function(const ast::Stmt& definition);

 protected:
  Object call_other(const ast::Expr& call, const Object& callee) override;
  std::vector<Expr> to_shape(const Object& object, const Place& place) override;

 private:
  /// A block while its body is read.
  struct Frame {
    tir::Block::Parts parts;
    std::vector<Expr> iter_values;
    Expr predicate;
    bool has_reads = false, has_writes = false;
  };
  /// What is read of a body: statements, and whether a `pass` keeps them a sequence.
  struct Statements {
    std::vector<tir::Stmt> list;
    bool keep_sequence = false;
  };

  /// Reads the parameters into params_ and buffers_.
  void parameters(const ast::Stmt& definition);
  /// Adds the items of an array or a struct; false where the parameter is neither.
  bool group_parameter(const ast::Parameter& parameter);
  void define_dimensions(const ast::Expr& shape);
  void define_match(const ast::Expr& dimension);
  tir::Stmt body(const ast::Body& statements);
  /// The statements from `begin` on; those of a frame left open take in the rest.
  void statements(const ast::Body& body, size_t begin, Statements& out);
  static tir::Stmt finish_body(Statements statements);

  void statement(const ast::Stmt& stmt, Statements& out);
  /// Runs `read`; reports an error of it, after which what `stmt` defines is unknown.
  template <typename F>
  void guarded(const ast::Stmt& stmt, const F& read);
  std::string assert_message(const Object& message, const Place& place);
  bool assign_let(const std::string& name, const ast::Expr& call, Statements& out);
  bool names_buffer(const ast::Expr& annotation);
  bool expand_macro(const ast::Expr& call, Statements& out);
  void expression_statement(const ast::Stmt& stmt, Statements& out);
  bool block_statement(const std::string& path, const ast::Expr& call);
  void assign(const ast::Stmt& stmt, Statements& out);
  void assign_call(const std::string& name, const Place& place, const ast::Stmt& stmt,
                   Statements& out);
  bool assign_axis(const std::string& path, const ast::Expr& target, const ast::Expr& call);
  void assign_items(const ast::Expr& target, const Object& value, const ast::Stmt& stmt,
                    Statements& out);
  void bind(const std::string& name, const Place& place, const Object& value, DType expected,
            bool is_annotated, const Place& value_place, Statements& out);
  /// A buffer of one element under `name`, for a variable that changes.
  Scalar declare_scalar(const std::string& name, DType dtype, const Place& place, Statements& out);
  bool assign_scalar(const ast::Stmt& stmt, const Object& value, Statements& out);
  bool declare_variable(const std::string& path, const std::string& name, const Place& place,
                        const ast::Expr& call);
  bool declare_variables(const ast::Expr& targets, const ast::Expr& values);
  // -- definitions of buffers (tir_buffers.cpp)
  bool define_buffer(const std::string& path, const std::string& name, const Place& place,
                     const ast::Expr& call, Statements& out);
  void allocate(const std::string& name, const Place& place, const ast::Expr& call,
                Statements& out);
  void allocate_const(const std::string& name, const Place& place, const ast::Expr& call,
                      Statements& out);
  void match_buffer(const std::string& name, const ast::Expr& call);
  void store(const ast::Expr& target, const Object& value, const Place& value_place,
             const Place& place, Statements& out);
  void store_element(const tir::BufferLoad& element, const Object& value, const Place& value_place,
                     const Place& place, Statements& out);
  bool assign_element(const ast::Stmt& stmt, const Object& value, Statements& out);
  void augmented(const ast::Stmt& stmt, Statements& out);
  void for_loop(const ast::Stmt& stmt, Statements& out);
  void grid(const ast::Stmt& stmt, Statements& out);
  /// Gives the variables of a loop to its targets: one each, or all of them to one name.
  void name_loops(const ast::Expr& target, const std::vector<Object>& vars);
  void if_else(const ast::Stmt& stmt, Statements& out);
  void with(const ast::Stmt& stmt, size_t item, Statements& out);
  void block(const ast::Stmt& stmt, const ast::Expr& call, Statements& out);
  // -- calls of functions of the module (call_tir.cpp)
  FunctionName callee_of_call(const ast::Expr& call);
  const Declaration* declaration_of(const FunctionName& function) const;
  /// The arguments from `first` on, each a region, a whole buffer or a scalar as the callee's
  /// parameter asks.
  std::vector<NodePtr> call_arguments(const ast::Expr& call, const FunctionName& function,
                                      size_t first, Attrs* annotations);
  tir::Stmt call_tir(const ast::Expr& call, const FunctionName& function, size_t first);
  Object call_value(const ast::Expr& call, const FunctionName& function, size_t first);
  /// `target = T.call_tir(f, ...)` of a function that returns nothing: the call, with the target in
  /// the place of the last parameter; where that names no buffer yet, with one that is allocated
  /// for it. False where `call` is something else.
  bool assign_result(const ast::Expr& target, const ast::Expr& call, Statements& out);
  NodePtr result_region(const ast::Expr& target, const ast::Expr& call,
                        const FunctionName& function, const std::vector<NodePtr>& args);
  /// The parameters of a function of the module, as a call of it sees them.
  tir::Callee header_of(const FunctionName& function, const Place& place);
  tir::Stmt attribute(const ast::Expr& call, tir::Stmt inner);
  Object declared(const ast::Expr& annotation, const std::string& name);

  Ref<tir::Buffer> buffer(const std::string& name, Arguments& args, const ast::Expr& call,
                          size_t first, const std::vector<Expr>* shape = nullptr,
                          DType otherwise = kFloat32);
  void axis(const std::string& name, tir::Range domain, tir::IterKind kind, Expr value,
            const Place& place);
  Frame& current_block(const Place& place, std::string_view what);

  Frame root_;
  std::vector<Frame*> frames_;  // innermost last; empty in the function's own body
  std::unordered_map<const Node*, tir::Range> loop_domains_;
  std::vector<Ref<Var>> params_;
  std::vector<Ref<tir::Buffer>> buffers_;
  std::vector<tir::ParamGroup> groups_;  // of an extern function
  Attrs attrs_;
  std::unordered_set<const ast::Stmt*> mutable_;
  std::unordered_map<std::string, DType> declared_dims_;
  int errors_ = 0;
  bool is_extern_ = false;  // names in shapes define dimensions; alignment is that of an element
};

}  // namespace tenon::script
