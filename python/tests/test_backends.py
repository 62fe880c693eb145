# SPDX-License-Identifier: Apache-2.0
"""Back ends whose hooks are functions of Python."""

import gc
import os
import subprocess
import threading
import traceback
import weakref

import numpy as np
import pytest

import tenon
from tenon.backends import OMIT, CSource, HostFunction, ObjectFile, Refused, Symbol
from tenon.dpl import is_const, is_op, wildcard
from tenon.script import ir as I
from tenon.script import relax as R
from tenon.script import tir as T

RNG = np.random.default_rng(0)


@pytest.fixture
def toy():
    """Registers back end `toy` for the time of a test."""

    def register(**options):
        tenon.register_backend("toy", **{"patterns": RELU, **options})

    yield register
    if "toy" in tenon.backends._known:
        tenon.unregister_backend("toy")


def dense_relu():
    x, w = wildcard(), wildcard()
    return is_op("nn.relu")(is_op("matmul")(x, w))


RELU = 'relu = is_op("relax.nn.relu")(wildcard())'
DENSE = [("dense_relu", dense_relu())]


@I.ir_module
class Net:
    @R.function
    def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 3), "float32")):
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.nn.relu(y)
            out = R.multiply(z, R.const(2.0, "float32"))
            R.output(out)
        return out


def inputs():
    return RNG.standard_normal((4, 8), dtype=np.float32), RNG.standard_normal((8, 3), dtype=np.float32)


def expected(x, w):
    return np.maximum(x @ w, 0) * 2


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


# ---- what hooks are asked ---------------------------------------------------------------------------


def test_a_function_runs(toy):
    calls = []

    def generate(match):
        def run(x, w):
            calls.append((x.shape, w.shape))
            return np.maximum(x @ w, 0)

        return run

    toy(patterns=DENSE, generate=generate)
    x, w = inputs()
    close(tenon.compile(Net, libs="toy")(x, w), expected(x, w))
    assert calls == [((4, 8), (8, 3))]


def test_a_match(toy):
    seen = []

    def generate(match):
        seen.append(match)
        return lambda x, w: np.maximum(x @ w, 0)

    toy(patterns=DENSE, generate=generate)
    tenon.compile(Net, libs="toy")
    (match,) = seen
    gc.collect()
    assert match.pattern == "toy.dense_relu" and match.symbol.isidentifier() and "llvm" in match.target
    assert [(t.dtype, t.shape, t.data) for t in match.inputs] == [("float32", (4, 8), None), ("float32", (8, 3), None)]
    assert [t.shape for t in match.outputs] == [(4, 3)]
    assert [op.name for op in match.operators] == ["relax.matmul", "relax.nn.relu"]
    matmul, relu = match.operators
    assert [(o.kind, o.index) for o in matmul.operands] == [("input", 0), ("input", 1)]
    assert [(o.kind, o.index) for o in relu.operands] == [("operator", 0)]
    assert [(o.kind, o.index) for o in match.output_sources] == [("operator", 1)]
    assert "R.matmul" in match.text and match.function.kind == "graph" and match.symbols == []
    assert "@T.prim_func" in match.choose(0)
    close(match.function(*inputs()).shape, (4, 3))


def test_a_class(toy):
    @tenon.backend("toy", patterns=DENSE, priority=2, version="7")
    class Toy:
        def __init__(self):
            self.checked = 0

        def check(self, match):
            self.checked += 1
            return match.inputs[0].shape == (4, 8)

        def generate(self, match):
            assert self.checked > 0
            return lambda x, w: np.maximum(x @ w, 0)

    x, w = inputs()
    close(tenon.compile(Net, libs=["toy"], require_offload="100%")(x, w), expected(x, w))


def test_a_decorated_function(toy):
    @tenon.backend("toy", patterns=RELU)
    def generate(match):
        return lambda x: np.maximum(x, 0)

    x, w = inputs()
    close(tenon.compile(Net, libs="toy")(x, w), expected(x, w))


