// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/patterns/unify.h"

#include <algorithm>

#include "tenon/support/codes.h"

namespace tenon::tir {

// Beyond it a search is given up: a pattern that fits in so many ways is not worth more time.
static constexpr int64_t kMostSteps = 200'000;
static constexpr size_t kMostDefinitions = 64;

// ---- the pattern --------------------------------------------------------------------------------

PreparedPattern::PreparedPattern(const PrimFunc& function) : function(function) {
  const auto bad = [&](const Origin& origin, const std::string& words) {
    throw CompileError(kBadPattern, origin, "{}; expected blocks that each store one value", words);
  };
  if (!root_block(function)) bad(function.origin, "the pattern has no root block");
  const BlockGraph graph(function);
  std::set<const Node*> read;
  for (size_t b = 0; b < graph.blocks().size(); ++b) {
    const GraphBlock& block = graph.blocks()[b];
    if (!block.definition) bad(block.alone->origin, block.why);
    read.insert(block.effects.reads.begin(), block.effects.reads.end());
    if (graph.is_start(b)) continue;
    const Definition& definition = *block.definition;
    if (!written.insert(definition.buffer.get()).second)
      bad(block.alone->origin,
          fmt::format("two blocks of the pattern store to `{}`", definition.buffer->name));
    definitions.push_back(definition);
  }
  if (definitions.empty()) bad(function.origin, "the pattern has no block");
  if (definitions.size() > kMostDefinitions)
    throw CompileError(kLimitExceeded, function.origin,
                       "the pattern has {} blocks; expected at most {}", definitions.size(),
                       kMostDefinitions);
  for (const Ref<Buffer>& buffer : root_block(function)->alloc_buffers) locals.insert(buffer.get());
  for (const Ref<Buffer>& buffer : function.buffers)
    if (buffer && !written.count(buffer.get()) && !read.count(buffer.get()))
      bad(function.origin, fmt::format("no block of the pattern uses `{}`", buffer->name));
}

// ---- words --------------------------------------------------------------------------------------

// A short text of a value: `max(a[i, k] * b[k], 0)`.
static std::string describe(const Expr& expr) {
  const auto list = [](const auto& exprs) {
    std::string text;
    for (const auto& item : exprs) {
      const Expr inner = tenon::cast<ExprNode>(item);
      text += (text.empty() ? "" : ", ") + (inner ? describe(inner) : std::string("..."));
    }
    return text;
  };
  if (is_arithmetic(expr)) return str(expr);
  if (const auto* load = expr.as<BufferLoad>())
    return fmt::format("{}[{}]", load->buffer->name, list(load->indices));
  if (const auto* call = expr.as<Call>(); call && call->op)
    return fmt::format("{}({})", call->op->name, list(call->args));
  if (const auto* conversion = expr.as<Cast>())
    return fmt::format("{}({})", conversion->dtype.str(), describe(conversion->value));
  if (const auto* op = expr.as<Binary>()) {
    const std::string a = describe(op->lhs), b = describe(op->rhs);
    switch (op->op) {
      case BinaryOp::kAdd: return fmt::format("({} + {})", a, b);
      case BinaryOp::kSub: return fmt::format("({} - {})", a, b);
      case BinaryOp::kMul: return fmt::format("({} * {})", a, b);
      case BinaryOp::kDiv: return fmt::format("({} / {})", a, b);
      case BinaryOp::kMin: return fmt::format("min({}, {})", a, b);
      case BinaryOp::kMax: return fmt::format("max({}, {})", a, b);
      default: return fmt::format("{}({}, {})", name_of(op->op), a, b);
    }
  }
  return str(expr);
}

// ---- the search ---------------------------------------------------------------------------------

struct Unifier::State {
  Solution found;
  std::map<const Node*, Expr> axes;  // of the pattern
  std::set<const Node*> taken;       // axes of the target
  std::set<const Node*> written;     // buffers of the target
  std::vector<Goal> exprs, loads, arithmetic;
  size_t permuted = 0;  // buffers
  int progress = 0;
};

Unifier::Unifier(const PreparedPattern& pattern, const BlockGraph& target, Extent extent)
    : pattern_(pattern), target_(target), extent_(extent) {
  const auto add_axes = [&](const Definition& definition, std::map<const Node*, AxisInfo>& axes) {
    for (const Definition::Axis& axis : definition.axes)
      axes[wide(axis.var).get()] = {wide(axis.extent), axis.kind};
  };
  for (const Definition& definition : pattern.definitions) add_axes(definition, pattern_axes_);
  for (const GraphBlock& block : target.blocks()) {
    if (!block.definition) continue;
    add_axes(*block.definition, target_axes_);
    for (const Definition::Axis& axis : block.definition->axes) {
      target_order_.push_back(wide(axis.var));
      analyzer_.bind(target_order_.back(), int64(0), wide(axis.extent));
    }
  }
  const auto add_scalar = [&](const Ref<Var>& var) {
    const Ref<Var> scalar = var->dtype.is_integer() && !var->dtype.is_bool() ? wide(var) : var;
    pattern_scalars_.insert(scalar.get());
    scalar_of_[scalar.get()] = var.get();
  };
  for (const Ref<Var>& symbol : symbolic_vars(pattern.function)) add_scalar(symbol);
  for (size_t i = 0; i < pattern.function.params.size(); ++i)
    if (!pattern.function.buffers[i]) add_scalar(pattern.function.params[i]);
}

Ref<Var> Unifier::wide(const Ref<Var>& var) {
  if (var->dtype == kInt64) return var;
  Ref<Var>& same = wide_[var.get()];
  if (!same) {
    same = var->is_size ? Var::size(var->name) : tenon::var(var->name);
    narrow_[same.get()] = tenon::cast(kInt64, var);
  }
  return same;
}

// Indices are of any width; they are compared as the integers that they are.
Expr Unifier::wide(const Expr& expr) {
  if (const auto* var = expr.as<Var>()) return wide(ref_to(var));
  if (const auto* number = expr.as<IntImm>()) return int64(number->value);
  if (const auto* op = expr.as<Binary>(); op && !is_comparison(op->op) && !is_logical(op->op))
    return binary(op->op, wide(op->lhs), wide(op->rhs));
  if (const auto* conversion = expr.as<Cast>()) return wide(conversion->value);
  return tenon::cast(kInt64, expr);
}

Expr Unifier::narrow(const Expr& expr) const {
  Substitution back;
  for (const auto& [node, value] : narrow_) back[node] = value;
  return substitute(expr, back);
}

bool Unifier::fail(const State& state, std::string words) {
  if (state.progress > best_) {
    best_ = state.progress;
    nearest_ = std::move(words);
  }
  return false;
}

std::optional<Solution> Unifier::find(size_t first, const Accept& accept) {
  accept_ = &accept;
  found_.reset();
  const size_t buffers = pattern_.function.buffers.size() + pattern_.locals.size();
  for (may_permute_ = 0; may_permute_ <= buffers; ++may_permute_) {
    steps_ = 0;
    would_permute_ = false;
    if (begin(State(), first)) return found_;
    if (!would_permute_) break;
  }
  return std::nullopt;
}

bool Unifier::next_definition(const State& state) {
  if (state.found.blocks.size() < pattern_.definitions.size()) {
    for (size_t b = 0; b < target_.blocks().size(); ++b)
      if (begin(state, b)) return true;
    return false;
  }
  Solution solution = state.found;
  std::map<const Node*, Expr> values;
  for (const auto& [variable, value] : solution.values)
    values[scalar_of_.at(variable)] = narrow(value);
  solution.values = std::move(values);
  for (auto& [buffer, bound] : solution.buffers)
    for (Expr& base : bound.base) base = narrow(base);
  for (const Node* scalar : pattern_scalars_)
    if (!solution.values.count(scalar_of_.at(scalar)))
      return fail(state, fmt::format("nothing tells what `{}` of the pattern is",
                                     static_cast<const Var*>(scalar)->name));
  std::string words;
  if (!(*accept_)(solution, words)) return fail(state, std::move(words));
  found_ = std::move(solution);
  return true;
}

bool Unifier::begin(State state, size_t block) {
  const GraphBlock& candidate = target_.blocks()[block];
  if (std::count(state.found.blocks.begin(), state.found.blocks.end(), block)) return false;
  if (!candidate.definition) return fail(state, candidate.why);
  const Definition& pattern = pattern_.definitions[state.found.blocks.size()];
  const Definition& target = *candidate.definition;
  const std::string& name = candidate.realize->block->name;
  if (static_cast<bool>(pattern.init) != static_cast<bool>(target.init))
    return fail(state,
                fmt::format("block `{}` {} a start of its reduction; the pattern {}", name,
                            target.init ? "has" : "has not", pattern.init ? "has" : "has not"));
  const auto count = [](const Definition& definition, IterKind kind) {
    return std::count_if(definition.axes.begin(), definition.axes.end(),
                         [&](const auto& axis) { return axis.kind == kind; });
  };
  for (const IterKind kind : {IterKind::kSpatial, IterKind::kReduce})
    if (count(target, kind) > count(pattern, kind))
      return fail(
          state,
          fmt::format("block `{}` has {} {} axes; the pattern has {}", name, count(target, kind),
                      kind == IterKind::kSpatial ? "spatial" : "reduction", count(pattern, kind)));
  if (state.written.count(target.buffer.get()))
    return fail(state, fmt::format("block `{}` stores to `{}` again", name, target.buffer->name));
  for (const auto& [buffer, bound] : state.found.buffers)
    if (bound.buffer.same_as(target.buffer) && buffer != pattern.buffer.get())
      return fail(state, fmt::format("block `{}` stores to `{}`, which is read before", name,
                                     target.buffer->name));
  state.found.blocks.push_back(block);
  state.taken.clear();
  state.exprs.push_back({pattern.value, target.value});
  if (pattern.init) state.exprs.push_back({pattern.init, target.init});
  // What is written is bound first of the loads.
  state.loads.push_back({load(pattern.buffer, pattern.place), load(target.buffer, target.place)});
  state.progress += 1;
  return solve(std::move(state));
}

bool Unifier::solve(State state) {
  while (!state.exprs.empty()) {
    if (++steps_ > kMostSteps)
      return fail(state, "there are too many ways in which it might match");
    const Goal goal = state.exprs.back();
    state.exprs.pop_back();
    const auto* op = goal.pattern.as<Binary>();
    if (op && !is_arithmetic(goal.pattern)) return solve_binary(state, goal);
    if (!solve_expr(state, goal)) return false;
    ++state.progress;
  }
  if (!state.loads.empty()) {
    if (++steps_ > kMostSteps)
      return fail(state, "there are too many ways in which it might match");
    const Goal goal = state.loads.front();
    state.loads.erase(state.loads.begin());
    return solve_load(state, goal);
  }
  return solve_arithmetic(std::move(state));
}

// ---- structure ----------------------------------------------------------------------------------

static bool is_commutative(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kMul:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
    case BinaryOp::kEQ:
    case BinaryOp::kNE:
    case BinaryOp::kAnd:
    case BinaryOp::kOr: return true;
    default: return false;
  }
}

