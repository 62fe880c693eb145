// SPDX-License-Identifier: Apache-2.0
// Buffers, regions of them, and reading an element.
#pragma once

#include <string>
#include <vector>

#include "tenon/ir/expr.h"

namespace tenon::tir {

/// A typed block of memory, indexed by multi-dimensional indices. It is itself: only its definition
/// (a parameter, an allocation, a view) makes it, and copying a function renews it.
struct Buffer final : NodeOf<Buffer, Node> {
  std::string name;
  DType dtype;
  Ref<Var> data;  // the pointer; defined together with the buffer unless it is a view (DeclBuffer)
  std::vector<Expr> shape;
  std::vector<Expr> strides;  // in elements; empty: compact, row-major
  Expr elem_offset;           // of the first element from `data`, in elements; null: 0
  std::string scope = "global";
  int64_t alignment = 64;     // of data, in bytes
  int64_t offset_factor = 1;  // elem_offset is a multiple of it

  struct Options {
    std::vector<Expr> strides = {};
    Expr elem_offset = {};
    std::string scope = "global";
    int64_t alignment = 64;
    int64_t offset_factor = 1;
    Ref<Var> data = {};  // made where it is not given
  };
  Buffer(std::string name, DType dtype, std::vector<Expr> shape, Options options,
         Origin origin = {});
  Buffer(std::string name, DType dtype, std::vector<Expr> shape, Origin origin = {})
      : Buffer(std::move(name), dtype, std::move(shape), Options{}, std::move(origin)) {}
  void finish();
  size_t ndim() const { return shape.size(); }
  bool is_compact() const { return strides.empty(); }
  static constexpr PartKind kKind = PartKind::kBuffer;
  static constexpr std::string_view kName = "Buffer";
  static constexpr bool kIdentity = true;
  static std::vector<FieldInfo> fields();
};

/// A half-open range [min, min + extent).
struct Range {
  Expr min, extent;
};

/// A box of a buffer, one range for each dimension. As an argument of a call, a dimension that is
/// dropped
/// (`x[r, 0:24]`) has `drop[i]` set and extent 1.
struct BufferRegion final : NodeOf<BufferRegion, Node> {
  Ref<Buffer> buffer;
  std::vector<Range> region;
  std::vector<bool> drop;  // empty: none

  BufferRegion(Ref<Buffer> buffer, std::vector<Range> region, std::vector<bool> drop = {},
               Origin origin = {});
  /// The whole buffer.
  static Ref<BufferRegion> whole(const Ref<Buffer>& buffer);
  /// One element.
  static Ref<BufferRegion> point(const Ref<Buffer>& buffer, const std::vector<Expr>& indices);
  bool drops(size_t i) const { return i < drop.size() && drop[i]; }
  void finish();
  static constexpr PartKind kKind = PartKind::kBufferRegion;
  static constexpr std::string_view kName = "BufferRegion";
  static std::vector<FieldInfo> fields();
};

/// The element of `buffer` at `indices`; the last index may be a vector (a Ramp: consecutive or
/// strided lanes; any other vector: a gather), which gives a vector.
struct BufferLoad final : NodeOf<BufferLoad, ExprNode> {
  Ref<Buffer> buffer;
  std::vector<Expr> indices;

  BufferLoad(Ref<Buffer> buffer, std::vector<Expr> indices, Origin origin = {});
  void finish();
  static constexpr ExprKind kKind = ExprKind::kBufferLoad;
  static constexpr std::string_view kName = "BufferLoad";
  static std::vector<FieldInfo> fields();
};

inline Expr load(const Ref<Buffer>& buffer, std::vector<Expr> indices) {
  return make<BufferLoad>(buffer, std::move(indices));
}

/// Row-major strides of a compact buffer of this shape.
std::vector<Expr> compact_strides(const std::vector<Expr>& shape);
/// The product of `shape`.
Expr element_count(const std::vector<Expr>& shape);

}  // namespace tenon::tir

namespace tenon {
template <>
struct FieldTraits<tir::Range> {
  static constexpr bool kHoldsNodes = true;
  static void visit(const tir::Range& m, const NodeVisitor& v) {
    FieldTraits<Expr>::visit(m.min, v);
    FieldTraits<Expr>::visit(m.extent, v);
  }
  static bool map(tir::Range& m, const NodeMapper& f) {
    const bool a = FieldTraits<Expr>::map(m.min, f);
    return FieldTraits<Expr>::map(m.extent, f) || a;
  }
  static bool equal(const tir::Range&, const tir::Range&) { return true; }
  static uint64_t hash(const tir::Range&) { return 0; }
  static std::string text(const tir::Range&) { return "a range"; }
};
template <>
struct FieldTraits<std::vector<bool>> : PlainTraits<std::vector<bool>> {
  static uint64_t hash(const std::vector<bool>& m);
  static std::string text(const std::vector<bool>& m);
};
}  // namespace tenon
