# SPDX-License-Identifier: Apache-2.0
"""Takes networks from torch to Tenon in both ways, and compares what they compute with torch in double precision.

    test_torch.py [--only NAME,...] [--list] [--out TABLE.md]

Of each network (scripts/torch_networks.py): `tenon.from_torch` with symbolic sizes, compiled once and called at two sizes; then
`torch.compile(model, backend="tenon")`, called at the same two. The tolerance is 1e-4 of the largest element of an output, from the
same network in float64: two results of float32 may each be right and further apart. How far torch's own float32 is from that stands
beside it. A network that is refused says why; that and a wrong result end the script with status 1.

Runs under python/torch_venv.sh, with the package on PYTHONPATH.
"""

import argparse
import copy
import pathlib
import sys
import time
import warnings

import numpy as np
import tenon
import torch

from torch_networks import CASES

TOLERANCE = 1e-4


def tensors(value):
    """Those of a result, in the order in which torch.export has them."""
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def difference(got, wanted):
    """The largest, over all outputs, relative to an output's largest element. `wanted`: of float32, and of float64."""
    singles, doubles = wanted
    if len(got) != len(singles):
        raise AssertionError(f"{len(got)} outputs; expected {len(singles)}")
    worst = 0.0
    for a, single, exact in zip(got, singles, doubles):
        a, b, exact = np.asarray(a), single.numpy(), exact.numpy()
        if a.shape != b.shape or a.dtype != b.dtype:
            raise AssertionError(f"an output is {a.dtype} {a.shape}; expected {b.dtype} {b.shape}")
        if b.size:
            worst = max(worst, float(np.abs(a.astype(np.float64) - exact).max() / max(np.abs(exact).max(), 1e-30)))
    return worst


def in_double(model, args):
    """What the network computes in float64."""
    return copy.deepcopy(model).double()(*(t.double() if t.is_floating_point() else t for t in args))


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def imported(case, model, calls):
    """The difference, and what stands for sizes in the program's inputs."""
    module = tenon.from_torch(model, calls[0][0], dynamic_shapes=case.dynamic_shapes())
    program = tenon.compile(module, progress=False)
    worst = max(difference(as_tuple(program(*(t.numpy() for t in args))), wanted) for args, wanted in calls)
    symbols = sum(isinstance(size, str) for port in program.inputs for size in port.shape)
    expected = sum(isinstance(size, str) for shape, _ in case.inputs for size in shape)
    if symbols != expected:
        raise AssertionError(f"{symbols} sizes of inputs are symbols; expected {expected}")
    return worst


def jitted(case, model, calls):
    """The difference, and what warnings say of graphs that were not compiled."""
    torch.compiler.reset()
    torch._dynamo.config.allow_rnn = True  # else Dynamo leaves LSTM and GRU to torch
    compiled = torch.compile(model, backend="tenon")
    for tensor, (shape, _) in zip(calls[0][0], case.inputs):
        for dim, size in enumerate(shape):
            if isinstance(size, str):
                torch._dynamo.mark_dynamic(tensor, dim)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", tenon.TenonWarning)
        worst = max(difference(tensors(compiled(*args)), wanted) for args, wanted in calls)
    said = [str(one.message) for one in seen if issubclass(one.category, tenon.TenonWarning)]
    return worst, said


def attempt(work):
    """(a cell of the table, whether it is right)"""
    start = time.time()
    try:
        worst, *rest = work()
    except Exception as error:  # what is refused is a result
        text = " ".join(str(error).split())
        return f"{type(error).__name__}: {text}".replace("|", "\\|"), False
    notes = [note for note in rest if note]
    right = worst <= TOLERANCE and not notes
    cell = f"{worst:.1e}" + ("" if worst <= TOLERANCE else " (wrong)") + "".join(f"; {note}" for note in notes)
    print(f"    {cell} ({time.time() - start:.0f} s)", flush=True)
    return cell, right


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", help="networks, separated by commas")
    parser.add_argument("--list", action="store_true", help="the names, and no more")
    parser.add_argument("--out", type=pathlib.Path, help="file of Markdown to write the table to")
    args = parser.parse_args()
    if args.list:
        print("\n".join(case.name for case in CASES))
        return 0
    only = args.only.split(",") if args.only else [case.name for case in CASES]
    if unknown := set(only) - {case.name for case in CASES}:
        sys.exit(f"no network {', '.join(sorted(unknown))}; --list has their names")
    rows, wrong = [], 0
    for case in CASES:
        if case.name not in only:
            continue
        print(case.name, flush=True)
        model = case.model()
        parameters = sum(p.numel() for p in model.parameters()) / 1e6
        with torch.no_grad():
            calls = [(xs, (tensors(model(*xs)), tensors(in_double(model, xs)))) for xs in (case.arguments(0), case.arguments(1))]
            own = max(difference(wanted[0], wanted) for _, wanted in calls)
            cells = []
            for work in (lambda: (imported(case, model, calls),), lambda: jitted(case, model, calls)):
                cell, right = attempt(work)
                wrong += not right
                if not right:
                    print(f"    WRONG {cell[:2000]}", flush=True)
                cells.append(cell)
        rows.append(f"| {case.name} | {parameters:.2f} | {' | '.join(cells)} | {own:.1e} |")
    table = "\n".join(["| network | million parameters | from_torch | torch.compile | torch |", "| --- | --- | --- | --- | --- |", *rows]) + "\n"
    print(table)
    if args.out:
        args.out.write_text(table)
    print(f"{2 * len(rows) - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
