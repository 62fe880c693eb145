// SPDX-License-Identifier: Apache-2.0
// Loop transformations of a PrimFunc made of blocks: what turns a plain definition into a fast
// kernel. Names and meaning follow TVM's tir.Schedule.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tenon/support/random.h"
#include "tenon/tir/analysis/tree.h"
#include "tenon/tir/schedule/trace.h"
#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// A layout: where the place `from` of a buffer goes. `to` is made of `from` by sums, multiples,
/// quotients and remainders.
struct IndexMap {
  std::vector<Ref<Var>> from;  // one for each dimension
  std::vector<Expr> to;
  std::string str() const;  // "lambda i, j: (i // 16, j, i % 16)"
};

struct Primitive;

enum class BufferRole : uint8_t { kRead, kWrite };

/// A function being scheduled. A value: copying it is cheap (nodes are shared), so that a caller
/// can try and return. Every primitive checks that it keeps the meaning of the function and throws
/// CompileError (kScheduleIllegal) where it cannot tell; the function is then unchanged.
///
/// A block is addressed by its name, which is made unique when the schedule is opened; a loop by
/// its variable. Blocks are leaves below one root block, except those made by blockize.
class Schedule {
 public:
  /// \throws CompileError (kScheduleIllegal) where the function has no root block.
  explicit Schedule(Ref<PrimFunc> function);

  const Ref<PrimFunc>& func() const { return func_; }
  const Trace& trace() const { return trace_; }
  /// Whether some primitive has changed the function, not only looked at it.
  bool has_changed() const { return !func_->body.same_as(opened_); }

  // ---- what is there
  BlockRV get_block(const std::string& name);
  /// All blocks below the root, in program order.
  std::vector<BlockRV> blocks() const;
  /// The loops around a block, outermost first.
  std::vector<LoopRV> get_loops(const BlockRV& block);
  /// Blocks that write what `block` reads / read what it writes, in program order.
  std::vector<BlockRV> producers(const BlockRV& block) const;
  std::vector<BlockRV> consumers(const BlockRV& block) const;
  /// producers(), consumers() and blocks as steps of the trace, by which what they give is known.
  std::vector<BlockRV> get_producers(const BlockRV& block);
  std::vector<BlockRV> get_consumers(const BlockRV& block);
  /// The blocks below, in program order, without those inside of them.
  std::vector<BlockRV> get_child_blocks(const BlockRV& block);
  std::vector<BlockRV> get_child_blocks(const LoopRV& loop);
  bool has_block(const std::string& name) const;
  Ref<Block> get(const BlockRV& block) const;
  Ref<BlockRealize> realize(const BlockRV& block) const;
  Ref<For> get(const LoopRV& loop) const;
  /// Whether some primitive has given this loop, so that the trace knows it.
  bool is_named(const LoopRV& loop) const { return named_.count(loop.var.get()) != 0; }
  /// Whether the buffer is allocated by the root block (not a parameter).
  bool is_intermediate(const Ref<Buffer>& buffer) const;

  // ---- numbers that are decided at random, or as a trace has decided
  /// Of the draws that follow. The same seed gives the same draws everywhere.
  void seed(uint64_t seed) { random_ = Random(seed); }
  uint64_t fork_seed() { return random_.bits() >> 1; }  // a positive int64_t
  int64_t get(const NumberRV& number) const;
  /// A value with what the numbers are that its expressions name; nothing where it names none.
  std::optional<AttrValue> with_numbers(const AttrValue& value) const;
  /// One of `candidates`, each as likely as its part of all `probs`. \param decision  which one.
  NumberRV sample_categorical(const std::vector<int64_t>& candidates,
                              const std::vector<double>& probs,
                              std::optional<int64_t> decision = {});
  /// `n` factors, outermost first, whose product is the extent of the loop, a constant; each tiling
  /// is as likely as any other. \param decision  the factors.
  std::vector<NumberRV> sample_perfect_tile(
      const LoopRV& loop, int64_t n, int64_t max_innermost_factor,
      const std::optional<std::vector<int64_t>>& decision = {});

  // ---- loops
  /// Cuts a loop into nested ones of the given extents, outermost first; one factor may be null: it
  /// follows. Where they do not divide, blocks inside run under a predicate.
  std::vector<LoopRV> split(const LoopRV& loop, const std::vector<Expr>& factors);
  std::vector<LoopRV> split(const LoopRV& loop, int64_t inner) {
    return split(loop, {Expr(), int64(inner)});
  }
  /// One loop over the product of perfectly nested ones.
  LoopRV fuse(const std::vector<LoopRV>& loops);
  /// Puts loops of one nest (without branches between them) in the given order.
  void reorder(const std::vector<LoopRV>& loops);
  /// One loop whose iterations do what those of `loops` do, which follow each other and have the same
  /// extent: first that of the first one, then that of the next. What one of them writes and another
  /// one uses must be in each iteration elements of its own.
  LoopRV merge(const std::vector<LoopRV>& loops);
  /// Loops one after the other over [0, points[0]), [points[0], points[1]), ..., [.., extent); each
  /// starts at 0 again. Blocks inside are copied (renamed in all parts but the first), their
  /// spatial domains cut down to what each part runs.
  std::vector<LoopRV> loop_partition(const LoopRV& loop, const std::vector<Expr>& points);
  /// A loop of extent 1 around a block.
  LoopRV add_unit_loop(const BlockRV& block);

