#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Generates the larger test networks: ONNX models with seeded random weights, inputs and reference outputs.

    make_models.py --out DIR [--only NAME,...] [--list] [--check]

The layout of DIR, how weights are drawn and what the reference is stands in torch_export.py.

The graphs are what torch.onnx.export makes of ordinary modules, so they hold what a compiler meets in practice:
BatchNorm folded into Conv in most and kept in some, LayerNorm decomposed at opset 13 and whole at opset 17, GELU as
chains of Erf or Tanh, SiLU as Sigmoid and Mul, shapes that are computed at run time.

Runs under Debian 12's own Python, with python3-torch, python3-torchvision, python3-onnx and python3-numpy.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from torch_export import Network, main, tv


# -- networks that torchvision does not have ---------------------------------------------------------------------------

class Conv1D(nn.Module):
    """GPT-2's linear layer, whose weight is (in, out)."""

    weight_is_transposed = True

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

def vit(size, patch, layers, heads, hidden, mlp_dim, classes=1000):
    def build():
        from torchvision.models.vision_transformer import VisionTransformer
        return VisionTransformer(image_size=size, patch_size=patch, num_layers=layers, num_heads=heads,
                                 hidden_dim=hidden, mlp_dim=mlp_dim, num_classes=classes)
    return build


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


if __name__ == "__main__":
    main(__doc__, NETWORKS)
