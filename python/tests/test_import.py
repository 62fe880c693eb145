# SPDX-License-Identifier: Apache-2.0
"""What importing the package does, and what it does not."""

import subprocess
import sys

import pytest

import tenon


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_import_loads_nothing_heavy():
    heavy = run("import sys, tenon; print([m for m in sys.modules if m in ('numpy', 'onnx', 'json') or m.startswith('tenon.')])")
    assert heavy == "[]"


def test_loading_the_compiler_does_not_import_numpy():
    assert run("import sys, tenon; tenon.IRModule; print('numpy' in sys.modules)") == "False"


def test_every_public_name_is_there():
    for name in tenon.__all__:
        if name != "script":  # a package of its own
            assert getattr(tenon, name) is not None
    assert set(tenon.__all__) <= set(dir(tenon))


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'compyle'"):
        tenon.compyle  # noqa: B018


def test_version():
    assert tenon.__version__.count(".") == 2
