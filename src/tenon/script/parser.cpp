#include "tenon/script/parser.h"

#include "tenon/script/graph_builder.h"
#include "tenon/script/tir_builder.h"

namespace tenon::script {

using ast::ExprKind;
using ast::StmtKind;

namespace {

// `ir_module`, `prim_func`, `function`: the last name of a decorator.
std::string decorator_name(const ast::Stmt& stmt) {
  for (const auto& decorator : stmt.decorators) {
    const ast::Expr* at =
        decorator->kind == ExprKind::kCall ? decorator->items[0].get() : decorator.get();
    if (at->kind != ExprKind::kAttribute && at->kind != ExprKind::kName) continue;
    if (at->text == "ir_module" || at->text == "prim_func" || at->text == "function" ||
        at->text == "extern_func")
      return at->text;
  }
  return "";
}

/// Module-level statements: attributes, extern functions.
class ModuleEvaluator final : public Evaluator {
 public:
  explicit ModuleEvaluator(ModuleContext& module) : Evaluator(module, kInt32) {}

  void statement(const ast::Stmt& stmt, IRModule& out) {
    if (stmt.kind == StmtKind::kPass || stmt.kind == StmtKind::kOther) return;
    if (stmt.kind == StmtKind::kExpr && stmt.value->kind == ExprKind::kString) return;
    const std::string path = stmt.value ? callee_path(*stmt.value) : "";
    if (stmt.kind == StmtKind::kExpr && path == "I.module_attrs") {
      Arguments args = arguments(*stmt.value);
      const auto& dict = need(args, *stmt.value, 0, {"attrs"});
      finish(args, *stmt.value);
      for (const auto& [name, value] : to_attrs(dict.value, dict.place)) out.attrs.set(name, value);
      return;
    }
    if (stmt.kind == StmtKind::kExpr && path == "I.module_global_infos")
      fail(kUnsupported, stmt.place, "global infos of a module");
    if (stmt.kind == StmtKind::kAssign && path == "R.ExternFunc" &&
        stmt.target->kind == ExprKind::kName) {
      Arguments args = arguments(*stmt.value);
      const auto& symbol = need(args, *stmt.value, 0, {"global_symbol"});
      const auto* attrs = args.keyword({"attrs"});
      const auto* is_private = args.keyword({"private"});
      args.keyword({"name"});
      finish(args, *stmt.value);
      auto function = make<ExternFunc>(to_string(symbol.value, symbol.place, "the symbol"),
                                       attrs ? to_attrs(attrs->value, attrs->place) : Attrs(),
                                       origin(stmt.place));
      const_cast<ExternFunc*>(function.get())->is_private =
          is_private && is_private->value.as<bool>() && *is_private->value.as<bool>();
      out.set(module_.functions.at(stmt.target->text).name, function);
      return;
    }
    fail(kSyntax, stmt.place, "a statement that has no meaning in a module");
  }

  std::string name_of(const ast::Stmt& stmt, const ast::Expr* call) {
    if (call && call->kind == ExprKind::kCall)
      for (const ast::Keyword& keyword : call->keywords)
        if (keyword.name == "name")
          return to_string(eval(*keyword.value), keyword.value->place, "the name");
    return stmt.text;
  }

  // What callers need to know before the body is read.
  Declaration declare(const ast::Stmt& stmt) {
    Declaration out;
    out.name = name_of(stmt, stmt.decorators.empty() ? nullptr : stmt.decorators[0].get());
    out.definition = &stmt;
    out.is_prim_func = decorator_name(stmt) == "prim_func";
    out.is_extern = decorator_name(stmt) == "extern_func";
    if (!out.is_prim_func && !out.is_extern) return out;
    for (const ast::Parameter& parameter : stmt.parameters) {
      const ast::Expr* type = parameter.annotation.get();
      const std::string path = !type                           ? ""
                               : type->kind == ExprKind::kCall ? callee_path(*type)
                                                               : path_of(*type);
      out.buffer_params.push_back(path == "T.Buffer" || path == "T.handle");
    }
    if (stmt.returns && stmt.returns->kind != ExprKind::kNone) {
      const std::string path = path_of(*stmt.returns);
      if (path.starts_with("T.")) out.result = DType::parse(path.substr(2)).value_or(kVoid);
    }
    return out;
  }

