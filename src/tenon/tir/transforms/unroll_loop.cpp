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

  Ref<PrimFunc> run(const Ref<PrimFunc>& function) {
    of_function_ = kFreeOfFunction + kGrowth * nodes_in(function);
    statements_.clear();
    copies_.clear();
    return rewrite(function, [&](const NodePtr& node) { return (*this)(node); });
  }

 private:
  std::optional<NodePtr> operator()(const NodePtr& node) {
    const auto extent = copies_of(node);
    if (!extent) return std::nullopt;
    const auto& loop = *node.as<For>();
    if (take_room(loop.body, *extent)) {
      statements_[node.get()] = *extent * statements_in(loop.body);
      count_copies(loop, *extent);
      return std::nullopt;
    }
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

  // Of `body` once its inner loops are copies, as work_in.
  int64_t statements_in(const Stmt& body) const {
    int64_t statements = 0;
    for (const Stmt& stmt : stmts_of(body)) {
      const auto inner = statements_.find(stmt.get());
      statements += inner == statements_.end() ? 1 : inner->second;
    }
    return statements;
  }

  int64_t work_in(const Stmt& body) const {
    int64_t work = 0;
    walk(body, [&](const NodePtr& node) {
      const auto copies = copies_.find(node.get());
      work += work_of(node) * (copies == copies_.end() ? 1 : copies->second);
    });
    return work;
  }

  // Copies share what depends neither on the loop's variable nor on what each of them defines anew.
  void count_copies(const For& loop, int64_t extent) {
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
    const std::function<bool(const NodePtr&)> changes = [&](const NodePtr& node) {
      if (node.get()->type().identity) return changing.contains(node.get());
      if (const auto it = known.find(node.get()); it != known.end()) return it->second;
      bool any = false;
      each_member(node, [&](const NodePtr& member, FieldRole) { any |= changes(member); });
      if (any) copies_.try_emplace(node.get(), 1).first->second *= extent;
      return known[node.get()] = any;
    };
    changes(loop.body);
  }

  static constexpr int64_t kMaxCopies = 4096;  // of a statement of one loop
  // Work that is made in all, by the nodes that there are. LLVM orders long stretches of statements
  // in quadratic time; the kernels of large networks make some 10,000 each and 200,000 together.
  static constexpr int64_t kFreeOfFunction = 16'384, kFreeOfModule = 400'000, kGrowth = 8;

  bool take_room(const Stmt& body, int64_t extent) {
    if (extent > kMaxCopies || statements_in(body) * extent > kMaxCopies) return false;
    const int64_t made = extent * work_in(body);
    if (made > std::min(of_function_, of_module_)) return false;
    of_function_ -= made;
    of_module_ -= made;
    return true;
  }

  int64_t of_function_ = 0, of_module_;  // the room that is left
  // Of loops that become copies: the statements each makes, and how often a node in them is made
  // where that is not once.
  std::unordered_map<const Node*, int64_t> statements_, copies_;
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
      const Ref<PrimFunc> bounded = bounds.run(function);
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

static std::optional<NodePtr> copies(const NodePtr& node) {
  const auto extent = copies_of(node);
  if (!extent) return std::nullopt;
  const auto& loop = *node.as<For>();
  const bool renew = has_definitions(loop.body);
  std::vector<Stmt> stmts;
  for (int64_t i = 0; i < *extent; ++i) {
    const Expr value = loop.min + imm(loop.loop_var->dtype, i);
    const Stmt copy = substitute(loop.body, {{loop.loop_var.get(), value}});
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
