#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tenon with and without the libraries that can take parts of a network: a table of network x libs.

    bench/libs.py build/models [--models resnet18,mlp] [--libs none,dnnl,blas,dnnl+blas] [--check]

For each network and each choice of libraries: the share of the arithmetic that they took, the median latency at 1 and 2
threads, and the planned peak, which is to be at most that of `none` (the first choice) and the memory that the libraries declare
for themselves. The choices alternate, and each is measured in a process of its own. `--check` compares the
results with those that come with the network, and whether two compilations decide alike. A row that cannot be measured says
why in its place; status 1 where one failed.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys


def run(command, timeout):
    """The output of a command, or the reason why there is none."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return None, f"no result in {timeout} s"
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        return None, lines[0] if lines else f"status {done.returncode}"
    return done.stdout, None


def dimensions(model):
    """--dim options for the symbolic dimensions of a network's inputs."""
    info = model.parent / "info.json"
    inputs = json.loads(info.read_text()).get("inputs", {}) if info.is_file() else {}
    names = sorted({d for _, shape in inputs.values() for d in shape if isinstance(d, str)})
    return [word for name in names for word in ("--dim", f"{name}={1 if name == 'batch' else 32}")]


def measure(args, model, libs, threads):
    """The object of `tenon bench --json`, or the reason why there is none."""
    command = [args.tenon, "bench", str(model), "--json", "--libs", libs, "--threads", str(threads)]
    text, reason = run(command + ["--repeat", str(args.repeat)] + dimensions(model), args.timeout)
    if text is None:
        return None, reason
    return json.loads(text)[0], None


def check(args, model, libs):
    """What is wrong with results or decisions; nothing where all is well."""
    command = [args.tenon, "test-onnx", str(model.parent), "--tolerance", "1e-4", "--libs", libs]
    _, reason = run(command, args.timeout)
    if reason:
        return f"results: {reason}"
    texts = [run([args.tenon, "explain", str(model), "--libs", libs, "--json"], args.timeout) for _ in range(2)]
    if any(reason for _, reason in texts):
        return f"decisions: {texts[0][1] or texts[1][1]}"
    # Times are no decisions.
    decisions = [re.sub(r'"[a-z_]*(ms|seconds|mb)": *[0-9.e+-]+', "", text) for text, _ in texts]
    return "" if decisions[0] == decisions[1] else "decisions differ between two compilations"


def row_of(args, model, libs, own_peak):
    """Cells of one row, the peak, and what is wrong."""
    times, peak, share, problem = [], None, "-", ""
    for threads in args.threads:
        found = [measure(args, model, libs, threads) for _ in range(args.rounds)]
        good = [result for result, _ in found if result]
        if not good:
            problem = found[0][1]
            times.append("-")
            continue
        times.append(f"{statistics.median(result['median_ms'] for result in good):.3f}")
        peak = good[0].get("planned_bytes")
        offload = good[0].get("offload") or {}
        share = f"{100 * offload['share']:.0f} %" if "share" in offload else "0 %"
        declared = sum(backend.get("scratch_bytes", 0) for backend in offload.get("providers", []))
        if own_peak is not None and peak is not None and peak > own_peak + declared:
            problem = f"peak: {peak} bytes; own code {own_peak}, declared {declared}"
    if not problem and args.check:
        problem = check(args, model, libs)
    kib = f"{peak / 1024:.0f}" if peak is not None else "-"
    return [model.parent.name, libs, share, *times, kib, problem], peak, problem


def host():
    info = pathlib.Path("/proc/cpuinfo").read_text()
    name = re.search(r"^model name\s*: (.*)$", info, re.MULTILINE)
    cores = len(re.findall(r"^processor", info, re.MULTILINE))
    load = pathlib.Path("/proc/loadavg").read_text().split()[0]
    return f"{name[1] if name else 'unknown CPU'}, {cores} CPUs, load average {load}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="networks, each in a folder of its own")
    parser.add_argument("--tenon", default="build/bin/tenon")
    parser.add_argument("--models", default="", help="names, separated by commas; all without it")
    parser.add_argument("--libs", default="none,dnnl,blas,dnnl+blas", help="choices; + joins libraries")
    parser.add_argument("--threads", default="1,2", type=lambda text: [int(word) for word in text.split(",")])
    parser.add_argument("--repeat", type=int, default=20, help="runs of one measurement")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=300, help="seconds for one process")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()

    wanted = set(filter(None, args.models.split(",")))
    models = [path for path in sorted(args.folder.glob("*/*.onnx")) if not wanted or path.parent.name in wanted]
    if not models:
        sys.exit(f"{args.folder}: no network")
    print(host() + "\n")
    header = ["network", "libs", "offloaded", *(f"{n} thread{'s' if n > 1 else ''}, ms" for n in args.threads), "peak, KiB", ""]
    print("| " + " | ".join(header) + " |")
    print("| " + " | ".join("---" for _ in header) + " |", flush=True)
    all_good = True
    for model in models:
        own_peak = None
        for libs in args.libs.split(","):
            cells, peak, problem = row_of(args, model, libs.replace("+", ","), own_peak)
            all_good &= not problem
            if libs == "none":
                own_peak = peak
            print("| " + " | ".join(cells) + " |", flush=True)
    return 0 if all_good else 1


if __name__ == "__main__":
    sys.exit(main())