 protected:
  Object call_other(const ast::Expr& call, const Object& callee) override {
    if (const auto* path = callee.as<Path>())
      fail(kUndefined, call.items[0]->place, "`{}` is not known here", path->text);
    fail(kTypeMismatch, call.items[0]->place, "{} cannot be called", describe(callee));
  }
};

const ast::Stmt* pick_module(const ast::Body& body, const ModuleContext& context) {
  const ast::Stmt* found = nullptr;
  for (const auto& stmt : body) {
    if (stmt->kind != StmtKind::kClass) continue;
    const std::string& wanted = context.options->module_name;
    if (!wanted.empty() && stmt->text != wanted) continue;
    if (found && wanted.empty())
      throw CompileError(kSyntax,
                         Origin::script(context.file, stmt->name_place.line,
                                        stmt->name_place.column, stmt->name_place.length),
                         "a second module, `{}`, beside `{}`; expected one, or the name of one",
                         stmt->text, found->text);
    if (!found) found = stmt.get();
  }
  return found;
}

}  // namespace

IRModule parse_module(const std::shared_ptr<const SourceFile>& file, const ParseOptions& options) {
  Diagnostics diagnostics;
  ModuleContext context;
  context.file = file;
  context.options = &options;
  context.diagnostics = &diagnostics;
  const ast::Body body = ast::parse_file(file, diagnostics);
  const ast::Stmt* module = pick_module(body, context);
  std::vector<const ast::Stmt*> members;
  if (module) {
    context.class_name = module->text;
    for (const auto& stmt : module->body) members.push_back(stmt.get());
  } else if (options.module_name.empty()) {
    for (const auto& stmt : body)
      if (stmt->kind == StmtKind::kFunction && !decorator_name(*stmt).empty())
        members.push_back(stmt.get());
  }
  if (!module && members.empty()) {
    diagnostics.throw_if_any();
    throw CompileError(
        kSyntax, Origin::script(file, 1, 1),
        "no module in this file; expected a class under `@I.ir_module`, or functions "
        "under `@T.prim_func` or `@R.function`");
  }

  IRModule out;
  ModuleEvaluator evaluator(context);
  const auto attempt = [&](const auto& read) {
    try {
      read();
    } catch (const CompileError& error) {
      diagnostics.add(error);
    }
  };
  // First what every body may refer to, then the bodies.
  for (const ast::Stmt* stmt : members) {
    attempt([&] {
      const bool is_extern = stmt->kind == StmtKind::kAssign &&
                             stmt->target->kind == ExprKind::kName && stmt->value &&
                             stmt->value->kind == ExprKind::kCall;
      if (stmt->kind != StmtKind::kFunction && !is_extern) return;
      Declaration declaration;
      const std::string& text = is_extern ? stmt->target->text : stmt->text;
      const Place& place = is_extern ? stmt->target->place : stmt->name_place;
      if (is_extern) {
        declaration.is_extern = true;
        declaration.name = text;
        for (const ast::Keyword& keyword : stmt->value->keywords)
          if (keyword.name == "name" && keyword.value->kind == ExprKind::kString)
            declaration.name = keyword.value->text;
      } else {
        declaration = evaluator.declare(*stmt);
      }
      for (const auto& [name, known] : context.functions)
        if (name == text || known.name == declaration.name)
          throw CompileError(kRedefined,
                             Origin::script(file, place.line, place.column, place.length),
                             "a second function `{}` in one module", text);
      context.functions.emplace(text, std::move(declaration));
    });
  }
  for (const ast::Stmt* stmt : members) {
    attempt([&] {
      if (stmt->kind != StmtKind::kFunction) return evaluator.statement(*stmt, out);
      const auto declared = context.functions.find(stmt->text);
      if (declared == context.functions.end() || declared->second.definition != stmt) return;
      const std::string kind = decorator_name(*stmt);
      if (kind == "prim_func") {
        out.set(declared->second.name, TirBuilder(context).function(*stmt));
      } else if (kind == "extern_func") {
        out.set(declared->second.name, TirBuilder(context).extern_function(*stmt));
      } else if (kind == "function") {
        out.set(declared->second.name, GraphBuilder(context).function(*stmt));
      } else {
        throw CompileError(kUnsupported,
                           Origin::script(file, stmt->name_place.line, stmt->name_place.column,
                                          stmt->name_place.length),
                           "function `{}` is under no `@T.prim_func`, `@T.extern_func` or "
                           "`@R.function`",
                           stmt->text);
      }
    });
  }
  diagnostics.throw_if_any();
  return out;
}

IRModule parse_module(const std::string& text, const ParseOptions& options) {
  return parse_module(std::make_shared<const SourceFile>(SourceFile{"<script>", text}), options);
}

}  // namespace tenon::script
