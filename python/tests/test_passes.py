# SPDX-License-Identifier: Apache-2.0
"""tenon.transform: passes from the table, sequences of them, passes of one's own."""

import inspect
import traceback

import numpy as np
import pytest
from conftest import SCRIPT

import tenon
from tenon import transform


def test_every_pass_is_there():
    names = [known.name for known in tenon.passes()]
    assert len(names) > 50 and set(names) <= set(dir(transform))
    for name in names:
        factory = getattr(transform, name)
        assert factory.__name__ == name and factory.__doc__
        inspect.signature(factory)


def test_options_and_defaults_are_of_the_table():
    signature = inspect.signature(transform.PlanMemory)
    assert signature.parameters["work_limit"].default == 500_000_000
    assert "work_limit:" in transform.PlanMemory.__doc__
    assert "Form: lowered. Precision: exact." in transform.PlanMemory.__doc__


def test_defaults_are_those_of_the_compiler(module):
    # What is given as the default changes nothing.
    steps = list(transform.standard_pipeline())
    given = []
    for known in steps:
        parameters = inspect.signature(getattr(transform, known.name)).parameters.values()
        options = {p.name: p.default for p in parameters if p.default not in (p.empty, None)}
        given.append(tenon.Pass(known.name, options))
    target = "llvm -mcpu=haswell"
    tenon.assert_equal(tenon.Sequential(given)(module, target=target), tenon.Sequential(steps)(module, target=target))


def test_unknown_pass_and_option(module):
    with pytest.raises(AttributeError, match="FuzeOps"):
        transform.FuzeOps  # noqa: B018
    with pytest.raises(TypeError, match="limit"):
        transform.PlanMemory(limit=3)
    with pytest.raises(tenon.CompileError) as caught:
        tenon.Pass("PlanMemory", {"limit": 3})(module)
    assert caught.value.code in ("TN0004", "TN0206")


def test_required_option():
    with pytest.raises(TypeError, match="binding_map"):
        transform.BindSymbolicVars()


def test_a_pass_runs(module):
    fixed = transform.BindSymbolicVars(binding_map={"n": 7})(module)
    assert 'R.Tensor((7, 4), dtype="float32")' in fixed.script()
    assert 'R.Tensor(("n", 4)' in module.script()


def test_parameters_are_bound_from_python(module):
    bound = transform.BindParams(params={"w": [[1.0] * 3] * 4})(module)
    program = tenon.compile(bound)
    assert [port.name for port in program.inputs] == ["x"]


def test_a_pass_in_the_wrong_form(module):
    with pytest.raises(tenon.CompileError) as caught:
        transform.PlanMemory()(module)
    assert caught.value.code == "TN0206"


def test_sequential(module):
    passes = tenon.Sequential([transform.LegalizeOps(), "FuseOps, FuseTIR"])
    assert [known.name for known in passes] == ["LegalizeOps", "FuseOps", "FuseTIR"]
    result = passes(module, target="llvm -mcpu=haswell")
    assert result.form == "legalised"
    assert [name for name, _ in passes.timings] == ["LegalizeOps", "FuseOps", "FuseTIR"]
    assert any(remark.pass_name == "FuseOps" for remark in passes.remarks)
    assert str(tenon.Sequential(str(passes))) == str(passes)


def test_hooks_see_every_pass(module):
    seen = []
    passes = tenon.Sequential("LegalizeOps, FuseOps")
    passes(
        module,
        before_pass=lambda known, given: seen.append(("before", known.name, given.form)),
        after_pass=lambda known, given: seen.append(("after", known.name, given.form)),
    )
    assert [entry[:2] for entry in seen] == [
        (when, name) for name in ("LegalizeOps", "FuseOps") for when in ("before", "after")
    ]
    assert seen[0][2] == "graph" and seen[1][2] == "legalised"


def test_the_standard_pipeline_as_text(module):
    text = str(transform.standard_pipeline())
    direct = tenon.compile(module)
    assert tenon.compile(module, pipeline=text).manifest == direct.manifest
    assert tenon.compile(module, pipeline=transform.standard_pipeline()).manifest == direct.manifest


