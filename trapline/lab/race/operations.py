"""The operations of the CPU that patches.

A script is a sequence of these.  Every CPU may do something of its own between two of them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Store:
    """The CPU stores bytes over code; if not `whole`, one by one, as memcpy may do."""

    address: int
    data: bytes
    whole: bool = True

    def __str__(self) -> str:
        return f"store {self.data.hex(' ')} at {self.address:#x}" + ("" if self.whole else ", byte by byte")


@dataclass(frozen=True, slots=True)
class Swap:
    """Another page, with other bytes, replaces the page of the code (copy on write)."""

    address: int
    data: bytes

    def __str__(self) -> str:
        return f"map a page that has {self.data.hex(' ')} at {self.address:#x}"


@dataclass(frozen=True, slots=True)
class Flush:
    """The patching CPU waits for its stores, and does what its ISA has for caches of instructions."""

    anew: bool = True
    """Whether it then also discards what it has fetched itself, as the kernels' functions do."""

    def __str__(self) -> str:
        return "wait for the stores; clean and invalidate"


@dataclass(frozen=True, slots=True)
class Wait:
    """The patching CPU waits until other CPUs see its stores."""

    def __str__(self) -> str:
        return "wait for the stores"


@dataclass(frozen=True, slots=True)
class FetchAnew:
    """The patching CPU discards what it has fetched itself; no other CPU does."""

    def __str__(self) -> str:
        return "fetch anew, on this CPU alone"


@dataclass(frozen=True, slots=True)
class Signal:
    """All other CPUs are interrupted, and the patching CPU does not wait for them.

    Each will synchronize some time, so nothing is certain about any of them.
    """

    def __str__(self) -> str:
        return "interrupt all CPUs, and do not wait"


@dataclass(frozen=True, slots=True)
class RemoteFence:
    """The firmware makes all other CPUs fetch anew, also those that take no interrupt (SBI).

    It does not wait for the stores of the patching CPU.
    """

    def __str__(self) -> str:
        return "the firmware makes all CPUs fetch anew"


@dataclass(frozen=True, slots=True)
class FetchStopped:
    """The CPUs that are stopped fetch anew, in the function that they execute meanwhile."""

    def __str__(self) -> str:
        return "the stopped CPUs fetch anew"


@dataclass(frozen=True, slots=True)
class Interrupt:
    """All other CPUs are interrupted; each may acknowledge between two instructions.

    The patching CPU waits for all.  `synchronize`: the handler makes its CPU fetch anew.
    """

    synchronize: bool

    def __str__(self) -> str:
        return "interrupt all CPUs" + (", which synchronize" if self.synchronize else "") + ", and wait"


@dataclass(frozen=True, slots=True)
class Stop:
    """All other CPUs are interrupted, and wait in the handler until they are released."""

    def __str__(self) -> str:
        return "stop all CPUs"


@dataclass(frozen=True, slots=True)
class Release:
    """The stopped CPUs continue.  `synchronize`: each fetches anew before."""

    synchronize: bool

    def __str__(self) -> str:
        return "release all CPUs" + (", which synchronize" if self.synchronize else "")


@dataclass(frozen=True, slots=True)
class Quiesce:
    """Wait until every thread has been seen outside the patched bytes (synchronize_rcu_tasks)."""

    def __str__(self) -> str:
        return "wait until every thread has been outside the bytes"


@dataclass(frozen=True, slots=True)
class Divert:
    """A breakpoint that is only there while bytes are written has a handler, or has none any more.

    It executes the new instruction in the place of the interrupted one (poke_int3_handler).
    """

    on: bool

    def __str__(self) -> str:
        return "the temporary breakpoint has a handler" if self.on else "the temporary handler is removed"


@dataclass(frozen=True, slots=True)
class Data:
    """The CPU has stored to its data, which the user's own handler of the breakpoint may read.

    `number`: which data these are (`trapline.lab.race.objects.handler.Snapshots`).
    """

    number: int

    def __str__(self) -> str:
        return f"store to the patcher's data ({self.number})"


@dataclass(frozen=True, slots=True)
class Link:
    """The handler finds a probe's record from now on, or does not find it any more."""

    owner: int
    on: bool

    def __str__(self) -> str:
        return f"probe {self.owner + 1} {'may fire' if self.on else 'is unlinked'}"


@dataclass(frozen=True, slots=True)
class Learn:
    """The handler's table gets the entry of the breakpoint: an earlier hit has no handler."""

    def __str__(self) -> str:
        return "the handler's table gets the breakpoint's entry"


@dataclass(frozen=True, slots=True)
class Forget:
    """The record of the breakpoint is freed: a later hit has no handler."""

    def __str__(self) -> str:
        return "free the record of the breakpoint"


@dataclass(frozen=True, slots=True)
class Returned:
    """Enabling (or disabling) a probe returns to its caller."""

    owner: int
    enabled: bool

    def __str__(self) -> str:
        return f"{'enable' if self.enabled else 'disable'} of probe {self.owner + 1} returns"


@dataclass(frozen=True, slots=True)
class Exclude:
    """No process may fork from now on, or each may again.  A fork that has begun ends before."""

    on: bool

    def __str__(self) -> str:
        return "forks are excluded" if self.on else "forks are possible again"


@dataclass(frozen=True, slots=True)
class ListProcesses:
    """The patching CPU lists the processes that map the code."""

    def __str__(self) -> str:
        return "list the processes that map the code"


@dataclass(frozen=True, slots=True)
class WriteChild:
    """The patching CPU writes the same bytes to a page of the child, if it is listed."""

    data: bytes

    def __str__(self) -> str:
        return f"the same for the child, if it is listed: {self.data.hex(' ')}"


@dataclass(frozen=True, slots=True)
class Enter:
    """The patching CPU executes the code itself.

    `after_store`: its store to the code is the last instruction before that.
    """

    after_store: bool

    def __str__(self) -> str:
        return "calls the code itself"


@dataclass(frozen=True, slots=True)
class Leave:
    """The patching CPU has left the code, and goes on with its script."""

    def __str__(self) -> str:
        return "is back from the code"


@dataclass(frozen=True, slots=True)
class FreeTrampoline:
    """What a function needs that returns to a trampoline is freed."""

    def __str__(self) -> str:
        return "free the trampoline of return probes"


Operation = (
    Store
    | Swap
    | Flush
    | Wait
    | FetchAnew
    | Signal
    | RemoteFence
    | FetchStopped
    | Interrupt
    | Stop
    | Release
    | Quiesce
    | Divert
    | Data
    | Link
    | Learn
    | Forget
    | Exclude
    | ListProcesses
    | WriteChild
    | FreeTrampoline
    | Enter
    | Leave
    | Returned
)
Script = tuple[Operation, ...]
