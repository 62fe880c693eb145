# SPDX-License-Identifier: Apache-2.0
"""Whole networks with the C library of examples/c_library called by name, one signature for each function: their results are those of own
code, and the planned peak is at most own code's and the scratch memory that a call of the library declares. Own code computes what
is between two kernels row by row where it can (FuseRows), and convolutions by forms that write over a residual, which calls of a library
cannot: it does without here.

    c_library.py TENON MODELS     MODELS is the folder with resnet18/, ...; status 77 where it has none of them
"""

import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "c_library"
# The least number of calls: with fewer, operators that the library has are left to own code.
NETWORKS = {"tiny_resnet8": 15, "resnet18": 31, "mobilenet_v2": 64}
LIBRARY = ["--composite", "patterns.py", "--call-by-name", "nn", "--signatures", "signatures.py"]
# The sum of some thousand products in another order: 2^-24 for each, of values that the last layer has.
TOLERANCE = 1e-3


def run(tenon, *arguments):
    done = subprocess.run([tenon, *arguments], cwd=EXAMPLE, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"tenon {' '.join(arguments)}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def floats(path):
    data = path.read_bytes()
    size = struct.unpack("<H", data[8:10])[0]
    values = data[10 + size :]
    return struct.unpack(f"<{len(values) // 4}f", values)


def outputs(folder):
    return [number for path in sorted(pathlib.Path(folder).iterdir()) for number in floats(path)]


def scratch_of(text):
    """The most bytes that one call works in."""
    sizes = [0]
    for dims in re.findall(r"_patch\w* = T\.decl_buffer\(\((.*?)\), \"float32\"", text):
        elements = 1
        for dim in re.findall(r"(?:T\.int64\()?(\d+)\)?(?:,|$)", dims):
            elements *= int(dim)
        sizes.append((4 * elements + 63) // 64 * 64)
    return max(sizes)


def check(tenon, name, model):
    with tempfile.TemporaryDirectory() as own, tempfile.TemporaryDirectory() as library, tempfile.TemporaryDirectory() as other:
        pipeline = pathlib.Path(other) / "pipeline.txt"
        lines = run(tenon, "opt", "--print-pipeline").splitlines()
        pipeline.write_text("\n".join(line for line in lines if "FuseRows" not in line))
        plain = json.loads(run(tenon, "run", model, "--out", own, "--threads", "1", "--json", "--fp=strict", "--pipeline", str(pipeline)))
        called = json.loads(run(tenon, "run", model, "--out", library, "--threads", "1", "--json", *LIBRARY, "--link", "nn.c"))
        expected, seen = outputs(own), outputs(library)
    scale = max(abs(value) for value in expected)
    error = max(abs(a - b) for a, b in zip(expected, seen, strict=True))
    lowered = run(tenon, "print", model, *LIBRARY, "--after", "LowerGraph")
    calls = len(re.findall(r"T\.call_extern\(", lowered))
    scratch = scratch_of(lowered)
    peaks = [report["planned_bytes"] for report in (plain, called)]
    print(f"{name}: {calls} calls; peak {peaks[1]} bytes, of own code {peaks[0]}, scratch {scratch}; error {error:.2g} of {scale:.2g}")
    faults = []
    if not error <= TOLERANCE * scale:
        faults.append(f"{name}: results differ by {error}")
    if peaks[1] > peaks[0] + scratch:
        faults.append(f"{name}: the peak is {peaks[1]}; expected at most {peaks[0]} + {scratch}")
    if calls < NETWORKS[name]:
        faults.append(f"{name}: {calls} calls of the library; expected {NETWORKS[name]}")
    return faults


def main():
    tenon, models = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
    present = [name for name in NETWORKS if (models / name / "model.onnx").is_file()]
    for name in NETWORKS.keys() - set(present):
        print(f"skipped: {models} has no {name} (`make models` generates it)")
    faults = [fault for name in present for fault in check(tenon, name, str(models / name / "model.onnx"))]
    for fault in faults:
        print(fault)
    if not present:
        return 77
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
