// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

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
  explicit Unroller(const IRModule& module) {
    for (const auto& [name, function] : module.functions())
      if (function.as<PrimFunc>()) of_module_ += kGrowth * nodes_in(function);
  }

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

  int64_t of_function_ = 0, of_module_ = kFreeOfModule;  // the room that is left
};

}  // namespace

IRModule unroll_loop(IRModule module) {
  Unroller unroller(module);
  return map_kernels(std::move(module),
                     [&](const Ref<PrimFunc>& function) { return unroller.run(function); });
}

}  // namespace tenon::tir
