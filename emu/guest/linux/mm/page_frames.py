"""Page frames of the machine's RAM, counted.

Processes that forked, and those that map one file, share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol
from weakref import WeakSet

from emu.engine.memory.pages import PAGE

_BLANK = bytes(PAGE)


class OutOfMemoryError(Exception):
    """All frames are in use."""


class Mappings(Protocol):
    """An address space, for the frames in it."""

    def look_up_again(self, backing: object, offset: int, right: int) -> None:
        """Forget a page of a file or of shared memory where it is mapped with a right."""


class Frames:
    """Hands out frames of `ram`, the memory from physical address 0 on.

    `executed` has a byte for each frame: 1 if code of it may have been translated.
    `forget_code(physical, size)` is called when such a frame gets new content.
    """

    def __init__(self, ram: memoryview, executed: memoryview, forget_code: Callable[[int, int], None]) -> None:
        self._ram = ram
        self._executed = executed
        self._forget_code = forget_code
        self._next = PAGE  # frame 0 stays blank: see SoftTlb
        self._free: list[int] = []
        self._uses: dict[int, int] = {}
        self.spaces: WeakSet[Mappings] = WeakSet()
        """The address spaces that have frames of these."""
        self.written: set[int] = set()
        """Those that a mapping without execution may write to.  Unicorn does not notice such stores."""
        self.mixed: set[int] = set()
        """Those with code that stores to them through such a mapping."""

    def take(self, content: bytes = b"") -> int:
        """Return the physical address of a frame with this content and zeros after it, used once.

        Raises `OutOfMemoryError`.
        """
        if self._free:
            frame = self._free.pop()
            self._ram[frame : frame + PAGE] = _BLANK
        else:
            frame = self._next
            if frame + PAGE > len(self._ram):
                raise OutOfMemoryError(f"all {len(self._ram) >> 20} MiB of the guest's memory are in use")
            self._next += PAGE
        if content:
            self._ram[frame : frame + len(content)] = content
        self._uses[frame] = 1
        return frame

    def copy(self, frame: int) -> int:
        """Return a frame with the same content, used once.  Raises `OutOfMemoryError`."""
        return self.take(bytes(self._ram[frame : frame + PAGE]))

    def share(self, frame: int) -> int:
        """Count one more use, and return the frame."""
        self._uses[frame] += 1
        return frame

    def share_all(self, frames: Iterable[int]) -> None:
        """Count one more use of each."""
        uses = self._uses
        for frame in frames:
            uses[frame] += 1

    def release_all(self, frames: Iterable[int]) -> None:
        """Count one use less of each."""
        uses = self._uses
        for frame in frames:
            if uses[frame] > 1:
                uses[frame] -= 1
            else:
                self.release(frame)

    def release(self, frame: int) -> None:
        """Count one use less; the frame is free after the last."""
        self._uses[frame] -= 1
        if not self._uses[frame]:
            del self._uses[frame]
            self.execute_no_more(frame)
            self.written.discard(frame)
            self.mixed.discard(frame)
            self._free.append(frame)

    def shared(self, frame: int) -> bool:
        """Return whether a frame has more than one user."""
        return self._uses[frame] > 1

    def executed(self, frame: int) -> bool:
        """Return whether code of a frame may have been translated."""
        return bool(self._executed[frame // PAGE])

    def execute_no_more(self, frame: int) -> None:
        """Forget all code of a frame; no address space may let the CPU execute it as it is."""
        self.changed(frame, 0, PAGE)
        self._executed[frame // PAGE] = 0

    def changed(self, frame: int, offset: int, size: int) -> None:
        """Forget the code that was translated from these bytes of a frame.

        They are about to change.
        """
        if self._executed[frame // PAGE]:
            self._forget_code(frame + offset, size)

    def read(self, frame: int) -> bytes:
        """Return the content of a frame."""
        return bytes(self._ram[frame : frame + PAGE])

    def part(self, frame: int, offset: int, size: int) -> bytes:
        """Return `size` bytes of a frame from an offset, or those up to its end."""
        return bytes(self._ram[frame + offset : frame + min(offset + size, PAGE)])

    def write(self, frame: int, offset: int, data: bytes, *, forget: bool = True) -> None:
        """Change bytes of a frame, and drop their translated code unless told otherwise."""
        if forget:
            self.changed(frame, offset, len(data))
        self._ram[frame + offset : frame + offset + len(data)] = data

    @property
    def size(self) -> int:
        """Bytes of the machine's memory."""
        return len(self._ram)

    @property
    def used(self) -> int:
        """The number of frames in use."""
        return len(self._uses)
