#!/usr/bin/env python3
"""Whole files, mutated, through the whole of `tenon`: bits, cuts, splices, numbers at limits.

Whatever the file is, tenon ends with status 0, 1 or 2 within a minute and 2 GiB, and an internal error is a fault.
The files at fault are left in a folder with a script that shows it again.

    tests/fuzz/mutated_files.py build/bin/tenon --seed 1 --seconds 600 --out FOLDER
"""

import argparse
import os
import pathlib
import random
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MOST_SECONDS = 60
MOST_BYTES = 2 << 30
NUMBERS = [0, 1, -1, 2, 255, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, -(2**63)]
MODEL = ["check {0}", "run {0}", "compile {0} -o o.so", "compile {0} --target c -o o.c", "run --interpret {0}",
         "print {0}", "explain {0}"]


def seeds():
    """(files by name, the names that may be mutated, commands)."""
    read = lambda path: (ROOT / path).read_bytes()
    for path in sorted(ROOT.glob("examples/*/*.onnx")):
        if path.stat().st_size < 1 << 16:
            yield {"m.onnx": path.read_bytes()}, ["m.onnx"], [line.format("m.onnx") for line in MODEL if "check" not in line]
    scripts = [*ROOT.glob("tests/kernels/*.py"), *ROOT.glob("tests/golden/*/*/*.tvmscript")]
    for path in sorted(scripts):
        text = path.read_bytes().split(b"# EXPECT")[0]
        yield {"m.py": text}, ["m.py"], [line.format("m.py") for line in MODEL]
    for path in sorted(ROOT.glob("tests/golden/relay/print/*")):
        text = path.read_bytes().split(b"// EXPECT")[0]
        yield {"m.relay": text}, ["m.relay"], [line.format("m.relay") for line in MODEL]
    block = "tests/end_to_end/relay/block."
    yield ({"m.relay": read(block + "relay"), "m.params": read(block + "params")}, ["m.relay", "m.params"],
           ["run m.relay --params m.params", "compile m.relay --params m.params -o o.so"])
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 8, 8), }".ljust(117) + b"\n"
    image = b"\x93NUMPY\x01\x00v\x00" + header + bytes(range(256)) * 2
    yield ({"m.onnx": read("examples/digits/digits.onnx"), "x.npy": image}, ["x.npy"],
           ["run m.onnx --input image=x.npy", "run m.onnx --input image=x.npy --interpret"])
    for path in sorted(ROOT.glob("tests/patterns/*.py")):
        yield ({"m.onnx": read("examples/own_kernel/classifier.onnx"), "p.py": path.read_bytes()}, ["p.py"],
               ["opt m.onnx --rewrite p.py", "compile m.onnx --composite p.py -o o.so"])
    yield ({"p.csv": b"id,lower,upper,size\na,0,3,64\nb,1,4,128\nc,3,9,32\n"}, ["p.csv"], ["plan p.csv"])


def mutate(data, other, rng):
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4, 8])):
        at = rng.randrange(len(out) + 1)
        length = rng.randrange(1, 65)
        kind = rng.randrange(9)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(out):
            out[at] = rng.randrange(256)
        elif kind == 2 and rng.randrange(4) == 0:
            del out[at:]
        elif kind == 3:
            del out[at:at + length]
        elif kind == 4:
            out[at:at] = out[at:at + length]
        elif kind == 5:
            start = rng.randrange(len(other) + 1)
            out[at:at + rng.choice([0, length])] = other[start:start + rng.randrange(1, 257)]
        elif kind == 6:
            out[at:at + 8] = (rng.choice(NUMBERS) % 2**64).to_bytes(8, "little")
        elif kind == 7:
            digits = list(re.finditer(rb"\d+", out))
            if digits:
                place = rng.choice(digits)
                out[place.start():place.end()] = str(rng.choice(NUMBERS)).encode()
        else:
            words = list(re.finditer(rb"[A-Za-z_][\w.]*", out))
            if words:
                place = rng.choice(words)
                out[place.start():place.end()] = rng.choice(words)[0]
    return bytes(out)


def fault_of(tenon, command, folder):
    """What is wrong with a run; empty where nothing is."""
    sanitized = "ASAN_OPTIONS" in os.environ  # its shadow needs the address space
    def limit():
        if not sanitized:
            resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(folder / "output", "w+b") as output:
        process = subprocess.Popen([tenon, *shlex.split(command)], cwd=folder, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=output, preexec_fn=limit)
        signal.alarm(MOST_SECONDS)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except TimeoutError:
            process.kill()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = status
            return f"it takes more than {MOST_SECONDS} s"
        finally:
            signal.alarm(0)
        process.returncode = status
        output.seek(0)
        said = output.read().decode(errors="replace")
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    if found := re.search(r"internal error: .*|SUMMARY: .*|runtime error: .*", said):
        return found[0][:200]
    if os.WEXITSTATUS(status) not in (0, 1, 2):
        return f"status {os.WEXITSTATUS(status)}: {said[-200:]}"
    if usage.ru_maxrss * 1024 > MOST_BYTES and not sanitized:
        return f"{usage.ru_maxrss >> 10} MiB"
    return ""


def on_alarm(number, frame):
    raise TimeoutError


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("mutated-files"))
    args = parser.parse_args()
    signal.signal(signal.SIGALRM, on_alarm)
    tenon = args.tenon.resolve()
    all_seeds = list(seeds())
    # A kind of file is drawn first: there are many scripts.
    kinds, texts = {}, {}
    for seed in all_seeds:
        kinds.setdefault(tuple(seed[1]), []).append(seed)
    kinds = list(kinds.values())
    for files, names, _ in all_seeds:
        for name in names:
            texts.setdefault(name.rsplit(".")[-1], []).append(files[name])
    begin, ran, faults, known = time.time(), 0, 0, set()
    while time.time() - begin < args.seconds:
        rng = random.Random(args.seed + ran)
        files, names, commands = rng.choice(rng.choice(kinds))
        name = rng.choice(names)
        files = {**files, name: mutate(files[name], rng.choice(texts[name.rsplit(".")[-1]]), rng)}
        command = rng.choice(commands)
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for path, data in files.items():
                (folder / path).write_bytes(data)
            fault = fault_of(tenon, command, folder)
        if fault and fault not in known:
            known.add(fault)
            faults += 1
            kept = args.out / str(args.seed + ran)
            kept.mkdir(parents=True, exist_ok=True)
            for path, data in files.items():
                (kept / path).write_bytes(data)
            print(f"seed {args.seed + ran}: {fault}\n    cd {kept} && {tenon} {command}", flush=True)
        ran += 1
    print(f"{ran} mutated files from seed {args.seed}, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
