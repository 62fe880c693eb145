#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a call from Python costs: import, first call, a call of tiny networks, against the C API and ONNX Runtime's Python API.

    PYTHONPATH=build/python PYTHON [ONNX Runtime installed] bench/python_calls.py [MODEL.onnx ...]

Without models: a tiny network of one product and a sum, and the digits. Times are the least of many rounds, one thread.
"""

import ctypes
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import tenon

ROOT = Path(__file__).parents[1]
ROUNDS, CALLS = 30, 200


def least(call):
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, (time.perf_counter() - begin) / CALLS)
    return best * 1e6


def tiny():
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])],
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
        [
            helper.make_tensor("w", TensorProto.FLOAT, [8, 4], np.ones(32, np.float32).tobytes(), raw=True),
            helper.make_tensor("b", TensorProto.FLOAT, [4], np.ones(4, np.float32).tobytes(), raw=True),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


C_LOOP = r"""
#include <time.h>
#include "tenon/runtime/tenon_runtime.h"
double least(const char* path, const DLTensor** in, int n, DLTensor** out, int m) {
  TenonModel* model = 0;
  if (tenon_model_load(path, 0, &model)) return -1;
  tenon_model_set_threads(model, 1);
  double best = 1e9;
  for (int round = 0; round < 200; ++round) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < 200; ++i)
      if (tenon_model_run(model, in, n, out, m)) return -1;
    clock_gettime(CLOCK_MONOTONIC, &b);
    const double each = ((b.tv_sec - a.tv_sec) + 1e-9 * (b.tv_nsec - a.tv_nsec)) / 200;
    if (each < best) best = each;
  }
  tenon_model_free(model);
  return best * 1e6;
}
"""


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def c_api(library, path, inputs, outputs):
    def tensors(arrays):
        out = []
        for array in arrays:
            dtype = {"f": 2, "i": 0, "u": 1}[array.dtype.kind]
            shape = (ctypes.c_int64 * array.ndim)(*array.shape)
            bits = (ctypes.c_uint8 * 4)(dtype, array.itemsize * 8, 1, 0)
            out.append(DLTensor(array.ctypes.data, (ctypes.c_int32 * 2)(1, 0), array.ndim, bits, shape, None, 0))
        return out, (ctypes.POINTER(DLTensor) * len(out))(*map(ctypes.pointer, out))

    kept_in, given = tensors(inputs)
    kept_out, taken = tensors(outputs)
    library.least.restype = ctypes.c_double
    return library.least(str(path).encode(), given, len(inputs), taken, len(outputs))


def main():
    command = "import time; t = time.perf_counter(); import tenon; a = time.perf_counter(); tenon.IRModule; b = time.perf_counter(); print((a - t) * 1e3, (b - a) * 1e3)"
    shown = [
        [float(word) for word in subprocess.run([sys.executable, "-c", command], capture_output=True, text=True).stdout.split()]
        for _ in range(7)
    ]
    print(f"import tenon {min(row[0] for row in shown):.2f} ms, then the compiler {min(row[1] for row in shown):.1f} ms")
    try:
        import onnxruntime
    except ImportError:
        onnxruntime = None
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "loop.c")
        source.write_text(C_LOOP)
        build = ROOT / "build/src"
        shared = Path(folder, "loop.so")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-I", ROOT / "src", source, "-o", shared, "-L", build, "-ltenon", f"-Wl,-rpath,{build}"], check=True)
        library = ctypes.CDLL(str(shared))
        models = [(Path(name).stem, Path(name).read_bytes()) for name in sys.argv[1:]] or [
            ("tiny", tiny().SerializeToString()),
            ("digits_b1", (ROOT / "examples/digits/digits_b1.onnx").read_bytes()),
        ]
        for name, contents in models:
            program = tenon.compile(contents, name=name, threads=1)
            random = np.random.default_rng(0)
            inputs = [random.random([4 if isinstance(d, str) else d for d in port.shape]).astype(port.dtype) for port in program.inputs]
            begin = time.perf_counter()
            result = program(*inputs)
            first = (time.perf_counter() - begin) * 1e3
            outputs = [np.copy(array) for array in (result if isinstance(result, tuple) else (result,))]
            path = Path(folder, name + ".so")
            program.save(path)
            c = c_api(library, path, inputs, outputs)
            ours, into = least(lambda: program(*inputs)), least(lambda: program(*inputs, out=outputs))
            line = f"{name}: first call {first:.2f} ms; C API {c:.2f} us, Python {ours:.2f} us (+{ours - c:.2f}), with out= {into:.2f} us (+{into - c:.2f})"
            if onnxruntime:
                options = onnxruntime.SessionOptions()
                options.intra_op_num_threads = options.inter_op_num_threads = 1
                session = onnxruntime.InferenceSession(contents, options, providers=["CPUExecutionProvider"])
                feed = {port.name: array for port, array in zip(program.inputs, inputs)}
                line += f"; ONNX Runtime {least(lambda: session.run(None, feed)):.2f} us"
            print(line)


if __name__ == "__main__":
    main()
