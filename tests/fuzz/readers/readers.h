// SPDX-License-Identifier: Apache-2.0
// Every reader of foreign bytes by a name, as a function of the bytes alone. What it is given is
// taken, or refused by a CompileError or false; anything else (another exception, what a sanitizer
// finds, much time or memory) is a fault.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace tenon::fuzz {

using Reader = std::function<bool(const std::string&)>;

const std::map<std::string, Reader>& readers();

}  // namespace tenon::fuzz
