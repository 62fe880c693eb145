// SPDX-License-Identifier: Apache-2.0
#include "script_values.h"

#include <nanobind/stl/string.h>

#include "function.h"
#include "tenon/graph/operator_rules.h"
#include "tenon/script/evaluator.h"
#include "tenon/script/expressions.h"
#include "values.h"

namespace tenon::python {

using script::Helper;
using script::HostValue;
using script::Object;

namespace {

// Whether it is of this class of a module, which is not imported for the question.
bool is_of(nb::handle value, const char* module, const char* type) {
  const nb::handle of(value.type());
  return nb::cast<std::string>(of.attr("__module__")) == module &&
         nb::cast<std::string>(of.attr("__name__")) == type;
}

/// A Python object that is no value of scripts.
class PythonValue final : public HostValue {
 public:
  explicit PythonValue(nb::object value) : value_(std::move(value)) {}

  const nb::object& value() const { return value_; }

  std::string describe() const override {
    const auto type = nb::cast<std::string>(nb::handle(value_.type()).attr("__name__"));
    if (nb::isinstance(value_, imported("types").attr("FunctionType")))
      return fmt::format("Python's function `{}`",
                         nb::cast<std::string>(value_.attr("__qualname__")));
    return fmt::format("a Python object of type `{}`", type);
  }
  std::optional<Object> attribute(const std::string& name) const override {
    if (!nb::hasattr(value_, name.c_str())) return std::nullopt;
    return Capture().object_of(value_.attr(name.c_str()));
  }
  std::optional<Object> item(const Object& index) const override {
    const auto key = to_python(index);
    if (!key) return std::nullopt;
    const nb::object item = nb::steal(PyObject_GetItem(value_.ptr(), key->ptr()));
    if (!item.is_valid()) throw nb::python_error();
    return Capture().object_of(item);
  }
  std::optional<Object> call(const std::vector<Object>& args,
                             const Keywords& keywords) const override {
    if (!PyCallable_Check(value_.ptr())) return std::nullopt;
    nb::list positional;
    nb::dict named;
    for (const Object& arg : args) {
      const auto converted = to_python(arg);
      if (!converted) return std::nullopt;
      positional.append(*converted);
    }
    for (const auto& [name, arg] : keywords) {
      const auto converted = to_python(arg);
      if (!converted) return std::nullopt;
      named[name.c_str()] = *converted;
    }
    return Capture().object_of(value_(*positional, **named));
  }
  bool is_operator() const override { return is_of(value_, "tenon._operator", "Operator"); }
  std::optional<Form> form(const std::vector<graph::Type>& inputs, const Keywords& keywords,
                           const Origin& origin) const override {
    const nb::object kept = value_.attr("_rule");
    const auto& rule = nb::cast<const graph::OperatorRule&>(kept);
    Attrs given;
    for (const auto& [name, object] : keywords) {
      const auto value = to_python(object);
      if (!value)
        throw CompileError(kBadAttribute, origin,
                           "attribute `{}` of operator `{}` is known only when the program runs",
                           name, rule.name);
      given.set(name, attr_of(*value));
    }
    const Attrs attributes = graph::attributes_of_call(rule, given, origin);
    const graph::OperatorRule::Form made =
        rule.form(graph::inputs_of_call(rule, inputs, origin), attributes);
    Form out{{made.module, made.name}, {}};
    for (const Ref<graph::Var>& param : made.module->find<graph::Function>(made.name)->params)
      if (const AttrValue* value = attributes.find(param->name))
        out.attributes.push_back(graph::attribute_value(*param, *value, origin));
    return out;
  }
  std::optional<Helper> helper() const override {
    const nb::object found = imported("tenon.script._source").attr("helper_of")(value_);
    if (found.is_none()) return std::nullopt;
    const Object object = Capture().object_of(found);
    const auto* helper = object.as<Helper>();
    return helper ? std::optional(*helper) : std::nullopt;
  }

 private:
  nb::object value_;
};

/// Looks names up in Python, each once.
class PythonNames final : public script::HostNames {
 public:
  explicit PythonNames(nb::object lookup) : lookup_(std::move(lookup)) {}
  const Object* find(const std::string& name) const override {
    const auto known = values_.find(name);
    if (known != values_.end()) return known->second ? &*known->second : nullptr;
    const nb::object found = lookup_(name);
    std::optional<Object>& value = values_[name];
    if (!found.is_none()) value = capture_.object_of(found[0]);
    return value ? &*value : nullptr;
  }

