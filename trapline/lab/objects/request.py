"""The options of a check of the user's objects."""

from __future__ import annotations

from dataclasses import dataclass

from emu.disassembly import Syntax
from emu.elf import Image
from providers.fidelity import Fidelity


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
    states: int = 20
    """The number of CPU states in which each displaced instruction is tried."""
