"""The UART 16550A: the console of the RISC-V and x86-64 machines (x86-64: port 0x3f8, interrupt 4).

Sending takes no time: a written byte is printed immediately.  Linux calls the driver 8250.

| offset | read | written |
| --- | --- | --- |
| 0 | RBR: the next byte received; with DLAB the divisor | THR: a byte to send; with DLAB the divisor |
| 1 | IER: enabled interrupts | the same; with DLAB the divisor |
| 2 | IIR: the interrupt that is pending | FCR: FIFO control |
| 3 | LCR: format, and DLAB | the same |
| 4 | MCR: modem control; OUT2 enables interrupts on a PC | the same |
| 5 | LSR: line status | nothing |
| 6 | MSR: modem status | nothing |
| 7 | SCR: scratch | the same |

Source: National Semiconductor PC16550D data sheet, section 8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.guest.linux_kernel.devices.device import Device, Line, unconnected

_DATA, _IER, _IIR, _LCR, _MCR, _LSR, _MSR, _SCR = range(8)
_DLAB: Final = 0x80
_WANT_RECEIVED, _WANT_EMPTY = 1, 2
# IIR: FIFOs are on; no interrupt, transmitter empty, data available.
_FIFOS, _NONE, _EMPTY, _RECEIVED = 0xC0, 1, 2, 4
# LSR: transmitter and its holding register are empty; data are ready.
_IDLE, _READY = 0x60, 1
# MSR: clear to send, data set ready, carrier detected.
_CONNECTED: Final = 0xB0
_OUT2: Final = 8


class Ns16550(Device):
    """A UART.

    `send` takes the sent bytes; `gated`: MCR's OUT2 enables interrupts, as on a PC.
    """

    kept = ("received", "_ier", "_lcr", "_mcr", "_scratch", "_divisor", "_emptied")

    def __init__(self, send: Callable[[bytes], object], line: Line = unconnected, *, gated: bool = False) -> None:
        self.received = b""
        """Bytes that wait for the driver."""
        self._send = send
        self._line = line
        self._gated = gated
        self._ier = self._lcr = self._mcr = self._scratch = 0
        self._divisor = 1
        self._emptied = False
        """Whether "transmitter empty" is pending: it has become empty, and IIR was not read since."""

    def receive(self, data: bytes) -> None:
        """Receive bytes."""
        self.received += data
        self._update()

    def _pending(self) -> int:
        if self._ier & _WANT_RECEIVED and self.received:
            return _RECEIVED
        return _EMPTY if self._ier & _WANT_EMPTY and self._emptied else _NONE

    def _update(self) -> None:
        self._line(self._pending() != _NONE and (not self._gated or bool(self._mcr & _OUT2)))

    def read(self, offset: int, size: int) -> int:  # noqa: ARG002  (registers are a byte)
        """Return a register."""
        value = 0
        if offset == _DATA:
            value = self._divisor & 0xFF if self._lcr & _DLAB else self._receive()
        elif offset == _IER:
            value = self._divisor >> 8 if self._lcr & _DLAB else self._ier
        elif offset == _IIR:
            value = _FIFOS | self._pending()
            if value == _FIFOS | _EMPTY:
                self._emptied = False
        elif offset == _LSR:
            value = _IDLE | (_READY if self.received else 0)
        else:
            value = {_LCR: self._lcr, _MCR: self._mcr, _MSR: _CONNECTED, _SCR: self._scratch}.get(offset, 0)
        self._update()
        return value

    def _receive(self) -> int:
        first, self.received = self.received[:1], self.received[1:]
        return first[0] if first else 0

    def write(self, offset: int, size: int, value: int) -> None:  # noqa: ARG002  (registers are a byte)
        """Write a register."""
        value &= 0xFF
        if offset in {_DATA, _IER} and self._lcr & _DLAB:
            self._divisor = self._divisor & 0xFF00 | value if offset == _DATA else self._divisor & 0xFF | value << 8
        elif offset == _DATA:
            self._send(bytes((value,)))
            self._emptied = True
        elif offset == _IER:
            self._emptied = self._emptied or bool(value & _WANT_EMPTY and not self._ier & _WANT_EMPTY)
            self._ier = value & 0xF
        elif offset == _LCR:
            self._lcr = value
        elif offset == _MCR:
            self._mcr = value
        elif offset == _SCR:
            self._scratch = value
        self._update()
