# SPDX-License-Identifier: Apache-2.0
"""Operators whose type rule is a function of Python."""

import traceback

import numpy as np
import pytest

import tenon
from tenon.dpl import is_op, rewrite_call, wildcard
from tenon.script import ir as I
from tenon.script import relax as R
from tenon.script import tir as T

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def no_operators():
    yield
    for name in list(tenon._operator._operators):
        tenon.remove_operator(name)


def clip(**options):
    @tenon.operator("com.example::SoftClip", **options)
    def soft_clip(x, *, limit=1.0):
        """Clips softly."""
        return R.Tensor(x.shape, x.dtype)

    return soft_clip


def meaning(x, *, limit):
    return np.tanh(x / np.float32(limit)) * np.float32(limit)


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("run", [lambda m, *a: tenon.compile(m)(*a), tenon.interpret], ids=["compiled", "interpreted"])
def test_in_a_script(run):
    soft_clip = clip(meaning=meaning)

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            with R.dataflow():
                y = soft_clip(R.exp(x), limit=2.0)
                z = R.add(soft_clip(y), x)
                R.output(z)
            return z

    x = RNG.standard_normal((3, 4), dtype=np.float32)
    close(run(Module, x), meaning(meaning(np.exp(x), limit=2.0), limit=1.0) + x)
    assert soft_clip.inputs == ["x"] and soft_clip.attributes == ["limit"] and soft_clip.__doc__ == "Clips softly."


def test_the_text_reads_back():
    soft_clip = clip(meaning=meaning)

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2, 4), "float32")):
            return soft_clip(x, limit=3.0)

    assert tenon.load(Module.script()) == Module
    assert "com.example::SoftClip" in Module.script()


def test_what_the_rule_is_given():
    seen = []

    @tenon.operator("my.op", meaning=lambda x, y, **_: x)
    def rule(x, y=None, *, axis: int, name="a", sizes=(1, 2), scale=0.5):
        seen.append((x, y, axis, name, sizes, scale))
        return x

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor((3,), "int64")):
            return rule(rule(x, y, axis=1, name="b", sizes=(3, 4, 5), scale=2), axis=-1)

    info = tenon.TensorInfo(("n", 4), "float32")
    assert rule.name == "my::op" and "my::op" in Module.script()
    assert seen == [
        (info, tenon.TensorInfo((3,), "int64"), 1, "b", [3, 4, 5], 2),
        (info, None, -1, "a", [1, 2], 0.5),
    ]


def test_symbolic_results_and_several():
    @tenon.operator("my.twice")
    def twice(x, *, axis: int):
        shape = list(x.shape)
        shape[axis] = shape[axis] * 2 if isinstance(shape[axis], int) else f"{shape[axis]} * 2"
        return R.Tensor(shape, x.dtype), x

    @twice.meaning
    def _(x, *, axis):
        return np.concatenate([x, x], axis), -x

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            y = twice(x, axis=0)
            z = twice(y[1], axis=1)
            return y[0], z[0]

    x = RNG.standard_normal((3, 4), dtype=np.float32)
    program = tenon.compile(Module)
    assert program.outputs[1].shape == ("n", 8)
    y, z = program(x)
    close(y, np.concatenate([x, x]))
    close(z, np.concatenate([-x, -x], 1))


def test_optional_inputs():
    @tenon.operator("my.scaled")
    def scaled(x, factor=None):
        assert factor is None or factor.dtype == x.dtype
        return x

    scaled.meaning(lambda x, factor: x * np.float32(2) if factor is None else x * factor)

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32"), f: R.Tensor((4,), "float32")):
            return R.add(scaled(x), scaled(x, f))

    x, f = RNG.standard_normal((2, 4), dtype=np.float32)
    close(tenon.compile(Module)(x, f), x * 2 + x * f)


def test_a_prim_func_as_meaning():
    @T.prim_func
    def negate(x: T.Buffer(("n", 4), "float32"), y: T.Buffer(("n", 4), "float32")):
        n = T.int64()
        for i, j in T.grid(n, 4):
            with T.block("negate"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = -x[vi, vj]

    @tenon.operator("my.negate", meaning=negate)
    def my_negate(x):
        return x

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((3, 4), "float32")):
            return R.exp(my_negate(x))

    x = RNG.standard_normal((3, 4), dtype=np.float32)
    close(tenon.compile(Module)(x), np.exp(-x))


@T.prim_func
def kernel(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32"), limit: T.float32):
    T.func_attr({"op": "com.example::SoftClip"})
    n = T.int64()
    m = T.int64()
    for i, j in T.grid(n, m):
        with T.block("clip"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.tanh(x[vi, vj] / limit) * limit


def test_a_kernel_takes_it():
    soft_clip = clip()

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((3, 4), "float32")):
            return soft_clip(x, limit=2.0)

    x = RNG.standard_normal((3, 4), dtype=np.float32)
    close(tenon.compile(Module, kernels=[kernel.module])(x), meaning(x, limit=2.0))
    with pytest.raises(tenon.CompileError, match="com.example::SoftClip"):
        tenon.compile(Module)  # nobody computes it


def test_kernels_are_checked_against_the_rule():
    @tenon.operator("my.narrow")
    def narrow(x):
        return R.Tensor((x.shape[0],), x.dtype)

    @T.prim_func
    def wrong(x: T.Buffer((3, 4), "float32"), y: T.Buffer((4,), "float32")):
        T.func_attr({"op": "my::narrow"})
        for i in range(4):
            y[i] = x[0, i]

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((3, 4), "float32")):
            return narrow(x)

    with pytest.raises(tenon.CompileError, match="my::narrow") as caught:
        tenon.compile(Module, kernels=[wrong.module])
    assert "3" in str(caught.value) and "4" in str(caught.value)


