// SPDX-License-Identifier: Apache-2.0
// The back end that calls oneDNN.
#pragma once

#include "tenon/backend.h"

namespace tenon::backend {

/// Null in a build without oneDNN.
const TenonBackend* dnnl_backend(const TenonHost* host);

}  // namespace tenon::backend
