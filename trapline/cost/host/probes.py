"""Probes of the host itself: a breakpoint with SIGTRAP, and the kernel's uprobes.

The code that is probed is machine code (`host.toml`), so no compiler is needed.  Breakpoints are
executed in a process of its own (`trapline.cost.host.traps`).  Uprobes are opened with
perf_event_open(2), which needs no tracefs: a counter, without a program.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import struct
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

from emu.isa import ISAS
from emu.support import child
from trapline.cost.hit_work import Events
from trapline.cost.models import chosen, of_isa
from trapline.cost.tables import Table, number

_PMU: Final = Path("/sys/bus/event_source/devices/uprobe/type")
_PARANOID: Final = Path("/proc/sys/kernel/perf_event_paranoid")
# struct perf_event_attr (perf_event_open(2)): its size, and where config, config1 and config2 are.
_ATTRIBUTES: Final = 128
_HEAD: Final = struct.Struct("<IIQ")
_TARGET: Final = struct.Struct("<QQ")
_TARGET_OFFSET: Final = 56
_CLOEXEC: Final = 8
_RETURN: Final = 1
_CALLS: Final = 20_000
_TURNS: Final = 3
_PAGE: Final = 4096
_SECONDS: Final = 60


class HostError(Exception):
    """A time cannot be measured on this host; the message says why."""


class HostFigure(NamedTuple):
    """A time that was measured on this host."""

    what: str
    nanoseconds: float
    hits: int
    events: Events | None
    """The events that the models have prices for; None: the models have no prices."""

    def data(self) -> dict[str, Any]:
        """Return the figure as a plain object for JSON."""
        return {"what": self.what, "nanoseconds": round(self.nanoseconds, 1), "hits": self.hits}


def code() -> Mapping[str, Any]:
    """Return the machine code of this host's ISA.  Raises `HostError` if there is none."""
    found: Mapping[str, Any] = tomllib.loads(files("trapline.cost").joinpath("host.toml").read_text("utf-8"))
    name = platform.machine()
    if sys.platform != "linux" or name not in found or struct.calcsize("P") != ISAS[name].word:
        raise HostError(f"--host: not on {sys.platform} on {name}; on Linux, with a Python for {', '.join(found)}")
    return found[name]


def measure() -> tuple[list[HostFigure], list[str]]:
    """Return the figures, and a line for each one that is missing.  Raises `HostError`."""
    host = code()
    figures, left_out = [], []
    for part in (_traps, _uprobes):
        try:
            figures += part(host)
        except HostError as error:
            left_out.append(str(error))
    return figures, left_out


def _traps(_host: Mapping[str, Any]) -> list[HostFigure]:
    """Measure breakpoints in another process, which a refused mapping or a signal may end."""
    words = [sys.executable, "-m", "trapline.cost.host.traps"]
    try:
        ran = child.run(words, timeout=_SECONDS, text=True)
        ran.check_returncode()
        taken = float(ran.stdout)
    except (subprocess.SubprocessError, OSError, ValueError) as error:
        raise HostError(f"breakpoints with SIGTRAP: not measured: {error}") from None
    return [HostFigure("breakpoint, SIGTRAP, a handler in machine code, and back", taken, _CALLS, None)]


# -- uprobes


def _uprobes(host: Mapping[str, Any]) -> list[HostFigure]:
    if not _PMU.is_file():
        raise HostError(f"uprobes: not measured: this kernel has none ({_PMU} is missing)")
    kind = int(_PMU.read_text(encoding="ascii"))
    figures = []
    for index, (name, text) in enumerate(host["probed"].items()):
        stepped = "stepped" in name
        with _function(bytes.fromhex(text)) as (path, call):
            figures.append(_probed(f"uprobe on {name}", kind, path, call, Events(traps=1, steps=int(stepped))))
            if not index:
                events = Events(traps=1, returns=1)
                figures.append(_probed(f"uretprobe on {name}", kind, path, call, events, _RETURN))
    return figures


