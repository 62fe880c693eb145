# SPDX-License-Identifier: Apache-2.0
"""Writes the stubs of ir, relax and tir (`.pyi`) from the compiler's table of words: `python -m tenon.script._stubs [FOLDER]`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from tenon.script import _words

_HEADER = '''# SPDX-License-Identifier: Apache-2.0
# Written by `python -m tenon.script._stubs` from the compiler's table of words.
import builtins as _builtins
from collections.abc import Callable as _Callable
from typing import Any as _Any, overload as _overload

from tenon._core import Function as _Function, IRModule as _IRModule
{imports}
class _Value:
    """What a word gives: in scripts it has every operator."""

    def __init__(self, *args: _Any, **kwargs: _Any) -> None: ...
    def __getattr__(self, name: _builtins.str) -> _Any: ...
    def __getitem__(self, index: _Any) -> _Any: ...
    def __setitem__(self, index: _Any, value: _Any) -> None: ...
    def __call__(self, *args: _Any, **kwargs: _Any) -> _Any: ...
    def __iter__(self) -> _Any: ...
'''

_OPERATORS = "add sub mul truediv floordiv mod pow and or xor lshift rshift".split()

_MACRO = """
@_overload
def macro(function: _Callable[..., _Any], /) -> _Callable[..., _Any]: ...
@_overload
def macro(*, hygienic: _builtins.bool = True) -> _Callable[[_Callable[..., _Any]], _Callable[..., _Any]]: ...
"""

_DECORATORS = {
    "I.ir_module": """
@_overload
def ir_module(cls: type, /) -> _IRModule: ...
@_overload
def ir_module(*, check_well_formed: _builtins.bool = True, **options: _Any) -> _Callable[[type], _IRModule]: ...
""",
    "R.rewriter": "func = function\nop: _Any\n\ndef rewriter(cls: type, /) -> _PatternMatchingRewriter: ...\n",
    "R.macro": _MACRO,
    "T.macro": _MACRO + "inline = macro\n",
}

_FUNCTION_DECORATOR = """
@_overload
def {name}(function: _Callable[..., _Any], /) -> _Function: ...
@_overload
def {name}(**options: _Any) -> _Callable[[_Callable[..., _Any]], _Function]: ...
"""


def _parameters(text: str) -> str:
    out = []
    for parameter in re.findall(r'(?:[^,"]|"[^"]*")+', text):
        name, equals, default = parameter.strip().partition("=")
        if name == "*":
            out.append("*")
        else:
            out.append(f"{name}: _Any" + (f" = {default}" if equals else ""))
    return ", ".join(out)


def _definition(name: str, parameters: str, summary: str, kind: str, indent: str, static: bool) -> str:
    parameters = _parameters(parameters)
    lines = []
    if kind == "type":
        comma = ", " if parameters else ""
        lines += [
            f"class {name}(_Value):",
            f'    """{summary}"""',
            "",
            f"    def __init__(self{comma}{parameters}) -> None: ...",
        ]
    else:
        if static:
            lines.append("@staticmethod")
        lines += [f"def {name}({parameters}) -> _Any:", f'    """{summary}"""']
    return "".join(f"{indent}{line}".rstrip() + "\n" for line in lines)


def _members(words: dict[str, Any], prefix: str, indent: str) -> str:
    out = ""
    groups: dict[str, dict[str, Any]] = {}
    for path, (parameters, summary, kind) in words.items():
        name, dot, _ = path[len(prefix) :].partition(".")
        if dot:
            groups.setdefault(name, {})[path] = words[path]
        elif kind == "decorator":
            out += _DECORATORS.get(path, _FUNCTION_DECORATOR.format(name=name))
        elif name.isidentifier() and name not in ("and", "or", "not", "in", "is"):
            out += _definition(name, parameters, summary, kind, indent, bool(indent))
    for name, group in groups.items():
        out += f"{indent}class {name}:\n" + _members(group, f"{prefix}{name}.", indent + "    ")
    return out


def stub(language: str) -> str:
    """The stub of one language: "I", "R" or "T"."""
    imports = "from tenon.dpl import PatternMatchingRewriter as _PatternMatchingRewriter\n" if language == "R" else ""
    words = {path: word for path, word in _words.known().items() if path.startswith(language + ".")}
    operators = "".join(
        f"    def __{reflected}{operator}__(self, other: _Any) -> _Any: ...\n"
        for operator in _OPERATORS
        for reflected in ("", "r")
    )
    operators += "".join(f"    def __{name}__(self) -> _Any: ...\n" for name in ("neg", "invert"))
    operators += "".join(f"    def __{name}__(self, other: _Any) -> _Any: ...\n" for name in ("lt", "le", "gt", "ge"))
    return _HEADER.format(imports=imports) + operators + "\n" + _members(words, language + ".", "")


def main(folder: Path) -> None:
    for language, name in {"I": "ir", "R": "relax", "T": "tir"}.items():
        (folder / f"{name}.pyi").write_text(stub(language))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent)
