# SPDX-License-Identifier: Apache-2.0
"""Sphinx's configuration of the site, which `make docs` builds with build.py."""

import pathlib
import re
import sys

from docutils import nodes
from pygments.lexers.shell import BashSessionLexer

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import navigation  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]

project = "Tenon"
author = copyright = "Tenon's authors"
version = release = re.search(r"project\(tenon VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
root_doc = "index"
include_patterns = ["*.md", "*.rst", "api/*.rst", "examples/notebooks/*.ipynb", "docs/*.md", "docs/design/*.md", "docs/contributing/*.md",
                    "examples/*/README.md", "src/tenon/*/README.md"]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]

# Pages are as they are read anywhere else: GitHub's Markdown, with its anchors of headings.
myst_heading_anchors = 6
myst_links_external_new_tab = False
nb_execution_mode = "off"  # the notebooks hold their outputs, which the tests compare
nb_ipywidgets_js = {}  # nothing is loaded from elsewhere
copybutton_exclude = ".linenos, .gp, .go"  # of commands neither the prompt nor what they print
highlight_language = "none"
smartquotes = False  # options begin with two hyphens

# Docstrings: Google's sections; `code` in single backquotes.
default_role = "code"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
add_module_names = True
python_use_unqualified_type_names = True
maximum_signature_line_length = 90

html_theme = "furo"
html_title = f"Tenon {version}"
html_static_path = [str(pathlib.Path(__file__).parent / "static")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"top_of_page_buttons": []}

LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]+)?(?=\))")


def _links(page, text):
    """Links to folders lead to their pages, those to the repository's README to the first page."""
    here = (ROOT / page).parent

    def target(link):
        path, anchor = link.group(1), link.group(2) or ""
        if re.match(r"[a-z]+:", path):
            return link.group(0)
        resolved = (here / path).resolve()
        if resolved == ROOT / "README.md":
            return f"/index.md{anchor}"
        if (resolved / "README.md").exists():
            return f"/{(resolved / 'README.md').relative_to(ROOT)}{anchor}"
        return link.group(0)

    return LINK.sub(target, text)


def _read(app, page, source):
    source[0] = _links("README.md" if page == "index" else page, source[0]) + navigation.below(page)


# Names of the package are defined by modules that readers do not import from.
INSIDE = re.compile(r"\btenon\._(?:core|api|errors|memory)\.(?:dpl\.)?(\w+)")


def _public(match):
    from tenon import dpl, tir

    name = match.group(1)
    return next((f"{module.__name__}.{name}" for module in (dpl, tir) if name in module.__all__), f"tenon.{name}")


def _signature(app, what, name, value, options, signature, returned):
    return signature and INSIDE.sub(_public, signature), returned and INSIDE.sub(_public, returned)


def _docstring(app, what, name, value, options, lines):
    """Docstrings are plain: `code` in backquotes, blocks that are indented by four, and sections, which are left to napoleon. Nothing else in
    them is markup."""
    text = "".join(part if i % 2 else re.sub(r"([*|_])(?!\w)", r"\\\1", part) for i, part in enumerate(re.split(r"(`[^`]*`)", "\n".join(lines))))
    text = re.sub(r"(?<=[^:\n])\n\n((?: {4}[^\n]*\n?|\n(?= {4}))+)", r"\n\n.. code-block:: python\n\n\1\n", text)
    lines[:] = text.split("\n")


class Console(BashSessionLexer):
    """Commands after `$ `, as examples/run_page.py runs them. A line that begins with `#` is printed by one."""

    name = "Console"
    _ps1rgx = re.compile(r"^(\$ )(.*\n?)")
    _ps2 = "> "


def _dashes(app, doctree):
    """Between a parameter and what it is Sphinx writes two hyphens, for smart quotes to join."""
    for text in list(doctree.findall(nodes.Text)):
        if text.astext() == " -- ":
            text.parent.replace(text, nodes.Text(" \N{EN DASH} "))


def setup(app):
    app.add_lexer("console", Console)
    app.connect("source-read", _read)
    app.connect("doctree-read", _dashes)
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-process-docstring", _docstring, priority=400)  # before napoleon
