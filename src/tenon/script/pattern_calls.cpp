// SPDX-License-Identifier: Apache-2.0
// Calls in pattern files: combinators, methods of patterns, functions of Python.
#include "tenon/script/pattern_reader.h"

namespace tenon::script {

using ast::ExprKind;
using graph::DFPattern;
using graph::FusionPattern;
using graph::PatternSeq;

/// The arguments of one call, taken by position or name.
struct PatternReader::Arguments {
  const PatternReader& reader;
  const ast::Expr& call;
  std::set<const ast::Expr*> used = {};

  size_t positional() const { return call.items.size() - 1; }
  /// Null where it is not given.
  const ast::Expr* find(size_t position, std::string_view name) {
    const ast::Expr* found = position < positional() ? call.items[position + 1].get() : nullptr;
    for (const ast::Keyword& keyword : call.keywords)
      if (!found && keyword.name == name) found = keyword.value.get();
    if (found) used.insert(found);
    if (found && found->kind == ExprKind::kStarred)
      reader.fail(kUnsupported, found->place, "`*` in a call");
    return found && found->kind != ExprKind::kNone ? found : nullptr;
  }
  const ast::Expr& need(size_t position, std::string_view name) {
    const ast::Expr* found = find(position, name);
    if (!found) reader.fail(kBadArgument, call.place, "argument `{}` is missing", name);
    return *found;
  }
  bool flag(size_t position, std::string_view name, bool otherwise) {
    const ast::Expr* found = find(position, name);
    if (!found) return otherwise;
    return found->kind == ExprKind::kTrue || const_cast<PatternReader&>(reader).holds(*found);
  }
  void finish() const {
    for (size_t i = 1; i < call.items.size(); ++i)
      if (!used.count(call.items[i].get()))
        reader.fail(kBadArgument, call.items[i]->place, "an argument too many");
    for (const ast::Keyword& keyword : call.keywords)
      if (!used.count(keyword.value.get()))
        reader.fail(kBadArgument, keyword.place, "no argument is named `{}`", keyword.name);
  }
};

PatternValue PatternReader::call(const ast::Expr& expr) {
  Arguments args{*this, expr};
  const ast::Expr& callee = *expr.items[0];
  std::optional<PatternValue> result;
  if (callee.kind == ExprKind::kName && !lookup(callee.text))
    result = call_combinator(callee.text, args);
  if (!result && callee.kind == ExprKind::kAttribute) {
    // `relax.dpl.is_op` and the like: a combinator by a longer name.
    const ast::Expr* base = callee.items[0].get();
    while (base->kind == ExprKind::kAttribute) base = base->items[0].get();
    const bool is_package = base->kind == ExprKind::kName && !lookup(base->text);
    result = is_package ? call_combinator(callee.text, args)
                        : call_method(callee.text, *callee.items[0], args);
    if (!result && is_package) return builder_->eval(expr);
  }
  if (!result) {
    const bool is_known = callee.kind != ExprKind::kName || lookup(callee.text);
    if (!is_known) return builder_->eval(expr);
    const PatternValue value = eval(callee);
    if (const auto* pattern = value.as<DFPattern>()) {
      result = call_pattern(*pattern, args);
    } else if (const auto* definition = value.as<const ast::Stmt*>()) {
      result = call_python(**definition, args);
    } else {
      return builder_->eval(expr);
    }
  }
  args.finish();
  return *result;
}

PatternValue PatternReader::call_pattern(const DFPattern& callee, Arguments& args) {
  std::vector<DFPattern> given;
  for (size_t i = 0; i < args.positional(); ++i) {
    const ast::Expr* arg = args.find(i, "");
    if (!arg) fail(kBadArgument, args.call.items[i + 1]->place, "`None` as an argument");
    given.push_back(pattern(*arg));
  }
  const bool more = args.flag(args.positional(), "varg_default_wildcard", false);
  (void)args.find(args.positional(), "add_constraint");  // a call uses its arguments in any case
  return made(more ? callee.call_with_more(std::move(given)) : callee.call(std::move(given)),
              args.call.place);
}

std::optional<PatternValue> PatternReader::call_method(const std::string& name,
                                                       const ast::Expr& self, Arguments& args) {
  const PatternValue on = eval(self);
  const Place& place = args.call.place;
  const auto done = [&](DFPattern pattern) { return made(std::move(pattern), place); };
  if (const auto* seq = on.as<PatternSeq>()) {
    if (name == "used_by")
      return constrained(seq->used_by(sequence(args.need(0, "other")),
                                      args.find(1, "index") ? number(args.need(1, "index")) : -1),
                         place);
    if (name == "only_used_by")
      return constrained(
          seq->only_used_by(sequence(args.need(0, "other")),
                            args.find(1, "index") ? number(args.need(1, "index")) : -1),
          place);
    if (name == "dup") return constrained(seq->dup(), place);
  }
  const auto* found = on.as<DFPattern>();
  if (!found) return std::nullopt;
  const DFPattern base = *found;
  if (name == "has_dtype")
    return done(base.has_dtype([&] {
      const std::string dtype = text(args.need(0, "dtype"));
      const auto parsed = DType::parse(dtype);
      if (!parsed) fail(kBadLiteral, args.call.items[1]->place, "`{}` is no dtype", dtype);
      return *parsed;
    }()));
  if (name == "has_shape") return done(base.has_shape(builder_->dimensions(args.need(0, "shape"))));
  if (name == "has_attr") {
    const ast::Expr& dict = args.need(0, "attrs");
    const AttrValue attrs = builder_->to_attr(builder_->eval(dict), dict.place);
    Attrs out;
    if (const auto* map = attrs.as<AttrValue::Map>())
      for (const auto& [key, value] : *map) out.set(key, value);
    else
      fail(kTypeMismatch, dict.place, "something else than a dict of attributes");
    return done(base.has_attr(std::move(out)));
  }
  if (name == "has_type" || name == "has_struct_info" || name == "has_ty")
    return done(base.has_type(builder_->type(args.need(0, "type"))));
  if (name == "dup") return done(base.dup());
  if (name == "optional") {  // Relay's: with or without a further operator
    fail(kUnsupported, place, "`optional` of a pattern; write `p | op(p)`");
  }
  if (name == "used_by" || name == "only_used_by") {
    const PatternSeq users = sequence(args.need(0, "other"));
    const int64_t index = args.find(1, "index") ? number(args.need(1, "index")) : -1;
    return constrained(
        name == "used_by" ? base.used_by(users, index) : base.only_used_by(users, index), place);
  }
  if (name == "fork_to" || name == "same_shape_as") {
    std::vector<DFPattern> others;
    for (size_t i = 0; i < args.positional(); ++i) others.push_back(pattern(args.need(i, "other")));
    if (name == "fork_to") return constrained(base.fork_to(others), place);
    (void)constrained(base, place);
    others.insert(others.begin(), base);
    open_.back()->same_shape_as(std::move(others));
    return PatternValue(base);
  }
  return std::nullopt;
}

std::optional<std::vector<DFPattern>> PatternReader::optional_patterns(const ast::Expr* expr) {
  if (!expr) return std::nullopt;
  return patterns(*expr);
}

DFPattern PatternReader::any_of(Arguments& args) {
  std::vector<DFPattern> alternatives;
  if (args.positional() == 1 && args.call.items[1]->kind != ExprKind::kStarred) {
    const PatternValue only = eval(args.need(0, "patterns"));
    if (only.as<Items>()) alternatives = patterns(args.need(0, "patterns"));
  }
  if (alternatives.empty())
    for (size_t i = 0; i < args.positional(); ++i)
      alternatives.push_back(pattern(args.need(i, "pattern")));
  if (alternatives.empty()) fail(kBadArgument, args.call.place, "any_of no patterns");
  return graph::any_of(alternatives);
}

DFPattern PatternReader::call_tir_pattern(Arguments& args) {
  const ast::Expr* given = args.find(0, "func_name");
  DFPattern function = graph::is_gv();
  if (given) {
    const PatternValue value = eval(*given);
    const auto* base = value.as<BaseFunc>();
    if (const auto prim = base ? cast<tir::PrimFunc>(*base) : nullptr) {
      function = graph::prim_func(prim);
    } else if (const auto* pattern = value.as<DFPattern>()) {
      function = *pattern;
    } else {
      function = graph::is_gv(text(*given));
    }
  }
  const auto operands = optional_patterns(args.find(1, "args"));
  const ast::Expr* vars = args.find(2, "tir_vars");
  DFPattern tir_vars;
  if (vars) {
    const PatternValue value = eval(*vars);
    const auto* known = value.as<DFPattern>();
    tir_vars = known ? *known : graph::is_shape(builder_->dimensions(*vars));
  }
  return graph::is_call_tir({function, operands, tir_vars});
}

DFPattern PatternReader::graph_pattern(Arguments& args) {
  const Place& place = args.call.place;
  const std::vector<DFPattern> params = patterns(args.need(0, "params"));
  const std::vector<DFPattern> results = patterns(args.need(1, "results"));
  for (const DFPattern& param : params)
    if (!param.as<graph::ParamPattern>())
      fail(kTypeMismatch, place, "a parameter that is no `param(...)`");
  if (results.empty()) fail(kBadArgument, place, "a graph pattern without a result");
  return make<graph::GraphPattern>(std::vector<graph::PatternPtr>(params.begin(), params.end()),
                                   std::vector<graph::PatternPtr>(results.begin(), results.end()),
                                   args.flag(2, "tuple", results.size() > 1),
                                   args.flag(3, "exclusive", true), origin(place));
}

PatternValue PatternReader::fusion_pattern(Arguments& args) {
  std::vector<PatternValue> parts;
  parts.push_back(eval(args.need(0, "name")));
  parts.push_back(eval(args.need(1, "pattern")));
  if (const ast::Expr* annotations = args.find(2, "annotation_patterns"))
    parts.push_back(eval(*annotations));
  auto made = std::make_shared<FusionPattern>(fusion_pattern(parts, args.call.place));
  if (const ast::Expr* priority = args.find(3, "priority"))
    made->priority = static_cast<int>(number(*priority));
  if (args.find(4, "bind_constants")) made->bind_constants = args.flag(4, "bind_constants", true);
  return PatternValue(std::shared_ptr<const FusionPattern>(std::move(made)));
}

std::optional<PatternValue> PatternReader::call_combinator(const std::string& name,
                                                           Arguments& args) {
  const Place& place = args.call.place;
  const auto done = [&](DFPattern pattern) { return made(std::move(pattern), place); };
  const auto name_or_any = [&](std::string_view argument) {
    const ast::Expr* given = args.find(0, argument);
    return given ? text(*given) : std::string();
  };
  if (name == "wildcard") return done(graph::wildcard());
  if (name == "is_var") return done(graph::is_var(name_or_any("name")));
  if (name == "is_dfv") return done(graph::is_dfv(name_or_any("name")));
  if (name == "is_gv" || name == "GlobalVarPattern") return done(graph::is_gv(name_or_any("name")));
  if (name == "is_const") return done(graph::is_const());
  if (name == "is_expr") return done(graph::is_expr(builder_->value(args.need(0, "expr"))));
  if (name == "is_op") return done(graph::is_op(text(args.need(0, "op_name")), origin(place)));
  if (name == "extern_func" || name == "ExternFuncPattern")
    return done(graph::extern_func(name_or_any("symbol")));
  if (name == "function_pattern" || name == "FunctionPattern") {
    std::vector<DFPattern> params = patterns(args.need(0, "params"));
    return done(graph::function_pattern(std::move(params), pattern(args.need(1, "body"))));
  }
  if (name == "is_tuple" || name == "TuplePattern" || name == "UnorderedTuplePattern") {
    std::vector<DFPattern> fields = patterns(args.need(0, "fields"));
    const bool unordered = name[0] == 'U' || args.flag(1, "unordered", false);
    return done(graph::is_tuple(std::move(fields), unordered ? graph::TupleOrder::kUnordered
                                                             : graph::TupleOrder::kOrdered));
  }
  if (name == "is_tuple_get_item") {
    const DFPattern tuple = pattern(args.need(0, "tuple_value"));
    const ast::Expr* index = args.find(1, "index");
    return done(graph::is_tuple_get_item(tuple, index ? number(*index) : -1));
  }
  if (name == "is_shape") return done(graph::is_shape(builder_->dimensions(args.need(0, "shape"))));
  if (name == "any_of") return done(any_of(args));
  if (name == "reject") return done(~pattern(args.need(0, "pattern")));
  if (name == "is_call_tir") return done(call_tir_pattern(args));
  if (name == "is_call_dps_packed" || name == "is_call_packed") {
    const std::string symbol = name_or_any("func_name");
    auto operands = optional_patterns(args.find(1, "args"));
    return done(name == "is_call_packed" ? graph::is_call_packed(symbol, std::move(operands))
                                         : graph::is_call_dps_packed(symbol, std::move(operands)));
  }
  if (name == "make_fused_bias_activation_pattern") {
    graph::FusedBiasActivation parts;
    parts.op = text(args.need(0, "op_name"));
    parts.with_bias = args.flag(1, "with_bias", false);
    if (const ast::Expr* activation = args.find(2, "activation"))
      parts.activation = text(*activation);
    return done(graph::make_fused_bias_activation_pattern(parts));
  }
  // Patterns that graph functions become.
  if (name == "param") {
    const std::string param = text(args.need(0, "name"));
    const ast::Expr* type = args.find(1, "type");
    return done(make<graph::ParamPattern>(
        param, type ? builder_->type(*type) : graph::Type(make<graph::ObjectType>()),
        origin(place)));
  }
  if (name == "transposed")
    return done(make<graph::TransposedPattern>(pattern(args.need(0, "param")), origin(place)));
  if (name == "graph_pattern") return done(graph_pattern(args));
  // What registers them.
  if (name == "FusionPattern") return fusion_pattern(args);
  if (name == "register_patterns") {
    const PatternValue list = eval(args.need(0, "patterns"));
    (void)items(list, place);
    listed_ = listed(list, place);
    return PatternValue();
  }
  return std::nullopt;
}

PatternValue PatternReader::call_python(const ast::Stmt& definition, Arguments& args) {
  if (names_.size() > kMostCalls)
    fail(kTooDeep, args.call.place, "functions that call each other more than {} deep", kMostCalls);
  std::map<std::string, PatternValue> names;
  size_t position = 0;
  for (const ast::Parameter& parameter : definition.parameters) {
    if (parameter.starred) fail(kUnsupported, parameter.place, "a starred parameter");
    const ast::Expr* given = args.find(position++, parameter.name);
    if (given) {
      names[parameter.name] = eval(*given);
    } else if (parameter.otherwise) {
      names[parameter.name] = eval(*parameter.otherwise);
    } else {
      fail(kBadArgument, args.call.place, "argument `{}` is missing", parameter.name);
    }
  }
  names_.push_back(std::move(names));
  try {
    auto result = statements(definition.body);
    names_.pop_back();
    return result ? *result : PatternValue();
  } catch (const CompileError&) {
    names_.pop_back();
    throw;
  }
}

}  // namespace tenon::script
