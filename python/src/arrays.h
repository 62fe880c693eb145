// SPDX-License-Identifier: Apache-2.0
// Arrays at the border: anything that speaks the buffer protocol or DLPack in, numpy arrays out,
// without copies where layout allows it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common.h"
#include "tenon/runtime/tensor.h"
#include "tenon/support/dtype.h"

struct DLManagedTensorVersioned;

namespace tenon::python {

enum class Access : bool { kRead, kWrite };

/// An argument of a program: a view of somebody's array, held while this lives (destroyed with the
/// interpreter's lock).
class ArrayArgument {
 public:
  ArrayArgument() = default;
  ~ArrayArgument() { release(); }
  ArrayArgument(const ArrayArgument&) = delete;
  ArrayArgument& operator=(const ArrayArgument&) = delete;

  /// Of an array that is not packed, or of texts, a copy is taken.
  /// \param like  numpy's type for numbers and lists of Python's own; may be null: numpy chooses.
  /// \throws nb::python_error, nb::type_error at what is no array.
  void read(nb::handle array, const nb::object& like);
  /// A view to be written. \throws nb::type_error at what is no writable packed array.
  void write(nb::handle array);

  const DLTensor& tensor() const { return tensor_; }
  DLTensor& tensor() { return tensor_; }
  DType dtype() const;

 private:
  bool view_buffer(nb::handle array, Access access);
  bool view_dlpack(nb::handle array);
  void view_array(nb::handle numpy_array, DLDataType dtype);
  void read_texts(nb::handle numpy_array);
  void take_shape(const Py_ssize_t* shape, const Py_ssize_t* strides, int ndim, Py_ssize_t size);
  void pack();
  void release();

  static constexpr int kMostDims = 64;  // as numpy
  static constexpr int kFewDims = 8;
  DLTensor tensor_{};
  bool has_buffer_ = false;
  Py_buffer buffer_{};
  nb::object kept_;  // what was made for the view
  DLManagedTensor* managed_ = nullptr;
  DLManagedTensorVersioned* versioned_ = nullptr;
  bool is_read_only_ = false;
  std::optional<runtime::Tensor> copy_;
  int64_t few_[2 * kFewDims];
  std::vector<int64_t> many_;  // shape and strides of higher rank
};

/// An object with the buffer protocol over memory that `owner` keeps alive.
nb::object memory_view(void* data, int64_t bytes, std::shared_ptr<void> owner, Access access);

/// numpy.ndarray over such an object.
nb::object array_in(const nb::object& memory, const nb::object& numpy_dtype,
                    std::span<const int64_t> shape);

/// Of a tensor of the runtime, which is shared; of texts an array of str.
nb::object to_numpy(const runtime::Tensor& tensor, const nb::object& numpy_dtype);

void bind_arrays(nb::module_& m);

}  // namespace tenon::python
