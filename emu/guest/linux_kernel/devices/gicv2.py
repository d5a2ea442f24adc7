"""Arm's generic interrupt controller, version 2, for one CPU and 64 interrupts.

Interrupts 0 to 15 are software's (SGI), 16 to 31 the CPU's own (PPI), from 32 on the devices'
(SPI).  All except the software's are level-sensitive; the lowest number is served first, whatever
the priorities are.

| distributor | register |
| --- | --- |
| 0x004 | TYPER: number of interrupts, number of CPUs |
| 0x100, 0x180 | ISENABLER, ICENABLER: write ones to enable, to disable |
| 0x200, 0x280 | ISPENDR, ICPENDR |
| 0x300, 0x380 | ISACTIVER, ICACTIVER |
| 0x800 | ITARGETSR: all interrupts go to the only CPU |
| 0xf00 | SGIR: raise a software interrupt |
| others | kept, without effect: control, groups, priorities, configuration |

| CPU interface | register |
| --- | --- |
| 0x00c | IAR: acknowledge the pending interrupt; 1023 if there is none |
| 0x010 | EOIR: end of the interrupt |
| 0x014 | RPR: running priority: idle |
| 0x018 | HPPIR: 1023 |
| 0x0fc | IIDR |
| 0x1000 | DIR: deactivate |
| others | kept, without effect: control, priority mask, binary point |

Source: Arm IHI 0048B, chapter 4.
"""

from __future__ import annotations

from typing import Final

from emu.guest.linux_kernel.devices.device import Device, Line, unconnected

DISTRIBUTOR_SIZE, INTERFACE_SIZE = 0x1000, 0x2000
_SPURIOUS: Final = 1023
_TYPER, _TARGETS, _SGIR = 0x004, 0x800, 0xF00
_ENABLE, _DISABLE, _PEND, _UNPEND, _ACTIVATE, _DEACTIVATE = 0x100, 0x180, 0x200, 0x280, 0x300, 0x380
_IAR, _EOIR, _RPR, _HPPIR, _IIDR, _DIR = 0x00C, 0x010, 0x014, 0x018, 0x0FC, 0x1000
_IDLE_PRIORITY: Final = 0xFF
# GIC-400 of Arm.
_IDENTITY: Final = 0x0202_143B
_BYTES: Final = 8


class Gicv2(Device):
    """The distributor; `interface` is the CPU's."""

    kept = ("_levels", "_pended", "_enabled", "_active", "_others")

    def __init__(self, line: Line = unconnected) -> None:
        self._line = line
        self._levels = self._pended = self._enabled = self._active = 0
        """One bit for each interrupt: its line, pending by software, enabled, being served."""
        self._others: dict[str, int] = {}
        """Registers that are only kept, by their offset in hexadecimal."""
        self.interface = _Interface(self)

    def source(self, number: int) -> Line:
        """Return the line of an interrupt."""

        def line(level: bool) -> None:
            self._levels = self._levels & ~(1 << number) | level << number
            self.update()

        return line

    def _waiting(self) -> int:
        return (self._levels | self._pended) & self._enabled & ~self._active

    def update(self) -> None:
        """Set the CPU's line: whether an interrupt is pending."""
        self._line(self._waiting() != 0)

    def take(self) -> int:
        """Return the interrupt to be served, and make it active; 1023: there is none."""
        waiting = self._waiting()
        if not waiting:
            return _SPURIOUS
        number = (waiting & -waiting).bit_length() - 1
        self._active |= 1 << number
        self._pended &= ~(1 << number)
        self.update()
        return number

    def finish(self, number: int) -> None:
        """Note that an interrupt has been served."""
        self._active &= ~(1 << (number & 0x3F))
        self.update()

    def read(self, offset: int, size: int) -> int:
        """Return a register."""
        mask = (1 << 8 * size) - 1
        if offset == _TYPER:
            return 1  # 64 interrupts, one CPU
        if _TARGETS <= offset < _TARGETS + 64:
            return 0x0101_0101 & mask
        for first, second, bits in (
            (_ENABLE, _DISABLE, self._enabled),
            (_PEND, _UNPEND, self._levels | self._pended),
            (_ACTIVATE, _DEACTIVATE, self._active),
        ):
            for base in (first, second):
                if base <= offset < base + _BYTES:
                    return bits >> 8 * (offset - base) & mask
        return self.other(offset)

    def write(self, offset: int, size: int, value: int) -> None:  # noqa: ARG002  (the bits say it)
        """Write a register."""
        base = offset & ~0x7F
        bits = value << 8 * (offset - base)
        if offset == _SGIR:
            self._pended |= 1 << (value & 15)
        elif offset - base >= _BYTES:
            self.keep(offset, value)
        elif base == _ENABLE:
            self._enabled |= bits
        elif base == _DISABLE:
            self._enabled &= ~bits
        elif base == _PEND:
            self._pended |= bits
        elif base == _UNPEND:
            self._pended &= ~bits
        elif base == _ACTIVATE:
            self._active |= bits
        elif base == _DEACTIVATE:
            self._active &= ~bits
        else:
            self.keep(offset, value)
        self.update()

    def other(self, offset: int) -> int:
        """Return a register that has no effect."""
        return self._others.get(f"{offset:x}", 0)

    def keep(self, offset: int, value: int) -> None:
        """Write a register that has no effect."""
        self._others[f"{offset:x}"] = value


class _Interface(Device):
    """The CPU's interface; its state is the distributor's."""

    def __init__(self, gic: Gicv2) -> None:
        self._gic = gic

    def read(self, offset: int, size: int) -> int:  # noqa: ARG002  (registers are words)
        """Return a register."""
        if offset == _IAR:
            return self._gic.take()
        fixed = {_RPR: _IDLE_PRIORITY, _HPPIR: _SPURIOUS, _IIDR: _IDENTITY}
        return fixed[offset] if offset in fixed else self._gic.other(DISTRIBUTOR_SIZE + offset)

    def write(self, offset: int, size: int, value: int) -> None:  # noqa: ARG002  (registers are words)
        """Write a register."""
        if offset in {_EOIR, _DIR}:
            self._gic.finish(value)
        else:
            self._gic.keep(DISTRIBUTOR_SIZE + offset, value)
