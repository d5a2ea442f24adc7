"""The system calls of the Linux guest, whose kernel is the host's.

An observer of the guest reports them.

The conventions are those of FreeBSD's module `linux` (sys/amd64/linux/linux_systrace_args.c and
systrace.c), so that a script means the same on both guests.
"""

# ruff: noqa: ARG002  (an observer gets more than is needed)

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from emu.guest.linux.calls.table import SIGNATURES, extend
from emu.guest.linux.kernel import Kernel
from emu.guest.linux.process.process import LinuxObserver, Thread
from emu.guest.system_calls import CallSignature, Moment
from emu.native.guest import LateArguments
from emu.support.words import WORD_MASK

_INT: Final = 0x8000_0000
_PASSED: Final = 5


class _Fire(Protocol):
    """`Framework.probe`."""

    def __call__(
        self, probe_id: int, arg0: int = 0, arg1: int = 0, arg2: int = 0, arg3: int = 0, arg4: int = 0
    ) -> None: ...


class LinuxCalls(LinuxObserver):
    """Implements `emu.guest.system_calls.SystemCallTable`."""

    module = "linux"
    late = LateArguments.SYSTEM_CALL

    def __init__(self, kernel: Kernel, fire: _Fire) -> None:
        self._kernel = kernel
        self._fire = fire
        self.names = kernel.abi.calls
        self._ids: dict[tuple[str, Moment], int] = {}

    def signature(self, number: int) -> CallSignature | None:
        """Return the types of a call, None if the guest does not have it."""
        return SIGNATURES.get(self.names[number])

    def arm(self, number: int, moment: Moment, probe_id: int) -> None:
        """Give a call the id of a probe, 0 for none."""
        self._ids[self.names[number], moment] = probe_id

    def enable(self, *, on: bool) -> None:
        """Listen, or stop listening."""
        if on and self not in self._kernel.observers:
            self._kernel.observers.append(self)
        elif not on and self in self._kernel.observers:
            self._kernel.observers.remove(self)

    def argument(self, index: int) -> int:
        """Return an argument beyond those that are passed."""
        return self._kernel.call_arguments.get(index)

    def system_call(self, thread: Thread, name: str, arguments: Sequence[int]) -> None:
        """Fire at the entry of a call."""
        probe_id = self._ids.get((name, Moment.ENTRY))
        if probe_id:
            extended = extend(name, arguments)
            self._kernel.call_arguments.set(extended)
            self._fire_known(probe_id, extended[:_PASSED])
            self._kernel.call_arguments.set(())

    def system_call_done(self, thread: Thread, name: str, result: int) -> None:
        """Fire at the return of a call."""
        probe_id = self._ids.get((name, Moment.RETURN))
        if probe_id:
            value = -1 if result < 0 else (result & 2 * _INT - 1 ^ _INT) - _INT
            self._fire_known(probe_id, (value & WORD_MASK, value & WORD_MASK))

    def _fire_known(self, probe_id: int, arguments: Sequence[int]) -> None:
        """Fire a probe; machine code asks for the thread once, as it does not change meanwhile."""
        self._kernel.thread_words.running()
        try:
            self._fire(probe_id, *arguments)
        finally:
            self._kernel.thread_words.stopped()
