// SPDX-License-Identifier: Apache-2.0
// Constants of a program: equal contents are kept once, however late others differ.
#include "tenon/backend/constants.h"

#include <gtest/gtest.h>

namespace tenon::backend {
namespace {

class ConstantsBuilderTest : public testing::Test {
 protected:
  // More than an outline reads.
  static constexpr int64_t kMany = 5000;

  size_t place(Ref<TensorData> data, int64_t alignment = kConstantAlignment) {
    kept_.push_back(std::move(data));
    return builder.index_of(kept_.back(), alignment);
  }

  static Ref<TensorData> floats(float last, std::vector<int64_t> shape = {kMany}) {
    std::vector<float> values(kMany, 1.5F);
    values.back() = last;
    return TensorData::of(kFloat32, std::move(shape), values);
  }

  static Ref<TensorData> splat(std::vector<int64_t> shape) {
    const float value = 1.5F;
    const auto bytes = std::as_bytes(std::span(&value, 1));
    return TensorData::splat(kFloat32, std::move(shape), {bytes.begin(), bytes.end()});
  }

  ConstantsBuilder builder;

 private:
  std::vector<Ref<TensorData>> kept_;  // a builder knows constants by their nodes
};

TEST_F(ConstantsBuilderTest, KeepsEqualContentsOnce) {
  EXPECT_EQ(place(floats(1)), 0U);
  EXPECT_EQ(place(floats(2)), 1U);  // the same as far as an outline reads
  EXPECT_EQ(place(floats(1)), 0U);
  EXPECT_EQ(place(floats(3)), 2U);
  EXPECT_EQ(place(floats(2)), 1U);
  EXPECT_EQ(place(floats(1, {kMany / 2, 2})), 3U);  // of another shape
  EXPECT_EQ(builder.layout().items.size(), 4U);
}

TEST_F(ConstantsBuilderTest, KeepsThemAgainForALargerAlignment) {
  EXPECT_EQ(place(floats(1)), 0U);
  EXPECT_EQ(place(floats(1), 4096), 1U);
  EXPECT_EQ(place(floats(1)), 1U);
  EXPECT_EQ(place(floats(1), 128), 1U);
}

TEST_F(ConstantsBuilderTest, KeepsSplatsOnce) {
  EXPECT_EQ(place(splat({kMany})), 0U);
  EXPECT_EQ(place(splat({kMany})), 0U);
  EXPECT_EQ(place(splat({4})), 1U);
  // Small ones are the same written out.
  EXPECT_EQ(place(TensorData::of(kFloat32, {4}, std::vector<float>(4, 1.5F))), 1U);
}

}  // namespace
}  // namespace tenon::backend
