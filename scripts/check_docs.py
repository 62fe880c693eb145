#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what the pages of docs/, those beside the README and in rooms of src/, and the examples' pages name: links and their anchors, files of the repository, targets
of the Makefile, codes of diagnostics, passes, commands of `tenon` and the options that each takes, and options and variables of the
environment that stand alone. Python in them is parsed by `tenon check`. Each page of docs/ has its place in the site's navigation.

    check_docs.py TENON
"""

import ast
import fnmatch
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs/site"))
from navigation import NAVIGATION  # noqa: E402

SPANS = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
# Where files that a page names without the whole path may lie.
FOLDERS = ["", "src/tenon", "src/tenon/backend", "include", "docs", "tests", "tests/golden/graph"]
# What pages name that `make` or an installation writes, what is a place of the reader's, or a node of a network.
NOT_FILES = re.compile(r"^(/|\./|build/|bin/|lib/|P/|models/|wrong/|errors/)|[<>*]")


def tenon_says(tenon, *arguments):
    return subprocess.run([tenon, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    for heading in re.findall(r"^#+ (.*)$", page.read_text(), re.M):
        text = re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", heading).lower())
        yield text.replace(" ", "-")


class Pages:
    def __init__(self, tenon):
        self.tenon = tenon
        self.faults = []
        self.counts = {}
        helped = tenon_says(tenon, "--help")
        commands = re.findall(r"^  ([a-z][a-z-]+) ", helped, re.M)
        self.options = {command: set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", tenon_says(tenon, command, "--help")))
                        for command in commands}
        self.passes = {line.split()[0] for line in tenon_says(tenon, "opt", "--list-passes").splitlines() if line}
        self.codes = set(re.findall(r"TN\d{4}", (ROOT / "docs/diagnostics.md").read_text()))
        self.targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.M))
        tracked = subprocess.run(["git", "-C", ROOT, "ls-files"], stdout=subprocess.PIPE, text=True)
        files = tracked.stdout.split() if tracked.returncode == 0 else [
            str(path.relative_to(ROOT)) for part in ("src", "include", "tests", "scripts", "bench", "examples")
            for path in (ROOT / part).rglob("*")]
        self.code = "\n".join((ROOT / name).read_text(errors="ignore") for name in files
                              if re.match(r"(src|include|tests|scripts|bench|examples)/.*\.(cpp|h|c|py|sh|txt)$|Makefile|C.*\.(txt|json)$",
                                          name))

    def check(self, holds, page, what):
        kind = what.split(" ")[0]
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if not holds:
            self.faults.append(f"{page.relative_to(ROOT)}: {what}")

    def links(self, page, text):
        for link in LINK.findall(text):
            if re.match(r"https?:|mailto:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            self.check(target.exists(), page, f"link {link} leads nowhere")
            if anchor and target.suffix == ".md" and target.exists():
                self.check(anchor in anchors(target), page, f"anchor {link} is no heading")

    def place(self, page):
        name = page.relative_to(ROOT).with_suffix("").as_posix()
        places = [pattern for groups in NAVIGATION.values() for _, patterns in groups for pattern in patterns]
        is_placed = any(fnmatch.fnmatch(name, pattern) for pattern in places)
        self.check(is_placed or not name.startswith("docs/"), page, "navigation of the site (docs/site/navigation.py) lacks the page")

    def names(self, page, text):
        for code in re.findall(r"TN\d{4}", text):
            self.check(code in self.codes, page, f"code {code} is none of docs/diagnostics.md")
        for target in re.findall(r"(?:`|^    )make ([a-z][a-z-]*)", text, re.M):
            self.check(target in self.targets, page, f"target `make {target}` is not in the Makefile")
        for variable in re.findall(r"\bTENON_[A-Z_]+\b", text):
            self.check(re.search(rf"\b{variable}\b", self.code), page, f"name {variable} is nowhere in the code")
        for span in SPANS.findall(text):
            in_room = page.is_relative_to(ROOT / "src")
            if in_room and re.fullmatch(r"[\w/*]+\.(h|cpp|py|c)", span):
                self.check(any(True for folder in [page.parent, *(ROOT / part for part in FOLDERS)] for _ in folder.glob(span)),
                           page, f"file {span} is not there")
            elif re.fullmatch(r"[\w./<>*-]+/[\w./<>*-]*\w\.\w+", span) and not NOT_FILES.search(span):
                places = [span, span.replace("include/tenon/runtime/", "src/tenon/runtime/")]  # where it is installed
                self.check(any((ROOT / folder / place).exists() for folder in FOLDERS for place in places), page,
                           f"file {span} is not there")
            if re.fullmatch(r"--[a-z][a-z-]+", span):
                known = any(span in options for options in self.options.values()) or f'"{span}' in self.code or \
                    f" {span}" in self.code
                self.check(known, page, f"option {span} is no option of anything")

    def command(self, page, line):
        """A command line of `tenon`: its command, its options, the passes that it names."""
        line = re.sub(r"^(\$ )?([A-Z_]+=\S+ )*", "", line.strip())
        if not re.match(r"(build/bin/|\./)?tenon [a-z]", line):
            return
        line = re.split(r"\s#\s|\s#$| \| | > | 2>", line)[0].rstrip("\\ ")
        try:
            words = shlex.split(line)
        except ValueError:
            return  # part of a sentence, cut at the end of a line
        name = words[1]
        if not re.fullmatch(r"[a-z][a-z-]*", name):
            return
        self.check(name in self.options, page, f"command `tenon {name}` is none")
        for i, word in enumerate(words[2:], 2):
            option = word.partition("=")[0]
            if re.fullmatch(r"--?[a-z][a-z-]*", option):
                self.check(option in self.options.get(name, ()), page, f"option {option} is none of `tenon {name}`: {line}")
            if words[i - 1] in ("--passes", "--after", "--pass", "--print-after"):
                self.pipeline(page, word)

    def pipeline(self, page, text):
        for name in re.findall(r"(?:^|,)\s*([A-Z][A-Za-z]+[a-z][A-Za-z0-9]*)\b(?!\.)", re.sub(r"\([^()]*\)", "", text)):
            self.check(name in self.passes, page, f"pass {name} is none")

    def python(self, page, text, folder):
        """Blocks that are modules, functions or kernels by themselves; a page may leave out the imports."""
        for _, language, block in FENCE.findall(text):
            if language != "python" or not re.search(r"^@(I\.ir_module|R\.function|T\.prim_func|T\.extern_func)", block, re.M):
                continue
            try:
                ast.parse(block)
            except SyntaxError as error:
                self.check(False, page, f"python does not parse: {error}")
                continue
            if re.search(r"^    \.\.\.$", block, re.M) or "Composite" in block:
                continue  # a sketch; a pattern, which the tests of patterns read
            path = folder / "block.py"
            path.write_text(block)
            done = subprocess.run([self.tenon, "check", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.check(done.returncode == 0, page, f"python is refused:\n{done.stdout}{block}")

    def read(self, page):
        text = page.read_text()
        self.place(page)
        self.links(page, text)
        self.names(page, text)
        lines = [line for line in text.splitlines() if re.match(r"(    |\$ )", line)]
        for line in lines + SPANS.findall(text):
            self.command(page, line)
        with tempfile.TemporaryDirectory() as folder:
            self.python(page, text, pathlib.Path(folder))


def main():
    pages = Pages(sys.argv[1])
    for page in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "src").rglob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]:
        pages.read(page)
    for fault in pages.faults:
        print(fault)
    print(", ".join(f"{kind}: {count}" for kind, count in sorted(pages.counts.items())))
    sys.exit(1 if pages.faults else 0)


if __name__ == "__main__":
    main()
