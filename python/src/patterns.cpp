// SPDX-License-Identifier: Apache-2.0
// Dataflow patterns and rewriters.
#include "patterns.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "function.h"
#include "script_values.h"
#include "tenon/graph/partition_passes.h"
#include "tenon/graph/patterns/pattern_context.h"
#include "tenon/graph/patterns/rewriter.h"
#include "tenon/graph/transforms/split_call_tir_by_pattern.h"
#include "tenon/script/expressions.h"
#include "tenon/script/pattern_file.h"
#include "tenon/script/printer.h"
#include "values.h"

namespace tenon::python {

using graph::DFPattern;
using graph::FusionPattern;
using graph::Match;
using graph::PatternContext;
using graph::PatternRewriter;
using graph::PatternSeq;

namespace {

// ---- patterns -----------------------------------------------------------------------------------

/// `with PatternContext() as ctx:`: what is written inside belongs to it.
struct Context {
  PatternContext context;
  std::vector<DFPattern> made;  // while it is open
};

// The contexts that are open, innermost last.
std::vector<Context*>& open_contexts() {
  thread_local std::vector<Context*> contexts;
  return contexts;
}

DFPattern made(DFPattern pattern) {
  if (!open_contexts().empty()) open_contexts().back()->made.push_back(pattern);
  return pattern;
}

PatternSeq constrained(PatternSeq seq) {
  if (open_contexts().empty())
    throw nb::value_error("a constraint between patterns outside of `with PatternContext()`");
  open_contexts().back()->context.add(seq);
  return seq;
}

PatternSeq sequence_of(nb::handle value) {
  if (nb::isinstance<PatternSeq>(value)) return nb::cast<PatternSeq>(value);
  return PatternSeq(nb::cast<DFPattern>(value));
}

std::vector<DFPattern> patterns_of(nb::handle list) {
  std::vector<DFPattern> out;
  for (const nb::handle item : nb::iter(list)) out.push_back(nb::cast<DFPattern>(item));
  return out;
}

std::optional<std::vector<DFPattern>> maybe_patterns(nb::handle list) {
  if (list.is_none()) return std::nullopt;
  return patterns_of(list);
}

std::vector<Expr> dimensions(nb::handle shape) {
  return script::dimensions_of(Capture().object_of(shape));
}

DFPattern call(const DFPattern& callee, const nb::args& args, bool more) {
  std::vector<DFPattern> given = patterns_of(args);
  return made(more ? callee.call_with_more(std::move(given)) : callee.call(std::move(given)));
}

// Of each part of the pattern what it matched.
nb::dict matches_of(const graph::PatternPtr& pattern, const Match& match,
                    const graph::Value& root = {}) {
  nb::dict out;
  tenon::walk(pattern, [&](const NodePtr& node) {
    const auto found = match.values.find(node.get());
    if (found == match.values.end() || !found->second) return;
    const auto* part = dynamic_cast<const graph::PatternNode*>(node.get());
    if (!part) return;
    const bool is_root = node.same_as(pattern) && root;
    out[nb::cast(DFPattern(graph::PatternPtr(ref_to(part))))] =
        Value{is_root ? root : found->second};
  });
  return out;
}

std::optional<nb::dict> extract(const DFPattern& pattern, const Value& value,
                                const Function* function) {
  std::optional<graph::Matcher> matcher;
  const auto node = function ? cast<graph::Function>(function->node) : Ref<graph::Function>();
  if (node)
    matcher.emplace(function->module.get(), *node);
  else
    matcher.emplace(nullptr);
  const auto match = matcher->match(pattern, value.node);
  if (!match) return std::nullopt;
  return matches_of(pattern, *match, value.node);
}

Ref<tir::PrimFunc> prim_func_of(const Function& function) {
  auto kernel = cast<tir::PrimFunc>(function.node);
  if (!kernel) throw nb::type_error("the function is no PrimFunc");
  return kernel;
}

DFPattern is_call_tir(const nb::object& function, const nb::object& args,
                      const nb::object& tir_vars) {
  const DFPattern vars = tir_vars.is_none() ? DFPattern() : nb::cast<DFPattern>(tir_vars);
  if (nb::isinstance<Function>(function))
    return made(graph::is_call_tir(prim_func_of(nb::cast<const Function&>(function)),
                                   maybe_patterns(args), vars));
  if (nb::isinstance<DFPattern>(function)) {
    graph::CallTIRPattern parts;
    parts.function = nb::cast<DFPattern>(function);
    parts.args = maybe_patterns(args);
    parts.tir_vars = vars;
    return made(graph::is_call_tir(parts));
  }
  return made(graph::is_call_tir(nb::cast<std::string>(function), maybe_patterns(args), vars));
}

void bind_nodes(nb::module_& m) {
  nb::class_<PatternSeq>(m, "PatternSeq", "A chain of patterns, each used by the next one.")
      .def("__xor__",
           [](const PatternSeq& a, nb::handle b) { return constrained(a ^ sequence_of(b)); })
      .def("__rshift__",
           [](const PatternSeq& a, nb::handle b) { return constrained(a >> sequence_of(b)); })
      .def(
          "used_by",
          [](const PatternSeq& a, nb::handle b, int64_t index) {
            return constrained(a.used_by(sequence_of(b), index));
          },
          nb::arg("other"), nb::arg("index") = -1)
      .def(
          "only_used_by",
          [](const PatternSeq& a, nb::handle b, int64_t index) {
            return constrained(a.only_used_by(sequence_of(b), index));
          },
          nb::arg("other"), nb::arg("index") = -1)
      .def("dup", [](const PatternSeq& a) { return constrained(a.dup()); });

  nb::class_<DFPattern>(
      m, "DFPattern",
      "A pattern of a graph's values. Equal to itself alone: wherever it stands it "
      "matches one value; `dup()` gives another that looks alike.")
      .def("__call__", &call, nb::arg("args"), nb::arg("varg_default_wildcard") = false,
           "A call of this on these arguments; `varg_default_wildcard`: on more of any kind, too.")
      .def("__or__", [](const DFPattern& a, const DFPattern& b) { return made(a | b); })
      .def("__and__", [](const DFPattern& a, const DFPattern& b) { return made(a & b); })
      .def("__invert__", [](const DFPattern& a) { return made(~a); })
      .def(
          "__getitem__", [](const DFPattern& a, int64_t index) { return made(a[index]); },
          "Field `index` of the tuple that this matches.")
      .def(
          "__xor__",
          [](const DFPattern& a, nb::handle b) {
            return constrained(PatternSeq(a) ^ sequence_of(b));
          },
          "What this matches is an argument of what the other does.")
      .def(
          "__rshift__",
          [](const DFPattern& a, nb::handle b) {
            return constrained(PatternSeq(a) >> sequence_of(b));
          },
          "What this matches is an argument of what the other does, and of nothing else.")
      .def(
          "used_by",
          [](const DFPattern& a, nb::handle b, int64_t index) {
            return constrained(a.used_by(sequence_of(b), index));
          },
          nb::arg("other"), nb::arg("index") = -1)
      .def(
          "only_used_by",
          [](const DFPattern& a, nb::handle b, int64_t index) {
            return constrained(a.only_used_by(sequence_of(b), index));
          },
          nb::arg("other"), nb::arg("index") = -1)
      .def(
          "fork_to",
          [](const DFPattern& a, const nb::args& users) {
            return constrained(a.fork_to(patterns_of(users)));
          },
          "`used_by` each of them.")
      .def(
          "same_shape_as",
          [](const DFPattern& a, const nb::args& others) {
            std::vector<DFPattern> all = patterns_of(others);
            all.insert(all.begin(), a);
            if (open_contexts().empty())
              throw nb::value_error(
                  "a constraint between patterns outside of `with PatternContext()`");
            open_contexts().back()->context.same_shape_as(std::move(all));
            return a;
          },
          "In a PatternContext: what these match has one shape.")
      .def(
          "has_attr",
          [](const DFPattern& a, nb::handle attrs) { return made(a.has_attr(attrs_of(attrs))); },
          nb::arg("attrs"), "A call or function with these attributes.")
      .def(
          "has_dtype",
          [](const DFPattern& a, const std::string& name) {
            const auto dtype = DType::parse(name);
            if (!dtype) throw nb::value_error(("`" + name + "` is no dtype").c_str());
            return made(a.has_dtype(*dtype));
          },
          nb::arg("dtype"))
      .def(
          "has_shape",
          [](const DFPattern& a, nb::handle shape) { return made(a.has_shape(dimensions(shape))); },
          nb::arg("shape"), "A tensor of this shape; a string is a dimension that may be any.")
      .def(
          "has_type",
          [](const DFPattern& a, nb::handle type) {
            return made(a.has_type(script::type_of(Capture().object_of(type))));
          },
          nb::arg("type"), "A value of this type: `R.Tensor((2, 3), \"float32\")`.")
      .def(
          "has_struct_info",
          [](const DFPattern& a, nb::handle type) {
            return made(a.has_type(script::type_of(Capture().object_of(type))));
          },
          nb::arg("struct_info"), "The same as has_type.")
      .def("dup", [](const DFPattern& a) { return made(a.dup()); })
      .def(
          "match",
          [](const DFPattern& a, const Value& value, const Function* function) {
            return extract(a, value, function).has_value();
          },
          nb::arg("expr"), nb::arg("function").none() = nb::none(),
          "Whether it matches; `function`: what binds the expression's variables.")
      .def("extract_matched_expr", &extract, nb::arg("expr"),
           nb::arg("function").none() = nb::none(),
           "What each part matches, by pattern; None where it does not match.")
      .def("__eq__",
           [](const DFPattern& a, nb::handle b) {
             return nb::isinstance<DFPattern>(b) && a.same_as(nb::cast<const DFPattern&>(b));
           })
      .def("__hash__", [](const DFPattern& a) { return std::hash<const void*>()(a.get()); })
      .def("__str__", [](const DFPattern& a) { return script::print_pattern(a); })
      .def("__repr__", [](const DFPattern& a) { return script::print_pattern(a); });
}

void bind_combinators(nb::module_& m) {
  m.def("wildcard", [] { return made(graph::wildcard()); }, "Anything.");
  m.def(
      "is_var", [](const std::string& name) { return made(graph::is_var(name)); },
      nb::arg("name") = "", "A variable, of this name if it is given.");
  m.def(
      "is_dfv", [](const std::string& name) { return made(graph::is_dfv(name)); },
      nb::arg("name") = "", "A variable of a dataflow block.");
  m.def(
      "is_gv", [](const std::string& name) { return made(graph::is_gv(name)); },
      nb::arg("name") = "", "A function of the module.");
  m.def("is_const", [] { return made(graph::is_const()); }, "A constant.");
  m.def(
      "is_expr", [](nb::handle value) { return made(graph::is_expr(value_of(value).node)); },
      nb::arg("expr"), "A value equal to this one.");
  m.def(
      "is_op", [](const std::string& name) { return made(graph::is_op(name)); }, nb::arg("op_name"),
      "An operator, which a call of the pattern is of: `is_op(\"nn.relu\")(x)`.");
  m.def(
      "extern_func", [](const std::string& symbol) { return made(graph::extern_func(symbol)); },
      nb::arg("symbol") = "", "A function of another library.");
  m.def(
      "prim_func", [](const Function& f) { return made(graph::prim_func(prim_func_of(f))); },
      nb::arg("function"), "A PrimFunc that computes what this one does.");
  m.def(
      "function_pattern",
      [](nb::handle params, const DFPattern& body) {
        return made(graph::function_pattern(patterns_of(params), body));
      },
      nb::arg("params"), nb::arg("body"));
  m.def(
      "is_tuple",
      [](nb::handle fields, bool unordered) {
        return made(graph::is_tuple(patterns_of(fields), unordered ? graph::TupleOrder::kUnordered
                                                                   : graph::TupleOrder::kOrdered));
      },
      nb::arg("fields"), nb::arg("unordered") = false);
  m.def(
      "is_tuple_get_item",
      [](const DFPattern& tuple, const std::optional<int64_t>& index) {
        return made(graph::is_tuple_get_item(tuple, index.value_or(-1)));
      },
      nb::arg("tuple_value"), nb::arg("index").none() = nb::none());
  m.def(
      "is_shape", [](nb::handle shape) { return made(graph::is_shape(dimensions(shape))); },
      nb::arg("shape"));
  m.def("is_call_tir", &is_call_tir, nb::arg("func_name"), nb::arg("args").none() = nb::none(),
        nb::arg("tir_vars").none() = nb::none(),
        "R.call_tir of a function by its name, a pattern of it, or a PrimFunc that computes the "
        "same.");
  m.def(
      "is_call_dps_packed",
      [](const std::string& name, nb::handle args) {
        return made(graph::is_call_dps_packed(name, maybe_patterns(args)));
      },
      nb::arg("func_name"), nb::arg("args").none() = nb::none());
  m.def(
      "is_call_packed",
      [](const std::string& name, nb::handle args) {
        return made(graph::is_call_packed(name, maybe_patterns(args)));
      },
      nb::arg("func_name"), nb::arg("args").none() = nb::none());
  m.def(
      "make_fused_bias_activation_pattern",
      [](const std::string& op, bool with_bias, const std::optional<std::string>& activation) {
        return made(
            graph::make_fused_bias_activation_pattern({op, with_bias, activation.value_or("")}));
      },
      nb::arg("op_name"), nb::arg("with_bias") = false, nb::arg("activation").none() = nb::none());
}

// ---- rewriting ----------------------------------------------------------------------------------

// `function` names what is rewritten: a Function, or every graph function of a module.
// `added`: functions that replacements call.
template <typename Rewrite>
nb::object rewritten(nb::handle subject, const Rewrite& rewrite, const IRModule& added = {}) {
  const auto add = [&](IRModule& module) {
    for (const auto& [name, function] : added.functions()) module.set(name, function);
  };
  if (nb::isinstance<IRModule>(subject)) {
    IRModule module = nb::cast<const IRModule&>(subject);
    for (const auto& [name, node] : std::vector<IRModule::Entry>(module.functions()))
      if (const auto function = cast<graph::Function>(node))
        module.set(name, rewrite(function, &module));
    add(module);
    return nb::cast(std::move(module));
  }
  const auto& function = nb::cast<const Function&>(subject);
  const auto node = cast<graph::Function>(function.node);
  if (!node) throw nb::type_error("the function is no graph function");
  const Ref<graph::Function> out = rewrite(node, function.module.get());
  std::shared_ptr<const IRModule> module;
  if (function.module) {
    IRModule copy = *function.module;
    copy.set(function.name, out);
    add(copy);
    module = std::make_shared<const IRModule>(std::move(copy));
  }
  return nb::cast(Function{function.name, out, std::move(module)});
}

// Functions that replacements call, by the names that they have for them.
using Added = std::shared_ptr<IRModule>;

graph::Value answer_of(const nb::object& answer, IRModule& added) {
  if (answer.is_none()) return graph::Value();
  const Value value = value_of(answer);
  add_functions(added, value);
  return value.node;
}

graph::CallRule rule_of(const DFPattern& pattern, nb::object callback, const Added& added) {
  return [pattern, callback = std::move(callback), added](const graph::Value& value,
                                                          const Match& match) -> graph::Value {
    const graph::Type type = match.outputs.empty() ? graph::Type() : match.outputs[0]->type;
    return answer_of(callback(Value{value, {}, type}, matches_of(pattern, match, value)), *added);
  };
}

/// A rewriter, and where its rules put the functions that replacements call.
struct Rewriter {
  PatternRewriter rewriter;
  std::vector<Added> added = {};

