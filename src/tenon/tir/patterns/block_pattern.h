// SPDX-License-Identifier: Apache-2.0
// Patterns over TensorIR: a PrimFunc whose blocks are found anywhere among the blocks of another
// one. docs/tir-patterns.md tells what a pattern says and what it leaves open.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// What a buffer of a pattern stands for in a target.
struct BufferBinding {
  Ref<Buffer> buffer;        // of the target; null for a scalar parameter
  std::vector<size_t> dims;  // dims[i]: which dimension of it is dimension i of the pattern's

  bool is_permuted() const;
};

/// Blocks of a target that compute what a pattern computes.
struct BlockMatch {
  Ref<PrimFunc> pattern;
  /// One for each block of the pattern, in its order. Where the start of a reduction is a block of
  /// its own, in the pattern or the target, the block that adds up is what counts.
  std::vector<Ref<Block>> blocks;
  /// Blocks of the target that start reductions of `blocks`.
  std::vector<Ref<Block>> starts;
  /// By Var of the pattern: its symbolic extents and scalar parameters, as expressions over the
  /// target's scalars and symbols, or constants.
  std::unordered_map<const Node*, Expr> values;
  /// One for each parameter of the pattern.
  std::vector<BufferBinding> buffers;
  /// Of the target: what stands for the pattern's own intermediates; only `blocks` touch these.
  std::vector<Ref<Buffer>> intermediates;
};

/// Every place of `target` where the blocks of `pattern` are, in the order of the first of them;
/// not twice the same blocks, but matches may overlap. The blocks of a match can be moved together:
/// nothing that is computed from one of them is read by another, its intermediates have no other
/// reader, and whatever shares loops with them can be given loops of its own.
///
/// A pattern may take up to 64 blocks. A search that would try too many ways ends without a match.
///
/// \param why  where not null, and nothing matches: what differed at the place that came nearest.
/// \throws CompileError (kBadPattern) where `pattern` is none: see check_block_pattern.
std::vector<BlockMatch> match_blocks(const PrimFunc& pattern, const PrimFunc& target,
                                     std::string* why = nullptr);

/// A match that takes up every block of `function` and whose parameters are all of its parameters.
struct FunctionMatch : BlockMatch {
  std::vector<size_t> params;  // params[i]: which parameter of `function` is buffer param i of the
                               // pattern; of a scalar parameter: kNoParam
  static constexpr size_t kNoParam = static_cast<size_t>(-1);
};
std::optional<FunctionMatch> matches(const PrimFunc& pattern, const PrimFunc& function,
                                     std::string* why = nullptr);

/// Whether functions are patterns: a root block, and below it blocks that each store one value by
/// their axes. \throws CompileError (kBadPattern) at what is something else.
void check_block_pattern(const PrimFunc& pattern);

}  // namespace tenon::tir
