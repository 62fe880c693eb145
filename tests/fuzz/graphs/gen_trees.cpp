// SPDX-License-Identifier: Apache-2.0
// Tables that are searched: trees and keys.
#include <algorithm>

#include "generators.h"

namespace tenon::fuzz {

namespace {

using graph::Value;
using Ints = std::vector<int64_t>;

Value ints(const Ints& values, const Ints& shape) {
  const std::vector<int32_t> small(values.begin(), values.end());
  return make<graph::Constant>(TensorData::of(kInt32, shape, small));
}
Value floats(const std::vector<float>& values) {
  return make<graph::Constant>(
      TensorData::of(kFloat32, {static_cast<int64_t>(values.size())}, values));
}

// Values for comparisons: what a rounding has moved could go another way on another target.
Item compared(Draft& draft, DType dtype, size_t least_rank, size_t most_rank) {
  return draft.operand([=] { return dtype; }, least_rank, most_rank,
                       [=](const Item& item) {
                         return item.dtype() == dtype && item.exact && item.data->elements() > 0;
                       });
}

struct Trees {
  Ints features, children, roots;
  std::vector<float> splits;
  int64_t leaves = 0;

  // Of so many nodes; each stands in the place of a leaf of those before it.
  void add(Choices& c, int64_t nodes, int64_t columns) {
    const auto first = static_cast<int64_t>(features.size());
    std::vector<size_t> open;  // places in `children`
    for (int64_t i = 0; i < nodes; ++i) {
      if (i > 0) {
        const size_t which = c.below(static_cast<uint32_t>(open.size()));
        children[open[which]] = first + i;
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
      }
      features.push_back(c.between(0, columns - 1));
      splits.push_back(c.of({0.0F, 0.5F, -1.0F, 1.25F}));
      open.insert(open.end(), {children.size(), children.size() + 1});
      children.insert(children.end(), 2, 0);
    }
    for (const size_t place : open) children[place] = ~leaves++;
    roots.push_back(nodes > 0 ? first : ~leaves++);
  }
  // Leaf i is the place behind all nodes.
  Ints placed(const Ints& places) const {
    Ints out = places;
    for (int64_t& place : out)
      if (place < 0) place = static_cast<int64_t>(features.size()) + ~place;
    return out;
  }
};

void tree_ensemble(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = compared(draft, kFloat32, 2, 2);
  Trees trees;
  const int64_t count = c.between(1, 30), targets = c.between(1, 3);
  const bool is_even = c.chance(50);
  for (int64_t i = 0; i < count; ++i) trees.add(c, is_even ? 3 : c.between(0, 6), x.shape()[1]);
  const auto nodes = static_cast<int64_t>(trees.features.size());
  Ints offsets = {0}, columns;
  std::vector<float> weights;
  const bool has_offsets = c.chance(40);
  for (int64_t leaf = 0; leaf < trees.leaves; ++leaf) {
    for (int64_t n = has_offsets ? c.between(0, 2) : 1; n > 0; --n) {
      columns.push_back(c.between(0, targets - 1));
      weights.push_back(c.of({1.0F, -0.5F, 0.25F, 2.0F}));
    }
    offsets.push_back(static_cast<int64_t>(weights.size()));
  }
  const auto votes = static_cast<int64_t>(weights.size());
  std::vector<Value> args = {x.value,
                             ints(trees.features, {nodes}),
                             floats(trees.splits),
                             ints(trees.placed(trees.children), {nodes, 2}),
                             ints(trees.placed(trees.roots), {count}),
                             ints(columns, {votes}),
                             floats(weights)};
  if (has_offsets) args.push_back(ints(offsets, {trees.leaves + 1}));
  Attrs attrs{{"n_targets", targets}};
  if (c.chance(40)) attrs.set("mode", c.of<std::string>({"<", ">", ">=", "=="}));
  if (c.chance(40)) attrs.set("aggregate", c.of<std::string>({"min", "max"}));
  if (c.chance(20)) attrs.set("missing_tracks_true", true);
  draft.call(op, args, attrs, Rounds::kArithmetic);
}

void lookup(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const Item x = compared(draft, kInt32, 0, 3);
  Ints keys;
  for (int64_t key = c.between(-4, 0), left = c.between(0, 12); left > 0; --left) {
    keys.push_back(key);
    key += c.between(1, 3);
  }
  const DType dtype = draft.any_dtype();
  const auto count = static_cast<int64_t>(keys.size());
  draft.call(op,
             {x.value, ints(keys, {count}), draft.constant(dtype, {count}).value,
              draft.fresh(dtype, std::vector<int64_t>{}).value},
             {}, Rounds::kNever);
}

}  // namespace

std::vector<GeneratorRow> tree_generators() {
  return {{"tree_ensemble", tree_ensemble, 1}, {"lookup", lookup, 1}};
}

}  // namespace tenon::fuzz