@pytest.mark.parametrize(
    "answer, words",
    [(False, "its check refused it"), ("not today", "not today"), (Refused("rank", "too flat"), "too flat")],
    ids=["false", "words", "refused"],
)
def test_check_refuses(toy, answer, words):
    def check(match):
        if isinstance(answer, Refused):
            raise answer
        return answer

    toy(check=check, generate=lambda match: pytest.fail("it was refused"))
    program = tenon.compile(Net, libs="toy")
    x, w = inputs()
    close(program(x, w), expected(x, w))
    assert any(words in remark.detail for remark in program.remarks)


def test_options_and_remarks(toy):
    def generate(match):
        match.log(f"mode {match.options['mode']}")
        return lambda x: np.maximum(x, 0)

    toy(generate=generate)
    program = tenon.compile(Net, libs="toy", backend_option=["toy.mode=fast"])
    assert [r.detail for r in program.remarks if r.pass_name == "Plugin"] == ["mode fast"]


def test_cost_decides(toy):
    taken = []

    def make(name, seconds):
        def generate(match):
            taken.append(name)
            return lambda x: np.maximum(x, 0)

        tenon.register_backend(name, patterns=RELU, cost=lambda match: seconds, generate=generate)

    make("slow_toy", 1e-3)
    make("fast_toy", 1e-9)
    try:
        tenon.compile(Net, libs=["slow_toy", "fast_toy"])
    finally:
        tenon.unregister_backend("slow_toy")
        tenon.unregister_backend("fast_toy")
    assert taken == ["fast_toy"]


def test_by_hand(toy):
    toy(generate=lambda match: lambda x: np.maximum(x, 0) + np.float32(1))
    x, w = inputs()
    close(tenon.compile(Net, libs="toy", place={"z": "toy"})(x, w), (np.maximum(x @ w, 0) + 1) * 2)
    close(tenon.compile(Net, libs="toy", place={"z": "none"})(x, w), expected(x, w))


WEIGHT = RNG.standard_normal((8, 3), dtype=np.float32)


@I.ir_module
class Weighted:
    @R.function
    def main(x: R.Tensor((4, 8), "float32")):
        with R.dataflow():
            y = R.matmul(x, WEIGHT)
            z = R.nn.relu(y)
            R.output(z)
        return z


CONST_DENSE = [("dense", is_op("matmul")(wildcard(), is_const()))]


def test_pack(toy):
    def pack(match, i):
        assert match.inputs[i].data.shape == (8, 3)
        return np.ascontiguousarray(match.inputs[i].data.T)

    def run(x, packed):
        assert packed.dtype == np.uint8
        return x @ packed.view(np.float32).reshape(3, 8).T

    toy(patterns=CONST_DENSE, pack=pack, generate=lambda match: run)
    x, _ = inputs()
    close(tenon.compile(Weighted, libs="toy")(x), np.maximum(x @ WEIGHT, 0))


def test_pack_omits_and_keeps(toy):
    answers = {}

    def generate(match):
        weight = match.inputs[1].data.copy()
        return (lambda x: x @ weight) if answers["pack"] is OMIT else (lambda x, w: x @ w)

    toy(patterns=CONST_DENSE, pack=lambda match, i: answers["pack"], generate=generate)
    x, _ = inputs()
    for answers["pack"] in (OMIT, None):
        close(tenon.compile(Weighted, libs="toy")(x), np.maximum(x @ WEIGHT, 0))


def test_scratch(toy):
    def run(x, scratch):
        assert scratch.shape == (256,) and scratch.dtype == np.uint8 and scratch.flags.writeable
        assert scratch.ctypes.data % 64 == 0
        room = scratch.view(np.float32)[: x.size].reshape(x.shape)
        return np.maximum(x, 0, out=room)

    toy(scratch=lambda match: 256, generate=lambda match: run)
    x, w = inputs()
    program = tenon.compile(Net, libs="toy")
    close(program(x, w), expected(x, w))
    assert program.memory_plan.peak >= 256


def test_destination(toy):
    def run(x, out):
        np.maximum(x, 0, out=out)

    toy(generate=lambda match: HostFunction(run, destination=True))
    x, w = inputs()
    close(tenon.compile(Net, libs="toy")(x, w), expected(x, w))


