// SPDX-License-Identifier: Apache-2.0
#include "tenon/ir/constant.h"

#include <cstring>

#include "tenon/support/content_hash.h"
#include "tenon/support/deferred_work.h"
#include "tenon/support/mapped_pages.h"
#include "tenon/support/narrow_float.h"
#include "tenon/support/pages.h"
#include "tenon/support/strings.h"

namespace tenon {

int64_t checked_elements(const std::vector<int64_t>& shape, int64_t scale, const Origin& origin) {
  int64_t product = 1;
  bool zero = false;
  constexpr int64_t kMost = int64_t{1} << 62;
  for (const int64_t dim : shape) {
    if (dim < 0)
      throw CompileError(kOverflow, origin, "shape {} has a negative dimension", str(shape));
    zero |= dim == 0;
    if (dim == 0) continue;
    if (product > kMost / dim)
      throw CompileError(kOverflow, origin, "shape {} has more than 2^62 elements", str(shape));
    product *= dim;
  }
  if (product > kMost / scale)
    throw CompileError(kOverflow, origin, "a tensor of shape {} has more than 2^62 bytes",
                       str(shape));
  return zero ? 0 : product;
}

std::string str(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

TensorData::TensorData(DType dtype, std::vector<int64_t> shape, std::span<const std::byte> data,
                       std::shared_ptr<const void> keeper, bool splat, Origin origin)
    : NodeOf(std::move(origin)),
      dtype(dtype),
      shape(std::move(shape)),
      splat_(splat),
      data_(data),
      keeper_(std::move(keeper)) {
  elements_ = checked_elements(this->shape, std::max<int64_t>(1, dtype.bytes()), this->origin);
}
TensorData::TensorData(const TensorData& other)
    : NodeOf(other),
      dtype(other.dtype),
      shape(other.shape),
      elements_(other.elements_),
      splat_(other.splat_),
      data_(other.late_ ? other.data() : other.data_),  // late ones are waited for
      keeper_(other.keeper_),
      pages_(other.pages_) {}

/// What is made later.
struct TensorData::Late {
  explicit Late(std::function<Ref<TensorData>()> produce)
      : work([this, produce = std::move(produce)] { tensor = produce(); }) {}
  DeferredWork work;
  Ref<TensorData> tensor;
};

std::vector<FieldInfo> TensorData::fields() {
  return {field<&TensorData::dtype>("dtype"), field<&TensorData::shape>("shape")};
}

Ref<TensorData> TensorData::view(DType dtype, std::vector<int64_t> shape,
                                 std::span<const std::byte> bytes,
                                 std::shared_ptr<const void> keeper, Origin origin) {
  const Ref<TensorData> tensor =
      make<TensorData>(dtype, std::move(shape), bytes, std::move(keeper), false, std::move(origin));
  if (static_cast<uint64_t>(tensor->bytes()) != bytes.size())
    throw CompileError(kBadTensor, tensor->origin,
                       "a tensor of shape {} and type {} has {} bytes; expected {}",
                       str(tensor->shape), dtype.str(), bytes.size(), tensor->bytes());
  return tensor;
}

Ref<TensorData> TensorData::owned(DType dtype, std::vector<int64_t> shape,
                                  std::vector<std::byte> bytes, Origin origin) {
  auto keeper = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const std::span<const std::byte> all(*keeper);
  return view(dtype, std::move(shape), all, keeper, std::move(origin));
}

Ref<TensorData> TensorData::filled(DType dtype, std::vector<int64_t> shape,
                                   const std::function<void(std::span<std::byte>)>& fill,
                                   Origin origin) {
  const auto size = static_cast<size_t>(
      checked_elements(shape, std::max<int64_t>(1, dtype.bytes()), origin) * dtype.bytes());
  if (size < static_cast<size_t>(kPagedBytes)) {
    const auto keeper = std::make_shared_for_overwrite<std::byte[]>(size);
    const std::span<std::byte> all(keeper.get(), size);
    fill(all);
    return view(dtype, std::move(shape), all, keeper, std::move(origin));
  }
  const auto pages = std::make_shared<Pages>(size);
  const std::span<std::byte> all(pages->data(), size);
  fill(all);
  return with(view(dtype, std::move(shape), all, pages, std::move(origin)),
              [&](TensorData& made) { made.pages_ = pages.get(); });
}

Ref<TensorData> TensorData::later(DType dtype, std::vector<int64_t> shape,
                                  std::function<Ref<TensorData>()> produce, Origin origin) {
  DeferredWorkScope* scope = DeferredWorkScope::current();
  if (!scope || checked_elements(shape, dtype.bytes(), origin) * dtype.bytes() < kPagedBytes)
    return produce();
  const auto late = std::make_shared<Late>(std::move(produce));
  scope->add(std::shared_ptr<DeferredWork>(late, &late->work));
  return with(make<TensorData>(dtype, std::move(shape), std::span<const std::byte>(), nullptr,
                               false, std::move(origin)),
              [&](TensorData& tensor) {
                tensor.late_ = true;
                tensor.made_ = late;
              });
}

Ref<TensorData> TensorData::filled_later(DType dtype, std::vector<int64_t> shape,
                                         std::function<void(std::span<std::byte>)> fill,
                                         Origin origin) {
  const auto filled_now = [dtype, shape, fill = std::move(fill), origin] {
    return filled(dtype, shape, fill, origin);
  };
  return later(dtype, std::move(shape), filled_now, std::move(origin));
}

// From the tensor that was made, which may go then.
void TensorData::take_late() const {
  std::call_once(expand_once_, [&] {
    made_->work.finish();
    const TensorData& made = *made_->tensor;
    data_ = made.data();
    keeper_ = made.keeper_;
    pages_ = made.pages_;
    made_->tensor = nullptr;  // a thread that has just made it may hold the rest a little longer
    made_ = nullptr;
  });
}

bool TensorData::move_to(std::byte* place, std::shared_ptr<const void> keeper) {
  if (late_) take_late();
  if (!pages_ || keeper_.use_count() != 1 || !pages_->move_to(place)) return false;
  data_ = {place, data_.size()};
  keeper_ = std::move(keeper);
  pages_ = nullptr;
  return true;
}

Ref<TensorData> TensorData::splat(DType dtype, std::vector<int64_t> shape,
                                  std::vector<std::byte> element, Origin origin) {
  check(element.size() == static_cast<size_t>(dtype.bytes()), "a splat's element has another size");
  auto keeper = std::make_shared<const std::vector<std::byte>>(std::move(element));
  const std::span<const std::byte> data(*keeper);
  return make<TensorData>(dtype, std::move(shape), data, std::move(keeper), true,
                          std::move(origin));
}

std::span<const std::byte> TensorData::data() const {
  if (late_) take_late();
  if (!splat_) return data_;
  std::call_once(expand_once_, [&] {
    constexpr int64_t kMostBytes = int64_t{1} << 34;
    if (bytes() > kMostBytes)
      throw CompileError(kLimitExceeded, origin,
                         "a constant of {} bytes is too large to be written out", bytes());
    expanded_.resize(static_cast<size_t>(bytes()));
    const size_t width = data_.size();
    for (size_t at = 0; at < expanded_.size(); at += width)
      std::memcpy(expanded_.data() + at, data_.data(), width);
  });
  return expanded_;
}

template <typename T>
static T load(std::span<const std::byte> data, int64_t index) {
  T value;
  std::memcpy(&value, data.data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

int64_t TensorData::at_int(int64_t index) const {
  check(index >= 0 && index < elements_, "constant indexed out of range");
  const auto d = splat_ ? data_ : data();
  if (splat_) index = 0;
  if (dtype.is_bool()) return load<uint8_t>(d, index) != 0;
  check(dtype.is_integer() || dtype.is_string(), "at_int of a constant that has no integers");
  switch (dtype.storage().bits) {
    case 8:
      return dtype.is_int() ? int64_t{load<int8_t>(d, index)} : int64_t{load<uint8_t>(d, index)};
    case 16:
      return dtype.is_int() ? int64_t{load<int16_t>(d, index)} : int64_t{load<uint16_t>(d, index)};
    case 32:
      return dtype.is_int() ? int64_t{load<int32_t>(d, index)} : int64_t{load<uint32_t>(d, index)};
    default: return load<int64_t>(d, index);
  }
}

double TensorData::at_float(int64_t index) const {
  if (!dtype.is_float()) return static_cast<double>(at_int(index));
  check(index >= 0 && index < elements_, "constant indexed out of range");
  const auto d = splat_ ? data_ : data();
  if (splat_) index = 0;
  if (dtype == kFloat32) return load<float>(d, index);
  if (dtype == kFloat64) return load<double>(d, index);
  return narrow_float_value(dtype,
                            dtype.bits == 16 ? load<uint16_t>(d, index) : load<uint8_t>(d, index));
}

std::vector<int64_t> TensorData::to_ints() const {
  std::vector<int64_t> out(static_cast<size_t>(elements_));
  for (int64_t i = 0; i < elements_; ++i) out[static_cast<size_t>(i)] = at_int(i);
  return out;
}

const std::string& TensorData::content_hash() const {
  std::call_once(hash_once_, [&] {
    constexpr int64_t kSmall = 4096;
    const std::span<const std::byte> content = splat_ && bytes() > kSmall ? data_ : data();
    const std::string head =
        dtype.str() + str(shape) + (content.size() != static_cast<size_t>(bytes()) ? "splat" : "");
    if (dtype.is_string()) {  // numbers of texts differ from process to process
      std::string texts;
      const int64_t count = static_cast<int64_t>(content.size() / sizeof(int64_t));
      for (int64_t i = 0; i < count; ++i) {
        const std::string& text = text_of(load<int64_t>(content, i));
        texts += std::to_string(text.size()) + ":" + text;
      }
      hash_ = tenon::content_hash(head, std::as_bytes(std::span(texts)));
      return;
    }
    hash_ = tenon::content_hash(head, content);
    drop_mapped_pages(content);
  });
  return hash_;
}

bool FieldTraits<Ref<TensorData>>::equal(const Ref<TensorData>& a, const Ref<TensorData>& b) {
  if (a.same_as(b)) return true;
  if (!a || !b || a->dtype != b->dtype || a->shape != b->shape) return false;
  return a->content_hash() == b->content_hash();
}
uint64_t FieldTraits<Ref<TensorData>>::hash(const Ref<TensorData>& m) {
  if (!m) return 0;
  // Of large ones without their elements, which may not be made yet: `equal` tells them apart.
  return FieldTraits<std::string>::hash(
      m->bytes() < TensorData::kPagedBytes ? m->content_hash() : m->dtype.str() + str(m->shape));
}
std::string FieldTraits<Ref<TensorData>>::text(const Ref<TensorData>& m) {
  return m ? fmt::format("constant {} of shape {} and type {}", m->content_hash().substr(0, 8),
                         str(m->shape), m->dtype.str())
           : "no constant";
}

}  // namespace tenon
