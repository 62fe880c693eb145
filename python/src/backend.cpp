// SPDX-License-Identifier: Apache-2.0
// Back ends whose hooks are functions of Python. They go the way of plugins: the same matches, and
// the same checks of what is answered.
#include "tenon/graph/backend.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "arrays.h"
#include "common.h"
#include "function.h"
#include "packed.h"
#include "patterns.h"
#include "tenon/backend/plugin/choose.h"
#include "tenon/backend/plugin/plugin.h"
#include "tenon/support/plugin_codes.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/stmt.h"
#include "values.h"

namespace tenon::python {

namespace {

using plugin::Descriptor;

// ---- a match as Python sees it ------------------------------------------------------------------

nb::object class_of(const char* name) { return imported("tenon.backends").attr(name); }

// Numbers; names of symbols; None where nothing is known.
nb::object shape_of(const TenonMatch& match, const TenonMatch::Tensor& tensor) {
  if (tensor.view.rank < 0) return nb::none();
  nb::list dims;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    const int32_t symbol = tensor.symbols[i];
    if (tensor.shape[i] != TENON_SYMBOLIC)
      dims.append(tensor.shape[i]);
    else if (symbol >= 0)
      dims.append(match.symbol_names[static_cast<size_t>(symbol)]);
    else
      dims.append(nb::none());
  }
  return nb::tuple(dims);
}

nb::object as_python(const TenonMatch& match, const TenonMatch::Tensor& tensor) {
  const nb::object data = tensor.data ? to_numpy(tensor.data) : nb::none();
  return class_of("MatchTensor")(tensor.name, tensor.dtype, shape_of(match, tensor), data);
}

nb::object as_python(const TenonMatch::Operand& operand) {
  const auto made = [](const char* kind, int32_t index, int32_t field, const nb::object& value) {
    return class_of("MatchOperand")(kind, index, field, value);
  };
  const TenonOperand& view = operand.view;
  switch (view.kind) {
    case TENON_OPERAND_INPUT: return made("input", view.index, view.field, nb::none());
    case TENON_OPERAND_OPERATOR: return made("operator", view.index, view.field, nb::none());
    case TENON_OPERAND_NUMBER: return made("number", -1, 0, nb::float_(view.number));
    case TENON_OPERAND_TEXT: return made("text", -1, 0, text(operand.text));
    case TENON_OPERAND_INTS: {
      nb::list ints;
      for (const int64_t number : operand.ints)
        ints.append(number == TENON_UNKNOWN ? nb::object(nb::none())
                                            : nb::object(nb::int_(number)));
      return made("ints", -1, 0, nb::tuple(ints));
    }
    default: return made("none", -1, 0, nb::none());
  }
}

template <typename Item, typename Convert>
nb::tuple tuple_of(const std::vector<Item>& items, const Convert& convert) {
  nb::list out;
  for (const Item& item : items) out.append(convert(*item));
  return nb::tuple(out);
}

/// What a match is asked that is not kept in the object: it holds the module.
struct Asked {
  IRModule module;
  Ref<graph::Function> function;
  std::string symbol, subject, backend;
};

nb::object match_of(const TenonMatch& match, const std::string& backend) {
  const auto tensor = [&](const TenonMatch::Tensor& one) { return as_python(match, one); };
  const auto operand = [](const TenonMatch::Operand& one) { return as_python(one); };
  nb::list operators;
  for (const TenonMatch::Operator& op : match.operators)
    operators.append(class_of("MatchOperator")(op.name, tuple_of(op.operands, operand),
                                               tuple_of(op.results, tensor), to_python(op.attrs),
                                               op.part ? match_of(*op.part, backend) : nb::none()));
  nb::dict options, annotated;
  for (const auto& [key, value] : match.options) options[key.c_str()] = value;
  for (const auto& [name, value] : match.annotations) annotated[name.c_str()] = as_python(*value);
  const std::string name = match.symbol.empty() ? "match" : match.symbol;
  IRModule module = match.module;
  module.set(name, match.function);
  const Function function{name, match.function,
                          std::make_shared<const IRModule>(std::move(module))};
  return class_of("Match")(nb::arg("pattern") = match.pattern, nb::arg("symbol") = match.symbol,
                           nb::arg("where") = text(match.where), nb::arg("target") = match.target,
                           nb::arg("inputs") = tuple_of(match.inputs, tensor),
                           nb::arg("outputs") = tuple_of(match.outputs, tensor),
                           nb::arg("output_sources") = tuple_of(match.output_sources, operand),
                           nb::arg("operators") = nb::tuple(operators),
                           nb::arg("symbols") = nb::cast(match.symbol_names),
                           nb::arg("attrs") = to_python(match.attrs), nb::arg("options") = options,
                           nb::arg("annotated") = annotated, nb::arg("function") = function,
                           nb::arg("_asked") = Asked{match.module, match.function, match.symbol,
                                                     match.pattern, backend});
}

// ---- answers ------------------------------------------------------------------------------------

// `tenon.backends.Refused`, raised in a hook: the reason code and words.
bool is_refusal(const nb::python_error& error) { return error.matches(class_of("Refused")); }

int32_t refuse(TenonAnswer& answer, nb::handle refused) {
  const auto code = nb::cast<std::string>(nb::str(refused.attr("reason")));
  const auto words = nb::cast<std::string>(nb::str(refused.attr("words")));
  return plugin::host()->refuse(&answer, code.c_str(), words.c_str());
}

void emit(TenonAnswer& answer, int32_t kind, std::string_view bytes) {
  plugin::host()->emit(&answer, kind, bytes.data(), static_cast<int64_t>(bytes.size()));
}

std::string_view view_of(const nb::bytes& bytes) {
  return {static_cast<const char*>(bytes.data()), bytes.size()};
}

void link(TenonAnswer& answer, nb::handle libraries) {
  for (const nb::handle library : nb::iter(libraries))
    plugin::host()->link(&answer, nb::cast<std::string>(library).c_str());
}

void pack(TenonAnswer& answer, const nb::object& given) {
  if (given.is_none()) return;
  if (given.is(class_of("OMIT"))) {
    emit(answer, TENON_OMITTED, "");
    return;
  }
  if (nb::isinstance<nb::bytes>(given)) {
    emit(answer, TENON_PACKED, view_of(nb::cast<nb::bytes>(given)));
    return;
  }
  ArrayArgument array;
  array.read(given, {});
  const DLTensor& tensor = array.tensor();
  const int64_t bytes =
      runtime::byte_count(tensor.dtype, {tensor.shape, static_cast<size_t>(tensor.ndim)});
  emit(answer, TENON_PACKED,
       {static_cast<const char*>(runtime::data_of(tensor)), static_cast<size_t>(bytes)});
}

// PrimFuncs: one function with what it calls, under the name that was asked for; or a module that has
// it.
std::shared_ptr<const IRModule> functions_of(const nb::object& given, const std::string& symbol) {
  if (nb::isinstance<IRModule>(given))
    return std::make_shared<const IRModule>(nb::cast<const IRModule&>(given));
  const auto& function = nb::cast<const Function&>(given);
  IRModule module;
  module.set(symbol, function.node);
  std::vector<BaseFunc> added = {function.node};
  for (size_t i = 0; i < added.size(); ++i)
    walk<GlobalVar>(BaseFunc(added[i]), [&](const GlobalVar& callee) {
      const BaseFunc found = function.module ? function.module->find(callee.name) : BaseFunc();
      if (!found || module.contains(callee.name)) return;
      module.set(callee.name, found);
      added.push_back(found);
    });
  return std::make_shared<const IRModule>(std::move(module));
}

std::string name_of(nb::handle function) {
  if (nb::hasattr(function, "__qualname__"))
    return nb::cast<std::string>(nb::str(function.attr("__qualname__")));
  return nb::cast<std::string>(nb::str(nb::handle(function.type()).attr("__name__")));
}

void take_host_function(TenonAnswer& answer, const nb::object& function, Results results,
                        const std::string& symbol) {
  const Registration made = register_temporarily(symbol, function, results);
  answer.host_function = {made.name, "function `" + name_of(function) + "` of Python", made.token};
}

void generate(TenonAnswer& answer, const nb::object& given, const std::string& symbol) {
  if (nb::isinstance<nb::str>(given)) {
    emit(answer, TENON_SYMBOL, nb::cast<std::string>(given));
  } else if (nb::isinstance(given, class_of("Symbol"))) {
    link(answer, given.attr("link"));
    emit(answer, TENON_SYMBOL, nb::cast<std::string>(given.attr("name")));
  } else if (nb::isinstance(given, class_of("CSource"))) {
    link(answer, given.attr("link"));
    for (const nb::handle prelude : nb::iter(given.attr("prelude")))
      emit(answer, TENON_C_PRELUDE, nb::cast<std::string>(prelude));
    emit(answer, TENON_C, nb::cast<std::string>(given.attr("source")));
  } else if (nb::isinstance(given, class_of("ObjectFile"))) {
    link(answer, given.attr("link"));
    emit(answer, TENON_OBJECT, view_of(nb::cast<nb::bytes>(given.attr("content"))));
  } else if (nb::isinstance<Function>(given) || nb::isinstance<IRModule>(given)) {
    answer.functions = functions_of(given, symbol);
  } else if (nb::isinstance(given, class_of("HostFunction"))) {
    const bool destination = nb::cast<bool>(given.attr("destination"));
    take_host_function(answer, given.attr("function"),
                       destination ? Results::kDestination : Results::kReturned, symbol);
  } else if (PyCallable_Check(given.ptr()) != 0 && !PyType_Check(given.ptr())) {
    take_host_function(answer, given, Results::kReturned, symbol);
  } else {
    throw nb::type_error(
        ("`generate` answered with " + nb::cast<std::string>(nb::repr(given)) +
         "; expected a function that runs, PrimFuncs, the symbol of a library (str, Symbol), a "
         "CSource or an ObjectFile")
            .c_str());
  }
}

// ---- the hooks ----------------------------------------------------------------------------------

/// Calls a hook. \returns what `work` does with the answer, or a refusal.
template <typename Work>
auto asked(const std::string& what, const Work& work) {
  return callback(what, [&] {
    try {
      return work();
    } catch (const nb::builtin_exception& error) {
      PyErr_SetString(PyExc_TypeError, error.what());
      throw nb::python_error();
    }
  });
}

class PythonHooks final : public plugin::Hooks {
 public:
  PythonHooks(std::string name, nb::handle hooks) : name_(std::move(name)) {
    for (const char* hook : {"check", "cost", "scratch", "pack", "generate"}) {
      const nb::object function = hooks.attr(hook);
      if (!function.is_none()) functions_[hook] = kept(function);
    }
  }

