// SPDX-License-Identifier: Apache-2.0
// Reads the manifest of a compiled library, as far as reports show it.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/driver/input_meaning.h"
#include "tenon/driver/memory_use.h"
#include "tenon/driver/offload.h"

namespace tenon {

struct Manifest {
  std::string target;
  int64_t operators = 0, kernels = 0, library_calls = 0;
  double gflop = 0;
  Offload offload = {};
  MemoryUse memory = {};
  std::map<std::string, InputMeaning> meanings = {};  // by name of the input
  std::vector<std::string> own_kernels = {};          // kernel_lines
};

/// What random values of an input may be, as members of `port`: nothing where they may be any.
void add_meaning(nlohmann::ordered_json& port, const InputMeaning& meaning);

/// Empty and zeros where the text says nothing that can be read: it is no part of the program.
Manifest read_manifest(std::string_view text);

}  // namespace tenon
