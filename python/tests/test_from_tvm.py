# SPDX-License-Identifier: Apache-2.0
"""Python as TVM's users write it, with the names of docs/python-from-tvm.md."""

import numpy as np
import pytest

import tenon
import tenon as tvm
from tenon import ExprMutator, Function, tir
from tenon.dpl import is_op, rewrite_call, wildcard
from tenon.script import ir as I
from tenon.script import relax as R
from tenon.script import tir as T
from tenon.script.relax import dataflow, op

RNG = np.random.default_rng(0)


# ---- a graph function that a library computes ------------------------------------------------------


@tvm.script.ir_module
class MyMod:
    @R.func
    def conv_relu(x: R.Tensor((1, 10, 32, 32), "float32"), w: R.Tensor((20, 10, 3, 3), "float32")):
        with dataflow():
            lv0 = op.conv2d(x, w, padding=(1, 1))
            gv0 = op.relu(lv0)
            R.output(gv0)
        return gv0

    @R.func
    def main(x: R.Tensor((1, 10, 32, 32), "float32"), w: R.Tensor((20, 10, 3, 3), "float32")):
        lv0: R.Tensor((1, 20, 32, 32), "float32") = conv_relu(x, w)  # noqa: F821
        return lv0


@tvm.script.ir_module
class MyModWithBYOCExtern:
    @R.func
    def main(x: R.Tensor((1, 10, 32, 32), "float32"), w: R.Tensor((20, 10, 3, 3), "float32")):
        lv0 = R.call_dps_packed(R.extern("conv_relu_lib"), [x, w], (1, 20, 32, 32), dtype="float32")
        return lv0


def test_module_with_a_function_for_a_library():
    x, w = (RNG.standard_normal(shape, dtype=np.float32) for shape in [(1, 10, 32, 32), (20, 10, 3, 3)])
    y = tenon.compile(MyMod)(x, w)
    assert y.shape == (1, 20, 32, 32) and (np.asarray(y) >= 0).all()


def test_library_by_a_pass():
    module = tenon.transform.RunCodegen(function="conv_relu", backend="toy", symbol="conv_relu_lib")(MyMod)
    assert 'R.call_dps_packed("conv_relu_lib", (x, w)' in module.script()
    assert 'R.call_dps_packed("conv_relu_lib", (x, w)' in MyModWithBYOCExtern.script()


def test_library_by_a_pattern():
    x, w = wildcard(), wildcard()
    pattern = is_op("nn.relu")(is_op("nn.conv2d")(x, w))

    def to_library(expr, matches):
        out = R.Tensor(expr.shape, expr.dtype)
        return R.call_dps_packed("conv_relu_lib", (matches[x], matches[w]), out_sinfo=out)

    module = rewrite_call(pattern, to_library, MyMod)
    assert 'R.call_dps_packed("conv_relu_lib", (x, w)' in module["conv_relu"].script()


def test_two_libraries_in_turn():
    # Each is a pass from module to module, so they are joined in any order.
    first = tenon.transform.RunCodegen(function="conv_relu", backend="toy", symbol="conv_relu_lib")
    module = first(MyMod)
    x = wildcard()
    again = rewrite_call(is_op("nn.relu")(x), lambda expr, matches: R.nn.gelu(matches[x]), module)
    assert again == module  # it is in the library


# ---- kernels that call kernels ---------------------------------------------------------------------


def test_a_kernel_calls_kernels():
    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def add(a: T.Buffer((16,), "float32"), b: T.Buffer((16,), "float32"), c: T.Buffer((16,), "float32")):
            for i in range(16):
                c[i] = a[i] + b[i]

        @T.prim_func
        def main(x: T.Buffer((16,), "float32"), y: T.Buffer((16,), "float32"), z: T.Buffer((16,), "float32")):
            cls = Module
            total = T.call_tir(cls.add, x, y)
            T.call_tir(cls.add, total, y, z)

    x, y = (RNG.standard_normal(16, dtype=np.float32) for _ in range(2))
    np.testing.assert_allclose(tenon.compile(Module)(x, y), x + y + y, rtol=1e-6)


