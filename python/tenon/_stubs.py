# SPDX-License-Identifier: Apache-2.0
"""Writes what type checkers see of passes and options, from the compiler's tables: `python -m tenon._stubs [FOLDER]`."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

from tenon import _core, transform

_HEADER = '''# SPDX-License-Identifier: Apache-2.0
# Written by `python -m tenon._stubs` from the compiler's tables.
from typing import Any

from tenon._core import Pass
'''


def _type(text: str) -> str:
    return text.replace("dict", "dict[str, Any]")


def passes() -> str:
    """Of `tenon.transform`: a function for each pass."""
    out = [_HEADER]
    for known in _core._passes():
        options = _core._pass_options(known)
        parameters = [f"{name}: {_type(kind)}{f' = {value}' if value else ''}" for name, kind, value, _ in options]
        text = inspect.cleandoc(getattr(transform, known.name).__doc__ or "")
        out.append(f"def {known.name}({', '.join(['*', *parameters]) if parameters else ''}) -> Pass:")
        lines = text.split("\n")
        out.append(f'    """{lines[0]}' if len(lines) > 1 else f'    """{lines[0]}"""')
        out += [f"    {line}".rstrip() for line in lines[1:]]
        if len(lines) > 1:
            out.append('    """')
        out.append("")
    return "\n".join(out).rstrip("\n") + "\n"


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
    (folder / "_passes.pyi").write_text(passes())
