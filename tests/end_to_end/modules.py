# SPDX-License-Identifier: Apache-2.0
"""Runs the modules of tests/modules/, as people write them for TVM: interpreted, native and as C they give the same.

    modules.py TENON [-k SUBSTRING] [--tvm]

With --tvm, under a Python that has apache-tvm 0.27 and numpy, TVM's own compiler must give the same numbers too (modules that
say `# not TVM's` are left out). A module whose name begins with `fail_` is refused with the text behind its `# ERROR: `, and
never with an internal error.
"""

import argparse
import array
import ast
import concurrent.futures
import importlib.util
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

MODULES = pathlib.Path(__file__).resolve().parent.parent / "modules"
CODES = {"float32": "f", "float64": "d", "float16": "e", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i",
         "uint32": "I", "int64": "q", "uint64": "Q", "bool": "?"}
NUMPY = {"float32": "<f4", "float64": "<f8", "float16": "<f2", "int8": "|i1", "uint8": "|u1", "int16": "<i2", "uint16": "<u2",
         "int32": "<i4", "uint32": "<u4", "int64": "<i8", "uint64": "<u8", "bool": "|b1"}
TOLERANCE = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}  # of what is summed in another order, relative to 1 + |x|


def write_npy(path, dtype, shape, values):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (NUMPY[dtype], tuple(shape))
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    data = struct.pack(f"<{len(values)}{CODES[dtype]}", *values)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def read_npy(path):
    raw = path.read_bytes()
    length = struct.unpack("<H", raw[8:10])[0]
    header = ast.literal_eval(raw[10:10 + length].decode())
    dtype = next(name for name, descr in NUMPY.items() if descr == header["descr"])
    data = raw[10 + length:]
    code = CODES[dtype]
    return dtype, header["shape"], struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)


def difference(a, b):
    """What tells two arrays apart; empty where nothing does."""
    if a[0] != b[0] or list(a[1]) != list(b[1]):
        return f"{a[0]} {a[1]} and {b[0]} {b[1]}"
    most = TOLERANCE.get(a[0], 0)
    for i, (x, y) in enumerate(zip(a[2], b[2])):
        if x != y and not (x != x and y != y) and not abs(x - y) <= most * (1 + abs(y)):
            return f"element {i}: {x} and {y}"
    return ""


def draw(port, generator):
    count = 1
    for dim in port["shape"]:
        count *= dim
    if port["dtype"] == "bool":
        return [generator.random() < 0.5 for _ in range(count)]
    if "int" in port["dtype"]:
        return [generator.randrange(0, 7) for _ in range(count)]
    values = [generator.uniform(-2, 2) for _ in range(count)]
    return list(array.array("f", values)) if port["dtype"] == "float32" else values


def run(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def check_module(tenon, path, with_tvm):
    text = path.read_text()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        if path.name.startswith("fail_"):
            said = text.split("# ERROR: ", 1)[1].split("\n", 1)[0]
            # A diagnostic may show any line: none of them may hold what is expected.
            module = folder / "module.py"
            module.write_text(text.replace(f"# ERROR: {said}", "#"))
            if said in module.read_text():
                return f"it holds the text that is expected: {said}"
            out = run([tenon, "run", module])
            if out.returncode != 1 or said not in out.stderr:
                return f"status {out.returncode}, {out.stderr.strip()[:400]}; expected an error with: {said}"
            return ""
        first = run([tenon, "run", path, "--interpret", "--json"])
        if first.returncode:
            return first.stderr.strip()[:400]
        ports = json.loads(first.stdout)
        generator = random.Random(path.name)
        given = []
        for port in ports["inputs"]:
            write_npy(folder / (port["name"] + ".npy"), port["dtype"], port["shape"], draw(port, generator))
            given += ["-i", f"{port['name']}={folder / (port['name'] + '.npy')}"]
        results = {}
        for mode, options in {"interpreted": ["--interpret"], "native": [], "C": ["--target", "c"]}.items():
            out = run([tenon, "run", path, "-o", folder / mode, *given, *options])
            if out.returncode:
                return f"{mode}: {out.stderr.strip()[:400]}"
            results[mode] = [read_npy(folder / mode / (port["name"] + ".npy")) for port in ports["outputs"]]
        if with_tvm and "# not TVM's" not in text:
            try:
                results["TVM"] = run_tvm(path, folder, ports)
            except Exception as error:  # whatever a compiler of others does
                return f"TVM: {str(error)[-400:]}"
        for mode, values in results.items():
            for port, ours, theirs in zip(ports["outputs"], results["interpreted"], values):
                told = difference(theirs, ours)
                if told:
                    return f"{port['name']}, {mode} and interpreted: {told}"
    return ""


def run_tvm(path, folder, ports):
    import numpy
    import tvm
    from tvm import relax

    spec = importlib.util.spec_from_file_location("module_" + path.stem, path)
    loaded = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    module = loaded.Module
    main = module["main"]
    arrays = {port["name"]: numpy.load(folder / (port["name"] + ".npy")) for port in ports["inputs"]}
    if isinstance(main, relax.Function):
        machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
        if not main.attrs or "global_symbol" not in main.attrs:
            raise RuntimeError("its main is private")
        flat = []

        def flatten(value):
            if hasattr(value, "numpy"):
                flat.append(value.numpy())
            else:
                for item in value:
                    flatten(item)

        flatten(machine["main"](*[tvm.runtime.tensor(arrays[param.name]) for param in main.params]))
        values = flat
    else:
        outputs = {port["name"]: numpy.zeros(port["shape"], port["dtype"]) for port in ports["outputs"]}
        tensors, args = {}, []
        for param in main.params:
            name = param.name
            for known in (name, name.removesuffix("_handle"), name.upper()):
                if known in arrays or known in outputs:
                    name = known
            if name not in arrays and name not in outputs:  # an extent of another parameter
                args.append(next(iter(arrays.values())).shape[0])
                continue
            value = arrays.get(name, outputs.get(name))
            if value.ndim == 0:
                args.append(value.item())
                continue
            tensors[name] = tvm.runtime.tensor(value)
            args.append(tensors[name])
        tvm.compile(module, target="llvm")["main"](*args)
        values = [tensors[port["name"]].numpy() for port in ports["outputs"]]
    return [(str(v.dtype), v.shape, tuple(v.reshape(-1).tolist())) for v in values]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tenon")
    parser.add_argument("-k", default="", help="only modules whose name contains this")
    parser.add_argument("--tvm", action="store_true", help="compare with apache-tvm too")
    options = parser.parse_args()
    paths = [path for path in sorted(MODULES.glob("*.py")) if options.k in path.stem]
    if options.tvm:
        reports = [check_module(options.tenon, path, True) for path in paths]
    else:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            reports = list(pool.map(lambda path: check_module(options.tenon, path, False), paths))
    failed = [(path, report) for path, report in zip(paths, reports) if report]
    for path, report in failed:
        print(f"{path.name}: {report}")
    print(f"{len(paths) - len(failed)} of {len(paths)} modules passed")
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
