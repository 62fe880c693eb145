# SPDX-License-Identifier: Apache-2.0
"""Runs modules with and without each library: the same results, the same bits at 1 and 2 threads, and who took what.

    libraries.py TENON LIBRARY [-k SUBSTRING]     status 77 where this build has no such library
"""

import argparse
import array
import ast
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

# name: (inputs and constants by shape, body in terms of them, shape of the result, pattern that dnnl takes it by or the
# code it is refused with, likewise for blas). Constants are c0, c1, ...: random numbers.
REFUSALS = ("dtype", "attribute")
CONV = 'R.nn.conv2d({}, {}, strides={}, padding={}, dilation={}, groups={})'


def conv(x="x", w="c0", strides=(1, 1), padding=(1, 1, 1, 1), dilation=(1, 1), groups=1):
    return CONV.format(x, w, list(strides), list(padding), list(dilation), groups)


NORM = "R.nn.batch_norm({}, {}, {}, {}, {}, axis=1, epsilon=0.01, training=False)"
CONSTANTS = ("c0", "c1", "c2", "R.abs(c3)")

# Dimensions known at run time only: name: (inputs by shape, body, result, pattern of blas, values of the symbols in each run).
# Symbols are names.
SYMBOLIC = {
    "rows": ([("n", 24), (24, 33), (33,)], "R.add(R.matmul(x, x1), x2)", ("n", 33), "matmul_add", [dict(n=1), dict(n=5), dict(n=64)]),
    "columns": ([(5, 24), (24, "n"), ("n",)], "R.add(R.matmul(x, x1), x2)", (5, "n"), "matmul_add", [dict(n=1), dict(n=7), dict(n=40)]),
    "sums": ([(5, "n"), ("n", 8)], "R.matmul(x, x1)", (5, 8), "matmul", [dict(n=1), dict(n=3), dict(n=100)]),
    "vectors": ([("n",), ("n",)], "R.matmul(x, x1)", (), "matmul", [dict(n=1), dict(n=30)]),
    "batch_of_rows": ([("n", "m", 24), (24, 7), (7,)], "R.add(x2, R.matmul(x, x1))", ("n", "m", 7), "matmul_add", [dict(n=1, m=1), dict(n=3, m=1), dict(n=1, m=9), dict(n=4, m=6)]),
    "rows_of_a_reshape": ([("n", "m", 24), (24, 7), (7,)], "f = R.reshape(x, R.shape([n * m, 24]))\nR.add(R.matmul(f, x1), x2)", ("n * m", 7), "matmul_add", [dict(n=1, m=1), dict(n=3, m=1), dict(n=4, m=6)]),
    "an_expression_beside_its_symbol": ([("n", 8), (8, "n")], "c = R.concat((x1, x1), axis=1)\nR.matmul(x, c)", ("n", "2 * n"), "matmul", [dict(n=1), dict(n=6)]),
    "attention_scores": ([("n", "m", 2, 16), ("n", "m", 2, 16)], 'R.multiply(R.matmul(R.permute_dims(x, axes=[0, 2, 1, 3]), R.permute_dims(x1, axes=[0, 2, 3, 1])), R.const(0.25, "float32"))', ("n", 2, "m", "m"), "matmul_scale", [dict(n=1, m=1), dict(n=2, m=7), dict(n=3, m=16)]),
    "attention_mix": ([("n", 2, "m", "k"), ("n", "k", 2, 16)], "R.matmul(x, R.permute_dims(x1, axes=[0, 2, 1, 3]))", ("n", 2, "m", 16), "matmul", [dict(n=1, m=1, k=1), dict(n=2, m=7, k=5), dict(n=1, m=1, k=20)]),
    "a_cache_that_grows": ([("n", 2, "m", 16), ("n", 2, "k", 16), ("n", 2, "m", 16)], "c = R.concat((x1, x2), axis=2)\nR.matmul(x, R.permute_dims(c, axes=[0, 1, 3, 2]))", ("n", 2, "m", "k + m"), "matmul", [dict(n=1, m=1, k=1), dict(n=2, m=3, k=5)]),
}

