#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes an ONNX network as Relay text, with its weights as TVM stores them.

    onnx_to_relay.py MODEL.onnx OUT.relay            weights in OUT.params, as relay.save_param_dict writes them
    onnx_to_relay.py --metadata MODEL.onnx OUT.relay weights in the text's metadata, `meta[relay.Constant][i]`

For tests of the Relay reader: the operators of small CNNs and transformers, in the printed form of TVM. Needs the
packages `onnx` and `numpy`.
"""

import argparse
import base64
import json
import struct

import numpy as np
import onnx
from onnx import numpy_helper, shape_inference

TENSOR_MAGIC = 0xDD5E40F096B4A13F
PARAMS_MAGIC = 0xF7E58D4F05049CB7


def tensor_record(array):
    """The bytes of one tensor: header, shape, elements."""
    code = {"i": 0, "u": 1, "b": 1, "f": 2}[array.dtype.kind]
    bits = 1 if array.dtype.kind == "b" else array.dtype.itemsize * 8
    head = struct.pack("<QQiiiBBH", TENSOR_MAGIC, 0, 1, 0, array.ndim, code, bits, 1)
    return head + struct.pack(f"<{array.ndim}q", *array.shape) + struct.pack("<q", array.nbytes) + array.tobytes()


def params_file(params):
    out = struct.pack("<QQQ", PARAMS_MAGIC, 0, len(params))
    for name in params:
        out += struct.pack("<Q", len(name.encode())) + name.encode()
    out += struct.pack("<Q", len(params))
    return out + b"".join(tensor_record(array) for array in params.values())


def metadata(constants):
    """The JSON behind `#[metadata]`: a map of a list of constants, each of one tensor."""
    nodes = [
        {"type_key": ""},
        {"type_key": "Map", "keys": ["relay.Constant"], "data": [2]},
        {"type_key": "Array", "data": [3 + i for i in range(len(constants))]},
    ]
    for i in range(len(constants)):
        attrs = {"_checked_type_": "0", "data": str(i), "span": "0", "virtual_device_": "0"}
        nodes.append({"type_key": "relay.Constant", "attrs": attrs})
    arrays = [base64.b64encode(tensor_record(array)).decode() for array in constants]
    return json.dumps({"root": 1, "nodes": nodes, "b64ndarrays": arrays, "attrs": {"tvm_version": "0.9.0"}}, indent=2)


def type_text(shape, dtype):
    dims = ", ".join("?" if not isinstance(d, int) else str(d) for d in shape)
    return f"Tensor[({dims}), {dtype}]" if shape else dtype


def list_text(values):
    return "[" + ", ".join(str(int(v)) for v in values) + "]"


def unary(name):
    return lambda self, node, a, x: f"{name}({x[0]})"


def binary(name):
    return lambda self, node, a, x: f"{name}({x[0]}, {x[1]})"


class Writer:
    def __init__(self, model, as_metadata):
        self.graph = shape_inference.infer_shapes(model).graph
        self.as_metadata = as_metadata
        self.arrays = {t.name: np.array(numpy_helper.to_array(t), order="C") for t in self.graph.initializer}
        self.types = {}
        for info in [*self.graph.input, *self.graph.output, *self.graph.value_info]:
            tensor = info.type.tensor_type
            dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)).name
            shape = [d.dim_value if d.HasField("dim_value") else "?" for d in tensor.shape.dim]
            self.types[info.name] = (shape, dtype)
        for name, array in self.arrays.items():
            self.types[name] = (list(array.shape), array.dtype.name)
        self.names = {}  # ONNX name -> text of the value
        self.params = {}
        self.constants = []
        self.lines = []
        self.count = 0

    # -- values

    def value(self, name):
        if name in self.names:
            return self.names[name]
        array = self.arrays[name]
        if array.ndim == 0:
            return self.scalar(array)
        if self.as_metadata:
            self.constants.append(array)
            text = f"meta[relay.Constant][{len(self.constants) - 1}] /* ty={type_text(list(array.shape), array.dtype.name)} */"
        else:
            self.params[name] = array
            text = "%" + name
        self.names[name] = text
        return text

    @staticmethod
    def scalar(array):
        suffix = {"float32": "f", "int64": "i64", "int32": "", "float64": "f64"}[array.dtype.name]
        ty = array.dtype.name
        return f"{array.item():.9g}{suffix} /* ty={ty} */" if array.dtype.kind == "f" else f"{array.item()}{suffix} /* ty={ty} */"

    def emit(self, text, comment=""):
        """`%n = text;`, and its name."""
        name = f"%{self.count}"
        self.count += 1
        self.lines.append(f"  {name} = {text}{' /* ' + comment + ' */' if comment else ''};")
        return name

    def shape(self, name):
        return self.types[name][0]

    # -- nodes

    def node(self, node):
        attrs = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        span = f" span={node.name or node.op_type}:0:0"
        out = node.output[0]
        comment = ""
        if out in self.types:
            comment = f"ty={type_text(*self.types[out])}{span}"
        x = [self.value(i) if i and i not in self.skipped(node) else None for i in node.input]
        result = getattr(self, "do_" + node.op_type)(node, attrs, x)
        if result.startswith(("%", "meta")) and "(" not in result.split("/*")[0]:
            self.names[out] = result
        else:
            self.names[out] = self.emit(result, comment)

    def skipped(self, node):
        """Operands that become attributes."""
        return {"Reshape": node.input[1:2], "Unsqueeze": node.input[1:2], "Clip": node.input[1:], "Slice": node.input[1:]}.get(
            node.op_type, []
        )

    def ints(self, name):
        return [int(v) for v in self.arrays[name].reshape(-1)]

    def do_Constant(self, node, attrs, x):
        self.arrays[node.output[0]] = np.array(numpy_helper.to_array(attrs["value"]), order="C")
        self.types[node.output[0]] = (list(self.arrays[node.output[0]].shape), self.arrays[node.output[0]].dtype.name)
        return self.value(node.output[0]) if self.used_as_value(node.output[0]) else "%unused"

    def used_as_value(self, name):
        return any(name in n.input and name not in self.skipped(n) for n in self.graph.node)

    def do_Conv(self, node, a, x):
        kernel = self.shape(node.input[1])
        text = f"nn.conv2d({x[0]}, {x[1]}"
        if a.get("strides", [1, 1]) != [1, 1]:
            text += f", strides={list_text(a['strides'])}"
        text += f", padding={list_text(a.get('pads', [0, 0, 0, 0]))}"
        if a.get("dilations", [1, 1]) != [1, 1]:
            text += f", dilation={list_text(a['dilations'])}"
        if a.get("group", 1) != 1:
            text += f", groups={a['group']}"
        text += f", channels={kernel[0]}, kernel_size={list_text(kernel[2:])})"
        if len(x) < 3:
            return text
        return f"nn.bias_add({self.emit(text)}, {x[2]})"

    def do_BatchNormalization(self, node, a, x):
        name = self.emit(f"nn.batch_norm({x[0]}, {x[1]}, {x[2]}, {x[3]}, {x[4]}, epsilon={a.get('epsilon', 1e-5):.9g}f)")
        return name + ".0"

    def do_LayerNormalization(self, node, a, x):
        return f"nn.layer_norm({x[0]}, {x[1]}, {x[2]}, epsilon={a.get('epsilon', 1e-5):.9g}f)"

    do_Relu, do_Erf, do_Tanh, do_Sqrt, do_Sigmoid = (unary(n) for n in ("nn.relu", "erf", "tanh", "sqrt", "sigmoid"))
    do_Add, do_Sub, do_Mul, do_Div, do_Pow = (binary(n) for n in ("add", "subtract", "multiply", "divide", "power"))

    def do_Clip(self, node, a, x):
        low, high = (float(self.arrays[i].item()) for i in node.input[1:3])
        return f"clip({x[0]}, a_min={low:.9g}f, a_max={high:.9g}f)"

    def do_MaxPool(self, node, a, x):
        size = a["kernel_shape"]
        pads = a.get("pads", [0, 0, 0, 0])
        return f"nn.max_pool2d({x[0]}, pool_size={list_text(size)}, strides={list_text(a.get('strides', [1, 1]))}, padding={list_text(pads)})"

    do_GlobalAveragePool = unary("nn.global_avg_pool2d")
    do_Flatten = unary("nn.batch_flatten")

    def do_Gemm(self, node, a, x):
        weight = x[1] if a.get("transB") else self.emit(f"transpose({x[1]}, axes=[1, 0])")
        text = f"nn.dense({x[0]}, {weight}, units=None)"
        return f"nn.bias_add({self.emit(text)}, {x[2]}, axis=-1)" if len(x) > 2 else text

    def do_MatMul(self, node, a, x):
        left, right = self.shape(node.input[0]), self.shape(node.input[1])
        if len(right) == 2:
            return f"nn.dense({x[0]}, {self.emit(f'transpose({x[1]}, axes=[1, 0])')}, units={right[1]})"
        batch = int(np.prod(left[:-2]))
        rows, inner, columns = left[-2], left[-1], right[-1]
        lhs = self.emit(f"reshape({x[0]}, newshape=[{batch}, {rows}, {inner}])")
        rhs = self.emit(f"reshape({x[1]}, newshape=[{batch}, {inner}, {columns}])")
        product = self.emit(f"nn.batch_matmul({lhs}, {rhs}, transpose_b=False)")
        return f"reshape({product}, newshape={list_text([*left[:-1], columns])})"

    def do_Softmax(self, node, a, x):
        return f"nn.softmax({x[0]}, axis={a.get('axis', -1)})"

    def do_Transpose(self, node, a, x):
        return f"transpose({x[0]}, axes={list_text(a['perm'])})"

    def do_Reshape(self, node, a, x):
        return f"reshape({x[0]}, newshape={list_text(self.ints(node.input[1]))})"

    def do_Unsqueeze(self, node, a, x):
        axes = self.ints(node.input[1]) if len(node.input) > 1 else a["axes"]
        return f"expand_dims({x[0]}, axis={axes[0]})" if len(axes) == 1 else f"reshape({x[0]}, newshape={list_text(self.shape(node.output[0]))})"

    def do_Gather(self, node, a, x):
        return f"take({x[0]}, {x[1]}, axis={a.get('axis', 0)})"

    def do_Cast(self, node, a, x):
        return f'cast({x[0]}, dtype="{np.dtype(onnx.helper.tensor_dtype_to_np_dtype(a["to"])).name}")'

    def do_ReduceMean(self, node, a, x):
        return f"mean({x[0]}, axis={list_text(a['axes'])}, keepdims={bool(a.get('keepdims', 1))})"

    # -- the text

    def text(self):
        inputs = [i.name for i in self.graph.input if i.name not in self.arrays]
        for name in inputs:
            self.names[name] = "%" + name
        for node in self.graph.node:
            self.node(node)
        results = [self.names[o.name] for o in self.graph.output]
        result = results[0] if len(results) == 1 else "(" + ", ".join(results) + ")"
        outs = [type_text(*self.types[o.name]) for o in self.graph.output]
        out = outs[0] if len(outs) == 1 else "(" + ", ".join(outs) + ")"
        params = [f"%{n}: {type_text(*self.types[n])} /* ty={type_text(*self.types[n])} */" for n in [*inputs, *self.params]]
        lines = ['#[version = "0.0.5"]', f"def @main({', '.join(params)}) -> {out} {{", *self.lines, f"  {result}", "}", ""]
        return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--metadata", action="store_true", help="weights in the text")
    parser.add_argument("model")
    parser.add_argument("out")
    args = parser.parse_args()
    writer = Writer(onnx.load(args.model), args.metadata)
    text = writer.text()
    if args.metadata:
        text += "\n#[metadata]\n" + metadata(writer.constants) + "\n"
    with open(args.out, "w") as file:
        file.write(text)
    if not args.metadata:
        with open(args.out.removesuffix(".relay") + ".params", "wb") as file:
            file.write(params_file(writer.params))


if __name__ == "__main__":
    main()
