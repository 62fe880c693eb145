// SPDX-License-Identifier: Apache-2.0
// Generates C functions from lowered PrimFuncs. Private to backend/c.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tenon/backend/c/emit.h"
#include "tenon/backend/c/names.h"
#include "tenon/backend/c/prelude.h"
#include "tenon/backend/facts.h"
#include "tenon/backend/functions.h"
#include "tenon/tir/extern_function.h"
#include "tenon/tir/stmt.h"

namespace tenon::c_backend {

/// An expression of C. `level` says how tightly its outermost operator binds.
struct Text {
  static constexpr int kAny = 0, kSum = 1, kProduct = 2, kUnary = 3, kAtom = 4;
  std::string s;
  int level = kAtom;

  /// As an operand that must bind at least so tightly.
  std::string at(int least) const { return level >= least ? s : "(" + s + ")"; }
};

/// A PrimFunc with the C function that stands for it: a pointer for each buffer parameter, the
/// symbolic Vars, the scalar parameters, the constants where it uses them, the error where it can
/// fail.
struct FunctionInfo : backend::ProgramFunction {
  std::string c_name;
  std::vector<bool> writes;  // for each parameter: a buffer that it or what it calls writes
};

/// One program.
class ModuleCodegen {
 public:
  ModuleCodegen(const IRModule& module, const Target& target, const EmitOptions& options);
  Program run();
  /// The functions alone, by name.
  std::map<std::string, std::string> run_functions();

  // -- for the function generator
  const FunctionInfo& callee(const std::string& name, const Origin& origin) const {
    return functions_[program_.index_of(name, origin)];
  }
  /// Null where it is no function of a library.
  Ref<tir::ExternFunction> library_function(const std::string& name) const {
    return module_.find<tir::ExternFunction>(name);
  }
  Prelude& prelude() { return prelude_; }
  /// A function without a signature, as a call shows it. \throws CompileError (kDTypeMismatch)
  /// where another call shows another.
  void declare_foreign(const std::string& symbol, const std::string& result,
                       const std::vector<std::string>& types, const Origin& origin);
  /// A function that says how much scratch another needs: a size_t.
  bool is_scratch_query(const std::string& symbol) const { return queries_.count(symbol) > 0; }
  void use_tensors() { uses_tensors_ = true; }
  void use_packed() { uses_tensors_ = uses_packed_ = true; }
  const EmitOptions& options() const { return options_; }
  const backend::Entry& entry() const { return entry_; }
  const std::vector<PoolParameter>& pools() const { return pools_; }
  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }
  const std::vector<std::string>& dims() const { return dims_; }
  std::string entry_prototype() const;
  const std::string& name() const { return name_; }
  /// Pointer to a constant: an array, or a place in the memory that the caller hands over.
  std::string constant(const tir::AllocConst& constant);
  int64_t constants_alignment() const { return constants_.layout().alignment; }
  /// An attribute of a declaration of memory.
  std::string aligned(int64_t alignment);
  bool has_constants_pointer() const { return options_.constants == Constants::kPointer; }

 private:
  void refuse_strings() const;
  void find_pools();
  void check_pools() const;
  void align_pools();
  void find_writes(FunctionInfo& info);
  std::string library_prototypes() const;
  std::string constant_arrays();
  std::string function(const FunctionInfo& info);
  std::string shapes_function();
  std::string source();
  std::string header(const Program& program) const;
  std::string error_type() const;
  std::string shapes_prototype() const;
  // -- memory that is asked for while the program runs (late_memory.cpp)
  int64_t late_slots() const;
  std::string late_header(const Program& program) const;
  std::string late_source(const Program& program) const;

