"""Writes network.onnx: two dense layers as PyTorch exports them, with random weights (numpy and onnx; not needed to run
anything here)."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(0)


def weight(name, *shape):
    return numpy_helper.from_array(random.normal(0, 0.2, shape).astype(np.float32), name)


graph = helper.make_graph(
    [
        helper.make_node("Gemm", ["x", "w0", "b0"], ["sum"], name="/fc0/Gemm", transB=1),
        helper.make_node("Relu", ["sum"], ["hidden"], name="/act/Relu"),
        helper.make_node("MatMul", ["hidden", "w1"], ["product"], name="/fc1/MatMul"),
        helper.make_node("Add", ["b1", "product"], ["scores"], name="/fc1/Add"),
    ],
    "network",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 32])],
    [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [8, 10])],
    [weight("w0", 24, 32), weight("b0", 24), weight("w1", 24, 10), weight("b1", 10)],
)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "network.onnx")
