// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/surroundings.h"

namespace tenon::script {

using ast::ExprKind;
using ast::StmtKind;

static constexpr const char* kNotEvaluated =
    "has no value that can be told by reading; constants, arithmetic of them and simple functions "
    "have";

// ---- which definitions --------------------------------------------------------------------------

std::string decorator_name(const ast::Stmt& stmt) {
  for (const auto& decorator : stmt.decorators) {
    const ast::Expr* at =
        decorator->kind == ExprKind::kCall ? decorator->items[0].get() : decorator.get();
    if (at->kind != ExprKind::kAttribute && at->kind != ExprKind::kName) continue;
    if (at->text == "inline") return "macro";
    if (at->text == "func" && at->kind == ExprKind::kAttribute) return "function";  // R.func
    for (const std::string_view name :
         {"ir_module", "prim_func", "function", "extern_func", "macro", "rewriter"})
      if (at->text == name) return at->text;
  }
  return "";
}

static void collect(const ast::Body& body, size_t depth,
                    std::vector<std::vector<const ast::Stmt*>>& found) {
  for (const auto& stmt : body) {
    const bool is_definition = stmt->kind == StmtKind::kFunction || stmt->kind == StmtKind::kClass;
    if (is_definition) {
      const std::string kind = decorator_name(*stmt);
      if (!kind.empty()) {
        if (kind == "macro") continue;
        if (found.size() <= depth) found.resize(depth + 1);
        found[depth].push_back(stmt.get());
        continue;
      }
    }
    collect(stmt->body, depth + (is_definition ? 1 : 0), found);
    collect(stmt->orelse, depth, found);
  }
}

std::vector<const ast::Stmt*> definitions(const ast::Body& file) {
  std::vector<std::vector<const ast::Stmt*>> found;
  collect(file, 0, found);
  for (auto& level : found)
    if (!level.empty()) return std::move(level);
  return {};
}

// ---- values -------------------------------------------------------------------------------------

Object Surroundings::call_other(const ast::Expr& call, const Object&) {
  fail(kUnsupported, call.place, "a call of Python");
}

void Surroundings::import(const ast::Stmt& stmt) {
  for (const ast::Parameter& binding : stmt.parameters)
    define(binding.name, Path{canonical_path(binding.annotation->text)});
}

void Surroundings::forget(const ast::Expr& target, const std::string& reason) {
  if (target.kind == ExprKind::kName) return define(target.text, Unknown{reason, target.place});
  if (target.kind == ExprKind::kTuple || target.kind == ExprKind::kList ||
      target.kind == ExprKind::kStarred)
    for (const auto& item : target.items) forget(*item, reason);
}

void Surroundings::forget(const ast::Body& body) {
  for (const auto& stmt : body) {
    if (stmt->kind == StmtKind::kFunction || stmt->kind == StmtKind::kClass) continue;
    if (stmt->target) forget(*stmt->target, "depends on what Python does when it runs");
    forget(stmt->body);
    forget(stmt->orelse);
  }
}

void Surroundings::assign(const ast::Stmt& stmt) {
  try {
    const Object value = eval(*stmt.value);
    for (const auto& target : stmt.more_targets) assign_python(*target, value);
    return assign_python(*stmt.target, value);
  } catch (const CompileError&) {
    forget(*stmt.target, kNotEvaluated);
    for (const auto& target : stmt.more_targets) forget(*target, kNotEvaluated);
  }
}

// `if __name__ == "__main__":`
static bool asks_for_main(const ast::Expr& condition) {
  return condition.kind == ExprKind::kCompare && condition.items[0]->kind == ExprKind::kName &&
         condition.items[0]->text == "__name__";
}

void Surroundings::statement(const ast::Stmt& stmt,
                             const std::function<void(const ast::Stmt&)>& visit) {
  switch (stmt.kind) {
    case StmtKind::kImport: return import(stmt);
    case StmtKind::kAssign: return assign(stmt);
    case StmtKind::kAugmented:
      try {
        assign_python(*stmt.target,
                      combine(stmt.text, eval(*stmt.target), eval(*stmt.value), stmt.place));
      } catch (const CompileError&) {
        forget(*stmt.target, kNotEvaluated);
      }
      return;
    case StmtKind::kIf: {
      if (asks_for_main(*stmt.value)) return forget(stmt.body);
      std::optional<bool> holds;
      try {
        holds = decided(eval(*stmt.value));
      } catch (const CompileError&) {
      }
      if (!holds || *holds) statements(stmt.body, visit);
      if (!holds || !*holds) statements(stmt.orelse, visit);
      if (holds) return;
      forget(stmt.body);
      return forget(stmt.orelse);
    }
    case StmtKind::kFor: forget(*stmt.target, "is a loop variable of Python"); [[fallthrough]];
    case StmtKind::kWhile:
      forget(stmt.body);
      statements(stmt.body, visit);
      return forget(stmt.body);
    case StmtKind::kWith: return statements(stmt.body, visit);
    case StmtKind::kFunction:
    case StmtKind::kClass: break;
    default: return;
  }
  const std::string kind = decorator_name(stmt);
  if (kind == "macro") return define(stmt.text, Helper{.definition = &stmt, .is_macro = true});
  if (!kind.empty()) {
    visit(stmt);
    return define(stmt.text, Unknown{"is a definition of its own; a kernel calls another of its "
                                     "module as `cls.name`",
                                     stmt.name_place});
  }
  if (stmt.kind == StmtKind::kFunction && stmt.decorators.empty()) {
    define(stmt.text, Helper{.definition = &stmt});
  } else {
    define(stmt.text, Unknown{"is a definition of Python", stmt.name_place});
  }
  const Scope scope(*this);
  for (const ast::Parameter& parameter : stmt.parameters) {
    Object value =
        Unknown{fmt::format("is a parameter of the Python function `{}`; it needs a default here",
                            stmt.text),
                parameter.place};
    try {
      if (parameter.otherwise) value = eval(*parameter.otherwise);
    } catch (const CompileError&) {
    }
    define(parameter.name, std::move(value));
  }
  statements(stmt.body, visit);
}

void Surroundings::statements(const ast::Body& body,
                              const std::function<void(const ast::Stmt&)>& visit) {
  for (const auto& stmt : body) statement(*stmt, visit);
}

void Surroundings::walk(const ast::Body& file, const std::function<void(const ast::Stmt&)>& visit) {
  const Scope scope(*this);
  statements(file, visit);
}

}  // namespace tenon::script
