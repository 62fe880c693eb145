// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/call_effects.h"

#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "tenon/arith/analyzer.h"
#include "tenon/tir/call_graph.h"
#include "tenon/tir/callee.h"

namespace tenon::tir {

std::string_view name_of(const ParamEffect& effect) {
  if (effect.reads) return effect.writes ? "inout" : "in";
  return effect.writes ? "out" : "unused";
}

namespace {

using Kind = StmtEffect::Kind;

// The parameters of a function by the buffers that stand for them: themselves, their pointers and
// views of them.
class Aliases {
 public:
  Aliases(const std::vector<Ref<Buffer>>& buffers, const Stmt& body) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (!buffers[i]) continue;
      index_[buffers[i].get()] = i;
      index_[buffers[i]->data.get()] = i;
    }
    // Definitions come before uses, so one walk sees views of views in time.
    walk(body, [&](const NodePtr& node) {
      const auto alias = [&](const Node* view, const Node* source) {
        if (const size_t* param = find(source)) index_.emplace(view, *param);
      };
      if (const auto* block = node.as<Block>())
        for (const MatchBuffer& match : block->match_buffers)
          alias(match.buffer.get(), match.source->buffer.get());
      if (const auto* decl = node.as<DeclBuffer>())
        walk(decl->data, [&](const NodePtr& inner) {
          alias(decl->buffer.get(), inner.get());
          alias(decl->buffer->data.get(), inner.get());
        });
    });
  }
  const size_t* find(const Node* node) const {
    const auto it = index_.find(node);
    return it == index_.end() ? nullptr : &it->second;
  }

 private:
  std::unordered_map<const Node*, size_t> index_;
};

// Walks the function in the order in which it runs. A parameter that a statement fills is its own
// from there on: reading it no longer counts.
class Scan {
 public:
  Scan(const std::vector<Ref<Buffer>>& buffers, const Stmt& body, CallEffects& effects)
      : buffers_(buffers),
        body_(body),
        aliases_(buffers, body),
        effects_(effects),
        found_(buffers.size()) {}

  std::vector<ParamEffect> run() {
    // What stands after a `return` that may be taken does not run in every run.
    walk<IfThenElse>(body_, [&](const IfThenElse& branch) {
      walk<Call>(ref_to(&branch),
                 [&](const Call& call) { returns_early_ |= call.is(IntrinsicId::kRet); });
    });
    statement(body_);
    return std::move(found_);
  }

 private:
  /// Of what one iteration of a loop does, where `rows` are of its own.
  Scan(const Scan& outer, const std::map<size_t, size_t>& rows)
      : buffers_(outer.buffers_),
        body_(outer.body_),
        aliases_(outer.aliases_),
        effects_(outer.effects_),
        returns_early_(outer.returns_early_),
        found_(outer.found_.size()),
        axes_(outer.axes_),
        rows_(outer.rows_) {
    for (const auto& [param, dim] : rows) rows_[param].insert(dim);
  }

  void statement(const Stmt& stmt) {
    if (!stmt) return;
    if (const auto* list = stmt.as<Seq>()) {
      for (const Stmt& item : list->stmts) statement(item);
      return;
    }
    if (const auto* attr = stmt.as<AttrStmt>()) return statement(attr->body);
    if (const auto* realize = stmt.as<BlockRealize>();
        realize && is_int(realize->predicate, 1) && realize->block->match_buffers.empty() &&
        (realize->block->iter_vars.empty() || !realize->block->init)) {
      name_axes(*realize);
      statement(realize->block->init);
      return statement(realize->block->body);
    }
    if (const auto* loop = stmt.as<For>(); loop && !returns_early_) return iterate(*loop);
    accesses(stmt);
    running_.clear();
    if (!returns_early_) fills(stmt);
  }

  // Axes stand for the loops that they are bound to.
  void name_axes(const BlockRealize& realize) {
    for (size_t i = 0; i < realize.iter_values.size(); ++i)
      axes_[realize.block->iter_vars[i].var.get()] =
          axes_.empty() ? realize.iter_values[i] : substitute(realize.iter_values[i], axes_);
  }

  // ---- loops, one iteration after another

