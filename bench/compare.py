# SPDX-License-Identifier: Apache-2.0
"""Compares Tenon with its peers, all in one run on one machine.

In every round each engine times each network once, in a process of its own, one engine after the
other: a machine that slows down for a while slows all of them. A ratio is a peer's time over Tenon's
of the same round (above 1 Tenon is faster): the median of the rounds, and their least and largest.
A peer that is not installed, or cannot convert or run a network, is left out with the reason.

`make bench` runs it; options through BENCH: `make bench BENCH="--models resnet50,mlp --rounds 9"`.
report.py prints the tables and draws the plot, also of the JSON of earlier runs.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import report

HERE = pathlib.Path(__file__).resolve().parent
PEERS = ("onnxruntime", "openvino", "mnn", "litert", "ncnn", "inductor")
CONVERTED = ("mnn", "litert", "ncnn")  # read a format of their own, which prepare.py writes


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
    return f"{model[1] if model else 'unknown CPU'}, {isa}, {len(os.sched_getaffinity(0))} CPUs"


def machine(threads):
    """{threads: what the machine computes and reads}: the peak of float32 FMAs in GFLOP/s, and the read bandwidth in GB/s."""
    peaks = {}
    with tempfile.TemporaryDirectory() as folder:
        for source, options in (("fma_peak", []), ("read_bandwidth", ["-ffast-math"])):
            command = ["cc", "-O3", "-march=native", *options, "-pthread", str(HERE / f"{source}.c"), "-o", f"{folder}/{source}"]
            if subprocess.run(command, capture_output=True).returncode != 0:
                return {}  # no C compiler
        for count in threads:
            fma = subprocess.run([f"{folder}/fma_peak", str(count)], capture_output=True, text=True)
            read = subprocess.run([f"{folder}/read_bandwidth", str(1 << 30), str(count)], capture_output=True, text=True)
            peaks[str(count)] = {"fma_gflops": float(fma.stdout), "read_gb_s": float(read.stdout)}
    return peaks


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


def prepare(name, path, engines, args, problems):
    """The folder with what prepare.py makes for the peers: kept between runs, made anew where the model or the sizes changed."""
    folder = pathlib.Path(args.prepared) / name
    data = ["--inputs", str(recorded_inputs(path)[0])] if args.recorded else []
    for dimension, size in symbolic_dimensions(path, args.dims).items():
        data += ["--dim", f"{dimension}={size}"]
    made_of = json.dumps([str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns, data])
    stamp = folder / "made_of.json"
    if not stamp.is_file() or json.loads(stamp.read_text()).get("made_of") != made_of:
        folder.mkdir(parents=True, exist_ok=True)
        stamp.write_text(json.dumps({"made_of": made_of, "tried": {}}))
    state = json.loads(stamp.read_text())
    for what in ["data"] * any(e in PEERS for e in engines) + [e for e in engines if e in CONVERTED]:
        if what != "data" and "data" in problems.get((name, what), ""):
            continue
        if what not in state["tried"] or "not installed" in (state["tried"][what] or ""):
            command = [sys.executable, str(HERE / "prepare.py"), what, str(path), str(folder)]
            _, state["tried"][what] = ask(command + (data if what == "data" else []), args.timeout)
            stamp.write_text(json.dumps(state))
        problem = state["tried"][what]
        for engine in [e for e in engines if e in PEERS] if what == "data" else [what]:
            if problem:
                problems[name, engine] = f"no data: {problem}" if what == "data" else problem
    return folder


def ask(command, timeout):
    """(what the command prints, None), or (None, the reason why it failed)."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return None, f"no result in {timeout} s"
    except OSError as problem:
        return None, str(problem)
    if done.returncode == 0:
        return done.stdout, None
    lines = done.stderr.strip().splitlines()
    said = next((line for line in reversed(lines) if line.startswith("error: ")), None) or next((line for line in lines if "error" in line), "")
    return None, said.removeprefix("error: ") or f"status {done.returncode}"


