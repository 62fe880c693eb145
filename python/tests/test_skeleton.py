# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import tenon


def test_compiles_and_runs(script):
    program = tenon.compile(tenon.load(script))
    x = np.random.default_rng(0).standard_normal((5, 4), dtype=np.float32)
    w = np.ones((4, 3), np.float32)
    np.testing.assert_allclose(program(x, w), np.maximum(x @ w, 0), rtol=1e-5)


def test_error_has_code_and_place(script):
    with pytest.raises(tenon.CompileError) as caught:
        tenon.load(script.replace("(4, 3)", "(5, 3)"))
    assert caught.value.code == "TN0101"
    assert caught.value.place.line == 9
    assert "^" in str(caught.value)


def test_saves_and_loads(script, tmp_path):
    program = tenon.compile(tenon.load(script))
    program.save(tmp_path / "m.so")
    x, w = np.ones((2, 4), np.float32), np.ones((4, 3), np.float32)
    out = np.empty((2, 3), np.float32)
    assert tenon.load(tmp_path / "m.so")(w=w, x=x, out=out) is out
    np.testing.assert_array_equal(out, program(x, w))
