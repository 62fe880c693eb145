# SPDX-License-Identifier: Apache-2.0
"""The networks that scripts/test_torch.py takes from torch: of torchvision, and of the kinds that people write themselves.

Small inputs, seeded random weights, modules in evaluation mode. What a call is given at two sizes shows whether sizes stayed symbols.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torch.export import Dim

from torch_export import calibrate_batch_norm, init_weights, rng_for


class RootNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class RotaryAttention(nn.Module):
    """Rotary positions, fewer heads of keys than of queries, F.scaled_dot_product_attention."""

    def __init__(self, size, heads, key_heads):
        super().__init__()
        self.heads, self.key_heads, self.width = heads, key_heads, size // heads
        self.q, self.o = nn.Linear(size, size, bias=False), nn.Linear(size, size, bias=False)
        self.k, self.v = (nn.Linear(size, key_heads * self.width, bias=False) for _ in range(2))

    def rotated(self, x, positions):
        rates = 10000.0 ** (-torch.arange(0, self.width, 2, dtype=torch.float32) / self.width)
        angles = torch.outer(positions, rates)
        cos, sin = torch.cos(angles), torch.sin(angles)
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def forward(self, x):
        batch, length, _ = x.shape
        positions = torch.arange(length, dtype=torch.float32)
        q = self.rotated(self.q(x).view(batch, length, self.heads, self.width).transpose(1, 2), positions)
        k = self.rotated(self.k(x).view(batch, length, self.key_heads, self.width).transpose(1, 2), positions)
        v = self.v(x).view(batch, length, self.key_heads, self.width).transpose(1, 2)
        repeats = self.heads // self.key_heads
        k, v = k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).reshape(batch, length, -1))


class Llama(nn.Module):
    def __init__(self, layers=2, size=64, vocabulary=500):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, size)
        self.layers = nn.ModuleList(
            nn.ModuleDict({
                "norm": RootNorm(size), "attention": RotaryAttention(size, 4, 2), "norm2": RootNorm(size),
                "gate": nn.Linear(size, 3 * size, bias=False), "up": nn.Linear(size, 3 * size, bias=False),
                "down": nn.Linear(3 * size, size, bias=False),
            })
            for _ in range(layers)
        )
        self.norm, self.head = RootNorm(size), nn.Linear(size, vocabulary, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = x + layer["attention"](layer["norm"](x))
            y = layer["norm2"](x)
            x = x + layer["down"](F.silu(layer["gate"](y)) * layer["up"](y))
        return self.head(self.norm(x))


class Gpt(nn.Module):
    """GPT-2's block: one projection to queries, keys and values, a causal mask that is a buffer."""

    def __init__(self, layers=2, size=64, heads=4, vocabulary=500, most=64):
        super().__init__()
        self.heads = heads
        self.word, self.place = nn.Embedding(vocabulary, size), nn.Embedding(most, size)
        self.register_buffer("mask", torch.tril(torch.ones(most, most, dtype=torch.bool)))
        self.layers = nn.ModuleList(
            nn.ModuleList([nn.LayerNorm(size), nn.Linear(size, 3 * size), nn.Linear(size, size), nn.LayerNorm(size),
                           nn.Linear(size, 4 * size), nn.Linear(4 * size, size)])
            for _ in range(layers)
        )
        self.norm, self.head = nn.LayerNorm(size), nn.Linear(size, vocabulary, bias=False)

    def forward(self, ids):
        batch, length = ids.shape
        x = self.word(ids) + self.place(torch.arange(length))
        for norm, qkv, out, norm2, up, down in self.layers:
            q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in qkv(norm(x)).chunk(3, -1))
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
            scores = scores.masked_fill(~self.mask[:length, :length], float("-inf"))
            x = x + out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, -1))
            x = x + down(F.gelu(up(norm2(x)), approximate="tanh"))
        return self.head(self.norm(x))


class Encoder(nn.Module):
    """nn.TransformerEncoder on words, some of which are padding."""

    def __init__(self, vocabulary=500, size=64):
        super().__init__()
        self.word = nn.Embedding(vocabulary, size)
        layer = nn.TransformerEncoderLayer(size, 4, 128, batch_first=True, norm_first=True, activation="gelu")
        self.encoder, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(size, 3)

    def forward(self, ids):
        padding = ids < 100
        x = self.encoder(self.word(ids), src_key_padding_mask=padding)
        return self.head(x.masked_fill(padding[..., None], 0).mean(1))


