// Relay text as TVM prints it.
#include <gtest/gtest.h>

#include "tenon/graph/expr.h"
#include "tenon/script/parser.h"
#include "tenon/script/printer.h"
#include "tenon/script/relay/read_relay.h"

namespace tenon::script::relay {
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
  const IRModule again = parse_module(print(module));
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

}  // namespace
}  // namespace tenon::script::relay
