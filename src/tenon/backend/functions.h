// SPDX-License-Identifier: Apache-2.0
// The functions of a program in order of generation, and the arguments of their calls.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/tir/call_facts.h"
#include "tenon/tir/extern_function.h"

namespace tenon::backend {

/// A PrimFunc that code is generated for.
struct ProgramFunction {
  Ref<tir::PrimFunc> function;
  std::string name;
  std::vector<Ref<Var>> symbols;  // tir::symbolic_vars
  bool can_fail = false;          // it or what it calls: a check, a division by an unknown
  bool has_parallel = false;      // it or what it calls has a parallel loop
  bool uses_constants = false;    // it or what it calls
};

/// A library function that the program calls, at the first call of it.
struct LibraryFunction {
  std::string symbol;
  Ref<tir::ExternFunction> function;  // null: called by T.call_extern("dtype", "symbol", ...),
                                      // without a signature
  std::string caller;                 // the function with the call
  Origin origin;                      // of the call
};

/// A packed function that the program calls (R.call_packed, T.call_packed), at the first call of
/// it.
struct PackedFunction {
  std::string name;    // as it is registered
  std::string caller;  // the function with the call
  Origin origin;       // of the call
};
/// The C function of a packed function in a library: its name with `_` for what C allows in none.
std::string packed_symbol(const std::string& name);
/// What T.call_packed or T.call_cpacked calls. Nothing where `call` is another call.
/// \throws CompileError (kBadArgument) where it names none.
std::optional<std::string> packed_name(const Call& call);

/// All functions that the entry reaches, callees first. Functions of equal structure are one.
class ProgramFunctions {
 public:
  /// \throws CompileError kUnknownCallee, kRecursion, kUnsupported at what is neither a PrimFunc
  /// nor a declared extern function; kDTypeMismatch where a symbol is declared with two prototypes.
  ProgramFunctions(const IRModule& module, const std::string& entry);

  const std::vector<ProgramFunction>& all() const { return functions_; }
  /// Of each symbol one, in the order of their first calls.
  const std::vector<LibraryFunction>& libraries() const { return libraries_; }
  /// Of each name one, in the order of their first calls.
  const std::vector<PackedFunction>& packed() const { return packed_; }
  /// Position in packed().
  size_t packed_index(const std::string& name) const;
  /// Position in all(). \throws CompileError (kUnknownCallee)
  size_t index_of(const std::string& name, const Origin& origin) const;

 private:
  void collect(const std::string& name, const Origin& origin);
  void add_library(LibraryFunction library);
  void add_packed(PackedFunction function);

  const IRModule& module_;
  std::string entry_;
  std::vector<ProgramFunction> functions_;
  std::map<std::string, size_t> index_;  // by name
  std::unordered_map<uint64_t, std::vector<size_t>> by_hash_;
  std::vector<LibraryFunction> libraries_;
  std::vector<PackedFunction> packed_;
  std::vector<std::string> stack_;  // of collect, to find recursion
};

/// What a call hands to its callee besides the context.
struct CallArguments {
  struct Pointer {
    Ref<tir::Buffer> buffer;
    std::vector<Expr> minimum;  // indices of the element that it points to
  };
  std::vector<Pointer> pointers;  // for each buffer parameter, in order
  std::vector<Expr> symbols;      // for each symbolic Var of the callee
  std::vector<Expr> scalars;      // for each scalar parameter, in order
  /// What the regions must satisfy and nothing shows at compile time: checked before the call.
  std::vector<tir::CallFact> unproved;
};

/// Binds the callee's symbolic Vars by unification with the regions of the call.
/// \throws CompileError kBadArgument, kRegionMismatch.
CallArguments bind_arguments(const std::string& name, const std::vector<NodePtr>& args,
                             const Origin& origin, const ProgramFunction& callee);
/// What the regions must satisfy and nothing shows at compile time.
std::vector<tir::CallFact> unproved_facts(const tir::CallTir& call,
                                          const tir::ExternFunction& function);
/// What to report where `fact` does not hold; `{value}` and `{bound}` stand for the two numbers.
std::string message_of(const tir::CallFact& fact, const tir::Callee& callee);
inline CallArguments bind_arguments(const tir::CallTir& call, const ProgramFunction& callee) {
  return bind_arguments(call.callee->name, call.args, call.origin, callee);
}

/// What a call hands to a library function: an argument for each parameter, in C's order.
struct LibraryArgument {
  tir::CType type;
  Ref<tir::BufferRegion> region;           // of a buffer
  CallArguments::Pointer pointer;          // of a buffer: its first element
  std::vector<Expr> extents, strides;      // of a DLTensor; strides in elements
  DType dtype;                             // of a DLTensor's elements
  Expr scalar;                             // of a scalar or text, in the dtype of its C type
  const tir::ParamGroup* group = nullptr;  // of an array or a struct
  std::vector<Expr> items;                 // of one, each in the dtype of its C type
};
/// \throws CompileError kBadArgument, kRegionMismatch.
std::vector<LibraryArgument> bind_library_arguments(const tir::CallTir& call,
                                                    const tir::ExternFunction& function);

}  // namespace tenon::backend
