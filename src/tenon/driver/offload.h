// SPDX-License-Identifier: Apache-2.0
// Who computes each operator of a model: the one account of all providers, made from the remarks of
// the passes that decide. Composites that come with a module, and those of passes in front, are
// counted when RunCodegen or CallByName takes them; kernels of the user's when SelectKernels does;
// what placement decides, SplitCallTIRByPattern and RunCodegen may still change.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tenon/support/remarks.h"

namespace tenon {

/// Who computes one operator.
struct Placement {
  std::string node;      // the model's, or the variable
  std::string provider;  // a back end, a library by name, "kernels", "extern"; empty: own code
  std::string by;        // its pattern, kernel or symbol
  std::string reason;    // of own code: the code of the refusal, "by-hand", "no-pattern"
  std::string detail;    // what everybody said
  double flop = 0;
  Origin origin;
  bool is_refused = false;  // somebody was asked and said no
  bool is_kernel = false;   // a pattern over TensorIR took it
};
/// Of each operator, in the order of the decisions.
std::vector<Placement> placements_of(const std::vector<Remark>& remarks);
/// As `explain` lists it, as a remark of no pass: verdict: the provider, or "own code".
inline constexpr const char* kPlacementRemark = "Placement";
Remark remark_of(const Placement& placement);
/// "toy (toy.conv2d)", "own code (dtype): dnnl.conv2d: dtype: ...".
std::string str(const Placement& placement);

/// What the providers of a compilation took.
struct Offload {
  struct Taken {
    std::string provider;
    int64_t operators = 0;
    double flop = 0;
    int64_t scratch_bytes = 0;  // the most that one of its calls works in; part of the plan
    int64_t kernels = 0;  // that its patterns over TensorIR took of what own code was left with
    int64_t parts = 0;    // of these, those that compute no operator to its end
  };
  struct Refused {
    std::string code;
    int64_t operators = 0;
  };
  int64_t operators = 0;         // of the graph when it was placed
  double flop = 0;               // of its contractions; a symbolic dimension counts as 1
  std::vector<Taken> taken;      // in the order of `libs`
  std::vector<Refused> refused;  // most frequent first
  std::vector<Placement> placements = {};

  bool empty() const { return taken.empty(); }  // nothing was placed, nor asked for
  int64_t own_operators() const;
  /// Of the arithmetic, from 0 to 1, or of the operators where there is none; of one provider, or
  /// (empty) of all.
  double share(const std::string& provider = {}) const;
};

/// \param libs  the back ends that were asked for: each has its entry, whatever it took.
Offload offload_of(const std::vector<Remark>& remarks, const std::vector<std::string>& libs);

/// "dnnl 53 of 122 operators, 97 % of the arithmetic; own code 69; refused: 4 dtype, 2 layout";
/// where kernels are parts of operators: "toy 0 of 12 operators, 0 % of the arithmetic, and 3 parts
/// of others; ...".
std::string str(const Offload& offload);

nlohmann::ordered_json json_of(const Placement& placement);
nlohmann::ordered_json json_of(const Offload& offload);
/// Of what json_of gave; empty where it is something else.
Offload offload_from(const nlohmann::json& json);

/// What is required of a compilation: "90%", or "dnnl=90%".
struct Requirement {
  std::string provider;  // empty: all together
  double share;          // from 0 to 1
};
/// \throws UsageError at any other text.
Requirement parse_requirement(const std::string& text);

/// \throws CompileError (kNotOffloaded) where less is taken; notes name the operators that are not,
/// those with the most arithmetic first, and why.
void check_requirements(const std::vector<Requirement>& requirements, const Offload& offload);

}  // namespace tenon
