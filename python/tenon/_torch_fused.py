# SPDX-License-Identifier: Apache-2.0
"""torch's fused operators that have no form in ONNX, or only a loop, in terms of others.

nn.TransformerEncoderLayer and nn.MultiheadAttention become such where no gradients are wanted.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F


def _attention(
    inputs: tuple[torch.Tensor, ...],
    heads: int,
    into: tuple[torch.Tensor, torch.Tensor],
    out: tuple[torch.Tensor, torch.Tensor],
    mask: torch.Tensor | None,
    mask_type: int | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The result, (batch, length, size), and the weights, (batch, heads, length, length).

    `into` and `out` are a weight and a bias: of queries, keys and values one below the other, and of the result. The mask is set where a
    key does not count: (batch, length) if its type is 1, else (..., length, length).
    """
    batch, length, size = inputs[0].shape
    parts = zip(inputs, into[0].chunk(3), into[1].chunk(3))
    q, k, v = (F.linear(x, weight, bias).view(batch, x.shape[1], heads, size // heads).transpose(1, 2) for x, weight, bias in parts)
    scores = q @ k.transpose(-2, -1) * (size // heads) ** -0.5
    if mask is not None:
        is_out = mask.to(torch.bool)
        scores = scores.masked_fill(is_out[:, None, None, :] if mask_type == 1 else is_out, float("-inf"))
    weights = scores.softmax(-1)
    return F.linear((weights @ v).transpose(1, 2).reshape(batch, length, size), *out), weights


def _multi_head_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    mask: torch.Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    into, out = (qkv_weight, qkv_bias), (proj_weight, proj_bias)
    result, weights = _attention((query, key, value), num_head, into, out, mask, mask_type)
    if not need_weights:
        return result, None
    return result, weights.mean(1) if average_attn_weights else weights


def _encoder_layer(
    src: torch.Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: torch.Tensor,
    norm_bias_1: torch.Tensor,
    norm_weight_2: torch.Tensor,
    norm_bias_2: torch.Tensor,
    ffn_weight_1: torch.Tensor,
    ffn_bias_1: torch.Tensor,
    ffn_weight_2: torch.Tensor,
    ffn_bias_2: torch.Tensor,
    mask: torch.Tensor | None = None,
    mask_type: int | None = None,
) -> torch.Tensor:
    def attended(x: torch.Tensor) -> torch.Tensor:
        return _attention((x, x, x), num_heads, (qkv_weight, qkv_bias), (proj_weight, proj_bias), mask, mask_type)[0]

    def forward(x: torch.Tensor) -> torch.Tensor:
        hidden = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(hidden) if use_gelu else F.relu(hidden), ffn_weight_2, ffn_bias_2)

    def first(x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second(x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attended(first(src))
        return x + forward(second(x))
    x = first(src + attended(src))
    return second(x + forward(x))


def _embedding_bag(
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: torch.Tensor | None,
    include_last_offset: bool,
    padding_idx: int | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sums, means or maxima (mode 0, 1, 2) of rows; bag i begins at index offsets[i]. Results beside the first are not those of torch: they
    serve gradients."""
    starts = offsets[:-1] if include_last_offset else offsets
    bag = (torch.arange(indices.shape[0])[:, None] >= starts[None, :]).sum(1) - 1
    rows = F.embedding(indices, weight)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    counts_it = indices >= 0 if padding_idx is None or padding_idx < 0 else indices != padding_idx
    counts = torch.zeros_like(starts).index_add(0, bag, counts_it.to(starts.dtype))
    shape = (starts.shape[0], weight.shape[1])
    if mode == 2:
        rows = rows.masked_fill(~counts_it[:, None], float("-inf"))
        largest = torch.full(shape, float("-inf"), dtype=rows.dtype).scatter_reduce(0, bag[:, None].expand_as(rows), rows, "amax")
        result = largest.masked_fill((counts == 0)[:, None], 0)
    else:
        rows = rows.masked_fill(~counts_it[:, None], 0)
        result = torch.zeros(shape, dtype=rows.dtype).index_add(0, bag, rows)
        if mode == 1:
            result = result / counts.clamp(min=1)[:, None]
    return result, bag, counts, counts


#: As ExportedProgram.run_decompositions takes them.
DECOMPOSITIONS: dict[Any, Any] = {
    torch.ops.aten._native_multi_head_attention.default: _multi_head_attention,
    torch.ops.aten.embedding_bag.padding_idx: _embedding_bag,
    torch.ops.aten._transformer_encoder_layer_fwd.default: _encoder_layer,
}
