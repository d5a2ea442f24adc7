"""The initial file system of the kernel guest: a cpio archive in the "newc" format (cpio(5))."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from emu.support import cpio

# The size of a copied word, in bytes.
_WORD: Final = 8


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
    same files give the same bytes.  The kernel copies aligned contents word by word.
    """
    entries: dict[str, cpio.Entry] = {}
    for path, content in files.items():
        directory = parent = path.rpartition("/")[0]
        while parent:
            entries[parent] = cpio.directory()
            parent = parent.rpartition("/")[0]
        executable = directory.rpartition("/")[2] in {"bin", "sbin", "libexec"}
        entries[path] = cpio.regular(content, 0o755 if executable else 0o644)
    return cpio.archive({path: entries[path] for path in sorted(entries)}, _WORD)
