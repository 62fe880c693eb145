# SPDX-License-Identifier: Apache-2.0
"""ExprVisitor, ExprMutator, and TensorIR made from values."""

import numpy as np
import pytest

import tenon
from tenon import ExprMutator, ExprVisitor, tir
from tenon.script import ir as I
from tenon.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.add(x, y)
            b = R.nn.relu(a)
            c = R.multiply(b, R.const(2.0, "float32"))
            parts = R.split(c, 2)
            d = R.add(parts[0], parts[1])
            R.output(d)
        return d


def test_visitor_goes_operands_first_and_once():
    class Calls(ExprVisitor):
        def __init__(self):
            super().__init__()
            self.seen = []

        def visit_call(self, call):
            super().visit_call(call)
            self.seen.append(call.op)

        def visit_constant(self, constant):
            self.seen.append(float(constant.data))

        def visit_var(self, var):
            self.seen.append(var.name_hint)

    calls = Calls()
    calls.visit(Module)
    assert calls.seen == ["x", "y", "add", "nn.relu", 2.0, "multiply", "split", "add"]


def test_mutator_replaces_calls():
    class Gelu(ExprMutator):
        def visit_call(self, call):
            call = super().visit_call(call)
            return R.sigmoid(call.args[0]) if call.op == "nn.relu" else call

    module = Gelu().visit(Module)
    assert "R.sigmoid(a)" in module.script() and "nn.relu" not in module.script()
    assert Gelu().visit(module) == module
    assert Gelu().visit(Module["main"]) == module["main"]


def test_mutator_replaces_constants():
    class Half(ExprMutator):
        def visit_constant(self, constant):
            return R.const(constant.data / 4, "float32")

    module = Half().visit(Module)
    x = np.ones(4, np.float32)
    np.testing.assert_array_equal(tenon.compile(module)(x, x), np.full(2, 2, np.float32))


def test_mutator_that_changes_nothing():
    assert ExprMutator().visit(Module) == Module


def test_kernel_of_loops():
    n = 8
    x, y = (tir.decl_buffer((n,), "float32", name) for name in "xy")
    i = tir.Var("i")
    body = tir.For(i, 0, n, "serial", tir.BufferStore(y, tir.max(x[i], tir.float32(0)) * 2.0 + tir.exp(x[i]), [i]))
    function = tir.PrimFunc([x, y], body, name="f")
    assert (function.name, function.kind) == ("f", "prim_func")
    values = np.linspace(-1, 1, n, dtype=np.float32)
    np.testing.assert_allclose(tenon.compile(function)(values), np.maximum(values, 0) * 2 + np.exp(values), rtol=1e-6)


def test_branches_and_scratch():
    x, y, t = (tir.decl_buffer((4,), "int32", name) for name in "xyt")
    i, j = tir.Var("i"), tir.Var("j")
    body = tir.SeqStmt(
        [
            tir.AllocBuffer(t),
            tir.For(i, 0, 4, "serial", tir.BufferStore(t, x[i] + 1, [i])),
            tir.For(
                j, 0, 4, "serial", tir.IfThenElse(t[j] > 2, tir.BufferStore(y, t[j], [j]), tir.BufferStore(y, x[j] * 10, [j]))
            ),
        ]
    )
    program = tenon.compile(tir.PrimFunc([x, y], body))
    np.testing.assert_array_equal(program(np.arange(4, dtype=np.int32)), [0, 10, 3, 4])


def test_expressions_of_kernels():
    x = tir.decl_buffer((4, 2), "float32", "x")
    assert (x.name, x.dtype, x.shape, x.data.dtype) == ("x", "float32", (4, 2), "handle")
    i = tir.Var("i", "int32")
    assert i.name == "i" and (i + 1).dtype == "int32" and i == i and i != tir.Var("i", "int32")
    assert str((2 * i + 1) // 3) == "(2 * i + 1) // 3"
    assert (i < 3).dtype == "bool" and i.astype("int64").dtype == "int64"
    with pytest.raises(AttributeError, match="no_such_function"):
        tir.no_such_function
    with pytest.raises(ValueError, match="no dtype"):
        tir.Var("i", "flot32")
    with pytest.raises(tenon.CompileError):
        tir.exp(i)
    assert "grid" in dir(tir) and tir.exp.__doc__


def test_bad_statements():
    x = tir.decl_buffer((4,), "float32", "x")
    i = tir.Var("i")
    with pytest.raises(ValueError, match="a loop is"):
        tir.For(i, 0, 4, "threaded", tir.Evaluate(0))
    with pytest.raises(tenon.CompileError):
        tir.BufferStore(x, 1.0, [i, i])
    with pytest.raises(TypeError, match="a variable is expected"):
        tir.For(i + 1, 0, 4, "serial", tir.Evaluate(0))
