"""The console of a machine: the kernel's output, without the messages of /init to the emulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.guest.linux_kernel.machine.initramfs import MARK

# Size of the part of the log's end that is kept.
_LOG: Final = 16 << 10
# Longer than any message of /init: after this many bytes the mark was the output of a program.
_LONGEST_WORD: Final = 40


class Console:
    """Separates the output of a UART: text goes to `show`, a message between marks to `say`."""

    def __init__(self, show: Callable[[bytes], object], say: Callable[[str], object]) -> None:
        self.log = bytearray()
        """The end of all that was printed."""
        self.shown = True
        """Whether text is shown: how the machine is switched off is of no interest."""
        self._show = show
        self._say = say
        self._word: bytearray | None = None

    def send(self, data: bytes) -> None:
        """Take the output of the machine."""
        for byte in data:
            self._take(byte)

    def _take(self, byte: int) -> None:
        is_mark = byte == ord(MARK)
        if self._word is None:
            if is_mark:
                self._word = bytearray()
            else:
                self._text(bytes((byte,)))
        elif is_mark:
            word, self._word = self._word, None
            self._say(word.decode("latin-1"))
        else:
            self._word.append(byte)
            if len(self._word) > _LONGEST_WORD:
                word, self._word = self._word, None
                self._text(MARK.encode() + bytes(word))

    def _text(self, data: bytes) -> None:
        self.log += data
        if len(self.log) > 2 * _LOG:
            del self.log[:-_LOG]
        if self.shown:
            self._show(data)

    @property
    def last_lines(self) -> str:
        """The end of the log, as text."""
        lines = self.log.decode("utf-8", "replace").replace("\r", "").splitlines()
        return "\n".join(lines[-25:])
