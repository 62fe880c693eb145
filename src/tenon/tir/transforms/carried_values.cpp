// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/transforms/carried_values.h"

#include <algorithm>

#include "tenon/arith/int_set.h"
#include "tenon/tir/schedule/coverage.h"

namespace tenon::tir {

using arith::Iterator;

// Beyond so many pairs of a read and a write the answer is "it may".
static constexpr size_t kMostPairs = 4096;

CarriedValues::CarriedValues(const std::vector<Ref<Buffer>>& buffers, CallEffects& effects)
    : effects_(effects) {
  for (const Ref<Buffer>& buffer : buffers) {
    accesses_[buffer.get()];
    pointers_[buffer->data.get()] = buffer;
  }
}

// ---- the record ---------------------------------------------------------------------------------

bool CarriedValues::is_known(const NodePtr& expr) const {
  bool known = true;
  walk(expr, [&](const NodePtr& node) {
    if (node.as<BufferLoad>() || node.as<Call>() || unknown_.count(node.get())) known = false;
  });
  return known;
}

void CarriedValues::enter(int scope, const For& loop) {
  Scope entered;
  entered.id = scope;
  entered.loop = &loop;
  entered.iterator = {loop.loop_var, resolved(loop.min), resolved(loop.extent)};
  if (!is_known(entered.iterator.min) || !is_known(entered.iterator.extent))
    unknown_.insert(loop.loop_var.get());
  scopes_.push_back(std::move(entered));
}

void CarriedValues::enter(int scope, const BlockRealize& realize) {
  const Block& block = *realize.block;
  enter(scope, realize.predicate);
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const Expr value = resolved(realize.iter_values[i]);
    if (!is_known(value)) unknown_.insert(block.iter_vars[i].var.get());
    values_[block.iter_vars[i].var.get()] = value;
  }
  for (const MatchBuffer& match : block.match_buffers) {
    value(match.source);  // its bounds
    if (!accesses_.count(match.source->buffer.get())) continue;
    record_region(*match.source, effects_on(block.body, {match.buffer}, effects_)[0]);
  }
}

void CarriedValues::enter(int scope, const Expr& condition) {
  Scope entered;
  entered.id = scope;
  if (condition) {
    for (const Expr& part : conjuncts(condition)) {
      const auto* call = part.as<Call>();
      const Expr inner = resolved(call && call->is(IntrinsicId::kLikely) ? call->arg(0) : part);
      if (is_int(inner, 1)) continue;
      if (is_known(inner))
        entered.conditions.push_back(inner);
      else
        entered.is_understood = false;
    }
  } else {
    entered.is_understood = false;
  }
  scopes_.push_back(std::move(entered));
}

void CarriedValues::leave() { scopes_.pop_back(); }

void CarriedValues::record(const Ref<Buffer>& buffer, std::vector<Range> region, bool writes,
                           bool is_certain) {
  accesses_.at(buffer.get())
      .push_back({.scopes = scopes_,
                  .region = std::move(region),
                  .writes = writes,
                  .is_certain = is_certain});
}

void CarriedValues::record_whole(const Ref<Buffer>& buffer) {
  std::vector<Range> whole = BufferRegion::whole(buffer)->region;
  record(buffer, whole, false, true);
  record(buffer, std::move(whole), true, false);
}

void CarriedValues::record_region(const BufferRegion& region, const ParamEffect& effect) {
  std::vector<Range> ranges;
  bool is_exact = true;
  for (size_t d = 0; d < region.region.size(); ++d) {
    const Range range{resolved(region.region[d].min), resolved(region.region[d].extent)};
    const bool known = is_known(range.min) && is_known(range.extent);
    is_exact = is_exact && known;
    ranges.push_back(known ? range : BufferRegion::whole(region.buffer)->region[d]);
  }
  if (effect.reads) record(region.buffer, ranges, false, true);
  if (effect.writes) record(region.buffer, ranges, true, is_exact && effect.fills);
}

