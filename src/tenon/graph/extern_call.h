// SPDX-License-Identifier: Apache-2.0
// Resolves R.call_dps_packed and R.call_packed: the foreign function, and the value of each of its
// parameters.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tenon/graph/expr.h"
#include "tenon/tir/callee.h"

namespace tenon::graph {

/// A call of a foreign function in a graph, whichever form it has.
struct ForeignCall {
  enum class Form : uint8_t {
    kDestination,  // R.call_dps_packed: a C function that fills outputs
    kPacked,       // R.call_packed: a packed function with effects besides its result
    kPurePacked,   // R.call_pure_packed
    kInPlace,      // R.call_inplace_packed
  };
  Form form = Form::kDestination;
  std::vector<Value> arguments = {};  // without the callee
  std::vector<Type> outputs = {};     // one for each output; none where the result is an Object
  std::vector<size_t> in_place = {};  // of kInPlace, for each output: the argument whose content it
                                      // is made of, or kFresh
  static constexpr size_t kFresh = SIZE_MAX;

  bool is_packed() const { return form != Form::kDestination; }
  /// The outputs that are no arguments, in order.
  std::vector<size_t> fresh_outputs() const;
};
/// Nothing where `call` is no such call. \throws CompileError (kBadAttribute) at indices of
/// call_inplace_packed that are none.
std::optional<ForeignCall> foreign_call(const Call& call);

/// For each output of a call with attribute `inplace_indices` (call_inplace_packed,
/// call_tir_inplace), the number of the argument whose memory it takes, or kFresh; all fresh where
/// there is no such attribute. \throws CompileError (kBadAttribute) at indices that are none.
std::vector<size_t> in_place_indices(const Call& call, size_t outputs, size_t arguments);

/// What R.call_tir or R.call_tir_inplace gives, one type for each output.
std::vector<Type> output_types(const Call& call);

/// Where the argument for a parameter of a library function comes from when a graph calls it.
struct ExternSlot {
  enum class From : uint8_t {
    kArgument,   // item `index` of the call's arguments: a tensor, a scalar or a text
    kInPlace,    // the same, and the function changes it
    kOutput,     // item `index` of ForeignCall::fresh_outputs
    kScratch,    // allocated for the call
    kDimension,  // a scalar parameter that is a dimension of a buffer parameter
  };
  From from;
  size_t index = 0;
};
/// For each parameter, in C's order. Arguments are the parameters that are read and the scalars
/// that are no dimensions, in their order; outputs those that are written.
/// \throws CompileError (kUnsupported) at an inout parameter where the call is not in place: a
/// graph value is never changed.
std::vector<ExternSlot> extern_slots(const tir::ExternFunction& function,
                                     ForeignCall::Form form = ForeignCall::Form::kDestination);

/// The declared function that `call` names: as a function of the module, or by the symbol of one.
/// Nothing where it names a symbol that no function of the module declares in the call's
/// convention. \throws CompileError (kUnknownCallee) where it names something else; (kBadArgument)
/// where a packed call names a function that is declared as one of C.
std::optional<tir::Callee> declared_callee(const IRModule& module, const Call& call);
/// The symbol that `call` names.
std::string symbol_of(const IRModule& module, const Call& call);

/// The signature that follows from a call: typed pointers to the arguments in order (const), then
/// to the outputs; scalars and texts by value. Dimensions that are no numbers are symbolic.
/// \throws CompileError (kUnsupported) at an argument that C has no type for.
Ref<tir::ExternFunction> derived_function(const std::string& symbol, const ForeignCall& call,
                                          const Origin& origin);
/// Adds a function, or finds the one that is there already, equal but for its parameters' names;
/// returns its name in the module.
std::string add_extern_function(IRModule& module, const Ref<tir::ExternFunction>& function);

/// The declaration of parameter `i` against what the graph gives for it; `bound` has the values of the
/// declaration's symbols. \throws CompileError (kBadArgument, kRegionMismatch)
void check_extern_argument(const tir::ExternFunction& function, size_t i, const NodePtr& arg,
                           const Substitution& bound, const Origin& origin);

}  // namespace tenon::graph
