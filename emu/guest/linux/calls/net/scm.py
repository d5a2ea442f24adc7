"""The control data of messages: files and credentials that are sent along (struct cmsghdr).

Source: Linux net/core/scm.c.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final

from emu.guest.linux.calls.table import Caller
from emu.guest.linux.errno import EBADF, EINVAL, EPERM, LinuxError
from emu.guest.linux.fs.open_file import O_PATH, OpenFile
from emu.guest.linux.net.skb import Credentials, Received, release
from emu.guest.linux.net.unix import Socket

_SOL_SOCKET: Final = 1
_SCM_RIGHTS, _SCM_CREDENTIALS = 1, 2
# The most files in one message (SCM_MAX_FD).
_FILES_MAX: Final = 253
_UCRED: Final = struct.Struct("<iII")


@dataclass(slots=True)
class Control:
    """The contents of control data."""

    files: tuple[OpenFile, ...] = ()
    credentials: Credentials | None = None


def read_control(c: Caller, address: int, size: int) -> Control:
    """Read control data.  Raises `LinuxError`: EINVAL, EBADF, EPERM."""
    control = Control()
    if not address or not size:
        return control
    if size > 1 << 16:
        raise LinuxError(EINVAL)
    data = c.read(address, size)
    head = c.word + 8
    at = 0
    while at + head <= size:
        length = int.from_bytes(data[at : at + c.word], "little")
        level, kind = struct.unpack_from("<ii", data, at + c.word)
        if not head <= length <= size - at:
            raise LinuxError(EINVAL)
        body = data[at + head : at + length]
        if level == _SOL_SOCKET:
            _read_one(c, control, kind, body)
        at += -(-length // c.word) * c.word
    return control


def _read_one(c: Caller, control: Control, kind: int, body: bytes) -> None:
    if kind == _SCM_RIGHTS:
        numbers = [number for (number,) in struct.iter_unpack("<i", body[: len(body) // 4 * 4])]
        if len(control.files) + len(numbers) > _FILES_MAX:
            raise LinuxError(EINVAL)
        files = [c.file(number) for number in numbers]
        if any(file.flags & O_PATH for file in files):
            raise LinuxError(EBADF)
        control.files += tuple(files)
    elif kind == _SCM_CREDENTIALS:
        if len(body) != _UCRED.size:
            raise LinuxError(EINVAL)
        credentials = Credentials(*_UCRED.unpack(body))
        if credentials.pid != c.process.pid and c.kernel.processes.get(credentials.pid) is None:
            raise LinuxError(EPERM)
        control.credentials = credentials
    else:
        raise LinuxError(EINVAL)


@dataclass(slots=True)
class ControlWriter:
    """Control data that is being written for the program."""

    c: Caller
    size: int
    data: bytearray = field(default_factory=bytearray)
    cut: bool = False

    def add(self, kind: int, body: bytes) -> None:
        """Add a control message; it is cut, or left out, if it does not fit."""
        word = self.c.word
        head = word + 8
        space = self.size - len(self.data)
        if space < head:
            self.cut = True
            return
        length = head + len(body)
        if length > space:
            self.cut = True
            length = space
        message = length.to_bytes(word, "little") + struct.pack("<ii", _SOL_SOCKET, kind) + body
        self.data += message[:length].ljust(min(-(-length // word) * word, space), b"\0")

    def files_that_fit(self) -> int:
        """Return how many descriptors fit into a control message."""
        return max(0, self.size - len(self.data) - self.c.word - 8) // 4


def write_control(c: Caller, one: Socket, got: Received, size: int, *, close_on_exec: bool) -> ControlWriter:
    """Write credentials if they were asked for, and take the files that were sent."""
    writer = ControlWriter(c, size)
    if one.options.pass_credentials and got.credentials is not None:
        known = got.credentials
        writer.add(_SCM_CREDENTIALS, _UCRED.pack(known.pid, known.uid, known.gid))
    if got.files:
        taken = got.files[: writer.files_that_fit()]
        numbers = []
        for file in taken:
            try:
                numbers.append(c.process.files.add(file, close_on_exec=close_on_exec))
            except LinuxError:
                break
        release(got.files)
        if numbers:
            writer.add(_SCM_RIGHTS, struct.pack(f"<{len(numbers)}i", *numbers))
        writer.cut = writer.cut or len(numbers) < len(got.files)
    return writer