class Seq2Seq(nn.Module):
    def __init__(self, vocabulary=300, size=32):
        super().__init__()
        self.word, self.head = nn.Embedding(vocabulary, size), nn.Linear(size, vocabulary)
        self.transformer = nn.Transformer(size, 4, 2, 2, 64, batch_first=True)

    def forward(self, source, target):
        length = target.size(1)
        mask = torch.full((length, length), float("-inf")).triu(1)
        return self.head(self.transformer(self.word(source), self.word(target), tgt_mask=mask, tgt_is_causal=True))


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.word = nn.Embedding(200, 24)
        self.cells, self.head = kind(24, 32, batch_first=True, **options), nn.Linear(32 * (1 + options.get("bidirectional", 0)), 4)

    def forward(self, ids):
        return self.head(self.cells(self.word(ids))[0].amax(1))


def double_conv(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([double_conv(3, 16), double_conv(16, 32), double_conv(32, 64)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(64, 32, 2, 2), nn.ConvTranspose2d(32, 16, 2, 2)])
        self.join, self.head = nn.ModuleList([double_conv(64, 32), double_conv(32, 16)]), nn.Conv2d(16, 2, 1)

    def forward(self, x):
        kept = []
        for block in self.down[:-1]:
            kept.append(block(x))
            x = F.max_pool2d(kept[-1], 2)
        x = self.down[-1](x)
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([up(x), kept.pop()], 1))
        return self.head(x)


class UpsamplingUNet(UNet):
    """Bilinear instead of transposed convolutions, to the size of what it joins."""

    def __init__(self):
        super().__init__()
        self.up = nn.ModuleList([nn.Conv2d(64, 32, 1), nn.Conv2d(32, 16, 1)])

    def forward(self, x):
        kept = []
        for block in self.down[:-1]:
            kept.append(block(x))
            x = F.avg_pool2d(kept[-1], 2, ceil_mode=True)
        x = self.down[-1](x)
        for up, join in zip(self.up, self.join):
            beside = kept.pop()
            x = F.interpolate(up(x), size=beside.shape[-2:], mode="bilinear", align_corners=False)
            x = join(torch.cat([x, beside], 1))
        return self.head(x)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(1, 16, 3, 2, 1), nn.GELU(), nn.Conv2d(16, 32, 3, 2, 1), nn.GELU(), nn.Flatten(), nn.Linear(1568, 32))
        self.decode = nn.Sequential(nn.Linear(32, 1568), nn.Unflatten(1, (32, 7, 7)), nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.GELU(),
                                    nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Sigmoid())

    def forward(self, x):
        code = self.encode(x)
        return self.decode(code), code


class Speech(nn.Module):
    """Samples of any number: strided convolutions, a GRU, weights of steps by a softmax, a dictionary of results."""

    def __init__(self):
        super().__init__()
        self.filters = nn.Sequential(nn.Conv1d(1, 16, 10, 5), nn.GroupNorm(4, 16), nn.GELU(), nn.Conv1d(16, 32, 8, 4), nn.ELU())
        self.cells, self.score, self.head = nn.GRU(32, 24, batch_first=True), nn.Linear(24, 1), nn.Linear(48, 6)

    def forward(self, samples):
        x = self.filters(samples[:, None]).transpose(1, 2)
        x, last = self.cells(x)
        weights = self.score(x).softmax(1)
        pooled = torch.cat([(weights * x).sum(1), x.std(1)], -1)
        return {"classes": F.log_softmax(self.head(pooled), -1), "state": last[0], "steps": weights.squeeze(-1)}


class Recommender(nn.Module):
    """Bags of items beside numbers: EmbeddingBag, a product of embeddings, batch norm of rows."""

    def __init__(self):
        super().__init__()
        self.items, self.user = nn.EmbeddingBag(300, 16, mode="mean"), nn.Embedding(50, 16)
        self.deep = nn.Sequential(nn.Linear(40, 32), nn.BatchNorm1d(32), nn.PReLU(), nn.Linear(32, 1))

    def forward(self, items, user, numbers):
        bag, who = self.items(items), self.user(user)
        return torch.sigmoid(self.deep(torch.cat([bag, who, numbers], -1)).squeeze(-1) + torch.einsum("bi,bi->b", bag, who))


class Graph(nn.Module):
    """A graph convolution by index_add, and the largest nodes by topk."""

    def __init__(self):
        super().__init__()
        self.own, self.other, self.head = nn.Linear(8, 16), nn.Linear(8, 16), nn.Linear(16, 3)

    def forward(self, x, edges):
        sums = torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])
        y = torch.relu(self.own(x) + self.other(sums))
        best = y.norm(dim=-1).topk(4).indices
        return self.head(y), y[best].mean(0)


