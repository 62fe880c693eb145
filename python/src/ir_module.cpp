// SPDX-License-Identifier: Apache-2.0
// IRModule and its functions.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "common.h"
#include "function.h"
#include "script_values.h"
#include "tenon/driver/load.h"
#include "tenon/driver/passes.h"
#include "tenon/driver/verify.h"
#include "tenon/graph/expr.h"
#include "tenon/ir/module.h"
#include "tenon/script/constant_file.h"
#include "tenon/script/highlight.h"
#include "tenon/script/printer.h"
#include "tenon/tir/stmt.h"
#include "tools.h"
#include "values.h"

namespace tenon::python {

void add_callees(IRModule& module, const Function& function) {
  std::vector<BaseFunc> added = {function.node};
  for (size_t i = 0; i < added.size(); ++i)
    walk(BaseFunc(added[i]), [&](const NodePtr& node) {
      const auto* ref = node.as<graph::FuncRef>();
      const auto* var = node.as<GlobalVar>();
      if (!ref && !var) return;
      const std::string& name = ref ? ref->name : var->name;
      const BaseFunc callee = function.module->find(name);
      if (!callee || module.contains(name)) return;
      module.set(name, callee);
      added.push_back(callee);
    });
}

namespace {

const char* kind_of(const BaseFunc& function) {
  if (function.as<graph::Function>()) return "graph";
  if (function.as<tir::PrimFunc>()) return "prim_func";
  return "extern";
}

Function function_of(const IRModule& module, const std::string& name) {
  BaseFunc found = module.find(name);
  if (!found) throw nb::key_error(name.c_str());
  return {name, std::move(found), std::make_shared<const IRModule>(module)};
}

std::string script(const IRModule& module, const std::string& name) {
  return unlocked([&] { return script::print(module, {.module_name = name}); });
}

std::optional<std::pair<std::string, std::string>> difference(const IRModule& a,
                                                              const IRModule& b) {
  const auto found = unlocked([&] { return structural_difference(a, b); });
  if (!found) return std::nullopt;
  return std::pair{found->where, found->message};
}

// What pickling keeps: the text, and the constants that it refers to.
std::pair<std::string, nb::bytes> state_of(const IRModule& module) {
  std::string text, constants;
  unlocked([&] {
    script::ConstantStore store;
    text = script::print(module, {.constants = &store});
    constants = script::bytes_of(store);
    return 0;
  });
  return {std::move(text), nb::bytes(constants.data(), constants.size())};
}

IRModule from_state(const std::string& text, const nb::bytes& constants) {
  const auto kept = std::make_shared<const std::string>(static_cast<const char*>(constants.data()),
                                                        constants.size());
  return unlocked([&] {
    const script::ConstantStore store =
        script::read_constants({"<constants>", std::as_bytes(std::span(*kept)), kept});
    return load_module(ModelKind::kScript, {"<module>", std::as_bytes(std::span(text)), nullptr},
                       {}, &store);
  });
}

}  // namespace

void bind_modules(nb::module_& m) {
  nb::class_<Function>(m, "Function", "A function of a module: of graphs, a PrimFunc, or foreign.")
      .def_ro("name", &Function::name, "In its module.")
      .def_prop_ro(
          "kind", [](const Function& f) { return kind_of(f.node); },
          "\"graph\", \"prim_func\" or \"extern\".")
      .def_prop_ro(
          "module",
          [](const Function& f) {
            IRModule module = f.module ? *f.module : IRModule();
            module.set(f.name, f.node);
            return module;
          },
          "The module that it is of; what it calls is there.")
      .def_prop_ro(
          "params",
          [](const Function& f) {
            std::vector<Value> out;
            if (const auto* graph = f.node.as<graph::Function>())
              for (const auto& param : graph->params) out.push_back({param});
            return out;
          },
          "The parameters of a graph function.")
      .def_prop_ro(
          "body",
          [](const Function& f) -> std::optional<Value> {
            const auto* graph = f.node.as<graph::Function>();
            return graph ? std::optional(Value{graph->body->body}) : std::nullopt;
          },
          "What a graph function returns; None of others.")
      .def_prop_ro(
          "bindings",
          [](const Function& f) {
            std::vector<std::pair<Value, Value>> out;
            if (const auto* graph = f.node.as<graph::Function>())
              for (const auto& block : graph->body->blocks)
                for (const auto& binding : block->bindings)
                  out.emplace_back(Value{binding->var},
                                   Value{binding->value, {}, binding->var->type});
            return out;
          },
          "The variables of a graph function with their values, in order.")
      .def_prop_ro(
          "attrs", [](const Function& f) { return to_python(f.node->attrs); },
          "A copy of its attributes.")
      .def(
          "script",
          [](const Function& f) { return unlocked([&] { return script::print(f.node, f.name); }); },
          "Its text, as TVMScript.")
      .def(
          "__call__",
          [](const Function& f, const nb::args& args, const nb::kwargs& kwargs) {
            IRModule alone;
            if (!f.module) alone.set(f.name, f.node);
            return interpret(f.module ? *f.module : alone, f.name, {}, args, kwargs);
          },
          "Runs it in the interpreter, as `tenon.interpret` does.")
      .def("_repr_html_",
           [](const Function& f) {
             return unlocked([&] { return script::html_of(script::print(f.node, f.name)); });
           })
      .def(
          "__str__",
          [](const Function& f) { return unlocked([&] { return script::print(f.node, f.name); }); })
      .def(
          "__eq__",
          [](const Function& a, const Function& b) {
            return unlocked([&] { return structural_equal(a.node, b.node); });
          },
          nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__reduce__",
           [](const nb::object& f) {
             return nb::make_tuple(imported("operator").attr("getitem"),
                                   nb::make_tuple(f.attr("module"), f.attr("name")));
           })
      .def("__hash__", [](const Function& f) { return structural_hash(f.node); })
      .def("__repr__", [](const Function& f) {
        return fmt::format("<tenon.Function `{}`, {}>", f.name, kind_of(f.node));
      });

  nb::class_<IRModule>(
      m, "IRModule",
      "Functions by name: of graphs, PrimFuncs and foreign ones, side by side. Immutable but for "
      "what sets items; copying shares the functions.")
      .def(nb::init<>())
      .def("script", &script, nb::arg("name") = "Module",
           "The module as TVMScript, which `tenon.load` reads back to an equal module. Long "
           "constants are references by content.")
      .def_prop_ro(
          "functions",
          [](const IRModule& module) {
            nb::dict out;
            const auto shared = std::make_shared<const IRModule>(module);
            for (const auto& [name, node] : module.functions())
              out[name.c_str()] = Function{name, node, shared};
            return out;
          },
          "The functions by name, in order.")
      .def_prop_ro(
          "attrs", [](const IRModule& module) { return to_python(module.attrs); },
          "A copy of the module's attributes.")
      .def(
          "with_attrs",
          [](const IRModule& module, const nb::dict& attrs) {
            IRModule copy = module;
            for (const auto& [name, value] : attrs_of(attrs)) copy.attrs.set(name, value);
            return copy;
          },
          nb::arg("attrs"), "A copy with these attributes set.")
      .def_prop_ro(
          "form", [](const IRModule& module) { return std::string(name_of(form_of(module))); },
          "What passes need: \"graph\", \"legalised\", \"TensorIR with blocks\", \"lowered\".")
      .def("__getitem__", &function_of, nb::arg("name"))
      .def("__setitem__",
           [](IRModule& module, const std::string& name, const Function& function) {
             module.set(name, function.node);
             if (function.module) add_callees(module, function);
           })
      .def("__delitem__",
           [](IRModule& module, const std::string& name) {
             function_of(module, name);
             module.erase(name);
           })
      .def("__contains__", &IRModule::contains)
      .def("__len__", &IRModule::size)
      .def("__iter__",
           [](const IRModule& module) {
             nb::list names;
             for (const auto& [name, node] : module.functions()) names.append(name);
             return nb::iter(names);
           })
      .def(
          "__eq__",
          [](const IRModule& a, const IRModule& b) {
            return unlocked([&] { return structural_equal(a, b); });
          },
          nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](const IRModule& module) { return unlocked([&] { return structural_hash(module); }); })
      .def("first_difference", &difference, nb::arg("other"),
           "None where the modules are structurally equal; else where they differ first, and how.")
      .def(
          "verify",
          [](const IRModule& module) {
            unlocked([&] {
              verify_module(module);
              return 0;
            });
          },
          "Raises CompileError with everything that is wrong with the module.")
      .def("_repr_html_",
           [](const IRModule& module) {
             return unlocked([&] { return script::html_of(script::print(module)); });
           })
      .def(
          "copy", [](const IRModule& module) { return module; }, "Shares the functions.")
      .def("__copy__", [](const IRModule& module) { return module; })
      .def("__deepcopy__", [](const IRModule& module, const nb::dict&) { return module; })
      .def("__getstate__", &state_of)
      .def("__setstate__",
           [](IRModule& module, const std::pair<std::string, nb::bytes>& state) {
             new (&module) IRModule(from_state(state.first, state.second));
           })
      .def("__str__", [](const IRModule& module) { return script(module, "Module"); })
      .def("__repr__", [](const IRModule& module) {
        std::string names;
        for (const auto& [name, node] : module.functions())
          names += (names.empty() ? "" : ", ") + name;
        return fmt::format("<tenon.IRModule: {}>", names);
      });
}

}  // namespace tenon::python
