"""Listeners at the tracepoints of a Linux kernel, for the providers that are based on them.

A tracepoint is a nop in the code, and out of line calls of the registered functions.

    add       tracepoint_probe_register() is called in the kernel with a function of ours, and with
              the address of the tracepoint as its data; the kernel turns the nops into jumps
    (a hit)   the function begins with a breakpoint, which calls the listeners of the tracepoint
              with the other arguments; the first argument, the data, identifies the tracepoint
    remove    with the last listener tracepoint_probe_unregister() is called

So the kernel's own tracers may use the same tracepoint: the kernel keeps the list of functions,
the static key and the static call.

Source: Linux 6.12 include/linux/tracepoint.h, kernel/tracepoint.c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Final

from emu.displaced.frame import Frame
from emu.engine.hits.hit_steps import ARGUMENTS, Argument, Fire, FireWhen, HitStep, InMemory, Register
from emu.guest.linux_kernel.errors import LinuxKernelError
from emu.guest.linux_kernel.executable import NoSpaceError
from emu.guest.linux_kernel.guest import MODULE, LinuxKernelGuest
from emu.guest.linux_kernel.kernel_calls import KernelCallError, error_name, error_of
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.isa.base import Isa
from emu.support.immutable import immutable
from providers.linux_kernel.text import Fires, Hook, NoPlanError, Text

PREFIX: Final = "__tracepoint_"
# The pointers to tracepoints, in kernels whose lists of them have addresses (__TRACEPOINT_ENTRY).
_POINTER: Final = PREFIX + "ptr_"
_REGISTER, _UNREGISTER = "tracepoint_probe_register", "tracepoint_probe_unregister"


@immutable
class Hit:
    """A hit of a tracepoint as machine code finds it: the function that is called is for all."""

    tracepoint: int
    """Address of its structure, which is in the register `mark`."""
    mark: str
    arguments: tuple[Argument, ...]
    """The locations of the first five."""

    def fire(self, fire: Fire) -> FireWhen:
        """Return the step that fires a probe if this is the tracepoint."""
        return FireWhen(fire, self.mark, self.tracepoint)


@dataclass(frozen=True, slots=True, eq=False)
class Listener:
    """The actions at every hit of a tracepoint."""

    call: Callable[[tuple[int, ...]], None]
    """Takes the tracepoint's arguments."""
    fires: Callable[[Hit], Fires] = lambda _hit: None
    """Describes the same for machine code; None: only Python can do it."""


@dataclass(slots=True, eq=False)
class _Registration:
    tracepoint: int
    """Address of the tracepoint's structure."""
    listeners: list[Listener] = field(default_factory=list)


def tracepoint_name(symbol: str) -> str:
    """Return the name of the tracepoint that a symbol is, "" if it is something else."""
    is_one = symbol.startswith(PREFIX) and not symbol.startswith(_POINTER)
    return symbol.removeprefix(PREFIX) if is_one else ""


def _located(isa: Isa, index: int) -> Register | InMemory:
    """Return where a tracepoint's argument is in our function, behind the data."""
    registers, position = isa.calling.arguments, 1 + index
    if position < len(registers):
        return Register(registers[position])
    return InMemory(isa.registers.sp, isa.calling.stack_arguments + isa.word * (position - len(registers)), isa.word)


