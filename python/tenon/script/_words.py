# SPDX-License-Identifier: Apache-2.0
"""The words of the languages as Python's objects. Annotations and statements of classes are run by Python, which they let
pass; on expressions of graphs the operators of R build calls."""

from __future__ import annotations

from functools import cache
from typing import Any, NoReturn

from tenon import _core


@cache
def known() -> dict[str, tuple[str, str, str]]:
    """Of each word, `T.grid`: its parameters, what it is, and its kind."""
    return {name: (parameters, summary, kind) for name, parameters, summary, kind in _core._words()}


@cache
def _paths() -> set[str]:
    """Every word, and what stands before the dots in them: `R.nn`."""
    out = set(known())
    for path in known():
        while "." in path:
            path = path.rpartition(".")[0]
            out.add(path)
    return out


def word(path: str, of: str) -> Word:
    """\\throws AttributeError where there is no such word."""
    if path not in _paths():
        raise AttributeError(f"{of!r} has no attribute {path.rsplit('.', 1)[1]!r}")
    return Word(path)


class _Script:
    """Something that has a meaning in the text of a script."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def _outside(self, what: str) -> NoReturn:
        raise TypeError(f"`{self._path}` {what} outside of the text of a script, where it has no value")

    def __iter__(self) -> NoReturn:
        self._outside("is gone through")

    def __enter__(self) -> NoReturn:
        self._outside("is entered")

    def __exit__(self, *details: object) -> None:
        pass

    def __bool__(self) -> NoReturn:
        self._outside("is asked whether it holds")

    def __repr__(self) -> str:
        return f"<{self._path} of tenon.script>"


class Word(_Script):
    """`T.float32`, `R.nn.relu`"""

    __slots__ = ()

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        parameters, summary, _ = known().get(self._path, ("", "", ""))
        return f"{self._path}({parameters})\n\n{summary}" if summary else None

    def __tenon_script__(self) -> tuple[Any, ...]:
        return ("word", self._path)

    def __getattr__(self, name: str) -> Word:
        if name.startswith("__"):
            raise AttributeError(name)
        return word(f"{self._path}.{name}", self._path)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if any(_is_expr(arg) for arg in (*args, *kwargs.values())):
            return _core._call_word(self._path, *args, **kwargs)
        return Application(self._path, args, kwargs)

    def __or__(self, other: Any) -> Word:  # in annotations
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Word) and other._path == self._path

    def __hash__(self) -> int:
        return hash(self._path)

    def __reduce__(self) -> tuple[Any, ...]:
        return Word, (self._path,)


class Op(Word):
    """`op.conv2d`, as `from tvm.relax import op` was first written: neural operators are among the others."""

    __slots__ = ()

    def __init__(self) -> None:
        self._path = "op"

    def __getattr__(self, name: str) -> Word:
        if name.startswith("__"):
            raise AttributeError(name)
        return word(f"R.{name}" if f"R.{name}" in known() else f"R.nn.{name}", "op")


class Application(_Script):
    """`T.float32(2)`, `R.Tensor((2, 3), "float32")`: a word on values of Python."""

    __slots__ = ("_args", "_kwargs")

    def __init__(self, path: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().__init__(path)
        self._args = args
        self._kwargs = kwargs

    def __tenon_script__(self) -> tuple[Any, ...]:
        return ("call", self._path, self._args, self._kwargs)

    # What annotations may do with it; they are read as text.
    def _again(self, *others: Any) -> Application:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = __mod__ = _again
    __truediv__ = __rtruediv__ = __neg__ = __or__ = __getitem__ = __call__ = _again


def _is_expr(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_is_expr(item) for item in value)
    return isinstance(value, (_core.Expr, _core.PrimExpr, _core.Buffer))
