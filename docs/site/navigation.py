# SPDX-License-Identifier: Apache-2.0
"""Which page stands where: a list of (caption, pages) for each page that has others below it. A page that stands nowhere is an error of
the build."""

NAVIGATION = {
    "index": [
        ("Begin", ["docs/choosing", "docs/python", "docs/options", "docs/debugging", "docs/report"]),
        ("In notebooks", ["examples/notebooks/*"]),
        ("By example", ["examples/[a-z]*/README"]),
        ("Networks in", ["docs/onnx-operators", "docs/sequences", "docs/relay", "docs/relay-operators", "docs/language-models", "docs/trust"]),
        ("Python", ["docs/python-frameworks", "docs/python-scripts", "docs/python-kernels", "docs/python-backends", "docs/python-from-tvm", "api/*"]),
        ("The language", ["docs/tvmscript", "docs/operators", "docs/element-types", "docs/accesses", "docs/diagnostics"]),
        ("Your own code", ["docs/own-kernels", "docs/kernel-calls", "docs/library-calls", "docs/byoc", "docs/plugin", "docs/libraries",
                           "docs/placement"]),
        ("Passes and patterns", ["docs/passes", "docs/pipelines", "docs/patterns", "docs/tir-patterns", "docs/plans", "docs/tuning"]),
        ("Programs out", ["docs/c_target", "docs/cache", "docs/performance"]),
        ("Tenon inside", ["docs/architecture", "docs/reliability", "docs/roadmap", "docs/design/README", "docs/contributing/README", "rooms",
                          "CONTRIBUTING", "CHANGELOG"]),
    ],
    "docs/design/README": [(None, ["docs/design/0*"])],
    "docs/contributing/README": [(None, ["docs/contributing/[a-z]*"])],
    "rooms": [(None, ["src/tenon/*/README"])],
}


def below(page: str) -> str:
    """The toctrees that a page gets."""
    out = ""
    for caption, pages in NAVIGATION.get(page, []):
        options = ":glob:\n:hidden:\n:maxdepth: 1\n" + (f":caption: {caption}\n" if caption else "")
        out += f"\n\n```{{toctree}}\n{options}\n" + "".join(f"/{name}\n" for name in pages) + "```\n"
    return out
