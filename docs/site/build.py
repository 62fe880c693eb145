# SPDX-License-Identifier: Apache-2.0
"""Builds the site of the pages, the notebooks and the reference of the Python package:

    PYTHONPATH=build/python build/docs-venv/bin/python docs/site/build.py build/docs

FOLDER/source gets copies of all pages, and pages that the tables of the compiler give; FOLDER/html is the site. Every warning of Sphinx is an
error, and so is a link that leads nowhere, or that loads something from elsewhere.
"""

import html.parser
import pathlib
import shutil
import sys
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def assemble(source):
    """Copies what pages are and link to, at the same places: relative links hold here as in the repository."""
    (source / "api").mkdir(parents=True)
    for name in ("docs", "examples", "include"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("site", "__pycache__", ".ipynb_checkpoints"))
    for path in (*ROOT.glob("src/**/*.md"), *ROOT.glob("src/tenon/runtime/*.h"), *ROOT.glob("*.md")):
        copy = source / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    (source / "README.md").rename(source / "index.md")
    for page in (HERE / "api").glob("*.rst"):
        shutil.copy2(page, source / "api")
    (source / "rooms.md").write_text("# The rooms of the code\n\nEach folder of `src/tenon/` has a page; "
                                     "[the map](docs/architecture.md) shows how they stand together.\n")


def passes():
    """One entry for each pass, by the form of module that it takes."""
    import tenon

    yield ".. Written by docs/site/build.py from the compiler's table of passes.\n"
    yield "Passes\n======\n"
    yield ("``tenon.transform`` has every pass by its name. Called with its options, each gives a :py:class:`tenon.Pass`, which is called with a "
           "module. :doc:`/docs/passes` says what each does and why; the order here is that of the standard pipeline.\n")
    yield ".. autofunction:: tenon.transform.standard_pipeline\n"
    forms = {}
    for known in tenon.passes():
        forms.setdefault(known.needs, []).append(known.name)
    for form, names in forms.items():
        title = f"Form: {form}"
        yield f"{title}\n{'-' * len(title)}\n"
        yield from (f".. autofunction:: tenon.transform.{name}\n" for name in names)


def words(letter, module, title, text):
    """The words of a language, each with its parameters and what it is."""
    from tenon.script import _words

    yield ".. Written by docs/site/build.py from the compiler's table of words.\n"
    yield f"{title}\n{'=' * len(title)}\n"
    yield f"``from tenon.script import {module} as {letter}``. {text}\n"
    yield f".. py:module:: tenon.script.{module}\n"
    for path, (parameters, summary, kind) in sorted(_words.known().items(), key=lambda item: item[0].lower()):
        if path.startswith(letter + "."):
            summary = summary[:1].upper() + summary[1:]
            yield f".. py:function:: {path}({parameters})\n   :module:\n   :no-typesetting:\n" if not summary else \
                f".. py:function:: {path}({parameters})\n   :module:\n\n   {literal(summary)}\n"


def members(module, title):
    """All that a module of the package has, classes first, but what `tenon` itself has, which stands there."""
    import tenon

    yield f"{title}\n{'=' * len(title)}\n"
    yield f".. automodule:: {module.__name__}\n   :no-members:\n"
    values = [(name, getattr(module, name)) for name in module.__all__ if not hasattr(tenon, name)]
    kinds = [("Classes", [name for name, value in values if isinstance(value, type)]),
             ("Functions", [name for name, value in values if callable(value) and not isinstance(value, type)])]
    for kind, names in kinds:
        yield f"{kind}\n{'-' * len(kind)}\n"
        for name in names:
            yield f".. autoclass:: {module.__name__}.{name}\n   :members:\n" if kind == "Classes" else f".. autofunction:: {module.__name__}.{name}\n"


def literal(text):
    """A text of the tables as reStructuredText."""
    return text.replace("\\", "\\\\").replace("*", "\\*").replace("|", "\\|").replace("_ ", "\\_ ")


def generate(api):
    from tenon import dpl, tir

    pages = {
        "2-dpl": members(dpl, "Patterns: tenon.dpl"),
        "3-tir": members(tir, "TensorIR from values: tenon.tir"),
        "passes": passes(),
        "words-tir": words("T", "tir", "Words of TensorIR", "The words of kernels: loops, blocks, buffers and scalars."),
        "words-relax": words("R", "relax", "Words of Relax", "The words of graphs. On a :py:class:`tenon.Expr` the operators build calls; "
                             ":doc:`/docs/operators` has the rules of each."),
        "words-ir": words("I", "ir", "Words of modules", "What is around functions."),
    }
    for name, lines in pages.items():
        (api / f"{name}.rst").write_text("\n".join(lines))


class Links(html.parser.HTMLParser):
    """Of a page what it links to, what it loads, and its anchors."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.anchors = set(), set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.anchors.update(named[key] for key in ("id", "name") if named.get(key))
        if tag == "a" and named.get("href"):
            self.links.add(named["href"])
        if named.get("src"):
            self.loads.add(named["src"])
        if tag == "link" and named.get("href") and named.get("rel") not in ("canonical", "index", "search", "next", "prev"):
            self.loads.add(named["href"])


def broken(folder):
    """What is wrong with the links of a site."""
    pages = {path: Links(path.read_text(errors="replace")) for path in folder.rglob("*.html")}
    for page, found in sorted(pages.items()):
        name = page.relative_to(folder)
        for load in found.loads:
            if urllib.parse.urlsplit(load).netloc:
                yield f"{name}: loads {load}, which needs a network"
        for link in sorted(found.links | found.loads):
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = urllib.parse.unquote(parts.path)
            target = (page.parent / path).resolve() if path else page
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.is_file():
                yield f"{name}: link {link} leads nowhere"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                yield f"{name}: link {link} has no such anchor"


def undocumented(folder):
    """Names of the package that no page of the reference has."""
    import inspect

    import tenon

    anchors = set().union(*(Links(path.read_text()).anchors for path in (folder / "api").glob("*.html")))
    for name in tenon.__all__:
        if not inspect.ismodule(getattr(tenon, name)) and f"tenon.{name}" not in anchors:
            yield f"tenon.{name} is in no page of docs/site/api"


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    source, site = folder / "source", folder / "html"
    shutil.rmtree(folder, ignore_errors=True)  # what was there would be looked at as well
    assemble(source)
    generate(source / "api")

    from sphinx.cmd.build import main as sphinx

    status = sphinx(["-q", "-W", "--keep-going", "-c", str(HERE), "-d", str(folder / "doctrees"), str(source), str(site)])
    faults = [*broken(site), *undocumented(site)] if site.exists() else []
    if faults:
        print("\n".join(faults))
    if status or faults:
        sys.exit(f"docs: {len(faults)} faults, and Sphinx says {status}")
    print(f"{site}/index.html: {sum(1 for _ in site.rglob('*.html'))} pages")


if __name__ == "__main__":
    main()
