"""Images of the CPU state, one for each state in which instructions are tried."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from trapline.lab.check.cpu.states import POOL, parts
from trapline.lab.check.native.trial import RANGES

if TYPE_CHECKING:
    from trapline.lab.check.cpu.cpu import TrialCpu
    from trapline.lab.check.cpu.states import State

# Ranges begin and end at multiples of this, the size of a word.
_GRAIN: Final = 8
# The number of bytes behind the end of a context among which registers are found that it leaves out.
_BEHIND: Final = 64


class Ranges:
    """Ranges of the CPU state, for machine code."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._words = (ctypes.c_uint64 * (2 * RANGES + 2))()
        self.address = ctypes.addressof(self._words)
        """Address of the offset and the size of each, ended by a size of 0."""
        self.show(ranges)

    def show(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Store ranges, [start, end)."""
        for number, (start, end) in enumerate((*ranges, (0, 0))):
            self._words[2 * number], self._words[2 * number + 1] = start, end - start


class Images:
    """The image of the CPU state for each state of a pool, made when it is first needed.

    It is made on one CPU and serves both: the ranges in which images differ are registers, which
    have the same content on each; the rest is in a base of each CPU's own.  The bytes between
    vector registers, which no register has, stay as they are: more than half of all on AArch64
    (SVE's, whose instructions the CPU refuses).
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
        self._base = self.base_of(cpu)
        self._words = memoryview(self._base).cast("B").cast("Q").tolist()
        self._grains = {*range(len(self._words))} - self._inside(cpu.paddings)
        self._differing: set[int] = set()
        self.varying = Ranges()
        """The ranges in which images differ from the base."""
        self.fixed = Ranges()
        """The others."""
        self.registers, self.vectors = (Ranges(self._of(places)) for places in (cpu.places, cpu.places[1:]))
        """Those of all registers that are compared, and of the vectors among them."""

    def base_of(self, cpu: TrialCpu) -> Any:
        """Return an image of a CPU's state, in the first state."""
        cpu.load_numbered(self._states, 0)
        return self._image_of(cpu)

    def _image_of(self, cpu: TrialCpu) -> Any:
        room = -self.size % _GRAIN + self.size
        return ctypes.create_string_buffer(ctypes.string_at(cpu.engine.cpu.env, room), room)

    def make_all(self, numbers: Sequence[int]) -> None:
        """Make the images of the parts of states."""
        if len(self._kept) < POOL:
            for number in {part for each in numbers for part in parts(each)} - self._kept.keys():
                self._make(number)

    def _make(self, number: int) -> None:
        self._cpu.load_numbered(self._states, number)
        image = self._kept[number] = self._image_of(self._cpu)
        self._addresses[number] = ctypes.addressof(image)
        self._flags[number] = self._states[number].flags
        pairs = enumerate(zip(self._words, memoryview(image).cast("B").cast("Q"), strict=True))
        differing = self._grains & {at for at, (before, now) in pairs if before != now}
        if not differing <= self._differing:
            self._differing |= differing
            self.varying.show(_joined(self._differing, self.size))
            self.fixed.show(_joined(self._grains - self._differing, self.size))

    def _inside(self, places: Iterable[tuple[int, int]]) -> set[int]:
        """Return the words of the CPU state that are inside of ranges, of addresses and sizes."""
        env = self._cpu.engine.cpu.env
        return {
            word
            for address, size in places
            for word in range(-((env - address) // _GRAIN), (address + size - env) // _GRAIN)
        }

    def _of(self, places: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Return the ranges of registers, of addresses and sizes, without what no register has."""
        for address, size in places:
            end = address + size - self._cpu.engine.cpu.env
            whole = self._inside([(address, -size % _GRAIN + size)])
            yield from _joined(whole & self._grains, end)


def _size(cpu: TrialCpu) -> int:
    """Return the number of bytes of the CPU state that images have: what a context has, and more.

    A register of which a context leaves a part out is looked for behind its end.
    """
    engine, env = cpu.engine, cpu.engine.cpu.env
    context = engine.cpu.new_context()
    size = ctypes.c_size_t.from_address(ctypes.cast(context.context, ctypes.c_void_p).value or 0).value
    contents = []
    for value in (0, 0xFF):
        for name in cpu.isa.unicorn.left_out:
            engine.write_register(name, value)
        contents.append(ctypes.string_at(env, size + _BEHIND))
    engine.cpu.restore(context)
    return 1 + max(at for at in range(size + _BEHIND) if at < size or contents[0][at] != contents[1][at])


def _joined(words: Iterable[int], end: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of bytes, [start, end), that words make, none of which ends behind `end`."""
    start = last = -1
    for word in sorted(words):
        if word != last:
            if last > start:
                yield start * _GRAIN, min(last * _GRAIN, end)
            start = word
        last = word + 1
    if last > start:
        yield start * _GRAIN, min(last * _GRAIN, end)
