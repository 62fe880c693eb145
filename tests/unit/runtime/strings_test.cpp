// SPDX-License-Identifier: Apache-2.0
// Tables of texts, and the functions of the runtime on them.
#include "tenon/runtime/strings.h"

#include <gtest/gtest.h>

namespace tenon::runtime {
namespace {

using Texts = std::vector<std::string>;

Tensor tensor(const std::vector<std::string_view>& texts) {
  return Tensor::of_texts({static_cast<int64_t>(texts.size())}, texts);
}

// The result of function `name` on strings, and on other values after them.
Tensor call(StringTable& table, const char* name,
            const std::vector<std::vector<std::string_view>>& x, Tensor result,
            std::vector<TenonValue> more = {}) {
  std::vector<Tensor> numbers;
  std::vector<DLTensor> views;
  for (const auto& texts : x) numbers.push_back(numbers_of(table, tensor(texts).view()));
  for (const Tensor& each : numbers) views.push_back(each.view());
  std::vector<TenonValue> args;
  for (DLTensor& view : views) args.push_back({.pointer = &view});
  args.insert(args.end(), more.begin(), more.end());
  const DLTensor out = result.view();
  find_string_function(name)(table, args, out);
  return result;
}

TEST(Strings, OneTextHasOneNumber) {
  const TenonString own[] = {{"", 0}, {"fig", 3}};
  RunStrings table(own);
  EXPECT_EQ(table.intern("fig"), 1);
  EXPECT_EQ(table.intern("pear"), 2);
  EXPECT_EQ(table.intern(""), 0);
  EXPECT_EQ(table.text(2), "pear");
  EXPECT_THROW(table.text(3), Error);
  EXPECT_THROW(table.text(-1), Error);
}

TEST(Strings, CopiesAtTheBorder) {
  RunStrings table({});
  const Tensor numbers = numbers_of(table, tensor({"a", "", "a"}).view());
  EXPECT_EQ(numbers.as<int64_t>()[0], numbers.as<int64_t>()[2]);
  EXPECT_EQ(texts_of(table, numbers).texts(), (Texts{"a", "", "a"}));
  TenonString elements[3] = {};
  int64_t shape[] = {3};
  DLTensor caller{};
  caller.data = elements;
  caller.device = {kDLCPU, 0};
  caller.ndim = 1;
  caller.dtype = kStringElement;
  caller.shape = shape;
  copy_texts(table, numbers, caller);
  EXPECT_STREQ(elements[2].data, "a");
  release_texts(caller);
  EXPECT_EQ(elements[0].data, nullptr);
  elements[1] = {nullptr, 2};
  EXPECT_THROW(numbers_of(table, caller), Error);
}

TEST(Strings, Functions) {
  RunStrings table({});
  const auto numbers = [](int64_t n) { return Tensor(kStringNumber, {n}); };
  EXPECT_EQ(texts_of(table, call(table, "tenon.string.concat", {{"a", "x"}, {"b", ""}}, numbers(2)))
                .texts(),
            (Texts{"ab", "x"}));
  EXPECT_EQ(texts_of(table, call(table, "tenon.string.upper", {{"grün", "straße 1"}}, numbers(2)))
                .texts(),
            (Texts{"GRÜN", "STRAßE 1"}));
  EXPECT_EQ(
      texts_of(table, call(table, "tenon.string.lower", {{"ŽÁK", "ПРИВЕТ", "Αθήνα"}}, numbers(3)))
          .texts(),
      (Texts{"žák", "привет", "αθήνα"}));
  const Tensor found =
      call(table, "tenon.string.find", {{"b", "c", "a"}, {"a", "b", "a"}}, numbers(3));
  EXPECT_EQ(found.as<int64_t>()[0], 1);
  EXPECT_EQ(found.as<int64_t>()[1], -1);
  EXPECT_EQ(found.as<int64_t>()[2], 2);
  EXPECT_EQ(find_string_function("tenon.string.none"), nullptr);
}

TEST(Strings, NumbersAreReadWhole) {
  RunStrings table({});
  const auto read = [&](std::string_view text) {
    return call(table, "tenon.string.parse", {{text}},
                Tensor(DLDataType{TENON_DTYPE_FLOAT, 64, 1}, {1}))
        .as<double>()[0];
  };
  EXPECT_EQ(read(" +1e3 "), 1000);
  EXPECT_EQ(read("-inf"), -INFINITY);
  EXPECT_EQ(read("1e999"), INFINITY);
  EXPECT_THROW(read("1x"), Error);
  EXPECT_THROW(read(""), Error);
}

TEST(Strings, Splits) {
  RunStrings table({});
  const auto split = [&](std::string_view text, const char* delimiter, int64_t most) {
    std::vector<TenonValue> more(2);
    more[0].text = delimiter;
    more[1].integer = most;
    const int64_t count =
        call(table, "tenon.string.split_counts", {{text}}, Tensor(kStringNumber, {1}), more)
            .as<int64_t>()[0];
    return texts_of(table, call(table, "tenon.string.split", {{text}},
                                Tensor(kStringNumber, {1, count}), more))
        .texts();
  };
  EXPECT_EQ(split("a,b,,c", ",", -1), (Texts{"a", "b", "", "c"}));
  EXPECT_EQ(split("a,b,c", ",", 1), (Texts{"a", "b,c"}));
  EXPECT_EQ(split("  a  b c ", "", -1), (Texts{"a", "b", "c"}));
  EXPECT_EQ(split("  a  b c ", "", 1), (Texts{"a", "b c"}));
  EXPECT_EQ(split("", "", -1), Texts());
  EXPECT_EQ(split("", ",", -1), (Texts{""}));
}

}  // namespace
}  // namespace tenon::runtime
