"""The interval timer 8254 of a PC: three counters at 1.193182 MHz, and port 0x61.

| port | what |
| --- | --- |
| 0x40, 0x41, 0x42 | a counter: its low byte, its high byte, or both in turn |
| 0x43 | control: which counter, how it is accessed, its mode; or latch its count |
| 0x61 | bit 0 gates counter 2, bit 5 is its output, bit 4 toggles with refreshes |

Counter 0 interrupts when it reaches 0: repeatedly in modes 2 and 3, once in the others.

Source: Intel 82C54 data sheet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from emu.guest.linux_kernel.devices.device import Device

FREQUENCY: Final = 1_193_182
_SECOND: Final = 1_000_000_000
_CONTROL: Final = 3
# Offset of port 0x61.
PORT_B: Final = 0x21
_LOW, _HIGH, _BOTH = 1, 2, 3
_PERIODIC: Final = frozenset({2, 3})
_LARGEST: Final = 0x10000
_GATE, _OUTPUT, _REFRESH = 1, 0x20, 0x10
_READ_BACK: Final = 3


class _Counter:
    """One counter: `state` is its part of a snapshot."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self.state: dict[str, Any] = {
            "mode": 0,
            "access": _BOTH,
            "reload": _LARGEST,
            "start": 0,
            "running": False,
            "low": None,
            "latch": None,
            "second": False,
        }

    def control(self, access: int, mode: int) -> None:
        """Take a control word."""
        if access == 0:
            self.state["latch"], self.state["second"] = self.count(), False
            return
        self.state.update(access=access, mode=mode & 3 if mode > 5 else mode, low=None, latch=None, running=False)
        self.state["second"] = False

    def write(self, value: int) -> None:
        """Take a byte of the count."""
        state = self.state
        if state["access"] == _BOTH and state["low"] is None:
            state["low"] = value
            return
        count = value << 8 if state["access"] == _HIGH else value
        if state["access"] == _BOTH:
            count = value << 8 | state["low"]
        self.state.update(reload=count or _LARGEST, low=None)
        self.start()

    def start(self) -> None:
        """Begin to count down."""
        self.state.update(start=self._now(), running=True)

    def count(self) -> int:
        """Return the count."""
        reload, passed = self.state["reload"], self._now() - self.state["start"]
        return (reload - passed % reload if self.state["mode"] in _PERIODIC else reload - passed) & 0xFFFF

    def read(self) -> int:
        """Return a byte of the count, or of the latched count."""
        state = self.state
        value = self.count() if state["latch"] is None else state["latch"]
        if state["access"] == _BOTH:
            state["second"] = not state["second"]
            high = not state["second"]
        else:
            high = state["access"] == _HIGH
        if state["access"] != _BOTH or high:
            state["latch"] = None
        return int(value >> 8 if high else value & 0xFF)

    def expired(self) -> bool:
        """Return whether it has reached 0."""
        return bool(self._now() - self.state["start"] >= self.state["reload"])

    def next(self, after: int) -> int | None:
        """Return the tick after `after` at which it next reaches 0; None: never."""
        state = self.state
        if not state["running"]:
            return None
        first = int(state["start"] + state["reload"])
        if first > after or state["mode"] not in _PERIODIC:
            return first if first > after else None
        return first + int(((after - first) // state["reload"] + 1) * state["reload"])


class I8254(Device):
    """The timer; `now` returns nanoseconds, `interrupt` is called when counter 0 reaches 0."""

    def __init__(self, now: Callable[[], int], interrupt: Callable[[], object], changed: Callable[[], object]) -> None:
        self._now = now
        self._interrupt = interrupt
        self._changed = changed
        """Called when the time of the next interrupt is another one."""
        self._counters = [_Counter(self._ticks) for _ in range(3)]
        self._done = 0
        """The tick up to which interrupts have been sent."""
        self._port_b = 0

    def _ticks(self) -> int:
        return self._now() * FREQUENCY // _SECOND

    def due(self) -> int | None:
        """Return the time of the next interrupt, in nanoseconds; None: there is none."""
        tick = self._counters[0].next(self._done)
        return None if tick is None else -(-tick * _SECOND // FREQUENCY)

    def run(self) -> None:
        """Send the interrupt that is due; if several are late, only one."""
        due = self.due()
        self._done = self._ticks()
        if due is not None:
            self._interrupt()

    def read(self, offset: int, size: int) -> int:  # noqa: ARG002  (registers are a byte)
        """Return a register."""
        if offset == PORT_B:
            output = _OUTPUT if self._counters[2].expired() else 0
            return self._port_b & 0xF | output | (_REFRESH if self._ticks() & 1 else 0)
        return self._counters[offset].read() if offset < _CONTROL else 0

    def write(self, offset: int, size: int, value: int) -> None:  # noqa: ARG002  (registers are a byte)
        """Write a register."""
        value &= 0xFF
        if offset == PORT_B:
            if value & _GATE and not self._port_b & _GATE:
                self._counters[2].start()
            self._port_b = value
            return
        if offset == _CONTROL:
            if value >> 6 != _READ_BACK:
                self._counters[value >> 6].control(value >> 4 & 3, value >> 1 & 7)
        else:
            self._counters[offset].write(value)
        if offset in {0, _CONTROL}:
            self._done = self._ticks()
            self._changed()

    def state(self) -> dict[str, Any]:
        """Return the state, for a snapshot."""
        return {"counters": [counter.state for counter in self._counters], "done": self._done, "b": self._port_b}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state."""
        self._done, self._port_b = state["done"], state["b"]
        for counter, kept in zip(self._counters, state["counters"], strict=True):
            counter.state = dict(kept)
