// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/analysis/tree.h"

namespace tenon::tir {

std::vector<Stmt> children_of(const Stmt& stmt) {
  std::vector<Stmt> out;
  const auto add = [&](const Stmt& child) {
    if (child) out.push_back(child);
  };
  switch (kind_of(stmt)) {
    case StmtKind::kSeq: return stmt.to<Seq>().stmts;
    case StmtKind::kFor: add(stmt.to<For>().body); break;
    case StmtKind::kWhile: add(stmt.to<While>().body); break;
    case StmtKind::kAttrStmt: add(stmt.to<AttrStmt>().body); break;
    case StmtKind::kIfThenElse:
      add(stmt.to<IfThenElse>().then_case);
      add(stmt.to<IfThenElse>().else_case);
      break;
    case StmtKind::kBlockRealize:
      add(stmt.to<BlockRealize>().block->init);
      add(stmt.to<BlockRealize>().block->body);
      break;
    case StmtKind::kBufferStore:
    case StmtKind::kEvaluate:
    case StmtKind::kBind:
    case StmtKind::kAllocBuffer:
    case StmtKind::kAllocConst:
    case StmtKind::kDeclBuffer:
    case StmtKind::kAssert:
    case StmtKind::kBlock:  // reached through its BlockRealize
    case StmtKind::kCallTir: break;
  }
  return out;
}

static Stmt with_child(const Seq& parent, const Stmt& child, const Stmt& replacement) {
  std::vector<Stmt> items;
  for (const Stmt& item : parent.stmts) {
    const Stmt& next = item.same_as(child) ? replacement : item;
    if (next) items.push_back(next);
  }
  return items.empty() ? Stmt() : seq(std::move(items));
}

static Stmt with_child(const IfThenElse& parent, const Stmt& child, const Stmt& replacement) {
  const auto next = [&](const Stmt& branch) {
    return branch && branch.same_as(child) ? replacement : branch;
  };
  Stmt then_case = next(parent.then_case), else_case = next(parent.else_case);
  if (!then_case && !else_case) return {};
  return make<IfThenElse>(parent.condition, then_case, else_case, parent.origin);
}

static Stmt with_child(const BlockRealize& parent, const Stmt& child, const Stmt& replacement) {
  return with(parent, [&](BlockRealize& copy) {
    copy.block = with(parent.block, [&](Block& block) {
      if (block.init && block.init.same_as(child)) {
        block.init = replacement;
      } else {
        block.body = replacement ? replacement : make<Seq>(std::vector<Stmt>{});
      }
    });
  });
}

Stmt with_child(const Stmt& parent, const Stmt& child, const Stmt& replacement) {
  if (child.same_as(replacement)) return parent;
  const auto with_body = [&](const auto& node) -> Stmt {
    if (!replacement) return {};
    return with(node, [&](auto& copy) { copy.body = replacement; });
  };
  switch (kind_of(parent)) {
    case StmtKind::kSeq: return with_child(parent.to<Seq>(), child, replacement);
    case StmtKind::kFor: return with_body(parent.to<For>());
    case StmtKind::kWhile: return with_body(parent.to<While>());
    case StmtKind::kAttrStmt: return with_body(parent.to<AttrStmt>());
    case StmtKind::kIfThenElse: return with_child(parent.to<IfThenElse>(), child, replacement);
    case StmtKind::kBlockRealize: return with_child(parent.to<BlockRealize>(), child, replacement);
    case StmtKind::kBufferStore:
    case StmtKind::kEvaluate:
    case StmtKind::kBind:
    case StmtKind::kAllocBuffer:
    case StmtKind::kAllocConst:
    case StmtKind::kDeclBuffer:
    case StmtKind::kAssert:
    case StmtKind::kBlock:  // reached through its BlockRealize
    case StmtKind::kCallTir: break;
  }
  unreachable("a statement without children on a path");
}

static bool descend(const Stmt& stmt, const std::function<bool(const Stmt&)>& is_target,
                    Path& path) {
  path.stmts.push_back(stmt);
  if (is_target(stmt)) return true;
  const auto* list = stmt.as<Seq>();  // may be long: not copied
  for (const Stmt& child : list ? list->stmts : children_of(stmt))
    if (descend(child, is_target, path)) return true;
  path.stmts.pop_back();
  return false;
}

Path find_path(const Stmt& root, const std::function<bool(const Stmt&)>& is_target) {
  Path path;
  descend(root, is_target, path);
  return path;
}

Path find_loop(const Stmt& root, const Var* var) {
  return find_path(root, [&](const Stmt& stmt) {
    const auto* loop = stmt.as<For>();
    return loop && loop->loop_var.get() == var;
  });
}

Path find_block(const Stmt& root, const std::string& name) {
  return find_path(root, [&](const Stmt& stmt) {
    const auto* realize = stmt.as<BlockRealize>();
    return realize && realize->block->name == name;
  });
}

Stmt replace(const Path& path, Stmt replacement) {
  for (size_t i = path.stmts.size() - 1; i-- > 0;)
    replacement = with_child(path.stmts[i], path.stmts[i + 1], replacement);
  return replacement ? replacement : make<Seq>(std::vector<Stmt>{});
}

static void collect_realizes(const Stmt& stmt, std::vector<Ref<BlockRealize>>& out) {
  if (const auto* realize = stmt.as<BlockRealize>()) out.push_back(ref_to(realize));
  for (const Stmt& child : children_of(stmt)) collect_realizes(child, out);
}

std::vector<Ref<BlockRealize>> realizes_in(const Stmt& root) {
  std::vector<Ref<BlockRealize>> out;
  if (root) collect_realizes(root, out);
  return out;
}

static void collect_outermost(const Stmt& stmt, std::vector<Ref<BlockRealize>>& out) {
  if (const auto* realize = stmt.as<BlockRealize>()) {
    out.push_back(ref_to(realize));
    return;
  }
  for (const Stmt& child : children_of(stmt)) collect_outermost(child, out);
}

std::vector<Ref<BlockRealize>> outermost_realizes_in(const Stmt& root) {
  std::vector<Ref<BlockRealize>> out;
  if (root) collect_outermost(root, out);
  return out;
}

std::vector<Ref<For>> loops_of(const Path& path) {
  std::vector<Ref<For>> loops;
  for (size_t i = 0; i < path.stmts.size(); ++i) {
    if (path.stmts[i].as<BlockRealize>() && i + 1 < path.stmts.size()) loops.clear();
    if (const auto* loop = path.stmts[i].as<For>()) loops.push_back(ref_to(loop));
  }
  return loops;
}

VarRanges ranges_of(const std::vector<Ref<For>>& loops) {
  VarRanges ranges;
  for (const Ref<For>& loop : loops) ranges[loop->loop_var.get()] = {loop->min, loop->extent};
  return ranges;
}

void bind_path(const Path& path, arith::Analyzer& analyzer) {
  for (const Stmt& stmt : path.stmts) {
    if (const auto* loop = stmt.as<For>()) analyzer.bind(loop->loop_var, loop->min, loop->extent);
    if (const auto* realize = stmt.as<BlockRealize>())
      for (const IterVar& iter : realize->block->iter_vars) analyzer.bind(iter.var, iter.domain);
  }
}

Stmt simplify_bindings(const Stmt& stmt, arith::Analyzer& analyzer) {
  switch (kind_of(stmt)) {
    case StmtKind::kBlockRealize:
      return with(stmt.to<BlockRealize>(), [&](BlockRealize& copy) {
        for (Expr& value : copy.iter_values) value = analyzer.simplify(value);
        copy.predicate = analyzer.simplify(copy.predicate);
      });
    case StmtKind::kFor: {
      const auto& loop = stmt.to<For>();
      const Expr low = analyzer.simplify(loop.min), extent = analyzer.simplify(loop.extent);
      analyzer.bind(loop.loop_var, low, extent);
      return loop.with(low, extent, simplify_bindings(loop.body, analyzer));
    }
    case StmtKind::kSeq: {
      std::vector<Stmt> items;
      for (const Stmt& item : stmt.to<Seq>().stmts)
        items.push_back(simplify_bindings(item, analyzer));
      return seq(std::move(items));
    }
    case StmtKind::kIfThenElse:
    case StmtKind::kAttrStmt:
    case StmtKind::kWhile: {
      Stmt out = stmt;
      for (const Stmt& child : children_of(stmt))
        out = with_child(out, child, simplify_bindings(child, analyzer));
      return out;
    }
    case StmtKind::kBufferStore:
    case StmtKind::kEvaluate:
    case StmtKind::kBind:
    case StmtKind::kAllocBuffer:
    case StmtKind::kAllocConst:
    case StmtKind::kDeclBuffer:
    case StmtKind::kAssert:
    case StmtKind::kBlock:
    case StmtKind::kCallTir: return stmt;
  }
  unreachable("a kind of statement");
}

bool same_range(const Range& a, const Range& b, arith::Analyzer& analyzer) {
  return analyzer.proves_equal(a.min, b.min) && analyzer.proves_equal(a.extent, b.extent);
}

}  // namespace tenon::tir
