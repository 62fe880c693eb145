// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/analysis/longest_sum.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace tenon::tir {

namespace {

using Vars = std::unordered_set<const Node*>;

class Walker {
 public:
  explicit Walker(int64_t unknown) : unknown_(unknown) {}

  void visit(const Stmt& stmt) {
    if (!stmt) return;
    if (const auto* sequence = stmt.as<Seq>()) {
      for (const Stmt& inner : sequence->stmts) visit(inner);
    } else if (const auto* loop = stmt.as<For>()) {
      const auto extent = as_int(loop->extent);
      loops_.push_back({loop->loop_var.get(), std::max<int64_t>(1, extent.value_or(unknown_))});
      visit(loop->body);
      loops_.pop_back();
    } else if (const auto* loop = stmt.as<While>()) {
      loops_.push_back({nullptr, unknown_});
      visit(loop->body);
      loops_.pop_back();
    } else if (const auto* realize = stmt.as<BlockRealize>()) {
      for (size_t i = 0; i < realize->iter_values.size(); ++i)
        depends_[realize->block->iter_vars[i].var.get()] = loops_of(realize->iter_values[i]);
      visit(realize->block->body);
    } else if (const auto* bind = stmt.as<Bind>()) {
      depends_[bind->var.get()] = loops_of(bind->value);
    } else if (const auto* branch = stmt.as<IfThenElse>()) {
      visit(branch->then_case);
      visit(branch->else_case);
    } else if (const auto* attr = stmt.as<AttrStmt>()) {
      visit(attr->body);
    } else if (const auto* store = stmt.as<BufferStore>()) {
      this->store(*store);
    }
  }

  int64_t longest() const { return longest_; }

 private:
  // The loops that a value varies with.
  Vars loops_of(const NodePtr& expr) const {
    Vars found;
    walk<Var>(expr, [&](const Var& var) {
      const auto known = depends_.find(&var);
      if (known == depends_.end())
        found.insert(&var);
      else
        found.insert(known->second.begin(), known->second.end());
    });
    return found;
  }

  void store(const BufferStore& store) {
    bool adds = false;
    walk<BufferLoad>(store.value, [&](const BufferLoad& load) {
      adds = adds || load.buffer.same_as(store.buffer);
    });
    if (!adds) return;
    Vars varies;
    for (const Expr& index : store.indices) varies.merge(loops_of(index));
    double terms = 1;
    for (const auto& [var, extent] : loops_)
      if (!varies.count(var)) terms *= static_cast<double>(extent);
    constexpr double kMost = 1e12;
    longest_ = std::max(longest_, static_cast<int64_t>(std::min(terms, kMost)));
  }

  const int64_t unknown_;
  int64_t longest_ = 1;
  std::vector<std::pair<const Node*, int64_t>> loops_;
  std::unordered_map<const Node*, Vars> depends_;
};

}  // namespace

int64_t longest_sum(const PrimFunc& function, int64_t unknown) {
  Walker walker(unknown);
  walker.visit(function.body);
  return walker.longest();
}

}  // namespace tenon::tir
