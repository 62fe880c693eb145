# SPDX-License-Identifier: Apache-2.0
"""Programs on arrays of every kind."""

import array
import threading

import ml_dtypes
import numpy as np
import pytest
from conftest import elementwise

import tenon


def expected(x, w):
    return np.maximum(x.astype(np.float32) @ w, 0)


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_by_position_and_by_name(program, arrays):
    x, w = arrays
    close(program(x, w), expected(x, w))
    np.testing.assert_array_equal(program(w=w, x=x), program(x, w))
    np.testing.assert_array_equal(program(x, w=w), program(x, w))


def test_result_is_the_callers(program, arrays):
    x, w = arrays
    first = program(x, w)
    kept = first.copy()
    program(x * 2, w)
    np.testing.assert_array_equal(first, kept)
    first[:] = 0
    assert first.flags.writeable and first.ctypes.data % 64 == 0


def test_out_is_written(program, arrays):
    x, w = arrays
    for out in (np.empty((5, 3), np.float32), np.empty(15 + 1, np.float32)[1:].reshape(5, 3)):
        assert program(x, w, out=out) is out
        np.testing.assert_array_equal(out, program(x, w))


def test_out_as_a_sequence_and_by_name(program, arrays):
    x, w = arrays
    out = np.empty((5, 3), np.float32)
    program(x, w, out=[out])
    program(x, w, out={program.outputs[0].name: out})
    np.testing.assert_array_equal(out, program(x, w))


@pytest.mark.parametrize(
    "out",
    [np.empty((5, 4), np.float32), np.empty((5, 3), np.float64), np.empty((3, 5), np.float32).T],
    ids=["shape", "dtype", "strides"],
)
def test_out_that_does_not_fit(program, arrays, out):
    with pytest.raises(tenon.RunError):
        program(*arrays, out=out)


def test_out_that_is_read_only(program, arrays):
    out = np.empty((5, 3), np.float32)
    out.flags.writeable = False
    with pytest.raises((TypeError, BufferError, ValueError)):
        program(*arrays, out=out)


def test_out_that_overlaps_an_input(program):
    memory = np.zeros(64, np.float32)
    with pytest.raises(tenon.RunError, match="overlaps"):
        program(memory[:20].reshape(5, 4), np.ones((4, 3), np.float32), out=memory[4:19].reshape(5, 3))


def test_wrong_number_of_outputs(program, arrays):
    with pytest.raises(TypeError, match="has 1 outputs"):
        program(*arrays, out=[np.empty((5, 3), np.float32)] * 2)
    with pytest.raises(TypeError, match="lacks output"):
        program(*arrays, out={})


def test_missing_and_unknown_inputs(program, arrays):
    x, w = arrays
    with pytest.raises(TypeError, match=r"needs input `w`, float32 \(4, 3\)"):
        program(x)
    with pytest.raises(TypeError, match="2 inputs; 3 were given"):
        program(x, w, w)
    with pytest.raises(TypeError, match="no input `weights`"):
        program(x, weights=w)
    with pytest.raises(TypeError, match="input `x` twice"):
        program(x, x=x)


def test_strided_and_reversed_inputs(program, arrays):
    x, w = arrays
    wide = np.zeros((5, 8), np.float32)
    wide[:, ::2] = x
    np.testing.assert_array_equal(program(wide[:, ::2], w), program(x, w))
    np.testing.assert_array_equal(program(x[::-1], w), program(x[::-1].copy(), w))
    np.testing.assert_array_equal(program(np.asfortranarray(x), w), program(x, w))
    np.testing.assert_array_equal(program(np.broadcast_to(x[:1], (5, 4)), w), program(np.repeat(x[:1], 5, 0), w))


def test_unaligned_inputs(program, arrays):
    x, w = arrays
    memory = np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float32) if False else np.empty(21, np.float32)[1:]
    memory[:] = x.ravel()
    np.testing.assert_array_equal(program(memory.reshape(5, 4), w), program(x, w))


def test_fields_of_records(program, arrays):
    x, w = arrays
    records = np.zeros((5, 4), [("tag", "i1"), ("value", "f4")])
    records["value"] = x
    np.testing.assert_array_equal(program(records["value"], w), program(x, w))


def test_read_only_inputs(program, arrays):
    x, w = arrays
    x.flags.writeable = False
    program(x, w)


