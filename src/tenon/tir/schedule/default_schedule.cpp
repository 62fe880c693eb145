// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/default_schedule.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tenon/support/interrupt.h"
#include "tenon/support/nearest.h"
#include "tenon/support/parallel.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/analysis/tree.h"
#include "tenon/tir/schedule/attempt.h"
#include "tenon/tir/schedule/block_plan.h"
#include "tenon/tir/schedule/closed_blocks.h"
#include "tenon/tir/schedule/default_elementwise.h"
#include "tenon/tir/schedule/default_recurrence.h"
#include "tenon/tir/schedule/default_reduction.h"
#include "tenon/tir/schedule/edit.h"
#include "tenon/tir/schedule/machine_model.h"
#include "tenon/tir/schedule/plan_file.h"
#include "tenon/tir/schedule/reduction_chunks.h"
#include "tenon/tir/schedule/roles.h"
#include "tenon/tir/schedule/row_stage.h"
#include "tenon/tir/schedule/schedule_in_stretches.h"
#include "tenon/tir/schedule/skip_padding.h"

namespace tenon::tir {

namespace {

class DefaultScheduler {
 public:
  /// \param kept  names of blocks that accumulate and stay as they are
  /// \param given  plans of its blocks, which are taken or told of
  /// \param is_fast  whether sums may be computed by forms with fewer operations
  DefaultScheduler(const Ref<PrimFunc>& function, const Target& target,
                   const std::unordered_set<std::string>& kept,
                   const std::vector<const GivenPlan*>& given, bool is_fast)
      : sch_(function), target_(target), kept_(kept), given_(given) {
    const auto room = function->attrs.get<int64_t>(kScratchRoom);
    grown_ = function->attrs.get<int64_t>(kGrownRoom).value_or(room ? 0 : room_);
    room_ = room.value_or(room_);
    if (!is_fast) return;
    for (const int64_t i :
         function->attrs.ints(kLayoutFreeBuffers).value_or(std::vector<int64_t>()))
      if (i >= 0 && static_cast<size_t>(i) < function->buffers.size())
        free_.push_back(function->buffers[static_cast<size_t>(i)]);
  }

  /// Blocks that accumulate and were given a sum of their own, of which no schedule made use.
  const std::unordered_set<std::string>& in_vain() const { return in_vain_; }

  /// What was chosen, in the order in which blocks were scheduled.
  const std::vector<BlockPlan>& plans() const { return plans_; }

  Schedule run() {
    if (sch_.blocks().empty()) return sch_;
    for (const BlockRV& block : sch_.blocks())
      if (!understood(block)) return sch_;
    for (const BlockRV& block : sch_.blocks()) cut_reduction(block);
    // Partial sums that are added to what is there are sums like others, joined to it at their end.
    for (const BlockRV& block : sch_.blocks())
      if (!kept_.count(block.name) && accumulating_store(*sch_.get(block)) &&
          attempt(sch_, [&] { sch_.cache_write(block, 0, "global"); }))
        in_vain_.insert(block.name);
    inline_elementwise();
    BlockPlan rows{sch_.blocks().back().name, Algorithm::kLoops, {}, {}};
    if (!plans_blocks_alone() && tries(rows, Algorithm::kRows, [&] { fuse_rows(); })) {
      in_vain_.clear();
      plans_.push_back(std::move(rows));
      return sch_;
    }
    std::vector<BlockRV> paddings;
    for (const BlockRV& block : sch_.blocks()) {
      if (!sch_.has_block(block.name) || done_.count(block.name)) continue;
      if (is_padding(sch_, block)) {
        paddings.push_back(block);  // goes where it is read, once that has its loops
      } else {
        schedule_alone(block, {});
      }
    }
    for (const BlockRV& block : paddings) {
      if (!sch_.has_block(block.name) || done_.count(block.name)) continue;
      BlockPlan plan{block.name, Algorithm::kLoops, {}, {}};
      if (tries(plan, Algorithm::kPadding, [&] { place_padding(sch_, block, target_); }))
        plans_.push_back(std::move(plan));
      else
        schedule_alone(block, std::move(plan));
    }
    return sch_;
  }

 private:
  /// A block with one store, of axes that are spatial or reduce.
  bool understood(const BlockRV& block) const {
    const Ref<Block> node = sch_.get(block);
    for (const IterVar& iter : node->iter_vars)
      if (iter.kind == IterKind::kOpaque) return false;
    return node->match_buffers.empty() && node->alloc_buffers.empty();
  }

