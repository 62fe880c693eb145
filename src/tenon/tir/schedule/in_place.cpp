// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/in_place.h"

#include <algorithm>

#include "tenon/tir/analysis/pipeline.h"
#include "tenon/tir/schedule/coverage.h"
#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

namespace {

using arith::Iterator;

// One load of the input or store to the output, in terms of the loops around.
struct Access {
  std::vector<const For*> loops;  // outermost first
  std::vector<Expr> indices;
  std::vector<Expr> conditions;  // under which it runs
  int64_t time = 0;              // in one run of the loops; a store comes after its own loads
  bool is_anywhere = false;      // indices are data: it may be any element
};

class AccessFinder {
 public:
  AccessFinder(const Ref<Buffer>& input, const Ref<Buffer>& output)
      : input_(input), output_(output) {}

  void visit(const Stmt& stmt) {
    if (const auto* store = stmt.as<BufferStore>()) {
      ++now_.time;
      find_loads(store->value);
      for (const Expr& index : store->indices) find_loads(index);
      if (store->buffer.same_as(input_)) is_understood_ = false;
      if (store->buffer.same_as(output_)) add(stores_, store->indices);
    } else if (const auto* loop = stmt.as<For>()) {
      find_loads(loop->min);
      find_loads(loop->extent);
      // Stages of a pipeline will run out of the order in which they stand.
      if (loop->annotations.contains(kPipelineStage)) is_understood_ = false;
      const auto before = now_;
      now_.loops.push_back(loop);
      visit(loop->body);
      leave(before);
    } else if (const auto* branch = stmt.as<IfThenElse>()) {
      find_loads(branch->condition);
      const auto before = now_;
      for (const Expr& condition : conjuncts(branch->condition))
        now_.conditions.push_back(substitute(condition, values_));
      visit(branch->then_case);
      leave(before);
      if (branch->else_case) visit(branch->else_case);
    } else if (const auto* realize = stmt.as<BlockRealize>()) {
      visit_block(*realize);
    } else if (const auto* several = stmt.as<Seq>()) {
      for (const Stmt& child : several->stmts) visit(child);
    } else if (const auto* bind = stmt.as<Bind>()) {
      find_loads(bind->value);
      values_[bind->var.get()] = substitute(bind->value, values_);
    } else if (const auto* attr = stmt.as<AttrStmt>()) {
      find_loads(attr->subject);
      visit(attr->body);
    } else {
      // Other statements may not touch the two at all.
      find_loads(stmt, false);
    }
  }

  bool is_safe() const {
    return is_understood_ && !stores_.empty() &&
           std::all_of(stores_.begin(), stores_.end(), [&](const Access& store) {
             return std::all_of(loads_.begin(), loads_.end(),
                                [&](const Access& load) { return reads_first(load, store); });
           });
  }

 private:
  void leave(const Access& before) {
    const int64_t time = now_.time;
    now_ = before;
    now_.time = time;
  }

  void visit_block(const BlockRealize& realize) {
    const Block& block = *realize.block;
    const auto before = now_;
    for (const Expr& value : realize.iter_values) find_loads(value);
    find_loads(realize.predicate);
    for (const Expr& condition : conjuncts(realize.predicate))
      now_.conditions.push_back(substitute(condition, values_));
    for (size_t i = 0; i < block.iter_vars.size(); ++i)
      values_[block.iter_vars[i].var.get()] = substitute(realize.iter_values[i], values_);
    for (const MatchBuffer& view : block.match_buffers)
      if (is_shared(view.source->buffer)) is_understood_ = false;
    if (block.init) visit(block.init);
    visit(block.body);
    leave(before);
  }

  bool is_shared(const NodePtr& node) const {
    return node.same_as(input_) || node.same_as(output_) || node.same_as(input_->data) ||
           node.same_as(output_->data);
  }

  // Any other use than a load of scalars hides what is accessed when; so do names for values.
  void find_loads(const NodePtr& node, bool may_load = true) {
    if (!node) return;
    if (is_shared(node) || node.as<Let>()) {
      is_understood_ = false;
      return;
    }
    const auto* load = node.as<BufferLoad>();
    if (load && may_load && is_shared(load->buffer)) {
      if (load->buffer.same_as(input_)) add(loads_, load->indices);
      for (const Expr& index : load->indices) find_loads(index);
      return;
    }
    each_member(node, [&](const NodePtr& member, FieldRole) { find_loads(member, may_load); });
  }

  void add(std::vector<Access>& list, const std::vector<Expr>& indices) {
    Access access = now_;
    for (const Expr& index : indices) {
      access.indices.push_back(substitute(index, values_));
      // What memory holds may change between two looks at it.
      walk(access.indices.back(), [&](const NodePtr& node) {
        const auto* expr = node.as<ExprNode>();
        if (node.as<BufferLoad>() || node.as<Call>() || (expr && !expr->dtype.is_scalar()))
          access.is_anywhere = true;
      });
    }
    list.push_back(std::move(access));
  }

