"""A signature of source files, for what is made by them and kept on disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec


@lru_cache
def signature(*packages: str) -> bytes | None:
    """Return bytes that change whenever a Python file of some packages does; nothing is imported.

    They are the paths, sizes and times of the files: reading them all would take longer than what
    is kept saves.  None: the packages are not in folders.
    """
    try:
        found = [file for package in packages for folder in _folders(package) for file in _files(folder)]
    except OSError:
        return None
    return repr(sorted(found)).encode()


def _folders(package: str) -> list[str]:
    spec = find_spec(package)
    folders = None if spec is None else spec.submodule_search_locations
    if not folders:
        raise FileNotFoundError(package)
    return list(folders)


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _files(entry.path)
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
