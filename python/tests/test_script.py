# SPDX-License-Identifier: Apache-2.0
"""TVMScript in Python's files: what is captured, what is refused, and that it is what the command line reads."""

import dataclasses
import enum
import importlib
import linecache
import math
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import tenon
from tenon.script import ir as I
from tenon.script import relax as R
from tenon.script import tir as T

ROWS = 4
SCALE = 0.5
SHAPE = (4, 8)
DTYPE = "float32"


def same(a, b):
    difference = a.first_difference(b)
    assert difference is None, difference


def text(script):
    return tenon.load("from tenon.script import ir as I, relax as R, tir as T\n" + textwrap.dedent(script))


@T.prim_func
def twice(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 8):
        with T.block("twice"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)


def test_module_is_what_its_text_is():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4, 8), "float32")) -> R.Tensor((4, 8), "float32"):
            with R.dataflow():
                y = R.nn.relu(x)
                R.output(y)
            return y

    assert isinstance(Module, tenon.IRModule)
    same(
        Module,
        text("""
        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((4, 8), "float32")) -> R.Tensor((4, 8), "float32"):
                with R.dataflow():
                    y = R.nn.relu(x)
                    R.output(y)
                return y
        """),
    )


def test_module_runs():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            return R.nn.relu(x)

    x = np.array([[-1, 2, -3, 4]], np.float32)
    np.testing.assert_array_equal(tenon.compile(Module)(x), np.maximum(x, 0))


def test_functions_alone():
    assert isinstance(twice, tenon.Function)
    assert (twice.name, twice.kind) == ("twice", "prim_func")

    @R.function
    def relu(x: R.Tensor((2,), "float32")):
        return R.nn.relu(x)

    assert relu.kind == "graph"
    assert "R.nn.relu" in relu.script()


def test_function_with_options():
    @R.function(private=True, pure=False)
    def f(x: R.Tensor((2,), "float32")):
        return x

    assert "private=True" in f.script() and "pure=False" in f.script()


def test_numbers_strings_and_tuples():
    @T.prim_func
    def f(A: T.Buffer(SHAPE, DTYPE)):
        for i, j in T.grid(ROWS, SHAPE[1]):
            A[i, j] = A[i, j] * SCALE

    same(
        f.module,
        text("""
        @T.prim_func
        def f(A: T.Buffer((4, 8), "float32")):
            for i, j in T.grid(4, 8):
                A[i, j] = A[i, j] * T.float32(0.5)
        """),
    )


def make(n, dtype="float32", activation=None):
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((n, 2 * n), dtype)) -> R.Tensor((n, 2 * n), dtype):
            y = R.add(x, x)
            return y

    return Module


@pytest.mark.parametrize(("n", "dtype"), [(2, "float32"), (3, "float64"), (5, "int8")])
def test_functions_that_make_modules(n, dtype):
    module = make(n, dtype)
    assert f'R.Tensor(({n}, {2 * n}), dtype="{dtype}")' in module.script()


def test_names_of_annotations_alone():
    width = 3  # in no closure: only the annotation names it

    @T.prim_func
    def f(A: T.Buffer((width,), "float32")):
        A[0] = 1.0

    assert "(3,)" in f.script()


def test_names_of_two_functions_around():
    def outer(n):
        def inner():
            @R.function
            def f(x: R.Tensor((n,), "float32")):
                return R.add(x, R.const(np.full(n, n), "float32"))

            return f

        return inner()

    assert "(6,)" in outer(6).script()


def test_dtypes():
    kinds = [np.float32, np.dtype("float32"), "float32", T.float32]
    functions = []
    for kind in kinds:

        @T.prim_func
        def f(A: T.Buffer((4,), kind)):
            A[0] = T.Cast(kind, 1)

        functions.append(f)
    assert all(f == functions[0] for f in functions)


def test_arrays_are_constants():
    weight = np.arange(8, dtype=np.float32).reshape(2, 4)

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((3, weight.shape[0]), "float32")):
            y = R.matmul(x, weight)
            return y

    x = np.ones((3, 2), np.float32)
    np.testing.assert_allclose(tenon.compile(Module)(x), x @ weight)


