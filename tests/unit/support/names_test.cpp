// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/names.h"

#include <gtest/gtest.h>

#include <set>

namespace tenon {
namespace {

TEST(Names, TakenOnesGetANumber) {
  NameSupply names;
  EXPECT_EQ(names.take("x"), "x");
  EXPECT_EQ(names.take("x"), "x_1");
  EXPECT_TRUE(names.reserve("x_2"));
  EXPECT_FALSE(names.reserve("x_2"));
  EXPECT_EQ(names.take("x"), "x_3");
  EXPECT_EQ(names.take("x_1"), "x_1_1");
  EXPECT_EQ(names.take("y", ""), "y");
  EXPECT_EQ(names.take("y", ""), "y1");
  EXPECT_TRUE(names.has("y1"));
  EXPECT_FALSE(names.has("y2"));
}

TEST(Names, ReleasedOnesAreFreeAgain) {
  NameSupply names;
  names.take("x");
  names.take("x");
  names.release("x");
  EXPECT_EQ(names.take("x"), "x");
  names.release("x_1");
  names.release("x");
  names.reserve("x");
  EXPECT_EQ(names.take("x"), "x_1") << "counts from 1 again";
}

TEST(Names, FreshNamesOfAPredicateGoOnFromTheLast) {
  const std::set<std::string> taken = {"f", "f_1", "f_2", "f_4"};
  const auto is_taken = [&](const std::string& name) { return taken.count(name) != 0; };
  EXPECT_EQ(fresh_name("f", is_taken), "f_3");
  EXPECT_EQ(fresh_name("g", is_taken), "g");
  int next = 3;
  EXPECT_EQ(fresh_name("f", is_taken, next), "f_5");
  EXPECT_EQ(next, 5);
}

}  // namespace
}  // namespace tenon
