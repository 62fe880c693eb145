#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a call from Python costs: import, first call, a call of tiny networks, against the C API and ONNX Runtime's Python API.

    PYTHONPATH=build/python PYTHON [ONNX Runtime installed] bench/python_calls.py [MODEL.onnx ...]

A tiny network of one product and a sum, the digits, and the models that are named (build/models/tiny_*/model.onnx of `make models`).
Times are the least of rounds that alternate between what is compared, one thread each.
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
ROUNDS, SECONDS = 40, 0.005  # of a round of one of them


def repeated(call):
    """How long so many calls take."""

    def run(count):
        repeat = range(count)
        begin = time.perf_counter()
        for _ in repeat:
            call()
        return time.perf_counter() - begin

    return run


def least(runs):
    """Microseconds of a call of each, in turn."""
    counts = [max(1, int(SECONDS / (run(20) / 20))) for run in runs]
    best = [float("inf")] * len(runs)
    for _ in range(ROUNDS):
        for i, run in enumerate(runs):
            best[i] = min(best[i], run(counts[i]) / counts[i])
    return [seconds * 1e6 for seconds in best]


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return "an unknown processor"


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
TenonModel* open_model(const char* path) {
  TenonModel* model = 0;
  if (tenon_model_load(path, 0, &model)) return 0;
  tenon_model_set_threads(model, 1);
  return model;
}
void close_model(TenonModel* model) { tenon_model_free(model); }
double run_model(TenonModel* model, const DLTensor** in, int n, DLTensor** out, int m, int count) {
  struct timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  for (int i = 0; i < count; ++i)
    if (tenon_model_run(model, in, n, out, m)) return -1;
  clock_gettime(CLOCK_MONOTONIC, &b);
  return (b.tv_sec - a.tv_sec) + 1e-9 * (b.tv_nsec - a.tv_nsec);
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


class CModel:
    """A saved program, called by the C API."""

    def __init__(self, library, path, inputs, outputs):
        self.library = library
        library.open_model.restype = ctypes.c_void_p
        library.run_model.restype = ctypes.c_double
        self.model = ctypes.c_void_p(library.open_model(str(path).encode()))
        self.kept = inputs, outputs
        self.given, self.taken = self.pointers(inputs), self.pointers(outputs)

    @staticmethod
    def pointers(arrays):
        out = []
        for array in arrays:
            dtype = {"f": 2, "i": 0, "u": 1}[array.dtype.kind]
            shape = (ctypes.c_int64 * array.ndim)(*array.shape)
            bits = (ctypes.c_uint8 * 4)(dtype, array.itemsize * 8, 1, 0)
            out.append(DLTensor(array.ctypes.data, (ctypes.c_int32 * 2)(1, 0), array.ndim, bits, shape, None, 0))
        return (ctypes.POINTER(DLTensor) * len(out))(*map(ctypes.pointer, out))

    def run(self, count):
        seconds = self.library.run_model(self.model, self.given, len(self.given), self.taken, len(self.taken), count)
        assert seconds > 0, "the C API failed"
        return seconds

    def close(self):
        self.library.close_model(self.model)


def of_onnx_runtime(contents, feed):
    """A function that runs the network; None where ONNX Runtime is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(contents, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feed)


def compare(name, contents, library, folder):
    program = tenon.compile(contents, name=name, threads=1)
    random = np.random.default_rng(0)
    inputs = [random.random([4 if isinstance(d, str) else d for d in port.shape]).astype(port.dtype) for port in program.inputs]

    def first(call):
        begin = time.perf_counter()
        result = call()
        return result, (time.perf_counter() - begin) * 1e3

    result, milliseconds = first(lambda: program(*inputs))
    outputs = [np.copy(array) for array in (result if isinstance(result, tuple) else (result,))]
    path = Path(folder, name + ".so")
    program.save(path)
    in_c = CModel(library, path, inputs, [np.copy(array) for array in outputs])
    runs = [in_c.run, repeated(lambda: program(*inputs)), repeated(lambda: program(*inputs, out=outputs))]
    row = f"{name:20} {milliseconds:9.2f} "
    peer = of_onnx_runtime(contents, {port.name: array for port, array in zip(program.inputs, inputs, strict=True)})
    if peer:
        theirs, peer_milliseconds = first(peer)
        for ours, other in zip(outputs, theirs, strict=True):
            np.testing.assert_allclose(ours, other, rtol=1e-3, atol=1e-4)
        row += f"{peer_milliseconds:9.2f} "
        runs.append(repeated(peer))
    c, ours, into, *rest = least(runs)
    in_c.close()
    row += f"{c:9.2f} {ours:9.2f} {into:9.2f} "
    print(row + "".join(f"{other:9.2f} {other / ours:6.2f}" for other in rest), flush=True)


def main():
    command = "import time; t = time.perf_counter(); import tenon; a = time.perf_counter(); tenon.IRModule; b = time.perf_counter(); print((a - t) * 1e3, (b - a) * 1e3)"
    shown = [
        [float(word) for word in subprocess.run([sys.executable, "-c", command], capture_output=True, text=True).stdout.split()]
        for _ in range(7)
    ]
    print(processor())
    print(f"import tenon {min(row[0] for row in shown):.2f} ms, then the compiler {min(row[1] for row in shown):.1f} ms")
    print(f"{'':20} {'first call, ms':>19} {'C API':>9} {'Python':>9} {'out=':>9} {'peer, us':>9} {'peer / Python':>13}")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "loop.c")
        source.write_text(C_LOOP)
        build = ROOT / "build/src"
        shared = Path(folder, "loop.so")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-I", ROOT / "src", source, "-o", shared, "-L", build, "-ltenon", f"-Wl,-rpath,{build}"], check=True)
        library = ctypes.CDLL(str(shared))
        compare("tiny", tiny().SerializeToString(), library, folder)
        compare("digits_b1", (ROOT / "examples/digits/digits_b1.onnx").read_bytes(), library, folder)
        for file in map(Path, sys.argv[1:]):
            compare(file.parent.name if file.stem == "model" else file.stem, file.read_bytes(), library, folder)


if __name__ == "__main__":
    main()
