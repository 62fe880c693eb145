// SPDX-License-Identifier: Apache-2.0
// Tables of texts, and the functions of the runtime on them.
#include "tenon/runtime/strings.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tenon/runtime/program.h"

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

// Each input up to the first "fig", and then the program's own "fig": a length that the run decides.
const int64_t kLength[] = {TENON_DIM_SYMBOL(0)}, kLate[] = {TENON_DIM_COMPUTED};
const TenonTensorInfo kInputs[] = {{"x", kLength, 1, TENON_DTYPE_STRING, 128, 1, 0, 0}};
const TenonTensorInfo kOutputs[] = {
    {"y", kLate, 1, TENON_DTYPE_STRING, 128, 1, 0, TENON_TENSOR_LATE}};
const TenonSymbol kSymbols[] = {{"n", TENON_SYMBOL_DIM, 0, 0, 0, INT64_MAX}};
const TenonString kOwn[] = {{"", 0}, {"fig", 3}};
constexpr int64_t kFig = 1;

int32_t shapes_of_cut(TenonContext*, const int64_t*, int64_t* output_dims, int64_t* bytes) {
  output_dims[0] = 0;
  *bytes = 0;
  return TENON_OK;
}

int32_t cut(TenonContext* context, void* const* buffers, const int64_t* symbols, void*,
            const void*) {
  const auto* x = static_cast<const int64_t*>(buffers[0]);
  const int64_t before = std::find(x, x + symbols[0], kFig) - x, count = before + 1;
  void* memory = nullptr;
  if (const int32_t code = context->provide_output(context, 0, &count, &memory)) return code;
  auto* y = static_cast<int64_t*>(memory);
  std::copy(x, x + before, y);
  y[before] = kFig;
  return TENON_OK;
}

TenonProgram cutting_program() {
  TenonProgram program{};
  program.abi_version = TENON_ABI_VERSION;
  program.struct_size = sizeof program;
  program.name = "cut";
  program.input_count = program.output_count = program.symbol_count = 1;
  program.inputs = kInputs;
  program.outputs = kOutputs;
  program.symbols = kSymbols;
  program.alignment = 64;
  program.shapes = shapes_of_cut;
  program.run = cut;
  program.workspace_bytes = -1;
  program.strings = kOwn;
  program.string_count = 2;
  return program;
}

TEST(Strings, OutputsOfLateSizes) {
  const TenonProgram declaration = cutting_program();
  const auto program = Program::wrap(&declaration);
  const Tensor x = tensor({"pear", "kiwi", "fig", "plum"});
  const DLTensor view = x.view();
  const DLTensor* inputs[] = {&view};
  EXPECT_EQ(program->run(inputs).at(0).texts(), (Texts{"pear", "kiwi", "fig"}));

  TenonString elements[4] = {};
  int64_t shape[] = {4};
  DLTensor caller{};
  caller.data = elements;
  caller.device = {kDLCPU, 0};
  caller.ndim = 1;
  caller.dtype = kStringElement;
  caller.shape = shape;
  DLTensor* outputs[] = {&caller};
  program->run(inputs, outputs);
  EXPECT_EQ(shape[0], 3);
  EXPECT_STREQ(elements[1].data, "kiwi");
  EXPECT_STREQ(elements[2].data, "fig");
  release_texts(caller);
  shape[0] = 2;
  EXPECT_THROW(program->run(inputs, outputs), Error);  // 3 do not fit
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

TEST(Strings, Ranks) {
  RunStrings table({});
  const Tensor ranks = call(table, "tenon.string.rank", {{"pear", "fig", "\xc3\xa4", "pear", ""}},
                            Tensor(kStringNumber, {5}));
  EXPECT_EQ(std::vector<int64_t>(ranks.as<int64_t>().begin(), ranks.as<int64_t>().end()),
            (std::vector<int64_t>{2, 1, 3, 2, 0}));
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