def test_scalars_of_numpy_and_values_of_t():
    n = np.int64(5)
    factor = np.float32(0.25)
    half = T.float32(0.5)

    @T.prim_func
    def f(A: T.Buffer((n,), "float32")):
        A[0] = A[1] * factor
        A[1] = half

    script = f.script()
    assert "(5,)" in script and "0.25" in script and "0.5" in script


def test_table_in_a_kernel():
    taps = np.array([1, 2, 1], np.int32)

    @T.prim_func
    def blur(A: T.Buffer((8,), "int32"), B: T.Buffer((6,), "int32")):
        for i in range(6):
            B[i] = sum([A[i + k] * taps[k] for k in range(len(taps.shape) * 3)])

    assert "A[i + 1] * 2" in blur.script()


def test_prim_func_of_around_comes_along():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4, 8), "float32")):
            y = R.call_tir(twice, (x,), out_sinfo=R.Tensor((4, 8), "float32"))
            return y

    assert list(Module) == ["main", "twice"]
    x = np.ones((4, 8), np.float32)
    np.testing.assert_array_equal(tenon.compile(Module)(x), 2 * x)


def test_prim_func_under_another_name():
    @I.ir_module
    class Module:
        double = twice

        @R.function
        def main(x: R.Tensor((4, 8), "float32")):
            cls = Module
            y = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((4, 8), "float32"))
            return y

    assert sorted(Module) == ["double", "main"]


def test_functions_of_another_module():
    @I.ir_module
    class Kernels:
        @T.prim_func
        def step(x: T.float32) -> T.float32:
            return x + T.float32(1)

        @T.prim_func
        def add_one(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            for i in range(4):
                B[i] = cls.step(A[i])

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            return R.call_tir(Kernels.add_one, (x,), out_sinfo=R.Tensor((4,), "float32"))

    assert sorted(Module) == ["add_one", "main", "step"]


def test_objects_have_attributes_and_calls():
    class Kind(enum.IntEnum):
        SMALL = 4

    @dataclasses.dataclass
    class Config:
        width: int
        names: dict

        def rows(self, more=0):
            return self.width // 2 + more

    config = Config(8, {"dtype": "float32"})

    @T.prim_func
    def f(A: T.Buffer((config.width, config.rows(), config.rows(more=1), Kind.SMALL), config.names["dtype"])):
        A[0, 0, 0, 0] = math.sqrt(16)

    assert "(8, 4, 5, 4)" in f.script() and "4.0" in f.script()


def affine(x, a, b=1):
    return x * a + b


def test_functions_of_python_meet_expressions():
    @T.prim_func
    def f(A: T.Buffer((affine(3, 2),), "int32")):
        A[0] = affine(A[1], 5)

    same(
        f.module,
        text("""
        @T.prim_func
        def f(A: T.Buffer((7,), "int32")):
            A[0] = A[1] * 5 + 1
        """),
    )


FACTOR = 3


@T.macro
def store(buffer, at, value):
    buffer[at] = value * FACTOR


def test_macros():
    @T.macro(hygienic=False)
    def clear(buffer):
        for k in range(n):
            buffer[k] = 0

    @T.prim_func
    def f(A: T.Buffer((4,), "int32")):
        n = T.meta_var(4)
        clear(A)
        store(A, 1, A[0])

    assert "A[0] * 3" in f.script() and "range(4)" in f.script()
    with pytest.raises(TypeError, match="macro `store` is called outside"):
        store(1, 2, 3)


def test_macro_with_an_error():
    with pytest.raises(tenon.CompileError) as caught:

        @T.macro
        def wrong(buffer):
            try:
                buffer[0] = 1
            finally:
                pass

    assert caught.value.place.file == __file__


def test_rewriter():
    @R.rewriter
    class Twice:
        @R.function
        def pattern(x: R.Tensor(("n",), "float32")):
            return R.add(x, x)

        @R.function
        def replacement(x: R.Tensor(("n",), "float32")):
            return R.multiply(x, R.const(2, "float32"))

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            y = R.add(x, x)
            return y

    script = Twice(Module).script()
    assert "R.multiply" in script and "R.add" not in script


def test_extern_function():
    @I.ir_module
    class Module:
        lib = R.ExternFunc("my_gemm")
        I.module_attrs({"version": ROWS})

        @T.extern_func
        def scale(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
            T.func_attr({"effects": {"y": "out"}})

    assert Module.attrs["version"] == 4
    assert sorted(Module) == ["lib", "scale"]


def line_of(error, word):
    place = error.value.place
    line = linecache.getline(place.file, place.line)
    assert line[place.column - 1 :].startswith(word), (place, line)
    return place


def test_errors_point_at_the_file():
    with pytest.raises(tenon.CompileError) as caught:

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            for i in range(4):
                A[i] = missing[i]

    place = line_of(caught, "missing")
    assert place.file == __file__
    assert "`missing` is not defined" in str(caught.value)
    assert "A[i] = missing[i]" in str(caught.value)


def test_errors_of_modules_point_at_the_file():
    with pytest.raises(tenon.CompileError) as caught:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((4, 5), "float32")):
                return R.matmul(x, y)

    line_of(caught, "R.matmul")
    assert caught.value.code == "TN0101"


def test_every_error_is_reported():
    with pytest.raises(tenon.CompileError) as caught:

        @I.ir_module
        class Module:
            @R.function
            def f(x: R.Tensor((2,), "float32")):
                return R.no_such_operator(x)

            @R.function
            def g(x: R.Tensor((2,), "float32")):
                return undefined

    assert len(caught.value.diagnostics) == 2


def test_unverified_module():
    @I.ir_module(check_well_formed=False)
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            return x

    assert len(Module) == 1


def test_value_that_no_script_has():
    generator = np.random.default_rng(0)
    with pytest.raises(tenon.CompileError, match="a Python object of type `Generator`"):

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            A[0] = generator


@pytest.mark.parametrize(
    "index, says",
    [
        (4, "index 4 of a dimension of 4"),
        (-5, "index -5 of a dimension of 4"),
        ((0, 0), "a constant of 1 dimensions is indexed with 2"),
    ],
)
def test_index_of_a_captured_array(index, says):
    table = np.arange(4, dtype=np.float32)
    with pytest.raises(tenon.CompileError, match=says):

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            A[0] = table[index]


def test_item_that_a_captured_dict_lacks():
    names = {"dtype": "float32"}
    with pytest.raises(tenon.CompileError, match="a dict cannot be indexed so"):

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            A[0] = names["rows"]


def test_function_of_python_without_source():
    call = len
    with pytest.raises(tenon.CompileError, match="known only when the program runs"):

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            A[0] = call(A[1])


def test_exceptions_of_python_pass_through():
    def fails():
        raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError, match="on purpose"):

        @T.prim_func
        def f(A: T.Buffer((fails(),), "float32")):
            A[0] = 1.0


