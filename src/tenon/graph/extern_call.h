// R.call_dps_packed: which library function it calls, and what becomes each of that one's
// parameters.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tenon/graph/expr.h"
#include "tenon/tir/callee.h"

namespace tenon::graph {

/// Where the argument for a parameter of a library function comes from when a graph calls it.
struct ExternSlot {
  enum class From : uint8_t {
    kArgument,   // item `index` of the call's arguments: a tensor or a scalar
    kOutput,     // output `index`
    kScratch,    // allocated for the call
    kDimension,  // a scalar parameter that is a dimension of a buffer parameter
  };
  From from;
  size_t index = 0;
};
/// For each parameter, in C's order. Arguments are the parameters that are read and the scalars
/// that are no dimensions, in their order; outputs those that are written.
/// \throws CompileError (kUnsupported) at an inout parameter, which a graph value cannot be.
std::vector<ExternSlot> extern_slots(const tir::ExternFunction& function);

/// The declared function that `call` (an R.call_dps_packed) names: as a function of the module, or
/// by the symbol of one. Nothing where it names a symbol that no function of the module declares.
/// \throws CompileError (kUnknownCallee) where it names something else.
std::optional<tir::Callee> declared_callee(const IRModule& module, const Call& call);
/// The symbol that `call` names.
std::string symbol_of(const IRModule& module, const Call& call);

/// The result types of `call`, one for each output.
std::vector<Type> output_types(const Call& call);
/// Its arguments, without the callee.
std::vector<Value> extern_arguments(const Call& call);

/// The signature that follows from a call: typed pointers to the arguments in order (const), then
/// to the outputs; scalars by value. Dimensions that are no numbers are symbolic.
/// \throws CompileError (kUnsupported) at an argument that C has no type for.
Ref<tir::ExternFunction> derived_function(const std::string& symbol,
                                          const std::vector<Value>& arguments,
                                          const std::vector<Type>& outputs, const Origin& origin);
/// Adds a function, or finds the one that is there already, equal but for its parameters' names;
/// returns its name in the module.
std::string add_extern_function(IRModule& module, const Ref<tir::ExternFunction>& function);

}  // namespace tenon::graph
