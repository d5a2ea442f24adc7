"""A cache on disk for data that is slow to make and the same in every run.

A file of the cache is named after its kind and the hash of everything that it was made from, the
versions of the libraries included, so it never has to be brought up to date.  Its first bytes are
the hash of the rest: a file that was cut short or changed is made again.  Files appear whole
(written aside, then renamed), so any number of processes may share the folder.

The folder is $TRAPLINE_CACHE, or trapline below $XDG_CACHE_HOME or ~/.cache.  Where it belongs to
another user or cannot be written, and where $TRAPLINE_CACHE is empty, nothing is kept.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_DIGEST = hashlib.sha256().digest_size


def folder() -> Path | None:
    """Return the cache's folder, made if it was not there; None: none is available."""
    chosen = os.environ.get("TRAPLINE_CACHE")
    if chosen == "":
        return None
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        path = Path(chosen) if chosen else (Path(base) if base else Path.home() / ".cache") / "trapline"
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path if path.stat().st_uid == os.geteuid() else None
    except (OSError, RuntimeError):  # RuntimeError: this user has no home
        return None


def cached(kind: str, made_from: bytes, make: Callable[[], bytes]) -> bytes:
    """Return `make()`, or what it returned when something was made from the same bytes before."""
    place = folder()
    if place is None:
        return make()
    path = place / f"{kind}-{hashlib.sha256(made_from).hexdigest()[:32]}"
    with suppress(OSError):
        data = path.read_bytes()
        if hashlib.sha256(data[_DIGEST:]).digest() == data[:_DIGEST]:
            return data[_DIGEST:]
    made = make()
    with suppress(OSError):
        _write(path, hashlib.sha256(made).digest() + made)
    return made


def _write(path: Path, data: bytes) -> None:
    descriptor, aside = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(aside).replace(path)
    except OSError:
        Path(aside).unlink(missing_ok=True)
        raise