  /// A long sum becomes sums of chunks that are added to its buffer: where sums need not be computed
  /// term by term, and there is room for the buffer, if the program does not have it anyway.
  void cut_reduction(const BlockRV& block) {
    const Ref<Block> node = sch_.get(block);
    const GivenPlan* plan = given(block.name);
    const bool may = !kept_.count(block.name) && reads_free(*node);
    const int64_t chunks = plan ? plan->chunks : may ? choose_chunks(*node, target_) : 1;
    // A form of Winograd's reads its input once, to transform it: chunks would save nothing.
    if (chunks == 1 || (!plan && winograd_of(*node))) return;
    if (!may)
      throw CompileError(kBadPlan, plan->origin,
                         "`chunks` is {}; the sums of block `{}` are taken term by term", chunks,
                         block.name);
    const Buffer& sums = *node->writes.at(0)->buffer;
    const auto elements = as_int(arith::simplify(element_count(sums.shape)));
    const bool has_room = elements && *elements * sums.dtype.bytes() <= room_;
    if (!has_room && !sch_.consumers(block).empty() && (!plan || plan->is_tuned)) return;
    const auto refusal = refusal_of(sch_, [&] { cut_into_chunks(sch_, block, chunks); });
    if (!refusal)
      chunks_[block.name] = chunks;
    else if (plan)
      throw CompileError(kBadPlan, plan->origin, "`chunks` does not suit block `{}`: {}",
                         block.name, refusal->message);
  }

  bool reads_free(const Block& block) const {
    return std::any_of(free_.begin(), free_.end(),
                       [&](const Ref<Buffer>& buffer) { return reads_buffer(block, buffer); });
  }

  /// Operations of one execution of a block, in additions.
  int64_t cost_of(const Block& block) const {
    int64_t cost = 0;
    walk(block.body, [&](const NodePtr& node) {
      if (const auto* call = node.as<Call>())
        cost += call->is(IntrinsicId::kIfThenElse) ? 1 : model_.call_operations;
      if (const auto* op = node.as<Binary>())
        cost += op->op == BinaryOp::kDiv ? model_.division_operations : 1;
    });
    return cost;
  }

  static bool is_contraction(const Block& block) {
    if (!is_reduction(block)) return false;
    const BufferStore* store = only_store(block);
    if (!store) return false;
    std::vector<const BufferLoad*> loads;
    walk<BufferLoad>(store->value, [&](const BufferLoad& load) {
      if (!load.buffer.same_as(store->buffer)) loads.push_back(&load);
    });
    return loads.size() >= 2;
  }

  // Terms of an expression written out, up to `most`: what stands twice in it counts twice.
  static int64_t terms_of(const Expr& expr, int64_t most) {
    int64_t terms = 1;
    each_member(expr, [&](const NodePtr& member, FieldRole) {
      if (terms < most && member.as<ExprNode>())
        terms += terms_of(downcast<ExprNode>(member), most - terms);
    });
    return terms;
  }

  // Whether `value` has room in the place of `load`: an index that its value names twice, as that
  // of `take` does, doubles with every such producer.
  static bool has_room(const Expr& value, const BufferLoad& load) {
    constexpr int64_t kMostTerms = 10'000;
    int64_t terms = 1;
    for (const Expr& index : load.indices) terms += terms_of(index, kMostTerms);
    return terms_of(value, kMostTerms) * terms <= kMostTerms;
  }

  void inline_elementwise() {
    for (const BlockRV& block : sch_.blocks()) {
      const Ref<Block> node = sch_.get(block);
      const BufferStore* store = only_store(*node);
      if (!is_spatial(*node) || !store || !sch_.is_intermediate(store->buffer)) continue;
      const std::vector<BlockRV> readers = sch_.consumers(block);
      if (readers.empty()) continue;
      const int64_t cost = cost_of(*node);
      size_t loads = 0;
      walk<BufferLoad>(store->value, [&](const BufferLoad&) { ++loads; });
      bool worth = true;
      int64_t uses = 0;
      for (const BlockRV& reader : readers) {
        const Ref<Block> user = sch_.get(reader);
        // Operands of a contraction are read many times: only a plain load may stand there.
        if (is_contraction(*user) && cost > 0) worth = false;
        // A window reads an element several times as well.
        if (is_reduction(*user) && !reads_once(*user, store->buffer) && cost > 0) worth = false;
        // Functions of vectors, whose results are transposed, are faster than those of single elements.
        if (cost >= model_.call_operations && transposes(*user, store->buffer)) worth = false;
        if (!is_reduction(*user) && cost > model_.repeated_operations &&
            !reads_once(*user, store->buffer))
          worth = false;
        walk<BufferLoad>(user->body, [&](const BufferLoad& load) {
          if (!load.buffer.same_as(store->buffer)) return;
          ++uses;
          worth = worth && has_room(store->value, load);
        });
      }
      if (uses > 1 && cost > model_.repeated_operations) worth = false;
      if (worth) attempt(sch_, [&] { sch_.compute_inline(block); });
    }
  }

