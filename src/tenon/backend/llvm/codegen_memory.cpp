// SPDX-License-Identifier: Apache-2.0
// Addresses, loads and stores. Only the alignment of an element is relied on: a parameter may be
// any region of its caller's buffer, and on this architecture aligned data is as fast without the
// promise. (LLVM finds the alignment of stack memory by itself.)
#include "tenon/backend/llvm/codegen.h"

namespace tenon::llvm_backend {

llvm::Value* FunctionCodegen::index_value(const Expr& expr) {
  const bool saved = index_arithmetic_;
  index_arithmetic_ = backend::is_plain_index(expr);
  llvm::Value* result = value(expr);
  index_arithmetic_ = saved;
  const DType dtype = expr->dtype;
  if (dtype.bits != 64) {
    llvm::Type* wide = m_.register_type(kInt64.with_lanes(dtype.lanes), expr->origin);
    result = dtype.is_uint() ? b_.CreateZExt(result, wide) : b_.CreateSExt(result, wide);
  }
  return result;
}

std::vector<llvm::Value*> FunctionCodegen::strides_of(const tir::Buffer& buffer) {
  std::vector<llvm::Value*> strides;
  const std::vector<Expr> exprs =
      buffer.is_compact() ? tir::compact_strides(buffer.shape) : buffer.strides;
  for (const Expr& stride : exprs) strides.push_back(index_value(stride));
  return strides;
}

static bool is_constant(llvm::Value* value, uint64_t number) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  return constant && constant->equalsInt(number);
}

/// Elements from the first element to the one at scalar indices.
llvm::Value* FunctionCodegen::offset_of(const tir::Buffer& buffer,
                                        const std::vector<Expr>& indices) {
  llvm::Value* offset = b_.getInt64(0);
  if (buffer.is_compact()) {  // Horner's scheme, from the outermost dimension
    for (size_t i = 0; i < indices.size(); ++i) {
      if (i > 0 && !is_constant(offset, 0))
        offset = b_.CreateMul(offset, index_value(buffer.shape[i]), "", false, true);
      llvm::Value* index = index_value(indices[i]);
      offset = is_constant(offset, 0) ? index : b_.CreateAdd(offset, index, "", false, true);
    }
    return offset;
  }
  const std::vector<llvm::Value*> strides = strides_of(buffer);
  for (size_t i = 0; i < indices.size(); ++i) {
    llvm::Value* index = index_value(indices[i]);
    llvm::Value* term =
        is_constant(strides[i], 1) ? index : b_.CreateMul(index, strides[i], "", false, true);
    offset = is_constant(offset, 0) ? term : b_.CreateAdd(offset, term, "", false, true);
  }
  return offset;
}

llvm::Value* FunctionCodegen::pointer_of(const tir::Buffer& buffer, const Origin& origin) {
  const auto it = buffers_.find(&buffer);
  if (it != buffers_.end()) return it->second;
  // A view declared by its data pointer alone.
  const auto data = vars_.find(buffer.data.get());
  if (data == vars_.end())
    throw CompileError(kUndefined, origin, "buffer `{}` is used where it is not defined",
                       buffer.name);
  llvm::Value* pointer = data->second;
  if (buffer.elem_offset)
    pointer = element_pointer(pointer, index_value(buffer.elem_offset), buffer);
  return pointer;
}

llvm::Type* FunctionCodegen::element_type(const tir::Buffer& buffer) {
  return m_.memory_type(buffer.dtype, buffer.origin ? buffer.origin : info_.function->origin);
}

llvm::Value* FunctionCodegen::element_pointer(llvm::Value* base, llvm::Value* offset,
                                              const tir::Buffer& buffer) {
  if (is_constant(offset, 0)) return base;
  return b_.CreateInBoundsGEP(element_type(buffer), base, offset);
}

// `index` without its constant term, which `constant` is raised by.
static Expr without_constant(const Expr& index, int64_t& constant) {
  if (const auto value = as_int(index)) {
    constant += *value;
    return imm(index->dtype, int64_t{0});
  }
  const auto* sum = index.as<Binary>();
  if (!sum || (sum->op != BinaryOp::kAdd && sum->op != BinaryOp::kSub)) return index;
  if (const auto value = as_int(sum->rhs)) {
    constant += sum->op == BinaryOp::kAdd ? *value : -*value;
    return without_constant(sum->lhs, constant);
  }
  if (sum->op != BinaryOp::kAdd) return index;
  const int64_t before = constant;
  Expr lhs = without_constant(sum->lhs, constant), rhs = without_constant(sum->rhs, constant);
  return constant == before ? index : lhs + rhs;
}

