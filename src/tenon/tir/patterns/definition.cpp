// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/patterns/definition.h"

#include <algorithm>

#include "tenon/arith/iter_map.h"
#include "tenon/tir/analysis/combiner.h"

namespace tenon::tir {

bool is_arithmetic(const Expr& expr) {
  if (!expr->dtype.is_integer() || expr->dtype.is_bool() || !expr->dtype.is_scalar()) return false;
  bool plain = true;
  walk_if(expr, [&](const NodePtr& node) {
    if (node.as<BufferLoad>() || node.as<Call>() || node.as<Let>()) plain = false;
    return plain && !node.as<Var>();
  });
  return plain;
}

bool Definition::reads_itself() const {
  if (init) return false;
  bool reads = false;
  walk<BufferLoad>(value, [&](const BufferLoad& load) { reads |= load.buffer.same_as(buffer); });
  return reads;
}

namespace {

// Loop iterations that are counted one by one, at most.
constexpr int64_t kMostCounted = 1 << 14;

struct NoDefinition {
  std::string why;
};

template <typename... Args>
[[noreturn]] void none(fmt::format_string<Args...> format, Args&&... args) {
  throw NoDefinition{fmt::format(format, std::forward<Args>(args)...)};
}

Expr zero_like(const Expr& expr) { return imm(expr->dtype, int64_t{0}); }

class Normaliser {
 public:
  Normaliser(const Path& path, AxesOf axes) : realize_(*path.target().as<BlockRealize>()) {
    const Block& block = *realize_.block;
    name_ = block.name;
    const auto* store = block.body.as<BufferStore>();
    if (!store) none("block `{}` is something else than one store", name_);
    if (!block.alloc_buffers.empty() || !block.match_buffers.empty())
      none("block `{}` has buffers of its own", name_);
    if (!store->value->dtype.is_scalar()) none("block `{}` stores vectors", name_);
    check_loops(path, axes);
    out_.buffer = store->buffer;
    out_.place = store->indices;
    out_.value = store->value;
    for (const IterVar& iter : block.iter_vars) {
      if (iter.kind != IterKind::kSpatial && iter.kind != IterKind::kReduce)
        none("axis `{}` of block `{}` is neither spatial nor a reduction", iter.var->name, name_);
      out_.axes.push_back({iter.var, iter.domain.extent, iter.kind});
    }
    if (block.init) {
      const auto* start = block.init.as<BufferStore>();
      if (!start || !start->buffer.same_as(store->buffer) || !same_place(start->indices))
        none("the init of block `{}` is something else than one store where its body stores",
             name_);
      out_.init = start->value;
    }
    check_order(*store);
    if (axes == AxesOf::kBlock) {
      start_at_zero(block);
    } else {
      run_by_loops(loops_of(path));
    }
    by_place();
    by_reads();
    drop_units();
  }

  Definition take() { return std::move(out_); }

 private:
  void check_loops(const Path& path, AxesOf axes) {
    for (size_t i = 0; i + 1 < path.stmts.size(); ++i) {
      const Stmt& stmt = path.stmts[i];
      const auto* outer = stmt.as<BlockRealize>();
      const bool is_root = outer && outer->block->iter_vars.empty() && is_int(outer->predicate, 1);
      if (!is_root && !stmt.as<For>() && !stmt.as<Seq>())
        none("block `{}` stands inside a branch, another block, or a loop without a range", name_);
    }
    std::vector<arith::Iterator> loops;
    arith::Analyzer analyzer;
    for (const Ref<For>& loop : loops_of(path)) {
      if (loop->kind == ForKind::kThreadBinding)
        none("loop `{}` around block `{}` is bound to threads", loop->loop_var->name, name_);
      loops.push_back({loop->loop_var, loop->min, loop->extent});
      analyzer.bind(loop->loop_var, loop->min, loop->extent);
    }
    std::vector<Expr> values;
    for (const Expr& value : realize_.iter_values) values.push_back(analyzer.simplify(value));
    const Expr predicate = absorb(realize_.predicate, loops, values, analyzer);
    if (is_int(predicate, 1)) fuse_quotients(loops, values, analyzer);
    if (axes == AxesOf::kLoops && !is_int(predicate, 1))
      none("block `{}` runs under a predicate", name_);
    const auto map = arith::detect_iter_map(
        analyzer, values, loops,
        axes == AxesOf::kBlock ? arith::MapKind::kBijective : arith::MapKind::kInjective,
        predicate);
    const auto& iters = realize_.block->iter_vars;
    bool covers = map.has_value();
    for (size_t a = 0; axes == AxesOf::kBlock && covers && a < iters.size(); ++a)
      covers = analyzer.proves_equal(map->min[a], iters[a].domain.min) &&
               analyzer.proves_equal(map->extent[a], iters[a].domain.extent);
    if (!covers && axes == AxesOf::kBlock) covers = enumerates(loops_of(path));
    if (!covers)
      none("the loops around block `{}` are not seen to run each of its instances once", name_);
  }

