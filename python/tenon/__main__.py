# SPDX-License-Identifier: Apache-2.0
"""The command line: `tenon` where the package is installed, and `python -m tenon`."""

from __future__ import annotations

import os
import signal
import sys

from tenon import _core


def main() -> int:
    """What `tenon ARGUMENTS` does; returns its exit status."""
    # Ctrl-C and a closed pipe end it, as they end any program.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.stdout.flush()
    arguments = [os.fsencode(word) for word in sys.argv[1:]]
    return _core._command_line(arguments, [sys.executable, "-P", "-m", "tenon"])


if __name__ == "__main__":
    sys.exit(main())