static constexpr size_t kMixed = 0x9e3779b97f4a7c15;

size_t SharedPointers::hash(const Expr& index) {
  if (const auto* op = index.as<Binary>())
    return ((hash(op->lhs) * kMixed) ^ hash(op->rhs)) * kMixed + static_cast<size_t>(op->op);
  if (const auto* cast = index.as<Cast>()) return hash(cast->value) + 1;
  if (const auto value = as_int(index)) return static_cast<size_t>(*value) * kMixed;
  return std::hash<const Node*>()(index.get());
}

bool SharedPointers::is_same(const Expr& a, const Expr& b) {
  if (a.get() == b.get()) return true;
  if (a->dtype != b->dtype) return false;
  if (const auto* op = a.as<Binary>()) {
    const auto* other = b.as<Binary>();
    return other && op->op == other->op && is_same(op->lhs, other->lhs) &&
           is_same(op->rhs, other->rhs);
  }
  if (const auto* cast = a.as<Cast>()) {
    const auto* other = b.as<Cast>();
    return other && is_same(cast->value, other->value);
  }
  const auto value = as_int(a);
  return value && value == as_int(b);
}

llvm::Value* FunctionCodegen::pointer_to(llvm::Value* base, const tir::Buffer& buffer,
                                         const std::vector<Expr>& indices) {
  if (indices.size() != 1 || !buffer.is_compact() || !backend::is_plain_index(indices[0]))
    return element_pointer(base, offset_of(buffer, indices), buffer);
  int64_t constant = 0;
  const Expr rest = without_constant(indices[0], constant);
  llvm::Type* element = element_type(buffer);
  llvm::Value* number = b_.getInt64(static_cast<uint64_t>(constant));
  if (as_int(rest) == 0)
    return shared_pointers_.find_or_make(base, element, imm(indices[0]->dtype, constant),
                                         b_.GetInsertBlock(),
                                         [&] { return element_pointer(base, number, buffer); });
  // What the rest points to may be outside of the buffer.
  llvm::Value* shared =
      shared_pointers_.find_or_make(base, element, rest, b_.GetInsertBlock(),
                                    [&] { return b_.CreateGEP(element, base, index_value(rest)); });
  if (constant == 0) return shared;
  return shared_pointers_.find_or_make(shared, element, imm(indices[0]->dtype, constant),
                                       b_.GetInsertBlock(),
                                       [&] { return b_.CreateGEP(element, shared, number); });
}

void FunctionCodegen::make_pointers(const Expr& expr) {
  const auto is_known = [&](const Expr& index) {
    bool known = backend::is_plain_index(index) && !backend::needs_guard(index);
    walk<Var>(index, [&](const Var& var) { known = known && vars_.contains(&var); });
    return known;
  };
  walk<tir::BufferLoad>(expr, [&](const tir::BufferLoad& load) {
    const tir::Buffer& buffer = *load.buffer;
    if (load.indices.size() != 1 || !buffer.is_compact() || !buffers_.contains(&buffer)) return;
    const auto* ramp = load.indices[0].as<Ramp>();
    const Expr first = ramp ? ramp->base : load.indices[0];
    if (first->dtype.is_scalar() && is_known(first))
      pointer_to(pointer_of(buffer, load.origin), buffer, {first});
  });
}

FunctionCodegen::Address FunctionCodegen::address(const tir::Buffer& buffer,
                                                  const std::vector<Expr>& indices,
                                                  const Origin& origin) {
  if (buffer.dtype.is_vector())
    throw CompileError(kUnsupported, origin, "buffer `{}` of vectors ({}) has no native code",
                       buffer.name, buffer.dtype.str());
  llvm::Value* base = pointer_of(buffer, origin);
  if (indices.empty() || indices.back()->dtype.is_scalar())
    return {pointer_to(base, buffer, indices), nullptr, 1};
  const int lanes = indices.back()->dtype.lanes;
  llvm::Value* last = b_.getInt64(1);  // stride of the last dimension
  if (!buffer.is_compact()) last = index_value(buffer.strides.back());
  std::vector<Expr> first = indices;
  if (const auto* ramp = indices.back().as<Ramp>()) {
    first.back() = ramp->base;
    llvm::Value* pointer = pointer_to(base, buffer, first);
    llvm::Value* stride = b_.CreateMul(index_value(ramp->stride), last, "", false, true);
    if (is_constant(stride, 1)) return {pointer, nullptr, lanes};
    std::vector<llvm::Constant*> steps;
    for (int i = 0; i < lanes; ++i) steps.push_back(b_.getInt64(static_cast<uint64_t>(i)));
    return {pointer,
            b_.CreateMul(llvm::ConstantVector::get(steps), splat(stride, lanes), "", false, true),
            lanes};
  }
  first.back() = imm(indices.back()->dtype.element(), int64_t{0});
  llvm::Value* pointer = element_pointer(base, offset_of(buffer, first), buffer);
  llvm::Value* lane_indices = index_value(indices.back());
  if (!is_constant(last, 1))
    lane_indices = b_.CreateMul(lane_indices, splat(last, lanes), "", false, true);
  return {pointer, lane_indices, lanes};
}

