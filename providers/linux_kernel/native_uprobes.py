"""Hits of uprobes in machine code: the handler of a consumer, as `uprobes` has it.

`hit(words, core)` is a step of the breakpoint in the callback (`emu.engine.hits.hit_steps.Call`).
It finds the consumer's number, copies the registers of the program to temporaries, and fires the
probes of the offset.  Their context is not that of the CPU, which executes the kernel: what needs
registers and stacks asks Python (`CoreWord.ASIDE`), but for later arguments of functions.

Python handles a hit in another address space or at another address, of an offset that it has not
described yet, and if Python runs one of the enablings.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Final

from emu.displaced.cpu_core import CoreWord
from emu.displaced.frame import Frame
from emu.engine.hits.firing_code import ASK, GO_ON
from emu.engine.hits.hit_steps import Fire
from emu.engine.hits.tracepoint_blocks import Firing
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.engine.state import HANDLED
from emu.guest.linux_kernel.abi import KernelAbi, of_program
from emu.guest.linux_kernel.guest import LinuxKernelGuest
from emu.guest.linux_kernel.kernel_calls import KEY
from emu.isa.base import Isa
from emu.native.block import Block
from emu.native.builder import Function, Module
from emu.native.link import Linked
from emu.native.operations import Value, Word
from providers.linux_kernel.consumers import NUMBER

_WORD: Final = 8
_MM: Final = "task_struct.mm"
# The most consumers that machine code serves.
_SLOTS: Final = 1 << 14


class _Slot(Block):
    """An offset that is watched, by the number of its consumer."""

    pc: int
    """0: Python serves it."""
    firings: int
    """Address of the addresses of its firings; the last one is 0."""


class _Words(Block):
    """The argument of `hit`."""

    slots: int


_SLOT: Final = ctypes.sizeof(_Slot)


class NativeUprobes:
    """The hits of one kernel's uprobes; `function` and `argument` are those of the step."""

    def __init__(self, guest: LinuxKernelGuest, frame: Frame) -> None:
        """`frame` is the context of the hit for Python."""
        self._guest = guest
        self._frame = frame
        self._slots = (_Slot * _SLOTS)()
        self._words = _Words(ctypes.addressof(self._slots))
        self._kept: dict[int, object] = {}
        tracepoints, tasks, abi = guest.engine.tracepoints, guest.tasks, guest.tasks.abi
        symbols = {_symbol(name): tracepoints.temporary(of_program(name)) for name in filter(None, abi.pt_regs)}
        symbols |= {"fire": tracepoints.fire, "reach": tracepoints.reach, "env": guest.engine.cpu.env}
        code = _machine_code(guest.isa, abi, tasks.variable, tasks.offsets[_MM])
        self._linked = Linked(code, symbols)
        self.function, self.argument = self._linked.address("hit"), self._words.address

    def knows(self, number: int) -> bool:
        """Return whether machine code serves the hits of a consumer, by its number."""
        return number >= _SLOTS or bool(self._slots[number].pc)

    def set(self, number: int, pc: int, fires: Sequence[Fire]) -> None:
        """Let machine code fire probes at every hit of a consumer, at an address of the program."""
        tracepoints, core = self._guest.engine.tracepoints, self._guest.traps.core
        firings = [tracepoints.lasting(core, self._frame, fire) for fire in fires]
        for one in firings:
            one.trap = 0
        addresses = (ctypes.c_uint64 * (len(firings) + 1))(*(one.address for one in firings))
        self._kept[number] = firings, addresses
        slot = self._slots[number]
        slot.firings, slot.pc = ctypes.addressof(addresses), pc

    def forget(self, number: int) -> None:
        """Let Python serve the hits of a consumer."""
        if number < _SLOTS:
            self._slots[number].pc = 0


def _symbol(register: str) -> str:
    return f"program_{register}"


def _register(f: Function, isa: Isa, name: str) -> Value:
    return f.load(f.module.symbol("env"), _WORD * isa.registers.slots[name])


def _reach(f: Function, address: Word, offset: int) -> Value:
    """Return the host's address of a kernel word; if it is out of reach, Python serves the hit."""
    mapped = f.call(f.module.symbol("reach"), f.add(address, offset), int(Access.READ))
    f.ret_if(f.eq(mapped, 0), ASK, likely=False)
    return mapped


@contextmanager
def _each(f: Function, firings: Value) -> Iterator[Value]:
    """Execute the code of the `with` block for each firing of a list."""
    at = f.variable(firings)
    with f.loop() as loop:
        firing = f.load(at.get())
        loop.leave_if(f.eq(firing, 0))
        yield firing
        at.set(f.add(at.get(), _WORD))


@cache
def _machine_code(isa: Isa, abi: KernelAbi, variable: int, mm: int) -> bytes:
    """Return `hit` as an object file.

    `variable` is the address of the variable with the current task, 0: a register has it; `mm` the
    offset of its address space.
    """
    module = Module()
    f = module.function("hit", 2)
    words, core = f.parameters
    first, second = isa.calling.arguments[:2]
    keys = _reach(f, _register(f, isa, first), KEY)
    number = f.load(keys, NUMBER - KEY)
    f.ret_if(f.uge(number, _SLOTS), ASK, likely=False)
    slot = f.add(f.load(words, _Words.offset("slots")), f.mul(number, _SLOT))
    pc = f.load(slot, _Slot.offset("pc"))
    f.ret_if(f.eq(pc, 0), ASK, likely=False)
    task = f.load(_reach(f, variable, 0)) if variable else _register(f, isa, abi.current)
    f.ret_if(f.ne(f.load(_reach(f, task, mm)), f.load(keys)), ASK, likely=False)
    address = _register(f, isa, second)
    f.ret_if(f.ugt(f.and_(address, PAGE - 1), PAGE - _WORD * len(abi.pt_regs)), ASK, likely=False)
    registers = _reach(f, address, 0)
    f.ret_if(f.ne(f.load(registers, _WORD * abi.pt_regs.index(isa.registers.pc)), pc), ASK, likely=False)
    firings = f.load(slot, _Slot.offset("firings"))
    with _each(f, firings) as firing:
        f.ret_if(f.eq(f.load(f.load(firing, Firing.offset("runs"))), 0), ASK, likely=False)
    for index, name in enumerate(abi.pt_regs):
        if name:
            f.store(module.symbol(_symbol(name)), f.load(registers, _WORD * index))
    with _each(f, firings) as firing:
        f.store(core, firing, _WORD * CoreWord.ASIDE)
        fired = f.call(module.symbol("fire"), firing, core)
        f.store(core, 0, _WORD * CoreWord.ASIDE)
        f.ret_if(f.eq(fired, 0), HANDLED, likely=False)
    f.ret(GO_ON)
    return module.compiled("uprobes")
