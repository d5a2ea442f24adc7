"""The line discipline of a terminal.

It processes the bytes that are typed, and the bytes that are written.

Source: Linux drivers/tty/n_tty.c, drivers/tty/tty_io.c, include/uapi/asm-generic/termbits.h.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from emu.isa.linux_signals import Signal

# c_iflag
_ISTRIP, _INLCR, _IGNCR, _ICRNL, _IUCLC, _IXON, _IXANY = 0x20, 0x40, 0x80, 0x100, 0x200, 0x400, 0x800
# c_oflag
_OPOST, _OLCUC, _ONLCR, _OCRNL, _ONOCR, _ONLRET, _TABS = 0x1, 0x2, 0x4, 0x8, 0x10, 0x20, 0x1800
# c_lflag
_ISIG, _ICANON, _ECHO, _ECHOE, _ECHOK, _ECHONL, _NOFLSH, TOSTOP = 0x1, 0x2, 0x8, 0x10, 0x20, 0x40, 0x80, 0x100
_ECHOCTL, _ECHOKE, _IEXTEN = 0x200, 0x800, 0x8000
# c_cc
_VINTR, _VQUIT, _VERASE, _VKILL, _VEOF, _VTIME, _VMIN = range(7)
_VSTART, _VSTOP, _VSUSP, _VEOL = range(8, 12)
_VREPRINT, _VWERASE, _VLNEXT, _VEOL2 = 12, 14, 15, 16
_CHARACTERS: Final = 19
# The settings of a new terminal (tty_std_termios, INIT_C_CC).
_NEW: Final = (
    0x500, 0x5, 0xBF, 0x8A3B,
    b"\x03\x1c\x7f\x15\x04\x00\x01\x00\x11\x13\x1a\x00\x12\x0f\x17\x16\x00\x00\x00",
)  # fmt: skip
_TERMIOS: Final = struct.Struct("<IIIIB19s")
_SPEEDS: Final = struct.Struct("<II")
_SPEED: Final = 38400
# Bytes that a terminal keeps for its reader (N_TTY_BUF_SIZE), and for the other side.
_BUFFER: Final = 4096
_OUTPUT: Final = 1 << 16
_TENTH: Final = 100_000_000
_TAB: Final = 8
_DELETE: Final = 0x7F

# Bytes of the flags in struct termios.
_FLAGS: Final = 16
# struct termio, of System V: it has the low halves of the flags, and so many control characters.
_TERMIO: Final = struct.Struct("<HHHHB8sx")
_LOW, _SHORT = 0xFFFF, 8

TERMIOS_SIZE: Final = _TERMIOS.size
TERMIO_SIZE: Final = _TERMIO.size
TERMIOS2_SIZE: Final = _TERMIOS.size + _SPEEDS.size


class Discipline:
    """One terminal's settings and buffers.

    `typed` takes what the side of the keyboard sends; `written` what programs write; `screen` is
    what the side of the keyboard is to see.  `signal(number)` sends a signal to the foreground.
    """

    def __init__(self, signal: Callable[[Signal], object]) -> None:
        self.input_flags, self.output_flags, self.control_flags, self.local_flags, self.characters = _NEW
        self._signal = signal
        self.line = 0
        self.locked = bytes(TERMIOS_SIZE)
        """The settings that stay as they are, as a struct termios: bits of flags, whole others."""
        self.screen = bytearray()
        self.stopped = False
        """Whether output waits for XON."""
        self._edited = bytearray()
        self._lines: list[bytes] = []
        self.offered = 0
        """The number of times that new input arrived."""
        """Whole lines, the last byte of each ends it; b"" is an end of file."""
        self._raw = bytearray()
        self._literal = False
        self._column = 0

    # -- settings

    def packed(self, *, speeds: bool = False) -> bytes:
        """Return struct termios, or struct termios2."""
        data = _TERMIOS.pack(
            self.input_flags, self.output_flags, self.control_flags, self.local_flags, self.line, self.characters
        )
        return data + _SPEEDS.pack(_SPEED, _SPEED) if speeds else data

    def packed_short(self) -> bytes:
        """Return struct termio: the low halves of the flags, and the first control characters."""
        flags = (self.input_flags, self.output_flags, self.control_flags, self.local_flags)
        return _TERMIO.pack(*(one & _LOW for one in flags), self.line, self.characters[:_SHORT])

    def set_short(self, data: bytes) -> None:
        """Take the settings of a struct termio; those that it lacks are kept."""
        *low, line, characters = _TERMIO.unpack(data)
        flags = (self.input_flags, self.output_flags, self.control_flags, self.local_flags)
        whole = (one & ~_LOW | half for one, half in zip(flags, low, strict=True))
        self.set(_TERMIOS.pack(*whole, line, characters + self.characters[_SHORT:]))

    def set(self, data: bytes) -> None:
        """Take the settings of a struct termios or termios2.

        Bytes typed so far can be read in the new mode.
        """
        was_canonical = self.canonical
        data = bytes(
            new & ~lock | old & lock if index < _FLAGS else old if lock else new
            for index, (new, old, lock) in enumerate(zip(data[:TERMIOS_SIZE], self.packed(), self.locked, strict=True))
        )
        (
            self.input_flags, self.output_flags, self.control_flags, self.local_flags, self.line, self.characters,
        ) = _TERMIOS.unpack(data)  # fmt: skip
        if was_canonical and not self.canonical:
            self._raw += b"".join(self._lines) + self._edited
            self._lines.clear()
            self._edited.clear()
        elif not was_canonical and self.canonical and self._raw:
            self._lines.append(bytes(self._raw))
            self._raw.clear()

    @property
    def canonical(self) -> bool:
        """Whether lines are edited before they are read."""
        return bool(self.local_flags & _ICANON)

    @property
    def stops_writers(self) -> bool:
        """Whether those in the background may not write (TOSTOP)."""
        return bool(self.local_flags & TOSTOP)

    def _is(self, byte: int, index: int) -> bool:
        return self.characters[index] == byte != 0

    # -- what is typed

    def space(self) -> int:
        """Return how many bytes can be typed."""
        return _BUFFER - 1 - len(self._raw) - len(self._edited) - sum(map(len, self._lines))

    def typed(self, data: bytes) -> None:
        """Take what was typed."""
        for byte in data:
            self._typed(byte)
        self.offered += not self.canonical and bool(self._raw)

    def _typed(self, byte: int) -> None:
        flags = self.input_flags
        if flags & _ISTRIP:
            byte &= 0x7F
        if self._literal:
            self._literal = False
            self._append(byte)
            return
        if self._flow(byte) or self._signals(byte):
            return
        if byte == ord("\r"):
            if flags & _IGNCR:
                return
            byte = ord("\n") if flags & _ICRNL else byte
        elif byte == ord("\n") and flags & _INLCR:
            byte = ord("\r")
        if not self.canonical:
            self._append(byte)
        elif not self._edits(byte):
            self._canonical(byte)

    def _flow(self, byte: int) -> bool:
        """Handle a byte that stops or starts output; return False for any other byte."""
        if not self.input_flags & _IXON:
            return False
        if self._is(byte, _VSTART):
            self.stopped = False
            return True
        if self._is(byte, _VSTOP):
            self.stopped = True
            return True
        if self.stopped and self.input_flags & _IXANY:
            self.stopped = False
        return False

    def _signals(self, byte: int) -> bool:
        """Send a signal if that is what the byte means."""
        if not self.local_flags & _ISIG:
            return False
        for index, number in ((_VINTR, Signal.SIGINT), (_VQUIT, Signal.SIGQUIT), (_VSUSP, Signal.SIGTSTP)):
            if self._is(byte, index):
                if not self.local_flags & _NOFLSH:
                    self.forget_input()
                    self.screen.clear()
                self._echo(byte)
                self._signal(number)
                return True
        return False

    def _edits(self, byte: int) -> bool:
        """Handle an editing character; return False for any other byte."""
        extended = bool(self.local_flags & _IEXTEN)
        if self._is(byte, _VERASE):
            self._erase(1)
        elif self._is(byte, _VKILL):
            self._erase(len(self._edited))
            if self.local_flags & _ECHOK and not self.local_flags & _ECHOKE and self.local_flags & _ECHO:
                self._show(b"\n")
        elif extended and self._is(byte, _VWERASE):
            text = bytes(self._edited)
            self._erase(len(text) - len(text.rstrip(b" \t").rstrip(b"".join(_word_bytes()))))
        elif extended and self._is(byte, _VLNEXT):
            self._literal = True
            if self.local_flags & _ECHO and self.local_flags & _ECHOCTL:
                self._show(b"^\b")
        elif extended and self._is(byte, _VREPRINT):
            self._echo(byte)
            self._show(b"\n" + bytes(self._edited))
        else:
            return False
        return True

    def _canonical(self, byte: int) -> None:
        if byte == ord("\n"):
            if self.local_flags & (_ECHO | _ECHONL):
                self._show(b"\n")
        elif self._is(byte, _VEOF):
            self._offer_line()
            return
        elif not self._is(byte, _VEOL) and not self._is(byte, _VEOL2):
            self._append(byte)
            return
        else:
            self._echo(byte)
        self._edited.append(byte)
        self._offer_line()

    def _offer_line(self) -> None:
        self._lines.append(bytes(self._edited))
        self._edited.clear()
        self.offered += 1

    def _append(self, byte: int) -> None:
        if self.space() <= 0:
            return
        (self._edited if self.canonical else self._raw).append(byte)
        self._echo(byte)

    def _erase(self, count: int) -> None:
        for _ in range(count):
            if not self._edited:
                return
            byte = self._edited.pop()
            while self._edited and byte & 0xC0 == 0x80 and self.input_flags & 0x4000:  # IUTF8
                byte = self._edited.pop()
            if self.local_flags & _ECHO and self.local_flags & _ECHOE:
                wide = 2 if _is_control(byte) and self.local_flags & _ECHOCTL else 1
                self._show(b"\b \b" * wide)

    def _echo(self, byte: int) -> None:
        if not self.local_flags & _ECHO:
            return
        if _is_control(byte) and byte not in b"\t\n" and self.local_flags & _ECHOCTL:
            self._show(bytes((ord("^"), byte ^ 0x40)))
        else:
            self._show(bytes((byte,)))

    # -- what is read

    def readable(self) -> bool:
        """Return whether there is enough to read."""
        if self.canonical:
            return bool(self._lines)
        return len(self._raw) >= max(1, self.characters[_VMIN])

    def returns_at_once(self) -> bool:
        """Return whether reading does not wait though nothing was typed (MIN 0, TIME 0)."""
        return not self.canonical and not self.characters[_VMIN] and not self.characters[_VTIME]

    def patience(self) -> int | None:
        """Return how long reading waits, in nanoseconds; None: forever."""
        if self.canonical or self.characters[_VMIN] or not self.characters[_VTIME]:
            return None
        return self.characters[_VTIME] * _TENTH

    def held(self) -> int:
        """Return how many bytes can be read."""
        return sum(map(len, self._lines)) if self.canonical else len(self._raw)

    def read(self, size: int) -> bytes:
        """Take up to `size` bytes: of one line, where lines are edited."""
        if not self.canonical:
            data = bytes(self._raw[:size])
            del self._raw[:size]
            return data
        if not self._lines:
            return b""
        line = self._lines.pop(0)
        if len(line) > size:
            self._lines.insert(0, line[size:])
        return line[:size]

    def forget_input(self) -> None:
        """Drop what was typed and not read."""
        self._edited.clear()
        self._lines.clear()
        self._raw.clear()

    # -- what is written

    def output_space(self) -> int:
        """Return how much can be written."""
        return 0 if self.stopped else max(0, _OUTPUT - len(self.screen))

    def written(self, data: bytes) -> int:
        """Take what a program writes, and return how much of it that was."""
        part = data[: self.output_space()]
        self._show(part)
        return len(part)

    def _show(self, data: bytes) -> None:
        flags = self.output_flags
        if not flags & _OPOST:
            self.screen += data
            return
        for byte in data:
            self._show_byte(byte, flags)

    def _show_byte(self, byte: int, flags: int) -> None:
        if byte == ord("\n"):
            if flags & (_ONLCR | _ONLRET):
                self._column = 0
            self.screen += b"\r\n" if flags & _ONLCR else b"\n"
            return
        if byte == ord("\r"):
            if flags & _ONOCR and not self._column:
                return
            if flags & _OCRNL:
                self.screen += b"\n"
                return
            self._column = 0
        elif byte == ord("\t"):
            spaces = _TAB - self._column % _TAB
            self._column += spaces
            if flags & _TABS == _TABS:
                self.screen += b" " * spaces
                return
        elif byte == ord("\b"):
            self._column = max(0, self._column - 1)
        elif not _is_control(byte):
            self._column += 1
        self.screen.append(byte)


def _is_control(byte: int) -> bool:
    return byte < ord(" ") or byte == _DELETE


def _word_bytes() -> list[bytes]:
    """Return the bytes of words, which VWERASE removes together."""
    return [bytes((byte,)) for byte in range(256) if (chr(byte).isalnum() and byte < 0x80) or byte == ord("_")]