// `a > b` is `b < a`.
static Ref<Binary> upwards(const Binary& op) {
  if (op.op == BinaryOp::kGT) return make<Binary>(BinaryOp::kLT, op.rhs, op.lhs);
  if (op.op == BinaryOp::kGE) return make<Binary>(BinaryOp::kLE, op.rhs, op.lhs);
  return ref_to(&op);
}

// The rest of the search depends on the order of the operands, so each order ends it.
bool Unifier::solve_binary(State& state, const Goal& goal) {
  const Ref<Binary> pattern = upwards(*goal.pattern.as<Binary>());
  if (const auto* op = goal.target.as<Binary>();
      op && upwards(*op)->op == pattern->op && op->lhs->dtype == pattern->lhs->dtype) {
    const Ref<Binary> target = upwards(*op);
    State straight = state;
    ++straight.progress;
    straight.exprs.push_back({pattern->rhs, target->rhs});
    straight.exprs.push_back({pattern->lhs, target->lhs});
    if (solve(std::move(straight))) return true;
    if (is_commutative(pattern->op)) {
      State crossed = state;
      ++crossed.progress;
      crossed.exprs.push_back({pattern->rhs, target->lhs});
      crossed.exprs.push_back({pattern->lhs, target->rhs});
      if (solve(std::move(crossed))) return true;
    }
  } else {
    fail(state, fmt::format("{} is not {}", describe(goal.target), describe(goal.pattern)));
  }
  // A factor of the pattern that the target does without is 1.
  if (pattern->op != BinaryOp::kMul || pattern->dtype != goal.target->dtype) return false;
  for (const auto& [factor, rest] :
       {std::pair(pattern->lhs, pattern->rhs), std::pair(pattern->rhs, pattern->lhs)}) {
    const auto* variable = factor.as<Var>();
    if (!variable) continue;
    const Node* scalar = variable;
    const Expr one =
        variable->dtype.is_float() ? imm(variable->dtype, 1.0) : imm(kInt64, int64_t{1});
    if (!variable->dtype.is_float()) scalar = wide(ref_to(variable)).get();
    if (!pattern_scalars_.count(scalar)) continue;
    State without = state;
    if (!bind_value(without, scalar, one)) continue;
    without.exprs.push_back({rest, goal.target});
    if (solve(std::move(without))) return true;
  }
  return false;
}

