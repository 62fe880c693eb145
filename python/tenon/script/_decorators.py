# SPDX-License-Identifier: Apache-2.0
"""What the decorators of functions have in common."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tenon import _core
from tenon.script import _source


def function_decorator(name: str, doc: str) -> Any:
    """A decorator, with options or without, that reads one function. In a module's class the function waits for the class."""

    def read(function: Any, frame: Any) -> Any:
        if _source.is_member(frame):
            return function
        place = _source.of_function(function, frame)
        return _core._parse_function(place.source, place.first, place.last, place.lookup)

    def decorator(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        if function is not None:
            return read(function, sys._getframe(1))
        return lambda function: read(function, sys._getframe(1))

    decorator.__name__ = decorator.__qualname__ = name
    decorator.__doc__ = doc
    return decorator
