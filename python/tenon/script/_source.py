# SPDX-License-Identifier: Apache-2.0
"""Where a definition stands in its file, and what the names in it are."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import types
from collections.abc import Callable, Mapping
from typing import Any

from tenon import _core

Lookup = Callable[[str], "tuple[Any] | None"]


class Place:
    """Lines of a file, and the lookup of the names that they use."""

    bare_class = False
    """Whether it is a class without the decorator that makes it a module."""

    def __init__(self, what: str, file: str, first: int, module_globals: Mapping[str, Any], lookup: Lookup) -> None:
        linecache.checkcache(file)
        lines = linecache.getlines(file, dict(module_globals))
        if not 1 <= first <= len(lines):
            raise OSError(
                f"the source of {what} is not to be had: {file}, line {first}. Scripts are read as text, so they stand in a "
                "file or in a notebook's cell; a text that a program makes is given to tenon.load(text)"
            )
        self.source = _source(file, lines)
        self.first = first
        try:
            self.last = first - 1 + len(inspect.getblock(lines[first - 1 :]))
        except SyntaxError:  # what cannot be told from the text ends where the indentation does
            self.last = 0
        self.lookup = lookup


_sources: dict[str, tuple[list[str], _core._Source]] = {}


def _source(file: str, lines: list[str]) -> _core._Source:
    known = _sources.get(file)
    if known is None or known[0] != lines:
        known = _sources[file] = (lines, _core._Source(file, "".join(lines)))
    return known[1]


def _cells(function: types.FunctionType) -> dict[str, Any]:
    out = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            out[name] = cell.cell_contents
        except ValueError:  # assigned later
            pass
    return out


def _lookup(scopes: list[Mapping[str, Any]]) -> Lookup:
    def find(name: str) -> tuple[Any] | None:
        for scope in scopes:
            if name in scope:
                return (scope[name],)
        return None

    return find


def function_of(function: Any) -> types.FunctionType:
    """What decorators of others were put around."""
    function = inspect.unwrap(function)
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"{function!r} is no function of Python")
    return function


def of_function(function: Any, frame: types.FrameType | None) -> Place:
    """Of a function; `frame` is that in which it is defined."""
    function = function_of(function)
    scopes: list[Mapping[str, Any]] = [_cells(function)]
    if frame is not None and frame.f_globals is function.__globals__ and frame.f_locals is not frame.f_globals:
        scopes.append(dict(frame.f_locals))
    scopes.append(function.__globals__)
    code = function.__code__
    what = f"`{function.__qualname__}`"
    return Place(what, code.co_filename, code.co_firstlineno, function.__globals__, _lookup(scopes))


def of_class(cls: type, frame: types.FrameType) -> Place:
    """Of a class whose decorator is called from `frame`, or that was defined before and is given to a call."""
    members = _recorded(cls)
    scopes: list[Mapping[str, Any]] = []
    for member in [*members, *vars(cls).values()]:
        if isinstance(member, types.FunctionType):
            scopes.append(_cells(member))
    what = f"class `{cls.__qualname__}`"
    if members:
        code, around = members[0].__code__, members[0].__globals__
        if frame.f_globals is around and frame.f_locals is not frame.f_globals:
            scopes.append(dict(frame.f_locals))
        place = Place(what, code.co_filename, _class_line(cls, members[0]), around, _lookup([*scopes, around]))
        place.bare_class = True
        return place
    if frame.f_locals is not frame.f_globals:
        scopes.append(dict(frame.f_locals))
    scopes.append(frame.f_globals)
    # While decorators are called, the frame's line is that of the decorator.
    return Place(what, frame.f_code.co_filename, frame.f_lineno, frame.f_globals, _lookup(scopes))


_MEMBERS = "__tenon_members__"


def record_member(function: types.FunctionType, frame: types.FrameType) -> bool:
    """Notes a function of a class that no decorator makes a module: `I.ir_module(cls)` may. Returns whether it is for such a
    class, and names others of it, so that it means nothing without them."""
    code = frame.f_code
    if code.co_flags & inspect.CO_OPTIMIZED or "__qualname__" not in frame.f_locals:
        return False
    frame.f_locals.setdefault(_MEMBERS, []).append(function)
    names = {*function.__code__.co_names, *function.__code__.co_freevars}
    return code.co_name in names or ("cls" in function.__code__.co_names and "cls" not in function.__globals__)


def _recorded(cls: type) -> list[types.FunctionType]:
    return list(vars(cls).get(_MEMBERS, ()))


def _class_line(cls: type, member: types.FunctionType) -> int:
    code = member.__code__
    lines = linecache.getlines(code.co_filename, member.__globals__)
    line = re.compile(rf"\s*class\s+{re.escape(cls.__name__)}\b")
    for number in range(min(code.co_firstlineno, len(lines)), 0, -1):
        if line.match(lines[number - 1]):
            return number
    return 0


def is_member(frame: types.FrameType) -> bool:
    """Whether the frame is the body of a class that is a module or a rewriter of its own."""
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED or "__qualname__" not in frame.f_locals:
        return False
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    for line in lines[frame.f_code.co_firstlineno - 1 :]:
        text = line.strip()
        if text.startswith("class "):
            return False
        if text.startswith("@") and ("ir_module" in text or "rewriter" in text):
            return True
    return False


def _defaults(function: types.FunctionType) -> dict[str, Any]:
    code = function.__code__
    values = function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    return {**dict(zip(names[len(names) - len(values) :], values, strict=True)), **(function.__kwdefaults__ or {})}


class Helper:
    """A function of Python that a script calls with expressions."""

    def __init__(self, function: types.FunctionType, place: Place) -> None:
        self._said = ("helper", place.source, place.first, place.last, place.lookup, _defaults(function))

    def __tenon_script__(self) -> tuple[Any, ...]:
        return self._said


def helper_of(function: Any) -> Helper | Lambda | None:
    """The text of a function; None where there is none."""
    if not isinstance(function, types.FunctionType):
        return None
    try:
        place = of_function(function, None)
    except OSError:
        return None
    if function.__name__ != "<lambda>":
        return Helper(function, place)
    found = _lambda_at(place, function)
    return Lambda(function, place, *found) if found else None


class Lambda:
    """A lambda that a script calls with expressions."""

    def __init__(self, function: types.FunctionType, place: Place, text: str, line: int, column: int) -> None:
        self._said = ("lambda", place.source, text, line, column, place.lookup, _defaults(function))

    def __tenon_script__(self) -> tuple[Any, ...]:
        return self._said


def _lambda_at(place: Place, function: types.FunctionType) -> tuple[str, int, int] | None:
    text = place.source.text
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a cell with commands of its own
        return None
    # All that it computes is its body: one expression of the text.
    positions = [p for p in function.__code__.co_positions() if None not in p and p[2] != p[3]]
    begin = min((line, column) for line, _, column, _ in positions)
    end = max((line, column) for _, line, _, column in positions)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Lambda):
            continue
        body = node.body
        if (body.lineno, body.col_offset) == begin and (body.end_lineno, body.end_col_offset) == end:
            before = text.splitlines()[node.lineno - 1].encode()[: node.col_offset].decode()
            source = ast.get_source_segment(text, node)
            return (source, node.lineno, len(before) + 1) if source else None
    return None