  /// Whether no axis of `block` leaves the place in `buffer` unchanged: each element is read once.
  static bool reads_once(const Block& block, const Ref<Buffer>& buffer) {
    bool once = true;
    walk<BufferLoad>(block.body, [&](const BufferLoad& load) {
      if (!load.buffer.same_as(buffer)) return;
      size_t reductions_in_index = 0;
      for (const IterVar& iter : block.iter_vars) {
        if (is_int(iter.domain.extent, 1)) continue;
        const bool used =
            std::any_of(load.indices.begin(), load.indices.end(),
                        [&](const Expr& index) { return uses_var(index, iter.var.get()); });
        once = once && used;
        (void)reductions_in_index;
      }
      // Two axes in one index overlap where they form a window.
      for (const Expr& index : load.indices) {
        size_t axes = 0;
        for (const IterVar& iter : block.iter_vars)
          axes += !is_int(iter.domain.extent, 1) && uses_var(index, iter.var.get());
        once = once && axes <= 1;
      }
    });
    return once;
  }

  /// Reductions over rows and what is made of them, row by row: a row stays in the nearest cache.
  void fuse_rows() {
    const std::vector<BlockRV> blocks = sch_.blocks();
    std::vector<BlockRV> reductions;
    for (const BlockRV& block : blocks) {
      const Ref<Block> node = sch_.get(block);
      // A block that only checks its operands (a gather's indices) writes nothing.
      if (node->writes.size() != 1)
        illegal(node->origin, "block `{}` writes {} buffers", block.name, node->writes.size());
      if (is_contraction(*node) && !is_square(*node))
        illegal(node->origin, "block `{}` is a contraction", block.name);
      if (is_reduction(*node)) {
        reductions.push_back(block);
      } else if (!is_spatial(*node)) {
        illegal(node->origin, "block `{}` is neither element-wise nor a reduction", block.name);
      }
    }
    const BlockRV last = blocks.back();
    if (reductions.empty() || blocks.size() < 2 || !is_spatial(*sch_.get(last)))
      illegal(sch_.func()->origin, "no reductions with a consumer");
    for (const BlockRV& block : blocks)
      if (!only_store(*sch_.get(block)) || sch_.get(block)->writes.size() != 1)
        illegal(sch_.func()->origin, "block `{}` is not one store", block.name);
    for (const BlockRV& block : blocks)
      if (!(block == last) && !sch_.is_intermediate(sch_.get(block)->writes.at(0)->buffer))
        illegal(sch_.func()->origin, "several results");
    size_t depth = 0;
    std::vector<RowReduction> split;
    for (const BlockRV& block : reductions) {
      split.push_back(split_row_reduction(sch_, block, target_));
      size_t spatial = 0;
      for (const IterVar& iter : sch_.get(block)->iter_vars)
        spatial += iter.kind == IterKind::kSpatial && !is_int(iter.domain.extent, 1);
      depth = std::max(depth, spatial);
    }
    sch_.simplify_block_iters(last);
    split_groups(last);
    std::vector<LoopRV> loops = sch_.get_loops(last);
    if (loops.size() <= depth)
      illegal(sch_.func()->origin, "the result has no axis inside its rows");
    check_rows(reductions, {loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(depth)});
    int64_t work = model_.call_operations * static_cast<int64_t>(blocks.size());
    for (size_t i = depth; i < loops.size(); ++i)
      work *= as_int(sch_.get(loops[i])->extent).value_or(model_.unknown_operations);
    LoopRV row;
    if (depth == 0) {
      row = sch_.split(loops[0], {int64(1), Expr()})[0];
    } else {
      loops.resize(depth);
      row = parallelize(sch_, loops, work, model_);
    }
    const std::vector<BlockRV> all = sch_.blocks();
    for (size_t i = all.size(); i-- > 0;)
      if (!(all[i] == last)) sch_.compute_at(all[i], row);
    // Rows that are small enough live on the stack.
    for (const BlockRV& block : all) {
      if (block == last) continue;
      const Path path = find_block(sch_.func()->body, block.name);
      int64_t bytes = 4;
      for (const Ref<For>& loop : loops_of(path)) {
        if (find_loop(sch_.func()->body, row.var.get()).stmts.size() >=
            find_loop(sch_.func()->body, loop->loop_var.get()).stmts.size())
          continue;
        bytes *= as_int(loop->extent).value_or(int64_t{1} << 30);
        bytes = std::min<int64_t>(bytes, int64_t{1} << 30);
      }
      if (bytes <= model_.stack_row_bytes) sch_.set_scope(block, 0, "local");
    }
    for (const RowReduction& reduction : split) finish_row_reduction(sch_, reduction, model_);
    // A value that is computed once a row has no loop in the row: its last loop is one over rows.
    const auto is_once_a_row = [&](const BlockRV& block) {
      return loops_of(find_block(sch_.func()->body, block.name)).back()->loop_var.same_as(row.var);
    };
    for (const BlockRV& block : all)
      if (is_spatial(*sch_.get(block)) && !sch_.get(block)->name.ends_with("_init") &&
          !is_once_a_row(block))
        attempt(sch_, [&] { vectorize_last_axis(sch_, block, target_); });
  }

