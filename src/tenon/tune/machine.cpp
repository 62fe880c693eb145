// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/machine.h"

#include <fmt/core.h>

#include <array>
#include <fstream>
#include <iterator>

#include "tenon/support/content_hash.h"

namespace tenon::tune {

// The value of the first line `name : value`; empty where there is none.
static std::string value_of(std::string_view cpuinfo, std::string_view name) {
  while (!cpuinfo.empty()) {
    const size_t end = std::min(cpuinfo.find('\n'), cpuinfo.size());
    const std::string_view line = cpuinfo.substr(0, end);
    cpuinfo.remove_prefix(std::min(end + 1, cpuinfo.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !line.starts_with(name)) continue;
    if (line.substr(name.size(), colon - name.size()).find_first_not_of(" \t") !=
        std::string_view::npos)
      continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string_view::npos ? "" : std::string(line.substr(begin));
  }
  return "";
}

Machine machine_of(std::string_view cpuinfo, const Target& native) {
  // Of x86; of AArch64. Clocks and microcode change while a machine stays what it is.
  constexpr std::array<std::string_view, 9> kNames = {
      "model name",      "vendor_id",        "cpu family",  "model",   "stepping",
      "CPU implementer", "CPU architecture", "CPU variant", "CPU part"};
  Machine machine;
  for (const std::string_view name : kNames)
    if (const std::string value = value_of(cpuinfo, name); !value.empty())
      machine.text += name == "model name" ? value + "; " : fmt::format("{} {}; ", name, value);
  machine.text += native.str();
  machine.fingerprint = content_hash(machine.text).substr(0, 16);
  return machine;
}

Machine this_machine(const Target& native) {
  std::ifstream file("/proc/cpuinfo");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  return machine_of(text, native);
}

}  // namespace tenon::tune
