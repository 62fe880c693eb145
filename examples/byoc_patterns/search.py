"""Which composites of a module a library takes: each that makes the program faster.

    search.py MODULE OUT --link LIBRARY...

A pass that decides is a program from module to module: this one tries, measures, and writes what is best to OUT.
"""

import json
import re
import subprocess
import sys

module, out, *links = sys.argv[1:]


def tenon(*arguments):
    return subprocess.run(["tenon", *arguments], check=True, capture_output=True, text=True).stdout


def milliseconds(taken):
    passes = ",".join(f"RunCodegen(function={function}, backend={library})" for function, library in taken)
    tenon("opt", module, "--passes", passes or "DeadCodeElimination", "-o", out)
    return json.loads(tenon("bench", out, "--json", "--repeat", "20", *links))[0]["min_ms"]


with open(module) as file:
    composites = re.findall(r'def (\w+)\(.*\n +R\.func_attr\(\{"Composite": "(\w+)\.', file.read())
taken, best = [], milliseconds([])
for composite in composites:
    with_it = milliseconds(taken + [composite])
    print(f"{composite[0]}: {best:.3f} ms without the library, {with_it:.3f} ms with it")
    if with_it < best:
        taken, best = taken + [composite], with_it
milliseconds(taken)
print(f"{len(composites)} composites tried")
