"""Faults and drops, and their messages.

Source: FreeBSD libdtrace dt_handle.c and dt_error.c.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from emu.support.immutable import immutable
from trapline.framework.base.dif import Op, Var, encode_index, encode_registers
from trapline.framework.base.program import (
    INT64,
    ActionDescription,
    ActionKind,
    Difo,
    EcbDescription,
    ProbeDescription,
    Program,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trapline.framework.base.device import ProbeInfo, Status

# Code of a fault of the consumer itself (DTRACEFLT_LIBRARY).
LIBRARY: Final = 1000

_FAULTS: Final = {
    1: "invalid address",
    2: "invalid alignment",
    3: "illegal operation",
    4: "divide-by-zero",
    5: "out of scratch space",
    6: "invalid kernel access",
    7: "invalid user access",
    8: "tuple stack overflow",
    9: "bad stack",
    LIBRARY: "library-level fault",
}
_WITH_ADDRESS: Final = frozenset({1, 2, 9})


@immutable
class Fault:
    """A fault of an enabling."""

    epid: int
    probe: ProbeInfo
    cpu: int
    code: int
    action: int = 0
    """Number of the action, from 1; 0 is the predicate."""
    offset: int = -1
    """Byte offset in the DIF object; -1 where it is not known."""
    address: int = 0
    text: str = ""
    """The error that the consumer itself has found (code `LIBRARY`)."""

    @property
    def message(self) -> str:
        """The message, without the prefix."""
        where = f"error on enabled probe ID {self.epid} (ID {self.probe.id}: {self.probe.description}): "
        if self.code == LIBRARY and self.text:
            return where + self.text
        what = _FAULTS.get(self.code, "unknown fault")
        address = f" ({self.address:#x})" if self.code in _WITH_ADDRESS else ""
        subject = f"action #{self.action}" if self.action else "predicate"
        offset = f" at DIF offset {self.offset}" if self.offset != -1 else ""
        return f"{where}{what}{address} in {subject}{offset}"


class DropKind(Enum):
    """Kinds of drops (DTRACEDROP_*): the text around the plural s, and the counter of `Status`."""

    PRINCIPAL = ("drop", "", "")
    AGGREGATION = ("aggregation drop", "", "")
    DYNAMIC = ("dynamic variable drop", "", "dyndrops")
    DYNRINSE = ("dynamic variable drop", " with non-empty rinsing list", "dyndrops_rinsing")
    DYNDIRTY = ("dynamic variable drop", " with non-empty dirty list", "dyndrops_dirty")
    SPEC = ("speculative drop", "", "specdrops")
    SPECBUSY = ("failed speculation", " (available buffer(s) still busy)", "specdrops_busy")
    SPECUNAVAIL = ("failed speculation", " (no speculative buffer available)", "specdrops_unavail")
    STKSTROVERFLOW = ("jstack()/ustack() string table overflow", "", "stkstroverflows")
    DBLERROR = ("error", " in ERROR probe enabling", "dblerrors")


@immutable
class Drop:
    """Data that was lost."""

    kind: DropKind
    count: int
    cpu: int | None = None
    """The CPU whose buffer was full; None for a drop that is counted once for all CPUs."""

    def message(self, *, tags: bool = False) -> str:
        """Return the message, without the prefix; `tags` is option droptags."""
        text, suffix, _ = self.kind.value
        tag = f"[DTRACEDROP_{self.kind.name}] " if tags else ""
        cpu = f" on CPU {self.cpu}" if self.cpu is not None else suffix
        return f"{tag}{self.count} {text}{'s' if self.count > 1 else ''}{cpu}"


def status_drops(old: Status, new: Status) -> Iterator[Drop]:
    """Return the drops between two readings of the counters."""
    for kind in DropKind:
        counter = kind.value[2]
        if counter and (count := getattr(new, counter) - getattr(old, counter)):
            yield Drop(kind, count)


# Statement number of the consumer's own ERROR enabling, which no program has (libdtrace: DT_ECB_ERROR).
ERROR_STATEMENT: Final = 0xFFFFFFFF


def _argument(variable: Var) -> ActionDescription:
    code = (encode_index(Op.LDGS, variable, 1), encode_registers(Op.RET, 0, 0, 1))
    return ActionDescription(ActionKind.DIFEXPR, Difo(code, returns=INT64), statement=ERROR_STATEMENT)


# dtrace:::ERROR { trace(arg1); ... trace(arg5); }: how faults reach the consumer.
ERROR_PROGRAM: Final = Program(
    (
        EcbDescription(
            ProbeDescription("dtrace", "", "", "ERROR"),
            actions=tuple(_argument(variable) for variable in (Var.ARG1, Var.ARG2, Var.ARG3, Var.ARG4, Var.ARG5)),
        ),
    ),
)
