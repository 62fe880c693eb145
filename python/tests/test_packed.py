# SPDX-License-Identifier: Apache-2.0
"""Functions of Python that programs call by name."""

import gc
import os
import subprocess
import sys
import textwrap
import threading
import traceback
import weakref
from pathlib import Path

import numpy as np
import pytest

import tenon
from tenon.script import ir as I
from tenon.script import relax as R
from tenon.script import tir as T

RNG = np.random.default_rng(0)


@pytest.fixture
def register():
    """Registers functions for the time of a test."""
    names = []

    def register(name, function, **options):
        names.append(name)
        return tenon.register_func(name, function, **options)

    yield register
    for name in names:
        if tenon.get_global_func(name, allow_missing=True) is not None:
            tenon.remove_global_func(name)


@I.ir_module
class Scaled:
    @R.function
    def main(x: R.Tensor((3, 4), "float32")):
        y = R.call_packed("test.scale", x, R.prim_value(3), R.str("fast"), sinfo_args=(R.Tensor((3, 4), "float32"),))
        return R.add(y, y)


def image():
    return RNG.standard_normal((3, 4), dtype=np.float32)


@pytest.mark.parametrize("run", [lambda m, *a: tenon.compile(m)(*a), tenon.interpret], ids=["compiled", "interpreted"])
class TestBoth:
    def test_arguments_and_result(self, run, register):
        seen = []

        def scale(x, factor, how):
            seen.append((type(x), x.dtype, x.shape, factor, how))
            return x * np.float32(factor)

        register("test.scale", scale)
        x = image()
        np.testing.assert_allclose(run(Scaled, x), x * 6, rtol=1e-6)
        assert seen == [(np.ndarray, np.float32, (3, 4), 3, "fast")]

    def test_several_results(self, run, register):
        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((4,), "float32")):
                y = R.call_pure_packed("test.both", x, sinfo_args=R.Tuple(R.Tensor((4,), "float32"), R.Tensor((2,), "int64")))
                return y[0], y[1]

        register("test.both", lambda x: (x + np.float32(1), np.array([7, 8])))
        y, z = run(Module, np.arange(4, dtype=np.float32))
        assert y.tolist() == [1, 2, 3, 4] and z.tolist() == [7, 8]

    def test_arrays_of_other_libraries_as_results(self, run, register):
        class Foreign:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **_):
                return self.array.__dlpack__()

        register("test.scale", lambda x, *_: Foreign(x.copy()))
        x = image()
        np.testing.assert_allclose(run(Scaled, x), x * 2, rtol=1e-6)

    def test_destination(self, run, register):
        def scale(x, factor, how, out):
            assert out.flags.writeable
            np.multiply(x, np.float32(factor), out=out)

        register("test.scale", scale, destination=True)
        x = image()
        np.testing.assert_allclose(run(Scaled, x), x * 6, rtol=1e-6)

    def test_in_place(self, run, register):
        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((4,), "float32")):
                y = R.exp(x)
                z = R.call_inplace_packed("test.double", y, inplace_indices=[0], sinfo_args=(R.Tensor((4,), "float32"),))
                return z

        def double(x):
            x *= 2

        register("test.double", double)
        x = np.arange(4, dtype=np.float32)
        np.testing.assert_allclose(run(Module, x), np.exp(x) * 2, rtol=1e-5)

    def test_from_a_kernel(self, run, register):
        @T.prim_func
        def kernel(x: T.Buffer((2, 4), "float32"), y: T.Buffer((2, 4), "float32")):
            for i in range(2):
                T.call_packed("test.row", x[i, 0:4], y[i, 0:4])

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((2, 4), "float32")):
                return R.call_tir(kernel, (x,), R.Tensor((2, 4), "float32"))

        def row(x, y):
            y[:] = x[::-1]

        register("test.row", row)
        x = RNG.standard_normal((2, 4), dtype=np.float32)
        np.testing.assert_array_equal(run(Module, x), x[:, ::-1])

    def test_the_exception_is_the_cause(self, run, register):
        def scale(x, *_):
            raise KeyError("boom")

        register("test.scale", scale)
        with pytest.raises(tenon.CallbackError, match="packed function `test.scale`.* raised KeyError: 'boom'") as caught:
            run(Scaled, image())
        assert isinstance(caught.value.__cause__, KeyError)
        text = "".join(traceback.format_exception(caught.value))
        assert 'raise KeyError("boom")' in text and "run(Scaled, image())" in text

    def test_what_it_gives_is_checked(self, run, register):
        register("test.scale", lambda x, *_: x.astype(np.float64))
        with pytest.raises(tenon.RunError, match=r"gave float64 of shape \(3, 4\) as result 0; expected float32 of shape \(3, 4\)"):
            run(Scaled, image())

    def test_a_result_that_is_no_array(self, run, register):
        register("test.scale", lambda *_: None)
        with pytest.raises((tenon.CallbackError, tenon.RunError), match="test.scale"):
            run(Scaled, image())

    def test_interrupts_go_on(self, run, register):
        def scale(*_):
            raise KeyboardInterrupt

        register("test.scale", scale)
        with pytest.raises(KeyboardInterrupt):
            run(Scaled, image())


