#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the recorded cases of symbolic dimensions: of weights, heads, lengths and parts that other converters take as numbers.
Outputs are ONNX Runtime's, or onnx.reference's where ONNX Runtime wants an attribute that ONNX does not.

    tests/onnx/make_symbolic_cases.py tests/onnx
"""

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

FLOAT = TensorProto.FLOAT
TYPES = {"float32": FLOAT, "int32": TensorProto.INT32, "int64": TensorProto.INT64}
random = np.random.default_rng(7)
node = helper.make_node


def draw(*shape):
    return random.uniform(-1, 1, shape).astype(np.float32)


def case(root, name, nodes, inputs, outputs, opset=21, constants=(), of_onnx=False):
    """`inputs`: a name's shape as the file declares it, and its array."""
    declared = [helper.make_tensor_value_info(one, TYPES[str(array.dtype)], shape)
                for one, (shape, array) in inputs.items()]
    results = [helper.make_tensor_value_info(one, FLOAT, shape) for one, shape in outputs.items()]
    graph = helper.make_graph(nodes, name, declared, results,
                              [numpy_helper.from_array(np.asarray(array), one) for one, array in constants])
    opsets = [helper.make_opsetid("", opset)]
    if any(one.domain for one in nodes):
        opsets.append(helper.make_opsetid("com.microsoft", 1))
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    given = {one: array for one, (_, array) in inputs.items()}
    if of_onnx:
        values = ReferenceEvaluator(model).run(None, given)
    else:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        values = session.run(None, given)
    data = root / name / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, root / name / "model.onnx")
    for kind, names, arrays in (("input", given, given.values()), ("output", outputs, values)):
        for i, (one, array) in enumerate(zip(names, arrays)):
            tensor = numpy_helper.from_array(np.asarray(array), one)
            (data / f"{kind}_{i}.pb").write_bytes(tensor.SerializeToString())


def slices(root):
    """A slice to the length of another tensor, of an axis of 1 or of more elements."""
    nodes = [node("Shape", ["w"], ["s"]), node("Gather", ["s", "one"], ["t"]), node("Slice", ["x", "zero", "t", "one"], ["z"]),
             node("Add", ["z", "w"], ["y"])]
    for name, room in (("one", 1), ("more", 6)):
        case(root, f"dynamic_slice_of_{name}", nodes,
             {"x": ([1, "room"], draw(1, room)), "w": (["batch", "steps"], draw(2, 4))}, {"y": ["batch", "steps"]},
             constants=[("zero", np.array([0])), ("one", np.array([1]))])


def convolutions(root):
    result, names = {"y": [None] * 4}, ["m", "k", "p", "q"]
    case(root, "dynamic_conv_weights", [node("Conv", ["x", "w", "b"], ["y"], strides=[2, 1], pads=[1, 0, 1, 2])],
         {"x": (["n", "c", "h", "w"], draw(2, 3, 7, 8)), "w": (names, draw(4, 3, 3, 2)), "b": (["m"], draw(4))}, result)
    case(root, "dynamic_conv_weights_same", [node("Conv", ["x", "w"], ["y"], strides=[2, 2], auto_pad="SAME_LOWER")],
         {"x": ([1, 4, "h", "w"], draw(1, 4, 9, 8)), "w": (names, draw(6, 4, 3, 4))}, result)
    case(root, "dynamic_conv_weights_stated",
         [node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], group=2)],
         {"x": ([1, "c", "h", 6], draw(1, 4, 5, 6)), "w": (names, draw(6, 2, 3, 3))}, result)
    case(root, "dynamic_conv_transpose_weights",
         [node("ConvTranspose", ["x", "w", "b"], ["y"], strides=[2, 3], pads=[1, 0, 0, 1], output_padding=[1, 0], group=2)],
         {"x": ([1, "c", "h", "w"], draw(1, 4, 5, 4)), "w": (["c", "k", "p", "q"], draw(4, 3, 3, 2)), "b": (["m"], draw(6))},
         result)
    case(root, "dynamic_conv_transpose_same", [node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 3], auto_pad="SAME_UPPER")],
         {"x": ([1, 2, "h", "w"], draw(1, 2, 4, 3)), "w": ([2, 3, 4, 5], draw(2, 3, 4, 5))}, result)
    case(root, "dynamic_conv_transpose_to_shape",
         [node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], output_shape=[9, 7])],
         {"x": ([1, 2, "h", "w"], draw(1, 2, 4, 4)), "w": ([2, 3, 3, 3], draw(2, 3, 3, 3))}, result)


