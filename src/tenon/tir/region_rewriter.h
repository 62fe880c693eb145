// SPDX-License-Identifier: Apache-2.0
// Rewrites accesses together with the regions that blocks declare.
#pragma once

#include "tenon/ir/visit.h"
#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// A Rewriter that also takes the reads, writes and match_buffers of blocks to rewrite(). There
/// `in_lists()` holds: no dimension of a region is dropped in them.
class RegionRewriter : public Rewriter {
 protected:
  bool in_lists() const { return in_lists_ > 0; }

  /// What derived classes do with a node that is none of theirs.
  NodePtr rewrite_others(const NodePtr& node) {
    const auto* block = node.as<Block>();
    if (!block) return rewrite_members(node);
    Block::Parts parts = block->parts();
    ++in_lists_;
    for (Ref<BufferRegion>& region : parts.reads) region = (*this)(region);
    for (Ref<BufferRegion>& region : parts.writes) region = (*this)(region);
    for (MatchBuffer& match : parts.match_buffers) match.source = (*this)(match.source);
    --in_lists_;
    return rewrite_members(make<Block>(std::move(parts), block->origin));
  }

 private:
  int in_lists_ = 0;
};

}  // namespace tenon::tir
