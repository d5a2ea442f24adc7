"""Tracepoints, and the only class that writes them into code.

A tracepoint is a few patch bytes (int3, brk, ebreak) over the first bytes of an instruction.
Providers decide where and when; the `Patcher` alone writes.  It also invalidates the code that the
CPU has translated. Tracepoints may overlap: whatever the order of installing and removing, the
original bytes are back when all are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from emu.engine.memory.pages import PAGE
from emu.support.words import BadAddressError


class CodeMemory(Protocol):
    """Memory that holds code; addresses are virtual."""

    def read(self, address: int, size: int) -> bytes:
        """Return `size` bytes.  Raises `emu.support.words.BadAddressError`."""
        ...

    def write_code(self, address: int, data: bytes) -> None:
        """Write bytes and drop what was translated from them.

        Raises `emu.support.words.BadAddressError`.
        """
        ...


@dataclass(slots=True, eq=False)
class Tracepoint:
    """One place where an instruction is, or will be, displaced by a breakpoint."""

    address: int
    original: bytes
    """The bytes of the program itself, without any patch."""
    patch: bytes
    owner: str
    """The name of the provider that created it."""
    installed: bool = False
    """Whether the patch is in memory; only the `Patcher` changes this."""


class Patcher:
    """Installs and removes tracepoints in one memory.

    Tracepoints may share bytes, of one owner or of several.  Each byte then comes from the
    tracepoint that was installed last among those that cover it, and is the program's own byte when
    none is left.
    """

    def __init__(self, memory: CodeMemory) -> None:
        self._memory = memory
        self._write_code: Callable[[int, bytes], None] = memory.write_code
        self._tracepoints: dict[Tracepoint, None] = {}
        self.on_change: Callable[[], None] = lambda: None
        """Called before a tracepoint is installed, removed or forgotten."""
        self._layers: dict[int, list[Tracepoint]] = {}  # by byte: the tracepoints over it, the latest last
        self._pending: list[tuple[int, bytes]] | None = None
        """The bytes to be written, in their order; None: they are written at once."""
        self._removed = False
        """Whether memory has patches of tracepoints that were removed."""

    def create(self, address: int, patch: bytes, owner: str, original: bytes | None = None) -> Tracepoint:
        """Make a tracepoint, not yet installed.

        `original` is what `self.original` returns for its bytes, if that is known.

        Raises `emu.support.words.BadAddressError` if there is no code.
        """
        if not patch:
            raise ValueError(f"{owner}: a tracepoint at {address:#x} needs patch bytes")
        original = self.original(address, len(patch)) if original is None else original
        tracepoint = Tracepoint(address, original, patch, owner)
        self._tracepoints[tracepoint] = None
        return tracepoint

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write what tracepoints change meanwhile at the end, page by page.

        Raises `emu.support.words.BadAddressError` then, if memory has no code at one of them.
        """
        self.on_change()
        self._pending = []
        try:
            yield
        finally:
            try:
                self._write_pending()
            finally:
                self._pending = None  # also after an error: later tracepoints are written at once

    @contextmanager
    def written_by(self, write: Callable[[int, bytes], None]) -> Iterator[None]:
        """Let `write(address, data)` write the bytes of tracepoints that change meanwhile.

        It may let the guest run before it has written the last byte.
        """
        before, self._write_code = self._write_code, write
        try:
            yield
        finally:
            self._write_code = before

    def install(self, tracepoint: Tracepoint) -> None:
        """Write the patch; an installed tracepoint stays installed."""
        self._tell()
        if tracepoint not in self._tracepoints:
            raise ValueError(f"{tracepoint.owner}: the tracepoint at {tracepoint.address:#x} was removed")
        if tracepoint.installed:
            return
        self._cover(tracepoint)
        try:
            self._write(tracepoint.address, tracepoint.patch)
        except BadAddressError:
            self._uncover(tracepoint)
            raise

    def remove(self, tracepoint: Tracepoint) -> None:
        """Write the bytes below this tracepoint; ignore one that is not installed."""
        self._tell()
        if not tracepoint.installed:
            return
        shown = bytes(self._without(tracepoint, address) for address in self._bytes_of(tracepoint))
        self._write(tracepoint.address, shown)
        self._removed = self._pending is not None
        self._uncover(tracepoint)

    def forget(self, tracepoint: Tracepoint) -> None:
        """Forget a tracepoint that is not installed, or whose memory is gone; write nothing."""
        self._tell()
        self._tracepoints.pop(tracepoint, None)
        self._uncover(tracepoint)

    def forget_all(self) -> None:
        """Forget every tracepoint, because their memory is gone; write nothing."""
        self._tell()
        for tracepoint in self._tracepoints:
            tracepoint.installed = False
        self._tracepoints.clear()
        self._layers.clear()

    def restore_all(self, owner: str | None = None) -> None:
        """Remove every tracepoint, or every one of an owner.

        They remain in the list and can be installed again.
        """
        for tracepoint in self._tracepoints:
            if owner in (None, tracepoint.owner):
                self.remove(tracepoint)

    def listing(self) -> tuple[Tracepoint, ...]:
        """Return every tracepoint, by address; those at one address in the order of their creation."""
        return tuple(sorted(self._tracepoints, key=lambda tracepoint: tracepoint.address))

    def original(self, address: int, size: int) -> bytes:
        """Read code as it is in the program, without patches.

        Raises `emu.support.words.BadAddressError`.
        """
        if self._removed:
            self._write_pending()
        code = bytearray(self._memory.read(address, size))
        patched = self._layers
        for place in [place for place in range(address, address + size) if place in patched] if patched else ():
            first = patched[place][0]
            code[place - address] = first.original[place - first.address]
        return bytes(code)

    def _tell(self) -> None:
        if self._pending is None:
            self.on_change()

    def _write(self, address: int, data: bytes) -> None:
        if self._pending is None:
            self._write_code(address, data)
        else:
            self._pending.append((address, data))

    def _write_pending(self) -> None:
        """Write the bytes that are to be written, with those between them, page by page."""
        self._removed = False
        if not self._pending:
            return
        pages: dict[int, list[tuple[int, bytes]]] = {}
        for address, data in self._pending:
            room = PAGE - address % PAGE
            for part, start in ((data[:room], address), (data[room:], address + room)):
                if part:
                    pages.setdefault(start // PAGE, []).append((start, part))
        self._pending.clear()
        for writes in pages.values():
            start = min(address for address, _ in writes)
            end = max(address + len(data) for address, data in writes)
            code = bytearray(self._memory.read(start, end - start))
            for address, data in writes:
                code[address - start : address - start + len(data)] = data
            self._memory.write_code(start, bytes(code))

    @staticmethod
    def _bytes_of(tracepoint: Tracepoint) -> range:
        return range(tracepoint.address, tracepoint.address + len(tracepoint.patch))

    def _cover(self, tracepoint: Tracepoint) -> None:
        """Add a tracepoint to the layers of its bytes."""
        tracepoint.installed = True
        for address in self._bytes_of(tracepoint):
            self._layers.setdefault(address, []).append(tracepoint)

    def _uncover(self, tracepoint: Tracepoint) -> None:
        """Remove a tracepoint from the layers of its bytes."""
        if tracepoint.installed:
            tracepoint.installed = False
            for address in self._bytes_of(tracepoint):
                self._layers[address].remove(tracepoint)
                if not self._layers[address]:
                    del self._layers[address]

    def _without(self, tracepoint: Tracepoint, address: int) -> int:
        """Return the byte that is visible at `address` without `tracepoint`."""
        below = [other for other in self._layers[address] if other is not tracepoint]
        if below:
            return below[-1].patch[address - below[-1].address]
        return tracepoint.original[address - tracepoint.address]
