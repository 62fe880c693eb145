#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the readers of foreign bytes under libFuzzer, one after another, and prints a table.

The targets are libfuzzer_READER (tests/fuzz/readers, `cmake --build build --target fuzz_readers`). Each begins
with its seeds (tests/fuzz/corpus and what else the repository has of its kind) and with what earlier runs kept
in OUT/corpus. An input at fault is left in OUT/faults, with the command that shows it again; the reader then
goes on until its time is up, or it has five.

    scripts/fuzz_readers.py --seconds 600 [READER...]
    scripts/fuzz_readers.py --merge [READER...]     # seeds of the repository: adds what reaches more code
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Longest input, and more seeds than tests/fuzz/corpus has; texts up to what a golden test expects of them.
READERS = {
    "onnx": (8192, ["examples/*/*.onnx"]),
    "tensor": (2048, []),
    "script": (16384, ["tests/golden/script/*/*", "tests/golden/tir/*/*", "tests/golden/graph/*/*", "tests/kernels/*"]),
    "relay": (16384, ["tests/golden/relay/*/*"]),
    "params": (4096, ["tests/end_to_end/relay/*.params"]),
    "npy": (2048, ["examples/*/*.npy"]),
    "csv": (4096, []),
    "pipeline": (4096, []),
    "pattern": (8192, ["tests/patterns/*"]),
    "answer": (4096, []),
    "constants": (4096, []),
    "metadata": (4096, []),
}
TEXTS = ("script", "relay", "csv", "pipeline", "pattern")
LIMITS = ["-timeout=20", "-rss_limit_mb=2048", "-malloc_limit_mb=1024"]
MOST_FAULTS = 5


def prepare(reader, out):
    """A folder of the repository's seeds, and a dictionary of their words."""
    longest, patterns = READERS[reader]
    folder = out / "seeds" / reader
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    words = set()
    paths = [path for pattern in [f"tests/fuzz/corpus/{reader}/*", *patterns] for path in sorted(ROOT.glob(pattern))]
    for path in paths:
        if not path.is_file():
            continue
        data = re.split(rb"(?:#|//) EXPECT\b", path.read_bytes())[0]
        if len(data) <= longest:
            (folder / "-".join(path.relative_to(ROOT).parts[1:])).write_bytes(data)
        if reader in TEXTS:
            words.update(re.findall(rb"[A-Za-z_][\w.]*(?:=|\()?|\"[\w.]+\"|[^\w\s]{1,3}", data))
        elif reader == "onnx":  # names of operators and attributes
            words.update(re.findall(rb"[A-Za-z_]{3,}", data))
    dictionary = out / f"{reader}.dict"
    lines = []
    for word in sorted(words):
        if len(word) <= 32:
            lines.append('"' + "".join(f"\\x{byte:02x}" for byte in word) + '"')
    dictionary.write_text("\n".join(lines) + "\n")
    return folder, ([f"-dict={dictionary}"] if lines else [])


def last(pattern, text, otherwise="0"):
    found = re.findall(pattern, text, re.MULTILINE)
    return int((found or [otherwise])[-1])


def run(reader, seconds, build, out):
    """(executions, edges that the seeds reach, edges reached, files at fault)."""
    target = build / "bin" / f"libfuzzer_{reader}"
    seeds, dictionary = prepare(reader, out)
    corpus, faults = out / "corpus" / reader, out / "faults"
    corpus.mkdir(parents=True, exist_ok=True)
    faults.mkdir(parents=True, exist_ok=True)
    begin, executions, first, reached, found = time.time(), 0, 0, 0, []
    log = (out / f"{reader}.log").open("w")
    while (left := seconds - (time.time() - begin)) > 0 and len(found) < MOST_FAULTS:
        command = [target, corpus, seeds, *LIMITS, *dictionary, f"-max_len={READERS[reader][0]}",
                   f"-max_total_time={max(1, int(left))}", f"-artifact_prefix={faults}/{reader}-",
                   "-print_final_stats=1"]
        result = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, errors="replace")
        log.write(result.stdout)
        log.flush()
        executions += last(r"^stat::number_of_executed_units: *(\d+)", result.stdout)
        first = first or last(r"INITED cov: (\d+)", result.stdout)
        reached = max(reached, last(r" cov: (\d+)", result.stdout))
        if result.returncode == 0:
            break
        files = re.findall(r"Test unit written to (\S+)", result.stdout)
        found += files
        print(f"{reader}: {last_error(result.stdout)}\n    {' '.join([str(target), *files])}", flush=True)
        if not files:  # it did not start, or ended with no input to blame
            found.append(out / f"{reader}.log")
            break
    return executions, first, reached, found


def last_error(text):
    found = re.findall(r"^.*(?:ERROR: |SUMMARY: |runtime error: |what\(\): ).*$", text, re.MULTILINE)
    return (found or text.strip().splitlines() or ["nothing"])[0][:200]


def merge(reader, build, out):
    target = build / "bin" / f"libfuzzer_{reader}"
    kept = ROOT / "tests/fuzz/corpus" / reader
    seeds, _ = prepare(reader, out)
    return subprocess.run([target, "-merge=1", *LIMITS, kept, out / "corpus" / reader]).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readers", nargs="*", metavar="READER", help=", ".join(READERS))
    parser.add_argument("--seconds", type=int, default=600, help="of all readers together")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--out", type=pathlib.Path, default=None, help="default: BUILD/fuzz/readers")
    parser.add_argument("--merge", action="store_true")
    args = parser.parse_args()
    unknown = [reader for reader in args.readers if reader not in READERS]
    if unknown:
        parser.error(f"no reader `{unknown[0]}`; there are {', '.join(READERS)}")
    names = args.readers or list(READERS)
    out = args.out or args.build / "fuzz/readers"
    out.mkdir(parents=True, exist_ok=True)
    if not (args.build / "bin/fuzz_readers").exists():
        print(f"{args.build}/bin/fuzz_readers is not built")
        return 77
    if args.merge:
        return max(merge(reader, args.build, out) for reader in names)

    begin, total, faults = time.time(), 0, 0
    for done, reader in enumerate(names):
        share = (args.seconds - (time.time() - begin)) / (len(names) - done)
        executions, first, reached, found = run(reader, max(1, share), args.build, out)
        total += executions
        faults += len(found)
        verdict = f"{len(found)} FAULTS, see {out / 'faults'}" if found else "ok"
        print(f"{reader:<10} {executions:>11} inputs, {first:>6} edges by the seeds, {reached:>6} in all  {verdict}",
              flush=True)
    print(f"{total} inputs of {len(names)} readers, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
