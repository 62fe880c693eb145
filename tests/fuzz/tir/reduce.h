// SPDX-License-Identifier: Apache-2.0
// Makes a failing case smaller while it fails in the same way.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "judge.h"

namespace tenon::fuzz {

/// What `body` finds, in a process of its own: a fault's kind, "signal N" where it dies, "hang"
/// after `seconds`; empty where all is well.
std::string outcome(const std::function<std::optional<Fault>()>& body, unsigned seconds = 10);

/// The text of a case without lines (and what is indented below them) that do not matter, and with
/// smaller numbers: as long as `kind_of` gives what it gave at first. Comments `# step` are lines
/// too.
std::string reduce_text(std::string text,
                        const std::function<std::string(const std::string&)>& kind_of,
                        double seconds);

}  // namespace tenon::fuzz
