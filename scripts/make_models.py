#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Generates the larger test networks: ONNX models with seeded random weights, inputs and reference outputs.

    make_models.py --out DIR [--only NAME,...] [--list] [--check]

Each network NAME comes in the layout of the ONNX backend tests:

    DIR/NAME/model.onnx
    DIR/NAME/test_data_set_K/input_I.pb     TensorProto, in the order of the graph's inputs
    DIR/NAME/test_data_set_K/output_I.pb    TensorProto, in the order of its outputs
    DIR/NAME/info.json                      shapes, operations, parameters, operators

The graphs are what torch.onnx.export makes of ordinary modules, so they hold what a compiler meets in practice:
BatchNorm folded into Conv in most and kept in some, LayerNorm decomposed at opset 13 and whole at opset 17, GELU as
chains of Erf or Tanh, SiLU as Sigmoid and Mul, shapes that are computed at run time.

Each tensor is drawn from numpy's RandomState (a frozen stream) seeded with the CRC-32 of "network/module/parameter", so
that a network does not depend on which others are generated. Scales are He-like (convolutions, MLPs) or 1/sqrt(fan_in)
(transformers), and BatchNorm statistics come from a calibration over random inputs: activations stay near unit scale,
and a wrong result shows in the output instead of vanishing.

The reference is torch's result in float64 from the float32 weights and inputs, rounded to float32: closer to the exact
result than any float32 run, so it is compared with a tolerance. How far torch's own float32 is from it stands in
info.json (torch_f32_max_abs_err).

Runs under Debian 12's own Python, with python3-torch, python3-torchvision, python3-onnx and python3-numpy.
"""

import argparse
import dataclasses
import json
import math
import os
import sys
import time
import warnings
import zlib
from collections.abc import Callable

import numpy as np
import onnx
from onnx import numpy_helper, shape_inference
import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")


# -- seeded initialisation ---------------------------------------------------------------------------------------------

def rng_for(*key):
    return np.random.RandomState(zlib.crc32("/".join(key).encode()))


def to_param(values, like):
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32)).reshape(like.shape)


NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.LayerNorm, nn.GroupNorm)
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


def init_weights(model, name, gain):
    """Fills every parameter; gain is sqrt(2) (He) or 1 (transformers)."""
    done = set()
    with torch.no_grad():
        for mod_name, mod in model.named_modules():
            recurrent = isinstance(mod, (nn.LSTM, nn.GRU, nn.RNN))
            for p_name, p in mod.named_parameters(recurse=False):
                if id(p) in done:           # tied weights
                    continue
                done.add(id(p))
                r = rng_for(name, mod_name, p_name)
                n = p.numel()
                if recurrent:
                    k = 1.0 / math.sqrt(mod.hidden_size)
                    v = r.uniform(-2 * k, 2 * k, n)
                elif isinstance(mod, NORMS):
                    v = r.uniform(0.6, 1.4, n) if p_name == "weight" else 0.1 * r.standard_normal(n)
                elif isinstance(mod, nn.Embedding) or "embed" in p_name or "token" in p_name:
                    v = 0.5 * r.standard_normal(n)
                elif "layer_scale" in p_name:
                    v = r.uniform(0.2, 0.6, n)
                elif p.dim() < 2:
                    v = 0.05 * r.standard_normal(n)
                else:
                    if isinstance(mod, nn.ConvTranspose2d):
                        fan_in = p.shape[0] * p.shape[2] * p.shape[3] / (mod.stride[0] * mod.stride[1])
                    elif isinstance(mod, Conv1D):
                        fan_in = p.shape[0]
                    else:
                        fan_in = p[0].numel()
                    v = gain / math.sqrt(fan_in) * r.standard_normal(n)
                p.copy_(to_param(v, p))
    return model


def calibrate_batch_norm(model, name, shape, batch):
    """Sets running statistics from random inputs, in float64: rounded to float32 they do not depend on the order in
    which a machine's kernels add up."""
    bns = [m for m in model.modules() if isinstance(m, BATCH_NORMS)]
    if not bns:
        return
    model.eval().double()
    for m in bns:
        m.reset_running_stats()
        m.momentum = None
        m.train()
    with torch.no_grad():
        for i in range(2):
            x = rng_for(name, f"calibration{i}").standard_normal((batch,) + tuple(shape[1:]))
            model(torch.from_numpy(x.astype(np.float32)).double())
    model.eval().float()


# -- networks that torchvision does not have ---------------------------------------------------------------------------

