"""Arm's UART PL011: the console of the AArch64 machine.

Sending takes no time: a written byte is printed immediately.

| offset | register |
| --- | --- |
| 0x000 | DR: read the next byte received, write a byte to send |
| 0x018 | FR: flags: transmit FIFO empty, receive FIFO empty |
| 0x024, 0x028, 0x02c, 0x030, 0x034 | IBRD, FBRD, LCR_H, CR, IFLS: kept, without effect |
| 0x038 | IMSC: enabled interrupts |
| 0x03c | RIS: interrupts that are pending |
| 0x040 | MIS: those of them that are enabled |
| 0x044 | ICR: write ones to clear pending ones |
| 0xfe0 to 0xffc | the identification of the part |

Source: Arm DDI 0183G, chapter 3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.guest.linux_kernel.devices.device import Device, Line, unconnected

_DR, _FR, _IMSC, _RIS, _MIS, _ICR, _ID = 0x000, 0x018, 0x038, 0x03C, 0x040, 0x044, 0xFE0
_TRANSMIT_EMPTY, _RECEIVE_EMPTY = 0x80, 0x10
# Interrupts: receive, transmit, receive timeout.
_RECEIVE, _TRANSMIT, _TIMEOUT = 0x10, 0x20, 0x40
_IDENTIFICATION: Final = (0x11, 0x10, 0x24, 0x00, 0x0D, 0xF0, 0x05, 0xB1)
# The same as the word that a device tree may have (arm,primecell-periphid).
PERIPHERAL_ID: Final = 0x0024_1011


class Pl011(Device):
    """One UART; `send` takes the sent bytes."""

    kept = ("received", "_pending", "_others")

    def __init__(self, send: Callable[[bytes], object], line: Line = unconnected) -> None:
        self.received = b""
        """Bytes that wait for the driver."""
        self._send = send
        self._line = line
        self._pending = 0
        self._others: dict[str, int] = {}
        """Registers that are only kept, by their offset in hexadecimal."""

    def receive(self, data: bytes) -> None:
        """Receive bytes."""
        self.received += data
        self._update()

    def _update(self) -> None:
        if self.received:
            self._pending |= _RECEIVE | _TIMEOUT
        self._line(self._pending & self._other(_IMSC) != 0)

    def _other(self, offset: int) -> int:
        return self._others.get(f"{offset:x}", 0)

    def read(self, offset: int, size: int) -> int:  # noqa: ARG002  (registers are words)
        """Return a register."""
        if offset == _DR:
            first, self.received = self.received[:1], self.received[1:]
            if not self.received:
                self._pending &= ~(_RECEIVE | _TIMEOUT)
            self._update()
            return first[0] if first else 0
        if offset == _FR:
            return _TRANSMIT_EMPTY | (0 if self.received else _RECEIVE_EMPTY)
        if offset == _RIS:
            return self._pending
        if offset == _MIS:
            return self._pending & self._other(_IMSC)
        if offset >= _ID:
            return _IDENTIFICATION[(offset - _ID) // 4]
        return self._other(offset)

    def write(self, offset: int, size: int, value: int) -> None:  # noqa: ARG002  (registers are words)
        """Write a register."""
        if offset == _DR:
            self._send(bytes((value & 0xFF,)))
            self._pending |= _TRANSMIT
        elif offset == _ICR:
            self._pending &= ~value
        else:
            self._others[f"{offset:x}"] = value
        self._update()
