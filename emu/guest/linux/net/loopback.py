"""The only interface of the guest's network, the loopback, and what ioctl says of it.

Source: Linux net/core/dev_ioctl.c, net/ipv4/devinet.c, include/uapi/linux/if.h, sockios.h.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, Protocol, cast

from emu.guest.linux.errno import EINVAL, ENODEV, ENOTTY, EPERM, LinuxError
from emu.guest.linux.fs.open_file import UserMemory

NAME: Final = b"lo"
INDEX: Final = 1
MTU: Final = 65_536
QUEUE: Final = 1000
# ARPHRD_LOOPBACK.
HARDWARE: Final = 772
# IFF_UP, IFF_LOOPBACK, IFF_RUNNING; IFF_LOWER_UP does not fit into ioctl's 16 bits.
FLAGS: Final = 0x1 | 0x8 | 0x40
LOWER_UP: Final = 0x1_0000
ADDRESS: Final = bytes((127, 0, 0, 1))
PREFIX: Final = 8
_MASK: Final = bytes((255, 0, 0, 0))
_AF_INET: Final = 2
# struct ifreq: a name, and what is said of it.
_NAME_SIZE: Final = 16
_REQUEST_SIZE: Final = {8: 40, 4: 32}
_GIFNAME, _GIFCONF, _GIFHWADDR, _GIFINDEX = 0x8910, 0x8912, 0x8927, 0x8933
# The requests that change the interface, from SIOCSIFLINK on.
_CHANGES: Final = frozenset({0x8911, 0x8914, 0x8916, 0x8918, 0x891A, 0x891C, 0x891E, 0x8920, 0x8922, 0x8923, 0x8924})


class _Program(UserMemory, Protocol):
    """The program that makes a call, with the size of its words."""

    @property
    def word(self) -> int:
        """Bytes of a pointer."""


def _address(host: bytes) -> bytes:
    return struct.pack("<HH", _AF_INET, 0) + host + bytes(8)


# Requests about an interface that is named: the bytes that answer them.
_ANSWERS: Final[dict[int, Callable[[], bytes]]] = {
    0x8913: lambda: struct.pack("<H", FLAGS),
    0x8915: lambda: _address(ADDRESS),
    0x8917: lambda: _address(ADDRESS),
    0x8919: lambda: _address(bytes(4)),
    0x891B: lambda: _address(_MASK),
    0x891D: lambda: struct.pack("<i", 0),
    0x8921: lambda: struct.pack("<i", MTU),
    _GIFHWADDR: lambda: struct.pack("<H", HARDWARE) + bytes(14),
    _GIFINDEX: lambda: struct.pack("<i", INDEX),
    0x8942: lambda: struct.pack("<i", QUEUE),
    0x8970: lambda: bytes(16),
}


def control(memory: UserMemory, request: int, argument: int) -> int:
    """Answer what ioctl asks a socket about interfaces.

    Raises `LinuxError`: ENODEV, EPERM, EINVAL, ENOTTY.
    """
    if request == _GIFCONF:
        return _all(cast("_Program", memory), argument)
    if request == _GIFNAME:
        if memory.number(argument + _NAME_SIZE, 4) != INDEX:
            raise LinuxError(ENODEV)
        memory.write(argument, NAME.ljust(_NAME_SIZE, b"\0"))
        return 0
    if request not in _ANSWERS and request not in _CHANGES:
        raise LinuxError(ENOTTY)
    if memory.read(argument, _NAME_SIZE).split(b"\0", 1)[0].split(b":", 1)[0] != NAME:
        raise LinuxError(ENODEV)
    if request in _CHANGES:
        raise LinuxError(EPERM)
    memory.write(argument + _NAME_SIZE, _ANSWERS[request]())
    return 0


def _all(memory: _Program, argument: int) -> int:
    """List the interfaces with their addresses (struct ifconf): as many as fit into the buffer."""
    word = memory.word
    space = memory.number(argument, 4, signed=True)
    if space < 0:
        raise LinuxError(EINVAL)
    buffer = memory.number(argument + word, word)
    size = _REQUEST_SIZE[word]
    if buffer:
        entries = (NAME.ljust(_NAME_SIZE, b"\0") + _address(ADDRESS)).ljust(size, b"\0") if space >= size else b""
        memory.write(buffer, entries)
        size = len(entries)
    memory.write(argument, struct.pack("<i", size))
    return 0