  uint32_t callbacks() const {
    uint32_t bits = 0;
    for (const auto& [hook, bit] :
         {std::pair("check", plugin::kHasCheck), std::pair("cost", plugin::kHasCost),
          std::pair("scratch", plugin::kHasScratch), std::pair("pack", plugin::kHasPack),
          std::pair("generate", plugin::kHasGenerate)})
      if (functions_.count(hook)) bits |= bit;
    return bits;
  }

  int32_t check(const std::string& what, const TenonMatch& match, TenonAnswer& answer) override {
    return may_refuse(what, answer, [&] {
      const nb::object given = call("check", match);
      if (given.is_none()) return 0;
      if (PyBool_Check(given.ptr())) {
        if (nb::cast<bool>(given)) return 0;
        return plugin::host()->refuse(&answer, "check", "its check refused it");
      }
      if (nb::isinstance<nb::str>(given))
        return plugin::host()->refuse(&answer, "check", nb::cast<std::string>(given).c_str());
      throw nb::type_error(("`check` answered with " + nb::cast<std::string>(nb::repr(given)) +
                            "; expected True, False, or the reason against it")
                               .c_str());
    });
  }
  double cost(const std::string& what, const TenonMatch& match) override {
    return asked(what, [&] {
      const nb::object given = call("cost", match);
      if (given.is_none()) return -1.0;
      const double seconds = PyFloat_AsDouble(given.ptr());
      if (PyErr_Occurred()) throw nb::python_error();
      return seconds;
    });
  }
  int64_t scratch(const std::string& what, const TenonMatch& match) override {
    return asked(what, [&] {
      const nb::object given = call("scratch", match);
      if (given.is_none()) return int64_t{0};
      const nb::object index = nb::steal(PyNumber_Index(given.ptr()));
      if (!index.is_valid()) throw nb::python_error();
      return nb::cast<int64_t>(index);
    });
  }
  int32_t pack(const std::string& what, const TenonMatch& match, int32_t input,
               TenonAnswer& answer) override {
    return may_refuse(what, answer, [&] {
      python::pack(answer, (*functions_.at("pack"))(match_of(match, name_), input));
      return 0;
    });
  }
  int32_t generate(const std::string& what, const TenonMatch& match, TenonAnswer& answer) override {
    return may_refuse(what, answer, [&] {
      python::generate(answer, call("generate", match), match.symbol);
      return 0;
    });
  }
  int32_t run_pass(const std::string&, size_t, const std::string&, TenonAnswer&) override {
    return 1;  // passes of Python are passes like others
  }

