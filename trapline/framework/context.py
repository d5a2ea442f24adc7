"""The state of one firing: dtrace_mstate_t."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emu.guest.base import Thread
    from trapline.framework.buffers import LinearBuffer
    from trapline.framework.probes import Probe

UNREAD = -1
"""A time that has not been read yet."""


class Context:
    """What the actions of one enabling see and change; used again for every firing, so that nothing is allocated."""

    __slots__ = (
        "args",
        "base",
        "committed",
        "cpu",
        "data",
        "dynsize",
        "epid",
        "fault_offset",
        "probe",
        "scratch_base",
        "scratch_end",
        "scratch_ptr",
        "strtok",
        "strtok_limit",
        "target",
        "thread",
        "timestamp",
        "value",
        "walltimestamp",
    )

    args: tuple[int, ...]
    probe: Probe
    epid: int
    cpu: int
    thread: Thread | None
    """The current thread, once somebody has asked."""
    timestamp: int
    walltimestamp: int
    fault_offset: int
    """Byte offset of the DIF instruction that faulted, -1: none did."""
    scratch_base: int
    scratch_ptr: int
    scratch_end: int
    strtok: int
    strtok_limit: int
    target: LinearBuffer
    """The buffer that gets the record: the principal one, or a speculation's."""
    data: bytearray
    """Its bytes, and"""
    base: int
    """where the record starts in them."""
    value: int
    """Value of the last tuple element, when that is the increment of an aggregation."""
    dynsize: int
    """How many bytes the next by-reference value may have (tracemem's third argument); 0: all."""
    committed: bool
    """Whether commit() has already moved the buffer's offset."""

    def __init__(self) -> None:
        self.args = ()
        self.strtok = self.strtok_limit = 0

