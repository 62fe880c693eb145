# SPDX-License-Identifier: Apache-2.0
"""TVMScript in Python's files: `from tenon.script import ir as I, relax as R, tir as T`.

Decorated functions and classes are read as text and never run as Python. What they name and do not define is taken from
the Python around them: closures, local variables of the function around, globals.
"""

from tenon.script import ir, relax, tir
from tenon.script.ir import ir_module

tirx = tir  # as TVM has it lately

__all__ = ["ir", "ir_module", "relax", "tir", "tirx"]
