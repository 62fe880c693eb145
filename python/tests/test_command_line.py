# SPDX-License-Identifier: Apache-2.0
"""`tenon`, as the package installs it, against the program of the build."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tenon

ROOT = Path(__file__).parents[2]
DIGITS = str(ROOT / "examples/digits/digits.onnx")


COMMAND = [sys.executable, "-P", "-m", "tenon"]


@pytest.fixture(autouse=True)
def anywhere(monkeypatch):
    """The package is found from every folder."""
    monkeypatch.setenv("PYTHONPATH", str(Path(tenon.__file__).parents[1]))


def run(*arguments, **options):
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, **options)


@pytest.fixture
def program():
    path = Path(tenon.__file__).parents[2] / "bin/tenon"
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


# Times differ from run to run.
def without_times(text):
    return re.sub(r"[0-9.]+ (ms|us|s)\b", "TIME", text)


@pytest.mark.parametrize("arguments", [
    ["--help"], ["--version"], ["run", "--help"], [], ["rn"], ["run"], ["run", "no.onnx"], ["run", DIGITS, "--threads", "99999"],
    ["print", DIGITS, "--after", "FuseOps"], ["run", DIGITS, "--threads", "1"], ["passes"],
])
def test_is_the_program(program, arguments, tmp_path):
    expected = subprocess.run([program, *arguments], capture_output=True, text=True, cwd=tmp_path)
    got = run(*arguments, cwd=tmp_path)
    assert got.returncode == expected.returncode
    assert without_times(got.stdout) == without_times(expected.stdout)
    assert without_times(got.stderr) == without_times(expected.stderr)


def test_reduce_starts_itself(tmp_path):
    wrong = ROOT / "examples/kernel_calls/errors/wrong_extent.py"
    done = run("reduce", str(wrong), "--crashes", "-o", str(tmp_path / "small.py"), cwd=tmp_path)
    assert done.returncode != 0
    assert "cannot start" not in done.stderr and "unrecognized" not in done.stderr, done.stderr


def test_names_that_are_no_text(tmp_path):
    path = bytes(tmp_path) + b"/\xff.onnx"
    Path(path.decode(errors="surrogateescape")).write_bytes(Path(DIGITS).read_bytes())
    done = subprocess.run([*COMMAND, "show", path], capture_output=True)
    assert done.returncode == 0, done.stderr


def test_a_closed_pipe_ends_it():
    command = subprocess.Popen([*COMMAND, "print", DIGITS], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    command.stdout.close()
    assert command.wait() == -signal.SIGPIPE
