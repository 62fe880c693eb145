// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/host_memory.h"

#include <algorithm>
#include <map>

#include "tenon/arith/analyzer.h"
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

std::string asked_by(const PrimFunc& function, const Buffer& memory) {
  struct Part {
    std::string node;
    Expr bytes;
  };
  std::vector<Part> parts;
  std::vector<Ref<Var>> symbols;
  walk<DeclBuffer>(function.body, [&](const DeclBuffer& decl) {
    const auto* address = decl.data.as<Call>();
    const auto* start = address && address->is(IntrinsicId::kAddressOf)
                            ? address->args[0].as<BufferLoad>()
                            : nullptr;
    if (!start || start->buffer.get() != &memory || !decl.buffer->origin) return;
    parts.push_back({decl.buffer->origin.name(),
                     element_count(decl.buffer->shape) * decl.buffer->dtype.bytes()});
    walk<Var>(parts.back().bytes, [&](const Var& var) {
      if (std::none_of(symbols.begin(), symbols.end(),
                       [&](const Ref<Var>& one) { return one.get() == &var; }))
        symbols.push_back(ref_to(&var));
    });
  });
  // Each symbol large in turn, and all of them.
  std::vector<std::string> nodes;
  for (size_t large = 0; large <= symbols.size(); ++large) {
    Substitution values;
    for (size_t s = 0; s < symbols.size(); ++s)
      values[symbols[s].get()] =
          imm(symbols[s]->dtype, int64_t{s == large || large == symbols.size() ? 1 << 20 : 1});
    const Part* largest = nullptr;
    int64_t most = -1;
    for (const Part& part : parts)
      if (const auto bytes = as_int(arith::simplify(substitute(part.bytes, values)));
          bytes && *bytes > most) {
        most = *bytes;
        largest = &part;
      }
    if (largest && std::find(nodes.begin(), nodes.end(), largest->node) == nodes.end())
      nodes.push_back(largest->node);
  }
  std::string text;
  for (const std::string& node : nodes) text += (text.empty() ? "" : "` or `") + node;
  return text;
}

}  // namespace tenon::tir
