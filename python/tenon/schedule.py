# SPDX-License-Identifier: Apache-2.0
"""Schedules of kernels: loops are changed step by step, and each step is checked to keep what the kernel computes.

    sch = tenon.Schedule(module)
    block = sch.get_block("matmul")
    i, j, k = sch.get_loops(block)
    outer, inner = sch.split(j, factors=[None, 16])
    sch.vectorize(inner)
    program = tenon.compile(sch.mod)

The primitives, their parameters and what they mean come from the compiler's table: `help(tenon.Schedule.split)`.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from tenon import _api, _core
from tenon._core import BlockRV, Function, LoopRV, Trace

__all__ = ["BlockRV", "LoopRV", "Schedule", "TensorIntrin", "Trace", "primitives"]

if TYPE_CHECKING:
    from tenon._primitives import Primitives
else:

    class Primitives(_core._Schedule):
        """A method for each primitive."""


def primitives() -> list[str]:
    """The names of all primitives."""
    return [name for name, *_ in _core._primitives()]


_TYPES = {
    "a block": "BlockRV | str",
    "a loop": "LoopRV",
    "a loop or a block": "LoopRV | BlockRV | str",
    "a whole number": "int",
    "a list of whole numbers": "Sequence[int]",
    "a list of numbers": "Sequence[float]",
    "a string": "str",
    "a list of sizes": "Sequence[int | PrimExpr | None]",
    "a number": "bool | int | float | PrimExpr | None",
    '("read", i) or ("write", i)': "str | Sequence[str | int]",
    "a lambda": "Callable[..., Any]",
    "a value": "Any",
}


def _signature(row: tuple[Any, ...]) -> inspect.Signature:
    _, _, parameters, inputs, is_variadic, result = row
    out = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
    for i, (name, kind, _, has_default, default) in enumerate(parameters):
        variadic = is_variadic and i < inputs
        may_be_none = has_default and default is None and "None" not in _TYPES[kind]
        out.append(
            inspect.Parameter(
                name,
                inspect.Parameter.VAR_POSITIONAL if variadic else inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=default if has_default else inspect.Parameter.empty,
                annotation=_TYPES[kind] + (" | None" if may_be_none else ""),
            )
        )
    return inspect.Signature(out, return_annotation=result)


def _doc(row: tuple[Any, ...]) -> str:
    _, summary, parameters, *_ = row
    first, dot, rest = summary.partition(". ")
    text = f"{first}{dot.rstrip()}" + (f"\n\n{rest}" if rest else "") + "\n"
    meanings = [(name, meaning) for name, _, meaning, *_ in parameters if meaning]
    if meanings:
        text += "\nArgs:\n" + "".join(f"    {name}: {meaning}.\n" for name, meaning in meanings)
    return text


def _method(row: tuple[Any, ...]) -> Any:
    name, _, _, inputs, is_variadic, _ = row
    signature = _signature(row)

    def method(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        self, *values = bound.arguments.values()
        if is_variadic:
            return self._apply(name, list(values[0]), values[1:])
        return self._apply(name, values[:inputs], values[inputs:])

    method.__name__ = name
    method.__qualname__ = f"Schedule.{name}"
    method.__doc__ = _doc(row)
    method.__signature__ = signature  # type: ignore[attr-defined]
    return method


if not TYPE_CHECKING:
    for _row in _core._primitives():
        setattr(Primitives, _row[0], _method(_row))


class Schedule(Primitives):
    """A kernel whose loops are changed by primitives, each of which is checked to keep what it computes.

    A primitive that cannot be shown to is refused: `tenon.CompileError`, whose text shows the loops and marks those that it
    is about. The kernel is then as before.

    Args:
        mod: a PrimFunc, an `IRModule`, or anything that `tenon.load` reads.
        function: which PrimFunc of the module; needed where it has several and none is called `main`.
        seed: of the numbers that `sample_categorical` and `sample_perfect_tile` draw.
    """

    def __init__(self, mod: Any, function: str | None = None, *, seed: int = 0) -> None:
        if isinstance(mod, Function) and function is None:
            function = mod.name
        super().__init__(_api.load(mod), function)
        self.seed(seed)

    def copy(self) -> Schedule:
        """A schedule that goes on by itself from here. Loops, blocks and numbers of this one are its too, and what it draws."""
        other = Schedule.__new__(Schedule)
        _core._Schedule.__init__(other, self)
        return other

    __copy__ = copy

    def show(self) -> None:
        """Prints the kernel and the trace."""
        print(f"{self.func.script()}\n{self.trace}", end="")

    def __repr__(self) -> str:
        return f"<tenon.Schedule of `{self.func_working_on}`, {len(self.trace)} steps>"

    def _repr_html_(self) -> str:
        return _core._html_of(f"{self.func.script()}\n{self.trace}")


class TensorIntrin:
    """A kernel that `Schedule.tensorize` puts in the place of blocks.

    Attributes:
        name: under which the kernel comes into a module.
    """

    _known: dict[str, TensorIntrin] = {}

    def __init__(self, name: str, desc: Function, impl: Function) -> None:
        self.name, self.desc, self.impl = name, desc, impl

    @staticmethod
    def register(name: str, desc: Function, impl: Function, override: bool = False) -> TensorIntrin:
        """Makes a kernel known.

        Args:
            desc: what it computes, as blocks.
            impl: the kernel, with the same parameters.

        Raises:
            ValueError: there is another one of this name, and `override` is False.
        """
        if name in TensorIntrin._known and not override:
            raise ValueError(f"a tensor intrinsic `{name}` is registered; override=True replaces it")
        _core._register_intrin(name, desc, impl)
        TensorIntrin._known[name] = TensorIntrin(name, desc, impl)
        return TensorIntrin._known[name]

    @staticmethod
    def get(name: str) -> TensorIntrin:
        """Raises KeyError where there is none."""
        return TensorIntrin._known[name]
