// SPDX-License-Identifier: Apache-2.0
// Constants and the memory that they are in.
#include "tenon/ir/constant.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tenon/support/pages.h"

namespace tenon {
namespace {

constexpr int64_t kPaged = TensorData::kPagedBytes;

Ref<TensorData> counted(int64_t bytes) {
  return TensorData::filled(kUInt8, {bytes}, [&](std::span<std::byte> all) {
    ASSERT_EQ(static_cast<int64_t>(all.size()), bytes);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i % 251);
  });
}
bool is_counted(const TensorData& data) {
  const auto all = data.data();
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] != static_cast<std::byte>(i % 251)) return false;
  return true;
}

/// Whether the elements moved to new pages, which the tensor keeps.
bool moves(Ref<TensorData>& data) {
  const auto place = std::make_shared<Pages>(static_cast<size_t>(data->bytes()));
  bool moved = false;
  data = with(std::move(data), [&](TensorData& own) { moved = own.move_to(place->data(), place); });
  if (moved) EXPECT_EQ(data->data().data(), place->data());
  return moved;
}

TEST(Constant, LargeOnesMove) {
  Ref<TensorData> data = counted(kPaged + 5);
  const std::string hash = data->content_hash();
  EXPECT_TRUE(moves(data));
  EXPECT_TRUE(is_counted(*data));
  EXPECT_EQ(data->content_hash(), hash);
  EXPECT_FALSE(moves(data)) << "pages of another's";
}

TEST(Constant, WhatOthersHoldStays) {
  Ref<TensorData> data = counted(kPaged);
  const Ref<TensorData> other = data;
  EXPECT_FALSE(moves(data));
  EXPECT_TRUE(is_counted(*data) && is_counted(*other));
  Ref<TensorData> again = counted(kPaged);
  const Ref<TensorData> view = TensorData::view(kUInt8, {16, kPaged / 16}, again->data(),
                                                std::make_shared<Ref<TensorData>>(again));
  EXPECT_FALSE(moves(again));
  EXPECT_TRUE(is_counted(*view));
}

TEST(Constant, OtherMemoryStays) {
  Ref<TensorData> small = counted(kPaged - 1);
  EXPECT_FALSE(moves(small));
  Ref<TensorData> owned =
      TensorData::owned(kUInt8, {kPaged}, std::vector<std::byte>(static_cast<size_t>(kPaged)));
  EXPECT_FALSE(moves(owned));
  EXPECT_TRUE(is_counted(*small));
}

TEST(Constant, NoElementsTakeNoMemory) { EXPECT_EQ(counted(0)->data().size(), 0); }

}  // namespace
}  // namespace tenon
