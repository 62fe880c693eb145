// SPDX-License-Identifier: Apache-2.0
#include "arrays.h"

#include <dlpack/dlpack.h>
#include <nanobind/stl/string.h>

#include <cstring>

#include "tenon/backend/dlpack_code.h"
#include "tenon/runtime/abi.h"
#include "values.h"

// DLPack 1.0's, which older dlpack.h lack.
struct DLManagedTensorVersioned {
  struct {
    uint32_t major, minor;
  } version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};
static constexpr uint64_t kDLPackReadOnly = 1;

namespace tenon::python {

// The element type of a format of the buffer protocol; code 255 for others.
static DLDataType type_of_format(const char* format, Py_ssize_t itemsize) {
  constexpr DLDataType kOther{255, 0, 0};
  if (format == nullptr) return {TENON_DTYPE_UINT, 8, 1};
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (format[0] == 0 || format[1] != 0) return kOther;
  const auto bits = static_cast<uint8_t>(8 * itemsize);
  switch (*format) {
    case '?': return {TENON_DTYPE_BOOL, 8, 1};
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n': return {TENON_DTYPE_INT, bits, 1};
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N': return {TENON_DTYPE_UINT, bits, 1};
    case 'e':
    case 'f':
    case 'd': return {TENON_DTYPE_FLOAT, bits, 1};
    default: return kOther;
  }
}

void ArrayArgument::release() {
  if (has_buffer_) PyBuffer_Release(&buffer_);
  if (managed_ && managed_->deleter) managed_->deleter(managed_);
  if (versioned_ && versioned_->deleter) versioned_->deleter(versioned_);
  has_buffer_ = false;
  managed_ = nullptr;
  versioned_ = nullptr;
}

DType ArrayArgument::dtype() const {
  if (tensor_.dtype.code == TENON_DTYPE_STRING) return kString;
  return {backend::code_of_dlpack(tensor_.dtype.code), tensor_.dtype.bits, tensor_.dtype.lanes};
}

// Strides in elements; false where they are no whole number of these.
void ArrayArgument::take_shape(const Py_ssize_t* shape, const Py_ssize_t* strides, int ndim,
                               Py_ssize_t size) {
  int64_t* at = few_;
  if (ndim > kFewDims) {
    many_.resize(2 * static_cast<size_t>(ndim));
    at = many_.data();
  }
  tensor_.ndim = ndim;
  tensor_.shape = at;
  tensor_.strides = at + ndim;
  for (int i = 0; i < ndim; ++i) {
    tensor_.shape[i] = shape[i];
    tensor_.strides[i] = strides[i] / size;
  }
}

bool ArrayArgument::view_buffer(nb::handle array, Access access) {
  const int flags = PyBUF_STRIDES | PyBUF_FORMAT | (access == Access::kWrite ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(array.ptr(), &buffer_, flags) != 0) {
    if (access == Access::kWrite) throw nb::python_error();
    PyErr_Clear();  // elements that the protocol has no format for
    return false;
  }
  has_buffer_ = true;
  tensor_.dtype = type_of_format(buffer_.format, buffer_.itemsize);
  if (tensor_.dtype.code == 255) {
    release();
    return false;
  }
  tensor_.data = buffer_.buf;
  tensor_.device = {kDLCPU, 0};
  tensor_.byte_offset = 0;
  for (int i = 0; i < buffer_.ndim; ++i)
    if (buffer_.strides[i] % buffer_.itemsize != 0) {
      // A field of records: numpy packs it.
      release();
      kept_ = imported("numpy").attr("ascontiguousarray")(array);
      return view_buffer(kept_, access);
    }
  take_shape(buffer_.shape, buffer_.strides, buffer_.ndim, buffer_.itemsize);
  return true;
}

bool ArrayArgument::view_dlpack(nb::handle array) {
  static PyObject* const kName = PyUnicode_InternFromString("__dlpack__");
  const nb::object method = nb::steal(PyObject_GetAttr(array.ptr(), kName));
  if (!method.is_valid()) {
    PyErr_Clear();
    return false;
  }
  const nb::object capsule = method();
  if (auto* managed =
          static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"))) {
    PyCapsule_SetName(capsule.ptr(), "used_dltensor");
    managed_ = managed;
    tensor_ = managed->dl_tensor;
    return true;
  }
  PyErr_Clear();
  if (auto* versioned = static_cast<DLManagedTensorVersioned*>(
          PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"))) {
    PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
    versioned_ = versioned;
    tensor_ = versioned->dl_tensor;
    is_read_only_ = (versioned->flags & kDLPackReadOnly) != 0;
    return true;
  }
  throw nb::python_error();
}

// An array of a type that numpy has from elsewhere, through its bytes.
void ArrayArgument::view_array(nb::handle numpy_array, DLDataType dtype) {
  const nb::object packed = imported("numpy").attr("ascontiguousarray")(numpy_array);
  const nb::object shape = packed.attr("shape");
  kept_ = packed.attr("view")(dtype.bits > 8 ? "uint16" : "uint8");
  if (!view_buffer(kept_, Access::kRead)) throw nb::type_error("an array without a buffer");
  tensor_.dtype = dtype;
}

void ArrayArgument::read_texts(nb::handle numpy_array) {
  const auto shape = nb::cast<std::vector<int64_t>>(nb::list(numpy_array.attr("shape")));
  const nb::list items = nb::cast<nb::list>(numpy_array.attr("ravel")().attr("tolist")());
  std::vector<std::string_view> texts;
  for (const nb::handle item : items) {
    Py_ssize_t size = 0;
    const char* text =
        PyUnicode_Check(item.ptr()) ? PyUnicode_AsUTF8AndSize(item.ptr(), &size) : nullptr;
    if (!text && PyBytes_Check(item.ptr())) {
      const auto bytes = nb::borrow<nb::bytes>(item);
      text = bytes.c_str();
      size = static_cast<Py_ssize_t>(bytes.size());
    }
    if (!text) {
      PyErr_Clear();
      throw nb::type_error(
          ("an array of objects holds " + nb::cast<std::string>(nb::repr(item)) + "; expected str")
              .c_str());
    }
    texts.emplace_back(text, static_cast<size_t>(size));
  }
  copy_ = runtime::Tensor::of_texts(shape, texts);
  tensor_ = copy_->view();
}

void ArrayArgument::pack() {
  if (tensor_.strides == nullptr || runtime::is_packed(tensor_)) return;
  if (tensor_.device.device_type != kDLCPU) return;  // the program says what is wrong
  copy_ = runtime::Tensor::copy_of(tensor_);
  tensor_ = copy_->view();
}

void ArrayArgument::read(nb::handle array, const nb::object& like) {
  if (PyObject_CheckBuffer(array.ptr()) && view_buffer(array, Access::kRead)) return pack();
  if (nb::hasattr(array, "dtype") && nb::hasattr(array.attr("dtype"), "kind")) {
    // numpy's, of elements that buffers have no format for.
    const std::string kind = nb::cast<std::string>(nb::str(array.attr("dtype").attr("kind")));
    if (kind == "O" || kind == "U" || kind == "S" || kind == "T") return read_texts(array);
    const std::string name = nb::cast<std::string>(nb::str(array.attr("dtype").attr("name")));
    if (const auto dtype = DType::parse(name); dtype && dtype->bytes() > 0)
      return view_array(array, {backend::dlpack_code(*dtype), dtype->bits, 1});
  }
  if (view_dlpack(array)) return pack();
  kept_ = imported("numpy").attr("asarray")(array, like.is_valid() ? like : nb::none());
  const std::string kind = nb::cast<std::string>(nb::str(kept_.attr("dtype").attr("kind")));
  if (kind == "O" || kind == "U" || kind == "S") return read_texts(kept_);
  if (PyObject_CheckBuffer(kept_.ptr()) && view_buffer(kept_, Access::kRead)) return pack();
  const nb::object converted = kept_;
  read(converted, {});
}

void ArrayArgument::write(nb::handle array) {
  const bool is_buffer = PyObject_CheckBuffer(array.ptr()) != 0;
  if (is_buffer ? !view_buffer(array, Access::kWrite) : !view_dlpack(array))
    throw nb::type_error(("`out` is " +
                          nb::cast<std::string>(nb::repr(
                              nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(array.ptr()))))) +
                          " of elements that cannot be written; expected a writable array")
                             .c_str());
  if (is_read_only_) throw nb::type_error("`out` is read-only");
  if (kept_.is_valid()) throw nb::type_error("`out` is not packed");
}

