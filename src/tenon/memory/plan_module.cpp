// SPDX-License-Identifier: Apache-2.0
#include "tenon/memory/plan_module.h"

#include <algorithm>
#include <unordered_map>

#include "tenon/arith/analyzer.h"
#include "tenon/memory/late_sizes.h"
#include "tenon/memory/pools.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/host_memory.h"

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
    problem.calls = std::move(calls_);
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
      if (tir::is_host_memory(*alloc)) return;
      root_[alloc->buffer->data.get()] = lives_.size();
      lives_.push_back({alloc->buffer, step_, step_, loops_.size()});
      ++step_;
      return;
    }
    if (const auto* view = stmt.as<DeclBuffer>()) {
      // Of a pointer, or of an element's address.
      walk(view->data, [&](const NodePtr& node) {
        const auto* buffer = node.as<Buffer>();
        const auto it = root_.find(buffer ? buffer->data.get() : node.get());
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
      enter_loop(loop->body, loop->condition);
      return;
    }
    if (const auto* call = stmt.as<tir::CallTir>()) calls_.push_back({step_, ref_to(call)});
    use(stmt);
    ++step_;
  }

  // \param condition  looked at before each iteration, or null
  void enter_loop(const Stmt& body, const Expr& condition = {}) {
    loops_.push_back({step_++, {}});
    if (condition) use(condition);
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
  std::vector<ModuleProblem::Call> calls_;
  std::unordered_map<const Node*, size_t> root_;  // pointer -> allocation
  std::vector<Loop> loops_;
  int64_t step_ = 0;
};

/// Every allocation that was placed becomes a view of the workspace, or of the part of it that the
/// host gives where the sizes of its level are known.
class WorkspaceViews final : public Rewriter {
 public:
  void place(const Ref<Buffer>& buffer, const Ref<Buffer>& workspace, const Expr& offset) {
    places_[buffer.get()] = {workspace, offset};
  }
  /// `workspace` is asked for behind statement `bind`.
  void ask(const Node* bind, const Ref<Buffer>& workspace, int64_t slot) {
    asked_[bind] =
        make<AllocBuffer>(workspace, Attrs{{tir::kHostWorkspace, slot}}, workspace->origin);
  }

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    if (const auto* sequence = node.as<tir::Seq>(); sequence && !asked_.empty())
      return rewrite_sequence(*sequence);
    const auto* alloc = node.as<AllocBuffer>();
    const auto it = alloc ? places_.find(alloc->buffer.get()) : places_.end();
    if (it == places_.end()) return rewrite_members(node);
    const auto& [workspace, offset] = it->second;
    const Expr address = call(IntrinsicId::kAddressOf, {tir::load(workspace, {offset})});
    return make<DeclBuffer>(alloc->buffer, address, alloc->origin);
  }

 private:
  NodePtr rewrite_sequence(const tir::Seq& sequence) {
    std::vector<Stmt> out;
    for (const Stmt& stmt : sequence.stmts) {
      out.push_back(downcast<tir::StmtNode>((*this)(NodePtr(stmt))));
      if (const auto it = asked_.find(stmt.get()); it != asked_.end()) out.push_back(it->second);
    }
    return make<tir::Seq>(std::move(out), sequence.origin);
  }

  std::unordered_map<const Node*, std::pair<Ref<Buffer>, Expr>> places_;
  std::unordered_map<const Node*, Stmt> asked_;
};

}  // namespace

ModuleProblem extract_problem(const tir::PrimFunc& function) { return Liveness().run(function); }

std::vector<int64_t> alive_bytes(const ModuleProblem& problem) {
  std::vector<int64_t> change(static_cast<size_t>(problem.steps) + 1);
  for (const SymbolicAllocation& buffer : problem.allocations) {
    const auto bytes = as_int(buffer.bytes);
    if (!bytes) return {};
    const int64_t padded = align_up(*bytes, buffer.alignment);
    change[static_cast<size_t>(buffer.lower)] += padded;
    change[static_cast<size_t>(buffer.upper)] -= padded;
  }
  for (size_t step = 1; step < change.size(); ++step) change[step] += change[step - 1];
  return change;
}

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

