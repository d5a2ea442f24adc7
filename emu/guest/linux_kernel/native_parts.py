"""Machine code that reads a Linux kernel: the current task, and memory.

The structures are read as `Tasks` reads them, by the same offsets; unexpected values are left to
Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Final

from emu.engine.engine import Engine
from emu.engine.hits.stack_arguments import of_programs
from emu.engine.hits.walk_code import write_walk
from emu.engine.memory.pages import PAGE
from emu.engine.native_parts import engine_code
from emu.engine.time.clock import VirtualClock
from emu.guest.linux_kernel.abi import of_program
from emu.guest.linux_kernel.stack.native import stack_code
from emu.guest.linux_kernel.stack.walk import Unwinder
from emu.guest.linux_kernel.tasks import COMM, Tasks
from emu.isa.base import Isa
from emu.native.builder import Callee, Function
from emu.native.guest import NAME_SIZE, GuestCode, Writer, need
from emu.native.operations import Value, Word

_WORD: Final = 8
_INT: Final = 4
# The bits of a pid.
_PID: Final = 0xFFFF_FFFF
# The number of ancestors after which Python looks for more.
_ANCESTORS: Final = 64


def linux_kernel_code(
    engine: Engine, clock: VirtualClock, tasks: Tasks, unwinder: Unwinder, epoch: int
) -> tuple[GuestCode, object]:
    """Return the functions by which machine code reads a Linux kernel, and objects to keep alive."""
    reader = _Reader(engine, tasks)
    buffer = ctypes.create_string_buffer(NAME_SIZE)
    functions: dict[str, Writer] = {
        "address": reader.address,
        "tid": reader.member("task_struct.pid", _INT),
        "pid": reader.member("task_struct.tgid", _INT),
        "thread_time": reader.member("task_struct.se.sum_exec_runtime", _WORD),
        "ppid": reader.behind("task_struct.real_parent", "task_struct.tgid"),
        "uid": reader.behind("task_struct.cred", "cred.uid"),
        "gid": reader.behind("task_struct.cred", "cred.gid"),
        "errno": lambda f, _slow: f.ret(f.load(f.module.symbol("error"))),
        "execname": reader.name,
        "descends": reader.descends,
        "user_pointer": reader.user_pointer,
        "wall": lambda f, _slow: f.ret(f.add(f.call(Callee("now")), epoch)),
        **stack_code(engine.isa, unwinder),
        **of_programs(engine.isa, _register_of_program),
    }
    symbols = {"name_buffer": ctypes.addressof(buffer), "error": tasks.error_address}
    for name in (*engine.isa.calling.arguments, engine.isa.registers.sp):
        symbols[of_program(name)] = engine.tracepoints.temporary(of_program(name))
    return engine_code(engine, clock).joined(GuestCode(functions, symbols)), buffer


def _register_of_program(f: Function, _isa: Isa, name: str) -> Value:
    return f.load(f.module.symbol(of_program(name)))


class _Reader:
    """Writes functions that follow pointers from the current task."""

    def __init__(self, engine: Engine, tasks: Tasks) -> None:
        self._isa = engine.isa
        self._current = tasks.variable
        self._register = tasks.abi.current
        self._offset = tasks.offsets

    def address(self, f: Function, slow: Callable[[], Word]) -> None:
        """Write `address`."""
        f.ret(self._task(f, slow))

    def member(self, member: str, size: int) -> Writer:
        """Return the writer of a function that reads a number of the task."""

        def write(f: Function, slow: Callable[[], Word]) -> None:
            f.ret(self._load(f, slow, self._task(f, slow), member, size))

        return write

    def behind(self, pointer: str, member: str) -> Writer:
        """Return the writer of a function that reads an int of a structure that the task points to."""

        def write(f: Function, slow: Callable[[], Word]) -> None:
            there = self._load(f, slow, self._task(f, slow), pointer, _WORD)
            need(f, slow, there)
            f.ret(self._load(f, slow, there, member, _INT))

        return write

    def descends(self, f: Function, slow: Callable[[], Word]) -> None:
        """Write `descends`: swapper, the last ancestor, is its own parent."""
        (wanted,) = f.parameters
        task, left = f.variable(self._task(f, slow)), f.variable(_ANCESTORS)
        with f.loop() as loop:
            here = task.get()
            f.ret_if(f.eq(f.and_(self._load(f, slow, here, "task_struct.tgid", _INT), _PID), wanted), 1)
            parent = self._load(f, slow, here, "task_struct.real_parent", _WORD)
            f.ret_if(f.eq(parent, here), 0)
            loop.leave_if(f.eq(left.get(), 0))
            left.set(f.sub(left.get(), 1))
            task.set(parent)
        f.ret(slow())

    def name(self, f: Function, slow: Callable[[], Word]) -> None:
        """Write `execname`: a copy, because the bytes after the name in the task are not zero."""
        mapped = self._mapped(f, slow, self._task(f, slow), "task_struct.comm", COMM)
        buffer = f.module.symbol("name_buffer")
        for offset in range(0, COMM, _WORD):
            f.store(buffer, f.load(mapped, offset), offset)
        f.ret(buffer)

    def user_pointer(self, f: Function, slow: Callable[[], Word]) -> None:
        """Write `user_pointer`: it uses the page table of the task's mm, not that of the CPU."""
        tables = self._isa.paging.tables
        assert tables is not None
        address, length = f.parameters
        for edge in (address, f.add(address, length)):
            f.ret_if(f.uge(edge, self._isa.kernel_start), 0)
        f.ret_if(f.ugt(length, f.sub(PAGE, f.and_(address, PAGE - 1))), 0)
        mm = self._load(f, slow, self._task(f, slow), "task_struct.mm", _WORD)
        need(f, slow, mm)
        table = f.call(Callee("kernel_pointer"), self._load(f, slow, mm, "mm_struct.pgd", _WORD), PAGE)
        need(f, slow, table)
        ram = f.module.symbol("ram")
        walk = f.module.function("user_walk", 2, local=True)
        write_walk(walk, tables, ram, f.module.symbol("ram_end"))
        f.ret(f.call(walk, f.lshr(f.sub(table, ram), tables.root_shift), address))

    def _task(self, f: Function, slow: Callable[[], Word]) -> Value:
        """Load the address of the current task; Python is called while there is none."""
        words, slots = f.module.symbol("cpu_words"), self._isa.registers.slots
        if self._current:
            mapped = f.call(Callee("kernel_pointer"), self._current, _WORD)
            need(f, slow, mapped)
            task = f.load(mapped)
        else:
            pc = f.load(words, _WORD * slots[self._isa.registers.pc])
            with f.when(f.ult(pc, self._isa.kernel_start), likely=False):
                f.ret(slow())
            task = f.load(words, _WORD * slots[self._register])
        with f.when(f.ult(task, self._isa.kernel_start), likely=False):
            f.ret(slow())
        return task

    def _load(self, f: Function, slow: Callable[[], Word], structure: Word, member: str, size: int) -> Value:
        return f.load(self._mapped(f, slow, structure, member, size), size=size, signed=size == _INT)

    def _mapped(self, f: Function, slow: Callable[[], Word], structure: Word, member: str, size: int) -> Value:
        """Return the address of a member in this process; if it is unknown, Python is called."""
        mapped = f.call(Callee("kernel_pointer"), f.add(structure, self._offset[member]), size)
        need(f, slow, mapped)
        return mapped
