// SPDX-License-Identifier: Apache-2.0
// The one scheduler of contractions, and of every reduction that runs with one vector of outputs in
// registers for each of a tile of places: matrix products, convolutions (dense, grouped,
// depthwise), pooling, sums over outer axes. The block is made ready (linear accesses, operands
// packed, lanes that are whole vectors); the roles of its axes are found and a plan is chosen for them
// (tile_plan.h); the plan is applied by primitives.
#include <algorithm>
#include <bit>

#include "tenon/tir/schedule/attempt.h"
#include "tenon/tir/schedule/default_elementwise.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tenon/tir/schedule/dots.h"
#include "tenon/tir/schedule/edit.h"
#include "tenon/tir/schedule/machine_model.h"
#include "tenon/tir/schedule/plan_file.h"
#include "tenon/tir/schedule/tile_plan.h"
#include "tenon/tir/schedule/weight_prefetch.h"

namespace tenon::tir {

namespace {

/// What is known of a block that is a part of a nest.
struct Part {
  std::optional<size_t> lane = {};  // the axis of its vectors
  int64_t width = 0;                // lanes of one, where their number follows from nothing else
  bool joined = false;              // its columns are rows that were joined
  int64_t tasks = 0;                // of its columns, where the others were left to another part
};

class Tiler {
 public:
  Tiler(Schedule& schedule, const Target& target, std::span<const GivenNest> given,
        const TileOptions& options)
      : sch_(schedule),
        target_(target),
        model_(machine_model(target)),
        given_(given),
        options_(options) {}

  std::vector<TilePlan> run(const BlockRV& block) {
    if (!is_reduction(*sch_.get(block)))
      illegal(sch_.get(block)->origin, "block `{}` is no reduction", block.name);
    name_ = block.name;
    if (options_.first_axis_outside) outside_ = sch_.get(block)->iter_vars.front().var;
    sch_.simplify_block_iters(block);
    const BlockRV epilogue = align(block);
    split_div_mod_axes(block);
    tile(block, epilogue);
    for (const BlockRV& copy : alone_)
      if (sch_.has_block(copy.name))
        attempt(sch_, [&] { schedule_transpose(sch_, copy, target_, {.joins = false}); });
    if (given_.size() > plans_.size())
      throw CompileError(kBadPlan, given_[plans_.size()].origin,
                         "block `{}` has {} nests; the plan has {}", block.name, plans_.size(),
                         given_.size());
    return std::move(plans_);
  }

 private:
  /// The block writes a buffer of its own, indexed by its axes; what consumed it element by element
  /// reads that instead. \returns the block that does so: the epilogue, or the bare copy.
  BlockRV align(const BlockRV& block) {
    const std::vector<BlockRV> readers = sch_.consumers(block);
    const BlockRV copy = sch_.cache_write(block, 0, "global");
    if (readers.size() != 1 || !options_.takes_in_reader) return copy;
    return attempt(sch_, [&] { sch_.reverse_compute_inline(readers[0]); }) ? readers[0] : copy;
  }

  /// The epilogue goes over the block's axes where one of them was split since: both can be cut then.
  void align_again(const BlockRV& block, const BlockRV& epilogue) {
    size_t spatial = 0;
    for (const IterVar& iter : sch_.get(block)->iter_vars)
      spatial += iter.kind == IterKind::kSpatial;
    if (sch_.get(epilogue)->iter_vars.size() == spatial) return;
    sch_.cache_write(block, 0, "global");
    sch_.reverse_compute_inline(epilogue);
  }

  /// `axis // c` and `axis % c` become axes of their own, so that accesses are linear.
  void split_div_mod_axes(const BlockRV& block) {
    for (int round = 0; round < 8; ++round) {
      const Ref<Block> node = sch_.get(block);
      const std::vector<int64_t> divisors = div_mod_divisors(*node);
      size_t axis = 0;
      while (axis < divisors.size() && divisors[axis] == 0) ++axis;
      if (axis == divisors.size()) return;
      arith::Analyzer analyzer;
      grown_ =
          grown_ || !analyzer.proves_divisible(node->iter_vars[axis].domain.extent, divisors[axis]);
      sch_.split_block_iter(block, static_cast<int64_t>(axis), divisors[axis]);
      sch_.simplify_block_iters(block);
    }
  }

  BlockAccesses accesses_of(const BlockRV& block) const {
    auto accesses = linear_accesses(*sch_.get(block), true);
    if (!accesses || accesses->loads.empty())
      illegal(sch_.get(block)->origin, "accesses of block `{}` are not linear in its axes",
              block.name);
    return *accesses;
  }

