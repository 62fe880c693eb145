// SPDX-License-Identifier: Apache-2.0
// Passes and pipelines of Python.
#pragma once

#include "common.h"

namespace tenon::python {

/// A text or a file of passes, a pass, or a list of these.
Pipeline pipeline_of(nb::handle value);

}  // namespace tenon::python