  static Rewriter from_pattern(const DFPattern& pattern, nb::object callback) {
    const auto added = std::make_shared<IRModule>();
    return {PatternRewriter::from_pattern(pattern, rule_of(pattern, std::move(callback), added)),
            {added}};
  }
  Rewriter operator|(const Rewriter& other) const {
    Rewriter out{rewriter | other.rewriter, added};
    out.added.insert(out.added.end(), other.added.begin(), other.added.end());
    return out;
  }
};

nb::object rewrite_bindings(const Context& context, const nb::object& callback,
                            nb::handle subject) {
  IRModule added;
  const graph::BindingsRule rule = [&](const Match& match) {
    nb::dict matches, bindings;
    for (const DFPattern& pattern : context.context.patterns)
      for (const auto& [part, value] : matches_of(pattern, match)) matches[part] = value;
    for (const Ref<graph::Binding>& binding : match.bindings)
      bindings[nb::cast(Value{binding->var})] = Value{binding->value, {}, binding->var->type};
    std::vector<std::pair<Ref<graph::Var>, graph::Value>> out;
    const nb::object answer = callback(matches, bindings);
    if (answer.is_none()) return out;
    for (const auto& [var, value] : nb::cast<nb::dict>(answer)) {
      auto node = cast<graph::Var>(nb::cast<const Value&>(var).node);
      if (!node) throw nb::type_error("a rewriter of bindings answers by variable");
      out.emplace_back(std::move(node), answer_of(nb::borrow(value), added));
    }
    return out;
  };
  return rewritten(
      subject,
      [&](const Ref<graph::Function>& function, const IRModule* module) {
        return graph::rewrite_bindings(context.context, rule, function, module);
      },
      added);
}

nb::object apply(const Rewriter& rewriter, nb::handle subject) {
  for (const Added& added : rewriter.added) *added = IRModule();
  // `added` is filled while the first step runs.
  IRModule added;
  const auto take = [&] {
    for (const Added& of : rewriter.added) add_functions(added, {{}, of});
  };
  if (nb::isinstance<IRModule>(subject)) {
    IRModule module = rewriter.rewriter(nb::cast<const IRModule&>(subject));
    take();
    add_functions(module, {{}, std::make_shared<const IRModule>(std::move(added))});
    return nb::cast(std::move(module));
  }
  return rewritten(
      subject,
      [&](const Ref<graph::Function>& function, const IRModule* module) {
        const Ref<graph::Function> out = rewriter.rewriter(function, module);
        take();
        return out;
      },
      added);
}

std::optional<nb::dict> match_dfb(const Context& context, const Function& function) {
  const auto node = cast<graph::Function>(function.node);
  if (!node) throw nb::type_error("the function is no graph function");
  const graph::Matcher matcher(function.module.get(), *node);
  for (const Ref<graph::BindingBlock>& block : node->body->blocks) {
    if (!block->is_dataflow) continue;
    const auto match = matcher.match_dfb(context.context, *block);
    if (!match) continue;
    nb::dict out;
    for (const DFPattern& pattern : context.context.patterns)
      for (const auto& [part, value] : matches_of(pattern, *match)) out[part] = value;
    return out;
  }
  return std::nullopt;
}

void bind_rewriting(nb::module_& m) {
  nb::class_<Context>(m, "PatternContext",
                      "Patterns that are matched together over a dataflow block, and constraints "
                      "between them: `with PatternContext() as ctx: conv >> relu`.")
      .def(
          "__init__",
          [](Context* self, bool incremental) {
            new (self) Context();
            if (incremental && !open_contexts().empty())
              self->context = open_contexts().back()->context;
          },
          nb::arg("incremental") = false)
      .def("__enter__",
           [](const nb::object& self) {
             open_contexts().push_back(&nb::cast<Context&>(self));
             return self;
           })
      .def("__exit__",
           [](Context& self, const nb::args&) {
             auto& open = open_contexts();
             check(!open.empty() && open.back() == &self, "contexts close in the order of opening");
             open.pop_back();
             graph::add_outermost(self.context, std::exchange(self.made, {}));
           })
      .def("match_dfb", &match_dfb, nb::arg("function"),
           "In the first dataflow block of the function that has all patterns: what each matches; "
           "None where none has.");
  m.def(
      "rewrite_call",
      [](const DFPattern& pattern, nb::object callback, nb::handle subject) {
        return apply(Rewriter::from_pattern(pattern, std::move(callback)), subject);
      },
      nb::sig("def rewrite_call(pattern: DFPattern, rewriter: collections.abc.Callable[[Expr, "
              "dict[DFPattern, Expr]], typing.Any], func: IRModule | Function) -> typing.Any"),
      nb::arg("pattern"), nb::arg("rewriter"), nb::arg("func"),
      "Replaces what the pattern matches by `rewriter(expr, matches)`, until nothing changes: in a "
      "function, or in every graph function of a module. None, or the expression itself: it "
      "stays.");
  m.def(
      "_replace",
      [](const Function& function, const nb::dict& values) {
        const nb::object find = values.attr("get");
        const nb::object rule = nb::cpp_function(
            [find](const nb::object& expr, nb::handle) { return find(expr, expr); });
        return apply(Rewriter::from_pattern(graph::wildcard(), rule), nb::cast(function));
      },
      nb::arg("function"), nb::arg("values"));
  m.def(
      "rewrite_bindings", &rewrite_bindings,
      nb::sig("def rewrite_bindings(ctx: PatternContext, rewriter: "
              "collections.abc.Callable[[dict[DFPattern, Expr], dict[Expr, Expr]], typing.Any], "
              "func: IRModule | Function) -> typing.Any"),
      nb::arg("ctx"), nb::arg("rewriter"), nb::arg("func"),
      "Gives variables of dataflow blocks other values: `rewriter(matches, bindings)` answers with "
      "them by variable; `matches` holds a variable for each pattern, `bindings` its value.");
  nb::class_<Rewriter>(m, "PatternMatchingRewriter",
                       "Rewrites of patterns, tried in order; `a | b` has those of both.")
      .def_static("from_pattern", &Rewriter::from_pattern, nb::arg("pattern"), nb::arg("func"))
      .def_static(
          "from_module",
          [](const IRModule& module) { return Rewriter{PatternRewriter::from_module(module)}; },
          nb::arg("mod"), "From functions `pattern` and `replacement` of one signature.")
      .def(
          "named",
          [](const Rewriter& rewriter, const std::string& name) {
            return Rewriter{rewriter.rewriter.named(name), rewriter.added};
          },
          nb::arg("name"))
      .def("__or__", &Rewriter::operator|)
      .def("__call__", &apply, nb::arg("func"),
           nb::sig("def __call__(self, func: IRModule | Function) -> typing.Any"));
}

// ---- fusion -------------------------------------------------------------------------------------

graph::Verdict verdict_of(const nb::object& answer) {
  if (answer.is_none() || (PyBool_Check(answer.ptr()) && nb::cast<bool>(answer))) return {};
  if (PyBool_Check(answer.ptr())) return graph::Verdict::refuse("check", "its check refused it");
  if (nb::isinstance<nb::str>(answer))
    return graph::Verdict::refuse("check", nb::cast<std::string>(answer));
  throw nb::type_error("a check of a pattern answers True, False, or the reason against it");
}

PatternMatch match_of(const graph::PatternCheck& check) {
  PatternMatch out;
  if (!check.match.outputs.empty()) out.matched = {check.match.outputs.front()};
  for (const auto& [name, value] : check.annotated) out.annotated.emplace(name, Value{value});
  for (const Ref<graph::Binding>& binding : check.match.bindings)
    out.bindings.emplace_back(Value{binding->var}, Value{binding->value});
  for (const auto& input : check.match.inputs)
    out.inputs.emplace_back(input.name, Value{input.seen});
  if (check.composite) out.composite = check.composite;
  return out;
}

}  // namespace

FusionPattern fusion_pattern_of(nb::handle value) {
  if (nb::isinstance<FusionPattern>(value)) return nb::cast<FusionPattern>(value);
  if (!nb::isinstance<nb::tuple>(value) && !nb::isinstance<nb::list>(value))
    throw nb::type_error("a pattern is a FusionPattern, or a tuple (name, pattern, ...)");
  const nb::tuple parts(nb::borrow(value));
  if (parts.size() < 2 || parts.size() > 5)
    throw nb::type_error("a pattern is (name, pattern, annotations, check, attrs_getter)");
  const auto part = [&](size_t i) { return i < parts.size() ? nb::object(parts[i]) : nb::none(); };
  return make_fusion_pattern(nb::cast<std::string>(part(0)), part(1), part(2), part(3), part(4), 0,
                             std::nullopt);
}

FusionPattern make_fusion_pattern(std::string name, const nb::object& pattern,
                                  const nb::object& annotations, const nb::object& check,
                                  const nb::object& attrs_getter, int priority,
                                  std::optional<bool> bind_constants) {
  FusionPattern out;
  out.name = std::move(name);
  out.priority = priority;
  out.bind_constants = bind_constants;
  if (nb::isinstance<Function>(pattern)) {
    const auto& function = nb::cast<const Function&>(pattern);
    if (const auto node = cast<graph::Function>(function.node)) {
      graph::GraphPatternOptions options;
      options.module = function.module.get();
      options.labels = &out.annotations;
      out.pattern = graph::pattern_from_function(function.name, *node, options);
    } else {
      out.tir = prim_func_of(function);
    }
  } else {
    out.pattern = nb::cast<DFPattern>(pattern);
  }
  if (!annotations.is_none())
    for (const auto& [label, part] : nb::cast<nb::dict>(annotations))
      out.annotations[nb::cast<std::string>(label)] = nb::cast<DFPattern>(part);
  if (!check.is_none())
    out.check = [check = kept(check), name = out.name](const graph::PatternCheck& seen) {
      return callback("check of pattern `" + name + "`",
                      [&] { return verdict_of((*check)(match_of(seen))); });
    };
  if (!attrs_getter.is_none())
    out.attrs = [getter = kept(attrs_getter), name = out.name](const graph::PatternCheck& seen) {
      return callback("attrs_getter of pattern `" + name + "`",
                      [&] { return attrs_of((*getter)(match_of(seen))); });
    };
  return out;
}

std::vector<FusionPattern> fusion_patterns_of(nb::handle list) {
  std::vector<FusionPattern> out;
  for (const nb::handle item : nb::iter(list)) out.push_back(fusion_pattern_of(item));
  return out;
}

static void bind_fusion(nb::module_& m) {
  nb::class_<PatternMatch>(m, "PatternMatch", "What a check of a pattern sees of a match.")
      .def_ro("matched_expr", &PatternMatch::matched, "The variable of its result.")
      .def_prop_ro(
          "annotated_expr",
          [](const PatternMatch& match) {
            nb::dict out;
            for (const auto& [name, value] : match.annotated) out[name.c_str()] = value;
            return out;
          },
          "What the parts matched that the pattern's annotations name.")
      .def_prop_ro(
          "matched_bindings",
          [](const PatternMatch& match) {
            nb::dict out;
            for (const auto& [var, value] : match.bindings) out[nb::cast(var)] = value;
            return out;
          },
          "The values of its variables, in order.")
      .def_prop_ro(
          "inputs",
          [](const PatternMatch& match) {
            nb::dict out;
            for (const auto& [name, value] : match.inputs) out[name.c_str()] = value;
            return out;
          },
          "What it uses and does not compute, by name.")
      .def_prop_ro(
          "composite",
          [](const PatternMatch& match) { return Function{"composite", match.composite}; },
          "The function that it would become.");
  nb::class_<FusionPattern>(m, "FusionPattern", "A pattern with a name, to hand to a back end.")
      .def(
          "__init__",
          [](FusionPattern* self, std::string name, const nb::object& pattern,
             const nb::object& annotations, const nb::object& check, const nb::object& attrs_getter,
             int priority, std::optional<bool> bind_constants) {
            new (self)
                FusionPattern(make_fusion_pattern(std::move(name), pattern, annotations, check,
                                                  attrs_getter, priority, bind_constants));
          },
          nb::arg("name"), nb::arg("pattern"), nb::arg("annotation_patterns").none() = nb::none(),
          nb::arg("check").none() = nb::none(), nb::arg("attrs_getter").none() = nb::none(),
          nb::arg("priority") = 0, nb::arg("bind_constants").none() = nb::none())
      .def_ro("name", &FusionPattern::name)
      .def_ro("priority", &FusionPattern::priority)
      .def_prop_ro(
          "pattern",
          [](const FusionPattern& pattern) -> nb::object {
            return pattern.pattern ? nb::cast(pattern.pattern) : nb::none();
          },
          "None where it is a PrimFunc.")
      .def("__str__", [](const FusionPattern& pattern) {
        return pattern.pattern ? script::print_pattern(pattern.pattern)
                               : script::print(pattern.tir, "pattern");
      });
  m.def(
      "fuse_ops_by_pattern",
      [](const IRModule& module, nb::handle patterns, bool bind_constants, bool annotate_codegen) {
        graph::FuseOptions options;
        options.bind_constants = bind_constants;
        options.annotate_codegen = annotate_codegen;
        const auto list = fusion_patterns_of(patterns);
        return unlocked([&] { return graph::fuse_ops_by_pattern(module, list, options); });
      },
      nb::arg("mod"), nb::arg("patterns"), nb::arg("bind_constants") = true,
      nb::arg("annotate_codegen") = false,
      "Makes functions with attr `Composite` of what the patterns match, the first of them first.");
  m.def(
      "merge_composite",
      [](const IRModule& module, nb::handle patterns) {
        const auto list = fusion_patterns_of(patterns);
        return unlocked([&] { return graph::merge_composite(module, list); });
      },
      nb::arg("mod"), nb::arg("patterns"),
      "Relay's name for it: composites with attr `PartitionedFromPattern`, for AnnotateTarget.");
  m.def(
      "split_call_tir_by_pattern",
      [](const IRModule& module, nb::handle patterns, bool copy_layouts) {
        graph::SplitOptions options;
        options.patterns = fusion_patterns_of(patterns);
        options.copy_layouts = copy_layouts;
        return unlocked([&] { return graph::split_call_tir_by_pattern(module, options); });
      },
      nb::arg("mod"), nb::arg("patterns"), nb::arg("copy_layouts") = true,
      "Divides the kernels of a legalised module where blocks compute what a PrimFunc does.");
}

void bind_patterns(nb::module_& m) {
  bind_nodes(m);
  bind_combinators(m);
  bind_rewriting(m);
  bind_fusion(m);
}

}  // namespace tenon::python
