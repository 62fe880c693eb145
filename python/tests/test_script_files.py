# SPDX-License-Identifier: Apache-2.0
"""The same text, run by Python and read by the compiler, is one module or has the same errors: the repository's own texts."""

import __future__
import importlib
import linecache
import re
import sys
from pathlib import Path

import pytest

import tenon
from tenon.script import ir as I
from tenon.script import relax as R
from tenon.script import tir as T

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden"
FOLDERS = sorted({path.parent for path in GOLDEN.rglob("*.tvmscript")})
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
MODULE = re.compile(r"^@(?:I|tvm\.script)\.ir_module.*?^class (\w+)", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def tvm(monkeypatch):
    # Texts that import TVM's modules find ours.
    for name in ["", ".script", ".script.ir", ".script.relax", ".script.tir"]:
        monkeypatch.setitem(sys.modules, "tvm" + name, importlib.import_module("tenon" + name))


def run(path, text, name):
    """The module that Python's run of the text gives, or the places of its errors."""
    names = {"I": I, "R": R, "T": T, "tvm": tenon, "op": R.op, "dataflow": R.dataflow, "__name__": "script"}
    # Names in annotations that are parameters of their function are none of Python's.
    code = compile(text, str(path), "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True)
    try:
        exec(code, names)
    except tenon.CompileError as error:
        return places(error)
    return names[name]


def places(error):
    return [(d.code, d.message, d.place and (d.place.file, d.place.line, d.place.column)) for d in error.diagnostics]


def read(path):
    try:
        return tenon.load(path)
    except tenon.CompileError as error:
        return places(error)


def check(path, text):
    """Whether there was something to check."""
    if len(MODULE.findall(text)) != 1:
        return False
    linecache.checkcache(str(path))
    expected = read(path)
    try:
        found = run(path, text, MODULE.search(text).group(1))
    except SyntaxError:
        return not isinstance(expected, tenon.IRModule)
    if isinstance(expected, tenon.IRModule):
        assert isinstance(found, tenon.IRModule), (path, found)
        assert found.first_difference(expected) is None, path
    else:
        assert found == expected, path
    return True


def of_golden(path):
    """The text that a golden file gives, without what is expected of it."""
    text = path.read_text()
    start = text.find("class ")
    end = re.search(r"^# [A-Z]{4,}\b", text[start:], re.MULTILINE) if "# ERROR" not in text else None
    return text[: start + end.start()] if end else text


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(GOLDEN)))
def test_golden(folder, tmp_path):
    for path in sorted(folder.glob("*.tvmscript")):
        copy = tmp_path / (path.stem + ".py")
        text = of_golden(path)
        copy.write_text(text)
        check(copy, text)


def test_most_golden_files_are_checked(tmp_path):
    paths = sorted(GOLDEN.rglob("*.tvmscript"))[::20]
    checked = 0
    for number, path in enumerate(paths):
        copy = tmp_path / f"{number}.py"
        text = of_golden(path)
        copy.write_text(text)
        checked += check(copy, text)
    assert checked > len(paths) * 0.8


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT / "examples")))
def test_examples(path):
    if not check(path, path.read_text()):
        pytest.skip("no file of one module")
