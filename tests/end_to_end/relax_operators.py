# SPDX-License-Identifier: Apache-2.0
"""Compares every operator that apache-tvm's Relax has too: its parameters with their order and defaults, and its numbers.

    relax_operators.py TENON [-k SUBSTRING]     status 77 where apache-tvm 0.27 and numpy are not installed

Run it under a Python of a virtual environment with `pip install apache-tvm==0.27.* numpy`. The same text goes through both
compilers: many calls in one graph function, whose results are a tuple.
"""

import argparse
import ast
import importlib.util
import inspect
import pathlib
import re
import subprocess
import sys
import tempfile

# Where ours is meant to be other than TVM's: operator, parameter. docs/tvmscript.md says why.
MEANT = {
    ("batch_norm", "axis"), ("layer_norm", "axes"),  # 1 and [-1] where they are left out; TVM wants them stated
    ("ones", "dtype"), ("zeros", "dtype"), ("eye", "dtype"),  # float32 where it is left out
    ("dequantize", "out_dtype"),  # that of the scale
    ("argmax", "select_last_index"), ("argmin", "select_last_index"), ("cumsum", "reverse"), ("cumprod", "reverse"),
    ("isinf", "detect_negative"), ("isinf", "detect_positive"), ("selu", "alpha"), ("selu", "gamma"),  # ONNX's, behind TVM's
    ("resize2d", "scales"), ("resize2d", "roi"), ("resize2d", "extrapolation_value"), ("resize2d", "out_dtype"),
    ("softplus", "beta"), ("softplus", "threshold"), ("assert_op", "format"), ("print", "format"),
    ("layout_transform", "index_map"), ("layout_transform", "pad_value"), ("layout_transform", "src_layout"),
    ("layout_transform", "dst_layout"), ("layout_transform", "extents"),  # layouts by name here, by a function there
    ("adaptive_avg_pool1d", "out_layout"), ("adaptive_avg_pool2d", "out_layout"), ("adaptive_avg_pool3d", "out_layout"),
}
SAME_NAME = {"lhs": "x1", "rhs": "x2", "stop": "end"}  # both are read


def split(text):
    out, depth, item = [], 0, ""
    for c in text:
        depth += (c in "[(") - (c in "])")
        if c == "," and depth == 0:
            out.append(item.strip())
            item = ""
        else:
            item += c
    return out + ([item.strip()] if item.strip() else [])


def our_parameters(tenon):
    """operator -> {parameter: default}; REQUIRED where it has none. What stands in brackets may be left out."""
    text = subprocess.run([tenon, "operators", "--graph", "--markdown"], capture_output=True, text=True, check=True).stdout
    out = {}
    for name, args in re.findall(r"^\| `([^`]+)` \| ([^|]*) \|", text, re.M):
        out[name] = {}
        for item in split(args):
            key, _, value = item.partition("=") if not item.startswith("[") else (item.strip("[].").rstrip("."), "", "")
            try:
                default = ast.literal_eval(value) if value else inspect.Parameter.empty
            except (ValueError, SyntaxError):
                default = value
            out[name][key] = None if item.startswith("[") else default
    return out


def plain(value):
    """Defaults that say the same: none, an empty dtype; one number for all axes."""
    if value is None or value == "":
        return None
    if isinstance(value, (list, tuple)):
        return value[0] if len(set(value)) == 1 else tuple(value)
    return value


def compare_defaults(tenon, pattern):
    from tvm.script import relax as R

    told, count = [], 0
    for name, ours in our_parameters(tenon).items():
        function = R
        for part in name.split("."):
            function = getattr(function, part, None)
        if function is None or pattern not in name:
            continue
        count += 1
        short = name.split(".")[-1]
        theirs = {k: p.default for k, p in inspect.signature(function).parameters.items()}
        mine = {SAME_NAME.get(k, k) if SAME_NAME.get(k, k) in theirs else k: v for k, v in ours.items()}
        first, other = next(iter(mine), ""), next(iter(theirs), "")
        if {first, other} == {"x", "data"} or other == "expr":  # both names are read
            mine = {other: mine.pop(first), **mine}
        for key, value in theirs.items():
            if (short, key) in MEANT or key in ("args", "values", "format_args", "kwargs"):
                continue
            if key not in mine:
                told.append(f"{name}: parameter `{key}` is TVM's alone")
            elif value is not inspect.Parameter.empty and plain(mine[key]) != plain(value):
                if not (mine[key] is None and value in (0, 1, None)):  # an input that may be left out
                    told.append(f"{name}: `{key}` is {mine[key]!r} by default, and {value!r} in TVM")
        shared = [k for k in mine if k in theirs and (short, k) not in MEANT]
        if shared != [k for k in theirs if k in mine and (short, k) not in MEANT]:
            told.append(f"{name}: parameters are in the order {list(mine)}, in TVM {list(theirs)}")
        told += [f"{name}: parameter `{key}` is ours alone" for key in mine
                 if key not in theirs and (short, key) not in MEANT and key != "args"]
    return count, told


