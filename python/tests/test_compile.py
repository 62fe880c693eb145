# SPDX-License-Identifier: Apache-2.0
"""tenon.compile and what it gives."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import SCRIPT

import tenon


def test_interface(program):
    x, w = program.inputs
    assert (x.name, x.dtype, x.shape) == ("x", "float32", ("n", 4))
    assert (w.name, w.shape) == ("w", (4, 3))
    (z,) = program.outputs
    assert z.shape == ("n", 3)
    assert program.name == "dense"
    assert repr(program) == f"<tenon.Program `dense` ({x}, {w}) -> ({z})>"


def test_symbols_and_workspace(program):
    assert program.symbols == [("n", 0, None)]
    assert program.output_shapes(n=9) == [(9, 3)]
    assert program.workspace_bytes(n=1000) >= program.workspace_bytes(n=1) >= 0
    with pytest.raises(TypeError, match="needs a value of symbol `n`"):
        program.workspace_bytes()
    with pytest.raises(TypeError, match="no symbol `m`"):
        program.output_shapes(m=3)
    with pytest.raises(tenon.RunError, match="n is -1"):
        program.output_shapes(n=-1)


def test_compiles_what_load_reads(digits):
    program = tenon.compile(digits)
    assert program.name == "digits"
    image = np.random.default_rng(0).random((2, 1, 8, 8), dtype=np.float32)
    np.testing.assert_allclose(program(image).sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(program(image), tenon.interpret(digits, image), rtol=1e-3, atol=1e-5)


def test_manifest(program):
    manifest = program.manifest
    assert manifest["name"] == "dense"
    assert "FuseOps" in manifest["passes"] and len(manifest["module_hash"]) == 32
    assert program.target == manifest["target"]


def test_deterministic(module):
    assert tenon.compile(module).manifest == tenon.compile(module).manifest


def test_save_and_load(program, arrays, tmp_path):
    path = tmp_path / "dense.so"
    program.save(path)
    loaded = tenon.load(path)
    np.testing.assert_array_equal(loaded(*arrays), program(*arrays))
    assert [str(port) for port in loaded.inputs] == [str(port) for port in program.inputs]
    assert loaded.manifest == program.manifest
    assert loaded.memory_plan.constant_bytes == program.memory_plan.constant_bytes
    with pytest.raises(tenon.CompileError, match="was loaded from a library"):
        loaded.save(path)


def test_saved_as_the_command_writes_it(module, tmp_path):
    first, second = tmp_path / "a.so", tmp_path / "b.so"
    tenon.compile(module, name="same").save(first)
    tenon.compile(module, name="same").save(second)
    assert first.read_bytes() == second.read_bytes()


def test_save_to_nowhere(program):
    with pytest.raises(tenon.CompileError) as caught:
        program.save("/nonexistent/x.so")
    assert caught.value.code == "TN0002"


def test_another_machine(module, tmp_path):
    program = tenon.compile(module, target="llvm -mtriple=aarch64-linux-gnu")
    assert [port.name for port in program.inputs] == ["x", "w"]
    with pytest.raises(tenon.RunError if False else tenon.Error, match="such a machine"):
        program(np.ones((1, 4), np.float32), np.ones((4, 3), np.float32))
    program.save(tmp_path / "arm.so")
    assert (tmp_path / "arm.so").read_bytes()[18] == 183  # EM_AARCH64
    with pytest.raises(tenon.CompileError, match="AArch64"):
        tenon.load(tmp_path / "arm.so")


def test_target_c(module, arrays, tmp_path):
    program = tenon.compile(module, target="c", name="dense")
    np.testing.assert_allclose(program(*arrays), tenon.compile(module)(*arrays), rtol=1e-5, atol=1e-6)
    program.save(tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["Makefile", "dense.c", "dense.h", "main_dense.c"]
    assert "int32_t dense_run(const dense_dims* dims" in (tmp_path / "out/dense.h").read_text()
    with pytest.raises(tenon.UsageError, match="C is written to a folder"):
        program.save("x.so")


def test_parameters_become_constants(module, arrays):
    x, w = arrays
    program = tenon.compile(module, params={"w": w})
    assert [port.name for port in program.inputs] == ["x"]
    np.testing.assert_allclose(program(x), np.maximum(x @ w, 0), rtol=1e-5, atol=1e-6)
    with pytest.raises(tenon.CompileError):
        tenon.compile(module, params={"w": w.astype(np.int32)})
    with pytest.raises(tenon.CompileError):
        tenon.compile(module, params={"nothing": w})


def test_threads_do_not_change_results(module, arrays):
    results = [tenon.compile(module, threads=n)(*arrays) for n in (1, 2, 4)]
    assert all(np.array_equal(results[0], other) for other in results)
    program = tenon.compile(module)
    program.set_threads(1)
    np.testing.assert_array_equal(program(*arrays), results[0])
    with pytest.raises(tenon.RunError):
        program.set_threads(-1)


KERNEL = '''from tenon.script import ir as I, relax as R, tir as T

@I.ir_module
class Kernels:
    @T.prim_func
    def my_relu(x: T.Buffer(("n", 3), "float32"), y: T.Buffer(("n", 3), "float32")):
        T.func_attr({"op": "nn.relu"})
        n = T.int64()
        for i, j in T.grid(n, 3):
            with T.block("relu"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = T.max(x[vi, vj], T.float32(0)) + T.float32(100)
'''


def kernel_text() -> str:
    return KERNEL.replace('(x: T.Buffer(("n", 3), "float32"), y: T.Buffer(("n", 3), "float32"))', "(a: T.handle, b: T.handle)").replace(
        "        n = T.int64()\n",
        '        n = T.int64()\n        x = T.match_buffer(a, (n, 3), "float32")\n        y = T.match_buffer(b, (n, 3), "float32")\n',
    )


def test_kernels_of_modules_and_files(module, arrays, tmp_path):
    x, w = arrays
    path = tmp_path / "kernels.py"
    path.write_text(kernel_text())
    wanted = np.maximum(x @ w, 0) + 100
    for kernels in (tenon.load(kernel_text()), path, [path], str(path)):
        np.testing.assert_allclose(tenon.compile(module, kernels=kernels)(x, w), wanted, rtol=1e-5)


def test_libraries(module, arrays):
    program = tenon.compile(module, libs=["dnnl"])
    np.testing.assert_allclose(program(*arrays), np.maximum(arrays[0] @ arrays[1], 0), rtol=1e-4, atol=1e-5)


def test_placement_by_name(module):
    with pytest.raises(tenon.Error, match="place"):
        tenon.compile(module, place={"nothing": "own"})


def test_memory_plan(digits):
    plan = tenon.compile(digits, shape={"image": (4, 1, 8, 8)}).memory_plan
    assert plan.peak >= plan.lower_bound > 0 and plan.constant_bytes > 0
    assert len(plan.buffers) >= 1
    assert all(buffer.offset + buffer.bytes <= plan.peak for buffer in plan.buffers)
    assert plan.svg().count("<rect") >= len([b for b in plan.buffers if b.bytes]) and "<svg" in plan._repr_html_()


def test_memory_of_symbolic_sizes(digits):
    plan = tenon.compile(digits).memory_plan
    assert plan.peak is None and "known when it runs" in str(plan)
    assert plan.svg(batch=10).startswith("<svg")


def test_story_of_a_node(digits):
    program = tenon.compile(digits)
    story = program.explain("conv1" if "conv1" in str(program.report(repeat=0)) else program.remarks[0].subject)
    assert story.steps[0][0] == "" and story.kernels and story.symbols
    assert story.node in str(story) and story.data and "<pre>" in story._repr_html_()
    with pytest.raises(tenon.CompileError) as caught:
        program.explain("nothing")
    assert caught.value.code == "TN0201"


def test_time_per_kernel(digits):
    program = tenon.compile(digits, threads=1)
    times = program.time_per_kernel(repeat=3, dims={"batch": 2})
    assert len(times) > 3 and all(calls >= 1 and ms >= 0 for _, _, calls, ms in times)
    assert [row[3] for row in times] == sorted((row[3] for row in times), reverse=True)
    image = np.zeros((1, 1, 8, 8), np.float32)
    assert len(program.time_per_kernel(image, repeat=1)) == len(program.time_per_kernel(image=image, repeat=1)) == len(times)
    with pytest.raises(TypeError):
        program.time_per_kernel(picture=image)
    with pytest.raises(tenon.CompileError, match="^error.TN0001.: kernels of target `c .*` are not timed; expected llvm"):
        tenon.compile(digits, target="c").time_per_kernel(repeat=1)


def test_report(program, tmp_path):
    page = program.report(repeat=1, dims={"n": 3})
    assert page.lower().startswith("<!doctype html") and "dense" in page and page.count("<svg") >= 1
    program.save(tmp_path / "x.so")
    with pytest.raises(tenon.CompileError, match="was loaded from a library"):
        tenon.load(tmp_path / "x.so").report()


def test_progress(module):
    seen = []
    tenon.compile(module, progress=seen.append)
    assert "FuseOps" in seen and seen[-1] == "link"


def test_an_exception_in_progress(module):
    def progress(what):
        raise RuntimeError("enough")

    with pytest.raises(tenon.CallbackError, match="`progress` raised RuntimeError: enough"):
        tenon.compile(module, progress=progress)


def test_options_come_from_the_command_line(digits):
    options = tenon.options()
    assert {"libs", "kernels", "link", "pipeline", "threads", "require_offload", "unchecked"} <= set(options)
    assert all(options.values())
    with pytest.raises(tenon.UsageError, match="no option is called `treads`; did you mean `threads`?"):
        tenon.compile(digits, treads=1)


def long_module(layers: int) -> str:
    lines = "\n".join(
        f"            y{i + 1}: R.Tensor((64, 64), 'float32') = R.nn.softmax(R.matmul(y{i}, R.add(y{i}, R.const({i}.0, 'float32'))))"
        for i in range(layers)
    )
    return f"""from tenon.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(y0: R.Tensor((64, 64), "float32")):
        with R.dataflow():
{lines}
            R.output(y{layers})
        return y{layers}
