// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/host_memory.h"

#include <map>

#include "tenon/ir/visit.h"

namespace tenon::tir {

std::vector<ProgramOutput> program_outputs(const PrimFunc& function,
                                           std::span<const Ref<Buffer>> params) {
  std::map<int64_t, Ref<Buffer>> late;
  walk<AllocBuffer>(function.body, [&](const AllocBuffer& alloc) {
    if (const auto index = host_output(alloc)) late[*index] = alloc.buffer;
  });
  std::vector<ProgramOutput> out;
  size_t next = 0;
  for (size_t i = 0; i < params.size() + late.size(); ++i) {
    if (const auto found = late.find(static_cast<int64_t>(i)); found != late.end()) {
      out.push_back({found->second, true});
    } else if (next < params.size()) {
      out.push_back({params[next++], false});
    } else {
      throw CompileError(kBadAttribute, function.origin,
                         "the annotations `{}` of {} allocations are not those of {} outputs",
                         kHostOutput, late.size(), params.size() + late.size());
    }
  }
  return out;
}

}  // namespace tenon::tir
