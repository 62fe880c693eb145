// SPDX-License-Identifier: Apache-2.0
#include "packed.h"

#include <dlfcn.h>
#include <dlpack/dlpack.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <deque>
#include <map>

#include "arrays.h"
#include "tenon/backend/dlpack_code.h"
#include "tenon/runtime/error.h"
#include "tenon/runtime/packed_call.h"
#include "values.h"

namespace tenon::python {

namespace {

using runtime::Error;
using runtime::PackedCall;
using runtime::PackedFunction;

/// What a packed function is registered with.
struct Callee {
  std::string what;
  Kept function;
  Results results;
};

DType dtype_of(const DLTensor& tensor) {
  if (tensor.dtype.code == TENON_DTYPE_STRING)
    throw nb::type_error("a tensor of strings is given to a function of Python");
  return {backend::code_of_dlpack(tensor.dtype.code), tensor.dtype.bits, tensor.dtype.lanes};
}

// numpy's type, which is looked up once for each.
const nb::object& kept_numpy_dtype(DType dtype) {
  static auto* const known = new std::map<std::string, nb::object>();
  nb::object& found = (*known)[dtype.str()];
  if (!found.is_valid()) found = numpy_dtype(dtype);
  return found;
}

std::span<const int64_t> shape_of(const DLTensor& tensor) {
  return {tensor.shape, static_cast<size_t>(tensor.ndim)};
}

// An array over the program's memory, which it keeps.
nb::object array_of(const DLTensor& tensor, const PackedCall* call) {
  const DType dtype = dtype_of(tensor);
  const nb::object& type = kept_numpy_dtype(dtype);
  if (!call || !call->memory) return to_numpy(runtime::Tensor::copy_of(tensor), type);
  void* data = runtime::data_of(tensor);
  const Access access = call->memory->is_writable(data) ? Access::kWrite : Access::kRead;
  const auto element = static_cast<int64_t>(dtype.bytes());
  if (!tensor.strides || runtime::is_packed(tensor)) {
    const int64_t bytes = runtime::byte_count(tensor.dtype, shape_of(tensor));
    return array_in(memory_view(data, bytes, call->memory, access), type, shape_of(tensor));
  }
  int64_t last = 0;
  nb::list dims, strides;
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    last += (tensor.shape[i] - 1) * tensor.strides[i];
    dims.append(tensor.shape[i]);
    strides.append(tensor.strides[i] * element);
  }
  const nb::object memory = memory_view(data, (last + 1) * element, call->memory, access);
  return imported("numpy").attr("ndarray")(nb::tuple(dims), type, memory, 0, nb::tuple(strides));
}

nb::object argument_of(const TenonValue& value, int32_t code, const PackedCall* call) {
  switch (code) {
    case TENON_VALUE_INT: return nb::int_(value.integer);
    case TENON_VALUE_UINT: return nb::int_(static_cast<uint64_t>(value.integer));
    case TENON_VALUE_FLOAT: return nb::float_(value.number);
    case TENON_VALUE_POINTER: return nb::int_(reinterpret_cast<uintptr_t>(value.pointer));
    case TENON_VALUE_TEXT: return text(value.text ? value.text : "");
    case TENON_VALUE_TENSOR: return array_of(*static_cast<const DLTensor*>(value.pointer), call);
    default: return nb::none();
  }
}

// What the function gave, in the memory that the program wants it in.
void take_result(const Callee& callee, nb::handle given, size_t index, const DLTensor& wanted) {
  const DType dtype = dtype_of(wanted);
  ArrayArgument value;
  value.read(given, kept_numpy_dtype(dtype));
  const DLTensor& tensor = value.tensor();
  const std::span<const int64_t> has = shape_of(tensor), wants = shape_of(wanted);
  if (tensor.dtype.code != wanted.dtype.code || tensor.dtype.bits != wanted.dtype.bits ||
      !std::equal(has.begin(), has.end(), wants.begin(), wants.end()))
    throw Error(
        TENON_ERROR_LIBRARY,
        fmt::format("{} gave {} of shape {} as result {}; expected {} of shape {}", callee.what,
                    runtime::dtype_name(tensor.dtype), runtime::shape_text(has), index,
                    runtime::dtype_name(wanted.dtype), runtime::shape_text(wants)));
  const int64_t bytes = runtime::byte_count(wanted.dtype, wants);
  if (bytes > 0)
    std::memmove(runtime::data_of(wanted), runtime::data_of(tensor), static_cast<size_t>(bytes));
}

// A scalar, where one may be wanted.
void take_scalar(nb::handle given, TenonValue& result, int32_t& code) {
  nb::object value = nb::borrow(given);
  if (nb::hasattr(value, "dtype") && nb::hasattr(value, "item") && !nb::hasattr(value, "__len__"))
    value = value.attr("item")();
  if (PyLong_Check(value.ptr())) {  // bool too
    result.integer = nb::cast<int64_t>(value);
    code = TENON_VALUE_INT;
  } else if (PyFloat_Check(value.ptr())) {
    result.number = nb::cast<double>(value);
    code = TENON_VALUE_FLOAT;
  }
}

struct Values {
  TenonValue* values;
  int32_t* codes;
  int32_t count;
};

void call_python(const Callee& callee, const PackedCall* call, const Values& args,
                 const Values& results) {
  nb::list given;
  for (int32_t i = 0; i < args.count; ++i)
    given.append(argument_of(args.values[i], args.codes[i], call));
  std::vector<const DLTensor*> wanted;
  for (int32_t i = 0; i < results.count; ++i)
    if (results.codes[i] == TENON_VALUE_TENSOR)
      wanted.push_back(static_cast<const DLTensor*>(results.values[i].pointer));
  const nb::object& function = *callee.function;
  if (callee.results == Results::kDestination) {
    for (const DLTensor* tensor : wanted) given.append(array_of(*tensor, call));
    function(*given);
    return;
  }
  const nb::object answer = function(*given);
  if (wanted.empty()) {
    if (results.count == 1) take_scalar(answer, results.values[0], results.codes[0]);
    return;
  }
  const bool is_tuple = PyTuple_Check(answer.ptr());
  if (wanted.size() == 1 && !(is_tuple && nb::len(answer) == 1))
    return take_result(callee, answer, 0, *wanted[0]);
  const size_t has = is_tuple || PyList_Check(answer.ptr()) ? nb::len(answer) : 1;
  if (has != wanted.size())
    throw Error(TENON_ERROR_LIBRARY,
                fmt::format("{} gave {}; expected {} results", callee.what,
                            is_tuple || has != 1
                                ? fmt::format("{} results", has)
                                : "one result of type `" +
                                      std::string(nb::type_name(answer.type()).c_str()) + "`",
                            wanted.size()));
  for (size_t i = 0; i < wanted.size(); ++i)
    take_result(callee, nb::object(answer[i]), i, *wanted[i]);
}

std::string words_of(const Callee& callee, const PackedCall* call) {
  const char* where = call ? call->where : nullptr;
  if (!where || *where == 0) return callee.what;
  return fmt::format("{}, called by `{}`,", callee.what, where);
}

bool is_python_alive() {
  // Its name changed in 3.13; the extension may be for several versions.
  static const auto is_finalizing = [] {
    void* found = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    if (!found) found = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
    return reinterpret_cast<int (*)()>(found);
  }();
  return Py_IsInitialized() && !(is_finalizing && is_finalizing());
}

int32_t enter_python(TenonValue* args, int32_t* codes, int32_t count, TenonValue* results,
                     int32_t* result_codes, void* context) {
  const Callee& callee = *static_cast<const Callee*>(context);
  if (!is_python_alive())
    throw Error(TENON_ERROR_LIBRARY, callee.what + " is called when Python has ended");
  const nb::gil_scoped_acquire locked;
  const PackedCall* call = PackedCall::current();
  if (call && call->results != results) call = nullptr;  // called by another function
  const int32_t wanted = call ? call->result_count : results ? 1 : 0;
  try {
    call_python(callee, call, {args, codes, count}, {results, result_codes, wanted});
  } catch (nb::python_error& error) {
    raise_from_callback(words_of(callee, call), error);
  } catch (const nb::builtin_exception& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
    nb::python_error raised;
    raise_from_callback(words_of(callee, call), raised);
  }
  return TENON_OK;
}

// ---- functions that others registered -----------------------------------------------------------

/// A packed function of C, as Python calls it.
struct Foreign {
  std::string name;
  PackedFunction function;
};

struct Arguments {
  std::deque<ArrayArgument> arrays;
  std::deque<std::string> texts;
  std::vector<TenonValue> values;
  std::vector<int32_t> codes;

