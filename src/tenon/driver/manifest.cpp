// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/manifest.h"

#include <nlohmann/json.hpp>

namespace tenon {

Manifest read_manifest(std::string_view text) {
  const auto json = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) return {};
  try {
    Manifest out;
    out.target = json.value("target", "");
    out.operators = json.value("operators", int64_t{0});
    out.kernels = json.value("kernels", int64_t{0});
    out.library_calls = json.value("library_calls", int64_t{0});
    out.gflop = json.value("gflop", 0.0);
    if (const auto offload = json.find("offload"); offload != json.end())
      out.offload = offload_from(*offload);
    if (const auto memory = json.find("memory"); memory != json.end())
      out.memory = memory_use_from(*memory);
    return out;
  } catch (const nlohmann::json::exception&) {
    return {};  // a member of another type
  }
}

}  // namespace tenon