  /// What is copied so that lanes are consecutive.
  struct Packing {
    size_t lane = 0;             // the output's consecutive axis
    int64_t read = 0;            // the operand that strides along it, among what the block reads
    std::vector<int64_t> order;  // axes of the copy
  };

  /// \returns how an operand that strides along the output's consecutive axis is packed; nothing where
  /// none does, or where a copy would be of no use.
  std::optional<Packing> packing_of(const BlockRV& block, const BlockAccesses& accesses) const {
    const Ref<Block> node = sch_.get(block);
    if (lane_of(*node, accesses)) return std::nullopt;
    for (size_t a = 0; a < node->iter_vars.size(); ++a) {
      if (node->iter_vars[a].kind != IterKind::kSpatial || !accesses.store.is_unit(a)) continue;
      if (extent_of(node->iter_vars[a]) == 1) continue;
      std::vector<size_t> moving;
      for (size_t l = 0; l < accesses.loads.size(); ++l)
        if (accesses.loads[l].moves(a)) moving.push_back(l);
      if (moving.size() != 1) continue;
      const LinearAccess& strided = accesses.loads[moving[0]];
      Packing packing{a, -1, {}};
      for (size_t b = 0; b < node->iter_vars.size(); ++b)
        if (b != a && strided.moves(b)) packing.order.push_back(static_cast<int64_t>(b));
      packing.order.push_back(static_cast<int64_t>(a));
      // A copy of little use: each element is read once only.
      bool reused = false;
      for (size_t b = 0; b < node->iter_vars.size(); ++b)
        reused = reused || (!strided.moves(b) && extent_of(node->iter_vars[b]) != 1);
      if (!reused) continue;
      for (size_t r = 0; r < node->reads.size(); ++r)
        if (node->reads[r]->buffer.same_as(strided.buffer)) packing.read = static_cast<int64_t>(r);
      if (packing.read < 0) continue;
      return packing;
    }
    return std::nullopt;
  }

  void pack_operand(const BlockRV& block, const Packing& packing) {
    packed_operand_ = sch_.get(block)->reads[static_cast<size_t>(packing.read)]->buffer->name;
    packed_ = sch_.reindex_cache_read(block, packing.read, "global", packing.order);
  }

  /// Position of an axis by its variable.
  size_t position(const BlockRV& block, const Ref<Var>& axis) const {
    const Ref<Block> node = sch_.get(block);
    for (size_t a = 0; a < node->iter_vars.size(); ++a)
      if (node->iter_vars[a].var.same_as(axis)) return a;
    unreachable("an axis that the block does not have");
  }

  /// Position of an axis of `block` among those that are no reduction: in the epilogue.
  size_t spatial_position(const BlockRV& block, size_t axis) const {
    const Ref<Block> node = sch_.get(block);
    return static_cast<size_t>(std::count_if(
        node->iter_vars.begin(), node->iter_vars.begin() + static_cast<ptrdiff_t>(axis),
        [](const IterVar& iter) { return iter.kind == IterKind::kSpatial; }));
  }

  /// Cuts axis `axis` at block level and returns the two new axes' variables.
  std::pair<Ref<Var>, Ref<Var>> cut_axis(const BlockRV& block, const Ref<Var>& axis,
                                         int64_t factor) {
    const size_t at = position(block, axis);
    sch_.split_block_iter(block, static_cast<int64_t>(at), factor);
    const Ref<Block> node = sch_.get(block);
    return {node->iter_vars[at].var, node->iter_vars[at + 1].var};
  }

  int64_t extent(const BlockRV& block, const Ref<Var>& axis) const {
    return extent_of(sch_.get(block)->iter_vars[position(block, axis)]);
  }

  /// The plan of the next nest, where plans are given.
  const GivenNest* given_nest() const {
    if (given_.empty()) return nullptr;
    if (plans_.size() == given_.size())
      throw CompileError(kBadPlan, given_.back().origin,
                         "block `{}` has more nests than the {} of the plan", name_, given_.size());
    return &given_[plans_.size()];
  }