llvm::Value* FunctionCodegen::from_memory(llvm::Value* value, DType dtype) {
  if (!dtype.is_bool()) return value;
  return b_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
}

llvm::Value* FunctionCodegen::to_memory(llvm::Value* value, DType dtype) {
  return dtype.is_bool() ? b_.CreateZExt(value, m_.memory_type(dtype, {})) : value;
}

llvm::Value* FunctionCodegen::load_every_nth(llvm::Type* element, const Address& at) {
  const auto* offsets = llvm::dyn_cast<llvm::ConstantDataVector>(at.lane_offsets);
  const int lanes = at.lanes;
  if (!offsets || lanes < 4) return nullptr;
  const auto step = static_cast<int64_t>(offsets->getElementAsInteger(1));
  if (step < 2 || step > 4) return nullptr;
  // Constant offsets need not be a ramp: `i % 2 + 2` is 2, 3, 2, 3.
  for (int i = 0; i < lanes; ++i)
    if (static_cast<int64_t>(offsets->getElementAsInteger(static_cast<unsigned>(i))) != i * step)
      return nullptr;
  // Vectors that together hold the lanes, the last of which ends with the last lane: no byte
  // outside of what the lanes span is read.
  const int64_t span = step * (lanes - 1) + 1;
  auto* type = llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
  llvm::Value* result = nullptr;
  for (int64_t begin = 0; begin < span; begin += lanes) {
    const int64_t from = std::min<int64_t>(begin, span - lanes);
    llvm::Value* part = b_.CreateAlignedLoad(
        type, b_.CreateInBoundsGEP(element, at.pointer, b_.getInt64(static_cast<uint64_t>(from))),
        llvm::Align(element->getPrimitiveSizeInBits() / 8));
    std::vector<int> picked;
    for (int i = 0; i < lanes; ++i) {
      const int64_t place = i * step;
      const bool here = place >= begin && place < begin + lanes;
      picked.push_back(here ? static_cast<int>(place - from) + (result ? lanes : 0)
                            : (result ? i : -1));
    }
    result = result ? b_.CreateShuffleVector(result, part, picked)
                    : b_.CreateShuffleVector(part, picked);
  }
  return result;
}

// Lanes of a shuffle of `first` and `second`: runs of `width` lanes, in turn of each, the half-th half
// of a run of 2 * width lanes.
static std::vector<int> halves(int lanes, int width, int half) {
  std::vector<int> picked;
  for (int run = 0; run < lanes / width; ++run)
    for (int i = 0; i < width; ++i)
      picked.push_back((run % 2 ? lanes : 0) + run / 2 * 2 * width + half * width + i);
  return picked;
}

llvm::Value* FunctionCodegen::load_column(const tir::BufferLoad& node, llvm::Value* base) {
  const tir::Buffer& buffer = *node.buffer;
  const auto* ramp = node.indices.size() == 1 ? node.indices[0].as<Ramp>() : nullptr;
  const auto size = buffer.shape.size() == 1 ? as_int(buffer.shape[0]) : std::nullopt;
  if (!ramp || !size || !llvm::isa<llvm::AllocaInst>(base)) return nullptr;
  const auto first = as_int(ramp->base), stride = as_int(ramp->stride);
  const int lanes = static_cast<int>(ramp->lanes);
  // Vectors consist of parts of four elements of 32 bits, and shuffles within parts are fast.
  constexpr int kPart = 4;
  if (!first || stride != lanes || lanes < kPart || !std::has_single_bit(unsigned(lanes)) ||
      buffer.dtype.bits != 32 || buffer.elem_offset)
    return nullptr;
  const int column = static_cast<int>(*first % lanes);
  const int64_t square = *first - column;
  if (square < 0 || square + int64_t{lanes} * lanes > *size) return nullptr;

  auto* type = llvm::FixedVectorType::get(element_type(buffer), static_cast<unsigned>(lanes));
  std::vector<llvm::Value*> rows;
  for (int row = 0; row < lanes; ++row) {
    llvm::Value* offset = b_.getInt64(static_cast<uint64_t>(square + int64_t{row} * lanes));
    rows.push_back(b_.CreateAlignedLoad(type, element_pointer(base, offset, buffer),
                                        llvm::Align(buffer.dtype.bytes())));
  }
  // Halves of runs, down to parts: rows[i] then holds the part with the column of rows i, i + 4, ...
  for (int width = lanes / 2; width >= kPart; width /= 2) {
    for (int row = 0; row < width; ++row)
      rows[row] = b_.CreateShuffleVector(rows[row], rows[row + width],
                                         halves(lanes, width, column / width % 2));
    rows.resize(width);
  }
  // Two elements of two rows in turn, then one such pair of each half.
  const int pair = column % kPart / 2, last = column % 2;
  std::vector<int> unpacked, joined;
  for (int part = 0; part < lanes; part += kPart)
    for (int i = 0; i < kPart; ++i) {
      unpacked.push_back((i % 2 ? lanes : 0) + part + 2 * pair + i / 2);
      joined.push_back((i / 2 ? lanes : 0) + part + 2 * last + i % 2);
    }
  return b_.CreateShuffleVector(b_.CreateShuffleVector(rows[0], rows[1], unpacked),
                                b_.CreateShuffleVector(rows[2], rows[3], unpacked), joined);
}

