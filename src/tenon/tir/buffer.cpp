// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/buffer.h"

#include <algorithm>

#include "tenon/ir/constant.h"

namespace tenon {

uint64_t FieldTraits<std::vector<bool>>::hash(const std::vector<bool>& m) {
  uint64_t h = m.size();
  for (const bool bit : m) h = hash_combine(h, bit);
  return h;
}
std::string FieldTraits<std::vector<bool>>::text(const std::vector<bool>& m) {
  std::string text = "[";
  for (const bool bit : m) text += bit ? '1' : '0';
  return text + "]";
}

}  // namespace tenon

namespace tenon::tir {

Buffer::Buffer(std::string name, DType dtype, std::vector<Expr> shape, Options options,
               Origin origin)
    : NodeOf(std::move(origin)),
      name(std::move(name)),
      dtype(dtype),
      data(std::move(options.data)),
      shape(std::move(shape)),
      strides(std::move(options.strides)),
      elem_offset(std::move(options.elem_offset)),
      scope(std::move(options.scope)),
      alignment(options.alignment),
      offset_factor(options.offset_factor) {
  if (!data) data = Var::pointer(this->name, dtype, scope);
  finish_node(*this);
}

void Buffer::finish() {
  if (!strides.empty() && strides.size() != shape.size())
    throw CompileError(kRankMismatch, origin, "buffer `{}` has {} strides for {} dimensions", name,
                       strides.size(), shape.size());
  const auto check_index = [&](const Expr& e, std::string_view what) {
    if (!e->dtype.is_integer() || e->dtype.is_vector())
      throw CompileError(kDTypeMismatch, origin,
                         "{} of buffer `{}` has dtype {}; expected an integer", what, name,
                         e->dtype.str());
    const auto value = as_int(e);
    if (value && *value < 0 && what == "a dimension")
      throw CompileError(kOverflow, origin, "buffer `{}` has dimension {}; expected at least 0",
                         name, *value);
  };
  for (const Expr& dim : shape) check_index(dim, "a dimension");
  if (const auto known = as_ints(shape))
    checked_elements(*known, std::max<int64_t>(1, dtype.bytes()), origin);
  for (const Expr& stride : strides) check_index(stride, "a stride");
  if (elem_offset) check_index(elem_offset, "elem_offset");
  constexpr int64_t kMostAlignment = int64_t{1} << 30;  // programs state it in 32 bits
  if (alignment < 1 || (alignment & (alignment - 1)) != 0 || alignment > kMostAlignment)
    throw CompileError(kBadAttribute, origin,
                       "buffer `{}` has alignment {}; expected a power of two up to {}", name,
                       alignment, kMostAlignment);
}

std::vector<FieldInfo> Buffer::fields() {
  // The pointer is a use where the buffer is a view of one defined before, and a definition
  // otherwise: equality and renewal treat the first sight of it as the definition either way.
  return {field<&Buffer::name>("name", FieldRole::kIgnored),
          field<&Buffer::dtype>("dtype"),
          field<&Buffer::data>("data", FieldRole::kDefinition),
          field<&Buffer::shape>("shape", FieldRole::kSymbolic),
          field<&Buffer::strides>("strides", FieldRole::kSymbolic),
          field<&Buffer::elem_offset>("elem_offset", FieldRole::kSymbolic),
          field<&Buffer::scope>("scope"),
          field<&Buffer::alignment>("alignment"),
          field<&Buffer::offset_factor>("offset_factor")};
}

BufferRegion::BufferRegion(Ref<Buffer> buffer, std::vector<Range> region, std::vector<bool> drop,
                           Origin origin)
    : NodeOf(std::move(origin)),
      buffer(std::move(buffer)),
      region(std::move(region)),
      drop(std::move(drop)) {
  finish_node(*this);
}
void BufferRegion::finish() {
  if (region.size() != buffer->ndim())
    throw CompileError(kIndexRank, origin,
                       "a region of buffer `{}` has {} ranges for {} dimensions", buffer->name,
                       region.size(), buffer->ndim());
  if (std::find(drop.begin(), drop.end(), true) == drop.end()) drop.clear();
  // Both members of a range are of one dtype, as text can say them: begin and end of a slice are.
  bool changed = false;
  for (Range& range : region) {
    if (!range.min->dtype.is_scalar() || !range.extent->dtype.is_scalar()) continue;
    const auto widen = [&](Expr& narrow, const Expr& wide) {
      if (narrow->dtype.bits >= wide->dtype.bits) return;
      narrow = cast(wide->dtype, narrow);
      changed = true;
    };
    widen(range.min, range.extent);
    widen(range.extent, range.min);
  }
  if (changed) set_height(*this);
}
std::vector<FieldInfo> BufferRegion::fields() {
  return {field<&BufferRegion::buffer>("buffer"), field<&BufferRegion::region>("region"),
          field<&BufferRegion::drop>("drop")};
}

Ref<BufferRegion> BufferRegion::whole(const Ref<Buffer>& buffer) {
  std::vector<Range> region;
  for (const Expr& dim : buffer->shape) region.push_back({imm(dim->dtype, int64_t{0}), dim});
  return make<BufferRegion>(buffer, std::move(region));
}
Ref<BufferRegion> BufferRegion::point(const Ref<Buffer>& buffer, const std::vector<Expr>& indices) {
  std::vector<Range> region;
  for (const Expr& index : indices) region.push_back({index, imm(index->dtype, int64_t{1})});
  return make<BufferRegion>(buffer, std::move(region));
}

/// Checks indices and returns the lanes that they give.
static int check_indices(const Buffer& buffer, const std::vector<Expr>& indices,
                         const Origin& origin) {
  if (indices.size() != buffer.ndim())
    throw CompileError(kIndexRank, origin,
                       "buffer `{}` is indexed with {} indices; it has {} dimensions", buffer.name,
                       indices.size(), buffer.ndim());
  int lanes = 1;
  for (size_t i = 0; i < indices.size(); ++i) {
    const DType dtype = indices[i]->dtype;
    if (!dtype.is_integer())
      throw CompileError(kDTypeMismatch, origin,
                         "index {} of buffer `{}` has dtype {}; expected an integer", i,
                         buffer.name, dtype.str());
    if (dtype.lanes > 1 && i + 1 != indices.size())
      throw CompileError(kBadArgument, origin,
                         "index {} of buffer `{}` is a vector; only the last may be", i,
                         buffer.name);
    lanes = dtype.lanes;
  }
  return lanes;
}

BufferLoad::BufferLoad(Ref<Buffer> buffer, std::vector<Expr> indices, Origin origin)
    : NodeOf(std::move(origin)), buffer(std::move(buffer)), indices(std::move(indices)) {
  finish_node(*this);
}
void BufferLoad::finish() {
  const int lanes = check_indices(*buffer, indices, origin);
  dtype = buffer->dtype.with_lanes(buffer->dtype.lanes * lanes);
}
std::vector<FieldInfo> BufferLoad::fields() {
  return {field<&BufferLoad::buffer>("buffer"), field<&BufferLoad::indices>("indices")};
}

// Extents of 32 bits may have a product that has more.
static Expr product(const Expr& a, const Expr& b) {
  const auto x = as_int(a), y = as_int(b);
  int64_t wide = 0;
  if (x && y && !__builtin_mul_overflow(*x, *y, &wide) && wide > INT32_MAX) return int64(wide);
  return a * b;
}

std::vector<Expr> compact_strides(const std::vector<Expr>& shape) {
  std::vector<Expr> strides(shape.size());
  Expr stride = int64(1);
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride = product(shape[i], stride);
  }
  return strides;
}

Expr element_count(const std::vector<Expr>& shape) {
  Expr count = int64(1);
  for (const Expr& dim : shape) count = product(count, dim);
  return count;
}

}  // namespace tenon::tir
