// SPDX-License-Identifier: Apache-2.0
// Attributes and tensors as Python's values, and back.
#pragma once

#include "common.h"
#include "tenon/ir/attrs.h"
#include "tenon/ir/constant.h"
#include "tenon/runtime/tensor.h"

namespace tenon::python {

/// None, bool, int, float, str, list, dict; a dtype is its name, a node its text.
nb::object to_python(const AttrValue& value);
nb::dict to_python(const Attrs& attrs);

/// \throws nb::type_error at what no attribute can be.
AttrValue attr_of(nb::handle value);
Attrs attrs_of(nb::handle dict);

/// A numpy array of the elements, which it shares and keeps alive; read-only.
nb::object to_numpy(const Ref<TensorData>& data);
/// The elements of anything that is an array (buffers, DLPack, nested lists of numbers).
/// \param like  the type that Python's own numbers become; void: numpy's.
Ref<TensorData> tensor_of(nb::handle array, DType like = kVoid);
/// The same without a copy of a packed array, which is held as long as the constant lives. Nobody may
/// write to it meanwhile.
Ref<TensorData> shared_tensor_of(const nb::object& array);

/// numpy's type of elements; of types that numpy lacks, ml_dtypes'. Strings are objects.
nb::object numpy_dtype(DType dtype);

}  // namespace tenon::python
