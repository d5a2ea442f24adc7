"""Cpio archives in the format "newc": that of an initramfs, and of the kernel guest's initrd.

Source: Linux Documentation/driver-api/early-userspace/buffer-format.rst.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

_MAGIC: Final = b"070701"
_TRAILER: Final = "TRAILER!!!"
# Bytes of the header of a file: the magic number, and 13 numbers of 8 digits.
_HEADER: Final = len(_MAGIC) + 13 * 8
# A header and a content begin at a multiple of this many bytes.
_ALIGNMENT: Final = 4


class Entry(NamedTuple):
    """A file: `mode` as in stat(2), and its content, or its target if it is a link."""

    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)
    """Major and minor number of a device file."""


def directory(mode: int = 0o755) -> Entry:
    """Return a directory."""
    return Entry(stat.S_IFDIR | mode)


def regular(data: bytes, mode: int = 0o644) -> Entry:
    """Return a regular file."""
    return Entry(stat.S_IFREG | mode, data)


def link(target: str) -> Entry:
    """Return a symbolic link."""
    return Entry(stat.S_IFLNK | 0o777, target.encode())


def character_device(major: int, minor: int, mode: int = 0o600) -> Entry:
    """Return a character device."""
    return Entry(stat.S_IFCHR | mode, b"", (major, minor))


def archive(files: Mapping[str, Entry], alignment: int = _ALIGNMENT) -> bytes:
    """Return an archive of files, by path without a leading slash; parents come before children.

    Each content begins at a multiple of `alignment`, a power of two of at least 4: more zeros than
    one may end a name.
    """
    written = bytearray()
    for number, (path, entry) in enumerate(files.items(), 1):
        _write(written, number, path, entry, alignment)
    _write(written, 0, _TRAILER, Entry(0), alignment)
    return bytes(written)


def _write(written: bytearray, number: int, path: str, entry: Entry, alignment: int) -> None:
    name = path.encode("utf-8", "surrogateescape") + b"\0"
    if alignment != _ALIGNMENT:
        name += bytes(-(len(written) + _HEADER + len(name)) % alignment)
    # inode, mode, uid, gid, links, mtime, size, device, device of the file, length of the name, checksum (unused)
    fields = (number, entry.mode, 0, 0, 1, 0, len(entry.data), 0, 0, *entry.device, len(name), 0)
    written.extend(_MAGIC + b"".join(b"%08x" % each for each in fields) + name)
    written.extend(bytes(-len(written) % _ALIGNMENT))
    written.extend(entry.data)
    written.extend(bytes(-len(written) % _ALIGNMENT))


def entries(data: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """Yield path, mode and content of each file of an archive that is not compressed."""
    at = 0
    while data[at : at + len(_MAGIC)] == _MAGIC:
        fields = [int(data[offset : offset + 8], 16) for offset in range(at + len(_MAGIC), at + _HEADER, 8)]
        mode, size, length = fields[1], fields[6], fields[11]
        start = at + _HEADER
        content = _aligned(start + length)
        yield data[start : start + length].partition(b"\0")[0], mode, data[content : content + size]
        at = _aligned(content + size)


def find(data: bytes, name: str) -> bytes | None:
    """Return the content of a regular file of an archive that is not compressed; None: it has none."""
    wanted = name.encode("utf-8", "surrogateescape")
    return next((content for path, mode, content in entries(data) if path == wanted and stat.S_ISREG(mode)), None)


def _aligned(offset: int) -> int:
    return offset + -offset % _ALIGNMENT
