# SPDX-License-Identifier: Apache-2.0
"""Mixtures of providers: `run`, `compile`, the compiled program and `explain` give one account of who computes what.

    accounts.py TENON [-k SUBSTRING]
"""

import argparse
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DIGITS = "examples/digits/digits_b1.onnx"
TOY = ["--call-by-name", "toy", "--composite", "patterns.py", "--signatures", "signatures.py"]
LINK = ["--link", "examples/library_calls/toy_sized.c"]

KERNEL = """
@T.prim_func
def my_softmax(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32")):
    T.func_attr({"op": "nn.softmax", "op_attrs": {"axis": -1}})
    total = T.alloc_buffer(("n",), "float32")
    for i, j in T.grid(n, m):
        with T.block("sum"):
            v, k = T.axis.remap("SR", [i, j])
            with T.init():
                total[v] = T.float32(0)
            total[v] = total[v] + T.exp(x[v, k])
    for i, j in T.grid(n, m):
        with T.block("divide"):
            v, k = T.axis.remap("SS", [i, j])
            y[v, k] = T.exp(x[v, k]) / total[v]
"""
# Takes calls of more rows than there are.
PICKY = KERNEL.replace('"axis": -1}', '"axis": -1}, "op_when": "n >= 1000"')
# name: (model, options, what is linked, providers that compute something, back ends that are needed)
MIXTURES = {
    "own_code": (DIGITS, [], [], [], []),
    "dnnl": (DIGITS, ["--libs", "dnnl"], [], ["dnnl"], ["dnnl"]),
    "blas": ("wide.py", ["--libs", "blas"], [], ["blas"], ["blas"]),
    "two_back_ends": (DIGITS, ["--libs", "blas,dnnl", "--place", "logits=blas"], [], ["dnnl", "blas"], ["dnnl", "blas"]),
    "by_hand": (DIGITS, ["--libs", "dnnl", "--place", "conv2=none"], [], ["dnnl"], ["dnnl"]),
    "library_by_name": ("examples/library_calls/network.onnx", TOY, LINK, ["toy"], []),
    "library_that_refuses": ("examples/library_calls/network.onnx", [*TOY[:-1], "wrong.py"], [], [], []),
    "library_that_costs": ("examples/library_calls/network.onnx", [*TOY[:-1], "dear.py"], [], [], []),
    "library_by_priority": ("examples/library_calls/network.onnx", [*TOY[:-1], "preferred.py"], LINK, ["toy"], []),
    "library_and_back_end": (
        "examples/library_calls/network.onnx",
        ["--libs", "blas", "--call-by-name", "toy", "--composite", "dense_relu.py", "--signatures", "signatures.py",
         "--place", "/fc1/MatMul=blas"],
        LINK, ["toy", "blas"], ["blas"]),
    "composites_of_the_module": (
        "examples/library_calls/network.py", ["--call-by-name", "toy"], ["--link", "examples/library_calls/toy.c"], ["toy"], []),
    "composites_of_relay": (
        "examples/library_calls/network.relay", ["--call-by-name", "toy"],
        ["--link", "examples/library_calls/toy.c"], ["toy"], []),
    "kernels": (DIGITS, ["--kernels", "kernel.py"], [], ["kernels"], []),
    "kernels_that_refuse": (DIGITS, ["--kernels", "picky.py"], [], [], []),
    "kernel_passed_over": (DIGITS, ["--kernels", "kernel.py", "--place", "probabilities=none"], [], [], []),
    "kernel_placed": (DIGITS, ["--kernels", "kernel.py", "--libs", "dnnl", "--place", "probabilities=kernels.my_softmax"],
                      [], ["kernels", "dnnl"], ["dnnl"]),
    "kernels_and_back_end": (DIGITS, ["--kernels", "kernel.py", "--libs", "dnnl"], [], ["kernels", "dnnl"], ["dnnl"]),
    "plugin": ("examples/accelerator/digits.onnx", ["--plugin", "accelerator.so"], [], ["acc"], []),
    "plugin_kernels_and_back_end": (
        "examples/accelerator/digits.onnx",
        ["--plugin", "accelerator.so", "--kernels", "kernel.py", "--libs", "blas"], [], ["acc", "kernels"], ["blas"]),
    "calls_of_the_module": ("calls.py", ["--libs", "blas", "--place", "p=blas"], ["--link", "twice.c"], ["extern", "blas"], ["blas"]),
}

# name: patterns that take something; codes of refusals.
TAKERS = {"library_by_name": {"toy.dense_bias_relu", "toy.dense_bias"}, "library_by_priority": {"toy.dense_bias"}}
REFUSED = {"library_that_refuses": {"signature"}, "library_that_costs": {"cost"}, "kernels_that_refuse": {"condition"}}
# name: bytes of scratch of each provider.
SCRATCH = {"library_by_name": {"toy": 3072}}

CALLS = """
@R.function
def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 8), "float32")) -> R.Tensor((4, 8), "float32"):
    with R.dataflow():
        p = R.matmul(x, w)
        y = R.call_dps_packed("twice", (p,), out_sinfo=R.Tensor((4, 8), "float32"))
        z = R.nn.relu(y)
        R.output(z)
    return z
"""
WIDE = """
@R.function
def main(x: R.Tensor((64, 256), "float32"), w: R.Tensor((256, 256), "float32")) -> R.Tensor((64, 256), "float32"):
    with R.dataflow():
        p = R.matmul(x, w)
        z = R.nn.relu(p)
        R.output(z)
    return z
"""
TWICE = """
void twice(const float* x, float* y) {
  for (int i = 0; i < 32; ++i) y[i] = 2 * x[i];
}
"""


