# SPDX-License-Identifier: Apache-2.0
"""What type checkers see of the package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tenon
from tenon import _stubs

pytest.importorskip("mypy")
PACKAGE = Path(tenon.__file__).parent
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """Runs mypy beside the package."""
    if not (PACKAGE / "_core.pyi").exists():
        pytest.skip("no stub of the extension: make python")
    # Among all that is installed mypy does not look for sources.
    folder = tmp_path_factory.mktemp("mypy")
    (folder / "tenon").symlink_to(PACKAGE)
    environment = {**os.environ, "MYPYPATH": str(folder)}

    def run(*arguments):
        command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--no-error-summary", "--no-incremental"]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, env=environment, cwd=folder)
        assert done.stderr == "" and done.returncode in (0, 1), done.stdout + done.stderr
        return done.stdout

    return run


def test_the_package_is_typed(mypy):
    files = ["__init__", "_api", "_errors", "_memory", "_progress", "_stubs", "transform", "dpl", "expr_functor", "tir"]
    files += ["_torch", "_torch_fused", "_dynamo", "backends", "_packed", "_operator", "schedule", "_kernels"]
    files += [f"script/{name}" for name in ["__init__", "_decorators", "_source", "_stubs", "_words"]]
    strict = ["--strict", "--allow-any-generics", "--follow-imports=silent"]
    assert mypy(*strict, *(f"tenon/{name}.py" for name in files)) == ""


def test_the_stub_of_the_extension_is_well_formed(mypy):
    assert mypy("--follow-imports=silent", "tenon/_core.pyi") == ""


def test_programs_of_users_are_checked(mypy, tmp_path):
    path = tmp_path / "user.py"
    path.write_text(
        """
import numpy as np
import tenon

module = tenon.load("x.onnx")
program = tenon.compile(module, libs=["dnnl"], threads=2)
reveal_type(program)
reveal_type(program.inputs[0].name)
reveal_type(tenon.transform.FuseOps()(tenon.IRModule()))
tenon.transform.PlanMemory(work_limit=3)
tenon.transform.PlanMemory(work_limit="3")
tenon.transform.PlanMemory(limit=3)
tenon.compyle(module)
program.inptus
sch = tenon.Schedule(module)
sch.split(sch.get_loops("b")[0], factors=[None, 4])
sch.split("b", factors=[None, 4])
sch.cache_read("b", 0)
try:
    tenon.load("y.onnx")
except tenon.CompileError as error:
    reveal_type(error.code)
"""
    )
    lines = [line.split(":", 1)[1] for line in mypy(str(path)).splitlines() if line.startswith(str(path))]
    assert [line for line in lines if "Revealed type" in line] == [
        '7: note: Revealed type is "tenon._core.Program"',
        '8: note: Revealed type is "str"' if any('is "str"' in line for line in lines) else '8: note: Revealed type is "builtins.str"',
        '9: note: Revealed type is "tenon._core.IRModule"',
        [line for line in lines if line.startswith("22: note")][0],
    ]
    errors = {int(line.split(":")[0]) for line in lines if ": error:" in line}
    assert errors == {11, 12, 13, 14, 17, 18}


def test_stubs_are_up_to_date():
    written = (ROOT / "python/tenon/_passes.pyi").read_text()
    assert written == _stubs.passes(), "write it anew: python -m tenon._stubs"
    written = (ROOT / "python/tenon/_primitives.pyi").read_text()
    assert written == _stubs.primitives(), "write it anew: python -m tenon._stubs"