  void add(nb::handle arg) {
    TenonValue value{};
    int32_t code = TENON_VALUE_NONE;
    if (PyLong_Check(arg.ptr())) {
      value.integer = nb::cast<int64_t>(arg);
      code = TENON_VALUE_INT;
    } else if (PyFloat_Check(arg.ptr())) {
      value.number = nb::cast<double>(arg);
      code = TENON_VALUE_FLOAT;
    } else if (PyUnicode_Check(arg.ptr())) {
      value.text = texts.emplace_back(nb::cast<std::string>(arg)).c_str();
      code = TENON_VALUE_TEXT;
    } else if (!arg.is_none()) {
      arrays.emplace_back().read(arg, {});
      value.pointer = &arrays.back().tensor();
      code = TENON_VALUE_TENSOR;
    }
    values.push_back(value);
    codes.push_back(code);
  }
};

nb::object answer_of(const TenonValue& value, int32_t code) {
  if (code == TENON_VALUE_MANAGED_TENSOR && value.pointer) {
    const auto tensor = runtime::Tensor::from_dlpack(static_cast<DLManagedTensor*>(value.pointer));
    const DLTensor view = tensor.view();
    return to_numpy(tensor, kept_numpy_dtype(dtype_of(view)));
  }
  // A tensor that nobody keeps is one of the arguments.
  return code == TENON_VALUE_TENSOR ? nb::none() : argument_of(value, code, nullptr);
}

nb::object call_foreign(const Foreign& foreign, const nb::args& given) {
  Arguments args;
  for (const nb::handle arg : given) args.add(arg);
  TenonValue result{};
  int32_t result_code = TENON_VALUE_NONE;
  int32_t code = TENON_OK;
  {
    const nb::gil_scoped_release unlocked;
    code = foreign.function.function(args.values.data(), args.codes.data(),
                                     static_cast<int32_t>(args.values.size()), &result,
                                     &result_code, foreign.function.context);
  }
  if (code != TENON_OK)
    throw Error(TENON_ERROR_LIBRARY,
                fmt::format("packed function `{}` failed with code {}", foreign.name, code));
  return answer_of(result, result_code);
}

// ---- the registry -------------------------------------------------------------------------------

void register_function(const std::string& name, nb::object function, bool replace,
                       bool destination) {
  if (name.empty()) throw nb::value_error("a packed function needs a name");
  if (!PyCallable_Check(function.ptr()))
    throw nb::type_error(("packed function `" + name + "` is " +
                          nb::cast<std::string>(nb::repr(function)) + "; expected a function")
                             .c_str());
  if (!replace && runtime::find_packed(name))
    throw nb::value_error(
        ("packed function `" + name + "` is registered already; `override=True` replaces it")
            .c_str());
  runtime::register_packed(
      name, packed_function("packed function `" + name + "`", std::move(function),
                            destination ? Results::kDestination : Results::kReturned));
}

nb::object find_function(const std::string& name) {
  const auto found = runtime::find_packed(name);
  if (!found) return nb::none();
  if (found->function == enter_python) return *static_cast<Callee*>(found->context)->function;
  return nb::cast(Foreign{name, *found});
}

}  // namespace

