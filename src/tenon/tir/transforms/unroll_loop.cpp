// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <mutex>

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

int64_t nodes_in(const NodePtr& root) {
  int64_t count = 0;
  walk(root, [&](const NodePtr&) { ++count; });
  return count;
}

// What a back end makes of the nodes: an operation for each 512 bits of a vector, some dozens for
// an elementary function.
int64_t work_in(const NodePtr& root) {
  constexpr int64_t kRegister = 512, kElementary = 32;
  int64_t work = 0;
  walk(root, [&](const NodePtr& node) {
    const auto* expr = node.as<ExprNode>();
    const auto* call = node.as<Call>();
    const int64_t bits = expr ? int64_t{expr->dtype.lanes} * expr->dtype.bits : 0;
    work += std::max<int64_t>(1, bits / kRegister) *
            (call && call->op && is_elementary(call->op->id) ? kElementary : 1);
  });
  return work;
}

/// Unrolls the inner loops first, as far as the room goes that the function and the module have:
/// loops around loops multiply, and what is made of them is compiled statement by statement.
class Unroller {
 public:
  /// \param room  nodes that the functions which it is given may make together
  explicit Unroller(int64_t room) : of_module_(room) {}

  static int64_t room_of(const IRModule& module) {
    int64_t room = kFreeOfModule;
    for (const auto& [name, function] : module.functions())
      if (function.as<PrimFunc>()) room += kGrowth * nodes_in(function);
    return room;
  }
  int64_t room() const { return of_module_; }  // that is left

  Ref<PrimFunc> run(const Ref<PrimFunc>& function) {
    of_function_ = kFreeOfFunction + kGrowth * nodes_in(function);
    return rewrite(function, [&](const NodePtr& node) { return (*this)(node); });
  }

 private:
  std::optional<NodePtr> operator()(const NodePtr& node) {
    const auto* loop = node.as<For>();
    if (!loop || loop->kind != ForKind::kUnrolled) return std::nullopt;
    const auto extent = as_int(loop->extent);
    if (!extent) return std::nullopt;
    if (!take_room(*loop, *extent)) {
      record({"UnrollLoop",
              loop->loop_var->name,
              "kept",
              "too-large",
              {{"iterations", static_cast<double>(*extent)}},
              "",
              loop->origin});
      return std::nullopt;
    }
    const bool renew = has_definitions(loop->body);
    std::vector<Stmt> stmts;
    for (int64_t i = 0; i < *extent; ++i) {
      const Expr value = loop->min + imm(loop->loop_var->dtype, i);
      const Stmt copy = substitute(loop->body, {{loop->loop_var.get(), value}});
      stmts.push_back(renew ? renew_definitions(copy) : copy);
    }
    return make<Seq>(std::move(stmts), loop->origin);
  }

  static constexpr int64_t kMaxCopies = 4096;  // of a statement of one loop
  // Nodes that are made in all, by the work that they are. LLVM orders long stretches of statements
  // in quadratic time; the kernels of large networks make some 10,000 each and 200,000 together.
  static constexpr int64_t kFreeOfFunction = 16'384, kFreeOfModule = 400'000, kGrowth = 8;

  bool take_room(const For& loop, int64_t extent) {
    if (extent > kMaxCopies ||
        static_cast<int64_t>(stmts_of(loop.body).size()) * extent > kMaxCopies)
      return false;
    const int64_t made = extent * work_in(loop.body);
    if (made > std::min(of_function_, of_module_)) return false;
    of_function_ -= made;
    of_module_ -= made;
    return true;
  }

  int64_t of_function_ = 0, of_module_;  // the room that is left
};

}  // namespace

IRModule unroll_loop(IRModule module) {
  const int64_t room = Unroller::room_of(module);
  std::vector<Remark> remarks;
  IRModule out;
  int64_t made = 0;
  {
    const RemarkScope scope;
    std::mutex mutex;
    out = map_kernels(module, [&](const Ref<PrimFunc>& function) {
      Unroller unroller(room);
      const Ref<PrimFunc> unrolled = unroller.run(function);
      const std::lock_guard lock(mutex);
      made += room - unroller.room();
      return unrolled;
    });
    remarks = scope.remarks();
  }
  // All of it fits: one after another, no loop would have been refused for the room that others took.
  if (made <= room) {
    for (Remark& remark : remarks) record(std::move(remark));
    return out;
  }
  Unroller unroller(room);
  const std::vector<IRModule::Entry> functions = module.functions();
  for (const auto& [name, function] : functions) {
    const auto prim = cast<PrimFunc>(function);
    if (!prim) continue;
    check_interrupt();
    module.set(name, unroller.run(prim));
  }
  return module;
}

}  // namespace tenon::tir
