# SPDX-License-Identifier: Apache-2.0
"""Dataflow patterns and rewriters in Python."""

import numpy as np
import pytest

import tenon
from tenon.dpl import (
    DFPattern,
    FusionPattern,
    PatternContext,
    PatternMatchingRewriter,
    fuse_ops_by_pattern,
    is_call_dps_packed,
    is_call_tir,
    is_const,
    is_dfv,
    is_expr,
    is_gv,
    is_op,
    is_shape,
    is_tuple,
    is_tuple_get_item,
    is_var,
    make_fused_bias_activation_pattern,
    prim_func,
    reject,
    rewrite_bindings,
    rewrite_call,
    split_call_tir_by_pattern,
    wildcard,
)
from tenon.script import ir as I
from tenon.script import relax as R
from tenon.script import tir as T


@I.ir_module
class Dense:
    @R.function
    def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 3), "float32"), b: R.Tensor((3,), "float32")):
        with R.dataflow():
            p = R.matmul(x, w)
            s = R.add(p, b)
            y = R.nn.relu(s)
            z = R.add(y, y)
            R.output(z)
        return z


def operators(module, name="main"):
    return [word for line in module[name].script().splitlines() for word in line.split() if word.startswith("R.") and "(" in word]


def same_results(a, b, *inputs):
    x, y = tenon.compile(a)(*inputs), tenon.compile(b)(*inputs)
    np.testing.assert_allclose(x, y, rtol=1e-5)


INPUTS = [np.random.default_rng(0).standard_normal(shape, dtype=np.float32) for shape in [(4, 8), (8, 3), (3,)]]


def test_rewrite_call():
    x = wildcard()
    twice = is_op("relax.add")(x, x)

    def rewriter(expr, matches):
        assert expr.op == "add" and matches[twice] == expr
        return R.multiply(matches[x], R.const(2, "float32"))

    module = rewrite_call(twice, rewriter, Dense)
    assert "R.multiply(y" in module.script() and "R.add(y, y)" not in module.script()
    assert "R.add(p, b)" in module.script()
    same_results(Dense, module, *INPUTS)


def test_rewrite_call_of_one_function():
    x = wildcard()
    function = rewrite_call(is_op("nn.relu")(x), lambda expr, matches: R.sigmoid(matches[x]), Dense["main"])
    assert isinstance(function, tenon.Function)
    assert "R.sigmoid" in function.script()
    assert "R.nn.relu" in Dense.script()  # what was there is as it was


def test_nothing_is_rewritten():
    x = wildcard()
    for answer in [None, "same"]:
        module = rewrite_call(is_op("add")(x, x), lambda expr, matches, answer=answer: expr if answer else None, Dense)
        assert module == Dense


def test_replacement_of_several_operators():
    x, y = wildcard(), wildcard()

    def softplus(expr, matches):
        value = matches[x]
        return R.log(R.exp(value) + 1.0) * 1.0 - 0.0

    module = rewrite_call(is_op("nn.relu")(x), softplus, Dense)
    script = module.script()
    assert "R.exp(s)" in script and "R.log" in script and "R.subtract" in script
    assert y != x and len({x, y, x}) == 2


def test_rewriter_that_fails():
    def rewriter(expr, matches):
        raise LookupError("on purpose")

    with pytest.raises(LookupError, match="on purpose"):
        rewrite_call(is_op("nn.relu")(wildcard()), rewriter, Dense)


def test_rewriter_without_end():
    x = wildcard()
    with pytest.raises(tenon.CompileError):
        rewrite_call(is_op("nn.relu")(x), lambda expr, matches: R.nn.relu(R.nn.relu(matches[x])), Dense)


def test_replacement_of_another_type():
    x = wildcard()
    with pytest.raises(tenon.CompileError):
        rewrite_call(is_op("nn.relu")(x), lambda expr, matches: R.astype(matches[x], "int8"), Dense)


def test_rewriters_joined():
    x = wildcard()
    relu = PatternMatchingRewriter.from_pattern(is_op("nn.relu")(x), lambda e, m: R.sigmoid(m[x]))
    twice = PatternMatchingRewriter.from_pattern(is_op("add")(x, x), lambda e, m: R.multiply(m[x], R.const(2.0)))
    script = (relu | twice)(Dense).script()
    assert "R.sigmoid" in script and "R.multiply" in script


