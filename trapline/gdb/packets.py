"""Packets of gdb's remote serial protocol, over a socket or a pair of pipes.

A packet is `$data#sum`, where the sum has two hexadecimal digits; the receiver answers + or -,
until QStartNoAckMode.  A byte 3 outside of packets interrupts the target.

Source: the gdb manual, appendix "gdb Remote Serial Protocol".
"""

from __future__ import annotations

import os
import queue
import re
import threading
from collections.abc import Callable
from typing import Final

_GREETING: Final = b"qSupported"
INTERRUPT: Final = b"\x03"
# Bytes of a packet, either way (PacketSize).
MOST: Final = 0x20000
_START: Final = re.compile(rb"[$\x03]")
# Bytes that would be part of the framing, and those of run-length encoding.
_SPECIAL: Final = re.compile(rb"[#$}*]")


def escaped(data: bytes) -> bytes:
    """Return binary data as packets carry it."""
    return _SPECIAL.sub(lambda found: bytes((0x7D, found[0][0] ^ 0x20)), data)


def unescaped(data: bytes) -> bytes:
    """Return the binary data of a packet."""
    return re.sub(rb"\}(.)", lambda found: bytes((found[1][0] ^ 0x20,)), data, flags=re.DOTALL)


def framed(data: bytes) -> bytes:
    """Return data as a packet."""
    return b"$%b#%02x" % (data, sum(data) & 0xFF)


class RubbishError(Exception):
    """A client does not speak the protocol; the message says what it sent."""


class Gone(Exception):  # noqa: N818  it is not an error
    """A client has closed the connection."""


class Parser:
    """Cuts what is received into packets."""

    def __init__(self) -> None:
        self._data = b""

    def feed(self, data: bytes) -> list[tuple[bytes, bool]]:
        """Return the packets that are complete now, each with whether its sum is right.

        An interrupt is a packet of its own.  Raises `RubbishError`.
        """
        self._data += data
        found: list[tuple[bytes, bool]] = []
        while self._data:
            self._data = self._data.lstrip(b"+-")
            if self._data[:1] == INTERRUPT:
                found.append((INTERRUPT, True))
                self._data = self._data[1:]
                continue
            if self._data and not _START.match(self._data):
                raise RubbishError(f"{self._data[:20]!r} is not a packet of gdb's remote protocol")
            end = self._data.find(b"#")
            if end < 0 and len(self._data) > 2 * MOST:
                raise RubbishError(f"a packet of more than {2 * MOST} bytes")
            if end < 0 or len(self._data) < end + 3:
                break
            body, digits = self._data[1:end], self._data[end + 1 : end + 3]
            self._data = self._data[end + 3 :]
            found.append((body, digits.lower() == b"%02x" % (sum(body) & 0xFF)))
        return found


class Connection:
    """One client.  A thread reads, so that an interrupt is noticed while the guest runs.

    `wake` is called by that thread when something has come.
    """

    def __init__(self, reader: int, writer: int, wake: Callable[[], object], close: Callable[[], object]) -> None:
        self._reader, self._writer, self._wake, self._close = reader, writer, wake, close
        self._queue: queue.SimpleQueue[bytes | Exception] = queue.SimpleQueue()
        self._unanswered = b""
        """The packet that was not answered yet: gdb sends it again if that takes long."""
        self._greeting = b""
        """Its packet of features, which gdb never repeats: a second one was sent before the first was read."""
        self.acknowledges = True
        threading.Thread(target=self._read, name="gdb", daemon=True).start()

    @property
    def waiting(self) -> bool:
        """Whether something has come that was not received."""
        return not self._queue.empty()

    def _read(self) -> None:
        parser = Parser()
        try:
            while data := os.read(self._reader, 65536):
                for body, right in parser.feed(data):
                    if self.acknowledges and body != INTERRUPT:
                        self._write(b"+" if right else b"-")
                    again = self.acknowledges and body in {self._unanswered, self._greeting}
                    if right and not again:
                        self._greeting = self._greeting or (body if body.startswith(_GREETING) else b"")
                        self._unanswered = b"" if body == INTERRUPT else body
                        self._queue.put(body)
                        self._wake()
        except RubbishError as error:
            self._queue.put(error)
        except OSError:
            pass
        self._queue.put(Gone())
        self._wake()

    def receive(self) -> bytes:
        """Return the next packet.  Raises `Gone`, `RubbishError`."""
        body = self._queue.get()
        if isinstance(body, Exception):
            raise body
        return body

    def send(self, data: bytes) -> None:
        """Send a packet.  Raises `Gone`."""
        self._unanswered = b""
        try:
            self._write(framed(data))
        except OSError:
            raise Gone from None

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._writer, data) :]

    def close(self) -> None:
        """Close the connection."""
        self._close()