  const IRModule& module_;
  const Target& target_;
  EmitOptions options_;
  std::string name_;
  backend::Entry entry_;
  backend::ProgramFunctions program_;
  std::vector<FunctionInfo> functions_;  // callees first, as in program_
  backend::ConstantsBuilder constants_;
  Prelude prelude_;
  std::vector<PoolParameter> pools_;
  std::vector<std::string> inputs_, outputs_, dims_;          // members of structs
  std::vector<std::pair<std::string, std::string>> foreign_;  // symbols, prototypes
  std::set<std::string> standard_headers_;                    // of C functions that are called
  std::set<std::string> queries_;
  bool uses_tensors_ = false, uses_packed_ = false, uses_alignments_ = false;
  bool can_fail_ = false;
  bool dynamic_ = false;        // has a function for shapes
  bool is_definition_ = false;  // of the entry: parameters are then unpacked
};

/// Generates one C function.
class FunctionCodegen {
 public:
  FunctionCodegen(ModuleCodegen& module, const FunctionInfo& info);

  /// A whole PrimFunc, or the entry.
  /// Declarations of names that are not in `used_before` are left out; null: all are made.
  std::string define(const std::unordered_set<std::string>* used_before);
  const std::unordered_set<std::string>& used() const { return used_; }
  /// What expressions asked for wrote in front of them.
  const std::string& written() const { return text_; }
  /// A value of the entry's symbols, for the function of shapes.
  std::string dimension(const Expr& expr) { return index(expr).s; }
  /// Writes a check of them, which returns from the function.
  void assertion(const tir::Assert& check) { generate_assert(check); }
  void bind(const Var& var, std::string text) { vars_[&var] = {std::move(text), Text::kAtom}; }

 private:
  // -- expressions (codegen_expr.cpp)
  Text value(const Expr& expr);
  Text index(const Expr& expr);  // int64, known not to wrap where it is plain
  Text generate(const Expr& expr);
  Text binary(const Binary& op);
  Text guarded_logic(const Binary& op);
  Text conditional(const Expr& condition, const Expr& a, const Expr& b, bool lazy);
  Text cast_to(const Cast& node);
  Text shuffle(const Shuffle& node);
  Text call(const Call& call);  // codegen_call.cpp
  Text intrinsic(const Call& call);
  Text rounding(const Call& call, const std::string& function);
  Text absolute(const Call& call);
  Text inverse_root(const Call& call);
  Text nary_float(const Call& call);
  Text undefined(const Call& call);
  Text half_of_vector(const Call& call);
  Text joined_vectors(const Call& call);
  void return_statement(const Call& call);
  void prefetch(const Call& call);
  Text unary(const Call& call, const std::string& function);
  Text bitwise(const Call& call);
  Text classify(const Call& call);
  Text limit(const Call& call);
  Text reinterpret(const Call& call);
  // Calls of other functions (codegen_extern.cpp).
  static bool is_foreign(const Call& call);  // T.call_extern, T.call_packed of undeclared functions
  Text foreign_value(const Call& call);
  void evaluate_foreign(const Call& call);
  std::string foreign_call(const Call& call);
  Text packed_value(const Call& call);
  Text function_value(const Call& call);
  void call_function(const GlobalVar& callee, const std::vector<NodePtr>& args,
                     const Origin& origin, const std::string& result);
  std::string dl_tensor(const tir::BufferRegion& region, const Origin& origin);
  std::string group_literal(const backend::LibraryArgument& argument);
  std::string call_packed(const std::string& name, const std::vector<NodePtr>& args,
                          const std::vector<NodePtr>& results, const Origin& origin);
  Text apply(const std::string& function, const std::vector<Text>& args) const;
  Text scalar(const std::string& pattern, const std::vector<Text>& args) const;
  Text integer(DType dtype, int64_t value) const;
  Text real(DType dtype, double value);
  Text narrowed(DType dtype, const Text& value);  // a float to 16 bits
  Text widened(DType dtype, const Text& value);
  Text hoist(DType dtype, const Text& value, const std::string& name = "t");
  Text divisor(const Binary& op, Text text);

