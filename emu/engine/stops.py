"""Stops before instructions, for a debugger: the run goes on afterwards as it would have.

A stop is a call from a code hook: `reached` returns when the CPU is to go on.  So no run ends, no
deadline is looked at earlier than without a debugger, and no byte of the guest is written.  There
are two kinds of hooks: at addresses (`points`), which cost other code nothing; and at each
instruction (`each`), for single steps and for words that are watched, which costs some 5 us.

What is changed during a stop holds from the next instruction on.  Unicorn has translated that
already, so the run is left, all code is forgotten, and the run goes on.  The rest of the block that
was left is a block of its own then, at whose start a deadline could be noticed too early.  So
deadlines are put off until that rest is over, and each instruction is hooked until then.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from emu.engine.qemu.hooks import ACCESS, WRITE, Hooks
from emu.engine.state import NEVER, TableEntry, Word

if TYPE_CHECKING:
    from emu.engine.code import Code
    from emu.engine.qemu.code_hooks import CodeHooks
    from emu.engine.qemu.cpu import Cpu
    from emu.engine.run import Running
    from emu.engine.time.counter import Counter

# Called before an instruction, with its address.
Reached = Callable[[int], object]
# (whether it writes, physical address, size in bytes)
Accessed = Callable[[bool, int, int], object]

_HOOK: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)
_ACCESS: Final = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int, ctypes.c_int64, ctypes.c_void_p
)
# The most bytes of one access: one that begins before a watched range may reach into it.
_WIDEST: Final = 64


class _Rest(NamedTuple):
    """A part of a block that was left, and the deadlines that are put off until its end."""

    begin: int
    end: int
    soft: int
    hard: int
    run: int
    """The number of the run that has these deadlines."""


class _Installed(NamedTuple):
    """What is hooked."""

    points: frozenset[int] = frozenset()
    each: bool = False
    ranges: frozenset[tuple[int, int]] = frozenset()


class Stops:
    """The stops of one CPU; made by `emu.engine.engine.Engine.stops`."""

    def __init__(
        self,
        cpu: Cpu,
        counter: Counter,
        code: Code,
        code_hooks: CodeHooks,
        running: Running,
        hooks: Hooks,
        reached: Reached,
    ) -> None:
        self.points: set[int] = set()
        """The addresses of instructions to stop before."""
        self.each = False
        """Whether to stop before each instruction."""
        self.ranges: dict[tuple[int, int], Accessed] = {}
        """Physical memory, from the first address to the one after the last, whose accesses are told.

        Needs `each`, to stop behind the access."""
        self.stopped = False
        """Whether `reached` is being called."""
        self.changed = False
        """Set it when the guest's registers or code were changed in a stop."""
        self._cpu, self._counter, self._code = cpu, counter, code
        self._code_hooks, self._running, self._hooks = code_hooks, running, hooks
        self._reached = reached
        self._function = _HOOK(self._hook)
        self._now = _Installed()
        self._handles: list[int] = []
        self._again: int | None = None
        """The address before whose instruction `reached` was called already."""
        self._rest: _Rest | None = None
        running.on_no_code = self._no_code

    def _no_code(self, address: int) -> bool:
        """Stop at an address that cannot be executed: gdb lets functions return to the stack."""
        if address not in self.points:
            return False
        self._reached(address)
        self.changed = False
        self.apply()
        return True

    def apply(self) -> None:
        """Let changes take effect, between two runs."""
        wanted = self._wanted()
        if wanted != self._now:
            self._install(wanted)
            self._counter.translate_anew()

    def _wanted(self) -> _Installed:
        return _Installed(frozenset(self.points), self.each or self._rest is not None, frozenset(self.ranges))

    def _install(self, wanted: _Installed) -> None:
        for address in self._now.points - wanted.points:
            self._code_hooks.remove_first(address)
        for address in wanted.points - self._now.points:
            self._code_hooks.add_first(address, self._function, data=1)
        self._code_hooks.call_always(self._function if wanted.each else None)
        if wanted.ranges != self._now.ranges:
            for handle in self._handles:
                self._hooks.remove(handle)
            self._handles = [self._watch(begin, end, self.ranges[begin, end]) for begin, end in wanted.ranges]
        self._now = wanted

    def _watch(self, begin: int, end: int, accessed: Accessed) -> int:
        def access(_uc: int, kind: int, address: int, size: int, _value: int, _data: int) -> None:
            if address < end and address + size > begin:
                accessed(kind == WRITE, address, size)

        return self._hooks.add(ACCESS, _ACCESS(access), max(begin - _WIDEST, 0), end - 1)

    def _hook(self, _uc: int, address: int, _size: int, at_point: int) -> None:
        """Stop before an instruction; called by Unicorn."""
        if at_point and self._now.each:
            return  # was called already, as before each instruction
        if self._again == address:
            self._again = None
            return
        if self._code.hooked.left or self._running.between is not None:
            return  # the block was left here, and the hook was called already
        self._again = None
        if self._rest is not None and not self._in_rest(address):
            self._end_rest()
            return
        if not self.each and address not in self.points:
            return
        before = self._counter.instructions
        self.stopped = True
        try:
            self._reached(address)
        except BaseException as error:  # noqa: BLE001  raised again by Running
            self._code.fail(error)
        finally:
            self.stopped = False
        if self.changed or self._code.hooked.left or self._wanted() != self._now:
            self._leave(address, before)

    def _leave(self, address: int, before: int) -> None:
        """Leave the block before its next instruction, so that changes take effect."""
        state, pc = self._counter.state, int(self._cpu.pc_word.value)
        block = state[Word.BLOCK]
        if block and pc == address and self._rest is None:
            entry = TableEntry.from_address(block)
            begin, end = int(entry.address), int(entry.address) + int(entry.size)
            if begin < address < end:
                self._rest = _Rest(address, end, state[Word.SOFT], state[Word.HARD], self._running.runs)
                state[Word.SOFT] = state[Word.HARD] = state[Word.NEXT] = NEVER
        self._counter.stopped_at(before)
        self._again = pc
        self._go_on()

    def _in_rest(self, address: int) -> bool:
        assert self._rest is not None
        block = self._counter.state[Word.BLOCK]
        start = TableEntry.from_address(block).address if block else 0
        return self._rest.begin < address < self._rest.end and start in {0, self._rest.begin}

    def _end_rest(self) -> None:
        """Give the run its deadlines back, before the block that follows: its start looks at them."""
        assert self._rest is not None
        state = self._counter.state
        for word, kept in ((Word.SOFT, self._rest.soft), (Word.HARD, self._rest.hard)):
            state[word] = min(state[word], kept)
        state[Word.NEXT] = min(state[Word.SOFT], state[Word.HARD], self._running.runs)
        self._rest = None
        self._go_on()

    def _go_on(self) -> None:
        self.changed = False
        self._code.hooked.left = 1  # nothing else is done before this instruction, until it is reached again
        self._running.leave_for(self._apply_between)

    def _apply_between(self) -> None:
        self._code.hooked.left = 0
        if self._again is not None:
            self._cpu.pc_word.value = self._again  # Unicorn has left it at the hook
        self._install(self._wanted())
        if not self._now.each and self._again not in self._now.points:
            self._again = None  # no hook is called there
        self._counter.translate_anew()
