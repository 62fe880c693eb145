# SPDX-License-Identifier: Apache-2.0
"""Exceptions and warnings: code, place, notes, the marked line."""

import pickle
import warnings

import numpy as np
import pytest
from conftest import SCRIPT

import tenon

BAD = SCRIPT.replace("(4, 3)", "(5, 3)")


def caught(text: str) -> "tenon.CompileError":
    with pytest.raises(tenon.CompileError) as info:
        tenon.load(text)
    return info.value


def test_code_and_place():
    error = caught(BAD)
    assert error.code == "TN0101"
    assert (error.place.file, error.place.line, error.place.column) == ("<text>", 9, 46)
    assert str(error.place) == "<text>:9:46"
    assert error.diagnostics[0].name == "shape-mismatch"


def test_the_text_marks_the_source():
    lines = str(caught(BAD)).splitlines()
    assert "R.matmul(x, w)" in lines[1] and "^" in lines[2]
    assert lines[2].index("^") == lines[1].index("R.matmul")


def test_notes_have_places():
    notes = caught(BAD).notes
    assert len(notes) == 2
    assert all(note.place.line == 6 and note.message for note in notes)


def test_several_diagnostics():
    second = SCRIPT.split("@I.ir_module")[1].replace("class Module:", "").replace("def main", "def other")
    text = SCRIPT.replace("R.nn.relu", "R.nn.rely") + second.replace("R.matmul", "R.matmal")
    error = caught(text)
    assert len(error.diagnostics) == 2


def test_place_of_a_node():
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("NoSuchThing", ["x"], ["y"], name="odd")],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
    )
    with pytest.raises(tenon.CompileError) as info:
        tenon.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    assert "odd" in str(info.value) and "NoSuchThing" in str(info.value)


def test_errors_are_pickled():
    error = caught(BAD)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.code, again.place) == (type(error), str(error), error.code, error.place)


def test_all_are_errors():
    for kind in (tenon.CompileError, tenon.UsageError, tenon.RunError, tenon.InternalError, tenon.CallbackError):
        assert issubclass(kind, tenon.Error)
    assert issubclass(tenon.UsageError, ValueError)


def test_unknown_option(module):
    with pytest.raises(tenon.UsageError, match="did you mean `unchecked`"):
        tenon.compile(module, uncheckd=True)


def test_options_are_named_as_in_python(module):
    with pytest.raises(tenon.UsageError, match=r"^threads 99999 is not between"):
        tenon.compile(module, threads=99999)
    with pytest.raises(tenon.UsageError, match="libs"):
        tenon.compile(module, libs="nosuch")


@pytest.mark.parametrize(("options", "code"), [
    ({"threads": 99999}, "TN0004"), ({"uncheckd": True}, "TN0004"), ({"libs": "nosuch"}, "TN0004"), ({"include": "x.h"}, "TN0011"),
    ({"passes": "NoSuchPass"}, "TN0005"),
])
def test_wrong_use_has_its_code(module, options, code):
    with pytest.raises(tenon.UsageError) as info:
        tenon.compile(module, **options)
    assert info.value.code == code
    assert info.value.diagnostics[0].message in str(info.value)


def test_unknown_target(module):
    with pytest.raises(tenon.CompileError) as info:
        tenon.compile(module, target="quantum")
    assert info.value.code == "TN0004"


def test_warnings_are_pythons(module):
    with pytest.warns(tenon.TenonWarning, match="no composite of `nobody`") as record:
        tenon.compile(module, call_by_name="nobody")
    assert record[0].message.code.startswith("TN")
    assert record[0].filename == __file__


def test_warnings_may_be_errors(module):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(tenon.TenonWarning):
            tenon.compile(module, call_by_name="nobody")


def test_run_error(program, arrays):
    x, w = arrays
    with pytest.raises(tenon.RunError, match="float64; the program declares float32") as info:
        program(x.astype(np.float64), w)
    assert info.value.code == "TN0601"
    with pytest.raises(tenon.RunError, match=r"input `x` has shape \(5, 3\)"):
        program(np.zeros((5, 3), np.float32), w)


def test_refused_option(module):
    with pytest.raises(tenon.UsageError, match="include would have no effect with machine code"):
        tenon.compile(module, include="x.h")