def test_a_pipeline_of_a_file(module, tmp_path):
    path = tmp_path / "pipeline.txt"
    path.write_text(str(transform.standard_pipeline()))
    assert tenon.compile(module, pipeline=path).manifest == tenon.compile(module).manifest


def test_errors_in_a_text_of_passes():
    with pytest.raises(tenon.CompileError, match="did you mean `FuseOps`") as caught:
        tenon.Sequential("LegalizeOps, FuseOp")
    assert caught.value.place.column == 14


@tenon.module_pass(needs="graph")
def SwapRelu(module, to="R.nn.gelu"):
    """Replaces every relu."""
    return tenon.load(module.script().replace("R.nn.relu", to))


def test_a_pass_of_ones_own(module):
    swapped = SwapRelu()(module)
    assert "R.nn.gelu" in swapped.script()
    assert "R.nn.silu" in SwapRelu(to="R.nn.silu")(module).script()
    assert SwapRelu().summary == "Replaces every relu"


def test_it_is_named_by_pipelines(module, arrays):
    program = tenon.compile(module, passes='SwapRelu(to="R.exp")')
    np.testing.assert_allclose(program(*arrays), np.exp(arrays[0] @ arrays[1]), rtol=1e-4)
    assert 'SwapRelu(to="R.exp")' in program.manifest["passes"]


def test_a_pass_of_ones_own_is_verified(module):
    @tenon.module_pass(name="Breaks")
    def breaks(module):
        lowered = transform.LegalizeOps()(module)
        del lowered["main"]
        del lowered[next(iter(lowered))]
        return lowered

    breaks()(module)  # an empty module is well formed

    @tenon.module_pass(name="LosesKernels")
    def loses(module):
        lowered = transform.LegalizeOps()(module)
        for name in list(lowered):
            if name != "main":
                del lowered[name]
        return lowered

    with pytest.raises(tenon.InternalError, match="`LosesKernels` gave a module that is not well formed"):
        loses()(module)


def test_validation_finds_a_wrong_pass(module):
    with pytest.raises(tenon.Error, match="SwapRelu"):
        tenon.validate(module, [SwapRelu()])


def test_an_exception_in_a_pass_has_both_tracebacks(module):
    @tenon.module_pass
    def Crashes(module):
        raise ValueError("inside of it")

    def user():
        return Crashes()(module)

    with pytest.raises(tenon.CallbackError, match="pass `Crashes` raised ValueError: inside of it") as caught:
        user()
    assert isinstance(caught.value.__cause__, ValueError)
    text = "".join(traceback.format_exception(caught.value))
    assert "raise ValueError" in text and "in user" in text and "direct cause" in text


def test_an_exception_in_a_hook(module):
    def hook(known, given):
        raise KeyError(known.name)

    with pytest.raises(tenon.CallbackError, match="`before_pass` raised KeyError") as caught:
        tenon.Sequential("LegalizeOps")(module, before_pass=hook)
    assert caught.value.__cause__.args == ("LegalizeOps",)


def test_a_pass_that_gives_no_module(module):
    @tenon.module_pass
    def GivesNone(module):
        return None

    with pytest.raises(tenon.CompileError, match="pass `GivesNone` gave .*NoneType.*; expected an IRModule"):
        GivesNone()(module)


def test_a_name_that_is_taken():
    with pytest.raises(tenon.CompileError, match="there is a pass `FuseOps` already"):
        tenon.module_pass(name="FuseOps")(lambda module: module)


def test_a_pass_may_be_defined_again(module):
    for value in ("R.exp", "R.sin"):
        tenon.module_pass(name="Again")(lambda module, value=value: tenon.load(module.script().replace("R.nn.relu", value)))
        assert value in tenon.Sequential("Again")(module).script()


def test_forms():
    with pytest.raises(ValueError, match="no form is called"):
        tenon.module_pass(needs="graphs")(lambda module: module)


def test_validate_compares(module):
    assert tenon.validate(module, "LegalizeOps, FuseOps") == 2
    assert tenon.validate(SCRIPT) > 20
