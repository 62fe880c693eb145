#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds functions, files and nesting of src/ that are larger than somebody can take in at once.

    scripts/check_sizes.py [ROOT]       status 1 where one is above its limit and EXEMPT below does not name it
    scripts/check_sizes.py --self-test  shows on made-up sources what is found and what is not

A function (a member function and a lambda too) has at most 100 lines, from its signature to its closing brace; a file at most 800;
bodies of control flow and of lambdas, with braces or without, stand at most 5 deep in a function. Tables may be longer: a function
that declares and returns initialisers only, or that is one `switch` of short cases.
"""

import pathlib
import re
import sys

import source_check
from check_unused import EITHER, PREPROCESSOR

MOST_LINES_OF_FUNCTION = 100
MOST_LINES_OF_FILE = 800
MOST_LINES_OF_CASE = 12  # in a table
DEEPEST = 5

# What may be larger, as `file: function` or `file` below src/tenon, each with its reason.
EXEMPT = {
    "interp/execute.cpp: Machine::execute": "the dispatch loop over lowered instructions: one switch over registers held in locals",
    "interp/machine.cpp: Machine::step": "the dispatch loop over the machine's instructions",
}

TOKEN = re.compile(r"[A-Za-z_]\w*|::|->|[=<>!]=|&&|\S")
CONTROL = {"if", "for", "while", "switch", "catch"}
SCOPE = {"namespace", "class", "struct", "union", "enum", "extern"}
QUALIFIERS = {"const", "noexcept", "override", "final", "mutable", "&", "&&"}
NO_TYPE = {"return", "case", "else", "throw", "new"}
NO_NAME = {"decltype", "alignas", "__attribute__", "requires", "noexcept", "explicit"}
PAIRS = {"(": ")", "[": "]", "{": "}"}


class Block:
    """What a brace opens: `kind` is scope, function, lambda, control or braces (of an initialiser, a plain block)."""

    def __init__(self, kind, name, first, depth):
        self.kind, self.name, self.first, self.depth = kind, name, first, depth
        self.deepest = (0, 0)  # depth, line


def tokens_of(text):
    """The words of a source without comments, strings' contents and the preprocessor's lines, and their line numbers."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0]) if match[1] else '""' + "\n" * match[0].count("\n")
    text = PREPROCESSOR.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), EITHER.sub(blank, text))
    words, lines, line, at = [], [], 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        words.append(match[0])
        lines.append(line)
    return words, lines


def partners_of(words):
    """The place of each bracket's partner."""
    partner, opened = {}, []
    for i, word in enumerate(words):
        if word in PAIRS:
            opened.append(i)
        elif word in PAIRS.values() and opened:
            partner[i] = opened.pop()
            partner[partner[i]] = i
    return partner


def kind_of(words, partner, begin, brace, parent):
    """What the brace at `brace` opens, in a declaration or statement that begins at `begin`."""
    last = words[brace - 1] if brace > begin else ""
    if last in ("else", "do", "try"):
        return "control"
    end = brace - 1
    while end > begin and words[end] in QUALIFIERS:
        end -= 1
    arrow = end  # of a trailing return type
    while arrow > begin and re.fullmatch(r"\w+|::|[<>,*&]", words[arrow]) and words[arrow] not in NO_TYPE:
        arrow -= 1
    if words[arrow] == "->" and words[arrow - 1] == ")":
        end = arrow - 1
    if end >= begin and words[end] == "]":
        return "lambda"
    if end >= begin and words[end] == ")":
        before = partner[end] - 1
        if words[before] == "]" and words[partner[before] - 1] != "operator":
            return "lambda"
        if words[before] in CONTROL or words[before] == "constexpr" and words[before - 1] == "if":
            return "control"
    if parent != "scope":
        return "scope" if words[begin] in ("struct", "class") and "=" not in words[begin:brace] else "braces"
    head = words[begin:brace]
    if SCOPE & set(head) and "=" not in head and ("(" not in head or head[-1] not in (")", *QUALIFIERS)):
        return "scope"
    behind = words[partner[brace] + 1] if partner[brace] + 1 < len(words) else ""
    if "(" in head and last != "=" and behind not in (",", "{", ";", ")"):
        return "function"
    return "braces"


