// SPDX-License-Identifier: Apache-2.0
// Calls of programs: the path that every inference takes, so nothing on it is looked up twice.
#include <nanobind/stl/string.h>

#include <array>

#include "arrays.h"
#include "program.h"
#include "tenon/runtime/arguments.h"
#include "tenon/support/nearest.h"
#include "values.h"

namespace tenon::python {

namespace {

// The values of the inputs in order, borrowed from the call; `out` apart.
std::vector<PyObject*> arguments_of(Program& program, PyObject* args, PyObject* kwargs,
                                    PyObject*& out) {
  const std::vector<Program::Port>& ports = program.input_ports();
  std::vector<PyObject*> values(ports.size(), nullptr);
  const auto given = static_cast<size_t>(NB_TUPLE_GET_SIZE(args));
  if (given > ports.size())
    throw nb::type_error(
        fmt::format("`{}` takes {} inputs; {} were given", program.name(), ports.size(), given)
            .c_str());
  for (size_t i = 0; i < given; ++i)
    values[i] = NB_TUPLE_GET_ITEM(args, static_cast<Py_ssize_t>(i));
  if (kwargs) {
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t at = 0;
    while (PyDict_Next(kwargs, &at, &key, &value)) {
      size_t i = 0;
      while (i < ports.size() && PyUnicode_Compare(ports[i].name.ptr(), key) != 0) ++i;
      if (i < ports.size()) {
        if (values[i])
          throw nb::type_error(fmt::format("`{}` got input `{}` twice", program.name(),
                                           program.signature().inputs[i].name)
                                   .c_str());
        values[i] = value;
      } else if (PyUnicode_CompareWithASCIIString(key, "out") == 0) {
        out = value;
      } else {
        const std::string name = nb::cast<std::string>(nb::handle(key));
        std::vector<std::string> names;
        for (const tenon::Port& port : program.signature().inputs) names.push_back(port.name);
        throw nb::type_error(
            fmt::format("`{}` has no input `{}`{}", program.name(), name, did_you_mean(name, names))
                .c_str());
      }
    }
  }
  for (size_t i = 0; i < values.size(); ++i)
    if (!values[i])
      throw nb::type_error(fmt::format("`{}` needs input `{}`, {}", program.name(),
                                       program.signature().inputs[i].name,
                                       program.signature().inputs[i].str())
                               .c_str());
  return values;
}

// As many as there are outputs: of one array, a sequence, or a dictionary by name.
std::vector<nb::object> outputs_of(Program& program, PyObject* out) {
  const std::vector<Program::Port>& ports = program.output_ports();
  std::vector<nb::object> given;
  if (PyDict_Check(out)) {
    for (const Program::Port& port : ports) {
      PyObject* found = PyDict_GetItemWithError(out, port.name.ptr());
      if (!found)
        throw nb::type_error(
            ("`out` lacks output `" + nb::cast<std::string>(port.name) + "`").c_str());
      given.push_back(nb::borrow(found));
    }
    return given;
  }
  if (PyList_Check(out) || PyTuple_Check(out)) {
    for (const nb::handle item : nb::iter(nb::handle(out))) given.push_back(nb::borrow(item));
  } else {
    given.push_back(nb::borrow(out));
  }
  if (given.size() != ports.size())
    throw nb::type_error(fmt::format("`out` has {} arrays; `{}` has {} outputs", given.size(),
                                     program.name(), ports.size())
                             .c_str());
  return given;
}

nb::object results(std::vector<nb::object> arrays) {
  if (arrays.size() == 1) return std::move(arrays[0]);
  const nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(arrays.size())));
  for (size_t i = 0; i < arrays.size(); ++i)
    NB_TUPLE_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), arrays[i].release().ptr());
  return tuple;
}

/// The arguments of a call. Where functions of Python are called in it, they may keep the memory
/// that they are handed, and then hold these.
class Held {
 public:
  explicit Held(bool is_shared) {
    if (!is_shared) return;
    shared_ = std::shared_ptr<Arrays>(new Arrays(), [](Arrays* arrays) {
      const nb::gil_scoped_acquire locked;
      delete arrays;
    });
  }
  std::vector<ArrayArgument>& inputs() { return shared_ ? shared_->inputs : own_.inputs; }
  std::vector<ArrayArgument>& outputs() { return shared_ ? shared_->outputs : own_.outputs; }
  std::shared_ptr<const void> keeper() const { return shared_; }

 private:
  struct Arrays {
    std::vector<ArrayArgument> inputs, outputs;
  };
  Arrays own_;
  std::shared_ptr<Arrays> shared_;
};

nb::object run(Program& program, PyObject* args, PyObject* kwargs) {
  PyObject* out = nullptr;
  const std::vector<PyObject*> values = arguments_of(program, args, kwargs, out);
  const std::vector<Program::Port>& ports = program.input_ports();
  runtime::Program& compiled = program.program();
  Held held(compiled.declaration().packed_count > 0);
  std::vector<ArrayArgument>& inputs = held.inputs();
  inputs = std::vector<ArrayArgument>(values.size());
  std::vector<const DLTensor*> pointers;
  pointers.reserve(inputs.size());
  for (size_t i = 0; i < values.size(); ++i) {
    inputs[i].read(values[i], ports[i].numpy_dtype);
    pointers.push_back(&inputs[i].tensor());
  }
  if (out && out != Py_None) {
    const std::vector<nb::object> arrays = outputs_of(program, out);
    std::vector<ArrayArgument>& outputs = held.outputs();
    outputs = std::vector<ArrayArgument>(arrays.size());
    std::vector<DLTensor*> places;
    for (size_t i = 0; i < arrays.size(); ++i) {
      outputs[i].write(arrays[i]);
      places.push_back(&outputs[i].tensor());
    }
    {
      const nb::gil_scoped_release unlocked;
      compiled.run(pointers, places, held.keeper());
    }
    return nb::borrow(out);
  }
  std::vector<runtime::Tensor> tensors;
  {
    const nb::gil_scoped_release unlocked;
    tensors = compiled.run(pointers, held.keeper());
  }
  std::vector<nb::object> arrays;
  arrays.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i)
    arrays.push_back(to_numpy(tensors[i], program.output_ports()[i].numpy_dtype));
  return results(std::move(arrays));
}

}  // namespace

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) noexcept {
  try {
    return run(*nb::inst_ptr<Program>(self), args, kwargs).release().ptr();
  } catch (...) {
    return raise_current();
  }
}

}  // namespace tenon::python
