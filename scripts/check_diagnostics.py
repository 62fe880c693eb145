#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which diagnostics no test mentions.

Reads the messages that src/ throws (the format strings of CompileError, of Diagnostics::error and of
the helpers around them) and looks for each in the texts of the tests: golden files, files of bad input,
and string literals of C++ and Python. A message is mentioned where its fixed words follow one another
in a line of a test, where a test names a part of one stretch of them, or where it expects `CODE]: ` and
how the message begins (or compares the code, where it has one message only). Fails where a code has no
test, or where fewer messages are mentioned than --least says.

    scripts/check_diagnostics.py             the summary
    scripts/check_diagnostics.py --missing   each message that no test mentions, by code
"""
import argparse
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Calls of these names are diagnostics, with or without a code among their arguments.
THROWERS = {"CompileError", "UsageError", "bad", "bad_option", "error", "fail", "fault", "illegal", "refuse", "refused",
            "unexpected", "unsupported", "wrong"}
# Other errors than a compiler's: of the runtime, of the wire to a plugin's process, of one library, of the program in
# C that --emit main writes; and refusals of the default schedule's rules, after which another rule is tried.
ELSEWHERE = ("tenon/runtime/", "tenon/backend/plugin/host_process/", "tenon/backend/dnnl/", "tenon/support/check",
             "tenon/backend/c/main_program", "tenon/tir/schedule/default_", "tenon/tir/schedule/nests",
             "tenon/tir/schedule/tiles")
# Codes whose messages are put together elsewhere, and a file that provokes each.
SHOWN_BY = {
    "kAliasing": "tests/golden/tir/call_tir/fail_overlap_of_a_written_region.tvmscript",
    "kMisaligned": "tests/golden/tir/call_extern/fail_alignment_that_is_not_proved.tvmscript",
    "kShiftOutOfRange": "tests/golden/tir/instrument_bound_checkers/fail_shifts_by_too_many_bits.tvmscript",
}
# Of a message shorter than this nothing can be looked for: its words are made elsewhere.
FEWEST_LETTERS = 8

TOKEN = re.compile(
    r'(?P<skip>//[^\n]*|/\*.*?\*/|\s+)|R"\((?P<raw>.*?)\)"|"(?P<text>(?:[^"\\\n]|\\.)*)"'
    r"|'(?:[^'\\\n]|\\.)+'|(?P<word>[A-Za-z_]\w*)|(?P<sign>::|->|.)", re.S)
ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'", "0": "\0", "r": "\r"}


def unescaped(text):
    return re.sub(r"\\(.)", lambda match: ESCAPES.get(match[1], match[0]), text)


def tokens(source):
    """(kind, text, line) of C++ source; literals that stand side by side are one."""
    out, line = [], 1
    for match in TOKEN.finditer(source):
        kind, text = match.lastgroup, match[0]
        if kind in ("raw", "text"):
            words = match[kind] if kind == "raw" else unescaped(match[kind])
            if out and out[-1][0] == "text":
                out[-1] = ("text", out[-1][1] + words, out[-1][2])
            else:
                out.append(("text", words, line))
        elif kind in ("word", "sign"):
            out.append((kind, text, line))
        line += text.count("\n")
    return out


class Call:
    def __init__(self, name, line):
        self.name, self.line, self.code, self.texts = name, line, None, []


def calls(source, codes):
    """Calls with a code or of a thrower's name, with the literals of their first argument that has some."""
    open_calls, found, before = [], [], []
    done = set()  # calls whose message is complete
    for kind, text, line in tokens(source):
        call = open_calls[-1] if open_calls else None
        if text in ("(", "{", "[") and kind == "sign":
            name = next((word for word in reversed(before[-2:]) if word), "")
            declared = len(before) > 1 and before[-2] == "CompileError"
            open_calls.append(Call("CompileError" if declared else name, line))
        elif text in (")", "}", "]") and kind == "sign":
            if open_calls:
                found.append(open_calls.pop())
        elif call is not None:
            if kind == "sign" and text == ",":
                if call.texts:
                    done.add(call)
            elif kind == "word" and text in codes:
                call.code = text
            elif kind == "text" and call not in done:
                call.texts.append((text, line))
        before.append(text if kind == "word" else "")
        del before[:-3]
    return [call for call in found if call.texts and (call.code or call.name in THROWERS)]


def helper_code(name, path, codes):
    """The code of what `name` throws, by its definition in the file or in a header beside it."""
    for place in [path, *sorted(path.parent.glob("*.h"))]:
        match = re.search(rf"\b{name}(?: =|\().{{0,400}}?\b(?:CompileError|error|fail)\w*[ \w]*\((k[A-Z]\w+)", place.read_text(), re.S)
        if match and match[1] in codes:
            return match[1]
    return None


def fragments(message):
    """The fixed parts of a format string, in order."""
    plain = message.replace("{{", "\1").replace("}}", "\2")
    parts = [part.replace("\1", "{").replace("\2", "}") for part in re.split(r"\{[^{}]*\}", plain)]
    return [part for part in parts if part]


def is_internal(message):
    return message.startswith("internal error")


def messages_of(codes):
    out = []
    for path in sorted((ROOT / "src").rglob("*")):
        name = path.relative_to(ROOT / "src").as_posix()
        if path.suffix not in (".cpp", ".h") or name.startswith(ELSEWHERE):
            continue
        helpers = {}
        for call in calls(path.read_text(), codes):
            if not call.code:
                if call.name not in helpers:
                    helpers[call.name] = helper_code(call.name, path, codes)
                call.code = helpers[call.name]
            for text, line in call.texts:
                letters = sum(map(len, re.findall(r"[A-Za-z]+", "".join(fragments(text)))))
                if letters >= FEWEST_LETTERS and not is_internal(text):
                    out.append((call.code, text, f"src/{name}:{line}"))
    return out


