# SPDX-License-Identifier: Apache-2.0
"""Graphs of operators on whole tensors: `from tenon.script import relax as R`.

Outside of scripts the operators build expressions: `R.nn.relu(x)` where x is a `tenon.Expr`.
"""

from __future__ import annotations

import sys
from typing import Any

from tenon import _core
from tenon.script import _source, _words
from tenon.script._decorators import function_decorator, macro_decorator

__tenon_script__ = ("word", "R")

function = function_decorator(
    "function",
    """Reads a graph function: a `tenon.Function`. Options: `pure=False`, `private=True`.

    Raises:
        CompileError: everything that is wrong, at its place in the file.
        OSError: the source is not to be had.
    """,
)
func = function  # as Relax first had it
op = _words.Op()
macro = macro_decorator(
    "graph function",
    "Makes a macro: its bindings stand where a graph function calls it, and the call is what it returns.",
)


def rewriter(cls: type, /) -> _core.PatternMatchingRewriter:
    """Makes a rewriter of a class with functions `pattern` and `replacement`, which have one signature.

    Raises:
        CompileError: everything that is wrong, at its place in the file.
    """
    place = _source.of_class(cls, sys._getframe(1))
    module = _core._parse_module(place.source, place.first, place.last, place.lookup, cls.__name__, False, place.bare_class)
    return _core.PatternMatchingRewriter.from_module(module).named(cls.__name__)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _words.word(f"R.{name}", __name__)


def __dir__() -> list[str]:
    return sorted({word[2:].split(".")[0] for word in _words.known() if word.startswith("R.")})
