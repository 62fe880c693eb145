#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the recorded cases of tests/onnx/ in the interpreter, as machine code and as C, and those of tests/onnx_strings/, which C
programs do not have, without it: all pass."""

import pathlib
import re
import subprocess
import sys

TARGETS = (["--interpret"], ["--target", "native"], ["--target", "c"])
FOLDERS = {"onnx": TARGETS, "onnx_strings": TARGETS[:2], "onnx_late": TARGETS[:2]}


def main():
    return max(run_folder(sys.argv[1], name, targets) for name, targets in FOLDERS.items())


def run_folder(tenon, name, targets):
    folder = pathlib.Path(__file__).resolve().parent.parent / name
    cases = len(list(folder.glob("**/model.onnx")))
    bad = 0
    for target in targets:
        run = subprocess.run([tenon, "test-onnx", folder, "--tolerance", "1e-5", *target],
                             capture_output=True, text=True)
        text = run.stdout + run.stderr
        if run.returncode or not re.search(rf"^{cases} passed, 0 failed, 0 skipped$", text, re.M):
            bad += 1
            print(" ".join(target), text, sep="\n")
    print(f"{cases} cases, {name}: {len(targets) - bad} of {len(targets)} targets pass")
    return 1 if bad or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
