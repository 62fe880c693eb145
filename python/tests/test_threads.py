# SPDX-License-Identifier: Apache-2.0
"""Eight threads at once, with functions, back ends, operators, conditions and passes of Python in what they run."""

import threading

import numpy as np
import pytest

import tenon
from tenon.script import ir as I
from tenon.script import relax as R
from tenon.script import tir as T

THREADS, CALLS = 8, 40


@T.prim_func
def exp_kernel(x: T.Buffer((4, 8), "float32"), y: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 8):
        with T.block("exp"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.exp(x[vi, vj])


def in_threads(work):
    """Runs `work(number)` on all threads; what they raise is raised here."""
    errors, ready = [], threading.Barrier(THREADS)

    def guarded(number):
        try:
            ready.wait()
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.fixture
def everything():
    """(module, options of compile, calls): relu is a back end's, exp a kernel's, the rest functions of Python."""
    calls = {"scale": 0, "relu": 0, "meaning": 0, "when": 0, "check": 0, "pass": 0}

    @tenon.register_func("threads.scale", override=True)
    def scale(x, factor):
        calls["scale"] += 1
        return x * np.float32(factor)

    def check(match):
        calls["check"] += 1

    def generate(match):
        def relu(x):
            calls["relu"] += 1
            return np.maximum(x, 0)

        return relu

    tenon.register_backend("threads", patterns='relu = is_op("relax.nn.relu")(wildcard())', check=check, generate=generate, override=True)

    @tenon.operator("com.example::Shift")
    def shift(x, *, by=1.0):
        return R.Tensor(x.shape, x.dtype)

    @shift.meaning
    def _(x, *, by):
        calls["meaning"] += 1
        return x + np.float32(by)

    def when(shapes, dtypes):
        calls["when"] += 1
        return shapes[0] == (4, 8) and dtypes[0] == "float32"

    @tenon.module_pass(needs="graph")
    def LooksOn(module):
        calls["pass"] += 1
        return module

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4, 8), "float32")):
            a = R.call_pure_packed("threads.scale", x, R.prim_value(3), sinfo_args=(R.Tensor((4, 8), "float32"),))
            b = R.nn.relu(a)
            c = R.exp(b)
            d = shift(c, by=2.0)
            return R.add(d, x)

    options = {"libs": "threads", "kernels": tenon.kernel("exp", when=when)(exp_kernel), "passes": LooksOn()}
    yield Module, options, calls
    tenon.remove_operator("com.example::Shift")
    tenon.unregister_backend("threads")
    tenon.remove_global_func("threads.scale")


def expected(x):
    return np.exp(np.maximum(x * 3, 0)) + 2 + x


def inputs(number):
    return np.random.default_rng(number).uniform(-1, 1, (CALLS, 4, 8)).astype(np.float32)


@pytest.mark.parametrize("threads", [1, 2])
def test_one_program_is_called(everything, threads):
    module, options, calls = everything
    program = tenon.compile(module, threads=threads, **options)
    assert calls["when"] >= 1 and calls["check"] >= 1 and calls["pass"] == 1

    def work(number):
        for x in inputs(number):
            np.testing.assert_allclose(program(x), expected(x), rtol=1e-5)

    in_threads(work)
    assert calls["scale"] >= THREADS * CALLS and calls["relu"] >= THREADS * CALLS and calls["meaning"] >= THREADS * CALLS


def test_each_compiles_its_own(everything):
    module, options, calls = everything

    def work(number):
        for x in inputs(number)[:2]:
            np.testing.assert_allclose(tenon.compile(module, **options)(x), expected(x), rtol=1e-5)
            np.testing.assert_allclose(tenon.interpret(module, x), expected(x), rtol=1e-5)

    in_threads(work)
    assert calls["pass"] == 2 * THREADS


def test_each_registers_its_own():
    """Registries change while other threads look into them."""

    @I.ir_module
    class Net:
        @R.function
        def main(x: R.Tensor((4, 8), "float32")):
            y = R.nn.relu(x)
            return y

    def work(number):
        name = f"threads_{number}"
        for i, x in enumerate(inputs(number)[:4]):
            factor = np.float32(number * 10 + i)
            tenon.register_backend(
                name, patterns='relu = is_op("relax.nn.relu")(wildcard())', generate=lambda match, f=factor: lambda x: x * f, override=True
            )
            program = tenon.compile(Net, libs=name, threads=1)
            if i % 2:
                tenon.unregister_backend(name)
            np.testing.assert_array_equal(program(x), x * factor)

    in_threads(work)
    assert not [name for name in tenon.backends.backend_names() if name.startswith("threads_")]


def test_each_has_its_own_error(everything):
    module, options, _ = everything
    program = tenon.compile(module, **options)

    @tenon.register_func("threads.scale", override=True)
    def wrong(x, factor):
        raise ValueError(f"thread {x[0, 0]}")

    failing = tenon.compile(module, **options)

    def work(number):
        for x in inputs(number)[:8]:
            with pytest.raises(tenon.CallbackError) as caught:
                failing(x)
            assert isinstance(caught.value.__cause__, ValueError) and str(caught.value.__cause__) == f"thread {x[0, 0]}"
            np.testing.assert_allclose(program(x), expected(x), rtol=1e-5)

    in_threads(work)