  /// An axis of which the result reads `axis // c` (the groups of channels of a norm) is cut by c.
  void split_groups(const BlockRV& last) {
    const std::vector<int64_t> divisors = div_mod_divisors(*sch_.get(last));
    for (size_t a = divisors.size(); a-- > 0;) {
      const int64_t extent = extent_of(sch_.get(last)->iter_vars[a]);
      if (divisors[a] > 1 && extent > divisors[a] && extent % divisors[a] == 0)
        sch_.split_block_iter(last, static_cast<int64_t>(a), divisors[a]);
    }
  }

  /// Each row is reduced once: the reductions have as many rows as the loops.
  void check_rows(const std::vector<BlockRV>& reductions, const std::vector<LoopRV>& loops) const {
    Expr rows = int64(1);
    for (const LoopRV& loop : loops) rows = rows * sch_.get(loop)->extent;
    for (const BlockRV& reduction : reductions) {
      Expr own = int64(1);
      for (const IterVar& iter : sch_.get(reduction)->iter_vars)
        if (iter.kind == IterKind::kSpatial) own = own * iter.domain.extent;
      arith::Analyzer analyzer;
      if (!analyzer.proves_equal(own, rows))
        illegal(sch_.func()->origin, "block `{}` would run {} times; it has {} rows",
                reduction.name, str(analyzer.simplify(rows)), str(analyzer.simplify(own)));
    }
  }

  /// A product of one buffer with itself: a sum of squares, not a contraction.
  static bool is_square(const Block& block) {
    const auto accesses = linear_accesses(block);
    if (!accesses) return false;
    for (const LinearAccess& load : accesses->loads)
      if (!load.buffer.same_as(accesses->loads[0].buffer)) {
        // Operands of lower rank are statistics of the row.
        bool moves = false;
        for (size_t a = 0; a < block.iter_vars.size(); ++a)
          moves = moves || (block.iter_vars[a].kind == IterKind::kReduce && load.moves(a));
        if (moves) return false;
      }
    return true;
  }

  using Algorithm = BlockPlan::Algorithm;

  const GivenPlan* given(const std::string& block) const { return find_plan(given_, block); }

  /// Whether a plan is given for a block that is not to be one of rows.
  bool plans_blocks_alone() const {
    const std::vector<BlockRV> blocks = sch_.blocks();
    return std::any_of(blocks.begin(), blocks.end(), [&](const BlockRV& block) {
      const GivenPlan* plan = given(block.name);
      return plan && plan->algorithm != Algorithm::kRows;
    });
  }

  static void not_suited(const GivenPlan& given, const std::string& why) {
    throw CompileError(kBadPlan, given.origin, "algorithm `{}` does not suit block `{}`: {}",
                       name_of(given.algorithm), given.block, why);
  }

  /// Schedules by an algorithm where it suits, and no other is given; the plan says so, or why not.
  template <typename F>
  bool tries(BlockPlan& plan, Algorithm algorithm, const F& change) {
    const GivenPlan* given = this->given(plan.block);
    if (given && given->algorithm != algorithm) return false;
    if (const auto refusal = refusal_of(sch_, change)) {
      if (given) not_suited(*given, refusal->message);
      plan.refused.emplace_back(algorithm, refusal->message);
      return false;
    }
    plan.algorithm = algorithm;
    return true;
  }

  void schedule_alone(const BlockRV& block, BlockPlan plan) {
    plan.block = block.name;
    if (const auto found = chunks_.find(block.name); found != chunks_.end())
      plan.chunks = found->second;
    choose_algorithm(block, plan);
    if (const GivenPlan* given = this->given(block.name);
        given && given->algorithm != plan.algorithm)
      not_suited(*given, "it is one for blocks of another kind");
    plans_.push_back(std::move(plan));
  }