CASES = {
    "conv": ([(1, 3, 9, 11)], [(8, 3, 3, 3)], conv(), (1, 8, 9, 11), "conv", None),
    "conv_bias_relu": ([(1, 16, 8, 8)], [(16, 16, 3, 3), (1, 16, 1, 1)], f"R.nn.relu(R.add({conv()}, c1))", (1, 16, 8, 8), "conv_bias_activation", None),
    "conv_bias_clip": ([(1, 4, 8, 8)], [(16, 4, 3, 3), (1, 16, 1, 1)], f"R.clip(R.add({conv()}, c1), 0.0, 0.5)", (1, 16, 8, 8), "conv_bias_activation", None),
    "conv_residual": ([(1, 16, 8, 8)], [(16, 16, 3, 3), (1, 16, 1, 1)], f"R.nn.relu(R.add(R.add({conv()}, c1), x))", (1, 16, 8, 8), "conv_bias_sum_activation", None),
    "conv_silu": ([(1, 4, 8, 8)], [(8, 4, 3, 3)], f"R.nn.silu({conv()})", (1, 8, 8, 8), "conv_activation", None),
    "conv_sigmoid": ([(1, 4, 8, 8)], [(8, 4, 3, 3)], f"R.sigmoid({conv()})", (1, 8, 8, 8), "conv_activation", None),
    "conv_tanh": ([(1, 4, 8, 8)], [(8, 4, 3, 3)], f"R.tanh({conv()})", (1, 8, 8, 8), "conv_activation", None),
    "conv_hardswish": ([(1, 4, 8, 8)], [(8, 4, 3, 3)], f"R.nn.hardswish({conv()})", (1, 8, 8, 8), "conv_activation", None),
    "conv_hardsigmoid": ([(1, 4, 8, 8)], [(8, 4, 3, 3)], f"R.nn.hardsigmoid({conv()})", (1, 8, 8, 8), "conv_activation", None),
    "conv_strided": ([(2, 5, 9, 9)], [(7, 5, 3, 3)], conv(strides=(2, 2), padding=(0, 1, 2, 1)), (2, 7, 5, 5), "conv", None),
    "conv_dilated": ([(1, 4, 12, 12)], [(6, 4, 3, 3)], conv(padding=(2, 2, 2, 2), dilation=(2, 2)), (1, 6, 12, 12), "conv", None),
    "conv_grouped": ([(1, 8, 8, 8)], [(12, 2, 3, 3)], conv(groups=4), (1, 12, 8, 8), "conv", None),
    "conv_depthwise": ([(1, 24, 8, 8)], [(24, 1, 3, 3)], conv(groups=24), (1, 24, 8, 8), "conv", None),
    "conv_1d": ([(1, 6, 20)], [(5, 6, 3)], "R.nn.conv1d(x, c0, padding=[1, 1])", (1, 5, 20), "conv", None),
    "conv_3d": ([(1, 3, 6, 6, 6)], [(4, 3, 3, 3, 3)], "R.nn.conv3d(x, c0, padding=[1, 1, 1, 1, 1, 1])", (1, 4, 6, 6, 6), "conv", None),
    "conv_of_two_inputs": ([(1, 4, 6, 6), (8, 4, 3, 3)], [], conv(w="x1"), (1, 8, 6, 6), "conv", None),
    "deconv": ([(1, 8, 5, 5)], [(8, 6, 3, 3)], "R.nn.conv2d_transpose(x, c0, strides=[2, 2], padding=[1, 1, 1, 1], output_padding=[1, 1])", (1, 6, 10, 10), "deconv", None),
    "deconv_grouped": ([(1, 8, 8, 8)], [(8, 4, 3, 3)], "R.nn.conv2d_transpose(x, c0, strides=[2, 2], padding=[1, 1, 1, 1], output_padding=[1, 1], groups=2)", (1, 8, 16, 16), "deconv", None),
    "max_pool": ([(1, 8, 9, 9)], [], "R.nn.max_pool2d(x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])", (1, 8, 5, 5), "pool", None),
    "max_pool_ceil": ([(1, 8, 9, 9)], [], "R.nn.max_pool2d(x, pool_size=[2, 2], strides=[2, 2], ceil_mode=True)", (1, 8, 5, 5), "pool", None),
    "avg_pool": ([(1, 8, 9, 9)], [], "R.nn.avg_pool2d(x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])", (1, 8, 5, 5), "pool", None),
    "avg_pool_counting": ([(1, 8, 9, 9)], [], "R.nn.avg_pool2d(x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], count_include_pad=True)", (1, 8, 5, 5), "pool", None),
    "global_pool": ([(1, 8, 9, 9)], [], "R.mean(x, axis=[2, 3], keepdims=True)", (1, 8, 1, 1), "pool", None),
    "global_pool_flat": ([(1, 8, 9, 9)], [], "R.mean(x, axis=[2, 3], keepdims=False)", (1, 8), "pool", None),
    "mean_of_channels": ([(1, 8, 9, 9)], [], "R.mean(x, axis=[1], keepdims=True)", (1, 1, 9, 9), "attribute", None),
    "batch_norm": ([(1, 8, 6, 6), (8,), (8,), (8,), (8,)], [], f"n = {NORM.format('x', 'x1', 'x2', 'x3', 'R.abs(x4)')}\nR.nn.relu(n[0])", (1, 8, 6, 6), "batch_norm_activation", None),
    "batch_norm_after_relu": ([(1, 8, 6, 6), (8,), (8,), (8,), (8,)], [], f"a = R.nn.relu(x)\nn = {NORM.format('a', 'x1', 'x2', 'x3', 'R.abs(x4)')}\nR.tanh(n[0])", (1, 8, 6, 6), "batch_norm_activation", None),
    "batch_norm_of_constants": ([(1, 8, 6, 6)], [(8,), (8,), (8,), (8,)], f"n = {NORM.format('x', *CONSTANTS)}\nR.nn.relu(n[0])", (1, 8, 6, 6), "binary_activation", None),
    "batch_norm_after_pool": ([(1, 8, 6, 6)], [(8,), (8,), (8,), (8,)], f"a = R.nn.max_pool2d(x, pool_size=[2, 2], strides=[2, 2])\nn = {NORM.format('a', *CONSTANTS)}\nR.nn.relu(n[0])", (1, 8, 3, 3), "binary_activation", None),
    "layer_norm": ([(4, 6, 32)], [(32,), (32,)], "R.nn.layer_norm(x, c0, c1, axes=[-1])", (4, 6, 32), "layer_norm", None),
    "softmax": ([(4, 6, 32)], [], "R.nn.softmax(x, axis=-1)", (4, 6, 32), "softmax", None),
    "softmax_inner": ([(4, 6, 32)], [], "R.nn.softmax(x, axis=1)", (4, 6, 32), "softmax", None),
    "log_softmax": ([(4, 32)], [], "R.nn.log_softmax(x, axis=-1)", (4, 32), "softmax", None),
    "matmul": ([(5, 24)], [(24, 33)], "R.matmul(x, c0)", (5, 33), "matmul", "matmul"),
    "matmul_bias_relu": ([(5, 24)], [(24, 33), (33,)], "R.nn.relu(R.add(R.matmul(x, c0), c1))", (5, 33), "matmul_bias_activation", None),
    "matmul_residual": ([(5, 24)], [(24, 24), (24,)], "R.add(R.add(R.matmul(x, c0), c1), x)", (5, 24), "matmul_bias_sum", None),
    "matmul_of_batch": ([(2, 3, 5, 24), (2, 1, 24, 7)], [], "R.matmul(x, x1)", (2, 3, 5, 7), "matmul", "matmul"),
    "matmul_transposed": ([(2, 5, 24), (2, 7, 24)], [], "R.matmul(x, R.permute_dims(x1, axes=[0, 2, 1]))", (2, 5, 7), "matmul", "matmul"),
    "matmul_many_rows": ([(2, 5, 24)], [(24, 7), (7,)], "R.add(c1, R.matmul(x, c0))", (2, 5, 7), "matmul_bias", "matmul_add"),
    "matmul_scaled": ([(5, 24)], [(24, 7), (7,)], 'R.add(R.multiply(R.matmul(x, c0), R.const(0.5, "float32")), c1)', (5, 7), None, "matmul_scale_add"),
    "matmul_vector": ([(24,)], [(24, 7)], "R.matmul(x, c0)", (7,), "matmul", "matmul"),
    "matmul_integers": ([(5, 24)], [(24, 7)], 'R.astype(R.matmul(R.astype(x, dtype="int32"), R.astype(c0, dtype="int32")), dtype="float32")', (5, 7), "dtype", "dtype"),
    "gelu_tanh": ([(5, 24)], [(24, 33), (33,)], "R.nn.gelu_tanh(R.add(R.matmul(x, c0), c1))", (5, 33), "matmul_bias_activation", None),
    "gelu_tanh_spelled_out": ([(5, 24)], [(24, 33), (33,)], "b = R.add(R.matmul(x, c0), c1)\nq = R.multiply(R.multiply(b, b), b)\nt = R.tanh(R.multiply(R.add(b, R.multiply(q, R.const(0.044715, 'float32'))), R.const(0.7978845608, 'float32')))\nR.multiply(R.multiply(b, R.const(0.5, 'float32')), R.add(t, R.const(1.0, 'float32')))", (5, 33), "matmul_bias_gelu_tanh", None),
    "gelu": ([(5, 24)], [(24, 33), (33,)], 'GELU', (5, 33), "matmul_bias_gelu", None),
}


