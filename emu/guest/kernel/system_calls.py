"""The kernel guest's system call table, for the syscall provider, which lists and arms its rows.

The kernel does what FreeBSD's does (sys/kern/subr_syscall.c): while `systrace_enabled` is set and a
call's row has an id for its entry or its return, it calls `systrace_probe()`, and that calls
`dtrace_probe()`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from emu.elf.image import Image
from emu.engine.engine import Engine
from emu.guest.kernel.introspection import offsets, text_at
from emu.guest.system_calls import CallSignature, Moment
from emu.native.guest import LateArguments

_ARGUMENT: Final = 8
_NAME_LIMIT: Final = 64


class SystemCalls:
    """The rows of `sysent[]` of one guest.  Implements `emu.guest.system_calls.SystemCallTable`."""

    module = "freebsd"
    late = LateArguments.SYSTEM_CALL

    def __init__(self, engine: Engine, image: Image, thread: Callable[[], int], watch: Callable[[], object]) -> None:
        """Read the table; `thread` returns the current thread's address."""
        self._engine = engine
        self._word = image.isa.word
        self._watch = watch
        self._thread = thread
        self._offset = offsets(image)
        self._sysent = image.symbol("sysent").value
        self._enabled = image.symbol("systrace_enabled").value
        self.names = self._names(image.symbol("syscallnames").value)
        self._signatures = self._read_signatures(image.symbol("systrace_argdescs").value)

    def _names(self, table: int) -> Mapping[int, str]:
        pointers = enumerate(self._pointers(table, self._offset["SYS_MAXSYSCALL"]))
        return {number: self._text(pointer) for number, pointer in pointers if pointer}

    def _read_signatures(self, table: int) -> Mapping[int, CallSignature]:
        size = self._offset["SYSTRACE_ARGDESC_SIZE"]
        found: dict[int, CallSignature] = {}
        while number := self._engine.load(table, self._word):
            result, *parameters = self._pointers(table + self._word, size // self._word - 1)
            types = tuple(self._text(parameter) for parameter in parameters if parameter)
            found[number] = CallSignature(self._text(result), types)
            table += size
        return found

    def _pointers(self, address: int, count: int) -> list[int]:
        return [self._engine.load(address + self._word * index, self._word) for index in range(count)]

    def _text(self, address: int) -> str:
        return text_at(self._engine, address, _NAME_LIMIT)

    def signature(self, number: int) -> CallSignature | None:
        """Return the types of a call, None if they are not known."""
        return self._signatures.get(number)

    def arm(self, number: int, moment: Moment, probe_id: int) -> None:
        """Set the id of a row's probe, 0 for none."""
        field = self._offset[{Moment.ENTRY: "SY_ENTRY", Moment.RETURN: "SY_RETURN"}[moment]]
        self._engine.store(self._sysent + self._offset["SY_SIZE"] * number + field, 4, probe_id)

    def enable(self, *, on: bool) -> None:
        """Enable or disable all probes."""
        if on:
            self._watch()
        self._engine.store(self._enabled, 1, on)

    def argument(self, index: int) -> int:
        """Return an argument of the current thread's call, beyond those that the probe passes."""
        saved = self._engine.load(self._thread() + self._offset["TD_SYSTRACE_ARGS"], self._word)
        if not saved or index >= self._offset["SYSTRACE_NARGS"]:
            return 0
        return self._engine.load(saved + _ARGUMENT * index, _ARGUMENT)