  // -- memory (codegen_memory.cpp)
  struct Place {
    std::string pointer;
    DType element;
    bool is_const = false;
    bool is_workspace = false;
    std::string own_name;  // where it is declared and may be unused
  };
  struct Slice {
    int64_t offset;
    int lanes;
    bool operator<(const Slice& other) const {
      return std::pair(offset, lanes) < std::pair(other.offset, other.lanes);
    }
  };
  struct Address {
    std::string pointer;  // to the first lane
    int lanes = 1;
    Expr stride;        // of the lanes; null: dense
    Expr lane_indices;  // a vector: any places; null: by stride
    Text stride_text;
  };
  Place& place(const tir::Buffer& buffer, const Origin& origin);
  Text offset(const tir::Buffer& buffer, const std::vector<Expr>& indices);
  std::string element(const tir::Buffer& buffer, const std::vector<Expr>& indices,
                      const Origin& origin);  // as an lvalue
  std::string pointer_to(const tir::Buffer& buffer, const std::vector<Expr>& indices,
                         const Origin& origin);
  std::string workspace_pointer(const Expr& offset);
  Address address(const tir::Buffer& buffer, const std::vector<Expr>& indices,
                  const Origin& origin);
  Text load(const tir::BufferLoad& node);
  Text masked(const Call& call);
  void store(const tir::BufferStore& node);
  void masked_store_to(const Call& call);
  Text pointer_value(const Expr& expr);
  void view(const tir::DeclBuffer& decl);
  void allocate(const tir::AllocBuffer& alloc);
  void take_late_memory(const tir::AllocBuffer& alloc);  // late_memory.cpp
  const std::string* slice_of(const tir::Buffer& buffer, const std::vector<Expr>& indices);
  void find_slices(const tir::Stmt& body);

  // -- statements (codegen_stmt.cpp)
  void generate(const tir::Stmt& stmt);
  void generate_for(const tir::For& loop);
  void generate_while(const tir::While& loop);
  void generate_if(const tir::IfThenElse& branch);
  void generate_call_tir(const tir::CallTir& call);
  void generate_call_library(const tir::CallTir& call, const tir::ExternFunction& function);
  void check_facts(const std::vector<tir::CallFact>& facts, const tir::Callee& callee,
                   const Origin& origin);
  void generate_assert(const tir::Assert& assertion);
  Text checked_index(const Call& call);
  void fail_unless(const Text& condition, int code, const std::string& where,
                   const std::string& message, const std::string& value, const std::string& bound);
  void begin_statement(const tir::Stmt& stmt);
  void comment_origin(const Origin& origin);
  std::string where(const Origin& origin) const;
  std::string parameters();
  std::string unpack();
  void check_addresses();

  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    *out_ += std::string(static_cast<size_t>(2 * indent_), ' ') +
             fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  /// What `f` writes, at one more level of indentation.
  std::string inside(const std::function<void()>& f);
  std::string declare(DType dtype, const std::string& name) {
    return m_.prelude().type(dtype) + " " + name;
  }
  /// Whether a declaration of `name` is of use, by what the pass before saw.
  bool is_used(const std::string& name) const { return !used_before_ || used_before_->count(name); }
  const std::string& use(const std::string& name) {
    used_.insert(name);
    return name;
  }

  ModuleCodegen& m_;
  const FunctionInfo& info_;
  Names names_;
  std::string text_;
  std::string* out_ = &text_;
  int indent_ = 1;
  bool index_arithmetic_ = false;
  bool is_entry_ = false;
  std::unordered_map<const Node*, Text> vars_;
  std::unordered_map<const Node*, Place> places_;                         // by buffer
  std::unordered_map<const Node*, Place> data_;                           // by data pointer
  std::unordered_map<const Node*, std::map<Slice, std::string>> slices_;  // of data pointers
  std::unordered_map<const Node*, int> count_;                            // uses in a statement
  std::unordered_map<const Node*, std::pair<Expr, Text>> memo_;
  std::map<std::string, Text> divisors_;  // checked in this scope, by their texts
  backend::SignFacts signs_;
  std::unordered_set<std::string> used_;
  const std::unordered_set<std::string>* used_before_ = nullptr;
};

}  // namespace tenon::c_backend
