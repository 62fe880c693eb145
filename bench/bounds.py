# SPDX-License-Identifier: Apache-2.0
"""How far networks are from what the machine could do.

    bounds.py --tenon build/bin/tenon --models-dir build/models [--models a,b] [--repeat 20]

The bound of a network is the longer of two times: its multiply-adds at the machine's peak of FMAs, those of Winograd's forms counted
as they are computed (F(2x2,3x3) has 16 products for 36, F(4x4,3x3) 36 for 144, F(6x6,3x3) 64 for 324), and one read of its constants at the rate at which the
machine reads so many bytes again and again, from a cache where they fit. One thread. `share` is the bound over the least time of a run;
of memory it may be above 1, where a run read faster than the measurement did. What is missing to 1 is told by the other columns: the
rate of the kernels that have multiply-adds (`products`), over the peak, and the share of time of the kernels that have none (`others`).
"""

import argparse
import collections
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from compare import HERE, host, machine


def products_left(tile):
    """Of the products of direct sums, by the form of F(tile x tile, 3x3)."""
    return ((tile + 2) / (3 * tile)) ** 2


def asked(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"bounds: {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def forms(tenon, model):
    """{kernel: what is left of its multiply-adds} of the kernels that take a form of Winograd's."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "plans.json"
        asked([tenon, "explain", model, "--write-plan", str(file)])
        plans = json.loads(file.read_text())["plans"]
    return {p["kernel"]: products_left(p["winograd"]["tile"]) for p in plans if p["algorithm"] == "winograd"}


def measured(tenon, model, repeat):
    return json.loads(asked([tenon, "report", model, "--json", "--threads", "1", "--repeat", str(repeat)]))


def read_rate(program, bytes):
    """GB/s of reading that many bytes; the best of a few, of a shared machine."""
    return max(float(asked([program, str(max(bytes, 4096)), "1"])) for _ in range(3))


def row(name, tenon, model, repeat, peak, reader):
    left = forms(tenon, model)
    runs = [measured(tenon, model, repeat) for _ in range(3)]
    report = min(runs, key=lambda r: r["run"]["min_ms"])
    flop, products, times = 0, collections.Counter(), collections.Counter()
    for call in report["calls"]:
        computed = (call["flop"] or 0) * left.get(call["function"], 1)
        flop += computed
        products[computed > 0] += computed
        times[computed > 0] += call["ms"] or 0
    arithmetic = flop / peak["fma_gflops"] * 1e-6
    constants = report["memory"]["constant_bytes"]
    memory = constants / read_rate(reader, constants) * 1e-6
    bound, ms = max(arithmetic, memory), report["run"]["min_ms"]
    rate = products[True] / times[True] * 1e-6 / peak["fma_gflops"] if times[True] else 0
    return [name, f"{flop * 1e-9:.3f}", f"{constants / 1e6:.1f}", f"{bound:.3f}", "memory" if memory > arithmetic else "arithmetic",
            f"{ms:.3f}", f"{bound / ms:.2f}", f"{rate:.2f}", f"{times[False] / max(sum(times.values()), 1e-9):.2f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tenon", default="build/bin/tenon")
    parser.add_argument("--models-dir", type=pathlib.Path, default=pathlib.Path("build/models"))
    parser.add_argument("--models", help="names, separated by commas (default: all of fixed sizes)")
    parser.add_argument("--repeat", type=int, default=20)
    args = parser.parse_args()
    names = args.models.split(",") if args.models else sorted(
        (p.parent.name for p in args.models_dir.glob("*/model.onnx") if not p.parent.name.endswith("_dyn")),
        key=lambda n: (args.models_dir / n / "model.onnx").stat().st_size)
    samples = [machine([1]).get("1") for _ in range(5)]  # of a shared machine
    if None in samples:
        sys.exit("bounds: no C compiler `cc` to measure the machine with")
    peak = {key: max(s[key] for s in samples) for key in samples[0]}
    print(f"{host()}: {peak['fma_gflops']:.0f} GFLOP/s of FMAs, {peak['read_gb_s']:.1f} GB/s read\n")
    print("| network | GFLOP | constants, MB | bound, ms | by | least ms | share | products | others |\n|" + " --- |" * 9)
    shares = []
    with tempfile.TemporaryDirectory() as folder:
        reader = f"{folder}/read_bandwidth"
        asked(["cc", "-O3", "-march=native", "-ffast-math", "-pthread", str(HERE / "read_bandwidth.c"), "-o", reader])
        for name in names:
            cells = row(name, args.tenon, str(args.models_dir / name / "model.onnx"), args.repeat, peak, reader)
            shares.append(float(cells[6]))
            print("| " + " | ".join(cells) + " |", flush=True)
    print(f"\ngeometric mean of the shares {statistics.geometric_mean(shares):.2f}")


if __name__ == "__main__":
    main()