def command_of(engine, model, folder, args):
    """The command that measures, without threads and repetitions."""
    if engine in PEERS:
        return [sys.executable, str(HERE / "peer.py"), engine, str(model), str(folder)]
    tenon, target = (args.baseline, args.targets.split(";")[0]) if engine == "baseline" else (args.tenon, engine)
    if args.recorded:
        given = [part for name_and_file in recorded_inputs(model)[1] for part in ("--input", name_and_file)]
        return [tenon, "run", str(model), "--json", "--target", target, *given]
    command = [tenon, "bench", str(model), "--json", "--target", target]
    for dimension, size in symbolic_dimensions(model, args.dims).items():
        command += ["--dim", f"{dimension}={size}"]
    return command


def measure(engine, model, folder, threads, repeat, args):
    """One measurement in a process of its own: the object of the JSON contract, or the reason why there is none."""
    command = command_of(engine, model, folder, args) + ["--threads", str(threads), "--repeat", str(repeat)]
    printed, problem = ask(command, args.timeout)
    if problem:
        return None, problem
    result = json.loads(printed[printed.index("["):] if engine in PEERS else printed)  # a library may print before
    return result[0] if isinstance(result, list) else result, None


def compare(name, path, threads, args, engines, problems):
    """Rounds of all engines on one network: [measurement, with `engine` and `round`]."""
    results = []
    folder = prepare(name, path, engines, args, problems)
    repeat = {engine: 3 for engine in engines}  # the first, short measurement says how many runs fit
    for round_number in range(args.rounds + 1):
        for engine in engines:
            if (name, engine) in problems:
                continue
            if sys.stderr.isatty():
                print(f"\r\033[K{name}, {threads} threads, round {round_number}: {engine}", end="", file=sys.stderr)
            result, problem = measure(engine, path, folder, threads, repeat[engine], args)
            if problem:
                problems[name, engine] = problem
            elif round_number == 0:
                repeat[engine] = max(3, min(1000, int(args.seconds * 1e3 / max(result["median_ms"], 1e-3))))
            else:
                results.append({**result, "model": name, "threads": threads, "engine": engine, "round": round_number - 1})
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return results


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
    parser.add_argument("--seconds", type=float, default=1.0, help="of runs in one measurement (at least 3 runs)")
    parser.add_argument("--prepared", default="build/bench-prepared", metavar="FOLDER", help="inputs and converted networks of peers")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for one measurement")
    parser.add_argument("--json", metavar="FILE", help="also write every measurement")
    parser.add_argument("--add", action="store_true", help="keep the file's measurements of other networks and threads")
    parser.add_argument("--plot", metavar="FILE.svg", help="also draw the ratios")
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
    threads = [int(count) for count in args.threads.split(",")]

    record = {"host": host(), "load": os.getloadavg()[0], "machine": machine(threads), "first": engines[0], "measurements": [], "problems": []}
    if args.add and args.json and pathlib.Path(args.json).is_file():
        before = json.loads(pathlib.Path(args.json).read_text())
        if before["host"] != record["host"]:
            sys.exit(f"bench: {args.json} is of another machine: {before['host']}")
        record = before | record | {key: before[key] for key in ("measurements", "problems")} | {"machine": before["machine"] | record["machine"]}
    print(report.head(record))
    models = models_of(args)
    table = report.Table(max(len(name) for name, _, _ in models))
    problems = {}
    for name, path, gflop in models:
        for count in threads:
            results = compare(name, path, count, args, engines, problems)
            for row in report.rows(results, engines[0], gflop):
                table.add(row)
            record["measurements"] = [m for m in record["measurements"] if (m["model"], m["threads"]) != (name, count)] + results
        record["problems"] = [p for p in record["problems"] if p["model"] != name] + [
            {"model": name, "engine": e, "problem": problem} for (n, e), problem in problems.items() if n == name]
        if args.json:  # after each network: a long run that is cut off has kept what it measured
            pathlib.Path(args.json).write_text(json.dumps(record, indent=1) + "\n")
    print(report.summary(record))
    if args.plot:
        pathlib.Path(args.plot).write_text(report.plot(record))
    return 1 if any(engine in targets for _, engine in problems) else 0


if __name__ == "__main__":
    sys.exit(main())