class Conv1D(nn.Module):
    """GPT-2's linear layer, whose weight is (in, out)."""

    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_in, n_out))
        self.bias = nn.Parameter(torch.empty(n_out))
        self.n_out = n_out

    def forward(self, x):
        size = x.size()[:-1] + (self.n_out,)
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(size)


class BertLayer(nn.Module):
    def __init__(self, d, heads, ff):
        super().__init__()
        self.heads, self.hd = heads, d // heads
        self.query, self.key, self.value = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.attn_out = nn.Linear(d, d)
        self.attn_norm = nn.LayerNorm(d, eps=1e-12)
        self.intermediate = nn.Linear(d, ff)
        self.output = nn.Linear(ff, d)
        self.out_norm = nn.LayerNorm(d, eps=1e-12)

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, self.hd).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        s = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.hd) + mask
        c = torch.matmul(torch.softmax(s, dim=-1), v).permute(0, 2, 1, 3).contiguous()
        c = c.view(c.size(0), c.size(1), self.heads * self.hd)
        x = self.attn_norm(self.attn_out(c) + x)
        return self.out_norm(self.output(F.gelu(self.intermediate(x))) + x)


class Bert(nn.Module):
    def __init__(self, layers, d, heads, ff, vocab=30522, max_pos=512):
        super().__init__()
        self.word = nn.Embedding(vocab, d)
        self.pos = nn.Embedding(max_pos, d)
        self.segment = nn.Embedding(2, d)
        self.norm = nn.LayerNorm(d, eps=1e-12)
        self.layers = nn.ModuleList([BertLayer(d, heads, ff) for _ in range(layers)])
        self.pooler = nn.Linear(d, d)
        self.register_buffer("position_ids", torch.arange(max_pos).unsqueeze(0))

    def forward(self, input_ids, attention_mask, token_type_ids):
        x = self.word(input_ids) + self.segment(token_type_ids) + self.pos(self.position_ids[:, :input_ids.size(1)])
        x = self.norm(x)
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * -10000.0
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


class Gpt2Block(nn.Module):
    def __init__(self, d, heads, max_pos):
        super().__init__()
        self.heads, self.d = heads, d
        self.ln_1, self.ln_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.c_attn, self.attn_proj = Conv1D(d, 3 * d), Conv1D(d, d)
        self.c_fc, self.mlp_proj = Conv1D(d, 4 * d), Conv1D(4 * d, d)
        tri = torch.tril(torch.ones(max_pos, max_pos, dtype=torch.bool))
        self.register_buffer("bias", tri.view(1, 1, max_pos, max_pos))

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, self.d // self.heads).permute(0, 2, 1, 3)

    def forward(self, x):
        q, k, v = [self.split(t) for t in self.c_attn(self.ln_1(x)).split(self.d, dim=2)]
        w = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.d // self.heads)
        n = w.size(-1)
        w = torch.where(self.bias[:, :, :n, :n], w, torch.tensor(-1e4, dtype=w.dtype))
        a = torch.matmul(torch.softmax(w, dim=-1), v).permute(0, 2, 1, 3).contiguous()
        x = x + self.attn_proj(a.view(a.size(0), a.size(1), self.d))
        h = self.c_fc(self.ln_2(x))
        h = 0.5 * h * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (h + 0.044715 * torch.pow(h, 3.0))))
        return x + self.mlp_proj(h)


