#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the cases of tests/onnx/, in the layout of the ONNX backend tests: one operator each, with results of ONNX
Runtime (com.microsoft) and of the reference implementation in the package `onnx` (ai.onnx). Needs both packages.

    make_cases.py [FOLDER]
"""

import pathlib
import shutil
import sys

import numpy as np
import onnx
import onnx.helper as h
import onnxruntime as ort
from onnx import numpy_helper as nh
from onnx.reference import ReferenceEvaluator

FOLDER = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
RANDOM = np.random.default_rng(0)
INT, LONG = np.int32, np.int64


def f(*shape, dtype=np.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


def results_of(model, feeds, by_reference):
    if by_reference:
        return ReferenceEvaluator(model).run(None, feeds)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def declared(name, array):
    return h.make_tensor_value_info(name, h.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def open_input(name, array, shape):
    """Declared with these dimensions, without a shape where they are None."""
    return h.make_tensor_value_info(name, h.np_dtype_to_tensor_dtype(array.dtype), shape)


def case(name, op, inputs, outputs, domain="com.microsoft", constants=(), opset=17, shapes=None, **attributes):
    """`inputs`: pairs of a name and an array, or None where one is left out. `shapes`: what the file says of the
    inputs, by their names, where that is less than all; it says nothing of the results then."""
    node = h.make_node(op, [i[0] if i else "" for i in inputs], outputs, domain=domain, **attributes)
    given = dict(i for i in inputs if i)
    feeds = {n: a for n, a in given.items() if n not in constants}
    graph = h.make_graph(
        [node],
        name,
        [open_input(n, a, shapes[n]) if shapes else declared(n, a) for n, a in feeds.items()],
        [h.make_empty_tensor_value_info(o) for o in outputs if o],
        [nh.from_array(given[n], n) for n in constants if n in given],
    )
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", opset), h.make_opsetid("com.microsoft", 1)])
    model.ir_version = 8 if opset < 20 else 12
    results = results_of(model, feeds, opset >= 20)
    for output, array in zip(model.graph.output, results):
        output.CopyFrom(open_input(output.name, array, None) if shapes else declared(output.name, array))
    data = FOLDER / name / "test_data_set_0"
    shutil.rmtree(FOLDER / name, ignore_errors=True)
    data.mkdir(parents=True)
    onnx.save(model, FOLDER / name / "model.onnx")
    for i, (n, array) in enumerate(feeds.items()):
        (data / f"input_{i}.pb").write_bytes(nh.from_array(array, n).SerializeToString())
    for i, (output, array) in enumerate(zip(model.graph.output, results)):
        (data / f"output_{i}.pb").write_bytes(nh.from_array(np.asarray(array), output.name).SerializeToString())


B, S, H, N, D = 2, 3, 8, 2, 4
x = ("x", f(B, S, H))
sk = ("skip", f(B, S, H))
g = ("g", f(H))
b = ("b", f(H))
bi = ("bi", f(H))
case("skipln", "SkipLayerNormalization", [x, sk, g, b, bi], ["y", "", "", "s"], epsilon=1e-5)
case("skipln_nobeta", "SkipLayerNormalization", [x, sk, g], ["y"], epsilon=1e-5)
case("skipln_bcast", "SkipLayerNormalization", [x, ("skip", f(S, H)), g, b], ["y"], epsilon=1e-5)
case("skipsln", "SkipSimplifiedLayerNormalization", [x, sk, g, bi], ["y", "", "", "s"], epsilon=1e-5)
case("skipsln2", "SkipSimplifiedLayerNormalization", [x, sk, g], ["y"], epsilon=1e-5)
case("sln", "SimplifiedLayerNormalization", [x, g], ["y", "v"], domain="", axis=-1, epsilon=1e-6)
case("sln1", "SimplifiedLayerNormalization", [x, ("g", f(S, H))], ["y"], domain="", axis=1, epsilon=1e-6)
ids = ("ids", RANDOM.integers(0, 10, (B, S)).astype(INT))
seg = ("seg", RANDOM.integers(0, 2, (B, S)).astype(INT))
W = ("w", f(10, H))
P = ("p", f(6, H))
SG = ("sg", f(2, H))
mask = ("m", np.array([[1, 1, 0], [1, 1, 1]], INT))
case("embed", "EmbedLayerNormalization", [ids, seg, W, P, SG, g, b, mask], ["y", "mi", "es"], epsilon=1e-5)
case("embed_noseg", "EmbedLayerNormalization", [ids, None, W, P, None, g, b], ["y", "mi"], epsilon=1e-5)
case(
    "embed_pos",
    "EmbedLayerNormalization",
    [ids, seg, W, P, SG, g, b, None, ("pi", np.array([[2, 1, 5], [0, 3, 3]], INT))],
    ["y", "mi"],
    epsilon=1e-5,
)
case(
    "embed_pos1",
    "EmbedLayerNormalization",
    [ids, seg, W, P, SG, g, b, None, ("pi", np.array([[2, 1, 5]], INT))],
    ["y", "mi"],
    epsilon=1e-5,
)
case("biasgelu", "BiasGelu", [x, b], ["y"])
case("gelu", "Gelu", [x], ["y"])
case("fastgelu", "FastGelu", [x, b], ["y"])
case("fastgelu2", "FastGelu", [x], ["y"])
case("quickgelu", "QuickGelu", [x], ["y"])
case("quickgelu2", "QuickGelu", [x], ["y"], alpha=1.0)
case("fmm", "FusedMatMul", [("a", f(2, 4, 3)), ("c", f(2, 5, 4))], ["y"], transA=1, transB=1, alpha=0.5)
case("fmm2", "FusedMatMul", [("a", f(3, 2, 4)), ("c", f(2, 4, 5))], ["y"], transBatchA=1)
case("fmm3", "FusedMatMul", [("a", f(4, 2, 3, 3)), ("c", f(2, 3, 4, 5))], ["y"], transBatchA=1, transA=1)
case("fmm4", "FusedMatMul", [("a", f(2, 3, 4)), ("c", f(4, 2, 5))], ["y"], transBatchB=1)
case("fmm5", "FusedMatMul", [("a", f(2, 3, 3, 4)), ("c", f(5, 2, 3, 4))], ["y"], transBatchB=1, transB=1)
case("fmm6", "FusedMatMul", [("a", f(4)), ("c", f(4, 3))], ["y"], alpha=2.0)
cos = ("cos", f(10, D // 2))
sin = ("sin", f(10, D // 2))
case("rope", "RotaryEmbedding", [x, ("pos", np.array([[0, 1, 2], [4, 5, 6]], LONG)), cos, sin], ["y"])
case("rope_off", "RotaryEmbedding", [x, ("pos", np.array([3], LONG)), cos, sin], ["y"], interleaved=1)
case("rope4", "RotaryEmbedding", [("x", f(B, N, S, D)), ("pos", np.array([3], LONG)), cos, sin], ["y"])
case(
    "rope_part",
    "RotaryEmbedding",
    [x, ("pos", np.array([[0, 1, 2], [4, 5, 6]], LONG)), ("cos", f(10, 1)), ("sin", f(10, 1))],
    ["y"],
    rotary_embedding_dim=2,
    num_heads=2,
)
case(
    "rope_part_i",
    "RotaryEmbedding",
    [("x", f(B, S, 16)), ("pos", np.array([[0, 1, 2], [4, 5, 6]], LONG)), ("cos", f(10, 2)), ("sin", f(10, 2))],
    ["y"],
    rotary_embedding_dim=4,
    num_heads=2,
    interleaved=1,
)
# MHA
q = ("q", f(B, S, H))
k = ("k", f(B, 5, H))
v = ("v", f(B, 5, H))
bias = ("bias", f(3 * H))
case("mha", "MultiHeadAttention", [q, k, v], ["y"], num_heads=N)
case("mha_bias", "MultiHeadAttention", [q, k, v, bias], ["y"], num_heads=N)
case("mha_vsize", "MultiHeadAttention", [q, k, ("v", f(B, 5, 6)), ("bias", f(22))], ["y"], num_heads=N, scale=0.3)
case(
    "mha_pad",
    "MultiHeadAttention",
    [q, k, v, None, ("m", np.array([[1, 1, 1, 0, 0], [1, 0, 1, 1, 1]], INT))],
    ["y"],
    num_heads=N,
)
case("mha_pad1", "MultiHeadAttention", [q, k, v, None, ("m", np.array([3, 5], INT))], ["y"], num_heads=N)
case(
    "mha_pad3",
    "MultiHeadAttention",
    [q, k, v, None, ("m", RANDOM.integers(0, 2, (B, S, 5)).astype(INT))],
    ["y"],
    num_heads=N,
)
case(
    "mha_padall",
    "MultiHeadAttention",
    [q, k, v, None, ("m", np.array([[0, 0, 0, 0, 0], [1, 0, 1, 1, 1]], INT))],
    ["y"],
    num_heads=N,
)
case("mha_ab", "MultiHeadAttention", [q, k, v, bias, None, ("ab", f(1, N, S, 5))], ["y"], num_heads=N)
case(
    "mha_ab_pad",
    "MultiHeadAttention",
    [q, k, v, bias, ("m", np.array([[1, 1, 1, 0, 0], [1, 0, 1, 1, 1]], INT)), ("ab", f(B, 1, S, 5))],
    ["y"],
    num_heads=N,
    mask_filter_value=-3.0,
)
case("mha_cross", "MultiHeadAttention", [q, ("k", f(B, N, 5, D)), ("v", f(B, N, 5, D)), bias], ["y"], num_heads=N)
case(
    "mha_past",
    "MultiHeadAttention",
    [q, ("k", f(B, S, H)), ("v", f(B, S, H)), bias, None, None, ("pk", f(B, N, 4, D)), ("pv", f(B, N, 4, D))],
    ["y", "ok", "ov"],
    num_heads=N,
)
case(
    "mha_past_uni",
    "MultiHeadAttention",
    [q, ("k", f(B, S, H)), ("v", f(B, S, H)), None, None, None, ("pk", f(B, N, 4, D)), ("pv", f(B, N, 4, D))],
    ["y", "ok", "ov"],
    num_heads=N,
    unidirectional=1,
)
case(
    "mha_past_pad",
    "MultiHeadAttention",
    [
        q,
        ("k", f(B, S, H)),
        ("v", f(B, S, H)),
        None,
        ("m", np.array([[0, 1, 1, 1, 1, 1, 1], [1] * 7], INT)),
        None,
        ("pk", f(B, N, 4, D)),
        ("pv", f(B, N, 4, D)),
    ],
    ["y", "ok", "ov"],
    num_heads=N,
    unidirectional=1,
)
case("mha_uni", "MultiHeadAttention", [q, ("k", f(B, S, H)), ("v", f(B, S, H))], ["y"], num_heads=N, unidirectional=1)
case(
    "mha_present", "MultiHeadAttention", [q, ("k", f(B, S, H)), ("v", f(B, S, H)), bias], ["y", "ok", "ov"], num_heads=N
)
# Attention
w = ("w", f(6, 3 * H))
xi = ("x", f(B, S, 6))
bb = ("bb", f(3 * H))
case("att", "Attention", [xi, w, bb], ["y"], num_heads=N)
case("att_present", "Attention", [xi, w, bb], ["y", "pr"], num_heads=N, unidirectional=1)
case("att_mask", "Attention", [xi, w, bb, ("m", np.array([[1, 1, 0], [1, 1, 1]], INT))], ["y"], num_heads=N)
case("att_mask1", "Attention", [xi, w, bb, ("m", np.array([2, 3], INT))], ["y"], num_heads=N)
case("att_mask2", "Attention", [xi, w, bb, ("m", np.array([2, 3, 0, 1], INT))], ["y"], num_heads=N)
case(
    "att_mask3",
    "Attention",
    [xi, w, bb, ("m", RANDOM.integers(0, 2, (B, S, S)).astype(INT))],
    ["y"],
    num_heads=N,
    unidirectional=1,
)
case("att_mask1u", "Attention", [xi, w, bb, ("m", np.array([2, 3], INT))], ["y"], num_heads=N, unidirectional=1)
case("att_past", "Attention", [xi, w, bb, None, ("past", f(2, B, N, 4, D))], ["y", "pr"], num_heads=N, unidirectional=1)
case(
    "att_pastmask",
    "Attention",
    [xi, w, bb, ("m", np.array([[1] * 7, [0] * 2 + [1] * 5], INT)), ("past", f(2, B, N, 4, D))],
    ["y", "pr"],
    num_heads=N,
    unidirectional=1,
)
case("att_bias", "Attention", [xi, w, bb, None, None, ("ab", f(1, N, S, S))], ["y"], num_heads=N)
case(
    "att_sizes",
    "Attention",
    [xi, ("w", f(6, 22)), ("bb", f(22))],
    ["y"],
    num_heads=N,
    qkv_hidden_sizes=[8, 8, 6],
    scale=0.7,
)
case("att_nobias", "Attention", [xi, w], ["y"], num_heads=N)


# GQA
def gq(name, S, P, last, total, N=2, KV=1, D=16, rot=False, inter=0, pos=None, **at):
    """GroupQueryAttention of S rows behind P that are cached."""
    ins = [("q", f(B, S, N * D)), ("k", f(B, S, KV * D)), ("v", f(B, S, KV * D))]
    extra = at.pop("extra", {})
    packed = at.pop("packed", False)
    if packed:
        ins = [("q", f(B, S, (N + 2 * KV) * D)), None, None]
    if P is None:
        ins += [None, None]
    else:  # what a cache holds behind its rows is nobody's: zeros, which stay
        held = (np.arange(P) < np.array(last)[:, None] + 1 - S)[:, None, :, None].astype(np.float32)
        ins += [("pk", f(B, KV, P, D) * held), ("pv", f(B, KV, P, D) * held)]
    ins += [("last", np.array(last, INT)), ("tot", np.array(total, INT))]
    if rot or extra:
        ins += [("cos", f(32, D // 2)), ("sin", f(32, D // 2))] if rot else [None, None]
        ins += [("pos", np.array(pos, LONG)) if pos is not None else None]
        if extra:
            ins += [("ab", extra["ab"]) if "ab" in extra else None]
        if "sink" in extra:
            ins += [("sink", extra["sink"])]
    if rot:
        at.update(do_rotary=1, rotary_interleaved=inter)
    while ins and ins[-1] is None:
        ins.pop()
    case(name, "GroupQueryAttention", ins, ["y", "ok", "ov"], num_heads=N, kv_num_heads=KV, constants=("tot",), **at)


gq("gqa_prompt", 3, None, [2, 2], 3)
gq("gqa_prompt0", 3, 0, [2, 2], 3)
gq("gqa_shared_prompt", 3, 8, [2, 2], 3)
gq("gqa_decode", 1, 4, [4, 4], 5)
gq("gqa_decode_shared", 1, 8, [4, 6], 7)
gq("gqa_rot", 3, 0, [2, 2], 3, rot=True)
gq("gqa_rot_dec", 1, 8, [4, 6], 7, rot=True)
gq("gqa_rot_dec_i", 1, 8, [4, 6], 7, rot=True, inter=1)
gq("gqa_rot_pos", 1, 8, [4, 6], 7, rot=True, pos=[[4], [6]])
gq("gqa_win", 6, 0, [5, 5], 6, local_window_size=2)
gq("gqa_win_dec", 1, 8, [4, 6], 7, local_window_size=3)
gq("gqa_softcap", 3, 0, [2, 2], 3, softcap=2.0, scale=0.5)
gq("gqa_packed", 3, 0, [2, 2], 3, packed=True, rot=True, N=4, KV=2)
gq("gqa_bias", 3, 0, [2, 2], 3, extra={"ab": f(1, 2, 3, 3)})
gq("gqa_sink", 3, 0, [2, 2], 3, extra={"sink": f(2)})
gq("gqa_smooth", 1, 8, [4, 6], 7, smooth_softmax=1)
gq("gqa_bidi", 3, 0, [2, 2], 3, causal=0)


def reference(name, op, inputs, outputs, opset, **attributes):
    case(name, op, inputs, outputs, domain="", opset=opset, **attributes)


Q = ("q", f(2, 4, 3, 4))
K = ("k", f(2, 2, 5, 4))
V = ("v", f(2, 2, 5, 6))
K4 = ("k", f(2, 4, 5, 4))
V4 = ("v", f(2, 4, 5, 6))
reference("attention_window", "Attention", [Q, K4, V4], ["y"], 25, left_window_size=1, right_window_size=1)
reference("attention_causal_window", "Attention", [Q, K, V], ["y"], 25, left_window_size=1, is_causal=1)
reference(
    "attention_window_past",
    "Attention",
    [Q, K, V, None, ("pk", f(2, 2, 3, 4)), ("pv", f(2, 2, 3, 6))],
    ["y", "ok", "ov"],
    25,
    left_window_size=2,
    is_causal=1,
)
reference(
    "attention_causal_past",
    "Attention",
    [Q, K, V, None, ("pk", f(2, 2, 3, 4)), ("pv", f(2, 2, 3, 6))],
    ["y", "ok", "ov", "s"],
    24,
    is_causal=1,
    qk_matmul_output_mode=3,
)
L = ("n", np.array([2, 5], LONG))
reference("attention_lengths", "Attention", [Q, K, V, None, None, None, L], ["y"], 24)
reference(
    "attention_lengths_causal",
    "Attention",
    [Q, K, V, None, None, None, L],
    ["y", "", "", "s"],
    24,
    is_causal=1,
    qk_matmul_output_mode=3,
)
reference("attention_lengths_window", "Attention", [Q, K, V, None, None, None, L], ["y"], 25, left_window_size=0)
M = np.array([[True, False, True, True, False], [False] * 5, [True] * 5])
reference("attention_empty_row", "Attention", [Q, K, V, ("m", M)], ["y", "", "", "s"], 24, qk_matmul_output_mode=3)
reference(
    "attention_empty_row_causal",
    "Attention",
    [Q, K4, V4, ("m", np.stack([~M] * 4))],
    ["y", "", "", "s"],
    24,
    qk_matmul_output_mode=2,
    is_causal=1,
)
reference("attention_short_mask", "Attention", [Q, K, V, ("m", M[:, :3])], ["y"], 24)
reference("attention_short_float_mask", "Attention", [Q, K, V, ("m", f(2, 1, 3, 4))], ["y"], 24)
reference(
    "attention_mask_of_heads",
    "Attention",
    [Q, K, V, ("m", f(4, 3, 5))],
    ["y", "", "", "s"],
    23,
    qk_matmul_output_mode=2,
)
reference("attention_mask_of_columns", "Attention", [Q, K, V, ("m", f(2, 4, 1, 5))], ["y"], 23)
reference("attention_double", "Attention", [Q, K, V], ["y"], 23, softmax_precision=11, softcap=1.5)
reference(
    "attention_of_doubles",
    "Attention",
    [("q", f(2, 3, 8, dtype=np.float64)), ("k", f(2, 5, 4, dtype=np.float64)), ("v", f(2, 5, 6, dtype=np.float64))],
    ["y"],
    23,
    q_num_heads=4,
    kv_num_heads=2,
    scale=0.25,
)
reference("attention_one_group", "Attention", [Q, ("k", f(2, 1, 5, 4)), ("v", f(2, 1, 5, 6)), ("m", M)], ["y"], 24)
reference(
    "rotary_3d",
    "RotaryEmbedding",
    [("x", f(2, 3, 12)), ("c", f(9, 2)), ("s", f(9, 2)), ("p", np.array([[0, 1, 2], [4, 8, 3]], LONG))],
    ["y"],
    23,
    num_heads=2,
    rotary_embedding_dim=4,
    interleaved=1,
)
reference(
    "tensor_scatter_first",
    "TensorScatter",
    [("x", RANDOM.integers(0, 9, (2, 5, 3)).astype(np.int8)), ("u", RANDOM.integers(0, 9, (2, 2, 3)).astype(np.int8))],
    ["y"],
    24,
    axis=1,
)
reference(
    "tensor_scatter_all",
    "TensorScatter",
    [("x", f(2, 3, 4)), ("u", f(2, 3, 4)), ("i", np.array([7, -2], LONG))],
    ["y"],
    24,
    axis=-1,
    mode="circular",
)
reference(
    "causal_conv_one_tap", "CausalConvWithState", [("x", f(2, 3, 4)), ("w", f(3, 1, 1)), ("b", f(3))], ["y", "z"], 27
)
reference(
    "causal_conv_short",
    "CausalConvWithState",
    [("x", f(2, 3, 1)), ("w", f(3, 1, 4))],
    ["y", "z"],
    27,
    activation="silu",
)
reference(
    "linear_attention_of_heads",
    "LinearAttention",
    [("q", f(2, 3, 16)), ("k", f(2, 3, 8)), ("v", f(2, 3, 6)), ("s", f(2, 2, 4, 3)), ("d", -np.abs(f(2, 3, 2)))],
    ["y", "z"],
    27,
    q_num_heads=4,
    kv_num_heads=2,
    update_rule="gated",
)


def nbits(name, K, N, bits, block, zeros=None, rows=(2, 3), **at):
    """MatMulNBits; zeros: None, "packed" or "float"."""
    G = -(-K // block)
    zp = {
        None: [None],
        "packed": [("z", RANDOM.integers(0, 256, (N * (-(-G * bits // 8)),)).astype(np.uint8))],
        "float": [("z", f(N, G))],
    }[zeros]
    ins = [
        ("a", f(*rows, K)),
        ("b", RANDOM.integers(0, 256, (N, G, block * bits // 8)).astype(np.uint8)),
        ("s", f(N, G)),
        *zp,
    ]
    if at.pop("bias", False):
        ins += [None, ("bias", f(N))]
    while ins[-1] is None:
        ins.pop()
    case(name, "MatMulNBits", ins, ["y"], constants=("b", "s", "z"), K=K, N=N, bits=bits, block_size=block, **at)


nbits("nbits_4", 32, 5, 4, 16)
nbits("nbits_4_zeros", 48, 5, 4, 16, "packed", bias=True)
nbits("nbits_4_float_zeros", 32, 5, 4, 16, "float", rows=(1,))
nbits("nbits_4_part", 40, 7, 4, 16, "packed")
nbits("nbits_8", 32, 5, 8, 16)
nbits("nbits_8_zeros", 64, 17, 8, 32, "packed")
nbits("nbits_2", 64, 5, 2, 16, "packed")


def packed(name, rows, self, bias):
    """MultiHeadAttention with operands beside one another, which ONNX Runtime's CPU provider takes apart only."""
    q, k, v = f(B, S, N, D), f(B, rows, N, D), f(B, rows, N, D)
    b = [("bias", f(3 * N * D))] if bias else []
    flat = [(n, x.reshape(B, -1, N * D)) for n, x in (("q", q), ("k", k), ("v", v))]
    case(name, "MultiHeadAttention", flat + b, ["y"], num_heads=N)
    y = (FOLDER / name / "test_data_set_0" / "output_0.pb").read_bytes()
    ins = [("q", np.stack([q, k, v], 3))] if self else [flat[0], ("k", np.stack([k, v], 3))]
    if bias:
        ins += [None] * (3 - len(ins)) + b
    given = dict(i for i in ins if i)
    node = h.make_node(
        "MultiHeadAttention", [i[0] if i else "" for i in ins], ["y"], domain="com.microsoft", num_heads=N
    )
    model = onnx.load(FOLDER / name / "model.onnx")
    del model.graph.node[:], model.graph.input[:]
    model.graph.node.append(node)
    model.graph.input.extend(declared(n, a) for n, a in given.items())
    shutil.rmtree(FOLDER / name)
    data = FOLDER / name / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(model, FOLDER / name / "model.onnx")
    for i, (n, a) in enumerate(given.items()):
        (data / f"input_{i}.pb").write_bytes(nh.from_array(a, n).SerializeToString())
    (data / "output_0.pb").write_bytes(y)


