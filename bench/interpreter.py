# SPDX-License-Identifier: Apache-2.0
"""Times the reference interpreter: processor seconds of kernels, beside those of another build.

Each program calls one operator 13 times; what the empty program takes is not counted. Networks may
be named too.

    interpreter.py build/bin/tenon [MODEL.onnx...] [--base OTHER/tenon] [--rounds 3]
"""

import argparse
import math
import pathlib
import resource
import subprocess
import tempfile

# name, tensors, expression
PROGRAMS = [
    ("conv2d", {"x": ("1, 16, 34, 34", "float32"), "w": ("32, 16, 3, 3", "float32")}, "R.nn.conv2d(x, w)"),
    ("conv2d, depthwise", {"x": ("1, 64, 58, 58", "float32"), "w": ("64, 1, 3, 3", "float32")},
     "R.nn.conv2d(x, w, groups=64)"),
    ("matmul", {"x": ("160, 160", "float32"), "w": ("160, 160", "float32")}, "R.matmul(x, w)"),
    ("matmul, float16", {"x": ("128, 128", "float16"), "w": ("128, 128", "float16")}, "R.matmul(x, w)"),
    ("matmul, int8", {"x": ("160, 160", "int8"), "w": ("160, 160", "int8")}, 'R.matmul(x, w, out_dtype="int32")'),
    ("max_pool2d", {"x": ("1, 32, 114, 114", "float32")}, "R.nn.max_pool2d(x, pool_size=[3, 3], strides=[2, 2])"),
    ("avg_pool2d", {"x": ("1, 32, 112, 112", "float32")}, "R.nn.avg_pool2d(x, pool_size=[2, 2], strides=[2, 2])"),
    ("softmax", {"x": ("256, 1000", "float32")}, "R.nn.softmax(x, axis=-1)"),
    ("layer_norm", {"x": ("512, 768", "float32"), "g": ("768,", "float32"), "b": ("768,", "float32")},
     "R.nn.layer_norm(x, g, b, axes=[-1])"),
    ("gelu", {"x": ("1000, 400", "float32")}, "R.nn.gelu(x)"),
    ("sum", {"x": ("512, 2048", "float32")}, "R.sum(x, axis=[1])"),
    ("max", {"x": ("512, 2048", "float32")}, "R.max(x, axis=[1])"),
    ("take", {"x": ("1000, 256", "float32"), "i": ("4000,", "int64")}, "R.take(x, i, axis=0)"),
    ("permute_dims", {"x": ("1000, 1000", "float32")}, "R.permute_dims(x, axes=[1, 0])"),
    ("add", {"x": ("1000, 1000", "float32"), "w": ("1000,", "float32")}, "R.add(x, w)"),
]
EMPTY = ({"x": ("4,", "float32")}, "R.negative(x)")
CALLS = 13


def module(tensors, expression):
    """A module that computes the expression several times."""
    params = ", ".join(f'{name}: R.Tensor(({shape}), "{dtype}")' for name, (shape, dtype) in tensors.items())
    calls = "".join(f"            y{i} = {expression}\n" for i in range(CALLS))
    return f"""from tenon.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main({params}):
        with R.dataflow():
{calls}            R.output(y{CALLS - 1})
        return y{CALLS - 1}
"""


def seconds(tenon, model, rounds):
    """The least processor time of a few runs."""
    times = []
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([tenon, "run", model, "--interpret"], check=True, stdout=subprocess.DEVNULL)
        times.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--base", help="another build to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    builds = [options.tenon] + ([options.base] if options.base else [])

    with tempfile.TemporaryDirectory() as folder:
        empty = pathlib.Path(folder, "empty.py")
        empty.write_text(module(*EMPTY))
        start = {build: seconds(build, empty, 5) for build in builds}
        programs = []
        for name, tensors, expression in PROGRAMS:
            path = pathlib.Path(folder, f"{len(programs)}.py")
            path.write_text(module(tensors, expression))
            programs.append((name, path))
        programs += [(pathlib.Path(model).parent.name, model) for model in options.models]

        ratios = []
        print("| program | s |" + (" base | ratio |" if options.base else ""))
        print("| --- | ---: |" + (" ---: | ---: |" if options.base else ""))
        for name, path in programs:
            times = [max(1e-3, seconds(build, path, options.rounds) - start[build]) for build in builds]
            row = f"| {name} | {times[0]:.3f} |"
            if options.base:
                ratios.append(times[1] / times[0])
                row += f" {times[1]:.3f} | {ratios[-1]:.1f} |"
            print(row, flush=True)
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"geometric mean of {len(ratios)}: {mean:.2f}, least {min(ratios):.1f}")


if __name__ == "__main__":
    main()
