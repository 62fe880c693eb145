// SPDX-License-Identifier: Apache-2.0
#include "tenon/memory/plan_module.h"

#include <algorithm>
#include <unordered_map>

#include "tenon/memory/pools.h"
#include "tenon/support/remarks.h"

namespace tenon::memory {

namespace {

using tir::AllocBuffer;
using tir::Buffer;
using tir::DeclBuffer;
using tir::Stmt;

/// Walks the statements in order, counts steps, and notes at which steps each allocation is used.
class Liveness {
 public:
  ModuleProblem run(const tir::PrimFunc& function) {
    visit(function.body);
    ModuleProblem problem;
    problem.steps = step_;
    for (const Life& life : lives_) {
      const int64_t element = life.buffer->dtype.bytes();
      problem.buffers.push_back(life.buffer);
      problem.allocations.push_back({life.buffer->name,
                                     tir::element_count(life.buffer->shape) * element,
                                     std::max<int64_t>(64, life.buffer->alignment), life.first,
                                     life.last + 1, life.buffer->origin});
    }
    return problem;
  }

 private:
  struct Life {
    Ref<Buffer> buffer;
    int64_t first, last;
    size_t depth;  // loops around the allocation
  };
  struct Loop {
    int64_t begin;
    std::vector<size_t> used;  // allocations from outside it that it uses
  };

  void visit(const Stmt& stmt) {
    if (const auto* sequence = stmt.as<tir::Seq>()) {
      for (const Stmt& inner : sequence->stmts) visit(inner);
      return;
    }
    if (const auto* alloc = stmt.as<AllocBuffer>()) {
      root_[alloc->buffer->data.get()] = lives_.size();
      lives_.push_back({alloc->buffer, step_, step_, loops_.size()});
      ++step_;
      return;
    }
    if (const auto* view = stmt.as<DeclBuffer>()) {
      walk<Var>(view->data, [&](const Var& var) {
        const auto it = root_.find(&var);
        if (it != root_.end()) root_[view->buffer->data.get()] = it->second;
      });
      return;
    }
    if (const auto* branch = stmt.as<tir::IfThenElse>()) {
      use(branch->condition);
      ++step_;
      visit(branch->then_case);
      if (branch->else_case) visit(branch->else_case);
      return;
    }
    if (const auto* loop = stmt.as<tir::For>()) {
      use(loop->min);
      use(loop->extent);
      enter_loop(loop->body);
      return;
    }
    if (const auto* loop = stmt.as<tir::While>()) {
      use(loop->condition);
      enter_loop(loop->body);
      return;
    }
    use(stmt);
    ++step_;
  }

  void enter_loop(const Stmt& body) {
    loops_.push_back({step_++, {}});
    visit(body);
    const Loop loop = std::move(loops_.back());
    loops_.pop_back();
    // What was allocated before the loop and is used in it stays alive for all of its iterations.
    for (const size_t life : loop.used) {
      lives_[life].first = std::min(lives_[life].first, loop.begin);
      lives_[life].last = std::max(lives_[life].last, step_);
    }
    ++step_;
  }

  void use(const NodePtr& node) {
    walk(node, [&](const NodePtr& inner) {
      const Node* pointer = nullptr;
      if (const auto* buffer = inner.as<Buffer>()) pointer = buffer->data.get();
      if (const auto* var = inner.as<Var>()) pointer = var;
      const auto it = pointer ? root_.find(pointer) : root_.end();
      if (it == root_.end()) return;
      Life& life = lives_[it->second];
      life.last = std::max(life.last, step_);
      for (size_t depth = life.depth; depth < loops_.size(); ++depth)
        loops_[depth].used.push_back(it->second);
    });
  }

