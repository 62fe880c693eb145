// SPDX-License-Identifier: Apache-2.0
// Operators that move elements, as strided copies; the arithmetic is in elementwise.cpp.
#include "tenon/interp/reference/reference.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "tenon/graph/layout.h"
#include "tenon/graph/op.h"
#include "tenon/interp/reference/elementwise.h"
#include "tenon/interp/reference/strided_copy.h"
#include "tenon/interp/scalar.h"

namespace tenon::interp {

namespace {

using graph::Call;
using Shape = std::vector<int64_t>;

Shape row_major(const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

const TensorData* constant_of(const graph::Value& value) {
  const auto* constant = value.as<graph::Constant>();
  return constant ? constant->data.get() : nullptr;
}

// Copies into the result, `dims` and offsets in elements.
void copy_elements(std::span<std::byte> to, int64_t to_at, const TensorData& from, int64_t from_at,
                   std::vector<CopyDim> dims) {
  const int64_t size = from.dtype.bytes();
  strided_copy(to.data() + to_at * size, from.data().data() + from_at * size, std::move(dims),
               size);
}

/// An axis of a layout in two memories, each of which may split it into blocks.
struct BlockedAxis {
  int64_t extent, from_block, to_block;
  int64_t from_outer = 0, from_inner = 0, to_outer = 0, to_inner = 0;
};

/// Copies `from` to `to` axis by axis: the whole blocks of each, and what is left.
class BlockedCopy {
 public:
  BlockedCopy(std::vector<BlockedAxis> axes, const TensorData& from, std::span<std::byte> to)
      : axes_(std::move(axes)), from_(from), to_(to) {}

  void run(size_t i = 0, int64_t to_at = 0, int64_t from_at = 0) {
    if (i == axes_.size()) return copy_elements(to_, to_at, from_, from_at, dims_);
    const BlockedAxis& axis = axes_[i];
    const int64_t block = std::max(axis.from_block, axis.to_block);
    const int64_t whole = axis.extent / block, rest = axis.extent % block;
    // A step by one inside a block, and by a block, in either memory.
    const int64_t from_step = axis.from_block == 1 ? axis.from_outer : axis.from_inner;
    const int64_t to_step = axis.to_block == 1 ? axis.to_outer : axis.to_inner;
    const int64_t from_jump = axis.from_block == 1 ? axis.from_outer * block : axis.from_outer;
    const int64_t to_jump = axis.to_block == 1 ? axis.to_outer * block : axis.to_outer;
    const size_t mark = dims_.size();
    if (whole > 0) {
      dims_.push_back({whole, to_jump, from_jump});
      dims_.push_back({block, to_step, from_step});
      run(i + 1, to_at, from_at);
      dims_.resize(mark);
    }
    if (rest > 0) {
      dims_.push_back({rest, to_step, from_step});
      run(i + 1, to_at + whole * to_jump, from_at + whole * from_jump);
      dims_.resize(mark);
    }
  }

 private:
  std::vector<BlockedAxis> axes_;
  const TensorData& from_;
  std::span<std::byte> to_;
  std::vector<CopyDim> dims_;
};

/// The result of one operator. Large ones may be made later, so that what makes them holds its
/// inputs.
class Movement {
 public:
  Movement(const Call& call, DType dtype, Shape shape)
      : call_(call), dtype_(dtype), shape_(std::move(shape)) {}

  Ref<TensorData> run() {
    if (call_.is("concat")) return concat();
    if (call_.is("full")) return filled();
    if (call_.is("zeros") || call_.is("ones"))
      return splat_of(kInt64, {.i = call_.is("ones") ? 1 : 0});
    const auto* constant = call_.args.empty() ? nullptr : call_.args[0].as<graph::Constant>();
    if (!constant) return nullptr;
    const Ref<TensorData>& x = constant->data;
    if (call_.is("reshape") || call_.is("flatten") || call_.is("squeeze") ||
        call_.is("expand_dims"))
      return reshaped(x);
    if (call_.is("permute_dims")) return permuted(x);
    if (call_.is("broadcast_to")) return broadcast(x);
    if (call_.is("strided_slice")) return sliced(x);
    if (call_.is("layout_transform")) return transformed(x);
    if (call_.is("words")) return words(x);
    return nullptr;
  }

 private:
  /// The result that `write` writes, all of it.
  Ref<TensorData> written(std::function<void(std::span<std::byte>)> write) const {
    return TensorData::filled_later(dtype_, shape_, std::move(write), call_.origin);
  }
  /// A copy of `x` from element `offset` on.
  Ref<TensorData> copied(const Ref<TensorData>& x, int64_t offset,
                         std::vector<CopyDim> dims) const {
    return written([x, offset, dims = std::move(dims)](std::span<std::byte> bytes) {
      copy_elements(bytes, 0, *x, offset, dims);
    });
  }
  Ref<TensorData> splat_like(const TensorData& x) const {
    const auto element = x.splat_element();
    return TensorData::splat(dtype_, shape_, {element.begin(), element.end()}, call_.origin);
  }
  Ref<TensorData> splat_of(DType from, Slot value) const {
    std::vector<std::byte> element(static_cast<size_t>(dtype_.bytes()));
    write_element(dtype_, element.data(), apply_cast(dtype_, from, value));
    return TensorData::splat(dtype_, shape_, std::move(element), call_.origin);
  }
  Ref<TensorData> filled() const {
    if (call_.args.size() < 2) return nullptr;
    if (const TensorData* fill = constant_of(call_.args[1])) {
      if (fill->elements() != 1) return nullptr;
      return splat_of(fill->dtype, read_element(fill->dtype, fill->data().data()));
    }
    const auto* prim = call_.args[1].as<graph::PrimValue>();
    if (!prim) return nullptr;
    if (const auto number = as_int(prim->value))
      return splat_of(prim->value->dtype, {.i = *number});
    if (const auto number = as_float(prim->value))
      return splat_of(prim->value->dtype, {.f = *number});
    return nullptr;
  }

  Ref<TensorData> reshaped(const Ref<TensorData>& x) const {
    if (x->is_splat()) return splat_like(*x);
    const auto view = [x, dtype = dtype_, shape = shape_, origin = call_.origin] {
      return TensorData::view(dtype, shape, x->data(), std::make_shared<Ref<TensorData>>(x),
                              origin);
    };
    return x->is_late() ? TensorData::later(dtype_, shape_, view, call_.origin) : view();
  }

  /// The same memory, where words may stand in it.
  Ref<TensorData> words(const Ref<TensorData>& x) const {
    static_assert(std::endian::native == std::endian::little);
    if (x->is_splat())
      return TensorData::splat(dtype_, shape_, std::vector<std::byte>(4, x->splat_element()[0]),
                               call_.origin);
    const auto make = [x, dtype = dtype_, shape = shape_, origin = call_.origin] {
      const auto bytes = x->data();
      if (reinterpret_cast<uintptr_t>(bytes.data()) % 4 == 0)
        return TensorData::view(dtype, shape, bytes, std::make_shared<Ref<TensorData>>(x), origin);
      return TensorData::filled(
          dtype, shape, [&](std::span<std::byte> to) { std::ranges::copy(bytes, to.begin()); },
          origin);
    };
    return x->is_late() ? TensorData::later(dtype_, shape_, make, call_.origin) : make();
  }

  Ref<TensorData> permuted(const Ref<TensorData>& x) const {
    Shape axes;
    if (const auto given = call_.attrs.ints("axes")) {
      axes = *given;
    } else {
      for (size_t i = x->shape.size(); i-- > 0;) axes.push_back(static_cast<int64_t>(i));
    }
    if (x->is_splat()) return splat_like(*x);
    const Shape to = row_major(shape_), from = row_major(x->shape);
    std::vector<CopyDim> dims;
    for (size_t i = 0; i < shape_.size(); ++i) {
      const int64_t axis = axes.at(i) < 0 ? axes[i] + static_cast<int64_t>(axes.size()) : axes[i];
      dims.push_back({shape_[i], to[i], from.at(static_cast<size_t>(axis))});
    }
    return copied(x, 0, std::move(dims));
  }

  Ref<TensorData> broadcast(const Ref<TensorData>& x) const {
    if (x->is_splat()) return splat_like(*x);
    const Shape to = row_major(shape_), from = row_major(x->shape);
    const size_t added = shape_.size() - x->shape.size();
    std::vector<CopyDim> dims;
    for (size_t i = 0; i < shape_.size(); ++i)
      dims.push_back(
          {shape_[i], to[i], i < added || x->shape[i - added] == 1 ? 0 : from[i - added]});
    return copied(x, 0, std::move(dims));
  }

  Ref<TensorData> concat() const {
    const auto* tuple = call_.args.empty() ? nullptr : call_.args[0].as<graph::Tuple>();
    if (!tuple) return nullptr;
    int64_t axis = call_.attrs.get<int64_t>("axis").value_or(0);
    if (axis < 0) axis += static_cast<int64_t>(shape_.size());
    std::vector<Ref<TensorData>> parts;
    parts.reserve(tuple->values.size());
    for (const graph::Value& value : tuple->values) {
      const auto* constant = value.as<graph::Constant>();
      if (!constant) return nullptr;
      parts.push_back(constant->data);
    }
    const Shape to = row_major(shape_);
    return written([parts, to, along = static_cast<size_t>(axis)](std::span<std::byte> bytes) {
      int64_t start = 0;
      for (const Ref<TensorData>& x : parts) {
        const Shape from = row_major(x->shape);
        std::vector<CopyDim> dims;
        dims.reserve(to.size());
        for (size_t i = 0; i < to.size(); ++i) dims.push_back({x->shape[i], to[i], from[i]});
        copy_elements(bytes, start * to.at(along), *x, 0, std::move(dims));
        start += x->shape.at(along);
      }
    });
  }

  // The integers of an attribute or of a tuple, shape or constant argument.
  std::optional<Shape> ints(const char* name, size_t arg) const {
    if (const auto given = call_.attrs.ints(name)) return given;
    if (arg >= call_.args.size()) return std::nullopt;
    const graph::Value& value = call_.args[arg];
    if (const auto* shape = value.as<graph::ShapeExpr>()) return as_ints(shape->values);
    if (const TensorData* data = constant_of(value))
      return data->dtype.is_integer() ? std::optional(data->to_ints()) : std::nullopt;
    const auto* tuple = value.as<graph::Tuple>();
    if (!tuple) return std::nullopt;
    Shape out;
    for (const graph::Value& item : tuple->values) {
      const auto* prim = item.as<graph::PrimValue>();
      const auto number = prim ? as_int(prim->value) : std::nullopt;
      if (!number) return std::nullopt;
      out.push_back(*number);
    }
    return out;
  }

  // The result's shape is inferred already; only where each axis begins and how it steps is needed.
  Ref<TensorData> sliced(const Ref<TensorData>& x) const {
    auto axes = ints("axes", 1);
    const auto begins = ints("begin", 2);
    if (!axes || !begins || axes->size() != begins->size()) return nullptr;
    Shape steps(axes->size(), 1);
    if (call_.attrs.contains("strides") || call_.args.size() > 4) {
      const auto given = ints("strides", 4);
      if (!given && !is_none("strides")) return nullptr;
      if (given && !given->empty()) steps = *given;
    }
    if (steps.size() != axes->size()) return nullptr;
    if (x->is_splat()) return splat_like(*x);
    const Shape to = row_major(shape_);
    Shape from = row_major(x->shape);
    int64_t offset = 0;
    for (size_t i = 0; i < axes->size(); ++i) {
      const int64_t axis =
          (*axes)[i] < 0 ? (*axes)[i] + static_cast<int64_t>(x->shape.size()) : (*axes)[i];
      if (axis < 0 || axis >= static_cast<int64_t>(x->shape.size()) || steps[i] == 0)
        return nullptr;
      const auto d = static_cast<size_t>(axis);
      int64_t first = (*begins)[i] < 0 ? (*begins)[i] + x->shape[d] : (*begins)[i];
      first = steps[i] > 0 ? std::clamp<int64_t>(first, 0, x->shape[d])
                           : std::clamp<int64_t>(first, -1, x->shape[d] - 1);
      if (shape_[d] > 0) {
        const int64_t last = first + (shape_[d] - 1) * steps[i];
        if (first < 0 || first >= x->shape[d] || last < 0 || last >= x->shape[d]) return nullptr;
      }
      offset += first * from[d];
      from[d] *= steps[i];
    }
    std::vector<CopyDim> dims;
    for (size_t i = 0; i < shape_.size(); ++i) dims.push_back({shape_[i], to[i], from[i]});
    return copied(x, offset, std::move(dims));
  }
  bool is_none(const char* name) const {
    const AttrValue* value = call_.attrs.find(name);
    return !value || value->is_none();
  }

  // Between layouts of named axes ("OIHW" to "OIHW16i16o"). What pads a block is zero.
  Ref<TensorData> transformed(const Ref<TensorData>& x) const {
    const auto from_text = call_.attrs.get<std::string>("src_layout");
    const auto to_text = call_.attrs.get<std::string>("dst_layout");
    if (!from_text || !to_text) return nullptr;
    const auto from = graph::Layout::parse(*from_text), to = graph::Layout::parse(*to_text);
    if (!from || !to || from->ndim() != x->shape.size() || to->ndim() != shape_.size())
      return nullptr;
    // Extents of the axes themselves: the smaller of what either side has room for.
    const std::string letters = from->primal();
    const Shape from_strides = row_major(x->shape), to_strides = row_major(shape_);
    std::vector<BlockedAxis> axes;
    for (const char letter : letters) {
      if (!to->has(letter)) return nullptr;
      BlockedAxis axis{0, from->block(letter), to->block(letter)};
      const auto outer_from = static_cast<size_t>(from->position(letter));
      const auto outer_to = static_cast<size_t>(to->position(letter));
      axis.extent =
          std::min(x->shape[outer_from] * axis.from_block, shape_[outer_to] * axis.to_block);
      axis.from_outer = from_strides[outer_from];
      axis.to_outer = to_strides[outer_to];
      const int inner_from = from->inner_position(letter), inner_to = to->inner_position(letter);
      if (inner_from >= 0) axis.from_inner = from_strides[static_cast<size_t>(inner_from)];
      if (inner_to >= 0) axis.to_inner = to_strides[static_cast<size_t>(inner_to)];
      // Both split: only alike, so that outer and inner parts correspond.
      if (axis.from_block != 1 && axis.to_block != 1 && axis.from_block != axis.to_block)
        return nullptr;
      axes.push_back(axis);
    }
    int64_t elements = 1;
    for (const BlockedAxis& axis : axes) elements *= axis.extent;
    const bool is_padded = elements < checked_elements(shape_);
    return written([x, is_padded, axes = std::move(axes)](std::span<std::byte> bytes) {
      if (is_padded) std::ranges::fill(bytes, std::byte{0});
      BlockedCopy(axes, *x, bytes).run();
    });
  }

  const Call& call_;
  DType dtype_;
  Shape shape_;
};

}  // namespace

Ref<TensorData> reference_value(const Call& call) {
  if (!call.op) return nullptr;
  if (Ref<TensorData> value = elementwise_reference(call)) return value;
  const graph::Type type = graph::type_of(ref_to(&call));
  const auto* tensor = type.as<graph::TensorType>();
  if (!tensor || !tensor->dtype.is_scalar()) return nullptr;
  const auto shape = tensor->static_shape();
  const int64_t size = tensor->dtype.bytes();
  if (!shape || (size != 1 && size != 2 && size != 4 && size != 8)) return nullptr;
  return Movement(call, tensor->dtype, *shape).run();
}

}  // namespace tenon::interp
