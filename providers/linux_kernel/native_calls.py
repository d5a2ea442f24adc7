"""The system calls that tasks of a Linux kernel are in, and the machine code that keeps them.

A task is known by its kernel stack, which has a fixed alignment: the stack pointer is in it at the
entry of a call, and at its end.  Each stack has one slot in a table; a task whose slot another one
has is kept by Python alone.

Each function of machine code is a step of a hit (`emu.engine.hits.hit_steps.Call`), with the
address of `CallWords`.

| function | effect |
| --- | --- |
| `entered(words)` | notes that a task is in a call, and fires the probe of its entry |
| `done(words)` | fires the probe of the return |

Python handles a hit if another task has the slot in the table, or Python runs the enablings.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Final, NamedTuple

from emu.engine.hits.firing_code import ASK, GO_ON
from emu.engine.hits.tracepoint_blocks import Firing
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.engine.state import HANDLED
from emu.guest.linux_kernel.abi import THREAD_SIZE, CallPath, KernelAbi
from emu.guest.linux_kernel.guest import LinuxKernelGuest
from emu.isa.base import Isa
from emu.native.block import Block
from emu.native.builder import Function, Module
from emu.native.link import Linked
from emu.native.operations import Value
from emu.support.words import WORD_MASK

# Slots of the table, a power of two.
SLOTS: Final = 1 << 10
# A number larger than that of the calls of any ABI.
MOST_CALLS: Final = 600


class OpenCall(Block):
    """A call that has not ended."""

    stack: int
    """The lowest address of the task's kernel stack; 0: this slot is free."""
    number: int
    registers: int
    """Address of its struct pt_regs."""


class CallWords(Block):
    """The data of machine code."""

    open: int
    """Address of the table of `OpenCall`s."""
    entries: int
    """Address of the firings at entries, a word for each number of a call; 0: none."""
    returns: int
    """Address of the firings at returns, a word for each number of a call; 0: none."""
    entering: int
    """Whether a probe at an entry fires."""


class Entered(NamedTuple):
    """A call that has been entered."""

    number: int
    registers: int


