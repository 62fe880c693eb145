#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what `make test` has no time for, and prints one table.

    scripts/test_long.py [--build build] [--models build/models] [--conformance DIR] [--only WORD]...

The property tests with their full counts; every network of the models' folder through its text, at several targets, with several
numbers of threads and with libraries; ONNX's node tests. A step whose data is not there is skipped, with the reason. Each step's
output is in BUILD/long/NAME.log. Status 1 where a step failed.
"""

import argparse
import filecmp
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

# Networks whose weights are larger than this are too large for a C compiler to be quick about them.
C_BYTES = 30 << 20
TOLERANCE = "1e-4"  # of whole networks, as `make test-models` takes it
TARGETS = {
    "native": "native",
    "haswell": "llvm -mcpu=haswell",
    "x86-64": "llvm -mcpu=x86-64",
    "128 bits": "llvm -vector-bits=128 -vector-registers=16",
    "512 bits, 16 registers": "llvm -vector-bits=512 -vector-registers=16",
}


class Skip(Exception):
    """A step that cannot run here."""


class Steps:
    def __init__(self, options):
        self.bin = (options.build / "bin").resolve()
        self.build = options.build
        self.models = options.models
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

    def networks(self):
        files = sorted(self.models.rglob("*.onnx"), key=lambda f: f.stat().st_size) if self.models.exists() else []
        if not files:
            raise Skip(f"no networks in {self.models}: `make models`")
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

    def target(self, target):
        self.networks()
        return self.test_onnx(self.models, "--tolerance", TOLERANCE, "--target", target)

    def target_c(self):
        small = [f for f in self.networks() if f.stat().st_size <= C_BYTES]
        with tempfile.TemporaryDirectory() as folder:
            for file in small:
                source = file.parent if (file.parent / "test_data_set_0").exists() else file
                link = pathlib.Path(folder) / source.name
                if not link.exists():
                    link.symlink_to(source.resolve())
                for beside in file.parent.glob(file.stem + "_*") if source == file else []:
                    (pathlib.Path(folder) / beside.name).symlink_to(beside.resolve())
            return self.test_onnx(folder, "--tolerance", TOLERANCE, "--target", "c")

    def threads(self):
        """Outputs are the same bytes at every number of threads."""
        files = self.networks()
        for file in files:
            with tempfile.TemporaryDirectory() as folder:
                for count in (1, 2, 3, 8):
                    self.run(self.bin / "tenon", "run", file, "--threads", count, "-o", f"{folder}/{count}")
                    for one in pathlib.Path(folder, "1").iterdir():
                        if not filecmp.cmp(one, pathlib.Path(folder, str(count), one.name), shallow=False):
                            raise RuntimeError(f"{file.name}: `{one.name}` differs at {count} threads")
        return f"{len(files)} networks"

    def libraries(self, libs):
        self.networks()
        return self.test_onnx(self.models, "--tolerance", TOLERANCE, "--libs", libs)

    def chains(self):
        """100,000 operators in a row compile within 30 s of one core."""
        chains = pathlib.Path(__file__).resolve().parent.parent / "bench" / "chains.py"
        return last_line(self.run(chains, "--tenon", self.bin / "tenon"))

    def nodes(self, *arguments):
        if not self.conformance or not self.conformance.exists():
            raise Skip("no --conformance folder")
        return self.test_onnx(self.conformance / "node", *arguments)


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
        "node tests": lambda: s.nodes(),
        "node tests, 128 bits": lambda: s.nodes("--target", TARGETS["128 bits"]),
        "networks through text": s.text,
        "networks, threads 1 2 3 8": s.threads,
        "networks, C": s.target_c,
    }
    for name, target in TARGETS.items():
        steps[f"networks, {name}"] = lambda target=target: s.target(target)
    for libs in ("dnnl", "blas", "dnnl,blas"):
        steps[f"networks, {libs}"] = lambda libs=libs: s.libraries(libs)
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path("build/models"))
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
