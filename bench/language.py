#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens a second of decoders: Tenon beside ONNX Runtime, and the share of the memory's read bandwidth that decoding takes.

    bench/python.sh -> PYTHON; PYTHON bench/language.py --tenon build/bin/tenon --models build/language
        [--sizes lm15m,...] [--threads 1,2] [--rounds 3] [--prompt 128] [--tokens 64]

Engines alternate, round by round, and medians of the rounds are printed; a ratio is that of an engine's tokens a second to ONNX
Runtime's of the same round. Prompts are run once before they are timed. Tenon runs `tenon generate`, with caches that grow in place, of
both forms of a network; ONNX Runtime its own operators (the fused form) with past and present bound to the same memory, int4 with
float32 arithmetic as the file says, and with 8-bit activations (accuracy_level 4, which loses some accuracy). Bandwidths are those of
bench/read_bandwidth.c in the same rounds: of the memory (a gigabyte, which no cache holds) and over as many bytes as a token reads of
weights, which may lie in a cache; shares are the weights' part of each.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
from make_language_models import BLOCK, SIZES  # noqa: E402

MEMORY = 1 << 30  # bytes

def bytes_of_token(size, weights):
    """Of the matrices that a token reads; the caches of a few hundred rows are small beside them."""
    attention = size.width * size.depth * 2 * (size.heads + size.groups)
    count = size.layers * (attention + 3 * size.width * size.hidden) + size.vocabulary * size.width
    return count * 4 if weights == "f32" else count * (0.5 + 4 / BLOCK)


def run_tenon(options, model, threads):
    text = ("All the king's horses and all the king's men. " * 100)[: options.prompt]
    command = [options.tenon, "generate", str(model), "--json", "--threads", str(threads)]
    command += ["--tokens", str(options.tokens), "--prompt", text]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result["prefill_tokens_per_second"], result["decode_tokens_per_second"]


class OnnxRuntime:
    """A session with shared caches."""

    def __init__(self, path, size, threads, capacity):
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = threads
        settings.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
        self.caches = {}
        for value in self.session.get_inputs():
            if value.name.startswith("past"):
                zeros = np.zeros((1, size.groups, capacity, size.depth), np.float32)
                self.caches[value.name] = onnxruntime.OrtValue.ortvalue_from_numpy(zeros)

    def step(self, tokens, past):
        binding = self.session.io_binding()
        binding.bind_cpu_input("input_ids", np.asarray([tokens], np.int64))
        binding.bind_cpu_input("attention_mask", np.ones((1, past + len(tokens)), np.int64))
        for name, cache in self.caches.items():
            binding.bind_ortvalue_input(name, cache)
        for output in self.session.get_outputs():
            if output.name.startswith("present"):
                binding.bind_ortvalue_output(output.name, self.caches[output.name.replace("present", "past_key_values")])
            else:
                binding.bind_output(output.name)
        self.session.run_with_iobinding(binding)
        return int(binding.get_outputs()[0].numpy()[0, -1, :256].argmax())

    def measure(self, prompt, tokens):
        ids = list(range(32, 32 + prompt)) if prompt < 200 else [65] * prompt
        self.step(ids, 0)
        start = time.perf_counter()
        token = self.step(ids, 0)
        middle = time.perf_counter()
        for i in range(tokens - 1):
            token = self.step([token], prompt + i)
        end = time.perf_counter()
        return prompt / (middle - start), (tokens - 1) / (end - middle)


def with_accuracy_level(path, level, folder):
    """The same network for other arithmetic."""
    model = onnx.load(path)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "accuracy_level":
                attribute.i = level
    out = folder / f"{path.parent.name}_{level}.onnx"
    onnx.save(model, out)
    return out


def engines_of(options, base, weights, threads, folder):
    size, capacity = SIZES[base], options.prompt + options.tokens
    fused, plain = (options.models / f"{base}_{form}_{weights}" / "model.onnx" for form in ("fused", "plain"))
    engines = {
        "Tenon": lambda: run_tenon(options, fused, threads),
        "Tenon, plain operators": lambda: run_tenon(options, plain, threads),
    }
    paths = {"ONNX Runtime": fused}
    if weights == "int4":
        paths["ONNX Runtime, 8-bit activations"] = with_accuracy_level(fused, 4, folder)
    for name, path in paths.items():
        # A session of its own each round, so that only one network is in memory.
        engines[name] = lambda path=path: OnnxRuntime(path, size, threads, capacity).measure(options.prompt, options.tokens)
    return engines


def measure(options, base, weights, threads, probe, folder):
    count = bytes_of_token(SIZES[base], weights)
    rates, bandwidths = {}, {MEMORY: [], int(count): []}
    engines = engines_of(options, base, weights, threads, folder)
    for _ in range(options.rounds):
        for size, rounds in bandwidths.items():
            read = subprocess.run([probe, str(size), str(threads)], check=True, capture_output=True, text=True)
            rounds.append(float(read.stdout))
        for name, run in engines.items():
            rates.setdefault(name, []).append(run())
    bandwidths = [statistics.median(rounds) for rounds in bandwidths.values()]
    for name, rounds in rates.items():
        prefill, decode = (statistics.median(values) for values in zip(*rounds))
        ratios = [
            statistics.median(own[part] / peer[part] for own, peer in zip(rounds, rates["ONNX Runtime"])) for part in (0, 1)
        ]
        figures = [f"{prefill:.0f}", f"{ratios[0]:.2f}", f"{decode:.1f}", f"{ratios[1]:.2f}"]
        for bandwidth in bandwidths:
            figures += [f"{bandwidth:.1f}", f"{100 * decode * count / 1e9 / bandwidth:.0f} %"]
        print("| " + " | ".join([f"{base} {weights}", str(threads), name, *figures]) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tenon", default="build/bin/tenon")
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path("build/language"))
    parser.add_argument("--sizes", default="lm15m,lm110m,lm500m")
    parser.add_argument("--weights", default="f32,int4")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=64)
    options = parser.parse_args()
    columns = ["network", "threads", "engine", "prompt, tokens/s", "ratio", "decode, tokens/s", "ratio"]
    columns += ["memory, GB/s", "share", "these bytes, GB/s", "share"]
    print("| " + " | ".join(columns) + " |")
    print("| " + " | ".join("---" for _ in columns) + " |")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        probe = folder / "read_bandwidth"
        source = pathlib.Path(__file__).resolve().parent / "read_bandwidth.c"
        subprocess.run(["cc", "-O3", "-march=native", "-ffast-math", "-pthread", str(source), "-o", str(probe)], check=True)
        for base in options.sizes.split(","):
            for weights in options.weights.split(","):
                for threads in map(int, options.threads.split(",")):
                    measure(options, base, weights, threads, probe, folder)


if __name__ == "__main__":
    main()
