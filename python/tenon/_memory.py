# SPDX-License-Identifier: Apache-2.0
"""Memory plans: where each buffer lies, and when."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
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

    def svg(self, width: int = 720, height: int = 320) -> str:
        """The picture, as SVG."""
        known = [b for b in self.buffers if b.bytes and b.offset is not None]
        top = max([b.offset + b.bytes for b in known if b.offset is not None and b.bytes], default=0)
        steps = max([b.last for b in known], default=0) + 1
        out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="sans-serif" font-size="10">'
        ]
        left, bottom = 60, height - 18
        across, up = width - left - 4, bottom - 8
        for i, buffer in enumerate(known):
            assert buffer.offset is not None and buffer.bytes is not None
            x = left + across * buffer.first / steps
            w = max(across * (buffer.last - buffer.first + 1) / steps, 1)
            h = max(up * buffer.bytes / top, 0.5)
            y = bottom - up * buffer.offset / top - h
            title = html.escape(f"{buffer.name}: {_bytes_text(buffer.bytes)} at {buffer.offset}, steps {buffer.first} to {buffer.last}")
            out.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" fill="hsl({i * 47 % 360},55%,62%)" '
                f'stroke="#444" stroke-width="0.4"><title>{title}</title></rect>'
            )
        if top and self.lower_bound is not None and self.lower_bound <= top:
            y = bottom - up * self.lower_bound / top
            out.append(
                f'<line x1="{left}" x2="{width - 4}" y1="{y:.1f}" y2="{y:.1f}" stroke="#c00" stroke-dasharray="4 3">'
                f"<title>lower bound {_bytes_text(self.lower_bound)}</title></line>"
            )
        out.append(f'<text x="4" y="16" fill="currentColor">{_bytes_text(top)}</text>')
        out.append(f'<text x="{left}" y="{height - 4}" fill="currentColor">step 0</text>')
        out.append(f'<text x="{width - 4}" y="{height - 4}" text-anchor="end" fill="currentColor">step {steps - 1}</text>')
        return "".join(out) + "</svg>"

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return f"<div>{html.escape(str(self))}<br>{self.svg()}</div>"


def _known(number: int | None) -> int | None:
    return None if number is None or number < 0 else number


def of_program(use: Mapping[str, Any] | None, buffers: Iterable[tuple[str, dict[str, int], str]], constant_bytes: int | None) -> MemoryPlan:
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
    )


def of_json(json: Mapping[str, Any]) -> MemoryPlan:
    """Of what the memory planner answers."""
    return MemoryPlan(
        peak=sum(pool["peak"] for pool in json["pools"]),
        lower_bound=sum(pool["lower_bound"] for pool in json["pools"]),
        buffers=[Buffer(b["id"], b["offset"], b["size"], b["lower"], b["upper"] - 1, b["pool"]) for b in json["buffers"]],
        pools=[dict(pool) for pool in json["pools"]],
    )