llvm::Value* FunctionCodegen::load_dense(llvm::Type* type, llvm::Value* pointer,
                                         llvm::Align align) {
  llvm::Value* known = block_values_.in_memory(pointer, type, b_);
  return known ? known : b_.CreateAlignedLoad(type, pointer, align);
}

llvm::Value* FunctionCodegen::load(const tir::BufferLoad& node, llvm::Value* mask,
                                   llvm::Value* otherwise) {
  const DType element = node.buffer->dtype;
  const Address at = address(*node.buffer, node.indices, node.origin);
  const llvm::Align align(static_cast<uint64_t>(element.bytes()));
  llvm::Type* one = element_type(*node.buffer);
  if (at.lanes == 1 && !mask) return from_memory(load_dense(one, at.pointer, align), element);
  const DType vector = element.with_lanes(at.lanes);
  llvm::Type* type = m_.memory_type(vector, node.origin);
  if (!at.lane_offsets) {
    if (!mask) return from_memory(load_dense(type, at.pointer, align), vector);
    return from_memory(
        b_.CreateMaskedLoad(type, at.pointer, align, mask, to_memory(otherwise, vector)), vector);
  }
  if (mask) {
    llvm::Value* pointers = b_.CreateInBoundsGEP(one, at.pointer, at.lane_offsets);
    return from_memory(
        b_.CreateMaskedGather(type, pointers, align, mask, to_memory(otherwise, vector)), vector);
  }
  if (llvm::Value* loaded = load_column(node, pointer_of(*node.buffer, node.origin))) return loaded;
  if (llvm::Value* loaded = load_every_nth(one, at)) return from_memory(loaded, vector);
  llvm::Value* result = llvm::PoisonValue::get(type);
  for (int i = 0; i < at.lanes; ++i) {
    llvm::Value* offset = b_.CreateExtractElement(at.lane_offsets, static_cast<uint64_t>(i));
    llvm::Value* pointer = b_.CreateInBoundsGEP(one, at.pointer, offset);
    result = b_.CreateInsertElement(result, b_.CreateAlignedLoad(one, pointer, align),
                                    static_cast<uint64_t>(i));
  }
  return from_memory(result, vector);
}

void FunctionCodegen::store(const tir::Buffer& buffer, const std::vector<Expr>& indices,
                            llvm::Value* value, llvm::Value* mask, const Origin& origin) {
  const DType element = buffer.dtype;
  const Address at = address(buffer, indices, origin);
  const llvm::Align align(static_cast<uint64_t>(element.bytes()));
  llvm::Value* stored = to_memory(value, element.with_lanes(at.lanes));
  if (!at.lane_offsets) {
    if (mask) {
      b_.CreateMaskedStore(stored, at.pointer, align, mask);
    } else {
      b_.CreateAlignedStore(stored, at.pointer, align);
    }
    return;
  }
  llvm::Type* one = m_.memory_type(element, origin);
  if (mask) {
    b_.CreateMaskedScatter(stored, b_.CreateInBoundsGEP(one, at.pointer, at.lane_offsets), align,
                           mask);
    return;
  }
  for (int i = 0; i < at.lanes; ++i) {
    llvm::Value* offset = b_.CreateExtractElement(at.lane_offsets, static_cast<uint64_t>(i));
    b_.CreateAlignedStore(b_.CreateExtractElement(stored, static_cast<uint64_t>(i)),
                          b_.CreateInBoundsGEP(one, at.pointer, offset), align);
  }
}

}  // namespace tenon::llvm_backend
