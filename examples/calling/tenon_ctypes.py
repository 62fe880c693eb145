"""Compiled programs from Python, by ctypes alone.

    model = Model("digits.so")
    (scores,) = model.run(images)       # numpy arrays in, numpy arrays out

Without numpy, an input is (array.array or other buffer, shape), and an output (array.array, shape).
"""

import array
import ctypes
import ctypes.util

try:
    import numpy
except ImportError:
    numpy = None


class Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    """DLPack's DLTensor."""

    _fields_ = [("data", ctypes.c_void_p), ("device", Device), ("ndim", ctypes.c_int32), ("dtype", DataType),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class TensorInfo(ctypes.Structure):
    """TenonTensorInfo of tenon/runtime/abi.h."""

    _fields_ = [("name", ctypes.c_char_p), ("dims", ctypes.POINTER(ctypes.c_int64)), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("alignment", ctypes.c_int32), ("flags", ctypes.c_uint32)]


class Program(ctypes.Structure):
    """The head of TenonProgram of tenon/runtime/abi.h."""

    _fields_ = [("abi_version", ctypes.c_uint32), ("struct_size", ctypes.c_uint32), ("name", ctypes.c_char_p),
                ("input_count", ctypes.c_int32), ("output_count", ctypes.c_int32),
                ("inputs", ctypes.POINTER(TensorInfo)), ("outputs", ctypes.POINTER(TensorInfo))]


# (code, bits) of an element type: numpy's name, and array's letter where it has one.
TYPES = {(0, 8): ("int8", "b"), (0, 16): ("int16", "h"), (0, 32): ("int32", "i"), (0, 64): ("int64", "q"),
         (1, 8): ("uint8", "B"), (1, 16): ("uint16", "H"), (1, 32): ("uint32", "I"), (1, 64): ("uint64", "Q"),
         (2, 16): ("float16", None), (2, 32): ("float32", "f"), (2, 64): ("float64", "d"), (6, 8): ("bool", "B")}


def runtime():
    """libtenon.so, where the system's linker finds it (LD_LIBRARY_PATH, ldconfig)."""
    library = ctypes.CDLL(ctypes.util.find_library("tenon") or "libtenon.so.0")
    library.tenon_last_error.restype = ctypes.c_char_p
    library.tenon_model_program.restype = ctypes.POINTER(Program)
    library.tenon_model_program.argtypes = [ctypes.c_void_p]
    library.tenon_model_free.argtypes = [ctypes.c_void_p]
    return library


class Model:
    def __init__(self, path):
        self.runtime = runtime()
        self.handle = ctypes.c_void_p()
        self._must(self.runtime.tenon_model_load(path.encode(), None, ctypes.byref(self.handle)))
        program = self.runtime.tenon_model_program(self.handle).contents
        self.inputs = [program.inputs[i] for i in range(program.input_count)]
        self.outputs = [program.outputs[i] for i in range(program.output_count)]

    def __del__(self):
        if getattr(self, "handle", None):
            self.runtime.tenon_model_free(self.handle)

    def run(self, *inputs):
        """One output for each that the program declares."""
        if len(inputs) != len(self.inputs):
            raise ValueError(f"{len(inputs)} inputs; the program takes {len(self.inputs)}")
        kept = [self._tensor(*self._input(value, info)) for value, info in zip(inputs, self.inputs)]
        taken = (ctypes.POINTER(Tensor) * len(kept))(*[ctypes.pointer(tensor) for tensor, _ in kept])
        dims = (ctypes.c_int64 * max(1, sum(info.ndim for info in self.outputs)))()
        self._must(self.runtime.tenon_model_shapes(self.handle, taken, len(kept), dims, None))
        results, made, at = [], [], 0
        for info in self.outputs:
            shape = list(dims[at:at + info.ndim])
            at += info.ndim
            results.append(self._empty(shape, info))
            made.append(self._tensor(results[-1], shape, info))
        given = (ctypes.POINTER(Tensor) * len(made))(*[ctypes.pointer(tensor) for tensor, _ in made])
        self._must(self.runtime.tenon_model_run(self.handle, taken, len(kept), given, len(made)))
        # A run makes an output smaller whose extent depends on the data.
        shapes = [tuple(tensor.shape[d] for d in range(tensor.ndim)) for tensor, _ in made]
        if numpy is None:
            return list(zip(results, shapes))
        return [result.reshape(-1)[:_count(shape)].reshape(shape) for result, shape in zip(results, shapes)]

    def _must(self, code):
        if code != 0:
            raise RuntimeError(self.runtime.tenon_last_error().decode())

    @staticmethod
    def _input(value, info):
        if numpy is None:
            data, shape = value
            return data, list(shape), info
        value = numpy.ascontiguousarray(value, dtype=TYPES[info.code, info.bits][0])
        return value, list(value.shape), info

    @staticmethod
    def _empty(shape, info):
        name, letter = TYPES[info.code, info.bits]
        if numpy is not None:
            return numpy.empty(shape, dtype=name)
        return array.array(letter, bytes(_count(shape) * info.bits // 8))

    @staticmethod
    def _tensor(data, shape, info):
        """A Tensor over the memory of `data`, and what must live as long."""
        if numpy is None:
            address, _ = data.buffer_info()
        else:
            address = data.ctypes.data
        dims = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        tensor = Tensor(address, Device(1, 0), len(shape), DataType(info.code, info.bits, info.lanes), dims, None, 0)
        return tensor, (data, dims)


def _count(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count
