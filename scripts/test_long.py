#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what `make test` has no time for, and prints one table.

    scripts/test_long.py [--build build] [--models build/models] [--networks build] [--conformance DIR] [--only WORD]...

The property tests with their full counts; every network of the folders that `make models`, `zoo`, `quantised`, `language-models`
and `sklearn` fill (`models` is --models, the others lie in --networks) at several targets, as C and with several numbers of
threads, those of `models` also through their text and with libraries; ONNX's cases at every target. A step whose data is not there
is skipped, with the reason. Each step's output is in BUILD/long/NAME.log. Status 1 where a step failed.
"""

import argparse
import filecmp
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

# How far an output of these networks may be off, as a share of its largest number; quantised ones say it in their data.json.
SETS = {
    "models": ["--tolerance", "1e-4"],
    "zoo": ["--tolerance", "1e-3"],
    "language": ["--tolerance", "1e-3"],
    "sklearn": ["--tolerance", "1e-4"],
    "quantised": [],
}
# Each set runs at these, and `models` at all of TARGETS.
VECTORS = ("native", "haswell", "x86-64-v2")
TARGETS = {
    "native": "native",
    "haswell": "llvm -mcpu=haswell",
    "x86-64-v2": "llvm -mcpu=x86-64-v2",
    "x86-64": "llvm -mcpu=x86-64",
    "128 bits": "llvm -vector-bits=128 -vector-registers=16",
    "512 bits, 16 registers": "llvm -vector-bits=512 -vector-registers=16",
}
THREADS = (1, 2, 4)
CASES = ("node", "light", "simple", "pytorch-converted", "pytorch-operator")
# Cases whose outputs NumPy's generator drew, and no other can draw (docs/reliability.md).
DRAWN_BY_NUMPY = {
    "test_bernoulli_double",
    "test_bernoulli_double_expanded",
    "test_bernoulli_seed",
    "test_bernoulli_seed_expanded",
    "test_training_dropout_default",
    "test_training_dropout_default_mask",
    "test_training_dropout_mask",
}


class Skip(Exception):
    """A step that cannot run here."""


class Steps:
    def __init__(self, options):
        self.bin = (options.build / "bin").resolve()
        self.build = options.build
        self.folders = {name: options.networks / name for name in SETS} | {"models": options.models}
        self.conformance = options.conformance
        self.logs = options.build / "long"
        self.logs.mkdir(exist_ok=True)
        self.log = None

    def run(self, *command, env=None, check=True):
        """Runs a command into the step's log; returns its output. Raises RuntimeError where it fails."""
        self.log.write(f"$ {' '.join(map(str, command))}\n")
        self.log.flush()
        done = subprocess.run(
            [str(word) for word in command],
            env={**os.environ, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self.log.write(done.stdout)
        if check and done.returncode != 0:
            raise RuntimeError(f"status {done.returncode}: {last_line(done.stdout)}")
        return done.stdout

    def property_test(self, program, filter, **counts):
        """A GoogleTest program with counts from the environment."""
        path = self.bin / program
        if not path.exists():
            raise Skip(f"{program} is not built")
        out = self.run(path, f"--gtest_filter={filter}", "--gtest_brief=1", env={k: str(v) for k, v in counts.items()})
        passed = re.search(r"\[  PASSED  \] (\d+) test", out)
        if not passed or passed[1] == "0":
            raise RuntimeError(f"no test of {program} fits {filter}")
        return ", ".join(f"{k} {v}" for k, v in counts.items())

    def leaks(self, rounds):
        """What the Python package keeps of all that is loaded, compiled, registered and called so often."""
        python = self.build / "python-venv/bin/python"
        package = self.build / "python"
        if not python.exists() or not list((package / "tenon").glob("_core.*.so")):
            raise Skip("no Python package: `make python`")
        tests = pathlib.Path(__file__).resolve().parent.parent / "python/tests/test_leaks.py"
        env = {"PYTHONPATH": str(package), "TENON_LEAK_ROUNDS": str(rounds)}
        return last_line(self.run(python, "-m", "pytest", "-q", "-s", tests, env=env))

    def networks(self, kind="models"):
        files = sorted(self.folders[kind].rglob("*.onnx"), key=lambda f: f.stat().st_size) if self.folders[kind].exists() else []
        if not files:
            raise Skip(f"no networks in {self.folders[kind]}: `make {'language-models' if kind == 'language' else kind}`")
        return files

    def text(self):
        """Every module between two passes prints and parses back."""
        files = self.networks()
        with tempfile.TemporaryDirectory() as folder:
            for file in files:
                self.run(self.bin / "tenon", "compile", file, "--check-text", "-o", f"{folder}/x.so")
        return f"{len(files)} networks"

    def test_onnx(self, folder, *arguments):
        out = self.run(self.bin / "tenon", "test-onnx", *arguments, folder)
        return last_line(out)

    def target(self, kind, target, *arguments):
        self.networks(kind)
        return self.test_onnx(self.folders[kind], *SETS[kind], "--target", target, *arguments)

    def threads(self, kind):
        """Outputs are the same bytes at every number of threads."""
        files = self.networks(kind)
        for file in files:
            with tempfile.TemporaryDirectory() as folder:
                library = f"{folder}/x.so"
                self.run(self.bin / "tenon", "compile", file, "-o", library)
                inputs = [word for name, path in recorded_inputs(file) for word in ("--input", f"{name}={path}")]
                for count in THREADS:
                    self.run(self.bin / "tenon", "run", library, "--threads", count, "--out", f"{folder}/{count}", *inputs)
                    for one in pathlib.Path(folder, "1").iterdir():
                        if not filecmp.cmp(one, pathlib.Path(folder, str(count), one.name), shallow=False):
                            raise RuntimeError(f"{file}: `{one.name}` differs at {count} threads")
        return f"{len(files)} networks"

    def libraries(self, libs):
        return self.target("models", "native", "--libs", libs)

    def chains(self):
        """100,000 operators in a row compile within 30 s of one core."""
        chains = pathlib.Path(__file__).resolve().parent.parent / "bench" / "chains.py"
        return last_line(self.run(chains, "--tenon", self.bin / "tenon"))

    def cases(self, *arguments):
        """ONNX's own cases: only those that NumPy drew fail."""
        if not self.conformance or not self.conformance.exists():
            raise Skip("no --conformance folder")
        verdicts = {}
        for folder in CASES:
            with tempfile.NamedTemporaryFile(suffix=".json") as report:
                self.run(self.bin / "tenon", "test-onnx", self.conformance / folder, "--json", report.name, *arguments, check=False)
                verdicts |= {case["case"]: case["result"] for case in json.loads(pathlib.Path(report.name).read_text())}
        failed = {name for name, verdict in verdicts.items() if verdict == "failed"}
        if failed != DRAWN_BY_NUMPY:
            raise RuntimeError(f"not as expected: {', '.join(sorted(failed ^ DRAWN_BY_NUMPY))}")
        skipped = sum(verdict == "skipped" for verdict in verdicts.values())
        return f"{len(verdicts) - len(failed) - skipped} passed, {len(failed)} drawn by NumPy, {skipped} skipped"


def recorded_inputs(file):
    """The inputs of a network's first data set: [(name, path)]."""
    names = list(json.loads((file.parent / "info.json").read_text()).get("inputs", [])) if (file.parent / "info.json").exists() else []
    return [(name, file.parent / "test_data_set_0" / f"input_{i}.pb") for i, name in enumerate(names)]


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def steps_of(s):
    """The steps: name and what runs it, quick ones first."""
    steps = {
        "planted graphs": lambda: s.property_test("test_graph", "*Pattern*", TENON_PATTERN_GRAPHS=10_000),
        "partitions": lambda: s.property_test("test_interp", "*Partition*:InplaceCalls*", TENON_RANDOM_GRAPHS=10_000),
        "call graphs": lambda: s.property_test("test_backend_llvm", "CallGraphs*", TENON_CALL_GRAPHS=10_000),
        "transformed PrimFuncs": lambda: s.property_test("test_tir", "BlockPatternProperty*", TENON_PATTERN_CASES=1_000),
        "divided PrimFuncs": lambda: s.property_test("test_interp", "SplitCallTIRByPattern*", TENON_PATTERN_CASES=1_000),
        "moved blocks": lambda: s.property_test("test_tir", "ComputeAtProperty*", TENON_COMPUTE_AT_RUNS=100_000),
        "kernels in place": lambda: s.property_test("test_interp", "InPlace.*", TENON_IN_PLACE_CASES=20_000),
        "chains": s.chains,
        "leaks": lambda: s.leaks(1000),
        "cases, interpreter": lambda: s.cases("--interpret"),
        "cases, C": lambda: s.cases("--target", "c", "--link", s.bin / "libtenon_image.so"),
        "models, text": s.text,
    }
    for name in VECTORS:
        steps[f"cases, {name}"] = lambda name=name: s.cases("--target", TARGETS[name])
    for kind in SETS:
        for name in TARGETS if kind == "models" else VECTORS:
            steps[f"{kind}, {name}"] = lambda kind=kind, name=name: s.target(kind, TARGETS[name])
        steps[f"{kind}, C"] = lambda kind=kind: s.target(kind, "c")
        steps[f"{kind}, threads"] = lambda kind=kind: s.threads(kind)
    for libs in ("dnnl", "blas", "dnnl,blas"):
        steps[f"models, {libs}"] = lambda libs=libs: s.libraries(libs)
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path("build/models"))
    parser.add_argument("--networks", type=pathlib.Path, default=pathlib.Path("build"), help="folder of zoo, quantised, language and sklearn")
    parser.add_argument("--conformance", type=pathlib.Path, help="ONNX's backend tests, with a folder `node`")
    parser.add_argument("--only", action="append", help="steps with this word in their names; may be repeated")
    options = parser.parse_args()

    s = Steps(options)
    rows, failed = [], 0
    for name, step in steps_of(s).items():
        if options.only and not any(word in name for word in options.only):
            continue
        start = time.monotonic()
        s.log = open(s.logs / (re.sub(r"\W+", "_", name) + ".log"), "w")
        try:
            verdict, said = "passed", step()
        except Skip as why:
            verdict, said = "skipped", str(why)
        except RuntimeError as why:
            verdict, said = "FAILED", str(why)
            failed += 1
        finally:
            s.log.close()
        rows.append((name, verdict, f"{time.monotonic() - start:.0f} s", said))
        print(f"{name}: {verdict}, {rows[-1][2]}", file=sys.stderr, flush=True)
    widths = [max(len(row[i]) for row in rows) for i in range(3)] if rows else [0, 0, 0]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)) + "  " + row[3])
    counts = [sum(row[1] == verdict for row in rows) for verdict in ("passed", "FAILED", "skipped")]
    print("{} passed, {} failed, {} skipped".format(*counts))
    if not rows:
        print("no step has such a name", file=sys.stderr)
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
