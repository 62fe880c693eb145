# SPDX-License-Identifier: Apache-2.0
"""The interpreter and the memory planner."""

import ml_dtypes
import numpy as np
import pytest
from conftest import elementwise

import tenon

KERNEL = '''from tenon.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def scale(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("scale"):
                vi = T.axis.spatial(4, i)
                y[vi] = x[vi] * T.float32(3)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.scale, (x,), out_sinfo=R.Tensor((4,), "float32"))
            R.output(y)
        return y

    @R.function
    def other(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        with R.dataflow():
            y = R.negative(x)
            R.output(y)
        return y
'''


def test_interprets_main(module, arrays, program):
    x, w = arrays
    np.testing.assert_allclose(tenon.interpret(module, "main", x, w), program(x, w), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(tenon.interpret(module, x, w=w), tenon.interpret(module, "main", x, w))


def test_interprets_other_functions():
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(tenon.interpret(KERNEL, "main", x), x * 3)
    np.testing.assert_array_equal(tenon.interpret(KERNEL, "scale", x), x * 3)
    np.testing.assert_array_equal(tenon.interpret(KERNEL, "other", x[:2]), -x[:2])


def test_interprets_every_level(module, arrays):
    lowered = tenon.Sequential(tenon.transform.standard_pipeline())(module, target="llvm -mcpu=haswell")
    np.testing.assert_allclose(
        tenon.interpret(lowered, *arrays), tenon.interpret(module, *arrays), rtol=1e-5, atol=1e-6
    )


def test_interpreter_errors(module, arrays):
    x, w = arrays
    with pytest.raises(tenon.CompileError, match="no function `nothing`"):
        tenon.interpret(module, "nothing", x, w)
    with pytest.raises(tenon.RunError):
        tenon.interpret(module, "main", x, w[:3])
    with pytest.raises(TypeError, match="needs input `w`"):
        tenon.interpret(module, "main", x)
    with pytest.raises(TypeError, match="no input `v`"):
        tenon.interpret(module, "main", x, v=w)


def test_interpreter_takes_and_gives_all_types():
    x = np.array([1, 2, 3, 4, 5, 6], np.float32).astype(ml_dtypes.bfloat16)
    y = tenon.interpret(elementwise("bfloat16", "R.add(x, x)"), x)
    assert y.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(y.astype(np.float32), np.arange(1, 7) * 2)
    flags = tenon.interpret(elementwise("bool", "R.logical_not(x)"), [True, False, True, True, True, True])
    np.testing.assert_array_equal(flags, [False, True, False, False, False, False])


BUFFERS = [("a", 0, 2, 100), ("b", 1, 3, 50), ("c", 2, 4, 100), ("d", 3, 5, 60)]


def overlaps(plan):
    for i, a in enumerate(plan.buffers):
        for b in plan.buffers[:i]:
            if a.first <= b.last and b.first <= a.last and a.offset < b.offset + b.bytes and b.offset < a.offset + a.bytes:
                return True
    return False


def test_plans_memory():
    plan = tenon.plan(BUFFERS)
    assert (plan.peak, plan.lower_bound) == (160, 160) or plan.peak >= plan.lower_bound >= 160
    assert [b.name for b in plan.buffers] == ["a", "b", "c", "d"] and not overlaps(plan)


def test_alignment_and_capacity():
    plan = tenon.plan([(*buffer, 64) for buffer in BUFFERS])
    assert all(buffer.offset % 64 == 0 for buffer in plan.buffers)
    with pytest.raises(tenon.CompileError, match="pool `workspace` has 100 bytes"):
        tenon.plan(BUFFERS, capacity=100)


def test_pools():
    plan = tenon.plan(BUFFERS, pools={"fast": 120, "slow": None})
    assert {buffer.pool for buffer in plan.buffers} == {"fast", "slow"}
    with pytest.raises(tenon.CompileError, match="written"):
        tenon.plan(BUFFERS, pools={"flash": "ro"})


def test_a_problem_of_a_file(tmp_path):
    path = tmp_path / "problem.csv"
    path.write_text("id,lower,upper,size\n" + "".join(f"{n},{a},{b},{s}\n" for n, a, b, s in BUFFERS))
    assert tenon.plan(path) == tenon.plan(BUFFERS)


def test_malformed_problem():
    with pytest.raises(tenon.CompileError):
        tenon.plan([("a", 3, 1, 10)])
    with pytest.raises(TypeError):
        tenon.plan([("a", 3)])


def test_a_plan_shows_itself():
    plan = tenon.plan(BUFFERS)
    assert plan.svg().count("<rect") >= 4 and "lower bound" in plan._repr_html_()
    assert str(plan).startswith("peak ")
    nasty = tenon.plan([("<script>", 0, 1, 10)])
    assert "<script>" not in nasty._repr_html_()


def test_functions_are_called():
    x = np.arange(4, dtype=np.float32)
    module = tenon.load(KERNEL)
    np.testing.assert_array_equal(module["scale"](x), x * 3)
    np.testing.assert_array_equal(module["other"](x=x[:2]), -x[:2])
