# SPDX-License-Identifier: Apache-2.0
"""Kernels of one's own in Python: conditions, choices for nodes, and their check."""

import linecache
import traceback
import warnings

import numpy as np
import pytest

import tenon
from tenon.script import ir as I
from tenon.script import relax as R
from tenon.script import tir as T

RNG = np.random.default_rng(0)


@T.prim_func
def relu_kernel(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32")):
    n = T.int64()
    m = T.int64()
    for i, j in T.grid(n, m):
        with T.block("my_relu"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.max(x[vi, vj], T.float32(0))


@T.prim_func
def wrong_relu(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32")):
    n = T.int64()
    m = T.int64()
    for i, j in T.grid(n, m):
        with T.block("wrong"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.max(x[vi, vj], T.float32(1))


@T.prim_func
def softmax_kernel(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32")):
    n = T.int64()
    m = T.int64()
    top = T.alloc_buffer((n,), "float32")
    total = T.alloc_buffer((n,), "float32")
    for i, j in T.grid(n, m):
        with T.block("top"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                top[vi] = T.min_value("float32")
            top[vi] = T.max(top[vi], x[vi, vj])
    for i, j in T.grid(n, m):
        with T.block("total"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + T.exp(x[vi, vj] - top[vi])
    for i, j in T.grid(n, m):
        with T.block("softmax"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.exp(x[vi, vj] - top[vi]) / total[vi]


@I.ir_module
class Network:
    @R.function
    def main(x: R.Tensor((4, 32), "float32")):
        with R.dataflow():
            a = R.nn.relu(x)
            b = R.negative(a)
            c = R.nn.relu(b)
            d = R.nn.softmax(c, axis=-1)
            R.output(d)
        return d


@I.ir_module
class AnyBatch:
    @R.function
    def main(x: R.Tensor(("n", 32), "float32")):
        with R.dataflow():
            a = R.nn.relu(x)
            R.output(a)
        return a


def selected(module, kernels):
    """What passes see after kernels are chosen, and the remarks."""
    program = tenon.compile(module, kernels=kernels)
    remarks = [remark for remark in program.remarks if remark.pass_name == "SelectKernels"]
    return program, [(remark.subject, remark.verdict, remark.reason) for remark in remarks]


def node_of(subject):
    """The name of a node of a network; of a line of a script the variable that it binds."""
    file, _, line = subject.rpartition(":")
    return linecache.getline(file, int(line)).split("=")[0].strip() if file.endswith(".py") else subject


def used(module, kernels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tenon.TenonWarning)
        return sorted({node_of(subject) for subject, verdict, _ in selected(module, kernels)[1] if verdict == "used"})


def expected(x):
    c = np.maximum(-np.maximum(x, 0), 0)
    e = np.exp(c - c.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# ---- what a kernel says of itself ------------------------------------------------------------------


def test_the_annotations_of_the_command_line():
    made = tenon.kernel("nn.relu", when="m % 16 == 0", priority=3, attrs={}, target=["llvm", "fma"], node="a")(relu_kernel)
    assert made.attrs == {
        "op": "nn.relu", "op_when": "m % 16 == 0", "op_priority": 3, "op_attrs": {}, "op_target": ["llvm", "fma"], "op_node": "a",
    }  # fmt: skip
    assert "op" not in relu_kernel.attrs  # a copy
    assert made.name == "relu_kernel" and isinstance(made, tenon.Function)
    # As a file would have it.
    text = made.module.script()
    assert '"op_when": "m % 16 == 0"' in text and tenon.load(text)["relu_kernel"] == made


def test_a_decorated_function():
    @tenon.kernel("nn.relu")
    @T.prim_func
    def mine(x: T.Buffer((4, 32), "float32"), y: T.Buffer((4, 32), "float32")):
        for i, j in T.grid(4, 32):
            y[i, j] = T.max(x[i, j], T.float32(0))

    assert used(Network, [mine]) == ["a", "c"]
    x = RNG.standard_normal((4, 32), dtype=np.float32)
    np.testing.assert_allclose(tenon.compile(Network, kernels=mine)(x), expected(x), rtol=1e-5)


def test_it_still_runs():
    x = RNG.standard_normal((2, 3), dtype=np.float32)
    np.testing.assert_array_equal(tenon.kernel("nn.relu")(relu_kernel)(x), np.maximum(x, 0))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: tenon.kernel("nn.rellu")(relu_kernel), tenon.CompileError, "no operator; did you mean `nn.relu`"),
        (lambda: tenon.kernel("nn.relu", when="m %% 2")(relu_kernel), tenon.CompileError, "condition `m %% 2`"),
        (lambda: tenon.kernel("nn.relu", when="k == 2")(relu_kernel), tenon.CompileError, "k"),
        (lambda: tenon.kernel("matmul")(relu_kernel), tenon.CompileError, "`matmul` has 2 tensors in"),
        (lambda: tenon.kernel("nn.relu")(lambda x: x), TypeError, "expected a function under @T.prim_func"),
        (lambda: tenon.kernel("nn.relu")(Network["main"]), TypeError, "a kernel is a function under @T.prim_func; `main`"),
        (lambda: tenon.kernel(relu_kernel)(relu_kernel), TypeError, "a function under @R.function; `relu_kernel` is none"),
        (lambda: tenon.kernel("nn.relu", when=3)(relu_kernel), TypeError, "`when` is 3"),
        (lambda: tenon.kernel("nn.relu", when=lambda shape: True)(relu_kernel), TypeError, "has a parameter `shape`; expected of attrs"),
        (lambda: tenon.compile(Network, kernels=[relu_kernel]), tenon.UsageError, "`relu_kernel` does not say which operator"),
    ],
)
def test_what_is_wrong_is_said_at_once(make, error, message):
    with pytest.raises(error, match=message):
        make()


# ---- conditions ------------------------------------------------------------------------------------


def test_a_condition_sees_the_call():
    seen = []

    def when(attrs, shapes, dtypes, target):
        seen.append((attrs, shapes, dtypes, target))
        return True

    assert used(Network, [tenon.kernel("nn.softmax", when=when, attrs={"axis": -1})(softmax_kernel)]) == ["d"]
    attrs, shapes, dtypes, target = seen[0]
    assert attrs["axis"] == -1 and shapes == [(4, 32), (4, 32)] and dtypes == ["float32", "float32"]
    assert isinstance(target, tenon.Target) and target.kind == "llvm" and target.has("llvm")


def test_a_condition_takes_what_it_needs():
    by_shape = tenon.kernel("nn.relu", when=lambda shapes: shapes[0][-1] % 32 == 0)(relu_kernel)
    by_all = tenon.kernel("nn.relu", when=lambda **known: known["dtypes"][0] == "float32")(relu_kernel)
    assert used(Network, by_shape) == ["a", "c"] and used(Network, by_all) == ["a", "c"]


@pytest.mark.parametrize("answer", [False, 0, None])
def test_no(answer):
    assert used(Network, tenon.kernel("nn.relu", when=lambda: answer)(relu_kernel)) == []


def test_a_reason_is_told():
    kernel = tenon.kernel("nn.relu", when=lambda shapes: f"{shapes[0][1]} columns are too many")(relu_kernel)
    with pytest.warns(tenon.TenonWarning, match="`relu_kernel` is not used: condition: 32 columns are too many"):
        _, remarks = selected(Network, [kernel])
    assert {remark[1:] for remark in remarks} == {("refused", "condition")}


def test_conditions_of_a_target():
    kernel = tenon.kernel("nn.relu", when=lambda target: target.kind == "c")(relu_kernel)
    assert used(Network, kernel) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tenon.compile(Network, kernels=kernel, target="c")


def test_what_is_not_known_does_not_hold():
    asked = []

    def when(shapes):
        asked.append(shapes[0])
        return shapes[0][0] <= 8

    kernel = tenon.kernel("nn.relu", when=when)(relu_kernel)
    with pytest.warns(tenon.TenonWarning, match="`n <= .*` is not known to hold"):
        tenon.compile(AnyBatch, kernels=kernel)
    n, m = asked[0]
    assert str(n) == "n" and m == 32
    # What holds for all sizes is known.
    assert used(AnyBatch, tenon.kernel("nn.relu", when=lambda shapes: shapes[0][0] + 1 > shapes[0][0])(relu_kernel)) == ["a"]


def test_an_exception_has_both_tracebacks():
    def when(shapes):
        return shapes[5] == 3

    kernel = tenon.kernel("nn.relu", when=when)(relu_kernel)
    with pytest.raises(tenon.CallbackError, match="condition of kernel `relu_kernel` raised IndexError") as caught:
        tenon.compile(Network, kernels=kernel)
    assert isinstance(caught.value.__cause__, IndexError)
    text = "".join(traceback.format_exception(caught.value))
    assert "return shapes[5] == 3" in text and "tenon.compile(Network, kernels=kernel)" in text


def test_an_interrupt_goes_on_as_it_is():
    def when():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tenon.compile(Network, kernels=tenon.kernel("nn.relu", when=when)(relu_kernel))


def test_a_condition_of_another_process():
    text = tenon.kernel("nn.relu", when=lambda: True)(relu_kernel).module.script()
    name = text.split('"op_check": "')[1].split('"')[0]
    other = tenon.load(text.replace(name, "relu_kernel#0"))
    with pytest.warns(tenon.TenonWarning, match="its condition `relu_kernel#0` is of a program that has ended"):
        tenon.compile(Network, kernels=[other])


# ---- which kernel ----------------------------------------------------------------------------------


def test_priorities():
    low = tenon.kernel("nn.relu", priority=1)(wrong_relu)
    high = tenon.kernel("nn.relu", priority=2, when=lambda shapes: shapes[0] == (4, 32))(relu_kernel)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one of them is used
        program, remarks = selected(Network, [low, high])
    assert ("a", "refused", "lower-priority") in {(node_of(subject), *rest) for subject, *rest in remarks}
    x = RNG.standard_normal((4, 32), dtype=np.float32)
    np.testing.assert_allclose(program(x), expected(x), rtol=1e-5)


def test_several_kernels_and_files(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(tenon.kernel("nn.relu")(relu_kernel).module.script())
    soft = tenon.kernel("nn.softmax", attrs={"axis": -1})(softmax_kernel)
    assert used(Network, [file, soft]) == ["a", "c", "d"]
    assert used(Network, [soft.module, tenon.kernel("nn.relu")(relu_kernel)]) == ["a", "c", "d"]


def test_a_kernel_for_one_node():
    assert used(Network, {"c": relu_kernel}) == ["c"]
    assert used(Network, [{"c": relu_kernel}, tenon.kernel("softmax", attrs={"axis": -1})(softmax_kernel)]) == ["c", "d"]
    assert used(Network, {"nn.relu": relu_kernel}) == ["a", "c"]


def test_a_node_beside_a_file(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(relu_kernel.module.script())
    assert used(Network, {"c": f"{file}:relu_kernel"}) == ["c"]


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        ({"z": relu_kernel}, "kernel `relu_kernel` for `z`: the model has no node `z`"),
        ({"c": "nowhere"}, "expected OPERATOR=FILE:FUNCTION"),
    ],
)
def test_wrong_nodes(kernels, message):
    with pytest.raises(tenon.UsageError, match=message):
        tenon.compile(Network, kernels=kernels)


def test_nodes_of_a_network(digits):
    @T.prim_func
    def relu4(x: T.Buffer(("n", "c", "h", "w"), "float32"), y: T.Buffer(("n", "c", "h", "w"), "float32")):
        n = T.int64()
        c = T.int64()
        h = T.int64()
        w = T.int64()
        for i, j, k, m in T.grid(n, c, h, w):
            with T.block("relu4"):
                vi, vj, vk, vm = T.axis.remap("SSSS", [i, j, k, m])
                y[vi, vj, vk, vm] = T.max(x[vi, vj, vk, vm], T.float32(0))

    asked = []
    kernel = tenon.kernel("Relu", when=lambda shapes: asked.append(shapes) or True)(relu4)
    names = used(digits, [kernel])
    assert names and asked
    image = RNG.standard_normal((1, 1, 8, 8), dtype=np.float32)
    np.testing.assert_allclose(tenon.compile(digits, kernels=kernel)(image), tenon.compile(digits)(image), rtol=1e-5)
    assert used(digits, {names[0]: relu4}) == [names[0]]


def test_a_pattern():
    @R.function
    def relu_of_negative(x: R.Tensor):
        return R.nn.relu(R.negative(x))

    @tenon.kernel(relu_of_negative, when=lambda shapes: len(shapes) == 2)
    @T.prim_func
    def both(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32")):
        n = T.int64()
        m = T.int64()
        for i, j in T.grid(n, m):
            with T.block("both"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = T.max(T.float32(0) - x[vi, vj], T.float32(0))

    assert both.attrs["op"] == "relu_of_negative" and "relu_of_negative" in both.module
    assert used(Network, both) == ["b", "c"]
    # A kernel of higher priority for the same pattern.
    other = tenon.kernel(relu_of_negative, priority=1, when=lambda: False)(wrong_relu)
    x = RNG.standard_normal((4, 32), dtype=np.float32)
    np.testing.assert_allclose(tenon.compile(Network, kernels=[other, both])(x), expected(x), rtol=1e-5)
    assert tenon.check_kernels(both, trials=2).ok


def test_a_declared_operator():
    onnx = pytest.importorskip("onnx")

    @R.function
    def twice(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        R.func_attr({"op": "com.example::Twice"})
        return R.add(x, x)

    def times(factor, when=None):
        @tenon.kernel(twice, when=when)
        @T.prim_func
        def kernel(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
            n = T.int64()
            for i in range(n):
                with T.block("twice"):
                    vi = T.axis.spatial(n, i)
                    y[vi] = x[vi] * T.float32(factor)

        return kernel

    helper = onnx.helper
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (6,)) for name in "xy")
    graph = helper.make_graph([helper.make_node("Twice", ["x"], ["y"], domain="com.example")], "net", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)])
    values = RNG.standard_normal(6, dtype=np.float32)
    never, right = times(3, when=lambda: False), times(2)
    np.testing.assert_allclose(tenon.compile(model, kernels=[never, right])(values), values * 2)
    # The body of the declaration, one operator, is what kernels are compared with.
    report = tenon.check_kernels(right, trials=3)
    assert report.ok and report["kernel"].op == "com.example::Twice" and report["kernel"].largest_error == 0
    (wrong,) = tenon.check_kernels(times(3), trials=3)
    assert wrong.error.code == "TN0903" and "`com.example::Twice` gives" in str(wrong.error)


def test_helpers_come_along():
    @T.prim_func
    def helper(x: T.Buffer((32,), "float32"), y: T.Buffer((32,), "float32")):
        for i in range(32):
            y[i] = T.max(x[i], T.float32(0))

    @tenon.kernel("nn.relu")
    @T.prim_func
    def by_rows(x: T.Buffer(("n", 32), "float32"), y: T.Buffer(("n", 32), "float32")):
        n = T.int64()
        for i in range(n):
            T.call_tir(helper, x[i, 0:32], y[i, 0:32])

    assert used(Network, by_rows) == ["a", "c"]
    x = RNG.standard_normal((4, 32), dtype=np.float32)
    np.testing.assert_allclose(tenon.compile(Network, kernels=by_rows)(x), expected(x), rtol=1e-5)


def test_a_scheduled_kernel():
    sch = tenon.Schedule(relu_kernel)
    _, j = sch.get_loops("my_relu")
    _, inner = sch.split(j, [None, 16])
    sch.vectorize(inner)
    kernel = tenon.kernel("nn.relu", when=lambda shapes: shapes[0][1] % 16 == 0)(sch.func)
    assert used(Network, kernel) == ["a", "c"]
    assert tenon.check_kernels(kernel, sizes={"m": 32}, trials=3).ok


# ---- the check -------------------------------------------------------------------------------------


def test_right_kernels():
    named = []
    report = tenon.check_kernels(
        [tenon.kernel("nn.relu")(relu_kernel), tenon.kernel("nn.softmax", attrs={"axis": -1})(softmax_kernel)],
        trials=3, progress=named.append,
    )  # fmt: skip
    assert report and report.ok and len(report) == 2 and named == ["relu_kernel", "softmax_kernel"]
    relu = report["relu_kernel"]
    assert relu is report[0] and relu.ok and relu.op == "nn.relu" and relu.error is None and relu.not_compiled == ""
    assert len(relu.calls) == 3 and relu.calls[0].startswith("x float32 (1, 1)") and relu.largest_error == 0
    assert str(report).startswith("relu_kernel: ok, nn.relu of 3 shapes, largest error 0")
    assert repr(report) == "<tenon.KernelReport: 2 kernels, 0 wrong>"
    report.raise_if_wrong()
    with pytest.raises(KeyError):
        report["other"]


def test_a_wrong_kernel():
    report = tenon.check_kernels([tenon.kernel("nn.relu")(relu_kernel), tenon.kernel("nn.relu")(wrong_relu)], trials=2)
    assert not report and [kernel.ok for kernel in report] == [True, False]
    error = report["wrong_relu"].error
    assert isinstance(error, tenon.CompileError) and error.place.file == __file__
    assert "gives 1 for element" in str(error) and error.diagnostics[0].name == "wrong-result"
    with pytest.raises(tenon.CompileError, match="gives 1 for element"):
        report.raise_if_wrong()


def test_files_and_modules_are_checked(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(tenon.kernel("nn.relu")(relu_kernel).module.script())
    assert tenon.check_kernels(file, trials=2).ok
    assert tenon.check_kernels(str(file), trials=2).ok
    assert tenon.check_kernels(tenon.load(file), trials=2).ok
    assert tenon.check_kernels({"nn.relu": relu_kernel}, trials=2).ok


def test_sizes_and_conditions_of_the_check():
    kernel = tenon.kernel("nn.relu", when=lambda shapes: shapes[0][1] == 24)(relu_kernel)
    report = tenon.check_kernels(kernel, sizes={"m": 24}, trials=2)
    assert report.ok and all("24)" in call for call in report[0].calls)
    never = tenon.check_kernels(tenon.kernel("nn.relu", when=lambda: "not today")(relu_kernel), trials=2)
    assert "took none of" in str(never) and "not today" in str(never)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"trials": 0}, tenon.UsageError, "trials 0 is below 1"),
        ({"tolerance": -1.0}, tenon.UsageError, "tolerance -1 is below 0"),
        ({"sizes": {"k": 3}}, tenon.UsageError, "no kernel has a dimension `k`"),
        ({"target": "pdp11"}, tenon.CompileError, "pdp11"),
    ],
)
def test_wrong_options_of_the_check(options, error, message):
    with pytest.raises(error, match=message):
        tenon.check_kernels(tenon.kernel("nn.relu")(relu_kernel), **options)


def test_what_is_no_kernel_is_not_checked():
    with pytest.raises(tenon.CompileError, match="no function of what was given has attribute `op`"):
        tenon.check_kernels(relu_kernel.module)


def test_a_raise_in_a_condition_ends_the_check():
    def when():
        raise ZeroDivisionError("oh")

    with pytest.raises(tenon.CallbackError, match="ZeroDivisionError: oh"):
        tenon.check_kernels(tenon.kernel("nn.relu", when=when)(relu_kernel))


def test_targets():
    target = tenon.Target("llvm -mcpu=haswell")
    assert target.kind == "llvm" and target.mcpu == "haswell" and target.vector_bits == 256 and target.has_fma
    assert target.has("avx2") and not target.has("avx512") and target.has("vector_bits>=256")
    assert target == tenon.Target(str(target)) and hash(target) == hash(tenon.Target(str(target)))
    assert target != tenon.Target("c") and repr(target).startswith("<tenon.Target llvm")
    assert tenon.Target() == tenon.Target("native")
