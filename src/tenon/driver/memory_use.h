// SPDX-License-Identifier: Apache-2.0
// Reports a program's memory pool by pool, from the remarks of PlanMemory.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tenon/ir/module.h"
#include "tenon/support/remarks.h"

namespace tenon {

/// The memory of a compiled program.
struct MemoryUse {
  struct Buffer {
    std::string name;
    int64_t offset = 0, bytes = 0;  // the offset counts from the begin of its pool
  };
  struct Pool {
    std::string name;
    std::optional<int64_t> capacity;  // bytes; unlimited where not set
    int64_t offset = 0;               // in the workspace
    std::optional<int64_t> bytes;     // that are used; not set: depends on the symbols
    int64_t buffers = 0;
    std::vector<Buffer> largest;  // of those of known size, largest first
    bool is_read_only = false;    // holds the constants, and has no buffers
  };
  /// Memory that the program asks for while it runs, when the numbers that say how much are known.
  struct Late {
    std::string what;                  // "workspace", or "output `y`"
    std::string size;                  // over the numbers: "count * 20 bytes", "(count, 5)"
    std::vector<std::string> numbers;  // that only the run knows
  };
  std::vector<Late> late;   // in the order in which it is asked for
  std::vector<Pool> pools;  // in the order of preference; one, `workspace`, where none is stated
  std::optional<int64_t> bytes, bound_bytes;  // of the workspace; not set: depend on the symbols
};

/// Of a module that PlanMemory planned: its attributes, and what PlanMemory remarked.
MemoryUse memory_use_of(const IRModule& module, const std::vector<Remark>& remarks);

/// The lines of a summary: "memory     peak N bytes, lower bound N bytes; constants N bytes", then,
/// where pools are stated, a line "pool       NAME N of N bytes, ..." for each, and for what is asked
/// for during the run "late       workspace of count * 20 bytes, when `count` is known".
/// \param constant_bytes   not set: not known, as no code was generated.
/// \param workspace_bytes  of a run, where the size depends on its dimensions.
std::string memory_lines(const MemoryUse& use, std::optional<int64_t> constant_bytes,
                         std::optional<int64_t> workspace_bytes = {});

/// `{"bytes", "bound_bytes", "pools": [{"name", "capacity", "bytes", "buffers", "largest":
/// [{"name", "offset", "bytes"}]}], "late": [{"what", "size", "numbers"}]}`; null for what is not limited, or known only at run time. A
/// pool of constants has `"read_only": true` and no buffers.
nlohmann::ordered_json json_of(const MemoryUse& use);
/// Of what json_of gave; without pools where it is something else.
MemoryUse memory_use_from(const nlohmann::json& json);

}  // namespace tenon
