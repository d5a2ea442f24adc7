"""Calls of functions of a stopped kernel, and functions of Trapline that the kernel calls.

`call` needs a CPU that has stopped in the kernel, in the context of a process that may sleep: at
the entry of a function such as `finalize_exec`.  The registers are set as for a call, with the
address of a breakpoint as the return address; the kernel runs, also other processes if the function
sleeps, until it hits the breakpoint; then the registers are restored.

`callback` is the address of a function that returns 0.  A breakpoint in it calls Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from emu.engine.errors import EngineError
from emu.frame import Frame
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.words import WORD_MASK

if TYPE_CHECKING:
    from emu.guest.linux_kernel.guest import LinuxKernelGuest

_OWNER: Final = "kernel calls"
_STACK_ALIGNMENT: Final = 16
# Error numbers that a kernel's function returns are below this (MAX_ERRNO).
_MOST_ERRNO: Final = 4095


class KernelCallError(Exception):
    """A function of the kernel cannot be called; the message says why."""


def error_of(result: int) -> int:
    """Return the error number in a result, as an int or a pointer; 0: none."""
    for bits in (64, 32):
        number = -(result & (1 << bits) - 1) & (1 << bits) - 1
        if 0 < number <= _MOST_ERRNO:
            return number
    return 0


class KernelCalls:
    """Calls into one kernel, and from it.

    `hit(first, second)` is called with the two arguments of each call of `callback`; it returns
    whether the call is to be met again when the machine continues.
    """

    def __init__(self, guest: LinuxKernelGuest, hit: Callable[[int, int], bool]) -> None:
        """Write the code.  Raises `emu.guest.linux_kernel.executable.NoRoomError`."""
        self._guest = guest
        self._called = hit
        isa, code = guest.isa, BOARDS[guest.isa.name].callback
        content = code.landing + code.nop + code.rest
        self._back = guest.executable.take(len(content))
        self.callback = guest.executable.take(len(content))
        """The address of the function that the kernel may call."""
        guest.executable.fill(self._back, content)
        guest.executable.fill(self.callback, content)
        self._met = self.callback + len(code.landing)
        self._after = self._met + len(code.nop)
        self._returned = False
        for address in (self._back, self._met):
            patch = next(one for one in reversed(isa.traps.breakpoints) if len(one) <= len(code.nop))
            guest.patcher.install(guest.patcher.create(address, patch, _OWNER))
        guest.traps.add(self._invop)
        general = set(isa.registers.slots) - {isa.registers.pc}
        self._registers = [name for name in guest.tasks.abi.pt_regs if name in general]

    def _invop(self, address: int, frame: Frame, _extra: int) -> int:
        if address == self._back:
            self._returned = True
            self._guest.machine.interrupt()
            frame.go_to(address)
            return 1
        if address != self._met:
            return 0
        first, second = frame.arguments()[:2]
        frame.go_to(self._met if self._called(first, second) else self._after)
        return 1

    def call(self, name: str, *arguments: int) -> int:
        """Call a function of the kernel; return its result.

        Raises `KernelCallError` if the kernel has no such function, and
        `emu.guest.linux_kernel.errors.LinuxKernelError`.
        """
        guest = self._guest
        engine, isa = guest.engine, guest.isa
        function = guest.facts.symbols.get(name)
        if function is None:
            raise KernelCallError(f"this kernel has no function {name}()")
        if not isa.is_kernel_address(engine.pc):
            raise EngineError(f"{name}() was called while a program runs")
        kept = {one: engine.read_register(one) for one in self._registers}
        flags = engine.read_register(isa.traps.flags) if isa.traps.flags else 0
        pc = engine.pc
        sp = kept[isa.registers.sp] & -_STACK_ALIGNMENT
        for register, value in zip(isa.calling.arguments, arguments, strict=False):
            engine.write_register(register, value & WORD_MASK)
        if isa.registers.link:
            engine.write_register(isa.registers.link, self._back)
        else:
            sp -= isa.word
            engine.store(sp, isa.word, self._back)
        engine.write_register(isa.registers.sp, sp)
        engine.pc = function.value
        self._returned = False
        while not self._returned and not guest.machine.off:
            guest.machine.run(None)
        result = engine.read_register(isa.calling.results[0])
        for register, value in kept.items():
            engine.write_register(register, value)
        if isa.traps.flags:
            engine.write_register(isa.traps.flags, flags)
        engine.pc = pc
        return result