class OpenCalls:
    """The calls of one kernel."""

    def __init__(self) -> None:
        self._table = (OpenCall * SLOTS)()
        self._others: dict[int, Entered] = {}
        """By stack: those without a slot in the table."""
        self.entries = (ctypes.c_uint64 * MOST_CALLS)()
        self.returns = (ctypes.c_uint64 * MOST_CALLS)()
        self.words = CallWords(
            ctypes.addressof(self._table), ctypes.addressof(self.entries), ctypes.addressof(self.returns)
        )

    def enter(self, sp: int, entered: Entered) -> None:
        """Note that a task has entered a call, by its stack pointer."""
        stack, slot = self._slot(sp)
        if slot.stack in (0, stack):
            slot.stack, slot.number, slot.registers = stack, *entered
        else:
            self._others[stack] = entered

    def leave(self, sp: int) -> Entered | None:
        """Return the call that a task leaves, None if its entry was not seen."""
        stack, slot = self._slot(sp)
        if slot.stack == stack:
            slot.stack = 0
            return Entered(slot.number, slot.registers)
        return self._others.pop(stack, None)

    def clear(self) -> None:
        """Forget all calls."""
        ctypes.memset(self._table, 0, ctypes.sizeof(self._table))
        self._others.clear()

    def _slot(self, sp: int) -> tuple[int, OpenCall]:
        return sp & -THREAD_SIZE, self._table[sp // THREAD_SIZE % SLOTS]


# The arguments of a call, by the names under which a firing reads them.
ARGUMENTS: Final = tuple(f"%argument {number} of a system call" for number in range(6))
LARGEST_ERROR: Final = 4095
_WORD: Final = 8
_INT_BITS: Final = 32
# A return has the result as its first two arguments.
_RESULTS: Final = 2
_OPEN: Final = ctypes.sizeof(OpenCall)


class NativeCalls:
    """The functions, linked for one kernel: the addresses of `entered` and `done`."""

    def __init__(self, guest: LinuxKernelGuest, path: CallPath) -> None:
        engine, tasks = guest.engine, guest.tasks
        tracepoints = engine.tracepoints
        symbols = {f"argument{number}": tracepoints.temporary(name) for number, name in enumerate(ARGUMENTS)} | {
            "fire": tracepoints.fire,
            "reach": tracepoints.reach,
            "env": engine.cpu.env,
            "error": tasks.error_address,
        }
        self._linked = Linked(_machine_code(guest.isa, tasks.abi, path), symbols)
        self.entered, self.done = map(self._linked.address, ("entered", "done"))


@cache
def _machine_code(isa: Isa, abi: KernelAbi, path: CallPath) -> bytes:
    """Return the functions as an object file."""
    code = _Code(isa, abi, path)
    code.write_entered()
    code.write_done()
    return code.module.compiled("system calls")


class _Code:
    """Writes the functions into `module`."""

    def __init__(self, isa: Isa, abi: KernelAbi, path: CallPath) -> None:
        self.module = Module()
        self._isa = isa
        self._abi = abi
        self._path = path

    def write_entered(self) -> None:
        """Write `entered`."""
        f = self.module.function("entered", 2)
        words, core = f.parameters
        first, second = self._isa.calling.arguments[:2]
        registers = self._register(f, first)
        mapped = self._registers(f, registers)
        by_name = self._path.number
        number = self._field(f, mapped, by_name) if by_name else f.and_(self._register(f, second), (1 << _INT_BITS) - 1)
        stack, entry = self._open(f, words)
        taken = f.load(entry, OpenCall.offset("stack"))
        f.ret_if(f.both(f.ne(taken, 0), f.ne(taken, stack)), ASK, likely=False)
        firing = self._firing(f, f.load(words, CallWords.offset("entries")), number)
        for name, value in {"stack": stack, "number": number, "registers": registers}.items():
            f.store(entry, value, OpenCall.offset(name))
        f.store(self.module.symbol("error"), 0)
        f.ret_if(f.eq(firing, 0), GO_ON)
        for index, name in enumerate(self._path.arguments[: len(ARGUMENTS)]):
            f.store(self.module.symbol(f"argument{index}"), self._field(f, mapped, name))
        entering = CallWords.offset("entering")
        f.store(words, 1, entering)
        fired = f.call(self.module.symbol("fire"), firing, core)
        f.store(words, 0, entering)
        f.ret(f.select(f.eq(fired, 0), HANDLED, GO_ON))

    def write_done(self) -> None:
        """Write `done`."""
        f = self.module.function("done", 2)
        words, core = f.parameters
        stack, entry = self._open(f, words)
        f.ret_if(f.ne(f.load(entry, OpenCall.offset("stack")), stack), ASK, likely=False)
        number = f.load(entry, OpenCall.offset("number"))
        firing = self._firing(f, f.load(words, CallWords.offset("returns")), number)
        mapped = self._registers(f, f.load(entry, OpenCall.offset("registers")))
        f.store(entry, 0, OpenCall.offset("stack"))
        f.ret_if(f.eq(firing, 0), GO_ON)
        result = self._field(f, mapped, self._path.result)
        failed = f.ugt(result, WORD_MASK - LARGEST_ERROR)
        error = self.module.symbol("error")
        f.store(error, f.select(failed, f.sub(0, result), 0))
        value = f.select(failed, WORD_MASK, f.ashr(f.shl(result, _INT_BITS), _INT_BITS))
        for index in range(len(ARGUMENTS)):
            f.store(self.module.symbol(f"argument{index}"), value if index < _RESULTS else 0)
        fired = f.call(self.module.symbol("fire"), firing, core)
        f.store(error, 0)
        f.ret(f.select(f.eq(fired, 0), HANDLED, GO_ON))

    def _register(self, f: Function, name: str) -> Value:
        return f.load(self.module.symbol("env"), _WORD * self._isa.registers.slots[name])

    def _registers(self, f: Function, address: Value) -> Value:
        """Return the address in this process of a struct pt_regs, which must be in one page."""
        size = _WORD * len(self._abi.pt_regs)
        f.ret_if(f.ugt(f.and_(address, PAGE - 1), PAGE - size), ASK, likely=False)
        mapped = f.call(self.module.symbol("reach"), address, int(Access.READ))
        f.ret_if(f.eq(mapped, 0), ASK, likely=False)
        return mapped

    def _field(self, f: Function, mapped: Value, name: str) -> Value:
        return f.load(mapped, _WORD * self._abi.pt_regs.index(name))

    def _open(self, f: Function, words: Value) -> tuple[Value, Value]:
        """Return the stack of the current task, and its slot in the table."""
        sp = self._register(f, self._isa.registers.sp)
        number = f.and_(f.lshr(sp, THREAD_SIZE.bit_length() - 1), SLOTS - 1)
        table = f.load(words, CallWords.offset("open"))
        return f.and_(sp, -THREAD_SIZE), f.add(table, f.mul(number, _OPEN))

    def _firing(self, f: Function, table: Value, number: Value) -> Value:
        """Return the address of a call's firing, 0 if there is none; Python may have to run it."""
        f.ret_if(f.uge(number, MOST_CALLS), ASK, likely=False)
        firing = f.load(f.add(table, f.mul(number, _WORD)))
        with f.when(f.ne(firing, 0)):
            count = f.load(f.load(firing, Firing.offset("runs")))
            f.ret_if(f.eq(count, 0), ASK, likely=False)
        return firing
