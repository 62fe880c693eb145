// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <map>
#include <new>

#include "common.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/usage.h"
#include "tenon/driver/watch.h"
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
  const nb::gil_scoped_release unlocked;
  tell_watched();
}

Kept kept(nb::object value) {
  return {new nb::object(std::move(value)), [](nb::object* object) {
            if (!Py_IsInitialized()) return;  // with everything else
            const nb::gil_scoped_acquire locked;
            delete object;
          }};
}

void raise_from_callback(const std::string& what, nb::python_error& error) {
  if (!error.matches(PyExc_Exception)) {
    error.restore();
    throw nb::python_error();
  }
  const nb::object cause = nb::borrow(error.value());
  const std::string message =
      fmt::format("{} raised {}: {}", what, nb::type_name(cause.type()).c_str(),
                  nb::cast<std::string>(nb::str(cause)));
  const nb::object raised = imported("tenon._errors").attr("CallbackError")(text(message));
  PyException_SetCause(raised.ptr(), nb::object(cause).release().ptr());
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.ptr())), raised.ptr());
  throw nb::python_error();
}

Warnings::Warnings()
    : scope_([this](const Code& code, const Origin& origin, const std::string& message) {
        taken_.push_back({std::string(code.id), (origin ? origin.str() + ": " : "") + message});
      }) {}

void Warnings::issue() {
  for (const Warning& warning : std::exchange(taken_, {})) {
    const nb::object category = imported("tenon._errors").attr("TenonWarning");
    const nb::object instance = category(text(warning.text), warning.code);
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

nb::str text(std::string_view bytes) {
  PyObject* decoded =
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
  if (!decoded) throw nb::python_error();
  return nb::steal<nb::str>(decoded);
}

nb::object place_of(const Origin& origin) {
  if (!origin) return nb::none();
  const nb::object place = imported("tenon._errors").attr("Place");
  const OriginInfo& info = *origin;
  nb::list parts;
  for (const Origin& part : info.parts) parts.append(place_of(part));
  if (info.kind == OriginInfo::Kind::kScript)
    return place(text(origin.str()), text(info.file->name), info.line, info.column, info.length,
                 nb::none(), nb::none(), parts);
  if (info.kind == OriginInfo::Kind::kModel)
    return place(text(origin.str()), text(info.path), nb::none(), nb::none(), nb::none(),
                 text(info.node_name), text(info.op_type), parts);
  return place(text(origin.str()), nb::none(), nb::none(), nb::none(), nb::none(), nb::none(),
               nb::none(), parts);
}

// `said` gives a message as Python's user is to read it.
template <typename Said>
static nb::object in_list(const std::vector<Diagnostic>& diagnostics, const Said& said) {
  const nb::object errors = imported("tenon._errors");
  nb::list out;
  for (const Diagnostic& diagnostic : diagnostics) {
    nb::list notes;
    for (const Note& note : diagnostic.notes)
      notes.append(errors.attr("Note")(text(note.message), place_of(note.origin)));
    out.append(errors.attr("Diagnostic")(
        std::string(diagnostic.code.id), std::string(diagnostic.code.name),
        text(said(diagnostic.message)), place_of(diagnostic.origin), notes));
  }
  return out;
}

static nb::object diagnostics_of(const CompileError& error) {
  return in_list(error.diagnostics(), [](const std::string& message) { return message; });
}

static void raise(const char* kind, const std::string& message, const nb::object& diagnostics) {
  const nb::object error = imported("tenon._errors").attr(kind)(text(message), diagnostics);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
}

// Options by the names that they have as arguments: --require-offload is require_offload.
static std::string in_python(std::string text) {
  constexpr std::string_view kFront = "error: ";
  if (text.starts_with(kFront)) text.erase(0, kFront.size());
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  for (size_t at = text.find("--"); at != std::string::npos; at = text.find("--", at)) {
    if (at + 2 >= text.size() || !is_letter(text[at + 2]) || (at > 0 && text[at - 1] == '-')) {
      at += 2;
      continue;
    }
    text.erase(at, 2);
    for (; at < text.size() && (is_letter(text[at]) || text[at] == '-'); ++at)
      if (text[at] == '-') text[at] = '_';
  }
  return text;
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
  } catch (const UsageDiagnostic& error) {
    raise("UsageError", in_python(error.what()), in_list(error.diagnostics(), in_python));
  } catch (const UsageError& error) {
    const std::string message = in_python(error.what());
    const std::vector<Diagnostic> diagnostics = {{kBadOption, {}, message, {}}};
    raise("UsageError", message, in_list(diagnostics, in_python));
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

void bind_errors(nb::module_&) {
  nb::register_exception_translator(translate);
  watch_as_guest();
}

}  // namespace tenon::python
