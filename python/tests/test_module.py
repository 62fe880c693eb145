# SPDX-License-Identifier: Apache-2.0
"""IRModule and its functions."""

import copy
import pickle

import pytest
from conftest import SCRIPT

import tenon


def test_script_reads_back(module):
    assert tenon.load(module.script()) == module
    assert "class Other" in module.script(name="Other")


def test_functions_by_name(module):
    assert list(module) == ["main"] and len(module) == 1 and "main" in module
    main = module["main"]
    assert (main.name, main.kind) == ("main", "graph")
    assert main.script().startswith("@R.function")
    assert list(module.functions) == ["main"]


def test_missing_function(module):
    with pytest.raises(KeyError):
        module["other"]
    assert "other" not in module


def test_items_are_set_and_deleted(module):
    module["again"] = module["main"]
    assert list(module) == ["main", "again"]
    del module["again"]
    assert list(module) == ["main"]
    with pytest.raises(KeyError):
        del module["again"]


def test_a_copy_is_another_module(module):
    for other in (module.copy(), copy.copy(module), copy.deepcopy(module)):
        other["more"] = other["main"]
        assert "more" not in module


def test_equality_is_of_structure(module):
    again = tenon.load(SCRIPT)
    assert module == again and hash(module) == hash(again)
    assert module["main"] == again["main"]
    assert module.first_difference(again) is None
    tenon.assert_equal(module, again)


def test_first_difference_says_where(module):
    other = tenon.load(SCRIPT.replace("R.nn.relu", "R.nn.gelu"))
    assert module != other
    where, message = module.first_difference(other)
    assert "main" in where and message
    with pytest.raises(AssertionError, match="main"):
        tenon.assert_equal(module, other)


def test_compared_with_something_else(module):
    assert module != "text"
    assert (module == 3) is False


def test_attributes(module):
    changed = module.with_attrs({"libs": ["a", "b"], "n": 3, "deep": {"x": [1, 2.5, None, True]}})
    assert changed.attrs == {"libs": ["a", "b"], "n": 3, "deep": {"x": [1, 2.5, None, True]}}
    assert module.attrs == {}


def test_attribute_of_no_type(module):
    with pytest.raises(TypeError, match="an attribute cannot be"):
        module.with_attrs({"x": object()})


def test_pickling(module):
    assert pickle.loads(pickle.dumps(module)) == module


def test_pickling_keeps_weights(digits):
    module = tenon.load(digits)
    again = pickle.loads(pickle.dumps(module))
    assert again == module
    assert tenon.compile(again).manifest["module_hash"] == tenon.compile(module).manifest["module_hash"]


def test_form(module):
    assert module.form == "graph"
    assert tenon.transform.LegalizeOps()(module).form == "legalised"


def test_html_is_coloured_and_escaped(module):
    html = module._repr_html_()
    assert html.startswith("<pre") and html.endswith("</pre>")
    assert "<span style" in html and "@R" not in html.split("<span")[0]
    assert "&quot;float32&quot;" in html
    assert module["main"]._repr_html_().count("<span") > 5


def test_repr(module):
    assert repr(module) == "<tenon.IRModule: main>"
    assert repr(module["main"]) == "<tenon.Function `main`, graph>"
    assert str(module) == module.script()


def test_verify(module):
    module.verify()
    broken = tenon.load(SCRIPT)
    broken["other"] = tenon.load(SCRIPT.replace("main", "helper"))["helper"]
    broken.verify()


def test_an_empty_module():
    empty = tenon.IRModule()
    assert len(empty) == 0 and empty.form == "lowered"