  void tile(const BlockRV& block, const BlockRV& epilogue, Part part = {}) {
    std::optional<size_t>& lane_axis = part.lane;
    const int64_t width = part.width;
    Ref<Block> node = sch_.get(block);
    // A loop that is cut in a nest without iterations leaves the block as it was.
    for (const IterVar& axis : node->iter_vars)
      if (is_int(axis.domain.extent, 0))
        illegal(node->origin, "axis `{}` of block `{}` has no iterations", axis.var->name,
                block.name);
    BlockAccesses accesses = accesses_of(block);
    const std::optional<Packing> packing = packing_of(block, accesses);
    if (!lane_axis) lane_axis = packing ? packing->lane : lane_of(*node, accesses);
    if (!lane_axis)
      illegal(node->origin, "no axis of block `{}` has consecutive outputs and operands",
              block.name);
    int64_t widest = accesses.store.buffer->dtype.storage().bits;
    for (const LinearAccess& load : accesses.loads)
      widest = std::max<int64_t>(widest, load.buffer->dtype.storage().bits);
    const int64_t full = target_.vector_lanes(static_cast<int>(widest));
    int64_t length = extent_of(node->iter_vars[*lane_axis]);
    const bool symbolic = length == 0;
    if (symbolic && width == 0) return tile_symbolic_lane(block, epilogue, *lane_axis, full);
    if (symbolic) length = width;
    const GivenNest* given = given_nest();
    const int64_t most = std::min<int64_t>(full, std::bit_floor(static_cast<uint64_t>(length)));
    const int64_t lanes = given ? given->lanes_up_to(most, symbolic) : most;
    if (length % lanes != 0)
      return tile_rest_apart(block, epilogue, *lane_axis, length / lanes * lanes);
    // Each of these nests has a copy of its own, which is made panel by panel.
    if (packing && lanes > 1) {
      pack_operand(block, *packing);
      node = sch_.get(block);
      accesses = accesses_of(block);
    }
    TileRoles roles = roles_of(*node, accesses, *lane_axis);
    if (outside_)
      std::erase_if(roles.m, [&](const Ref<Var>& axis) { return axis.same_as(outside_); });
    if (given && given->joins_rows && !part.joined) {
      if (*given->joins_rows && !roles.flat)
        given->misfit("joins_rows", "is true; rows of this nest do not follow each other");
      roles.flat = *given->joins_rows;
    }
    part.joined = part.joined || roles.flat;
    if (roles.flat) join_rows(block, roles);
    if (symbolic) {
      const auto [outer_lanes, inner_lanes] = cut_axis(block, roles.lane, lanes);
      roles.n.push_back(outer_lanes);
      roles.lane = inner_lanes;
    }
    if (given) {
      given->order_axes("batch", given->batch, roles.batch);
      given->order_axes("n", given->n, roles.n);
      given->order_axes("m", given->m, roles.m);
      const std::vector<Ref<Var>> by_weights = roles.k;
      given->order_axes("k", given->k, roles.k);
      if (!std::ranges::equal(roles.k, by_weights,
                              [](const auto& a, const auto& b) { return a.same_as(b); }))
        roles.joinable_k = 1;
    }
    const Ref<Block> ready = sch_.get(block);
    // A plan without another nest keeps all columns in this one.
    const bool has_next = given_.empty() || plans_.size() + 1 < given_.size();
    const bool may_leave =
        has_next && !symbolic && !packed_ && !outside_ && !grown_ && part.tasks == 0;
    TilePlan plan = plan_tiles({*ready, accesses, *lane_axis, roles, length, lanes, widest, grown_,
                                given, may_leave && roles.m.size() == 1, may_leave, part.tasks,
                                sch_.func()->attrs.flag(kFarConstants)},
                               target_);
    plan.flat = part.joined;
    if (plan.even_vectors > 0)
      return tile_apart(block, epilogue, roles, roles.n.back(), plan.even_vectors,
                        {.joined = plan.flat});
    if (plan.even_columns > 0)
      return tile_apart(block, epilogue, roles, roles.m.back(), plan.even_columns,
                        {.joined = plan.flat, .tasks = plan.tasks});
    plan.packed = packed_operand_;
    if (given) given->check_taken(plan);
    plans_.push_back(plan);
    apply(block, epilogue, std::move(roles), plan);
  }

  /// Two nests: of `main` columns, which are whole vectors, and of the rest, with fewer lanes or none.
  void tile_rest_apart(const BlockRV& block, const BlockRV& epilogue, size_t lane, int64_t main) {
    align_again(block, epilogue);
    const AllColumns all{sch_.get(block), accesses_of(block), lane};
    const auto products = cut(block, lane, {int64(main)}, true);
    const auto epilogues = cut(epilogue, lane, {int64(main)}, true);
    tile(products[0], epilogues[0], {lane});
    if (products.size() > 1 && !tile_dots(products[1], epilogues[1], all))
      tile(products[1], epilogues[1], {lane});
  }

  /// Whether a few columns were computed as dot products.
  bool tile_dots(const BlockRV& block, const BlockRV& epilogue, const AllColumns& all) {
    const GivenNest* given = given_nest();
    if (outside_ || packed_ || (given && given->algorithm.value_or("dots") != "dots")) return false;
    const auto plan = schedule_dots(sch_, block, epilogue, all, target_, options_.is_serial);
    if (!plan) return false;
    if (given) given->check_taken(*plan);
    plans_.push_back(*plan);
    return true;
  }

