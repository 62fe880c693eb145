// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/tensor.h"

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tenon::runtime {

static constexpr int64_t kHugePage = int64_t{2} << 20;
// No more than the machine has: what was promised beyond that ends the process when it is used.
static int64_t largest_block() {
  static const int64_t bytes = [] {
    const int64_t addressed = int64_t{1} << 46;  // half of what a process can address
    struct sysinfo info{};
    if (sysinfo(&info) != 0) return addressed;
    const auto has = static_cast<double>(info.totalram) + static_cast<double>(info.totalswap);
    return static_cast<int64_t>(
        std::min(has * static_cast<double>(info.mem_unit), static_cast<double>(addressed)));
  }();
  return bytes;
}

std::shared_ptr<void> allocate(int64_t bytes, int64_t alignment) {
  alignment = std::max(alignment, kAlignment);
  bool huge = bytes >= 2 * kHugePage;  // smaller ones would waste too much of their last page
  if (huge) alignment = std::max(alignment, kHugePage);
  int64_t rounded = 0;
  void* block = nullptr;
  if (bytes >= 0 && bytes <= largest_block()) {
    rounded = (std::max<int64_t>(bytes, 1) + alignment - 1) & ~(alignment - 1);
    block = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(rounded));
  }
  if (block == nullptr)
    throw Error(TENON_ERROR_MEMORY, "cannot allocate " + std::to_string(bytes) + " bytes");
  if (huge)
    madvise(block, static_cast<size_t>(rounded), MADV_HUGEPAGE);  // a wish: no matter if refused
  return {block, std::free};
}

std::string dtype_name(DLDataType dtype) {
  std::string bits = std::to_string(dtype.bits);
  std::string name;
  switch (dtype.code) {
    case TENON_DTYPE_INT: name = "int" + bits; break;
    case TENON_DTYPE_UINT: name = "uint" + bits; break;
    case TENON_DTYPE_FLOAT: name = "float" + bits; break;
    case TENON_DTYPE_BFLOAT: name = "bfloat" + bits; break;
    case TENON_DTYPE_BOOL: name = dtype.bits == 8 ? "bool" : "bool of " + bits + " bits"; break;
    case TENON_DTYPE_FLOAT8_E4M3FN: name = "float8_e4m3fn"; break;
    case TENON_DTYPE_FLOAT8_E4M3FNUZ: name = "float8_e4m3fnuz"; break;
    case TENON_DTYPE_FLOAT8_E5M2: name = "float8_e5m2"; break;
    case TENON_DTYPE_FLOAT8_E5M2FNUZ: name = "float8_e5m2fnuz"; break;
    case TENON_DTYPE_FLOAT8_E8M0FNU: name = "float8_e8m0fnu"; break;
    case TENON_DTYPE_FLOAT4_E2M1FN: name = "float4_e2m1fn"; break;
    case TENON_DTYPE_STRING: name = "string"; break;
    default: name = "code " + std::to_string(dtype.code) + " of " + bits + " bits";
  }
  return dtype.lanes == 1 ? name : name + "x" + std::to_string(dtype.lanes);
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

int64_t element_count(std::span<const int64_t> shape) {
  // Extents of 0 are left out at first, so that the answer does not depend on their place.
  int64_t count = 1;
  bool empty = false;
  for (int64_t extent : shape) {
    if (extent < 0)
      throw Error(TENON_ERROR_SHAPE, "shape " + shape_text(shape) + " has a negative dimension");
    if (extent == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(count, extent, &count)) {
      throw Error(TENON_ERROR_SHAPE,
                  "shape " + shape_text(shape) + " has more than 2^63 - 1 elements");
    }
  }
  return empty ? 0 : count;
}

static int64_t element_bytes(DLDataType dtype) {
  return (int64_t{dtype.bits} + 7) / 8 * std::max<int64_t>(dtype.lanes, 1);
}

int64_t byte_count(DLDataType dtype, std::span<const int64_t> shape) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(element_count(shape), element_bytes(dtype), &bytes))
    throw Error(TENON_ERROR_SHAPE, "shape " + shape_text(shape) + " of " + dtype_name(dtype) +
                                       " has more than 2^63 - 1 bytes");
  return bytes;
}

static std::span<const int64_t> shape_of(const DLTensor& tensor) {
  return {tensor.shape, static_cast<size_t>(std::max(tensor.ndim, 0))};
}

