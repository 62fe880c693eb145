#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a network of one long chain of operators takes to compile.

Four chains: additions, softmax, six operators in turn as TVMScript, and seven in turn as an ONNX network. Each is compiled on one
core within limits; status 1 where one of them does not hold.
Usage: bench/chains.py [--tenon build/bin/tenon] [--operators 100000] [--seconds 30] [--mib 2048] [CHAIN]...
"""

import argparse
import os
import pathlib
import resource
import struct
import subprocess
import sys
import tempfile

MIXED = [
    "R.nn.relu({x})",
    "R.add({x}, {x})",
    "R.nn.softmax({x})",
    "R.permute_dims({x})",
    "R.reshape({x}, (8, 8))",
    "R.matmul({x}, w)",
]


def script(operators, shape, forms):
    lines = [
        "@I.ir_module",
        "class Module:",
        "    @R.function",
        f'    def main(x0: R.Tensor({shape}, "float32"), w: R.Tensor((8, 8), "float32")):',
        "        with R.dataflow():",
    ]
    for i in range(operators):
        lines.append(f"            x{i + 1} = " + forms[i % len(forms)].format(x=f"x{i}"))
    lines += [f"            R.output(x{operators})", f"        return x{operators}", ""]
    return "\n".join(lines).encode()


# Protobuf by hand: the messages of a chain need varints and bytes only.
def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def onnx(operators):
    def node(operator, inputs, output, attributes=b""):
        return field(1, b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, operator) + attributes)

    def tensor(name, dtype, dims, data):
        return field(5, b"".join(field(1, d) for d in dims) + field(2, dtype) + field(8, name) + field(9, data))

    def value(number, name, dims):
        shape = field(2, b"".join(field(1, field(1, d)) for d in dims))
        return field(number, field(1, name) + field(2, field(1, field(1, 1) + shape)))

    permutation = field(5, field(1, "perm") + field(8, 1) + field(8, 0) + field(20, 7))
    kinds = [
        lambda x, y: node("Relu", [x], y),
        lambda x, y: node("Add", [x, x], y),
        lambda x, y: node("Softmax", [x], y),
        lambda x, y: node("Transpose", [x], y, permutation),
        lambda x, y: node("Reshape", [x, "long"], y),
        lambda x, y: node("Reshape", [x, "square"], y),
        lambda x, y: node("MatMul", [x, "w"], y),
    ]
    parts = [kinds[i % len(kinds)](f"x{i}", f"x{i + 1}") for i in range(operators)]
    parts.append(field(2, "chain"))
    parts.append(tensor("w", 1, [8, 8], struct.pack("<64f", *[(i % 9 - 4) / 16 for i in range(64)])))
    parts.append(tensor("square", 7, [2], struct.pack("<2q", 8, 8)))
    parts.append(tensor("long", 7, [2], struct.pack("<2q", 4, 16)))
    parts.append(value(11, "x0", [8, 8]))
    parts.append(value(12, f"x{operators}", [4, 16] if operators % len(kinds) == 5 else [8, 8]))
    return field(1, 8) + field(7, b"".join(parts)) + field(8, field(2, 17))


CHAINS = {
    "add": (".py", lambda n: script(n, "(8, 8)", ["R.add({x}, w)"])),
    "softmax": (".py", lambda n: script(n, "(1, 8)", ["R.nn.softmax({x})"])),
    "mixed": (".py", lambda n: script(n, "(8, 8)", MIXED)),
    "onnx": (".onnx", onnx),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tenon", type=pathlib.Path, default=pathlib.Path("build/bin/tenon"))
    parser.add_argument("--operators", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=30, help="of processor time, for each chain")
    parser.add_argument("--mib", type=int, default=2048, help="of memory, for each chain")
    parser.add_argument("chains", nargs="*", metavar="CHAIN", help=", ".join(CHAINS))
    options = parser.parse_args()
    failed = 0
    for name in options.chains or CHAINS:
        suffix, text = CHAINS[name]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "chain" + suffix)
            file.write_bytes(text(options.operators))
            command = [options.tenon, "compile", file, "-o", f"{folder}/chain.so"]
            limit = int(2 * options.seconds) + 1
            child = subprocess.Popen(
                command,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                preexec_fn=lambda: (
                    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
                    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
                ),
            )
            said = child.stderr.read().decode(errors="replace").strip()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        seconds, mib = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        good = child.returncode == 0 and seconds <= options.seconds and mib <= options.mib
        failed += not good
        verdict = "ok" if good else f"FAILED, status {child.returncode} {said[:200]}"
        print(f"{name:8} {options.operators} operators  {seconds:6.2f} s  {mib:5.0f} MiB  {verdict}", flush=True)
    print(f"{len(options.chains or CHAINS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
