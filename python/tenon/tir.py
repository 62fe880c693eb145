# SPDX-License-Identifier: Apache-2.0
"""TensorIR made from values, where a text does not do: how many parameters or statements there are depends on the program.

    from tenon import tir

    x, y = (tir.decl_buffer((16,), "float32", name) for name in "xy")
    function = tir.PrimFunc([x, y], tir.Evaluate(tir.call_extern("int32", "copy16", x.data, y.data)))

Every intrinsic and operation of T is here as well: `tir.exp(x)`, `tir.call_extern(...)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenon import _core
from tenon._core import (
    AllocBuffer,
    Buffer,
    BufferStore,
    Evaluate,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    PrimExpr,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
    decl_buffer,
)
from tenon.schedule import BlockRV, LoopRV, Schedule, TensorIntrin, Trace
from tenon.script import _words

__all__ = [
    "AllocBuffer",
    "BlockRV",
    "Buffer",
    "BufferStore",
    "Evaluate",
    "FloatImm",
    "For",
    "IfThenElse",
    "IntImm",
    "LoopRV",
    "PrimExpr",
    "PrimFunc",
    "Schedule",
    "SeqStmt",
    "Stmt",
    "TensorIntrin",
    "Trace",
    "Var",
    "decl_buffer",
]


def __getattr__(name: str) -> Callable[..., Any]:
    path = f"T.{name}"
    if name.startswith("__") or path not in _words.known():
        raise AttributeError(f"module 'tenon.tir' has no attribute {name!r}")

    def operation(*args: Any, **kwargs: Any) -> Any:
        return _core._call_word(path, *args, **kwargs)

    operation.__name__ = operation.__qualname__ = name
    operation.__doc__ = _words.Word(path).__doc__
    return operation


def __dir__() -> list[str]:
    return sorted({*__all__, *(word[2:] for word in _words.known() if word.startswith("T.") and "." not in word[2:])})