  void choose_algorithm(const BlockRV& block, BlockPlan& plan) {
    const Ref<Block> node = sch_.get(block);
    if (is_reduction(*node)) {
      std::unordered_set<std::string> before;
      for (const BlockRV& other : sch_.blocks()) before.insert(other.name);
      const auto readers = sch_.consumers(block);
      std::span<const GivenNest> nests;
      if (const GivenPlan* plan = given(block.name)) nests = plan->nests;
      if (const auto choice = winograd_of(*node))
        if (tries(plan, Algorithm::kWinograd,
                  [&] { plan.tiles = schedule_winograd(sch_, block, target_, *choice, nests); })) {
          plan.winograd = choice;
          return finish(before, block, readers);
        }
      const auto tile = [&](bool takes_in_reader) {
        plan.tiles =
            schedule_tiles(sch_, block, target_, nests, {.takes_in_reader = takes_in_reader});
      };
      // A reader that does not fit the tiles has loops of its own.
      bool reader_is_left = false;
      if (tries(plan, Algorithm::kTiles, [&] {
            if (readers.size() == 1 && !attempt(sch_, [&] { tile(true); }))
              reader_is_left = attempt(sch_, [&] { tile(false); });
            else if (readers.size() == 1)
              return;
            if (!reader_is_left) tile(true);
          }))
        return finish(before, block, reader_is_left ? std::vector<BlockRV>() : readers);
      if (tries(plan, Algorithm::kRowReduction, [&] { schedule_row_alone(block); }))
        return finish(before, block, {});
      if (tries(plan, Algorithm::kPlanarWindow, [&] { schedule_window(sch_, block, target_); }))
        return finish(before, block, {});
      parallelize_around(block, *node);
      done_.insert(block.name);
      return;
    }
    if (is_spatial(*node) && only_store(*node) &&
        !tries(plan, Algorithm::kTranspose, [&] { schedule_transpose(sch_, block, target_); }))
      tries(plan, Algorithm::kElementwise, [&] { schedule_elementwise(sch_, block, target_); });
    if (std::any_of(node->iter_vars.begin(), node->iter_vars.end(),
                    [](const IterVar& iter) { return iter.kind == IterKind::kScan; }))
      tries(plan, Algorithm::kScan, [&] { schedule_scan(sch_, block, target_); });
    if (is_spatial(*node) && loops_inside(*node)) parallelize_around(block, *node);
    done_.insert(block.name);
  }

  /// The form by which a convolution with constant filters is computed, where one pays.
  std::optional<WinogradChoice> winograd_of(const Block& block) const {
    if (!reads_free(block)) return std::nullopt;
    const GivenPlan* plan = given(block.name);
    if (plan && plan->algorithm != Algorithm::kWinograd) return std::nullopt;
    if (!plan || !plan->winograd) return choose_winograd(block, target_, room_, grown_);
    // What was measured in one program is taken in others where they have the memory.
    if (plan->is_tuned && winograd_bytes(block, *plan->winograd) > std::max(room_, grown_))
      return std::nullopt;
    return plan->winograd;
  }

  /// Whether the body of a block has a loop of its own, such as a walk through tables.
  static bool loops_inside(const Block& block) {
    bool found = false;
    walk(block.body,
         [&](const NodePtr& node) { found = found || node.as<While>() || node.as<For>(); });
    return found;
  }

  /// The loops of the leading spatial axes run in parallel; what one iteration costs is not known.
  void parallelize_around(const BlockRV& block, const Block& node) {
    attempt(sch_, [&] {
      std::vector<LoopRV> loops;
      for (size_t a = 0; a < node.iter_vars.size(); ++a) {
        if (node.iter_vars[a].kind != IterKind::kSpatial) break;
        if (const auto loop = loop_of_axis(sch_, block, a)) loops.push_back(*loop);
      }
      if (!loops.empty()) parallelize(sch_, loops, model_.unknown_operations, model_);
    });
  }

