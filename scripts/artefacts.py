#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hashes of what the compiler makes of networks, to show that a change left every byte alone.

    artefacts.py build/bin/tenon -o before.json
    artefacts.py build/bin/tenon --compare before.json

Compiles every network of --models (default: build/models, see `make models`) and every model of
examples/ for each target of TARGETS, and hashes each file that comes of it. --compare prints the
files that differ and ends with 1 where there are any. No target is `native` and no library is used,
so the hashes do not depend on the host. Both runs must happen in the same folder: refusals name files.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What is emitted for each target. The shared library of one shows the packed weights too.
TARGETS = {
    "sse": ("llvm -mcpu=x86-64-v2", "asm"),
    "avx2": ("llvm -mcpu=haswell", "asm,tvmscript"),
    "avx512": ("llvm -mcpu=skylake-avx512", "asm"),
    "aarch64": ("llvm -mtriple=aarch64-linux-gnu", "asm"),
    "c": ("c", "c"),
    "so": ("llvm -mcpu=haswell", "so"),
}
# Weights of a larger model are not written for target `so`.
LARGEST_SO = 64 << 20


def models_of(folder):
    """Names and files of the generated networks and of the models in examples/."""
    found = {path.parent.name: path for path in sorted(folder.glob("*/model.onnx"))}
    for suffix in ("onnx", "py", "relay", "tvmscript"):
        for path in sorted((ROOT / "examples").glob(f"*/*.{suffix}")):
            found[str(path.relative_to(ROOT))] = path
    return found


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hashes_of(job):
    """{NAME/TARGET/FILE: hash} of one compilation; a refusal is hashed by its text."""
    tenon, name, path, target = job
    description, emit = TARGETS[target]
    if target == "so" and path.stat().st_size > LARGEST_SO:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        out = out / "model.so" if target == "so" else out
        out.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [tenon, "compile", str(path), "--target", description, "--emit", emit, "-o", str(out),
             "--name", "model"], capture_output=True, text=True, check=False, cwd=ROOT)
        if done.returncode != 0:
            first = (done.stderr.splitlines() or [""])[0]
            return {f"{name}/{target}": "refused: " + first}
        top = out.parent if target == "so" else out
        return {f"{name}/{target}/{file.relative_to(top)}": digest(file)
                for file in sorted(top.rglob("*")) if file.is_file()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tenon")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build" / "models")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--only", default="", help="part of a model's name")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("-o", "--out", help="file to write the hashes to")
    parser.add_argument("--compare", help="hashes of an earlier run")
    args = parser.parse_args()
    jobs = [(os.path.abspath(args.tenon), name, path, target)
            for name, path in models_of(args.models).items() if args.only in name
            for target in args.targets.split(",")]
    hashes = {}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for result in pool.map(hashes_of, jobs):
            hashes.update(result)
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(hashes, indent=1) + "\n")
    refused = sum(value.startswith("refused") for value in hashes.values())
    print(f"{len(jobs)} compilations, {len(hashes) - refused} files, {refused} refused")
    if not args.compare:
        return 0
    before = json.loads(pathlib.Path(args.compare).read_text())
    names = {f"{name}/{target}" for _, name, _, target in jobs}
    before = {key: value for key, value in before.items()
              if any(key == name or key.startswith(name + "/") for name in names)}
    differing = sorted(key for key in before.keys() | hashes.keys()
                       if before.get(key) != hashes.get(key))
    for key in differing:
        print("differs:", key)
    print(f"{len(differing)} of {len(before)} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