"""


def interruptible(code: str) -> subprocess.Popen:
    # A shell that started the tests behind it lets its programs ignore interrupts.
    code = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n" + code
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def test_an_interrupt_ends_a_compilation(tmp_path):
    path = tmp_path / "long.py"
    path.write_text(long_module(1500))
    code = f"""
import tenon
module = tenon.load({str(path)!r})
print("begun", flush=True)
try:
    tenon.compile(module)
    print("compiled")
except KeyboardInterrupt:
    print("interrupted")
tenon.compile({SCRIPT!r})
print("goes on")
"""
    process = interruptible(code)
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    assert process.communicate()[0] == "goes on\n"


def test_an_interrupt_ends_the_interpreter(tmp_path):
    path = tmp_path / "long.py"
    path.write_text(long_module(3000))
    code = f"""
import tenon, numpy as np
module = tenon.load({str(path)!r})
print("begun", flush=True)
try:
    tenon.interpret(module, np.ones((64, 64), np.float32))
    print("done")
except KeyboardInterrupt:
    print("interrupted")
"""
    process = interruptible(code)
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.communicate()[0] == "interrupted\n"


def test_compiles_in_several_threads(module, arrays):
    results: list[np.ndarray] = []

    def work():
        results.append(tenon.compile(module)(*arrays))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and all(np.array_equal(results[0], other) for other in results)