@contextmanager
def _function(text: bytes) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield a file with machine code, and the function of it, mapped as a program's code is."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(text.ljust(_PAGE, b"\0"))
        file.flush()
        # The kernel puts no uprobe into a mapping that may be written, which Python's own mappings are.
        library = ctypes.CDLL(None, use_errno=True)
        library.mmap.restype = ctypes.c_void_p
        size, offset = ctypes.c_size_t(_PAGE), ctypes.c_long(0)
        code = mmap.PROT_READ | mmap.PROT_EXEC
        address = library.mmap(ctypes.c_void_p(None), size, code, mmap.MAP_PRIVATE, file.fileno(), offset)
        if address == ctypes.c_void_p(-1).value:
            why = os.strerror(ctypes.get_errno())
            raise HostError(f"uprobes: not measured: {tempfile.gettempdir()} cannot hold code: {why}")
        try:
            yield file.name, ctypes.CFUNCTYPE(None)(address)
        finally:
            library.munmap(ctypes.c_void_p(address), size)


def _probed(
    what: str, kind: int, path: str, call: Callable[[], None], events: Events, config: int = 0
) -> HostFigure:  # fmt: skip
    """Return the nanoseconds that a uprobe at its first instruction adds to a call."""
    plain = _fastest(call)
    with _opened(kind, path, config) as event:
        probed = _fastest(call)
        (hits,) = struct.unpack("<Q", os.read(event, 8))
    if hits != _CALLS * _TURNS:
        raise HostError(f"uprobes: not measured: {hits} of {_CALLS * _TURNS} hits were counted")
    return HostFigure(what, probed - plain, hits, events)


def _fastest(call: Callable[[], None]) -> float:
    """Return the nanoseconds of a call, of the fastest of some turns."""

    def calls() -> None:
        for _ in range(_CALLS):
            call()

    return fastest(calls, _TURNS) / _CALLS


@contextmanager
def _opened(kind: int, path: str, config: int) -> Iterator[int]:
    """Open a uprobe at a file's first byte, for this process, and yield its counter."""
    library = ctypes.CDLL(None, use_errno=True)
    numbers = {name: number for number, name in ISAS[platform.machine()].linux.calls.items()}
    name = ctypes.create_string_buffer(path.encode())
    attributes = ctypes.create_string_buffer(_ATTRIBUTES)
    _HEAD.pack_into(attributes, 0, kind, _ATTRIBUTES, config)
    _TARGET.pack_into(attributes, _TARGET_OFFSET, ctypes.addressof(name), 0)
    here, anywhere, alone = ctypes.c_int(0), ctypes.c_int(-1), ctypes.c_int(-1)
    call = ctypes.c_long(numbers["perf_event_open"])
    event = library.syscall(call, attributes, here, anywhere, alone, ctypes.c_ulong(_CLOEXEC))
    if event < 0:
        why = os.strerror(ctypes.get_errno())
        level = _PARANOID.read_text(encoding="ascii").strip() if _PARANOID.is_file() else "?"
        raise HostError(f"uprobes: not measured: {why} (they need root; perf_event_paranoid is {level})")
    try:
        yield event
    finally:
        os.close(event)


def table(figures: list[HostFigure], left_out: list[str]) -> Table:
    """Return the measured times beside the predictions of this ISA's models."""
    machines = of_isa(chosen([]), platform.machine())
    return Table(
        f"This host ({platform.machine()}, Linux {platform.release()})",
        ("what", "measured ns", *(f"{machine.name} ns" for machine in machines)),
        [
            (
                figure.what,
                number(figure.nanoseconds),
                *(number(machine.nanoseconds(figure.events)) if figure.events else "-" for machine in machines),
            )
            for figure in figures
        ],
        (
            "Each is the fastest of some turns, without the same call without the probe.",
            "The other columns are the models, which are of other machines.",
            *left_out,
        ),
        texts=1,
    )


def fastest(action: Callable[[], object], turns: int) -> float:
    """Return the nanoseconds of the fastest of some turns."""
    best = float("inf")
    for _ in range(turns):
        start = time.perf_counter_ns()
        action()
        best = min(best, time.perf_counter_ns() - start)
    return best