def recurrences(root):
    units, width, steps, batch = 5, 3, 4, 2

    def operands(gates, directions, first="d"):
        return {"x": (["s", "b", "i"], draw(steps, batch, width)),
                "w": ([first, "g", "i"], draw(directions, gates * units, width)),
                "r": ([first, "g", "u"], draw(directions, gates * units, units))}

    def bias(gates, directions, first="d"):
        return {"bias": ([first, "e"], draw(directions, 2 * gates * units))}

    state = (["d", "b", "u"], (2, batch, units))
    both = {"y": None, "yh": None}
    case(root, "dynamic_lstm_weights",
         [node("LSTM", ["x", "w", "r", "bias", "", "h", "c", "p"], ["y", "yh", "yc"], direction="bidirectional", hidden_size=units)],
         operands(4, 2) | bias(4, 2) | {"h": (state[0], draw(*state[1])), "c": (state[0], draw(*state[1])),
                                        "p": (["d", "t"], draw(2, 3 * units))}, both | {"yc": None})
    case(root, "dynamic_gru_weights",
         [node("GRU", ["x", "w", "r", "bias", "n"], ["y", "yh"], direction="reverse", hidden_size=units, linear_before_reset=1)],
         operands(3, 1) | bias(3, 1) | {"n": (["b"], np.array([4, 2], np.int32))}, both)
    case(root, "dynamic_rnn_weights", [node("RNN", ["x", "w", "r"], ["y", "yh"], hidden_size=units)], operands(1, 1), both)
    # Units that no attribute states.
    case(root, "dynamic_lstm_units", [node("LSTM", ["x", "w", "r", "bias"], ["y", "yh", "yc"])],
         operands(4, 1, 1) | bias(4, 1, 1), both | {"yc": None}, of_onnx=True)
    case(root, "dynamic_gru_units", [node("GRU", ["x", "w", "r"], ["y", "yh"])], operands(3, 1), both, of_onnx=True)


def ranks(root):
    """A Squeeze without axes, of which the node behind it says the rank of the result."""
    nodes = [node("Squeeze", ["x"], ["z"]), node("Gemm", ["z", "w"], ["y"])]
    matrix = {"y": [None, None]}
    case(root, "dynamic_squeeze_one", nodes, {"x": (["a", "b", "c"], draw(4, 1, 3)), "w": ([3, 2], draw(3, 2))}, matrix)
    case(root, "dynamic_squeeze_two", nodes, {"x": (["a", 1, "b", "c"], draw(1, 1, 4, 3)), "w": ([3, 2], draw(3, 2))}, matrix)
    case(root, "dynamic_squeeze_none", [node("Squeeze", ["x"], ["z"]), node("Add", ["z", "z"], ["y"])],
         {"x": (["a", 1, "b"], draw(2, 1, 3))}, matrix)


def parts(root):
    """Whether a signal is complex."""
    for name, batch, count, attributes in (("real", 1, 1, {}), ("complex", 1, 2, {"inverse": 1}), ("onesided", 2, 1, {"onesided": 1})):
        case(root, f"dynamic_dft_{name}", [node("DFT", ["x"], ["y"], axis=1, **attributes)],
             {"x": (["b" if batch > 1 else 1, 6, "p"], draw(batch, 6, count))}, {"y": None}, opset=17)
    case(root, "dynamic_stft_parts", [node("STFT", ["x", "k", "", "n"], ["y"])], {"x": ([1, 16, "p"], draw(1, 16, 1))},
         {"y": None}, opset=17, constants=[("k", np.array(4)), ("n", np.array(8))])


