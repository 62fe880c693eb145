// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "tenon/ir/node_table.h"
#include "tenon/support/interrupt.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/elementary.h"
#include "tenon/tir/transforms.h"

namespace tenon::tir {

static bool has_definitions(const Stmt& stmt) {
  bool found = false;
  walk(stmt, [&](const NodePtr& node) {
    found |= node.as<AllocBuffer>() || node.as<AllocConst>() || node.as<DeclBuffer>() ||
             node.as<Bind>() || node.as<For>() || node.as<Let>() || node.as<Block>();
  });
  return found;
}

namespace {

/// A loop that copies of its body may stand for.
std::optional<int64_t> copies_of(const NodePtr& node) {
  const auto* loop = node.as<For>();
  if (!loop || loop->kind != ForKind::kUnrolled) return std::nullopt;
  return as_int(loop->extent);
}

/// The comparison that chooses for all lanes, null where it is none for equality.
const Binary* equality_of(const Select& select) {
  const auto* lanes = select.condition.as<Broadcast>();
  const auto* test = (lanes ? lanes->value : select.condition).as<Binary>();
  return test && test->op == BinaryOp::kEQ ? test : nullptr;
}

int64_t nodes_in(const NodePtr& root) {
  int64_t count = 0;
  walk(root, [&](const NodePtr&) { ++count; });
  return count;
}

// An operation for each 512 bits of a vector, some dozens for an elementary function.
int64_t work_of(const NodePtr& node) {
  constexpr int64_t kRegister = 512, kElementary = 32;
  const auto* expr = node.as<ExprNode>();
  const auto* call = node.as<Call>();
  const int64_t bits = expr ? int64_t{expr->dtype.lanes} * expr->dtype.bits : 0;
  return std::max<int64_t>(1, bits / kRegister) *
         (call && call->op && is_elementary(call->op->id) ? kElementary : 1);
}

/// Makes loops serial whose copies have no room, inner loops first: loops around loops multiply,
/// and what is made of them is compiled statement by statement.
class Bounds {
 public:
  /// \param room  work that the functions which it is given may make together
  explicit Bounds(int64_t room) : of_module_(room) {}

  static int64_t room_of(const IRModule& module) {
    int64_t room = kFreeOfModule;
    for (const auto& [name, function] : module.functions())
      if (function.as<PrimFunc>()) room += kGrowth * nodes_in(function);
    return room;
  }
  int64_t room() const { return of_module_; }  // that is left

  /// Most functions are soon known to have room for all copies, even if these share nothing. Then
  /// all of that is taken off the room.
  Ref<PrimFunc> run_quickly(const Ref<PrimFunc>& function) {
    statements_.clear();
    const std::optional<int64_t> most = most_work_in(function);
    if (!most || *most > std::min(of_module_, kFreeOfFunction)) return run(function);
    of_module_ -= *most;
    return function;
  }

  Ref<PrimFunc> run(const Ref<PrimFunc>& function) {
    of_function_ = kFreeOfFunction + kGrowth * nodes_in(function);
    made_.clear();
    statements_.clear();
    copies_.clear();
    return rewrite(function, [&](const NodePtr& node) { return (*this)(node); });
  }

 private:
  std::optional<NodePtr> operator()(const NodePtr& node) {
    const auto extent = copies_of(node);
    if (!extent) return std::nullopt;
    const auto& loop = *node.as<For>();
    if (take_room(loop, *extent)) return std::nullopt;
    record({"BoundUnrolling",
            loop.loop_var->name,
            "kept",
            "too-large",
            {{"iterations", static_cast<double>(*extent)}},
            "",
            loop.origin});
    return make<For>(loop.loop_var, loop.min, loop.extent, ForKind::kSerial, loop.body,
                     loop.annotations, loop.origin);
  }

