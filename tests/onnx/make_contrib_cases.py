#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases of tests/onnx/ for what graph optimisers make of operators (com.microsoft) and for inputs of which the
file says little, in the layout of the ONNX backend tests, with results of ONNX Runtime. Needs packages onnx and
onnxruntime.

    make_contrib_cases.py [FOLDER]
"""

import pathlib
import sys

import numpy as np
import onnx
import onnx.helper as h
import onnxruntime as ort
from onnx import numpy_helper as nh

FOLDER = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
RANDOM = np.random.default_rng(5)
FLOAT, INT = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def f(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def bytes_of(rows, columns, most=256):
    return RANDOM.integers(0, most, (rows, columns)).astype(np.uint8)


def value(name, shape=None, dtype=FLOAT):
    return h.make_tensor_value_info(name, dtype, shape)


def contrib(op, inputs, outputs, **attributes):
    return h.make_node(op, inputs, outputs, domain="com.microsoft", **attributes)


def case(name, nodes, inputs, outputs, constants, given, opset=17):
    """`constants`: tensors, or arrays by name; `given`: arrays of the inputs."""
    kept = [nh.from_array(np.asarray(a), key) if not isinstance(a, onnx.TensorProto) else a for key, a in constants.items()]
    opsets = [h.make_opsetid("", opset), h.make_opsetid("com.microsoft", 1)]
    model = h.make_model(h.make_graph(nodes, name, inputs, outputs, kept), opset_imports=opsets,
                         ir_version=10 if opset > 19 else 8, producer_name="")
    results = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, given)
    data = FOLDER / name / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(FOLDER / name / "model.onnx"))
    for i, one in enumerate(inputs):
        (data / f"input_{i}.pb").write_bytes(nh.from_array(given[one.name], one.name).SerializeToString())
    for i, (one, result) in enumerate(zip(outputs, results)):
        (data / f"output_{i}.pb").write_bytes(nh.from_array(np.asarray(result), one.name).SerializeToString())


case("unranked", [h.make_node("Sigmoid", ["x"], ["s"]), h.make_node("Mul", ["s", "x"], ["y"])], [value("x")], [value("y")],
     {}, {"x": f(2, 3, 4)})
case("dynamic_batch_norm", [h.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"])],
     [value("x", [None] * 4)], [value("y", [None] * 4)], {"s": f(3), "b": f(3), "m": f(3), "v": abs(f(3))},
     {"x": f(2, 3, 4, 5)})

kernel, bias = f(4, 3, 3, 3), f(4)
case("fused_conv",
     [contrib("FusedConv", ["x", "w", "b", "z"], ["y"], pads=[1, 1, 1, 1], activation="Clip", activation_params=[-0.5, 0.7]),
      contrib("FusedConv", ["x", "w"], ["l"], activation="LeakyRelu", activation_params=[0.2]),
      contrib("FusedConv", ["x", "w", "b"], ["s"], activation="HardSigmoid", activation_params=[0.3, 0.4])],
     [value("x", [1, 3, 5, 5]), value("z", [1, 4, 5, 5])], [value("y"), value("l"), value("s")], {"w": kernel, "b": bias},
     {"x": f(1, 3, 5, 5), "z": f(1, 4, 5, 5)})
case("fused_gemm",
     [contrib("FusedGemm", ["x", "w", "b"], ["y"], transB=1, alpha=0.5, activation="LeakyRelu", activation_alpha=0.2),
      contrib("TransposeMatMul", ["x", "w"], ["t"], transB=1, alpha=2.0)],
     [value("x", [None, 3])], [value("y"), value("t")], {"w": f(4, 3), "b": f(4)}, {"x": f(2, 3)})
case("contrib_forms",
     [contrib("ExpandDims", ["x", "a"], ["e"]), contrib("Range", ["first", "k"], ["r"]),
      contrib("Trilu", ["x"], ["u"], upper=0), contrib("GatherND", ["x", "at"], ["g"]),
      contrib("Pad", ["x", "pads", "three"], ["p"])],
     [value("x", [None, 4]), value("k", [], INT)], [value("e"), value("r", None, INT), value("u"), value("g"), value("p")],
     {"a": np.int32(-1), "first": np.int64(2), "at": np.array([[1], [2]], np.int64),
      "pads": np.array([1, 0, 0, 2], np.int64), "three": np.array([3], np.float32)},
     {"x": f(3, 4), "k": np.array(7, np.int64)})

rows = np.array([[1, 3, -2], [0, 7, 5]], np.int64)
blocks = {"gather_axis": 0, "quantize_axis": 1, "block_size": 16}


def halves(name, array):
    return h.make_tensor(name, onnx.TensorProto.UINT4, array.shape, array.flatten().tolist())


case("gather_block_quantized",
     [contrib("GatherBlockQuantized", ["d", "x", "s"], ["y"], bits=4, **blocks),
      contrib("GatherBlockQuantized", ["d", "x", "s", "z"], ["v"], bits=4, **blocks),
      contrib("GatherBlockQuantized", ["b", "x", "t", "bz"], ["w"], bits=8, **blocks),
      contrib("GatherBlockQuantized", ["u", "x", "t", "uz"], ["q"], **blocks)],
     [value("x", [None, None], INT)], [value(name) for name in "yvwq"],
     {"d": bytes_of(8, 20), "s": f(8, 3), "z": bytes_of(8, 2), "b": bytes_of(8, 32), "t": f(8, 2), "bz": bytes_of(8, 2),
      "u": halves("u", bytes_of(8, 32, 16)), "uz": halves("uz", bytes_of(8, 2, 16))}, {"x": rows}, opset=21)
