"""Addresses as names: stack frames, sym(), mod(), usym(), uaddr(), umod(), and printf's %a and %A.

Source of the forms: FreeBSD libdtrace dt_consume.c (dt_print_stack, dt_print_ustack, dt_print_sym,
dt_print_mod, dt_print_usym, dt_print_umod) and dt_subr.c (dtrace_addr2str, dtrace_uaddr2str).
"""

from __future__ import annotations

import struct
from dataclasses import replace
from posixpath import basename
from typing import TYPE_CHECKING, Final

from emu.elf.source.inlined import NO_SOURCE
from emu.support.immutable import immutable
from emu.support.words import BadAddressError
from trapline.consumer.text.columns import c_string, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from emu.elf.source.inlined import SourceFrame
    from emu.guest.base import Guest, Location
    from trapline.framework.base.device import RecordDescription

# Blanks before a frame, where option stackindent does not say.
DEFAULT_INDENT: Final = 14

_WORD: Final = 8
# More bytes than a call has.
_CALL: Final = 8
_PAIR: Final = struct.Struct("<QQ")


@immutable
class Frame:
    """One frame of a recorded stack."""

    pc: int
    name: str
    note: str = ""
    """The helper's text about it (shown in brackets below it)."""


class Symbols:
    """Names addresses of one guest."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self.spell: Callable[[str], str] = str
        """Returns a symbol's name as it is shown (-x demangle)."""
        self.lines = False
        """Whether frames name their source lines, with inlined functions (-x lines)."""
        self._modules: dict[str, bool] = {}
        """The modules of frames whose lines were looked for, and whether any was found."""
        self.x87 = guest.isa.x87
        """Whether a long double is the x87's."""

    def kernel(self, pc: int) -> str:
        """Name a kernel address: module`symbol+0x12, module`0xaddress or 0xaddress."""
        return self._name(pc, self._guest.locate(pc))

    def kernel_symbol(self, pc: int) -> str:
        """Name the symbol that contains a kernel address."""
        return self._name(pc, self._guest.locate(pc), offset=False)

    def function(self, pc: int) -> str | None:
        """Name the kernel function or object that begins at an address, None if none does."""
        location = self._guest.locate(pc)
        if location is None or not location.symbol or location.offset:
            return None
        return f"{location.module}`{location.symbol}"

    def kernel_module(self, pc: int) -> str:
        """Name the module that contains a kernel address."""
        location = self._guest.locate(pc)
        return f"{pc:#x}" if location is None else location.module

    def kernel_start(self, pc: int) -> int:
        """Return the address of the symbol that contains `pc`, or `pc` itself if there is none."""
        location = self._guest.locate(pc)
        return pc - location.offset if location is not None and location.symbol else pc

    def user(self, pid: int, pc: int) -> str:
        """Name an address of a process with its offset."""
        return self._name(pc, self._guest.locate_user(pc, pid))

    def user_symbol(self, pid: int, pc: int) -> str:
        """Name the symbol that contains an address of a process."""
        return self._name(pc, self._guest.locate_user(pc, pid), offset=False)

    def user_module(self, pid: int, pc: int) -> str:
        """Name the object that contains an address of a process."""
        location = self._guest.locate_user(pc, pid)
        return f"{pc:#x}" if location is None else basename(location.module)

    def user_start(self, pid: int, pc: int) -> int:
        """Return the address of the symbol that holds `pc` in a process, else `pc` itself."""
        location = self._guest.locate_user(pc, pid)
        return pc - location.offset if location is not None and location.symbol else pc

    def kernel_frames(self, data: bytes, offset: int, size: int) -> tuple[Frame, ...]:
        """Read the frames of a stack() record; a zero address ends them."""
        frames: list[Frame] = []
        for pc in _words(data, offset, size // _WORD):
            # The first one is the caller's, or that of a timer.
            code = pc - 1 if frames or self._follows_call(pc) else pc
            frames += self._frames(pc, self._guest.locate(pc), self._kernel_source(code))
        return tuple(frames)

    def _follows_call(self, pc: int) -> bool:
        """Return whether there may be a call before an address of the kernel."""
        try:
            return self.lines and self._guest.isa.calling.ends_with_call(self._guest.load(pc - _CALL, _CALL))
        except BadAddressError:
            return False

    def user_frames(self, data: bytes, offset: int, argument: int) -> tuple[Frame, ...]:
        """Read the frames of a ustack() or jstack() record: the pid, the pcs, a helper's strings.

        `argument` is the record's: string size << 32 | frames.
        """
        depth, strings = argument & 0xFFFFFFFF, argument >> 32
        if not depth:
            return ()
        pid = int.from_bytes(data[offset : offset + _WORD], "little") & 0xFFFFFFFF
        base = offset + (depth + 1) * _WORD
        helper = _strings(data[base : base + strings])
        frames: list[Frame] = []
        for pc in _words(data, offset + _WORD, depth):
            text = next(helper, "")
            location = self._guest.locate_user(pc, pid)
            # A helper names addresses outside all objects: code that a virtual machine has generated.
            named = location is None and text and not text.startswith("@")
            note = text[1:] if text.startswith("@") else ""
            if named:
                frames.append(Frame(pc, text, note))
                continue
            # A return address may be the first one of the next line.
            *inlined, frame = self._frames(pc, location, self._user_source(pc - 1 if frames else pc, pid))
            frames += (*inlined, replace(frame, note=note))
        return tuple(frames)

    def _kernel_source(self, pc: int) -> Sequence[SourceFrame]:
        find = self._guest.abilities.kernel_source if self.lines else None
        return find(pc) if find is not None else ()

    def _user_source(self, pc: int, pid: int) -> Sequence[SourceFrame]:
        find = self._guest.abilities.source if self.lines else None
        return find(pc, pid) if find is not None else ()

    def _frames(self, pc: int, location: Location | None, source: Sequence[SourceFrame]) -> Iterator[Frame]:
        """Yield the inlined functions that a pc is in, then its frame."""
        if self.lines and location is not None:
            module = basename(location.module)
            self._modules[module] = bool(source) or self._modules.get(module, False)
        for function, line in source or (NO_SOURCE,):
            suffix = f" ({line})" if line is not None else ""
            if function and location is not None:
                yield Frame(pc, f"{basename(location.module)}`{self.spell(function)} [inlined]{suffix}")
            else:
                yield Frame(pc, self._name(pc, location) + suffix)

    @property
    def without_lines(self) -> Sequence[str]:
        """The modules of which frames were shown without any source line, sorted by name."""
        return sorted(module for module, known in self._modules.items() if not known)

    def _name(self, pc: int, location: Location | None, *, offset: bool = True) -> str:
        if location is None:
            return f"{pc:#x}"
        module = basename(location.module)
        if not location.symbol:
            return f"{module}`{pc:#x}"
        return f"{module}`{self.spell(location.symbol)}" + (
            f"+{location.offset:#x}" if offset and location.offset else ""
        )

    def frames(self, record: RecordDescription, data: bytes, offset: int, *, user: bool) -> tuple[Frame, ...]:
        """Read the frames of a stack record that starts at `offset`."""
        if user:
            return self.user_frames(data, offset, record.argument)
        return self.kernel_frames(data, offset, record.size)


def show_frames(frames: tuple[Frame, ...], indent: int, width: int = 0) -> str:
    """Show a stack: a newline, then a line for each frame; `width` is that of `%*k`."""
    lines = ["\n"]
    margin = " " * indent
    for frame in frames:
        lines.append(f"{margin}{frame.name:>{width}}\n")
        if frame.note:
            lines.append(f"{margin}{f'  [ {frame.note} ]':>{width}}\n")
    return "".join(lines)


def address_pair(data: bytes, offset: int) -> tuple[int, int]:
    """Read the pid and the address of a usym(), umod() or uaddr() record."""
    pid, pc = _PAIR.unpack_from(data, offset)
    return pid & 0xFFFFFFFF, pc


def _words(data: bytes, offset: int, count: int) -> Iterator[int]:
    for (word,) in struct.iter_unpack("<Q", data[offset : offset + count * _WORD]):
        if not word:
            return
        yield word


def _strings(data: bytes) -> Iterator[str]:
    """Yield the strings of a helper's table, one for each frame."""
    while data:
        text = c_string(data)
        yield decode(text)
        data = data[len(text) + 1 :]
