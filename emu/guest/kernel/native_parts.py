"""Machine code that reads the kernel guest: the current thread and its process.

The structures are read as `Introspection.thread` reads them, by the same offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from emu.engine.engine import Engine
from emu.engine.hits.hit_steps import ARGUMENTS
from emu.engine.hits.stack_arguments import live_register, read_function_argument
from emu.engine.native_parts import engine_code
from emu.engine.time.clock import VirtualClock
from emu.guest.kernel.introspection import COMM_MAX, Introspection
from emu.guest.kernel.stacks import KernelStacks, StackCode
from emu.guest.native_parts import user_stack_code
from emu.isa.base import Isa
from emu.native.builder import Callee, Function, Variable
from emu.native.guest import GuestCode, LateArguments, Writer, need
from emu.native.operations import Value, Word
from emu.support.words import WORD_MASK

_INT: Final = 4
# The result that makes Python find a stack.
UNKNOWN: Final = WORD_MASK
_LONG: Final = 8
# The number of ancestors after which Python looks for more, and for a circle.
_ANCESTORS: Final = 64


def kernel_code(
    engine: Engine,
    clock: VirtualClock,
    introspection: Introspection,
    stacks: KernelStacks,
    epoch: int,
    *,
    user_stacks: bool = True,
) -> GuestCode:
    """Return the functions by which machine code reads a kernel guest.

    `user_stacks`: whether all programs keep frame pointers, so that machine code can follow them.
    """
    reader = _Reader(engine.isa, introspection)
    functions: dict[str, Writer] = {
        "address": reader.address,
        "tid": reader.of_thread("TD_TID"),
        "errno": reader.of_thread("TD_ERRNO"),
        "pid": reader.of_process("P_PID"),
        "uid": reader.of_process("P_UID"),
        "gid": reader.of_process("P_GID"),
        "ppid": reader.parent,
        "descends": reader.descends,
        "execname": reader.name,
        "thread_time": reader.time,
        "user_register": reader.user_register,
        LateArguments.KERNEL_CALL: reader.late_of_kernel_call,
        LateArguments.SDT: reader.late_of_sdt,
        LateArguments.SYSTEM_CALL: reader.late_of_system_call,
    }
    functions["wall"] = lambda f, _slow: f.ret(f.add(f.call(Callee("now")), epoch))
    if user_stacks and engine.isa.paging.tables is not None:
        functions["user_callers"] = user_stack_code(engine.isa, reader.user, tables=True, leaves_save_pointer=True)
    walker = StackCode(engine.isa, stacks, introspection)
    functions["kernel_callers"] = walker.write
    return engine_code(engine, clock).joined(GuestCode(functions, walker.symbols))


class _Reader:
    """Writes functions that follow pointers from the current thread."""

    def __init__(self, isa: Isa, introspection: Introspection) -> None:
        self._isa = isa
        self._word = isa.word
        self._current = introspection.current
        self._offset = introspection.offset

    def address(self, f: Function, slow: Callable[[], Word]) -> None:
        """Write `address`."""
        thread, _process = self._start(f, slow)
        f.ret(thread)

    def of_thread(self, field: str) -> Writer:
        """Return the writer of a function that reads an int of the thread."""

        def write(f: Function, slow: Callable[[], Word]) -> None:
            thread, _process = self._start(f, slow)
            f.ret(self._int(f, slow, thread, field))

        return write

    def of_process(self, field: str) -> Writer:
        """Return the writer of a function that reads an int of the process."""

        def write(f: Function, slow: Callable[[], Word]) -> None:
            _thread, process = self._start(f, slow)
            f.ret(self._int(f, slow, process, field))

        return write

    def parent(self, f: Function, slow: Callable[[], Word]) -> None:
        """Write `ppid`."""
        _thread, process = self._start(f, slow)
        parent = self._pointer(f, slow, f.add(process, self._offset["P_PPTR"]))
        f.ret(self._int(f, slow, f.select(f.eq(parent, 0), process, parent), "P_PID"))

    def descends(self, f: Function, slow: Callable[[], Word]) -> None:
        """Write `descends(pid)`: whether the current process has the pid, or one of its ancestors."""
        (wanted,) = f.parameters
        _thread, first = self._start(f, slow)
        process, left = f.variable(first), f.variable(_ANCESTORS)
        with f.loop() as loop:
            here = process.get()
            f.ret_if(f.eq(here, 0), 0)
            pid = f.load(self._mapped(f, slow, f.add(here, self._offset["P_PID"]), _INT), size=_INT)
            f.ret_if(f.eq(pid, wanted), 1)
            loop.leave_if(f.eq(left.get(), 0))
            left.set(f.sub(left.get(), 1))
            process.set(self._pointer(f, slow, f.add(here, self._offset["P_PPTR"])))
        f.ret(slow())

    def name(self, f: Function, slow: Callable[[], Word]) -> None:
        """Write `execname`."""
        _thread, process = self._start(f, slow)
        f.ret(self._mapped(f, slow, f.add(process, self._offset["P_COMM"]), COMM_MAX))

    def time(self, f: Function, slow: Callable[[], Word]) -> None:
        """Write `thread_time`: the time before the last switch to the thread, and since then."""
        thread, _process = self._start(f, slow)
        ran, since = (
            f.load(self._mapped(f, slow, f.add(thread, self._offset[field]), _LONG))
            for field in ("TD_RUNTIME", "TD_SWITCHED_IN")
        )
        f.ret(f.sub(f.add(ran, f.call(Callee("now"))), since))

    def user_register(self, f: Function, slow: Callable[[], Word]) -> None:
        """Write `user_register`: from the trap frame of the thread's entry into the kernel."""
        pc = live_register(f, self._isa, self._isa.registers.pc)
        need(f, slow, f.flag(f.uge(pc, self._isa.kernel_start)))
        thread = self._pointer(f, slow, self._current)
        need(f, slow, thread)
        frame = self._pointer(f, slow, f.add(thread, self._offset["TD_FRAME"]))
        need(f, slow, frame)
        with f.cases(f.parameters[0]) as case:
            for index, name in enumerate(self._isa.registers.dtrace):
                if name in self._isa.traps.frame:
                    with case(index):
                        slot = f.add(frame, self._word * self._isa.traps.frame.index(name))
                        f.ret(self._pointer(f, slow, slot))
        f.ret(slow())

    def late_of_kernel_call(self, f: Function, slow: Callable[[], Word]) -> None:
        """Write `late_of_kernel_call`: the id is an argument, too (`KernelView.call_argument`)."""
        if self._isa.registers.link is not None:
            f.ret(0)
            return
        skipped = self._isa.calling.stack_arguments // self._word
        read_function_argument(f, slow, self._isa, f.add(f.parameters[0], 1), skipped)

    def late_of_sdt(self, f: Function, slow: Callable[[], Word]) -> None:
        """Write `late_of_sdt`: Python faults for a seventh argument."""
        need(f, slow, f.flag(f.eq(f.parameters[0], ARGUMENTS)))
        thread, _process = self._start(f, slow)
        f.ret(self._pointer(f, slow, f.add(thread, self._offset["TD_SDT_ARG5"])))

    def late_of_system_call(self, f: Function, slow: Callable[[], Word]) -> None:
        """Write `late_of_system_call`, as `SystemCalls.argument` does."""
        (index,) = f.parameters
        thread, _process = self._start(f, slow)
        saved = self._pointer(f, slow, f.add(thread, self._offset["TD_SYSTRACE_ARGS"]))
        f.ret_if(f.either(f.eq(saved, 0), f.uge(index, self._offset["SYSTRACE_NARGS"])), 0)
        f.ret(f.load(self._mapped(f, slow, f.add(saved, f.mul(index, _LONG)), _LONG)))

    def user(self, f: Function, known: Mapping[str, Variable]) -> None:
        """Load registers of the current thread's user program; a kernel thread has none."""
        pc = live_register(f, self._isa, self._isa.registers.pc)
        with f.choice(f.ult(pc, self._isa.kernel_start)) as (live, saved):
            with live:
                for name, variable in known.items():
                    variable.set(live_register(f, self._isa, name))
            with saved:
                thread = self._pointer(f, lambda: f.word(UNKNOWN), self._current)
                f.ret_if(f.eq(thread, 0), 0)
                frame = self._pointer(f, lambda: f.word(UNKNOWN), f.add(thread, self._offset["TD_FRAME"]))
                f.ret_if(f.eq(frame, 0), 0)
                for name, variable in known.items():
                    slot = f.add(frame, self._word * self._isa.traps.frame.index(name))
                    variable.set(self._pointer(f, lambda: f.word(UNKNOWN), slot))

    def _start(self, f: Function, slow: Callable[[], Word]) -> tuple[Value, Value]:
        """Load the current thread and its process; Python is called while there are none."""
        thread = self._pointer(f, slow, self._current)
        need(f, slow, thread)
        process = self._pointer(f, slow, f.add(thread, self._offset["TD_PROC"]))
        need(f, slow, process)
        return thread, process

    def _pointer(self, f: Function, slow: Callable[[], Word], address: Word) -> Value:
        return f.load(self._mapped(f, slow, address, self._word), size=self._word)

    def _int(self, f: Function, slow: Callable[[], Word], structure: Word, field: str) -> Value:
        mapped = self._mapped(f, slow, f.add(structure, self._offset[field]), _INT)
        return f.load(mapped, size=_INT, signed=True)

    def _mapped(self, f: Function, slow: Callable[[], Word], address: Word, size: int) -> Value:
        """Return the address of memory in this process; if it is unknown, Python is called."""
        mapped = f.call(Callee("kernel_pointer"), address, size)
        need(f, slow, mapped)
        return mapped