def test_shape_of_a_result(register):
    register("test.scale", lambda x, *_: x[:2])
    with pytest.raises(tenon.RunError, match=r"gave float32 of shape \(2, 4\)"):
        tenon.compile(Scaled)(image())


def test_number_of_results(register):
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            y = R.call_pure_packed("test.both", x, sinfo_args=R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")))
            return y[0], y[1]

    program = None
    for given, words in [(lambda x: x, "one result of type"), (lambda x: (x,), "1 results"), (lambda x: (x, x, x), "3 results")]:
        register("test.both", given, override=True)
        program = tenon.compile(Module)
        with pytest.raises(tenon.RunError, match=f"gave .*{words}.*; expected 2"):
            program(np.zeros(4, np.float32))


def test_arguments_are_views(register):
    pointers = []

    def scale(x, *_):
        pointers.append(x.ctypes.data)
        assert not x.flags.owndata and not x.flags.writeable
        return x

    register("test.scale", scale)
    program = tenon.compile(Scaled)
    x = np.empty(12 + 16, np.float32)
    x = x[(-x.ctypes.data // 4) % 16 :][:12].reshape(3, 4)  # aligned to 64 bytes
    x[:] = 1
    program(x)
    assert pointers == [x.ctypes.data]


def test_what_is_only_read_is_read_only(register):
    def scale(x, *_):
        x[:] = 0

    register("test.scale", scale)
    with pytest.raises(tenon.CallbackError, match="read-only"):
        tenon.compile(Scaled)(image())


def test_arrays_that_are_kept_stay_valid(register):
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((1024, 256), "float32")):
            y = R.exp(x)
            z = R.call_packed("test.keep", x, y, R.const(np.full((1024, 256), 7, np.float32)), sinfo_args=(R.Tensor((4,), "float32"),))
            return z

    kept = []

    def keep(*arrays):
        kept.append(arrays)
        return np.zeros(4, np.float32)

    register("test.keep", keep)
    program = tenon.compile(Module)
    for i in range(3):
        program(np.full((1024, 256), i, np.float32))
    del program
    tenon.remove_global_func("test.keep")
    gc.collect()
    for i, (x, y, seven) in enumerate(kept):
        assert (x == i).all() and (seven == 7).all()
        np.testing.assert_allclose(y, np.exp(np.float32(i)), rtol=1e-5)


def test_the_frames_of_an_exception_stay_valid(register):
    def scale(x, *_):
        here = x[1:]
        raise ValueError(f"{here.shape}")

    register("test.scale", scale)
    with pytest.raises(tenon.CallbackError) as caught:
        tenon.compile(Scaled)(np.ones((3, 4), np.float32))
    gc.collect()
    frame = caught.value.__cause__.__traceback__
    while frame.tb_next:
        frame = frame.tb_next
    assert frame.tb_frame.f_locals["here"].sum() == 8


def test_inputs_are_let_go(register):
    register("test.scale", lambda x, *_: x)
    program = tenon.compile(Scaled)
    x = image()
    before = sys.getrefcount(x)
    program(x)
    program(x, out=np.empty((3, 4), np.float32))
    assert sys.getrefcount(x) == before


def test_from_eight_threads(register):
    register("test.scale", lambda x, factor, how: x * np.float32(factor))
    program = tenon.compile(Scaled, threads=2)
    errors = []

    def work(seed):
        x = np.full((3, 4), seed, np.float32)
        for _ in range(40):
            try:
                np.testing.assert_array_equal(program(x), x * 6)
            except BaseException as error:
                errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_errors_from_eight_threads(register):
    def scale(x, *_):
        raise ValueError(int(x[0, 0]))

    register("test.scale", scale)
    program = tenon.compile(Scaled)
    found = {}

    def work(seed):
        try:
            program(np.full((3, 4), seed, np.float32))
        except tenon.CallbackError as error:
            found[seed] = error.__cause__.args[0]

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {seed: seed for seed in range(8)}


def test_in_a_parallel_loop(register):
    @T.prim_func
    def kernel(x: T.Buffer((64, 4), "float32"), y: T.Buffer((64, 4), "float32")):
        T.func_attr({"tir.is_scheduled": True})
        for i in T.parallel(64):
            T.call_packed("test.row", x[i, 0:4], y[i, 0:4], i)

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((64, 4), "float32")):
            return R.call_tir(kernel, (x,), R.Tensor((64, 4), "float32"))

    def row(x, y, i):
        if i in (9, 40):
            raise ValueError(i)
        y[:] = x + np.float32(i)

    register("test.row", row)
    program = tenon.compile(Module, threads=4)
    for _ in range(5):
        with pytest.raises(tenon.CallbackError) as caught:
            program(np.zeros((64, 4), np.float32))
        assert caught.value.__cause__.args == (9,)  # that of the lowest task
    register("test.row", lambda x, y, i: row(x, y, i % 8), override=True)
    assert (tenon.compile(Module, threads=4)(np.zeros((64, 4), np.float32)) == (np.arange(64) % 8)[:, None]).all()


def test_a_program_inside_of_a_callback(register):
    inner = tenon.compile(
        "from tenon.script import ir as I, relax as R\n@I.ir_module\nclass M:\n    @R.function\n"
        '    def main(x: R.Tensor((3, 4), "float32")):\n        return R.multiply(x, R.const(5.0, "float32"))\n'
    )
    register("test.scale", lambda x, *_: inner(x))
    x = image()
    np.testing.assert_allclose(tenon.compile(Scaled, threads=4)(x), x * 10, rtol=1e-6)


@pytest.mark.parametrize("given, expected", [(3, 3.0), (2.5, 2.5), (True, 1.0), (np.float32(0.5), 0.5)])
def test_a_scalar_result(register, given, expected):
    @T.prim_func
    def kernel(y: T.Buffer((1,), "float32")):
        y[0] = T.call_packed("test.number", dtype="float32")

    register("test.number", lambda: given)
    y = np.zeros(1, np.float32)
    kernel_module = kernel.module
    assert tenon.compile(kernel_module)(out=y)[0] == expected


def test_symbolic_shapes(register):
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            n = T.int64()
            y = R.call_packed("test.shift", x, sinfo_args=(R.Tensor((n, 4), "float32"),))
            return R.nn.relu(y)

    register("test.shift", lambda x: x - np.float32(1))
    program = tenon.compile(Module)
    for n in (1, 5, 300):
        x = RNG.standard_normal((n, 4), dtype=np.float32)
        np.testing.assert_allclose(program(x), np.maximum(x - 1, 0), rtol=1e-6)


def test_names(register):
    register("test.a", lambda: None)
    assert "test.a" in tenon.list_global_func_names()
    with pytest.raises(ValueError, match="`test.a` is registered already; `override=True` replaces it"):
        tenon.register_func("test.a", lambda: None)
    one = register("test.a", lambda: 1, override=True)
    assert tenon.get_global_func("test.a") is one
    tenon.remove_global_func("test.a")
    assert tenon.get_global_func("test.a", allow_missing=True) is None
    with pytest.raises(ValueError, match="no packed function `test.a`"):
        tenon.get_global_func("test.a")
    with pytest.raises(ValueError, match="no packed function `test.a`"):
        tenon.remove_global_func("test.a")
    with pytest.raises(ValueError, match="needs a name"):
        tenon.register_func("", lambda: None)
    with pytest.raises(TypeError, match="expected a function"):
        tenon.register_func("test.a", 3)


def test_as_a_decorator():
    @tenon.register_func("test.decorated")
    def decorated():
        return 1

    @tenon.register_func
    def test_own_name():
        return 2

    assert tenon.get_global_func("test.decorated") is decorated
    assert tenon.get_global_func("test_own_name") is test_own_name
    tenon.remove_global_func("test.decorated")
    tenon.remove_global_func("test_own_name")


def test_a_name_that_is_not_registered():
    with pytest.raises(tenon.CompileError, match="`test.scale`, which is neither registered"):
        tenon.compile(Scaled)


def test_linked_programs_keep_the_function(register):
    first = register("test.scale", lambda x, *_: x)
    alive = weakref.ref(first)
    program = tenon.compile(Scaled)
    register("test.scale", lambda x, *_: x * np.float32(2), override=True)
    x = np.ones((3, 4), np.float32)
    assert (program(x) == 2).all() and (tenon.compile(Scaled)(x) == 4).all()
    tenon.remove_global_func("test.scale")
    assert (program(x) == 2).all()
    del first, program
    gc.collect()
    assert alive() is None


def test_saved_programs_find_it(register, tmp_path):
    register("test.scale", lambda x, *_: x)
    tenon.compile(Scaled).save(tmp_path / "scaled.so")
    x = np.ones((3, 4), np.float32)
    assert (tenon.load(tmp_path / "scaled.so")(x) == 2).all()
    tenon.remove_global_func("test.scale")
    with pytest.raises(tenon.CompileError, match="test.scale"):
        tenon.load(tmp_path / "scaled.so")


def test_the_process_ends_with_functions_registered():
    program = textwrap.dedent(
        """
        import threading
        import numpy as np, tenon

        text = (
            "from tenon.script import ir as I, relax as R\\n@I.ir_module\\nclass M:\\n    @R.function\\n"
            '    def main(x: R.Tensor((6,), "float32")):\\n'
            '        return R.call_packed("f", x, sinfo_args=(R.Tensor((6,), "float32"),))\\n'
        )
        kept = []
        tenon.register_func("f", lambda x: kept.append(x) or x)
        program = tenon.compile(text, threads=2)
        threads = [threading.Thread(target=lambda: program(np.zeros(6, np.float32))) for _ in range(8)]
        for thread in threads:
            thread.start()
        program(np.zeros(6, np.float32))
        print("done")
        """
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(tenon.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
