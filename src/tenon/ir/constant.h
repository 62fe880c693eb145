// SPDX-License-Identifier: Apache-2.0
// Constant tensors: bytes that are owned, mapped from a file, or one value repeated. Shared,
// immutable, addressed by content. Nothing copies them without need: a weight of an ONNX file stays
// in the mapped file until code packs it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "tenon/ir/node.h"

namespace tenon {

class Pages;

/// The elements of a constant, dense and row-major, bools as bytes 0 or 1, narrow types as their
/// storage (support/dtype.h).
struct TensorData final : NodeOf<TensorData, Node> {
  DType dtype;
  std::vector<int64_t> shape;

  /// Owns a copy of nothing: takes the bytes. \throws CompileError (kBadTensor) where their number
  /// does not fit.
  static Ref<TensorData> owned(DType dtype, std::vector<int64_t> shape,
                               std::vector<std::byte> bytes, Origin origin = {});
  /// Makes room for the bytes and has `fill` write all of them: what is there before is undefined.
  /// Large ones have pages of their own (see move_to).
  static Ref<TensorData> filled(DType dtype, std::vector<int64_t> shape,
                                const std::function<void(std::span<std::byte>)>& fill,
                                Origin origin = {});
  /// As `filled`, but within a DeferredWorkScope large ones are made later: by a thread of the
  /// scope, or when their elements are asked for. `fill` keeps what it reads alive, and fails for no
  /// other reason than memory.
  static Ref<TensorData> filled_later(DType dtype, std::vector<int64_t> shape,
                                      std::function<void(std::span<std::byte>)> fill,
                                      Origin origin = {});
  /// The elements of what `produce` returns, made as by filled_later: a tensor of this type and shape,
  /// and no splat.
  static Ref<TensorData> later(DType dtype, std::vector<int64_t> shape,
                               std::function<Ref<TensorData>()> produce, Origin origin = {});
  /// Bytes that `keeper` keeps alive (a mapped file).
  static Ref<TensorData> view(DType dtype, std::vector<int64_t> shape,
                              std::span<const std::byte> bytes, std::shared_ptr<const void> keeper,
                              Origin origin = {});
  /// Every element is `element` (dtype.bytes() bytes); takes no memory, however large the shape.
  static Ref<TensorData> splat(DType dtype, std::vector<int64_t> shape,
                               std::vector<std::byte> element, Origin origin = {});
  template <typename T>
  static Ref<TensorData> of(DType dtype, std::vector<int64_t> shape, const std::vector<T>& values,
                            Origin origin = {}) {
    const auto bytes = std::as_bytes(std::span(values));
    return owned(dtype, std::move(shape), {bytes.begin(), bytes.end()}, std::move(origin));
  }

  int64_t elements() const { return elements_; }
  int64_t bytes() const { return elements_ * dtype.bytes(); }
  bool is_splat() const { return splat_; }
  /// Whether the elements are made later, or were: see filled_later.
  bool is_late() const { return late_; }
  /// The one element of a splat.
  std::span<const std::byte> splat_element() const { return data_; }
  /// All bytes; of a splat they are written out on first use and kept, late ones are waited for.
  std::span<const std::byte> data() const;
  /// Element i as a T of the same size, or converted (see at_int, at_float).
  template <typename T>
  std::span<const T> as_span() const {
    check(sizeof(T) == static_cast<size_t>(dtype.bytes()), "as_span with another element size");
    const auto all = data();
    return {reinterpret_cast<const T*>(all.data()), all.size() / sizeof(T)};
  }
  int64_t at_int(int64_t index) const;   // of integer and bool types
  double at_float(int64_t index) const;  // of every type
  /// All elements of an integer or bool tensor.
  std::vector<int64_t> to_ints() const;

  /// Moves the elements to `place`, a page of a mapping that `keeper` keeps alive, without a copy:
  /// where they have pages of their own that no other tensor holds. \returns false elsewhere, and
  /// nothing has changed. For `with`.
  bool move_to(std::byte* place, std::shared_ptr<const void> keeper);
  /// From so many bytes on elements have pages of their own.
  static constexpr int64_t kPagedBytes = 256 << 10;

  /// 128 bits over dtype, shape and content as 32 hex digits; computed once. Equal content, equal
  /// hash, on every host. A splat and the same elements written out have the same hash only if
  /// small (below 4 KiB).
  const std::string& content_hash() const;

  void finish() {}
  static constexpr PartKind kKind = PartKind::kTensorData;
  static constexpr std::string_view kName = "TensorData";
  static constexpr bool kIdentity = false;
  static std::vector<FieldInfo> fields();

 private:
  friend struct NodeOf<TensorData, Node>;
  template <typename T, typename... Args>
  friend Ref<T> tenon::make(Args&&... args);
  TensorData(DType dtype, std::vector<int64_t> shape, std::span<const std::byte> data,
             std::shared_ptr<const void> keeper, bool splat, Origin origin);
  TensorData(const TensorData& other);
  struct Late;
  void take_late() const;

  int64_t elements_ = 0;
  bool splat_ = false, late_ = false;
  // Of a late one they are set by whoever asks for the elements first.
  mutable std::span<const std::byte> data_;
  mutable std::shared_ptr<const void> keeper_;
  mutable Pages* pages_ = nullptr;      // in `keeper_`, where all of it is the elements'
  mutable std::shared_ptr<Late> made_;  // of a late one until then
  mutable std::once_flag expand_once_, hash_once_;
  mutable std::vector<std::byte> expanded_;
  mutable std::string hash_;
};

/// The product of the dimensions. \throws CompileError (kOverflow) where it, times `scale`, exceeds
/// 2^62 or a dimension is negative.
int64_t checked_elements(const std::vector<int64_t>& shape, int64_t scale = 1,
                         const Origin& origin = {});

/// "(1, 3, 224, 224)".
std::string str(const std::vector<int64_t>& shape);

template <>
struct FieldTraits<Ref<TensorData>> {
  // Compared and hashed by content; never entered by walks.
  static constexpr bool kHoldsNodes = false;
  static void visit(const Ref<TensorData>&, const NodeVisitor&) {}
  static bool map(Ref<TensorData>&, const NodeMapper&) { return false; }
  static bool equal(const Ref<TensorData>& a, const Ref<TensorData>& b);
  static uint64_t hash(const Ref<TensorData>& m);
  static std::string text(const Ref<TensorData>& m);
};

}  // namespace tenon
