# SPDX-License-Identifier: Apache-2.0
"""What editors and type checkers see of scripts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")
ROOT = Path(__file__).parents[2]
HEAD = "from __future__ import annotations\nfrom tenon.script import ir as I, relax as R, tir as T\n"


def mypy(*paths):
    # Annotations of scripts are calls, which types of Python are not: the one rule that is switched off.
    command = [sys.executable, "-m", "mypy", "--disable-error-code=valid-type", "--ignore-missing-imports"]
    command += ["--follow-imports=silent", "--no-incremental", "--no-error-summary"]
    done = subprocess.run(
        [*command, *map(str, paths)], capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(ROOT / "python")}
    )
    return done.stdout


def test_examples_are_accepted(tmp_path):
    paths = []
    for number, path in enumerate(sorted((ROOT / "examples").rglob("*.py"))):
        text = path.read_text()
        if "@I.ir_module" not in text or "errors" in path.parts:
            continue
        copy = tmp_path / f"example_{number}_{path.stem}.py"
        imports = "" if "from tenon.script import" in text else HEAD
        copy.write_text(imports + text)
        paths.append(copy)
    assert len(paths) > 10
    assert mypy(*paths) == ""


def test_words_that_are_none_are_found(tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text(HEAD + "def f() -> None:\n    R.nn.no_such_operator(1)\n    T.grit(4)\n    R.add(1)\n")
    output = mypy(path)
    assert "no_such_operator" in output and "grit" in output and "rhs" in output