  /// Rows of a reduction whose result nobody here reads.
  void schedule_row_alone(const BlockRV& block) {
    const RowReduction reduction = split_row_reduction(sch_, block, target_);
    const Ref<Block> whole = sch_.get(reduction.whole);
    std::vector<LoopRV> loops;
    int64_t work = 1;
    for (size_t a = 0; a < whole->iter_vars.size(); ++a) {
      const auto loop = loop_of_axis(sch_, reduction.whole, a);
      if (loop && whole->iter_vars[a].kind == IterKind::kSpatial) loops.push_back(*loop);
    }
    for (const IterVar& iter : sch_.get(reduction.part)->iter_vars)
      if (iter.kind == IterKind::kReduce)
        work *= std::max<int64_t>(1, extent_of(iter)) * model_.row_operations;
    LoopRV row;
    if (loops.empty()) {
      row = sch_.split(sch_.get_loops(reduction.whole)[0], {int64(1), Expr()})[0];
    } else {
      row = parallelize(sch_, loops, work, model_);
    }
    for (size_t i = reduction.halves.size(); i-- > 0;) {
      sch_.compute_at(reduction.halves[i], row);
      sch_.set_scope(reduction.halves[i], 0, "local");
    }
    sch_.compute_at(reduction.part, row);
    sch_.set_scope(reduction.part, 0, "local");
    finish_row_reduction(sch_, reduction, model_);
  }

  /// What a schedule of `block` made or took in is not to be scheduled again.
  void finish(const std::unordered_set<std::string>& before, const BlockRV& block,
              const std::vector<BlockRV>& readers) {
    done_.insert(block.name);
    in_vain_.erase(block.name);
    for (const BlockRV& other : sch_.blocks())
      if (!before.count(other.name)) done_.insert(other.name);
    // A reader that stands below the block's loops was taken in.
    for (const BlockRV& reader : readers) {
      if (!sch_.has_block(reader.name)) continue;
      const Path path = find_block(sch_.func()->body, reader.name);
      if (realizes_in(nest_path(path).target()).size() > 1) done_.insert(reader.name);
    }
    // Producers that were moved into its loops keep what they are.
    for (const BlockRV& other : sch_.blocks()) {
      const Path path = find_block(sch_.func()->body, other.name);
      if (realizes_in(nest_path(path).target()).size() > 1) done_.insert(other.name);
    }
  }

  Schedule sch_;
  const Target& target_;
  const MachineModel& model_ = machine_model(target_);
  const std::unordered_set<std::string>& kept_;
  const std::vector<const GivenPlan*>& given_;
  std::vector<Ref<Buffer>> free_;                       // constants of which others may be made
  int64_t room_ = std::numeric_limits<int64_t>::max();  // bytes for intermediates in memory
  int64_t grown_ = 0;                                   // those that they may grow to
  std::unordered_set<std::string> done_, in_vain_;
  std::unordered_map<std::string, int64_t> chunks_;  // of reductions that were cut, by the first
  std::vector<BlockPlan> plans_;
};

}  // namespace

Schedule schedule_by_default(const Ref<PrimFunc>& function, const Target& target,
                             std::vector<BlockPlan>* plans,
                             const std::vector<const GivenPlan*>& given, bool is_fast) {
  std::unordered_set<std::string> kept;
  const std::vector<const GivenPlan*> none;
  while (true) {
    DefaultScheduler scheduler(function, target, kept, none, is_fast);
    Schedule schedule = scheduler.run();
    if (!scheduler.in_vain().empty()) {
      kept.insert(scheduler.in_vain().begin(), scheduler.in_vain().end());
      continue;
    }
    // What stays as it is was settled without the plans, which are for the blocks that come of it.
    if (given.empty()) {
      if (plans) *plans = scheduler.plans();
      return schedule;
    }
    DefaultScheduler planned(function, target, kept, given, is_fast);
    schedule = planned.run();
    if (plans) *plans = planned.plans();
    return schedule;
  }
}

// How often each primitive was applied: "compute_inline 2, reorder 1, split 4".
static void report(const std::string& name, const std::string& hash, const Schedule& schedule,
                   const std::vector<BlockPlan>& plans, const Origin& origin) {
  std::map<std::string, int> counts;
  for (const Instruction& step : schedule.trace().instructions()) ++counts[step.name];
  std::string steps;
  for (const auto& [step, count] : counts)
    if (!step.starts_with("get_"))
      steps += fmt::format("{}{} {}", steps.empty() ? "" : ", ", step, count);
  record({"DefaultSchedule",
          name,
          steps.empty() ? "kept" : "scheduled",
          steps.empty() ? "no-primitive-applies" : "by-structure",
          {},
          steps,
          origin});
  for (const BlockPlan& plan : plans) {
    Remark remark{"DefaultSchedule", name,  "planned", name_of(plan.algorithm), {},
                  str(plan),         origin};
    remark.choice = json_of(plan, name, hash).dump();
    record(std::move(remark));
  }
}

namespace {

/// Plans that are given, as kernels take them.
class Planned {
 public:
  explicit Planned(const GivenPlans& given) : given_(given) {}

