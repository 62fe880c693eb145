// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/placement_search.h"

#include <set>

#include "tenon/graph/dimensions.h"
#include "tenon/graph/op.h"
#include "tenon/graph/patterns/near_miss.h"
#include "tenon/graph/transforms/library_call.h"

namespace tenon::tune {

using graph::Backend;
using graph::Binding;
using graph::BindingBlock;
using graph::FusionPattern;
using graph::Match;
using graph::Verdict;

PlacementSearch::PlacementSearch(const IRModule& module, const Ref<graph::Function>& function)
    : module_(module), function_(function), matcher_(&module, *function) {
  walk<BindingBlock>(function->body, [&](const BindingBlock& block) {
    for (const Ref<Binding>& binding : block.bindings) block_of_[binding->var.get()] = &block;
  });
}

// The patterns over graphs, those to be tried first in front.
static std::vector<const FusionPattern*> in_order(const Backend& backend) {
  std::vector<const FusionPattern*> patterns;
  for (const size_t i : graph::order_of_patterns(backend.patterns))
    if (backend.patterns[i].pattern) patterns.push_back(&backend.patterns[i]);
  return patterns;
}

// Whether the match can become one call at all.
Verdict PlacementSearch::legal(const Match& match) const {
  const auto block = [&](const Ref<Binding>& binding) {
    const auto found = block_of_.find(binding->var.get());
    return found == block_of_.end() ? nullptr : found->second;
  };
  for (const Ref<Binding>& binding : match.bindings) {
    const auto* call = binding->value.as<graph::Call>();
    if (binding->match || (call && !(call->op && call->op->pure)))
      return {false, "effects", fmt::format("`{}` inside may have effects", binding->var->name)};
  }
  for (const Ref<Binding>& binding : match.bindings)
    if (block(binding) != block(match.bindings.front()))
      return {false, "blocks", "it spans several blocks"};
  if (!match.escaping.empty())
    return {false, "used-outside",
            fmt::format("`{}` inside is used elsewhere too", match.escaping.front()->name)};
  if (!matcher_.is_convex(match.bindings))
    return {false, "cycle",
            "something outside uses one of its operators and is used by another of them"};
  return {};
}

std::optional<Found> PlacementSearch::match(const Backend& backend, const FusionPattern& pattern,
                                            const Ref<Binding>& root, std::string* why) const {
  std::optional<Match> match = matcher_.match(pattern.pattern, root, why);
  if (!match || match->bindings.empty() || match->outputs.empty()) return std::nullopt;
  Found found{&backend, &pattern, std::move(*match), {}, {}, {}};
  found.verdict = legal(found.match);
  if (!found.verdict.accepted) return found;
  found.composite =
      graph::make_composite(pattern, found.match, {.bind_constants = !backend.by_name});
  if (!graph::defines_dimensions(*found.composite.function)) {
    found.verdict = {false, "symbolic", graph::kOpenDimension};
    return found;
  }
  const std::map<std::string, graph::Value> annotated =
      graph::annotated_values(pattern, found.match);
  const graph::PatternCheck check{module_, *function_, found.match, found.composite.function,
                                  annotated};
  if (pattern.check) found.verdict = pattern.check(check);
  if (!found.verdict.accepted) {
    if (found.verdict.code.empty()) found.verdict.code = "refused";
    return found;
  }
  if (backend.cost) found.declared = backend.cost(check);
  found.priority = pattern.priority;
  if (backend.by_name)
    if (const auto signature = graph::signature_for(module_, pattern.name))
      found.priority = signature->function->attrs.get<int64_t>("priority").value_or(found.priority);
  if (pattern.attrs) {
    found.composite.function = with(found.composite.function, [&](graph::Function& copy) {
      for (const auto& [name, value] : pattern.attrs(check)) copy.attrs.set(name, value);
    });
  }
  return found;
}

std::vector<Found> PlacementSearch::all(const Backend& backend) const {
  std::vector<Found> out;
  std::set<std::pair<const Node*, std::string>> accepted;  // by root and name: the first counts
  for (const FusionPattern* pattern : in_order(backend)) {
    for (const Ref<Binding>& root : matcher_.roots(pattern->pattern)) {
      const auto key = std::pair<const Node*, std::string>(root->var.get(), pattern->name);
      if (accepted.count(key)) continue;
      auto found = match(backend, *pattern, root);
      if (!found) continue;
      if (found->verdict.accepted) accepted.insert(key);
      out.push_back(std::move(*found));
    }
  }
  return out;
}

std::vector<Found> PlacementSearch::at(const Backend& backend, const Ref<Binding>& root,
                                       const std::string& name) const {
  std::vector<Found> out;
  for (const FusionPattern* pattern : in_order(backend)) {
    if (!name.empty() && pattern->name != name) continue;
    if (auto found = match(backend, *pattern, root)) out.push_back(std::move(*found));
  }
  return out;
}

const BindingBlock& PlacementSearch::block_of(const Found& found) const {
  return *block_of_.at(found.root().get());
}

std::string PlacementSearch::nearest(const FusionPattern& pattern) const {
  const auto miss = graph::nearest_miss(module_, *function_, pattern.pattern);
  return miss ? miss->text() : "";
}

std::string PlacementSearch::near_misses(const Backend& backend, const Ref<Binding>& root) const {
  std::string text;
  for (const FusionPattern* pattern : in_order(backend)) {
    std::string why;
    if (match(backend, *pattern, root, &why) || why.empty()) continue;
    text += (text.empty() ? "" : "; ") + pattern->name + " differs: " + why;
  }
  return text;
}

}  // namespace tenon::tune
