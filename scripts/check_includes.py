#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that includes keep to the order of the rooms, and foreign headers to the rooms that wrap them.

    scripts/check_includes.py [ROOT]       status 1 where a line breaks a rule below
    scripts/check_includes.py --self-test  shows on made-up sources that each rule fires

docs/architecture.md says what the rooms are for.
"""

import pathlib
import re
import sys
import tempfile

import source_check

# The rooms of src/tenon/ in their order: one may include itself and what stands above it.
ROOMS = [
    "support",
    "ir",
    "arith",
    "tir",
    "graph",
    "script",
    "interp",
    "reduce",
    "memory",
    "import",
    "backend",
    "tune",
    "driver",
]

# The folders inside a room in their order: a file may include what stands in its own folder and in those before it. "" is the
# room's own folder. Rooms that are not listed have one folder; of `backend` and `import` see SIBLINGS.
FOLDERS = {
    "tir": ["", "analysis", "patterns", "schedule", "transforms"],
    "graph": ["", "ops", "patterns", "transforms"],
    "interp": ["", "reference"],
    "driver": ["", "report"],
}

# Files of a room's own folder that belong to a later one: its contracts, and what is built on it. A name stands for .h and .cpp.
BELONGS = {
    "graph/transforms": "transforms",
    "graph/partition_passes": "transforms",
    "graph/backend": "transforms",
    "graph/backend_registry": "transforms",
    "graph/kernels": "transforms",
    "graph/kernel_checks": "transforms",
    "graph/kernel_condition": "transforms",
    "graph/kernel_fusion": "transforms",
    "graph/kernel_names": "transforms",
    "graph/kernel_verifier": "transforms",
    "graph/declared_operators": "transforms",
    "graph/operator_rules": "transforms",
    "graph/verifier": "transforms",
    "driver/report_command": "report",
    "driver/explain_command": "report",
}

# Includes against the order that are left, each with its reason.
LEFT = {
    ("graph/operator_attributes.cpp", "graph/kernels.h"): "ONNX's names of attributes stand with the kernels",
}

# `runtime` ships alone: it includes no other room, and only these include it.
RUNTIME_USERS = {"backend", "tune", "driver"}

# Of these, each folder is a room of its own beside the others; they share what lies in backend/ or import/ itself.
SIBLINGS = {"backend": "back ends do not use each other", "import": "importers do not use each other"}

# Foreign headers by the start of their path, and the rooms that may include them (a folder covers what is in it).
EVERYWHERE = {*ROOMS}
LIBRARIES = {
    "llvm/": {"backend/llvm"},
    "llvm-c/": {"backend/llvm"},
    "lld/": {"backend/llvm"},
    "dnnl": {"backend/dnnl"},
    "cblas": {"backend/blas"},
    "onnx/": {"import/onnx"},
    "google/protobuf/": {"import/onnx"},
    "CLI/": {"driver"},
    "nlohmann/": {"import", "memory", "tir", "tune", "driver"},
    "dlpack/": {"runtime", "backend", "driver"},
    "fmt/": EVERYWHERE,  # not runtime: it needs nothing but the system
    "xxhash.h": EVERYWHERE,
    "re2/": {"runtime"},
    "sqlite3.h": {"tune"},
    **dict.fromkeys(["jpeglib.h", "jerror.h", "openjpeg.h", "png.h", "tiffio.h", "webp/"], {"runtime/image"}),
}

# The system's C headers. C++'s own have neither a dot nor a slash in their names.
SYSTEM = re.compile(
    r"(std(int|def|arg|atomic|bool|io|lib)|string|math|limits|float|errno|assert|time|signal|unistd|fcntl|spawn|dlfcn|link|dirent"
    r"|pthread|setjmp|sched|semaphore|poll|cxxabi|execinfo|malloc|elf|immintrin|x86intrin|cpuid)\.h|(sys|linux)/\w+\.h"
)

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def inside(place, rooms):
    """True where the folder `place` (backend/llvm/x) is one of `rooms` or lies in one."""
    return any(place == room or place.startswith(room + "/") for room in rooms)


def folder_of(file):
    """The folder inside of its room that `file` (a path below src/tenon/) counts to."""
    parts = file.split("/")
    return BELONGS.get(file.rsplit(".", 1)[0], parts[1] if len(parts) > 2 else "")


def broken_order(file, path):
    """What is wrong with including `path` from `file` (both below src/tenon/) of the same room."""
    room = file.split("/")[0]
    order = FOLDERS.get(room, [""])
    mine, theirs = folder_of(file), folder_of(path)
    for folder in (mine, theirs):
        if folder not in order:
            return f"`{room}/{folder}` is no folder that scripts/check_includes.py lists"
    if order.index(theirs) > order.index(mine) and (file, path) not in LEFT:
        return f"`{room}/{theirs}` stands below `{'/'.join(filter(None, (room, mine)))}`"
    return None


def broken_rule(place, name, path, root):
    """What is wrong with including `path` from file `name` of folder `place` of src/tenon/ ("examples": of a user's program)."""
    room = place.split("/")[0]
    if not path.startswith("tenon/"):
        for prefix, rooms in LIBRARIES.items():
            if path.startswith(prefix):
                if inside(place, rooms):
                    return None
                return f"`{prefix}` belongs to {', '.join(sorted(rooms))}"
        if re.fullmatch(r"\w+", path) or SYSTEM.fullmatch(path):
            return None
        if room == "examples" and re.fullmatch(r"\w+\.h", path):
            return None  # its own
        return "neither a system header nor a library that scripts/check_includes.py lists"

    if path == "tenon/backend.h":  # what back ends, in the tree and outside, are written against
        return None if room in ("backend", "examples") else "`tenon/backend.h` is for backend, examples"
    if not any((root / "src" / made).is_file() for made in (path, path + ".in")):  # .in: CMake makes it
        return "no such file"
    other_place = str(pathlib.PurePosixPath(path).parent.relative_to("tenon"))
    other = other_place.split("/")[0]
    if other not in ROOMS and other != "runtime":
        return f"`{other}` is no room"
    if room == "examples":
        return None if other == "runtime" else "a user's program sees tenon/runtime only"
    if other == "runtime":
        if room == "runtime" or room in RUNTIME_USERS:
            return None
        return f"`runtime` is for {', '.join(sorted(RUNTIME_USERS))}"
    if room == "runtime":
        return "`runtime` stands alone"
    if room == other and room in SIBLINGS:
        mine, theirs = place.split("/")[1:2], other_place.split("/")[1:2]
        if theirs and mine != theirs:
            return SIBLINGS[room]
        return None
    if room == other:
        return broken_order(f"{place}/{name}", path.removeprefix("tenon/"))
    if ROOMS.index(other) > ROOMS.index(room):
        return f"`{other}` stands below `{room}`"
    return None


def check(root):
    """Yields (file, line, path, rule) for each include of the tree that breaks a rule."""
    tenon = root / "src" / "tenon"
    files = [(file, file.parent.relative_to(tenon).as_posix()) for file in tenon.rglob("*")]
    files += [(file, "examples") for file in (root / "examples").rglob("*")]
    for file, place in sorted(files):
        if file.suffix not in (".h", ".hpp", ".cpp", ".c", ".cc", ".inc") or not file.is_file():
            continue
        if place != "examples" and place.split("/")[0] not in ROOMS + ["runtime"]:
            yield file, 1, place, "a folder that is no room"
            continue
        text = file.read_text()
        for match in INCLUDE.finditer(text):
            path = match[1] or match[2]
            rule = broken_rule(place, file.name, path, root)
            if rule:
                yield file, text.count("\n", 0, match.start()) + 1, path, rule


def self_test():
    """Each line: where a source stands, what it includes, the words of the rule that must fire (none: allowed)."""
    cases = [
        ("tir/a.cpp", '"tenon/ir/b.h"', None),
        ("tir/a.cpp", '"tenon/tir/b.h"', None),
        ("tir/a.cpp", '"tenon/graph/b.h"', "`graph` stands below `tir`"),
        ("support/a.h", '"tenon/ir/b.h"', "stands below"),
        ("tir/transforms/a.cpp", '  "tenon/script/b.h"', "stands below"),
        ("tir/a.cpp", '"tenon/ir/missing.h"', "no such file"),
        ("tir/a.cpp", '"b.h"', "neither a system header"),
        ("runtime/a.cpp", '"tenon/support/b.h"', "stands alone"),
        ("runtime/a.cpp", '"tenon/runtime/b.h"', None),
        ("runtime/a.cpp", "<fmt/format.h>", "`fmt/` belongs to"),
        ("graph/a.cpp", '"tenon/runtime/b.h"', "`runtime` is for"),
        ("driver/a.cpp", '"tenon/runtime/b.h"', None),
        ("driver/a.cpp", '"tenon/backend/llvm/b.h"', None),
        ("backend/llvm/a.cpp", "<llvm/IR/Module.h>", None),
        ("backend/llvm/a.cpp", "<lld/Common/Driver.h>", None),
        ("backend/llvm/a.cpp", '"tenon/backend/b.h"', None),
        ("backend/llvm/a.cpp", '"tenon/backend/c/b.h"', "do not use each other"),
        ("backend/c/a.cpp", "<llvm/IR/Module.h>", "`llvm/` belongs to backend/llvm"),
        ("driver/a.cpp", '"llvm/IR/Module.h"', "`llvm/` belongs to backend/llvm"),
        ("backend/dnnl/a.cpp", "<dnnl.h>", None),
        ("driver/a.cpp", "<dnnl.h>", "`dnnl` belongs to backend/dnnl"),
        ("import/onnx/a.cpp", "<onnx/onnx_pb.h>", None),
        ("import/onnx/a.cpp", '"tenon/import/b.h"', None),
        ("import/onnx/a.cpp", '"tenon/import/relay/b.h"', "importers do not use each other"),
        ("import/relay/a.cpp", '"tenon/script/b.h"', None),
        ("import/relay/a.cpp", "<onnx/onnx_pb.h>", "`onnx/` belongs to import/onnx"),
        ("graph/a.cpp", "<onnx/onnx_pb.h>", "`onnx/` belongs to import/onnx"),
        ("driver/a.cpp", "<google/protobuf/message.h>", "belongs to import/onnx"),
        ("driver/a.cpp", "<CLI/CLI.hpp>", None),
        ("script/a.cpp", "<CLI/CLI.hpp>", "`CLI/` belongs to driver"),
        ("graph/a.cpp", "<nlohmann/json.hpp>", "`nlohmann/` belongs to driver, import, memory, tir"),
        ("ir/a.cpp", "<vector>", None),
        ("runtime/a.cpp", "<sys/mman.h>", None),
        ("ir/a.cpp", "<boost/any.hpp>", "neither a system header"),
        ("tir/patterns/a.cpp", '"tenon/tir/schedule/b.h"', "`tir/schedule` stands below `tir/patterns`"),
        ("tir/schedule/a.cpp", '"tenon/tir/patterns/b.h"', None),
        ("tir/a.cpp", '"tenon/tir/analysis/b.h"', "`tir/analysis` stands below `tir`"),
        ("tir/cellar/a.cpp", '"tenon/tir/b.h"', "`tir/cellar` is no folder"),
        ("graph/kernels.cpp", '"tenon/graph/transforms/b.h"', None),
        ("graph/ops/a.cpp", '"tenon/graph/transforms.h"', "`graph/transforms` stands below `graph/ops`"),
        ("graph/operator_attributes.cpp", '"tenon/graph/kernels.h"', None),
        ("interp/a.cpp", '"tenon/interp/reference/b.h"', "`interp/reference` stands below `interp`"),
        ("cellar/a.cpp", "<vector>", "no room"),
        ("../../examples/x/a.cpp", '"tenon/runtime/b.h"', None),
        ("../../examples/x/a.cpp", '"tenon/ir/b.h"', "a user's program"),
        ("../../examples/x/a.c", "<tenon/backend.h>", None),
        ("backend/dnnl/a.cpp", '"tenon/backend.h"', None),
        ("graph/a.cpp", '"tenon/backend.h"', "is for backend, examples"),
    ]
    headers = [f"{room}/b.h" for room in ROOMS + ["runtime"]] + ["backend/llvm/b.h", "backend/c/b.h", "import/relay/b.h"]
    headers += [f"{room}/{folder}/b.h" for room, folders in FOLDERS.items() for folder in folders if folder]
    headers += ["graph/transforms.h", "graph/kernels.h"]
    failed = 0
    for place, include, words in cases:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for header in headers:
                (root / "src/tenon" / header).parent.mkdir(parents=True, exist_ok=True)
                (root / "src/tenon" / header).write_text("#pragma once\n")
            (root / "examples/x").mkdir(parents=True)
            source = root / "src/tenon" / place
            source.parent.mkdir(parents=True, exist_ok=True)
            source.write_text(f"// first line\n#include {include}\n")
            found = [f"{rule} (line {line})" for _, line, _, rule in check(root)]
        right = not found if words is None else len(found) == 1 and words in found[0]
        if not right:
            failed += 1
            print(f"self-test: {place} includes {include}: expected {words or 'nothing'}, found {found}")
    print(f"check_includes self-test: {len(cases) - failed} of {len(cases)} cases right")
    return failed == 0


def faults(root):
    for file, line, path, rule in check(root):
        yield f"{file.relative_to(root)}:{line}: includes {path}: {rule}"


if __name__ == "__main__":
    sys.exit(source_check.main(faults, self_test))
