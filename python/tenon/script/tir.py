# SPDX-License-Identifier: Apache-2.0
"""Loops, blocks and scalars: `from tenon.script import tir as T`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tenon import _core
from tenon.script import _source, _words
from tenon.script._decorators import function_decorator

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


class Macro:
    """Statements that stand where a kernel calls them. Its names are those of the Python around it; of a macro with
    `hygienic=False` also those of the kernel."""

    def __init__(self, function: Callable[..., Any], frame: Any) -> None:
        self._function = function
        place = self._place = _source.of_function(function, frame)
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        _core._check_macro(place.source, place.first, place.last, place.lookup)

    def __tenon_script__(self) -> tuple[Any, ...]:
        place = self._place
        return ("helper", place.source, place.first, place.last, place.lookup)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"macro `{self.__name__}` is called outside of a kernel")


def macro(function: Callable[..., Any] | None = None, /, *, hygienic: bool = True) -> Any:
    """Makes a macro, which kernels call as a statement."""
    if function is not None:
        return Macro(function, sys._getframe(1))
    return lambda function: Macro(function, sys._getframe(1))


inline = macro


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _words.word(f"T.{name}", __name__)


def __dir__() -> list[str]:
    return sorted({word[2:].split(".")[0] for word in _words.known() if word.startswith("T.")})
