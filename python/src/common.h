// SPDX-License-Identifier: Apache-2.0
// What all files of the Python extension share: errors, warnings, and work without the interpreter's
// lock.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>
#include <vector>

#include "tenon/driver/warnings.h"
#include "tenon/ir/pass.h"

namespace nb = nanobind;

namespace tenon::python {

/// Makes Python exceptions of Tenon's (tenon/_errors.py).
void bind_errors(nb::module_& m);
void bind_modules(nb::module_& m);
void bind_load(nb::module_& m);
void bind_compile(nb::module_& m);
void bind_programs(nb::module_& m);
void bind_passes(nb::module_& m);
void bind_script(nb::module_& m);
void bind_patterns(nb::module_& m);
void bind_tir(nb::module_& m);

/// Sets Python's error to the exception that is being handled. Returns null.
PyObject* raise_current() noexcept;

/// A module of Python's, imported when it is first asked for and kept.
nb::object imported(const char* module);

/// Throws what Python's handlers of signals raised: KeyboardInterrupt. Looks at most every 20 ms; to
/// be called without the lock.
void check_signals();

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

/// Runs `work` without the interpreter's lock. Warnings become Python's.
template <typename Work>
auto unlocked(const Work& work) {
  Warnings warnings;
  try {
    auto result = [&] {
      const nb::gil_scoped_release unlocked;
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
