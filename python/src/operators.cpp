// SPDX-License-Identifier: Apache-2.0
// Operators whose type rule is a function of Python.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "common.h"
#include "function.h"
#include "script_values.h"
#include "tenon/graph/operator_rules.h"
#include "tenon/script/expressions.h"
#include "values.h"

namespace tenon::python {

using graph::OperatorRule;
using graph::Type;

namespace {

nb::object dimension(const Expr& dim) {
  if (const auto number = as_int(dim)) return nb::int_(*number);
  return nb::str(str(dim).c_str());
}

// (shape, dtype) of a tensor; None where either is not known.
nb::object parts_of(const graph::TensorType& tensor) {
  nb::object shape = nb::none();
  if (tensor.shape) {
    nb::list dims;
    for (const Expr& dim : *tensor.shape) dims.append(dimension(dim));
    shape = nb::tuple(dims);
  }
  return nb::make_tuple(shape, tensor.dtype.is_void()
                                   ? nb::object(nb::none())
                                   : nb::object(nb::str(tensor.dtype.str().c_str())));
}

std::shared_ptr<const OperatorRule> make_rule(const std::string& name, const Function& schema,
                                              const nb::object& declare) {
  auto rule = std::make_shared<OperatorRule>();
  rule->name = name;
  rule->schema = cast<graph::Function>(schema.node);
  rule->form = [declare = kept(declare), name](const std::vector<Type>& types,
                                               const Attrs& attributes) {
    return callback("type rule of operator `" + name + "`", [&] {
      nb::list inputs;
      for (const Type& type : types) {
        const auto* tensor = type ? type.as<graph::TensorType>() : nullptr;
        if (type && !tensor)
          throw CompileError(kTypeMismatch, {}, "operator `{}` is given a value of type {}", name,
                             graph::str(type));
        inputs.append(tensor ? parts_of(*tensor) : nb::none());
      }
      const nb::object made = (*declare)(inputs, to_python(attributes));
      const auto& function = nb::cast<const Function&>(made);
      return OperatorRule::Form{function.module, function.name};
    });
  };
  return rule;
}

// What a type of a script, `R.Tensor((2, "n"), "float32")`, says.
nb::object parts_of_type(nb::handle object) {
  const Type type = script::type_of(Capture().object_of(object));
  const auto* tensor = type.as<graph::TensorType>();
  if (!tensor)
    throw nb::type_error(("a type rule answered with " + graph::str(type) +
                          "; expected R.Tensor(shape, dtype), or a tuple of these")
                             .c_str());
  return parts_of(*tensor);
}

// A call of the operator on expressions, for rewriters.
Value call(const OperatorRule& rule, const nb::args& args, const nb::kwargs& kwargs) {
  std::vector<graph::Value> values;
  std::vector<Type> types;
  IRModule functions;
  for (const nb::handle arg : args) {
    const Value value = arg.is_none() ? Value{} : value_of(arg);
    types.push_back(value.node ? value.type() : Type());
    if (!value.node) continue;
    values.push_back(value.node);
    add_functions(functions, value);
  }
  const Attrs attributes = graph::attributes_of_call(rule, attrs_of(kwargs), {});
  const OperatorRule::Form form =
      rule.form(graph::inputs_of_call(rule, std::move(types), {}), attributes);
  const std::string name = graph::add_form(functions, form);
  const auto function = form.module->find<graph::Function>(form.name);
  for (const Ref<graph::Var>& param : function->params)
    if (const AttrValue* value = attributes.find(param->name))
      values.push_back(graph::attribute_value(*param, *value, {}));
  return {make<graph::Call>(make<graph::FuncRef>(name), std::move(values), Attrs(),
                            std::vector<Type>{}),
          std::make_shared<const IRModule>(std::move(functions)), function->result};
}

}  // namespace

void bind_operators(nb::module_& m) {
  nb::class_<OperatorRule>(m, "_OperatorRule")
      .def("__call__", &call, nb::arg("args"), nb::arg("kwargs"));
  m.def("_make_rule", &make_rule, nb::arg("name"), nb::arg("schema"), nb::arg("declare"));
  m.def(
      "_register_operator",
      [](const OperatorRule& rule, bool replace) { graph::register_operator_rule(rule, replace); },
      nb::arg("rule"), nb::arg("replace"));
  m.def("_unregister_operator", &graph::unregister_operator_rule, nb::arg("name"));
  m.def("_parts_of_type", &parts_of_type, nb::arg("type"),
        nb::sig(
            "def _parts_of_type(type: object) -> tuple[tuple[int | str, ...] | None, str | None]"));
}

}  // namespace tenon::python