def test_lists_and_numbers(program, arrays):
    x, w = arrays
    np.testing.assert_array_equal(program(x.tolist(), w.tolist()), program(x, w))
    scalar = tenon.compile(elementwise("float32", "R.add(x, x)", "()"))
    assert scalar(3) == 6 and scalar(1.5) == 3


def test_other_buffers(program, arrays):
    _, w = arrays
    values = array.array("f", range(20))
    x = memoryview(values).cast("B").cast("f", (5, 4))
    close(program(x, w), expected(np.arange(20).reshape(5, 4), w))


def test_dlpack_without_buffers(program, arrays):
    class Exported:
        def __init__(self, held):
            self.held = held

        def __dlpack__(self, **options):
            return self.held.__dlpack__(**options)

    x, w = arrays
    np.testing.assert_array_equal(program(Exported(x), Exported(w)), program(x, w))
    out = np.empty((5, 3), np.float32)
    program(x, w, out=Exported(out))
    np.testing.assert_array_equal(out, program(x, w))


def test_torch(program, arrays):
    torch = pytest.importorskip("torch")
    x, w = (torch.from_numpy(a) for a in arrays)
    np.testing.assert_array_equal(program(x, w), program(*arrays))
    out = torch.empty(5, 3)
    assert program(x.clone(), w, out=out) is out
    np.testing.assert_array_equal(out.numpy(), program(*arrays))


def test_jax(program, arrays):
    jax = pytest.importorskip("jax")
    np.testing.assert_array_equal(program(*(jax.numpy.asarray(a) for a in arrays)), program(*arrays))


def test_no_array(program, arrays):
    with pytest.raises((TypeError, ValueError, tenon.RunError)):
        program(object(), arrays[1])


DTYPES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_numpy(dtype):
    x = np.arange(6).astype(dtype)
    y = tenon.compile(elementwise(dtype, "R.add(x, x)"))(x)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x + x)


def test_bools():
    x = np.array([True, False, True, True, False, False])
    y = tenon.compile(elementwise("bool", "R.logical_not(x)"))(x)
    assert y.dtype == bool
    np.testing.assert_array_equal(y, ~x)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_floats_of_ml_dtypes(name):
    kind = getattr(ml_dtypes, name)
    x = np.array([0, 1, -2, 0.5, 3, 4], np.float32).astype(kind)
    program = tenon.compile(elementwise(name, 'R.astype(R.add(R.astype(x, "float32"), R.astype(x, "float32")), "%s")' % name))
    y = program(x)
    assert y.dtype == kind
    np.testing.assert_array_equal(y.astype(np.float32), x.astype(np.float32) * 2)


def test_several_outputs():
    program = tenon.compile(tenon.load(elementwise("float32", "(R.add(x, x), R.multiply(x, x))")))
    a, b = program(np.arange(6, dtype=np.float32))
    np.testing.assert_array_equal(a, np.arange(6) * 2)
    np.testing.assert_array_equal(b, np.arange(6) ** 2)
    outs = [np.empty(6, np.float32), np.empty(6, np.float32)]
    assert program(np.arange(6, dtype=np.float32), out=outs) is outs
    np.testing.assert_array_equal(outs[1], b)


def test_empty_arrays(program, arrays):
    assert program(np.empty((0, 4), np.float32), arrays[1]).shape == (0, 3)


def test_eight_threads(program):
    random = np.random.default_rng(1)
    cases = [
        (random.standard_normal((n, 4), dtype=np.float32), random.standard_normal((4, 3), dtype=np.float32)) for n in range(1, 9)
    ]
    wanted = [program(*case) for case in cases]
    wrong = []

    def work(i):
        for _ in range(200):
            if not np.array_equal(program(*cases[i]), wanted[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_lock_is_released_while_it_runs():
    # Another thread of Python goes on during one call that takes a while.
    program = tenon.compile(elementwise("float32", "R.nn.softmax(R.exp(R.sin(R.cos(R.tanh(x)))))", "(4000, 4000)"), threads=1)
    x = np.ones((4000, 4000), np.float32)
    program(x)
    counts = []
    done = threading.Event()

    def count():
        n = 0
        while not done.is_set():
            n += 1
        counts.append(n)

    counter = threading.Thread(target=count)
    counter.start()
    program(x)
    done.set()
    counter.join()
    assert counts[0] > 1000
