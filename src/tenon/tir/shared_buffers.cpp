// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/shared_buffers.h"

#include <set>

namespace tenon::tir {

std::vector<SharedBuffer> shared_buffers(const Attrs& attrs, size_t inputs, size_t outputs,
                                         const Origin& origin) {
  const AttrValue* value = attrs.find(kSharedBuffers);
  if (!value) return {};
  const auto wrong = [&] {
    return CompileError(kBadAttribute, origin,
                        "attribute `{}` is {}; expected pairs of an input below {} and an output "
                        "below {}, each once",
                        kSharedBuffers, value->str(), inputs, outputs);
  };
  const auto* list = value->as<AttrList>();
  if (!list) throw wrong();
  std::vector<SharedBuffer> pairs;
  std::set<int64_t> seen_inputs, seen_outputs;
  for (const AttrValue& item : *list) {
    const auto* pair = item.as<AttrList>();
    const auto* input = pair && pair->size() == 2 ? (*pair)[0].as<int64_t>() : nullptr;
    const auto* output = input ? (*pair)[1].as<int64_t>() : nullptr;
    if (!output || *input < 0 || *output < 0 || static_cast<size_t>(*input) >= inputs ||
        static_cast<size_t>(*output) >= outputs || !seen_inputs.insert(*input).second ||
        !seen_outputs.insert(*output).second)
      throw wrong();
    pairs.push_back({static_cast<size_t>(*input), static_cast<size_t>(*output)});
  }
  return pairs;
}

}  // namespace tenon::tir