  /// Two nests: of the first `point` steps of an axis, of which `first` is known, and of the rest.
  void tile_apart(const BlockRV& block, const BlockRV& epilogue, const TileRoles& roles,
                  const Ref<Var>& axis, int64_t point, Part first) {
    sch_.cache_write(block, 0, "global");
    sch_.reverse_compute_inline(epilogue);
    first.lane = position(block, roles.lane);
    const size_t at = position(block, axis), after = spatial_position(block, at);
    const auto products = cut(block, at, {int64(point)}, true);
    const auto epilogues = cut(epilogue, after, {int64(point)}, true);
    if (products.size() != 2 || epilogues.size() != 2)
      illegal(sch_.get(block)->origin, "axis `{}` of block `{}` is not cut as it should",
              axis->name, block.name);
    tile(products[0], epilogues[0], first);
    tile(products[1], epilogues[1], {.lane = first.lane, .joined = first.joined});
  }

  /// A symbolic number of columns: whole vectors of them, then narrower ones.
  void tile_symbolic_lane(const BlockRV& block, const BlockRV& epilogue, size_t lane,
                          int64_t full) {
    align_again(block, epilogue);
    const Ref<Block> node = sch_.get(block);
    const std::vector<int64_t> widths = tail_sizes(full);
    const auto points = tail_points(node->iter_vars[lane].domain.extent, widths);
    const auto products = cut(block, lane, points, true);
    const auto epilogues = cut(epilogue, lane, points, true);
    if (products.size() != widths.size() || epilogues.size() != widths.size())
      illegal(node->origin, "columns of block `{}` are not cut as they should", block.name);
    for (size_t i = 0; i < widths.size(); ++i) tile(products[i], epilogues[i], {lane, widths[i]});
  }

  /// Rows of pixels that follow each other in every operand become one long row.
  void join_rows(const BlockRV& block, TileRoles& roles) {
    std::vector<Ref<Var>> order = roles.batch;
    order.insert(order.end(), roles.n.begin(), roles.n.end());
    order.insert(order.end(), roles.m.begin(), roles.m.end());
    order.push_back(roles.lane);
    order.insert(order.end(), roles.k.begin(), roles.k.end());
    if (outside_) order.insert(order.begin(), outside_);
    reorder_axes(block, order);
    const size_t first =
        (outside_ ? 1 : 0) + roles.batch.size() + roles.n.size() + roles.m.size() - 2;
    sch_.fuse_block_iters(block, static_cast<int64_t>(first), 2);
    roles.m.pop_back();
    roles.m.back() = sch_.get(block)->iter_vars[first].var;
  }

  /// At block level: columns beyond the tile, and rows in tasks, become axes of their own; then the
  /// loops of each piece are built.
  void apply(const BlockRV& block, const BlockRV& epilogue, TileRoles roles, const TilePlan& plan) {
    const Tile& tile = plan.tile();
    std::vector<Ref<Var>>& n = roles.n;
    Ref<Var> column;  // axis of the tile's vectors where they are not along the lane
    if (plan.vectors_along_lane) {
      if (plan.lane.extent > tile.vectors * plan.lanes) {
        const auto [outer, inner] = cut_axis(block, roles.lane, tile.vectors * plan.lanes);
        n.push_back(outer);
        roles.lane = inner;
      }
    } else if (!n.empty() && tile.vectors > 1) {
      column = n.back();
      n.pop_back();
      if (extent(block, column) != tile.vectors) {
        const auto [outer, inner] = cut_axis(block, column, tile.vectors);
        n.push_back(outer);
        column = inner;
      }
    }
    std::vector<Ref<Var>> rest = roles.m;
    Ref<Var> columns_axis, rows_axis, task;
    if (!rest.empty()) {
      columns_axis = rest.back();
      rest.pop_back();
    }
    if (!rest.empty() && !plan.flat) {
      rows_axis = rest.back();
      rest.pop_back();
    }
    if (plan.tasks_of != TilePlan::Tasks::kNone) {
      Ref<Var>& axis = plan.tasks_of == TilePlan::Tasks::kRows ? rows_axis : columns_axis;
      const auto [tasks, inner] = cut_axis(block, axis, extent(block, axis) / plan.tasks);
      task = tasks;
      axis = inner;
    }

    std::vector<Ref<Var>> order = roles.batch;
    if (outside_) order.insert(order.begin(), outside_);
    if (task && plan.tasks_outside) order.insert(order.begin() + (outside_ ? 1 : 0), task);
    order.insert(order.end(), rest.begin(), rest.end());
    order.insert(order.end(), n.begin(), n.end());
    if (task && !plan.tasks_outside) order.push_back(task);
    Layout layout(plan);
    layout.outer = order.size();
    size_t next = layout.outer;
    const auto place = [&](const Ref<Var>& axis) {
      if (!axis) return std::optional<size_t>();
      order.push_back(axis);
      return std::optional(next++);
    };
    layout.rows = place(rows_axis);
    layout.columns = place(columns_axis);
    layout.column = place(column);
    layout.lane = *place(roles.lane);
    layout.k_first = next;
    order.insert(order.end(), roles.k.begin(), roles.k.end());
    reorder_axes(block, order);

    // The epilogue over the same axes, then cut in pieces of one tile size each.
    sch_.cache_write(block, 0, "global");
    sch_.reverse_compute_inline(epilogue);
    // A last panel that is not full.
    std::vector<std::pair<BlockRV, BlockRV>> parts{{block, epilogue}};
    if (!is_int(sch_.realize(epilogue)->predicate, 1)) parts = cut_panels(block, epilogue, layout);
    for (const auto& [product, after] : parts) build(product, after, layout);
  }

