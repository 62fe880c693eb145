"""Writes network.onnx: a small network with strides, paddings that differ from side to side, dilation, groups and depthwise
convolutions, with random weights (numpy and onnx; not needed to run anything here)."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(0)
weights, nodes = [], []


def weight(name, *shape):
    scale = 1 / np.sqrt(np.prod(shape[1:]))
    weights.append(numpy_helper.from_array(random.normal(0, scale, shape).astype(np.float32), name))
    return name


def node(op, inputs, output, **attributes):
    nodes.append(helper.make_node(op, inputs, [output], name="/" + output, **attributes))
    return output


def conv(x, output, channels, depth, size, **attributes):
    inputs = [x, weight(output + ".weight", channels, depth, size, size), weight(output + ".bias", channels)]
    return node("Conv", inputs, output, **attributes)


weights += [numpy_helper.from_array(np.float32(0), "zero"), numpy_helper.from_array(np.float32(6), "six")]
x = node("Relu", [conv("image", "stem", 8, 3, 3, strides=[2, 2], pads=[1, 1, 1, 1])], "stem_relu")
y = node("Clip", [conv(x, "depthwise", 8, 1, 3, pads=[1, 1, 1, 1], group=8), "zero", "six"], "relu6")
y = conv(y, "pointwise", 8, 8, 1)
x = node("Relu", [node("Add", [x, y], "residual")], "residual_relu")
x = node("MaxPool", [x], "pool", kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1])
x = node("Relu", [conv(x, "dilated", 12, 4, 3, dilations=[2, 2], pads=[2, 2, 2, 2], group=2)], "dilated_relu")
x = node("Flatten", [node("GlobalAveragePool", [x], "mean")], "flat")
x = node("Gemm", [x, weight("fc.weight", 5, 12), weight("fc.bias", 5)], "scores", transB=1)
x = node("Softmax", [x], "probabilities", axis=-1)
graph = helper.make_graph(
    nodes,
    "network",
    [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 16, 16])],
    [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [1, 5])],
    weights,
)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "network.onnx")