bool is_packed(const DLTensor& tensor) {
  std::span<const int64_t> shape = shape_of(tensor);
  if (tensor.strides == nullptr || std::find(shape.begin(), shape.end(), 0) != shape.end())
    return true;
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (tensor.strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

Tensor::Tensor(DLDataType dtype, std::vector<int64_t> shape)
    : dtype_(dtype), shape_(std::move(shape)), bytes_(byte_count(dtype_, shape_)) {
  data_ = allocate(bytes_);
}

Tensor::Tensor(DLDataType dtype, std::vector<int64_t> shape, int64_t more)
    : dtype_(dtype), shape_(std::move(shape)), bytes_(byte_count(dtype_, shape_)) {
  data_ = allocate(bytes_ + more);
}

Tensor Tensor::of_texts(std::vector<int64_t> shape, std::span<const std::string_view> texts) {
  if (element_count(shape) != static_cast<int64_t>(texts.size()))
    throw Error(TENON_ERROR_ARGUMENT,
                std::to_string(texts.size()) + " texts for shape " + shape_text(shape));
  size_t bytes = 0;
  for (const std::string_view text : texts) bytes += text.size() + 1;
  Tensor out(DLDataType{TENON_DTYPE_STRING, 128, 1}, std::move(shape), static_cast<int64_t>(bytes));
  auto* element = static_cast<TenonString*>(out.data());
  auto* block = static_cast<char*>(out.data()) + out.bytes();
  for (const std::string_view text : texts) {
    if (!text.empty()) std::memcpy(block, text.data(), text.size());
    block[text.size()] = '\0';
    *element++ = {block, static_cast<int64_t>(text.size())};
    block += text.size() + 1;
  }
  return out;
}

std::vector<std::string> Tensor::texts() const {
  if (dtype_.code != TENON_DTYPE_STRING)
    throw Error(TENON_ERROR_ARGUMENT, "elements of " + dtype_name(dtype_) + " are no strings");
  std::vector<std::string> out;
  for (const TenonString& text : as<TenonString>())
    out.emplace_back(text.data, static_cast<size_t>(text.size));
  return out;
}

static void check_source(const DLTensor& source) {
  if (source.device.device_type != kDLCPU)
    throw Error(TENON_ERROR_ARGUMENT, "tensor lies on a device of DLPack type " +
                                          std::to_string(source.device.device_type) +
                                          ", not in CPU memory");
  if (source.ndim < 0 || (source.ndim > 0 && source.shape == nullptr))
    throw Error(TENON_ERROR_ARGUMENT,
                "tensor of rank " + std::to_string(source.ndim) + " has no shape");
  if (byte_count(source.dtype, shape_of(source)) > 0 && source.data == nullptr)
    throw Error(TENON_ERROR_ARGUMENT,
                "tensor of shape " + shape_text(shape_of(source)) + " has no data");
}

Tensor Tensor::copy_of(const DLTensor& source) {
  check_source(source);
  std::span<const int64_t> shape = shape_of(source);
  Tensor copy(source.dtype, {shape.begin(), shape.end()});
  if (copy.bytes() == 0) return copy;
  const char* from = static_cast<const char*>(data_of(source));
  char* to = static_cast<char*>(copy.data());
  if (is_packed(source)) {
    std::memcpy(to, from, static_cast<size_t>(copy.bytes()));
    return copy;
  }
  int64_t size = element_bytes(source.dtype);
  std::vector<int64_t> index(shape.size(), 0);
  int64_t offset = 0;  // in elements
  for (int64_t count = copy.elements(); count > 0; --count, to += size) {
    std::memcpy(to, from + offset * size, static_cast<size_t>(size));
    for (size_t i = shape.size(); i-- > 0;) {
      offset += source.strides[i];
      if (++index[i] < shape[i]) break;
      offset -= source.strides[i] * shape[i];
      index[i] = 0;
    }
  }
  return copy;
}

Tensor Tensor::from_dlpack(DLManagedTensor* managed) {
  std::shared_ptr<DLManagedTensor> owner(managed, [](DLManagedTensor* m) {
    if (m != nullptr && m->deleter != nullptr) m->deleter(m);
  });
  if (managed == nullptr) throw Error(TENON_ERROR_ARGUMENT, "DLPack tensor is null");
  const DLTensor& source = managed->dl_tensor;
  check_source(source);
  std::span<const int64_t> shape = shape_of(source);
  int64_t bytes = byte_count(source.dtype, shape);
  uintptr_t unaligned = reinterpret_cast<uintptr_t>(data_of(source)) %
                        static_cast<uintptr_t>(std::max((source.dtype.bits + 7) / 8, 1));
  if (bytes == 0 || !is_packed(source) || unaligned != 0) return copy_of(source);
  return Tensor(source.dtype, {shape.begin(), shape.end()},
                std::shared_ptr<void>(owner, data_of(source)), bytes);
}

DLManagedTensor* Tensor::to_dlpack() const {
  struct Export {
    Tensor tensor;
    DLManagedTensor managed;
  };
  auto* exported = new Export{*this, {}};
  exported->managed.dl_tensor = exported->tensor.view();
  exported->managed.manager_ctx = exported;
  exported->managed.deleter = [](DLManagedTensor* self) {
    delete static_cast<Export*>(self->manager_ctx);
  };
  return &exported->managed;
}

DLTensor Tensor::view() const {
  DLTensor view{};
  view.data = data_.get();
  view.device = {kDLCPU, 0};
  view.ndim = static_cast<int>(shape_.size());
  view.dtype = dtype_;
  view.shape = const_cast<int64_t*>(shape_.data());  // DLPack's struct has no const
  return view;
}

Tensor Tensor::reshaped(std::vector<int64_t> shape) const {
  int64_t bytes = byte_count(dtype_, shape);
  if (bytes > bytes_)
    throw Error(TENON_ERROR_SHAPE, "shape " + shape_text(shape) +
                                       " needs more bytes than a tensor of shape " +
                                       shape_text(shape_) + " has");
  return Tensor(dtype_, std::move(shape), data_, bytes);
}

}  // namespace tenon::runtime