  // Whether a few loops are seen to do so by counting: for what was cut up so often that arithmetic
  // does not see through it.
  bool enumerates(const std::vector<Ref<For>>& loops) const {
    int64_t runs = 1, instances = 1;
    for (const Ref<For>& loop : loops) {
      const auto extent = as_int(loop->extent);
      if (!extent || !as_int(loop->min)) return false;
      runs *= *extent;
      if (runs < 1 || runs > kMostCounted) return false;
    }
    for (const IterVar& iter : realize_.block->iter_vars) {
      const auto extent = as_int(iter.domain.extent);
      if (!extent || !as_int(iter.domain.min)) return false;
      instances *= *extent;
      if (instances < 1 || instances > runs) return false;
    }
    std::vector<bool> seen(static_cast<size_t>(instances), false);
    std::unordered_map<const Node*, int64_t> values;
    int64_t count = 0;
    for (int64_t run = 0; run < runs; ++run) {
      int64_t rest = run;
      for (const Ref<For>& loop : loops) {
        values[loop->loop_var.get()] = *as_int(loop->min) + rest % *as_int(loop->extent);
        rest /= *as_int(loop->extent);
      }
      const auto runs_here = value_of(realize_.predicate, values);
      if (!runs_here) return false;
      if (!*runs_here) continue;
      int64_t place = 0;
      for (size_t a = 0; a < realize_.iter_values.size(); ++a) {
        const Range& domain = realize_.block->iter_vars[a].domain;
        const auto value = value_of(realize_.iter_values[a], values);
        if (!value) return false;
        const int64_t at = *value - *as_int(domain.min), extent = *as_int(domain.extent);
        if (at < 0 || at >= extent) return false;
        place = place * extent + at;
      }
      if (seen[static_cast<size_t>(place)]) return false;
      seen[static_cast<size_t>(place)] = true;
      ++count;
    }
    return count == instances;
  }

  static std::optional<int64_t> value_of(const Expr& expr,
                                         const std::unordered_map<const Node*, int64_t>& values) {
    if (const auto number = as_int(expr)) return number;
    if (expr.as<Var>()) {
      const auto it = values.find(expr.get());
      return it == values.end() ? std::nullopt : std::optional(it->second);
    }
    if (const auto* conversion = expr.as<Cast>()) return value_of(conversion->value, values);
    const auto* op = expr.as<Binary>();
    if (!op || !op->lhs->dtype.is_scalar() || op->lhs->dtype.is_float()) return std::nullopt;
    const auto a = value_of(op->lhs, values), b = value_of(op->rhs, values);
    return a && b ? fold_int(op->op, op->lhs->dtype, *a, *b) : std::nullopt;
  }

  // A condition `part < limit`, where `part` is loops fused, is one loop that ends there. Returns
  // what of the predicate is left.
  static Expr absorb(const Expr& predicate, std::vector<arith::Iterator>& loops,
                     std::vector<Expr>& values, arith::Analyzer& analyzer) {
    std::vector<Expr> open = conjuncts(analyzer.simplify(predicate));
    for (size_t i = 0; i < open.size();) {
      if (!absorb_one(open[i], loops, values, open, analyzer)) {
        ++i;
        continue;
      }
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
      i = 0;
    }
    Expr left = boolean(true);
    for (const Expr& condition : open) left = logical_and(left, condition);
    return analyzer.simplify(left);
  }

