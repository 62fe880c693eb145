// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/patterns/matcher.h"

#include <algorithm>
#include <limits>

#include "tenon/graph/patterns/match_run.h"

namespace tenon::graph {

Value Match::operator[](const DFPattern& pattern) const {
  const auto found = values.find(pattern.get());
  return found == values.end() ? Value() : found->second;
}

Value Match::expr(const DFPattern& pattern) const {
  const Value value = (*this)[pattern];
  for (const Ref<Binding>& binding : bindings)
    if (binding->var.same_as(value)) return binding->value;
  return value;
}

std::vector<Value> Match::arguments() const {
  std::vector<Value> out;
  for (const MatchInput& input : inputs) out.push_back(input.argument);
  return out;
}

Matcher::Matcher(const IRModule* module) : index_(std::make_unique<Index>()) {
  index_->module = module;
}
Matcher::Matcher(const IRModule* module, const Function& function) : Matcher(module) {
  index_->add(*function.body, false);
}
Matcher::~Matcher() = default;

std::optional<Match> Matcher::match(const DFPattern& pattern, const Ref<Binding>& root,
                                    std::string* why) const {
  if (root->match) return std::nullopt;
  return match(pattern, root->var, why);
}

std::optional<Match> Matcher::match(const DFPattern& pattern, const Value& value, std::string* why,
                                    const MatchCondition& condition) const {
  check(static_cast<bool>(pattern), "a match of no pattern");
  MatchRun run(*index_);
  if (condition) run.condition = &condition;
  if (run.match(pattern, value)) return run.result();
  if (why && why->empty()) *why = run.why();
  return std::nullopt;
}

std::optional<Match> Matcher::match_dfb(const PatternContext& context,
                                        const BindingBlock& block) const {
  MatchRun run(*index_);
  if (!run.match(context, block)) return std::nullopt;
  return run.result();
}

std::vector<Ref<Binding>> Matcher::roots(const DFPattern& pattern) const {
  const auto operators = root_operators(pattern);
  if (!operators) return index_->bindings;
  std::vector<Ref<Binding>> out;
  for (const OpDef* op : *operators) {
    const auto found = index_->by_operator.find(op);
    if (found == index_->by_operator.end()) continue;
    out.insert(out.end(), found->second.begin(), found->second.end());
  }
  if (operators->size() > 1)
    std::sort(out.begin(), out.end(), [&](const auto& a, const auto& b) {
      return index_->definitions.at(a->var.get()).position <
             index_->definitions.at(b->var.get()).position;
    });
  return out;
}

bool Matcher::is_convex(const std::vector<Ref<Binding>>& bindings) const {
  std::unordered_set<const Node*> inside;
  int64_t last = 0;
  for (const Ref<Binding>& binding : bindings) {
    inside.insert(binding->var.get());
    last = std::max(last, index_->definitions.at(binding->var.get()).position);
  }
  // Forward from what leaves the group, no further than its last binding.
  std::vector<const Node*> todo(inside.begin(), inside.end());
  std::unordered_set<const Node*> seen;
  while (!todo.empty()) {
    const Node* at = todo.back();
    todo.pop_back();
    const bool from_outside = !inside.count(at);
    const auto users = index_->users.find(at);
    if (users == index_->users.end()) continue;
    for (const Node* user : users->second) {
      if (!user) continue;
      if (inside.count(user)) {
        if (from_outside) return false;
      } else if (index_->definitions.at(user).position < last && seen.insert(user).second) {
        todo.push_back(user);
      }
    }
  }
  return true;
}

Ref<Binding> Matcher::binding_of(const Value& var) const {
  const Definition* definition = index_->definition(var);
  return definition ? definition->binding : Ref<Binding>();
}

void Matcher::redefine(const Ref<Binding>& binding) {
  Definition& definition = index_->definitions[binding->var.get()];
  if (!definition.binding) definition.position = index_->positions++;
  definition.binding = binding;
}

int64_t Matcher::steps() const { return index_->steps; }

}  // namespace tenon::graph
