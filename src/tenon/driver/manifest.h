// SPDX-License-Identifier: Apache-2.0
// Reads the manifest of a compiled library, as far as reports show it.
#pragma once

#include <string>
#include <string_view>

#include "tenon/driver/memory_use.h"
#include "tenon/driver/offload.h"

namespace tenon {

struct Manifest {
  std::string target;
  int64_t operators = 0, kernels = 0, library_calls = 0;
  double gflop = 0;
  Offload offload = {};
  MemoryUse memory = {};
};

/// Empty and zeros where the text says nothing that can be read: it is no part of the program.
Manifest read_manifest(std::string_view text);

}  // namespace tenon