packed("mha_packed_kv", 5, False, False)
packed("mha_packed_qkv", 3, True, False)
packed("mha_packed_qkv_bias", 3, True, True)
packed("mha_packed_kv_bias", 5, False, True)


def decoder():
    """A layer of a language model with a cache, as exporters write it: every length is a symbol."""
    heads, groups, depth, width, words, hidden = 2, 1, 16, 32, 20, 32
    nodes, weights = [], {}

    def op(name, inputs, output, domain="", **attributes):
        nodes.append(
            h.make_node(name, inputs, output if isinstance(output, list) else [output], domain=domain, **attributes)
        )
        return output

    def linear(x, columns, name):
        weights[name + ".q"] = RANDOM.integers(0, 256, (columns, 1, 16)).astype(np.uint8)
        weights[name + ".s"] = np.abs(f(columns, 1)) * np.float32(0.05)
        inputs = [x, name + ".q", name + ".s"]
        return op("MatMulNBits", inputs, name, "com.microsoft", K=width, N=columns, bits=4, block_size=32)

    angles = np.outer(np.arange(64), 0.1 ** np.arange(depth // 2)).astype(np.float32)
    weights.update(words=f(words, width), cos=np.cos(angles), sin=np.sin(angles), one=np.array([1], LONG))
    weights.update(last_axis=np.array(1, LONG), n0=np.abs(f(width)), n1=np.abs(f(width)), n2=np.abs(f(width)))
    op("ReduceSum", ["attention_mask", "one"], "length", keepdims=0)
    op("Cast", [op("Sub", ["length", "last_axis"], "before_last")], "last", to=6)
    op("Gather", [op("Shape", ["attention_mask"], "extents"), "last_axis"], "columns")
    op("Cast", ["columns"], "total", to=6)
    x = op("Gather", ["words", "ids"], "x")
    y = op("SimplifiedLayerNormalization", [x, "n0"], "y", axis=-1)
    operands = [linear(y, n * depth, name) for name, n in (("q", heads), ("k", groups), ("v", groups))]
    operands += ["past_key", "past_value", "last", "total", "cos", "sin"]
    kinds = {"num_heads": heads, "kv_num_heads": groups, "do_rotary": 1}
    op("GroupQueryAttention", operands, ["a", "key", "value"], "com.microsoft", **kinds)
    op("SkipSimplifiedLayerNormalization", [x, linear("a", width, "o"), "n1"], ["m", "", "", "r"], "com.microsoft")
    gate = linear("m", hidden, "gate")
    gated = op("Mul", [op("Mul", [gate, op("Sigmoid", [gate], "open")], "silu"), linear("m", hidden, "up")], "gated")
    op("SkipSimplifiedLayerNormalization", ["r", linear(gated, width, "down"), "n2"], "z", "com.microsoft")
    linear("z", words, "scores")
    cache, long = ["batch", groups, "past", depth], onnx.TensorProto.INT64
    inputs = [
        h.make_tensor_value_info("ids", long, ["batch", "rows"]),
        h.make_tensor_value_info("attention_mask", long, ["batch", "total"]),
        h.make_tensor_value_info("past_key", 1, cache),
        h.make_tensor_value_info("past_value", 1, cache),
    ]
    outputs = [h.make_tensor_value_info(n, 1, None) for n in ("scores", "key", "value")]
    graph = h.make_graph(nodes, "decoder", inputs, outputs, [nh.from_array(a, n) for n, a in weights.items()])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)])
    model.ir_version = 8
    empty = np.zeros((2, groups, 0, depth), np.float32)
    key, value = empty, empty
    for name, rows, total in (("decoder_prompt", 5, 5), ("decoder_step", 1, 6)):
        ids = RANDOM.integers(0, words, (2, rows))
        feeds = {"ids": ids, "attention_mask": np.ones((2, total), LONG), "past_key": key, "past_value": value}
        results = results_of(model, feeds, False)
        _, key, value = results
        data = FOLDER / name / "test_data_set_0"
        shutil.rmtree(FOLDER / name, ignore_errors=True)
        data.mkdir(parents=True)
        onnx.save(model, FOLDER / name / "model.onnx")
        for kind, arrays in (("input", feeds.values()), ("output", results)):
            for i, array in enumerate(arrays):
                (data / f"{kind}_{i}.pb").write_bytes(nh.from_array(array, f"{kind}_{i}").SerializeToString())