 private:
  nb::object lookup_;
  mutable Capture capture_;
  mutable std::map<std::string, std::optional<Object>> values_;
};

bool is_numpys(nb::handle value, const char* type) {
  // Not imported for this: what is not there has made no values.
  const nb::object modules = imported("sys").attr("modules");
  const nb::object numpy = modules.attr("get")("numpy");
  return !numpy.is_none() && nb::isinstance(value, numpy.attr(type));
}

}  // namespace

std::shared_ptr<const script::HostNames> names_of(nb::object lookup) {
  return std::make_shared<PythonNames>(std::move(lookup));
}

std::optional<Object> Capture::function_or_module(nb::handle value) {
  if (nb::isinstance<Function>(value)) {
    const auto& function = nb::cast<const Function&>(value);
    std::shared_ptr<const IRModule> module = function.module;
    if (!module) {  // alone
      auto& kept = modules_[value.ptr()];
      if (!kept) {
        IRModule alone;
        alone.set(function.name, function.node);
        kept = std::make_shared<const IRModule>(std::move(alone));
      }
      module = kept;
    }
    return script::CapturedFunction{std::move(module), function.name};
  }
  if (!nb::isinstance<IRModule>(value)) return std::nullopt;
  auto& module = modules_[value.ptr()];
  if (!module) module = std::make_shared<const IRModule>(nb::cast<const IRModule&>(value));
  return script::CapturedModule{module};
}

// What tenon.script made: `__tenon_script__` says what it is.
std::optional<Object> Capture::of_script(nb::handle value) {
  const bool is_module = PyModule_Check(value.ptr());
  const nb::handle owner = is_module ? value : nb::handle(value.type());
  if (!nb::hasattr(owner, "__tenon_script__")) return std::nullopt;
  const nb::object said = is_module ? nb::object(value.attr("__tenon_script__"))
                                    : nb::object(value.attr("__tenon_script__")());
  const std::string kind = nb::cast<std::string>(said[0]);
  if (kind == "word") return script::Path{script::canonical_path(nb::cast<std::string>(said[1]))};
  if (kind == "call") {
    std::vector<Object> args;
    HostValue::Keywords keywords;
    for (const nb::handle arg : nb::iter(said[2])) args.push_back(object_of(arg));
    for (const auto& [name, arg] : nb::cast<nb::dict>(said[3]))
      keywords.emplace_back(nb::cast<std::string>(name), object_of(arg));
    return script::call_word(nb::cast<std::string>(said[1]), args, keywords);
  }
  script::Helper helper;
  if (kind == "lambda") {
    helper = script::read_lambda(
        nb::cast<const Source&>(said[1]).file, nb::cast<std::string>(said[2]),
        {nb::cast<uint32_t>(said[3]), nb::cast<uint32_t>(said[4]), 6}, names_of(said[5]));
  } else {
    check(kind == "helper", "a kind of value of tenon.script");
    helper = script::read_helper(nb::cast<const Source&>(said[1]).file,
                                 {nb::cast<uint32_t>(said[2]), nb::cast<uint32_t>(said[3])},
                                 names_of(said[4]));
  }
  // Python evaluated defaults where the function was defined.
  std::map<std::string, Object> defaults;
  for (const auto& [name, value] : nb::cast<nb::dict>(said[nb::len(said) - 1]))
    defaults.emplace(nb::cast<std::string>(name), object_of(value));
  helper.defaults = std::make_shared<const std::map<std::string, Object>>(std::move(defaults));
  return helper;
}

std::optional<Object> Capture::dtype(nb::handle value) {
  const bool is_type = PyType_Check(value.ptr());
  nb::object name;
  if (is_numpys(value, "dtype")) {
    name = value.attr("name");
  } else if (is_type) {
    for (const char* builtin : {"float", "int", "bool", "str"})
      if (value.is(imported("builtins").attr(builtin)))
        return script::Path{std::string("py.") + builtin};
    const nb::object modules = imported("sys").attr("modules");
    const nb::object numpy = modules.attr("get")("numpy");
    if (numpy.is_none() ||
        PyObject_IsSubclass(value.ptr(), nb::object(numpy.attr("generic")).ptr()) != 1)
      return std::nullopt;
    name = numpy.attr("dtype")(value).attr("name");
  } else if (is_of(value, "torch", "dtype")) {
    name = nb::str(value);
  }
  if (!name.is_valid()) return std::nullopt;
  std::string text = nb::cast<std::string>(name);
  if (text.starts_with("torch.")) text.erase(0, 6);
  const auto parsed = DType::parse(text);
  if (!parsed) return std::nullopt;
  return Object(*parsed);
}

Object Capture::object_of(nb::handle value) {
  if (value.is_none()) return Object();
  if (PyBool_Check(value.ptr())) return nb::cast<bool>(value);
  if (is_numpys(value, "generic")) return object_of(value.attr("item")());
  if (PyLong_Check(value.ptr())) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    if (overflow == 0) return script::ast::Integer(number);
    const unsigned long long wide = PyLong_AsUnsignedLongLong(value.ptr());
    if (PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      throw nb::value_error("an integer that fits no 64 bits is used in a script");
    }
    return script::ast::Integer(wide);
  }
  if (PyFloat_Check(value.ptr())) return nb::cast<double>(value);
  if (PyUnicode_Check(value.ptr())) return nb::cast<std::string>(value);
  const bool is_tuple = PyTuple_Check(value.ptr());
  if (is_tuple || PyList_Check(value.ptr()) || PyRange_Check(value.ptr())) {
    std::vector<Object> items;
    for (const nb::handle item : nb::iter(value)) items.push_back(object_of(item));
    return script::make_list(std::move(items), is_tuple);
  }
  if (PyDict_Check(value.ptr())) {
    std::vector<std::pair<Object, Object>> items;
    for (const auto& [key, item] : nb::cast<nb::dict>(value))
      items.emplace_back(object_of(key), object_of(item));
    return script::Dict{
        std::make_shared<const std::vector<std::pair<Object, Object>>>(std::move(items))};
  }
  if (nb::isinstance<Value>(value)) return nb::cast<const Value&>(value).node;
  if (nb::isinstance<PrimExpr>(value)) return nb::cast<const PrimExpr&>(value).node;
  if (nb::isinstance<Buffer>(value)) return nb::cast<const Buffer&>(value).node;
  if (auto out = function_or_module(value)) return *out;
  if (auto out = of_script(value)) return *out;
  if (auto out = dtype(value)) return *out;
  // A symbolic dimension of later TVM: in a shape, its name is what a string is.
  if (is_of(value, "typing", "TypeVar")) return nb::cast<std::string>(value.attr("__name__"));
  if (!PyType_Check(value.ptr()) &&
      (nb::hasattr(value, "__array_interface__") || nb::hasattr(value, "__dlpack__")))
    return tensor_of(value);
  return script::Host{std::make_shared<const PythonValue>(nb::borrow(value))};
}

