// SPDX-License-Identifier: Apache-2.0
// What the generators of random networks promise.
#include "generators.h"

#include <gtest/gtest.h>

#include <set>

#include "tenon/graph/op.h"
#include "tenon/script/printer.h"

namespace tenon::fuzz {
namespace {

// A new operator needs a generator, or a reason why there is none.
TEST(GraphFuzzing, EveryOperatorHasAGenerator) {
  std::set<std::string> known;
  for (const GeneratorRow& row : generators())
    EXPECT_TRUE(known.emplace(row.op).second) << row.op << " has two";
  for (const Excluded& row : without_generator())
    EXPECT_TRUE(known.emplace(row.op).second) << row.op << " has a generator";
  for (const graph::OpDef* op : graph::all_ops())
    EXPECT_TRUE(known.erase(op->name))
        << "operator `" << op->name << "` has no generator (tests/fuzz/graphs)";
  for (const std::string& op : known) ADD_FAILURE() << "`" << op << "` is no operator";
}

// A generator that the type rules always refuse tests nothing.
TEST(GraphFuzzing, EveryGeneratorMakesCalls) {
  for (const GeneratorRow& row : generators()) {
    int64_t made = 0, proposed = 0;
    std::string reasons;
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      Choices choices(seed);
      Draft draft(choices);
      row.generate(draft, row.op);
      const auto counts = draft.tally().find(std::string(row.op));
      ++proposed;
      if (counts == draft.tally().end()) continue;
      made += counts->second.made;
      for (const auto& [reason, times] : counts->second.reasons) reasons += reason + "\n";
    }
    EXPECT_GE(made * 3, proposed) << "`" << row.op << "`: " << made << " of " << proposed << "\n"
                                  << reasons;
  }
}

// What type rules take for granted of a symbol is asked of its number in this run.
TEST(GraphFuzzing, AWindowLiesInItsSymbolicAxis) {
  // Symbols in some networks; then which of the tensor's dimensions are symbols.
  Choices choices(std::vector<uint32_t>{0, 3, 0, 0, 0, 0, 0, 0, 99});
  Draft draft(choices);
  const Item x = draft.fresh(kFloat32, std::vector<int64_t>{1, 2, 4}),
             w = draft.constant(kFloat32, {3, 2, 3});
  ASSERT_FALSE(as_int(x.type->dim(2)));
  const std::vector<int64_t> apart = {2}, one = {1};  // a window of 5
  EXPECT_FALSE(draft.call("nn.conv1d", {x.value, w.value}, {{"dilation", apart}}));
  EXPECT_EQ(draft.tally().at("nn.conv1d").wild, 1);
  EXPECT_TRUE(draft.call("nn.conv1d", {x.value, w.value}, {{"dilation", apart}, {"padding", one}}));
}

TEST(GraphFuzzing, BoundsOfClipFitItsType) {
  for (const DType dtype : {kInt2, kUInt2, kInt4, kUInt4})
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      Choices choices(seed);
      Draft draft(choices);
      draft.fresh(dtype, std::vector<int64_t>{3});
      for (const GeneratorRow& row : generators())
        if (row.op == "clip") EXPECT_NO_THROW(row.generate(draft, row.op));
    }
}

// The inner loop has no iteration, in which its body would be gone through again.
TEST(GraphFuzzing, WhatALoopStacksHasTheSizesOfTheIterationAroundIt) {
  Choices choices(std::vector<uint32_t>{});
  Draft draft(choices);
  const Item row = draft.constant(kFloat32, {1}), rows = draft.constant(kFloat32, {2});
  Draft::Loop outer, inner;
  outer.count = int64(3);
  outer.states = {rows};
  outer.grows = {true};
  inner.count = int64(0);
  const bool made = draft.loop(outer, [&](Draft::LoopBody& body) {
    const Item state = body.states[0];
    EXPECT_TRUE(draft.loop(inner, [&](Draft::LoopBody& within) {
      const auto value = draft.call("negative", {state.value});
      if (value) within.stacked = {*value};
      return value.has_value();
    }));
    const auto stacked = draft.find([](const Item& item) { return item.ndim() == 2; });
    if (!stacked) return false;
    EXPECT_EQ(stacked->shape(), (std::vector<int64_t>{0, 2}));
    const auto sum = draft.call("sum", {stacked->value}, {{"axis", AttrList{int64_t{0}}}});
    const auto next =
        sum ? draft.call("concat", {make<graph::Tuple>(std::vector{sum->value, row.value})},
                         {{"axis", int64_t{0}}})
            : std::nullopt;
    if (next) body.next = {*next};
    return next.has_value();
  });
  EXPECT_TRUE(made);
  const auto grown =
      draft.find([](const Item& item) { return item.shape() == std::vector<int64_t>{5}; });
  EXPECT_TRUE(grown);
}

TEST(GraphFuzzing, ASeedIsANetwork) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Choices first(seed), second(seed);
    const Network a = random_network(first), b = random_network(second);
    EXPECT_EQ(script::print(a.module), script::print(b.module));
    // And so is the list of what was chosen.
    Choices listed(first.taken());
    EXPECT_EQ(script::print(random_network(listed).module), script::print(a.module));
  }
}

}  // namespace
}  // namespace tenon::fuzz
