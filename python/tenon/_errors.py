# SPDX-License-Identifier: Apache-2.0
"""What Tenon raises. Made by the extension, which knows what they hold."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Place:
    """Where something is: a range of a line of a text, or a node of a network."""

    text: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    length: int | None = None
    node: str | None = None
    op: str | None = None
    parts: list[Place] = field(default_factory=list)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Note:
    """A line that explains an error at another place."""

    message: str
    place: Place | None


@dataclass(frozen=True)
class Diagnostic:
    """One thing that is wrong. `code` is as docs/diagnostics.md lists it: "TN0101"."""

    code: str
    name: str
    message: str
    place: Place | None
    notes: list[Note]


class Error(Exception):
    """The base of all of Tenon's exceptions. Its text shows each place with its source line, marked."""

    def __init__(self, text: str, diagnostics: list[Diagnostic] | None = None) -> None:
        super().__init__(text)
        self.diagnostics: list[Diagnostic] = diagnostics or []

    @property
    def code(self) -> str | None:
        """Of the first diagnostic."""
        return self.diagnostics[0].code if self.diagnostics else None

    @property
    def place(self) -> Place | None:
        """Of the first diagnostic."""
        return self.diagnostics[0].place if self.diagnostics else None

    @property
    def notes(self) -> list[Note]:
        """Of the first diagnostic."""
        return self.diagnostics[0].notes if self.diagnostics else []

    def __reduce__(self) -> tuple[type[Error], tuple[str, list[Diagnostic]]]:
        return type(self), (str(self), self.diagnostics)


class CompileError(Error):
    """What was given is wrong, or cannot be compiled."""


class UsageError(Error, ValueError):
    """An option that is not there, or a value that it does not take."""


class RunError(Error, RuntimeError):
    """The arguments of a program do not fit it, or it failed while it ran."""


class CallbackError(Error):
    """A function of Python that Tenon called raised an exception, which is the cause of this one."""


class InternalError(Error):
    """A fault of Tenon, not of what it was given."""


class NotKnown(TypeError):
    """An expression of symbolic sizes is asked whether it holds, which depends on them."""


class TenonWarning(UserWarning):
    """A likely mistake that does not stop the work. `code` is as docs/diagnostics.md lists it."""

    def __init__(self, text: str, code: str | None = None) -> None:
        super().__init__(text)
        self.code = code
