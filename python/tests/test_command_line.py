# SPDX-License-Identifier: Apache-2.0
"""`tenon`, as the package installs it, against the program of the build."""

import re
import shlex
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


ABORTS = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            a = R.exp(R.matmul(x, w))
            b = R.call_dps_packed("gives_up", (a,), out_sinfo=R.Tensor((4, 4), "float32"))
            c = R.tanh(R.add(b, w))
            R.output(c)
        return c
"""


def test_reduce_starts_itself(tmp_path):
    """Each candidate runs in a process that `reduce` starts: this Python with `-m tenon`, which may die."""
    (tmp_path / "net.py").write_text(ABORTS)
    (tmp_path / "library.c").write_text("#include <stdlib.h>\nvoid gives_up(const float* x, float* y) { (void)x; (void)y; abort(); }\n")
    link = ["--link", "library.c"]
    done = run("reduce", "net.py", "--crashes", *link, "-o", "small.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(None, 1) for line in done.stdout.splitlines())
    assert "signal 6" in lines["outcome"] and lines["written"] == "small.py"
    # What it started was Python, which is shown without its folder; the line does the same again.
    python, *again = shlex.split(lines["again"])
    assert python == Path(sys.executable).name and again == [*COMMAND[1:], "run", "small.py", *link]
    small = tenon.load(tmp_path / "small.py")
    assert small.script().count("R.call_dps_packed(") == 1
    for gone in ["R.exp", "R.matmul", "R.tanh", "R.add"]:
        assert gone not in small.script()
    assert subprocess.run([sys.executable, *again], cwd=tmp_path, capture_output=True).returncode == -signal.SIGABRT


def test_reduce_refuses_what_does_not_crash(tmp_path):
    wrong = ROOT / "examples/kernel_calls/errors/wrong_extent.py"
    done = run("reduce", str(wrong), "--crashes", "-o", "small.py", cwd=tmp_path)
    assert done.returncode == 1 and not (tmp_path / "small.py").exists()
    started = shlex.join([Path(sys.executable).name, *COMMAND[1:], "run", str(wrong)])
    assert f"`{started}` ends with status 1, " in done.stderr and "; expected a signal, " in done.stderr


def test_names_that_are_no_text(tmp_path):
    path = bytes(tmp_path) + b"/\xff.onnx"
    Path(path.decode(errors="surrogateescape")).write_bytes(Path(DIGITS).read_bytes())
    done = subprocess.run([*COMMAND, "show", path], capture_output=True)
    assert done.returncode == 0, done.stderr


def test_a_closed_pipe_ends_it():
    command = subprocess.Popen([*COMMAND, "print", DIGITS], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    command.stdout.close()
    assert command.wait() == -signal.SIGPIPE