  // What an iteration reads after it wrote it is no read of the loop: of a parameter that it fills,
  // and of the rows of one where each iteration has its own.
  void iterate(const For& loop) {
    std::map<size_t, Expr> steps;
    const std::map<size_t, size_t> rows = own_rows(loop, steps);
    Scan inner(*this, rows);
    inner.statement(loop.body);
    axes_ = inner.axes_;
    const auto extent = as_int(loop.extent);
    for (size_t i = 0; i < found_.size(); ++i) {
      found_[i].reads |= inner.found_[i].reads && !found_[i].fills;
      found_[i].writes |= inner.found_[i].writes;
      if (!inner.found_[i].fills || found_[i].reads) continue;
      const auto row = rows.find(i);
      found_[i].fills |= row == rows.end()
                             ? extent && *extent > 0
                             : goes_through(loop, steps.at(i), buffers_[i]->shape[row->second]);
    }
    running_.clear();
    fills(ref_to(&loop));
  }

  static bool goes_through(const For& loop, const Expr& step, const Expr& dim) {
    const auto wide = [](const Expr& expr) { return tenon::cast(kInt64, expr); };
    return is_int(loop.min, 0) && arith::proves_equal(wide(loop.extent) * wide(step), wide(dim));
  }

  /// The parameters of which every access in the loop is to the row, or the tile of rows, of its
  /// iteration: the dimension that the loop goes through. `steps`: rows of an iteration.
  std::map<size_t, size_t> own_rows(const For& loop, std::map<size_t, Expr>& steps) {
    std::map<size_t, std::map<size_t, Expr>> candidates;  // parameter, dimension: rows
    std::unordered_set<size_t> refused;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (!buffers_[i]) continue;
      for (size_t d = 0; d < buffers_[i]->ndim(); ++d)
        if (!rows_.count(i) || !rows_.at(i).count(d)) candidates[i][d] = Expr();
    }
    const auto touch = [&](const Ref<Buffer>& buffer, const std::vector<Range>& box) {
      const size_t* param = aliases_.find(buffer.get());
      if (!param) return;
      if (!buffer.same_as(buffers_[*param])) {
        refused.insert(*param);
        return;
      }
      std::map<size_t, Expr>& dims = candidates[*param];
      for (auto it = dims.begin(); it != dims.end();) {
        const Range& range = box[it->first];
        const bool fits = is_row(range, *loop.loop_var) &&
                          (!it->second || arith::proves_equal(tenon::cast(kInt64, it->second),
                                                              tenon::cast(kInt64, range.extent)));
        if (fits) it->second = range.extent;
        it = fits ? std::next(it) : dims.erase(it);
      }
    };
    const auto points = [](const std::vector<Expr>& indices) {
      std::vector<Range> box;
      for (const Expr& index : indices)
        box.push_back({index, imm(index->dtype.element(), int64_t{1})});
      return box;
    };
    const std::function<void(const NodePtr&)> visit = [&](const NodePtr& node) {
      if (!node) return;
      if (const auto* realize = node.as<BlockRealize>()) {
        name_axes(*realize);
        for (const MatchBuffer& match : realize->block->match_buffers)
          if (const size_t* param = aliases_.find(match.source->buffer.get()))
            refused.insert(*param);
        visit(realize->predicate);
        visit(realize->block->init);
        return visit(realize->block->body);
      }
      if (const auto* load = node.as<BufferLoad>()) touch(load->buffer, points(load->indices));
      if (const auto* store = node.as<BufferStore>()) touch(store->buffer, points(store->indices));
      if (const auto* region = node.as<BufferRegion>()) {
        touch(region->buffer, region->region);
      } else if (node.as<Var>() || node.as<Buffer>()) {
        // A pointer, or a buffer as a whole.
        if (const size_t* param = aliases_.find(node.get())) refused.insert(*param);
        return;
      }
      each_member(node, [&](const NodePtr& member, FieldRole role) {
        const bool is_named = member.as<Buffer>() && !node.as<Call>();
        if (role == FieldRole::kUse && !is_named) visit(member);
      });
      // Where an address is taken, more than what is named may be touched.
      if (const auto* call = node.as<Call>();
          call && call->op && !call->is(IntrinsicId::kMaskedLoad))
        for (const NodePtr& arg : call->args)
          if (const auto* load = arg.as<BufferLoad>();
              load && (call->op->effect == Effect::kOpaque || call->is(IntrinsicId::kAddressOf)) &&
              !call->is(IntrinsicId::kPrefetch) && !call->is(IntrinsicId::kMaskedStore) &&
              !call->is(IntrinsicId::kRet))
            if (const size_t* param = aliases_.find(load->buffer.get())) refused.insert(*param);
    };
    visit(loop.body);
    std::map<size_t, size_t> rows;
    for (const auto& [param, dims] : candidates) {
      if (refused.count(param) || dims.empty() || !dims.begin()->second) continue;
      rows[param] = dims.begin()->first;
      steps[param] = dims.begin()->second;
    }
    return rows;
  }

  /// Whether the range is the loop's, in one dimension: [v * extent, v * extent + extent).
  bool is_row(const Range& range, const Var& loop_var) {
    if (range.min->dtype.is_vector()) return false;
    const Expr min = axes_.empty() ? range.min : substitute(range.min, axes_);
    const Node* var = min.get();
    Expr step = imm(min->dtype, int64_t{1});
    if (const auto* product = min.as<Binary>(); product && product->op == BinaryOp::kMul) {
      var = product->lhs.as<Var>() ? product->lhs.get() : product->rhs.get();
      step = product->lhs.as<Var>() ? product->rhs : product->lhs;
    }
    return var == &loop_var &&
           arith::proves_equal(tenon::cast(kInt64, step), tenon::cast(kInt64, range.extent));
  }

  // ---- what is read and written, in any order

  void mark(const Node* buffer, bool reads, bool writes) {
    const size_t* param = aliases_.find(buffer);
    if (!param) return;
    found_[*param].reads |= reads && !found_[*param].fills;
    found_[*param].writes |= writes;
  }

  void accesses(const Stmt& stmt) {
    each_effect(stmt, effects_.callees(), [&](const StmtEffect& effect) {
      // What is done to views counts for what they show.
      if (effect.kind == Kind::kView || !effect.memory) return;
      mark(effect.memory.get(), effect.reads() && effect.kind != Kind::kAccumulate,
           effect.writes());
    });
  }

  // ---- what is written as a whole

  void fills(const Stmt& stmt) {
    if (!stmt) return;
    if (const auto* list = stmt.as<Seq>()) {
      for (const Stmt& item : list->stmts) fills(item);
    } else if (const auto* attr = stmt.as<AttrStmt>()) {
      fills(attr->body);
    } else if (const auto* loop = stmt.as<For>()) {
      running_[loop->loop_var.get()] = {loop->min, loop->extent};
      fills(loop->body);
      running_.erase(loop->loop_var.get());
    } else if (const auto* realize = stmt.as<BlockRealize>()) {
      if (!is_int(realize->predicate, 1)) return;
      name_axes(*realize);
      fills(realize->block->body);
    } else if (const auto* store = stmt.as<BufferStore>()) {
      std::vector<Range> box;
      for (const Expr& index : store->indices)
        box.push_back({index, imm(index->dtype, int64_t{1})});
      filled(store->buffer, box);
    } else if (const auto* call = stmt.as<CallTir>()) {
      for (size_t i = 0; i < call->args.size(); ++i)
        if (const auto* region = call->args[i].as<BufferRegion>())
          if (effects_.of(call->callee->name, i).fills) filled(region->buffer, region->region);
    }
  }

  // `box`, while the loops around it run, is all of the buffer: each dimension is whole or goes
  // through it tile by tile with a loop of its own, and every loop runs.
  void filled(const Ref<Buffer>& buffer, const std::vector<Range>& box) {
    const size_t* param = aliases_.find(buffer.get());
    if (!param || !buffer.same_as(buffers_[*param])) return;
    std::unordered_set<const Node*> used;
    for (size_t d = 0; d < box.size(); ++d) {
      const Expr& dim = buffer->shape[d];
      if (const auto rows = rows_.find(*param); rows != rows_.end() && rows->second.count(d))
        continue;  // the row of the iteration around
      if (box[d].min->dtype.is_vector()) return;
      const Expr min = axes_.empty() ? box[d].min : substitute(box[d].min, axes_);
      if (is_int(min, 0) &&
          arith::proves_equal(tenon::cast(kInt64, box[d].extent), tenon::cast(kInt64, dim)))
        continue;
      const Var* loop = nullptr;
      Expr step = imm(min->dtype, int64_t{1});
      if (const auto* var = min.as<Var>()) {
        loop = var;
      } else if (const auto* product = min.as<Binary>(); product && product->op == BinaryOp::kMul) {
        loop = product->lhs.as<Var>() ? product->lhs.as<Var>() : product->rhs.as<Var>();
        step = product->lhs.as<Var>() ? product->rhs : product->lhs;
      }
      const auto range = loop ? running_.find(loop) : running_.end();
      if (range == running_.end() || !used.insert(loop).second) return;
      if (!is_int(range->second.min, 0) ||
          !arith::proves_equal(tenon::cast(kInt64, step), tenon::cast(kInt64, box[d].extent)) ||
          !arith::proves_equal(
              tenon::cast(kInt64, range->second.extent) * tenon::cast(kInt64, step),
              tenon::cast(kInt64, dim)))
        return;
    }
    for (const auto& [var, range] : running_) {
      const auto extent = as_int(range.extent);
      if (!used.count(var) && !(extent && *extent > 0)) return;
    }
    // What the same statement reads of it may come first.
    if (!found_[*param].reads) found_[*param].fills = true;
  }

  const std::vector<Ref<Buffer>>& buffers_;
  const Stmt& body_;
  Aliases aliases_;
  CallEffects& effects_;
  bool returns_early_ = false;
  std::vector<ParamEffect> found_;
  std::unordered_map<const Node*, Range> running_;
  Substitution axes_;
  std::map<size_t, std::set<size_t>>
      rows_;  // of parameters: dimensions that loops around go through
};

}  // namespace