def module(case, library):
    """The module; what the library is to take is placed there by hand: these sizes are too small to be worth it."""
    inputs, constants, body, result, dnnl, blas = CASES[case]
    wanted = dnnl if library == "dnnl" else blas
    by_hand = library != "none" and wanted not in REFUSALS
    place = f'        R.func_attr({{"placement": {{"y": "{library}.{wanted}"}}}})\n' if by_hand else ""
    names = ["x" if i == 0 else f"x{i}" for i in range(len(inputs))] + [f"c{i}" for i in range(len(constants))]
    params = ", ".join(f'{n}: R.Tensor({s}, "float32")' for n, s in zip(names, [*inputs, *constants]))
    lines = body.split("\n")
    if body == "GELU":
        lines = [
            "b = R.add(R.matmul(x, c0), c1)",
            'e = R.erf(R.divide(b, R.const(1.4142135, "float32")))',
            'R.multiply(R.multiply(b, R.add(e, R.const(1.0, "float32"))), R.const(0.5, "float32"))',
        ]
    head = "".join(f"            {line}\n" for line in lines[:-1])
    return (
        "from tenon.script import ir as I, relax as R, tir as T\n\n@I.ir_module\nclass Module:\n    @R.function\n"
        f'    def main({params}) -> R.Tensor({result}, "float32"):\n'
        f"{place}        with R.dataflow():\n{head}            y = {lines[-1]}\n            R.output(y)\n        return y\n"
    )