def test_shapes_of_the_call_and_the_kernel_are_compared():
    with pytest.raises(tenon.CompileError) as caught:

        @I.ir_module
        class Module:
            @T.prim_func(private=True)
            def copy(a: T.Buffer((16,), "float32"), b: T.Buffer((16,), "float32")):
                for i in range(16):
                    b[i] = a[i]

            @T.prim_func
            def main(x: T.Buffer((8,), "float32"), y: T.Buffer((16,), "float32")):
                cls = Module
                T.call_tir(cls.copy, x, y)

    assert caught.value.place.file == __file__


# ---- an operator that a kernel computes -------------------------------------------------------------


@T.prim_func
def my_matmul(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8, 3), "float32"), C: T.Buffer((4, 3), "float32")):
    for i, j, k in T.grid(4, 3, 8):
        with T.block("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def test_a_graph_calls_a_kernel():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 3), "float32")):
            with R.dataflow():
                y = R.call_tir(my_matmul, (x, w), R.Tensor((4, 3), "float32"))
                R.output(y)
            return y

    x, w = (RNG.standard_normal(shape, dtype=np.float32) for shape in [(4, 8), (8, 3)])
    np.testing.assert_allclose(tenon.compile(Module)(x, w), x @ w, rtol=1e-5)


def test_an_imported_network_calls_a_kernel():
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (4, 8))
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (4, 3))
    weight = RNG.standard_normal((8, 3), dtype=np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])]
    graph = helper.make_graph(nodes, "net", [x], [y], [onnx.numpy_helper.from_array(weight, "w")])
    module = tenon.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))

    a, b = wildcard(), wildcard()
    module = rewrite_call(
        is_op("matmul")(a, b),
        lambda expr, m: R.call_tir(my_matmul, (m[a], m[b]), out_sinfo=R.Tensor((4, 3), "float32")),
        module,
    )
    assert "R.call_tir(cls.my_matmul" in module.script()
    inputs = RNG.standard_normal((4, 8), dtype=np.float32)
    np.testing.assert_allclose(tenon.compile(module)(inputs), np.maximum(inputs @ weight, 0), rtol=1e-5, atol=1e-6)


# ---- a region of a library as a kernel --------------------------------------------------------------


def region():
    text = (tenon_root() / "tests/golden/relay/print/region_with_composites.relay").read_text()
    return tenon.load(text.split("// EXPECT")[0])


def tenon_root():
    from pathlib import Path

    return Path(__file__).parents[2]


class LowerFusedNodesSimple(ExprMutator):
    # Convert Call node to tir.call_extern
    def visit_call(self, call):
        fn = self.function_of(call)
        if isinstance(fn, Function) and "Composite" in fn.attrs:
            if fn.attrs["Composite"].split(".")[0] == "toy_cg_thflow":
                call_ext_args = []
                for arg in call.args:
                    self.visit(arg)
                    call_ext_args.append(self.memo_map[arg])
                return tir.call_extern(call.dtype, fn.attrs["Composite"].split(".")[1], *call_ext_args)
        return None

    # Convert Function node to PrimFunc
    def visit_function(self, fn):
        # Recursively visit params
        new_params = [self.visit(x) for x in fn.params]
        new_body = self.visit(fn.body)
        if new_params == list(fn.params) and new_body == fn.body:
            return fn
        if "toy_cg_thflow" in fn.attrs.get("Compiler", ""):
            buffer_dict = {
                self.memo_map[arg]: tir.decl_buffer(shape=arg.shape, dtype=arg.dtype, name=arg.name_hint) for arg in fn.params
            }
            attrs = {"global_symbol": fn.name, "tir.noalias": True}
            return tir.PrimFunc(
                params=buffer_dict.keys(), body=tir.Evaluate(self.memo_map[fn.body]), buffer_map=buffer_dict, attrs=attrs
            )

    # Convert graph Var to tir Var
    def visit_var(self, var):
        return tir.Var(var.name_hint, "handle")

    # Convert graph const to TIR const
    def visit_constant(self, const):
        return tir.FloatImm(const.dtype, const.data)


def test_composites_become_nested_calls():
    module = LowerFusedNodesSimple().visit(region())
    kernel = module["tvmgen_default_toy_cg_thflow_main_0"]
    assert kernel.kind == "prim_func"
    script = kernel.script()
    assert 'T.call_extern("float32", "dense_bias", T.call_extern("float32", "dense_bias_relu"' in script


