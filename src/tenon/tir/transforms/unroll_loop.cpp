#include "tenon/tir/transforms.h"

namespace tenon::tir {

static constexpr int64_t kMaxCopies = 4096;

static bool has_definitions(const Stmt& stmt) {
  bool found = false;
  walk(stmt, [&](const NodePtr& node) {
    found |= node.as<AllocBuffer>() || node.as<AllocConst>() || node.as<DeclBuffer>() ||
             node.as<Bind>() || node.as<For>() || node.as<Let>() || node.as<Block>();
  });
  return found;
}

IRModule unroll_loop(IRModule module) {
  return map_kernels(std::move(module), [](const Ref<PrimFunc>& function) {
    return rewrite(function, [](const NodePtr& node) -> std::optional<NodePtr> {
      const auto* loop = node.as<For>();
      if (!loop || loop->kind != ForKind::kUnrolled) return std::nullopt;
      const auto extent = as_int(loop->extent);
      const auto copies = static_cast<int64_t>(stmts_of(loop->body).size()) * extent.value_or(0);
      if (!extent || copies > kMaxCopies) return std::nullopt;
      const bool renew = has_definitions(loop->body);
      std::vector<Stmt> stmts;
      for (int64_t i = 0; i < *extent; ++i) {
        const Expr value = loop->min + imm(loop->loop_var->dtype, i);
        const Stmt copy = substitute(loop->body, {{loop->loop_var.get(), value}});
        stmts.push_back(renew ? renew_definitions(copy) : copy);
      }
      return make<Seq>(std::move(stmts), node.as<For>()->origin);
    });
  });
}

}  // namespace tenon::tir