def test_symbolic_shapes(toy):
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 3), "float32")):
            n = T.int64()
            with R.dataflow():
                y = R.nn.relu(x)
                R.output(y)
            return y

    seen = []

    def generate(match):
        seen.append((match.symbols, match.inputs[0].shape))

        def run(x, n):
            assert x.shape == (n, 3)
            return np.maximum(x, 0)

        return run

    toy(generate=generate, takes_symbolic_shapes=True)
    program = tenon.compile(Module, libs="toy")
    assert seen == [(["n"], ("n", 3))]
    for n in (1, 7):
        x = RNG.standard_normal((n, 3), dtype=np.float32)
        close(program(x), np.maximum(x, 0))
    toy(generate=generate, override=True)
    assert any(r.reason == "symbolic" for r in tenon.compile(Module, libs="toy").remarks)


def test_regions(toy):
    seen = []

    def generate(match):
        seen.append([(op.name, op.part.pattern) for op in match.operators])
        return lambda x, w: np.maximum(x @ w, 0)

    patterns = [("dense", is_op("matmul")(wildcard(), wildcard())), ("relu", is_op("nn.relu")(wildcard()))]
    toy(patterns=patterns, generate=generate, unit="region")
    x, w = inputs()
    close(tenon.compile(Net, libs="toy")(x, w), expected(x, w))
    assert seen == [[("toy.dense", "toy.dense"), ("toy.relu", "toy.relu")]]


def test_annotated(toy):
    x, w = wildcard(), wildcard()
    dense = is_op("matmul")(x, w)
    seen = []

    def generate(match):
        seen.append({name: (o.kind, o.index) for name, o in match.annotated.items()})
        return lambda x, w: np.maximum(x @ w, 0)

    toy(patterns=[("dense_relu", is_op("nn.relu")(dense), {"dense": dense, "weight": w})], generate=generate)
    tenon.compile(Net, libs="toy")
    assert seen == [{"dense": ("operator", 0), "weight": ("input", 1)}]


def test_a_check_of_the_pattern_comes_first(toy):
    order = []
    patterns = [("relu", is_op("nn.relu")(wildcard()), {}, lambda match: order.append("pattern") or True)]
    toy(patterns=patterns, check=lambda match: order.append("hook"), generate=lambda match: lambda x: np.maximum(x, 0))
    tenon.compile(Net, libs="toy")
    assert order[:2] == ["pattern", "hook"]


def test_several_outputs(toy):
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4, 6), "float32")):
            with R.dataflow():
                y = R.split(x, 2, axis=1)
                a = R.nn.relu(y[0])
                b = R.exp(y[1])
                R.output(a, b)
            return a, b

    patterns = [("split", is_op("split")(wildcard()))]
    toy(patterns=patterns, generate=lambda match: lambda x: (x[:, :3], x[:, 3:]))
    x = RNG.standard_normal((4, 6), dtype=np.float32)
    a, b = tenon.compile(Module, libs="toy")(x)
    close(a, np.maximum(x[:, :3], 0))
    close(b, np.exp(x[:, 3:]))


# ---- what generate answers --------------------------------------------------------------------------


def test_c_source(toy):
    def generate(match):
        n = int(np.prod(match.inputs[0].shape))
        body = f"int32_t {match.symbol}(const float* x, float* y) {{ for (int i = 0; i < {n}; ++i) y[i] = larger(x[i], 0); return 0; }}"
        prelude = "#include <stdint.h>\nstatic float larger(float a, float b) { return a > b ? a : b; }"
        return CSource(body, prelude=prelude, link=["m"])

    toy(generate=generate)
    x, w = inputs()
    program = tenon.compile(Net, libs="toy")
    close(program(x, w), expected(x, w))


def test_an_object_file(toy, tmp_path):
    def generate(match):
        source = tmp_path / "f.c"
        source.write_text(
            f"#include <stdint.h>\nint32_t {match.symbol}(const float* x, float* y) "
            "{ for (int i = 0; i < 12; ++i) y[i] = x[i] > 0 ? x[i] : 0; return 0; }"
        )
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-fPIC", "-c", source, "-o", tmp_path / "f.o"], check=True)
        return ObjectFile(tmp_path / "f.o")

    toy(generate=generate)
    x, w = inputs()
    program = tenon.compile(Net, libs="toy")
    close(program(x, w), expected(x, w))
    program.save(tmp_path / "net.so")
    close(tenon.load(tmp_path / "net.so")(x, w), expected(x, w))