class LowerFusedNodes(ExprMutator):
    """The same with a buffer for what each composite computes: the last one's is the result."""

    def visit_call(self, call):
        fn = self.function_of(call)
        args = [self.visit(arg).data for arg in call.args]
        out = tir.decl_buffer(call.shape, call.dtype, fn.attrs["Composite"].split(".")[1] + "_out")
        self.calls.append((out, tir.Evaluate(tir.call_extern("int32", fn.attrs["Composite"].split(".")[1], *args, out.data))))
        return out

    def visit_var(self, var):
        return tir.decl_buffer(var.shape, var.dtype, var.name_hint)

    def visit_function(self, fn):
        if fn.attrs.get("Compiler") != "toy_cg_thflow":
            return fn
        self.calls = []
        params = [self.visit(param) for param in fn.params]
        result = self.visit(fn.body)
        body = []
        for out, statement in self.calls:
            if out is not result:
                body.append(tir.AllocBuffer(out))
            body.append(statement)
        return tir.PrimFunc([*params, result], tir.SeqStmt(body), attrs={"global_symbol": fn.name, "tir.noalias": True})


LIBRARY = """
#include <stdint.h>
int32_t dense_bias(const float* x, const float* w, const float* b, float* y) {
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 10; ++j) {
      float s = b[j];
      for (int k = 0; k < 500; ++k) s += x[i * 500 + k] * w[j * 500 + k];
      y[i * 10 + j] = s;
    }
  return 0;
}
int32_t dense_bias_relu(const float* x, const float* w, const float* b, float* y) {
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 500; ++j) {
      float s = b[j];
      for (int k = 0; k < 800; ++k) s += x[i * 800 + k] * w[j * 800 + k];
      y[i * 500 + j] = s > 0 ? s : 0;
    }
  return 0;
}
"""


def test_composites_become_calls_with_buffers(tmp_path):
    module = LowerFusedNodes().visit(region())
    script = module["tvmgen_default_toy_cg_thflow_main_0"].script()
    assert "dense_bias_relu_out" in script and "dense_bias_out.data" in script
    kernel = module["tvmgen_default_toy_cg_thflow_main_0"]

    @I.ir_module
    class Network:
        @R.function
        def main(
            x: R.Tensor((64, 800), "float32"),
            w0: R.Tensor((500, 800), "float32"),
            b0: R.Tensor((500,), "float32"),
            w1: R.Tensor((10, 500), "float32"),
            b1: R.Tensor((10,), "float32"),
        ):
            return R.call_tir(kernel, (x, w0, b0, w1, b1), out_sinfo=R.Tensor((64, 10), "float32"))

    library = tmp_path / "library.c"
    library.write_text(LIBRARY)
    program = tenon.compile(Network, link=library)
    x, w0, b0, w1, b1 = inputs = [
        RNG.standard_normal(shape, dtype=np.float32) for shape in [(64, 800), (500, 800), (500,), (10, 500), (10,)]
    ]
    expected = np.maximum(x @ w0.T + b0, 0) @ w1.T + b1
    np.testing.assert_allclose(program(*inputs), expected, rtol=1e-3, atol=1e-2)
    # As the network computes it.
    np.testing.assert_allclose(tenon.compile(region())(*inputs), expected, rtol=1e-3, atol=1e-2)


def dense_bias():
    x, w, b = wildcard(), wildcard(), wildcard()
    return is_op("add")(is_op("matmul")(x, is_op("permute_dims")(w)), b)


def partition_for_toy(mod):
    """A partition function: composites, regions, and each region as a function of the module."""
    patterns = [("toy_cg_thflow.dense_bias_relu", is_op("nn.relu")(dense_bias())), ("toy_cg_thflow.dense_bias", dense_bias())]
    mod = tenon.dpl.merge_composite(mod, patterns)
    for step in [
        tenon.transform.AnnotateTarget(targets=["toy_cg_thflow"]),
        tenon.transform.MergeCompilerRegions(),
        tenon.transform.PartitionGraph(),
        tenon.transform.OutlineCompilerFunctionsWithExistingGlobalSymbols(compiler="toy_cg_thflow"),
    ]:
        mod = step(mod)
    return mod