class Gpt2(nn.Module):
    def __init__(self, layers, d, heads, vocab=50257, max_pos=1024):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, d), nn.Embedding(max_pos, d)
        self.h = nn.ModuleList([Gpt2Block(d, heads, max_pos) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(d)
        self.lm_head = nn.Linear(d, vocab, bias=False)
        self.lm_head.weight = self.wte.weight          # tied

    def forward(self, input_ids):
        pos = torch.arange(0, input_ids.size(1)).unsqueeze(0)
        x = self.wte(input_ids) + self.wpe(pos)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class Lstm(nn.Module):
    def __init__(self, n_in=128, hidden=256, layers=2, classes=32):
        super().__init__()
        self.rnn = nn.LSTM(n_in, hidden, layers, batch_first=True)
        self.fc = nn.Linear(hidden, classes)

    def forward(self, x):
        y, (h, c) = self.rnn(x)
        return self.fc(y), h, c


def conv_bn_relu(cin, cout, k, stride=1, pad=None, groups=1):
    pad = k // 2 if pad is None else pad
    return nn.Sequential(nn.Conv2d(cin, cout, k, stride, pad, groups=groups, bias=False),
                         nn.BatchNorm2d(cout), nn.ReLU())


class ResNet8(nn.Module):
    """MLPerf Tiny image classification (CIFAR-10)."""

    class Block(nn.Module):
        def __init__(self, cin, cout, stride):
            super().__init__()
            self.a = conv_bn_relu(cin, cout, 3, stride)
            self.b = nn.Sequential(nn.Conv2d(cout, cout, 3, 1, 1), nn.BatchNorm2d(cout))
            self.skip = nn.Conv2d(cin, cout, 1, stride) if stride != 1 else nn.Identity()

        def forward(self, x):
            return F.relu(self.b(self.a(x)) + self.skip(x))

    def __init__(self):
        super().__init__()
        self.stem = conv_bn_relu(3, 16, 3)
        self.blocks = nn.Sequential(self.Block(16, 16, 1), self.Block(16, 32, 2), self.Block(32, 64, 2))
        self.pool = nn.AvgPool2d(8)
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        return torch.softmax(self.fc(torch.flatten(self.pool(self.blocks(self.stem(x))), 1)), 1)


def ds_cnn():
    """MLPerf Tiny keyword spotting: 49x10 MFCC, 12 words."""
    layers = [nn.ZeroPad2d((1, 1, 4, 5)), nn.Conv2d(1, 64, (10, 4), 2, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    for _ in range(4):
        layers += [conv_bn_relu(64, 64, 3, groups=64), conv_bn_relu(64, 64, 1)]
    return nn.Sequential(*layers, nn.AvgPool2d((25, 5)), nn.Flatten(), nn.Linear(64, 12), nn.Softmax(1))


def mobilenet_v1_025():
    """MLPerf Tiny visual wake words: MobileNetV1, width 0.25, 96x96."""
    layers, cin = [conv_bn_relu(3, 8, 3, 2)], 8
    for cout, stride in [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (128, 1), (128, 1),
                         (128, 1), (128, 1), (256, 2), (256, 1)]:
        layers += [conv_bn_relu(cin, cin, 3, stride, groups=cin), conv_bn_relu(cin, cout, 1)]
        cin = cout
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 2), nn.Softmax(1))


def autoencoder():
    """MLPerf Tiny anomaly detection: fully connected autoencoder on 640 features."""
    layers, cin = [], 640
    for cout in [128] * 4 + [8] + [128] * 4:
        layers += [nn.Linear(cin, cout), nn.BatchNorm1d(cout), nn.ReLU()]
        cin = cout
    return nn.Sequential(*layers, nn.Linear(128, 640))


def mlp():
    return nn.Sequential(nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))


# -- the list ----------------------------------------------------------------------------------------------------------

def tv(fn, **kw):
    def build():
        import torchvision
        return getattr(torchvision.models, fn)(weights=None, **kw)
    return build


def vit(size, patch, layers, heads, hidden, mlp_dim, classes=1000):
    def build():
        from torchvision.models.vision_transformer import VisionTransformer
        return VisionTransformer(image_size=size, patch_size=patch, num_layers=layers, num_heads=heads,
                                 hidden_dim=hidden, mlp_dim=mlp_dim, num_classes=classes)
    return build


HE = math.sqrt(2.0)


@dataclasses.dataclass(frozen=True)
class Network:
    name: str
    build: Callable
    inputs: list            # (name, kind, shape): "normal", ("ids", vocabulary), ("prefix", ones) or ("suffix", zeros)
    outputs: list           # names
    note: str
    gain: float = HE
    opset: int = 13
    keep_bn: bool = False   # BatchNormalization nodes are not folded
    calib: int = 4          # batch of the calibration
    sizes: tuple = ({},)    # for each data set, of the dimensions that are names in `inputs`; the exporter sees the first


def image(c=3, h=224, w=224, n=1):
    return [("input", "normal", (n, c, h, w))]


def token_ids(vocab, batch, seq):
    return [("input_ids", ("ids", vocab), (batch, seq))]


def bert_inputs(seq, vocab):
    return [("input_ids", ("ids", vocab), (1, seq)), ("attention_mask", ("prefix", seq - seq // 5), (1, seq)),
            ("token_type_ids", ("suffix", seq // 2), (1, seq))]


def bert_inputs_dyn(vocab):
    shape = ("batch", "sequence")
    return [("input_ids", ("ids", vocab), shape), ("attention_mask", ("prefix", None), shape),
            ("token_type_ids", ("suffix", None), shape)]


NETWORKS = [
    Network("resnet18", tv("resnet18"), image(), ["logits"], "BatchNorm folded by the exporter"),
    Network("resnet18_bn", tv("resnet18"), image(), ["logits"], "the same network, BatchNormalization nodes kept",
            keep_bn=True),
    Network("resnet50", tv("resnet50"), image(), ["logits"], "BatchNorm folded", opset=14),
    Network("mobilenet_v2", tv("mobilenet_v2"), image(), ["logits"], "depthwise convolutions, Clip(0,6)"),
    Network("mobilenet_v3_small", tv("mobilenet_v3_small"), image(), ["logits"],
            "HardSwish, HardSigmoid, squeeze-and-excite", opset=14),
    Network("squeezenet1_1", tv("squeezenet1_1"), image(), ["logits"], "fire modules (Concat), MaxPool with ceil_mode"),
    Network("efficientnet_b0", tv("efficientnet_b0"), image(), ["logits"],
            "SiLU as Sigmoid*Mul, squeeze-and-excite, 5x5 depthwise", opset=15),
    Network("vit_b_16", vit(224, 16, 12, 12, 768, 3072), image(), ["logits"],
            "ViT-B/16, LayerNormalization nodes (opset 17)", gain=1.0, opset=17),
    Network("vit_tiny", vit(224, 16, 12, 3, 192, 768), image(), ["logits"],
            "ViT-Ti/16 (12x192), LayerNorm decomposed (opset 14)", gain=1.0, opset=14),
    Network("bert_base", lambda: Bert(12, 768, 12, 3072), bert_inputs(128, 30522),
            ["last_hidden_state", "pooler_output"],
            "12x768, sequence 128, padding mask, LayerNorm and GELU decomposed", gain=1.0),
    Network("bert_tiny", lambda: Bert(2, 128, 2, 512, vocab=1000), bert_inputs(64, 1000),
            ["last_hidden_state", "pooler_output"],
            "2x128, sequence 64: the same graph at a size for unit tests", gain=1.0, opset=17),
    Network("gpt2_small", lambda: Gpt2(12, 768, 12), token_ids(50257, 1, 128), ["logits"],
            "12x768, one forward of 128 tokens with all logits; causal mask by Where, GELU by Tanh", gain=1.0,
            opset=14),
    Network("gpt2_tiny", lambda: Gpt2(2, 128, 2, vocab=1000, max_pos=128), token_ids(1000, 1, 32), ["logits"],
            "2x128, 32 tokens: the same graph at a size for unit tests", gain=1.0),
    Network("mlp", mlp, [("input", "normal", (64, 800))], ["output"], "64x800 -> 500, ReLU -> 10"),
    Network("lstm", Lstm, [("input", "normal", (1, 64, 128))], ["output", "h_n", "c_n"],
            "2-layer LSTM, 128 -> 256, 64 steps, then Linear 256 -> 32", gain=1.0, opset=14),
    Network("tiny_resnet8", ResNet8, image(3, 32, 32), ["probabilities"],
            "MLPerf Tiny IC shape, BatchNormalization kept", keep_bn=True, calib=64),
    Network("tiny_dscnn", ds_cnn, image(1, 49, 10), ["probabilities"], "MLPerf Tiny KWS shape, separate Pad node",
            calib=64),
    Network("tiny_mobilenet_v1", mobilenet_v1_025, image(3, 96, 96), ["probabilities"], "MLPerf Tiny VWW shape",
            calib=32),
    Network("tiny_resnet8_dyn", ResNet8, [("input", "normal", ("batch", 3, 32, 32))], ["probabilities"],
            "symbolic batch", calib=64, sizes=({"batch": 1}, {"batch": 7}, {"batch": 32})),
    Network("bert_tiny_dyn", lambda: Bert(2, 128, 2, 512, vocab=1000), bert_inputs_dyn(1000),
            ["last_hidden_state", "pooler_output"],
            "symbolic batch and sequence: shapes computed at run time by Shape, Gather, Concat, Reshape", gain=1.0,
            opset=14,
            sizes=({"batch": 2, "sequence": 17}, {"batch": 1, "sequence": 64}, {"batch": 3, "sequence": 128})),
    Network("gpt2_tiny_dyn", lambda: Gpt2(2, 128, 2, vocab=1000, max_pos=128), token_ids(1000, "batch", "sequence"),
            ["logits"], "symbolic batch and sequence, causal mask sliced at run time", gain=1.0, opset=13,
            sizes=({"batch": 1, "sequence": 5}, {"batch": 1, "sequence": 32}, {"batch": 2, "sequence": 100})),
    Network("lstm_dyn", Lstm, [("input", "normal", ("batch", "steps", 128))], ["output", "h_n", "c_n"],
            "symbolic batch and number of steps", gain=1.0, opset=14,
            sizes=({"batch": 1, "steps": 10}, {"batch": 4, "steps": 64}, {"batch": 2, "steps": 1})),
    Network("tiny_autoencoder", autoencoder, [("input", "normal", (1, 640))], ["output"],
            "MLPerf Tiny AD shape, BatchNormalization after Gemm", calib=256),
]


# -- inputs, export, counting ------------------------------------------------------------------------------------------

def shape_at(shape, sizes):
    return tuple(sizes.get(d, d) for d in shape)


def make_input(network, name, kind, shape, k=0):
    r = rng_for(network.name, "input", name, *([str(k)] if k else []))
    if kind == "normal":
        return r.standard_normal(shape).astype(np.float32)
    what, n = kind
    if what == "ids":
        return r.randint(0, n, shape).astype(np.int64)
    a = np.zeros(shape, np.int64)          # masks
    if what == "prefix":
        a[..., :shape[-1] - shape[-1] // 5 if n is None else n] = 1
    else:
        a[..., shape[-1] // 2 if n is None else n:] = 1
    return a


def conv_output_shapes(model, args):
    """Output shape of each convolution, in order of execution."""
    shapes, hooks = [], []
    for m in model.modules():
        if isinstance(m, (nn.Conv1d, nn.Conv2d, nn.ConvTranspose2d)):
            hooks.append(m.register_forward_hook(lambda mod, i, o: shapes.append(tuple(o.shape))))
    with torch.no_grad():
        model(*args)
    for h in hooks:
        h.remove()
    return shapes


def count(path, conv_shapes):
    """(parameters, multiply-accumulates, operators) of an ONNX file; no second where a shape is symbolic. conv_shapes
    stands in where shape inference gives up (Pad with computed pads)."""
    m = shape_inference.infer_shapes(onnx.load(path), data_prop=True)
    g, shapes, params = m.graph, {}, 0
    for t in g.initializer:
        shapes[t.name] = tuple(t.dims)
        if t.data_type == onnx.TensorProto.FLOAT:
            params += int(np.prod(t.dims))
    for v in list(g.input) + list(g.value_info) + list(g.output):
        shapes.setdefault(v.name, tuple(d.dim_value for d in v.type.tensor_type.shape.dim))
    macs, ops, convs = 0, {}, iter(conv_shapes)
    for n in g.node:
        ops[n.op_type] = ops.get(n.op_type, 0) + 1
    if any(d.dim_param for i in g.input for d in i.type.tensor_type.shape.dim):
        return params, None, ops
    for n in g.node:
        att = {a.name: onnx.helper.get_attribute_value(a) for a in n.attribute}
        if n.op_type == "Constant":
            t = att.get("value")
            if t is not None:
                shapes[n.output[0]] = tuple(t.dims)
            continue
        s = [shapes.get(x, ()) for x in n.input]
        o = shapes.get(n.output[0], ())
        if n.op_type in ("Conv", "ConvTranspose"):
            o = next(convs)
            if n.op_type == "Conv":
                macs += int(o[0] * np.prod(o[2:]) * np.prod(s[1]))
            else:
                macs += int(np.prod(s[0]) * np.prod(s[1][1:]))
        elif n.op_type == "Gemm":
            k = s[0][0] if att.get("transA", 0) else s[0][1]
            macs += int(np.prod(o) * k)
        elif n.op_type == "MatMul":
            if not o or 0 in o or not s[0]:
                raise SystemExit(f"no static shape for {n.name}")
            macs += int(np.prod(o) * s[0][-1])
        elif n.op_type in ("LSTM", "GRU"):
            macs += int(s[0][0] * s[0][1] * (np.prod(s[1]) + np.prod(s[2])))
    return params, macs, ops


def save_tensor(array, name, path):
    with open(path, "wb") as f:
        f.write(numpy_helper.from_array(np.ascontiguousarray(array), name).SerializeToString())


def generate(network, out_dir, check):
    start = time.time()
    model = network.build()
    init_weights(model, network.name, network.gain)
    if network.inputs[0][1] == "normal":
        calibrate_batch_norm(model, network.name, shape_at(network.inputs[0][2], network.sizes[0]), network.calib)
    model.eval()

    names = [i[0] for i in network.inputs]
    sets = [[make_input(network, n, kind, shape_at(shape, sizes), k) for n, kind, shape in network.inputs]
            for k, sizes in enumerate(network.sizes)]
    arrays = sets[0]
    args = tuple(torch.from_numpy(a) for a in arrays)
    dynamic = {n: {i: x for i, x in enumerate(shape) if isinstance(x, str)} for n, _, shape in network.inputs}

    d = os.path.join(out_dir, network.name)
    os.makedirs(d, exist_ok=True)
    path = os.path.join(d, "model.onnx")
    # With gradients: without them nn.MultiheadAttention takes a fused path that has no ONNX form.
    torch.onnx.export(model, args, path, input_names=names, output_names=network.outputs, opset_version=network.opset,
                      do_constant_folding=True, dynamic_axes=dynamic if any(dynamic.values()) else None,
                      training=torch.onnx.TrainingMode.PRESERVE if network.keep_bn else torch.onnx.TrainingMode.EVAL)
    if check:
        onnx.checker.check_model(path)

    def run(net, xs):
        with torch.no_grad():
            y = net(*xs)
        flat = []
        for t in (y if isinstance(y, (tuple, list)) else (y,)):
            flat += list(t) if isinstance(t, (tuple, list)) else [t]
        return [t.numpy() for t in flat]

    conv_shapes = conv_output_shapes(model, args)
    f32 = run(model, args)
    model.double()
    refs = [run(model, [t.double() if t.is_floating_point() else t for t in map(torch.from_numpy, xs)]) for xs in sets]
    err = max(float(np.abs(a - b).max()) for a, b in zip(f32, refs[0]))
    refs = [[np.asarray(r, np.float32) for r in ref] for ref in refs]
    ref = refs[0]
    assert all(np.isfinite(r).all() for x in refs for r in x), "reference output is not finite"

    for k, xs in enumerate(sets):
        data = os.path.join(d, f"test_data_set_{k}")
        os.makedirs(data, exist_ok=True)
        for i, (n, a) in enumerate(zip(names, xs)):
            save_tensor(a, n, os.path.join(data, f"input_{i}.pb"))
        for i, (n, a) in enumerate(zip(network.outputs, refs[k])):
            save_tensor(a, n, os.path.join(data, f"output_{i}.pb"))

    params, macs, ops = count(path, conv_shapes)
    info = {
        "name": network.name, "note": network.note, "opset": network.opset,
        "inputs": {n: [str(a.dtype), list(shape)] for a, (n, _, shape) in zip(arrays, network.inputs)},
        "outputs": {n: list(a.shape) for n, a in zip(network.outputs, ref)},
        "output_std": [round(float(a.std()), 4) for a in ref],
        "parameters": params, "macs": macs, "gflop": macs and round(2e-9 * macs, 6),
        "file_bytes": os.path.getsize(path), "torch_f32_max_abs_err": err,
        "nodes": sum(v for k, v in ops.items() if k != "Constant"), "ops": dict(sorted(ops.items())),
    }
    with open(os.path.join(d, "info.json"), "w") as f:
        json.dump(info, f, indent=1)
        f.write("\n")
    print(f"{network.name:<20} {params / 1e6:8.3f} M parameters {2e-9 * (macs or 0):10.4f} GFLOP "
          f"{info['nodes']:5} nodes  f32 error {err:.1e}  ({time.time() - start:.0f} s)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", help="folder to write to")
    parser.add_argument("--only", help="names, separated by commas")
    parser.add_argument("--list", action="store_true", help="the names, and no more")
    parser.add_argument("--check", action="store_true", help="run onnx.checker on each network")
    parser.add_argument("--threads", type=int, default=1, help="of torch; the files do not depend on it")
    args = parser.parse_args()
    if args.list:
        for network in NETWORKS:
            print(f"{network.name:<20} opset {network.opset}  {network.note}")
        return
    if not args.out:
        parser.error("--out is required")
    known = [network.name for network in NETWORKS]
    only = args.only.split(",") if args.only else known
    if unknown := sorted(set(only) - set(known)):
        sys.exit(f"no network {', '.join(unknown)}; --list has their names")
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    for network in NETWORKS:
        if network.name in only:
            generate(network, args.out, args.check)


if __name__ == "__main__":
    main()
