#!/usr/bin/env python3
"""Random ONNX models: what ONNX Runtime computes is what `tenon` must.

A second opinion on the importer, whose meaning of an operator the interpreter shares with the compiler. Models
are written with their inputs and ONNX Runtime's outputs, as the cases of the ONNX test suite are, and `tenon
test-onnx` compares a folder of them at a time. Exits with 77 where onnx or onnxruntime is not installed.

    tests/fuzz/graphs/onnx_models.py build/bin/tenon --seed 1 --count 200 --out fuzz-onnx
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import time

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33]
UNARY = {  # the range in which an operator is defined and not too steep
    "Abs": (-4, 4), "Acos": (-0.9, 0.9), "Acosh": (1.1, 9), "Asin": (-0.9, 0.9), "Asinh": (-4, 4), "Atan": (-4, 4),
    "Atanh": (-0.9, 0.9), "Ceil": (-4, 4), "Celu": (-4, 4), "Cos": (-4, 4), "Cosh": (-4, 4), "Elu": (-4, 4),
    "Erf": (-3, 3), "Exp": (-4, 4), "Floor": (-4, 4), "Gelu": (-4, 4), "HardSigmoid": (-4, 4), "HardSwish": (-4, 4),
    "LeakyRelu": (-4, 4), "Log": (0.1, 9), "Mish": (-4, 4), "Neg": (-4, 4), "Reciprocal": (0.3, 9), "Relu": (-4, 4),
    "Round": (-4, 4), "Selu": (-4, 4), "Shrink": (-4, 4), "Sigmoid": (-4, 4), "Sign": (-4, 4), "Sin": (-4, 4),
    "Sinh": (-4, 4), "Softplus": (-4, 4), "Softsign": (-4, 4), "Sqrt": (0.1, 9), "Tan": (-1.2, 1.2),
    "Tanh": (-4, 4), "ThresholdedRelu": (-4, 4),
}
BINARY = ["Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Mod"]
REDUCE = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare",
          "ReduceProd"]
POOLS = ["MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool"]


class Model:
    """Nodes with what they have computed so far, so that every choice fits."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.inputs, self.initializers, self.values = [], {}, {}, {}
        self.captured = set()  # names that graphs of attributes read

    def of(self, items):
        return items[int(self.random.integers(len(items)))]

    def chance(self, percent):
        return int(self.random.integers(100)) < percent

    def size(self, most=33):
        return int(self.of([s for s in SIZES if s <= most]))

    def shape(self, rank, elements=1500):
        out = [1] * rank
        for d in reversed(range(rank)):
            out[d] = self.size(max(1, min(33, elements)))
            elements //= out[d]
        return out

    def fresh(self, shape, least=-2, most=2, dtype=np.float32, constant=None):
        if dtype == np.float32:
            # On a grid, so that comparisons and roundings see what both systems compute.
            array = np.clip(np.round(self.random.uniform(least, most, shape) * 8) / 8, least, most).astype(dtype)
        elif dtype == bool:
            array = self.random.integers(0, 2, shape).astype(bool)
        else:
            array = self.random.integers(int(least), int(most) + 1, shape).astype(dtype)
        constant = self.chance(40) if constant is None else constant
        name = f"{'w' if constant else 'x'}{len(self.values)}"
        (self.initializers if constant else self.inputs)[name] = array
        self.values[name] = array
        return name

    def pick(self, least_rank=0, most_rank=4, least=-np.inf, most=np.inf, dtype=np.float32):
        if self.chance(75):
            known = [n for n, a in self.values.items() if a.dtype == dtype and least_rank <= a.ndim <= most_rank and
                     a.size and np.all(np.isfinite(a)) and a.min() >= least and a.max() <= most]
            if known:
                return known[-1 - int(self.random.integers(min(3, len(known))))]
        low = max(least, -2 if dtype == np.float32 else 0)
        return self.fresh(self.shape(int(self.random.integers(least_rank, most_rank + 1))), low, min(most, low + 4), dtype)

    def axis(self, rank):
        return int(self.random.integers(-rank, rank))

    def add(self, op, inputs, outputs=1, captured=(), **attributes):
        """Runs the node alone in ONNX Runtime; it stays where that gives finite numbers."""
        names = [f"v{len(self.values) + i}" for i in range(outputs)]
        node = helper.make_node(op, inputs, names, name=names[0], **attributes)
        feeds = {n: self.values[n] for n in [*inputs, *captured] if n}
        try:
            results = run(make_model([node], feeds, {}, names), feeds)
        except Exception:  # what ONNX Runtime does not take is no test
            return None
        for array in results:
            if array.size == 0 or array.size > 4096 or not np.all(np.isfinite(array)) or np.abs(
                    array.astype(np.float64)).max() > 1e4:
                return None
        self.nodes.append(node)
        self.captured.update(captured)
        self.values.update(zip(names, results))
        return names[0]

    def add_all(self, nodes, result):
        """Nodes that are one step together, as what is between them is no tensor."""
        own = {o for node in nodes for o in node.output}
        feeds = {n: self.values[n] for node in nodes for n in node.input if n not in own}
        try:
            array, = run(make_model(nodes, feeds, {}, [result]), feeds)
        except Exception:
            return
        if 0 < array.size <= 4096:
            self.nodes += nodes
            self.values[result] = array