  // No less than what copies make below `root`; nothing where a loop is too long.
  std::optional<int64_t> most_work_in(const NodePtr& root) {
    int64_t most = 0;
    bool fits = true;
    walk_if(root, [&](const NodePtr& node) {
      const auto extent = copies_of(node);
      if (!extent) {
        most += work_of(node);
        return fits;
      }
      const auto& loop = *node.as<For>();
      const std::optional<int64_t> inner = most_work_in(loop.body);
      const int64_t statements = statements_in(loop.body);
      fits = fits && inner && *extent <= kMaxCopies && statements * *extent <= kMaxCopies &&
             *inner <= kFreeOfModule;
      if (!fits) return false;
      statements_[&loop] = *extent * statements;
      most += *extent * *inner;
      return false;
    });
    return fits ? std::optional(most) : std::nullopt;
  }

  // Of `body` once its inner loops are copies.
  int64_t statements_in(const Stmt& body) const {
    int64_t statements = 0;
    for (const Stmt& stmt : stmts_of(body)) {
      const auto inner = statements_.find(stmt.get());
      statements += inner == statements_.end() ? 1 : inner->second;
    }
    return statements;
  }

  // A select whose first value is that of one copy only.
  static const Select* choice_of_one(const NodePtr& node, const Var& variable) {
    const auto* select = node.as<Select>();
    const Binary* test = select ? equality_of(*select) : nullptr;
    return test && test->lhs.get() == &variable && as_int(test->rhs) ? select : nullptr;
  }

  struct Copies {
    int64_t work = 0;
    std::vector<std::pair<const Node*, int64_t>> counts;  // of nodes that are made so often
  };
  // Of the body of a loop. Copies share what depends neither on the loop's variable nor on what each of
  // them defines anew; by its variable they choose one value of a select.
  Copies copies_in(const For& loop, int64_t extent) const {
    Copies out;
    NodeSet changing;
    changing.insert(loop.loop_var.get());
    walk(loop.body, [&](const NodePtr& node) {
      // Loops that become copies define nothing then, and buffers are defined by statements.
      if (statements_.contains(node.get()) || node.get()->type().identity) return;
      each_member(node, [&](const NodePtr& member, FieldRole role) {
        if (role != FieldRole::kDefinition) return;
        changing.insert(member.get());
        if (const auto* buffer = member.as<Buffer>()) changing.insert(buffer->data.get());
      });
    });
    std::unordered_map<const Node*, bool> known;
    const std::function<bool(const NodePtr&, int64_t)> changes = [&](const NodePtr& node,
                                                                     int64_t count) {
      if (const auto it = known.find(node.get()); it != known.end()) return it->second;
      const auto inner = copies_.find(node.get());
      out.work += work_of(node) * (inner == copies_.end() ? 1 : inner->second) * count;
      if (node.get()->type().identity) return known[node.get()] = changing.contains(node.get());
      bool any = false;
      if (const Select* choice = choice_of_one(node, *loop.loop_var); choice && count > 1) {
        any = true;
        changes(choice->true_value, 1);
        changes(choice->false_value, count - 1);
      } else {
        each_member(node, [&](const NodePtr& member, FieldRole) { any |= changes(member, count); });
      }
      if (any) out.counts.emplace_back(node.get(), count);
      return known[node.get()] = any;
    };
    changes(loop.body, extent);
    return out;
  }

  static constexpr int64_t kMaxCopies = 4096;  // of a statement of one loop
  // Work that is made in all, by the nodes that there are. LLVM orders long stretches of statements
  // in quadratic time; the kernels of large networks make some 10,000 each and 200,000 together.
  static constexpr int64_t kFreeOfFunction = 16'384, kFreeOfModule = 400'000, kGrowth = 8;

  bool take_room(const For& loop, int64_t extent) {
    const int64_t statements = statements_in(loop.body);
    if (extent > kMaxCopies || statements * extent > kMaxCopies) return false;
    const Copies made = copies_in(loop, extent);
    // What inner loops took for one body is part of it.
    int64_t more = made.work;
    walk_if(loop.body, [&](const NodePtr& node) {
      const auto inner = made_.find(node.get());
      if (inner != made_.end()) more -= inner->second;
      return inner == made_.end();
    });
    if (more > std::min(of_function_, of_module_)) return false;
    of_function_ -= more;
    of_module_ -= more;
    made_[&loop] = made.work;
    statements_[&loop] = extent * statements;
    for (const auto& [node, count] : made.counts)
      copies_.try_emplace(node, 1).first->second *= count;
    return true;
  }