def test_rewriter_of_a_module():
    @I.ir_module
    class Rule:
        @R.function
        def pattern(x: R.Tensor(ndim=2, dtype="float32")):
            return R.nn.relu(x)

        @R.function
        def replacement(x: R.Tensor(ndim=2, dtype="float32")):
            return R.maximum(x, R.const(0.0, "float32"))

    module = PatternMatchingRewriter.from_module(Rule)(Dense)
    assert "R.maximum" in module.script()
    same_results(Dense, module, *INPUTS)


def test_rewrite_with_a_kernel():
    @T.prim_func
    def relu_kernel(A: T.Buffer((4, 3), "float32"), B: T.Buffer((4, 3), "float32")):
        for i, j in T.grid(4, 3):
            with T.block("relu"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(A[vi, vj], T.float32(0))

    x = wildcard()

    def rewriter(expr, matches):
        return R.call_tir(relu_kernel, (matches[x],), out_sinfo=R.Tensor(expr.shape, expr.dtype))

    module = rewrite_call(is_op("nn.relu")(x), rewriter, Dense)
    assert "R.call_tir(cls.relu_kernel" in module.script()
    assert sorted(module) == ["main", "relu_kernel"]
    same_results(Dense, module, *INPUTS)


def test_kernel_under_a_name_that_is_taken():
    @T.prim_func
    def main(A: T.Buffer((4, 3), "float32"), B: T.Buffer((4, 3), "float32")):
        B[0, 0] = A[0, 0]

    x = wildcard()
    with pytest.raises(ValueError, match="`main` comes into a module that has another one"):
        rewrite_call(
            is_op("nn.relu")(x),
            lambda e, m: R.call_tir(main, (m[x],), out_sinfo=R.Tensor(e.shape, e.dtype)),
            Dense,
        )


def test_rewrite_bindings():
    with PatternContext() as ctx:
        x, w, b = wildcard(), wildcard(), wildcard()
        product = is_op("matmul")(x, w)
        total = is_op("add")(product, b)

    def rewriter(matches, bindings):
        assert matches[product].kind == "Var" and bindings[matches[product]].op == "matmul"
        return {matches[total]: R.add(matches[b], matches[product])}

    seen = []
    module = rewrite_bindings(ctx, lambda m, b: seen.append(m[product].name_hint) or {}, Dense)
    assert seen == ["p"] and module == Dense
    module = rewrite_bindings(ctx, rewriter, Dense)
    assert "R.add(b, p)" in module.script()
    same_results(Dense, module, *INPUTS)


@I.ir_module
class Branches:
    @R.function
    def main(x: R.Tensor((4, 8), "float32"), a: R.Tensor((8, 3), "float32"), b: R.Tensor((8, 3), "float32")):
        with R.dataflow():
            p = R.matmul(x, a)
            q = R.matmul(x, b)
            y = R.add(p, q)
            R.output(y)
        return y


def test_combines_parallel_products():
    with PatternContext() as ctx:
        x, a, b = wildcard(), wildcard(), wildcard()
        first, second = is_op("matmul")(x, a), is_op("matmul")(x, b)

    def rewriter(matches, bindings):
        both = R.split(R.matmul(matches[x], R.concat([matches[a], matches[b]], axis=1)), 2, axis=1)
        return {matches[first]: both[0], matches[second]: both[1]}

    module = rewrite_bindings(ctx, rewriter, Branches)
    script = module.script()
    assert script.count("R.matmul") < 3 and "R.concat" in script
    rng = np.random.default_rng(0)
    same_results(Branches, module, *(rng.standard_normal(s, dtype=np.float32) for s in [(4, 8), (8, 3), (8, 3)]))


def test_constraints():
    with PatternContext() as ctx:
        relu, add = is_op("nn.relu")(wildcard()), is_op("add")(wildcard(), wildcard())
        relu >> add
    matches = ctx.match_dfb(Dense["main"])
    assert matches[relu].name_hint == "y" and matches[add].name_hint == "z"

    with PatternContext() as other:
        product, relu = is_op("matmul")(wildcard(), wildcard()), is_op("nn.relu")(wildcard())
        product ^ relu
    assert other.match_dfb(Dense["main"]) is None

    with PatternContext() as more:
        product = is_op("matmul")(wildcard(), wildcard())
        total = is_op("add")(wildcard(), wildcard())
        product.only_used_by(total, 0)
    assert more.match_dfb(Dense["main"])[total].name_hint == "s"


def test_constraints_stand_in_a_context():
    a, b = wildcard(), wildcard()
    with pytest.raises(ValueError, match="outside of `with PatternContext"):
        a >> b
    with pytest.raises(ValueError, match="outside of `with PatternContext"):
        a ^ b


def test_context_within_another():
    with PatternContext() as outer:
        relu = is_op("nn.relu")(wildcard())
        with PatternContext(incremental=True) as inner:
            add = is_op("add")(wildcard(), wildcard())
            relu >> add
    assert inner.match_dfb(Dense["main"])[add].name_hint == "z"
    assert relu in outer.match_dfb(Dense["main"])


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (is_op("matmul")(is_var("x"), wildcard()), True),
        (is_op("matmul")(is_var("w"), wildcard()), False),
        (is_op("add")(is_dfv(), is_var("b")), True),
        (is_op("add")(is_const(), wildcard()), False),
        (is_op("add")(wildcard().has_dtype("float32"), wildcard()), True),
        (is_op("add")(wildcard().has_dtype("int8"), wildcard()), False),
        (is_op("add")(wildcard().has_shape((4, 3)), wildcard().has_shape([3])), True),
        (is_op("add")(wildcard().has_shape(("n", 3)), wildcard()), True),
        (is_op("nn.relu")(wildcard()) | is_op("nn.gelu")(wildcard()), True),
        (is_op("nn.relu")(wildcard()) & wildcard().has_dtype("float64"), False),
        (is_op("nn.relu")(~is_op("add")(wildcard(), wildcard())), False),
        (is_op("nn.relu")(reject(is_const())), True),
        (is_op("add")(wildcard(), varg_default_wildcard=True), True),
        (is_op("nn.relu")(wildcard().has_type(R.Tensor((4, 3), "float32"))), True),
        (is_op("nn.relu")(wildcard().has_struct_info(R.Tensor((4, 4), "float32"))), False),
        (make_fused_bias_activation_pattern("relax.matmul", with_bias=True, activation="relax.nn.relu"), True),
        (is_tuple([wildcard(), wildcard()]), False),
    ],
)
def test_combinators(pattern, found):
    assert isinstance(pattern, DFPattern) and isinstance(str(pattern), str)
    seen = []
    rewrite_call(pattern, lambda expr, matches: seen.append(expr), Dense)
    assert bool(seen) == found


