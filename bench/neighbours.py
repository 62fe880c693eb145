# SPDX-License-Identifier: Apache-2.0
"""Shows that no size is favoured: layers of known networks beside neighbours of odd sizes.

Each layer is timed as a kernel of its own, together with the same layer of 8 more channels (or
columns) and one more row and column. `ratio` is the neighbour's GFLOP/s over the layer's own; what
lies below 0.75 is marked. All layers stand in one network without edges between them, so that it is
compiled once for each target.

    neighbours.py --tenon build/bin/tenon --targets "native;llvm -mcpu=haswell"
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# input channels, output channels, height and width, kernel, stride, groups
CONVOLUTIONS = [
    (64, 64, 56, 1, 1, 1), (64, 256, 56, 1, 1, 1), (256, 64, 56, 1, 1, 1), (512, 128, 28, 1, 1, 1),
    (256, 1024, 14, 1, 1, 1), (1024, 256, 14, 1, 1, 1), (512, 2048, 7, 1, 1, 1), (2048, 512, 7, 1, 1, 1),
    (256, 512, 56, 1, 2, 1), (1024, 2048, 14, 1, 2, 1),
    (64, 64, 56, 3, 1, 1), (128, 128, 28, 3, 1, 1), (256, 256, 14, 3, 1, 1), (512, 512, 7, 3, 1, 1),
    (128, 128, 56, 3, 2, 1), (512, 512, 14, 3, 2, 1), (32, 32, 32, 5, 1, 1), (16, 16, 32, 3, 1, 1),
    (96, 96, 56, 3, 1, 96), (96, 96, 112, 3, 2, 96), (384, 384, 14, 3, 1, 384), (240, 240, 14, 5, 1, 240),
    (3, 64, 224, 7, 2, 1), (3, 32, 224, 3, 2, 1),
]
# rows, columns, depth
PRODUCTS = [
    (128, 768, 768), (128, 3072, 768), (128, 768, 3072), (197, 192, 768), (64, 500, 800), (64, 128, 128),
    (16, 1000, 800), (1, 1000, 2048), (1, 128, 640), (256, 256, 256),
]
# batch, rows, columns, depth: both operands computed
BATCHED = [(12, 128, 128, 64), (12, 128, 64, 128), (3, 197, 197, 64), (2, 64, 64, 64)]


class Network:
    def __init__(self):
        self.nodes, self.inputs, self.outputs, self.weights, self.flops = [], [], [], [], {}
        self.rng = np.random.default_rng(0)

    def input(self, name, shape):
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def weight(self, name, shape):
        values = self.rng.standard_normal(shape).astype(np.float32) * 0.05
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def add(self, op, name, args, shape, flops, **attrs):
        self.nodes.append(helper.make_node(op, args, [name + "_out"], name=name, **attrs))
        self.outputs.append(helper.make_tensor_value_info(name + "_out", TensorProto.FLOAT, shape))
        self.flops[name] = flops

    def convolution(self, name, ic, oc, size, kernel, stride, groups):
        out = (size + 2 * (kernel // 2) - kernel) // stride + 1
        args = [self.input(name + "_x", [1, ic, size, size]), self.weight(name + "_w", [oc, ic // groups, kernel, kernel])]
        self.add("Conv", name, args, [1, oc, out, out], 2 * oc * (ic // groups) * kernel * kernel * out * out,
                 kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4, group=groups)

    def product(self, name, m, n, k):
        args = [self.input(name + "_a", [m, k]), self.weight(name + "_b", [k, n])]
        self.add("MatMul", name, args, [m, n], 2 * m * n * k)

    def batched(self, name, batch, m, n, k):
        args = [self.input(name + "_a", [batch, m, k]), self.input(name + "_b", [batch, k, n])]
        self.add("MatMul", name, args, [batch, m, n], 2 * batch * m * n * k)

    def save(self, path):
        graph = helper.make_graph(self.nodes, "neighbours", self.inputs, self.outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        onnx.save(model, path)


def layers():
    """(title, name of the layer, name of its neighbour) in order, and the network that holds them."""
    network, pairs = Network(), []
    for i, (ic, oc, size, kernel, stride, groups) in enumerate(CONVOLUTIONS):
        depthwise = groups > 1
        first = ic <= 4
        title = f"{'depthwise ' if depthwise else ''}{kernel}x{kernel}{f' / {stride}' if stride > 1 else ''}, {ic} -> {oc}, {size}"
        network.convolution(f"conv_{i}_a", ic, oc, size, kernel, stride, groups)
        network.convolution(f"conv_{i}_b", ic if first else ic + 8, oc + 8, size + 1, kernel, stride,
                            groups + 8 if depthwise else 1)
        pairs.append((title, f"conv_{i}"))
    for i, (m, n, k) in enumerate(PRODUCTS):
        network.product(f"product_{i}_a", m, n, k)
        network.product(f"product_{i}_b", m + 1 if m > 1 else 1, n + 8, k + 8)
        pairs.append((f"product {m} x {n} x {k}", f"product_{i}"))
    for i, (batch, m, n, k) in enumerate(BATCHED):
        network.batched(f"batched_{i}_a", batch, m, n, k)
        network.batched(f"batched_{i}_b", batch, m + 1, n + 1, k + 8)
        pairs.append((f"{batch} products {m} x {n} x {k}", f"batched_{i}"))
    return network, pairs


def kernel_times(tenon, path, target, repeat):
    """Milliseconds of each layer's kernel: the fastest call."""
    command = [tenon, "bench", path, "--json", "--per-kernel", "--threads", "1", "--repeat", str(repeat), "--target", target]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"neighbours: {done.stderr.strip()}")
    times = {}
    for kernel in json.loads(done.stdout)[0]["kernels"]:
        names = re.search(r"^\w*(?:conv2d|matmul)\w* \[(.*)\]", kernel["kernel"])  # not the conversions of its layouts
        for name in names[1].split(" + ") if names else []:
            times[name] = max(times.get(name, 0), kernel["ms"])
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tenon", default="build/bin/tenon")
    parser.add_argument("--targets", default="native", help="separated by semicolons")
    parser.add_argument("--repeat", type=int, default=40)
    args = parser.parse_args()
    network, pairs = layers()
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "neighbours.onnx")
        network.save(path)
        for target in args.targets.split(";"):
            times = kernel_times(args.tenon, path, target, args.repeat)
            print(f"\n{target}\n\n| layer | GFLOP/s | 8 channels and 1 place more | ratio |\n| --- | --- | --- | --- |")
            worst = 9.0
            for title, name in pairs:
                own, other = (network.flops[n] / times[n] * 1e-6 for n in (name + "_a", name + "_b"))
                worst = min(worst, other / own)
                print(f"| {title} | {own:.1f} | {other:.1f} | {other / own:.2f}{' *' if other < 0.75 * own else ''} |")
            print(f"\nleast ratio {worst:.2f}")


if __name__ == "__main__":
    main()
