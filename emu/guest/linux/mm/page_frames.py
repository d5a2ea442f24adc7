"""Page frames of the machine's RAM, counted.

Processes that forked, and those that map one file, share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from emu.engine.memory.pages import PAGE

_BLANK = bytes(PAGE)


class OutOfMemoryError(Exception):
    """All frames are in use."""


class Frames:
    """Hands out frames of `ram`, the memory from physical address 0 on.

    `forget_code(physical, size)` is called for a frame that held code and gets new content.
    """

    def __init__(self, ram: memoryview, forget_code: Callable[[int, int], None]) -> None:
        self._ram = ram
        self._forget_code = forget_code
        self._next = PAGE  # frame 0 stays blank: see SoftTlb
        self._free: list[int] = []
        self._uses: dict[int, int] = {}
        self._code: set[int] = set()

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
            if frame in self._code:
                self._code.remove(frame)
                self._forget_code(frame, PAGE)
            self._free.append(frame)

    def shared(self, frame: int) -> bool:
        """Return whether a frame has more than one user."""
        return self._uses[frame] > 1

    def will_execute(self, frame: int) -> None:
        """Note that code will be translated from a frame."""
        self._code.add(frame)

    def changed(self, frame: int, offset: int, size: int) -> None:
        """Forget the code that was translated from these bytes of a frame.

        They are about to change.
        """
        if frame in self._code:
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
