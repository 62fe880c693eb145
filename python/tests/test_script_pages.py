# SPDX-License-Identifier: Apache-2.0
"""The Python of every page runs, each page as one program: README, docs/, examples/. Their shell commands are run by examples/run_page.py
(```console) or read by scripts/check_docs.py."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tenon

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(?:py|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
WORDS = "from __future__ import annotations\nfrom tenon.script import ir as I, relax as R, tir as T\n"

# What stands around the code of a page: a file of scripts needs no imports where `tenon check` reads it, and names that are the reader's are
# something here. A page that is not listed runs as it stands.
BEFORE = {
    "docs/library-calls.md": WORDS,
    "docs/own-kernels.md": WORDS,
    "docs/placement.md": WORDS,
    "docs/tir-patterns.md": WORDS,
    "docs/patterns.md": WORDS + "from tenon.dpl import PatternContext, is_const, is_op, wildcard\n",
    "docs/python.md": """
import onnx
from onnx import TensorProto, helper


def save(path, *nodes, **inputs):
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    result = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)
    model = helper.make_model(helper.make_graph(nodes, path, values, [result]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return model


model_proto = save("sequence.onnx", helper.make_node("Relu", ["x"], ["y"]), x=["batch", "length", 224])
save("model.onnx", helper.make_node("Conv", ["x", "w"], ["y"], name="conv1"), x=[1, 3, 8, 8], w=[4, 3, 3, 3])
""",
}
# What a page is about, where that may not be installed (`make test-torch` has it).
NEEDS = {"docs/python-frameworks.md": "torch"}
# Before the block of this number, in addition.
BETWEEN = {
    ("docs/python.md", 1): """
filters = np.ones((4, 3, 3, 3), np.float32)
weights = np.ones((1, 1, 3, 3), np.float32)
relay_text = '''#[version = "0.0.5"]
def @main(%x: Tensor[(1, 1, 8, 8), float32], %w: Tensor[(1, 1, 3, 3), float32]) {
  nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=1, kernel_size=[3, 3]))
}
'''
""",
    ("docs/python.md", 2): """
weights = np.ones((4, 3, 3, 3), np.float32)
my_module = tenon.load("mine.py")
""",
}


def pages():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/*.md")]:
        if FENCE.search(page.read_text()):
            yield str(page.relative_to(ROOT))


@pytest.fixture
def folder(tmp_path):
    """What the pages find where they run."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "mine.py").write_text((ROOT / "examples/own_kernel/softmax.py").read_text())
    (tmp_path / "mine.c").write_text("int mine(int x);\nint mine(int x) { return x; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "libmine.so", "mine.c"], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize("page", sorted(pages()))
def test_page(page, folder):
    if page in NEEDS:
        pytest.importorskip(NEEDS[page])
    blocks = FENCE.findall((ROOT / page).read_text())
    program = folder / "page.py"
    program.write_text(BEFORE.get(page, "") + "\n\n".join(BETWEEN.get((page, i), "") + block for i, block in enumerate(blocks)))
    environment = dict(os.environ, PYTHONPATH=str(Path(tenon.__file__).parents[1]))
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