  static bool absorb_one(const Expr& condition, std::vector<arith::Iterator>& loops,
                         std::vector<Expr>& values, std::vector<Expr>& open,
                         arith::Analyzer& analyzer) {
    const auto* op = condition.as<Binary>();
    if (!op || !is_comparison(op->op) || !is_arithmetic(op->lhs)) return false;
    const bool down = op->op == BinaryOp::kGT || op->op == BinaryOp::kGE;
    if (!down && op->op != BinaryOp::kLT && op->op != BinaryOp::kLE) return false;
    const bool strict = op->op == BinaryOp::kLT || op->op == BinaryOp::kGT;
    // part - limit < 0
    const Expr below = down ? op->rhs - op->lhs : op->lhs - op->rhs;
    Substitution still;
    for (const arith::Iterator& loop : loops) still[loop.var.get()] = loop.min;
    const Expr rest = analyzer.simplify(substitute(below, still));
    Expr limit = zero_like(rest) - rest;
    if (!strict) limit = limit + 1;
    Expr part = analyzer.simplify(below - rest);
    // x // c < limit is x < limit * c.
    for (const Binary* quotient = part.as<Binary>();
         quotient && quotient->op == BinaryOp::kFloorDiv && as_int(quotient->rhs) > 0;
         quotient = part.as<Binary>()) {
      limit = limit * quotient->rhs;
      part = quotient->lhs;
    }
    return fuse(part, limit, loops, values, open, analyzer);
  }

  // Puts one loop in the place of those that `part` fuses; up to `limit`, where that is not null.
  static bool fuse(const Expr& part, const Expr& limit, std::vector<arith::Iterator>& loops,
                   std::vector<Expr>& values, std::vector<Expr>& open, arith::Analyzer& analyzer) {
    std::vector<arith::Iterator> fused, others;
    for (const arith::Iterator& loop : loops)
      (uses_var(part, loop.var.get()) ? fused : others).push_back(loop);
    const auto map = arith::detect_iter_map(analyzer, std::vector{part}, fused);
    if (fused.empty() || !map || !is_int(map->min[0], 0)) return false;
    const Ref<Var> one = var("f", part->dtype);
    const arith::Iterator loop{
        one, zero_like(one),
        limit ? analyzer.simplify(min(limit, map->extent[0])) : map->extent[0]};
    if (!analyzer.proves_positive(loop.extent)) return false;
    analyzer.bind(one, loop.min, loop.extent);
    const std::vector<Expr> inverse = map->invert(analyzer, std::vector<Expr>{one});
    Substitution by_one;
    for (size_t i = 0; i < fused.size(); ++i) by_one[fused[i].var.get()] = inverse[i];
    others.push_back(loop);
    loops = std::move(others);
    for (Expr& value : values) value = analyzer.simplify(substitute(value, by_one));
    for (Expr& other : open) other = analyzer.simplify(substitute(other, by_one));
    return true;
  }

  // A quotient or remainder of several loops is one of a single loop.
  static void fuse_quotients(std::vector<arith::Iterator>& loops, std::vector<Expr>& values,
                             arith::Analyzer& analyzer) {
    for (bool changed = true; changed;) {
      changed = false;
      std::vector<Expr> sums;
      for (const Expr& value : values)
        walk<Binary>(value, [&](const Binary& op) {
          if (op.op != BinaryOp::kFloorDiv && op.op != BinaryOp::kFloorMod) return;
          const auto used = std::count_if(
              loops.begin(), loops.end(),
              [&](const arith::Iterator& loop) { return uses_var(op.lhs, loop.var.get()); });
          if (used > 1) sums.push_back(op.lhs);
        });
      std::vector<Expr> none;
      for (const Expr& sum : sums)
        if (!changed) changed = fuse(sum, {}, loops, values, none, analyzer);
    }
  }

  bool same_place(const std::vector<Expr>& place) const {
    return arith::proves_equal(place, out_.place);
  }

