# SPDX-License-Identifier: Apache-2.0
"""The command line of the checks over sources: `CHECK [ROOT]` and `CHECK --self-test`."""

import pathlib
import sys


def main(faults_of, self_test):
    """Status 1 where `faults_of(root)` gives lines, which are printed, or where the self-test fails."""
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        return 0 if self_test() else 1
    faults = list(faults_of(pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent).resolve()))
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0
