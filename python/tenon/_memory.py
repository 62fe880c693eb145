# SPDX-License-Identifier: Apache-2.0
"""Memory plans: where each buffer lies, and when."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


def _bytes_text(count: int | None) -> str:
    if count is None:
        return "known when it runs"
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


@dataclass(frozen=True)
class Buffer:
    """A buffer in a plan: `bytes` from `offset` on, alive from step `first` to step `last`. None: known when it runs."""

    name: str
    offset: int | None
    bytes: int | None
    first: int
    last: int
    pool: str = "workspace"


@dataclass(frozen=True)
class MemoryPlan:
    """Where buffers lie. Shows as a picture in notebooks: time from left to right, addresses upwards."""

    peak: int | None
    """Bytes in all; None: depends on symbols of dimensions."""
    lower_bound: int | None
    """Bytes that no plan can go below."""
    buffers: list[Buffer] = field(default_factory=list)
    pools: list[dict[str, Any]] = field(default_factory=list)
    late: list[dict[str, Any]] = field(default_factory=list)
    """Memory that is asked for while the program runs, when its size is known."""
    constant_bytes: int | None = None

    def __str__(self) -> str:
        lines = [f"peak {_bytes_text(self.peak)}, lower bound {_bytes_text(self.lower_bound)}"]
        if self.constant_bytes is not None:
            lines[0] += f"; constants {_bytes_text(self.constant_bytes)}"
        if len(self.pools) > 1:
            lines += [f"pool {pool['name']}: {_bytes_text(pool.get('bytes'))}" for pool in self.pools]
        lines += [f"late {late['what']} of {late['size']}" for late in self.late]
        return "\n".join(lines)

    picture: Callable[..., str] | None = field(default=None, compare=False, repr=False)

    def svg(self, **dims: int) -> str:
        """The picture, as SVG: steps from left to right, addresses upwards; empty where nothing is known of the buffers.

        Args:
            **dims: sizes of symbolic dimensions.
        """
        return self.picture(**dims) if self.picture else ""

    def _repr_html_(self) -> str:
        return f"<div>{html.escape(str(self))}<br>{self.svg()}</div>"


def _known(number: int | None) -> int | None:
    return None if number is None or number < 0 else number


def of_program(use: Mapping[str, Any] | None, buffers: Iterable[tuple[str, dict[str, int], str]], constant_bytes: int | None, picture: Any) -> MemoryPlan:
    """Of what a program says of itself, and of what was remarked when it was compiled."""
    use = use or {}
    pools = [dict(pool) for pool in use.get("pools", [])]
    only = pools[0]["name"] if len(pools) == 1 else "workspace"
    return MemoryPlan(
        peak=use.get("bytes"),
        lower_bound=use.get("bound_bytes"),
        buffers=[
            Buffer(
                name,
                _known(numbers.get("offset")),
                _known(numbers.get("bytes")),
                numbers.get("first", 0),
                numbers.get("last", 0),
                detail.removeprefix("in pool `").removesuffix("`") if detail else only,
            )
            for name, numbers, detail in buffers
        ],
        pools=pools,
        late=[dict(late) for late in use.get("late", [])],
        constant_bytes=constant_bytes,
        picture=picture,
    )


def of_json(json: Mapping[str, Any], pictures: list[str]) -> MemoryPlan:
    """Of what the memory planner answers."""
    return MemoryPlan(
        peak=sum(pool["peak"] for pool in json["pools"]),
        lower_bound=sum(pool["lower_bound"] for pool in json["pools"]),
        buffers=[Buffer(b["id"], b["offset"], b["size"], b["lower"], b["upper"] - 1, b["pool"]) for b in json["buffers"]],
        pools=[dict(pool) for pool in json["pools"]],
        picture=lambda: "".join(pictures),
    )
