"""The file that keeps the progress of a sweep."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from trapline.lab.objects.request import RequestError


class Kept(Protocol):
    """Progress that says what it belongs to."""

    digest: str


_P = TypeVar("_P", bound=Kept)


def read(path: Path, digest: str, made: Callable[[dict[str, Any]], _P]) -> _P:
    """Return the progress that a file has; `made` makes it of the file's members.

    Raises `RequestError` if it has none, or that of another digest.
    """
    try:
        found = made(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise RequestError(f"{path}: not the results of a sweep: {str(error).splitlines()[0]}") from None
    if found.digest != digest:
        raise RequestError(f"{path}: results of other objects or rules; remove it, or name another file")
    return found


def save(path: Path, progress: Mapping[str, Any]) -> None:
    """Write a file, as a whole or not at all."""
    beside = path.with_name(path.name + ".new")
    beside.write_text(json.dumps(progress) + "\n", "utf-8")
    beside.replace(path)