  /// Where the axes of a plan stand in the block.
  struct Layout {
    explicit Layout(const TilePlan& of) : plan(of) {}
    const TilePlan& plan;
    size_t outer = 0;
    std::optional<size_t> rows, columns, column;
    size_t lane = 0, k_first = 0;
  };

  void reorder_axes(const BlockRV& block, const std::vector<Ref<Var>>& axes) {
    std::vector<int64_t> order;
    for (const Ref<Var>& axis : axes) order.push_back(static_cast<int64_t>(position(block, axis)));
    sch_.reorder_block_iters(block, order);
  }

  /// Sizes of the pieces that cover a length known only at run time: the tile's own as often as it
  /// fits, the model's remainder, one. Each divides the one before it.
  std::vector<int64_t> tail_sizes(int64_t tile) const {
    const int64_t rest = model_.remainder;
    std::vector<int64_t> sizes;
    if (tile > 2) sizes.push_back(tile);
    if (tile > rest && tile % rest == 0) sizes.push_back(rest);
    sizes.push_back(1);
    return sizes;
  }

  /// Where a length is cut for these pieces.
  static std::vector<Expr> tail_points(const Expr& length, const std::vector<int64_t>& sizes) {
    std::vector<Expr> points;
    arith::Analyzer analyzer;
    for (size_t i = 0; i + 1 < sizes.size(); ++i) {
      Expr point = analyzer.simplify(floordiv(length, sizes[i]) * sizes[i]);
      // Of a multiple such as 3 * n the quotients cancel, by which one sees that points grow: then the
      // rest is cut, which comes to the same.
      if (!points.empty() && !analyzer.proves_less_equal(points.back(), point)) {
        const Expr rest = analyzer.simplify(length - points.back());
        point = analyzer.simplify(points.back() + floordiv(rest, sizes[i]) * sizes[i]);
      }
      points.push_back(point);
    }
    return points;
  }

  /// Cuts the loop of an axis of `block` at `points`, at the outside of its nest or where it is.
  std::vector<BlockRV> cut(const BlockRV& block, size_t axis, const std::vector<Expr>& points,
                           bool outermost) {
    // What is stored at the end may have axes of its own.
    if (const Ref<Block> node = sch_.get(block); axis >= node->iter_vars.size())
      illegal(node->origin, "block `{}` has no axis {} to cut", block.name, axis);
    auto loop = loop_of_axis(sch_, block, axis);
    if (!loop) return {block};
    if (outermost) {
      std::vector<LoopRV> loops = sch_.get_loops(block);
      std::vector<LoopRV> order{*loop};
      for (const LoopRV& other : loops)
        if (!(other == *loop)) order.push_back(other);
      sch_.reorder(order);
    }
    std::vector<BlockRV> out;
    for (const LoopRV& part : sch_.loop_partition(*loop, points)) {
      const Path path = find_loop(sch_.func()->body, part.var.get());
      if (!path) continue;  // nothing was left of it
      for (const auto& realize : realizes_in(path.target())) out.push_back({realize->block->name});
    }
    return out;
  }

  /// The panels that are full, and the last one, which is not: the epilogue's predicate says where
  /// it ends.
  std::vector<std::pair<BlockRV, BlockRV>> cut_panels(const BlockRV& block, const BlockRV& epilogue,
                                                      const Layout& layout) {
    const Ref<BlockRealize> realize = sch_.realize(epilogue);
    // The axis of panels is the last of the outer ones that the predicate names.
    for (size_t a = layout.outer; a-- > 0;) {
      const auto loop = loop_of_axis(sch_, epilogue, a);
      if (!loop || !uses_var(realize->predicate, loop->var.get())) continue;
      const int64_t panels = extent_of(realize->block->iter_vars[a]);
      if (panels < 2) continue;
      const auto products = cut(block, a, {int64(panels - 1)}, true);
      const auto epilogues = cut(epilogue, a, {int64(panels - 1)}, true);
      if (products.size() != 2 || epilogues.size() != 2) break;
      shrink(epilogues[1], layout);
      return {{products[0], epilogues[0]}, {products[1], epilogues[1]}};
    }
    shrink(epilogue, layout);
    return {{block, epilogue}};
  }

