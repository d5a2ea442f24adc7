"""The run-time options of one consumer: their defaults, and their values in force.

Source: FreeBSD dtrace.c dtrace_state_create(), dtrace_state_go(), dtrace_state_buffer().
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from trapline.framework.base.device import DeviceError
from trapline.framework.base.dynvars import STRING_SIZE
from trapline.framework.base.memory import Memory
from trapline.framework.base.program import ActionKind
from trapline.framework.buffers.buffers import FillBuffer, PrincipalBuffer, RingBuffer, SwitchBuffer
from trapline.framework.probe.ecb import Clause, Ecb

_SECOND: Final = 1_000_000_000
DEFAULTS: Final = {
    "bufsize": 4 << 20,
    "aggsize": 4 << 20,
    "strsize": STRING_SIZE,
    "nspec": 1,
    "specsize": 32 << 10,
    "dynvarsize": 1 << 20,
    "stackframes": 20,
    "ustackframes": 20,
    "jstackframes": 50,
    "jstackstrsize": 512,
    "cleanrate": 9_900_990,
    "statusrate": _SECOND,
}
# Shortest and longest time of a rate.
_RATES: Final = {"cleanrate": (200_000, 60 * _SECOND), "statusrate": (0, 10 * _SECOND)}
_SMALLEST: Final = 8
# Sizes of buffers are multiples of it; the rest above the last multiple is not used.
_UNIT: Final = 8
# Size of a buffer beyond which there is no memory for it.
_LARGEST: Final = 256 << 20
# The smallest size of a speculation: a buffer is whole pages.
_SPECULATION: Final = 4096
# Values of bufpolicy (DTRACEOPT_BUFPOLICY_*); 2, switch, is the default.
_RING, _FILL = 0, 1
# Value of bufresize: fail rather than make a buffer smaller.
_MANUAL: Final = 1


class Settings:
    """The run-time options of one consumer; `values` has them by name."""

    def __init__(self) -> None:
        self.values = dict(DEFAULTS)

    def decide(self, clauses: Sequence[Clause], ecbs: Iterable[Ecb]) -> None:
        """Allocate no memory that is not needed; make room for the largest record."""
        values = self.values
        if not any(True for clause in clauses for _ in clause.aggregating):
            values["aggsize"] = 0
        else:
            values["bufsize"] = max(values["bufsize"], *(clause.layout.needed for clause in clauses))
        kinds = {placed.action.kind for ecb in ecbs for placed in ecb.clause.layout.actions}
        if ActionKind.SPECULATE not in kinds:
            values["specsize"] = 0

    def reserve(self, meta: Iterable[Ecb]) -> int:
        """Return the size that END's records may need; `meta`: enablings of BEGIN, END, ERROR."""
        return sum(ecb.clause.layout.needed + ecb.clause.layout.alignment for ecb in meta if ecb.probe.name == "END")

    def fit(self, reserve: int) -> None:
        """Reduce the sizes until there is memory for them.  Raises `DeviceError`."""
        self._fit("bufsize", reserve if self.values.get("bufpolicy") == _FILL else 0)
        for name in ("specsize", "aggsize"):
            if self.values[name]:
                self._fit(name, 0)
        self._fit("dynvarsize", 0)
        self._fit_speculations()

    def _fit_speculations(self) -> None:
        """Reduce the buffers of all speculations until there is memory for them.

        Raises `DeviceError` ENOMEM, as dtrace_state_go() where the array of them is too large.
        """
        count = self.values["nspec"]
        if count * _SPECULATION > _LARGEST:
            raise DeviceError("ENOMEM", f"no memory for {count} speculations")
        while count * self.values["specsize"] > _LARGEST:
            if self.values.get("bufresize") == _MANUAL:
                raise DeviceError("ENOMEM", f"no memory for {count} speculations of {self.values['specsize']} bytes")
            self.values["specsize"] >>= 1

    def _fit(self, name: str, reserve: int) -> None:
        """Reduce a size until there is memory for it; with manual resizing raise an error instead."""
        size = self.values[name]
        if name != "dynvarsize":
            if size < _SMALLEST:
                raise DeviceError("ENOSPC", f"{name} of {size} bytes is too small")
            size -= size % _UNIT
        if size < reserve:
            raise DeviceError("E2BIG", f"{name} of {size} bytes does not hold what END may record")
        while size > _LARGEST:
            if self.values.get("bufresize") == _MANUAL:
                raise DeviceError("ENOMEM", f"no memory for {name} of {size} bytes")
            size >>= 1
        self.values[name] = size

    def clamp(self) -> None:
        """Bring the rates into their range."""
        for rate, (shortest, longest) in _RATES.items():
            self.values[rate] = min(max(self.values[rate], shortest), longest)

    def principal(
        self, memory: Memory, record_size: Callable[[int], int], interrupt: Callable[[], None], reserve: int
    ) -> PrincipalBuffer:
        """Make the principal buffer of a CPU."""
        size, policy = self.values["bufsize"], self.values.get("bufpolicy")
        if policy == _RING:
            return RingBuffer(memory, size, record_size)
        if policy == _FILL:
            buffer = FillBuffer(memory, size, interrupt)
            buffer.reserve_end = reserve
            return buffer
        return SwitchBuffer(memory, size)