// The values of an index: one, or those of a vector of consecutive lanes.
std::optional<Range> CarriedValues::range_of(const Expr& index) {
  const Expr value = resolved(index);
  if (!is_known(value)) return std::nullopt;
  if (value->dtype.is_scalar()) return Range{value, imm(value->dtype, int64_t{1})};
  const auto* ramp = value.as<Ramp>();
  if (!ramp || !is_int(ramp->stride, 1)) return std::nullopt;
  return Range{ramp->base, imm(ramp->base->dtype, int64_t{ramp->lanes})};
}

void CarriedValues::load(const BufferLoad& load) {
  if (!accesses_.count(load.buffer.get())) return;
  std::vector<Range> region = BufferRegion::whole(load.buffer)->region;
  for (size_t d = 0; d < region.size(); ++d)
    if (const auto range = range_of(load.indices[d])) region[d] = *range;
  record(load.buffer, std::move(region), false, true);
}

void CarriedValues::store(const BufferStore& store) {
  for (const Expr& index : store.indices) value(index);
  value(store.value);
  if (!accesses_.count(store.buffer.get())) return;
  std::vector<Range> region = BufferRegion::whole(store.buffer)->region;
  bool is_certain = true;
  for (size_t d = 0; d < region.size(); ++d) {
    const auto range = range_of(store.indices[d]);
    if (range) region[d] = *range;
    is_certain = is_certain && range.has_value();
  }
  record(store.buffer, std::move(region), true, is_certain);
}

void CarriedValues::statement(const Stmt& stmt) {
  if (const auto* assignment = stmt.as<BufferStore>()) return store(*assignment);
  if (const auto* bind = stmt.as<Bind>()) {
    value(bind->value);
    const Expr bound = resolved(bind->value);
    if (bound->dtype.is_integer() && is_known(bound))
      values_[bind->var.get()] = bound;
    else
      unknown_.insert(bind->var.get());
    return;
  }
  if (const auto* decl = stmt.as<DeclBuffer>()) {  // accesses of the view are not followed
    walk<Var>(decl->data, [&](const Var& var) {
      if (const auto it = pointers_.find(&var); it != pointers_.end())
        aliased_.insert(it->second.get());
    });
  }
  if (const auto* call = stmt.as<CallTir>()) {
    for (const NodePtr& arg : call->args) {
      const auto* region = arg.as<BufferRegion>();
      if (!region) value(arg);
    }
    for (size_t i = 0; i < call->args.size(); ++i) {
      const auto* region = call->args[i].as<BufferRegion>();
      if (!region) continue;
      for (const Range& range : region->region) {
        value(range.min);
        value(range.extent);
      }
      if (accesses_.count(region->buffer.get()))
        record_region(*region, effects_.of(call->callee->name, i));
    }
    return;
  }
  value(stmt);
}

void CarriedValues::conditional(const Expr& condition, const NodePtr& inner) {
  enter(next_value_--, condition);
  value(inner);
  leave();
}

void CarriedValues::value(const NodePtr& node) {
  if (!node) return;
  if (const auto* choice = node.as<Select>(); choice && choice->condition->dtype.is_scalar()) {
    // The side that is not chosen has no effect on the value.
    value(choice->condition);
    conditional(choice->condition, choice->true_value);
    return conditional(logical_not(choice->condition), choice->false_value);
  }
  if (const auto* call = node.as<Call>()) {
    if (call->is(IntrinsicId::kIfThenElse) && call->arg(0)->dtype.is_scalar()) {
      value(call->arg(0));
      conditional(call->arg(0), call->arg(1));
      return conditional(logical_not(call->arg(0)), call->arg(2));
    }
    // Pointers and masked accesses, and functions that are given regions.
    const bool takes_memory =
        std::any_of(call->args.begin(), call->args.end(), [](const NodePtr& arg) {
          return arg.as<BufferRegion>() || arg.as<Buffer>() ||
                 (arg.as<ExprNode>() && arg.as<ExprNode>()->dtype.is_handle());
        });
    if (takes_memory || call->dtype.is_handle() || call->is(IntrinsicId::kMaskedLoad) ||
        call->is(IntrinsicId::kMaskedStore) || call->is(IntrinsicId::kAddressOf) ||
        call->is(IntrinsicId::kTvmAccessPtr))
      return opaque(node);
  }
  if (const auto* let = node.as<Let>()) {
    value(let->value);
    const Expr bound = resolved(let->value);
    if (bound->dtype.is_integer() && is_known(bound))
      values_[let->var.get()] = bound;
    else
      unknown_.insert(let->var.get());
    return value(let->body);
  }
  if (const auto* load = node.as<BufferLoad>()) {
    for (const Expr& index : load->indices) value(index);
    return this->load(*load);
  }
  if (node.as<Var>() || node.as<Buffer>()) {
    if (const auto it = pointers_.find(node.get()); it != pointers_.end()) record_whole(it->second);
    return;
  }
  each_member(node, [&](const NodePtr& member, FieldRole role) {
    if (role == FieldRole::kUse) value(member);
  });
}

