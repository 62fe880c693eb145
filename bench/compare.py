# SPDX-License-Identifier: Apache-2.0
"""Compares Tenon with its peers, all in one run on one machine.

In every round each engine times each network once, in a process of its own, one engine after the
other: a machine that slows down for a while slows all of them. `ratio` is the median over the
rounds of Tenon's median over ONNX Runtime's median of the same round; below 1 Tenon is faster.

`make bench` runs it; options through BENCH: `make bench BENCH="--models resnet50,mlp --rounds 9"`.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PEERS = ("onnxruntime", "openvino")
SECONDS_PER_MEASUREMENT = 1.0


def host():
    """What the numbers depend on: CPU, vector extension, cores, load."""
    info = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*: (.*)$", info, re.MULTILINE)
    flags = set(re.search(r"^flags\s*: (.*)$", info, re.MULTILINE)[1].split())
    if "avx512f" in flags:
        isa = "AVX-512 (32 registers of 16 floats)"
    elif {"avx2", "fma"} <= flags:
        isa = "AVX2 with FMA (16 registers of 8 floats)"
    else:
        isa = "neither AVX-512 nor AVX2 with FMA"
    cores = len(os.sched_getaffinity(0))
    return f"{model[1] if model else 'unknown CPU'}, {isa}, {cores} CPUs, load average {os.getloadavg()[0]:.1f}"


def symbolic_dimensions(path, given):
    """{name: size} of the symbolic dimensions of a network's inputs: the same for every engine."""
    info = path.parent / "info.json"
    inputs = json.loads(info.read_text()).get("inputs", {}) if info.is_file() else {}
    names = {d for _, shape in inputs.values() for d in shape if isinstance(d, str)}
    return {name: given.get(name, 1 if name == "batch" else 32) for name in sorted(names)}


def recorded_inputs(path):
    """(folder, [NAME=FILE]) of a network's last data set."""
    folder = sorted(path.parent.glob("test_data_set_*"))[-1]
    names = json.loads((path.parent / "info.json").read_text())["inputs"]
    return folder, [f"{name}={folder / f'input_{i}.pb'}" for i, name in enumerate(names)]


def command_of(engine, model, args):
    """The command that measures, without threads and repetitions."""
    tenon, target = (args.baseline, args.targets.split(";")[0]) if engine == "baseline" else (args.tenon, engine)
    if args.recorded:
        folder, inputs = recorded_inputs(pathlib.Path(model))
        if engine in PEERS:
            return [sys.executable, str(HERE / "peer.py"), engine, str(model), "--inputs", str(folder)]
        given = [part for name_and_file in inputs for part in ("--input", name_and_file)]
        return [tenon, "run", str(model), "--json", "--target", target, *given]
    if engine in PEERS:
        command = [sys.executable, str(HERE / "peer.py"), engine, str(model)]
    else:
        command = [tenon, "bench", str(model), "--json", "--target", target]
    for dimension, size in symbolic_dimensions(pathlib.Path(model), args.dims).items():
        command += ["--dim", f"{dimension}={size}"]
    return command


def measure(engine, model, threads, repeat, args):
    """One measurement in a process of its own: the object of the JSON contract, or the reason why there is none."""
    command = command_of(engine, model, args) + ["--threads", str(threads), "--repeat", str(repeat)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=args.timeout)
    except subprocess.TimeoutExpired:
        return None, f"no result in {args.timeout} s"
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return None, f"status {done.returncode}: {next((l for l in lines if 'error' in l), lines[-1] if lines else '')}"
    result = json.loads(done.stdout)
    return result[0] if isinstance(result, list) else result, None


def compare(name, path, threads, args, engines, problems):
    """Rounds of all engines on one network: {engine: [measurement of each round]}."""
    results = collections.defaultdict(list)
    repeat = {engine: 5 for engine in engines}  # the first, short measurement says how many runs fit
    for round_number in range(args.rounds + 1):
        for engine in engines:
            if (name, engine) in problems:
                continue
            if sys.stderr.isatty():
                print(f"\r\033[K{name}, {threads} threads, round {round_number}: {engine}", end="", file=sys.stderr)
            result, problem = measure(engine, path, threads, repeat[engine], args)
            if problem:
                problems[name, engine] = problem
            elif round_number == 0:
                repeat[engine] = max(5, min(1000, int(SECONDS_PER_MEASUREMENT * 1e3 / max(result["median_ms"], 1e-3))))
            else:
                results[engine].append(result)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return results


def ratio(mine, theirs, of="median_ms"):
    """Median of the rounds' ratios, or None where one of the two has no result."""
    if not mine or len(mine) != len(theirs):
        return None
    return statistics.median(a[of] / b[of] for a, b in zip(mine, theirs))


