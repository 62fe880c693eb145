# SPDX-License-Identifier: Apache-2.0
"""Loops, blocks and scalars: `from tenon.script import tir as T`."""

from __future__ import annotations

from typing import Any

from tenon.script import _words
from tenon.script._decorators import function_decorator, macro_decorator

__tenon_script__ = ("word", "T")

prim_func = function_decorator(
    "prim_func",
    """Reads a PrimFunc: a `tenon.Function`. Option: `private=True`.

    Raises:
        CompileError: everything that is wrong, at its place in the file.
        OSError: the source is not to be had.
    """,
)
extern_func = function_decorator(
    "extern_func", """Declares a function of C or C++: a `tenon.Function`. Its options are those of docs/library-calls.md."""
)


macro = macro_decorator("kernel", "Makes a macro, which kernels call as a statement.")
inline = macro


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _words.word(f"T.{name}", __name__)


def __dir__() -> list[str]:
    return sorted({word[2:].split(".")[0] for word in _words.known() if word.startswith("T.")})
