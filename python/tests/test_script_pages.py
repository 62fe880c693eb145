# SPDX-License-Identifier: Apache-2.0
"""The pages' Python runs, each page as one program."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(?:py|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["docs/python-scripts.md"])
def test_page(page, tmp_path):
    blocks = FENCE.findall((ROOT / page).read_text())
    assert blocks
    program = tmp_path / "page.py"
    program.write_text("\n\n".join(blocks))
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