bool Unifier::solve_expr(State& state, const Goal& goal) {
  const auto& [p, t] = goal;
  const auto differ = [&]() {
    return fail(state, fmt::format("{} is not {}", describe(t), describe(p)));
  };
  if (is_arithmetic(p) && is_arithmetic(t)) {
    state.arithmetic.push_back({wide(p), wide(t)});
    return true;
  }
  if (p->dtype != t->dtype)
    return fail(state, fmt::format("{} is {}; the pattern has {}", describe(t), t->dtype.str(),
                                   p->dtype.str()));
  if (const auto* var = p.as<Var>())
    return pattern_scalars_.count(var) ? bind_value(state, var, t) : differ();
  if (p.as<BufferLoad>()) {
    if (!t.as<BufferLoad>()) return differ();
    state.loads.push_back(goal);
    return true;
  }
  if (p.as<FloatImm>() || p.as<IntImm>()) return structural_equal(p, t) || differ();
  const auto both = [&](const Expr& a, const Expr& b) { state.exprs.push_back({a, b}); };
  if (const auto* a = p.as<Cast>()) {
    const auto* b = t.as<Cast>();
    if (!b || a->value->dtype != b->value->dtype) return differ();
    both(a->value, b->value);
    return true;
  }
  if (const auto* a = p.as<Not>()) {
    const auto* b = t.as<Not>();
    if (!b) return differ();
    both(a->value, b->value);
    return true;
  }
  if (const auto* a = p.as<Select>()) {
    const auto* b = t.as<Select>();
    if (!b) return differ();
    both(a->false_value, b->false_value);
    both(a->true_value, b->true_value);
    both(a->condition, b->condition);
    return true;
  }
  if (const auto* a = p.as<Call>()) {
    const auto* b = t.as<Call>();
    if (!b || !a->op || a->op != b->op || a->args.size() != b->args.size() ||
        a->op->effect == Effect::kOpaque)
      return differ();
    for (size_t i = a->args.size(); i-- > 0;) {
      const Expr x = cast<ExprNode>(a->args[i]), y = cast<ExprNode>(b->args[i]);
      if (!x || !y) return differ();
      both(x, y);
    }
    return true;
  }
  return structural_equal(p, t) || differ();
}