# -- what is tried -----------------------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    build: Callable[[], nn.Module]
    inputs: list  # (shape, kind) of each: sizes by name, "normal" or the number of words
    sizes: tuple[dict, dict]  # of the names, at both calls
    gain: float = math.sqrt(2.0)
    picture: tuple | None = None  # what batch norms are calibrated with

    def arguments(self, call):
        return tuple(self._input(i, shape, kind, self.sizes[call]) for i, (shape, kind) in enumerate(self.inputs))

    def _input(self, i, shape, kind, sizes):
        shape = [sizes.get(d, d) for d in shape]
        r = rng_for(self.name, "input", str(i), str(sizes))
        if kind == "normal":
            return torch.from_numpy(r.standard_normal(shape).astype("float32"))
        return torch.from_numpy(r.randint(0, kind, shape).astype("int64"))

    def dynamic_shapes(self):
        """By position, for a forward of that many parameters."""
        dims = {name: Dim.DYNAMIC for name in self.sizes[0]}
        return tuple({d: dims[name] for d, name in enumerate(shape) if name in dims} for shape, _ in self.inputs)

    def model(self):
        torch.manual_seed(0)
        model = init_weights(self.build(), self.name, self.gain)
        if self.picture:
            calibrate_batch_norm(model, self.name, self.picture, 4)
        return model.eval()


def vision(name, size=64, **options):
    def build():
        return torchvision.models.get_model(name, weights=None, **options)
    return Case(name, build, [(("batch", 3, size, size), "normal")], ({"batch": 2}, {"batch": 3}), picture=(1, 3, size, size))


def vit():
    return torchvision.models.VisionTransformer(image_size=64, patch_size=16, num_layers=4, num_heads=4, hidden_dim=64, mlp_dim=128, num_classes=100)


TEXT = ({"batch": 2, "length": 11}, {"batch": 3, "length": 20})
IDS = ("batch", "length")

CASES = [
    vision("resnet18"),
    vision("resnext50_32x4d"),
    vision("vgg11_bn", 32, num_classes=10),
    vision("mobilenet_v2"),
    vision("mobilenet_v3_small"),
    vision("mnasnet0_5"),
    vision("squeezenet1_1"),
    vision("shufflenet_v2_x1_0"),
    vision("efficientnet_b0"),
    vision("regnet_y_400mf"),
    vision("densenet121"),
    vision("googlenet", 96, aux_logits=False, init_weights=False),
    vision("inception_v3", 96, aux_logits=False, init_weights=False),
    vision("convnext_tiny"),
    vision("swin_t"),
    vision("maxvit_t", 224),
    Case("vit", vit, [(("batch", 3, 64, 64), "normal")], ({"batch": 2}, {"batch": 3}), gain=1.0),
    vision("deeplabv3_mobilenet_v3_large", weights_backbone=None),
    vision("fcn_resnet50", weights_backbone=None),
    Case("r3d_18", lambda: torchvision.models.video.r3d_18(weights=None), [(("batch", 3, 4, 32, 32), "normal")],
         ({"batch": 2}, {"batch": 3}), picture=(1, 3, 4, 32, 32)),
    Case("unet", UNet, [(("batch", 3, "height", "width"), "normal")],
         ({"batch": 2, "height": 32, "width": 48}, {"batch": 1, "height": 64, "width": 40}), picture=(1, 3, 32, 32)),
    Case("unet_bilinear", UpsamplingUNet, [(("batch", 3, 35, 50), "normal")], ({"batch": 2}, {"batch": 3}), picture=(1, 3, 35, 50)),
    Case("autoencoder", Autoencoder, [(("batch", 1, 28, 28), "normal")], ({"batch": 2}, {"batch": 5})),
    Case("gpt", Gpt, [(IDS, 500)], TEXT, gain=1.0),
    Case("llama", Llama, [(IDS, 500)], TEXT, gain=1.0),
    Case("transformer_encoder", Encoder, [(IDS, 500)], TEXT, gain=1.0),
    Case("transformer", Seq2Seq, [(("batch", "source"), 300), (("batch", "target"), 300)],
         ({"batch": 2, "source": 9, "target": 7}, {"batch": 3, "source": 6, "target": 13}), gain=1.0),
    Case("lstm", lambda: Recurrent(nn.LSTM, bidirectional=True), [(IDS, 200)], TEXT),
    Case("gru", lambda: Recurrent(nn.GRU, num_layers=2), [(IDS, 200)], TEXT),
    Case("speech", Speech, [(("batch", "samples"), "normal")], ({"batch": 2, "samples": 800}, {"batch": 3, "samples": 1234})),
    Case("recommender", Recommender, [(("batch", "bag"), 300), (("batch",), 50), (("batch", 8), "normal")],
         ({"batch": 4, "bag": 6}, {"batch": 3, "bag": 9}), picture=None),
    Case("graph", Graph, [(("nodes", 8), "normal"), ((2, "edges"), 10)], ({"nodes": 10, "edges": 30}, {"nodes": 14, "edges": 21})),
]
