# SPDX-License-Identifier: Apache-2.0
"""Forms of scripts in Python: modules of classes that were defined before, macros of graphs, defaults of functions."""

import numpy as np
import pytest

import tenon
from tenon.script import ir as I
from tenon.script import relax as R
from tenon.script import tir as T

RNG = np.random.default_rng(0)
FACTOR = 2.0


def same(a, b):
    difference = a.first_difference(b)
    assert difference is None, difference


# ---- I.ir_module(cls) ------------------------------------------------------------------------------


class Kernels:
    @T.prim_func(private=True)
    def scale(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = x[i] * T.float32(FACTOR)

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Kernels
        y = R.call_tir(cls.scale, (x,), out_sinfo=R.Tensor((4,), "float32"))
        return R.nn.relu(y)


def test_a_class_becomes_a_module():
    module = I.ir_module(Kernels)
    assert isinstance(module, tenon.IRModule) and list(module) == ["scale", "main"]
    x = np.array([-1, 0, 1, 2], np.float32)
    np.testing.assert_array_equal(tenon.compile(module)(x), np.maximum(x * 2, 0))
    same(module, I.ir_module(check_well_formed=False)(Kernels))


def test_it_is_what_the_decorator_makes():
    class Module:
        I.module_attrs({"origin": "here"})

        @T.prim_func
        def double(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
            for i in range(4):
                y[i] = x[i] * T.float32(2)

        @T.prim_func
        def main(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
            T.call_tir(Module.double, x, y)

    called = I.ir_module(Module)

    @I.ir_module
    class Module:
        I.module_attrs({"origin": "here"})

        @T.prim_func
        def double(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
            for i in range(4):
                y[i] = x[i] * T.float32(2)

        @T.prim_func
        def main(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
            T.call_tir(Module.double, x, y)

    assert called.attrs["origin"] == "here"
    same(called, Module)


def test_names_around_the_class():
    def make(n):
        class Sized:
            @T.prim_func
            def main(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
                for i in range(4):
                    y[i] = x[i] + T.float32(n)

        return Sized

    x = RNG.standard_normal(4, dtype=np.float32)
    for n in (1, 5):
        np.testing.assert_array_equal(tenon.compile(I.ir_module(make(n)))(x), x + np.float32(n))


def test_functions_of_a_class_that_is_none():
    class Loose:
        @T.prim_func
        def double(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
            for i in range(4):
                y[i] = x[i] * T.float32(2)

        @T.prim_func
        def twice(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
            T.call_tir(Loose.double, x, y)

    assert isinstance(Loose.double, tenon.Function)  # alone it means something
    with pytest.raises(TypeError, match=r"`.*Loose.twice` calls functions of its class.*`I.ir_module\(Loose\)`"):
        Loose.twice


def test_errors_point_into_the_class():
    class Wrong:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            y = R.nn.rilu(x)
            return Wrong.main(y)

    with pytest.raises(tenon.CompileError, match="R.nn.rilu") as caught:
        I.ir_module(Wrong)
    line = test_errors_point_into_the_class.__code__.co_firstlineno + 4
    assert (caught.value.place.file, caught.value.place.line) == (__file__, line)


@pytest.mark.parametrize("given", [3, "Module", lambda: None])
def test_what_is_no_class(given):
    with pytest.raises(TypeError, match="is of a class"):
        I.ir_module(given)


def test_a_class_without_functions():
    class Nothing:
        n = 4

    with pytest.raises(tenon.CompileError, match="no module|I.ir_module"):
        I.ir_module(Nothing)


def test_a_rewriter_of_a_class():
    class Square:
        @R.function
        def pattern(x: R.Tensor):
            return R.sqrt(R.multiply(x, x))

        @R.function
        def replacement(x: R.Tensor):
            return R.abs(x)

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            return R.sqrt(R.multiply(x, x))

    assert "R.abs(x)" in R.rewriter(Square)(Module).script()


# ---- R.macro ---------------------------------------------------------------------------------------


@R.macro
def gated(x, w, activation=R.sigmoid):
    """Two uses of one product."""
    product = R.matmul(x, w)
    return R.multiply(product, activation(product))


def operators(function):
    return [line.split(" = R.")[1].split("(")[0] for line in function.script().splitlines() if " = R." in line]


def test_a_macro_stands_where_it_is_called():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32")):
            with R.dataflow():
                a = gated(x, w)
                b = gated(a, w, activation=R.tanh)
                R.output(b)
            return b

    assert operators(Module["main"]) == ["matmul", "sigmoid", "multiply", "matmul", "tanh", "multiply"]
    x, w = (RNG.standard_normal((4, 4), dtype=np.float32) for _ in range(2))
    a = x @ w
    a = a / (1 + np.exp(-a))
    b = a @ w
    np.testing.assert_allclose(tenon.compile(Module)(x, w), b * np.tanh(b), rtol=1e-4, atol=1e-5)


def test_its_names_are_those_around_it():
    def macros(dtype):
        @R.macro
        def own(x):
            return R.astype(x, dtype)

        @R.macro(hygienic=False)
        def callers(x):
            return R.astype(x, dtype)

        return own, callers

    own, callers = macros("float16")

    @R.function
    def f(x: R.Tensor((4,), "float32")):
        dtype = "float64"
        return (own(x), callers(x))  # noqa: F841

    a, b = f(RNG.standard_normal(4, dtype=np.float32))
    assert (a.dtype, b.dtype) == ("float16", "float64")


def test_a_macro_with_effects_and_several_results():
    seen = []
    tenon.register_func("test.seen", lambda x: seen.append(x.copy()), override=True)

    @R.macro
    def halves(x):
        R.call_packed("test.seen", x, sinfo_args=R.Object)
        first, second = R.split(x, 2)
        return second, first

    @R.function(pure=False)
    def f(x: R.Tensor((4,), "float32")):
        a, b = halves(R.exp(x))
        return R.concat((a, b))

    assert operators(f) == ["exp", "call_packed", "split", "concat"]
    x = RNG.standard_normal(4, dtype=np.float32)
    np.testing.assert_allclose(f(x), np.exp(np.concatenate([x[2:], x[:2]])), rtol=1e-6)
    np.testing.assert_allclose(seen, [np.exp(x)], rtol=1e-6)
    tenon.remove_global_func("test.seen")


def test_a_macro_that_is_wrong():
    @R.macro
    def wrong(x):
        return R.nn.rilu(x)

    with pytest.raises(tenon.CompileError, match="R.nn.rilu") as caught:

        @R.function
        def f(x: R.Tensor((4,), "float32")):
            return wrong(x)

    assert caught.value.place.line == test_a_macro_that_is_wrong.__code__.co_firstlineno + 3
    assert any("called here" in note.message for note in caught.value.notes)
    with pytest.raises(TypeError, match="macro `wrong` is called outside of a graph function"):
        wrong(3)


def test_a_macro_of_kernels_is_none_of_graphs():
    @T.macro
    def store(x):
        x[0] = T.float32(1)

    with pytest.raises(tenon.CompileError, match="cannot be assigned to"):

        @R.function
        def f(x: R.Tensor((4,), "float32")):
            return store(x)


# ---- functions of Python ---------------------------------------------------------------------------


def test_what_a_function_of_python_uses_twice_is_computed_once():
    def gate(x):
        y = R.exp(x)
        y += y
        return R.multiply(y, x)

    @R.function
    def f(x: R.Tensor((4,), "float32")):
        return gate(R.tanh(x))

    assert operators(f) == ["tanh", "exp", "add", "multiply"]


def test_defaults_are_those_of_the_definition():
    scales = []
    for factor in (1.0, 2.0, 3.0):
        scales.append(lambda x, *, by=factor: x * T.float32(by))
    factor = 7.0

    def shift(x, by=factor, *more):
        return x + T.float32(by + len(more))

    factor = 8.0  # later

    @T.prim_func
    def f(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        y[0] = scales[0](x[0])
        y[1] = scales[2](x[1])
        y[2] = scales[1](shift(x[2]), by=4.0)
        y[3] = shift(x[3], 1.0, 2, 3)

    x = RNG.standard_normal(4, dtype=np.float32)
    np.testing.assert_allclose(f(x), [x[0], x[1] * 3, (x[2] + 7) * 4, x[3] + 3], rtol=1e-6)


def test_defaults_in_a_text():
    @T.prim_func
    def f(x: T.Buffer((2,), "float32"), y: T.Buffer((2,), "float32")):
        n = 3
        scale = lambda v, by=n, *more: v * T.float32(by + len(more))  # noqa: E731
        y[0] = scale(x[0])
        y[1] = scale(x[1], 5, 6, 7)

    x = RNG.standard_normal(2, dtype=np.float32)
    np.testing.assert_allclose(f(x), x * np.array([3, 7], np.float32), rtol=1e-6)


def test_default_of_a_macro():
    value = 4.0

    @T.macro
    def fill(x, i, by=value):
        x[i] = T.float32(by)

    value = 9.0

    @T.prim_func
    def f(y: T.Buffer((2,), "float32")):
        fill(y, 0)
        fill(y, 1, by=1.0)

    np.testing.assert_array_equal(f(), [4, 1])