# ---- numbers

SHAPES = {"x": (2, 3, 8, 6), "y": (2, 3, 8, 6), "v": (6,), "m": (6, 5), "r": (3,), "w": (4, 3, 3, 3), "s": (2, 3, 10),
          "k": (4, 3, 3), "d": (1, 2, 5, 5, 5), "e": (3, 2, 2, 2, 2), "t": (3, 2, 3, 3), "q": (2, 4, 2, 8), "a": (2, 5, 2, 8),
          "p": (3,)}
UNARY = ["abs", "ceil", "floor", "negative", "round", "sign", "square", "exp", "sigmoid", "sin", "cos", "tan", "tanh", "sinh", "cosh",
         "erf", "atan", "asinh", "nn.relu", "nn.gelu", "nn.gelu_tanh", "nn.silu", "nn.leakyrelu", "nn.softplus", "nn.selu", "trunc",
         "isnan", "isinf", "isfinite", "nn.relu6"]
POSITIVE = ["log", "sqrt", "rsqrt", "acosh"]
UNIT = ["asin", "acos", "atanh"]
BINARY = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "equal", "not_equal", "less", "less_equal", "greater",
          "greater_equal", "atan2", "floor_divide", "mod", "floor_mod", "log_add_exp"]
REDUCTIONS = ["sum", "mean", "max", "min", "prod", "std", "variance", "argmax", "argmin"]