def test_texts():
    """Lines of the tests, and literals of their code (which may name a part of a message)."""
    lines, literals = [], set()
    for path in sorted([*(ROOT / "tests").rglob("*"), *(ROOT / "python/tests").rglob("*.py")]):
        if not path.is_file() or path.suffix in (".onnx", ".constants", ".pb", ".npy", ".bin"):
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        if path.suffix in (".cpp", ".h", ".c"):
            found = [words for kind, words, _ in tokens(text) if kind == "text"]
            literals.update(found)
            for words in found:
                lines += words.split("\n")
        elif path.suffix == ".py":
            joined = re.sub(r'"\s*\n\s*f?"', "", text)  # a literal in several lines
            literals.update(unescaped(match[1]) for match in re.finditer(r'"((?:[^"\\\n]|\\.)*)"', joined))
            lines += joined.split("\n")
        else:
            lines += text.split("\n")
    return lines, {words.strip() for words in literals if len(words.strip()) >= 14 and len(words.split()) >= 3}


def letters_begun(words, parts):
    """How many fixed letters of a message of these fixed and open parts (None) `words` begin with; -1: other words.
    They end within what is fixed, so that an open part does not swallow the end of another message."""
    if not words:
        return 0
    if not parts:
        return -1
    if parts[0] is None:
        return max(letters_begun(words[at:], parts[1:]) for at in range(1, len(words) + 1)) if len(parts) > 1 else -1
    if words.startswith(parts[0]):
        rest = letters_begun(words[len(parts[0]):], parts[1:])
        return rest if rest < 0 else rest + letters_of(parts[0])
    return letters_of(words) if parts[0].startswith(words) else -1


def letters_of(text):
    return sum(map(str.isalpha, text))


def begun_by(messages, expected):
    """The messages of one code that the texts expected behind it begin; a text that fits several is of none."""
    out = set()
    texts = {text.split("\n")[0] for text in messages}
    for words in expected:
        fits = []
        for text in texts:
            plain = text.replace("{{", "\1").replace("}}", "\2")
            parts = [None if part.startswith("{") else part.replace("\1", "{").replace("\2", "}")
                     for part in re.split(r"(\{[^{}]*\})", plain) if part]
            if letters_begun(words, parts) >= FEWEST_LETTERS:
                fits.append(text)
        if len(fits) == 1:
            out.add(fits[0])
    return out


def is_mentioned(message, lines, whole, literals):
    # A newline ends what a line of a test can hold.
    parts = [part for part in fragments(message.split("\n")[0]) if part]
    longest = max(parts, key=len)
    if longest.strip() in whole:
        pattern = re.compile(".*?".join(re.escape(part.strip()) for part in parts))
        if any(longest.strip() in line and pattern.search(line) for line in lines):
            return True
    return any(2 * len(words) >= len(longest) and words in longest for words in literals)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--missing", action="store_true", help="list the messages that no test mentions")
    parser.add_argument("--least", type=float, default=0.0, help="per cent of messages that tests must mention")
    options = parser.parse_args()

    codes = {}  # kSyntax -> TN0401
    for path in sorted((ROOT / "src/tenon/support").glob("*codes.h")):
        codes.update(re.findall(r'inline constexpr Code (k\w+)\{\s*"(TN\d+)"', path.read_text()))
    lines, literals = test_texts()
    whole = "\n".join(lines)
    sources = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.cpp"))
    tested_codes = {name for name, number in codes.items()
                    if number in whole or re.search(rf"\b{name}\b", sources)}
    tested_codes |= {name for name, path in SHOWN_BY.items() if (ROOT / path).is_file()}

    expected = collections.defaultdict(set)  # TN0401 -> what tests expect behind it
    for line in lines:
        for match in re.finditer(r"\b(?:error|warning)\\?\[(TN\d+)\\?\](?:: |:|)(.*)", line):
            expected[match[1]].add(match[2])
    compared = {name for name, number in codes.items()
                if number in expected or f'"{number}"' in sources or f"{name}.id" in sources}
    expected.default_factory = None

    by_code = collections.defaultdict(list)
    texts = collections.defaultdict(set)
    messages = messages_of(codes)
    for code, text, _ in messages:
        texts[code].add(text)
    begun = {code: begun_by(all_of, expected.get(codes.get(code), ())) for code, all_of in texts.items()}
    for code, text, place in messages:
        is_only = len(texts[code]) == 1 and code in compared
        mentioned = is_only or text.split("\n")[0] in begun[code] or is_mentioned(text, lines, whole, literals)
        by_code[code].append((mentioned, text, place))
        if mentioned and code:
            tested_codes.add(code)
    total = mentioned = 0
    for code in sorted(by_code, key=lambda name: codes.get(name, "")):
        all_of = by_code[code]
        seen = sum(item[0] for item in all_of)
        total, mentioned = total + len(all_of), mentioned + seen
        print(f"{codes.get(code, '(by helper)'):12}{(code or '')[1:]:22}{seen:4} of {len(all_of):4}")
        if options.missing:
            for was_seen, text, place in all_of:
                if not was_seen:
                    print(f"    {place}: {text!r}")
    untested = sorted(number + " " + name[1:] for name, number in codes.items() if name not in tested_codes)
    share = 100 * mentioned / total
    print(f"{mentioned} of {total} messages are mentioned by a test: {share:.1f} %")
    if untested:
        print(f"no test has these codes: {', '.join(untested)}")
    if share < options.least:
        print(f"expected at least {options.least} %: write a test for what is new; --missing lists what has none")
    return 1 if untested or share < options.least else 0


if __name__ == "__main__":
    sys.exit(main())
