# SPDX-License-Identifier: Apache-2.0
"""tenon.load: every kind of model, from every kind of place."""

import numpy as np
import pytest
from conftest import RELAY, SCRIPT

import tenon


def onnx_model():
    from onnx import TensorProto, helper

    weights = helper.make_tensor("w", TensorProto.FLOAT, [4, 3], np.arange(12, dtype=np.float32).tobytes(), raw=True)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])],
        [weights],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_path_and_text_of_path(digits):
    assert tenon.load(digits) == tenon.load(str(digits))


def test_bytes_of_onnx_are_the_file(digits):
    assert tenon.load(digits.read_bytes()) == tenon.load(digits)


def test_bytearray_and_memoryview(digits):
    contents = digits.read_bytes()
    assert tenon.load(bytearray(contents)) == tenon.load(memoryview(contents))


def test_weights_outlive_the_bytes():
    module = tenon.load(onnx_model().SerializeToString())
    x = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(tenon.compile(module)(x), x @ np.arange(12, dtype=np.float32).reshape(4, 3))


def test_model_proto():
    module = tenon.load(onnx_model())
    assert module.functions["main"].kind == "graph"
    assert module.attrs == {} or "target" not in module.attrs


def test_shape_of_an_input():
    module = tenon.load(onnx_model(), shape={"x": (7, None)})
    assert tenon.compile(module).inputs[0].shape == (7, 4)


def test_script_text_and_file(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(SCRIPT)
    assert tenon.load(path) == tenon.load(SCRIPT)


def test_bytes_of_a_script():
    assert tenon.load(SCRIPT.encode()) == tenon.load(SCRIPT)


def test_relay_text():
    program = tenon.compile(tenon.load(RELAY))
    x, w = np.ones((2, 4), np.float32), np.full((3, 4), -0.5, np.float32)
    np.testing.assert_array_equal(program(x, w), np.maximum(x @ w.T, 0))


def test_relay_with_values_of_parameters():
    w = np.arange(12, dtype=np.float32).reshape(3, 4)
    module = tenon.load(RELAY, params={"w": w})
    x = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(tenon.compile(module)(x), x @ w.T)


def test_onnx_with_values_of_inputs():
    from onnx import TensorProto, helper

    model = onnx_model()
    model.graph.initializer.pop()
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, ["k", 3]))
    w = np.arange(12, dtype=np.float32).reshape(4, 3)
    module = tenon.load(model, params={"w": w})
    w[:] = 0  # the module has its own
    program = tenon.compile(module)
    assert [port.name for port in program.inputs] == ["x"]
    x = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(program(x), x @ np.arange(12, dtype=np.float32).reshape(4, 3))
    with pytest.raises(tenon.CompileError, match=r"a value is given for `v`, which is no input"):
        tenon.load(model, params={"v": w})
    with pytest.raises(tenon.CompileError, match=r"input `w` is given elements of float64; expected float32"):
        tenon.load(model, params={"w": w.astype(np.float64)})


def test_values_of_parameters_of_a_script():
    with pytest.raises(tenon.CompileError, match=r"values of parameters are given; expected a .relay or .onnx model"):
        tenon.load(SCRIPT, params={"w": np.ones((4, 3), np.float32)})


def test_parameters_of_another_kind_of_model(digits):
    with pytest.raises(tenon.CompileError) as caught:
        tenon.load(digits, params={"w": np.ones(3)})
    assert caught.value.code == "TN0004"


def test_a_module_is_what_it_is(module):
    assert tenon.load(module) is module


def test_missing_file():
    with pytest.raises(tenon.CompileError) as caught:
        tenon.load("nowhere.onnx")
    assert caught.value.code == "TN0002"


def test_file_of_no_kind(tmp_path):
    with pytest.raises(tenon.CompileError, match="not a kind of model"):
        tenon.load(tmp_path / "x.bin")


@pytest.mark.parametrize("contents", [b"", b"\x08\x07", b"\x00\x01\x02\x03", b"\xff" * 50])
def test_damaged_bytes_are_refused(contents):
    with pytest.raises(tenon.Error) as caught:
        tenon.load(contents)
    assert isinstance(caught.value, tenon.CompileError)


def test_name_of_a_text_is_its_place():
    with pytest.raises(tenon.CompileError) as caught:
        tenon.load(SCRIPT.replace("R.matmul", "R.matmal"), name="mine")
    assert caught.value.place.file == "mine"