  std::vector<Life> lives_;
  std::unordered_map<const Node*, size_t> root_;  // pointer -> allocation
  std::vector<Loop> loops_;
  int64_t step_ = 0;
};

/// Every allocation that was placed becomes a view of the workspace.
class WorkspaceViews final : public Rewriter {
 public:
  WorkspaceViews(Ref<Buffer> workspace, const ModuleProblem& problem,
                 const std::vector<Expr>& offsets)
      : workspace_(std::move(workspace)) {
    for (size_t i = 0; i < problem.buffers.size(); ++i)
      offsets_.emplace(problem.buffers[i].get(), offsets[i]);
  }

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    const auto* alloc = node.as<AllocBuffer>();
    const auto it = alloc ? offsets_.find(alloc->buffer.get()) : offsets_.end();
    if (it == offsets_.end()) return rewrite_members(node);
    const Expr address = call(IntrinsicId::kAddressOf, {tir::load(workspace_, {it->second})});
    return make<DeclBuffer>(alloc->buffer, address, alloc->origin);
  }

 private:
  Ref<Buffer> workspace_;
  std::unordered_map<const Node*, Expr> offsets_;
};

}  // namespace

ModuleProblem extract_problem(const tir::PrimFunc& function) { return Liveness().run(function); }

namespace {

/// A plan of the whole: places in one range of bytes, in which the pools lie one after another.
struct ModulePlan {
  std::vector<Expr> offsets;
  Expr total;
  int64_t constant_bytes = 0, bound_bytes = 0;
  std::vector<std::string> pools;  // of each buffer; empty where there is one pool
  AttrList layout;                 // for `tenon.pools`
};

ModulePlan plan_one_pool(const ModuleProblem& problem, const PlanOptions& options) {
  const SymbolicPlan plan =
      plan_symbolic(problem.allocations, {options, proves_less_equal_by_structure});
  const int64_t bound = plan.constants.pools.empty() ? 0 : plan.constants.pools[0].lower_bound;
  return {plan.offsets, plan.total, plan.constant_bytes, bound, {}, {}};
}

ModulePlan plan_several_pools(const ModuleProblem& module, const std::vector<PoolOption>& pools,
                              const PlanOptions& options) {
  Problem problem;
  problem.pools.clear();
  for (const PoolOption& pool : pools) problem.pools.push_back({pool.name, pool.capacity});
  const size_t last = pools.size() - 1;
  std::vector<size_t> constant;  // index in the module's list of each buffer of the problem
  for (size_t i = 0; i < module.allocations.size(); ++i) {
    const SymbolicAllocation& b = module.allocations[i];
    const auto bytes = as_int(b.bytes);
    if (bytes) {
      constant.push_back(i);
      problem.buffers.push_back({b.name, *bytes, b.alignment, b.lower, b.upper, 0, b.origin});
    } else if (pools[last].capacity) {
      throw CompileError(kDoesNotFit, b.origin,
                         "buffer `{}` has {} bytes, which is known only at run time, and pool `{}` "
                         "has {}; give a last pool without a size",
                         b.name, str(b.bytes), pools[last].name, *pools[last].capacity);
    }
  }
  const Plan placed = plan_pools(problem, options);
  ModulePlan out;
  out.offsets.resize(module.allocations.size());
  out.pools.assign(module.allocations.size(), pools[last].name);
  // Where a pool begins is a multiple of what is asked in any.
  int64_t alignment = 64;
  for (const SymbolicAllocation& buffer : module.allocations)
    alignment = std::max(alignment, buffer.alignment);
  int64_t base = 0;
  for (size_t p = 0; p < pools.size(); ++p) {
    out.layout.push_back(AttrList{pools[p].name, base, pools[p].capacity.value_or(int64_t{-1})});
    out.bound_bytes += placed.pools[p].lower_bound;
    if (p < last) base = align_up(base + placed.pools[p].peak, alignment);
  }
  for (size_t k = 0; k < constant.size(); ++k) {
    const auto pool = static_cast<size_t>(problem.buffers[k].pool);
    const auto* row = out.layout[pool].as<AttrList>();
    out.pools[constant[k]] = pools[pool].name;
    out.offsets[constant[k]] = int64(*(*row)[1].as<int64_t>() + placed.offsets[k]);
  }
  out.total = int64(base + placed.pools[last].peak);
  out.constant_bytes = base + placed.pools[last].peak;
  if (constant.size() == module.allocations.size()) return out;

  // The last pool again, with those whose size is known only at run time.
  std::vector<SymbolicAllocation> rest;
  std::vector<size_t> rest_of;
  for (size_t i = 0; i < module.allocations.size(); ++i)
    if (out.pools[i] == pools[last].name) {
      rest.push_back(module.allocations[i]);
      rest_of.push_back(i);
    }
  const SymbolicPlan plan = plan_symbolic(rest, {options, proves_less_equal_by_structure});
  for (size_t k = 0; k < rest.size(); ++k) out.offsets[rest_of[k]] = plan.offsets[k] + base;
  out.total = plan.total + base;
  out.constant_bytes = base + plan.constant_bytes;
  return out;
}

ModulePlan plan_of(const IRModule& module, const ModuleProblem& problem,
                   const PlanOptions& options) {
  std::vector<PoolOption> pools;
  if (const auto text = module.attrs.get<std::string>("pools")) pools = parse_pools(*text);
  std::erase_if(pools, [](const PoolOption& pool) { return pool.is_read_only; });
  return pools.empty() ? plan_one_pool(problem, options)
                       : plan_several_pools(problem, pools, options);
}

}  // namespace