decoder()


def dynamic():
    """Dimensions, and ranks, that only a run knows."""

    def open_case(name, op, *inputs, ranks=True, dim=None, outputs=("y",), constants=(), **attributes):
        """`inputs` are named a, b, c."""
        named = list(zip("abc", inputs))
        shapes = {n: [dim] * array.ndim if ranks else None for n, array in named}
        case("dynamic_" + name, op, named, outputs, "", constants, shapes=shapes, **attributes)

    for name, a, b in (
        ("equal", (4, 37), (4, 37)),
        ("left", (1, 37), (4, 37)),
        ("right", (4, 37), (4, 1)),
        ("both", (4, 1), (1, 37)),
        ("rank", (37,), (2, 3, 37)),
        ("empty", (1, 37), (0, 37)),
    ):
        open_case("add_" + name, "Add", f(*a), f(*b))
    open_case("where", "Where", f(1, 5) > 0, f(4, 1), f(4, 5))
    open_case("max", "Max", f(1, 5), f(4, 1), f(4, 5))
    open_case("minus_one", "Mul", f(1, 5), f(4, 1), dim=-1)
    open_case("matmul", "MatMul", f(2, 1, 3, 4), f(5, 4, 6))
    for size in (8, 9):
        image, weight, window = f(1, 2, size, size + 3), f(4, 2, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}
        open_case(f"conv_same_{size}", "Conv", image, weight, constants=["b"], **window)
        open_case(f"conv_lower_{size}", "Conv", image, weight, constants=["b"], strides=[2, 3], auto_pad="SAME_LOWER")
        open_case(f"max_pool_{size}", "MaxPool", image - 10, kernel_shape=[3, 3], **window)
        open_case(f"average_pool_{size}", "AveragePool", image, kernel_shape=[3, 3], **window)
        open_case(f"padded_pool_{size}", "AveragePool", image, kernel_shape=[3, 3], count_include_pad=1, **window)
    open_case("depth_to_space", "DepthToSpace", f(1, 8, 2, 3), blocksize=2)
    open_case("space_to_depth", "SpaceToDepth", f(1, 2, 4, 6), blocksize=2)
    open_case("rank_of_weights", "Conv", f(1, 2, 5, 6), f(3, 2, 2, 2), constants=["b"], ranks=False)
    open_case("rank_of_axes", "Transpose", f(2, 3, 4), perm=[2, 0, 1], ranks=False)


dynamic()

# Numbers of a few bits that fill words, in vectors of 16 columns and more.
nbits("nbits_4_words", 96, 49, 4, 32, rows=(9,))
nbits("nbits_4_words_zeros", 64, 33, 4, 32, "packed", rows=(13,))
nbits("nbits_4_words_float_zeros", 64, 17, 4, 16, "float", rows=(1,))
nbits("nbits_2_words", 128, 50, 2, 32, rows=(3,))