def prepare(folder):
    toy = ROOT / "examples/library_calls"
    shutil.copy(toy / "patterns.py", folder)
    shutil.copy(toy / "signatures.py", folder)
    text = (toy / "signatures.py").read_text()
    (folder / "wrong.py").write_text(text.replace('"inputs": [1, 0, 2], ', ""))
    (folder / "dear.py").write_text(text.replace('"returns": "int32"', '"returns": "int32", "cost": "0.5 + m * 0.001"'))
    first, second = text.split("    @T.extern_func\n    def dense_bias(")
    (folder / "preferred.py").write_text(
        first + "    @T.extern_func\n    def dense_bias(" + second.replace('"returns": "int32"', '"returns": "int32", "priority": 5'))
    patterns = (toy / "patterns.py").read_text()
    (folder / "dense_relu.py").write_text(patterns[: patterns.index("    @R.function\n    def dense_bias(")])
    (folder / "kernel.py").write_text(KERNEL)
    (folder / "picky.py").write_text(PICKY)
    (folder / "calls.py").write_text(CALLS)
    (folder / "wide.py").write_text(WIDE)
    (folder / "twice.c").write_text(TWICE)
    source = ROOT / "examples/accelerator"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", f"-I{ROOT}/include", f"-I{source}", source / "acc_backend.c",
                    source / "accelerator.c", "-lm", "-o", folder / "accelerator.so"], check=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tenon", type=pathlib.Path)
    parser.add_argument("-k", default="", dest="part")
    options = parser.parse_args()
    program = options.tenon.resolve()

    def tenon(*arguments):
        done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, f"tenon {' '.join(arguments)}: status {done.returncode}: {done.stderr}"
        return done.stdout

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "examples").symlink_to(ROOT / "examples")
        prepare(folder)
        there = tenon("--version")
        failed = 0
        for mixture, (model, asked, link, providers, needed) in MIXTURES.items():
            if options.part not in mixture:
                continue
            if any(library not in there for library in needed):
                print(f"{mixture}: skipped, this build has not {' and '.join(needed)}")
                continue
            try:
                account = check(tenon, folder, model, asked, link, providers, TAKERS.get(mixture), REFUSED.get(mixture))
                for provider, size in SCRATCH.get(mixture, {}).items():
                    found = {one["name"]: one["scratch_bytes"] for one in account["providers"]}
                    assert found[provider] == size, f"scratch: {found}; expected {size} of {provider}"
                print(f"{mixture}: ok")
            except AssertionError as error:
                failed += 1
                print(f"{mixture}: FAILED: {error}")
    sys.exit(failed > 0)


def summary(text):
    """Who computed what, and with which kernels, as `run` and `compile` print it."""
    return [line.split("; target ")[0] for line in text.splitlines() if line.startswith(("operators ", "kernel "))]


def check(tenon, folder, model, asked, link, providers, takers, refused):
    run = json.loads(tenon("run", model, *asked, *link, "--json"))
    account = run.get("offload")
    text = summary(tenon("run", model, *asked, *link))
    compiled = summary(tenon("compile", model, *asked, *link, "-o", "x.so"))
    manifest = json.loads((folder / "x.json").read_text())
    again = json.loads(tenon("run", "x.so", "--json"))
    explained = tenon("explain", model, *asked)
    remarks = json.loads(tenon("explain", model, *asked, "--pass", "Placement", "--json"))

    assert manifest.get("offload") == account, f"manifest: {manifest.get('offload')}; run: {account}"
    assert again.get("offload") == account, f"compiled program: {again.get('offload')}; run: {account}"
    assert compiled == text, f"compile prints {compiled}, run {text}"
    assert text[0] in explained.splitlines(), f"explain does not print {text[0]}"
    assert summary(tenon("run", "x.so"))[0] == text[0], "the compiled program prints another line"
    if not account:
        assert not providers and not refused and not remarks, f"expected {providers}: {text}"
        return None
    places = account["placements"]
    counts = collections.Counter(one["provider"] for one in places)
    assert len(places) == account["operators"], f"{len(places)} placements of {account['operators']} operators"
    assert counts["own code"] == account["own_operators"] == run["own_operators"], f"{counts}: {account}"
    for one in account["providers"]:
        assert counts[one["name"]] == one["operators"], f"{counts}: {one}"
    assert not takers or {one["by"] for one in places if one["by"]} == takers, f"{takers}: {places}"
    assert not refused or set(account["refused"]) == refused, f"{refused}: {account['refused']}"
    for provider in providers:
        assert counts[provider] > 0, f"{provider} computes nothing: {text}"
    assert {name for name, count in counts.items() if count} <= {*providers, "own code"}, f"{counts}"
    for one in places:
        assert bool(one["by"]) == (one["provider"] != "own code") and bool(one["reason"]) != bool(one["by"]), f"{one}"
    same = [{"node": one["subject"], "provider": one["verdict"], "why": one["reason"]} for one in remarks]
    assert same == [{"node": one["node"], "provider": one["provider"], "why": one["by"] or one["reason"]} for one in places], (
        f"explain: {same}; run: {places}")
    # Of each node by itself: one of each provider, and all that do not come first in the file.
    seen = set()
    for one in places:
        if (one["provider"], one["by"], one["reason"]) in seen:
            continue
        seen.add((one["provider"], one["by"], one["reason"]))
        node = one["node"].split(" + ")[0]
        story = json.loads(tenon("explain", model, node, *asked, "--json"))
        of_node = [place for place in places if place["node"] == one["node"]]
        for place in of_node:
            assert place in story["placements"], f"explain {node}: {story['placements']}; run: {place}"
    return account


main()
