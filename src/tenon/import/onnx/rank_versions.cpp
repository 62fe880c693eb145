// SPDX-License-Identifier: Apache-2.0
// `If` whose branches differ in rank. Nodes behind it are converted once for each branch, and stand in
// it, up to where what they give is of one rank again. A branch that they do not take is not taken:
// the program checks the condition.
#include <algorithm>

#include "tenon/import/onnx/importer.h"
#include "tenon/import/onnx/open_ranks.h"
#include "tenon/support/limit_codes.h"

namespace tenon::onnx {

namespace {

using Nodes = std::vector<const Node*>;

// Numbers of which there is another count cannot be one operand of what follows.
std::optional<int64_t> count_of_numbers(const graph::TensorType& type) {
  const auto shape = type.static_shape();
  if (!shape || shape->size() != 1 || !type.dtype.is_integer()) return std::nullopt;
  return (*shape)[0];
}

bool reads_any(const Node& node, const std::set<std::string>& names, const std::string& path) {
  return std::ranges::any_of(read_names(node, path),
                             [&](const std::string& name) { return names.count(name) > 0; });
}

// Those of `nodes` that need a value of `names`, directly or by others.
Nodes dependents(const Nodes& nodes, std::set<std::string> names, const std::string& path) {
  Nodes out;
  for (const Node* node : nodes) {
    if (!reads_any(*node, names, path)) continue;
    out.push_back(node);
    names.insert(node->outputs.begin(), node->outputs.end());
  }
  return out;
}

// `some` of `nodes`, which are in order, with those that they need.
Nodes with_needed(const Nodes& nodes, const Nodes& some, const std::string& path) {
  std::set<const Node*> kept(some.begin(), some.end());
  std::set<std::string> names;
  Nodes out;
  for (size_t i = nodes.size(); i-- > 0;) {
    const bool is_needed = std::ranges::any_of(
        nodes[i]->outputs, [&](const std::string& name) { return names.count(name) > 0; });
    if (!kept.count(nodes[i]) && !is_needed) continue;
    out.push_back(nodes[i]);
    names.merge(read_names(*nodes[i], path));
  }
  std::ranges::reverse(out);
  return out;
}

std::set<std::string> outputs_of(const Node& node) {
  std::set<std::string> names(node.outputs.begin(), node.outputs.end());
  names.erase("");
  return names;
}

}  // namespace

bool Importer::differ_in_rank(const ItemRef& a, const ItemRef& b) {
  // What only nodes in the branches of an If ask for has no name outside of them. Nodes behind one
  // that is refused stand with it, so that it is refused for the same reason again.
  if (!a || !b || a->poisoned || b->poisoned) return true;
  if (a == b || a->collection || b->collection) return false;
  const auto x = a->type(), y = b->type();
  return x->ndim != y->ndim || count_of_numbers(*x) != count_of_numbers(*y);
}

bool Importer::differ_in_rank(const Branch& a, const Branch& b) {
  for (size_t i = 0; i < a.results.size(); ++i)
    if (!a.results[i]->collection && !b.results[i]->collection &&
        a.results[i]->type()->ndim != b.results[i]->type()->ndim)
      return true;
  return false;
}

bool Importer::delay(const Node& node, NodeList& list) const {
  const Nodes rest = list.rest();
  const Nodes behind = dependents(rest, outputs_of(node), model_.path);
  if (behind.size() == rest.size() || !list.delayed.insert(&node).second) return false;
  const std::set<const Node*> is_behind(behind.begin(), behind.end());
  auto place = list.order.begin() + static_cast<std::ptrdiff_t>(list.next);
  place = std::copy_if(rest.begin(), rest.end(), place - 1,
                       [&](const Node* other) { return !is_behind.count(other); });
  *place++ = &node;
  std::ranges::copy(behind, place);
  --list.next;
  return true;
}

void Importer::try_nodes(const Nodes& nodes, Trial& trial, const Body& body, bool all) {
  const Origin origin = builder_.origin();
  NodeList list{nodes, body.list->results};
  Body inner = body;
  inner.list = &list;
  Refusals held;
  std::swap(held, refusals_);
  while (list.next < list.order.size() && (all || (trial.wrong.empty() && refusals_.empty()))) {
    const Node& node = *list.order[list.next++];
    try {
      convert(node, trial.scope, inner);
    } catch (const CompileError& error) {
      const std::string_view code = error.first().code.id;
      if (code == kTooMuchWork.id || code == kLimitExceeded.id) throw;
      trial.wrong.emplace(&node, error);
      poison(node, trial.scope);
    }
  }
  trial.is_refused = !refusals_.empty();
  std::swap(held, refusals_);
  builder_.set_origin(origin);
}

bool Importer::take_greatest_rank(Context& context, const Branch& then_side,
                                  const Branch& else_side, const Scope& scope, const Body& body) {
  const Node& node = context.node();
  const OpenBranch open(builder_, numbers_);
  Body inner = body;
  inner.in_branch = true;
  const Packs packs = packs_of(then_side, else_side);
  const auto side = [&](const char* name) {
    return branch(*context.graph_attr(name), scope, inner, node, packs, {{}, node.outputs});
  };
  Trial trial{Scope(&scope)};
  set_branches(context, node.outputs, side("then_branch"), side("else_branch"), trial.scope);
  try_nodes(body.list->rest(), trial, inner, false);
  if (trial.is_refused || !trial.wrong.empty()) return false;
  return body.graph != &model_.graph ||
         std::ranges::all_of(body.list->results, [&](const std::string& name) {
           const ItemRef item = trial.scope.find(name);
           return !item || !item->least_rank;
         });
}

Importer::Versions Importer::versions_of(const Node& node, const Graph& then_graph,
                                         const Graph& else_graph, const Scope& scope,
                                         const Body& body) {
  constexpr int64_t kMostVersions = 64;
  if (body.versions * 2 > kMostVersions)
    unsupported("more than {} versions of what stands behind branches of several ranks",
                kMostVersions);
  const std::string& path = model_.path;
  const Nodes nodes = body.list->rest();
  Body inner = body;
  inner.versions *= 2;
  const auto tried = [&](const Graph& graph) {
    const OpenBranch open(builder_, numbers_);
    Trial trial{Scope(&scope)};
    take_branch(graph, node, trial.scope, inner);
    builder_.set_origin(origin_of(node, path));
    try_nodes(nodes, trial, inner, true);
    return trial;
  };
  const Trial trials[] = {tried(then_graph), tried(else_graph)};
  const auto differs = [&](const std::string& name) {
    return differ_in_rank(trials[0].scope.find(name), trials[1].scope.find(name));
  };

  Versions out;
  Nodes& inside = out.behind.nodes;
  for (const Node* other : nodes)
    if (std::ranges::any_of(read_names(*other, path), differs)) inside.push_back(other);
  inside = with_needed(nodes, inside, path);

  std::optional<CompileError> wrong[2];
  std::string otherwise[2];
  for (const Node* other : inside)
    for (const size_t side : {0, 1}) {
      const auto error = trials[side].wrong.find(other);
      if (error == trials[side].wrong.end() || wrong[side]) continue;
      wrong[side] = error->second;
      otherwise[side] = fmt::format("whose results node `{}` does not take",
                                    printable(other->name.empty() ? other->op_type : other->name));
    }
  if (wrong[0] && wrong[1]) throw CompileError(*wrong[0]);
  for (const size_t side : {0, 1})
    if (wrong[side]) return {{}, side == 1, otherwise[side]};

  // What is asked for behind them.
  const std::set<const Node*> is_inside(inside.begin(), inside.end());
  std::set<std::string> asked(body.list->results.begin(), body.list->results.end());
  for (const Node* other : nodes)
    if (!is_inside.count(other)) asked.merge(read_names(*other, path));
  const auto add = [&](const Node& from) {
    for (const std::string& name : from.outputs)
      if (asked.erase(name) > 0) out.behind.names.push_back(name);
  };
  add(node);
  for (const Node* other : inside) add(*other);
  budget_.charge(inside, builder_.origin());
  return out;
}

}  // namespace tenon::onnx
