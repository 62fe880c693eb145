# SPDX-License-Identifier: Apache-2.0
"""What a module says of itself: `from tenon.script import ir as I`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, overload

from tenon import _core
from tenon.script import _source, _words

__tenon_script__ = ("word", "I")


@overload
def ir_module(cls: type, /) -> _core.IRModule: ...
@overload
def ir_module(*, check_well_formed: bool = True, **options: Any) -> Callable[[type], _core.IRModule]: ...
def ir_module(cls: type | None = None, /, *, check_well_formed: bool = True, **options: Any) -> Any:
    """Makes a module of a class: its functions are under `@R.function`, `@T.prim_func` or `@T.extern_func`.

    A decorator, or a call on a class that was defined before: `module = I.ir_module(Kernels)`.

    The class is read as text; what it names and does not define is taken from the Python around it.

    Args:
        check_well_formed: verify the module, as compiling it would.

    Raises:
        CompileError: everything that is wrong, at its place in the file.
        OSError: the source is not to be had.
    """

    def decorate(cls: type, frame: Any) -> _core.IRModule:
        if not isinstance(cls, type):
            raise TypeError(f"`@I.ir_module` is of a class, not of {cls!r}")
        place = _source.of_class(cls, frame)
        return _core._parse_module(
            place.source, place.first, place.last, place.lookup, cls.__name__, check_well_formed, place.bare_class
        )

    if cls is not None:
        return decorate(cls, sys._getframe(1))
    return lambda cls: decorate(cls, sys._getframe(1))


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _words.word(f"I.{name}", __name__)


def __dir__() -> list[str]:
    return sorted({word[2:].split(".")[0] for word in _words.known() if word.startswith("I.")})