def make_model(nodes, inputs, initializers, outputs):
    info = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()]
    graph = helper.make_graph(nodes, "random", info, [onnx.ValueInfoProto(name=n) for n in outputs],
                              [numpy_helper.from_array(a, n) for n, a in initializers.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return onnx.shape_inference.infer_shapes(model)


def run(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def unary(m):
    op = m.of(list(UNARY))
    m.add(op, [m.pick(least=UNARY[op][0], most=UNARY[op][1])])


def binary(m):
    op = m.of(BINARY)
    integers = op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Mod", "Equal", "Less", "Greater") and m.chance(25)
    dtype = np.int64 if integers else np.float32
    low, high = (0.5, 4) if op == "Pow" else (-9, 9)
    a = m.pick(least=low, most=high, dtype=dtype)
    shape = [1 if m.chance(20) else d for d in m.values[a].shape][int(m.random.integers(0, 2)) if m.values[a].ndim else 0:]
    b = m.fresh(shape, 1 if op in ("Div", "Mod") else 0 if integers else 0.5 if op == "Pow" else -2, 3, dtype)
    m.add(op, [a, b], **({"fmod": 1} if op == "Mod" and not integers else {}))


def reduction(m):
    op = m.of(REDUCE)
    a = m.pick(1, 4, *((0.5, 1.5) if op == "ReduceProd" else (-50, 50)))
    axes = sorted({int(m.random.integers(m.values[a].ndim)) for _ in range(m.of([1, 1, 2]))})
    inputs = [a] if m.chance(20) else [a, m.fresh_ints(axes)]
    m.add(op, inputs, keepdims=int(m.chance(50)))


def fresh_ints(self, values):
    name = f"c{len(self.values)}"
    self.initializers[name] = self.values[name] = np.array(values, np.int64)
    return name


Model.fresh_ints = fresh_ints


def arg(m):
    a = m.pick(1, 4)
    m.add(m.of(["ArgMax", "ArgMin"]), [a], axis=m.axis(m.values[a].ndim), keepdims=int(m.chance(50)),
          select_last_index=int(m.chance(40)))


def product(m):
    a = m.pick(1, 3, -50, 50)
    shape = list(m.values[a].shape)
    if len(shape) == 2 and m.chance(40):
        flip_a, flip_b = m.chance(40), m.chance(40)
        k, n = shape[0 if flip_a else 1], m.size()
        inputs = [a, m.fresh([n, k] if flip_b else [k, n])]
        if m.chance(60):
            inputs.append(m.fresh(m.of([[n], [1, n], [shape[1 if flip_a else 0], 1]])))
        m.add("Gemm", inputs, transA=int(flip_a), transB=int(flip_b), alpha=float(m.of([1, 0.5])), beta=float(m.of([1, 2])))
        return
    m.add("MatMul", [a, m.fresh([shape[-1], m.size()] if m.chance(90) else [shape[-1]])])


def window(m):
    rank = m.of([1, 2, 2, 2, 3])
    x = m.pick(rank + 2, rank + 2, -50, 50)
    shape = m.values[x].shape
    if min(shape[2:]) < 1:
        return
    kernel = [int(m.random.integers(1, min(4, s) + 1)) for s in shape[2:]]
    attributes = {"kernel_shape": kernel, "strides": [m.of([1, 1, 2, 3]) for _ in kernel]}
    if m.chance(25):
        attributes["auto_pad"] = m.of(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif m.chance(60):
        attributes["pads"] = [int(m.random.integers(0, k)) for k in kernel + kernel]
    op = m.of(["Conv", "Conv", "ConvTranspose"] + POOLS)
    if op.startswith("Global"):
        m.add(op, [x])
    elif op in POOLS:
        if op != "LpPool" and m.chance(40):
            attributes["ceil_mode"] = 1
        if op == "AveragePool" and m.chance(50):
            attributes["count_include_pad"] = 1
        # Where a stride is so much greater than its kernel that no padding is needed, ONNX Runtime's pools take the formula's
        # negative padding: MaxPool ends, AveragePool begins behind the first element. Its Conv, and tenon, pad by nothing.
        strides = attributes["strides"]
        needed = [(-(-n // s) - 1) * s + k - n for n, s, k in zip(shape[2:], strides, kernel)]
        if attributes.get("auto_pad", "VALID") != "VALID" and min(needed) < 0:
            del attributes["auto_pad"]
        m.add(op, [x], **attributes)
    else:
        channels = shape[1]
        group = m.of([g for g in (1, 1, 2, channels) if channels % g == 0])
        filters = m.size(17) * group
        if op == "Conv":
            weight = [filters, channels // group] + kernel
            if m.chance(20) and "auto_pad" not in attributes:
                attributes["dilations"] = [1 if k == 1 or s < 2 * k else 2 for k, s in zip(kernel, shape[2:])]
        else:
            weight = [channels, filters // group] + kernel
            if any(k < s for k, s in zip(kernel, attributes["strides"])):  # less than the input's extent times the stride
                attributes.pop("auto_pad", None)
        inputs = [x, m.fresh(weight, -1, 1)]
        if m.chance(60):
            inputs.append(m.fresh([filters]))
        m.add(op, inputs, group=group, **attributes)


def norm(m):
    op = m.of(["BatchNormalization", "LayerNormalization", "InstanceNormalization", "GroupNormalization", "Softmax", "LogSoftmax",
               "Hardmax", "LRN", "LpNormalization", "MeanVarianceNormalization"])
    x = m.pick(4 if op == "MeanVarianceNormalization" else 3, 4, -50, 50)
    shape = m.values[x].shape
    if op == "BatchNormalization":
        c = [shape[1]]
        m.add(op, [x, m.fresh(c), m.fresh(c), m.fresh(c), m.fresh(c, 0.5, 2)], epsilon=1e-3)
    elif op == "LayerNormalization":
        axis = int(m.random.integers(1, len(shape)))
        m.add(op, [x, m.fresh(shape[axis:])] + ([m.fresh(shape[axis:])] if m.chance(60) else []), axis=axis)
    elif op == "InstanceNormalization":
        m.add(op, [x, m.fresh([shape[1]]), m.fresh([shape[1]])])
    elif op == "GroupNormalization":
        groups = m.of([g for g in range(1, shape[1] + 1) if shape[1] % g == 0])
        m.add(op, [x, m.fresh([groups]), m.fresh([groups])], num_groups=groups)
    elif op == "LRN":
        m.add(op, [x], size=m.of([1, 3, 5]), alpha=0.1)
    elif op == "MeanVarianceNormalization":
        m.add(op, [x])
    else:
        m.add(op, [x], axis=m.axis(len(shape)), **({"p": m.of([1, 2])} if op == "LpNormalization" else {}))


def move(m):
    x = m.pick(1, 4, dtype=m.of([np.float32, np.float32, np.int64, bool]))
    shape = m.values[x].shape
    rank = len(shape)
    op = m.of(["Transpose", "Reshape", "Flatten", "Unsqueeze", "Concat", "Split", "Slice", "Pad", "Tile", "Expand", "Trilu", "Cast",
               "DepthToSpace", "SpaceToDepth", "CumSum", "Where", "Clip", "Resize", "TopK", "Squeeze"])
    if op == "Transpose":
        m.add(op, [x], perm=[int(p) for p in m.random.permutation(rank)])
    elif op == "Reshape":
        m.add(op, [x, m.fresh_ints(m.of([[-1], [0, -1], list(shape[::-1]), [1, -1, 1]]))])
    elif op == "Flatten":
        m.add(op, [x], axis=int(m.random.integers(-rank, rank + 1)))
    elif op == "Unsqueeze":
        m.add(op, [x, m.fresh_ints([int(m.random.integers(-rank - 1, rank + 1))])])
    elif op == "Squeeze":
        m.add(op, [x])
    elif op == "Concat":
        axis = int(m.random.integers(rank))
        other = m.fresh([m.size(9) if d == axis else s for d, s in enumerate(shape)], dtype=m.values[x].dtype.type)
        m.add(op, [x, other], axis=axis - (rank if m.chance(30) else 0))
    elif op == "Split":
        axis = int(m.random.integers(rank))
        parts = m.of([2, 3])
        if m.chance(50) and shape[axis] >= 2:
            first = int(m.random.integers(1, shape[axis]))
            m.add(op, [x, m.fresh_ints([first, shape[axis] - first])], 2, axis=axis)
        else:
            m.add(op, [x], parts, axis=axis, num_outputs=parts)
    elif op == "Slice":
        axis = int(m.random.integers(rank))
        step = m.of([1, 1, 2, -1, -2])
        begin, end = int(m.random.integers(-shape[axis], shape[axis])), int(m.random.integers(-shape[axis] - 2, shape[axis] + 3))
        m.add(op, [x] + [m.fresh_ints([v]) for v in (begin, end, axis, step)])
    elif op == "Pad":
        pads = [int(m.random.integers(0, 3)) for _ in range(2 * rank)]
        m.add(op, [x, m.fresh_ints(pads)], mode=m.of(["constant", "reflect", "edge", "wrap"]))
    elif op == "Tile":
        m.add(op, [x, m.fresh_ints([m.of([1, 2, 3]) for _ in shape])])
    elif op == "Expand":
        m.add(op, [x, m.fresh_ints([m.size(5)] + list(shape))])
    elif op == "Trilu":
        if rank >= 2:
            m.add(op, [x, m.fresh_ints(int(m.random.integers(-2, 3)))], upper=int(m.chance(50)))
    elif op == "Cast":
        m.add(op, [x], to=m.of([TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL]))
    elif op == "DepthToSpace":
        block = m.of([1, 2])
        y = m.fresh([m.size(3), m.size(4) * block * block, m.size(5), m.size(5)])
        m.add(op, [y], blocksize=block, mode=m.of(["DCR", "CRD"]))
    elif op == "SpaceToDepth":
        block = m.of([1, 2])
        m.add(op, [m.fresh([m.size(3), m.size(4), m.size(4) * block, m.size(4) * block])], blocksize=block)
    elif op == "CumSum":
        m.add(op, [m.pick(1, 3), m.fresh_ints(0)], exclusive=int(m.chance(50)), reverse=int(m.chance(50)))
    elif op == "Where":
        m.add(op, [m.fresh([1 if m.chance(20) else s for s in shape], dtype=bool), x, m.fresh(shape, dtype=m.values[x].dtype.type)])
    elif op == "Clip":
        y = m.pick()
        m.add(op, [y, m.fresh([], -1, 0, constant=True), m.fresh([], 1, 2, constant=True)])
    elif op == "TopK":
        y = m.pick(1, 3)
        axis = int(m.random.integers(m.values[y].ndim))
        k = int(m.random.integers(1, m.values[y].shape[axis] + 1))
        # Positions of equal elements are ONNX Runtime's own choice: distinct ones.
        array = m.values[y]
        if len(np.unique(array)) == array.size:
            m.add(op, [y, m.fresh_ints([k])], 2, axis=axis, largest=int(m.chance(60)))
    elif op == "Resize":
        y = m.pick(4, 4)
        sizes = list(m.values[y].shape[:2]) + [m.size(9), m.size(9)]
        mode = m.of(["nearest", "linear", "cubic"])
        m.add(op, [y, "", "", m.fresh_ints(sizes)], mode=mode,
              coordinate_transformation_mode=m.of(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]),
              **({"nearest_mode": m.of(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])} if mode == "nearest" else {}))


def index(m):
    x = m.pick(1, 3)
    shape = m.values[x].shape
    axis = int(m.random.integers(len(shape)))
    op = m.of(["Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "OneHot"])
    low, high = -shape[axis], shape[axis] - 1
    if op == "Gather":
        m.add(op, [x, m.fresh(m.shape(int(m.random.integers(0, 3)), 16), low, high, np.int64)], axis=axis)
    elif op == "GatherElements":
        m.add(op, [x, m.fresh([int(m.random.integers(1, s + 1)) for s in shape], low, high, np.int64)], axis=axis)
    elif op == "GatherND":
        m.add(op, [x, m.fresh([m.size(5), 1], -shape[0], shape[0] - 1, np.int64)])
    elif op == "ScatterElements":
        where = [1 if d != axis else min(2, s) for d, s in enumerate(shape)]
        positions = m.fresh_ints(np.arange(int(np.prod(where))).reshape(where) % shape[axis])
        m.add(op, [x, positions, m.fresh(where)], axis=axis, reduction=m.of(["none", "add", "mul", "max", "min"]))
    elif op == "ScatterND":
        m.add(op, [x, m.fresh_ints([[0]]), m.fresh([1] + list(shape[1:]))])
    else:
        depth = m.size(9)
        values = m.fresh_ints([0, 5])
        m.add(op, [m.fresh(m.shape(2, 64), -depth, depth - 1, np.int64), m.fresh_ints(depth), values], axis=m.of([-1, 0, 1]))


def recurrent(m):
    op, gates = m.of([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    steps, batch, size, hidden = m.size(5), m.size(4), m.size(9), m.size(9)
    direction = m.of(["forward", "reverse", "bidirectional"])
    d = 2 if direction == "bidirectional" else 1
    inputs = [m.fresh([steps, batch, size]), m.fresh([d, gates * hidden, size], -0.5, 0.5), m.fresh([d, gates * hidden, hidden], -0.5, 0.5)]
    if m.chance(60):
        inputs.append(m.fresh([d, 2 * gates * hidden], -0.5, 0.5))
    attributes = {"linear_before_reset": int(m.chance(50))} if op == "GRU" else {}
    m.add(op, inputs, 2, hidden_size=hidden, direction=direction, **attributes)


def sequence(m):
    """Tensors that pass through a sequence: made, changed at places, taken or joined."""
    x = m.pick(1)
    axis = m.axis(m.values[x].ndim)
    extent = m.values[x].shape[axis]

    def place(least, most):
        return m.fresh([], least, most, np.int64)

    def node(op, inputs, **attributes):
        nodes.append(helper.make_node(op, inputs, [f"v{len(m.values)}s{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    nodes = []
    if m.chance(60):
        count = -(-extent // (chunk := m.size(max(1, extent))))
        name = m.fresh([], chunk, chunk, np.int64)
        held = node("SplitToSequence", [x, name], axis=axis)
    else:
        others = [n for n, a in m.values.items() if a.dtype == np.float32 and a.ndim == m.values[x].ndim]
        parts = [x] + [m.of(others) for _ in range(m.of([0, 1, 2, 3]))]
        count = len(parts)
        held = node("SequenceConstruct", parts)
    for _ in range(m.of([0, 1, 2])):
        if m.chance(50) and count > 1:
            held, count = node("SequenceErase", [held] + [place(-count, count - 1)] * m.chance(70)), count - 1
        else:
            held, count = node("SequenceInsert", [held, x] + [place(-count, count)] * m.chance(70)), count + 1
    ends = ["SequenceAt", "ConcatFromSequence", "SequenceLength"]
    end = m.of(ends)
    if end == "SequenceAt":
        result = node(end, [held, place(-count, count - 1)])
    elif end == "ConcatFromSequence":
        new_axis = int(m.chance(30))
        result = node(end, [held], axis=axis, new_axis=new_axis)
    else:
        result = node(end, [held])
    m.add_all(nodes, result)


def optional(m):
    """A tensor, or a sequence of some, that passes through an optional."""
    x, name = m.pick(1), f"v{len(m.values)}"
    if m.chance(40):
        m.add_all([helper.make_node("Optional", [x], [name + "o"]),
                   helper.make_node("OptionalHasElement", [name + "o"], [name])], name)
        return
    wrapped, nodes = x, []
    if many := m.chance(50):
        wrapped = name + "s"
        nodes.append(helper.make_node("SequenceConstruct", [x] * m.of([1, 2, 3]), [wrapped]))
    nodes += [helper.make_node("Optional", [wrapped], [name + "o"]), helper.make_node("OptionalGetElement", [name + "o"], [name + "g"])]
    nodes.append(helper.make_node("ConcatFromSequence", [name + "g"], [name], axis=m.axis(m.values[x].ndim)) if many else
                 helper.make_node("Neg", [name + "g"], [name]))
    m.add_all(nodes, name)


def texts(m):
    """Texts that are joined, and taken apart, matched or cast."""
    words = ["Tenon", "a b  c", "", "12", "x,y,z", "ONNX 1", "-3.5", " left", "right "]
    shape = [m.size(5) for _ in range(int(m.random.integers(1, 3)))]
    name = f"v{len(m.values)}"

    def fresh(shape, kinds):
        own = f"x{len(m.values)}"
        flat = [m.of(kinds) for _ in range(int(np.prod(shape)))]
        m.values[own] = np.array(flat, dtype=object).reshape(shape)
        (m.initializers if m.chance(40) else m.inputs)[own] = m.values[own]
        return own

    x, nodes = fresh(shape, words), []
    if m.chance(60):
        other = fresh(m.of([shape, shape[-1:], [1]]), words)
        nodes.append(helper.make_node("StringConcat", [x, other], [name + "c"]))
        x = name + "c"
    kind = m.of(["match", "split", "upper", "number", "join"])
    if kind == "match":
        nodes.append(helper.make_node("RegexFullMatch", [x], [name], pattern=m.of(["[a-zA-Z ]*", ".*[0-9].*", "(x|a).*", ""])))
    elif kind == "split":
        extra = {"maxsplit": int(m.of([1, 2]))} if m.chance(40) else {}
        nodes.append(helper.make_node("StringSplit", [x], [name + "p", name] if m.chance(50) else [name, name + "n"],
                                      delimiter=m.of([" ", ",", ""]), **extra))
    elif kind == "upper" and len(shape) == 1:
        nodes.append(helper.make_node("StringNormalizer", [x], [name], case_change_action=m.of(["UPPER", "LOWER"]),
                                      is_case_sensitive=int(m.chance(50)), stopwords=["12", "tenon"], locale="en_US"))
    elif kind == "number":
        nodes = [helper.make_node("Cast", [fresh(shape, ["12", "-3.5", "0", "1e3", "7"])], [name], to=TensorProto.FLOAT)]
    elif not nodes:
        nodes.append(helper.make_node("StringConcat", [x, x], [name]))
    else:
        nodes[-1].output[0] = name
    m.add_all(nodes, name)


def body_of(m, states, others, results, name):
    """A graph of states and what else there is; each state becomes what keeps its shape."""
    nodes, outputs = [], []
    for k, state in enumerate(states):
        nodes.append(helper.make_node(m.of(["Add", "Sub", "Mul", "Max"]), [state, m.of(others)], [f"{name}_t{k}"]))
        nodes.append(helper.make_node(m.of(["Tanh", "Sigmoid", "Relu", "Identity"]), [f"{name}_t{k}"], [f"{name}_n{k}"]))
        outputs.append(f"{name}_n{k}")
    if len(states) == 2 and m.chance(40):
        outputs.reverse()
    for k in range(results):
        source = m.of(states + outputs)
        nodes.append(helper.make_node(m.of(["Identity", "Neg", "Softsign"]), [source], [f"{name}_y{k}"]))
        outputs.append(f"{name}_y{k}")
    return nodes, outputs


def loop(m):
    name, shape = f"b{len(m.values)}", m.shape(int(m.random.integers(0, 3)), 200)
    states = [f"{name}_s{k}" for k in range(m.of([1, 1, 2]))]
    results, kind = m.of([0, 1, 2]), m.of(["count", "count", "while", "grows", "scan", "scan"])
    captured = [m.fresh(shape)]
    initial = [m.fresh(shape) for _ in states]
    tensor = lambda n, dtype=TensorProto.FLOAT, dims=None: helper.make_tensor_value_info(n, dtype, dims)
    if kind == "scan":
        steps, scanned = m.size(9), m.of([1, 2])
        slices = [f"{name}_x{k}" for k in range(scanned)]
        axes = [int(m.random.integers(0, len(shape) + 1)) for _ in slices]
        given = [m.fresh(shape[:a] + [steps] + shape[a:]) for a in axes]
        nodes, outputs = body_of(m, states, slices + captured, results, name)
        graph = helper.make_graph(nodes, name, [tensor(n) for n in states + slices], [tensor(n) for n in outputs])
        flags = lambda n: [int(m.chance(40)) for _ in range(n)]
        extra = {"scan_output_directions": flags(results)} if results else {}
        m.add("Scan", initial + given, len(outputs), captured, body=graph, num_scan_inputs=scanned, scan_input_axes=axes,
              scan_input_directions=flags(scanned), **extra)
        return
    nodes, outputs = body_of(m, states, captured + (states if m.chance(50) else []), results, name)
    index, go, on = f"{name}_i", f"{name}_go", f"{name}_on"
    if kind == "while":
        limit = helper.make_tensor(f"{name}_l", TensorProto.INT64, [], [int(m.random.integers(0, 6))])
        nodes += [helper.make_node("Constant", [], [f"{name}_k"], value=limit),
                  helper.make_node("Less", [index, f"{name}_k"], [on])]
    else:
        nodes.append(helper.make_node("Identity", [go], [on]))
    if kind == "grows" and shape:
        states.append(f"{name}_g")
        initial.append(initial[0])
        nodes.append(helper.make_node("Concat", [f"{name}_g", captured[0]], [f"{name}_gn"], axis=int(m.random.integers(len(shape)))))
        outputs.insert(len(states) - 1, f"{name}_gn")
    graph = helper.make_graph(nodes, name, [tensor(index, TensorProto.INT64, []), tensor(go, TensorProto.BOOL, [])] +
                              [tensor(n) for n in states], [tensor(on, TensorProto.BOOL, [])] + [tensor(n) for n in outputs])
    count = m.fresh([], 0, 6, np.int64) if kind != "while" or m.chance(50) else ""
    m.add("Loop", [count, "", *initial], len(outputs), captured, body=graph)


KINDS = [unary, unary, binary, binary, reduction, arg, product, product, window, window, window, norm, norm, move, move, move, move, index, recurrent, sequence, optional, texts, loop, loop]


def generate(seed):
    m = Model(seed)
    for _ in range(m.of([1, 2, 3, 4, 6, 8])):
        m.of(KINDS)(m)
    if not m.nodes:
        m.add("Relu", [m.fresh([3], constant=False)])
    used = {i for node in m.nodes for i in node.input} | m.captured
    outputs = [o for node in m.nodes for o in node.output if o not in used and o in m.values]
    inputs = {n: a for n, a in m.inputs.items() if n in used}
    initializers = {n: a for n, a in m.initializers.items() if n in used}
    return make_model(m.nodes, inputs, initializers, outputs), inputs


def write_case(folder, seed):
    model, inputs = generate(seed)
    expected = run(model, inputs)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    for kind, names, arrays in (("input", inputs, inputs.values()), ("output", [o.name for o in model.graph.output], expected)):
        for i, (name, array) in enumerate(zip(names, arrays)):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(array), name).SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--tolerance", default="1e-4", help="of test-onnx: both systems round, each in its way")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("fuzz-onnx"))
    args = parser.parse_args()
    begin, ran, failed = time.time(), 0, {}
    while ran < args.count and not (args.seconds and time.time() - begin > args.seconds):
        batch = args.out / "batch"
        shutil.rmtree(batch, ignore_errors=True)
        seeds = [args.seed + ran + i for i in range(min(50, args.count - ran))]
        for seed in seeds:
            try:
                write_case(batch / f"seed_{seed}", seed)
            except Exception as error:  # ONNX Runtime refuses the whole, or cannot say its types
                shutil.rmtree(batch / f"seed_{seed}", ignore_errors=True)
                print(f"seed {seed}: not made: {error}"[:200])
        ran += len(seeds)
        done = subprocess.run([args.tenon.resolve(), "test-onnx", "--tolerance", args.tolerance, batch], capture_output=True, text=True)
        if done.returncode == 0:
            continue
        lines = [line for line in (done.stdout + done.stderr).splitlines() if re.search(r"seed_\d+", line) and not line.startswith("ok")]
        if not lines:
            failed[f"batch_{seeds[0]}"] = f"exit status {done.returncode}"
        for line in lines:
            name = re.search(r"seed_\d+", line).group(0)
            failed.setdefault(name, line)
            if (batch / name).is_dir() and not (args.out / name).is_dir():
                shutil.copytree(batch / name, args.out / name)
                print(f"{line}\n  shown by: {args.tenon} test-onnx --tolerance {args.tolerance} {args.out / name}", flush=True)
    print(f"{ran} models from seed {args.seed} against ONNX Runtime {onnxruntime.__version__}, {len(failed)} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
