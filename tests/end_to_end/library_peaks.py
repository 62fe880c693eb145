# SPDX-License-Identifier: Apache-2.0
"""Networks with each choice of libraries: the planned peak is at most that of own code plus the scratch memory that a call of
the libraries declares, and two compilations decide the same.

    library_peaks.py TENON     status 77 where this build has no library
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from libraries import conv, write_npy

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

# name: (input, constants by shape, lines, result)
SCRIPTS = {
    "residual": (
        (1, 3, 24, 24),
        [(16, 3, 3, 3), (1, 16, 1, 1), (16, 16, 3, 3), (1, 16, 1, 1), (16, 16, 3, 3), (16, 10)],
        [
            f"a = R.nn.relu(R.add({conv()}, c1))",
            "b = R.nn.max_pool2d(a, pool_size=[2, 2], strides=[2, 2])",
            f"d = R.nn.relu(R.add({conv('b', 'c2')}, c3))",
            f"e = R.nn.relu(R.add({conv('d', 'c4')}, b))",
            "f = R.mean(e, axis=[2, 3], keepdims=False)",
            "y = R.nn.softmax(R.matmul(f, c5), axis=-1)",
        ],
        (1, 10),
    ),
    "separable": (
        (1, 8, 16, 16),
        [(8, 1, 3, 3), (24, 8, 1, 1), (8, 24, 1, 1)],
        [
            f"a = R.clip({conv(groups=8)}, 0.0, 6.0)",
            f"b = R.nn.hardswish({conv('a', 'c1', padding=(0, 0, 0, 0))})",
            f"y = R.add({conv('b', 'c2', padding=(0, 0, 0, 0))}, x)",
        ],
        (1, 8, 16, 16),
    ),
    "attention": (
        (1, 16, 32),
        [(32,), (32,), (32, 32), (32, 32), (32, 32), (32, 64), (64,), (64, 32)],
        [
            "n = R.nn.layer_norm(x, c0, c1, axes=[-1])",
            "q = R.matmul(n, c2)",
            "k = R.permute_dims(R.matmul(n, c3), axes=[0, 2, 1])",
            "v = R.matmul(n, c4)",
            "s = R.nn.softmax(R.matmul(q, k), axis=-1)",
            "r = R.add(R.matmul(s, v), x)",
            "y = R.add(R.matmul(R.nn.gelu(R.add(R.matmul(r, c5), c6)), c7), r)",
        ],
        (1, 16, 32),
    ),
}


# The same for any batch and length.
SCRIPTS["attention_dyn"] = (("n", "m", 32), *SCRIPTS["attention"][1:3], ("n", "m", 32))


def script(folder, name):
    """The arguments that name the network, with its weights bound to constants."""
    given, constants, lines, result = SCRIPTS[name]
    params = ", ".join(f'{n}: R.Tensor({s}, "float32")' for n, s in [("x", given)] + [(f"c{i}", s) for i, s in enumerate(constants)])
    body = "".join(f"            {line}\n" for line in lines)
    symbols = "".join(f"        {d} = T.int64()\n" for d in given if isinstance(d, str))
    (folder / "m.py").write_text(
        "from tenon.script import ir as I, relax as R, tir as T\n\n@I.ir_module\nclass Module:\n    @R.function\n"
        f'    def main({params}) -> R.Tensor({result}, "float32"):\n'
        f"{symbols}        with R.dataflow():\n{body}            R.output(y)\n        return y\n"
    )
    bound = {}
    for i, shape in enumerate(constants):
        bound[f"c{i}"] = str(folder / f"c{i}.npy")
        write_npy(folder / f"c{i}.npy", shape, i + 1)
    return [str(folder / "m.py"), "--passes", f'BindParams(params={json.dumps(bound)}, func_name="main")']


def tenon(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def peak_of(report):
    """Of the plan; where it depends on dimensions, what it comes to for those of this run."""
    return report["planned_bytes"] if report["planned_bytes"] is not None else report["workspace_bytes"]


def main():
    program = sys.argv[1]
    version = tenon([program, "--version"])
    libraries = [name for name in ("dnnl", "blas") if f"{name} (" in version]
    if not libraries:
        print("skipped: this build has no library")
        return 77
    choices = libraries + ([",".join(libraries)] if len(libraries) > 1 else [])
    failed = taken = checked = 0
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        networks = {"digits": [str(REPOSITORY / "examples/digits/digits_b1.onnx")]}
        for name in SCRIPTS:
            (folder / name).mkdir()
            networks[name] = script(folder / name, name)
        # One processor's choices on every host.
        target = ["--target", "llvm -mcpu=haswell"]
        for name, network in networks.items():
            own = peak_of(json.loads(tenon([program, "run", *network, *target, "--libs", "none", "--json"])))
            for libs in choices:
                run = [program, "run", *network, *target, "--libs", libs, "--json"]
                report = json.loads(tenon(run))
                explain = [program, "explain", *network, *target, "--libs", libs, "--json"]
                backends = report["offload"]["providers"]
                scratch = max(one["scratch_bytes"] for one in backends)
                taken += sum(one["operators"] for one in backends)
                checked += 1
                print(f"{name} {libs}: {peak_of(report)} bytes, own {own}, scratch {scratch}")
                if peak_of(report) > own + scratch:
                    failed += 1
                    print("    more than own code and the scratch memory")
                if tenon(explain) != tenon(explain) or json.loads(tenon(run))["offload"] != report["offload"]:
                    failed += 1
                    print("    a second compilation decides otherwise")
    if not taken:
        failed += 1
        print("the libraries took nothing")
    print(f"{checked} choices, {failed} faults")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