 private:
  nb::object call(const char* hook, const TenonMatch& match) const {
    return (*functions_.at(hook))(match_of(match, name_));
  }
  template <typename Work>
  static int32_t may_refuse(const std::string& what, TenonAnswer& answer, const Work& work) {
    return asked(what, [&]() -> int32_t {
      try {
        return work();
      } catch (nb::python_error& error) {
        if (!is_refusal(error)) throw;
        return refuse(answer, error.value());
      }
    });
  }

  std::string name_;
  std::map<std::string, Kept> functions_;
};

// ---- from graph to TensorIR, from TensorIR to code ----------------------------------------------

/// What Tenon offers to a hook that lowers a function.
struct LoweringContext {
  graph::BackendContext context;
};

CompileError wrong(const Origin& origin, const std::string& what, const std::string& words) {
  return CompileError(kBadBackend, origin, "{} {}", what, words);
}

// The module with what the hook made of `function`.
IRModule lowered(IRModule module, const std::string& function, const nb::object& given,
                 const std::string& what) {
  const BaseFunc before = module.find(function);
  if (nb::isinstance<IRModule>(given)) return nb::cast<IRModule>(given);
  const auto* made = nb::isinstance<Function>(given) ? &nb::cast<const Function&>(given) : nullptr;
  if (!made || made->node.as<graph::Function>())
    throw wrong(
        before->origin, what,
        fmt::format("gave {} for `{}`; expected a PrimFunc, or the module with one of that "
                    "name",
                    made ? "a graph function" : nb::cast<std::string>(nb::repr(given)), function));
  module.set(function, made->node);
  const auto made_functions = functions_of(given, function);
  for (const auto& [name, callee] : made_functions->functions()) {
    if (name == function) continue;
    const BaseFunc known = module.find(name);
    if (known && !structural_equal(known, callee))
      throw wrong(
          before->origin, what,
          fmt::format("gave `{}`, which calls a `{}`; the module has another one", function, name));
    module.set(name, callee);
  }
  return module;
}

auto graph_to_tir(const std::string& backend, const nb::object& function) {
  return [backend, function = kept(function)](IRModule module, const std::string& name,
                                              const graph::BackendContext& context) {
    const std::string what = "hook `graph_to_tir` of back end `" + backend + "`";
    const BaseFunc before = module.find(name);
    std::optional<graph::BackendRefusal> refusal;
    IRModule out = asked(what, [&] {
      const Function given{name, before, std::make_shared<const IRModule>(module)};
      try {
        return lowered(module, name, (*function)(given, LoweringContext{context}), what);
      } catch (nb::python_error& error) {
        if (!is_refusal(error)) throw;
        const auto reason = nb::cast<std::string>(nb::str(error.value().attr("reason")));
        const auto words = nb::cast<std::string>(nb::str(error.value().attr("words")));
        refusal.emplace(reason, words,
                        CompileError(kBackendRefused, before->origin, "{} refused `{}` ({}): {}",
                                     what, name, reason, words));
        return IRModule();
      }
    });
    if (refusal) throw std::move(*refusal);
    return out;
  };
}

auto tir_to_runtime(const std::string& backend, const nb::object& function) {
  return [backend, function = kept(function)](const IRModule& module,
                                              const std::vector<std::string>& names) {
    const std::string what = "hook `tir_to_runtime` of back end `" + backend + "`";
    return asked(what, [&] {
      const nb::object given = (*function)(module, names);
      graph::BackendCode code;
      if (nb::isinstance(given, class_of("CSource"))) {
        for (const nb::handle prelude : nb::iter(given.attr("prelude")))
          code.c_source += nb::cast<std::string>(prelude) + "\n";
        code.c_source += nb::cast<std::string>(given.attr("source"));
      } else if (nb::isinstance(given, class_of("ObjectFile"))) {
        code.object = view_of(nb::cast<nb::bytes>(given.attr("content")));
      } else {
        throw nb::type_error(("`tir_to_runtime` answered with " +
                              nb::cast<std::string>(nb::repr(given)) +
                              "; expected a CSource or an ObjectFile")
                                 .c_str());
      }
      for (const nb::handle library : nb::iter(given.attr("link")))
        code.link.push_back(nb::cast<std::string>(library));
      return code;
    });
  };
}

// A back end that makes the code of kernels alone: its functions become TensorIR as all others do.
auto lower_as_tenon(const std::string& backend) {
  return [backend](IRModule module, const std::string& name, const graph::BackendContext& context) {
    if (!context.lower)
      throw CompileError(kBadBackend, module.find(name)->origin,
                         "back end `{}` has no `graph_to_tir`, and nothing lowers `{}` here",
                         backend, name);
    return context.lower(std::move(module), name);
  };
}

// ---- registration -------------------------------------------------------------------------------

Descriptor descriptor_of(const std::string& name, nb::handle options) {
  Descriptor d;
  d.name = name;
  d.version = nb::cast<std::string>(options.attr("version"));
  d.patterns = nb::cast<std::string>(options.attr("pattern_text"));
  d.size = sizeof(TenonBackend);
  d.abi = TENON_BACKEND_ABI;
  const auto is = [&](const char* option) { return nb::cast<bool>(options.attr(option)); };
  d.unit = is("takes_regions") ? TENON_UNIT_REGION : TENON_UNIT_MATCH;
  d.threads = is("own_threads") ? TENON_THREADS_OWN_POOL : TENON_THREADS_CALLER;
  for (const auto& [option, flag] :
       {std::pair("varies_with_threads", TENON_VARIES_WITH_THREADS),
        std::pair("pass_threads", TENON_PASS_THREADS), std::pair("has_effects", TENON_HAS_EFFECTS),
        std::pair("takes_symbolic_shapes", TENON_TAKES_SYMBOLIC_SHAPES),
        std::pair("works_in_place", TENON_WORKS_IN_PLACE)})
    if (is(option)) d.flags |= static_cast<uint32_t>(flag);
  if (!is("thread_safe")) d.flags |= TENON_NOT_THREAD_SAFE;
  d.priority = nb::cast<int32_t>(options.attr("priority"));
  auto hooks = std::make_shared<PythonHooks>(name, options);
  d.callbacks = hooks->callbacks();
  d.hooks = std::move(hooks);
  return d;
}

// A name without a dot is one of this back end.
std::vector<graph::FusionPattern> patterns_of(const std::string& name, nb::handle list) {
  std::vector<graph::FusionPattern> patterns = fusion_patterns_of(list);
  for (graph::FusionPattern& pattern : patterns) {
    if (pattern.name.find('.') == std::string::npos) pattern.name = name + "." + pattern.name;
    if (!pattern.name.starts_with(name + "."))
      throw CompileError(kBadPattern, {},
                         "pattern `{}` is of another back end; expected `{}.` in front",
                         pattern.name, name);
  }
  return patterns;
}

void register_python_backend(const std::string& name, const nb::object& options, bool replace) {
  std::vector<graph::FusionPattern> patterns = patterns_of(name, options.attr("patterns"));
  const nb::object to_tir = options.attr("graph_to_tir"), to_code = options.attr("tir_to_runtime");
  Descriptor d = descriptor_of(name, options);
  // What the hooks make takes the place of what `generate` does.
  const bool has_generate = d.has(plugin::kHasGenerate);
  if (!to_tir.is_none() || !to_code.is_none()) d.callbacks |= plugin::kHasGenerate;
  plugin::PassDescriptor pass;
  for (const nb::handle item : nb::iter(options.attr("passes"))) {
    pass.name = nb::cast<const Pass&>(item).name;
    d.passes.push_back(pass);
  }
  graph::Backend backend = plugin::adapt(d, std::move(patterns));
  backend.passes.clear();
  for (const nb::handle item : nb::iter(options.attr("passes"))) {
    Pass own = nb::cast<Pass>(item);
    own.name = name + "." + own.name;
    backend.passes.push_back(std::move(own));
  }
  if (!to_tir.is_none())
    backend.lower = graph_to_tir(name, to_tir);
  else if (!has_generate)
    backend.lower = lower_as_tenon(name);
  if (!to_code.is_none()) backend.generate = tir_to_runtime(name, to_code);
  if (replace)
    graph::replace_backend(std::move(backend));
  else
    graph::register_backend(std::move(backend));
}

}  // namespace

