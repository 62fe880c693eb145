# SPDX-License-Identifier: Apache-2.0
"""Generates decoders of language models: ONNX files with seeded random weights, inputs, and what ONNX Runtime computes.

    make_language_models.py --out DIR [--sizes SIZE,...] [--only NAME,...] [--list]

The networks are of Llama's kind (RMSNorm, rotary embedding, grouped-query attention, SwiGLU, tied embeddings) in three sizes and a tiny one, each in
two forms and with two kinds of weights: SIZE_FORM_WEIGHTS, for example lm15m_plain_f32.

    plain   operators of ONNX alone, as torch.onnx and optimum take such models apart: RMSNorm from Pow to Div, rotary from Slice,
            Neg and Concat, repeated heads by Expand, the cache by Concat(past, new). Caches have as many rows as are filled.
    fused   com.microsoft's GroupQueryAttention, SkipSimplifiedLayerNormalization and their like, as onnxruntime-genai writes them.
            Caches are buffers that past and present share: they have room for CAPACITY rows or more, of which the mask says how many count.
    f32     weights of float32
    int4    products by MatMulNBits: 4 bits, a scale for each 32 numbers; the table of embeddings stays float32

Inputs: tokens, a mask of one for each token so far, caches of each layer; outputs: logits of all given tokens, caches. The length of the
prompt and that of the past are symbols, so a file serves both the prompt and each token after it. Data sets: a prompt, a token after it,
several, two entries at once. The layout is that of make_models.py; weights of more than a gigabyte lie in a file beside the model.

Runs under bench/python.sh, which has onnxruntime.
"""

import argparse
import dataclasses
import json
import pathlib
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

BLOCK = 32  # numbers that share a scale
CAPACITY = 64  # rows of shared caches in the data sets


@dataclasses.dataclass(frozen=True)
class Size:
    width: int
    hidden: int
    layers: int
    heads: int
    groups: int  # heads of keys and values
    vocabulary: int
    base: float = 10000.0  # of the angles
    places: int = 4096  # in tables of angles

    @property
    def depth(self):
        return self.width // self.heads


SIZES = {
    "lm65k": Size(64, 64, 2, 4, 2, 256, places=24),  # recorded in tests/onnx
    "lm15m": Size(288, 768, 6, 6, 2, 32000),
    "lm110m": Size(768, 2048, 12, 12, 4, 32000),
    "lm500m": Size(896, 4864, 24, 14, 2, 151936, 1e6),
}
FORMS = ("plain", "fused")
WEIGHTS = ("f32", "int4")
EPSILON = 1e-6


def uniform(name, shape, deviation):
    """Numbers of 255 levels: enough for weights, and half a billion of them take seconds."""
    rng = np.random.RandomState(zlib.crc32(name.encode()))
    levels = np.frombuffer(rng.bytes(int(np.prod(shape))), np.int8).reshape(shape)
    return levels * np.float32(deviation / 74)


