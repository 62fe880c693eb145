// SPDX-License-Identifier: Apache-2.0
// Regions that blocks read and write: bounds of index expressions over loops.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "tenon/arith/analyzer.h"
#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// The range of each variable that runs (loops, axes); what is not in it stands still.
using VarRanges = std::unordered_map<const Var*, Range>;

/// The least and greatest value of an expression while some variables run. Inclusive.
struct ValueRange {
  Expr min, max;
};

/// A range that holds every value of `expr` while the variables of `running` run through theirs;
/// exact for sums of multiples of different variables. Nothing where it cannot be told.
std::optional<ValueRange> value_range(const Expr& expr, const VarRanges& running,
                                      arith::Analyzer& analyzer);

/// The box that `region` covers while the variables run; the whole extent of the buffer in a
/// dimension where it cannot be told.
std::vector<Range> relaxed(const BufferRegion& region, const VarRanges& running,
                           arith::Analyzer& analyzer);

/// The smallest box that holds both.
std::vector<Range> hull(const std::vector<Range>& a, const std::vector<Range>& b,
                        arith::Analyzer& analyzer);

/// The regions that a statement without blocks reads and writes, one for each buffer in order of
/// first access, while its own loops run. Views and calls count as whole regions.
struct Accesses {
  std::vector<Ref<BufferRegion>> reads, writes;
};
Accesses find_accesses(const Stmt& stmt);

/// `block` with its reads and writes computed from its body (and init). Reads of what a reduction
/// itself accumulates do not count.
Ref<Block> with_accesses(const Ref<Block>& block);

bool uses_var(const NodePtr& node, const Var* var);

/// The conditions that `condition` joins by `and`; of null, none.
std::vector<Expr> conjuncts(const Expr& condition);

}  // namespace tenon::tir