  // In one run of the loops around both, by the order of statements; in different runs, the two
  // never meet.
  static bool reads_first(const Access& load, const Access& store) {
    if (load.time > store.time) return false;
    size_t shared = 0;
    while (shared < load.loops.size() && shared < store.loops.size() &&
           load.loops[shared] == store.loops[shared])
      ++shared;
    // Of elements that only the run knows: all loads are done before the first store.
    if (load.is_anywhere || store.is_anywhere) return shared == 0;
    std::vector<Iterator> loops;
    std::vector<const Var*> inner;
    for (size_t i = 0; i < store.loops.size(); ++i) {
      const For& loop = *store.loops[i];
      if (i < shared)
        loops.push_back({loop.loop_var, loop.min, loop.extent});
      else
        inner.push_back(loop.loop_var.get());
    }
    const auto is_outer = [&](const Expr& expr) {
      return std::none_of(inner.begin(), inner.end(),
                          [&](const Var* var) { return uses_var(expr, var); });
    };
    std::vector<Expr> common;  // indices that are the same in both, and stand while inner loops run
    for (size_t d = 0; d < store.indices.size(); ++d)
      if (is_outer(store.indices[d]) && structural_equal(store.indices[d], load.indices[d]))
        common.push_back(store.indices[d]);
    std::vector<Expr> conditions;
    for (const Expr& condition : store.conditions)
      if (is_outer(condition) &&
          std::any_of(load.conditions.begin(), load.conditions.end(),
                      [&](const Expr& other) { return structural_equal(condition, other); }))
        conditions.push_back(condition);
    arith::Analyzer analyzer;
    return proves_distinct(common, std::move(loops), conditions, analyzer);
  }

  Ref<Buffer> input_, output_;
  Access now_;
  Substitution values_;
  std::vector<Access> loads_, stores_;
  bool is_understood_ = true;
};

bool same_memory(const Buffer& a, const Buffer& b) {
  const auto same = [](const std::vector<Expr>& x, const std::vector<Expr>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const Expr& l, const Expr& r) { return structural_equal(l, r); });
  };
  const auto starts = [](const Buffer& buffer) {
    return !buffer.elem_offset || is_int(buffer.elem_offset, 0);
  };
  return a.dtype == b.dtype && a.scope == b.scope && same(a.shape, b.shape) && a.is_compact() &&
         b.is_compact() && starts(a) && starts(b);
}

bool is_empty(const Stmt& stmt) {
  const auto* several = stmt.as<Seq>();
  return several && several->stmts.empty();
}

// Removes `x[i] = x[i]`, which a copy in place leaves, and statements that held nothing else.
Stmt without_self_copies(const Stmt& body) {
  const NodePtr whole = body;
  const NodePtr kept = rewrite(whole, [](const NodePtr& node) -> std::optional<NodePtr> {
    bool drops = false;
    if (const auto* store = node.as<BufferStore>()) {
      const auto* load = store->value.as<BufferLoad>();
      drops = load && load->buffer.same_as(store->buffer) &&
              std::equal(load->indices.begin(), load->indices.end(), store->indices.begin(),
                         store->indices.end(),
                         [](const Expr& l, const Expr& r) { return structural_equal(l, r); });
      for (const Expr& index : store->indices)  // checks stay
        walk<Call>(index, [&](const Call&) { drops = false; });
    } else if (const auto* loop = node.as<For>()) {
      drops = is_empty(loop->body);
    } else if (const auto* several = node.as<Seq>(); several && several->stmts.size() == 1) {
      return several->stmts[0];
    } else if (const auto* realize = node.as<BlockRealize>()) {
      drops = is_empty(realize->block->body) && !realize->block->init;
    }
    return drops ? std::optional<NodePtr>(NodePtr()) : std::nullopt;
  });
  return kept ? downcast<StmtNode>(kept) : body;
}

}  // namespace

bool may_share_memory(const PrimFunc& function, size_t input, size_t output) {
  const Ref<Buffer>& in = function.buffers.at(input);
  const Ref<Buffer>& out = function.buffers.at(output);
  if (!in || !out || in.same_as(out) || !same_memory(*in, *out)) return false;
  AccessFinder finder(in, out);
  finder.visit(function.body);
  return finder.is_safe();
}

Ref<PrimFunc> in_place(const PrimFunc& function, size_t input, size_t output) {
  const Ref<Buffer>& in = function.buffers.at(input);
  const Ref<Buffer>& out = function.buffers.at(output);
  std::vector<Ref<Var>> params = function.params;
  std::vector<Ref<Buffer>> buffers = function.buffers;
  params.erase(params.begin() + static_cast<std::ptrdiff_t>(output));
  buffers.erase(buffers.begin() + static_cast<std::ptrdiff_t>(output));
  const Stmt body = without_self_copies(
      substitute(function.body, {{out.get(), in}, {out->data.get(), in->data}}));
  return renew_definitions(with(
      make<PrimFunc>(std::move(params), std::move(buffers), body, function.attrs, function.origin),
      [&](PrimFunc& made) {
        made.result = function.result;
        made.is_private = true;
      }));
}

}  // namespace tenon::tir
