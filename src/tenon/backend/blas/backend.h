// SPDX-License-Identifier: Apache-2.0
// The back end that calls OpenBLAS for matrix products.
#pragma once

#include "tenon/backend.h"

namespace tenon::backend {

/// Null in a build without OpenBLAS.
const TenonBackend* blas_backend(const TenonHost* host);

}  // namespace tenon::backend
