// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/transforms/kernel_operators.h"

#include <algorithm>
#include <set>

#include "tenon/graph/user_placement.h"
#include "tenon/support/remarks.h"

namespace tenon::graph {

using tir::Block;
using tir::PrimFunc;

static constexpr const char* kPass = "SplitCallTIRByPattern";

void each_part(const Origin& origin, const std::function<void(const Origin&)>& visit) {
  if (!origin) return;
  if (origin->kind != OriginInfo::Kind::kMerged) return visit(origin);
  for (const Origin& part : origin->parts) visit(part);
}

static std::vector<Origin> parts_of(const Origin& origin) {
  std::vector<Origin> parts;
  each_part(origin, [&](const Origin& part) { parts.push_back(part); });
  return parts;
}

std::string placement_name(const Origin& part) {
  if (part->kind == OriginInfo::Kind::kModel) return part->node_name;
  // Without the folder: modules are the same wherever their files are.
  const std::string place = part.str();
  return place.substr(place.rfind('/') + 1);
}

namespace {

class Localizer final : public Rewriter {
 public:
  Localizer(std::map<OperatorId, Origin> of, Origin rest)
      : of_(std::move(of)), rest_(std::move(rest)) {}

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    const auto* block = node.as<Block>();
    if (!block || (is_root_ && block->iter_vars.empty())) {
      is_root_ = is_root_ && !block;
      return node.as<ExprNode>() ? node : rewrite_members(node);
    }
    const auto own = of_.find(operator_id(block->origin));
    return make<Block>(block->parts(), own == of_.end() ? rest_ : own->second);
  }

 private:
  std::map<OperatorId, Origin> of_;
  Origin rest_;
  bool is_root_ = true;
};

}  // namespace

Ref<PrimFunc> with_origins_of(const Ref<PrimFunc>& kernel, const Origin& site) {
  const std::vector<Origin> parts = parts_of(site);
  if (parts.empty()) return kernel;
  std::map<OperatorId, Origin> of;
  bool all_known = true;
  for (const Ref<Block>& block : tir::blocks_of(*kernel)) {
    const bool is_known = block->origin && block->origin->kind != OriginInfo::Kind::kMerged;
    all_known &= is_known;
    if (is_known && of.size() < parts.size())
      of.emplace(operator_id(block->origin), parts[of.size()]);
    if (is_known) all_known &= of.count(operator_id(block->origin)) != 0;
  }
  // Operators of a group stand in the same order wherever the group is.
  if (parts.size() == 1 || !all_known || of.size() != parts.size()) of.clear();
  Localizer localizer(std::move(of), site);
  return with(*kernel, [&](PrimFunc& copy) { copy.body = localizer(kernel->body); });
}

Origin origin_of(const std::vector<Ref<Block>>& blocks) {
  std::vector<Origin> parts;
  for (const Ref<Block>& block : blocks) parts.push_back(block->origin);
  return Origin::merge(parts);
}

void KernelOperators::count(Count& count, const Block& block) {
  ++count.of[static_cast<size_t>(tir::work_of(block).kind)];
  count.is_told &= block.origin->kind != OriginInfo::Kind::kMerged;
}

KernelOperators::Operator& KernelOperators::at(const Origin& part) {
  const auto [known, is_new] = index_.emplace(operator_id(part), operators_.size());
  if (is_new) operators_.push_back({part, {}, {}, {}, {}});
  return operators_[known->second];
}

void KernelOperators::add(const PrimFunc& kernel) {
  for (const Ref<Block>& block : tir::blocks_of(kernel))
    each_part(block->origin, [&](const Origin& part) { count(at(part).all, *block); });
}

void KernelOperators::take(Taken taken) {
  const std::string backend = taken.pattern.substr(0, taken.pattern.find('.'));
  for (const Ref<Block>& block : taken.blocks)
    each_part(block->origin, [&](const Origin& part) {
      Operator& op = at(part);
      count(op.taken[backend], *block);
      op.patterns.emplace(backend, taken.pattern);
    });
  taken_.push_back(std::move(taken));
}

void KernelOperators::refuse(const std::string& pattern, const std::vector<Ref<Block>>& blocks,
                             const Verdict& verdict) {
  each_part(origin_of(blocks), [&](const Origin& part) {
    auto& refusals = at(part).refusals;
    const bool is_known = std::any_of(refusals.begin(), refusals.end(), [&](const auto& known) {
      return known.first == pattern && known.second.code == verdict.code &&
             known.second.words == verdict.words;
    });
    if (!is_known) refusals.emplace_back(pattern, verdict);
  });
}

const std::string* KernelOperators::taker_of(const Operator& op) {
  int kind = 2;
  while (kind > 0 && op.all.of[kind] == 0) --kind;
  for (const auto& [backend, taken] : op.taken) {
    bool is_all = op.all.of[kind] > 0 && taken.of[kind] == op.all.of[kind];
    if (!op.all.is_told)
      for (int k = 0; k < 3; ++k) is_all &= taken.of[k] == op.all.of[k];
    if (is_all) return &backend;
  }
  return nullptr;
}

std::string KernelOperators::reasons(const Operator& op) {
  std::string text;
  for (const auto& [pattern, verdict] : op.refusals)
    // Of what the user placed elsewhere, the refusals there say more.
    if (verdict.code != kUserPlacement)
      text += fmt::format("{}{}: {}{}{}", text.empty() ? "" : "; ", pattern, verdict.code,
                          verdict.words.empty() ? "" : ": ", verdict.words);
  return text;
}

std::string KernelOperators::reasons(const std::string& name) const {
  std::string text;
  for (const Operator& op : operators_) {
    if (placement_name(op.origin) != name) continue;
    const std::string more = reasons(op);
    if (!more.empty()) text += (text.empty() ? "" : "; ") + more;
  }
  return text;
}

static Decision decision_of(Decision::Kind kind, const std::string& pattern,
                            const std::string& code = "") {
  return {Decision::Step::kKernelPatterns, kind, pattern.substr(0, pattern.find('.')), pattern,
          code};
}

void KernelOperators::report() const {
  std::set<OperatorId> taken;
  for (const Operator& op : operators_)
    if (taker_of(op)) taken.insert(operator_id(op.origin));
  for (const Taken& kernel : taken_) {
    int operators = 0;
    each_part(origin_of(kernel.blocks), [&](const Origin& part) {
      operators += static_cast<int>(taken.count(operator_id(part)));
    });
    Decision decision = decision_of(Decision::Kind::kDivided, kernel.pattern);
    decision.holds_operator = operators > 0;
    record({kPass,
            kernel.kernel,
            "placed",
            kernel.pattern,
            {{"operators", operators}},
            kernel.is_whole ? "whole" : "a part",
            kernel.origin,
            decision});
  }
  for (const Operator& op : operators_) {
    if (const std::string* backend = taker_of(op))
      record({kPass,
              op.origin.name(),
              "taken",
              op.patterns.at(*backend),
              {},
              reasons(op),
              op.origin,
              decision_of(Decision::Kind::kTaken, op.patterns.at(*backend))});
    else if (!op.refusals.empty())
      record({kPass,
              op.origin.name(),
              "left",
              op.refusals.front().second.code,
              {},
              reasons(op),
              op.origin,
              decision_of(Decision::Kind::kRefused, op.refusals.front().first,
                          op.refusals.front().second.code)});
  }
}

}  // namespace tenon::graph