  // What a reduction adds up may come in any order; all else is there at once.
  void check_order(const BufferStore& store) const {
    bool reads = false;
    walk<BufferLoad>(store.value, [&](const BufferLoad& load) {
      if (!load.buffer.same_as(store.buffer)) return;
      reads = true;
      if (!same_place(load.indices))
        none("block `{}` reads what other instances of it store", name_);
    });
    const bool reduces = std::any_of(out_.axes.begin(), out_.axes.end(), [](const auto& axis) {
      return axis.kind == IterKind::kReduce;
    });
    if (out_.init && !reads) none("block `{}` starts a reduction and does not add to it", name_);
    if (reduces && !combiner_of(store))
      none("block `{}` joins by something else than +, *, min or max", name_);
  }

  void substitute_all(const Substitution& values, arith::Analyzer& analyzer) {
    const auto map = [&](const Expr& expr) {
      const Expr next = substitute(expr, values);
      return rewrite(next, [&](const NodePtr& node) -> std::optional<NodePtr> {
        const Expr inner = cast<ExprNode>(node);
        if (!inner || !is_arithmetic(inner) || inner.as<IntImm>()) return std::nullopt;
        return NodePtr(analyzer.simplify(inner));
      });
    };
    for (Expr& index : out_.place) index = map(index);
    if (out_.init) out_.init = map(out_.init);
    out_.value = map(out_.value);
  }

  void bind_axes(arith::Analyzer& analyzer) const {
    for (const Definition::Axis& axis : out_.axes)
      analyzer.bind(axis.var, zero_like(axis.var), axis.extent);
  }

  void start_at_zero(const Block& block) {
    Substitution values;
    for (size_t a = 0; a < out_.axes.size(); ++a) {
      const Range& domain = block.iter_vars[a].domain;
      Ref<Var>& axis = out_.axes[a].var;
      if (is_int(domain.min, 0)) continue;
      const Ref<Var> fresh = var(axis->name, axis->dtype);
      values[axis.get()] = domain.min + Expr(fresh);
      axis = fresh;
    }
    arith::Analyzer analyzer;
    bind_axes(analyzer);
    substitute_all(values, analyzer);
  }

  // The loops in the place of the block's axes.
  void run_by_loops(const std::vector<Ref<For>>& loops) {
    const Block& block = *realize_.block;
    Substitution values, starts;
    out_.axes.clear();
    for (const Ref<For>& loop : loops) {
      bool spatial = false, reduces = false;
      for (size_t a = 0; a < block.iter_vars.size(); ++a)
        if (uses_var(realize_.iter_values[a], loop->loop_var.get()))
          (block.iter_vars[a].kind == IterKind::kReduce ? reduces : spatial) = true;
      if (spatial && reduces)
        none("loop `{}` carries spatial and reduction axes of block `{}`", loop->loop_var->name,
             name_);
      const Ref<Var> axis = var(loop->loop_var->name, loop->loop_var->dtype);
      starts[loop->loop_var.get()] = loop->min + Expr(axis);
      out_.axes.push_back({axis, loop->extent, reduces ? IterKind::kReduce : IterKind::kSpatial});
    }
    for (size_t a = 0; a < block.iter_vars.size(); ++a)
      values[block.iter_vars[a].var.get()] = substitute(realize_.iter_values[a], starts);
    arith::Analyzer analyzer;
    bind_axes(analyzer);
    substitute_all(values, analyzer);
  }

  std::vector<arith::Iterator> iterators(IterKind kind) const {
    std::vector<arith::Iterator> out;
    for (const Definition::Axis& axis : out_.axes)
      if (axis.kind == kind) out.push_back({axis.var, zero_like(axis.var), axis.extent});
    return out;
  }

