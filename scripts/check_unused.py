#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists functions of src/ that nothing in src/ or python/src/ calls: dead code, or code that only tests use.

    scripts/check_unused.py [ROOT]       status 1 where there is one that KEPT below does not name
    scripts/check_unused.py --self-test  shows on made-up sources what is found and what is not

A function counts by its name: it is used where the name stands outside of the function's own declarations and bodies,
in any file of src/ or of the Python package. So one of two functions of a name may be dead without being found; none is listed that is alive.
Public headers (include/, the C interface of runtime/) are for others to call and are not looked at.
"""

import pathlib
import re
import sys
import tempfile

import source_check

# Functions without a caller in src/ that stay, by name, each with its reason.
KEPT = {
    "hits": "shows tests what a cache of results did, which nothing else does",
    "make_help": "overrides a function that CLI11 calls",
    "merge_modules": "joins modules that come from several places; docs/byoc.md offers it to C++ programs",
    "tenon_image_decode": "the runtime finds it in libtenon_image.so by its symbol",
    "tenon_image_decode_size": "the runtime finds it in libtenon_image.so by its symbol",
}

# Headers whose functions programs outside of this tree call.
PUBLIC = {"runtime/tenon_runtime.h", "runtime/abi.h", "runtime/program.h", "runtime/tensor.h", "runtime/registry.h"}

STRING = re.compile(r'R"(?P<mark>\w*)\((?:.|\n)*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|' r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'")
COMMENT = re.compile(r"//[^\n]*|/\*(?:.|\n)*?\*/")
EITHER = re.compile(f"({COMMENT.pattern})|({STRING.pattern})")
TOKEN = re.compile(r"[A-Za-z_]\w*|::|->|[(){}<>\[\];,=&*~:#]|\S")
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
NO_TYPE = {"return", "else", "case", "new", "delete", "throw", "co_return", "goto", "operator", "sizeof", "and", "or", "not"}
NO_NAME = {"if", "for", "while", "switch", "return", "sizeof", "alignof", "alignas", "decltype", "static_assert", "requires",
           "noexcept", "catch", "defined", "operator", "explicit", "__attribute__", "main", "asm", "throw"}


def code_of(text):
    """The tokens of a source, without comments, strings and lines of the preprocessor: (token, line)."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0]) if match[1] else '""' + "\n" * match[0].count("\n")
    text = EITHER.sub(blank, text)
    macros = [word for line in PREPROCESSOR.findall(text) for word in re.findall(r"\w+", line)]
    text = PREPROCESSOR.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    tokens, line, at = [], 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        tokens.append((match[0], line))
    return tokens, macros


