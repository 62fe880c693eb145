# SPDX-License-Identifier: Apache-2.0
"""Back ends in Python: who computes what matches a pattern.

    from tenon.dpl import is_op, wildcard

    @tenon.backend("toy", patterns=[("dense", is_op("matmul")(wildcard(), wildcard()))])
    def generate(match):
        return lambda x, w: x @ w

    program = tenon.compile(model, libs=["toy"])

The hooks are those of a plugin in C (docs/plugin.md), and what they answer is checked by the same code.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tenon import _core

if TYPE_CHECKING:
    import numpy as np

    from tenon._core import Function, IRModule, LoweringContext

_T = TypeVar("_T")


class Refused(Exception):
    """Raised in a hook to say no.

    In `check` the match is not placed here; in `pack`, `generate` and `graph_to_tir` it becomes own code. The report tells why.

    Args:
        reason: a code of the characters a-z, 0-9 and `-`: "dtype", "shape", "attribute".
        words: for people.
    """

    def __init__(self, reason: str, words: str) -> None:
        super().__init__(f"{reason}: {words}")
        self.reason = reason
        self.words = words


class _Omit:
    def __repr__(self) -> str:
        return "tenon.backends.OMIT"


OMIT = _Omit()
"""What `pack` answers where the generated function is not to be given the constant."""


# ---- what hooks are given ---------------------------------------------------------------------------


@dataclass(frozen=True)
class MatchTensor:
    """A tensor: an input or output of a match, or the result of an operator in it."""

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None
    """Of each dimension its size, or the name of its symbol; None where neither is known."""
    data: np.ndarray[Any, Any] | None = field(repr=False)
    """The elements of a constant."""


@dataclass(frozen=True)
class MatchOperand:
    """Where an argument of an operator comes from."""

    kind: str
    """"input" and "operator" (number `index`); "ints", "number", "text" (`value`); "none": it is left out."""
    index: int
    field: int
    """Of an operator that gives a tuple: which member."""
    value: Any


@dataclass(frozen=True)
class MatchOperator:
    """An operator of a match; of a region a match that it consists of, which is its `part`."""

    name: str
    operands: tuple[MatchOperand, ...]
    results: tuple[MatchTensor, ...]
    attrs: dict[str, Any]
    part: Match | None = None


@dataclass(frozen=True)
class Match:
    """What matched a pattern, or a region of neighbouring matches. It stays valid when the hook has ended."""

    pattern: str
    """The pattern's name, "toy.dense"; of a region the back end's."""
    symbol: str
    """A name for the generated function, of no other function of the module."""
    where: str
    """The node of the network, or file and line."""
    target: str
    inputs: tuple[MatchTensor, ...]
    """Values from outside, then constants, which have `data`; both in the order of the pattern, under its names where it has some."""
    outputs: tuple[MatchTensor, ...]
    output_sources: tuple[MatchOperand, ...] = field(repr=False)
    operators: tuple[MatchOperator, ...] = field(repr=False)
    """In an order in which they can be computed."""
    symbols: list[str]
    """Dimensions of inputs that are not numbers."""
    attrs: dict[str, Any] = field(repr=False)
    options: dict[str, str] = field(repr=False)
    """What the user set for this back end."""
    annotated: dict[str, MatchOperand] = field(repr=False)
    """What names of the pattern are bound to."""
    function: Function = field(repr=False)
    """The match as a graph function."""
    _asked: _core._Asked = field(repr=False, compare=False)

    @property
    def text(self) -> str:
        """The match as TVMScript."""
        return self._asked.text()

    def choose(self, op: int) -> str | None:
        """The PrimFunc that Tenon would choose for operator `op`, as TVMScript; None where there is none."""
        return self._asked.choose(op)

    def log(self, words: str) -> None:
        """Adds a remark to the report."""
        self._asked.log(words)


# ---- what hooks answer ------------------------------------------------------------------------------


def _texts(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


class Symbol:
    """A C function of a library: `int32_t name(inputs..., outputs..., symbols..., void* scratch)`, which returns 0.

    Args:
        link: libraries that have it: "dnnl" (as -l takes it), "libdnnl.so.3".
    """

    def __init__(self, name: str, link: str | Iterable[str] = ()) -> None:
        self.name = name
        self.link = _texts(link)


class CSource:
    """C99 source that defines a function named `match.symbol`, with the signature of a `Symbol`.

    Args:
        prelude: texts that stand once in front of all functions of the back end: includes, helpers.
        link: libraries that it needs.
    """

    def __init__(self, source: str, prelude: str | Iterable[str] = (), link: str | Iterable[str] = ()) -> None:
        self.source = source
        self.prelude = _texts(prelude)
        self.link = _texts(link)


class ObjectFile:
    """A relocatable object (ELF) that defines a function named `match.symbol`, with the signature of a `Symbol`.

    Args:
        content: its bytes, or its path.
        link: libraries that it needs.
    """

    def __init__(self, content: bytes | str | os.PathLike[str], link: str | Iterable[str] = ()) -> None:
        self.content = content if isinstance(content, bytes) else Path(content).read_bytes()
        self.link = _texts(link)


class HostFunction:
    """A function of Python that runs whenever the program does. It lives as long as the program, or a module that calls it.

    Args:
        function: called with arrays for the inputs, then int for each symbol, then a uint8 array of scratch memory where the
            back end asks for some. It returns an array for each output (a tuple where there are several).
        destination: called with arrays for the outputs behind all others instead, which it writes to.
    """

    def __init__(self, function: Callable[..., Any], *, destination: bool = False) -> None:
        if not callable(function):
            raise TypeError(f"{function!r} cannot be called")
        self.function = function
        self.destination = destination


# ---- registration -----------------------------------------------------------------------------------

_HOOKS = ("check", "cost", "scratch", "pack", "generate", "graph_to_tir", "tir_to_runtime")


class _Options:
    """What the extension reads of a back end."""

    def __init__(self) -> None:
        self.patterns: list[Any] = []
        self.pattern_text = ""
        self.passes: list[_core.Pass] = []
        self.version = ""
        self.priority = 0
        self.check: Any = None
        self.cost: Any = None
        self.scratch: Any = None
        self.pack: Any = None
        self.generate: Any = None
        self.graph_to_tir: Any = None
        self.tir_to_runtime: Any = None
        self.takes_regions = False
        self.own_threads = False
        self.thread_safe = True
        self.has_effects = False
        self.varies_with_threads = False
        self.pass_threads = False
        self.takes_symbolic_shapes = False
        self.works_in_place = False

    def has_code(self) -> bool:
        return any(hook is not None for hook in (self.generate, self.graph_to_tir, self.tir_to_runtime))

    def is_hooks_alone(self) -> bool:
        return not (self.patterns or self.pattern_text or self.passes or self.generate)


_known: dict[str, _Options] = {}


def _one_of(option: str, value: str, values: tuple[str, str]) -> bool:
    if value not in values:
        raise ValueError(f"`{option}` is {value!r}; expected {values[0]!r} or {values[1]!r}")
    return value == values[1]


def _register(name: str, options: _Options) -> None:
    _core._register_backend(name, options, name in _known)
    _known[name] = options


def register_backend(
    name: str,
    *,
    patterns: str | Sequence[Any] = (),
    check: Callable[[Match], bool | str | None] | None = None,
    cost: Callable[[Match], float | None] | None = None,
    pack: Callable[[Match, int], Any] | None = None,
    scratch: Callable[[Match], int] | None = None,
    generate: Callable[[Match], Any] | None = None,
    graph_to_tir: Callable[[Function, LoweringContext], Function | IRModule] | None = None,
    tir_to_runtime: Callable[[IRModule, list[str]], CSource | ObjectFile] | None = None,
    passes: Sequence[Any] = (),
    unit: str = "match",
    threads: str = "caller",
    priority: int = 0,
    version: str = "",
    takes_symbolic_shapes: bool = False,
    works_in_place: bool = False,
    thread_safe: bool = True,
    has_effects: bool = False,
    varies_with_threads: bool = False,
    pass_threads: bool = False,
    override: bool = False,
) -> None:
    """Registers a back end, for `libs=`, `place=` and the passes that make composites and regions.

    Args:
        name: lower-case letters, digits and `_`; composites are `NAME.pattern`.
        patterns: a text of patterns (docs/patterns.md), or a list: what `tenon.dpl.fuse_ops_by_pattern` takes, of names without
            a dot those of this back end.
        check: called with each `Match`: None or True (it is taken), False, the reason against it, or raises `Refused`.
        cost: seconds of one run on one thread; None: not known.
        pack: called with a match and the number of an input that is a constant: an array or bytes that take its place, `OMIT`
            where the function needs none, or None: it stays.
        scratch: bytes of memory to work in, part of the program's one plan.
        generate: what runs: a function of Python or a `HostFunction`; a PrimFunc or a module with one named `match.symbol`
            (inputs, outputs, a uint8 buffer of scratch); a `CSource`; an `ObjectFile`; the name of a C function or a `Symbol`.
        graph_to_tir, tir_to_runtime: the hooks of these names, in two steps instead of `generate`.
        passes: passes of its own (`tenon.module_pass`), `NAME.Pass` from then on.
        unit: "match": hooks are given each match by itself; "region": neighbouring ones together.
        threads: "caller": functions work on the thread that calls them; "own": on threads of their own.
        priority: where several back ends want a node: higher first, then the lower cost.
        takes_symbolic_shapes: matches with dimensions that are no numbers are wanted too.
        works_in_place: an output may be the memory of an input of the same size.
        thread_safe: False: no function of it runs beside itself.
        has_effects: functions have effects beside their outputs.
        varies_with_threads: results may differ in the last bits between numbers of threads.
        pass_threads: functions take the number of threads as last argument.
        override: takes the place of a back end of Python of this name.

    Raises:
        CompileError: a name or a pattern that cannot be.
        ValueError: there is one of this name, and `override` is False.
    """
    before = None if override else _known.get(name)
    if before is not None and not before.is_hooks_alone():
        raise ValueError(f"there is a back end `{name}`; `override=True` replaces it")
    options = _Options()
    if isinstance(patterns, str):
        options.pattern_text = patterns
    else:
        options.patterns = list(patterns)
    given = (check, cost, scratch, pack, generate, graph_to_tir, tir_to_runtime)
    for hook, function in zip(_HOOKS, given, strict=True):
        if function is not None and not callable(function):
            raise TypeError(f"`{hook}` of back end `{name}` is {function!r}; expected a function")
        setattr(options, hook, function or (before and getattr(before, hook)))
    options.passes = [item if isinstance(item, _core.Pass) else item() for item in passes]
    options.takes_regions = _one_of("unit", unit, ("match", "region"))
    options.own_threads = _one_of("threads", threads, ("caller", "own"))
    options.priority, options.version = priority, version
    options.takes_symbolic_shapes, options.works_in_place = takes_symbolic_shapes, works_in_place
    options.thread_safe, options.has_effects = thread_safe, has_effects
    options.varies_with_threads, options.pass_threads = varies_with_threads, pass_threads
    if not (patterns or options.passes or options.has_code()):
        raise ValueError(f"back end `{name}` has neither patterns nor passes nor a hook that makes code")
    _register(name, options)


def backend(name: str, **options: Any) -> Callable[[_T], _T]:
    """Makes a back end of a function, its `generate`, or of a class with methods named as the hooks.

        @tenon.backend("toy", patterns='relu = is_op("relax.nn.relu")(wildcard())', unit="region")
        class Toy:
            def check(self, match):
                return match.inputs[0].dtype == "float32"

            def generate(self, match):
                ...

    Args:
        **options: those of `register_backend`.
    """

    def decorate(given: _T) -> _T:
        if isinstance(given, type):
            made = given()
            hooks = {hook: getattr(made, hook) for hook in _HOOKS if hasattr(made, hook)}
        else:
            hooks = {"generate": given}
        twice = [hook for hook in hooks if options.get(hook) is not None]
        if twice:
            raise TypeError(f"back end `{name}` has two hooks `{twice[0]}`")
        register_backend(name, **{**options, **hooks})
        return given

    return decorate


def unregister_backend(name: str) -> None:
    """Takes a back end of Python out of the registry.

    Raises:
        ValueError: there is none of this name.
    """
    if name not in _known:
        raise ValueError(f"there is no back end `{name}` of Python")
    _core._unregister_backend(name)
    del _known[name]


def _hook(name: str, hook: str, function: Any, unit: str) -> None:
    before = _known.get(name)
    options = _Options()
    if before is None:
        options.takes_regions = _one_of("unit", unit, ("match", "region"))
    else:
        options.__dict__.update(before.__dict__)
    if not callable(function):
        raise TypeError(f"`{hook}` of back end `{name}` is {function!r}; expected a function")
    setattr(options, hook, function)
    _register(name, options)


def graph_to_tir(
    name: str, *, unit: str = "region"
) -> Callable[[Callable[[Function, LoweringContext], Function | IRModule]], Callable[[Function, LoweringContext], Function | IRModule]]:
    """The hook that makes TensorIR of a back end's functions: TVM's RelayToTIR.

        @tenon.graph_to_tir("toy")
        def lower(function, context):
            return tir.PrimFunc(...)

    It is called for each region (`unit="match"`: each composite) with the graph function, whose `module` it stands in, and what
    Tenon offers: `context.lower(function)` lowers what the back end does not do itself. It answers with a PrimFunc of the
    inputs, then the outputs, or with the whole module, which has one of the function's name; or raises `Refused`.

    Args:
        name: of a back end, which need not be registered: composites and regions say whose they are.
        unit: of one that is not registered.
    """

    def decorate(function: _T) -> _T:
        _hook(name, "graph_to_tir", function, unit)
        return function

    return decorate


def tir_to_runtime(
    name: str, *, unit: str = "region"
) -> Callable[[Callable[[IRModule, list[str]], CSource | ObjectFile]], Callable[[IRModule, list[str]], CSource | ObjectFile]]:
    """The hook that makes code of a back end's PrimFuncs: TVM's TIRToRuntime.

        @tenon.tir_to_runtime("toy")
        def build(module, names):
            return CSource("...")

    It is called with the module and the names of its PrimFuncs that are the back end's, and answers with a `CSource` or an
    `ObjectFile` that defines a C function of each name, which takes the PrimFunc's parameters in order.

    Args:
        name, unit: as `graph_to_tir` takes them.
    """

    def decorate(function: _T) -> _T:
        _hook(name, "tir_to_runtime", function, unit)
        return function

    return decorate


def backend_names() -> list[str]:
    """All back ends of this process: those of libraries, of plugins and of Python."""
    return _core._backend_names()
