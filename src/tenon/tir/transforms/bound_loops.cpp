// SPDX-License-Identifier: Apache-2.0
// Kernels of symbolic sizes run in pieces of a fixed size, with a condition around what a piece has
// beyond the end. A short tensor would ask it thousands of times.
#include "tenon/arith/analyzer.h"
#include "tenon/ir/visit.h"
#include "tenon/tir/analysis/region.h"
#include "tenon/tir/transforms.h"

namespace tenon::tir {

namespace {

// Loops of fewer iterations may be unrolled; their conditions cost little.
constexpr int64_t kFewIterations = 32;

bool is_uniform(const Expr& expr) {
  bool uniform = true;
  walk<BufferLoad>(expr, [&](const BufferLoad&) { uniform = false; });
  walk<Call>(expr, [&](const Call&) { uniform = false; });
  return uniform;
}

// How many iterations of `loop` from the first on satisfy `condition`, where that is what it says.
Expr iterations(const For& loop, const Binary& condition) {
  Expr lhs = condition.lhs, rhs = condition.rhs;
  if (condition.op != BinaryOp::kLT || lhs->dtype != kInt64) return {};
  const Var* var = loop.loop_var.get();
  // x // d < n is x < n * d. Of a size d that is 0 nothing runs in either form.
  while (const auto* quotient = lhs.as<Binary>()) {
    if (quotient->op != BinaryOp::kFloorDiv || uses_var(quotient->rhs, var) ||
        !arith::Analyzer().proves_less_equal(int64(0), quotient->rhs))
      break;
    rhs = arith::simplify(rhs * quotient->rhs);
    lhs = quotient->lhs;
  }
  if (as_int(rhs)) return {};
  if (var->dtype != kInt64 || uses_var(rhs, var) || !is_uniform(lhs) || !is_uniform(rhs)) return {};
  const Expr first = arith::simplify(substitute(lhs, {{var, int64(0)}}));
  if (!is_int(arith::simplify(lhs - first - loop.loop_var), 0)) return {};
  return arith::simplify(rhs - first);
}

// Neither reads nor writes: an iteration that asks for nothing else has no effect.
bool only_declares(const Stmt& stmt) {
  const auto* view = stmt.as<DeclBuffer>();
  return stmt.as<AllocBuffer>() || stmt.as<AllocConst>() || (view && is_uniform(view->data));
}

// The body of a loop without the condition that all of it stands under, and how many iterations
// satisfy that.
struct Bounded {
  Expr count;
  Stmt body;
};

std::optional<Bounded> bounded(const For& loop, const Stmt& body) {
  if (const auto* inner = body.as<For>(); inner && inner->kind != ForKind::kParallel) {
    auto found = bounded(loop, inner->body);
    if (!found || uses_var(found->count, inner->loop_var.get())) return std::nullopt;
    found->body = inner->with(inner->min, inner->extent, std::move(found->body));
    return found;
  }
  if (const auto* sequence = body.as<Seq>(); sequence && !sequence->stmts.empty()) {
    std::vector<Stmt> stmts;
    Expr count;
    for (const Stmt& stmt : sequence->stmts) {
      if (only_declares(stmt)) {
        stmts.push_back(stmt);
        continue;
      }
      auto found = bounded(loop, stmt);
      if (!found || (count && !structural_equal(count, found->count))) return std::nullopt;
      count = found->count;
      stmts.push_back(std::move(found->body));
    }
    if (!count) return std::nullopt;
    return Bounded{count, seq(std::move(stmts))};
  }
  const auto* branch = body.as<IfThenElse>();
  const auto* condition = branch && !branch->else_case ? branch->condition.as<Binary>() : nullptr;
  const Expr count = condition ? iterations(loop, *condition) : Expr();
  if (!count) return std::nullopt;
  return Bounded{count, branch->then_case};
}

}  // namespace

IRModule bound_loops(IRModule module) {
  return map_kernels(std::move(module), [](const Ref<PrimFunc>& function) {
    return rewrite(function, [](const NodePtr& node) -> std::optional<NodePtr> {
      const auto* loop = node.as<For>();
      const auto extent = loop ? as_int(loop->extent) : std::nullopt;
      if (!extent || *extent < kFewIterations || loop->kind != ForKind::kSerial ||
          !is_int(loop->min, 0))
        return std::nullopt;
      auto found = bounded(*loop, loop->body);
      if (!found) return std::nullopt;
      const Expr count = max(int64(0), min(int64(*extent), found->count));
      return NodePtr(loop->with(loop->min, count, std::move(found->body)));
    });
  });
}

}  // namespace tenon::tir
