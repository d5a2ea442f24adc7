"""The options of a check of the user's objects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from emu.elf.image import Image
from emu.isa.disassembly import Syntax
from providers.fidelity import Fidelity
from trapline.lab.check.cpu.states import BY_PYTHON


class Bar(Protocol):
    """Shows the progress of a sweep, in encodings."""

    def begin(self, total: int, done: int) -> object:
        """Note the amount of work, and the part that was done earlier."""
        ...

    def advance(self, count: int, /) -> object:
        """Note that more is done."""
        ...


class RequestError(Exception):
    """A request that a glue cannot serve; the message says why, on one line."""


@dataclass(frozen=True)
class Request:
    """The options of one check."""

    image: Image | None = None
    """The kernel, module or program whose code is examined."""
    function: str | None = None
    """The glob that the names of examined functions match."""
    fidelity: Fidelity = Fidelity.EXACT
    syntax: Syntax = Syntax.INTEL
    sample: int = 20_000
    """The number of encodings that are tried."""
    first: int = 0
    """The number of the first encoding."""
    fuzz: int = 0
    """The number of generated function bodies for each kind of finding."""
    states: int = BY_PYTHON
    """The number of CPU states in which each displaced instruction is tried."""
    sweep: Path | None = None
    """The file that keeps a sweep of all encodings, or the folder for a file of its own.

    None: `sample` are tried.
    """
    bound: int | None = None
    """The most prefixes of an encoding in a sweep of x86; None: one."""
    given: bytes | None = None
    """The only instruction, or body of a function, that is tried; None: the image's, or a sample."""
    bar: Bar | None = None
    """Shows the progress of a sweep."""
