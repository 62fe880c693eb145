// SPDX-License-Identifier: Apache-2.0
// How the runtime's C++ side reports what went wrong; the C side turns it into a code and a
// message.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "tenon/runtime/abi.h"

namespace tenon::runtime {

/// An error that the caller or the program's data is the cause of. Messages begin in lower case and
/// show both sides.
class Error : public std::runtime_error {
 public:
  Error(int32_t code, const std::string& message) : std::runtime_error(message), code_(code) {}

  /// One of TENON_ERROR_*.
  int32_t code() const { return code_; }

 private:
  int32_t code_;
};

}  // namespace tenon::runtime