  void parallel(const LoopRV& loop);
  void vectorize(const LoopRV& loop);  // of constant extent
  void unroll(const LoopRV& loop);     // of constant extent
  void annotate(const LoopRV& loop, const std::string& key, AttrValue value);
  void annotate(const BlockRV& block, const std::string& key, AttrValue value);
  void unannotate(const LoopRV& loop, const std::string& key);
  void unannotate(const BlockRV& block, const std::string& key);

  // ---- axes of blocks
  /// Joins consecutive axes [first, first + count) of a block into one; its loops are made afresh,
  /// one for each axis.
  void fuse_block_iters(const BlockRV& block, int64_t first, int64_t count);
  /// Cuts an axis in two; the inner one has extent `factor`. Where that does not divide, the domain
  /// grows: the block must be a reduction into an intermediate that nobody else writes (which grows
  /// with it), and what it reads must stay inside its buffers.
  void split_block_iter(const BlockRV& block, int64_t axis, int64_t factor);
  /// Drops axes of extent 1 and makes the loops afresh, one for each axis that is left.
  void simplify_block_iters(const BlockRV& block);
  /// Puts the axes in another order; order[i] is the old position of axis i. Loops are made afresh.
  void reorder_block_iters(const BlockRV& block, const std::vector<int64_t>& order);

  /// Lets a reduction axis run up to the next multiple of `factor`; what is beyond its end adds the
  /// neutral element of the reduction (+, *, min or max).
  void pad_reduction(const BlockRV& block, int64_t axis, int64_t factor);

  /// Lets the axes of a sum of products (started at 0) run up to the next multiples of `padding`,
  /// one for each axis. Operands are copied into buffers that hold 0 beyond their ends before it,
  /// the result out of a larger one after it. Every index must be an axis or a constant.
  void pad_einsum(const BlockRV& block, const std::vector<int64_t>& padding);
  /// Cuts a block that stores `T.if_then_else(inside, value, constant)` in two below `loop`: the
  /// constant everywhere, then the value where the condition holds, without it.
  /// \returns the block that stores the constant.
  BlockRV decompose_padding(const BlockRV& block, const LoopRV& loop);

  // ---- other sums
  /// Computes a convolution of 3 x 3 taps of stride 1 by Winograd's form for tiles of `tile` x `tile`
  /// outputs (2, 4 or 6), in blocks of `block_tiles` tiles, which are the outermost axes of all that
  /// follows. Extents must be constants. Rounds otherwise: winograd_form.h states by how much.
  /// \returns the blocks `*_filter_rows` and `*_filters` (of the filters alone), `*_patch`,
  /// `*_patch_rows`, `*_input` (zeros where a patch leaves what the convolution reads),
  /// `*_sum_columns` and `*_output`, which writes the result over its own axes. The products, `block`,
  /// stand in front of the last two.
  std::vector<BlockRV> winograd(const BlockRV& block, int64_t tile, int64_t block_tiles);

  // ---- blocks
  /// Makes a block of a loop that holds loops around one block. Its axes are those of the block as
  /// far as they come from outside of `loop`; the block inside takes the rest. Primitives that move
  /// blocks take the new one as a whole.
  BlockRV blockize(const LoopRV& loop);

  /// Puts a call of `intrin`'s implementation (T.call_tir) in the place of all that a block made by
  /// blockize holds, which must be what the description says, of regions of the buffers. Order and
  /// cut of the loops do not count, nor the order of operands. The function must stay in a module
  /// that has the implementation under its name. Of a loop: of what blockize makes of it.
  void tensorize(const BlockRV& block, const TensorIntrin& intrin);
  void tensorize(const LoopRV& loop, const TensorIntrin& intrin);

  // ---- where things are computed
  /// Computes a producer where its consumers below `loop` need it, as much as they need.
  void compute_at(const BlockRV& block, const LoopRV& loop);
  /// Computes a consumer right after what its producers below `loop` have written: in each
  /// iteration as much as that allows, which must come to all of it in the end.
  void reverse_compute_at(const BlockRV& block, const LoopRV& loop);
  /// Puts the value of an element-wise block in the place of every read of it.
  void compute_inline(const BlockRV& block);
  /// Puts an element-wise consumer in the place of its producer's store.
  void reverse_compute_inline(const BlockRV& block);