const std::vector<ParamEffect>& CallEffects::of(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(name);
  if (found != known_.end()) return found->second;
  // Callees first, without recursion: how deep calls nest is up to the module.
  struct Open {
    std::string name;
    std::vector<CallSite> calls;
    size_t next = 0;
  };
  std::unordered_set<std::string> started;
  std::vector<Open> open;
  const auto start = [&](const std::string& function) {
    if (!known_.count(function) && started.insert(function).second)
      open.push_back({function, calls_of(module_, function)});
  };
  is_searching_ = true;
  start(name);
  while (!open.empty()) {
    Open& at = open.back();
    if (at.next < at.calls.size()) {
      const std::string callee = at.calls[at.next++].callee;
      start(callee);
      continue;
    }
    std::vector<ParamEffect> effects = find(at.name);
    known_[at.name] = std::move(effects);
    open.pop_back();
  }
  is_searching_ = false;
  return known_.at(name);
}

const std::vector<ParamEffect>& CallEffects::after_callees(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto [it, is_new] = known_.try_emplace(name);
  if (is_new) it->second = find(name);
  return it->second;
}

/// What the function itself shows, and what is known of its callees.
std::vector<ParamEffect> CallEffects::find(const std::string& name) {
  std::vector<ParamEffect> effects;
  if (const auto external = module_.find<ExternFunction>(name)) {
    for (size_t i = 0; i < external->params.size(); ++i) {
      // What scratch holds means nothing before, but the function may read what it wrote there.
      const ParamUse use = external->uses[i];
      const bool is_buffer = static_cast<bool>(external->buffers[i]);
      effects.push_back({is_buffer && (use == ParamUse::kIn || use == ParamUse::kInOut),
                         is_buffer && use != ParamUse::kIn,
                         is_buffer && (use == ParamUse::kOut || use == ParamUse::kScratch)});
    }
    return effects;
  }
  const Ref<PrimFunc> function = module_.find<PrimFunc>(name);
  return function ? effects_on(function->body, function->buffers, *this) : effects;
}