def row(name, threads, results, engines, targets, gflop):
    median = {e: statistics.median(r["median_ms"] for r in results[e]) for e in engines if results[e]}
    cells = [name, str(threads)]
    for engine in engines:
        if results[engine]:
            cells += [f"{median[engine]:.3f}", f"{min(r['min_ms'] for r in results[engine]):.3f}"]
        else:
            cells += ["-", "-"]
    for target in targets:
        value = ratio(results[target], results["onnxruntime"])
        cells.append("-" if value is None else f"{value:.2f}")
    if "baseline" in engines:
        value = ratio(results[targets[0]], results["baseline"], "min_ms")
        cells.append("-" if value is None else f"{value:.3f}")
    first = results[targets[0]] if targets else []
    cells.append(f"{gflop * 1e3 / median[targets[0]]:.1f}" if first and gflop else "-")
    cells.append(f"{statistics.median(r['compile_ms'] for r in first) / 1e3:.1f}" if first else "-")
    cells.append(f"{max(r['rss_mb'] for r in first):.0f}" if first and "rss_mb" in first[0] else "-")
    return cells


class Table:
    """Prints each row as it comes: a long run that is cut off has shown what it measured."""

    def __init__(self, titles, first_width):
        self.widths = [first_width] + [max(len(t), 9) for t in titles[1:]]
        self.add(titles)
        print("-|-".join("-" * w for w in self.widths), flush=True)

    def add(self, cells):
        aligned = [c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, self.widths))]
        print(" | ".join(aligned), flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tenon", default="build/bin/tenon", help="the program; left out where it does not exist")
    parser.add_argument("--models-dir", default="build/models", help="folders NAME/model.onnx")
    parser.add_argument("--models", help="names or .onnx files, separated by commas (default: all but symbolic sizes)")
    parser.add_argument("--threads", default="1,2", help="thread counts (default 1,2)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds after a first one that does not count")
    parser.add_argument("--targets", default="native",
                        help="Tenon's targets, separated by semicolons: 'native;llvm -mcpu=haswell'")
    parser.add_argument("--baseline", metavar="TENON",
                        help="another build of the program, measured beside it: `to baseline` is the median ratio of least times")
    parser.add_argument("--peers", default=",".join(PEERS), help="which peers, or `none`")
    parser.add_argument("--dims", default="", help="sizes of symbolic dimensions: batch=4,sequence=100")
    parser.add_argument("--recorded", action="store_true",
                        help="inputs of the last data set of each network, not random ones: what a detector finds takes time")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for one measurement")
    parser.add_argument("--json", metavar="FILE", help="also write every measurement")
    args = parser.parse_args()
    args.dims = {name: int(size) for name, size in (d.split("=") for d in args.dims.split(",") if d)}
    return args


def models_of(args):
    """[(name, path, 10^9 floating-point operations of one run, or None)]"""
    folder = pathlib.Path(args.models_dir)
    if args.models:
        names = args.models.split(",")
    else:
        names = sorted(p.parent.name for p in folder.glob("*/model.onnx") if args.recorded or not p.parent.name.endswith(("_dyn", "_values")))
    models = []
    for name in names:
        path = pathlib.Path(name) if name.endswith(".onnx") else folder / name / "model.onnx"
        if not path.is_file():
            sys.exit(f"bench: {path} does not exist")
        info = path.parent / "info.json"
        gflop = json.loads(info.read_text()).get("gflop") if info.is_file() else None
        models.append((path.stem if name.endswith(".onnx") else name, path, gflop))
    if not models:
        sys.exit(f"bench: {folder} holds no networks; `make models` generates them")
    return models


def main():
    args = parse_arguments()
    peers = [] if args.peers == "none" else args.peers.split(",")
    targets = args.targets.split(";") if os.access(args.tenon, os.X_OK) else []
    if not targets:
        print(f"bench: {args.tenon} does not exist: peers only", file=sys.stderr)
    engines = targets + (["baseline"] if args.baseline and targets else []) + peers

    print(host())
    print(f"{args.rounds} rounds, engines alternating; times in ms; s and MB: compile time and peak memory of tenon")
    print()
    titles = ["model", "threads"]
    for engine in engines:
        short = f"tenon {engine.replace('llvm -mcpu=', '')}" if engine in targets else engine
        titles += [f"{short} median", "min"]
    titles += ["ratio" if t == "native" else f"ratio {t.replace('llvm -mcpu=', '')}" for t in targets]
    titles += ["to baseline"] if "baseline" in engines else []
    models = models_of(args)
    table = Table(titles + ["GFLOP/s", "s", "MB"], max(len(name) for name, _, _ in models))
    record, problems = [], {}
    for name, path, gflop in models:
        for threads in map(int, args.threads.split(",")):
            results = compare(name, path, threads, args, engines, problems)
            table.add(row(name, threads, results, engines, targets, gflop))
            record += [{**r, "model": name, "engine": e, "round": i}
                       for e in engines for i, r in enumerate(results[e])]
    for (name, engine), problem in problems.items():
        print(f"{name}: {engine}: {problem}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"host": host(), "measurements": record}, indent=1) + "\n")
    return 1 if any(engine in targets for _, engine in problems) else 0


if __name__ == "__main__":
    sys.exit(main())