IRModule plan_memory(IRModule module, const PlanOptions& options) {
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    const auto function = cast<tir::PrimFunc>(base);
    if (!function || !function->attrs.flag("tenon.entry") ||
        function->attrs.contains("tenon.workspace_bytes"))
      continue;
    const ModuleProblem problem = extract_problem(*function);
    const ModulePlan plan = plan_of(module, problem, options);
    // Offsets are multiples of each buffer's alignment, so the whole has the greatest.
    int64_t alignment = 64;
    for (const SymbolicAllocation& buffer : problem.allocations)
      alignment = std::max(alignment, buffer.alignment);
    const auto workspace = make<Buffer>("workspace", kUInt8, std::vector<Expr>{plan.total},
                                        Buffer::Options{.alignment = alignment});
    const Ref<tir::PrimFunc> planned = with(*function, [&](tir::PrimFunc& copy) {
      copy.params.push_back(make<Var>("workspace_handle", kHandle));
      copy.buffers.push_back(workspace);
      copy.body = WorkspaceViews(workspace, problem, plan.offsets)(function->body);
      const auto total = as_int(plan.total);
      copy.attrs.set("tenon.workspace_bytes",
                     total ? AttrValue(*total) : AttrValue(NodePtr(plan.total)));
      copy.attrs.set("tenon.planned_bytes", plan.constant_bytes);
      copy.attrs.set("tenon.bound_bytes", plan.bound_bytes);
      if (!plan.layout.empty()) copy.attrs.set("tenon.pools", plan.layout);
    });
    module.set(name, planned);
    for (size_t i = 0; i < problem.buffers.size(); ++i) {
      const auto bytes = as_int(problem.allocations[i].bytes), offset = as_int(plan.offsets[i]);
      record({"PlanMemory",
              problem.buffers[i]->name,
              "placed",
              bytes ? "constant-size" : "symbolic-size",
              {{"bytes", static_cast<double>(bytes.value_or(-1))},
               {"offset", static_cast<double>(offset.value_or(-1))},
               {"first", static_cast<double>(problem.allocations[i].lower)},
               {"last", static_cast<double>(problem.allocations[i].upper - 1)}},
              plan.pools.empty() ? "" : "in pool `" + plan.pools[i] + "`",
              problem.buffers[i]->origin});
    }
  }
  return module;
}

}  // namespace tenon::memory
