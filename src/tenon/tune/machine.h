// SPDX-License-Identifier: Apache-2.0
// Kinds of machines: times of one kind say nothing of another.
#pragma once

#include <string>
#include <string_view>

#include "tenon/support/target.h"

namespace tenon::tune {

struct Machine {
  std::string text;         // what it is, for people
  std::string fingerprint;  // of the text: 16 hex digits
};

/// This machine: its processor as the system describes it, and `native`, what Tenon sees of it.
Machine this_machine(const Target& native);
/// The same of a text in the form of /proc/cpuinfo.
Machine machine_of(std::string_view cpuinfo, const Target& native);

}  // namespace tenon::tune
