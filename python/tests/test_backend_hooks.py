# SPDX-License-Identifier: Apache-2.0
"""A back end in two steps, as TVM's hooks have them: from graph to TensorIR, from TensorIR to code."""

import traceback

import numpy as np
import pytest
from test_from_tvm import (
    LIBRARY,
    NETWORK,
    MyMod,
    MyModWithBYOCExtern,
    LowerFusedNodes,
    LowerFusedNodesSimple,
    dense_bias,
    partition_for_toy,
)

import tenon
from tenon.backends import CSource, Refused
from tenon.dpl import is_op

NAME = "toy_cg_thflow"
RNG = np.random.default_rng(0)
SHAPES = [(64, 800), (500, 800), (500,), (10, 500), (10,)]


@pytest.fixture(autouse=True)
def no_back_end():
    yield
    if NAME in tenon.backends._known:
        tenon.unregister_backend(NAME)


@pytest.fixture
def arrays():
    return [RNG.standard_normal(shape, dtype=np.float32) for shape in SHAPES]


@pytest.fixture
def library(tmp_path):
    path = tmp_path / "library.c"
    path.write_text(LIBRARY)
    return path


def expected(x, w0, b0, w1, b1):
    return np.maximum(x @ w0.T + b0, 0) @ w1.T + b1


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-2)


def partitioned():
    return partition_for_toy(tenon.load(NETWORK))


def test_a_region_becomes_calls_of_a_library(arrays, library):
    @tenon.graph_to_tir(NAME)
    def lower(function, context):
        assert function.attrs["Compiler"] == NAME and context.symbol == "" and context.options == {}
        return LowerFusedNodes().visit(function)

    module = tenon.transform.RunCodegen(backend=NAME)(partitioned())
    kernel = module["tvmgen_default_toy_cg_thflow_main_0"]
    assert kernel.kind == "prim_func" and kernel.attrs["target"] == NAME
    # Intermediate buffers are planned with those of the whole program.
    program = tenon.compile(module, link=library)
    close(program(*arrays), expected(*arrays))
    assert program.memory_plan.peak >= 64 * 500 * 4


def test_from_patterns_to_calls(arrays, library):
    @tenon.graph_to_tir(NAME)
    def lower(function, context):
        calls = LowerFusedNodes()
        calls.calls = []
        return lowered_region(function)

    patterns = [("dense_bias_relu", is_op("nn.relu")(dense_bias())), ("dense_bias", dense_bias())]
    tenon.register_backend(NAME, patterns=patterns, unit="region")
    program = tenon.compile(tenon.load(NETWORK), libs=NAME, link=library, require_offload="99%")
    close(program(*arrays), expected(*arrays))


def lowered_region(function, calls_library=True):
    """The function that the mutator makes, whatever the attribute that says whose it is; or one that does nothing."""

    class Lower(LowerFusedNodes):
        def visit_function(self, fn):
            self.calls = []
            params = [self.visit(param) for param in fn.params]
            result = self.visit(fn.body)
            body = []
            for out, statement in self.calls:
                if out is not result:
                    body.append(tenon.tir.AllocBuffer(out))
                body.append(statement)
            body = tenon.tir.SeqStmt(body) if calls_library else tenon.tir.Evaluate(0)
            return tenon.tir.PrimFunc([*params, result], body, attrs={"global_symbol": fn.name})

    return Lower().visit(function)


def test_what_has_no_outputs_is_refused():
    tenon.graph_to_tir(NAME)(lambda function, context: LowerFusedNodesSimple().visit(function))
    with pytest.raises(
        tenon.CompileError,
        match=f"back end `{NAME}` made a PrimFunc of 5 parameters of graph function `.*`, whose inputs and outputs are 6",
    ):
        tenon.transform.RunCodegen(backend=NAME)(partitioned())


def test_what_writes_no_output_is_refused():
    tenon.graph_to_tir(NAME)(lambda function, context: lowered_region(function, calls_library=False))
    with pytest.raises(
        tenon.CompileError,
        match=f"back end `{NAME}` made a PrimFunc of graph function `.*` that does not write its output `.*`, parameter 5",
    ):
        tenon.transform.RunCodegen(backend=NAME)(partitioned())


def test_what_tenon_lowers(arrays):
    @tenon.graph_to_tir(NAME)
    def lower(function, context):
        return context.lower(function)

    module = tenon.transform.RunCodegen(backend=NAME)(partitioned())
    assert module["tvmgen_default_toy_cg_thflow_main_0"].kind == "prim_func"
    close(tenon.compile(module)(*arrays), expected(*arrays))


def test_the_hook_refuses(arrays):
    @tenon.graph_to_tir(NAME)
    def lower(function, context):
        raise Refused("shape", "too large for it")

    sequence = tenon.Sequential([tenon.transform.RunCodegen(backend=NAME)])
    module = sequence(partitioned())
    assert any(r.reason == "shape" and "too large for it" in r.detail for r in sequence.remarks)
    close(tenon.compile(module)(*arrays), expected(*arrays))