def heads(root):
    result = {"y": None}
    case(root, "dynamic_attention_heads", [node("Attention", ["q", "k", "v"], ["y"])],
         {"q": (["b", "h", "s", "d"], draw(2, 4, 3, 8)), "k": (["b", "g", "t", "d"], draw(2, 2, 5, 8)),
          "v": (["b", "g", "t", "e"], draw(2, 2, 5, 6))}, result, opset=23)
    case(root, "dynamic_attention_depth", [node("Attention", ["q", "k", "v", "m"], ["y"], q_num_heads=4, kv_num_heads=2)],
         {"q": (["b", "s", "w"], draw(2, 3, 32)), "k": (["b", "t", "x"], draw(2, 5, 16)), "v": (["b", "t", "z"], draw(2, 5, 12)),
          "m": (["s", "t"], draw(3, 5))}, result, opset=23)
    case(root, "dynamic_attention_masked_heads", [node("Attention", ["q", "k", "v", "m"], ["y"], is_causal=1)],
         {"q": (["b", "h", "s", "d"], draw(2, 4, 3, 8)), "k": (["b", "g", "t", "d"], draw(2, 2, 3, 8)),
          "v": (["b", "g", "t", "d"], draw(2, 2, 3, 8)), "m": (["b", "n", "s", "t"], draw(2, 4, 3, 3))}, result, opset=23)
    places = np.array([[0, 1, 2], [3, 4, 7]])
    table = ["m", "k"]
    case(root, "dynamic_rotary", [node("RotaryEmbedding", ["x", "c", "s", "p"], ["y"], num_heads=2)],
         {"x": (["b", "r", "w"], draw(2, 3, 16)), "c": (table, draw(8, 4)), "s": (table, draw(8, 4)), "p": (["b", "r"], places)},
         result, opset=23)
    angles = ["b", "r", "k"]
    case(root, "dynamic_rotary_heads", [node("RotaryEmbedding", ["x", "c", "s"], ["y"], interleaved=1)],
         {"x": (["b", "h", "r", "d"], draw(2, 3, 4, 8)), "c": (angles, draw(2, 4, 4)), "s": (angles, draw(2, 4, 4))}, result,
         opset=23)
    case(root, "dynamic_contrib_attention", [node("Attention", ["x", "w", "b"], ["y"], domain="com.microsoft", num_heads=2)],
         {"x": (["n", "s", "i"], draw(2, 3, 8)), "w": (["i", "c"], draw(8, 24)), "b": (["c"], draw(24))}, result, opset=17)
    case(root, "dynamic_multi_head",
         [node("MultiHeadAttention", ["q", "k", "v", "b"], ["y"], domain="com.microsoft", num_heads=2)],
         {"q": (["n", "s", "w"], draw(2, 3, 8)), "k": (["n", "t", "w"], draw(2, 5, 8)), "v": (["n", "t", "x"], draw(2, 5, 8)),
          "b": (["c"], draw(24))}, result, opset=17)
    case(root, "dynamic_contrib_rotary", [node("RotaryEmbedding", ["x", "p", "c", "s"], ["y"], domain="com.microsoft")],
         {"x": (["b", "r", "w"], draw(2, 3, 16)), "p": (["b", "r"], places), "c": (table, draw(8, 4)), "s": (table, draw(8, 4))},
         result, opset=17)


def main():
    root = pathlib.Path(sys.argv[1])
    for write in (slices, convolutions, recurrences, ranks, parts, heads):
        write(root)


if __name__ == "__main__":
    main()
