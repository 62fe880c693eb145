// SPDX-License-Identifier: Apache-2.0
// Ensembles of decision trees of ai.onnx.ml, as the tables of `tree_ensemble`.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "tenon/import/onnx/ml_scores.h"
#include "tenon/import/onnx/operators.h"
#include "tenon/support/limit_codes.h"

namespace tenon::onnx {

namespace {

constexpr int64_t kMember = 6, kLeaf = 7, kMissing = 8;

// Nodes as a file lists them. A child is a node, or leaf i as ~i.
struct Trees {
  std::vector<int64_t> features, modes, roots;
  std::vector<double> splits;
  std::vector<std::array<int64_t, 2>>
      children;  // where the comparison does not hold, where it does
  struct Vote {
    int64_t leaf, target;
    double weight;
  };
  std::vector<Vote> votes;
  int64_t leaves = 0;
};

// Every node behind its parents. \throws CompileError (kBadModel) where the nodes form a cycle.
std::vector<int64_t> in_order(Context& c, const Trees& trees) {
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> state(trees.features.size(), kNew);
  std::vector<int64_t> after;  // children before parents
  std::vector<std::pair<int64_t, int>> way;
  for (auto root = trees.roots.rbegin(); root != trees.roots.rend(); ++root) {
    if (*root < 0 || state[static_cast<size_t>(*root)] == kDone) continue;
    way.emplace_back(*root, 0);
    state[static_cast<size_t>(*root)] = kOpen;
    while (!way.empty()) {
      auto& [node, next] = way.back();
      if (next == 2) {
        state[static_cast<size_t>(node)] = kDone;
        after.push_back(node);
        way.pop_back();
        continue;
      }
      const int64_t child = trees.children[static_cast<size_t>(node)][static_cast<size_t>(next++)];
      if (child < 0 || state[static_cast<size_t>(child)] == kDone) continue;
      if (state[static_cast<size_t>(child)] == kOpen)
        c.bad(kBadModel, "node {} of a tree of `{}` is below itself", child, c.node().op_type);
      state[static_cast<size_t>(child)] = kOpen;
      way.emplace_back(child, 0);
    }
  }
  std::ranges::reverse(after);
  return after;
}

std::string_view mode_text(int64_t mode) {
  constexpr std::string_view kTexts[] = {"<=", "<", ">=", ">", "==", "!="};
  return kTexts[mode];
}

struct Form {
  DType compared, weights;
  int64_t targets = 1;
  std::string aggregate = "sum";
};

Value ensemble(Context& c, const Value& rows, Trees trees, const Form& form) {
  const std::vector<int64_t> order = in_order(c, trees);
  const auto nodes = static_cast<int64_t>(order.size());
  std::vector<int64_t> place(trees.features.size(), -1);
  for (size_t i = 0; i < order.size(); ++i)
    place[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  const auto placed = [&](int64_t child) {
    return child < 0 ? nodes + ~child : place[static_cast<size_t>(child)];
  };
  std::vector<int64_t> features, modes, children, roots;
  std::vector<double> splits;
  for (const int64_t old : order) {
    const auto i = static_cast<size_t>(old);
    features.push_back(trees.features[i]);
    splits.push_back(trees.splits[i]);
    modes.push_back(trees.modes[i]);
    for (const int64_t child : trees.children[i]) children.push_back(placed(child));
  }
  for (const int64_t root : trees.roots) roots.push_back(placed(root));
  // Votes by leaf, those of one in the file's order.
  std::vector<int64_t> offsets(static_cast<size_t>(trees.leaves) + 1);
  for (const Trees::Vote& vote : trees.votes) ++offsets[static_cast<size_t>(vote.leaf) + 1];
  const bool is_one_each =
      std::all_of(offsets.begin() + 1, offsets.end(), [](int64_t n) { return n == 1; });
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  std::vector<int64_t> targets(trees.votes.size()), next = offsets;
  std::vector<double> weights(trees.votes.size());
  for (const Trees::Vote& vote : trees.votes) {
    const auto at = static_cast<size_t>(next[static_cast<size_t>(vote.leaf)]++);
    targets[at] = vote.target;
    weights[at] = vote.weight;
  }
  const bool is_one_mode = std::ranges::adjacent_find(modes, std::not_equal_to()) == modes.end();
  const int64_t mode = modes.empty() ? 0 : modes[0];
  const int64_t count = static_cast<int64_t>(weights.size());
  std::vector<Value> args = {rows,
                             int_table(kInt32, features, {nodes}),
                             float_table(form.compared, splits, {nodes}),
                             int_table(kInt32, children, {nodes, 2}),
                             int_table(kInt32, roots, {static_cast<int64_t>(roots.size())}),
                             int_table(kInt32, targets, {count}),
                             float_table(form.weights, weights, {count})};
  if (!is_one_each || !is_one_mode) args.push_back(int_table(kInt32, offsets, {trees.leaves + 1}));
  if (!is_one_mode) args.push_back(int_table(kUInt8, modes, {nodes}));
  return c.op("tree_ensemble", args,
              {{"n_targets", form.targets},
               {"mode", std::string(mode_text(mode % kMissing))},
               {"aggregate", form.aggregate},
               {"missing_tracks_true", mode >= kMissing}});
}

void check_length(Context& c, const char* name, size_t seen, size_t wanted) {
  if (seen != wanted)
    c.bad(kBadAttribute, "attribute `{}` of `{}` has {} elements; expected {}", name,
          c.node().op_type, seen, wanted);
}

void check_range(Context& c, const char* name, int64_t value, int64_t end) {
  if (value < 0 || value >= end)
    c.bad(kBadAttribute, "attribute `{}` of `{}` has {}; expected 0 to {}", name, c.node().op_type,
          value, end - 1);
}

// A table of positions in 32 bits.
void check_count(Context& c, size_t count) {
  if (count > 1'000'000'000)
    throw CompileError(kLimitExceeded, c.origin(),
                       "`{}` with a table of {} rows; expected at most 10^9", c.node().op_type,
                       count);
}

std::vector<double> floats_of(const Tensor& tensor) {
  if (!tensor.data) unsupported("a table, a tensor of {}", tensor.unsupported);
  std::vector<double> out(static_cast<size_t>(tensor.data->elements()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = tensor.data->at_float(static_cast<int64_t>(i));
  return out;
}

// Attribute `name`, or the tensor `name_as_tensor` in its place, which says its dtype.
std::vector<double> floats_or_tensor(Context& c, const std::string& name, DType& widest) {
  std::vector<double> values = c.floats_attr(name, {});
  if (!c.has_attr(name + "_as_tensor")) return values;
  const Tensor tensor = c.tensor_attr(name + "_as_tensor");
  if (tensor.data && tensor.data->dtype == kFloat64) widest = kFloat64;
  std::vector<double> given = floats_of(tensor);
  return given.empty() ? values : given;
}

// ---- the forms before TreeEnsemble --------------------------------------------------------------

int64_t mode_of(Context& c, const std::string& text) {
  constexpr const char* kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                    "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  if (text == "LEAF") return kLeaf;
  for (int64_t m = 0; m < 6; ++m)
    if (text == kModes[m]) return m;
  c.bad(kBadAttribute,
        "attribute `nodes_modes` of `{}` has `{}`; expected BRANCH_LEQ, BRANCH_LT, "
        "BRANCH_GTE, BRANCH_GT, BRANCH_EQ, BRANCH_NEQ or LEAF",
        c.node().op_type, printable(text));
}

// The nodes by tree and number; `votes` is the prefix of the attributes of weights.
Trees listed_trees(Context& c, const std::string& votes, int64_t targets, DType& widest) {
  const Ints trees = c.ints_attr("nodes_treeids", {}), ids = c.ints_attr("nodes_nodeids", {}),
             features = c.ints_attr("nodes_featureids", {}),
             holds = c.ints_attr("nodes_truenodeids", {}),
             fails = c.ints_attr("nodes_falsenodeids", {}),
             missing = c.ints_attr("nodes_missing_value_tracks_true", {});
  const std::vector<std::string> modes = c.strings_attr("nodes_modes", {});
  const std::vector<double> splits = floats_or_tensor(c, "nodes_values", widest);
  c.ignore({"nodes_hitrates", "nodes_hitrates_as_tensor"});
  const size_t count = ids.size();
  check_count(c, count);
  check_length(c, "nodes_treeids", trees.size(), count);
  check_length(c, "nodes_featureids", features.size(), count);
  check_length(c, "nodes_truenodeids", holds.size(), count);
  check_length(c, "nodes_falsenodeids", fails.size(), count);
  check_length(c, "nodes_modes", modes.size(), count);
  check_length(c, "nodes_values", splits.size(), count);
  if (!missing.empty()) check_length(c, "nodes_missing_value_tracks_true", missing.size(), count);
  Trees out;
  std::map<std::pair<int64_t, int64_t>, int64_t> places;  // a node, or ~leaf
  std::map<int64_t, bool> seen;
  std::vector<int64_t> first;
  for (size_t i = 0; i < count; ++i) {
    const bool is_leaf = mode_of(c, modes[i]) == kLeaf;
    const int64_t at = is_leaf ? ~out.leaves++ : static_cast<int64_t>(out.features.size());
    if (!places.emplace(std::pair(trees[i], ids[i]), at).second)
      c.bad(kBadAttribute, "tree {} of `{}` has node {} twice", trees[i], c.node().op_type, ids[i]);
    if (!std::exchange(seen[trees[i]], true)) out.roots.push_back(at);
    if (is_leaf) continue;
    check_range(c, "nodes_featureids", features[i], int64_t{1} << 31);
    out.features.push_back(features[i]);
    out.splits.push_back(splits[i]);
    out.modes.push_back(mode_of(c, modes[i]) + (!missing.empty() && missing[i] ? kMissing : 0));
    out.children.push_back({fails[i], holds[i]});
    first.push_back(trees[i]);
  }
  for (size_t i = 0; i < out.children.size(); ++i)
    for (int64_t& child : out.children[i]) {
      const auto found = places.find(std::pair(first[i], child));
      if (found == places.end())
        c.bad(kBadAttribute, "tree {} of `{}` has no node {}", first[i], c.node().op_type, child);
      child = found->second;
    }
  const Ints vote_trees = c.ints_attr(votes + "_treeids", {}),
             vote_nodes = c.ints_attr(votes + "_nodeids", {}),
             vote_targets = c.ints_attr(votes + "_ids", {});
  const std::vector<double> weights = floats_or_tensor(c, votes + "_weights", widest);
  check_count(c, weights.size());
  check_length(c, (votes + "_treeids").c_str(), vote_trees.size(), weights.size());
  check_length(c, (votes + "_nodeids").c_str(), vote_nodes.size(), weights.size());
  check_length(c, (votes + "_ids").c_str(), vote_targets.size(), weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto found = places.find(std::pair(vote_trees[i], vote_nodes[i]));
    if (found == places.end())
      c.bad(kBadAttribute, "tree {} of `{}` has no node {}", vote_trees[i], c.node().op_type,
            vote_nodes[i]);
    check_range(c, (votes + "_ids").c_str(), vote_targets[i], targets);
    if (found->second < 0) out.votes.push_back({~found->second, vote_targets[i], weights[i]});
  }
  return out;
}

// What is compared: floats in their own dtype, integers in one that holds them.
Value compared_rows(Context& c, DType& widest) {
  const Value rows = feature_rows(c);
  const DType dtype = c.dtype(0);
  if (dtype == kFloat64) widest = kFloat64;
  return c.cast(rows, dtype.is_integer() ? kFloat64 : widest);
}

Value with_base(Context& c, const Value& scores, const std::vector<double>& base, int64_t targets) {
  if (base.empty()) return scores;
  if (base.size() != 1) check_length(c, "base_values", base.size(), static_cast<size_t>(targets));
  return c.op("add", {scores, float_table(shaped(scores)->dtype, base,
                                          {static_cast<int64_t>(base.size())})});
}

std::string aggregate_of(Context& c) {
  const std::string text = c.string_attr("aggregate_function", "SUM");
  if (text != "SUM" && text != "AVERAGE" && text != "MIN" && text != "MAX")
    c.bad(kBadAttribute,
          "attribute `aggregate_function` of `{}` is `{}`; expected SUM, AVERAGE, MIN or MAX",
          c.node().op_type, printable(text));
  return text;
}

std::string operation_of(const std::string& aggregate) {
  return aggregate == "MIN" ? "min" : aggregate == "MAX" ? "max" : "sum";
}

// The sum over trees divided by their number.
Value averaged(Context& c, const Value& sum, size_t trees) {
  return c.op("divide", {sum, c.scalar(shaped(sum)->dtype, static_cast<double>(trees))});
}

Results convert_tree_regressor(Context& c) {
  const int64_t targets = c.int_attr("n_targets", 1);
  if (targets < 1)
    c.bad(kBadAttribute, "attribute `n_targets` of `{}` is {}; expected at least 1",
          c.node().op_type, targets);
  DType widest = kFloat32;
  Trees trees = listed_trees(c, "target", targets, widest);
  const Value rows = compared_rows(c, widest);
  const std::vector<double> base = floats_or_tensor(c, "base_values", widest);
  const std::string aggregate = aggregate_of(c), transform = post_transform(c);
  const size_t count = trees.roots.size();
  Value scores = ensemble(c, rows, std::move(trees),
                          {shaped(rows)->dtype, widest, targets, operation_of(aggregate)});
  if (aggregate == "AVERAGE") scores = averaged(c, scores, count);
  scores = with_base(c, scores, base, targets);
  return {transformed(c, c.cast(scores, kFloat32), transform)};
}

Results convert_tree_classifier(Context& c) {
  const Labels labels = class_labels(c, "classlabels_int64s", "classlabels_strings");
  DType widest = kFloat32;
  Trees trees = listed_trees(c, "class", std::max<int64_t>(labels.count, 2), widest);
  const Value rows = compared_rows(c, widest);
  const std::vector<double> base = floats_or_tensor(c, "base_values", widest);
  const std::string transform = post_transform(c);
  if (labels.count < 2) unsupported("a single label");
  const auto differs = [&](const Trees::Vote& vote) {
    return vote.target != trees.votes[0].target;
  };
  const bool is_one_score = labels.count == 2 && std::ranges::none_of(trees.votes, differs);
  if (!is_one_score) {
    Value scores =
        ensemble(c, rows, std::move(trees), {shaped(rows)->dtype, widest, labels.count, "sum"});
    scores = with_base(c, scores, base, labels.count);
    return {labels_at(c, labels, winner(c, scores)),
            transformed(c, c.cast(scores, kFloat32), transform)};
  }
  // All votes are for one class: their sum is the score of the second one.
  const bool is_share =
      std::ranges::all_of(trees.votes, [](const auto& vote) { return vote.weight >= 0; });
  const bool for_second = !trees.votes.empty() && trees.votes[0].target == 1;
  for (Trees::Vote& vote : trees.votes) vote.target = 0;
  Value score = ensemble(c, rows, std::move(trees), {shaped(rows)->dtype, widest, 1, "sum"});
  if (!base.empty()) score = with_base(c, score, {base.back()}, 1);
  const Value is_second = c.op("greater", {score, c.scalar(widest, is_share ? 0.5 : 0)});
  const Value index = c.reshape(c.cast(is_second, kInt64), {shaped(score)->dim(0)});
  score = c.cast(score, kFloat32);
  if (!for_second)
    return {labels_at(c, labels, index),
            with_second_class(
                c, score, is_share ? SecondClass::kComplement : SecondClass::kNegative, transform)};
  const Value zero = c.op("multiply", {score, c.scalar(kFloat32, 0)});
  const Value both =
      c.op("concat", {make<graph::Tuple>(std::vector<Value>{zero, score})}, {{"axis", 1}});
  return {labels_at(c, labels, index), transformed(c, both, transform)};
}

// ---- TreeEnsemble -------------------------------------------------------------------------------

// Leaves and nodes of TreeEnsemble-5. A node that tests membership becomes a comparison for each
// member, in a row that goes on where it does not hold.
Trees trees_of(Context& c, int64_t targets, DType& dtype) {
  const Ints features = c.ints_attr("nodes_featureids"), holds = c.ints_attr("nodes_truenodeids"),
             fails = c.ints_attr("nodes_falsenodeids"), holds_leaf = c.ints_attr("nodes_trueleafs"),
             fails_leaf = c.ints_attr("nodes_falseleafs"), roots = c.ints_attr("tree_roots"),
             leaf_targets = c.ints_attr("leaf_targetids"),
             missing = c.ints_attr("nodes_missing_value_tracks_true", {});
  c.ignore({"nodes_hitrates"});
  const Tensor split_tensor = c.tensor_attr("nodes_splits");
  const std::vector<double> splits = floats_of(split_tensor),
                            modes = floats_of(c.tensor_attr("nodes_modes")),
                            weights = floats_of(c.tensor_attr("leaf_weights"));
  dtype = split_tensor.data->dtype;
  std::vector<double> members;
  if (c.has_attr("membership_values")) members = floats_of(c.tensor_attr("membership_values"));
  const size_t count = features.size();
  check_count(c, count + members.size());
  check_count(c, weights.size());
  check_length(c, "nodes_truenodeids", holds.size(), count);
  check_length(c, "nodes_falsenodeids", fails.size(), count);
  check_length(c, "nodes_trueleafs", holds_leaf.size(), count);
  check_length(c, "nodes_falseleafs", fails_leaf.size(), count);
  check_length(c, "nodes_splits", splits.size(), count);
  check_length(c, "nodes_modes", modes.size(), count);
  if (!missing.empty()) check_length(c, "nodes_missing_value_tracks_true", missing.size(), count);
  check_length(c, "leaf_targetids", leaf_targets.size(), weights.size());
  Trees out;
  out.leaves = static_cast<int64_t>(weights.size());
  const auto nodes = static_cast<int64_t>(count);
  const auto child = [&](const char* name, int64_t at, bool is_leaf) {
    check_range(c, name, at, is_leaf ? out.leaves : nodes);
    return is_leaf ? ~at : at;
  };
  size_t member = 0;
  std::vector<std::array<int64_t, 2>> more;  // the further members of nodes: node, member
  for (size_t i = 0; i < count; ++i) {
    check_range(c, "nodes_featureids", features[i], int64_t{1} << 31);
    check_range(c, "nodes_modes", static_cast<int64_t>(modes[i]), kMember + 1);
    const auto mode = static_cast<int64_t>(modes[i]);
    out.features.push_back(features[i]);
    out.splits.push_back(splits[i]);
    out.modes.push_back((mode == kMember ? 4 : mode) +
                        (!missing.empty() && missing[i] ? kMissing : 0));
    out.children.push_back({child("nodes_falsenodeids", fails[i], fails_leaf[i] != 0),
                            child("nodes_truenodeids", holds[i], holds_leaf[i] != 0)});
    if (mode != kMember) continue;
    if (member >= members.size() || members[member] != members[member])
      c.bad(kBadAttribute,
            "attribute `membership_values` of `TreeEnsemble` has no member for node {}", i);
    out.splits[i] = members[member++];
    for (; member < members.size() && members[member] == members[member]; ++member)
      more.push_back({static_cast<int64_t>(i), static_cast<int64_t>(member)});
    ++member;  // the NaN behind
  }
  for (const auto& [node, which] : more) {
    const auto i = static_cast<size_t>(node);
    out.features.push_back(out.features[i]);
    out.splits.push_back(members[static_cast<size_t>(which)]);
    out.modes.push_back(out.modes[i]);
    out.children.push_back(out.children[i]);
    out.children[i][0] = static_cast<int64_t>(out.features.size()) - 1;
  }
  for (const int64_t root : roots) out.roots.push_back(child("tree_roots", root, false));
  for (size_t i = 0; i < weights.size(); ++i) {
    check_range(c, "leaf_targetids", leaf_targets[i], targets);
    out.votes.push_back({static_cast<int64_t>(i), leaf_targets[i], weights[i]});
  }
  return out;
}

Results convert_tree_ensemble(Context& c) {
  const int64_t targets = c.int_attr("n_targets", 1);
  const int64_t aggregate = c.int_attr("aggregate_function", 1),
                transform = c.int_attr("post_transform", 0);
  check_range(c, "aggregate_function", aggregate, 4);
  check_range(c, "post_transform", transform, 5);
  check_range(c, "n_targets", targets, int64_t{1} << 31);
  if (targets < 1)
    c.bad(kBadAttribute, "attribute `n_targets` of `TreeEnsemble` is {}; expected at least 1",
          targets);
  DType dtype = kFloat32;
  Trees trees = trees_of(c, targets, dtype);
  // Halves are compared and added in float32, which holds them.
  const DType wide = dtype == kFloat64 ? kFloat64 : kFloat32;
  const size_t count = trees.roots.size();
  constexpr const char* kAggregates[] = {"sum", "sum", "min", "max"};
  constexpr const char* kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  Value scores = ensemble(c, c.cast(feature_rows(c), wide), std::move(trees),
                          {wide, wide, targets, kAggregates[aggregate]});
  if (aggregate == 0) scores = averaged(c, scores, count);
  return {c.cast(transformed(c, scores, kTransforms[transform]), c.dtype(0))};
}

}  // namespace

std::vector<OperatorRow> tree_rows() {
  const std::string domain = "ai.onnx.ml";
  return {
      {"TreeEnsemble", 5, 1, 1, convert_tree_ensemble, "floats", "", domain},
      {"TreeEnsembleRegressor", 1, 1, 1, convert_tree_regressor, "numbers", "", domain},
      {"TreeEnsembleClassifier", 1, 1, 1, convert_tree_classifier, "numbers", "", domain},
  };
}

}  // namespace tenon::onnx