// ---- buffers ------------------------------------------------------------------------------------

bool Unifier::solve_load(State& state, const Goal& goal) {
  const auto& p = *goal.pattern.as<BufferLoad>();
  const auto& t = *goal.target.as<BufferLoad>();
  const auto it = state.found.buffers.find(p.buffer.get());
  if (it == state.found.buffers.end()) return bind_buffer(state, p, t);
  const Bound& bound = it->second;
  if (!bound.buffer.same_as(t.buffer))
    return fail(state, fmt::format("`{}` is read where the pattern reads `{}`, which is `{}`",
                                   t.buffer->name, p.buffer->name, bound.buffer->name));
  for (size_t e = 0; e < t.indices.size(); ++e) {
    const auto at = std::find(bound.dims.begin(), bound.dims.end(), e);
    if (at == bound.dims.end()) {
      state.arithmetic.push_back({bound.base[e], wide(t.indices[e])});
      continue;
    }
    const Expr& index = p.indices[static_cast<size_t>(at - bound.dims.begin())];
    if (!is_arithmetic(index) || !is_arithmetic(t.indices[e])) {
      if (!bound.base.empty() && !is_int(bound.base[e], 0))
        return fail(state, fmt::format("`{}` is indexed by what is read", t.buffer->name));
      state.exprs.push_back({index, t.indices[e]});
      continue;
    }
    Expr value = wide(t.indices[e]);
    if (!bound.base.empty()) value = analyzer_.simplify(value - bound.base[e]);
    state.arithmetic.push_back({wide(index), value});
  }
  ++state.progress;
  return solve(state);
}

