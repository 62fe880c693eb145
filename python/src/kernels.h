// SPDX-License-Identifier: Apache-2.0
// Kernels of one's own, as Python gives them.
#pragma once

#include "common.h"
#include "tenon/driver/kernel_files.h"

namespace tenon::python {

/// Takes modules, functions and dicts of functions by node out of option `kernels`. \returns the
/// options that are left: files stay in it, `FILE:FUNCTION` of a dict goes to option `kernel`.
nb::dict take_kernels(const nb::dict& options, KernelFiles& kernels);

}  // namespace tenon::python