  std::vector<const GivenPlan*> of(const std::string& kernel, const std::string& hash) {
    hashes_.emplace(kernel, hash);
    blocks_[kernel] = {};
    return given_.of(kernel, hash);
  }

  void took(const std::string& kernel, const std::vector<const GivenPlan*>& given,
            const std::vector<BlockPlan>& plans) {
    for (const BlockPlan& plan : plans) {
      blocks_[kernel].push_back(plan.block);
      if (const GivenPlan* found = find_plan(given, plan.block)) taken_.insert(found);
    }
  }

  /// A remark for each plan: whether a block took it. One of a database is for other programs too.
  void tell() const {
    for (const GivenPlan& plan : given_.plans) {
      const bool is_taken = taken_.count(&plan) != 0;
      if (plan.is_tuned && !is_taken) continue;
      record({"DefaultSchedule",
              fmt::format("{}/{}", plan.kernel, plan.block),
              is_taken ? "matched" : "unmatched",
              plan.is_tuned ? "tuned" : "plan",
              {},
              is_taken ? "" : why(plan),
              plan.origin});
    }
  }

 private:
  std::string why(const GivenPlan& plan) const {
    std::vector<std::string> names;
    names.reserve(hashes_.size());
    for (const auto& [name, hash] : hashes_) names.push_back(name);
    const auto kernel = hashes_.find(plan.kernel);
    if (kernel == hashes_.end())
      return fmt::format("there is no kernel `{}` to schedule{}", plan.kernel,
                         did_you_mean(plan.kernel, names));
    if (!plan.hash.empty() && plan.hash != kernel->second)
      return fmt::format("kernel `{}` has hash {}; the plan is for {}", plan.kernel, kernel->second,
                         plan.hash);
    const std::vector<std::string>& blocks = blocks_.at(plan.kernel);
    if (blocks.empty()) return fmt::format("kernel `{}` has no blocks to plan", plan.kernel);
    if (std::find(blocks.begin(), blocks.end(), plan.block) != blocks.end())
      return "another plan of the block comes before it";
    return fmt::format("kernel `{}` plans its blocks `{}`{}", plan.kernel,
                       fmt::join(blocks, "`, `"), did_you_mean(plan.block, blocks));
  }

