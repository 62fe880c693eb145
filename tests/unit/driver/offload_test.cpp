// SPDX-License-Identifier: Apache-2.0
// The account of providers knows operators by their ids.
#include "tenon/driver/offload.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

// A node of the model that became several operators; each call makes the origin anew.
Origin gelu(uint32_t number) { return Origin::model("m.onnx", "gelu", "Gelu").numbered(number); }

Remark remark(Decision::Step step, Decision::Kind kind, const Origin& origin) {
  Remark out{"", "gelu", "", "", {}, "", origin};
  out.decision =
      Decision{step, kind, "toy", "toy.part", kind == Decision::Kind::kRefused ? "dtype" : ""};
  return out;
}

TEST(Account, ARefusalAfterwardsIsAboutTheOperatorOfItsId) {
  using enum Decision::Step;
  using enum Decision::Kind;
  const Offload offload =
      offload_of({remark(kPlacement, kTaken, gelu(1)), remark(kPlacement, kTaken, gelu(2)),
                  remark(kCodegen, kRefused, gelu(2))},
                 {"toy"});
  ASSERT_EQ(offload.placements.size(), 2);
  EXPECT_EQ(offload.placements[0].provider, "toy");
  EXPECT_EQ(offload.placements[1].provider, "");
  EXPECT_EQ(offload.placements[1].reason, "dtype");
  EXPECT_EQ(str(offload), "toy 1 of 2 operators; own code 1; refused: 1 dtype");
}

TEST(Account, APatternOverTensorIRTakesTheOperatorsOfItsBlocks) {
  using enum Decision::Step;
  using enum Decision::Kind;
  const Offload offload =
      offload_of({remark(kPlacement, kKept, gelu(1)), remark(kPlacement, kKept, gelu(2)),
                  remark(kPlacement, kKept, gelu(3)),
                  remark(kKernelPatterns, kTaken, Origin::merge({gelu(1), gelu(3), gelu(1)}))},
                 {"toy"});
  ASSERT_EQ(offload.placements.size(), 3);
  EXPECT_EQ(offload.placements[0].provider, "toy");
  EXPECT_EQ(offload.placements[1].provider, "");
  EXPECT_EQ(offload.placements[2].provider, "toy");
}

}  // namespace
}  // namespace tenon
