// SPDX-License-Identifier: Apache-2.0
// Tensors at the border: memory, shapes and element types, exchanged with others through DLPack.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/runtime/error.h"

namespace tenon::runtime {

/// What Tenon's own tensors and workspaces are aligned to, at least.
inline constexpr int64_t kAlignment = 64;

/// Uninitialised bytes, aligned to `alignment` (a power of two, at least kAlignment is taken).
/// Large blocks ask for huge pages. Never null, not even for 0 bytes.
/// \throws Error (TENON_ERROR_MEMORY)
std::shared_ptr<void> allocate(int64_t bytes, int64_t alignment = kAlignment);

/// "float32", "int8", "bool", "float32x4"; for what DLPack may hold and Tenon does not: "code 5 of
/// 64 bits".
std::string dtype_name(DLDataType dtype);

/// "(1, 3, 224, 224)", "(5,)", "()".
std::string shape_text(std::span<const int64_t> shape);

/// The number of elements of a shape.
/// \throws Error (TENON_ERROR_SHAPE) on a negative dimension or more than 2^63 - 1 elements
int64_t element_count(std::span<const int64_t> shape);

/// The bytes of a packed tensor; elements of below 8 bits take a byte each.
/// \throws Error (TENON_ERROR_SHAPE) like element_count, or on more than 2^63 - 1 bytes
int64_t byte_count(DLDataType dtype, std::span<const int64_t> shape);

/// Whether the elements lie row-major without gaps. Strides of dimensions of extent 1, and of
/// tensors without elements, do not matter.
bool is_packed(const DLTensor& tensor);

/// Where the first element lies.
inline void* data_of(const DLTensor& tensor) {
  return tensor.data == nullptr ? nullptr : static_cast<char*>(tensor.data) + tensor.byte_offset;
}

/// A packed, row-major tensor in this process's memory. Copies share the elements, as do tensors
/// exported to DLPack; the last one frees them. A default-constructed one is empty: rank 1, no
/// elements.
class Tensor {
 public:
  Tensor() : Tensor(DLDataType{TENON_DTYPE_FLOAT, 32, 1}, {0}) {}

  /// Uninitialised elements, aligned to kAlignment.
  /// \throws Error (TENON_ERROR_SHAPE, TENON_ERROR_MEMORY)
  Tensor(DLDataType dtype, std::vector<int64_t> shape);

  /// The same with `more` bytes behind them.
  Tensor(DLDataType dtype, std::vector<int64_t> shape, int64_t more);

  /// A tensor of texts, which it owns.
  /// \throws Error (TENON_ERROR_ARGUMENT) where they are not as many as the shape has
  static Tensor of_texts(std::vector<int64_t> shape, std::span<const std::string_view> texts);
  /// The texts of a tensor of strings. \throws Error (TENON_ERROR_ARGUMENT) of others
  std::vector<std::string> texts() const;

  /// A packed copy of any tensor in CPU memory, strided or not.
  /// \throws Error (TENON_ERROR_ARGUMENT, TENON_ERROR_SHAPE, TENON_ERROR_MEMORY)
  static Tensor copy_of(const DLTensor& source);

  /// Takes over a tensor from another library: its own memory where that is packed and aligned to
  /// its element, a copy otherwise. `managed` is this tensor's from then on, also where it throws.
  /// \throws Error (TENON_ERROR_ARGUMENT, TENON_ERROR_SHAPE, TENON_ERROR_MEMORY)
  static Tensor from_dlpack(DLManagedTensor* managed);

  /// For another library, which calls `deleter` when done. Shares the elements.
  DLManagedTensor* to_dlpack() const;

  /// A view without ownership; valid as long as this very object is.
  DLTensor view() const;

  /// The same elements with other dimensions.
  /// \throws Error (TENON_ERROR_SHAPE) where these need more bytes than there are
  Tensor reshaped(std::vector<int64_t> shape) const;

  DLDataType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t elements() const { return element_count(shape_); }
  int64_t bytes() const { return bytes_; }
  void* data() const { return data_.get(); }

  /// The elements as T, whose size must be the element's.
  template <typename T>
  std::span<T> as() const {
    if (sizeof(T) * 8 != static_cast<size_t>(dtype_.bits) * dtype_.lanes)
      throw Error(TENON_ERROR_ARGUMENT, "elements of " + dtype_name(dtype_) + " are not of " +
                                            std::to_string(sizeof(T)) + " bytes");
    return {static_cast<T*>(data_.get()), static_cast<size_t>(elements())};
  }

 private:
  Tensor(DLDataType dtype, std::vector<int64_t> shape, std::shared_ptr<void> data, int64_t bytes)
      : dtype_(dtype), shape_(std::move(shape)), data_(std::move(data)), bytes_(bytes) {}

  DLDataType dtype_;
  std::vector<int64_t> shape_;
  std::shared_ptr<void> data_;
  int64_t bytes_;
};

}  // namespace tenon::runtime