def symbolic_module(case, library):
    inputs, body, result, pattern, _ = SYMBOLIC[case]
    text = lambda shape: "(" + "".join(f'"{d}", ' if isinstance(d, str) else f"{d}, " for d in shape) + ")"
    place = f'        R.func_attr({{"placement": {{"y": "{library}.{pattern}"}}}})\n' if library != "none" else ""
    params = ", ".join(f'{"x" if i == 0 else f"x{i}"}: R.Tensor({text(s)}, "float32")' for i, s in enumerate(inputs))
    symbols = sorted({d for shape in inputs for d in shape if isinstance(d, str) and d.isidentifier()})
    lines = body.split("\n")
    return (
        "from tenon.script import ir as I, relax as R, tir as T\n\n@I.ir_module\nclass Module:\n    @R.function\n"
        f'    def main({params}) -> R.Tensor({text(result)}, "float32"):\n'
        + "".join(f"        {symbol} = T.int64()\n" for symbol in symbols)
        + f"{place}        with R.dataflow():\n"
        + "".join(f"            {line}\n" for line in lines[:-1])
        + f"            y = {lines[-1]}\n            R.output(y)\n        return y\n"
    )


def write_npy(path, shape, seed):
    count = 1
    for extent in shape:
        count *= extent
    state, numbers = seed * 2654435761 + 1, array.array("f")
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        numbers.append((state >> 40) / 2**23 - 1)
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + numbers.tobytes())


def read_npy(path):
    data = path.read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    shape = ast.literal_eval(data[10 : 10 + length].decode())["shape"]
    numbers = array.array("f")
    numbers.frombytes(data[10 + length :])
    return shape, numbers


