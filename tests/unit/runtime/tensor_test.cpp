// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/tensor.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tenon::runtime {
namespace {

constexpr DLDataType kF32{TENON_DTYPE_FLOAT, 32, 1};
constexpr DLDataType kI64{TENON_DTYPE_INT, 64, 1};

template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Tensor, OwnsAlignedPackedElements) {
  Tensor tensor(kF32, {2, 3, 5});
  EXPECT_EQ(tensor.elements(), 30);
  EXPECT_EQ(tensor.bytes(), 120);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % 64, 0u);
  EXPECT_EQ(tensor.as<float>().size(), 30u);
  EXPECT_EQ(error_of([&] { tensor.as<double>(); }), "elements of float32 are not of 8 bytes");
  EXPECT_NE(Tensor(kF32, {0, 4}).data(), nullptr);
  EXPECT_EQ(Tensor(kF32, {}).bytes(), 4);
}

TEST(Tensor, SizesThatOverflowAreErrors) {
  int64_t big = int64_t{1} << 32;
  EXPECT_EQ(error_of([&] { Tensor(kF32, {big, big}); }),
            "shape (4294967296, 4294967296) has more than 2^63 - 1 elements");
  EXPECT_EQ(error_of([&] { Tensor(kI64, {big, big / 4}); }),
            "shape (4294967296, 1073741824) of int64 has more than 2^63 - 1 bytes");
  EXPECT_EQ(error_of([&] { Tensor(kF32, {3, -1}); }), "shape (3, -1) has a negative dimension");
  EXPECT_EQ(error_of([&] { Tensor(kF32, {int64_t{1} << 58}); }),
            "cannot allocate 1152921504606846976 bytes");
  EXPECT_EQ(element_count(std::vector<int64_t>{big, 0, 5}), 0);
  EXPECT_EQ(error_of([&] { element_count(std::vector<int64_t>{big, 0, big}); }),
            "shape (4294967296, 0, 4294967296) has more than 2^63 - 1 elements");
}

TEST(Tensor, LargeBlocksAreUsable) {
  Tensor tensor(kF32, {3, 1024, 1024});
  std::fill(tensor.as<float>().begin(), tensor.as<float>().end(), 1.0f);
  EXPECT_EQ(std::accumulate(tensor.as<float>().begin(), tensor.as<float>().end(), 0.0),
            3.0 * 1024 * 1024);
}

TEST(Tensor, CopiesStridedSources) {
  std::vector<float> data = {0, 1, 2, 3, 4, 5};
  int64_t shape[] = {3, 2}, strides[] = {1, 3};  // the transposed of 2 x 3
  DLTensor source{data.data(), {kDLCPU, 0}, 2, kF32, shape, strides, 0};
  EXPECT_FALSE(is_packed(source));
  Tensor copy = Tensor::copy_of(source);
  EXPECT_EQ(std::vector<float>(copy.as<float>().begin(), copy.as<float>().end()),
            (std::vector<float>{0, 3, 1, 4, 2, 5}));

  int64_t reversed[] = {-2, -1};  // negative strides, and an offset
  DLTensor backwards{data.data(), {kDLCPU, 0}, 2, kF32, shape, reversed, 5 * sizeof(float)};
  copy = Tensor::copy_of(backwards);
  EXPECT_EQ(std::vector<float>(copy.as<float>().begin(), copy.as<float>().end()),
            (std::vector<float>{5, 4, 3, 2, 1, 0}));
}

TEST(Tensor, StridesOfSingleAndOfNoElementsDoNotMatter) {
  float value = 0;
  int64_t shape[] = {1, 4}, strides[] = {77, 1}, empty[] = {0, 4}, odd[] = {9, 9};
  EXPECT_TRUE(is_packed({&value, {kDLCPU, 0}, 2, kF32, shape, strides, 0}));
  EXPECT_TRUE(is_packed({&value, {kDLCPU, 0}, 2, kF32, empty, odd, 0}));
}

TEST(Tensor, GoesThroughDlpackWithoutACopy) {
  void* data = nullptr;
  DLManagedTensor* exported = nullptr;
  {
    Tensor tensor(kF32, {2, 2});
    tensor.as<float>()[3] = 7;
    data = tensor.data();
    exported = tensor.to_dlpack();
  }
  EXPECT_EQ(exported->dl_tensor.data, data);
  EXPECT_EQ(exported->dl_tensor.shape[1], 2);
  Tensor back = Tensor::from_dlpack(exported);  // which deletes `exported` in the end
  EXPECT_EQ(back.data(), data);
  EXPECT_EQ(back.as<float>()[3], 7);
}

TEST(Tensor, ImportCallsTheDeleterOnceAlsoWhenRefused) {
  static int deleted = 0;
  deleted = 0;
  DLManagedTensor managed{};
  managed.deleter = [](DLManagedTensor*) { ++deleted; };
  int64_t shape[] = {2};
  managed.dl_tensor = {nullptr, {kDLCUDA, 0}, 1, kF32, shape, nullptr, 0};
  EXPECT_EQ(error_of([&] { Tensor::from_dlpack(&managed); }),
            "tensor lies on a device of DLPack type 2, not in CPU memory");
  EXPECT_EQ(deleted, 1);
  managed.dl_tensor.device = {kDLCPU, 0};
  EXPECT_EQ(error_of([&] { Tensor::from_dlpack(&managed); }), "tensor of shape (2,) has no data");
  alignas(8) char bytes[16] = {};
  managed.dl_tensor.data =
      bytes + 1;  // not even aligned to its element: copied, and given back at once
  Tensor copy = Tensor::from_dlpack(&managed);
  EXPECT_EQ(deleted, 3);
  EXPECT_NE(copy.data(), bytes + 1);
}

TEST(Tensor, NamesDtypesAndShapes) {
  EXPECT_EQ(dtype_name(kF32), "float32");
  EXPECT_EQ(dtype_name({TENON_DTYPE_BOOL, 8, 1}), "bool");
  EXPECT_EQ(dtype_name({TENON_DTYPE_BFLOAT, 16, 8}), "bfloat16x8");
  EXPECT_EQ(dtype_name({5, 64, 1}), "code 5 of 64 bits");
  EXPECT_EQ(shape_text({}), "()");
  EXPECT_EQ(shape_text(std::vector<int64_t>{5}), "(5,)");
  EXPECT_EQ(shape_text(std::vector<int64_t>{1, 3}), "(1, 3)");
}

}  // namespace
}  // namespace tenon::runtime
