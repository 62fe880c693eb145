#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Generates networks of many kinds: detectors, segmentation, video, flow, speech, diffusion, graphs, translation, recommendation.

    make_zoo.py --out DIR [--only NAME,...] [--list] [--check]

The layout of DIR, how weights are drawn and what the reference is stands in torch_export.py. Here are the graphs that
plain classifiers do not show: sizes that depend on data (NonMaxSuppression, NonZero, TopK), loops, branches, signal
processing, sampling, scattering. Weights of detectors are drawn so that boxes are kept: a network that finds nothing
shows nothing.

Runs under Debian 12's own Python, with python3-torch, python3-torchvision, python3-onnx and python3-numpy.
"""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.onnx import symbolic_helper
from torchvision.models.optical_flow import raft

from torch_export import HE, Network, main, tv


# -- torchvision -------------------------------------------------------------------------------------------------------

make_coords_grid = raft.make_coords_grid


class Tuple(nn.Module):
    """A network that answers with a dictionary, as one with a tuple."""

    def __init__(self, model, keys):
        super().__init__()
        self.model, self.keys = model, keys

    def forward(self, x):
        found = self.model(x)
        return tuple(found[key] for key in self.keys)


class Detector(nn.Module):
    """A detector of one image."""

    def __init__(self, model, keys):
        super().__init__()
        self.model, self.keys = model, keys

    def forward(self, image):
        found = self.model([image])[0]
        return tuple(found[key] for key in self.keys)


class Flow(nn.Module):
    """RAFT with its last estimate alone."""

    def __init__(self, model, updates):
        super().__init__()
        self.model, self.updates = model, updates

    def forward(self, first, second):
        # Places are float32 in torchvision, whatever the network computes in.
        raft.make_coords_grid = lambda *args, **options: make_coords_grid(*args, **options).to(first.dtype)
        return self.model(first, second, num_flow_updates=self.updates)[-1]


def wrapped(wrapper, build, *args):
    return lambda: wrapper(build(), *args)


def pixels(r, shape):
    """Smooth random pictures of values from 0 to 1."""
    coarse = torch.from_numpy(r.uniform(0, 1, (1, shape[-3], 8, 8)).astype(np.float32))
    smooth = F.interpolate(coarse, shape[-2:], mode="bilinear", align_corners=True)
    noisy = 0.8 * smooth.numpy() + 0.2 * r.uniform(0, 1, smooth.shape)
    return noisy.astype(np.float32).reshape(shape)


def run_backbone(wrapper, x):
    wrapper.model.backbone(x)


# What the last layers of a detector give: boxes near their anchors, and scores that float32 tells apart (behind a sigmoid of
# 17 all are 1), of which some pass the threshold.
SPREADS = {"rpn.head.cls_logits": 2, "rpn.head.bbox_pred": 0.5, "cls_score": 2, "box_predictor.bbox_pred": 2, "mask_fcn_logits": 2,
           "classification_head": 2, "regression_head": 1}


def moderate(model, picture):
    """Scales last layers by powers of two to the spreads, which do not depend on how a machine rounds."""
    for key, spread in SPREADS.items():
        for layer in [m for name, m in model.named_modules() if key in name and isinstance(m, (nn.Linear, nn.Conv2d))]:
            seen = []
            hook = layer.register_forward_hook(lambda module, given, result: seen.append(result.std().item()))
            with torch.no_grad():
                model(picture)
                layer.weight.mul_(2.0 ** round(math.log2(spread / max(seen))))
            hook.remove()


BOXES = ["boxes", "labels", "scores"]


# -- speech ------------------------------------------------------------------------------------------------------------

def export_stft(g, x, size, step, window_size, window, normalized, onesided, complex_numbers):
    """aten::stft of a real signal, framed by torch.stft, as ONNX's STFT of opset 17."""
    axis = g.op("Constant", value_t=torch.tensor([2]))
    signal = g.op("Unsqueeze", x, axis)
    frames = g.op("STFT", signal, step, window, size, onesided_i=1)
    return g.op("Transpose", frames, perm_i=[0, 2, 1, 3])


torch.onnx.register_custom_op_symbolic("aten::stft", export_stft, 17)


