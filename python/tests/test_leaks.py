# SPDX-License-Identifier: Apache-2.0
"""Nothing stays of what is loaded, compiled, registered and called: no memory, threads, files, temporary folders, functions.

TENON_LEAK_ROUNDS: how often each is done (`make test-long`: 1000).
"""

import gc
import os
import tempfile
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from conftest import SCRIPT

import tenon
from tenon.script import ir as I
from tenon.script import relax as R
from tenon.script import tir as T

ROUNDS = int(os.environ.get("TENON_LEAK_ROUNDS", "60"))
RELU = 'relu = is_op("relax.nn.relu")(wildcard())'
X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)


@I.ir_module
class Net:
    @R.function
    def main(x: R.Tensor((4, 8), "float32")):
        with R.dataflow():
            y = R.nn.relu(x)
            z = R.exp(y)
            R.output(z)
        return z


@I.ir_module
class Packed:
    @R.function
    def main(x: R.Tensor((4, 8), "float32")):
        y = R.call_pure_packed("leaks.scale", x, R.prim_value(3), sinfo_args=(R.Tensor((4, 8), "float32"),))
        return R.exp(y)


@T.prim_func
def relu_kernel(x: T.Buffer((4, 8), "float32"), y: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 8):
        with T.block("relu"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.max(x[vi, vj], T.float32(0))


class Watch:
    """What the process holds, and functions that are to end."""

    def __init__(self) -> None:
        self.functions: list[tuple[str, weakref.ref]] = []

    def __call__(self, function: Callable) -> Callable:
        self.functions.append((function.__name__, weakref.ref(function)))
        return function

    def alive(self) -> set[str]:
        gc.collect()
        return {name for name, function in self.functions if function() is not None}


def held() -> dict[str, int]:
    gc.collect()
    with open("/proc/self/statm") as file:
        memory = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return {
        "files": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "temporary": len(os.listdir(tempfile.gettempdir())),
        "memory": memory,
    }


@pytest.fixture
def rounds(tmp_path, monkeypatch):
    """Runs a function many times, and compares what the process holds before and after."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    def run(once: Callable[[int], None]) -> None:
        for i in range(ROUNDS // 4):  # what is kept is kept by then
            once(i)
        before = held()
        for i in range(ROUNDS):
            once(i)
        after = held()
        print(f"{ROUNDS} rounds: {before} -> {after}, {(after['memory'] - before['memory']) / ROUNDS:.0f} bytes each")
        assert after["files"] == before["files"]
        assert after["threads"] <= before["threads"] + 1
        assert after["temporary"] == before["temporary"] == 0
        assert after["memory"] - before["memory"] < 16 << 20

    return run


def test_programs(rounds, tmp_path):
    """Loads, compilations, calls and deletions, many of them of a library and with an error."""
    x, w = np.ones((3, 4), np.float32), np.ones((4, 3), np.float32)
    path = tmp_path / "x.so"
    tenon.compile(SCRIPT).save(path)

    def once(i: int) -> None:
        if i % 4 == 0:
            program = tenon.compile(SCRIPT, threads=2)
        else:
            tenon.load(SCRIPT)
            program = tenon.load(path)
        assert program(x, w).shape == (3, 3)
        if i % 8 == 0:
            with pytest.raises(tenon.RunError):
                program(x, x)
            with pytest.raises(tenon.CompileError):
                tenon.load(SCRIPT.replace("R.matmul", "R.matmal"))

    rounds(once)


def test_packed_functions(rounds):
    watch = Watch()

    def scale(x, factor):
        return x * np.float32(factor)

    def wrong(x, factor):
        raise ValueError("no")

    def once(i: int) -> None:
        function = watch(lambda *args: scale(*args))
        tenon.register_func("leaks.scale", function, override=True)
        np.testing.assert_allclose(tenon.compile(Packed, threads=1)(X), np.exp(X * 3), rtol=1e-5)
        np.testing.assert_allclose(tenon.interpret(Packed, X), np.exp(X * 3), rtol=1e-5)
        tenon.register_func("leaks.scale", watch(lambda *args: wrong(*args)), override=True)
        with pytest.raises(tenon.CallbackError):
            tenon.compile(Packed, threads=1)(X)
        tenon.remove_global_func("leaks.scale")

    rounds(once)
    assert watch.alive() == set()


def test_back_ends(rounds):
    watch = Watch()

    def once(i: int) -> None:
        @watch
        def run(x):
            return np.maximum(x, 0)

        @watch
        def check(match):
            return None

        @watch
        def generate(match):
            return run if i % 2 else relu_kernel

        @watch
        def wrong(match):
            raise ValueError("no")

        tenon.register_backend("leaks", patterns=RELU, check=check, generate=wrong)
        with pytest.raises(tenon.CallbackError):
            tenon.compile(Net, libs="leaks", threads=1)
        tenon.register_backend("leaks", patterns=RELU, check=check, generate=generate, override=True)
        np.testing.assert_allclose(tenon.compile(Net, libs="leaks", threads=1)(X), np.exp(np.maximum(X, 0)), rtol=1e-5)
        tenon.unregister_backend("leaks")

    rounds(once)
    assert watch.alive() == set()


def test_passes_of_back_ends(rounds):
    watch = Watch()

    def once(i: int) -> None:
        @watch
        def Swap(module, to="R.exp"):
            return tenon.load(module.script().replace("R.nn.relu", to))

        swap = tenon.module_pass(name="LeaksSwap", needs="graph")(Swap)
        tenon.register_backend("leaks", patterns=RELU, passes=[swap], generate=lambda match: relu_kernel)
        tenon.compile(Net, passes='leaks.LeaksSwap(to="R.negative")', threads=1)(X)
        tenon.unregister_backend("leaks")

    rounds(once)
    tenon.module_pass(name="LeaksSwap")(lambda module: module)  # the last one is known by its name
    assert watch.alive() == set()


def test_passes(rounds):
    watch = Watch()

    def once(i: int) -> None:
        @watch
        def Leaks(module, to="R.exp"):
            return tenon.load(module.script().replace("R.nn.relu", to))

        @watch
        def seen(known, module):
            pass

        Leaks = tenon.module_pass(needs="graph")(Leaks)
        tenon.Sequential([Leaks(to="R.exp")])(Net, after_pass=seen)
        tenon.compile(Net, passes='Leaks(to="R.exp")', threads=1)(X)

    rounds(once)
    tenon.module_pass(name="Leaks")(lambda module: module)
    assert watch.alive() == set()


def test_operators(rounds):
    watch = Watch()

    def once(i: int) -> None:
        @watch
        def scaled(x, *, factor=1.0):
            return R.Tensor(x.shape, x.dtype)

        @watch
        def meaning(x, *, factor):
            return x * np.float32(factor)

        operator = tenon.operator("com.example::Leaks", meaning=meaning)(scaled)

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((4, 8), "float32")):
                return R.add(operator(x, factor=2.0), x)

        np.testing.assert_allclose(tenon.compile(Module, threads=1)(X), X * 3, rtol=1e-5)
        np.testing.assert_allclose(tenon.interpret(Module, X), X * 3, rtol=1e-5)
        tenon.remove_operator("com.example::Leaks")

    rounds(once)
    assert watch.alive() == set()


def test_kernels_and_schedules(rounds):
    asked = []

    def when(shapes):
        asked.append(shapes[0])
        return shapes[0][1] % 8 == 0

    def once(i: int) -> None:
        sch = tenon.Schedule(relu_kernel)
        row, column = sch.get_loops("relu")
        sch.vectorize(sch.split(column, factors=[None, 8])[1])
        with pytest.raises(tenon.CompileError):
            sch.split(row, factors=[0, 0])
        kernel = tenon.kernel("nn.relu", when=when)(sch.func)
        np.testing.assert_allclose(tenon.compile(Net, kernels=kernel, threads=1)(X), np.exp(np.maximum(X, 0)), rtol=1e-5)

    rounds(once)
    assert set(asked) == {(4, 8)}
