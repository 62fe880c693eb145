# SPDX-License-Identifier: Apache-2.0
"""`tenon.load` and `tenon.compile`: what they are given becomes what the extension takes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tenon import _core
from tenon._core import Function, IRModule, Program


def load(source: Any, *, params: Mapping[str, Any] | None = None, name: str | None = None, **options: Any) -> Any:
    """Reads a model: an `IRModule`; of a compiled library a `Program`.

    Args:
        source: a path (`.onnx`, `.py` or `.tvmscript`, `.relay`, `.so`), the bytes of an ONNX network, an
            `onnx.ModelProto`, or a text of TVMScript or Relay (a str with a line end).
        params: of Relay: values of parameters by name, which become constants.
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
    **options: Any,
) -> Program:
    """Compiles a model for a machine, this one by default, and links it into this process.

    Args:
        model: an `IRModule`, or anything that `tenon.load` reads.
        target: "native", "llvm -mcpu=haswell", "c", ...
        libs: back ends of libraries: "dnnl", ["dnnl", "blas"].
        kernels: files of kernels of your own.
        link: libraries that the program calls.
        params: values of parameters by name, which become constants.
        pipeline: passes instead of the standard ones: a text, a file, a `Sequential`, or a list of passes.
        threads: of its runs; 0: as many as the process may use.
        name: of the program.
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
    options |= {"target": target, "libs": libs, "kernels": kernels, "link": link, "threads": threads or None}
    return _core._compile(model, name or "model", options, pipeline, None)