def quantised(weight):
    """Of a matrix (units, depth): packed numbers (units, blocks, bytes) and scales, with 8 as zero."""
    units, depth = weight.shape
    blocks = weight.reshape(units, depth // BLOCK, BLOCK)
    peak = np.take_along_axis(blocks, np.abs(blocks).argmax(-1, keepdims=True), -1)
    scales = (peak / -8).astype(np.float32)
    scales[scales == 0] = 1
    numbers = np.clip(np.rint(blocks / scales) + 8, 0, 15).astype(np.uint8)
    return numbers[..., 0::2] | numbers[..., 1::2] << 4, scales[..., 0]


class Graph:
    """Nodes and initialisers under the names that exporters give them."""

    def __init__(self, size, name, weights):
        self.size, self.name, self.weights = size, name, weights
        self.nodes, self.initializers, self.constants = [], [], {}

    def op(self, kind, inputs, name, outputs=1, domain="", **attributes):
        names = [f"/{name}/{kind}_output_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=f"/{name}/{kind}", domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def tensor(self, name, values):
        self.initializers.append(numpy_helper.from_array(np.array(values, order="C"), name))
        return name

    def constant(self, values, dtype=np.int64):
        values = np.asarray(values, dtype)
        key = (values.dtype.str, values.shape, values.tobytes())
        if key not in self.constants:
            self.constants[key] = self.tensor(f"constant_{len(self.constants)}", values)
        return self.constants[key]

    def seeded(self, name, shape, deviation):
        return uniform(f"{self.name}/{name}", shape, deviation)

    def linear(self, x, units, depth, name):
        return self.product(x, self.seeded(name, (units, depth), depth**-0.5), name)

    def product(self, x, weight, name):
        if self.weights == "f32":
            return self.op("MatMul", [x, self.tensor(f"{name}.weight", weight.T)], name)
        units, depth = weight.shape
        numbers, scales = quantised(weight)
        operands = [x, self.tensor(f"{name}.weight_Q4", numbers), self.tensor(f"{name}.weight_scales", scales)]
        return self.op("MatMulNBits", operands, name, domain="com.microsoft", K=depth, N=units, bits=4, block_size=BLOCK, accuracy_level=1)

    def scale_of_norm(self, name):
        return self.tensor(f"{name}.weight", 1 + self.seeded(name, (self.size.width,), 0.2))

    def activated(self, x, layer):
        """The feed-forward network with SwiGLU."""
        size, name = self.size, f"model/layers.{layer}/mlp"
        gate = self.linear(x, size.hidden, size.width, f"{name}/gate_proj")
        up = self.linear(x, size.hidden, size.width, f"{name}/up_proj")
        silu = self.op("Mul", [gate, self.op("Sigmoid", [gate], f"{name}/act_fn")], f"{name}/act_fn")
        return self.linear(self.op("Mul", [silu, up], name), size.width, size.hidden, f"{name}/down_proj")

    def projections(self, x, name):
        size = self.size
        widths = {"q_proj": size.heads, "k_proj": size.groups, "v_proj": size.groups}
        return [self.linear(x, heads * size.depth, size.width, f"{name}/{part}") for part, heads in widths.items()]

    def finish(self, past, total, positions=False):
        size = self.size
        integers = [("input_ids", "sequence_length"), ("attention_mask", total)]
        if positions:
            integers.append(("position_ids", "sequence_length"))
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch_size", extent]) for name, extent in integers]
        outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", size.vocabulary])]
        for layer in range(size.layers):
            for part in ("key", "value"):
                for tensors, name, extent in ((inputs, "past_key_values", past), (outputs, "present", total)):
                    shape = ["batch_size", size.groups, extent, size.depth]
                    tensors.append(helper.make_tensor_value_info(f"{name}.{layer}.{part}", TensorProto.FLOAT, shape))
        graph = helper.make_graph(self.nodes, self.name, inputs, outputs, self.initializers)
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9, producer_name="tenon")


class Plain(Graph):
    def dimension(self, x, axis, name):
        shape = self.op("Shape", [x], f"{name}/dim{axis}")
        return self.op("Gather", [shape, self.constant(axis)], f"{name}/dim{axis}", axis=0)

    def listed(self, items, name):
        """A shape of dimensions (names) and numbers."""
        axis = self.constant([0])
        parts = [
            self.constant([item]) if isinstance(item, int) else self.op("Unsqueeze", [item, axis], f"{name}/item{i}")
            for i, item in enumerate(items)
        ]
        return self.op("Concat", parts, f"{name}/shape", axis=0)

    def norm(self, x, name):
        square = self.op("Pow", [x, self.constant(2, np.float32)], name)
        mean = self.op("ReduceMean", [square, self.constant([-1])], name, keepdims=1)
        root = self.op("Sqrt", [self.op("Add", [mean, self.constant(EPSILON, np.float32)], name)], name)
        inverse = self.op("Div", [self.constant(1, np.float32), root], name)
        return self.op("Mul", [self.scale_of_norm(name), self.op("Mul", [x, inverse], f"{name}/scaled")], name)

    def mask(self, total, rows):
        """-inf, as the least float, where a column is behind its row or padding."""
        name, least = "model/mask", float(np.finfo(np.float32).min)
        past = self.op("Sub", [total, rows], f"{name}/past")
        zero, one = self.constant(0), self.constant(1)
        columns = self.op("Range", [zero, total, one], f"{name}/columns")
        places = self.op("Range", [past, total, one], f"{name}/rows")
        place = self.op("Unsqueeze", [places, self.constant([1])], f"{name}/rows")
        ahead = self.op("Cast", [self.op("Greater", [columns, place], name)], f"{name}/ahead", to=TensorProto.FLOAT)
        causal = self.op("Mul", [ahead, self.constant(least, np.float32)], f"{name}/causal")
        given = self.op("Unsqueeze", ["attention_mask", self.constant([1, 2])], f"{name}/given")
        padding = self.op("Equal", [given, zero], f"{name}/padding")
        return self.op("Where", [padding, self.constant(least, np.float32), causal], name)

    def angles(self):
        name, depth = "model/rotary_emb", self.size.depth
        frequencies = self.size.base ** -(np.arange(0, depth, 2, dtype=np.float32) / depth)
        rows = self.op("Cast", [self.op("Unsqueeze", ["position_ids", self.constant([1])], name)], name, to=TensorProto.FLOAT)
        half = self.op("MatMul", [self.constant(frequencies.reshape(1, -1, 1), np.float32), rows], name)
        half = self.op("Transpose", [half], name, perm=[0, 2, 1])
        whole = self.op("Concat", [half, half], name, axis=-1)
        return [self.op("Unsqueeze", [self.op(f, [whole], name), self.constant([1])], f"{name}/{f}") for f in ("Cos", "Sin")]

    def rotate(self, x, cos, sin, name):
        half, axis, step = self.size.depth // 2, self.constant([3]), self.constant([1])
        most = self.constant([np.iinfo(np.int64).max])
        first = self.op("Slice", [x, self.constant([0]), self.constant([half]), axis, step], f"{name}/first")
        second = self.op("Slice", [x, self.constant([half]), most, axis, step], f"{name}/second")
        turned = self.op("Concat", [self.op("Neg", [second], name), first], name, axis=-1)
        left = self.op("Mul", [x, cos], f"{name}/cos")
        return self.op("Add", [left, self.op("Mul", [turned, sin], f"{name}/sin")], name)

    def repeated(self, x, batch, total, name):
        size = self.size
        members = size.heads // size.groups
        if members == 1:
            return x
        wide = self.op("Unsqueeze", [x, self.constant([2])], name)
        target = self.listed([batch, size.groups, members, total, size.depth], f"{name}/expand")
        wide = self.op("Expand", [wide, target], name)
        return self.op("Reshape", [wide, self.listed([batch, size.heads, total, size.depth], f"{name}/reshape")], name)

    def attention(self, x, layer, cos, sin, mask, batch, rows, total):
        size, name = self.size, f"model/layers.{layer}/self_attn"
        parts = []
        for part, y in zip("qkv", self.projections(x, name)):
            shape = self.listed([batch, rows, -1, size.depth], f"{name}/{part}")
            parts.append(self.op("Transpose", [self.op("Reshape", [y, shape], f"{name}/{part}")], f"{name}/{part}", perm=[0, 2, 1, 3]))
        q, k, v = parts
        q, k = self.rotate(q, cos, sin, f"{name}/q_rot"), self.rotate(k, cos, sin, f"{name}/k_rot")
        for part, new in (("key", k), ("value", v)):
            operands = [f"past_key_values.{layer}.{part}", new]
            self.nodes.append(helper.make_node("Concat", operands, [f"present.{layer}.{part}"], name=f"/{name}/{part}/Concat", axis=-2))
        keys = self.repeated(f"present.{layer}.key", batch, total, f"{name}/keys")
        values = self.repeated(f"present.{layer}.value", batch, total, f"{name}/values")
        scores = self.op("MatMul", [q, self.op("Transpose", [keys], f"{name}/keys_t", perm=[0, 1, 3, 2])], f"{name}/scores")
        scores = self.op("Mul", [scores, self.constant(size.depth**-0.5, np.float32)], f"{name}/scale")
        weights = self.op("Softmax", [self.op("Add", [scores, mask], f"{name}/mask")], name, axis=-1)
        y = self.op("Transpose", [self.op("MatMul", [weights, values], f"{name}/mix")], f"{name}/mix", perm=[0, 2, 1, 3])
        y = self.op("Reshape", [y, self.listed([batch, rows, size.width], f"{name}/out")], f"{name}/out")
        return self.linear(y, size.width, size.width, f"{name}/o_proj")

    def build(self):
        size = self.size
        table = self.seeded("embed_tokens", (size.vocabulary, size.width), size.width**-0.5)
        self.tensor("model.embed_tokens.weight", table)
        x = self.op("Gather", ["model.embed_tokens.weight", "input_ids"], "model/embed_tokens")
        batch, rows = (self.dimension("input_ids", axis, f"model/input{axis}") for axis in (0, 1))
        total = self.dimension("attention_mask", 1, "model/total")
        mask = self.mask(total, rows)
        cos, sin = self.angles()
        for layer in range(size.layers):
            name = f"model/layers.{layer}"
            y = self.attention(self.norm(x, f"{name}/input_layernorm"), layer, cos, sin, mask, batch, rows, total)
            x = self.op("Add", [x, y], f"{name}/attention")
            y = self.activated(self.norm(x, f"{name}/post_attention_layernorm"), layer)
            x = self.op("Add", [x, y], name)
        x = self.norm(x, "model/norm")
        if self.weights == "f32":
            head = self.op("Transpose", ["model.embed_tokens.weight"], "lm_head", perm=[1, 0])
            self.nodes.append(helper.make_node("MatMul", [x, head], ["logits"], name="/lm_head/MatMul"))
        else:
            self.nodes.append(helper.make_node("Identity", [self.product(x, table, "lm_head")], ["logits"], name="/lm_head/Identity"))
        return self.finish("past_sequence_length", "past_sequence_length + sequence_length", positions=True)


class Fused(Graph):
    def tables(self):
        """Cosines and sines of every place and pair."""
        depth = self.size.depth
        frequencies = self.size.base ** -(np.arange(0, depth, 2, dtype=np.float64) / depth)
        angles = np.outer(np.arange(self.size.places), frequencies)
        return [self.tensor(f"{f.__name__}_cache", f(angles).astype(np.float32)) for f in (np.cos, np.sin)]

    def skip_norm(self, x, skip, name):
        """The norm of the sum, and the sum."""
        out = [f"/{name}/output_{i}" for i in (0, 3)]
        operands = [x, skip, self.scale_of_norm(name)]
        node = helper.make_node("SkipSimplifiedLayerNormalization", operands, [out[0], "", "", out[1]], name=f"/{name}", domain="com.microsoft", epsilon=EPSILON)
        self.nodes.append(node)
        return out

    def attention(self, x, layer, last, total, tables):
        size, name = self.size, f"model/layers.{layer}/attn"
        past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        present = [f"present.{layer}.{part}" for part in ("key", "value")]
        y = f"/{name}/GroupQueryAttention/output_0"
        operands = [*self.projections(x, name), *past, last, total, *tables]
        attributes = {"num_heads": size.heads, "kv_num_heads": size.groups, "scale": size.depth**-0.5, "do_rotary": 1}
        node = helper.make_node("GroupQueryAttention", operands, [y, *present], name=f"/{name}/GroupQueryAttention", domain="com.microsoft", **attributes)
        self.nodes.append(node)
        return self.linear(y, size.width, size.width, f"{name}/o_proj")

    def build(self):
        size = self.size
        table = self.seeded("embed_tokens", (size.vocabulary, size.width), size.width**-0.5)
        self.tensor("model.embed_tokens.weight", table)
        x = self.op("Gather", ["model.embed_tokens.weight", "input_ids"], "model/embed_tokens")
        name = "model/attn_mask_reformat"
        count = self.op("ReduceSum", ["attention_mask", self.constant([1])], name, keepdims=1)
        last = self.op("Cast", [self.op("Sub", [count, self.constant([1])], name)], f"{name}/last", to=TensorProto.INT32)
        shape = self.op("Shape", ["attention_mask"], name)
        total = self.op("Cast", [self.op("Gather", [shape, self.constant(1)], name, axis=0)], f"{name}/total", to=TensorProto.INT32)
        tables = self.tables()
        first = self.scale_of_norm("model/layers.0/input_layernorm")
        y = self.op("SimplifiedLayerNormalization", [x, first], "model/layers.0/input_layernorm", axis=-1, epsilon=EPSILON, stash_type=1)
        for layer in range(size.layers):
            name = f"model/layers.{layer}"
            y = self.attention(y, layer, last, total, tables)
            y, x = self.skip_norm(x, y, f"{name}/post_attention_layernorm")
            y = self.activated(y, layer)
            following = f"model/layers.{layer + 1}/input_layernorm" if layer + 1 < size.layers else "model/layers/final_norm_layernorm"
            y, x = self.skip_norm(x, y, following)
        if self.weights == "f32":
            head = self.op("Transpose", ["model.embed_tokens.weight"], "lm_head", perm=[1, 0])
            self.nodes.append(helper.make_node("MatMul", [y, head], ["logits"], name="/lm_head/MatMul"))
        else:
            self.nodes.append(helper.make_node("Identity", [self.product(y, table, "lm_head")], ["logits"], name="/lm_head/Identity"))
        return self.finish("past_sequence_length", "total_sequence_length")


def data_sets(size, form):
    """Inputs by name, in the order of the file: a prompt; a token after it; two entries."""
    rng = np.random.RandomState(7)
    # ONNX Runtime's GroupQueryAttention takes several rows behind a past of one entry alone.
    for batch, past, rows in ((1, 0, 11), (1, 11, 1), (1, 5, 4), (2, 5, 3 if form == "plain" else 1)):
        total = past + rows
        feeds = {
            "input_ids": rng.randint(0, size.vocabulary, (batch, rows)),
            "attention_mask": np.ones((batch, total), np.int64),
        }
        if form == "plain":
            feeds["position_ids"] = np.tile(np.arange(past, total), (batch, 1))
        held = min(CAPACITY, size.places) if form == "fused" else past
        for layer in range(size.layers):
            for part in ("key", "value"):
                cache = rng.standard_normal((batch, size.groups, held, size.depth)).astype(np.float32)
                cache[:, :, past:] = 0
                feeds[f"past_key_values.{layer}.{part}"] = cache
        yield feeds


def expected(path, feeds, form):
    """What ONNX Runtime computes; caches that are shared get the memory of their inputs."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(value.copy()) for name, value in feeds.items()}
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    names = [output.name for output in session.get_outputs()]
    for name in names:
        if form == "fused" and name.startswith("present"):
            binding.bind_ortvalue_output(name, values[name.replace("present", "past_key_values")])
        else:
            binding.bind_output(name)
    session.run_with_iobinding(binding)
    return dict(zip(names, [value.numpy().copy() for value in binding.get_outputs()]))


def generate(name, folder):
    base, form, weights = name.split("_")
    size = SIZES[base]
    graph = (Plain if form == "plain" else Fused)(size, base, weights)
    model = graph.build()
    folder.mkdir(parents=True, exist_ok=True)
    parameters = sum(int(np.prod(tensor.dims)) for tensor in model.graph.initializer)
    held = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    path = folder / "model.onnx"
    (folder / "model.onnx.data").unlink(missing_ok=True)
    onnx.save(model, path, save_as_external_data=held > 1 << 30, location="model.onnx.data", size_threshold=1024)
    nodes = len(model.graph.node)
    del model, graph
    inputs = {}
    for number, feeds in enumerate(data_sets(size, form)):
        inputs = inputs or {tensor: [str(value.dtype), list(value.shape)] for tensor, value in feeds.items()}
        where = folder / f"test_data_set_{number}"
        where.mkdir(exist_ok=True)
        for kind, values in (("input", feeds), ("output", expected(path, feeds, form))):
            for i, (tensor, value) in enumerate(values.items()):
                (where / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(value, tensor).SerializeToString())
    info = {"size": dataclasses.asdict(size), "form": form, "weights": weights, "initializer_elements": parameters, "initializer_bytes": held, "nodes": nodes,
            "inputs": inputs}
    (folder / "info.json").write_text(json.dumps(info, indent=2) + "\n")
    print(f"{name}: {nodes} nodes, {held / 1e6:.0f} MB of weights", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--sizes", default=",".join(SIZES), help="of those: all by default")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if set(options.sizes.split(",")) - set(SIZES):
        parser.error(f"--sizes {options.sizes}: expected some of {', '.join(SIZES)}")
    names = [f"{size}_{form}_{weights}" for size in options.sizes.split(",") for form in FORMS for weights in WEIGHTS]
    if options.list:
        print("\n".join(names))
        return
    wanted = options.only.split(",") if options.only else names
    unknown = sorted(set(wanted) - set(names))
    if unknown:
        parser.error(f"no such network: {', '.join(unknown)}")
    for name in wanted:
        folder = options.out / name
        if not options.only and (folder / "info.json").exists():
            continue
        generate(name, folder)


if __name__ == "__main__":
    main()