namespace {

int64_t alignment_of(const ModuleProblem& problem) {
  // Offsets are multiples of each buffer's alignment, so the whole has the greatest.
  int64_t alignment = 64;
  for (const SymbolicAllocation& buffer : problem.allocations)
    alignment = std::max(alignment, buffer.alignment);
  return alignment;
}

/// Takes the allocations out of `problem` whose size is known only when part of the program has
/// run; a bound that is known before stands for the size where there is one.
std::vector<ModuleProblem> take_late(ModuleProblem& problem, const LateSizes& late) {
  std::vector<ModuleProblem> levels(late.levels());
  ModuleProblem early;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    SymbolicAllocation& allocation = problem.allocations[i];
    size_t level = late.level_of(allocation.bytes);
    if (const Expr bound = level > 0 ? late.bound_of(allocation.bytes) : Expr()) {
      allocation.bytes = bound;
      level = 0;
    }
    ModuleProblem& own = level == 0 ? early : levels[level];
    own.buffers.push_back(problem.buffers[i]);
    own.allocations.push_back(allocation);
  }
  early.steps = problem.steps;
  problem = std::move(early);
  return levels;
}

/// Places the allocations of each level in memory that the host gives where the level begins.
void plan_late(const std::vector<ModuleProblem>& levels, const LateSizes& late,
               const PlanOptions& options, int64_t slots, WorkspaceViews& views) {
  for (size_t level = 1; level < levels.size(); ++level) {
    const ModuleProblem& problem = levels[level];
    if (problem.buffers.empty()) continue;
    const ModulePlan plan = plan_one_pool(problem, options);
    const auto workspace = make<Buffer>(fmt::format("workspace_{}", level), kUInt8,
                                        std::vector<Expr>{arith::simplify(plan.total)},
                                        Buffer::Options{.alignment = alignment_of(problem)});
    views.ask(late.last_statement(level), workspace, slots + static_cast<int64_t>(level));
    for (size_t i = 0; i < problem.buffers.size(); ++i) {
      views.place(problem.buffers[i], workspace, plan.offsets[i]);
      record({"PlanMemory",
              problem.buffers[i]->name,
              "placed-late",
              "size-known-in-the-run",
              {{"level", static_cast<double>(level)},
               {"first", static_cast<double>(problem.allocations[i].lower)},
               {"last", static_cast<double>(problem.allocations[i].upper - 1)}},
              "",
              problem.buffers[i]->origin});
    }
  }
}

}  // namespace

IRModule plan_memory(IRModule module, const PlanOptions& options) {
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    const auto function = cast<tir::PrimFunc>(base);
    if (!function || !function->attrs.flag("tenon.entry") ||
        function->attrs.contains("tenon.workspace_bytes"))
      continue;
    ModuleProblem problem = extract_problem(*function);
    const LateSizes late(*function);
    WorkspaceViews views;
    // Loops ask for memory by slots of their own.
    int64_t slots = 0;
    walk<AllocBuffer>(function->body, [&](const AllocBuffer& alloc) {
      slots = std::max(slots, tir::host_workspace(alloc).value_or(0));
    });
    plan_late(take_late(problem, late), late, options, slots, views);
    const ModulePlan plan = plan_of(module, problem, options);
    const auto workspace = make<Buffer>("workspace", kUInt8, std::vector<Expr>{plan.total},
                                        Buffer::Options{.alignment = alignment_of(problem)});
    for (size_t i = 0; i < problem.buffers.size(); ++i)
      views.place(problem.buffers[i], workspace, plan.offsets[i]);
    const Ref<tir::PrimFunc> planned = with(*function, [&](tir::PrimFunc& copy) {
      copy.params.push_back(make<Var>("workspace_handle", kHandle));
      copy.buffers.push_back(workspace);
      copy.body = views(function->body);
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