def test_the_hook_raises():
    @tenon.graph_to_tir(NAME)
    def lower(function, context):
        return function.no_such_attribute

    with pytest.raises(tenon.CallbackError, match=f"hook `graph_to_tir` of back end `{NAME}` raised AttributeError") as caught:
        tenon.transform.RunCodegen(backend=NAME)(partitioned())
    assert "return function.no_such_attribute" in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("answer", [3, None, "main"])
def test_what_the_hook_may_not_answer(answer):
    tenon.graph_to_tir(NAME)(lambda function, context: function if answer == "main" else answer)
    with pytest.raises(tenon.CompileError, match="expected a PrimFunc, or the module with one of that name"):
        tenon.transform.RunCodegen(backend=NAME)(partitioned())


def c_of(module, names):
    """The code that the library would have, of the shapes at hand."""
    assert all(module[name].attrs["target"] == NAME for name in names)
    bodies = [
        f"void {name}(const float* x, const float* w0, const float* b0, const float* w1, const float* b1, float* y) "
        "{ static float t[64 * 500]; dense_bias_relu(x, w0, b0, t); dense_bias(t, w1, b1, y); }"
        for name in names
    ]
    return CSource("\n".join(bodies), prelude=LIBRARY.replace("int32_t dense", "static int32_t dense"))


def test_kernels_become_code(arrays):
    tenon.graph_to_tir(NAME)(lambda function, context: LowerFusedNodes().visit(function))
    tenon.tir_to_runtime(NAME)(c_of)
    module = tenon.transform.RunCodegen(backend=NAME)(partitioned())
    (artefact,) = module.attrs["external_mods"]
    assert artefact["kind"] == "c" and artefact["origin"] == NAME
    assert module["tvmgen_default_toy_cg_thflow_main_0"].kind == "extern"
    close(tenon.compile(module)(*arrays), expected(*arrays))


def test_code_alone(arrays):
    @tenon.tir_to_runtime(NAME)
    def build(module, names):
        return c_of(module, names)

    module = tenon.transform.RunCodegen(backend=NAME)(partitioned())
    close(tenon.compile(module)(*arrays), expected(*arrays))


def test_what_the_second_hook_may_not_answer():
    tenon.tir_to_runtime(NAME)(lambda module, names: "int f;")
    with pytest.raises(tenon.CallbackError, match="`tir_to_runtime` answered with 'int f;'; expected a CSource or an ObjectFile"):
        tenon.transform.RunCodegen(backend=NAME)(partitioned())


def test_as_methods_of_a_class(arrays, library):
    @tenon.backend(NAME, unit="region")
    class Toy:
        def graph_to_tir(self, function, context):
            return LowerFusedNodes().visit(function)

    module = tenon.transform.RunCodegen(backend=NAME)(partitioned())
    close(tenon.compile(module, link=library)(*arrays), expected(*arrays))


def test_hooks_that_cannot_be():
    with pytest.raises(TypeError, match="expected a function"):
        tenon.graph_to_tir(NAME)(3)
    with pytest.raises(ValueError, match="`unit` is 'row'"):
        tenon.graph_to_tir(NAME, unit="row")(lambda function, context: function)


# ---- a back end as a pass from module to module ------------------------------------------------------


def conv_relu(x, w):
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return np.maximum(np.einsum("nchwij,ocij->nohw", windows, w), 0).astype(np.float32)


@pytest.fixture
def images():
    return [RNG.standard_normal(shape, dtype=np.float32) for shape in [(1, 10, 32, 32), (20, 10, 3, 3)]]


def test_a_function_of_the_module_goes_to_python(images):
    tenon.register_backend("conv_lib", generate=lambda match: conv_relu)
    try:
        run_byoc = tenon.transform.RunCodegen(backend="conv_lib", function="conv_relu", symbol="conv_relu_lib")
        module = run_byoc(MyMod)
        assert module.attrs["external_mods"][0]["symbols"] == ["conv_relu_lib"]
        close(tenon.compile(module)(*images), conv_relu(*images))
        close(tenon.compile(MyMod)(*images), conv_relu(*images))
    finally:
        tenon.unregister_backend("conv_lib")


def test_a_module_with_a_function_of_a_library(images, tmp_path):
    library = tmp_path / "conv.c"
    library.write_text(
        """#include <stdint.h>
void conv_relu_lib(const float* x, const float* w, float* y) {
  for (int o = 0; o < 20; ++o)
    for (int h = 0; h < 32; ++h)
      for (int k = 0; k < 32; ++k) {
        float s = 0;
        for (int c = 0; c < 10; ++c)
          for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j) {
              int a = h + i - 1, b = k + j - 1;
              if (a >= 0 && a < 32 && b >= 0 && b < 32) s += x[(c * 32 + a) * 32 + b] * w[((o * 10 + c) * 3 + i) * 3 + j];
            }
        y[(o * 32 + h) * 32 + k] = s > 0 ? s : 0;
      }
}
"""
    )
    close(tenon.compile(MyModWithBYOCExtern, link=library)(*images), conv_relu(*images))
