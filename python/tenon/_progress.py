# SPDX-License-Identifier: Apache-2.0
"""Shows what long work is at: a line on a terminal, a line in a notebook's cell, nothing in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

_QUICK = 0.4  # seconds: what is done by then shows nothing


class Progress:
    """Calls of `show` replace the line; leaving the context removes it."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._begin = time.monotonic()
        self._last = 0.0
        self._shown = False
        self._display: Any = None
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        self._is_notebook = shell is not None and hasattr(shell, "kernel")

    @property
    def show(self) -> Callable[[str], None] | None:
        """None where nobody would see it."""
        return self._show if self._is_terminal or self._is_notebook else None

    def _show(self, what: str) -> None:
        now = time.monotonic()
        if now - self._begin < _QUICK or now - self._last < 0.05:
            return
        self._last = now
        self._shown = True
        line = f"{self._title}: {what}"
        if not self._is_notebook:
            sys.stderr.write("\r\033[K" + line[:78])
            sys.stderr.flush()
            return
        from IPython.display import HTML, display  # type: ignore[import-not-found,unused-ignore]

        html = HTML(f"<progress></progress> <code>{line}</code>")
        if self._display is None:
            self._display = display(html, display_id=True)
        else:
            self._display.update(html)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if not self._shown:
            return
        if self._display is not None:
            from IPython.display import HTML  # type: ignore[import-not-found,unused-ignore]

            self._display.update(HTML(""))
        else:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
