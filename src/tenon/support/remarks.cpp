// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/remarks.h"

namespace tenon {

static thread_local RemarkScope* innermost = nullptr;

RemarkScope::RemarkScope() : outer_(innermost) { innermost = this; }
RemarkScope::~RemarkScope() { innermost = outer_; }

void record(Remark remark) {
  if (innermost) innermost->remarks_.push_back(std::move(remark));
}

}  // namespace tenon
