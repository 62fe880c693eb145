# SPDX-License-Identifier: Apache-2.0
"""torch's fused operators for inference, which have no form in ONNX, in terms of others.

nn.TransformerEncoderLayer and nn.MultiheadAttention become these where no gradients are wanted.
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


#: As ExportedProgram.run_decompositions takes them.
DECOMPOSITIONS: dict[Any, Any] = {
    torch.ops.aten._native_multi_head_attention.default: _multi_head_attention,
    torch.ops.aten._transformer_encoder_layer_fwd.default: _encoder_layer,
}
