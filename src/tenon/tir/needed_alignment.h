// SPDX-License-Identifier: Apache-2.0
// The alignment that foreign functions require of addresses that reach them through parameters.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/ir/module.h"

namespace tenon::tir {

/// Bytes that the address of memory which a program allocates, takes or holds is a multiple of
/// where nothing greater is declared of its buffer.
inline constexpr int64_t kMemoryAlignment = 64;

/// For each parameter of the functions of a module, found once each: the bytes that its address
/// must be a multiple of. An extern function declares it; a PrimFunc needs what the calls in it ask
/// of the parameter and of views of it. What any memory has (the alignment of an element) is 1.
class NeededAlignments {
 public:
  explicit NeededAlignments(const IRModule& module) : module_(module) {}
  int64_t of(const std::string& function, size_t parameter) {
    const std::vector<int64_t>& known = all(function, 0);
    return parameter < known.size() ? known[parameter] : 1;
  }

 private:
  const std::vector<int64_t>& all(const std::string& name, int depth);

  const IRModule& module_;
  std::unordered_map<std::string, std::vector<int64_t>> known_;
};

}  // namespace tenon::tir