NETWORK = """
def @main(%x: Tensor[(64, 800), float32], %w0: Tensor[(500, 800), float32], %b0: Tensor[(500), float32],
          %w1: Tensor[(10, 500), float32], %b1: Tensor[(10), float32]) {
  %0 = nn.dense(%x, %w0, units=None);
  %1 = nn.bias_add(%0, %b0, axis=-1);
  %2 = nn.relu(%1);
  %3 = nn.dense(%2, %w1, units=None);
  nn.bias_add(%3, %b1, axis=-1)
}
"""


def test_partition_function():
    network = tenon.load(NETWORK)
    module = partition_for_toy(network)
    name = "tvmgen_default_toy_cg_thflow_main_0"
    assert name in module and module[name].attrs["Compiler"] == "toy_cg_thflow"
    kernel = LowerFusedNodes().visit(module)[name]
    script = kernel.script()
    assert script.index('"dense_bias_relu"') < script.index('"dense_bias"')


# ---- the tutorial on TensorIR -----------------------------------------------------------------------


@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def main(a: T.handle, b: T.handle):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        A = T.match_buffer(a, (8,), dtype="float32")
        B = T.match_buffer(b, (8,), dtype="float32")
        for i in range(8):
            # A block is an abstraction for computation.
            with T.block("B"):
                # Define a spatial block iterator and bind it to value i.
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + 1.0


def test_schedule_of_the_tutorial():
    sch = tvm.tir.Schedule(MyModule)
    block_b = sch.get_block("B")
    (i,) = sch.get_loops(block_b)
    i_0, i_1, i_2 = sch.split(i, factors=[2, 2, 2])
    assert "T.grid(2, 2, 2)" in sch.mod.script()
    sch.reorder(i_0, i_2, i_1)
    assert "for i_0, i_2, i_1 in T.grid(2, 2, 2)" in sch.mod.script()
    mod = tvm.compile(sch.mod, target="llvm")
    a, b = np.arange(8).astype("float32"), np.zeros((8,)).astype("float32")
    mod(a, out=b)
    np.testing.assert_array_equal(b, a + 1)


# ---- an operator whose implementation is TensorIR alone ----------------------------------------------


def schedule_matmul(function):
    """A schedule, and no compute: the definition is TensorIR."""
    sch = tvm.tir.Schedule(function)
    i, j, k = sch.get_loops(sch.get_block("matmul"))
    sch.reorder(i, k, j)
    sch.unroll(j)
    return sch.func


def matmul_strategy(attrs, shapes, dtypes, target):
    """As a strategy of an operator: which implementation for which call and target."""
    return target.kind == "llvm" and shapes == [(4, 8), (8, 3), (4, 3)] and set(dtypes) == {"float32"}


scheduled_matmul = tvm.kernel("matmul", when=matmul_strategy, priority=10)(schedule_matmul(my_matmul))


def used_kernels(program):
    return {remark.detail.split("`")[1] for remark in program.remarks if remark.pass_name == "SelectKernels" and remark.verdict == "used"}


def test_a_strategy_for_a_graph():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 3), "float32"), v: R.Tensor((4, 8), "float32")):
            with R.dataflow():
                y = R.matmul(x, w)
                z = R.nn.relu(y)
                R.output(z)
            return z

    program = tvm.compile(Module, kernels=[scheduled_matmul])
    assert used_kernels(program) == {"my_matmul"}
    x, w, v = (RNG.standard_normal(shape, dtype=np.float32) for shape in [(4, 8), (8, 3), (4, 8)])
    np.testing.assert_allclose(program(x, w, v), np.maximum(x @ w, 0), rtol=1e-5, atol=1e-6)
    assert used_kernels(tvm.compile(Module, kernels=[scheduled_matmul], target="c")) == set()
    assert tvm.check_kernels([scheduled_matmul], trials=1).ok


