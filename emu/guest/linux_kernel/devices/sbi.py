"""The RISC-V supervisor binary interface 2.0: calls of the firmware by `ecall`.

| extension | functions | effect |
| --- | --- | --- |
| 0x10 base | all | version 2.0, implementation "1", and the list of extensions |
| TIME | set_timer | sets the next timer interrupt |
| sPI | send_ipi | raises a software interrupt on the only hart |
| RFNC | all | nothing: there is no other hart |
| SRST | system_reset | ends the run |
| DBCN | all | console: write, read (nothing arrives), write a byte |
| 0x01 | console_putchar | the older console |

Source: RISC-V Supervisor Binary Interface specification 2.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from emu.support.words import WORD_MASK

BASE, PUTCHAR, TIME, IPI, RFENCE, RESET, CONSOLE = (
    0x10, 0x01, 0x54494D45, 0x735049, 0x52464E43, 0x53525354, 0x4442434E,
)  # fmt: skip
_EXTENSIONS: Final = frozenset({BASE, PUTCHAR, TIME, IPI, RFENCE, RESET, CONSOLE})
_VERSION: Final = 2 << 24
_SUCCESS, _NOT_SUPPORTED = 0, -2 & WORD_MASK
# base: spec version, implementation id, its version, probe extension, then three machine ids
_SPEC, _IMPLEMENTATION, _IMPLEMENTATION_VERSION, _PROBE = range(4)
_WRITE, _READ, _WRITE_BYTE = range(3)
# system_reset: its types.
SHUTDOWN: Final = 0


@dataclass(slots=True)
class Sbi:
    """The firmware; its fields are its effects on the machine."""

    send: Callable[[bytes], object]
    """Prints on the console."""
    read_memory: Callable[[int, int], bytes]
    """(physical address, size) -> memory."""
    set_timer: Callable[[int], object]
    """Sets the time, in ticks, of the next timer interrupt."""
    interrupt: Callable[[], object]
    """Raises a software interrupt."""
    reset: Callable[[int], object]
    """Ends the run: type of the reset."""

    def call(self, extension: int, function: int, arguments: tuple[int, ...]) -> tuple[int, int]:
        """Serve a call: a7, a6, and a0 to a5; return a0 and a1: an error and a value."""
        if extension not in _EXTENSIONS:
            return _NOT_SUPPORTED, 0
        if extension == BASE:
            return _SUCCESS, self._base(function, arguments[0])
        if extension == CONSOLE:
            return self._console(function, arguments)
        if extension == TIME:
            self.set_timer(arguments[0])
        elif extension == IPI:
            self.interrupt()
        elif extension == RESET:
            self.reset(arguments[0])
        elif extension == PUTCHAR:
            self.send(bytes((arguments[0] & 0xFF,)))
        return _SUCCESS, 0

    def _base(self, function: int, argument: int) -> int:
        if function == _SPEC:
            return _VERSION
        if function == _PROBE:
            return int(argument in _EXTENSIONS)
        return int(function in {_IMPLEMENTATION, _IMPLEMENTATION_VERSION})

    def _console(self, function: int, arguments: tuple[int, ...]) -> tuple[int, int]:
        if function == _WRITE:
            size, low, high = arguments[:3]
            self.send(self.read_memory(low | high << 64, size))
            return _SUCCESS, size
        if function == _WRITE_BYTE:
            self.send(bytes((arguments[0] & 0xFF,)))
        return (_SUCCESS, 0) if function in {_READ, _WRITE_BYTE} else (_NOT_SUPPORTED, 0)
