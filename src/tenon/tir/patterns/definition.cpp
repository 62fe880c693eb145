#include "tenon/tir/patterns/definition.h"

#include <algorithm>

#include "tenon/arith/iter_map.h"
#include "tenon/tir/schedule/edit.h"

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
  explicit Normaliser(const Path& path) : realize_(*path.target().as<BlockRealize>()) {
    const Block& block = *realize_.block;
    name_ = block.name;
    const auto* store = block.body.as<BufferStore>();
    if (!store) none("block `{}` is something else than one store", name_);
    if (!block.alloc_buffers.empty() || !block.match_buffers.empty())
      none("block `{}` has buffers of its own", name_);
    if (!store->value->dtype.is_scalar()) none("block `{}` stores vectors", name_);
    check_loops(path);
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
    start_at_zero(block);
    by_place();
    by_reads();
    drop_units();
  }

  Definition take() { return std::move(out_); }

 private:
  void check_loops(const Path& path) {
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
    const auto map = arith::detect_iter_map(analyzer, values, loops, arith::MapKind::kBijective,
                                            analyzer.simplify(realize_.predicate));
    const auto& iters = realize_.block->iter_vars;
    bool covers = map.has_value();
    for (size_t a = 0; covers && a < iters.size(); ++a)
      covers = analyzer.proves_equal(map->min[a], iters[a].domain.min) &&
               analyzer.proves_equal(map->extent[a], iters[a].domain.extent);
    if (!covers)
      none("the loops around block `{}` are not seen to run each of its instances once", name_);
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

std::optional<Definition> definition_of(const Path& path, std::string* why) {
  try {
    return Normaliser(path).take();
  } catch (const NoDefinition& no) {
    if (why) *why = no.why;
    return std::nullopt;
  }
}

}  // namespace tenon::tir
