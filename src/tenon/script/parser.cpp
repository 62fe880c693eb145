// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/parser.h"

#include "tenon/script/graph_builder.h"
#include "tenon/script/surroundings.h"
#include "tenon/script/tir_builder.h"
#include "tenon/tir/analysis/call_accesses.h"

namespace tenon::script {

using ast::ExprKind;
using ast::StmtKind;

namespace {

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
      if (const auto group = out.is_extern ? group_annotation(parameter) : std::nullopt) {
        out.buffer_params.resize(out.buffer_params.size() + group->dtypes.size());
        out.scalar_dtypes.insert(out.scalar_dtypes.end(), group->dtypes.begin(),
                                 group->dtypes.end());
        continue;
      }
      out.buffer_params.push_back(path == "T.Buffer" || path == "T.handle");
      const std::string annotated = type ? path_of(*type) : "";
      const auto dtype =
          annotated.starts_with("T.") ? DType::parse(annotated.substr(2)) : std::nullopt;
      out.scalar_dtypes.push_back(dtype && !dtype->is_handle() ? *dtype : kVoid);
    }
    if (stmt.returns && stmt.returns->kind != ExprKind::kNone) {
      const std::string path = path_of(*stmt.returns);
      if (path.starts_with("T.")) out.result = DType::parse(path.substr(2)).value_or(kVoid);
    }
    return out;
  }

 protected:
  Object call_other(const ast::Expr& call, const Object& callee) override {
    if (const auto* path = callee.as<Path>()) {
      // Bytes that belong to the module stand in its attributes.
      if (path->text == "R.const" || path->text == "R.const_ref" || path->text == "R.const_splat")
        return Object(GraphBuilder(module_).value(call));
      fail(kUndefined, call.items[0]->place, "`{}` is not known here", path->text);
    }
    fail(kTypeMismatch, call.items[0]->place, "{} cannot be called", describe(callee));
  }
};

// What calls do to their regions is known when all functions are read.
IRModule with_inferred_regions(IRModule module) {
  IRModule out = module;
  tir::CallEffects effects(module);
  for (const auto& [name, function] : module.functions()) {
    if (!function.as<tir::PrimFunc>() && !function.as<tir::ExternFunction>()) continue;
    const BaseFunc inferred = rewrite(function, [&](const NodePtr& node) -> std::optional<NodePtr> {
      const auto* block = node.as<tir::Block>();
      const auto what = block ? block->annotations.get<int64_t>(kInferred) : std::nullopt;
      if (!what) return std::nullopt;
      const auto computed = tir::with_accesses(ref_to(block), effects);
      tir::Block::Parts parts = block->parts();
      parts.annotations.erase(kInferred);
      if (*what & 1) parts.reads = computed->reads;
      if (*what & 2) parts.writes = computed->writes;
      return make<tir::Block>(std::move(parts), block->origin);
    });
    if (!inferred.same_as(function)) out.set(name, inferred);
  }
  return out;
}

// What `y = T.call_tir(f, ...)` allocates holds nothing before `f` writes it.
void check_results(const IRModule& module, const std::vector<ModuleContext::ResultCall>& calls,
                   Diagnostics& diagnostics) {
  tir::CallEffects effects(module);
  for (const ModuleContext::ResultCall& call : calls) {
    const auto callee = module.find<tir::PrimFunc>(call.callee);
    const std::vector<tir::ParamEffect> uses =
        callee ? effects.of(call.callee) : std::vector<tir::ParamEffect>();
    if (uses.empty() || uses.back().is_out()) continue;
    const Ref<tir::Buffer>& last = callee->buffers.back();
    const std::string name = last ? last->name : "?";
    Diagnostic& diagnostic =
        uses.back().writes
            ? diagnostics.error(kUninitialisedRead, call.origin,
                                "`{}` reads `{}` before it writes it, so it has no result of its "
                                "own; allocate a buffer, fill it, and pass it as the last argument",
                                call.callee, name)
            : diagnostics.error(kBadArgument, call.origin,
                                "`{}` does not write `{}`, its last parameter; it has no result",
                                call.callee, name);
    if (last) diagnostic.notes.push_back({last->origin, "it is declared here"});
  }
}

/// Reads one file.
class Reader {
 public:
  Reader(const std::shared_ptr<const SourceFile>& file, const ParseOptions& options) {
    context_.file = file;
    context_.options = &options;
    context_.diagnostics = &diagnostics_;
    context_.names = options.names;
  }

  IRModule read() {
    const ast::Body body = ast::parse_file(context_.file, diagnostics_, ast::OtherPython::kLeftOut,
                                           context_.options->lines);
    const std::vector<const ast::Stmt*> found = definitions(body);
    if (context_.options->bare_class && body.size() == 1 && body[0]->kind == StmtKind::kClass)
      module_ = body[0].get();
    else
      module_ = pick_module(found);
    for (const ast::Stmt* stmt : found)
      if (!module_ && stmt->kind == StmtKind::kFunction && context_.options->module_name.empty())
        chosen_.insert(stmt);
    if (!module_ && chosen_.empty()) {
      diagnostics_.throw_if_any();
      throw CompileError(
          kSyntax, Origin::script(context_.file, context_.options->lines.first, 1),
          "no module in this file; expected a class under `@I.ir_module`, or functions "
          "under `@T.prim_func` or `@R.function`");
    }
    if (module_) {
      context_.class_name = module_->text;
      chosen_.insert(module_);
    }
    // First what every body may refer to, then the bodies.
    walk(body, [&](const ast::Stmt& stmt) { declare(stmt); });
    walk(body, [&](const ast::Stmt& stmt) { define(stmt); });
    diagnostics_.throw_if_any();
    for (const auto& [name, function] : context_.captured.functions()) out_.set(name, function);
    check_results(out_, context_.result_calls, diagnostics_);
    diagnostics_.throw_if_any();
    return with_inferred_regions(std::move(out_));
  }