@pytest.mark.parametrize("answer", [lambda name: name, Symbol], ids=["str", "Symbol"])
def test_a_symbol_of_a_library(toy, tmp_path, answer):
    library = tmp_path / "lib.c"
    library.write_text(
        "#include <stdint.h>\nint32_t relu12(const float* x, float* y) { for (int i = 0; i < 12; ++i) y[i] = x[i] > 0 ? x[i] : 0; return 0; }"
    )
    toy(generate=lambda match: answer("relu12"))
    x, w = inputs()
    close(tenon.compile(Net, libs="toy", link=library)(x, w), expected(x, w))


@T.prim_func
def relu_kernel(x: T.Buffer((4, 3), "float32"), y: T.Buffer((4, 3), "float32")):
    for i, j in T.grid(4, 3):
        with T.block("relu"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.max(x[vi, vj], T.float32(0))


def test_a_prim_func(toy):
    toy(generate=lambda match: relu_kernel)
    x, w = inputs()
    close(tenon.compile(Net, libs="toy")(x, w), expected(x, w))


def test_a_module_of_prim_funcs(toy):
    def generate(match):
        return tenon.load(relu_kernel.module.script().replace("relu_kernel", match.symbol))

    toy(generate=generate)
    x, w = inputs()
    close(tenon.compile(Net, libs="toy")(x, w), expected(x, w))


def test_a_prim_func_of_another_signature(toy):
    toy(generate=lambda match: my_add)
    with pytest.raises(tenon.CompileError, match="gave a module whose .* has 3 parameters; expected 2"):
        tenon.compile(Net, libs="toy")


@T.prim_func
def my_add(x: T.Buffer((4, 3), "float32"), b: T.Buffer((4, 3), "float32"), y: T.Buffer((4, 3), "float32")):
    for i, j in T.grid(4, 3):
        y[i, j] = x[i, j] + b[i, j]


@pytest.mark.parametrize(
    "answer, error, words",
    [
        (3, tenon.CallbackError, "`generate` answered with 3; expected a function"),
        ("no symbol", tenon.CompileError, "emitted TENON_SYMBOL `no symbol`; expected a C identifier"),
        (CSource("int f;"), tenon.CompileError, "emitted TENON_C that defines no function"),
        (ObjectFile(b"\x7fELF"), tenon.CompileError, "emitted TENON_OBJECT of 4 bytes"),
        (Symbol("f", link="../x.so"), tenon.CompileError, "expected a name that is found on every host"),
        (None, tenon.CallbackError, "`generate` answered with None"),
    ],
)
def test_answers_that_cannot_be(toy, answer, error, words):
    toy(generate=lambda match: answer)
    with pytest.raises(error, match=words):
        tenon.compile(Net, libs="toy")


@pytest.mark.parametrize("bytes", [-1, 2**40])
def test_scratch_that_cannot_be(toy, bytes):
    toy(scratch=lambda match: bytes, generate=lambda match: lambda x, s: x)
    with pytest.raises(tenon.CompileError, match=r"callback `scratch` of back end `toy`, asked about `.*` \(toy.relu\), asked for"):
        tenon.compile(Net, libs="toy")


def test_a_cost_that_cannot_be(toy):
    toy(cost=lambda match: float("inf"), generate=lambda match: lambda x: x)
    with pytest.raises(tenon.CompileError, match="callback `cost` of back end `toy` gave inf; expected seconds, or a negative number"):
        tenon.compile(Net, libs="toy")


def test_generate_refuses(toy):
    def generate(match):
        raise Refused("memory", "there is none left")

    toy(generate=generate)
    program = tenon.compile(Net, libs="toy")
    x, w = inputs()
    close(program(x, w), expected(x, w))
    assert any(r.reason == "memory" and "there is none left" in r.detail for r in program.remarks)


def test_results_are_checked_against_the_interpreter(toy):
    toy(generate=lambda match: lambda x: np.maximum(x, 0) + np.float32(1))
    pipeline = [
        tenon.transform.FuseOpsByPattern(backend="toy"),
        tenon.transform.MergeCompositeFunctions(),
        tenon.transform.RunCodegen(backend="toy"),
    ]
    with pytest.raises(tenon.InternalError, match="RunCodegen"):
        tenon.validate(Net, pipeline)
    toy(generate=lambda match: lambda x: np.maximum(x, 0), override=True)
    assert tenon.validate(Net, pipeline) == 3


# ---- errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook", ["check", "cost", "scratch", "pack", "generate"])
def test_what_a_hook_raises(toy, hook):
    def broken(*_):
        raise ZeroDivisionError("in the hook")

    hooks = {"generate": lambda match: lambda x, *_: x, hook: broken}
    toy(patterns=CONST_DENSE, **hooks)
    others = {"libs": ["toy"]}
    with pytest.raises(tenon.CallbackError, match=f"callback `{hook}` of back end `toy` raised ZeroDivisionError: in the hook") as caught:
        tenon.compile(Weighted, **others)
    text = "".join(traceback.format_exception(caught.value))
    assert 'raise ZeroDivisionError("in the hook")' in text and "tenon.compile(Weighted, **others)" in text


def test_what_a_generated_function_raises(toy):
    def run(x):
        raise OSError("the device is gone")

    toy(generate=lambda match: run)
    program = tenon.compile(Net, libs="toy")
    with pytest.raises(tenon.CallbackError, match="raised OSError: the device is gone") as caught:
        program(*inputs())
    assert isinstance(caught.value.__cause__, OSError)


def test_registration_that_cannot_be(toy):
    with pytest.raises(tenon.CompileError, match="its name is `Toy`; expected"):
        tenon.register_backend("Toy", patterns=RELU, generate=lambda match: None)
    with pytest.raises(ValueError, match="neither patterns nor passes nor a hook"):
        tenon.register_backend("toy")
    with pytest.raises(tenon.CompileError, match="it has patterns and no `generate`"):
        tenon.register_backend("toy", patterns=RELU)
    with pytest.raises(tenon.CompileError, match="patterns that cannot be read"):
        tenon.register_backend("toy", patterns="relu = nothing(", generate=lambda match: None)
    with pytest.raises(tenon.CompileError, match="`other.relu` is of another back end"):
        tenon.register_backend("toy", patterns=[("other.relu", wildcard())], generate=lambda match: None)
    with pytest.raises(ValueError, match="`unit` is 'row'; expected 'match' or 'region'"):
        tenon.register_backend("toy", patterns=RELU, generate=lambda match: None, unit="row")
    with pytest.raises(TypeError, match="`check` of back end `toy` is 3"):
        tenon.register_backend("toy", patterns=RELU, check=3, generate=lambda match: None)
    with pytest.raises(tenon.CompileError, match="there are two back ends `blas`"):
        tenon.register_backend("blas", patterns=RELU, generate=lambda match: None)
    assert "toy" not in tenon.backends.backend_names()


def test_a_second_one(toy):
    toy(generate=lambda match: lambda x: x)
    with pytest.raises(ValueError, match="there is a back end `toy`; `override=True` replaces it"):
        toy(generate=lambda match: lambda x: x)
    toy(generate=lambda match: lambda x: np.maximum(x, 0), override=True)
    x, w = inputs()
    close(tenon.compile(Net, libs="toy")(x, w), expected(x, w))
    tenon.unregister_backend("toy")
    with pytest.raises(ValueError, match="no back end `toy`"):
        tenon.unregister_backend("toy")
    with pytest.raises(tenon.Error, match="toy"):
        tenon.compile(Net, libs="toy")


# ---- lives ------------------------------------------------------------------------------------------


def partition(module=Net):
    for step in [
        tenon.transform.FuseOpsByPattern(backend="toy"),
        tenon.transform.MergeCompositeFunctions(),
        tenon.transform.RunCodegen(backend="toy"),
    ]:
        module = step(module)
    return module


def closures():
    return [name for name in tenon.list_global_func_names() if "toy" in name]


def watched_functions(toy):
    """Weak references to what the back end generates from here on."""
    gc.collect()  # what other tests leave
    made = []

    def generate(match):
        def run(x):
            return np.maximum(x, 0)

        made.append(weakref.ref(run))
        return run

    toy(generate=generate)
    return made


def test_functions_live_as_long_as_the_module(toy):
    made = watched_functions(toy)
    module = partition()
    assert len(closures()) == 1
    copy = module.copy()
    del module
    gc.collect()
    x, w = inputs()
    close(tenon.interpret(copy, x, w), expected(x, w))
    program = tenon.compile(copy)
    del copy
    gc.collect()
    close(program(x, w), expected(x, w))
    del program
    gc.collect()
    assert closures() == [] and made[0]() is None


def test_functions_live_as_long_as_the_program(toy):
    made = watched_functions(toy)
    programs = [tenon.compile(Net, libs="toy") for _ in range(3)]
    x, w = inputs()
    for program in programs:
        close(program(x, w), expected(x, w))
    del program, programs
    gc.collect()
    assert closures() == [] and [one() for one in made] == [None] * len(made)


def test_two_modules_have_functions_of_their_own(toy):
    toy(generate=lambda match: lambda x: np.maximum(x, 0))
    first = partition()
    toy(generate=lambda match: lambda x: np.maximum(x, 0) + np.float32(1), override=True)
    second = partition()
    x, w = inputs()
    close(tenon.compile(second)(x, w), (np.maximum(x @ w, 0) + 1) * 2)
    close(tenon.compile(first)(x, w), expected(x, w))


def test_a_text_has_no_function(toy):
    import pickle

    toy(generate=lambda match: lambda x: np.maximum(x, 0))
    module = partition()
    kept = pickle.dumps(module)
    again = pickle.loads(kept)
    x, w = inputs()
    close(tenon.compile(again)(x, w), expected(x, w))
    del module
    gc.collect()
    with pytest.raises(
        tenon.CompileError,
        match="function `.*`, which back end `toy` made, is not in this process: it lives as long as the module that it was made for and programs of that",
    ):
        tenon.compile(again)


def test_a_program_with_functions_is_not_saved(toy, tmp_path):
    toy(generate=lambda match: lambda x: np.maximum(x, 0))
    with pytest.raises(tenon.CompileError, match="of Python, which back end `toy` made; it runs in this process alone"):
        tenon.compile(Net, libs="toy").save(tmp_path / "net.so")


def test_compiled_from_eight_threads(toy):
    toy(check=lambda match: True, generate=lambda match: lambda x: np.maximum(x, 0))
    errors = []

    def work():
        try:
            x, w = (np.ones(shape, np.float32) for shape in [(4, 8), (8, 3)])
            close(tenon.compile(Net, libs="toy")(x, w), expected(x, w))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


# ---- passes of a back end, and partition passes -----------------------------------------------------


def test_passes_of_a_back_end(toy):
    @tenon.module_pass(name="SwapForToy", needs="graph")
    def swap(module, to="R.exp"):
        return tenon.load(module.script().replace("R.nn.relu", to))

    toy(generate=lambda match: lambda x: x, passes=[swap])
    x, w = inputs()
    program = tenon.compile(Net, passes='toy.SwapForToy(to="R.negative")')
    close(program(x, w), -(x @ w) * 2)


def test_relays_passes(toy):
    toy(patterns=DENSE, generate=lambda match: lambda x, w: np.maximum(x @ w, 0), unit="region")
    module = Net
    for step in [
        tenon.transform.MergeComposite(backend="toy"),
        tenon.transform.AnnotateTarget(targets=["toy"]),
        tenon.transform.MergeCompilerRegions(),
        tenon.transform.PartitionGraph(),
        tenon.transform.RunCodegen(backend="toy"),
    ]:
        module = step(module)
    x, w = inputs()
    close(tenon.compile(module)(x, w), expected(x, w))


def test_of_a_named_function(toy):
    module = tenon.dpl.fuse_ops_by_pattern(Net, [("toy.dense_relu", dense_relu())])
    toy(patterns=DENSE, generate=lambda match: lambda x, w: np.maximum(x @ w, 0))
    x, w = inputs()
    close(tenon.compile(tenon.transform.RunCodegen(backend="toy")(module))(x, w), expected(x, w))
