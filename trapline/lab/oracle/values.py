"""The fetch arguments of the oracle's events: the kernel reads them, and so does `trapline.ftrace`.

Source: Linux Documentation/trace/kprobetrace.rst, uprobetracer.rst.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emu.displaced.frame import Frame
from emu.isa.base import Isa
from emu.support.words import BadAddressError
from trapline.ftrace.definition import Definition, parse
from trapline.ftrace.fetch import fetch


@dataclass(slots=True)
class Hit:
    """The state at a hit.  Implements `trapline.ftrace.fetch.Target`."""

    comm: str
    frame: Frame
    read: Callable[[int, int], bytes]
    """Reads memory of the kernel and of the program.  Raises `BadAddressError`."""
    sp: int
    """The stack pointer's distance to that of the kernel's probe: of an instruction between both."""
    stack_pointer: str
    file_base: int = 0
    """The address of the first byte of the program's file."""

    def register(self, name: str) -> int:
        """Return a register."""
        return self.frame.register(name) + (self.sp if name == self.stack_pointer else 0)

    def load(self, address: int, size: int) -> bytes:
        """Read memory.  Raises `BadAddressError`."""
        return self.read(address, size)

    def file_address(self, offset: int) -> int:
        """Return the address of a byte of the program's file."""
        return self.file_base + offset


def definition(isa: Isa, arguments: str, *, returns: bool = False) -> Definition:
    """Return the arguments of an event as `trapline.ftrace` understands them."""
    return parse(f"{'r' if returns else 'p'}:trapline/event /program:0x0 {arguments}", isa)


def values(event: Definition, hit: Hit, isa: Isa) -> str:
    """Return the arguments of an event as the kernel prints them."""
    shown = []
    for argument in event.arguments:
        try:
            value = fetch(argument, hit, isa)
        except BadAddressError:
            value = "0x0"
        shown.append(f"{argument.name}={value}")
    return " ".join(shown)


def registers(isa: Isa) -> list[str]:
    """Return the first three registers of arguments, by the kernel's names."""
    names = {ours: theirs for theirs, ours in isa.linux.probe_registers.items()}
    return [names[name] for name in isa.calling.arguments[:3]]