 private:
  Origin origin(const Place& place) const {
    return Origin::script(context_.file, place.line, place.column, place.length);
  }

  const ast::Stmt* pick_module(const std::vector<const ast::Stmt*>& definitions) const {
    const ast::Stmt* found = nullptr;
    const std::string& wanted = context_.options->module_name;
    for (const ast::Stmt* stmt : definitions) {
      if (stmt->kind != StmtKind::kClass) continue;
      if (!wanted.empty() && stmt->text != wanted) continue;
      if (wanted.empty() && decorator_name(*stmt) == "rewriter") continue;  // read on its own
      if (found && wanted.empty())
        throw CompileError(kSyntax, origin(stmt->name_place),
                           "a second module, `{}`, beside `{}`; expected one, or the name of one",
                           stmt->text, found->text)
            .note(origin(found->name_place), "`{}` is here", found->text);
      if (!found) found = stmt;
    }
    return found;
  }

  template <typename F>
  void walk(const ast::Body& body, const F& of_chosen) {
    Surroundings surroundings(context_);
    context_.surroundings = &surroundings;
    ModuleEvaluator evaluator(context_);
    evaluator_ = &evaluator;
    const auto visit = [&](const ast::Stmt& stmt) {
      if (chosen_.count(&stmt) == 0) return;
      if (stmt.kind != StmtKind::kClass) return attempt([&] { of_chosen(stmt); });
      for (const auto& member : stmt.body) attempt([&] { of_chosen(*member); });
    };
    if (context_.options->bare_class)
      visit(*module_);
    else
      surroundings.walk(body, visit);
    context_.surroundings = nullptr;
  }

  template <typename F>
  void attempt(const F& step) {
    try {
      step();
    } catch (const CompileError& error) {
      context_.report(error);
    }
  }

  // `name = f` in a class, of a function of another module: a function of this one too.
  const CapturedFunction* captured(const ast::Stmt& stmt) const {
    if (stmt.kind != StmtKind::kAssign || stmt.target->kind != ExprKind::kName || !stmt.value ||
        stmt.value->kind != ExprKind::kName)
      return nullptr;
    const Object* value = evaluator_->lookup(stmt.value->text);
    return value ? value->as<CapturedFunction>() : nullptr;
  }

  void declare(const ast::Stmt& stmt) {
    if (const CapturedFunction* function = captured(stmt)) {
      const std::string& name = stmt.target->text;
      context_.capture(*function, stmt.target->place, name);
      context_.functions.emplace(name, *context_.function_named(name));
      captured_.insert(&stmt);
      return;
    }
    const bool is_extern = stmt.kind == StmtKind::kAssign && stmt.target->kind == ExprKind::kName &&
                           stmt.value && stmt.value->kind == ExprKind::kCall &&
                           evaluator_->path_of(*stmt.value->items[0]) == "R.ExternFunc";
    if (stmt.kind != StmtKind::kFunction && !is_extern) return;
    Declaration declaration;
    const std::string& text = is_extern ? stmt.target->text : stmt.text;
    const Place& place = is_extern ? stmt.target->place : stmt.name_place;
    if (is_extern) {
      declaration.is_extern = true;
      declaration.name = text;
      for (const ast::Keyword& keyword : stmt.value->keywords)
        if (keyword.name == "name" && keyword.value->kind == ExprKind::kString)
          declaration.name = keyword.value->text;
    } else {
      declaration = evaluator_->declare(stmt);
    }
    if (context_.functions.count(text) || context_.function_named(declaration.name))
      throw CompileError(kRedefined, origin(place), "a second function `{}` in one module", text);
    const auto added = context_.functions.emplace(text, std::move(declaration)).first;
    context_.by_module_name.emplace(added->second.name, &added->second);
  }

  void define(const ast::Stmt& stmt) {
    if (captured_.count(&stmt)) return;
    if (stmt.kind != StmtKind::kFunction) return evaluator_->statement(stmt, out_);
    const auto declared = context_.functions.find(stmt.text);
    if (declared == context_.functions.end() || declared->second.definition != &stmt) return;
    const std::string kind = decorator_name(stmt);
    if (stmt.damaged && kind != "prim_func") return;  // its errors are known
    if (kind == "prim_func") {
      out_.set(declared->second.name, TirBuilder(context_).function(stmt));
    } else if (kind == "extern_func") {
      out_.set(declared->second.name, TirBuilder(context_).extern_function(stmt));
    } else if (kind == "function") {
      // Calls below it know the type of what it gives, where it does not say so itself.
      declared->second.function = GraphBuilder(context_).function(stmt);
      out_.set(declared->second.name, declared->second.function);
    } else {
      throw CompileError(kUnsupported, origin(stmt.name_place),
                         "function `{}` is under no `@T.prim_func`, `@T.extern_func` or "
                         "`@R.function`",
                         stmt.text);
    }
  }

  Diagnostics diagnostics_;
  ModuleContext context_;
  const ast::Stmt* module_ = nullptr;
  std::set<const ast::Stmt*> chosen_, captured_;
  ModuleEvaluator* evaluator_ = nullptr;
  IRModule out_;
};

}  // namespace

IRModule parse_module(const std::shared_ptr<const SourceFile>& file, const ParseOptions& options) {
  return Reader(file, options).read();
}

IRModule parse_module(const std::string& text, const ParseOptions& options) {
  return parse_module(std::make_shared<const SourceFile>(SourceFile{"<script>", text}), options);
}

}  // namespace tenon::script
