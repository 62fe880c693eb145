// SPDX-License-Identifier: Apache-2.0
// Blocks as definitions: what a block computes, independent of its loops and of how its axes are
// split. Patterns are compared in this form.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tenon/tir/analysis/tree.h"

namespace tenon::tir {

/// `buffer[place] = value` for all points of a box of axes; of a reduction `value` reads
/// buffer[place] again, which starts as `init`.
struct Definition {
  /// Runs through [0, extent).
  struct Axis {
    Ref<Var> var;
    Expr extent;
    IterKind kind;  // kSpatial or kReduce
  };
  std::vector<Axis> axes;  // none has extent 1
  Ref<Buffer> buffer;
  std::vector<Expr> place;
  Expr init;  // null: it has none
  Expr value;

  /// Reads what was there before: a reduction without a start, or an update in place.
  bool reads_itself() const;
};

/// What becomes the axes of a definition.
enum class AxesOf : uint8_t {
  kBlock,  // those of the block, all of whose instances its loops must run
  kLoops,  // the loops, which may run a part of the block: a tile
};

/// The block at the end of `path` as a definition. Spatial axes are replaced by one for each
/// dimension of what is written, where these are as many points; reduce axes by the parts of
/// indices that read them, likewise: a function means the same before and after its axes were split
/// or fused.
///
/// Nothing where the block is none: it does more than one store, some of its loops run an instance
/// never or twice, it stands under a branch, or its reduction depends on its order.
/// \param why  told then, where not null.
std::optional<Definition> definition_of(const Path& path, AxesOf axes, std::string* why);

/// Whether `expr` is an integer of which arithmetic tells whether it equals another: no loads, no
/// calls.
bool is_arithmetic(const Expr& expr);

}  // namespace tenon::tir