def run(tenon, folder, text, libs, threads, params):
    (folder / "m.py").write_text(text)
    out = folder / f"{libs}{threads}"
    shutil.rmtree(out, ignore_errors=True)
    # The interpreter places nothing, and has no threads.
    how = [] if "--interpret" in params else ["--libs", libs, "--threads", str(threads)]
    command = [tenon, "run", str(folder / "m.py"), *how, "--json", "-o", str(out), *params]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}\n{done.stderr}")
    (file,) = out.glob("*.npy")
    return read_npy(file), json.loads(done.stdout)


def compare(found, expected):
    for i, (a, b) in enumerate(zip(found, expected)):
        assert abs(a - b) <= 1e-4 * (1 + abs(b)), f"element {i} is {a}; expected {b}"


def check_symbolic(tenon, library, name, folder):
    inputs, _, result, _, runs = SYMBOLIC[name]
    for values in runs:
        numbers = lambda shape: tuple(eval(d, {}, values) if isinstance(d, str) else d for d in shape)
        params = []
        for i, shape in enumerate(inputs):
            file = folder / f"x{i}.npy"
            write_npy(file, numbers(shape), i + 1)
            params += ["-i", f"{'x' if i == 0 else f'x{i}'}={file}"]
        (shape, expected), _ = run(tenon, folder, symbolic_module(name, "none"), "none", 1, ["--interpret", *params])
        assert tuple(shape) == numbers(result), f"{values}: the interpreter gives shape {shape}"
        text, once = symbolic_module(name, library), None
        for threads, target in ((1, "native"), (2, "native"), (1, "c")):
            (shape, found), report = run(tenon, folder, text, library, threads, ["--target", target, *params])
            assert tuple(shape) == numbers(result), f"{values}: shape {shape}"
            assert len(found) == len(expected), f"{values}: {len(found)} elements"
            compare(found, expected)
            once = once or found.tobytes()
            assert found.tobytes() == once, f"{values}: other bits with {threads} threads, target {target}"
            assert sum(one["operators"] for one in report["offload"]["providers"]) > 0, f"refused: {report['offload']['refused']}"


def check(tenon, library, name, folder):
    inputs, constants, _, result, dnnl, blas = CASES[name]
    params, bound = [], {}
    for i, shape in enumerate([*inputs, *constants]):
        key = ("x" if i == 0 else f"x{i}") if i < len(inputs) else f"c{i - len(inputs)}"
        file = folder / f"{key}.npy"
        write_npy(file, shape, i + 1)
        if i < len(inputs):
            params += ["-i", f"{key}={file}"]
        else:
            bound[key] = str(file)
    if bound:
        params += ["--passes", f'BindParams(params={json.dumps(bound)}, func_name="main")']
    (shape, expected), _ = run(tenon, folder, module(name, "none"), "none", 1, params)
    text = module(name, library)
    (found_shape, found), report = run(tenon, folder, text, library, 1, params)
    assert tuple(shape) == tuple(found_shape) == tuple(result), f"shapes {shape} and {found_shape}"
    compare(found, expected)
    (_, again), _ = run(tenon, folder, text, library, 2, params)
    assert found.tobytes() == again.tobytes(), "2 threads give other bits than 1"
    wanted = dnnl if library == "dnnl" else blas
    offload = report["offload"]
    taken = sum(one["operators"] for one in offload["providers"])
    if wanted in REFUSALS:
        assert wanted in offload["refused"], f"refused: {offload['refused']}; expected {wanted}"
    else:
        assert taken > 0, f"nothing was taken; refused: {offload['refused']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon")
    parser.add_argument("library")
    parser.add_argument("-k", default="")
    args = parser.parse_args()
    version = subprocess.run([args.tenon, "--version"], capture_output=True, text=True, check=True).stdout
    if f"{args.library} (" not in version:
        print(f"skipped: this build has no {args.library}")
        return 77
    failed = 0
    names = [n for n, c in CASES.items() if args.k in n and c[4 if args.library == "dnnl" else 5]]
    symbolic = [n for n in SYMBOLIC if args.k in n and args.library == "blas"]
    for name in names + symbolic:
        with tempfile.TemporaryDirectory() as folder:
            try:
                (check_symbolic if name in symbolic else check)(args.tenon, args.library, name, pathlib.Path(folder))
            except AssertionError as error:
                failed += 1
                print(f"{name}: {error}")
    count = len(names) + len(symbolic)
    print(f"{count - failed} of {count} cases right")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
