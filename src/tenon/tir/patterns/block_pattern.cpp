// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/patterns/block_pattern.h"

#include <algorithm>

#include "tenon/tir/patterns/unify.h"

namespace tenon::tir {

bool BufferBinding::is_permuted() const {
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != i) return true;
  return false;
}

namespace {

/// The blocks of a solution and those that start reductions for them.
std::set<size_t> members_of(const Solution& solution, const BlockGraph& target) {
  std::set<size_t> members(solution.blocks.begin(), solution.blocks.end());
  for (const size_t b : solution.blocks)
    if (target.blocks()[b].start) members.insert(*target.blocks()[b].start);
  return members;
}

/// Whether the blocks can be moved out, together; otherwise `why` not.
bool can_move(const PreparedPattern& pattern, const Solution& solution, const BlockGraph& target,
              std::string& why) {
  const std::set<size_t> members = members_of(solution, target);
  for (const auto& [node, bound] : solution.buffers) {
    if (!pattern.written.count(node)) continue;
    const bool is_local = pattern.locals.count(node) != 0;
    if (is_local && !target.is_intermediate(bound.buffer)) {
      why = fmt::format("`{}` is seen from outside; the pattern has it for itself",
                        bound.buffer->name);
      return false;
    }
    for (size_t b = 0; b < target.blocks().size(); ++b) {
      const GraphBlock& other = target.blocks()[b];
      if (members.count(b)) continue;
      const std::string name =
          other.realize ? other.realize->block->name : std::string("a statement");
      if (is_local && other.effects.reads_buffer(bound.buffer))
        why = fmt::format("`{}` is read by `{}` too; the pattern has it for itself",
                          bound.buffer->name, name);
      else if (other.effects.writes_buffer(bound.buffer))
        why = fmt::format("`{}` is stored to by `{}` too", bound.buffer->name, name);
      else
        continue;
      return false;
    }
  }
  if (!target.divide(members)) {
    why = "something between the blocks is computed from one and read by another";
    return false;
  }
  return true;
}

BlockMatch match_of(const PreparedPattern& pattern, const Solution& solution,
                    const BlockGraph& target) {
  BlockMatch match;
  match.pattern = ref_to(&pattern.function);
  for (const size_t b : solution.blocks) {
    match.blocks.push_back(target.blocks()[b].realize->block);
    if (const auto start = target.blocks()[b].start)
      match.starts.push_back(target.blocks()[*start].realize->block);
  }
  match.values.insert(solution.values.begin(), solution.values.end());
  for (const Ref<Buffer>& buffer : pattern.function.buffers) {
    match.buffers.emplace_back();
    if (!buffer) continue;
    const Bound& bound = solution.buffers.at(buffer.get());
    match.buffers.back() = {bound.buffer, bound.dims};
  }
  for (const Definition& definition : pattern.definitions)
    if (pattern.locals.count(definition.buffer.get()))
      match.intermediates.push_back(solution.buffers.at(definition.buffer.get()).buffer);
  return match;
}

}  // namespace

std::vector<BlockMatch> match_blocks(const PrimFunc& pattern, const PrimFunc& target,
                                     std::string* why) {
  const PreparedPattern prepared(pattern);
  std::vector<BlockMatch> out;
  if (!root_block(target)) {
    if (why) *why = "the function has no root block";
    return out;
  }
  const BlockGraph graph(target);
  Unifier unifier(prepared, graph, Extent::kWhole);
  std::set<std::set<size_t>> known;
  for (size_t b = 0; b < graph.blocks().size(); ++b) {
    const auto solution = unifier.find(b, [&](const Solution& found, std::string& words) {
      return can_move(prepared, found, graph, words);
    });
    if (solution && known.insert(members_of(*solution, graph)).second)
      out.push_back(match_of(prepared, *solution, graph));
  }
  if (why && out.empty()) *why = unifier.nearest();
  return out;
}

std::optional<FunctionMatch> matches(const PrimFunc& pattern, const PrimFunc& function,
                                     std::string* why) {
  const PreparedPattern prepared(pattern);
  if (!root_block(function)) {
    if (why) *why = "the function has no root block";
    return std::nullopt;
  }
  const BlockGraph graph(function);
  std::vector<size_t> params;
  const auto whole = [&](const Solution& found, std::string& words) {
    if (!can_move(prepared, found, graph, words)) return false;
    const std::set<size_t> members = members_of(found, graph);
    for (size_t b = 0; b < graph.blocks().size(); ++b) {
      if (members.count(b)) continue;
      words = "the function does more than the pattern";
      return false;
    }
    params.clear();
    for (const Ref<Buffer>& buffer : pattern.buffers) {
      size_t place = FunctionMatch::kNoParam;
      for (size_t i = 0; buffer && i < function.buffers.size(); ++i)
        if (found.buffers.at(buffer.get()).buffer.same_as(function.buffers[i])) place = i;
      if (buffer && place == FunctionMatch::kNoParam) {
        words = fmt::format("`{}` of the pattern is no parameter of the function", buffer->name);
        return false;
      }
      params.push_back(place);
    }
    for (size_t i = 0; i < function.buffers.size(); ++i)
      if (function.buffers[i] && !std::count(params.begin(), params.end(), i)) {
        words = fmt::format("parameter `{}` of the function is none of the pattern",
                            function.buffers[i]->name);
        return false;
      }
    return true;
  };
  Unifier unifier(prepared, graph, Extent::kWhole);
  for (size_t b = 0; b < graph.blocks().size(); ++b) {
    const auto solution = unifier.find(b, whole);
    if (!solution) continue;
    FunctionMatch match;
    static_cast<BlockMatch&>(match) = match_of(prepared, *solution, graph);
    match.params = params;
    return match;
  }
  if (why) *why = unifier.nearest();
  return std::nullopt;
}

void check_block_pattern(const PrimFunc& pattern) { const PreparedPattern prepared(pattern); }

}  // namespace tenon::tir