def controls_at(words, partner, closing):
    """How many headers of control flow end at the parenthesis at `closing`: two in `for (...) if (...)`."""
    count = 0
    while closing in partner and words[closing] == ")":
        keyword = partner[closing] - 1
        keyword -= words[keyword] == "constexpr"
        if words[keyword] not in CONTROL:
            break
        count += 1
        closing = keyword - 1
    return count


def name_of(head):
    """The name of a function: what stands in front of its parameters, with the class where that is given."""
    at, depth = 0, 0
    for i, word in enumerate(head):
        depth += (word == "<") - (word == ">")
        if word == "operator" or head[i + 1:i + 2] == ["("] and depth <= 0 and re.fullmatch(r"\w+", word) and word not in NO_NAME:
            at = i
            break
    first = at
    while first >= 2 and head[first - 1] == "::":
        first -= 2
    return "".join(head[first:at + 1])


def is_table(words, lines, partner, opening):
    """Whether the body that opens at `opening` declares and returns initialisers, or is one switch of short cases."""
    closing, i, statements = partner[opening], opening + 1, []
    while i < closing:
        begin = i
        while i < closing and words[i] != ";":
            i = partner[i] if words[i] in PAIRS else i
            if words[i] == "}" and words[begin] == "switch":
                break
            i += 1
        statements.append((begin, i))
        i += 1
    if words[opening + 1] == "switch" and len(statements) <= 2:
        begin, end = statements[0]
        cases = [lines[i] for i in range(begin, end) if words[i] in ("case", "default")] + [lines[end]]
        return all(b - a <= MOST_LINES_OF_CASE for a, b in zip(cases, cases[1:]))
    return all(words[begin] in ("return", "static", "const", "constexpr") for begin, _ in statements) and all(
        lines[partner[i]] - lines[i] < MOST_LINES_OF_CASE
        for i in range(opening + 1, closing)
        if words[i] == "{" and kind_of(words, partner, opening + 1, i, "function") == "lambda")


def note(stack, depth, line):
    """Keeps the deepest place of the function that is being read."""
    function = next(block for block in reversed(stack) if block.kind in ("function", "scope"))
    function.deepest = max(function.deepest, (depth, -line))


def faults_of(path, text):
    """Yields (line, key, message) of what is too large in a source; the key is what EXEMPT names."""
    count = text.count("\n")
    if count > MOST_LINES_OF_FILE:
        yield 1, path, f"{count} lines; a file has {MOST_LINES_OF_FILE} at most"
    words, lines = tokens_of(text)
    partner = partners_of(words)
    stack = [Block("scope", "", 0, 0)]
    begin = [0]  # of the statement, in each open brace
    for i, word in enumerate(words):
        if word == "{":
            outer = stack[-1]
            kind = kind_of(words, partner, begin[-1], i, outer.kind)
            name = name_of(words[begin[-1]:i]) if kind == "function" else outer.name
            deeper = max(1, controls_at(words, partner, i - 1)) if kind in ("control", "lambda") else 0
            depth = 0 if kind in ("scope", "function") else outer.depth + deeper
            first = begin[-1] if kind == "function" else i
            stack.append(Block(kind, name, first, depth))
            begin.append(i + 1)
            note(stack, depth, lines[i])
        elif word == ")" and words[i + 1] != "{" and controls_at(words, partner, i):
            note(stack, stack[-1].depth + controls_at(words, partner, i), lines[i])
        elif word == "}" and len(stack) > 1:
            block = stack.pop()
            begin.pop()
            if block.kind != "braces" or words[i + 1:i + 2] not in ([","], ["{"], [")"], [";"]):
                begin[-1] = i + 1
            key = f"{path}: {block.name}"
            size = lines[i] - lines[block.first] + 1
            if block.kind in ("function", "lambda") and size > MOST_LINES_OF_FUNCTION:
                opening = partner[i]
                if not is_table(words, lines, partner, opening):
                    what = f"`{block.name}`" if block.kind == "function" else f"a lambda in `{block.name}`"
                    yield lines[block.first], key, f"{what} has {size} lines; a function has {MOST_LINES_OF_FUNCTION} at most"
            if block.deepest[0] > DEEPEST:
                yield -block.deepest[1], key, f"`{block.name}` nests {block.deepest[0]} deep; {DEEPEST} is the most"
        elif word == ";" or word == ":" and words[i - 1] in ("public", "private", "protected"):
            begin[-1] = i + 1


