"""The offsets of a library: experiments find them, and a cache on disk keeps them by its hash.

The experiments run in a process of their own, which may crash without harm.  It imports
`emu.isa.calibration`, which knows the experiments of every CPU: this package is below the ISAs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from emu.support import child
from emu.support.disk_cache import cached
from emu.unicorn_layout.library import Library, Parts

# An addition to the library's hash: change it when the experiments change.
_EDITION: Final = b"2"
# Experiments take a second; a host may be emulated, and slow.
_SECONDS: Final = 300
_LARGEST: Final = 1 << 20
_CODE: Final = """
import sys
from importlib import import_module
from emu.unicorn_layout.layout import WheelLayout, assume
assume(WheelLayout())  # the experiments do not use it
import_module("emu.isa.calibration").main(sys.argv[1])
"""
# The part of the answer that every command needs (`emu.isa.calibration`).
_LAYOUT: Final = "layout"


class CalibrationError(Exception):
    """The offsets were not found; the message says why."""


def find(library: Library, what: str = _LAYOUT) -> Parts:
    """Return the offsets of a library, from the cache if an earlier process has found them.

    `what`: those that every command needs, or a part that is found when it is needed first.  Raises
    `CalibrationError`.
    """
    try:
        made_from = b" ".join((_EDITION, library.digest().encode(), library.host.encode()))
    except OSError as error:
        raise CalibrationError(f"{library.path} cannot be read: {error.strerror}") from None
    return understood(cached(what, made_from, lambda: experiment(what)))


def experiment(what: str = _LAYOUT) -> bytes:
    """Run the experiments on the library of this process's kind; return their answer.

    Raises `CalibrationError` if the process fails, so that nothing is kept.
    """
    root = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((root, *filter(None, sys.path)))}
    command = [sys.executable, "-c", _CODE, what]
    try:
        done = child.run(command, timeout=_SECONDS, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CalibrationError(f"calibration could not run: {error}") from None
    if done.returncode < 0:
        raise CalibrationError(f"calibration ended with signal {-done.returncode}")
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise CalibrationError(f"calibration failed: {lines[-1]}")
    understood(done.stdout, refusals=False)
    return bytes(done.stdout)


def understood(answer: bytes, *, refusals: bool = True) -> Parts:
    """Return the offsets that an answer of the experiments contains.

    Raises `CalibrationError` if they were not found (`refusals`), or if it is damaged.
    """
    try:
        data = json.loads(answer)
        reason, parts = data["reason"], data["parts"]
        numbers = [number for part in parts.values() for number in part.values()]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CalibrationError("calibration gave no answer that can be read") from None
    if reason and refusals:
        raise CalibrationError(f"calibration did not find {reason}")
    if not all(isinstance(number, int) and 0 <= number < _LARGEST for number in numbers):
        raise CalibrationError("calibration gave offsets that cannot be right")
    found: Parts = parts
    return found