std::optional<nb::object> to_python(const Object& object) {
  if (object.is_none()) return nb::none();
  if (const auto* flag = object.as<bool>()) return nb::bool_(*flag);
  if (const auto* number = object.as<script::ast::Integer>()) {
    if (*number > std::numeric_limits<long long>::max())
      return nb::steal(PyLong_FromUnsignedLongLong(static_cast<unsigned long long>(*number)));
    return nb::int_(static_cast<long long>(*number));
  }
  if (const auto* number = object.as<double>()) return nb::float_(*number);
  if (const auto* text = object.as<std::string>()) return nb::str(text->c_str(), text->size());
  if (const auto* dtype = object.as<DType>()) return numpy_dtype(*dtype);
  if (const auto* list = object.as<script::List>()) {
    nb::list out;
    for (const Object& item : *list->items) {
      const auto converted = to_python(item);
      if (!converted) return std::nullopt;
      out.append(*converted);
    }
    if (list->is_tuple) return nb::tuple(out);
    return out;
  }
  if (const auto* dict = object.as<script::Dict>()) {
    nb::dict out;
    for (const auto& [key, item] : *dict->items) {
      const auto name = to_python(key), converted = to_python(item);
      if (!name || !converted) return std::nullopt;
      out[*name] = *converted;
    }
    return out;
  }
  if (const auto* data = object.as<Ref<TensorData>>()) return to_numpy(*data);
  if (const auto* host = object.as<script::Host>())
    if (const auto* value = dynamic_cast<const PythonValue*>(host->value.get()))
      return value->value();
  if (const auto* expr = object.as<Expr>()) {
    if (const auto number = as_int(*expr)) return nb::int_(*number);
    if (const auto number = as_float(*expr)) return nb::float_(*number);
  }
  return std::nullopt;
}

Value value_of(nb::handle value) {
  if (nb::isinstance<Value>(value)) return nb::cast<const Value&>(value);
  return {script::value_of(Capture().object_of(value))};
}

void add_functions(IRModule& module, const Value& value) {
  if (!value.functions) return;
  for (const auto& [name, function] : value.functions->functions()) {
    const BaseFunc known = module.find(name);
    if (known && !structural_equal(known, function))
      throw nb::value_error(
          fmt::format("a function `{}` comes into a module that has another one", name).c_str());
    if (!known) module.set(name, function);
  }
}

}  // namespace tenon::python
