#include "tenon/memory/plan_module.h"

#include <algorithm>
#include <unordered_map>

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
class Placer final : public Rewriter {
 public:
  Placer(Ref<Buffer> workspace, const ModuleProblem& problem, const SymbolicPlan& plan)
      : workspace_(std::move(workspace)) {
    for (size_t i = 0; i < problem.buffers.size(); ++i)
      offsets_.emplace(problem.buffers[i].get(), plan.offsets[i]);
  }

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    const auto* alloc = node.as<AllocBuffer>();
    const auto it = alloc ? offsets_.find(alloc->buffer.get()) : offsets_.end();
    if (it == offsets_.end()) return rewrite_members(node);
    const Expr address = call("address_of", {tir::load(workspace_, {it->second})});
    return make<DeclBuffer>(alloc->buffer, address, alloc->origin);
  }

 private:
  Ref<Buffer> workspace_;
  std::unordered_map<const Node*, Expr> offsets_;
};

}  // namespace

ModuleProblem extract_problem(const tir::PrimFunc& function) { return Liveness().run(function); }

IRModule plan_memory(IRModule module, const PlanOptions& options) {
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    const auto function = cast<tir::PrimFunc>(base);
    if (!function || !function->attrs.flag("tenon.entry") ||
        function->attrs.contains("tenon.workspace_bytes"))
      continue;
    const ModuleProblem problem = extract_problem(*function);
    const SymbolicPlan plan =
        plan_symbolic(problem.allocations, {options, proves_less_equal_by_structure});
    const auto workspace = make<Buffer>("workspace", kUInt8, std::vector<Expr>{plan.total});
    auto* planned = new tir::PrimFunc(*function);
    planned->params.push_back(make<Var>("workspace_handle", kHandle));
    planned->buffers.push_back(workspace);
    planned->body = Placer(workspace, problem, plan)(function->body);
    const auto total = as_int(plan.total);
    planned->attrs.set("tenon.workspace_bytes",
                       total ? AttrValue(*total) : AttrValue(NodePtr(plan.total)));
    planned->attrs.set("tenon.planned_bytes", plan.constant_bytes);
    planned->attrs.set("tenon.bound_bytes", plan.constants.pools.empty()
                                                ? int64_t{0}
                                                : plan.constants.pools[0].lower_bound);
    finish_node(*planned);
    module.set(name, Ref<tir::PrimFunc>(planned));
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
              "",
              problem.buffers[i]->origin});
    }
  }
  return module;
}

}  // namespace tenon::memory
