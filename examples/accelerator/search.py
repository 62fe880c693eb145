"""Which layers run on the accelerator, when no more than so many bytes may be copied to it and from it.

    search.py MODULE OUT LIMIT --plugin PLUGIN

MODULE is what AnnotatePlacement wrote, OUT the module with another placement. One layer after the other is taken back, the one
with the fewest multiplications for a byte first, until the copies are within LIMIT or no layer makes them less.
"""

import os
import re
import shutil
import subprocess
import sys

module, out, limit, *plugin = sys.argv[1:]
with open(module) as file:
    text = file.read()
written = re.search(r'"placement": \{([^}]*)\}', text)


def counted(placed):
    """(multiplications, bytes) of a run in which the layers `placed` are on the accelerator."""
    choice = '"placement": {' + ", ".join(f'"{node}": "{pattern}"' for node, pattern in placed.items()) + "}"
    with open(out, "w") as file:
        file.write(text[: written.start()] + choice + text[written.end() :])
    report = subprocess.run(["tenon", "run", out, *plugin], check=True, capture_output=True, text=True,
                            env=os.environ | {"ACC_REPORT": "1"}).stderr
    numbers = [int(n) for n in re.findall(r"\d+", report.splitlines()[-1])] if "accelerator:" in report else [0] * 4
    return numbers[1], numbers[2] + numbers[3]


shutil.copy(module + ".constants", out + ".constants")
placed = dict(re.findall(r'"(\w+)": "([\w.]+)"', written[1]))
work, copied = counted(placed)
while copied > int(limit):
    tried = {node: counted(placed | {node: "none"}) for node in placed if placed[node] != "none"}
    less = {node: result for node, result in tried.items() if result[1] < copied}
    if not less:
        break
    worst = min(less, key=lambda node: (work - less[node][0]) / (copied - less[node][1]))
    placed[worst] = "none"
    work, copied = less[worst]
    print(f"without {worst}: {work} multiplications, {copied} bytes")
counted(placed)