def check(root):
    """The faults that no exemption covers, and exemptions without a fault."""
    tenon = root / "src" / "tenon"
    faults, needed = [], set()
    for file in sorted(tenon.rglob("*")):
        if file.suffix not in (".h", ".cpp", ".c", ".inc"):
            continue
        path = file.relative_to(tenon).as_posix()
        for line, key, message in faults_of(path, file.read_text()):
            if key in EXEMPT:
                needed.add(key)
            else:
                faults.append(f"src/tenon/{path}:{line}: {message}")
    return faults + [f"scripts/check_sizes.py: {key} is within the limits; it needs no exemption" for key in sorted(set(EXEMPT) - needed)]


def self_test():
    """Each source with the words that are to be found in its faults."""
    def lines(n, line="  f();\n"):
        return line * n
    rows = "  return {\n" + lines(120, '    {"a", [](int x) { return x; }},\n') + "  };\n"
    cases = [
        ("void f() {\n" + lines(98) + "}\n", []),
        ("void f() {\n" + lines(99) + "}\n", ["`f` has 101 lines"]),
        ("namespace n {\n" + lines(120, "int f();\n") + "}\n", []),
        ("struct S {\n  S(int x) : x_{x}, y_(1) {\n" + lines(99) + "  }\n};\n", ["`S` has 101 lines"]),
        ("struct S {\n" + lines(120, "  int f() const { return 1; }\n") + "};\n", []),
        ("bool A::B::f(int x,\n             int y) const {\n" + lines(98) + "}\n", ["`A::B::f` has 101 lines"]),
        ("int A::operator[](int i) const {\n" + lines(99) + "}\n", ["`A::operator` has 101 lines"]),
        ("void f() {\n  const char* s = R\"({\n" + lines(50) + ")\";  // {\n" + lines(49) + "}\n", ["`f` has 103 lines"]),
        ("const auto kF = [](int x) {\n" + lines(99) + "};\n", ["a lambda"]),
        ("const int kTable[] = {\n" + lines(120, "    1,\n") + "};\n", []),
        ("static constexpr auto kTable = std::to_array<int>({\n" + lines(120, "    1,\n") + "});\n", []),
        ("std::vector<Row> f() {\n" + rows + "}\n", []),
        ("std::vector<Row> f() {\n  const int n = 1;\n" + rows + "}\n", []),
        ("std::vector<Row> f() {\n  g();\n" + rows + "}\n", ["`f` has 125 lines"]),
        ("std::vector<Row> f() {\n  return {[] {\n" + lines(60) + "  }, [] {\n" + lines(60) + "  }};\n}\n", ["`f` has 125"]),
        ("int f(int x) {\n  switch (x) {\n" + lines(120, "    case 1: return 2;\n") + "  }\n  return 3;\n}\n", []),
        ("int f(int x) {\n  switch (x) {\n    case 1:\n" + lines(120) + "  }\n}\n", ["`f` has 125 lines"]),
        ("int f();\n" * 801, ["801 lines; a file"]),
        ("void f() {\n" + "for (;;) {\n" * 5 + "}\n" * 6, []),
        ("void f() {\n" + "for (;;) {\n" * 6 + "}\n" * 7, ["`f` nests 6 deep"]),
        ("void f() {\n" + "for (;;) {\n" * 4 + "for (;;)\nif (x) g();\n" + "}\n" * 5, ["`f` nests 6 deep"]),
        ("void f() {\n" + "for (;;)\n" * 5 + "if (x) {\n}\n}\n", ["`f` nests 6 deep"]),
        ("void f() {\n" + "g([&](int x) -> std::vector<int> {\n" * 6 + "});\n" * 6 + "}\n", ["`f` nests 6 deep"]),
        ("void f() {\n" + lines(6, "if (a) {\n} else ") + "g();\n}\n", []),
        ("namespace n {\nstruct S {\nvoid f() {\n" + "if constexpr (x) {\n" * 5 + "}\n" * 8, []),
    ]
    wrong = 0
    for text, expected in cases:
        found = [message for _, _, message in faults_of("a.cpp", text)]
        if len(found) != len(expected) or any(words not in message for words, message in zip(expected, found)):
            wrong += 1
            print(f"self-test: expected {expected}, found {found} in:\n{text[:300]}")
    print(f"check_sizes self-test: {len(cases) - wrong} of {len(cases)} cases right")
    return wrong == 0


if __name__ == "__main__":
    sys.exit(source_check.main(check, self_test))
