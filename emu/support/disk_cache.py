"""A cache on disk for data that is slow to make and the same in every run.

A file of the cache is named after its kind and the hash of everything that it was made from, the
versions of the libraries included, so it never has to be updated. Its first bytes are the hash of
the rest: a file that was truncated or changed is made again. A file is written under another name
and then renamed, so readers see only complete files, and any number of processes may share the
folder.

The size of the cache is limited. Whenever a file is added, the least recently used files are
removed until the rest is within the limit. A file's modification time says on which day it was last
used.

The folder is $TRAPLINE_CACHE, or trapline below $XDG_CACHE_HOME or ~/.cache.  If it belongs to
another user, can be written by others, is a link, or cannot be written, or if $TRAPLINE_CACHE is
empty, nothing is cached; `trapline doctor` says so.  A file that is not this user's alone is made
again, and so is a link: among them is machine code, which is executed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO, Final

_DIGEST: Final = hashlib.sha256().digest_size
# The limits of the folder, in bytes and in files.
_MOST_BYTES: Final = 256 << 20
_MOST_FILES: Final = 4096
# Seconds after which a file's use is noted again.
_DAY: Final = 86_400
# Seconds after which a file that was being written belongs to a process that has ended.
_ABANDONED: Final = 3600
_NAME: Final = re.compile(r"[\w-]+-[0-9a-f]{32}")
# The bits of a mode that let others write.
_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
# The beginning of the names of files that are being written.
_ASIDE: Final = ".trapline-"


def folder() -> Path | None:
    """Return the cache's folder, and make it if necessary; None: none is available."""
    return _chosen()[0]


def why_none() -> str:
    """Return why there is no cache, with the remedy; "": there is one."""
    return _chosen()[1]


def _chosen() -> tuple[Path | None, str]:
    chosen = os.environ.get("TRAPLINE_CACHE")
    if chosen == "":
        return None, "$TRAPLINE_CACHE is empty"
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        path = Path(chosen) if chosen else (Path(base) if base else Path.home() / ".cache") / "trapline"
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        why = _distrusted(path.lstat(), stat.S_ISDIR)
    except OSError as error:
        return None, f"{error.filename}: {error.strerror}"
    except RuntimeError as error:  # this user has no home
        return None, str(error)
    return (None, f"{path} {why}") if why else (path, "")


def _distrusted(status: os.stat_result, is_kind: Callable[[int], bool]) -> str:
    """Return why another user may have made it: the cache has machine code; "": nobody may."""
    if not is_kind(status.st_mode):
        return "is a link, or not of the right kind"
    if status.st_uid != os.geteuid():
        return "belongs to another user"
    return "can be written by others (chmod go-w)" if status.st_mode & _OTHERS else ""


def opened(path: Path) -> BinaryIO:
    """Open a file of the cache to read it.

    Raises OSError for one that another user may have made, and for what is not a file: nothing is
    followed, and nothing waits.
    """
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    why = _distrusted(os.fstat(file.fileno()), stat.S_ISREG)
    if why:
        file.close()
        raise OSError(errno.EPERM, why, str(path))
    return file


def cached(kind: str, made_from: bytes, make: Callable[[], bytes]) -> bytes:
    """Return `make()`, or its earlier result for the same bytes."""
    directory = folder()
    if directory is None:
        return make()
    path = directory / f"{kind}-{hashlib.sha256(made_from).hexdigest()[:32]}"
    with suppress(OSError), opened(path) as file:
        data = file.read()
        if hashlib.sha256(data[_DIGEST:]).digest() == data[:_DIGEST]:
            _note_use(path)
            return data[_DIGEST:]
    made = make()
    with suppress(OSError):
        _write(path, hashlib.sha256(made).digest() + made)
        _prune(directory, path)
    return made


def _note_use(path: Path) -> None:
    """Note that a file is used, once a day."""
    with suppress(OSError):
        if time.time() - path.stat().st_mtime > _DAY:
            os.utime(path)


def _prune(directory: Path, newest: Path) -> None:
    """Remove the least recently used files if the folder exceeds its limits.

    Another process may do the same, so a missing file is not an error.
    """
    now, files = time.time(), []
    with os.scandir(directory) as found:
        for entry in found:
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if entry.name.startswith(_ASIDE) and now - status.st_mtime > _ABANDONED:
                    Path(entry.path).unlink(missing_ok=True)
                elif _NAME.fullmatch(entry.name) and entry.name != newest.name:
                    files.append((status.st_mtime, status.st_size, entry.path))
    files.sort(reverse=True)
    kept = newest.stat().st_size
    for number, (_, size, path) in enumerate(files, 2):
        kept += size
        if number > _MOST_FILES or kept > _MOST_BYTES:
            Path(path).unlink(missing_ok=True)


def _write(path: Path, data: bytes) -> None:
    descriptor, aside = tempfile.mkstemp(dir=path.parent, prefix=_ASIDE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(aside).replace(path)
    except OSError:
        Path(aside).unlink(missing_ok=True)
        raise


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
