"""Images of the CPU state, one for each state in which instructions are tried."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from trapline.lab.check.native.trial import RANGES
from trapline.lab.check.states import POOL, parts

if TYPE_CHECKING:
    from trapline.lab.check.cpu import TrialCpu
    from trapline.lab.check.states import State

# Ranges in which states differ begin and end at multiples of this; the gap between two of them is at least the other.
_GRAIN: Final = 16
_GAP: Final = 128
# The number of bytes behind the end of a context among which registers are found that it leaves out.
_BEHIND: Final = 64


class Images:
    """The image of the CPU state for each state of a pool, made when it is first needed.

    It is made on one CPU and serves both: the ranges in which images differ are registers, which
    have the same content on each; the rest is in a base of each CPU's own.
    """

    def __init__(self, cpu: TrialCpu, states: Sequence[State]) -> None:
        self._cpu = cpu
        self._states = states
        self._addresses = (ctypes.c_uint64 * POOL)()
        self._flags = (ctypes.c_uint64 * POOL)()
        self.flags = ctypes.addressof(self._flags)
        self.address = ctypes.addressof(self._addresses)
        self._kept: dict[int, Any] = {}
        self.size = _size(cpu)
        self._base = bytes(self.base_of(cpu))
        self._differing: set[int] = set()
        self._varying = (ctypes.c_uint64 * (2 * RANGES + 2))()
        self.varying = ctypes.addressof(self._varying)
        """Address of the offset and the size of each range in which images differ from the base, ended
        by a size of 0."""
        self._fixed = (ctypes.c_uint64 * (2 * RANGES + 4))(0, self.size)
        self.fixed = ctypes.addressof(self._fixed)
        """The same of the ranges between them."""

    def base_of(self, cpu: TrialCpu) -> Any:
        """Return an image of a CPU's state, in the first state."""
        cpu.load_numbered(self._states, 0)
        return ctypes.create_string_buffer(ctypes.string_at(cpu.engine.cpu.env, self.size), self.size)

    def make_all(self, numbers: Sequence[int]) -> None:
        """Make the images of the parts of states."""
        if len(self._kept) < POOL:
            for number in {part for each in numbers for part in parts(each)} - self._kept.keys():
                self._make(number)

    def _make(self, number: int) -> None:
        self._cpu.load_numbered(self._states, number)
        content = ctypes.string_at(self._cpu.engine.cpu.env, self.size)
        image = self._kept[number] = ctypes.create_string_buffer(content, self.size)
        self._addresses[number] = ctypes.addressof(image)
        self._flags[number] = self._states[number].flags
        differing = {
            at for at in range(0, self.size, _GRAIN) if content[at : at + _GRAIN] != self._base[at : at + _GRAIN]
        }
        if not differing <= self._differing:
            self._differing |= differing
            self._show_ranges()

    def _show_ranges(self) -> None:
        found = list(_joined(sorted(self._differing)))
        if len(found) > RANGES:
            found = [(found[0][0], found[-1][1])]
        found = [(start, min(end, self.size)) for start, end in found]
        edges = [0, *(edge for each in found for edge in each), self.size]
        between = [(start, end) for start, end in zip(edges[0::2], edges[1::2], strict=True) if start < end]
        for table, ranges in ((self._varying, found), (self._fixed, between)):
            for number, (start, end) in enumerate((*ranges, (0, 0))):
                table[2 * number], table[2 * number + 1] = start, end - start


def _size(cpu: TrialCpu) -> int:
    """Return the number of bytes of the CPU state that images have: what a context has, and more.

    A register of which a context leaves a part out is looked for behind its end.
    """
    engine, env = cpu.engine, cpu.engine.cpu.env
    context = engine.new_context()
    size = ctypes.c_size_t.from_address(ctypes.cast(context.context, ctypes.c_void_p).value or 0).value
    contents = []
    for value in (0, 0xFF):
        for name in cpu.isa.unicorn.left_out:
            engine.write_register(name, value)
        contents.append(ctypes.string_at(env, size + _BEHIND))
    engine.restore(context)
    return 1 + max(at for at in range(size + _BEHIND) if at < size or contents[0][at] != contents[1][at])


def _joined(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the ranges, [start, end), that sorted places make, with small gaps filled."""
    start = end = places[0]
    for place in places:
        if place > end + _GAP:
            yield start, end
            start = place
        end = place + _GRAIN
    yield start, end
