#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that python/tenon/_passes.pyi says of each pass what docs/passes.md says; needs no built package.

    scripts/check_pass_stubs.py [--update]   status 1 where a summary differs or a pass is missing; --update writes the summaries

Signatures come from the package alone: `python -m tenon._stubs` writes the whole file.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STUB = ROOT / "python/tenon/_passes.pyi"
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| [^|]+ \| [^|]+ \|$", re.MULTILINE)


def summary_of(text: str) -> str:
    """The first line of the docstring that `tenon.transform` makes of a table's summary."""
    return text[0].upper() + text[1:] + "."


def main() -> int:
    table = (ROOT / "docs/passes.md").read_text()
    stub = STUB.read_text()
    problems = []
    for name, text in ROW.findall(table[: table.index("\n# Options of passes")]):
        wanted = summary_of(text)
        found = re.search(rf'^(def {name}\(.*\) -> Pass:\n    """)(.*)$', stub, re.MULTILINE)
        if found is None:
            problems.append(f"{name}: not there; write the file with `python -m tenon._stubs`")
        elif found[2] != wanted:
            problems.append(f"{name}: says '{found[2]}', expected '{wanted}'")
            stub = stub[: found.start(2)] + wanted + stub[found.end(2) :]
    if "--update" in sys.argv[1:]:
        STUB.write_text(stub)
        problems = [problem for problem in problems if "not there" in problem]
    for problem in problems:
        print(f"{STUB.relative_to(ROOT)}: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
