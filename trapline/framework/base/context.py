"""The state of one firing: dtrace_mstate_t."""

from __future__ import annotations

from emu.guest.base import Thread
from trapline.framework.base.probes import Probe

# A time that has not been read yet.
UNREAD = -1


class Context:
    """The state that the DIF of one enabling reads and changes.

    The object is used again for every firing, so that nothing is allocated.
    """

    __slots__ = (
        "args",
        "cpu",
        "epid",
        "fault_offset",
        "probe",
        "scratch_base",
        "scratch_end",
        "scratch_ptr",
        "strtok",
        "strtok_limit",
        "thread",
        "timestamp",
        "walltimestamp",
    )

    probe: Probe
    epid: int
    cpu: int
    thread: Thread | None
    """The current thread, once it was asked for."""
    timestamp: int
    walltimestamp: int
    fault_offset: int
    """Byte offset of the DIF instruction that faulted, -1: none did."""
    scratch_base: int
    scratch_ptr: int
    scratch_end: int

    def __init__(self) -> None:
        self.args: tuple[int, ...] = ()
        self.strtok = self.strtok_limit = 0