  const GivenPlans& given_;
  std::map<std::string, std::string> hashes_;               // by kernel
  std::map<std::string, std::vector<std::string>> blocks_;  // that have a plan, by kernel
  std::unordered_set<const GivenPlan*> taken_;
};

// Plans of a database that do not fit, as another version of Tenon may have made them, are left out.
Schedule schedule_as_fits(const Ref<PrimFunc>& kernel, const Target& target,
                          std::vector<BlockPlan>& plans, std::vector<const GivenPlan*>& given,
                          bool is_fast) {
  try {
    return schedule_by_default(kernel, target, &plans, given, is_fast);
  } catch (const CompileError& error) {
    if (error.first().code.id != kBadPlan.id) throw;
    if (std::erase_if(given, [](const GivenPlan* plan) { return plan->is_tuned; }) == 0) throw;
    const Diagnostic& first = error.first();
    record({"DefaultSchedule",
            plan_hash(kernel),
            "refused",
            "tuned",
            {},
            first.message,
            first.origin});
  }
  return schedule_by_default(kernel, target, &plans, given, is_fast);
}

}  // namespace

std::string plan_hash(const Ref<PrimFunc>& kernel) {
  Ref<PrimFunc> bare = kernel;
  for (const char* known :
       {kFiniteParams, kLayoutFreeBuffers, kFarConstants, kScratchRoom, kGrownRoom})
    bare = without_attr(bare, known);
  return fmt::format("{:016x}", structural_hash(bare));
}

Ref<PrimFunc> without_attr(const Ref<PrimFunc>& function, const std::string& name) {
  if (!function->attrs.contains(name)) return function;
  return with(function, [&](PrimFunc& copy) { copy.attrs.erase(name); });
}

// Its loops run on the thread that calls it.
static Ref<PrimFunc> without_tasks(const Ref<PrimFunc>& function) {
  return rewrite(function, [](const NodePtr& node) -> std::optional<NodePtr> {
    const auto* loop = node.as<For>();
    if (!loop || loop->kind != ForKind::kParallel) return std::nullopt;
    return make<For>(loop->loop_var, loop->min, loop->extent, ForKind::kSerial, loop->body,
                     loop->annotations, loop->origin);
  });
}

// Where a plan asks for it: giving work to other threads takes longer than some kernels do. The first
// plan tells it, where the kernel had tasks.
static Ref<PrimFunc> serial_as_given(const Ref<PrimFunc>& scheduled, std::vector<BlockPlan>& plans,
                                     const std::vector<const GivenPlan*>& given) {
  const bool is_asked = std::any_of(plans.begin(), plans.end(), [&](const BlockPlan& plan) {
    const GivenPlan* found = find_plan(given, plan.block);
    return found && found->is_serial;
  });
  if (!is_asked) return scheduled;
  Ref<PrimFunc> serial = without_tasks(scheduled);
  plans.front().is_serial = !serial.same_as(scheduled);
  return serial;
}

std::optional<bool> states_fast_forms(const IRModule& module) {
  const AttrValue* mode = module.attrs.find(kFloatingPoint);
  if (!mode) return std::nullopt;
  const auto* text = mode->as<std::string>();
  if (text && *text == "auto") return std::nullopt;
  if (!text || (*text != "fast" && *text != "strict"))
    throw CompileError(
        kBadAttribute, module.functions().empty() ? Origin() : module.functions()[0].second->origin,
        "attribute `{}` of the module is {}; expected \"auto\", \"strict\" or \"fast\"",
        kFloatingPoint, mode->str());
  return *text == "fast";
}

bool takes_fast_forms(const IRModule& module, const Target& target) {
  return states_fast_forms(module).value_or(target.kind != "c");
}

namespace {

/// A kernel before it is scheduled and, in the same place, after it.
struct Job {
  std::string name;
  Ref<PrimFunc> kernel;
  bool calls_others;
  std::string hash = {};
  std::vector<const GivenPlan*> given = {};
  std::vector<BlockPlan> plans = {};
  std::optional<CompileError> misfit = {};  // of a plan that was given
};

}  // namespace

static void run(Job& job, const Target& target, bool is_fast) {
  if (job.calls_others) {
    if (!job.kernel->attrs.flag(kScheduledBetweenCalls))
      job.kernel =
          schedule_in_stretches(job.kernel, target)->with_attr(kScheduledBetweenCalls, true);
    return;
  }
  try {
    const Schedule schedule = schedule_as_fits(without_attr(job.kernel, kFiniteParams), target,
                                               job.plans, job.given, is_fast);
    Ref<PrimFunc> scheduled = skip_padding(schedule.func(), *job.kernel);
    if (job.kernel->attrs.flag(kRunsInTask)) scheduled = without_tasks(scheduled);
    scheduled = serial_as_given(scheduled, job.plans, job.given);
    report(job.name, job.hash, schedule, job.plans, job.kernel->origin);
    for (const char* done : {kFarConstants, kScratchRoom, kGrownRoom})
      scheduled = without_attr(scheduled, done);
    job.kernel = scheduled->with_attr(kScheduled, true);
  } catch (const CompileError& error) {
    if (error.first().code.id != kBadPlan.id) throw;
    job.misfit = error;  // other kernels may have such plans too
  }
}

IRModule schedule_by_plans(IRModule module, const GivenPlans& given) {
  const auto text = module.attrs.get<std::string>("target");
  const Target target = text ? parse_target(*text) : parse_target("llvm");
  const bool is_fast = takes_fast_forms(module, target);
  Planned planned(given);
  std::vector<Job> jobs;
  for (const auto& [name, function] : module.functions()) {
    check_interrupt();
    const Ref<PrimFunc> kernel = cast<PrimFunc>(function);
    if (!kernel || !root_block(*kernel) || kernel->attrs.flag(kScheduled)) continue;
    Job job{name, kernel, has_stretches(*kernel)};
    if (!job.calls_others) {
      if (!with_closed_blocks(kernel)) continue;  // it stays as its author wrote it
      job.hash = plan_hash(without_attr(kernel, kFiniteParams));
      job.given = planned.of(name, job.hash);
    }
    jobs.push_back(std::move(job));
  }
  for_each_in_parallel(jobs.size(), [&](size_t i) { run(jobs[i], target, is_fast); });
  Diagnostics misfits;
  for (const Job& job : jobs) {
    if (job.misfit) {
      misfits.add(*job.misfit);
    } else {
      module.set(job.name, job.kernel);
    }
    if (!job.calls_others) planned.took(job.name, job.given, job.plans);
  }
  misfits.throw_if_any();
  planned.tell();
  return module;
}

IRModule default_schedule(IRModule module, const Attrs& options) {
  check_options("DefaultSchedule", options, {});
  return schedule_by_plans(std::move(module), {});
}

}  // namespace tenon::tir
