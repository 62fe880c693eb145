"""Writes classifier.onnx, a dense layer, an activation and a softmax as PyTorch exports them, and custom.onnx, the same with
an operator of another domain in the place of the activation (numpy and onnx; not needed to run anything here)."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(0)


def weight(name, *shape):
    return numpy_helper.from_array(random.normal(0, 0.2, shape).astype(np.float32), name)


def write(file, activation, domains=()):
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "w0", "b0"], ["sum"], name="/fc0/Gemm", transB=1),
            activation,
            helper.make_node("MatMul", ["hidden", "w1"], ["scores"], name="/fc1/MatMul"),
            helper.make_node("Softmax", ["scores"], ["weights"], name="/head/Softmax", axis=-1),
            helper.make_node("Softmax", ["weights"], ["p"], name="/head/Softmax_1", axis=0),
        ],
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 32])],
        [helper.make_tensor_value_info("p", TensorProto.FLOAT, ["batch", 10])],
        [weight("w0", 24, 32), weight("b0", 24), weight("w1", 24, 10)],
    )
    opsets = [helper.make_opsetid("", 17)] + [helper.make_opsetid(domain, 1) for domain in domains]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), file)


write("classifier.onnx", helper.make_node("Relu", ["sum"], ["hidden"], name="/act/Relu"))
write("custom.onnx", helper.make_node("SoftClip", ["sum"], ["hidden"], name="/act/SoftClip", domain="com.example",
                                      limit=1.5), ["com.example"])
