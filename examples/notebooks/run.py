#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the notebooks of this folder, each in a fresh kernel, and compares what their cells print with what stands in them.

    PYTHONPATH=build/python build/docs-venv/bin/python examples/notebooks/run.py [NOTEBOOK...] [--update]

Numbers before a unit of time, sizes of errors and names of cells are not compared, and of what is shown as HTML and pictures nothing but that it is there. Status 1 where a cell
fails or prints something else; --update writes what was printed into the notebook instead.
"""

import argparse
import difflib
import os
import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def shown(cell):
    """What a cell printed, as lines. A stream comes in parts that are cut anywhere."""
    text = ""
    for output in cell.outputs:
        if output.output_type == "stream":
            text += output.text
        elif output.output_type == "error":
            text += f"\n{output.ename}: {output.evalue}\n"
        else:
            text += "".join(f"\n{shown}\n" if kind == "text/plain" else f"\n<{kind}>\n" for kind, shown in sorted(output.data.items()))
    text = re.sub(r"\d+(\.\d+)? ?(us|ms|s)\b", "TIME", text)
    text = re.sub(r"largest error \d\S*", "largest error", text)
    text = re.sub(r"/tmp/ipykernel_\d+/\d+\.py", "CELL", text)
    return [line for line in text.splitlines() if line.strip()]


def run(path, update):
    """What differs."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    stored = nbformat.read(path, as_version=4)
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        # What they write, they write to a folder of their own.
        os.environ["NOTEBOOK_FOLDER"] = folder
        try:
            NotebookClient(notebook, kernel_name="python3", timeout=300, resources={"metadata": {"path": str(HERE)}}).execute()
        except CellExecutionError as error:
            return [re.sub("\x1b\\[[0-9;]*m", "", str(error))]
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran
        if cell.cell_type == "code":  # the line that tells what a compilation is at leaves an empty place
            cell.outputs = [output for output in cell.outputs if output.get("data", {}).get("text/html") != ""]
    if update:
        notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                             "language_info": {"name": "python"}}
        nbformat.write(notebook, path)
        return []
    faults = []
    for number, (before, after) in enumerate(zip(stored.cells, notebook.cells, strict=True)):
        if before.cell_type == "code" and shown(before) != shown(after):
            difference = difflib.unified_diff(shown(before), shown(after), "in the notebook", "printed", lineterm="")
            faults.append(f"{path.name}: cell {number} prints something else (--update takes it):\n" + "\n".join(difference))
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    # Notebooks run in this folder.
    os.environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path)
    try:
        import nbclient  # noqa: F401
    except ImportError:
        sys.exit("run.py: nbclient is missing; `make docs` installs what docs/site/requirements.txt lists into build/docs-venv")
    faults = []
    for path in options.notebooks or sorted(HERE.glob("*.ipynb")):
        found = run(path, options.update)
        print(f"{path.name}: {'differs' if found else 'ok'}", flush=True)
        faults += found
    if faults:
        print("\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
