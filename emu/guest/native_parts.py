"""Machine code for guests: a program's registers and stack, the only thread, the CPU's number.

`emu.guest.stack_walker.user_stack` walks the same stacks in Python.
The function `user_callers(buffer, limit)` writes pcs to a buffer in this process, the innermost
first, and returns their number; all ones: Python must find them.  It calls `user_start(pc)`, which
returns whether a pc is the first instruction of a function: there the frame is still the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from emu.engine.hits.stack_arguments import live_register
from emu.engine.memory.pages import PAGE
from emu.guest.base import Thread
from emu.guest.stack_walker import DEEPEST
from emu.isa.base import Isa
from emu.native.builder import Callee, Function, Variable
from emu.native.guest import NAME_SIZE, GuestCode, Writer
from emu.native.operations import Value, Word
from emu.support.words import WORD_MASK

_WORD: Final = 8
_WORD_SHIFT: Final = 3
_UNKNOWN: Final = WORD_MASK


def live_register_code(isa: Isa) -> Writer:
    """Return the writer of `user_register` for a guest whose CPU runs the program itself."""

    def write(f: Function, slow: Callable[[], Word]) -> None:
        with f.cases(f.parameters[0]) as case:
            for index, name in enumerate(isa.registers.dtrace):
                if name in isa.registers.slots:
                    with case(index):
                        f.ret(live_register(f, isa, name))
        f.ret(slow())

    return write


def user_stack_code(
    isa: Isa,
    read: Callable[[Function, Mapping[str, Variable]], None],
    *,
    tables: bool,
    leaves_save_pointer: bool = False,
) -> Writer:
    """Return the writer of `user_callers`.

    `read` writes code that sets variables to the registers of their names; that code returns 0 from
    the function if there are no user registers.  `tables`: `user_pointer` walks page tables, so an
    address that it does not find is not mapped; otherwise Python may find it.
    """
    return lambda f, _slow: _Walk(f, isa, tables=tables, leaves_save_pointer=leaves_save_pointer).write(read)


class _Walk:
    """The function under construction."""

    def __init__(self, f: Function, isa: Isa, *, tables: bool, leaves_save_pointer: bool) -> None:
        self._f = f
        self._isa = isa
        self._tables = tables
        self._leaves_save_pointer = leaves_save_pointer
        self._count = f.variable(0)

    def write(self, read: Callable[[Function, Mapping[str, Variable]], None]) -> None:
        """Write the function."""
        f, registers = self._f, self._isa.registers
        buffer, asked = f.parameters
        limit = f.select(f.ult(asked, DEEPEST), asked, DEEPEST)
        names = {registers.pc, registers.fp, registers.sp, *((registers.link,) if registers.link else ())}
        known = {name: f.variable(0) for name in sorted(names)}
        read(f, known)
        pc, pointer, sp = known[registers.pc].get(), known[registers.fp], known[registers.sp]
        f.ret_if(f.eq(limit, 0), 0)
        f.store(buffer, pc)
        self._count.set(1)
        with f.when(f.ne(f.call(Callee("user_start"), pc), 0)):
            f.ret_if(f.ule(limit, 1), 1)
            caller = known[registers.link].get() if registers.link else self._load(sp.get())
            self._append(buffer, caller)
        self._chain(buffer, limit, pointer, sp, known[registers.link].get() if registers.link else None)

    def _chain(self, buffer: Word, limit: Word, pointer: Variable, sp: Variable, link: Word | None) -> None:
        """Follow the frame pointers."""
        f, calling, word = self._f, self._isa.calling, self._isa.word
        with f.loop() as loop:
            frame = pointer.get()
            loop.leave_if(f.uge(self._count.get(), limit))
            loop.leave_if(f.ult(frame, sp.get()))
            loop.leave_if(f.ne(f.and_(frame, word - 1), 0))
            address = f.variable(self._load(f.add(frame, calling.frame_return)))
            following = f.variable(self._load(f.add(frame, calling.frame_next)))
            if self._leaves_save_pointer and link is not None:
                inside = f.both(f.ult(frame, address.get()), f.ult(address.get(), f.add(frame, DEEPEST * PAGE)))
                with f.when(f.both(f.eq(self._count.get(), 1), inside)):
                    following.set(address.get())
                    address.set(link)
            loop.leave_if(f.eq(address.get(), 0))
            self._append(buffer, address.get())
            loop.leave_if(f.ule(following.get(), frame))
            sp.set(following.get())
            pointer.set(following.get())
        f.ret(self._count.get())

    def _append(self, buffer: Word, pc: Word) -> None:
        f, count = self._f, self._count.get()
        f.store(f.add(buffer, f.shl(count, _WORD_SHIFT)), pc)
        self._count.set(f.add(count, 1))

    def _load(self, address: Word) -> Value:
        """Load a word; the stack ends if no memory is mapped there."""
        f = self._f
        found = f.call(Callee("user_pointer"), address, self._isa.word)
        with f.when(f.eq(found, 0), likely=False):
            if self._tables:
                f.ret_if(f.ult(address, self._isa.kernel_start), self._count.get())
            f.ret(_UNKNOWN)
        return f.load(found, size=self._isa.word)


def cpu_number(address: int) -> GuestCode:
    """Return the function `cpu`, which reads a word."""
    return GuestCode({"cpu": lambda f, _slow: f.ret(f.load(f.module.symbol("cpu_number")))}, {"cpu_number": address})


def thread_code(thread: Thread) -> GuestCode:
    """Return functions about the only thread that a guest has."""
    numbers = ("address", "tid", "pid", "ppid", "uid", "gid", "errno")
    name = thread.execname.encode("utf-8", "surrogateescape")[: NAME_SIZE - 1].ljust(NAME_SIZE, b"\0")
    functions = {number: _constant(getattr(thread, number)) for number in numbers}
    functions["execname"] = lambda f, _slow: f.ret(f.module.data("thread_name", name))
    return GuestCode(functions)


def _constant(number: int) -> Writer:
    return lambda f, _slow: f.ret(number)