void CarriedValues::opaque(const NodePtr& node) {
  walk(node, [&](const NodePtr& inner) {
    if (const auto* buffer = inner.as<Buffer>()) {
      if (accesses_.count(buffer)) record_whole(ref_to(buffer));
    } else if (const auto it = pointers_.find(inner.get()); it != pointers_.end()) {
      record_whole(it->second);
    }
  });
}

// ---- the answer ---------------------------------------------------------------------------------

// One read in an iteration of a loop, with the loops around it where they stand at that moment.
class CarriedValues::Question {
 public:
  /// `depth`: of the loop, among the scopes of the read.
  Question(const Access& read, size_t depth) : read_(read), depth_(depth) {
    for (const Scope& scope : read.scopes) {
      if (scope.loop) analyzer_.bind(scope.iterator.var, scope.iterator.min, scope.iterator.extent);
      for (const Expr& condition : scope.conditions) analyzer_.assume(condition);
    }
  }

  /// `write` touches none of what is read, in whatever iteration of the loop.
  bool is_apart(const Access& write) {
    const auto whole = all_of(write);
    for (size_t d = 0; d < whole.size(); ++d) {
      const Range& range = read_.region[d];
      if (whole[d].max && analyzer_.proves_less(whole[d].max, range.min)) return true;
      if (whole[d].min && analyzer_.proves_less_equal(range.min + range.extent, whole[d].min))
        return true;
    }
    return false;
  }

  /// `write`, which stands before the read, has written in the same iteration of the loop: of what
  /// is read, all that `other` ever writes (null: all).
  bool is_written_by(const Access& write, const Access* other) {
    if (!write.is_certain) return false;
    size_t common = 0;
    while (common < write.scopes.size() && common < read_.scopes.size() &&
           write.scopes[common].id == read_.scopes[common].id)
      ++common;
    std::vector<Ref<Var>> around;
    std::vector<Iterator> inner;
    Substitution first;  // loops that the place does not depend on: their first iteration wrote it
    for (size_t i = 0; i < write.scopes.size(); ++i) {
      const Scope& scope = write.scopes[i];
      if (!scope.loop) {
        if (i >= common && !scope.is_understood) return false;
        continue;
      }
      const bool is_ordered =
          scope.loop->kind == ForKind::kSerial || scope.loop->kind == ForKind::kUnrolled;
      if (i >= common)
        inner.push_back(scope.iterator);
      else if (i > depth_ && is_ordered && !moves(write, scope.iterator.var))
        first[scope.iterator.var.get()] = substitute(scope.iterator.min, first);
      else
        around.push_back(scope.iterator.var);
    }
    const auto scope = analyzer_.enter();
    std::vector<Expr> conditions;
    for (size_t i = 0; i < write.scopes.size(); ++i)
      for (const Expr& condition : write.scopes[i].conditions) {
        const Expr at_first = substitute(condition, first);
        // What holds for the read held for the write before it, in the same iteration.
        if (i >= common || !at_first.same_as(condition)) conditions.push_back(at_first);
      }
    // An outer scope that was not understood may not hold in the first iteration.
    if (!first.empty())
      for (size_t i = depth_; i < common; ++i)
        if (!write.scopes[i].is_understood) return false;
    std::vector<Expr> indices;
    for (const Range& range : write.region) {
      Expr index = range.min;
      if (!is_int(range.extent, 1)) {
        const Ref<Var> inside = var("inside", index->dtype);
        inner.push_back({inside, imm(index->dtype, int64_t{0}), range.extent});
        index = index + inside;
      }
      indices.push_back(substitute(index, first));
    }
    for (Iterator& loop : inner)
      loop = {loop.var, substitute(loop.min, first), substitute(loop.extent, first)};
    const auto written = exact_box(indices, inner, around, conditions, Times::kAny, analyzer_);
    if (!written) return false;
    const std::vector<arith::Interval> bounds =
        other ? all_of(*other) : std::vector<arith::Interval>(indices.size());
    for (size_t d = 0; d < indices.size(); ++d) {
      const Span& span = (*written)[d];
      for (const Expr& least : {span.min, span.least})
        if (least && !analyzer_.proves_less_equal(least, read_.region[d].min) &&
            !(bounds[d].min && analyzer_.proves_less_equal(least, bounds[d].min)))
          return false;
      const Expr end = read_.region[d].min + read_.region[d].extent;
      for (const Expr& limit : {span.end, span.limit})
        if (limit && !analyzer_.proves_less_equal(end, limit) &&
            !(bounds[d].max && analyzer_.proves_less(bounds[d].max, limit)))
          return false;
    }
    return true;
  }

