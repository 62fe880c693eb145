// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/analysis/tree.h"

namespace tenon::tir {

std::vector<Stmt> children_of(const Stmt& stmt) {
  std::vector<Stmt> out;
  const auto add = [&](const Stmt& child) {
    if (child) out.push_back(child);
  };
  if (const auto* list = stmt.as<Seq>()) return list->stmts;
  if (const auto* loop = stmt.as<For>()) add(loop->body);
  if (const auto* loop = stmt.as<While>()) add(loop->body);
  if (const auto* attr = stmt.as<AttrStmt>()) add(attr->body);
  if (const auto* branch = stmt.as<IfThenElse>()) {
    add(branch->then_case);
    add(branch->else_case);
  }
  if (const auto* realize = stmt.as<BlockRealize>()) {
    add(realize->block->init);
    add(realize->block->body);
  }
  return out;
}

Stmt with_child(const Stmt& parent, const Stmt& child, const Stmt& replacement) {
  if (child.same_as(replacement)) return parent;
  if (const auto* list = parent.as<Seq>()) {
    std::vector<Stmt> items;
    for (const Stmt& item : list->stmts) {
      const Stmt& next = item.same_as(child) ? replacement : item;
      if (next) items.push_back(next);
    }
    return items.empty() ? Stmt() : seq(std::move(items));
  }
  if (const auto* loop = parent.as<For>()) {
    if (!replacement) return {};
    return make<For>(loop->loop_var, loop->min, loop->extent, loop->kind, replacement,
                     loop->annotations, loop->origin);
  }
  if (const auto* loop = parent.as<While>()) {
    if (!replacement) return {};
    return make<While>(loop->condition, replacement, loop->origin);
  }
  if (const auto* attr = parent.as<AttrStmt>()) {
    if (!replacement) return {};
    return make<AttrStmt>(attr->subject, attr->key, attr->value, replacement, attr->origin);
  }
  if (const auto* branch = parent.as<IfThenElse>()) {
    Stmt then_case = branch->then_case.same_as(child) ? replacement : branch->then_case;
    Stmt else_case =
        branch->else_case && branch->else_case.same_as(child) ? replacement : branch->else_case;
    if (!then_case && !else_case) return {};
    return make<IfThenElse>(branch->condition, then_case, else_case, branch->origin);
  }
  const auto* realize = parent.as<BlockRealize>();
  check(realize != nullptr, "a statement without children on a path");
  Block::Parts parts = realize->block->parts();
  if (parts.init && parts.init.same_as(child)) {
    parts.init = replacement;
  } else {
    parts.body = replacement ? replacement : make<Seq>(std::vector<Stmt>{});
  }
  return make<BlockRealize>(realize->iter_values, realize->predicate,
                            make<Block>(std::move(parts), realize->block->origin), realize->origin);
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
  if (const auto* realize = stmt.as<BlockRealize>()) {
    std::vector<Expr> values;
    for (const Expr& value : realize->iter_values) values.push_back(analyzer.simplify(value));
    return make<BlockRealize>(std::move(values), analyzer.simplify(realize->predicate),
                              realize->block, realize->origin);
  }
  if (const auto* loop = stmt.as<For>()) {
    const Expr low = analyzer.simplify(loop->min), extent = analyzer.simplify(loop->extent);
    analyzer.bind(loop->loop_var, low, extent);
    return make<For>(loop->loop_var, low, extent, loop->kind,
                     simplify_bindings(loop->body, analyzer), loop->annotations, loop->origin);
  }
  if (const auto* list = stmt.as<Seq>()) {
    std::vector<Stmt> items;
    for (const Stmt& item : list->stmts) items.push_back(simplify_bindings(item, analyzer));
    return seq(std::move(items));
  }
  Stmt out = stmt;
  if (stmt.as<IfThenElse>() || stmt.as<AttrStmt>() || stmt.as<While>())
    for (const Stmt& child : children_of(stmt))
      out = with_child(out, child, simplify_bindings(child, analyzer));
  return out;
}

bool same_range(const Range& a, const Range& b, arith::Analyzer& analyzer) {
  return analyzer.proves_equal(a.min, b.min) && analyzer.proves_equal(a.extent, b.extent);
}

}  // namespace tenon::tir
