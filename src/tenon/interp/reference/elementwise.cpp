// SPDX-License-Identifier: Apache-2.0
#include "tenon/interp/reference/elementwise.h"

#include <cmath>
#include <cstring>

#include "tenon/interp/scalar.h"

namespace tenon::interp {

namespace {

using graph::Call;

enum class Arithmetic : uint8_t { kNone, kAdd, kSub, kMul, kDiv };

Arithmetic arithmetic_of(const Call& call) {
  if (call.is("add")) return Arithmetic::kAdd;
  if (call.is("subtract")) return Arithmetic::kSub;
  if (call.is("multiply")) return Arithmetic::kMul;
  if (call.is("divide")) return Arithmetic::kDiv;
  return Arithmetic::kNone;
}

// Sums, differences, products and quotients of floats, computed in double and rounded once more as
// the interpreter does, are those that the hardware gives: double has more than twice the digits.
template <typename T>
T apply(Arithmetic op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (op) {
      case Arithmetic::kAdd: return a + b;
      case Arithmetic::kSub: return a - b;
      case Arithmetic::kMul: return a * b;
      default: return a / b;
    }
  } else {
    using U = std::make_unsigned_t<T>;  // wraps
    switch (op) {
      case Arithmetic::kAdd: return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
      case Arithmetic::kSub: return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
      default: return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    }
  }
}

// The distance in `x` between neighbours along each dimension of `shape`; 0 where it repeats.
std::vector<int64_t> broadcast_strides(const TensorData& x, const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 0);
  int64_t stride = 1;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    const size_t from = x.shape.size() - 1 - i, to = shape.size() - 1 - i;
    if (x.shape[from] != 1) strides[to] = stride;
    stride *= x.shape[from];
  }
  return strides;
}

// Mapped files hold elements at any address.
template <typename T>
T load(const std::byte* data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void binary_loop(Arithmetic op, const TensorData& a, const TensorData& b,
                 const std::vector<int64_t>& shape, T* out) {
  const std::byte *x = a.data().data(), *y = b.data().data();
  const std::vector<int64_t> sx = broadcast_strides(a, shape), sy = broadcast_strides(b, shape);
  constexpr auto size = static_cast<int64_t>(sizeof(T));
  const int64_t row = shape.empty() ? 1 : shape.back();
  const int64_t step_x = shape.empty() ? 0 : sx.back(), step_y = shape.empty() ? 0 : sy.back();
  const int64_t rows = row == 0 ? 0 : checked_elements(shape) / row;
  std::vector<int64_t> at(shape.empty() ? 0 : shape.size() - 1, 0);
  const auto loop = [&](auto operation) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < row; ++i)
        out[i] = operation(load<T>(x, i * step_x), load<T>(y, i * step_y));
      out += row;
      for (size_t d = at.size(); d-- > 0;) {
        x += sx[d] * size;
        y += sy[d] * size;
        if (++at[d] < shape[d]) break;
        x -= sx[d] * shape[d] * size;
        y -= sy[d] * shape[d] * size;
        at[d] = 0;
      }
    }
  };
  switch (op) {
    case Arithmetic::kAdd: return loop([](T p, T q) { return apply(Arithmetic::kAdd, p, q); });
    case Arithmetic::kSub: return loop([](T p, T q) { return apply(Arithmetic::kSub, p, q); });
    case Arithmetic::kMul: return loop([](T p, T q) { return apply(Arithmetic::kMul, p, q); });
    default: return loop([](T p, T q) { return apply(Arithmetic::kDiv, p, q); });
  }
}

template <typename T>
Ref<TensorData> binary_of(Arithmetic op, const Ref<TensorData>& a, const Ref<TensorData>& b,
                          std::vector<int64_t> shape, const Origin& origin) {
  if (a->is_splat() && b->is_splat()) {
    T x, y;
    std::memcpy(&x, a->splat_element().data(), sizeof(T));
    std::memcpy(&y, b->splat_element().data(), sizeof(T));
    const T value = apply(op, x, y);
    std::vector<std::byte> element(sizeof(T));
    std::memcpy(element.data(), &value, sizeof(T));
    return TensorData::splat(a->dtype, std::move(shape), std::move(element), origin);
  }
  return TensorData::filled_later(
      a->dtype, shape,
      [op, a, b, shape](std::span<std::byte> bytes) {
        binary_loop(op, *a, *b, shape, reinterpret_cast<T*>(bytes.data()));
      },
      origin);
}