bool Unifier::bind_buffer(State& state, const BufferLoad& pattern, const BufferLoad& target) {
  const Buffer &p = *pattern.buffer, &t = *target.buffer;
  if (p.dtype != t.dtype)
    return fail(state, fmt::format("`{}` is {}; `{}` of the pattern is {}", t.name, t.dtype.str(),
                                   p.name, p.dtype.str()));
  if (p.scope != t.scope)
    return fail(state, fmt::format("`{}` is in scope `{}`; `{}` of the pattern in `{}`", t.name,
                                   t.scope, p.name, p.scope));
  if (extent_ == Extent::kWhole ? p.ndim() != t.ndim() : p.ndim() > t.ndim())
    return fail(state, fmt::format("`{}` has {} dimensions; `{}` of the pattern has {}", t.name,
                                   t.ndim(), p.name, p.ndim()));
  const bool is_written = pattern_.written.count(pattern.buffer.get()) != 0;
  if (state.written.count(&t))
    return fail(state, fmt::format("`{}` is stored to by the match", t.name));
  if (is_written) state.written.insert(&t);
  std::vector<size_t> dims;
  return try_dims(state, pattern, target, dims);
}

static bool is_straight(const std::vector<size_t>& dims) {
  return std::is_sorted(dims.begin(), dims.end());
}

// Whether two indices might be one, as far as is known.
bool Unifier::may_equal(const State& state, const Expr& pattern, const Expr& target) {
  if (!is_arithmetic(pattern) || !is_arithmetic(target))
    return is_arithmetic(pattern) == is_arithmetic(target);
  const Expr p = known(state, wide(pattern)), t = wide(target);
  const auto open = unknown(p);
  if (open.empty()) return extent_ == Extent::kRegion || analyzer_.proves_equal(p, t);
  if (extent_ == Extent::kRegion || !p.same_as(ref_to(open[0]))) return true;
  const auto axis = pattern_axes_.find(open[0]);
  if (axis == pattern_axes_.end()) return true;
  if (is_int(t, 0)) return true;
  const auto other = target_axes_.find(t.get());
  return other != target_axes_.end() && other->second.kind == axis->second.kind &&
         !state.taken.count(t.get());
}

bool Unifier::try_dims(const State& state, const BufferLoad& pattern, const BufferLoad& target,
                       std::vector<size_t>& dims) {
  if (++steps_ > kMostSteps) return fail(state, "there are too many ways in which it might match");
  const Buffer &p = *pattern.buffer, &t = *target.buffer;
  if (dims.size() < p.ndim()) {
    const Expr& index = pattern.indices[dims.size()];
    bool any = false;
    // Where nothing is permuted, dimensions correspond from the last.
    const size_t first = dims.size() + (t.ndim() - p.ndim());
    for (size_t n = 0; n < t.ndim(); ++n) {
      const size_t e = (first + n) % t.ndim();
      if (std::count(dims.begin(), dims.end(), e) || !may_equal(state, index, target.indices[e]))
        continue;
      any = true;
      dims.push_back(e);
      if (try_dims(state, pattern, target, dims)) return true;
      dims.pop_back();
    }
    if (!any)
      fail(state, fmt::format("no index of {} is {}, as in {}", describe(Expr(ref_to(&target))),
                              describe(index), describe(Expr(ref_to(&pattern)))));
    return false;
  }
  State next = state;
  if (!is_straight(dims) && ++next.permuted > may_permute_) {
    would_permute_ = true;
    return false;
  }
  Bound bound{target.buffer, dims, {}};
  if (extent_ == Extent::kRegion) {
    Substitution still;
    for (const auto& [axis, info] : target_axes_) still[axis] = int64(0);
    for (size_t e = 0; e < t.ndim(); ++e) {
      const auto at = std::find(dims.begin(), dims.end(), e);
      Expr base = int64(0);
      if (is_arithmetic(target.indices[e]))
        base = analyzer_.simplify(substitute(wide(target.indices[e]), still));
      if (at != dims.end()) {
        const Expr& index = pattern.indices[static_cast<size_t>(at - dims.begin())];
        Substitution zero;
        for (const auto& [axis, info] : pattern_axes_) zero[axis] = int64(0);
        const Expr own =
            is_arithmetic(index) ? analyzer_.simplify(substitute(wide(index), zero)) : int64(0);
        // What the pattern itself adds with a scalar cannot be told from where it begins.
        base = as_int(own) ? analyzer_.simplify(base - own) : int64(0);
      }
      bound.base.push_back(base);
    }
  } else {
    for (size_t d = 0; d < p.ndim(); ++d)
      next.arithmetic.push_back({wide(p.shape[d]), wide(t.shape[dims[d]])});
    if (!p.strides.empty()) {
      if (t.strides.empty())
        return fail(state, fmt::format("`{}` has no strides; the pattern has", t.name));
      for (size_t d = 0; d < p.ndim(); ++d)
        next.arithmetic.push_back({wide(p.strides[d]), wide(t.strides[dims[d]])});
    }
  }
  next.found.buffers[pattern.buffer.get()] = std::move(bound);
  return solve_load(next, {Expr(ref_to(&pattern)), Expr(ref_to(&target))});
}