  /// Cuts the lanes of an epilogue that runs under a predicate down to those that it lets through.
  void shrink(const BlockRV& epilogue, const Layout& layout) {
    for (const size_t axis : {layout.lane, layout.column.value_or(layout.lane)}) {
      const Ref<BlockRealize> realize = sch_.realize(epilogue);
      if (is_int(realize->predicate, 1)) return;
      const auto loop = loop_of_axis(sch_, epilogue, axis);
      if (!loop) continue;
      const int64_t count = as_int(sch_.get(*loop)->extent).value_or(0);
      // The first iteration where it does not hold, whatever the other loops do.
      arith::Analyzer analyzer;
      bind_path(find_block(sch_.func()->body, epilogue.name), analyzer);
      int64_t good = count;
      for (int64_t i = 0; i < count; ++i) {
        const Expr held = analyzer.simplify(
            substitute(realize->predicate, {{loop->var.get(), imm(loop->var->dtype, i)}}));
        if (is_int(held, 1)) continue;
        good = i;
        break;
      }
      if (good > 0 && good < count) cut(epilogue, axis, {int64(good)}, true);
    }
  }

  void build(const BlockRV& block, const BlockRV& epilogue, const Layout& layout) {
    std::vector<LoopRV> outer;
    for (size_t a = 0; a < layout.outer; ++a)
      if (const auto loop = loop_of_axis(sch_, block, a)) outer.push_back(*loop);
    // After a cut the loop of an outer axis may stand elsewhere; the rest keeps its order.
    std::vector<LoopRV> order = outer;
    for (const LoopRV& loop : sch_.get_loops(block))
      if (std::find(order.begin(), order.end(), loop) == order.end()) order.push_back(loop);
    if (order.size() > 1) sch_.reorder(order);
    if (outside_) outer.erase(outer.begin());
    std::optional<LoopRV> parallel;
    if (!outer.empty()) {
      parallel = sch_.fuse(outer);
      LoopRV tasks = *parallel;
      if (layout.plan.task_panels > 1) {
        const auto parts = sch_.split(*parallel, layout.plan.task_panels);
        tasks = parts[0];
        parallel = parts[1];
      }
      if (!options_.is_serial && !is_int(sch_.get(tasks)->extent, 1)) sch_.parallel(tasks);
      if (packed_ && sch_.has_block(packed_->name)) {
        const BlockRV copy = *packed_;
        packed_.reset();
        if (attempt(sch_, [&] { sch_.compute_at(copy, *parallel); }))
          attempt(sch_, [&] {
            schedule_transpose(sch_, copy, target_, {.joins = false, .inside = parallel});
          });
        else
          alone_.push_back(copy);
      }
    }
    if (packed_) alone_.push_back(*packed_);
    packed_.reset();
    // Pieces of rows, then of columns.
    struct Piece {
      BlockRV block, epilogue;
      int64_t rows, cols;
    };
    std::vector<Piece> pieces{{block, epilogue, 1, 1}};
    const auto divide = [&](std::optional<size_t> axis, int64_t tile, bool rows) {
      if (!axis) return;
      std::vector<Piece> next;
      for (const Piece& piece : pieces) {
        const IterVar iter = sch_.get(piece.block)->iter_vars[*axis];
        const int64_t n = extent_of(iter);
        std::vector<Expr> points;
        std::vector<int64_t> sizes;
        if (n == 0) {
          sizes = tail_sizes(tile);
          points = tail_points(iter.domain.extent, sizes);
        } else {
          int64_t at = 0;
          for (const auto& [size, count] : balanced_parts(n, tile)) {
            at += size * count;
            sizes.push_back(size);
            if (at < n) points.push_back(int64(at));
          }
        }
        std::vector<BlockRV> blocks{piece.block}, epilogues{piece.epilogue};
        if (!points.empty()) {
          blocks = cut(piece.block, *axis, points, false);
          epilogues = cut(piece.epilogue, *axis, points, true);
        }
        for (size_t i = 0; i < blocks.size(); ++i) {
          Piece made{blocks[i], epilogues.at(i), piece.rows, piece.cols};
          (rows ? made.rows : made.cols) = sizes.at(i);
          next.push_back(made);
        }
      }
      pieces = std::move(next);
    };
    divide(layout.rows, layout.plan.tile().rows, true);
    // Rows of a tile go inside the columns' loop, so that each piece of that has its own.
    for (const Piece& piece : pieces) {
      const auto rows = layout.rows ? loop_of_axis(sch_, piece.block, *layout.rows) : std::nullopt;
      if (!rows || piece.rows == 1) continue;
      const auto parts = sch_.split(*rows, piece.rows);
      const auto columns =
          layout.columns ? loop_of_axis(sch_, piece.block, *layout.columns) : std::nullopt;
      if (columns) sch_.reorder({parts[0], *columns, parts[1]});
    }
    divide(layout.columns, layout.plan.tile().cols, false);
    // Tiles of each piece that share out what is fetched meanwhile.
    const auto tiles_of = [&](const Piece& piece) {
      const std::vector<IterVar>& axes = sch_.get(piece.block)->iter_vars;
      const int64_t rows = layout.rows ? extent_of(axes[*layout.rows]) / piece.rows : 1;
      return std::max(rows, layout.columns ? extent_of(axes[*layout.columns]) / piece.cols : 1);
    };
    Passes passes;
    for (const Piece& piece : pieces) {
      passes.all += tiles_of(piece);
      passes.sums = std::max(passes.sums, piece.rows * piece.cols * layout.plan.tile().vectors);
    }
    for (const Piece& piece : pieces) {
      const int64_t tiles = tiles_of(piece);
      emit(piece.block, piece.epilogue, piece.rows, piece.cols, layout, parallel, passes);
      passes.before += tiles;
    }
  }