void bind_backends(nb::module_& m) {
  nb::class_<Asked>(m, "_Asked")
      .def("text",
           [](const Asked& asked) {
             const std::string found = unlocked([&] {
               plugin::MatchContext context;
               context.symbol = asked.symbol;
               const auto match = plugin::read_match(asked.module, asked.function, context);
               return match->source->text(*match);
             });
             return text(found);
           })
      .def(
          "choose",
          [](const Asked& asked, int32_t op) {
            return unlocked(
                [&] { return plugin::chosen_kernel(asked.module, *asked.function, op); });
          },
          nb::arg("op"))
      .def(
          "log",
          [](const Asked& asked, const std::string& words) {
            record({"Plugin", asked.subject, "said", asked.backend, {}, words, {}});
          },
          nb::arg("words"));
  nb::class_<LoweringContext>(m, "LoweringContext",
                              "What a `graph_to_tir` hook is given beside the function.")
      .def_prop_ro(
          "symbol", [](const LoweringContext& c) { return c.context.symbol; },
          "The symbol that RunCodegen was told to use; empty: the back end's choice.")
      .def_prop_ro(
          "options",
          [](const LoweringContext& c) {
            nb::dict out;
            for (const auto& [key, value] : c.context.options) out[key.c_str()] = to_python(value);
            return out;
          },
          "Those of RunCodegen.")
      .def(
          "lower",
          [](const LoweringContext& c, const Function& function) {
            IRModule module = function.module ? *function.module : IRModule();
            module.set(function.name, function.node);
            return unlocked([&] { return c.context.lower(std::move(module), function.name); });
          },
          nb::arg("function"),
          "The function's module with a PrimFunc in its place, which computes it as Tenon would: "
          "for what the back end does not do itself.");
  m.def("_register_backend", &register_python_backend, nb::arg("name"), nb::arg("options"),
        nb::arg("replace"));
  m.def("_unregister_backend", &graph::unregister_backend, nb::arg("name"));
  m.def("_backend_names", [] {
    std::vector<std::string> names;
    for (const auto& backend : graph::all_backends()) names.push_back(backend->name);
    return names;
  });
}

}  // namespace tenon::python