// ---- arithmetic ---------------------------------------------------------------------------------

Expr Unifier::known(const State& state, const Expr& pattern) {
  Substitution values;
  for (const auto& [node, value] : state.found.values)
    if (value->dtype == kInt64) values[node] = value;
  for (const auto& [node, value] : state.axes) values[node] = value;
  return analyzer_.simplify(substitute(pattern, values));
}

// In order of appearance.
std::vector<const Var*> Unifier::unknown(const Expr& pattern) const {
  std::vector<const Var*> out;
  walk<Var>(pattern, [&](const Var& var) {
    if (pattern_axes_.count(&var) || pattern_scalars_.count(&var)) out.push_back(&var);
  });
  return out;
}

bool Unifier::is_invariant(const Expr& target) const {
  bool moves = false;
  walk(target, [&](const NodePtr& node) {
    moves |= node.as<BufferLoad>() || target_axes_.count(node.get()) != 0;
    if (const auto* var = node.as<Var>()) {
      const auto it = wide_.find(var);
      moves |= it != wide_.end() && target_axes_.count(it->second.get()) != 0;
    }
  });
  return !moves;
}

bool Unifier::bind_value(State& state, const Node* variable, const Expr& value) {
  const auto* scalar = static_cast<const Var*>(variable);
  const auto it = state.found.values.find(variable);
  if (it != state.found.values.end()) {
    if (structural_equal(it->second, value) ||
        (is_arithmetic(value) && analyzer_.proves_equal(it->second, value)))
      return true;
    return fail(state, fmt::format("`{}` of the pattern is {} and {}", scalar->name,
                                   describe(it->second), describe(value)));
  }
  if (!is_invariant(value))
    return fail(state, fmt::format("`{}` of the pattern would be {}, which is not the same "
                                   "everywhere",
                                   scalar->name, describe(value)));
  if (scalar->is_size && !analyzer_.proves_nonnegative(value))
    return fail(state, fmt::format("`{}` of the pattern would be {}, which may be negative",
                                   scalar->name, describe(value)));
  state.found.values[variable] = value;
  return true;
}

bool Unifier::assign_axis(State& state, const Node* axis, const Expr& value) {
  const AxisInfo& info = pattern_axes_.at(axis);
  const std::string& name = static_cast<const Var*>(axis)->name;
  if (is_int(value, 0)) {
    state.axes[axis] = value;
    state.arithmetic.push_back({info.extent, int64(1)});
    return true;
  }
  const auto it = target_axes_.find(value.get());
  if (it == target_axes_.end())
    return fail(state,
                fmt::format("{} is no axis, as `{}` of the pattern is", describe(value), name));
  if (it->second.kind != info.kind)
    return fail(state, fmt::format("axis {} is not of the kind of `{}`", describe(value), name));
  if (!state.taken.insert(value.get()).second)
    return fail(state, fmt::format("axis {} stands for two of the pattern", describe(value)));
  state.axes[axis] = value;
  state.arithmetic.push_back({info.extent, it->second.extent});
  return true;
}

