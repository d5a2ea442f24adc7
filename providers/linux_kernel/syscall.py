"""The system calls of a Linux kernel, traced in the code that all of them pass.

    enable    breakpoints at the kernel's two functions that every call passes
    (a call)  the number and the arguments are in struct pt_regs; the armed probe fires, by machine
              code (`native_calls`) after the first hit

The names are those of the kernel's own table of calls, and their types those of its metadata for
tracing.  A return has -1, or the result as an int, twice, as in the Linux guest.

Source: Linux 6.12 arch/riscv/kernel/traps.c (do_trap_ecall_u), arch/arm64/kernel/syscall.c
(invoke_syscall), arch/x86/entry/common.c (do_syscall_64), include/trace/syscall.h.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final

from emu.displaced.frame import Frame
from emu.engine.hits.hit_steps import ARGUMENTS as PASSED
from emu.engine.hits.hit_steps import Call, Fire, Register
from emu.engine.hits.tracepoint_blocks import Firing
from emu.guest.linux_kernel.abi import CallPath
from emu.guest.linux_kernel.guest import LinuxKernelGuest
from emu.guest.linux_kernel.kallsyms import Symbol
from emu.guest.system_calls import CallSignature, Moment
from emu.native.guest import LateArguments
from emu.support.words import WORD_MASK, BadAddressError
from providers.base import Framework
from providers.linux_kernel.native_calls import ARGUMENTS, LARGEST_ERROR, MOST_CALLS, Entered, NativeCalls, OpenCalls
from providers.linux_kernel.sites import LONGEST, entry_site, return_sites
from providers.linux_kernel.text import Fires, Hook, Text

_WORD: Final = 8
# struct syscall_metadata: name, number, number of arguments, their types, their names.
_METADATA: Final = struct.Struct("<QiiQQ")
_LONGEST_TYPE: Final = 128
_INT_SIGN: Final = 0x8000_0000
_NOT_THERE: Final = "sys_ni_syscall"


class KernelCalls:
    """Implements `emu.guest.system_calls.SystemCallTable`."""

    module = "linux"
    late = LateArguments.HIT

    def __init__(self, guest: LinuxKernelGuest, text: Text, framework: Framework, path: CallPath) -> None:
        self._guest = guest
        self._text = text
        self._framework = framework
        self._path = path
        self._symbols = guest.facts.symbols
        self._ids: dict[tuple[int, Moment], int] = {}
        self._open = OpenCalls()
        self._firings: dict[int, Firing] = {}
        """By probe."""
        self._hooks: list[tuple[int, Hook]] = []

    @cached_property
    def names(self) -> dict[int, str]:
        """The calls by number."""
        known = self._guest.isa.linux.calls
        return {number: known.get(number, plain) for number, plain in self._named}

    @property
    def _named(self) -> Iterator[tuple[int, str]]:
        """Yield number and name of each call in the kernel's table."""
        table = self._symbols.get("sys_call_table")
        if table is None:
            return
        for number in range(MOST_CALLS):
            address = self._guest.engine.load(table.value + _WORD * number, _WORD)
            symbol = self._symbols.holding(address) if address in self._guest.facts.text else None
            if symbol is None or symbol.value != address:
                return
            plain = symbol.name.partition("sys_")[2]
            if plain and not symbol.name.endswith(_NOT_THERE):
                yield number, plain

    def signature(self, number: int) -> CallSignature | None:
        """Return the types of a call, None if they are not known."""
        plain = dict(self._named).get(number, "")
        for name in (f"__syscall_meta__{plain}", f"__p_syscall_meta__{plain}"):
            symbol = self._symbols.get(name)
            if symbol is not None:
                return self._signature(symbol)
        return None

    def _signature(self, symbol: Symbol) -> CallSignature | None:
        load = self._guest.engine.load
        try:
            _, _, count, types, _ = _METADATA.unpack(self._guest.load(symbol.value, _METADATA.size))
            texts = [self._text_at(load(types + _WORD * index, _WORD)) for index in range(count)]
        except (BadAddressError, struct.error):
            return None
        return CallSignature("long", tuple(texts))

    def _text_at(self, address: int) -> str:
        return self._guest.load(address, _LONGEST_TYPE).split(b"\0", 1)[0].decode("ascii", "replace")

    def arm(self, number: int, moment: Moment, probe_id: int) -> None:
        """Give a call the id of a probe, 0 for none; numbers of one name have one probe."""
        name = self.names[number]
        for other in (other for other, its in self.names.items() if its == name):
            self._ids[other, moment] = probe_id
            self._table(moment)[other] = 0
        if self._hooks:
            self._text.changed()

    def _table(self, moment: Moment) -> ctypes.Array[ctypes.c_uint64]:
        """Return the firings of machine code at a moment of the calls."""
        return self._open.entries if moment is Moment.ENTRY else self._open.returns

    def enable(self, *, on: bool) -> None:
        """Write the breakpoints, or remove them."""
        if on and not self._hooks:
            for address in self._addresses(self._path.entry, at_return=False):
                self._hooks.append((address, Hook(self._entered, self._fires(Moment.ENTRY))))
            for address in self._addresses(self._path.done, at_return=self._path.done_at_return):
                self._hooks.append((address, Hook(self._done, self._fires(Moment.RETURN))))
            for address, hook in self._hooks:
                self._text.add(address, hook)
        elif not on:
            for address, hook in self._hooks:
                self._text.remove(address, hook)
            self._hooks.clear()
            self._open.clear()

    def _addresses(self, names: Sequence[str], *, at_return: bool) -> list[int]:
        symbol = next(filter(None, map(self._symbols.get, names)), None)
        if symbol is None:
            return []
        isa, start = self._text.isa, symbol.value
        if at_return:
            return [address for address, _ in return_sites(isa, self._text.code(start, symbol.size), start)]
        found = entry_site(isa, self._text.code(start, 3 * LONGEST), start)
        return [] if found is None else [found[0]]

    def argument(self, index: int) -> int:
        """Return an argument beyond those that are passed."""
        registers = self._guest.tasks.user_registers() if self._open.words.entering else None
        return registers[self._path.arguments[index]] if registers and index < len(self._path.arguments) else 0

    def _entered(self, frame: Frame) -> None:
        path, passed, tasks = self._path, frame.arguments(), self._guest.tasks
        registers = tasks.registers_at(passed[0])
        number = registers[path.number] if path.number else passed[1] & 0xFFFF_FFFF
        self._open.enter(frame.register(self._text.isa.registers.sp), Entered(number, passed[0]))
        tasks.errno = 0
        probe_id = self._ids.get((number, Moment.ENTRY))
        if probe_id:
            self._open.words.entering = 1
            self._framework.probe(probe_id, *(registers[name] for name in path.arguments[:PASSED]))
            self._open.words.entering = 0

    def _done(self, frame: Frame) -> None:
        tasks = self._guest.tasks
        entered = self._open.leave(frame.register(self._text.isa.registers.sp))
        probe_id = None if entered is None else self._ids.get((entered.number, Moment.RETURN))
        if entered is not None and probe_id:
            result = tasks.registers_at(entered.registers)[self._path.result]
            failed = result > WORD_MASK - LARGEST_ERROR
            tasks.errno = WORD_MASK + 1 - result if failed else 0
            value = -1 if failed else (result & 0xFFFF_FFFF ^ _INT_SIGN) - _INT_SIGN
            self._framework.probe(probe_id, value & WORD_MASK, value & WORD_MASK)
            tasks.errno = 0

    # -- machine code

    @cached_property
    def _native(self) -> NativeCalls:
        return NativeCalls(self._guest, self._path)

    def _fires(self, moment: Moment) -> Callable[[], Fires]:
        """Return what describes a hit for machine code, if that can fire all armed probes."""

        def fires() -> Fires:
            for (number, its), probe_id in self._ids.items():
                if its is moment and probe_id:
                    firing = self._firing(probe_id)
                    if firing is None:
                        return None
                    self._table(moment)[number] = firing.address
            function = self._native.entered if moment is Moment.ENTRY else self._native.done
            return (Call(function, self._open.words.address),)

        return fires

    def _firing(self, probe_id: int) -> Firing | None:
        if probe_id not in self._firings:
            runs = self._framework.native_runs(probe_id)
            if not runs:
                return None
            fire = Fire(runs, tuple(map(Register, ARGUMENTS[:PASSED])), late=tuple(map(Register, ARGUMENTS[PASSED:])))
            guest = self._guest
            self._firings[probe_id] = guest.engine.tracepoints.lasting(guest.traps.core, guest.live, fire)
        return self._firings[probe_id]