def test_no_source():
    code = "from tenon.script import tir as T\n@T.prim_func\ndef f(A: T.Buffer((4,), 'int8')):\n    A[0] = 1\n"
    with pytest.raises(OSError, match="the source of `f` is not to be had"):
        exec(compile(code, "<nowhere>", "exec"), {"__name__": "nowhere"})


def test_source_of_a_cell():
    # As IPython and doctest keep the text of what they run.
    code = "N = 3\n@T.prim_func\ndef f(A: T.Buffer((N,), 'int8')):\n    A[0] = 1\n"
    name = "<ipython-input-1>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    names = {"T": T, "__name__": "cell"}
    exec(compile(code, name, "exec"), names)
    assert "(3,)" in names["f"].script()


def test_not_run_as_python():
    with pytest.raises(TypeError, match="outside of the text of a script"):
        for _ in T.grid(4, 4):
            pass
    with pytest.raises(AttributeError, match="no_such_word"):
        T.no_such_word
    with pytest.raises(AttributeError, match="no_such_operator"):
        R.nn.no_such_operator
    with pytest.raises(TypeError, match="is of a class"):
        I.ir_module(3)


def test_words_have_documentation():
    assert "strides" in R.nn.conv2d.__doc__
    assert "relu" in dir(R.nn) or "nn" in dir(R)
    assert "grid" in dir(T)