 private:
  static bool moves(const Access& write, const Ref<Var>& var) {
    return std::any_of(write.region.begin(), write.region.end(), [&](const Range& range) {
      return uses_var(range.min, var.get()) || uses_var(range.extent, var.get());
    });
  }

  // The box that a write fills in the course of the loop. The loops run through other values there
  // than those of the read, of which the analyzer knows more.
  std::vector<arith::Interval> all_of(const Access& write) {
    arith::Domain domain;
    Substitution renamed;
    for (size_t i = depth_; i < write.scopes.size(); ++i) {
      const Scope& scope = write.scopes[i];
      if (!scope.loop) continue;
      const Iterator& loop = scope.iterator;
      const Ref<Var> fresh = make<Var>(loop.var->name, loop.var->dtype);
      domain[fresh.get()] =
          arith::Interval::of(substitute(loop.min, renamed), substitute(loop.extent, renamed));
      renamed[loop.var.get()] = Expr(fresh);
    }
    std::vector<Range> region;
    for (const Range& range : write.region)
      region.push_back({substitute(range.min, renamed), substitute(range.extent, renamed)});
    return arith::evaluate_region(analyzer_, region, domain);
  }

  const Access& read_;
  size_t depth_;
  arith::Analyzer analyzer_;
};

bool CarriedValues::carries(const Buffer& buffer, int scope) const {
  if (aliased_.count(&buffer)) return true;
  const std::vector<Access>& accesses = accesses_.at(&buffer);
  const auto depth_in = [&](const Access& access) {
    size_t depth = 0;
    while (depth < access.scopes.size() && access.scopes[depth].id != scope) ++depth;
    return depth;
  };
  size_t reads = 0, writes = 0;
  for (const Access& access : accesses) ++(access.writes ? writes : reads);
  if (reads * writes > kMostPairs) return true;
  for (size_t r = 0; r < accesses.size(); ++r) {
    const Access& read = accesses[r];
    const size_t depth = depth_in(read);
    if (read.writes || depth == read.scopes.size()) continue;
    Question question(read, depth);
    const auto is_written = [&](const Access* other) {
      for (size_t w = r; w-- > 0;)
        if (accesses[w].writes && depth_in(accesses[w]) == depth &&
            question.is_written_by(accesses[w], other))
          return true;
      return false;
    };
    if (is_written(nullptr)) continue;
    for (const Access& write : accesses)
      if (write.writes && !question.is_apart(write) && !is_written(&write)) return true;
  }
  return false;
}

}  // namespace tenon::tir
