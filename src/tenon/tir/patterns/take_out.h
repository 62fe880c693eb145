// SPDX-License-Identifier: Apache-2.0
// Outlines matched blocks: the function becomes up to three, which run one after another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tenon/tir/patterns/block_pattern.h"

namespace tenon::tir {

/// One of the functions: its parameters are `inputs`, then `outputs`, which it fills, then scalars.
struct Piece {
  enum class Role : uint8_t { kBefore, kLayout, kMatch, kAfter } role;
  Ref<PrimFunc> function;
  std::vector<Ref<Buffer>> inputs, outputs;  // of the divided function, or made for the pieces
  std::vector<Expr> scalars;                 // of the divided function's symbols and scalars
};

struct TakeOutOptions {
  std::string composite;  // attr `Composite` of the matched part
  /// Where the match's buffers have their dimensions in another order than the pattern's: copies
  /// before and after it. Otherwise such a match stays where it is.
  bool copy_layouts = true;
};

/// The pieces of `function` in the order in which they run, with the matched blocks in one of their
/// own: a copy of the pattern with the captured constants in the place of its variables, attrs
/// `Composite` and `constants` (what was captured for scalar parameters). Nothing, and `why`, where
/// an output is not made by one piece alone, or the match adds to what was there before.
///
/// \param match    of match_blocks(pattern, function).
/// \param outputs  the parameters of `function` that are outputs: none is read before it is filled.
std::optional<std::vector<Piece>> take_out(const PrimFunc& function, const BlockMatch& match,
                                           const std::vector<Ref<Buffer>>& outputs,
                                           const TakeOutOptions& options, std::string* why);

}  // namespace tenon::tir
