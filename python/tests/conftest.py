# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import numpy as np
import pytest

import tenon

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

RELAY = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(3, 4), float32]) -> Tensor[(2, 3), float32] {
  %0 = nn.dense(%x, %w, units=None);
  nn.relu(%0)
}
"""


def elementwise(dtype: str, expression: str, shape: str = "(6,)", inputs: str = "x") -> str:
    """A module whose `main` computes one expression of its inputs."""
    params = ", ".join(f'{name}: R.Tensor({shape}, "{dtype}")' for name in inputs.split())
    return f'''from tenon.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main({params}):
        with R.dataflow():
            y = {expression}
            R.output(y)
        return y
'''


@pytest.fixture
def digits() -> Path:
    return ROOT / "examples/digits/digits.onnx"


@pytest.fixture
def script() -> str:
    return SCRIPT


@pytest.fixture
def module() -> "tenon.IRModule":
    return tenon.load(SCRIPT)


@pytest.fixture(scope="session")
def program() -> "tenon.Program":
    return tenon.compile(SCRIPT, name="dense")


@pytest.fixture
def arrays() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return random.standard_normal((5, 4), dtype=np.float32), random.standard_normal((4, 3), dtype=np.float32)