def past(tokens, at, opening, closing):
    """The place behind the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += (tokens[i][0] == opening) - (tokens[i][0] == closing)
        if depth == 0:
            return i + 1
    return len(tokens)


def functions_of(tokens):
    """Yields (name, line, first token, token behind it) of each declaration and definition in scopes of namespaces and classes."""
    scopes = []  # "scope" of a namespace or class; "other" of a body or an initialiser
    i = begin = 0  # `begin`: of the declaration
    while i < len(tokens):
        token = tokens[i][0]
        if token == "{":
            words = {t for t, _ in tokens[begin:i]}
            is_scope = words & {"namespace", "class", "struct", "union", "extern"} and "(" not in words and "=" not in words
            if not is_scope:
                i = past(tokens, i, "{", "}")
                if i < len(tokens) and tokens[i][0] in ",;)":
                    continue
                begin = i
                continue
            scopes.append("scope")
            i += 1
            begin = i
        elif token in "};":
            i += 1
            begin = i
        elif token == ":" and i > 0 and tokens[i - 1][0] in ("public", "private", "protected"):
            i += 1
            begin = i
        elif token == "=" and not any(t in ("(",) for t, _ in tokens[begin:i]):
            while i < len(tokens) and tokens[i][0] != ";":  # an initialiser is use, not declaration
                i = past(tokens, i, "{", "}") if tokens[i][0] == "{" else i + 1
        elif token == "template" and i + 1 < len(tokens) and tokens[i + 1][0] == "<":
            depth, i = 0, i + 1
            while i < len(tokens):
                depth += (tokens[i][0] == "<") - (tokens[i][0] == ">")
                i += 1
                if depth == 0:
                    break
        elif token == "(":
            name, line = tokens[i - 1] if i > begin else ("", 0)
            before = tokens[i - 2][0] if i - 1 > begin else ""
            behind = past(tokens, i, "(", ")")
            qualified = i - 2
            while qualified > begin and tokens[qualified][0] == "::":  # Class::name: the type stands in front of that
                qualified -= 2
                before = tokens[qualified][0] if qualified >= begin else ""
            is_type = re.fullmatch(r"\w+|[>*&\]]", before) is not None and before not in NO_TYPE
            if re.fullmatch(r"[A-Za-z_]\w*", name) and name not in NO_NAME and is_type:
                end = behind
                while end < len(tokens) and tokens[end][0] not in "{;":
                    end += 1
                stop = past(tokens, end, "{", "}") if end < len(tokens) and tokens[end][0] == "{" else end + 1
                yield name, line, i - 1, stop
                i = begin = stop
                continue
            i = behind
            if name not in ("decltype", "alignas", "requires", "__attribute__", "explicit", "operator") and before != "operator":
                # a constructor, an operator, a macro: its body is no declaration
                while i < len(tokens) and tokens[i][0] not in "{;}":
                    i = past(tokens, i, "(", ")") if tokens[i][0] == "(" else i + 1
                    if i < len(tokens) and tokens[i][0] == "{" and tokens[i - 1][0] not in (")", "const", "noexcept", "override", ">"):
                        if re.fullmatch(r"\w+", tokens[i - 1][0]) and ":" in [t for t, _ in tokens[behind:i]]:
                            i = past(tokens, i, "{", "}")  # member{value} of a constructor
        else:
            i += 1


def unused(root):
    """(file, line, name) of each function that is declared in src/ and used nowhere in it or in python/src/."""
    tenon = root / "src" / "tenon"
    package = root / "python" / "src"  # what it declares is called by macros of nanobind: it calls only
    declared, uses, outside = {}, {}, set()
    for file in sorted([*tenon.rglob("*"), *package.rglob("*")]):
        if file.suffix not in (".h", ".cpp", ".inc"):  # a .c file is text of generated programs
            continue
        tokens, macros = code_of(file.read_text())
        calls_only = file.is_relative_to(package)
        public = not calls_only and file.relative_to(tenon).as_posix() in PUBLIC
        own = {}
        for name, line, first, stop in () if calls_only else functions_of(tokens):
            own.setdefault(name, []).append((first, stop))
            if public:
                outside.add(name)
            else:
                declared.setdefault(name, []).append((file, line))
        for word in macros:
            uses[word] = uses.get(word, 0) + 1
        for i, (token, _) in enumerate(tokens):
            if any(first <= i < stop for first, stop in own.get(token, ())):
                continue
            uses[token] = uses.get(token, 0) + 1
    for name in KEPT if (tenon / "ir").is_dir() and len(declared) > 100 else ():  # not in a self-test
        if name not in declared or uses.get(name):
            yield pathlib.Path(__file__).resolve(), 1, name
    for name, places in sorted(declared.items()):
        if not uses.get(name) and name not in KEPT and name not in outside:
            yield *places[0], name


def self_test():
    """Each source with the names that are to be found in it."""
    cases = [
        ("static int f(int x) { return x; }\n", {"f"}),
        ("static int f(int x) { return x; }\nint g() { return f(1); }\n", {"g"}),
        ("int f(int x);\nint f(int x) { return f(x - 1); }\n", {"f"}),
        ("struct S {\n  int f() const { return 1; }\n  void g();\n};\nvoid S::g() { f(); }\n", {"g"}),
        ("struct S {\n  S() : x_(1) {}\n  explicit S(int x) : x_{x} { f(); }\n  void f() {}\n  int x_;\n};\n", set()),
        ("namespace n {\nint f();\nconst auto kTable = {f};\n}\n", set()),
        ("// f() is called\nint f();\n", {"f"}),
        ('const char* kText = R"(" f() {)";\nint f();\n', {"f"}),
        ("template <typename T>\nT f(T x) { return x; }\n", {"f"}),
        ("struct A { virtual void f() = 0; };\nstruct B : A { void f() override { h(); } };\nvoid g(A& a) { a.f(); }\n", {"g"}),
        ("#define CALL f()\nint f();\n", set()),
        ("bool operator==(const A& a, const A& b);\nstd::vector<int> f(const std::map<int, int>& m = {});\n", {"f"}),
    ]
    failed = 0
    for text, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "src/tenon/ir/a.cpp"
            source.parent.mkdir(parents=True)
            source.write_text(text)
            found = {name for _, _, name in unused(pathlib.Path(folder))}
        if found != expected:
            failed += 1
            print(f"self-test: expected {sorted(expected)}, found {sorted(found)} in:\n{text}")
    print(f"check_unused self-test: {len(cases) - failed} of {len(cases)} cases right")
    return failed == 0


def faults(root):
    for file, line, name in unused(root):
        what = f"nothing in src/ or python/src/ calls `{name}`" if file.suffix != ".py" else f"KEPT needs no `{name}`"
        yield f"{file.relative_to(root)}:{line}: {what}"


if __name__ == "__main__":
    sys.exit(source_check.main(faults, self_test))
