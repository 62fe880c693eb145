// SPDX-License-Identifier: Apache-2.0
// Scripts that stand in Python's files, and expressions of graphs.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "function.h"
#include "operators.h"
#include "script_values.h"
#include "tenon/driver/verify.h"
#include "tenon/graph/op.h"
#include "tenon/script/expressions.h"
#include "tenon/script/parser.h"
#include "tenon/script/printer.h"
#include "tenon/script/words.h"
#include "values.h"

namespace tenon::python {

namespace {

// Looks names up in Python while it reads, so it keeps the interpreter's lock.
IRModule parse(const Source& source, uint32_t first, uint32_t last, nb::object lookup,
               const std::string& class_name, bool verify, bool bare_class) {
  const auto names = names_of(std::move(lookup));
  script::ParseOptions options;
  options.names = names.get();
  options.lines = {first, last};
  options.module_name = class_name;
  options.bare_class = bare_class;
  IRModule module = script::parse_module(source.file, options);
  if (verify) verify_module(module);
  return module;
}

Function first_function(const IRModule& module) {
  const auto& [name, node] = module.functions().at(0);
  return {name, node, std::make_shared<const IRModule>(module)};
}

nb::object wrapped(const script::Object& object, IRModule functions = {}) {
  if (const auto* value = object.as<graph::Value>())
    return nb::cast(Value{*value, functions.size() == 0
                                      ? nullptr
                                      : std::make_shared<const IRModule>(std::move(functions))});
  if (const auto* type = object.as<graph::Type>()) return nb::str(graph::str(*type).c_str());
  if (const auto* expr = object.as<Expr>()) return nb::cast(PrimExpr{*expr});
  if (const auto converted = to_python(object)) return *converted;
  throw nb::type_error(("it is " + script::describe(object) + ", no value of a graph").c_str());
}

// Those of values in an argument.
void collect_functions(IRModule& functions, nb::handle arg) {
  if (nb::isinstance<Value>(arg)) add_functions(functions, nb::cast<const Value&>(arg));
  if (nb::isinstance<nb::tuple>(arg) || nb::isinstance<nb::list>(arg))
    for (const nb::handle item : nb::iter(arg)) collect_functions(functions, item);
}

nb::object call_word(const std::string& word, const nb::args& args, const nb::kwargs& kwargs) {
  Capture capture;
  std::vector<script::Object> positional;
  script::HostValue::Keywords keywords;
  IRModule functions;
  for (const nb::handle arg : args) {
    positional.push_back(capture.object_of(arg));
    collect_functions(functions, arg);
  }
  for (const auto& [name, arg] : kwargs) {
    keywords.emplace_back(nb::cast<std::string>(name), capture.object_of(arg));
    collect_functions(functions, arg);
  }
  const script::Object out = script::call_word(word, positional, keywords, &functions);
  return wrapped(out, std::move(functions));
}

template <typename Node>
const Node* as(const Value& value) {
  return value.node.as<Node>();
}

const char* kind_of(const Value& value) {
  if (as<graph::Var>(value)) return "Var";
  if (as<graph::Constant>(value)) return "Constant";
  if (as<graph::Call>(value)) return "Call";
  if (as<graph::Tuple>(value)) return "Tuple";
  if (as<graph::TupleGetItem>(value)) return "TupleGetItem";
  if (as<graph::ShapeExpr>(value)) return "ShapeExpr";
  if (as<graph::PrimValue>(value)) return "PrimValue";
  if (as<graph::StringValue>(value)) return "StringImm";
  if (as<graph::FuncRef>(value)) return "GlobalVar";
  if (as<graph::ExternRef>(value)) return "ExternFunc";
  if (as<graph::FunctionValue>(value)) return "Function";
  return "Expr";
}

nb::object shape_of(const Value& value) {
  const graph::Type type = value.type();
  const auto* tensor = type.as<graph::TensorType>();
  if (!tensor || !tensor->shape) return nb::none();
  nb::list dims;
  for (const Expr& dim : *tensor->shape) {
    const auto known = as_int(dim);
    dims.append(known ? nb::object(nb::int_(*known)) : nb::object(nb::str(str(dim).c_str())));
  }
  return nb::tuple(dims);
}

nb::object operand(const char* op, const nb::object& lhs, const nb::object& rhs) {
  Capture capture;
  IRModule functions;
  collect_functions(functions, lhs);
  collect_functions(functions, rhs);
  return wrapped(script::operate(op, capture.object_of(lhs), capture.object_of(rhs)),
                 std::move(functions));
}

void bind_values(nb::module_& m) {
  auto value = nb::class_<Value>(m, "Expr",
                                 "A value of a graph: a variable, a constant, or a call of an "
                                 "operator on others. Equal to itself alone.");
  value.def_prop_ro("kind", &kind_of, "\"Var\", \"Call\", \"Constant\", ...")
      .def_prop_ro(
          "type", [](const Value& v) { return graph::str(v.type()); },
          "As its text has it: `R.Tensor((2, 3), \"float32\")`.")
      .def_prop_ro(
          "dtype",
          [](const Value& v) -> std::optional<std::string> {
            const graph::Type type = v.type();
            const auto* tensor = type.as<graph::TensorType>();
            if (!tensor || tensor->dtype.is_void()) return std::nullopt;
            return tensor->dtype.str();
          },
          "Of a tensor; None where it is not known.")
      .def_prop_ro("shape", &shape_of,
                   "Of a tensor: integers, and texts for symbolic dimensions; None where it is not "
                   "known.")
      .def_prop_ro(
          "name_hint",
          [](const Value& v) -> std::optional<std::string> {
            if (const auto* var = as<graph::Var>(v)) return var->name;
            if (const auto* ref = as<graph::FuncRef>(v)) return ref->name;
            return std::nullopt;
          },
          "The name of a variable or function.")
      .def_prop_ro(
          "op",
          [](const Value& v) -> std::optional<std::string> {
            const auto* call = as<graph::Call>(v);
            if (!call || !call->op) return std::nullopt;
            return call->op->name;
          },
          "The operator that a call is of: \"nn.conv2d\".")
      .def_prop_ro(
          "function",
          [](const Value& v) -> std::optional<Function> {
            const auto* value = as<graph::FunctionValue>(v);
            if (!value) return std::nullopt;
            return Function{"function", value->function};
          },
          "The function that stands here, inside of another.")
      .def_prop_ro(
          "callee",
          [](const Value& v) -> std::optional<Value> {
            const auto* call = as<graph::Call>(v);
            if (!call || call->op) return std::nullopt;
            return Value{call->callee};
          },
          "What a call is of that is of no operator: a function of the module, or another one.")
      .def_prop_ro(
          "args",
          [](const Value& v) {
            std::vector<Value> out;
            if (const auto* call = as<graph::Call>(v))
              for (const graph::Value& arg : call->args) out.push_back({arg});
            if (const auto* tuple = as<graph::Tuple>(v))
              for (const graph::Value& item : tuple->values) out.push_back({item});
            if (const auto* item = as<graph::TupleGetItem>(v)) out.push_back({item->tuple});
            return out;
          },
          "The operands of a call, the items of a tuple.")
      .def_prop_ro(
          "attrs",
          [](const Value& v) {
            const auto* call = as<graph::Call>(v);
            return call ? to_python(call->attrs) : nb::dict();
          },
          "The attributes of a call.")
      .def_prop_ro(
          "data",
          [](const Value& v) -> nb::object {
            const auto* constant = as<graph::Constant>(v);
            return constant ? to_numpy(constant->data) : nb::none();
          },
          "The elements of a constant.")
      .def("__getitem__", [](const nb::object& self, const nb::object& index) {
        Capture capture;
        IRModule functions;
        collect_functions(functions, self);
        return wrapped(script::item_of(capture.object_of(self), capture.object_of(index)),
                       std::move(functions));
      });
  bind_identity(value);
  bind_text(value, "Expr");
  bind_operators(value, operand);
  value.def("__neg__", [](const Value& v) {
    return Value{graph::call_op("negative", {v.node}), v.functions};
  });
}

}  // namespace

void bind_script(nb::module_& m) {
  bind_values(m);
  nb::class_<Source>(m, "_Source")
      .def("__init__",
           [](Source* self, std::string name, std::string text) {
             new (self) Source{
                 std::make_shared<const SourceFile>(SourceFile{std::move(name), std::move(text)})};
           })
      .def_prop_ro("text", [](const Source& source) { return source.file->text; });
  m.def("_parse_module", &parse, nb::arg("source"), nb::arg("first"), nb::arg("last"),
        nb::arg("lookup"), nb::arg("class_name"), nb::arg("verify"), nb::arg("bare_class") = false);
  m.def("_parse_function",
        [](const Source& source, uint32_t first, uint32_t last, nb::object lookup) {
          return first_function(parse(source, first, last, std::move(lookup), "", false, false));
        });
  m.def("_check_macro", [](const Source& source, uint32_t first, uint32_t last, nb::object lookup) {
    script::read_helper(source.file, {first, last}, names_of(std::move(lookup)));
  });
  m.def("_call_word", &call_word);
  m.def("_with_args", [](const Value& value, nb::handle args) {
    const auto* call = value.node.as<graph::Call>();
    if (!call) throw nb::type_error("the expression is no call");
    std::vector<graph::Value> operands;
    IRModule functions;
    for (const nb::handle arg : nb::iter(args)) {
      operands.push_back(value_of(arg).node);
      collect_functions(functions, arg);
    }
    const auto out = call->op ? make<graph::Call>(call->op, std::move(operands), call->attrs,
                                                  call->type_args, call->origin)
                              : make<graph::Call>(call->callee, std::move(operands), call->attrs,
                                                  call->type_args, call->origin);
    return wrapped(graph::Value(out), std::move(functions));
  });
  m.def("_expr_of", [](nb::handle value) { return value_of(value); });
  m.def("_words", [] {
    nb::list out;
    for (const script::Word& word : script::all_words())
      out.append(nb::make_tuple(word.name, word.parameters, word.summary,
                                word.kind == script::Word::Kind::kType        ? "type"
                                : word.kind == script::Word::Kind::kDecorator ? "decorator"
                                                                              : "function"));
    return out;
  });
}

}  // namespace tenon::python