  /// Tiles that read one panel, in pieces before the one at hand and in all, and results of the largest.
  struct Passes {
    int64_t before = 0, all = 0, sums = 1;
  };

  /// One piece: loops over tiles, the reduction, the tile in registers, its epilogue.
  void emit(const BlockRV& block, const BlockRV& epilogue, int64_t rows, int64_t cols,
            const Layout& layout, const std::optional<LoopRV>& parallel, const Passes& passes) {
    std::vector<LoopRV> tiles, reduction, registers;
    std::optional<LoopRV> row_tiles;
    const auto divide = [&](std::optional<size_t> axis, int64_t size) {
      if (!axis) return;
      const auto loop = loop_of_axis(sch_, block, *axis);
      if (!loop) return;
      const auto parts = sch_.split(*loop, size);
      tiles.push_back(parts[0]);
      if (size > 1) registers.push_back(parts[1]);
    };
    if (layout.rows)
      if (const auto loop = loop_of_axis(sch_, block, *layout.rows)) {
        if (rows > 1) registers.push_back(*loop);
        // The loop over tiles of rows is around already; others may share it.
        for (const LoopRV& around : sch_.get_loops(block)) {
          if (around == *loop && rows > 1) continue;
          if (uses_var(sch_.realize(block)->iter_values[*layout.rows], around.var.get()) &&
              !(parallel && around == *parallel))
            row_tiles = around;
        }
      }
    divide(layout.columns, cols);
    if (layout.column)
      if (const auto loop = loop_of_axis(sch_, block, *layout.column)) registers.push_back(*loop);
    std::optional<LoopRV> lane = loop_of_axis(sch_, block, layout.lane);
    const int64_t lanes = layout.plan.lanes;
    if (lane && lanes > 1) {
      const auto vectors = sch_.split(*lane, lanes);
      registers.push_back(vectors[0]);
      lane = vectors[1];
    }
    int64_t accumulators = 1;
    for (const LoopRV& loop : registers) accumulators *= *as_int(sch_.get(loop)->extent);
    const size_t axes = sch_.get(block)->iter_vars.size();
    for (size_t a = layout.k_first; a < axes; ++a)
      if (const auto loop = loop_of_axis(sch_, block, a)) reduction.push_back(*loop);
    const bool has_last = loop_of_axis(sch_, block, axes - 1).has_value();
    if (layout.plan.joined_k > 1) {
      check(reduction.size() >= layout.plan.joined_k, "axes of several steps have loops");
      const auto first = reduction.end() - static_cast<ptrdiff_t>(layout.plan.joined_k);
      const std::vector<LoopRV> joined(first, reduction.end());
      reduction.erase(first, reduction.end());
      reduction.push_back(sch_.fuse(joined));
    }
    std::optional<LoopRV> unrolled;
    if (has_last) {
      const int64_t n = as_int(sch_.get(reduction.back())->extent).value_or(0);
      // Pieces that share out the lines of a step take steps of one length.
      const int64_t sums = layout.plan.prefetches ? passes.sums : accumulators;
      const int64_t steps = unrolled_steps(n, sums, layout.plan.unrolled_fmas, model_);
      if (steps > 1) {
        const auto parts = sch_.split(reduction.back(), steps);
        reduction.back() = parts[0];
        unrolled = parts[1];
      }
    }
    if (reduction.empty())
      illegal(sch_.get(block)->origin, "the reduction of block `{}` has no loop", block.name);
    std::vector<LoopRV> order = tiles;
    order.insert(order.end(), reduction.begin(), reduction.end());
    if (unrolled) order.push_back(*unrolled);
    order.insert(order.end(), registers.begin(), registers.end());
    if (lane) order.push_back(*lane);
    std::optional<LoopRV> single;
    if (tiles.empty() && !row_tiles && !parallel) {
      single = sch_.add_unit_loop(block);
      order.insert(order.begin(), *single);
    }
    sch_.reorder(order);
    // The accumulators, and what becomes of them where the tile is done.
    sch_.cache_write(block, 0, "local");
    sch_.reverse_compute_inline(epilogue);
    std::optional<LoopRV> at = row_tiles ? row_tiles : parallel;
    if (!tiles.empty()) at = tiles.back();
    if (!at) at = single;  // a loop of one iteration to be in
    sch_.reverse_compute_at(epilogue, *at);
    if (lane && lanes > 1) sch_.vectorize(*lane);
    for (const LoopRV& loop : registers) sch_.unroll(loop);
    if (unrolled) sch_.unroll(*unrolled);
    sch_.decompose_reduction(block, reduction.front());
    const int64_t row_tasks = layout.plan.tasks_share_panels() ? layout.plan.tasks : 1;
    if (layout.plan.fetches_columns && unrolled && reduction.size() > 1)
      prefetch_columns(sch_, block, {reduction.back(), reduction.end()[-2], registers}, target_);
    if (parallel && !tiles.empty() && layout.plan.prefetches)
      prefetch_weights(sch_, block,
                       {reduction, unrolled, *parallel, layout.plan.panel_distance, row_tasks,
                        tiles.back(), row_tiles, accumulators, passes.before, passes.all},
                       target_);
    finish_epilogue(epilogue, *at, layout);
  }

