"""The rules of an architecture for fetches of code that another CPU writes, as data.

`trapline race` explores every order that these rules permit.  They say less than real CPUs do: what
a manual does not promise is not assumed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fetching:
    """The promises of an architecture about code that is modified while it is executed."""

    unit: int
    """Bytes of a naturally aligned block that a fetch sees whole: all of an old value, or all of a
    new one.  1: an instruction may be seen half written."""
    block: int
    """Bytes of an aligned block within which one store, of any address and size, is seen whole; 1:
    only a naturally aligned store of at most eight bytes is."""
    ordered: bool
    """Whether other CPUs see the stores of a CPU in the order of its program."""
    broadcast: bool
    """Whether what makes a CPU's stores visible to its own fetches reaches the caches of all CPUs."""
    interrupted: bool
    """Whether a CPU that takes an interrupt and returns from it discards what it had fetched."""
    sources: tuple[str, ...]
    """The sections of the manuals."""
    concurrent: Callable[[bytes], bool] | None = None
    """Whether an instruction is one of those that may be written, and overwritten, while another
    CPU executes it; None: the architecture names none, and `unit` is all that it says."""
