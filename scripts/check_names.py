#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no two classes have one name in one namespace: of what both define inline the linker keeps one.

    scripts/check_names.py [ROOT]       status 1 where a name is defined in several files of src/tenon/
    scripts/check_names.py --self-test  shows on made-up sources what is found and what is not

Classes of anonymous namespaces and of classes are their own. Sources are read as clang-format leaves them.
"""

import collections
import pathlib
import re
import sys
import tempfile

import source_check

OPENS = re.compile(r"(?:inline )?namespace ?([\w:]*) \{(.*)")
CLASS = re.compile(r"(?:struct|class|union)(?: alignas\(\w+\))? (\w+)(?: final)?(?: :[^:;].*)?(?: \{.*|$)")


def classes_of(text):
    """Yields (namespaces and name, line) of each class at namespace scope; those of anonymous namespaces are left out."""
    scopes = []
    for number, line in enumerate(text.splitlines(), 1):
        if (opened := OPENS.match(line)) and not opened[2].rstrip().endswith("}"):
            scopes.append(opened[1])
        elif line.startswith("}  // namespace") and scopes:
            scopes.pop()
        elif (found := CLASS.match(line)) and all(scopes):
            yield "::".join([*scopes, found[1]]), number


def faults(root):
    places = collections.defaultdict(list)
    for file in sorted((root / "src" / "tenon").rglob("*")):
        if file.suffix in (".h", ".cpp"):
            for name, line in classes_of(file.read_text()):
                places[name].append(f"{file.relative_to(root)}:{line}")
    for name, found in sorted(places.items()):
        if len({place.rsplit(":", 1)[0] for place in found}) > 1:
            yield f"{found[1]}: class {name} is defined in {found[0]}, too"


def self_test():
    """Each line: two sources, and whether a fault is found."""
    one = "namespace a {\nstruct Both {\n  int x;\n};\n}  // namespace a\n"
    cases = [
        (one, one, True),
        (one, one.replace("struct Both {", "class Both final : public Other {"), True),
        (one, one.replace("Both", "Another"), False),
        (one, one.replace("namespace a", "namespace b"), False),
        (one, one.replace("namespace a", "namespace a::b"), False),
        (one, "namespace a {\nnamespace {\nstruct Both {\n};\n}  // namespace\n}  // namespace a\n", False),
        (one, "namespace a {\nnamespace {\n}  // namespace\nstruct Both {\n};\n}  // namespace a\n", True),
        (one, "namespace a {\nstruct Both;\nstruct Outer {\n  struct Both {\n  };\n};\n}  // namespace a\n", False),
    ]
    failed = 0
    for first, second, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "src/tenon").mkdir(parents=True)
            (root / "src/tenon/first.h").write_text(first)
            (root / "src/tenon/second.cpp").write_text(second)
            found = list(faults(root))
        if bool(found) != expected:
            failed += 1
            print(f"self-test: expected {'a fault' if expected else 'none'}, found {found} in\n{second}")
    print(f"check_names self-test: {len(cases) - failed} of {len(cases)} cases right")
    return failed == 0


if __name__ == "__main__":
    sys.exit(source_check.main(faults, self_test))
