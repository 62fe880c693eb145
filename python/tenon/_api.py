# SPDX-License-Identifier: Apache-2.0
"""The functions of `tenon`: what they are given becomes what the extension takes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tenon import _core, _memory
from tenon._core import Function, IRModule, Program
from tenon._memory import MemoryPlan
from tenon._progress import Progress


def load(source: Any, *, params: Mapping[str, Any] | None = None, name: str | None = None, **options: Any) -> Any:
    """Reads a model: an `IRModule`; of a compiled library a `Program`.

    Args:
        source: a path (`.onnx`, `.py` or `.tvmscript`, `.relay`, `.so`), the bytes of an ONNX network, an
            `onnx.ModelProto`, or a text of TVMScript or Relay (a str with a line end).
        params: of Relay and ONNX: values of parameters or inputs by name, which become constants.
        name: of a text or of bytes, in messages.
        **options: those of `tenon.compile` that concern reading: `shape={"x": (1, None, 224)}`, `length`, `kernels`.

    Raises:
        CompileError: what the importer, the parser and the verifier find, with places.
    """
    if isinstance(source, IRModule):
        return source
    if isinstance(source, Function):
        return source.module
    if hasattr(source, "SerializeToString"):  # onnx.ModelProto
        return _core._load_contents(source.SerializeToString(), name or "<model>", options, params)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _core._load_contents(bytes(source), name or "<model>", options, params)
    if isinstance(source, str) and "\n" in source:
        return _core._load_contents(source.encode(), name or "<text>", options, params)
    return _core._load_path(os.fspath(source), options, params)


def from_torch(
    model: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    name: str | None = None,
    **options: Any,
) -> IRModule:
    """Reads a network of torch, by torch's own export to ONNX (torch 2.9 or newer, and onnxscript).

    Its inputs are the tensors of `args` and `kwargs`, its outputs those of the result, both flat and in order. The
    weights are not copied: the module reads torch's memory, so nobody may write to them while it is used. Programs
    that are compiled of it have their own.

    Args:
        model: a torch.nn.Module in evaluation mode, or a torch.export.ExportedProgram.
        args, kwargs: what a module is called with, for its types and sizes.
        dynamic_shapes: as torch.export.export takes it: which sizes are symbols.
        name: in messages.
        **options: those of `tenon.load`.

    Raises:
        CompileError: operators that have no form, all that torch's exporter or Tenon's importer finds; a network that writes to its inputs
            or buffers.
        ValueError: a module in training mode.
    """
    from tenon import _torch

    return _torch.load(model, args, kwargs, dynamic_shapes, name, options)


def compile(
    model: Any,
    *,
    target: str = "native",
    libs: str | Sequence[str] | None = None,
    kernels: Any = None,
    link: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    params: Mapping[str, Any] | None = None,
    pipeline: Any = None,
    threads: int = 0,
    name: str | None = None,
    progress: Callable[[str], object] | bool = True,
    **options: Any,
) -> Program:
    """Compiles a model for a machine, this one by default, and links it into this process.

    Args:
        model: an `IRModule`, or anything that `tenon.load` reads.
        target: "native", "llvm -mcpu=haswell", "c", ...
        libs: back ends of libraries: "dnnl", ["dnnl", "blas"].
        kernels: kernels of your own: files, modules, or several of these.
        link: libraries that the program calls.
        params: values of parameters by name, which become constants.
        pipeline: passes instead of the standard ones: a text, a file, a `Sequential`, or a list of passes.
        threads: of its runs; 0: as many as the process may use.
        name: of the program.
        progress: called with what is done next; True: shown on a terminal and in a notebook.
        **options: every other option of `tenon run`, with `_` for `-`: `place={"conv1": "dnnl"}`, `unchecked=True`.

    Raises:
        CompileError: with code, place and notes.
        UsageError: an option that is not there, or a value that it does not take.
    """
    reads = {key: options.pop(key) for key in ("shape", "length") if key in options}
    if not isinstance(model, IRModule):
        if name is None and isinstance(model, (str, os.PathLike)) and "\n" not in os.fspath(model):
            name = Path(model).stem
        model = load(model, kernels=kernels, **reads)
    elif reads:
        raise TypeError(f"{', '.join(reads)}: the model has been read; expected what `tenon.load` reads")
    name = name or "model"
    options |= {"target": target, "libs": libs, "kernels": kernels, "link": link, "threads": threads or None}
    if not isinstance(progress, bool):
        return _core._compile(model, name, options, params, pipeline, progress)
    with Progress(name) as shown:
        return _core._compile(model, name, options, params, pipeline, shown.show if progress else None)


def interpret(module: Any, function: Any = "main", /, *args: Any, link: Sequence[str] = (), **inputs: Any) -> Any:
    """Runs a function of a module in the reference interpreter, which is slow and exact: the meaning of the IR.

    Args:
        module: an `IRModule`, or anything that `tenon.load` reads.
        function: its name. A PrimFunc takes what it reads and gives what it writes.
        *args: arrays, in order; `**inputs` gives them by name.
        link: libraries where foreign functions are.

    Returns:
        numpy arrays: one, or a tuple.

    Raises:
        CompileError, RunError: what is wrong in the module or with the arguments, with the place of the access.
    """
    if not isinstance(function, str):
        args, function = (function, *args), "main"
    return _core._interpret(load(module), function, list(link), args, inputs)


def plan(
    buffers: Any,
    *,
    capacity: int | None = None,
    pools: Mapping[str, int | str | None] | None = None,
    time_limit: float | None = None,
) -> MemoryPlan:
    """The memory planner alone.

    Args:
        buffers: (name, first step, step after the last, bytes) of each, with its alignment as fifth where it has one; or
            the path of a CSV in MiniMalloc's form.
        capacity: bytes that there are.
        pools: several pools by name with their sizes (None: unlimited), in order of preference, instead.
        time_limit: seconds of a usual processor; the plan is the same on every machine.

    Raises:
        CompileError: where the buffers do not fit, with the step and the largest buffers there.
    """
    if isinstance(buffers, (str, os.PathLike)):
        buffers = _core._read_problem(os.fspath(buffers))
    rows = [tuple(buffer) for buffer in buffers]
    sizes = [name if size is None else f"{name}={size}" for name, size in (pools or {}).items()]
    limit = None if time_limit is None else round(time_limit * 1e9)
    text, pictures = _core._plan(rows, sizes, capacity, limit)
    return _memory.of_json(json.loads(text), pictures)


def validate(module: Any, passes: Any = None, *, target: str = "native") -> int:
    """Runs passes with the interpreter before and after each, and compares what the programs compute.

    Args:
        module: an `IRModule`, or anything that `tenon.load` reads.
        passes: as `tenon.compile` takes a pipeline; None: the standard one.

    Returns:
        how many passes were compared.

    Raises:
        InternalError: names the pass that changed a result, the output and the first wrong element.
    """
    given = _core._standard_pipeline() if passes is None else passes
    return _core._run(load(module), given, True, True, False, None, None, target)[3]


def assert_equal(a: IRModule, b: IRModule) -> None:
    """Raises AssertionError with the first place where two modules differ."""
    difference = a.first_difference(b)
    if difference is not None:
        raise AssertionError(f"{difference[0]}: {difference[1]}")


def options() -> dict[str, str]:
    """What `tenon.compile` takes by name, and what each option says."""
    return {name: text for name, text, *_ in _core._option_table()}


def passes() -> Iterable[_core.Pass]:
    """All passes, in the order of the standard pipeline."""
    return _core._passes()
