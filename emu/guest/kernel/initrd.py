"""The initial file system of the kernel guest: a cpio archive in the "newc" format (cpio(5))."""

from __future__ import annotations

import stat
from collections.abc import Collection, Mapping
from pathlib import Path


def tree(root: Path, omitted: Collection[str]) -> dict[str, bytes]:
    """Return the files below a directory: path relative to it -> content.

    `omitted` names entries of the directory that are not part of it.
    """
    entries = sorted(path for path in root.iterdir() if path.name not in omitted)
    below = (inside for path in entries for inside in ([path] if path.is_file() else sorted(path.rglob("*"))))
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in below if path.is_file()}


def archive(files: Mapping[str, bytes]) -> bytes:
    """Return a cpio archive of the files and the directories they need, in path order.

    Files in a directory named bin, sbin or libexec are executable.  Owners and times are 0: the
    same files give the same bytes.
    """
    entries: dict[str, tuple[int, bytes]] = {}
    for path, content in files.items():
        directory = parent = path.rpartition("/")[0]
        while parent:
            entries[parent] = (stat.S_IFDIR | 0o755, b"")
            parent = parent.rpartition("/")[0]
        mode = 0o755 if directory.rpartition("/")[2] in {"bin", "sbin", "libexec"} else 0o644
        entries[path] = (stat.S_IFREG | mode, content)
    records = [_record(number, path, *entries[path]) for number, path in enumerate(sorted(entries), start=1)]
    return b"".join((*records, _record(0, "TRAILER!!!", 0, b"")))


def _record(inode: int, name: str, mode: int, content: bytes) -> bytes:
    fields = (inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name.encode()) + 1, 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return _padded(header) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
