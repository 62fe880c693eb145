// SPDX-License-Identifier: Apache-2.0
// The extension `tenon._core`.
#include "arrays.h"
#include "common.h"

NB_MODULE(_core, m) {
  using namespace tenon::python;
  // Passes that are registered, and modules that are imported, stay to the end.
  nb::set_leak_warnings(false);
  m.attr("__version__") = TENON_VERSION;
  bind_errors(m);
  bind_arrays(m);
  bind_modules(m);
  bind_script(m);
  bind_patterns(m);
  bind_tir(m);
  bind_schedule(m);
  bind_kernels(m);
  bind_passes(m);
  bind_packed(m);
  bind_backends(m);
  bind_operators(m);
  bind_looks(m);
  bind_programs(m);
  bind_tools(m);
  bind_compile(m);
}
