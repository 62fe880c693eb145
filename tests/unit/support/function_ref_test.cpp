// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/function_ref.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

namespace tenon {
namespace {

int twice(FunctionRef<int(int)> f) { return f(f(1)); }
int minus_three(int x) { return x - 3; }

TEST(FunctionRef, CallsWhatItIsGiven) {
  const int two = 2;
  EXPECT_EQ(twice([&](int x) { return x * 10 + two; }), 122);
  EXPECT_EQ(twice(&minus_three), -5);
  const std::function<int(int)> kept = [](int x) { return x + 1; };
  EXPECT_EQ(twice(kept), 3);
  const FunctionRef<int(int)> named = kept;
  EXPECT_EQ(twice(named), 3);
}

TEST(FunctionRef, ChangesTheCallableItself) {
  int calls = 0;
  auto counter = [calls](int x) mutable { return x + ++calls; };
  EXPECT_EQ(twice(counter), 4);  // 1 + 1, then 2 + 2: no copy counts apart
  EXPECT_EQ(twice(counter), 8);
}

TEST(FunctionRef, PassesArgumentsAndResultsOn) {
  const auto length = [](FunctionRef<size_t(std::unique_ptr<std::string>)> f) {
    return f(std::make_unique<std::string>("moved"));
  };
  EXPECT_EQ(length([](std::unique_ptr<std::string> text) { return text->size(); }), 5U);
  std::string seen;
  const auto see = [](FunctionRef<void(const std::string&)> f) { f("seen"); };
  see([&](const std::string& text) { return seen = text; });  // what it returns is dropped
  EXPECT_EQ(seen, "seen");
  const std::string kept = "kept";
  const auto address = [&](FunctionRef<const std::string&()> f) { return &f(); };
  EXPECT_EQ(address([&]() -> const std::string& { return kept; }), &kept);
}

}  // namespace
}  // namespace tenon
