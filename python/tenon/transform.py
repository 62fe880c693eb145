# SPDX-License-Identifier: Apache-2.0
"""Every pass by its name, from the compiler's table: `tenon.transform.FuseOps()(module)`.

A pass is called with its options and gives a `Pass`, which is called with a module. `help(tenon.transform.PlanMemory)`
shows options, defaults and what they mean.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, overload

from tenon import _core
from tenon._core import IRModule, Pass, Remark

if TYPE_CHECKING:
    from tenon._passes import *  # noqa: F403


class PassFactory(Protocol):
    """Makes a pass of options."""

    __name__: str

    def __call__(self, **options: Any) -> Pass: ...


def _signature(known: Pass) -> inspect.Signature:
    parameters = []
    for name, kind, value, _ in _core._pass_options(known):
        default = ast.literal_eval(value) if value else inspect.Parameter.empty
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind))
    return inspect.Signature(parameters, return_annotation=Pass)


def _doc(known: Pass) -> str:
    text = f"{known.summary[0].upper()}{known.summary[1:]}.\n\nForm: {known.needs}. Precision: {known.precision}.\n"
    options = _core._pass_options(known)
    if options:
        text += "\nArgs:\n" + "".join(f"    {name}: {summary}\n" for name, _, _, summary in options)
    return text


def _factory(known: Pass) -> PassFactory:
    signature = _signature(known)
    defaults = {p.name: p.default for p in signature.parameters.values() if p.default is not p.empty}

    def make(**options: Any) -> Pass:
        bound = signature.bind(**options).arguments
        return Pass(known.name, {name: value for name, value in bound.items() if name not in defaults or value != defaults[name]})

    make.__name__ = make.__qualname__ = known.name
    make.__doc__ = _doc(known)
    make.__signature__ = signature  # type: ignore[attr-defined]
    return make


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        for known in _core._passes():
            if known.name == name:
                return globals().setdefault(name, _factory(known))
        raise AttributeError(f"no pass is called {name!r}")


def __dir__() -> list[str]:
    return sorted([*(known.name for known in _core._passes()), "Sequential", "module_pass"])


class Sequential:
    """Passes one after another. Called with a module, it gives another.

    Args:
        passes: passes, texts of passes, and other `Sequential`s: `Sequential([tenon.transform.FuseOps(), "FuseTIR"])`.
        name: in messages.
    """

    def __init__(self, passes: Any = (), *, name: str = "Sequential") -> None:
        self.passes: list[Pass] = _core._parse_pipeline(passes)
        self.name = name
        self.timings: list[tuple[str, float]] = []
        """Of the last call: (pass, seconds)."""
        self.remarks: list[Remark] = []
        """What the passes of the last call decided."""

    def __call__(
        self,
        module: IRModule,
        *,
        target: str = "",
        verify: bool = True,
        validate: bool = False,
        check_text: bool = False,
        before_pass: Callable[[Pass, IRModule], object] | None = None,
        after_pass: Callable[[Pass, IRModule], object] | None = None,
    ) -> IRModule:
        """Runs the passes.

        Args:
            target: what the module is compiled for; empty: what it says.
            verify: the module after every pass.
            validate: run the interpreter before and after every pass, and compare.
            check_text: print, parse back and compare after every pass.
            before_pass, after_pass: called with the pass, and the module before or after it.
        """
        result = _core._run(module, self.passes, verify, validate, check_text, before_pass, after_pass, target)
        self.timings, self.remarks = result[1], result[2]
        return result[0]

    def __len__(self) -> int:
        return len(self.passes)

    def __iter__(self) -> Iterator[Pass]:
        return iter(self.passes)

    def __str__(self) -> str:
        return "\n".join(map(str, self.passes))

    def __repr__(self) -> str:
        return f"<tenon.{self.name}: {', '.join(map(str, self.passes))}>"


def standard_pipeline() -> Sequential:
    """What `tenon.compile` runs."""
    return Sequential(_core._standard_pipeline(), name="standard_pipeline")


@overload
def module_pass(function: Callable[..., IRModule], /) -> PassFactory: ...
@overload
def module_pass(*, name: str | None = None, needs: str = "any", exact: bool = False) -> Callable[[Callable[..., IRModule]], PassFactory]: ...
def module_pass(function: Callable[..., IRModule] | None = None, /, *, name: str | None = None, needs: str = "any", exact: bool = False) -> Any:
    """Makes a pass of a function from an IRModule, and options by name, to an IRModule.

    Pipelines may name it from then on, in texts and files too.

        @tenon.module_pass(needs="graph")
        def DropUnused(module, keep=("main",)):
            ...

        tenon.compile(model, passes="DropUnused(keep=['main', 'other'])")

    Args:
        name: of the pass; the function's otherwise.
        needs: the form of module: "any", "graph", "legalised", "TensorIR with blocks", "lowered".
        exact: programs compute the same bits afterwards; otherwise `validate` allows for rounding.
    """

    def decorate(function: Callable[..., IRModule]) -> PassFactory:
        called = name or function.__name__
        summary = (inspect.getdoc(function) or "a pass of Python's").split("\n")[0].rstrip(".")
        _core._register_pass(_core._python_pass(called, summary, function, needs, exact, {}))

        def make(**options: Any) -> Pass:
            return _core._python_pass(called, summary, function, needs, exact, options)

        make.__name__ = make.__qualname__ = called
        make.__doc__ = function.__doc__
        make.__wrapped__ = function  # type: ignore[attr-defined]
        return make

    return decorate if function is None else decorate(function)