class Spectrogram(nn.Module):
    """Logarithms of energies in overlapping bands."""

    def __init__(self, size, step, bands):
        super().__init__()
        self.size, self.step = size, step
        self.register_buffer("window", torch.hann_window(size))
        centres = torch.linspace(0, size // 2, bands + 2)
        slopes = 1 - (torch.arange(size // 2 + 1)[:, None] - centres[1:-1]).abs() / (centres[1] - centres[0])
        self.register_buffer("filters", slopes.clamp(min=0))

    def forward(self, x):
        y = torch.stft(x, self.size, self.step, window=self.window, return_complex=False)
        power = y.pow(2).sum(-1).transpose(1, 2)
        return torch.log(torch.matmul(power, self.filters) + 1e-6)


def heads_of(x, heads):
    return x.view(x.size(0), -1, heads, x.size(-1) // heads).transpose(1, 2)


def joined(x):
    return x.transpose(1, 2).reshape(x.size(0), -1, x.size(1) * x.size(3))


class RelativeAttention(nn.Module):
    """Transformer-XL's: a term for the content and one for the distance, shifted into place."""

    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.d = heads, d
        self.q, self.k, self.v, self.out = (nn.Linear(d, d) for _ in range(4))
        self.position = nn.Linear(d, d, bias=False)
        self.bias_u, self.bias_v = (nn.Parameter(torch.empty(heads, 1, d // heads)) for _ in range(2))

    def forward(self, x, places):
        q, k, v = (heads_of(f(x), self.heads) for f in (self.q, self.k, self.v))
        p = heads_of(self.position(places), self.heads)
        content = torch.matmul(q + self.bias_u, k.transpose(-1, -2))
        distance = torch.matmul(q + self.bias_v, p.transpose(-1, -2))
        b, h, n, m = distance.shape
        distance = F.pad(distance, (1, 0)).view(b, h, m + 1, n)[:, :, 1:].view(b, h, n, m)[..., :n]
        weights = torch.softmax((content + distance) / math.sqrt(self.d // self.heads), -1)
        return self.out(joined(torch.matmul(weights, v)))


class ConformerBlock(nn.Module):
    def __init__(self, d, heads, kernel):
        super().__init__()
        self.first, self.second = (nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.SiLU(), nn.Linear(4 * d, d)) for _ in range(2))
        self.attention_norm, self.attention = nn.LayerNorm(d), RelativeAttention(d, heads)
        self.conv_norm = nn.LayerNorm(d)
        self.conv = nn.Sequential(nn.Conv1d(d, 2 * d, 1), nn.GLU(1), nn.Conv1d(d, d, kernel, padding=kernel // 2, groups=d),
                                  nn.BatchNorm1d(d), nn.SiLU(), nn.Conv1d(d, d, 1))
        self.norm = nn.LayerNorm(d)

    def forward(self, x, places):
        x = x + 0.5 * self.first(x)
        x = x + self.attention(self.attention_norm(x), places)
        x = x + self.conv(self.conv_norm(x).transpose(1, 2)).transpose(1, 2)
        return self.norm(x + 0.5 * self.second(x))


class Conformer(nn.Module):
    def __init__(self, blocks=4, d=144, heads=4, bands=80, symbols=128):
        super().__init__()
        self.d = d
        self.spectrogram = Spectrogram(400, 160, bands)
        self.subsample = nn.Sequential(nn.Conv2d(1, d, 3, 2), nn.ReLU(), nn.Conv2d(d, d, 3, 2), nn.ReLU())
        self.project = nn.Linear(d * (((bands - 1) // 2 - 1) // 2), d)
        self.blocks = nn.ModuleList([ConformerBlock(d, heads, 15) for _ in range(blocks)])
        self.head = nn.Linear(d, symbols)
        self.register_buffer("frequency", torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d)))

    def forward(self, x):
        y = self.subsample(self.spectrogram(x).unsqueeze(1))
        y = self.project(y.permute(0, 2, 1, 3).reshape(y.size(0), -1, y.size(1) * y.size(3)))
        n = y.size(1)
        angles = torch.arange(n - 1, -n, -1).to(y.dtype)[:, None] * self.frequency
        places = torch.cat([angles.sin(), angles.cos()], 1).unsqueeze(0)
        for block in self.blocks:
            y = block(y, places)
        return torch.log_softmax(self.head(y), -1)


class Wave2Vec(nn.Module):
    """Convolutions on samples, positions by a grouped convolution with weight norm, and a transformer of two layers."""

    def __init__(self, channels=256, d=384, heads=6):
        super().__init__()
        layers = []
        for i, (kernel, stride) in enumerate([(10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2)]):
            layers.append(nn.Conv1d(channels if i else 1, channels, kernel, stride, bias=False))
            layers += [] if i else [nn.GroupNorm(channels, channels)]
            layers.append(nn.GELU())
        self.features = nn.Sequential(*layers)
        self.norm, self.project = nn.LayerNorm(channels), nn.Linear(channels, d)
        self.position = nn.utils.weight_norm(nn.Conv1d(d, d, 128, padding=64, groups=16), dim=2)
        self.layers = nn.ModuleList([EncoderLayer(d, heads) for _ in range(2)])
        self.last = nn.LayerNorm(d)

    def forward(self, x):
        x = (x - x.mean(1, keepdim=True)) / torch.sqrt(x.var(1, unbiased=False, keepdim=True) + 1e-7)
        y = self.project(self.norm(self.features(x.unsqueeze(1)).transpose(1, 2)))
        y = y + F.gelu(self.position(y.transpose(1, 2))[:, :, :-1]).transpose(1, 2)
        for layer in self.layers:
            y = layer(y)
        return self.last(y)


class Attention(nn.Module):
    """Of `x` to `context`."""

    def __init__(self, d, heads, width=None, bias=True):
        super().__init__()
        self.heads, self.scale = heads, (d // heads) ** -0.5
        self.q = nn.Linear(d, d, bias=bias)
        self.k, self.v = (nn.Linear(width or d, d, bias=bias) for _ in range(2))
        self.out = nn.Linear(d, d, bias=bias)

    def forward(self, x, context=None, bias=None):
        context = x if context is None else context
        q, k, v = heads_of(self.q(x), self.heads), heads_of(self.k(context), self.heads), heads_of(self.v(context), self.heads)
        scores = torch.matmul(q * self.scale, k.transpose(-1, -2))
        weights = torch.softmax(scores if bias is None else scores + bias, -1)
        return self.out(joined(torch.matmul(weights, v)))


class EncoderLayer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(d), Attention(d, heads)
        self.feed = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.feed(x)


# -- diffusion ---------------------------------------------------------------------------------------------------------

class ResidualBlock(nn.Module):
    def __init__(self, cin, cout, time):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(16, cin), nn.Conv2d(cin, cout, 3, 1, 1)
        self.time = nn.Linear(time, cout)
        self.norm2, self.conv2 = nn.GroupNorm(16, cout), nn.Conv2d(cout, cout, 3, 1, 1)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, time):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class SpatialTransformer(nn.Module):
    """Attention among places and to a text, then a gated GELU."""

    def __init__(self, channels, heads, width):
        super().__init__()
        self.norm = nn.GroupNorm(16, channels, eps=1e-6)
        self.enter, self.leave = nn.Conv2d(channels, channels, 1), nn.Conv2d(channels, channels, 1)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(channels) for _ in range(3))
        self.own, self.cross = Attention(channels, heads), Attention(channels, heads, width)
        self.wide, self.narrow = nn.Linear(channels, 8 * channels), nn.Linear(4 * channels, channels)

    def forward(self, x, text):
        b, c, h, w = x.shape
        y = self.enter(self.norm(x)).permute(0, 2, 3, 1).reshape(b, h * w, c)
        y = y + self.own(self.norm1(y))
        y = y + self.cross(self.norm2(y), text)
        value, gate = self.wide(self.norm3(y)).chunk(2, -1)
        y = y + self.narrow(value * F.gelu(gate))
        return x + self.leave(y.reshape(b, h, w, c).permute(0, 3, 1, 2))


class DiffusionUNet(nn.Module):
    def __init__(self, widths=(64, 128, 192), heads=4, text=128):
        super().__init__()
        self.first, time = widths[0], 4 * widths[0]
        self.time = nn.Sequential(nn.Linear(widths[0], time), nn.SiLU(), nn.Linear(time, time))
        self.enter = nn.Conv2d(4, widths[0], 3, 1, 1)
        down, cin = [], widths[0]
        for i, width in enumerate(widths):
            last = i == len(widths) - 1
            down.append(nn.ModuleList([ResidualBlock(cin, width, time), SpatialTransformer(width, heads, text),
                                       nn.Identity() if last else nn.Conv2d(width, width, 3, 2, 1)]))
            cin = width
        self.down = nn.ModuleList(down)
        self.middle1, self.middle2 = ResidualBlock(cin, cin, time), ResidualBlock(cin, cin, time)
        self.middle = SpatialTransformer(cin, heads, text)
        up = []
        for i, width in reversed(list(enumerate(widths))):
            up.append(nn.ModuleList([ResidualBlock(cin + width, width, time), SpatialTransformer(width, heads, text),
                                     nn.Conv2d(width, width, 3, 1, 1) if i else nn.Identity()]))
            cin = width
        self.up = nn.ModuleList(up)
        self.leave = nn.Sequential(nn.GroupNorm(16, cin), nn.SiLU(), nn.Conv2d(cin, 4, 3, 1, 1))

    def forward(self, sample, timestep, text):
        half = self.first // 2
        frequency = torch.exp(torch.arange(half).to(sample.dtype) * (-math.log(10000.0) / half))
        angles = timestep[:, None].to(sample.dtype) * frequency
        time = self.time(torch.cat([angles.cos(), angles.sin()], -1))
        x, skips = self.enter(sample), []
        for block, attention, shrink in self.down:
            x = attention(block(x, time), text)
            skips.append(x)
            x = shrink(x)
        x = self.middle2(self.middle(self.middle1(x, time), text), time)
        for i, (block, attention, grow) in enumerate(self.up):
            x = attention(block(torch.cat([x, skips.pop()], 1), time), text)
            if i < len(self.up) - 1:
                x = grow(F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.leave(x)


# -- graphs ------------------------------------------------------------------------------------------------------------

def export_scatter_add(g, x, axis, places, values):
    """aten::scatter_add, without torch's wish to know that the shapes of places and values are the same."""
    return g.op("ScatterElements", x, places, values, axis_i=symbolic_helper._get_const(axis, "i", "axis"), reduction_s="add")


torch.onnx.register_custom_op_symbolic("aten::scatter_add", export_scatter_add, 16)


class GraphAttention(nn.Module):
    """Each node's mean of its neighbours, weighted by a softmax over the edges that end in it."""

    def __init__(self, n_in, d, heads):
        super().__init__()
        self.heads, self.d = heads, d
        self.project = nn.Linear(n_in, heads * d, bias=False)
        self.source, self.target = nn.Parameter(torch.empty(heads, d)), nn.Parameter(torch.empty(heads, d))
        self.bias = nn.Parameter(torch.empty(heads * d))

    def forward(self, x, source, target):
        n = x.size(0)
        y = self.project(x).view(n, self.heads, self.d)
        scores = (y * self.source).sum(-1)[source] + (y * self.target).sum(-1)[target]
        weights = torch.exp(F.leaky_relu(scores, 0.2))
        heads = target.unsqueeze(1).expand(weights.shape)
        total = torch.zeros(n, self.heads, dtype=x.dtype).scatter_add(0, heads, weights)
        messages = (y[source] * weights.unsqueeze(-1)).reshape(-1, self.heads * self.d)
        places = target.unsqueeze(1).expand(messages.shape)
        sums = torch.zeros(n, self.heads * self.d, dtype=x.dtype).scatter_add(0, places, messages)
        return (sums.view(n, self.heads, self.d) / (total.unsqueeze(-1) + 1e-9)).reshape(n, -1) + self.bias


class GraphNetwork(nn.Module):
    def __init__(self, n_in=32, d=16, heads=4, classes=7):
        super().__init__()
        self.first, self.second = GraphAttention(n_in, d, heads), GraphAttention(heads * d, d, heads)
        self.fc = nn.Linear(heads * d, classes)

    def forward(self, x, edges):
        source, target = edges[0], edges[1]
        y = F.elu(self.first(x, source, target))
        y = F.elu(self.second(y, source, target))
        return torch.log_softmax(self.fc(y), -1)


# -- translation -------------------------------------------------------------------------------------------------------

class RootNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d))

    def forward(self, x):
        return (1 + self.weight) * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Buckets(nn.Module):
    """A bias for each head and bucket of distances: near ones apart, far ones by their logarithm. A largest distance of 100
    and not 128: with that the logarithms of 16, 32 and 64 lie on the edges between buckets, where rounding decides."""

    def __init__(self, heads, both, buckets=32, most=100):
        super().__init__()
        self.table, self.both, self.buckets, self.most = nn.Embedding(buckets, heads), both, buckets, most

    def forward(self, n, m, dtype):
        distance = torch.arange(m)[None, :] - torch.arange(n)[:, None]
        buckets, offset = self.buckets, torch.zeros_like(distance)
        if self.both:
            buckets //= 2
            offset = (distance > 0).to(torch.long) * buckets
            distance = distance.abs()
        else:
            distance = -torch.min(distance, torch.zeros_like(distance))
        exact = buckets // 2
        far = exact + (torch.log(distance.clamp(min=1).to(dtype) / exact) / math.log(self.most / exact) * (buckets - exact)).to(torch.long)
        far = torch.min(far, torch.full_like(far, buckets - 1))
        return self.table(offset + torch.where(distance < exact, distance, far)).permute(2, 0, 1).unsqueeze(0)


class TranslationLayer(nn.Module):
    def __init__(self, d, heads, ff, decodes):
        super().__init__()
        self.norm1, self.own = RootNorm(d), Attention(d, heads, bias=False)
        self.norm2, self.cross = (RootNorm(d), Attention(d, heads, bias=False)) if decodes else (None, None)
        self.norm3, self.wi, self.wo = RootNorm(d), nn.Linear(d, ff, bias=False), nn.Linear(ff, d, bias=False)

    def forward(self, x, bias, context=None, mask=None):
        x = x + self.own(self.norm1(x), bias=bias)
        if self.cross is not None:
            x = x + self.cross(self.norm2(x), context, mask)
        return x + self.wo(F.relu(self.wi(self.norm3(x))))


class Translator(nn.Module):
    """T5's shape: encoder and decoder with relative positions, tied embeddings."""

    def __init__(self, layers=3, d=256, heads=4, ff=512, vocab=2000):
        super().__init__()
        self.d, self.shared = d, nn.Embedding(vocab, d)
        self.encoder_buckets, self.decoder_buckets = Buckets(heads, True), Buckets(heads, False)
        self.encoder = nn.ModuleList([TranslationLayer(d, heads, ff, False) for _ in range(layers)])
        self.decoder = nn.ModuleList([TranslationLayer(d, heads, ff, True) for _ in range(layers)])
        self.encoder_norm, self.decoder_norm = RootNorm(d), RootNorm(d)

    def forward(self, input_ids, attention_mask, decoder_input_ids):
        x = self.shared(input_ids)
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * -10000.0
        n = input_ids.size(1)
        bias = self.encoder_buckets(n, n, x.dtype) + mask
        for layer in self.encoder:
            x = layer(x, bias)
        context = self.encoder_norm(x)
        n = decoder_input_ids.size(1)
        ahead = torch.arange(n)[None, :] > torch.arange(n)[:, None]
        bias = self.decoder_buckets(n, n, x.dtype) + ahead.to(x.dtype) * -10000.0
        x = self.shared(decoder_input_ids)
        for layer in self.decoder:
            x = layer(x, bias, context, mask)
        return torch.matmul(self.decoder_norm(x) * self.d ** -0.5, self.shared.weight.t())


# -- recommendation ----------------------------------------------------------------------------------------------------

class Tower(nn.Module):
    def __init__(self, rows, d, dense, out, mode):
        super().__init__()
        self.bag = nn.EmbeddingBag(rows, d, mode=mode)
        self.mlp = nn.Sequential(nn.Linear(d + dense, 128), nn.ReLU(), nn.Linear(128, out))

    def forward(self, ids, offsets, dense):
        y = self.mlp(torch.cat([self.bag(ids, offsets), dense], 1))
        return y / y.norm(dim=1, keepdim=True)


class TwoTowers(nn.Module):
    """How well each user and each article fit: bags of what one saw and of what the other holds, and numbers."""

    def __init__(self):
        super().__init__()
        self.user, self.item = Tower(5000, 64, 8, 32, "mean"), Tower(2000, 64, 4, 32, "sum")

    def forward(self, seen, seen_offsets, user, words, words_offsets, item):
        u, i = self.user(seen, seen_offsets, user), self.item(words, words_offsets, item)
        return torch.matmul(u, i.t()) * 5


def nodes_of(n):
    return lambda r, shape: r.randint(0, n, shape).astype(np.int64)


def offsets(r, shape):
    """Where bags begin: of 3 to 7 numbers; the last takes what is left."""
    return np.concatenate([[0], np.cumsum(r.randint(3, 8, shape[0] - 1))]).astype(np.int64)


# -- the list ----------------------------------------------------------------------------------------------------------

NETWORKS = [
    Network("ssdlite320_mobilenet_v3", wrapped(Detector, tv("detection.ssdlite320_mobilenet_v3_large", weights_backbone=None), BOXES),
            [("image", pixels, (3, 320, 320))], BOXES, "boxes by NonMaxSuppression", opset=16,
            calib_shape=(1, 3, 320, 320), calibrate=run_backbone, prepare=moderate),
    Network("fasterrcnn_mobilenet_v3_320", wrapped(Detector, tv("detection.fasterrcnn_mobilenet_v3_large_320_fpn", weights_backbone=None), BOXES),
            [("image", pixels, (3, 320, 320))], BOXES, "proposals, RoiAlign, boxes by NonMaxSuppression", opset=13,
            calib_shape=(1, 3, 320, 320), calibrate=run_backbone, prepare=moderate),
    Network("maskrcnn_resnet50", wrapped(Detector, tv("detection.maskrcnn_resnet50_fpn", weights_backbone=None, min_size=256, max_size=320),
                                         BOXES + ["masks"]),
            [("image", pixels, (3, 256, 256))], BOXES + ["masks"], "boxes and masks pasted into the picture", opset=13,
            calib_shape=(1, 3, 320, 320), calibrate=run_backbone, prepare=moderate),
    Network("deeplabv3_mobilenet_v3", wrapped(Tuple, tv("segmentation.deeplabv3_mobilenet_v3_large", weights_backbone=None), ["out"]),
            [("input", "normal", (1, 3, 256, 256))], ["out"], "dilated convolutions, Resize", opset=14),
    Network("lraspp_mobilenet_v3", wrapped(Tuple, tv("segmentation.lraspp_mobilenet_v3_large", weights_backbone=None), ["out"]),
            [("input", "normal", (1, 3, 256, 256))], ["out"], "two resolutions, Resize", opset=14),
    Network("r3d_18", tv("video.r3d_18"), [("input", "normal", (1, 3, 8, 112, 112))], ["logits"],
            "convolutions in three dimensions", opset=14, calib=2),
    Network("swin_t", tv("swin_t"), [("input", "normal", (1, 3, 224, 224))], ["logits"],
            "shifted windows: Slice and Concat, masks", gain=1.0, opset=17),
    Network("raft_small", wrapped(Flow, tv("optical_flow.raft_small"), 6),
            [("first", "normal", (1, 3, 128, 160)), ("second", "normal", (1, 3, 128, 160))], ["flow"],
            "optical flow: correlation volumes, GridSample, six updates", gain=1.0, opset=16,
            calibrate=lambda model, x: model(x, x)),
    Network("conformer", Conformer, [("samples", "normal", (1, 16000))], ["log_probabilities"],
            "STFT, convolutions, relative attention; a second", gain=1.0, opset=17),
    Network("conformer_dyn", Conformer, [("samples", "normal", (1, "samples"))], ["log_probabilities"],
            "the same shape for any number of samples", gain=1.0, opset=17, sizes=({"samples": 16000}, {"samples": 9600})),
    Network("wave2vec", Wave2Vec, [("samples", "normal", (1, "samples"))], ["features"],
            "convolutions on samples, GroupNorm, weight norm; any number of samples", gain=1.2, opset=14,
            sizes=({"samples": 16000}, {"samples": 9600})),
    Network("diffusion_unet", DiffusionUNet, [("sample", "normal", (1, 4, 32, 32)), ("timestep", ("ids", 1000), (1,)), ("text", "normal", (1, 77, 128))],
            ["noise"], "group norm, time embedding, cross attention, gated GELU", gain=1.0, opset=14),
    Network("graph_attention", GraphNetwork, [("x", "normal", ("nodes", 32)), ("edges", nodes_of(40), (2, "edges"))], ["log_probabilities"],
            "any number of nodes and edges: Gather, ScatterElements", gain=1.0, opset=16,
            sizes=({"nodes": 50, "edges": 200}, {"nodes": 2708, "edges": 10556})),
    Network("translator", Translator, [("input_ids", ("ids", 2000), ("batch", "source")), ("attention_mask", ("prefix", None), ("batch", "source")),
                                       ("decoder_input_ids", ("ids", 2000), ("batch", "target"))], ["logits"],
            "encoder and decoder, relative positions in buckets; any lengths", gain=1.0, opset=14,
            sizes=({"batch": 2, "source": 17, "target": 9}, {"batch": 1, "source": 120, "target": 33})),
    Network("two_towers", TwoTowers,
            [("seen", ("ids", 5000), ("seen",)), ("seen_offsets", offsets, ("users",)), ("user", "normal", ("users", 8)),
             ("words", ("ids", 2000), ("words",)), ("words_offsets", offsets, ("items",)), ("item", "normal", ("items", 4))], ["scores"],
            "embedding bags of any sizes: a Loop over them", gain=1.0, opset=13,
            sizes=({"seen": 60, "users": 8, "words": 90, "items": 12}, {"seen": 500, "users": 64, "words": 1500, "items": 200})),
]


if __name__ == "__main__":
    main(__doc__, NETWORKS)