  // Replaces the axes of `kind` by those that `indices` see, where that is one to one.
  bool replace_axes(IterKind kind, const std::vector<Expr>& indices) {
    const std::vector<arith::Iterator> old = iterators(kind);
    arith::Analyzer analyzer;
    bind_axes(analyzer);
    const auto map = arith::detect_iter_map(analyzer, indices, old);
    if (!map) return false;
    std::vector<Definition::Axis> axes;
    std::vector<Expr> values;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (is_int(map->extent[i], 1)) {
        values.push_back(map->min[i]);
        continue;
      }
      const Ref<Var> axis =
          var(fmt::format("{}{}", kind == IterKind::kSpatial ? "i" : "k", i), indices[i]->dtype);
      axes.push_back({axis, map->extent[i], kind});
      values.push_back(map->min[i] + Expr(axis));
    }
    Substitution inverse;
    const std::vector<Expr> back = map->invert(analyzer, values);
    for (size_t i = 0; i < old.size(); ++i) inverse[old[i].var.get()] = back[i];
    std::erase_if(out_.axes, [&](const Definition::Axis& axis) { return axis.kind == kind; });
    out_.axes.insert(kind == IterKind::kSpatial ? out_.axes.begin() : out_.axes.end(), axes.begin(),
                     axes.end());
    bind_axes(analyzer);
    substitute_all(inverse, analyzer);
    return true;
  }

  // Each axis that is no single point stands alone in some index.
  static bool stand_alone(const std::vector<arith::Iterator>& axes,
                          const std::vector<Expr>& indices) {
    return std::all_of(axes.begin(), axes.end(), [&](const arith::Iterator& axis) {
      return is_int(axis.extent, 1) || std::any_of(indices.begin(), indices.end(),
                                                   [&](auto& i) { return i.same_as(axis.var); });
    });
  }

  void by_place() {
    const std::vector<arith::Iterator> axes = iterators(IterKind::kSpatial);
    if (stand_alone(axes, out_.place)) return;
    if (replace_axes(IterKind::kSpatial, out_.place)) return;
    arith::Analyzer analyzer;
    bind_axes(analyzer);
    if (!arith::detect_iter_map(analyzer, out_.place, axes, arith::MapKind::kInjective))
      none("block `{}` is not seen to store each place once", name_);
  }

  void by_reads() {
    const std::vector<arith::Iterator> axes = iterators(IterKind::kReduce);
    if (axes.empty()) return;
    // What indices see of the reduction, where the spatial axes stand still.
    Substitution still;
    for (const Definition::Axis& axis : out_.axes)
      if (axis.kind == IterKind::kSpatial) still[axis.var.get()] = zero_like(axis.var);
    arith::Analyzer analyzer;
    bind_axes(analyzer);
    std::vector<Expr> parts;
    walk<BufferLoad>(out_.value, [&](const BufferLoad& load) {
      for (const Expr& index : load.indices) {
        if (!is_arithmetic(index)) continue;
        const Expr part = analyzer.simplify(substitute(index, still));
        const bool moves = std::any_of(axes.begin(), axes.end(), [&](const arith::Iterator& axis) {
          return uses_var(part, axis.var.get());
        });
        const bool known = std::any_of(parts.begin(), parts.end(),
                                       [&](const Expr& e) { return structural_equal(e, part); });
        if (moves && !known) parts.push_back(part);
      }
    });
    if (stand_alone(axes, parts) || parts.size() > 8) return;
    // The smallest set of parts that tells the axes.
    for (size_t size = 1; size <= parts.size(); ++size)
      for (uint32_t set = 1; set < (1U << parts.size()); ++set) {
        if (static_cast<size_t>(__builtin_popcount(set)) != size) continue;
        std::vector<Expr> chosen;
        for (size_t i = 0; i < parts.size(); ++i)
          if (set >> i & 1U) chosen.push_back(parts[i]);
        if (replace_axes(IterKind::kReduce, chosen)) return;
      }
  }

  void drop_units() {
    Substitution values;
    const std::vector<Definition::Axis> all =
        out_.axes;  // an axis may be all that holds its variable
    std::erase_if(out_.axes, [&](const Definition::Axis& axis) {
      if (!is_int(axis.extent, 1)) return false;
      values[axis.var.get()] = zero_like(axis.var);
      return true;
    });
    arith::Analyzer analyzer;
    bind_axes(analyzer);
    substitute_all(values, analyzer);
  }

  const BlockRealize& realize_;
  std::string name_;
  Definition out_;
};

}  // namespace

std::optional<Definition> definition_of(const Path& path, AxesOf axes, std::string* why) {
  try {
    return Normaliser(path, axes).take();
  } catch (const NoDefinition& no) {
    if (why) *why = no.why;
    return std::nullopt;
  }
}

}  // namespace tenon::tir