def test_attributes():
    @R.function
    def f(x: R.Tensor((2, 3), "float32")):
        y = R.nn.softmax(x, axis=0)
        return y

    def matches(pattern):
        seen = []
        rewrite_call(pattern, lambda expr, _: seen.append(expr.attrs), f)
        return seen

    softmax = is_op("nn.softmax")(wildcard())
    assert matches(softmax.has_attr({"axis": 0})) == [{"axis": 0}]
    assert not matches(softmax.has_attr({"axis": 1}))


def test_tuples_and_fields():
    @R.function
    def f(x: R.Tensor((4, 3), "float32")):
        with R.dataflow():
            parts = R.split(x, 2, axis=0)
            a = parts[0]
            y = R.nn.relu(a)
            R.output(y)
        return y

    split = is_op("split")(wildcard())
    for pattern in [split[0], is_tuple_get_item(split), is_tuple_get_item(split, 0)]:
        seen = []
        rewrite_call(is_op("nn.relu")(pattern), lambda expr, _, seen=seen: seen.append(expr), f)
        assert seen
    with PatternContext() as ctx:
        relu = is_op("nn.relu")(split[1])
    assert ctx.match_dfb(f) is None and relu


def test_functions_and_kernels():
    @T.prim_func
    def kernel(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * T.float32(2)

    @T.prim_func
    def same(X: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32")):
        for k in range(4):
            with T.block("other"):
                vk = T.axis.spatial(4, k)
                Y[vk] = X[vk] * T.float32(2)

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                y = R.call_tir(kernel, (x,), out_sinfo=R.Tensor((4,), "float32"))
                z = R.call_dps_packed("lib", (y,), out_sinfo=R.Tensor((4,), "float32"))
                R.output(z)
            return z

    x = wildcard()
    for pattern in [
        is_call_tir("kernel"),
        is_call_tir("kernel", [x]),
        is_call_tir(is_gv("kernel")),
        is_call_tir(same, [x]),
        is_call_tir(prim_func(same)),
        is_call_dps_packed("lib", [is_call_tir("kernel")]),
    ]:
        seen = []
        rewrite_call(pattern, lambda expr, _, seen=seen: seen.append(expr), Module)
        assert seen, str(pattern)
    with pytest.raises(TypeError, match="no PrimFunc"):
        prim_func(Module["main"])


def test_expressions():
    expressions = []
    x = wildcard()
    pattern = is_op("nn.relu")(x)
    rewrite_call(pattern, lambda expr, matches: expressions.append((expr, matches[x])), Dense)
    relu, s = expressions[0]
    assert (relu.kind, relu.op, relu.args, relu.attrs) == ("Call", "nn.relu", [s], {})
    assert (s.kind, s.name_hint, s.dtype, s.shape) == ("Var", "s", "float32", (4, 3))
    assert "R.Tensor((4, 3)" in s.type and str(s) == "s"
    total = (1.0 - s * 2) / s
    assert total.op == "divide" and total.shape == (4, 3)
    assert (-s).op == "negative" and (s < 1.0).dtype == "bool"
    constant = (s + np.float32(3)).args[1]
    assert constant.kind == "Constant" and constant.data == np.float32(3)
    assert pattern.match(relu) and not is_op("nn.gelu")(x).match(relu)
    assert pattern.extract_matched_expr(relu)[x] == s
    assert is_expr(s).match(s) and not is_expr(s).match(relu)
    with pytest.raises(tenon.CompileError, match="no operator|axes"):
        R.nn.softmax(s, axes=3)
    with pytest.raises(tenon.CompileError):
        R.matmul(s, s).shape


def test_composites():
    x, w, b = wildcard(), wildcard(), wildcard()
    dense = is_op("matmul")(x, w)
    pattern = is_op("nn.relu")(is_op("add")(dense, b))
    checked = []

    def check(match):
        checked.append(match)
        return True

    module = fuse_ops_by_pattern(Dense, [("toy.dense_relu", pattern, {"product": dense}, check)])
    assert module["fused_toy_dense_relu" if "fused_toy_dense_relu" in module else next(n for n in module if n != "main")]
    assert 'Composite": "toy.dense_relu"' in module.script()
    assert checked[0].annotated_expr["product"].name_hint == "p"
    assert [value.op for value in checked[0].matched_bindings.values()] == ["matmul", "add", "nn.relu"]
    assert checked[0].composite.attrs["Composite"] == "toy.dense_relu"
    same_results(Dense, module, *INPUTS)


@pytest.mark.parametrize("answer", [False, "too small"])
def test_checks_refuse(answer):
    pattern = FusionPattern("toy.relu", is_op("nn.relu")(wildcard()), check=lambda match: answer)
    assert fuse_ops_by_pattern(Dense, [pattern]) == Dense


def test_checks_that_fail():
    def check(match):
        raise LookupError("on purpose")

    with pytest.raises(tenon.CallbackError, match="raised LookupError: on purpose"):
        fuse_ops_by_pattern(Dense, [("toy.relu", is_op("nn.relu")(wildcard()), None, check)])
    with pytest.raises(TypeError, match="a check of a pattern answers"):
        fuse_ops_by_pattern(Dense, [("toy.relu", is_op("nn.relu")(wildcard()), None, lambda match: 3)])


def test_attributes_of_composites():
    pattern = FusionPattern("toy.relu", is_op("nn.relu")(wildcard()), attrs_getter=lambda match: {"inputs": len(match.inputs)})
    assert '"inputs": 1' in fuse_ops_by_pattern(Dense, [pattern], annotate_codegen=True).script()


def test_patterns_of_functions():
    @R.function
    def dense(x: R.Tensor(ndim=2), w: R.Tensor(ndim=2), b: R.Tensor(ndim=1)):
        y = R.add(R.matmul(x, w), b)
        return y

    module = fuse_ops_by_pattern(Dense, [("toy.dense", dense)])
    assert 'Composite": "toy.dense"' in module.script()


def test_patterns_over_kernels():
    @T.prim_func
    def relu(A: T.Buffer((4, 3), "float32"), B: T.Buffer((4, 3), "float32")):
        for i, j in T.grid(4, 3):
            with T.block("relu"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(A[vi, vj], T.float32(0))

    legal = tenon.transform.LegalizeOps()(Dense)
    module = split_call_tir_by_pattern(legal, [("toy.relu", relu)])
    assert 'Composite": "toy.relu"' in module.script()


def test_shapes():
    @R.function
    def f(x: R.Tensor((2, 3), "float32")):
        y = R.reshape(x, R.shape([3, 2]))
        return y

    seen = []
    rewrite_call(is_op("reshape")(wildcard(), is_shape([3, 2])), lambda expr, _: seen.append(expr), f)
    assert seen