def test_a_strategy_for_an_onnx_file_and_for_relay(tmp_path):
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    x, w, y = (
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in [("x", (4, 8)), ("w", (8, 3)), ("y", (4, 3))]
    )
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"], name="product"), helper.make_node("Relu", ["p"], ["y"])]
    model = helper.make_model(helper.make_graph(nodes, "net", [x, w], [y]), opset_imports=[helper.make_opsetid("", 17)])
    path = tmp_path / "net.onnx"
    onnx.save(model, path)
    relay = """#[version = "0.0.5"]
def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(8, 3), float32]) -> Tensor[(4, 3), float32] {
  %0 = nn.matmul(%x, %w, units=None);
  nn.relu(%0)
}
"""
    inputs = [RNG.standard_normal(shape, dtype=np.float32) for shape in [(4, 8), (8, 3)]]
    for network in (path, relay):
        program = tvm.compile(network, kernels=[scheduled_matmul])
        assert used_kernels(program) == {"my_matmul"}
        np.testing.assert_allclose(program(*inputs), np.maximum(inputs[0] @ inputs[1], 0), rtol=1e-5, atol=1e-6)
    # One call of the network, by its name.
    assert used_kernels(tvm.compile(path, kernels={"product": my_matmul})) == {"my_matmul"}


def test_each_call_that_a_strategy_takes_becomes_a_call_of_its_kernel():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 3), "float32")):
            with R.dataflow():
                y = R.matmul(x, w)
                R.output(y)
            return y

    kernel = scheduled_matmul
    for name, function in kernel.module.functions.items():
        Module[name] = function
    module = tenon.transform.SelectKernels()(Module.with_attrs({"target": "llvm"}))
    assert "R.call_tir(cls.my_matmul" in module["main"].script()


def test_sub_operators_become_one_kernel():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 3), "float32")):
            with R.dataflow():
                y = R.matmul(x, w)
                z = R.nn.relu(y)
                R.output(z)
            return z

    # A definition without a schedule is composed with its neighbours, as the compiler's own are.
    for name, function in tvm.kernel("matmul")(my_matmul).module.functions.items():
        Module[name] = function
    module = Module.with_attrs({"target": "llvm"})
    for step in (tenon.transform.SelectKernels(), tenon.transform.LegalizeOps(), tenon.transform.FuseOps(), tenon.transform.FuseTIR()):
        module = step(module)
    main = module["main"].script()
    assert main.count("R.call_tir(") == 1
    fused = module[main.split("R.call_tir(cls.")[1].split(",")[0]].script()
    assert 'T.block("matmul")' in fused and "T.max(" in fused


# ---- T.call_tir --------------------------------------------------------------------------------------


def test_a_call_of_a_kernel_has_memory_for_what_it_gives():
    # The value of a call is a buffer of the caller's, which stands before the call and is its last argument.
    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def double(a: T.Buffer((16,), "float32"), b: T.Buffer((16,), "float32")):
            for i in range(16):
                b[i] = a[i] * 2.0

        @T.prim_func
        def main(x: T.Buffer((16,), "float32"), y: T.Buffer((16,), "float32")):
            cls = Module
            tmp_buffer = T.call_tir(cls.double, x)
            T.call_tir(cls.double, tmp_buffer, y)

    script = Module["main"].script()
    texts = ["tmp_buffer = T.", "T.call_tir(cls.double, x", "T.call_tir(cls.double, tmp_buffer"]
    assert sorted(texts, key=script.index) == texts
    x = RNG.standard_normal(16, dtype=np.float32)
    np.testing.assert_array_equal(tenon.compile(Module)(x), x * 4)


def test_a_call_stays_in_its_module():
    with pytest.raises(tenon.CompileError, match="printf"):

        @I.ir_module
        class Module:
            @T.prim_func
            def main(x: T.Buffer((16,), "float32")):
                cls = Module
                T.call_tir(cls.printf, x)


def test_a_call_takes_regions_of_buffers():
    def doubled_rows(end):
        @I.ir_module
        class Module:
            @T.prim_func(private=True)
            def double(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "float32")):
                for i in range(8):
                    b[i] = a[i] * 2.0

            @T.prim_func
            def main(x: T.Buffer((4, 8), "float32"), y: T.Buffer((4, 8), "float32")):
                cls = Module
                for row in T.parallel(4):
                    T.call_tir(cls.double, x[row, 0:end], y[row, 0:8])

        return Module

    x = RNG.standard_normal((4, 8), dtype=np.float32)
    np.testing.assert_array_equal(tenon.compile(doubled_rows(8))(x), x * 2)
    with pytest.raises(tenon.CompileError, match="7"):
        doubled_rows(7)