namespace {

// The object over memory; made for each output, so it is a plain type of CPython's.
struct MemoryObject {
  PyObject_HEAD void* data;
  Py_ssize_t bytes;
  bool is_read_only;
  std::shared_ptr<void> owner;
};

PyTypeObject* memory_type = nullptr;

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  auto* memory = reinterpret_cast<MemoryObject*>(self);
  return PyBuffer_FillInfo(view, self, memory->data, memory->bytes, memory->is_read_only, flags);
}

void destroy(PyObject* self) {
  reinterpret_cast<MemoryObject*>(self)->owner.~shared_ptr();
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyType_Slot memory_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {Py_tp_doc, const_cast<char*>("Memory of a tensor of Tenon's.")},
    {0, nullptr},
};
PyType_Spec memory_spec = {"tenon._core.Memory", sizeof(MemoryObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, memory_slots};

}  // namespace

void bind_arrays(nb::module_& m) {
  memory_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&memory_spec));
  if (!memory_type) throw nb::python_error();
  m.attr("Memory") = nb::borrow(reinterpret_cast<PyObject*>(memory_type));
}

nb::object memory_view(void* data, int64_t bytes, std::shared_ptr<void> owner, Access access) {
  PyObject* self = PyType_GenericAlloc(memory_type, 0);
  if (!self) throw nb::python_error();
  auto* memory = reinterpret_cast<MemoryObject*>(self);
  memory->data = data;
  memory->bytes = bytes;
  memory->is_read_only = access == Access::kRead;
  new (&memory->owner) std::shared_ptr<void>(std::move(owner));
  return nb::steal(self);
}

