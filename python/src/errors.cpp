// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <map>
#include <new>

#include "common.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/usage.h"
#include "tenon/runtime/error.h"
#include "tenon/support/check.h"
#include "tenon/support/diagnostics.h"

namespace tenon::python {

nb::object imported(const char* module) {
  // Never destroyed: the interpreter may be gone by then.
  static auto* modules = new std::map<std::string, nb::object>();
  nb::object& found = (*modules)[module];
  if (!found.is_valid()) found = nb::module_::import_(module);
  return found;
}

void check_signals() {
  using Clock = std::chrono::steady_clock;
  thread_local Clock::time_point last;
  const Clock::time_point now = Clock::now();
  if (now - last < std::chrono::milliseconds(20)) return;
  last = now;
  const nb::gil_scoped_acquire locked;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

Warnings::Warnings()
    : scope_([this](const Code& code, const Origin& origin, const std::string& message) {
        taken_.push_back({std::string(code.id), (origin ? origin.str() + ": " : "") + message});
      }) {}

void Warnings::issue() {
  for (const Warning& warning : std::exchange(taken_, {})) {
    const nb::object category = imported("tenon._errors").attr("TenonWarning");
    const nb::object instance = category(warning.text, warning.code);
    // In the place of who called the function of the package.
    imported("warnings").attr("warn")(instance, nb::arg("stacklevel") = 2);
  }
}

void Warnings::issue_beside_error() noexcept {
  try {
    issue();
  } catch (const nb::python_error&) {
    // The error says more.
  }
}

static nb::object place_of(const Origin& origin) {
  if (!origin) return nb::none();
  const nb::object place = imported("tenon._errors").attr("Place");
  const OriginInfo& info = *origin;
  nb::list parts;
  for (const Origin& part : info.parts) parts.append(place_of(part));
  if (info.kind == OriginInfo::Kind::kScript)
    return place(origin.str(), info.file->name, info.line, info.column, info.length, nb::none(),
                 nb::none(), parts);
  if (info.kind == OriginInfo::Kind::kModel)
    return place(origin.str(), info.path, nb::none(), nb::none(), nb::none(), info.node_name,
                 info.op_type, parts);
  return place(origin.str(), nb::none(), nb::none(), nb::none(), nb::none(), nb::none(), nb::none(),
               parts);
}

static nb::object diagnostics_of(const CompileError& error) {
  const nb::object errors = imported("tenon._errors");
  nb::list out;
  for (const Diagnostic& diagnostic : error.diagnostics()) {
    nb::list notes;
    for (const Note& note : diagnostic.notes)
      notes.append(errors.attr("Note")(note.message, place_of(note.origin)));
    out.append(errors.attr("Diagnostic")(std::string(diagnostic.code.id),
                                         std::string(diagnostic.code.name), diagnostic.message,
                                         place_of(diagnostic.origin), notes));
  }
  return out;
}

static void raise(const char* kind, const std::string& text, const nb::object& diagnostics) {
  const nb::object error = imported("tenon._errors").attr(kind)(text, diagnostics);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
}

// With the code that the command line gives it.
static void translate_run_error(const runtime::Error& error) {
  try {
    rethrow(error);
  } catch (const CompileError& coded) {
    raise("RunError", error.what(), diagnostics_of(coded));
  } catch (const InternalError&) {
    raise("InternalError", error.what(), nb::list());
  }
}

static void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const CompileError& error) {
    const std::string_view code = error.first().code.id;
    const bool is_of_run = code == kBadInput.id || code == kRunFailed.id;
    raise(is_of_run ? "RunError" : "CompileError", error.what(), diagnostics_of(error));
  } catch (const UsageError& error) {
    raise("UsageError", error.what(), nb::list());
  } catch (const runtime::Error& error) {
    translate_run_error(error);
  } catch (const InternalError& error) {
    raise("InternalError", error.what(), nb::list());
  }
}

static PyObject* type_of(nb::exception_type type) {
  switch (type) {
    case nb::exception_type::type_error: return PyExc_TypeError;
    case nb::exception_type::value_error: return PyExc_ValueError;
    case nb::exception_type::key_error: return PyExc_KeyError;
    case nb::exception_type::index_error: return PyExc_IndexError;
    default: return PyExc_RuntimeError;
  }
}

PyObject* raise_current() noexcept {
  try {
    try {
      throw;
    } catch (nb::python_error& error) {
      error.restore();
    } catch (const nb::builtin_exception& error) {
      PyErr_SetString(type_of(error.type()), error.what());
    } catch (const std::bad_alloc&) {
      PyErr_NoMemory();
    } catch (...) {
      translate(std::current_exception(), nullptr);
    }
  } catch (nb::python_error& error) {  // while one of ours was made
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

void bind_errors(nb::module_&) { nb::register_exception_translator(translate); }

}  // namespace tenon::python
