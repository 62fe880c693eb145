# SPDX-License-Identifier: Apache-2.0
"""Kernels of one's own: which operator a PrimFunc computes, and whether it computes it rightly."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenon import _core
from tenon._core import Function
from tenon._errors import CompileError
from tenon._progress import Progress

_ASKED = ("attrs", "shapes", "dtypes", "target")


_registered: dict[Callable[..., Any], str] = {}


def _condition(when: Callable[..., Any], like: str) -> str:
    """The name that a condition is registered under until the process ends: one for each function, however many kernels it is for."""
    ask = _asking(when)
    try:
        if when not in _registered:
            _registered[when] = _core._register_condition(like, ask)
        return _registered[when]
    except TypeError:  # it cannot be compared with others
        return _core._register_condition(like, ask)


def _asking(when: Any) -> Callable[..., Any]:
    """`when`, called with all that there is to know, of which it may take a part by name."""
    if not callable(when):
        raise TypeError(f"`when` is {when!r}; expected a function, or a condition as a string")
    parameters = inspect.signature(when).parameters.values()
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    wanted: tuple[str, ...] = _ASKED if takes_all else tuple(parameter.name for parameter in parameters)
    unknown = [name for name in wanted if name not in _ASKED]
    if unknown:
        raise TypeError(f"`when` has a parameter `{unknown[0]}`; expected of {', '.join(_ASKED)}")

    def ask(*known: Any) -> Any:
        by_name = dict(zip(_ASKED, known, strict=True))
        return when(**{name: by_name[name] for name in wanted})

    return ask


def kernel(
    op: str | Function,
    *,
    when: Callable[..., bool | str] | str | None = None,
    priority: int | None = None,
    attrs: Mapping[str, Any] | None = None,
    target: str | Sequence[str] | None = None,
    node: str | None = None,
) -> Callable[[Function], Function]:
    """Says which operator a PrimFunc computes. `tenon.compile(model, kernels=[it])` then calls it wherever the model has that.

        @tenon.kernel("nn.softmax", when=lambda shapes: shapes[0][-1] % 16 == 0, attrs={"axis": -1})
        @T.prim_func
        def my_softmax(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32")):
            ...

    Args:
        op: an operator of the graph ("nn.softmax") or of ONNX ("Conv"), or a function under `@R.function`: a pattern, of
            which the kernel computes all at once, or the declaration of an operator.
        when: asked for each call that fits otherwise. A function with some of these parameters, by name: `attrs`, a dict;
            `shapes`, a tuple of integers (and expressions, of symbolic dimensions) for each input and output; `dtypes`;
            `target`, a `tenon.Target`. It answers True, False, or the reason against the call. What depends on a symbolic
            dimension and is not known to hold counts as False. Or a text, as attribute `op_when` has it.
        priority: of several kernels that take a call, the highest; 0 where it is not given.
        attrs: attributes that the call must have.
        target: what the target must have: "avx2", ["llvm", "vector_bits>=512"].
        node: only for the node of this name.

    Raises:
        CompileError: no such operator, or a kernel that does not fit its type.
        CallbackError: later, where `when` raises; its exception is the cause.
    """

    def decorate(function: Function) -> Function:
        if not isinstance(function, Function):
            raise TypeError(f"{function!r} is no kernel; expected a function under @T.prim_func")
        pinned = None if attrs is None else dict(attrs)
        words = target if target is None or isinstance(target, str) else list(target)
        proved = when if isinstance(when, str) else None
        asked = None if when is None or isinstance(when, str) else _condition(when, function.name)
        return _core._kernel(function, op, proved, asked, priority, pinned, words, node)

    return decorate


@dataclass(frozen=True)
class CheckedKernel:
    """What `check_kernels` found of a kernel."""

    kernel: str
    op: str
    calls: list[str]
    """That were tried: "x float32 (5, 7), axis=-1"."""
    largest_error: float | None
    """None: the operator has no body to compare with."""
    not_compiled: str
    """Why it ran in the interpreter only; empty: it was compiled too."""
    text: str
    error: CompileError | None
    """What is wrong with it."""

    @property
    def ok(self) -> bool:
        return self.error is None

    def __str__(self) -> str:
        return self.text


class KernelReport(Sequence[CheckedKernel]):
    """What `check_kernels` found, kernel by kernel."""

    def __init__(self, kernels: Sequence[CheckedKernel]) -> None:
        self._kernels = list(kernels)

    @property
    def ok(self) -> bool:
        """Whether all are right."""
        return all(kernel.ok for kernel in self)

    def raise_if_wrong(self) -> None:
        """Raises the CompileError of the first kernel that is wrong."""
        for kernel in self:
            if kernel.error is not None:
                raise kernel.error

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            for kernel in self:
                if kernel.kernel == index:
                    return kernel
            raise KeyError(index)
        return self._kernels[index]

    def __iter__(self) -> Iterator[CheckedKernel]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return "\n".join(kernel.text for kernel in self)

    def __repr__(self) -> str:
        wrong = sum(not kernel.ok for kernel in self)
        return f"<tenon.KernelReport: {len(self)} kernels, {wrong} wrong>"


def check_kernels(
    kernels: Any,
    *,
    trials: int = 8,
    seed: int = 0,
    sizes: Mapping[str, int] | None = None,
    tolerance: float | None = None,
    target: str = "native",
    progress: Callable[[str], object] | bool = True,
) -> KernelReport:
    """Compares kernels with the operators that they stand for, on random inputs of random shapes: `tenon check --kernels`.

    Each runs in the interpreter, which sees every access and races, and compiled, on one and on two threads.

    Args:
        kernels: functions under `@tenon.kernel`, modules, files, or several of these.
        trials: shapes for each kernel.
        seed: of shapes and inputs.
        sizes: of symbolic dimensions of kernels, by name.
        tolerance: `|a - b| <= T (1 + max |b|)`, for kernels that approximate; None: what rounding explains.
        target: that they are compiled for.
        progress: called with the name of each kernel; True: shown on a terminal and in a notebook.

    Raises:
        CompileError: what reading the kernels finds. What is wrong with what they compute is in the report.
    """
    if isinstance(kernels, (str, os.PathLike)):
        kernels = [kernels]
    if not isinstance(progress, bool):
        rows = _core._check_kernels(kernels, trials, seed, dict(sizes or {}), tolerance, target, progress)
    else:
        with Progress("check") as shown:
            rows = _core._check_kernels(kernels, trials, seed, dict(sizes or {}), tolerance, target, shown.show if progress else None)
    return KernelReport([CheckedKernel(*row) for row in rows])