  /// Loops of the epilogue inside the tile: lanes in vectors, the others unrolled. Functions are computed
  /// for several vectors side by side.
  void finish_epilogue(const BlockRV& epilogue, const LoopRV& at, const Layout& layout) {
    const auto lane = loop_of_axis(sch_, epilogue, layout.lane);
    const std::vector<LoopRV> loops = sch_.get_loops(epilogue);
    const int64_t vectors = is_cheap(*sch_.get(epilogue)) ? 1 : model_.interleaved_vectors;
    size_t inside = 0;
    while (inside < loops.size() && !(loops[inside] == at)) ++inside;
    for (size_t i = inside + 1; i < loops.size(); ++i) {
      const auto count = as_int(sch_.get(loops[i])->extent);
      if (!count) continue;
      if (lane && loops[i] == *lane) {
        vectorize_lanes(loops[i], *count,
                        layout.plan.lanes * widest_divisor(*count / layout.plan.lanes, vectors));
      } else if (*count <= model_.unrolled_iterations) {
        sch_.unroll(loops[i]);
      }
    }
  }

  void vectorize_lanes(const LoopRV& loop, int64_t count, int64_t lanes) {
    const int64_t width =
        count % lanes == 0
            ? lanes
            : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::min(count, lanes))));
    if (width < 2) return;
    if (count % width == 0) {
      const auto parts = sch_.split(loop, width);
      sch_.vectorize(parts[1]);
      sch_.unroll(parts[0]);
      return;
    }
    const int64_t main = count / lanes * lanes;
    if (main > 0) {
      const auto parts = sch_.loop_partition(loop, {int64(main)});
      vectorize_lanes(parts[0], main, lanes);
      vectorize_lanes(parts[1], count - main, lanes);
      return;
    }
    const auto parts = sch_.loop_partition(loop, {int64(width)});
    vectorize_lanes(parts[0], width, width);
    vectorize_lanes(parts[1], count - width, lanes);
  }

  Schedule& sch_;
  const Target& target_;
  const MachineModel& model_;
  std::span<const GivenNest> given_;  // of all nests, where there is one
  TileOptions options_;
  Ref<Var> outside_;  // an axis whose loop is around everything; null: none
  std::string name_;  // of the block; nests have names of their own
  std::optional<BlockRV> packed_;
  std::vector<BlockRV> alone_;  // copies that stay in front of their nests
  std::string packed_operand_;  // of which `packed_` is the copy
  bool grown_ = false;          // the last panel of columns is not full
  std::vector<TilePlan> plans_;
};

}  // namespace

std::vector<TilePlan> schedule_tiles(Schedule& schedule, const BlockRV& block, const Target& target,
                                     std::span<const GivenNest> given, const TileOptions& options) {
  return Tiler(schedule, target, given, options).run(block);
}

}  // namespace tenon::tir