def argument(frame: Frame, isa: Isa, index: int) -> int:
    """Return a tracepoint's argument.  Raises `emu.support.words.BadAddressError`."""
    found = _located(isa, index)
    if isinstance(found, Register):
        return frame.register(found.name)
    return frame.stack_word(found.offset // isa.word)


@cache
def _arguments(isa: Isa, first: int) -> tuple[Argument, ...]:
    """Return where machine code finds five arguments."""
    return tuple(_located(isa, index) for index in range(first, first + ARGUMENTS))


def later_arguments(isa: Isa) -> tuple[Argument, ...]:
    """Return where machine code finds a tracepoint's arguments 5 to 9."""
    return _arguments(isa, ARGUMENTS)


class Registrations:
    """The tracepoints of one kernel that are switched on; `report` takes what goes wrong."""

    def __init__(self, guest: LinuxKernelGuest, text: Text, report: Callable[[str], object]) -> None:
        self._guest = guest
        self._text = text
        self._report = report
        self._symbols = guest.facts.symbols
        self._on: dict[tuple[str, str], _Registration] = {}
        self._hook = Hook(self._hit, self._fires)

    def has(self, name: str) -> bool:
        """Return whether the kernel has a tracepoint of this name."""
        return self._symbols.get(PREFIX + name) is not None

    def add(self, name: str, listener: Listener, module: str = MODULE) -> bool:
        """Call a listener at every hit of a module's tracepoint.

        False: it cannot be switched on, which is reported.
        """
        known = self._on.get((module, name))
        if known is None:
            known = _Registration(self._address(name, module))
            try:
                self._switch_on(module, name, known)
            except (KernelCallError, LinuxKernelError, NoSpaceError, NoPlanError) as error:
                self._report(f"the tracepoint {name} cannot be switched on: {error}")
                return False
        known.listeners.append(listener)
        self._text.changed()
        return True

    def remove(self, name: str, listener: Listener, module: str = MODULE) -> None:
        """Remove a listener; with the last one the tracepoint is switched off."""
        known = self._on[module, name]
        known.listeners.remove(listener)
        self._text.changed()
        if known.listeners:
            return
        try:
            # With its module, or with the machine, the tracepoint has gone.
            if self._address(name, module) and not self._guest.machine.off:
                self._call(_UNREGISTER, known.tracepoint)
        except (KernelCallError, LinuxKernelError) as error:
            if not self._guest.machine.off:
                self._report(f"the tracepoint {name} stays switched on: {error}")
        self._forget(module, name)

    # -- switching on and off

    def _address(self, name: str, module: str) -> int:
        """Return the address of a tracepoint's structure; 0: its module has been removed."""
        if module == MODULE:
            return self._symbols.address(PREFIX + name)
        found = self._guest.modules.named(module)
        return 0 if found is None else found.variables.get(PREFIX + name, 0)

    def _switch_on(self, module: str, name: str, made: _Registration) -> None:
        if not made.tracepoint:
            raise KernelCallError("its module has been removed")
        if not self._on:
            self._text.add(self._breakpoint, self._hook)
        self._on[module, name] = made
        try:
            self._call(_REGISTER, made.tracepoint)
        except (KernelCallError, LinuxKernelError):
            self._forget(module, name)
            raise

    def _forget(self, module: str, name: str) -> None:
        del self._on[module, name]
        if not self._on:
            self._text.remove(self._breakpoint, self._hook)

    def _call(self, function: str, tracepoint: int) -> None:
        """Register or unregister our function.  Raises `KernelCallError`, `LinuxKernelError`."""
        refused = error_of(self._guest.calls.call(function, tracepoint, self._function, tracepoint))
        if refused:
            raise KernelCallError(f"the kernel refuses it ({error_name(refused)})")

    @cached_property
    def _function(self) -> int:
        """The address of the function that the kernel calls, which does nothing.

        Raises `NoSpaceError`.
        """
        code, memory = BOARDS[self._guest.isa.name].callback, self._guest.executable
        content = code.landing + code.nop + code.zero
        address = memory.take(len(content))
        memory.fill(address, content)
        return address

    @property
    def _breakpoint(self) -> int:
        """The address of the breakpoint in it."""
        return self._function + len(BOARDS[self._guest.isa.name].callback.landing)

    # -- hits

    def _hit(self, frame: Frame) -> None:
        isa = self._text.isa
        mark = frame.register(isa.calling.arguments[0])
        known = next((one for one in self._on.values() if one.tracepoint == mark), None)
        if known is not None:
            arguments = tuple(argument(frame, isa, index) for index in range(ARGUMENTS))
            for listener in tuple(known.listeners):
                listener.call(arguments)

    def _fires(self) -> Fires:
        """Describe a hit for machine code."""
        isa = self._text.isa
        mark, arguments = isa.calling.arguments[0], _arguments(isa, 0)
        steps: list[HitStep] = []
        for known in self._on.values():
            hit = Hit(known.tracepoint, mark, arguments)
            for listener in known.listeners:
                fires = listener.fires(hit)
                if fires is None:
                    return None
                steps += fires
        return steps