PackedFunction packed_function(std::string what, nb::object function, Results results) {
  auto callee =
      std::make_shared<Callee>(Callee{std::move(what), kept(std::move(function)), results});
  Callee* const context = callee.get();
  return {enter_python, context, std::move(callee)};
}

Registration register_temporarily(const std::string& name, nb::object function, Results results) {
  PackedFunction made =
      packed_function("function `" + name + "` of Python", std::move(function), results);
  void* const context = made.context;
  const std::string free = runtime::register_packed_beside(name, std::move(made));
  return {free, std::shared_ptr<const void>(context, [free](const void* registered) {
            runtime::unregister_packed(free, registered);
          })};
}

void bind_packed(nb::module_& m) {
  nb::class_<Foreign>(m, "PackedFunc",
                      "A packed function of C that is registered in this process. Called with "
                      "arrays, numbers and texts.")
      .def_ro("name", &Foreign::name)
      .def("__call__", &call_foreign, nb::arg("args"))
      .def("__repr__",
           [](const Foreign& foreign) { return "<tenon.PackedFunc `" + foreign.name + "`>"; });
  m.def("_register_packed", &register_function, nb::arg("name"), nb::arg("function"),
        nb::arg("replace"), nb::arg("destination"));
  m.def("_find_packed", &find_function, nb::arg("name"));
  m.def(
      "_remove_packed", [](const std::string& name) { return runtime::unregister_packed(name); },
      nb::arg("name"));
  m.def("_packed_names", &runtime::packed_names);
}

}  // namespace tenon::python
