#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases of tests/onnx/ for quantised operators of com.microsoft, in the layout of the ONNX backend tests: one
operator each, with results of ONNX Runtime. Needs packages onnx and onnxruntime.

    make_quantised_cases.py [FOLDER]
"""

import pathlib
import shutil
import sys

import numpy as np
import onnx
import onnx.helper as h
import onnxruntime as ort
from onnx import numpy_helper as nh

FOLDER = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
RANDOM = np.random.default_rng(0)
FLOAT, INT = np.float32, np.int32


def f(*shape):
    return RANDOM.standard_normal(shape).astype(FLOAT)


def case(name, op, arrays, constants=(), outputs=1, symbolic=(), **attributes):
    """`arrays`: the operands, None where one is left out; `constants`: the places of those that are initialisers;
    `symbolic`: of those whose dimensions the file does not say."""
    names = [f"x{i}" if array is not None else "" for i, array in enumerate(arrays)]
    results = [f"y{i}" for i in range(outputs)]
    given = {i: a for i, a in enumerate(arrays) if a is not None and i not in constants}
    kept = [nh.from_array(arrays[i], names[i]) for i in constants if arrays[i] is not None]

    def dims(i, array):
        return [f"d{i}{axis}" for axis in range(array.ndim)] if i in symbolic else array.shape

    declared = [h.make_tensor_value_info(names[i], h.np_dtype_to_tensor_dtype(a.dtype), dims(i, a)) for i, a in given.items()]
    node = h.make_node(op, names, results, domain="com.microsoft", **attributes)
    graph = h.make_graph([node], name, declared, [h.make_empty_tensor_value_info(r) for r in results], kept)
    versions = [h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)]
    model = h.make_model(graph, opset_imports=versions, ir_version=9)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1  # with more, each quantises a part of the batch by its own range
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    values = session.run(None, {names[i]: a for i, a in given.items()})
    for output, value in zip(model.graph.output, values):
        shape = None if symbolic else value.shape
        output.CopyFrom(h.make_tensor_value_info(output.name, h.np_dtype_to_tensor_dtype(value.dtype), shape))
    data = FOLDER / name / "test_data_set_0"
    shutil.rmtree(FOLDER / name, ignore_errors=True)
    data.mkdir(parents=True)
    onnx.save(model, FOLDER / name / "model.onnx")
    for kind, items in (("input", [(names[i], a) for i, a in given.items()]), ("output", zip(results, values))):
        for i, (n, array) in enumerate(items):
            (data / f"{kind}_{i}.pb").write_bytes(nh.from_array(np.asarray(array), n).SerializeToString())


def quantised(weights, dtype, by_column):
    """(directions, rows, columns) in 8 bits, with a scale and a zero point for each direction or column."""
    over = (1,) if by_column else (1, 2)
    most = np.abs(weights).max(axis=over, keepdims=True)
    scale = most / 127
    zero = np.full_like(scale, {np.int8: 0 if by_column else 3, np.uint8: 128 if by_column else 119}[dtype])
    least = np.iinfo(dtype)
    steps = np.clip(np.round(weights / scale) + zero, least.min, least.max).astype(dtype)
    flat = (scale.shape[0], scale.shape[2]) if by_column else (scale.shape[0],)
    return steps, scale.reshape(flat).astype(FLOAT), zero.reshape(flat).astype(dtype)


def lstm(name, dirs, steps, batch, inputs, units, dtype=np.int8, by_column=False, lengths=None, peepholes=False, **attributes):
    w, w_scale, w_zero = quantised(f(dirs, inputs, 4 * units) * 0.4, dtype, by_column)
    r, r_scale, r_zero = quantised(f(dirs, units, 4 * units) * 0.4, dtype, by_column)
    states = [f(dirs, batch, units), f(dirs, batch, units)] if lengths else [None, None]
    arrays = [f(steps, batch, inputs), w, r, f(dirs, 8 * units), np.array(lengths, INT) if lengths else None, *states,
              f(dirs, 3 * units) * FLOAT(0.5) if peepholes else None, w_scale, w_zero, r_scale, r_zero]
    constants = [1, 2, 3, 7, 8, 9, 10, 11]
    case(name, "DynamicQuantizeLSTM", arrays, constants, 3, symbolic=(0,), hidden_size=units, **attributes)


lstm("lstm_dynamic", 2, 5, 2, 7, 17, by_column=True, direction="bidirectional")
lstm("lstm_dynamic_zero_points", 1, 5, 3, 7, 6, np.uint8, peepholes=True, direction="reverse", clip=2.0)
lstm("lstm_dynamic_lengths", 2, 6, 3, 5, 4, lengths=[5, 2, 3], direction="bidirectional",
     activations=["Sigmoid", "Tanh", "Relu", "HardSigmoid", "Softsign", "Elu"], activation_alpha=[0.3, 0.7])
lstm("lstm_dynamic_uint8_columns", 1, 4, 1, 3, 5, np.uint8, True, input_forget=1)


def bytes_of(dtype, *shape):
    least = np.iinfo(dtype)
    return RANDOM.integers(least.min, least.max + 1, shape).astype(dtype)


def attention(name, dtype, by_column, mask=None, past=None, outputs=1, **attributes):
    """Two entries of four rows, two heads of four."""
    scale = np.abs(f(24)) * FLOAT(0.005) if by_column else np.array(0.004, FLOAT)
    zero = bytes_of(dtype, 24) if by_column else np.array(3, dtype)
    arrays = [bytes_of(np.uint8, 2, 4, 8), bytes_of(dtype, 8, 24), f(24), np.array(0.02, FLOAT), scale, mask,
              np.array(120, np.uint8), zero, past]
    case(name, "QAttention", arrays, [1, 2, 3, 4, 6, 7], outputs, num_heads=2, **attributes)


attention("qattention", np.int8, False, np.array([[1, 1, 0, 1], [1, 0, 0, 0]], INT))
attention("qattention_past", np.uint8, True, None, f(2, 2, 2, 3, 4), 2, unidirectional=1, scale=0.3)
case("matmul_dynamic", "DynamicQuantizeMatMul",
     [f(2, 3, 7), bytes_of(np.int8, 7, 5), np.abs(f(5)), bytes_of(np.int8, 5), f(5)], [1, 2, 3, 4], symbolic=(0,))
case("matmul_integer_to_float", "MatMulIntegerToFloat",
     [bytes_of(np.uint8, 3, 7), bytes_of(np.uint8, 7, 5), np.array(0.1, FLOAT), np.abs(f(5)), np.array(9, np.uint8),
      bytes_of(np.uint8, 5), f(5)], [1, 3, 5, 6], symbolic=(0,))
