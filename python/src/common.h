// SPDX-License-Identifier: Apache-2.0
// What all files of the Python extension share: errors, warnings, and work without the interpreter's
// lock.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/driver/warnings.h"
#include "tenon/ir/pass.h"
#include "tenon/support/interrupt.h"

namespace nb = nanobind;

namespace tenon::python {

/// Makes Python exceptions of Tenon's (tenon/_errors.py).
void bind_errors(nb::module_& m);
void bind_modules(nb::module_& m);
void bind_compile(nb::module_& m);
void bind_programs(nb::module_& m);
void bind_passes(nb::module_& m);
void bind_packed(nb::module_& m);
void bind_backends(nb::module_& m);
void bind_operators(nb::module_& m);
void bind_script(nb::module_& m);
void bind_patterns(nb::module_& m);
void bind_tir(nb::module_& m);
void bind_schedule(nb::module_& m);
void bind_kernels(nb::module_& m);
void bind_looks(nb::module_& m);
void bind_tools(nb::module_& m);

/// Sets Python's error to the exception that is being handled. Returns null.
PyObject* raise_current() noexcept;

/// A text that may hold anything: what is not UTF-8 is replaced.
nb::str text(std::string_view bytes);

/// tenon.Place, or None.
nb::object place_of(const Origin& origin);

/// A module of Python's, imported when it is first asked for and kept.
nb::object imported(const char* module);

/// A value of Python's for C++ to keep: the last copy may be dropped anywhere.
using Kept = std::shared_ptr<nb::object>;
Kept kept(nb::object value);

/// Throws what Python's handlers of signals raised, KeyboardInterrupt, and what the watch over a
/// compilation found (driver/watch.h). Looks at most every 20 ms; to be called without the lock.
void check_signals();

/// Raises tenon.CallbackError from the exception that a callback raised: `what` failed. Those that
/// are to end the program, KeyboardInterrupt among them, go on as they are.
[[noreturn]] void raise_from_callback(const std::string& what, nb::python_error& error);

/// Calls into Python from work without its lock. \param what  "pass `mine`"
template <typename Call>
auto callback(const std::string& what, const Call& call) {
  const nb::gil_scoped_acquire locked;
  try {
    return call();
  } catch (nb::python_error& error) {
    raise_from_callback(what, error);
  }
}

/// Takes warnings while the lock is away, and issues them as Python's when it is back.
class Warnings {
 public:
  Warnings();
  /// \throws nb::python_error where the user made errors of warnings.
  void issue();
  /// The same where an error is on its way.
  void issue_beside_error() noexcept;

 private:
  struct Warning {
    std::string code, text;
  };
  std::vector<Warning> taken_;
  WarningScope scope_;
};

/// Runs `work` without the interpreter's lock. Warnings become Python's, and signals end it.
template <typename Work>
auto unlocked(const Work& work) {
  Warnings warnings;
  try {
    auto result = [&] {
      const nb::gil_scoped_release unlocked;
      const InterruptScope interrupts(check_signals);
      return work();
    }();
    warnings.issue();
    return result;
  } catch (...) {
    warnings.issue_beside_error();
    throw;
  }
}

}  // namespace tenon::python
