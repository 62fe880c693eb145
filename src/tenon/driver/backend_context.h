// SPDX-License-Identifier: Apache-2.0
// The services that the driver offers to back ends' hooks.
#pragma once

#include "tenon/graph/backend.h"

namespace tenon {

/// Functions are lowered for the target that the module says, else for this host.
graph::BackendContext backend_context();

}  // namespace tenon
