// SPDX-License-Identifier: Apache-2.0
// Constants and the memory that they are in.
#include "tenon/ir/constant.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tenon/support/deferred_work.h"
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

Ref<TensorData> counted_later(int64_t bytes, int& times) {
  return TensorData::filled_later(kUInt8, {bytes}, [&times](std::span<std::byte> all) {
    ++times;
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i % 251);
  });
}

TEST(Constant, LateOnesAreMadeOnce) {
  int times = 0;
  EXPECT_FALSE(counted_later(kPaged, times)->is_late()) << "nobody would make it meanwhile";
  EXPECT_EQ(times, 1);
  DeferredWorkScope scope;
  EXPECT_FALSE(counted_later(kPaged - 1, times)->is_late()) << "is small";
  EXPECT_EQ(times, 2);
  const Ref<TensorData> late = counted_later(kPaged, times);
  const Ref<TensorData> copy = with(late, [](TensorData& data) { data.shape = {1, kPaged}; });
  EXPECT_TRUE(late->is_late());
  EXPECT_EQ(late->elements(), kPaged);
  EXPECT_EQ(late->at_int(252), 1);
  EXPECT_TRUE(is_counted(*late) && is_counted(*copy));
  EXPECT_EQ(times, 3);
  EXPECT_EQ(late->content_hash(), counted(kPaged)->content_hash());
}

TEST(Constant, LateOnesEqualOthersByContent) {
  using Traits = FieldTraits<Ref<TensorData>>;
  int times = 0;
  DeferredWorkScope scope;
  const Ref<TensorData> late = counted_later(kPaged, times), now = counted(kPaged);
  EXPECT_EQ(Traits::hash(late), Traits::hash(now));
  EXPECT_TRUE(Traits::equal(late, now));
  EXPECT_FALSE(Traits::equal(
      late, TensorData::splat(kUInt8, {kPaged}, std::vector<std::byte>{std::byte{1}})));
}

TEST(Constant, LateOnesMove) {
  int times = 0;
  const DeferredWorkScope scope;
  Ref<TensorData> late = counted_later(kPaged, times);
  EXPECT_TRUE(moves(late));
  EXPECT_TRUE(is_counted(*late));
  // As does one that is made of another late one, which nobody else holds.
  const auto other = [&] { return counted_later(kPaged, times); };
  Ref<TensorData> outer = TensorData::later(kUInt8, {kPaged}, [inner = other()] { return inner; });
  EXPECT_TRUE(moves(outer));
  EXPECT_TRUE(is_counted(*outer));
  Ref<TensorData> held = other();
  const Ref<TensorData> copy = with(held, [](TensorData& data) { data.shape = {1, kPaged}; });
  EXPECT_FALSE(moves(held));
}

TEST(Constant, LateOnesThrowToWhoeverAsks) {
  DeferredWorkScope scope;
  const Ref<TensorData> late = TensorData::later(
      kUInt8, {kPaged}, []() -> Ref<TensorData> { throw CompileError(kBadTensor, {}, "no"); });
  scope.finish();
  EXPECT_THROW((void)late->data(), CompileError);
  EXPECT_THROW((void)late->content_hash(), CompileError);
}

TEST(Constant, NoElementsTakeNoMemory) { EXPECT_EQ(counted(0)->data().size(), 0); }

}  // namespace
}  // namespace tenon
