// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <dlpack/dlpack.h>
#include <nanobind/stl/string.h>

#include "arrays.h"
#include "tenon/backend/dlpack_code.h"
#include "tenon/driver/tensors.h"
#include "tenon/script/printer.h"

namespace tenon::python {

nb::object to_python(const AttrValue& value) {
  if (const auto* flag = value.as<bool>()) return nb::bool_(*flag);
  if (const auto* number = value.as<int64_t>()) return nb::int_(*number);
  if (const auto* number = value.as<double>()) return nb::float_(*number);
  if (const auto* string = value.as<std::string>()) return text(*string);
  if (const auto* dtype = value.as<DType>()) return nb::str(dtype->str().c_str());
  if (const auto* list = value.as<AttrList>()) {
    nb::list out;
    for (const AttrValue& item : *list) out.append(to_python(item));
    return out;
  }
  if (const auto* map = value.as<AttrValue::Map>()) {
    nb::dict out;
    for (const auto& [key, item] : *map) out[key.c_str()] = to_python(item);
    return out;
  }
  if (const auto* node = value.as<NodePtr>()) return text(script::print(*node));
  return nb::none();
}

nb::dict to_python(const Attrs& attrs) {
  nb::dict out;
  for (const auto& [name, value] : attrs) out[name.c_str()] = to_python(value);
  return out;
}

AttrValue attr_of(nb::handle value) {
  if (value.is_none()) return {};
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::int_>(value)) return nb::cast<int64_t>(value);
  if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (nb::hasattr(value, "__fspath__"))
    return nb::cast<std::string>(nb::str(value.attr("__fspath__")()));
  if (nb::isinstance<nb::dict>(value)) {
    AttrValue::Map out;
    for (const auto& [name, item] : attrs_of(value)) out.emplace(name, item);
    return out;
  }
  if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
    AttrList out;
    for (const nb::handle item : nb::iter(value)) out.push_back(attr_of(item));
    return out;
  }
  if (nb::hasattr(value, "__index__")) return nb::cast<int64_t>(value.attr("__index__")());
  if (nb::hasattr(value, "__float__")) return nb::cast<double>(value.attr("__float__")());
  throw nb::type_error(("an attribute cannot be " + nb::cast<std::string>(nb::repr(value)) +
                        "; expected None, bool, int, float, str, list or dict")
                           .c_str());
}

Attrs attrs_of(nb::handle dict) {
  Attrs out;
  for (const auto& [name, value] : nb::cast<nb::dict>(dict)) {
    if (!nb::isinstance<nb::str>(name)) throw nb::type_error("names of attributes are strings");
    out.set(nb::cast<std::string>(name), attr_of(value));
  }
  return out;
}

nb::object numpy_dtype(DType dtype) {
  if (dtype.is_string()) return imported("numpy").attr("dtype")("O");
  const std::string name = dtype.str();
  const bool is_numpys = !dtype.is_narrow() && dtype.code != DType::Code::kBFloat;
  const nb::object of =
      is_numpys ? nb::object(nb::str(name.c_str())) : imported("ml_dtypes").attr(name.c_str());
  return imported("numpy").attr("dtype")(of);
}

nb::object to_numpy(const Ref<TensorData>& data) {
  if (data->dtype.is_string()) throw nb::type_error("constants of strings have no numpy array");
  const auto bytes = data->data();
  const nb::object memory = memory_view(const_cast<std::byte*>(bytes.data()), data->bytes(),
                                        std::make_shared<Ref<TensorData>>(data), Access::kRead);
  return array_in(memory, numpy_dtype(data->dtype), data->shape);
}

Ref<TensorData> tensor_of(nb::handle array, DType like) {
  ArrayArgument argument;
  argument.read(array, like.is_void() ? nb::object() : numpy_dtype(like));
  const DLTensor& tensor = argument.tensor();
  const runtime::Tensor copy = runtime::Tensor::copy_of(tensor);
  const DType dtype = argument.dtype();
  return from_runtime(copy, dtype);
}

Ref<TensorData> shared_tensor_of(const nb::object& array) {
  const std::shared_ptr<ArrayArgument> view(new ArrayArgument, [](ArrayArgument* held) {
    const nb::gil_scoped_acquire locked;
    delete held;
  });
  view->read(array, {});
  const DLTensor& tensor = view->tensor();
  const DType dtype = view->dtype();
  if (dtype.is_string() || tensor.device.device_type != kDLCPU) return tensor_of(array);
  const std::vector<int64_t> shape(tensor.shape, tensor.shape + tensor.ndim);
  const auto* data = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  const int64_t bytes = checked_elements(shape, dtype.bytes()) * dtype.bytes();
  return TensorData::view(dtype, shape, {data, static_cast<size_t>(bytes)}, view);
}

}  // namespace tenon::python
