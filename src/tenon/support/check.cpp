// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/check.h"

namespace tenon {

void fail_check(const std::string& what, const char* file, int line) {
  throw InternalError(fmt::format("{}:{}: internal error: {}", file, line, what));
}

}  // namespace tenon
