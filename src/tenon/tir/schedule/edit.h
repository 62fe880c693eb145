// SPDX-License-Identifier: Apache-2.0
// Helpers of the primitives: they make nests and blocks, and ask about them. Internal to schedule/.
#pragma once

#include <string>
#include <vector>

#include "tenon/support/names.h"
#include "tenon/tir/analysis/combiner.h"
#include "tenon/tir/analysis/tree.h"
#include "tenon/tir/schedule/schedule.h"

namespace tenon::tir {

template <typename... Args>
[[noreturn]] void illegal(const Origin& origin, fmt::format_string<Args...> format,
                          Args&&... args) {
  throw CompileError(kScheduleIllegal, origin, format, std::forward<Args>(args)...);
}

inline Expr zero() { return int64(0); }
inline Expr zero_of(const Expr& like) { return imm(like->dtype, int64_t{0}); }

Ref<BlockRealize> with_name(const Ref<BlockRealize>& realize, const std::string& name);
Ref<Block> with_parts(const Ref<Block>& block, Block::Parts parts);

bool reads_buffer(const Block& block, const Ref<Buffer>& buffer);
bool writes_buffer(const Block& block, const Ref<Buffer>& buffer);
/// Whether a statement (any block of it) reads or writes the buffer.
bool reads_buffer(const Stmt& stmt, const Ref<Buffer>& buffer);
bool writes_buffer(const Stmt& stmt, const Ref<Buffer>& buffer);

/// Whether a call below `node` takes an element of the buffer as a place, where no value can stand.
bool gives_place_of(const NodePtr& node, const Ref<Buffer>& buffer);

/// Statements outside of blocks are no readers that a primitive could follow or check.
/// \throws CompileError (kScheduleIllegal) at `origin` where one uses the buffer.
void check_only_blocks_use(const Stmt& root, const Ref<Buffer>& buffer, const Origin& origin);

/// The blocks below the root but `block`, in program order.
std::vector<Ref<Block>> other_blocks(const Stmt& root, const BlockRV& block);

/// The only store of a block's body, or null where the body is something else.
const BufferStore* only_store(const Block& block);

/// The one store of a block that has spatial axes only and runs under no predicate.
/// \throws CompileError (kScheduleIllegal) where the block is another kind of block.
const BufferStore& element_wise_store(const BlockRealize& realize);

/// `block` with the conditions in its body decided where its axes' domains do, reads and writes
/// anew.
Ref<Block> with_simplified_body(const Ref<Block>& block);

/// A block whose axes are all spatial and which has no init.
bool is_spatial(const Block& block);
/// A block with an init and at least one reduce axis, the others spatial.
bool is_reduction(const Block& block);

/// A realize of `block` inside fresh serial loops, one for each axis that is not of extent 1, over
/// `domains` (of which loops start at 0 and the axis is min + loop).
struct Nest {
  Stmt stmt;
  std::vector<Ref<Var>> loops;
};
Nest make_nest(const Ref<Block>& block, const std::vector<Range>& domains, Expr predicate = {});
std::vector<Range> domains_of(const Block& block);

/// Whether the block is alone in its nest, with loops one for each axis over the whole domain: then
/// its nest can be made afresh. The path's loops from the root block down hold nothing else.
bool is_alone(const Path& path);
/// The outermost statement that holds the target below the innermost block around it, as a path.
Path nest_path(const Path& path);

/// Statements added to the body of the root block's sequence before or after `anchor` (which is the
/// target of a path).
Stmt insert_before(const Path& anchor, const Stmt& stmt);
Stmt insert_after(const Path& anchor, const Stmt& stmt);

/// Adds allocations to the root block, or drops those that nothing uses any more.
Stmt add_alloc(const Stmt& root, const Ref<Buffer>& buffer);
Stmt drop_unused_allocs(const Stmt& root);
std::string unique_buffer_name(const Stmt& root, const PrimFunc& function, const std::string& name);

/// Solves `patterns[i] == values[i]` for the axes: each pattern is a constant plus a mixed-radix
/// sum of axes, each axis of extent above 1 in one pattern. Nothing where it is not so.
std::optional<Substitution> solve_axes(const std::vector<Expr>& patterns,
                                       const std::vector<IterVar>& iters,
                                       const std::vector<Expr>& values, arith::Analyzer& analyzer);

/// The store of a block that goes on from what stands in its buffer: no init, at least one reduce
/// axis, the others spatial, and one store that joins a value to its own place. Null where the
/// block is another.
const BufferStore* accumulating_store(const Block& block);

/// \throws CompileError (kScheduleIllegal) where the block or loop at the end of `path` stands
/// inside a block other than the root.
void check_outermost(const Path& path);

/// A software pipeline begins its iterations in order, and each statement of its body has a stage.
/// \throws CompileError (kScheduleIllegal) where `loop` is one: it cannot be `what`.
void check_no_pipeline(const For& loop, std::string_view what);

/// Gives `first` the first iteration of those of `loops` (outermost first) that it says nothing
/// about. \returns that all of these have one.
Expr at_first_iteration(const std::vector<Ref<For>>& loops, Substitution& first);

/// Whether nobody can see what stands where `block` writes unless it has run: no other block and no
/// statement writes it, nor reads it where it is a parameter, which may hold something before.
bool owns_its_writes(const Schedule& schedule, const Block& block);

bool is_zero(const Expr& expr);

/// Takes the names of all blocks below `root`.
void reserve_block_names(const Stmt& root, NameSupply& names);
/// `root`, each of whose blocks has a name of its own from `names`.
Stmt with_unique_block_names(const Stmt& root, NameSupply& names);

}  // namespace tenon::tir
