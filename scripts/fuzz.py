#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every kind of random program side by side for some time and prints one table.

Each kind is a program of the build; what is not built, or not there, is skipped with a word. Failures
are left in a folder for each kind, reduced, with the command that shows them again.

    scripts/fuzz.py --seconds 3600
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import time


def kinds_of_tir(program):
    """What its help lists; the first alone where it is not built."""
    known = ("schedules", "programs")
    if not program.exists():
        return known[:1]
    text = subprocess.run([program, "--help"], capture_output=True, text=True).stdout
    return [kind for kind in known if kind in text]


def kinds(build, seconds, seed, out):
    """(name, command, pattern of its summary): the pattern's group 1 is what it ran."""
    reduce_seconds = str(min(60, max(5, seconds // 10)))
    yield (
        "networks",
        [build / "bin/fuzz_graphs", "--seed", seed, "--count", 10**9, "--seconds", seconds, "--jobs", 1,
         "--reduce-seconds", reduce_seconds, "--out", out / "networks"],
        r"^(\d+ networks from seed \d+, \d+ calls of \d+ operators)",
    )
    for kind in kinds_of_tir(build / "bin/fuzz_tir"):
        yield (
            kind,
            [build / "bin/fuzz_tir", "--kind", kind, "--seed", seed, "--count", 10**9, "--seconds", seconds,
             "--jobs", 1, "--reduce-seconds", reduce_seconds, "--out", out / kind],
            r"^(\d[^\n]*)",
        )
    # ONNX Runtime's opinion, where it is installed (exit status 77: it is not).
    yield (
        "onnx",
        [sys.executable, pathlib.Path(__file__).parent.parent / "tests/fuzz/graphs/onnx_models.py",
         build / "bin/tenon", "--seed", seed, "--seconds", seconds, "--out", out / "onnx"],
        r"^(\d+ models[^\n]*)",
    )
    # Whole files, mutated, through the whole of tenon.
    yield (
        "files",
        [sys.executable, pathlib.Path(__file__).parent.parent / "tests/fuzz/mutated_files.py", build / "bin/tenon",
         "--seed", seed, "--seconds", seconds, "--out", out / "files"],
        r"^(\d+ mutated files[^\n]*)",
    )
    # libFuzzer's targets one after another, where the compiler has it.
    yield (
        "readers",
        [sys.executable, pathlib.Path(__file__).parent / "fuzz_readers.py", "--build", build, "--seconds", seconds,
         "--out", out / "readers"],
        r"^(\d+ inputs of [^\n]*)",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--seconds", type=int, default=600, help="of all kinds together, side by side")
    parser.add_argument("--seed", type=int, default=None, help="of the first case (default: from the clock)")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("fuzz-failures"))
    parser.add_argument("--only", default="", help="kinds, separated by commas")
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else int(time.time()) * 1000
    args.out.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}, {args.seconds} s, failures in {args.out}", flush=True)

    running, rows = [], []
    for name, command, pattern in kinds(args.build, args.seconds, seed, args.out):
        if args.only and name not in args.only.split(","):
            continue
        program = pathlib.Path(command[0] if command[0] != sys.executable else command[1])
        if not program.exists():
            rows.append((name, "skipped", f"{program.name} is not built"))
            continue
        log = open(args.out / f"{name}.log", "w+")
        process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=subprocess.STDOUT,
                                   preexec_fn=lambda: os.nice(10))
        running.append((name, process, log, pattern))

    failed = False
    deadline = time.time() + args.seconds + 600  # what is being reduced ends
    for name, process, log, pattern in running:
        try:
            status = process.wait(max(1, deadline - time.time()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            status = "killed: it did not end"
        log.seek(0)
        text = log.read()
        log.close()
        found = re.findall(pattern, text, re.MULTILINE)
        ran = found[-1] if found else (text.strip().splitlines() or ["nothing"])[-1][:100]
        if status == 77:
            rows.append((name, "skipped", ran))
            continue
        failed = failed or status != 0
        rows.append((name, "ok" if status == 0 else f"FAILED ({status}), see {args.out / name}.log", ran))

    width = max([len(row[0]) for row in rows], default=0)
    print()
    for name, verdict, ran in rows:
        print(f"{name:<{width}}  {verdict:<8}  {ran}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
