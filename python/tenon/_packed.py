# SPDX-License-Identifier: Apache-2.0
"""Packed functions: what programs call by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from tenon import _core

_F = TypeVar("_F", bound=Callable[..., Any])


@overload
def register_func(name: str, f: _F, *, override: bool = ..., destination: bool = ...) -> _F: ...
@overload
def register_func(name: str, f: None = None, *, override: bool = ..., destination: bool = ...) -> Callable[[_F], _F]: ...
@overload
def register_func(name: _F) -> _F: ...
def register_func(name: Any, f: Any = None, override: bool = False, *, destination: bool = False) -> Any:
    """Registers a function of Python, which programs and the interpreter then call by its name: `R.call_packed("my.scale", x)`.

        @tenon.register_func("my.scale")
        def scale(x, factor):
            return x * np.float32(factor)

    Tensors are given as numpy arrays over the program's memory: nothing is copied, and an array that the function keeps stays
    valid, though the rest of the run may write to it. What a program only reads is read-only. Scalars are int and float, texts
    str. The function returns an array for each tensor that the call declares (a tuple of them where there are several), of
    exactly its dtype and shape, or a number. It may be called from several threads at once, each with the interpreter's lock.

    Args:
        name: of the function; or the function itself, which has its own name then.
        f: the function; None: a decorator.
        override: takes the place of one that is registered. Programs that are linked keep the old one.
        destination: the function is called with arrays for its results behind the others, writes to them and returns nothing.

    Raises:
        ValueError: there is one of this name, and `override` is False.
        CallbackError: of the call that runs the program, where the function raises: the function's exception is its cause.
    """
    if callable(name):
        return register_func(name.__name__, name)

    def register(function: Any) -> Any:
        _core._register_packed(name, function, override, destination)
        return function

    return register if f is None else register(f)


def get_global_func(name: str, allow_missing: bool = False) -> Any:
    """The packed function of this name: of Python the function itself, of C a `PackedFunc`.

    Args:
        allow_missing: None where there is none.

    Raises:
        ValueError: there is none.
    """
    found = _core._find_packed(name)
    if found is None and not allow_missing:
        raise ValueError(f"there is no packed function `{name}`")
    return found


def remove_global_func(name: str) -> None:
    """Takes a packed function out of the registry. Programs that are linked keep it.

    Raises:
        ValueError: there is none of this name.
    """
    if not _core._remove_packed(name):
        raise ValueError(f"there is no packed function `{name}`")


def list_global_func_names() -> list[str]:
    """The names of the registered packed functions, in order."""
    return _core._packed_names()
