# SPDX-License-Identifier: Apache-2.0
"""Which operand of a match a library and a back end of Python get where."""

import numpy as np
import pytest

import tenon
from tenon.dpl import fuse_ops_by_pattern, is_const, is_op, wildcard
from tenon.script import ir as I
from tenon.script import relax as R

RNG = np.random.default_rng(0)
# Square, so that any order fits and only the right one gives the right numbers.
A, W, B = (RNG.standard_normal((4, 4), dtype=np.float32) for _ in range(3))


@I.ir_module
class BiasFirst:
    """`b - a @ w`: the bias is the first operand, and the last that is used."""

    @R.function
    def main(p: R.Tensor((4, 4), "float32"), q: R.Tensor((4, 4), "float32"), r: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            product = R.matmul(p, q)
            y = R.subtract(r, product)
            R.output(y)
        return y


def bias_first():
    a, w, b = wildcard(), wildcard(), wildcard()
    return is_op("subtract")(b, is_op("matmul")(a, w)), {"a": a, "w": w, "b": b}


@pytest.fixture(autouse=True)
def no_back_end():
    yield
    if "toy" in tenon.backends._known:
        tenon.unregister_backend("toy")


def close(got, expected):
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def library(path, order):
    """`b - a @ w` in C, which takes its operands in this order."""
    path.write_text(f"""
void bias_first({", ".join(f"const float* {name}" for name in order)}, float* y) {{
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {{
      float sum = 0;
      for (int k = 0; k < 4; ++k) sum += a[i * 4 + k] * w[k * 4 + j];
      y[i * 4 + j] = b[i * 4 + j] - sum;
    }}
}}
""")
    return path


def test_a_library_gets_them_as_the_pattern_has_them(tmp_path):
    pattern, _ = bias_first()
    module = fuse_ops_by_pattern(BiasFirst, [("toy.bias_first", pattern)])
    program = tenon.compile(module, call_by_name="toy", link=library(tmp_path / "library.c", "baw"))
    close(program(A, W, B), B - A @ W)
    close(tenon.interpret(module, A, W, B), B - A @ W)


@pytest.mark.parametrize("order", ["baw", "awb", "wba"])
def test_a_library_gets_them_by_name(tmp_path, order):
    pattern, names = bias_first()
    module = fuse_ops_by_pattern(BiasFirst, [("toy.bias_first", pattern, names)])
    (composite,) = (f for f in module.functions.values() if "Composite" in f.attrs)
    assert [param.name_hint for param in composite.params] == ["b", "a", "w"]
    signatures = tmp_path / "signatures.py"
    tensors = ", ".join(f'{name}: T.Buffer((4, 4), "float32")' for name in [*order, "y"])
    signatures.write_text(
        f'@T.extern_func\ndef bias_first({tensors}):\n    T.func_attr({{"effects": {{"y": "out"}}}})\n'
    )
    program = tenon.compile(module, call_by_name="toy", signatures=str(signatures), link=library(tmp_path / "library.c", order))
    close(program(A, W, B), B - A @ W)


@pytest.mark.parametrize("first", ["exp", "tanh"])
def test_the_order_of_the_network_does_not_matter(first):
    @I.ir_module
    class ExpFirst:
        @R.function
        def main(p: R.Tensor((4, 4), "float32"), q: R.Tensor((4, 4), "float32")):
            with R.dataflow():
                e = R.exp(p)
                t = R.tanh(q)
                y = R.subtract(e, t)
                R.output(y)
            return y

    @I.ir_module
    class TanhFirst:
        @R.function
        def main(p: R.Tensor((4, 4), "float32"), q: R.Tensor((4, 4), "float32")):
            with R.dataflow():
                t = R.tanh(q)
                e = R.exp(p)
                y = R.subtract(e, t)
                R.output(y)
            return y

    pattern = is_op("subtract")(is_op("exp")(wildcard()), is_op("tanh")(wildcard()))

    @tenon.backend("toy", patterns=[("difference", pattern)])
    def generate(match):
        return lambda a, b: np.exp(a) - np.tanh(b)

    network = {"exp": ExpFirst, "tanh": TanhFirst}[first]
    program = tenon.compile(network, libs="toy", require_offload="100%")
    close(program(A, W), np.exp(A) - np.tanh(W))


def test_a_back_end_sees_the_names():
    pattern, names = bias_first()
    seen = []

    @tenon.backend("toy", patterns=[("bias_first", pattern, names)])
    def generate(match):
        seen.append([tensor.name for tensor in match.inputs])
        return lambda b, a, w: b - a @ w

    close(tenon.compile(BiasFirst, libs="toy", require_offload="100%")(A, W, B), B - A @ W)
    assert seen == [["b", "a", "w"]]


def test_constants_stand_among_the_others(tmp_path):
    @I.ir_module
    class Network:
        @R.function
        def main(p: R.Tensor((4, 4), "float32")):
            with R.dataflow():
                product = R.matmul(p, R.const(W))
                y = R.subtract(R.const(B), product)
                R.output(y)
            return y

    pattern = is_op("subtract")(is_const(), is_op("matmul")(wildcard(), is_const()))
    module = fuse_ops_by_pattern(Network, [("toy.bias_first", pattern)], bind_constants=False)
    program = tenon.compile(module, call_by_name="toy", link=library(tmp_path / "library.c", "baw"))
    close(program(A), B - A @ W)


def test_names_of_the_network_do_not_count():
    """An operand without a name in the pattern is none of the annotated ones, however the network names it."""

    @I.ir_module
    class Network:
        @R.function
        def main(w: R.Tensor((4, 4), "float32"), x: R.Tensor((4, 4), "float32")):
            with R.dataflow():
                y = R.matmul(w, x)
                R.output(y)
            return y

    weight = wildcard()
    seen = []

    @tenon.backend("toy", patterns=[("dense", is_op("matmul")(wildcard(), weight), {"w": weight, "weight": weight})])
    def generate(match):
        seen.append(([tensor.name for tensor in match.inputs], {name: part.index for name, part in match.annotated.items()}))
        return lambda x, w: x @ w

    close(tenon.compile(Network, libs="toy", require_offload="100%")(A, W), A @ W)
    assert seen == [(["w_", "w"], {"w": 1, "weight": 1})]


@pytest.mark.parametrize("swapped", [False, True])
def test_constants_inside_are_in_the_order_of_the_pattern(swapped):
    @I.ir_module
    class Straight:
        @R.function
        def main(p: R.Tensor((4, 4), "float32")):
            with R.dataflow():
                m = R.matmul(p, R.const(W))
                n = R.multiply(p, R.const(B))
                y = R.subtract(m, n)
                R.output(y)
            return y

    @I.ir_module
    class Swapped:
        @R.function
        def main(p: R.Tensor((4, 4), "float32")):
            with R.dataflow():
                n = R.multiply(p, R.const(B))
                m = R.matmul(p, R.const(W))
                y = R.subtract(m, n)
                R.output(y)
            return y

    x = wildcard()
    pattern = is_op("subtract")(is_op("matmul")(x, is_const()), is_op("multiply")(x, is_const()))

    @tenon.backend("toy", patterns=[("difference", pattern)])
    def generate(match):
        (matmul,) = (op for op in match.operators if op.name == "relax.matmul")
        assert [operand.index for operand in matmul.operands] == [0, 1]
        np.testing.assert_array_equal(match.inputs[1].data, W)
        return lambda x, w, b: x @ w - x * b

    program = tenon.compile(Swapped if swapped else Straight, libs="toy", require_offload="100%")
    close(program(A), A @ W - A * B)
