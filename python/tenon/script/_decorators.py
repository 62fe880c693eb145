# SPDX-License-Identifier: Apache-2.0
"""What the decorators of functions have in common."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from tenon import _core
from tenon.script import _source


class Member:
    """A function that names others of its class, which no decorator makes a module. `I.ir_module(cls)` does."""

    def __init__(self, function: types.FunctionType) -> None:
        self._name = function.__qualname__

    def __get__(self, instance: Any, owner: type) -> Any:
        raise TypeError(
            f"`{self._name}` calls functions of its class, which is no module yet; expected a class under `@I.ir_module`, or "
            f"`I.ir_module({owner.__name__})`"
        )


def function_decorator(name: str, doc: str) -> Any:
    """A decorator, with options or without, that reads one function. In a module's class the function waits for the class."""

    def read(function: Any, frame: Any) -> Any:
        if _source.is_member(frame):
            return function
        if isinstance(function, types.FunctionType) and _source.record_member(function, frame):
            return Member(function)
        place = _source.of_function(function, frame)
        return _core._parse_function(place.source, place.first, place.last, place.lookup)

    def decorator(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        if function is not None:
            return read(function, sys._getframe(1))
        return lambda function: read(function, sys._getframe(1))

    decorator.__name__ = decorator.__qualname__ = name
    decorator.__doc__ = doc
    return decorator


class Macro:
    """What stands where a script calls it. Its names are those of the Python around it; of a macro with `hygienic=False` also
    those of its caller."""

    def __init__(self, function: Callable[..., Any], frame: Any, caller: str) -> None:
        place = _source.of_function(function, frame)
        self._helper = _source.Helper(_source.function_of(function), place)
        self._caller = caller
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        _core._check_macro(place.source, place.first, place.last, place.lookup)

    def __tenon_script__(self) -> tuple[Any, ...]:
        return self._helper.__tenon_script__()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"macro `{self.__name__}` is called outside of a {self._caller}")


def macro_decorator(caller: str, doc: str) -> Any:
    """A decorator of macros, which a `caller` calls."""

    def macro(function: Callable[..., Any] | None = None, /, *, hygienic: bool = True) -> Any:
        if function is not None:
            return Macro(function, sys._getframe(1), caller)
        return lambda function: Macro(function, sys._getframe(1), caller)

    macro.__doc__ = doc
    return macro
