# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SCRIPT = """from tenon.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 3), "float32")) -> R.Tensor(("n", 3), "float32"):
        n = T.int64()
        with R.dataflow():
            y: R.Tensor((n, 3), "float32") = R.matmul(x, w)
            z: R.Tensor((n, 3), "float32") = R.nn.relu(y)
            R.output(z)
        return z
"""


@pytest.fixture
def digits() -> Path:
    return ROOT / "examples/digits/digits.onnx"


@pytest.fixture
def script() -> str:
    return SCRIPT