Unifier::Step Unifier::step(State& state, const Goal& goal) {
  const Expr p = known(state, goal.pattern);
  const std::vector<const Var*> open = unknown(p);
  const auto differ = [&]() {
    fail(state, fmt::format("{} is not {}", describe(goal.target), describe(goal.pattern)));
    return Step::kFailed;
  };
  if (open.empty()) return analyzer_.proves_equal(p, goal.target) ? Step::kSolved : differ();
  const auto solved = [](bool ok) { return ok ? Step::kSolved : Step::kFailed; };
  const bool has_axes = std::any_of(open.begin(), open.end(),
                                    [&](const Var* v) { return pattern_axes_.count(v) != 0; });
  if (p.get() == open[0])
    return solved(has_axes ? assign_axis(state, open[0], analyzer_.simplify(goal.target))
                           : bind_value(state, open[0], analyzer_.simplify(goal.target)));
  if (has_axes) return Step::kKept;
  // Both as linear forms of the target's axes: what each is multiplied by must agree.
  std::vector<Ref<Var>> axes;
  for (const Ref<Var>& axis : target_order_)
    if (uses_var(p, axis.get()) || uses_var(goal.target, axis.get())) axes.push_back(axis);
  if (!axes.empty()) {
    const auto a = analyzer_.linear(p, axes), b = analyzer_.linear(goal.target, axes);
    if (!a || !b) return Step::kKept;
    for (size_t i = 0; i < axes.size(); ++i)
      state.arithmetic.push_back({a->coefficients[i], b->coefficients[i]});
    state.arithmetic.push_back({a->rest, b->rest});
    return Step::kSolved;
  }
  if (open.size() > 1) return Step::kKept;
  const Ref<Var> variable = ref_to(open[0]);
  const auto form = analyzer_.linear(p, std::vector{variable});
  if (!form) return Step::kKept;
  const auto factor = as_int(form->coefficients[0]);
  if (!factor || *factor == 0) return Step::kKept;
  const Expr rest = analyzer_.simplify(goal.target - form->rest);
  if (!analyzer_.proves_divisible(rest, *factor)) return differ();
  return solved(
      bind_value(state, variable.get(), analyzer_.simplify(floordiv(rest, int64(*factor)))));
}

bool Unifier::solve_arithmetic(State state) {
  for (bool progress = true; progress;) {
    progress = false;
    std::vector<Goal> goals = std::exchange(state.arithmetic, {});
    for (const Goal& goal : goals) {
      if (++steps_ > kMostSteps)
        return fail(state, "there are too many ways in which it might match");
      const Step result = step(state, goal);
      if (result == Step::kFailed) return false;
      if (result == Step::kKept) {
        state.arithmetic.push_back(goal);
        continue;
      }
      progress = true;
      ++state.progress;
    }
  }
  // Axes that no index shows alone: any of those left may be it.
  const Definition& pattern = pattern_.definitions[state.found.blocks.size() - 1];
  const Definition& target = *target_.blocks()[state.found.blocks.back()].definition;
  for (const Definition::Axis& axis : pattern.axes) {
    const Node* open = wide(axis.var).get();
    if (state.axes.count(open)) continue;
    std::vector<Expr> choices;
    for (const Definition::Axis& other : target.axes)
      if (other.kind == axis.kind && !state.taken.count(wide(other.var).get()))
        choices.push_back(wide(other.var));
    choices.push_back(int64(0));
    for (const Expr& choice : choices) {
      State next = state;
      if (assign_axis(next, open, choice) && solve_arithmetic(std::move(next))) return true;
    }
    return false;
  }
  if (!state.arithmetic.empty())
    return fail(state, fmt::format("{} is not seen to be {}", describe(state.arithmetic[0].target),
                                   describe(state.arithmetic[0].pattern)));
  for (const Definition::Axis& axis : target.axes)
    if (!state.taken.count(wide(axis.var).get()))
      return fail(state, fmt::format("the pattern has no axis for `{}` of {}", axis.var->name,
                                     str(axis.extent)));
  return next_definition(state);
}

}  // namespace tenon::tir
