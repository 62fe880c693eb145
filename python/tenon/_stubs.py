# SPDX-License-Identifier: Apache-2.0
"""Writes what type checkers see of passes and options, from the compiler's tables: `python -m tenon._stubs [FOLDER]`."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

from tenon import _core, schedule, transform

_HEADER = '''# SPDX-License-Identifier: Apache-2.0
# Written by `python -m tenon._stubs` from the compiler's tables.
from typing import Any

from tenon._core import Pass
'''


_PRIMITIVES_HEADER = '''# SPDX-License-Identifier: Apache-2.0
# Written by `python -m tenon._stubs` from the compiler's tables.
from collections.abc import Callable, Sequence
from typing import Any

from tenon._core import BlockRV, LoopRV, PrimExpr, _Schedule

class Primitives(_Schedule):
    """A method for each primitive."""
'''


def _docstring(text: str | None, indent: str) -> list[str]:
    lines = inspect.cleandoc(text or "").split("\n")
    if len(lines) == 1:
        return [f'{indent}"""{lines[0]}"""']
    return [f'{indent}"""{lines[0]}', *(f"{indent}{line}".rstrip() for line in lines[1:]), f'{indent}"""']


def _type(text: str) -> str:
    return text.replace("dict", "dict[str, Any]")


def passes() -> str:
    """Of `tenon.transform`: a function for each pass."""
    out = [_HEADER]
    for known in _core._passes():
        options = _core._pass_options(known)
        parameters = [f"{name}: {_type(kind)}{f' = {value}' if value else ''}" for name, kind, value, _ in options]
        out.append(f"def {known.name}({', '.join(['*', *parameters]) if parameters else ''}) -> Pass:")
        out += [*_docstring(getattr(transform, known.name).__doc__, "    "), ""]
    return "\n".join(out).rstrip("\n") + "\n"


def primitives() -> str:
    """Of `tenon.Schedule`: a method for each primitive."""
    out = [_PRIMITIVES_HEADER]
    for name in schedule.primitives():
        method = getattr(schedule.Schedule, name)
        signature = str(inspect.signature(method)).replace("'", "").replace("(self, /", "(self")
        out.append(f"    def {name}{signature}:")
        out += [*_docstring(method.__doc__, "        "), ""]
    return "\n".join(out).rstrip("\n") + "\n"


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
    (folder / "_passes.pyi").write_text(passes())
    (folder / "_primitives.pyi").write_text(primitives())
