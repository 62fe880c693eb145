# SPDX-License-Identifier: Apache-2.0
"""Every pass by its name, from the compiler's table: `tenon.transform.FuseOps()(module)`."""

from __future__ import annotations

from typing import Any

from tenon import _core


def __getattr__(name: str) -> Any:
    for known in _core._passes():
        if known.name == name:

            def make(**options: Any) -> _core.Pass:
                return _core.Pass(name, options)

            make.__name__ = make.__qualname__ = name
            make.__doc__ = known.summary
            globals()[name] = make
            return make
    raise AttributeError(f"no pass is called {name!r}")


def __dir__() -> list[str]:
    return sorted(known.name for known in _core._passes())
