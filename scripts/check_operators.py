#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds places outside of the families' files (src/tenon/graph/ops/) that ask for operators by name.

    scripts/check_operators.py [ROOT]       status 1 where a file does that EXCEPTIONS below does not name
    scripts/check_operators.py --self-test  shows on made-up sources what is found and what is not

What a pass needs to know of an operator is part of its definition (`OpDef` in graph/op.h), so that whoever adds one adds it in
one place. A name in code is fine where a call of the operator is made: `call_op("add", ...)`, `builder.op("add", ...)`.
Importers (import/) and back ends (backend/) have tables of the operators that they know; rooms above graph/ know none.
The names are those of docs/operators.md, which `scripts/check_tables.sh` compares with the program.
"""

import pathlib
import re
import sys
import tempfile

import source_check

# Rooms that see operators and are to ask their definitions.
ROOMS = ["graph", "script", "interp", "reduce", "memory", "tune", "driver"]

# Operators of the graph's own language, which every pass knows as it knows a tuple.
LANGUAGE = {"reshape", "undefined", "null_value", "print", "assert_op", "shape_of", "tensor_to_shape", "shape_to_tensor", "words"}

# Files that name operators or words that are names of operators too, each with its reason.
EXCEPTIONS = {
    "driver/kernel_files.cpp": "`gemm` and `nn.gemm` both mean ONNX's Gemm",
    "driver/kernel_sample.cpp": "parameters of kernels called min and max",
    "driver/run_command.cpp": "keys of a report",
    "driver/sampled_function.cpp": "operands of ONNX's operators",
    "driver/show_command.cpp": "keys of a report",
    "driver/story.cpp": "keys of a report",
    "graph/kernel_verifier.cpp": "names of attributes that are dimensions",
    "graph/operator_attributes.cpp": "a matched operand behind a transpose",
    "graph/patterns/dataflow_pattern.cpp": "builds a pattern",
    "graph/patterns/graph_pattern.cpp": "patterns of transposed operands",
    "graph/patterns/match_run.cpp": "transposed and reshaped operands of patterns",
    "graph/transforms/fake_quantization_to_integer.cpp": "a rewrite: products of what is dequantised",
    "graph/transforms/fold_batchnorm.cpp": "a rewrite: batch norms behind products",
    "graph/transforms/simplify_graph.cpp": "rewrites of single operators",
    "graph/transforms/hoist_from_loops.cpp": "products of all slices",
    "graph/transforms/split_layout_rewrite_preproc.cpp": "a remark that a kernel was split",
    "interp/reference/elementwise.cpp": "references that make folding of weights faster",
    "interp/reference/reference.cpp": "references that make folding of weights faster",
    "script/eval_calls.cpp": "functions of Python and TVMScript's T",
    "script/evaluator.cpp": "functions of Python and its signs for intrinsics",
    "script/graph_values.cpp": "Python's signs for operators",
    "script/print_expr.cpp": "functions of TVMScript's T",
    "script/printer.cpp": "words of Python",
    "script/python_values.cpp": "functions of Python",
    "script/words.cpp": "functions of TVMScript's T",
    "tune/proposals.cpp": "fields of plans",
}

LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"')
MAKES = re.compile(r"\b(call_op|find_op|op)\(\s*$")
COMMENT = re.compile(r"(?m)//[^\n]*$")


def names_of(root):
    return set(re.findall(r"(?m)^\| `([\w.]+)` \|", (root / "docs/operators.md").read_text())) - LANGUAGE


def places(root):
    """Yields (file below src/tenon, line, name) for each name of an operator that makes no call of it."""
    names = names_of(root)
    tenon = root / "src" / "tenon"
    for room in ROOMS:
        for file in sorted((tenon / room).rglob("*")):
            path = file.relative_to(tenon).as_posix()
            if file.suffix not in (".h", ".cpp") or path.startswith("graph/ops/"):
                continue
            text = COMMENT.sub("", file.read_text())
            for match in LITERAL.finditer(text):
                if match[1] in names and not MAKES.search(text, max(0, match.start() - 60), match.start()):
                    yield path, text.count("\n", 0, match.start()) + 1, match[1]


def check(root):
    """The faults: places that no exception covers, and exceptions without a place."""
    faults, needed = [], set()
    for path, line, name in places(root):
        if path in EXCEPTIONS:
            needed.add(path)
        else:
            faults.append(f"src/tenon/{path}:{line}: names operator `{name}`; its definition in graph/ops/ is to state what is asked")
    faults += [f"scripts/check_operators.py: {path} names no operator; it needs no exception" for path in sorted(set(EXCEPTIONS) - needed)]
    return faults


def self_test():
    cases = [  # file, line, whether it is found
        ("graph/transforms/a.cpp", 'if (call.is("nn.relu")) return;', True),
        ("graph/transforms/a.cpp", 'return call_op("nn.relu", {x});', False),
        ("graph/transforms/a.cpp", 'return builder_.op(\n    "nn.relu", {x});', False),
        ("graph/transforms/a.cpp", '// as "nn.relu" does', False),
        ("graph/transforms/a.cpp", 'if (call.is("reshape")) return;', False),
        ("graph/transforms/a.cpp", 'static std::set<std::string_view> kNames = {"abs", "nn.relu"};', True),
        ("graph/ops/a.cpp", 'op.name = "nn.relu";', False),
        ("driver/a.cpp", 'if (op == "abs") return;', True),
        ("tir/a.cpp", 'if (op == "abs") return;', False),
        ("backend/dnnl/a.cpp", 'if (op == "nn.relu") return;', False),
        ("script/evaluator.cpp", 'if (name == "abs") return;', False),
    ]
    wrong = 0
    for place, line, found in cases:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            (root / "docs/operators.md").write_text("| `nn.relu` | x |\n| `abs` | x |\n| `reshape` | x |\n")
            source = root / "src/tenon" / place
            source.parent.mkdir(parents=True)
            source.write_text("// first line\n" + line + "\n")
            seen = any(fault.startswith("src/") for fault in check(root))
        if seen != found:
            wrong += 1
            print(f"self-test: {place}: {line}: expected {found}, found {seen}")
    print(f"check_operators self-test: {len(cases) - wrong} of {len(cases)} cases right")
    return wrong == 0


if __name__ == "__main__":
    sys.exit(source_check.main(check, self_test))