  int64_t of_function_ = 0, of_module_;  // the room that is left
  // Of loops that become copies: the work and the statements each makes, and how often a node in them
  // is made where that is not once.
  std::unordered_map<const Node*, int64_t> made_, statements_, copies_;
};

}  // namespace

IRModule bound_unrolling(IRModule module) {
  const int64_t room = Bounds::room_of(module);
  std::vector<Remark> remarks;
  IRModule out;
  int64_t made = 0;
  {
    const RemarkScope scope;
    std::mutex mutex;
    out = map_kernels(module, [&](const Ref<PrimFunc>& function) {
      Bounds bounds(room);
      const Ref<PrimFunc> bounded = bounds.run_quickly(function);
      const std::lock_guard lock(mutex);
      made += room - bounds.room();
      return bounded;
    });
    remarks = scope.remarks();
  }
  // All of it fits: one after another, no loop would have been refused for the room that others took.
  if (made <= room) {
    for (Remark& remark : remarks) record(std::move(remark));
    return out;
  }
  Bounds bounds(room);
  const std::vector<IRModule::Entry> functions = module.functions();
  for (const auto& [name, function] : functions) {
    const auto prim = cast<PrimFunc>(function);
    if (!prim) continue;
    check_interrupt();
    module.set(name, bounds.run(prim));
  }
  return module;
}

namespace {

/// The body of a loop for one value of its variable. Selects by that value are decided first, so that
/// of a choice between as many rows as there are copies one row is copied, and not all of them.
class CopyOfBody final : public Rewriter {
 public:
  CopyOfBody(const For& loop, const Expr& value) { replace(loop.loop_var, value); }

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    const auto* select = node.as<Select>();
    const Binary* test = select ? equality_of(*select) : nullptr;
    if (!test) return rewrite_members(node);
    const auto lhs = as_int((*this)(test->lhs)), rhs = as_int((*this)(test->rhs));
    if (!lhs || !rhs) return rewrite_members(node);
    return (*this)(*lhs == *rhs ? select->true_value : select->false_value);
  }
};

}  // namespace

static std::optional<NodePtr> copies(const NodePtr& node) {
  const auto extent = copies_of(node);
  if (!extent) return std::nullopt;
  const auto& loop = *node.as<For>();
  const bool renew = has_definitions(loop.body);
  std::vector<Stmt> stmts;
  for (int64_t i = 0; i < *extent; ++i) {
    const Expr value = loop.min + imm(loop.loop_var->dtype, i);
    const Stmt copy = CopyOfBody(loop, value)(loop.body);
    stmts.push_back(renew ? renew_definitions(copy) : copy);
  }
  return make<Seq>(std::move(stmts), loop.origin);
}

IRModule unroll_loop(IRModule module) {
  return map_kernels(bound_unrolling(std::move(module)),
                     [](const Ref<PrimFunc>& function) { return rewrite(function, &copies); });
}

Ref<PrimFunc> unrolled(const Ref<PrimFunc>& function) {
  const Ref<PrimFunc> out = rewrite(function, &copies);
  return out.same_as(function) ? function : without_no_ops(simplified(out));
}

IRModule with_copies(IRModule module) {
  return map_kernels(bound_unrolling(std::move(module)), unrolled);
}

int64_t unrolled_size(const NodePtr& root) {
  int64_t size = 0;
  walk_if(root, [&](const NodePtr& node) {
    const auto copies = copies_of(node);
    size += copies ? *copies * unrolled_size(node.as<For>()->body) : 1;
    return !copies;
  });
  return size;
}

}  // namespace tenon::tir
