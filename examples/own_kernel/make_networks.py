"""Writes classifier.onnx, a dense layer, an activation and a softmax as PyTorch exports them; custom.onnx, the same with an operator of
another domain in the place of the activation; and images.onnx, convolutions with noise (numpy and onnx; not needed to run anything here)."""

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

convolutions = helper.make_graph(
    [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c0"], name="/stem/Conv", strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c0"], ["r0"], name="/stem/Relu"),
        helper.make_node("Conv", ["r0", "w1", "b1"], ["c1"], name="/body/Conv", auto_pad="SAME_UPPER"),
        helper.make_node("Relu", ["c1"], ["r1"], name="/body/Relu"),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], name="/depthwise/Conv", group=40, pads=[1, 1, 1, 1]),
        helper.make_node("RandomNormal", [], ["noise"], name="/noise/RandomNormal", shape=[40, 1, 1], scale=0.01),
        helper.make_node("Add", ["c2", "noise"], ["n"], name="/noise/Add"),
        helper.make_node("GlobalAveragePool", ["n"], ["g"], name="/pool/GlobalAveragePool"),
        helper.make_node("Flatten", ["g"], ["y"], name="/pool/Flatten"),
    ],
    "images",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 64, 64])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 40])],
    [weight("w0", 32, 3, 3, 3), weight("b0", 32), weight("w1", 40, 32, 3, 3), weight("b1", 40), weight("w2", 40, 1, 3, 3)],
)
onnx.save(helper.make_model(convolutions, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "images.onnx")
