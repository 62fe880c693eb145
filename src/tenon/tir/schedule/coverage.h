// SPDX-License-Identifier: Apache-2.0
// Regions that are certainly written at a point of a nest: the legality of moving blocks rests on
// it. Internal to schedule/.
#pragma once

#include <optional>
#include <vector>

#include "tenon/arith/iter_map.h"
#include "tenon/tir/analysis/tree.h"

namespace tenon::tir {

/// Values from `min` to below `end`; of those only the ones from `least` on and below `limit`,
/// which are null where they cut nothing.
struct Span {
  Expr min, end;
  Expr least, limit;
};

enum class Times : uint8_t {
  kAny,   // a point may come up more than once
  kOnce,  // it must not
};

/// The box of points `indices`, each of which comes up while `loops` run (outermost first; what is
/// around them stands still) and `conditions` hold. Nothing where they are no box, or where that is
/// not understood. `analyzer` must know the loops around.
///
/// \param around  loops outside, which `indices` and the extents of `loops` may use.
std::optional<std::vector<Span>> exact_box(const std::vector<Expr>& indices,
                                           const std::vector<arith::Iterator>& loops,
                                           const std::vector<Ref<Var>>& around,
                                           const std::vector<Expr>& conditions, Times times,
                                           arith::Analyzer& analyzer);

/// Whether no two iterations of `loops` for which `conditions` hold have the same `values`.
bool proves_distinct(const std::vector<Expr>& values, std::vector<arith::Iterator> loops,
                     const std::vector<Expr>& conditions, arith::Analyzer& analyzer);

/// A store to a buffer, or a call that fills a region of it.
struct StoreSite {
  Ref<Buffer> buffer;
  Ref<BlockRealize> realize;           // the outermost block around it; null where there is none
  std::vector<arith::Iterator> loops;  // from the root block down, outermost first
  std::vector<Expr> conditions;        // under which it runs; in terms of the loops
  std::vector<Range> region;           // in terms of the loops
  std::vector<Expr> reduced;           // values of the reduce axes of the blocks around it
  bool is_certain = true;              // false: whether it runs does not follow from `conditions`
};
/// Those below the root block, in program order.
std::vector<StoreSite> store_sites(const Stmt& root, const Ref<Buffer>& buffer);

/// Whether the block at the end of `path` runs at each point of its domain, in each iteration of
/// the blocks around it. Not where that depends on a branch.
bool runs_whole_domain(const Path& path);

/// A block that does more where it runs twice at one point: it reads what it writes, or reduces.
bool counts_runs(const Block& block);

/// \throws CompileError (kScheduleIllegal) where the block is not known to run at each point of its
/// domain, and once only where it counts.
void check_runs_whole_domain(const Path& path);

/// Whether no two points of `axes` have the same place `indices`.
bool places_differ(const std::vector<Expr>& indices, const std::vector<IterVar>& axes,
                   arith::Analyzer& analyzer);

/// Below the loop at the end of `path`: whether each iteration of it, and of those around it down
/// from the root block, reads and writes of what other blocks below it write nothing but what these
/// write in the same iteration. Then the order of iterations is of no matter to what blocks give
/// one another.
bool iterations_are_apart(const Stmt& root, const Path& path);

/// Whether the block at the end of `path`, which no branch is around, runs exactly once at each
/// point of its domain: then its nest may be made afresh.
bool runs_once_everywhere(const Path& path);

/// Whether one store of the function is known to write every element of `buffer`.
///
/// \param reader  of the stores only those in blocks in front of it count; null: all.
bool is_filled(const Stmt& root, const Ref<Buffer>& buffer, const BlockRealize* reader = nullptr);

/// All that `realize` writes of `buffer` in the course of the function, or more.
std::vector<Range> whole_region(const BlockRealize& realize,
                                const std::vector<Ref<BufferRegion>>& regions,
                                const Ref<Buffer>& buffer, arith::Analyzer& analyzer);

bool proves_disjoint(const std::vector<Range>& a, const std::vector<Range>& b,
                     arith::Analyzer& analyzer);

/// Whether no element of `buffer` is written by both blocks, which may be pieces of one.
bool write_apart(const BlockRealize& a, const BlockRealize& b, const Ref<Buffer>& buffer,
                 arith::Analyzer& analyzer);

/// Whether all that `site` ever writes of what lies in every one of `boxes` is written in the
/// iteration of its first `shared` loops that `analyzer` stands in.
bool proves_written(const StoreSite& site, size_t shared,
                    const std::vector<std::vector<Range>>& boxes, arith::Analyzer& analyzer);

}  // namespace tenon::tir