std::vector<ParamEffect> effects_on(const Stmt& stmt, const std::vector<Ref<Buffer>>& buffers,
                                    CallEffects& effects) {
  return Scan(buffers, stmt, effects).run();
}

ParamEffect CallEffects::of(const std::string& callee, size_t argument) {
  constexpr ParamEffect kBoth{true, true, false};
  const std::lock_guard lock(mutex_);
  auto found = known_.find(callee);
  if (found == known_.end()) {
    const BaseFunc function = module_.find(callee);
    if (is_searching_ || !(function.as<PrimFunc>() || function.as<ExternFunction>())) return kBoth;
    of(callee);
    found = known_.find(callee);
  }
  return argument < found->second.size() ? found->second[argument] : kBoth;
}

bool CallEffects::is_pure(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto known = pure_.find(name);
  if (known != pure_.end()) return known->second;
  pure_[name] = true;  // where a cycle closes
  bool pure = true;
  if (const auto external = module_.find<ExternFunction>(name)) {
    pure = external->is_pure && external->result.is_void();
  } else if (const auto function = module_.find<PrimFunc>(name)) {
    each_effect(function->body, unknown_callee, [&](const StmtEffect& effect) {
      if (effect.memory || !pure) return;
      const auto* statement = effect.node.as<CallTir>();
      const auto* call = effect.node.as<Call>();
      pure = effect.kind == Kind::kCall &&
             is_pure((statement ? statement->callee : call->callee)->name);
    });
  } else {
    pure = false;
  }
  return pure_[name] = pure;
}

}  // namespace tenon::tir