  // ---- buffers
  /// A copy of the whole region that a block reads of its `read`th region, made before it.
  BlockRV cache_read(const BlockRV& block, int64_t read, const std::string& scope);
  /// The block writes a new buffer, indexed by its spatial axes; a copy after it puts that in
  /// place. A reduction without init, which goes on from what stands in its buffer, gets the init
  /// of a sum of its own, and the copy joins that to what stands there (another order of rounding).
  BlockRV cache_write(const BlockRV& block, int64_t write, const std::string& scope);
  /// cache_read into a buffer indexed by the given axes of the block in that order (a packed copy).
  BlockRV reindex_cache_read(const BlockRV& block, int64_t read, const std::string& scope,
                             const std::vector<int64_t>& axes);
  /// Stores an intermediate, the `index`th region that a block reads or writes, in another layout,
  /// everywhere. Where the map does not take up whole extents, these are rounded up; the places
  /// that this adds hold `pad_value`, or anything where that is null.
  void transform_layout(const BlockRV& block, BufferRole role, int64_t index, const IndexMap& map,
                        const Expr& pad_value = {});
  void set_scope(const BlockRV& block, int64_t write, const std::string& scope);
  /// Rounds the stride of dimension `axis` of the `write`th buffer up to `factor` * k + `offset`.
  void storage_align(const BlockRV& block, int64_t write, int64_t axis, int64_t factor,
                     int64_t offset);
  /// A hint, in each iteration of `loop`, to bring into cache what the block's `read`th region will
  /// be `distance` iterations of `ahead` later: into the second cache, or at `locality` 3 into the first.
  void prefetch(const BlockRV& block, int64_t read, const LoopRV& loop, const LoopRV& ahead,
                int64_t distance, int64_t locality = 2);
  /// As prefetch(), where an iteration of `loop` reads several lines and the iterations of `over`,
  /// a loop around it, read the same ones: iteration i asks for run (i + first) % runs of
  /// `elements` consecutive ones, counted from the start of what `loop` reads.
  void prefetch_spread(const BlockRV& block, int64_t read, const LoopRV& loop, const LoopRV& ahead,
                       int64_t distance, const LoopRV& over, int64_t elements, int64_t first,
                       int64_t runs);

  // ---- reductions
  /// Splits a reduction into its start, before `loop`, and its update.
  BlockRV decompose_reduction(const BlockRV& block, const LoopRV& loop);
  /// Partial results for each iteration of a loop over the reduction, joined by a second reduction.
  /// \returns the block of the partial results; `block` is the one that joins them.
  BlockRV rfactor(const LoopRV& loop);

 private:
  friend class ScheduleEdit;
  friend std::vector<TraceValue> apply(Schedule& schedule, const Primitive& primitive,
                                       const std::vector<TraceValue>& inputs,
                                       const std::vector<AttrValue>& attrs,
                                       const std::map<std::string, TensorIntrin>& intrins);
  NumberRV sampled(int64_t value);
  std::string unique_name(const std::string& name) const;
  Stmt root() const { return func_->body; }
  void commit(Stmt body);
  void replace_by_call(const BlockRV& block, const TensorIntrin& intrin);
  /// Runs of lines that the iterations of a loop share.
  struct SharedLines {
    LoopRV over;
    int64_t elements, first, runs;
  };
  void insert_prefetch(const BlockRV& block, int64_t read, const LoopRV& loop, const LoopRV& ahead,
                       int64_t distance, int64_t locality,
                       const std::optional<SharedLines>& shared = std::nullopt);
  std::vector<BlockRV> recorded(std::string name, TraceValue input, std::vector<BlockRV> found);
  void record(std::string name, std::vector<TraceValue> inputs,
              std::vector<std::pair<std::string, AttrValue>> attrs = {},
              std::vector<TraceValue> outputs = {});
  Path path_of(const LoopRV& loop) const;
  Path path_of(const BlockRV& block) const;
  void rebuild_nest(const BlockRV& block, std::vector<IterVar> iters,
                    const std::unordered_map<const Node*, NodePtr>& values);

  Ref<PrimFunc> func_;
  Stmt opened_;  // its body as it was then
  Trace trace_;
  std::unordered_set<const Node*> named_;  // loops that the trace has seen
  std::unordered_map<const Node*, std::pair<Ref<Var>, int64_t>> numbers_;
  Random random_{0};
};

/// Applies the primitives of `trace` to `function`, whose blocks must have the names of the one
/// that it was recorded on.
Schedule replay(const Trace& trace, const Ref<PrimFunc>& function);
/// The same to a schedule that is open, after what has been applied to it.
void replay(const Trace& trace, Schedule& schedule);

}  // namespace tenon::tir
