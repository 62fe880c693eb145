#!/usr/bin/env python3
"""Runs the commands of a page as they are printed on it, and compares what they print.

    run_page.py examples/library_calls/README.md --bin build/bin [--install build] [--update]

A fenced block that begins with ```console holds commands, each on a line after `$ ` (a line that ends in `\\` goes on on the
next one, after `> `), with what they print below them; `[status N]` as the last line says that the command ends with that
status. Where the block begins with ```console needs models/resnet18, its commands run if --models has resnet18/, which they find
under that name; where it begins with ```console needs rustc, they run where that program is found. Otherwise they are skipped, and a
line says so. In the expected output a line `...` stands for any lines, and `...` inside of a line for any text. Commands run by
bash in a copy of the page's folder, with --bin in front of PATH, and the headers of include/ found as if they were installed. Status 1 where something differs; --update writes what
was printed into the page instead, but keeps a block with `...` that matches.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def commands(lines, models):
    """Yields (first line, line after the last, command, expected lines) of each command of a page that can run here."""
    at = 0
    while at < len(lines):
        block = lines[at].split()
        if block[:1] != ["```console"]:
            at += 1
            continue
        needs = block[2] if block[1:2] == ["needs"] else ""
        model = needs.removeprefix("models/")
        at += 1
        if needs.startswith("models/") and not (models / model).is_dir():
            print(f"skipped: line {at} needs models/{model}, which is not in {models} (`make models` generates it)")
            continue
        if needs and not needs.startswith("models/") and not shutil.which(needs):
            print(f"skipped: line {at} needs {needs}, which is not installed")
            continue
        while at < len(lines) and lines[at].strip() != "```":
            if not lines[at].startswith("$ "):
                at += 1
                continue
            command = lines[at][2:]
            at += 1
            while command.endswith("\\"):
                command = command[:-1] + lines[at].removeprefix("> ")
                at += 1
            begin = at
            while at < len(lines) and lines[at].strip() != "```" and not lines[at].startswith("$ "):
                at += 1
            yield begin, at, command, lines[begin:at]


def matches(expected, printed):
    pattern = ""
    for line in expected:
        if line.strip() == "...":
            pattern += r"(?:[^\n]*\n)*"
        else:
            pattern += ".*?".join(re.escape(part) for part in line.split("...")) + r"\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def install(build, prefix, environment):
    """Installs `build` into `prefix`, and lets commands find it there: programs, libraries, headers by pkg-config alone."""
    subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
    environment["PATH"] = f"{prefix}/bin:{environment['PATH']}"
    environment["LD_LIBRARY_PATH"] = f"{prefix}/lib"
    environment["PKG_CONFIG_PATH"] = f"{prefix}/lib/pkgconfig"
    del environment["C_INCLUDE_PATH"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("--bin", type=Path, required=True)
    parser.add_argument("--install", type=Path, help="a build, which is installed for the page and found as a user's is")
    parser.add_argument("--models", type=Path, default=Path("build/models"))
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    lines = options.page.read_text().splitlines()
    environment = dict(os.environ, PATH=f"{options.bin.resolve()}:{os.environ['PATH']}",
                       C_INCLUDE_PATH=str(Path(__file__).resolve().parent.parent / "include"))
    wrong = 0
    replacements = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / options.page.parent.name
        shutil.copytree(options.page.parent, work)
        (work / "models").symlink_to(options.models.resolve())
        if options.install:
            install(options.install, Path(folder) / "prefix", environment)
        for begin, end, command, expected in commands(lines, options.models):
            run = subprocess.run(["bash", "-c", command], cwd=work, env=environment, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, timeout=300)
            printed = [line.rstrip() for line in run.stdout.splitlines()]
            if run.returncode:
                printed.append(f"[status {run.returncode}]")
            if matches([line.rstrip() for line in expected], printed):
                continue
            if options.update:
                replacements.append((begin, end, printed))
                continue
            wrong += 1
            print(f"{options.page}:{begin}: $ {command}\nexpected\n  " + "\n  ".join(expected) + "\nprinted\n  "
                  + "\n  ".join(printed))
    for begin, end, printed in reversed(replacements):
        lines[begin:end] = printed
    if replacements:
        options.page.write_text("\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