static nb::object shape_tuple(std::span<const int64_t> shape) {
  const nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (size_t i = 0; i < shape.size(); ++i)
    NB_TUPLE_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(shape[i]));
  return tuple;
}

nb::object array_in(const nb::object& memory, const nb::object& numpy_dtype,
                    std::span<const int64_t> shape) {
  static auto* const kArray = new nb::object(imported("numpy").attr("ndarray"));
  const nb::object dims = shape_tuple(shape);
  PyObject* arguments[] = {nullptr, dims.ptr(), numpy_dtype.ptr(), memory.ptr()};
  PyObject* array = PyObject_Vectorcall(kArray->ptr(), arguments + 1,
                                        3 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  if (!array) throw nb::python_error();
  return nb::steal(array);
}

nb::object to_numpy(const runtime::Tensor& tensor, const nb::object& numpy_dtype) {
  if (tensor.dtype().code == TENON_DTYPE_STRING) {
    nb::list items;
    for (const std::string& text : tensor.texts()) items.append(nb::str(text.c_str(), text.size()));
    const nb::object flat = imported("numpy").attr("array")(items, nb::arg("dtype") = numpy_dtype);
    return flat.attr("reshape")(shape_tuple(tensor.shape()));
  }
  auto owner = std::make_shared<runtime::Tensor>(tensor);
  void* data = owner->data();
  const int64_t bytes = owner->bytes();
  return array_in(memory_view(data, bytes, std::move(owner), Access::kWrite), numpy_dtype,
                  tensor.shape());
}

}  // namespace tenon::python
