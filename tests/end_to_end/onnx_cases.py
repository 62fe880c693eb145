#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the recorded cases of tests/onnx/ in the interpreter, as machine code and as C: all pass."""

import pathlib
import re
import subprocess
import sys

TARGETS = (["--interpret"], ["--target", "native"], ["--target", "c"])


def main():
    tenon = sys.argv[1]
    folder = pathlib.Path(__file__).resolve().parent.parent / "onnx"
    cases = len(list(folder.glob("**/model.onnx")))
    bad = 0
    for target in TARGETS:
        run = subprocess.run([tenon, "test-onnx", folder, "--tolerance", "1e-5", *target],
                             capture_output=True, text=True)
        text = run.stdout + run.stderr
        if run.returncode or not re.search(rf"^{cases} passed, 0 failed, 0 skipped$", text, re.M):
            bad += 1
            print(" ".join(target), text, sep="\n")
    print(f"{cases} cases, {len(TARGETS) - bad} of {len(TARGETS)} targets pass")
    return 1 if bad or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
