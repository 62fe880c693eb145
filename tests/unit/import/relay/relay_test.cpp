// SPDX-License-Identifier: Apache-2.0
// Relay text as TVM prints it.
#include <gtest/gtest.h>

#include "tenon/graph/expr.h"
#include "tenon/import/relay/read_relay.h"
#include "tenon/script/parser.h"
#include "tenon/script/printer.h"

namespace tenon::relay {
namespace {

// The printed form of TVM 0.9: a region of a back end with its composites.
const char* const kRegion = R"(
def @tvmgen_default_toy_main_0(%toy_0_i0: Tensor[(64, 800), float32] /* ty=Tensor[(64, 800), float32] */, %toy_0_i1: Tensor[(500, 800), float32] /* ty=Tensor[(500, 800), float32] */, %toy_0_i2: Tensor[(500), float32] /* ty=Tensor[(500), float32] */, Compiler="toy", Primitive=1, Inline=1, global_symbol="tvmgen_default_toy_main_0") -> Tensor[(64, 500), float32] {
  %2 = fn (%x: Tensor[(64, 800), float32] /* ty=Tensor[(64, 800), float32] */, %w: Tensor[(500, 800), float32], %b: Tensor[(500), float32], PartitionedFromPattern="nn.dense_nn.bias_add_nn.relu_", Composite="toy.dense_bias_relu") -> Tensor[(64, 500), float32] {
    %0 = nn.dense(%x, %w, units=None) /* ty=Tensor[(64, 500), float32] span=aten::linear_0:0:0 */;
    %1 = nn.bias_add(%0, %b, axis=-1) /* ty=Tensor[(64, 500), float32] span=aten::linear_0:0:0 */;
    nn.relu(%1) /* ty=Tensor[(64, 500), float32] span=aten::relu_2:0:0 */
  } /* ty=fn (Tensor[(64, 800), float32], Tensor[(500, 800), float32], Tensor[(500), float32]) -> Tensor[(64, 500), float32] */;
  %2(%toy_0_i0, %toy_0_i1, %toy_0_i2) /* ty=Tensor[(64, 500), float32] */
}
)";

TEST(Relay, RegionWithComposite) {
  const IRModule module = read_relay(kRegion);
  ASSERT_EQ(module.size(), 2u);
  const auto& [composite_name, composite] = module.functions()[0];
  EXPECT_EQ(composite_name, "toy_dense_bias_relu");
  EXPECT_TRUE(composite->is_private);
  EXPECT_EQ(composite->attrs.get<std::string>("Composite"), "toy.dense_bias_relu");
  const auto& [region_name, region] = module.functions()[1];
  EXPECT_EQ(region_name, "tvmgen_default_toy_main_0");
  EXPECT_EQ(region->attrs.get<std::string>("Compiler"), "toy");
  EXPECT_EQ(region->attrs.get<int64_t>("Inline"), 1);
  const IRModule again = script::parse_module(script::print(module));
  EXPECT_TRUE(structural_equal(module, again));
}

TEST(Relay, SpansAreOrigins) {
  const IRModule module = read_relay(kRegion);
  const auto function = module.find<graph::Function>("toy_dense_bias_relu");
  const auto& bindings = function->body->blocks.at(0)->bindings;
  EXPECT_EQ(bindings.at(0)->origin.name(), "aten::linear_0");
  EXPECT_EQ(bindings.back()->origin.name(), "aten::relu_2");
  EXPECT_EQ(bindings.back()->origin.str(), "<relay>:6:5: node `aten::relu_2` (nn.relu)");
}

TEST(Relay, ParametersBecomeConstants) {
  const Params params = {
      {"w", TensorData::of(kFloat32, {1, 3}, std::vector<float>{1, 2, 3})},
      {"unused", TensorData::of(kFloat32, {1}, std::vector<float>{0})},
  };
  const char* text =
      "def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(1, 3), float32]) { add(%x, %w) }";
  const IRModule module = read_relay(
      std::make_shared<const SourceFile>(SourceFile{"a.relay", text}), {.params = &params});
  EXPECT_EQ(module.find<graph::Function>("main")->params.size(), 1u);
  EXPECT_NE(script::print(module).find("R.const([[1.0, 2.0, 3.0]], \"float32\")"),
            std::string::npos);
}

// ---- files of parameters

class Writer {
 public:
  template <typename T>
  Writer& number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  Writer& text(const std::string& value) {
    number(uint64_t{value.size()});
    bytes_ += value;
    return *this;
  }
  Writer& head(uint64_t names) {
    return number(uint64_t{0xF7E58D4F05049CB7ULL}).number(uint64_t{0}).number(names);
  }
  Writer& tensor(uint8_t code, uint8_t bits, const std::vector<int64_t>& shape, int64_t bytes) {
    number(uint64_t{0xDD5E40F096B4A13FULL}).number(uint64_t{0}).number(int32_t{1});
    number(int32_t{0}).number(static_cast<int32_t>(shape.size()));
    number(code).number(bits).number(uint16_t{1});
    for (const int64_t dim : shape) number(dim);
    number(bytes);
    if (bytes > 0 && bytes < 1000) bytes_.append(static_cast<size_t>(bytes), '\1');
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

Params params_of(const Writer& file) {
  const auto kept = std::make_shared<const std::string>(file.bytes());
  return read_params(std::as_bytes(std::span(*kept)), kept, "p.params");
}

TEST(RelayParams, EveryElementType) {
  Writer file;
  file.head(6);
  for (const char* name : {"a", "b", "c", "d", "e", "odd name"}) file.text(name);
  file.number(uint64_t{6});
  file.tensor(2, 32, {2, 2}, 16).tensor(0, 64, {3}, 24).tensor(1, 1, {5}, 5);
  file.tensor(2, 16, {2}, 4).tensor(4, 16, {2}, 4).tensor(1, 8, {}, 1);
  const Params params = params_of(file);
  EXPECT_EQ(params.at("a")->shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(params.at("b")->dtype, kInt64);
  EXPECT_EQ(params.at("b")->at_int(2), 0x0101010101010101);
  EXPECT_EQ(params.at("c")->dtype, kBool);
  EXPECT_EQ(params.at("d")->dtype, kFloat16);
  EXPECT_EQ(params.at("e")->dtype, kBFloat16);
  EXPECT_EQ(params.at("odd name")->at_int(0), 1);
}

TEST(RelayParams, MalformedFilesAreRefused) {
  const auto refused = [](const Writer& file, const std::string& words) {
    try {
      params_of(file);
      ADD_FAILURE() << "no error; expected: " << words;
    } catch (const CompileError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  const auto one = [](uint8_t code, uint8_t bits, std::vector<int64_t> shape, int64_t bytes) {
    Writer file;
    file.head(1).text("a").number(uint64_t{1}).tensor(code, bits, shape, bytes);
    return file;
  };
  refused(Writer(), "not a file of parameters");
  refused(Writer().number(uint64_t{1}), "not a file of parameters");
  refused(Writer().head(uint64_t{1} << 60), "ends inside");
  refused(Writer().head(1).number(uint64_t{1} << 40), "a name of 1099511627776 bytes");
  refused(Writer().head(1).text("a").number(uint64_t{2}), "has 1 names and 2 tensors");
  refused(Writer().head(1).text("a").number(uint64_t{1}).number(uint64_t{7}), "magic number");
  refused(one(2, 32, {-1}, 4), "negative dimension");
  refused(one(2, 32, {int64_t{1} << 40, int64_t{1} << 40}, 4), "TN0109");
  refused(one(2, 32, {2}, 4), "has 4 bytes; expected 8");
  refused(one(2, 32, {1000000}, 4000000), "ends inside the elements");
  refused(one(3, 64, {1}, 8), "element type code 3");
  refused(one(2, 31, {1}, 4), "code 2 with 31 bits");
  refused(one(0, 8, std::vector<int64_t>(65, 1), 1), "65 dimensions");
  Writer twice;
  twice.head(2).text("a").text("a").number(uint64_t{2}).tensor(2, 32, {1}, 4).tensor(2, 32, {1}, 4);
  refused(twice, "parameter `a` is there twice");
  Writer long_one = one(2, 32, {1}, 4);
  refused(long_one.number(uint8_t{0}), "goes on behind its last tensor");
}

}  // namespace
}  // namespace tenon::relay
