#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of two equal stages of a software pipeline overlaps.

Two kernels of the same work over 64 tiles: one after the other on one thread, and as a pipeline on two.
Usage: bench/pipelines.py [--tenon build/bin/tenon] [--rounds 512] [--repeat 30]
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

STAGE = """
    @T.prim_func(private=True)
    def {name}(x: T.Buffer((4096,), "float32"), y: T.Buffer((4096,), "float32")):
        for i in range(4096):
            y[i] = x[i]
        for r in range({rounds}):
            for i in range(4096):
                y[i] = y[i] * T.float32({factor}) + T.float32(0.001)
"""
MODULE = """@I.ir_module
class Module:{first}{second}
    @T.prim_func
    def tiles(X: T.Buffer((64, 4096), "float32"), Y: T.Buffer((64, 4096), "float32")):
        cls = Module
        for t in T.serial(64, annotations={annotations}):
            with T.block("tile"):
                h = T.alloc_buffer((4096,), "float32")
                T.call_tir(cls.first, X[t, 0:4096], h)
                T.call_tir(cls.second, h, Y[t, 0:4096])

    @R.function
    def main(x: R.Tensor((64, 4096), "float32")) -> R.Tensor((64, 4096), "float32"):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.tiles, (x,), out_sinfo=R.Tensor((64, 4096), "float32"))
            R.output(y)
        return y
"""


def milliseconds(tenon, text, threads, repeat):
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder, "tiles.py")
        model.write_text(text)
        command = [tenon, "bench", model, "--threads", str(threads), "--repeat", str(repeat), "--json"]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        row = json.loads(out)[0]
        return row["min_ms"], row["median_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenon", default="build/bin/tenon")
    parser.add_argument("--rounds", type=int, default=512)
    parser.add_argument("--repeat", type=int, default=30)
    args = parser.parse_args()
    first = STAGE.format(name="first", rounds=args.rounds, factor=0.999)
    second = STAGE.format(name="second", rounds=args.rounds, factor=0.998)
    def module(annotations):
        return MODULE.format(first=first, second=second, annotations=annotations)
    serial = milliseconds(args.tenon, module("{}"), 1, args.repeat)
    pipelined = milliseconds(args.tenon, module('{"software_pipeline_stage": [0, 1]}'), 2, args.repeat)
    alone = milliseconds(args.tenon, module('{"software_pipeline_stage": [0, 1]}'), 1, args.repeat)
    print(f"a stage of a tile   {serial[0] / 128 * 1000:8.1f} us")
    for name, (least, median) in (("serial, 1 thread", serial), ("pipeline, 1 thread", alone), ("pipeline, 2 threads", pipelined)):
        print(f"{name:<20}{least:8.3f} ms (median {median:.3f})   {serial[0] / least:5.2f} x")


if __name__ == "__main__":
    main()