def test_other_imports(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(
        textwrap.dedent("""
        from tenon.script import ir_module
        from tenon.script.relax import function
        from tenon.script import relax
        import tenon.script as ts
        import tenon

        @ir_module
        class A:
            @relax.function
            def main(x: relax.Tensor((4,), "float32")):
                y = relax.nn.relu(x)
                return y

        @ts.ir.ir_module
        class B:
            @ts.relax.function
            def main(x: ts.relax.Tensor((4,), "float32")):
                y = ts.relax.nn.relu(x)
                return y

        assert A == B
        """)
    )
    subprocess.run([sys.executable, path], check=True)


def test_decorators_of_others_around():
    def passed(cls):
        return cls

    @passed
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            return x

    assert list(Module) == ["main"]


def test_pickle_and_equality_of_functions():
    again = make(3)
    assert again == make(3) and again != make(4)


def test_stubs_are_up_to_date():
    from tenon.script import _stubs

    folder = Path(_stubs.__file__).resolve().parent
    for language, name in {"I": "ir", "R": "relax", "T": "tir"}.items():
        stub = (folder / f"{name}.pyi").read_text()
        assert stub == _stubs.stub(language), "write them anew: python -m tenon.script._stubs"


def test_lambdas_meet_expressions():
    scale = 3
    relu, twice = lambda x: T.max(x, 0), lambda x: x * 2 + scale

    @T.prim_func
    def f(A: T.Buffer((4,), "int32")):
        A[0] = relu(A[1])
        A[1] = twice(A[2])

    assert "T.max(A[1], 0)" in f.script() and "A[2] * 2 + 3" in f.script()


class TestInAClassOfTests:
    size = 6

    @T.prim_func
    def kernel(A: T.Buffer((size,), "float32")):
        A[0] = 1.0

    def test_function_of_a_class_that_is_no_module(self):
        assert isinstance(self.kernel, tenon.Function) and "(6,)" in self.kernel.script()


def test_functions_pickle_with_what_they_call():
    @I.ir_module
    class Kernels:
        @T.prim_func
        def step(x: T.float32) -> T.float32:
            return x + T.float32(1)

        @T.prim_func
        def add_one(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            for i in range(4):
                B[i] = cls.step(A[i])

    again = pickle.loads(pickle.dumps(Kernels["add_one"]))
    assert again == Kernels["add_one"] and sorted(again.module) == ["add_one", "step"]
    module = tenon.IRModule()
    module["f"] = again
    assert sorted(module) == ["f", "step"]


def test_doctest(tmp_path):
    path = tmp_path / "documented.py"
    path.write_text(
        '"""\n'
        ">>> from tenon.script import tir as T\n"
        ">>> n = 3\n"
        ">>> @T.prim_func\n"
        "... def f(A: T.Buffer((n,), 'int8')):\n"
        "...     A[0] = 1\n"
        ">>> '(3,)' in f.script()\n"
        "True\n"
        '"""\n'
    )
    done = subprocess.run([sys.executable, "-m", "doctest", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_file_that_changed_is_read_again(tmp_path, monkeypatch):
    path = tmp_path / "changing.py"
    monkeypatch.syspath_prepend(tmp_path)
    text = "from tenon.script import tir as T\n@T.prim_func\ndef f(A: T.Buffer((4,), 'int8')):\n    A[0] = {}\n"
    scripts = []
    for value, stamp in [(1, 1_000_000_000), (22, 1_000_000_100)]:
        path.write_text(text.format(value))
        os.utime(path, (stamp, stamp))
        module = importlib.reload(sys.modules["changing"]) if "changing" in sys.modules else importlib.import_module("changing")
        scripts.append(module.f.script())
    assert "1" in scripts[0].splitlines()[-1] and "22" in scripts[1]
    del sys.modules["changing"]


def test_errors_in_macros_and_functions_point_at_them():
    @T.macro
    def wrong(buffer):
        buffer[0, 0] = 1

    def difference(x):
        return x - undefined  # noqa: F821

    with pytest.raises(tenon.CompileError) as caught:

        @T.prim_func
        def f(A: T.Buffer((4,), "int32")):
            wrong(A)

    line_of(caught, "buffer[0, 0]")
    with pytest.raises(tenon.CompileError) as caught:

        @T.prim_func
        def g(A: T.Buffer((4,), "int32")):
            A[0] = difference(A[1])

    line_of(caught, "undefined")
    note = caught.value.notes[0]
    assert "called here" in note.message and note.place.line > caught.value.place.line
