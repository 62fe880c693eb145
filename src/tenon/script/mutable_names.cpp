// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/mutable_names.h"

#include <optional>
#include <string>
#include <unordered_map>

namespace tenon::script {

using ast::ExprKind;
using ast::StmtKind;

namespace {

class Finder {
 public:
  std::unordered_set<const ast::Stmt*> run(const ast::Body& body) {
    scope(body);
    return std::move(found_);
  }

 private:
  struct Definition {
    const ast::Stmt* stmt;  // null: a loop variable, or another thing that cannot change
    size_t depth;
    bool is_declaration;
  };
  using Saved = std::vector<std::pair<std::string, std::optional<Definition>>>;

  void scope(const ast::Body& body) {
    ++depth_;
    Saved before;
    std::swap(before, saved_);
    statements(body);
    for (auto it = saved_.rbegin(); it != saved_.rend(); ++it) {
      if (it->second)
        known_[it->first] = *it->second;
      else
        known_.erase(it->first);
    }
    std::swap(before, saved_);
    --depth_;
  }

  void statements(const ast::Body& body) {
    for (const auto& stmt : body) statement(*stmt);
  }

  void define(const std::string& name, const ast::Stmt* stmt, bool is_declaration) {
    const auto it = known_.find(name);
    saved_.emplace_back(name, it == known_.end() ? std::nullopt : std::optional(it->second));
    known_[name] = {stmt, depth_, is_declaration};
  }

  void forget(const ast::Expr& target) {
    if (target.kind == ExprKind::kName) return define(target.text, nullptr, false);
    if (target.kind == ExprKind::kTuple || target.kind == ExprKind::kList ||
        target.kind == ExprKind::kStarred)
      for (const auto& item : target.items) forget(*item);
  }

  void statement(const ast::Stmt& stmt) {
    switch (stmt.kind) {
      case StmtKind::kAssign:
      case StmtKind::kAugmented: {
        if (stmt.target->kind != ExprKind::kName) return forget(*stmt.target);
        const auto known = known_.find(stmt.target->text);
        if (known != known_.end() && known->second.stmt) {
          const Definition& definition = known->second;
          if (definition.depth < depth_ || definition.is_declaration)
            found_.insert(definition.stmt);
          if (found_.count(definition.stmt)) return;
        }
        return define(stmt.target->text, &stmt, false);
      }
      case StmtKind::kDeclare:
        if (stmt.target->kind == ExprKind::kName) define(stmt.target->text, &stmt, true);
        return;
      case StmtKind::kFor:
        ++depth_;
        forget(*stmt.target);
        --depth_;
        return scope(stmt.body);
      case StmtKind::kWhile: return scope(stmt.body);
      case StmtKind::kIf: scope(stmt.body); return scope(stmt.orelse);
      case StmtKind::kWith:
        for (const ast::WithItem& item : stmt.items)
          if (item.target) forget(*item.target);
        return scope(stmt.body);
      default: return;
    }
  }

  std::unordered_map<std::string, Definition> known_;
  Saved saved_;  // what the innermost scope has to put back
  size_t depth_ = 0;
  std::unordered_set<const ast::Stmt*> found_;
};

}  // namespace

std::unordered_set<const ast::Stmt*> mutable_definitions(const ast::Stmt& function) {
  return Finder().run(function.body);
}

}  // namespace tenon::script