# TVM's own lowering of layer_norm adds beta whatever `center` says: not compared.
def float_cases():
    # Away from 1, where a rounded argument would decide the result.
    out = [f"R.{name}(x)" for name in UNARY] + [f"R.{name}(R.add(R.abs(x), R.const(1.25, DTYPE)))" for name in POSITIVE]
    out += [f"R.{name}(R.multiply(R.sin(x), R.const(0.9, DTYPE)))" for name in UNIT] + [f"R.{name}(x, y)" for name in BINARY]
    out += [f"R.{name}(x, v)" for name in ("add", "multiply", "maximum")] + ["R.power(R.abs(x), v)", "R.nn.leakyrelu(x, 0.2)"]
    for name in REDUCTIONS:
        out += [f"R.{name}(x)", f"R.{name}(x, axis=1)", f"R.{name}(x, axis=-1, keepdims=True)"]
        if not name.startswith("arg"):
            out.append(f"R.{name}(x, axis=[0, 2])")
    out += ["R.cumsum(x, axis=1)", "R.cumprod(x, axis=-1)", "R.cumsum(x, axis=2, exclusive=True)", "R.nn.softmax(x)",
            "R.nn.softmax(x, axis=1)", "R.nn.log_softmax(x)", "R.clip(x, -0.5, 0.5)", "R.astype(x, \"int32\")",
            "R.matmul(x, m)", "R.matmul(v, m)", "R.outer(v, v)", "R.einsum((x, m), \"abcd,de->abce\")",
            "R.reshape(x, (6, 48))", "R.reshape(x, (2, -1))", "R.permute_dims(x)", "R.permute_dims(x, axes=[0, 2, 3, 1])",
            "R.expand_dims(x, axis=[0, 3])", "R.squeeze(R.expand_dims(x, axis=1), axis=[1])", "R.flatten(x)",
            "R.flip(x, axis=2)", "R.tile(x, (1, 2, 1, 2))", "R.repeat(x, 2, axis=1)", "R.repeat(x, 2)",
            "R.concat((x, y), axis=1)", "R.concat([x, y])", "R.broadcast_to(v, (4, 6))", "R.tril(x)", "R.triu(x, 1)", "R.tril(x, -1)",
            "R.strided_slice(x, axes=[2], begin=[1], end=[7], strides=[2])", "R.strided_slice(x, axes=[3], begin=[-1], end=[-7], strides=[-1])",
            "R.where(R.greater(x, y), x, y)", "R.ones_like(x)", "R.zeros_like(x)", "R.full_like(x, R.const(2.5, DTYPE))",
            "R.full((2, 3), R.const(1.5, DTYPE))", "R.zeros((2, 2), DTYPE)", "R.ones((2, 2), DTYPE)", "R.arange(5)", "R.arange(1, 9, 2)",
            "R.arange(1, 4)", "R.arange(9, 1, -3)", "R.eye(3)", "R.eye(3, 4, 1, dtype=DTYPE)", "R.eye(4, 3, -1)"]
    out += ["R.split(x, 2, axis=2)[1]", "R.split(x, [1, 4], axis=3)[2]", "R.sort(x)", "R.sort(x, axis=1, descending=True)", "R.argsort(x)",
            "R.argsort(x, axis=2, descending=True, dtype=\"int64\")", "R.topk(x, 3)[0]", "R.topk(x, 3)[1]",
            "R.topk(x, 2, axis=1, largest=False, ret_type=\"values\")", "R.topk(x, 2, ret_type=\"indices\", dtype=\"int64\")"]
    index = 'R.const([0, 2, 1, 5], "int32")'
    outside = 'R.const([0, -1, 7, 2, -9], "int32")'
    out += [f"R.take(x, {index}, axis=3)", f"R.take(v, {index})"] + \
           [f"R.take(x, {outside}, axis=3, mode=\"{mode}\")" for mode in ("clip", "wrap", "nan")] + \
           [f"R.take(v, {outside}, axis=0, mode=\"{mode}\")" for mode in ("clip", "wrap")]
    out += ['R.gather_elements(m, R.const([[0, 1, 2, 3, 4], [5, 4, 3, 2, 1]], "int64"), axis=0)',
            'R.gather_nd(m, R.const([[0, 1], [5, 4]], "int64"))',
            'R.scatter_elements(m, R.const([[0, 1, 2, 3, 4]], "int64"), R.const([[1.0, 2.0, 3.0, 4.0, 5.0]], DTYPE), axis=0)',
            'R.scatter_elements(m, R.const([[0, 1, 2, 3, 4]], "int64"), R.const([[1.0, 2.0, 3.0, 4.0, 5.0]], DTYPE), axis=0, reduction="add")',
            'R.one_hot(R.const([0, 2, 1], "int64"), R.prim_value(T.float32(5)), R.prim_value(T.float32(-1)), 4)',
            'R.reverse_sequence(m, R.const([1, 2, 3, 4, 5, 0], "int32"))',
            'R.reverse_sequence(m, R.const([2, 6, 3, 4, 5], "int32"), seq_axis=0, batch_axis=1)']
    for mode in ("", ", \"reflect\"", ", \"replicate\"", ", \"circular\""):
        out.append(f"R.nn.pad(x, [0, 0, 0, 0, 1, 2, 2, 1]{mode})")
    out.append("R.nn.pad(x, [0, 0, 1, 0, 1, 2, 0, 0], \"constant\", 1.5)")
    for rank, data in ((1, "s"), (2, "x"), (3, "d")):
        size, stride, pad = [3] * rank, [2] * rank, [1] * rank
        for kind in ("max", "avg"):
            out += [f"R.nn.{kind}_pool{rank}d({data}, {size})", f"R.nn.{kind}_pool{rank}d({data}, {size}, {stride}, {pad})",
                    f"R.nn.{kind}_pool{rank}d({data}, {[2] * rank}, {stride}, ceil_mode=True)",
                    f"R.nn.{kind}_pool{rank}d({data}, {size}, padding={pad}, count_include_pad=True)",
                    f"R.nn.{kind}_pool{rank}d({data}, {size}, padding={pad}, count_include_pad=False)"]
        out.append(f"R.nn.adaptive_avg_pool{rank}d({data}, {[3] * rank})")
    out += ["R.nn.conv1d(s, k)", "R.nn.conv1d(s, k, strides=2, padding=1)", "R.nn.conv2d(x, w)", "R.nn.conv2d(x, w, [2, 1], [1, 1])",
            "R.nn.conv2d(x, w, padding=[0, 1, 2, 1], dilation=[2, 1])", "R.nn.conv2d(x, R.const_w(), groups=3)", "R.nn.conv3d(d, e)",
            "R.nn.conv2d_transpose(x, t)", "R.nn.conv2d_transpose(x, t, [2, 2], [1, 1], [1, 1])", "R.nn.conv1d_transpose(s, R.const_t())"]
    out += ["R.nn.layer_norm(x, v, v, axes=[-1])", "R.nn.layer_norm(x, v, v, axes=[-1], epsilon=0.1)", "R.nn.rms_norm(x, v, axes=[-1])",
            "R.nn.group_norm(x, r, p, num_groups=3, channel_axis=1, axes=[2, 3])", "R.nn.group_norm(x, r, p, num_groups=1, channel_axis=1, axes=[2, 3])",
            "R.nn.instance_norm(x, r, p, channel_axis=1, axes=[2, 3])"]
    for options in ("", ", training=False", ", training=True, momentum=0.3, epsilon=0.01", ", center=False, training=False"):
        out += [f"R.nn.batch_norm(x, r, p, r, R.abs(p), axis=1{options})[{i}]" for i in range(3)]
    for method in ("nearest_neighbor", "linear", "cubic"):
        for mode in ("half_pixel", "align_corners", "asymmetric"):
            out.append(f"R.image.resize2d(x, (11, 9), method=\"{method}\", coordinate_transformation_mode=\"{mode}\")")
    for rounding in ("round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        out.append(f"R.image.resize2d(x, (12, 9), method=\"nearest_neighbor\", rounding_method=\"{rounding}\")")
    out += ["R.image.resize2d(x, (4, 12))", "R.image.resize2d(x, (4, 3), method=\"nearest_neighbor\")",
            "R.nn.attention(q, a, a)", "R.nn.attention(q, a, a, causal_mask=\"TopLeft\")", "R.nn.attention(q, a, a, causal_mask=\"BottomRight\", scale=0.3)",
            "R.nn.dropout(x)[0]", "R.nn.prelu(x, r)"]
    if True:
        out += ['R.quantize(x, R.const(0.05, "float32"), R.const(3, "int8"), out_dtype="int8")',
                'R.quantize(x, R.const([0.05, 0.1, 0.2], "float32"), R.const([3, 0, -4], "int8"), 1, "int8")']
    return [case for case in out if "const_" not in case]


def integer_cases():
    out = [f"R.{name}(x, y)" for name in ("add", "subtract", "multiply", "maximum", "minimum", "equal", "less", "bitwise_and", "bitwise_or",
                                          "bitwise_xor", "left_shift", "floor_divide", "floor_mod", "mod")]
    out = [case.replace("(x, y)", "(x, R.add(R.abs(y), R.const(1, DTYPE)))") if any(n in case for n in ("divide", "mod")) else
           case.replace("(x, y)", "(x, R.bitwise_and(y, R.const(3, DTYPE)))") if "shift" in case else case for case in out]
    out += [f"R.{name}(x)" for name in ("abs", "negative", "sign", "bitwise_not", "square")]
    out += [f"R.{name}(x, axis=2)" for name in ("sum", "max", "min", "argmax", "argmin", "cumsum")]
    out += ["R.sort(x)", "R.argsort(x)", "R.topk(x, 2)[1]", "R.clip(x, -1, 2)", "R.astype(x, \"float32\")", "R.flip(x, axis=1)", "R.matmul(x, m)",
            "R.einsum((x, m), \"abcd,de->abce\")", "R.tril(x)", "R.where(R.less(x, y), x, y)"]
    return out


def module_text(cases, dtype):
    used = sorted({name for case in cases for name in SHAPES if re.search(rf"\b{name}\b", case.replace("axis", ""))})
    params = ", ".join(f'{name}: R.Tensor({SHAPES[name]}, "{dtype}")' for name in used)
    lines = [f"        r{i} = {case.replace('DTYPE', repr(dtype))}" for i, case in enumerate(cases)]
    results = ", ".join(f"r{i}" for i in range(len(cases)))
    return ("from tvm.script import ir as I, relax as R, tirx as T\n\n\n@I.ir_module\nclass Module:\n    @R.function\n"
            f"    def main({params}):\n" + "\n".join(lines) + f"\n        return ({results},)\n"), used


class Runner:
    def __init__(self, tenon, folder):
        self.tenon, self.folder, self.count = tenon, folder, 0

    def both(self, cases, dtype):
        """What each case gives, ours and TVM's; a text where a compiler refuses the module.

        TVM adds up in float16, and some of its lowerings give float32 where its types say float16. So its numbers in float16 are those
        of float32 for the same operands, rounded, and the element types those of its types."""
        import numpy
        import tvm
        from tvm import relax

        text, used = module_text(cases, dtype)
        self.count += 1
        path = self.folder / f"operators_{self.count}.py"
        path.write_text(text)
        generator = numpy.random.default_rng(3)
        arrays = {}
        for name in SHAPES:
            value = generator.standard_normal(SHAPES[name]) if dtype.startswith("float") else generator.integers(-9, 9, SHAPES[name])
            arrays[name] = value.astype(dtype)
        ours = self.folder / f"out_{self.count}"
        command = [self.tenon, "run", path, "-o", ours]
        for name in used:
            numpy.save(self.folder / f"{name}_{dtype}.npy", arrays[name])
            command += ["-i", f"{name}={self.folder / f'{name}_{dtype}.npy'}"]
        out = subprocess.run(command, capture_output=True, text=True, timeout=500)
        mine = out.stderr.strip()[:300]
        if out.returncode == 0:
            files = [ours / (f"output_{i}.npy" if len(cases) > 1 else "output.npy") for i in range(len(cases))]
            mine = [numpy.load(file) for file in files]
        def load(path):
            spec = importlib.util.spec_from_file_location(path.stem, path)
            loaded = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(loaded)
            return loaded.Module

        try:
            module, wide = load(path), dtype
            types = [str(t.dtype) for t in module["main"].ret_ty.fields]
            if dtype == "float16":
                wide = "float32"
                path = self.folder / f"operators_{self.count}_wide.py"
                path.write_text(module_text(cases, wide)[0])
                module = load(path)
            machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
            result = machine["main"](*[tvm.runtime.tensor(arrays[name].astype(wide)) for name in used])
            theirs = [result[i].numpy() for i in range(len(cases))]
            if wide != dtype:
                theirs = [value.astype(t) for value, t in zip(theirs, types)]
        except Exception as error:  # whatever a compiler of others does
            theirs = str(error).strip()[-300:]
        return mine, theirs

    def run(self, cases, dtype):
        """(case, ours, theirs) for each; halves a list that one of them refuses as a whole."""
        mine, theirs = self.both(cases, dtype)
        if len(cases) == 1:
            return [(cases[0], mine if isinstance(mine, str) else mine[0], theirs if isinstance(theirs, str) else theirs[0])]
        if not isinstance(mine, str) and not isinstance(theirs, str):
            return list(zip(cases, mine, theirs))
        half = len(cases) // 2
        return self.run(cases[:half], dtype) + self.run(cases[half:], dtype)


def compare_numbers(tenon, pattern, dtypes):
    import numpy

    told, equal, theirs_alone = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(tenon, pathlib.Path(folder))
        for dtype in dtypes:
            cases = [c for c in (float_cases() if dtype.startswith("float") else integer_cases()) if pattern in c]
            for start in range(0, len(cases), 32):
                for case, mine, theirs in runner.run(cases[start:start + 32], dtype):
                    if isinstance(theirs, str):
                        theirs_alone += 1  # what TVM refuses has no number of TVM's
                        continue
                    if isinstance(mine, str):
                        told.append(f"{dtype} {case}: {mine}")
                        continue
                    if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
                        told.append(f"{dtype} {case}: {mine.dtype} {mine.shape}, in TVM {theirs.dtype} {theirs.shape}")
                        continue
                    most = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-9}.get(dtype, 0)
                    a, b = mine.astype("float64"), theirs.astype("float64")
                    with numpy.errstate(invalid="ignore"):  # infinity minus infinity
                        wrong = ~((a == b) | (numpy.isnan(a) & numpy.isnan(b)) | (numpy.abs(a - b) <= most * (1 + numpy.abs(b))))
                    if wrong.any():
                        at = numpy.argwhere(wrong)[0].tolist()
                        told.append(f"{dtype} {case}: {wrong.sum()} of {a.size} differ, at {at}: {a[tuple(at)]}, in TVM {b[tuple(at)]}")
                    else:
                        equal += 1
    return equal, theirs_alone, told


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tenon")
    parser.add_argument("-k", default="", help="only what contains this")
    parser.add_argument("--dtypes", default="float32,float16,int32", help="of the numbers")
    options = parser.parse_args()
    if not importlib.util.find_spec("tvm") or not importlib.util.find_spec("numpy"):
        print("skipped: apache-tvm and numpy are not installed for this Python (pip install apache-tvm==0.27.* numpy)")
        return 77
    count, told = compare_defaults(options.tenon, options.k)
    print(f"{count} operators compared by parameters")
    equal, refused, differing = compare_numbers(options.tenon, options.k, options.dtypes.split(","))
    print(f"{equal} calls give TVM's numbers, {refused} are refused by TVM")
    for line in told + differing:
        print(line)
    return 1 if told or differing else 0


if __name__ == "__main__":
    sys.exit(main())
