// SPDX-License-Identifier: Apache-2.0
// What a packed function of this process may know of the call that it is in: where it stands in the
// program, and who keeps the memory that it is handed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tenon/runtime/abi.h"

namespace tenon::runtime {

/// The memory of one run: whoever holds this keeps it, also when the run has ended.
class RunMemory {
 public:
  void keep(std::shared_ptr<const void> memory) { kept_.push_back(std::move(memory)); }
  /// The program writes these bytes: workspace and outputs.
  void add_writable(const void* begin, int64_t bytes);
  /// Inputs and constants are only read.
  bool is_writable(const void* at) const;

 private:
  struct Range {
    const char *begin, *end;
  };
  std::vector<std::shared_ptr<const void>> kept_;
  std::vector<Range> writable_;
};

/// A call of a packed function by a program.
struct PackedCall {
  const char* where = nullptr;  // as in TenonContext.report; may be null
  const TenonValue* results = nullptr;
  int32_t result_count = 0;
  std::shared_ptr<RunMemory> memory;

  /// The innermost one of this thread, null outside of any. Whoever may be called in other ways
  /// compares `results` with its own.
  static const PackedCall* current();
};

/// Makes a call the current one of its thread.
class PackedCallScope {
 public:
  explicit PackedCallScope(const PackedCall& call);
  ~PackedCallScope();
  PackedCallScope(const PackedCallScope&) = delete;
  PackedCallScope& operator=(const PackedCallScope&) = delete;

 private:
  const PackedCall* outer_;
};

}  // namespace tenon::runtime
