"""Rewriters of QEMU's translated code, and the variable that switches each off.

Each makes guests faster, and nothing else: counts, traces and faults are the same without it; but
`qemu-helpers` and `sse-alignment` make right what QEMU gets wrong (docs/unicorn.md).  All
rest on the machine code of one build, so they run only where that build is known
(`emu.unicorn_layout.library`).  `TRAPLINE_WITHOUT=jump-cache,exit-checks` switches some off by
name, and `all` all of them, so that a wrong result can be bisected.

QEMU's data is also changed where a guest would not run right otherwise: by
`emu.engine.qemu.exits`, `emu.engine.qemu.code_hooks` and `emu.engine.qemu.temporaries`.  That rests
on offsets which are found in every build, and cannot be switched off.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, NamedTuple

from emu.native import missing

# The environment variable with the names of those that are switched off.
VARIABLE: Final = "TRAPLINE_WITHOUT"
_ALL: Final = "all"

EXIT_CHECKS: Final = "exit-checks"
INLINE_COUNTS: Final = "inline-counts"
JUMP_CACHE: Final = "jump-cache"
INLINE_CACHES: Final = "inline-caches"
QEMU_HELPERS: Final = "qemu-helpers"
SSE_ALIGNMENT: Final = "sse-alignment"


class Rewriter(NamedTuple):
    """One way in which translated code is changed."""

    does: str
    """One sentence without its subject."""
    module: str
    needs: str | None = None
    """The rewriter whose changes it changes further."""
    native: bool = True
    """Whether it is machine code."""


class RewriterError(ValueError):
    """The variable names an unknown rewriter."""


REWRITERS: Final[Mapping[str, Rewriter]] = {
    EXIT_CHECKS: Rewriter(
        "leaves out the exit-request checks behind loads, stores and instructions without a hook",
        "emu.engine.qemu.exit_checks",
        native=False,
    ),
    INLINE_COUNTS: Rewriter(
        "counts instructions at the head of a block, where the block hook was called", "emu.engine.qemu.inlined_count"
    ),
    JUMP_CACHE: Rewriter(
        "finds the block at the target of an indirect jump in a table of Trapline's",
        "emu.engine.qemu.jump_cache",
        needs=INLINE_COUNTS,
    ),
    INLINE_CACHES: Rewriter(
        "remembers the tracepoint and the next block at each breakpoint that machine code serves",
        "emu.engine.qemu.inline_caches",
        needs=INLINE_COUNTS,
    ),
    QEMU_HELPERS: Rewriter(
        "replaces QEMU's functions for RISC-V's singles, and for x86's reciprocals and horizontal sums",
        "emu.engine.qemu.helpers",
    ),
    SSE_ALIGNMENT: Rewriter(
        "makes SSE instructions fault whose operand is not aligned and has to be", "emu.engine.qemu.alignment"
    ),
}


def switched_off() -> frozenset[str]:
    """Return the names in the variable.  Raises `RewriterError`."""
    names = frozenset(os.environ.get(VARIABLE, "").replace(",", " ").split())
    if unknown := sorted(names - {*REWRITERS, _ALL}):
        known = ", ".join((*REWRITERS, _ALL))
        raise RewriterError(f"{VARIABLE}: '{unknown[0]}' is not a rewriter; there are {known}")
    return frozenset(REWRITERS) if _ALL in names else names


def reason(name: str) -> str:
    """Return why a rewriter does not run here; "" if it runs.  Raises `RewriterError`."""
    from emu.unicorn_layout import layout, library  # noqa: PLC0415  names are checked where no layout is needed yet

    if name in switched_off():
        return f"{VARIABLE} names it"
    if layout.current().parts is not None:
        return f"{library.this()} is not the known library"
    rewriter = REWRITERS[name]
    if rewriter.native and missing():
        return missing()
    return f"it needs {rewriter.needs}" if rewriter.needs is not None and reason(rewriter.needs) else ""


def runs(name: str) -> bool:
    """Return whether a rewriter runs in the engines that are made now.  Raises `RewriterError`."""
    return not reason(name)
