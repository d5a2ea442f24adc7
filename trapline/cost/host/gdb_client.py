"""A client of GDB's remote protocol that stops repeatedly at one breakpoint.

It does what gdb does: the breakpoint is removed, the CPU makes one step, the breakpoint is back.
"""

from __future__ import annotations

import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_SECONDS: Final = 10.0
# `Z0` has the bytes of a breakpoint; QEMU does not look at them.
_KIND: Final = 1


class GdbClient:
    """One connection to the socket of a stub.  Raises OSError."""

    def __init__(self, path: Path) -> None:
        """Connect, as soon as the stub listens."""
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_SECONDS)
        self._data = b""
        end = time.monotonic() + _SECONDS
        while True:
            try:
                self._socket.connect(str(path))
            except (FileNotFoundError, ConnectionRefusedError):
                if time.monotonic() > end:
                    raise
                time.sleep(0.01)
            else:
                break
        self._ask("?")

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        self._socket.close()

    def go_to(self, address: int) -> None:
        """Run to a breakpoint, for the first time."""
        self._ask(f"Z0,{address:x},{_KIND}")
        self._stop("c")

    def again(self, address: int) -> None:
        """Run from the breakpoint to the breakpoint."""
        self._ask(f"z0,{address:x},{_KIND}")
        self._stop("s")
        self._ask(f"Z0,{address:x},{_KIND}")
        self._stop("c")

    def _stop(self, packet: str) -> None:
        answer = self._ask(packet)
        if not answer.startswith("T"):
            raise OSError(f"the stub answers {answer!r}, not a stop")

    def _ask(self, packet: str) -> str:
        data = packet.encode("ascii")
        self._socket.sendall(b"$%b#%02x" % (data, sum(data) & 0xFF))
        while True:
            start = self._data.find(b"$")
            end = self._data.find(b"#", start)
            if start >= 0 and len(self._data) >= end + 3 > start + 3:
                answer = self._data[start + 1 : end]
                self._data = self._data[end + 3 :]
                self._socket.sendall(b"+")
                return answer.decode("ascii")
            received = self._socket.recv(4096)
            if not received:
                raise OSError("the stub has gone")
            self._data += received
