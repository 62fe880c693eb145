// SPDX-License-Identifier: Apache-2.0
// Parts of a graph that a library may compute, as measurements know them: by what they compute,
// whatever the values of their constants.
#pragma once

#include <string>
#include <vector>

#include "tenon/graph/user_placement.h"
#include "tenon/tune/database.h"
#include "tenon/tune/placement_search.h"

namespace tenon::tune {

struct Part {
  /// Of the part's inputs and constants, in the order in which its composite has them; with the
  /// composite's attributes, kConstantParams and kBoundConstants.
  Ref<graph::Function> function;
  std::string hash;  // of its structure
};

/// Attribute of a part: the numbers of the parameters that are constants, where there are any.
inline constexpr const char* kConstantParams = "constant_params";
/// Flag of a part: constants stand in the composite, whose parameters are the inputs alone.
inline constexpr const char* kBoundConstants = "bound_constants";

/// What the match computes. Requires: its back end accepts it.
Part part_of(const Found& found);
/// Whether the parameter of a part's function is a constant.
bool is_constant_param(const graph::Function& part, size_t param);
/// Whether a part is called on tensors, of known shapes where they are constants: others are not
/// measured.
bool is_called_on_tensors(const graph::Function& part);
/// The hash of a part's function, as a job has it.
std::string part_hash(const graph::Function& function);
/// Whether it is a part's hash, and not a kernel's.
bool is_part_hash(const std::string& hash);

/// How graph::UserPlacement::measured names a part and one that may compute it ("dnnl.conv2d").
std::string measured_name(const std::string& hash, const std::string& provider);

/// Adds what the measurements of a part by libraries came to.
void add_verdicts(graph::UserPlacement::Providers& measured, const std::string& hash,
                  const std::vector<Measurement>& first, const std::optional<Choice>& choice);
/// Of all parts in a database, for a target and a kind of machine.
graph::UserPlacement::Providers measured_parts(const Database& database, const std::string& target,
                                               const std::string& machine);

/// What measurements (graph::UserPlacement::measured) say of matches in a function.
class MeasuredMatches {
 public:
  /// \param found  those that their back ends accept are looked at
  MeasuredMatches(const std::vector<Found>& found, const graph::UserPlacement::Providers& measured);

  bool is_faster(size_t match) const;
  /// Why own code computes it; empty where nothing says so.
  std::string refusal(size_t match) const;

 private:
  const std::vector<Found>& found_;
  std::vector<std::string> verdicts_;  // of each match; empty: not measured
};

/// The parts that each of these back ends would compute if it were the only one, by the rules of
/// placement, in the order of the program; equal ones again. \param module  as AnnotatePlacement sees it
struct OfferedPart {
  Part part;
  std::string provider;  // the pattern
};
std::vector<OfferedPart> offered_parts(const IRModule& module,
                                       const std::vector<std::string>& backends);

}  // namespace tenon::tune
