// SPDX-License-Identifier: Apache-2.0
// User placement: what the user says about who computes what, typed. A module's text carries it
// between passes as module attributes, which are read and written here alone.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/ir/module.h"

namespace tenon::graph {

/// What user placement calls own code, and the kernels of the module: "kernels", or
/// "kernels.my_softmax" for one of them.
inline constexpr const char* kNoProvider = "none";
inline constexpr const char* kKernels = "kernels";

/// What UserPlacement::measured says of a library that computes a part of the graph: it was chosen, or
/// computes the same and was not. Another word is how its measurement ended ("crash").
inline constexpr const char* kMeasuredFaster = "faster";
inline constexpr const char* kMeasuredSlower = "slower";

/// The code of a refusal, or of own code, that user placement asks for.
inline constexpr const char* kUserPlacement = "by-hand";

struct UserPlacement {
  using Providers = std::map<std::string, std::string>;

  std::vector<std::string> backends;   // that may be used: attribute `libs`
  std::vector<std::string> libraries;  // that are called by name: `call_by_name`
  /// By the model's node, or the variable: a back end, a pattern, kKernels or one of them,
  /// kNoProvider. Attribute `place`, until AnnotatePlacement has heeded it.
  Providers nodes;
  /// What AnnotatePlacement leaves to the patterns over TensorIR, by placement_name
  /// (kernel_operators.h): attribute `place_kernels`, until SplitCallTIRByPattern has heeded it.
  Providers kernels;
  /// What measurements say of libraries, by tune::measured_name: kMeasuredFaster, kMeasuredSlower, ...
  /// Attribute `place_measured`, until AnnotatePlacement has heeded it.
  Providers measured;

  /// \throws CompileError (kBadOption, kBadPlacement) where an attribute has a value of another
  /// kind.
  static UserPlacement of(const IRModule& module);
  /// The module with these as its attributes.
  IRModule in(IRModule module) const;
};

/// What attribute `name` says about providers. \throws CompileError (kBadPlacement) at `origin`
/// where it says something else.
UserPlacement::Providers providers_of(const Attrs& attrs, const char* name, const Origin& origin);

/// The back end of "dnnl" or "dnnl.conv2d".
inline std::string backend_part(std::string_view provider) {
  return std::string(provider.substr(0, provider.find('.')));
}

}  // namespace tenon::graph