def model(attributes, inputs=("x",), op="SoftClip"):
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ("n", 4)) for name in inputs]
    result = helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, ("n", 4))
    nodes = [
        helper.make_node(op, list(inputs), ["y"], domain="com.example", name="clip", **attributes),
        helper.make_node("Relu", ["y"], ["z"]),
    ]
    graph = helper.make_graph(nodes, "net", values, [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)])


@pytest.mark.parametrize("attributes", [{"limit": 2.0}, {}])
def test_in_an_onnx_network(attributes):
    clip(meaning=meaning)
    x = RNG.standard_normal((3, 4), dtype=np.float32)
    expected = np.maximum(meaning(x, limit=attributes.get("limit", 1.0)), 0)
    module = tenon.load(model(attributes))
    close(tenon.compile(module)(x), expected)
    close(tenon.interpret(module, x), expected)
    close(tenon.compile(model(attributes), kernels=[kernel.module])(x), expected)


def test_an_onnx_network_with_an_attribute_too_many():
    clip(meaning=meaning)
    with pytest.raises(tenon.CompileError, match="`extra`"):
        tenon.load(model({"extra": 1}))


def test_an_onnx_network_with_an_input_too_many():
    clip(meaning=meaning)
    with pytest.raises(tenon.CompileError, match="has 2 inputs; it is declared with 1"):
        tenon.load(model({}, inputs=("x", "w")))


def test_in_a_rewriter():
    soft_clip = clip(meaning=meaning)

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((3, 4), "float32")):
            with R.dataflow():
                y = R.nn.relu(x)
                R.output(y)
            return y

    x = wildcard()
    module = rewrite_call(is_op("nn.relu")(x), lambda expr, matches: soft_clip(matches[x], limit=4.0), Module)
    given = RNG.standard_normal((3, 4), dtype=np.float32)
    close(tenon.compile(module)(given), meaning(given, limit=4.0))


def use(soft_clip, call):
    text = f"""from tenon.script import ir as I, relax as R
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3, 4), "float32")):
        return {call}
"""
    source = tenon._core._Source("<test>", text)
    return tenon._core._parse_module(source, 2, 7, {"soft_clip": (soft_clip,)}.get, "Module", True)


@pytest.mark.parametrize(
    "call, words",
    [
        ("soft_clip(x, limits=2.0)", "operator `com.example::SoftClip` has no attribute `limits`; did you mean `limit`?"),
        ("soft_clip(x, x)", "a call of operator `com.example::SoftClip` has 2 inputs; it takes 1"),
        ("soft_clip()", "a call of operator `com.example::SoftClip` lacks input `x`"),
        ('soft_clip(x, limit="far")', "attribute `limit` is .*far.*; expected"),
        ("soft_clip(x, limit=R.exp(x))", "attribute `limit` of operator `com.example::SoftClip` is known only when the program runs"),
    ],
)
def test_calls_that_cannot_be(call, words):
    with pytest.raises(tenon.CompileError, match=words) as caught:
        use(clip(meaning=meaning), call)
    assert caught.value.place.line == 6


def test_a_missing_attribute():
    @tenon.operator("my.op")
    def needs(x, *, axis: int):
        return x

    with pytest.raises(tenon.CompileError, match="a call of operator `my::op` needs attribute `axis`, which has no default"):
        use(needs, "soft_clip(x)")


def test_what_the_rule_raises():
    @tenon.operator("my.op")
    def broken(x):
        raise LookupError(x.shape)

    with pytest.raises(tenon.CallbackError, match=r"type rule of operator `my::op` raised LookupError: \(3, 4\)") as caught:
        use(broken, "soft_clip(x)")
    assert "raise LookupError(x.shape)" in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("answer", [3, "R.Tensor", None])
def test_what_the_rule_may_not_answer(answer):
    @tenon.operator("my.op")
    def wrong(x):
        return answer

    with pytest.raises((tenon.CallbackError, tenon.CompileError)):
        use(wrong, "soft_clip(x)")


def test_what_the_meaning_raises():
    @tenon.operator("my.op", meaning=lambda x: [][0])
    def broken(x):
        return x

    module = use(broken, "soft_clip(x)")
    with pytest.raises(tenon.CallbackError, match="tenon.operator.my::op.* raised IndexError"):
        tenon.compile(module)(np.zeros((3, 4), np.float32))


def test_declarations_that_cannot_be():
    clip()
    with pytest.raises(ValueError, match="`com.example::SoftClip` is declared already; `override=True` replaces it"):
        clip()
    clip(override=True)
    with pytest.raises(ValueError, match="operator `plain` is of no domain"):
        tenon.operator("plain")(lambda x: x)
    with pytest.raises(TypeError, match="attribute `axis` has no kind"):
        tenon.operator("my.op")(lambda x, *, axis: x)
    with pytest.raises(TypeError, match=r"has parameter `\*x`"):
        tenon.operator("my.op")(lambda *x: x)
    with pytest.raises(TypeError, match="input `x` of operator `my::op` has default 3"):
        tenon.operator("my.op")(lambda x=3: x)
    with pytest.raises(TypeError, match="is 3; expected a function"):
        clip(override=True).meaning(3)
    with pytest.raises(ValueError, match="no operator `my::op`"):
        tenon.remove_operator("my.op")
