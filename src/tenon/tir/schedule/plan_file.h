// SPDX-License-Identifier: Apache-2.0
// Plans as a file: read, to be taken instead of what the model would choose, and written, as JSON of
// one form (docs/design/0007-scheduling.md).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/support/usage_codes.h"
#include "tenon/tir/schedule/block_plan.h"

namespace tenon::tir {

/// A nest of a plan that is given. The model chooses what it leaves out.
struct GivenNest {
  struct Tasks {
    TilePlan::Tasks of = TilePlan::Tasks::kNone;
    int64_t count = 1;
    bool outside = false;
  };
  /// A field as it was given, in the form in which fields are compared.
  struct Field {
    std::string name, text;
    Origin origin;
  };
  Origin origin;
  std::vector<Field> fields;
  // Those that choose; the others state what the block is.
  std::optional<std::vector<std::string>> batch, n, m, k;  // the order of axes, by their names
  std::optional<std::string> algorithm;                    // of columns that fill no vector
  std::optional<int64_t> lanes, unrolled_fmas;
  std::optional<bool> joins_rows, prefetches;
  std::optional<Tile> tile;
  std::optional<Tasks> tasks;

  /// \throws CompileError (kBadPlan) at a field.
  template <typename... Args>
  [[noreturn]] void misfit(std::string_view field, fmt::format_string<Args...> format,
                           Args&&... args) const {
    throw CompileError(kBadPlan, place(field), "`{}` {}", field,
                       fmt::format(format, std::forward<Args>(args)...));
  }
  /// \throws CompileError (kBadPlan) where `plan`, which follows this, differs from it in a field:
  /// it states what the block is not.
  void check_taken(const TilePlan& plan) const;
  /// Lanes of a vector, of `most` at most; `most` where they are not given. \param is_fixed  there can be no other number
  /// \throws CompileError (kBadPlan)
  int64_t lanes_up_to(int64_t most, bool is_fixed) const;
  /// Puts the axes of a role in the order that is given for it, where one is. \throws CompileError (kBadPlan)
  void order_axes(const char* role, const std::optional<std::vector<std::string>>& order,
                  std::vector<Ref<Var>>& axes) const;

 private:
  const Origin& place(std::string_view field) const;
};

/// The plan of a block that is given. It is for every kernel of this structure; those of its name
/// come first.
struct GivenPlan {
  Origin origin;
  std::string kernel, hash;  // no hash: every kernel of the name
  std::string block;
  BlockPlan::Algorithm algorithm = BlockPlan::Algorithm::kLoops;
  std::vector<GivenNest> nests;                 // none: as the model chooses
  std::optional<WinogradChoice> winograd = {};  // of kWinograd; none: as the model chooses
  bool is_serial = false;                       // the whole kernel, on one thread
  int64_t chunks = 1;                           // of the reduction
  bool is_tuned = false;  // from a database: it is for many programs, and may not fit this one
};

struct GivenPlans {
  std::string target;  // empty: any
  Origin target_origin;
  std::vector<GivenPlan> plans;

  /// Those for a kernel, in the order in which they are looked at.
  std::vector<const GivenPlan*> of(const std::string& kernel, const std::string& hash) const;
};

/// The first that is for this block; null where none is.
const GivenPlan* find_plan(const std::vector<const GivenPlan*>& plans, const std::string& block);

/// \throws CompileError at the place: kSyntax; kBadPlan at a field that there is not, is missing or
/// has another type, at another version, and at a block that has two plans.
GivenPlans read_plans(const std::shared_ptr<const SourceFile>& file);

/// The file of plans for a target: `choices` are json_of(BlockPlan) as texts. Kernels of one
/// structure whose plans are the same have one entry.
std::string plan_file(const std::vector<std::string>& choices, const Target& target);

}  // namespace tenon::tir