template <typename T, typename F>
Ref<TensorData> unary_of(const Ref<TensorData>& x, F operation, const Origin& origin) {
  if (x->is_splat()) {
    T value;
    std::memcpy(&value, x->splat_element().data(), sizeof(T));
    value = operation(value);
    std::vector<std::byte> element(sizeof(T));
    std::memcpy(element.data(), &value, sizeof(T));
    return TensorData::splat(x->dtype, x->shape, std::move(element), origin);
  }
  return TensorData::filled_later(
      x->dtype, x->shape,
      [x, operation](std::span<std::byte> bytes) {
        const auto from = x->data();
        T* to = reinterpret_cast<T*>(bytes.data());
        for (int64_t i = 0; i < x->elements(); ++i) to[i] = operation(load<T>(from.data(), i));
      },
      origin);
}

Ref<TensorData> cast_of(const Ref<TensorData>& x, DType dtype, const Origin& origin) {
  const auto from_bytes = static_cast<size_t>(x->dtype.bytes());
  const auto to_bytes = static_cast<size_t>(dtype.bytes());
  const auto convert = [dtype, from = x->dtype](std::byte* to, const std::byte* element) {
    write_element(dtype, to, apply_cast(dtype, from, read_element(from, element)));
  };
  if (x->is_splat()) {
    std::vector<std::byte> element(to_bytes);
    convert(element.data(), x->splat_element().data());
    return TensorData::splat(dtype, x->shape, std::move(element), origin);
  }
  return TensorData::filled_later(
      dtype, x->shape,
      [=](std::span<std::byte> bytes) {
        const auto data = x->data();
        const auto count = static_cast<size_t>(x->elements());
        for (size_t i = 0; i < count; ++i)
          convert(bytes.data() + i * to_bytes, data.data() + i * from_bytes);
      },
      origin);
}

Ref<TensorData> constant_arg(const Call& call, size_t i) {
  if (i >= call.args.size()) return nullptr;
  const auto* constant = call.args[i].as<graph::Constant>();
  return constant ? constant->data : nullptr;
}

}  // namespace

Ref<TensorData> elementwise_reference(const Call& call) {
  const Ref<TensorData> x = constant_arg(call, 0);
  if (!x) return nullptr;
  const Arithmetic op = arithmetic_of(call);
  if (op != Arithmetic::kNone) {
    const Ref<TensorData> y = constant_arg(call, 1);
    if (!y || x->dtype != y->dtype) return nullptr;
    const auto shape = graph::type_of(ref_to(&call)).as<graph::TensorType>()->static_shape();
    if (!shape) return nullptr;
    if (x->dtype == kFloat32) return binary_of<float>(op, x, y, *shape, call.origin);
    if (x->dtype == kFloat64) return binary_of<double>(op, x, y, *shape, call.origin);
    if (op == Arithmetic::kDiv) return nullptr;  // a division by zero is reported with its place
    if (x->dtype == kInt64) return binary_of<int64_t>(op, x, y, *shape, call.origin);
    if (x->dtype == kInt32) return binary_of<int32_t>(op, x, y, *shape, call.origin);
    return nullptr;
  }
  if (call.is("sqrt")) {
    if (x->dtype == kFloat32)
      return unary_of<float>(x, [](float v) { return std::sqrt(v); }, call.origin);
    if (x->dtype == kFloat64)
      return unary_of<double>(x, [](double v) { return std::sqrt(v); }, call.origin);
    return nullptr;
  }
  if (call.is("astype")) {
    const auto dtype = call.attrs.get<DType>("dtype");
    if (dtype && dtype->is_scalar() && x->dtype.is_scalar()) return cast_of(x, *dtype, call.origin);
  }
  return nullptr;
}

}  // namespace tenon::interp
