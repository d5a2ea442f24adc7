"""Trapline's breakpoints beside a Linux kernel's own kprobes: same boot, program and functions.

Through tracefs the kernel puts a kprobe on each of some functions, after the instruction of
Trapline's breakpoint, and a workload runs.  Trapline records a hit only while the kernel's probe is
armed, which is visible in the kernel's text.  So both must have exactly the same hits; and if the
kernel records them, the same arguments in the same order.

Source: Linux Documentation/trace/kprobetrace.rst.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from emu.frame import Frame
from emu.guest.base import GuestError
from emu.isa.base import Isa
from emu.plans import Branch
from providers.linux_kernel.sites import LONGEST, entry_site
from providers.linux_kernel.text import Hook, Text
from trapline.machine.linux_kernel_machine import LinuxKernelOptions, TracedLinuxKernel, start

# Functions that the workload calls, often and rarely.
FUNCTIONS: Final = ("vfs_read", "vfs_write", "do_sys_openat2", "vfs_statx", "kmem_cache_free", "fput", "do_exit")
WORKLOAD: Final = (
    "ls -l / >/dev/null; seq 1 300 | sort | tail -n 1 >/dev/null; head -c 1000 /bin/busybox | wc -c >/dev/null"
)
_ARGUMENTS: Final = 3
_GROUP: Final = "trapline"
_BUFFER_KIB: Final = 16384
_RECORD: Final = re.compile(rb"(\w+): \(\S+?\)((?: \w+=0x[0-9a-f]+)+)")
_PROFILE: Final = re.compile(rb"^\s*(\w+)\s+(\d+)\s+(\d+)\s*$", re.MULTILINE)
_TRACE_BEGINS, _TRACE_ENDS, _PROFILE_BEGINS = b"== trace\n", b"== end\n", b"== profile\n"


@dataclass(slots=True)
class Row:
    """One function, with the hits of both."""

    function: str
    ours: int = 0
    kernel: int | None = None
    """The kernel's count of hits; None: it refused the probe."""
    missed: int = 0
    """The number of hits that the kernel reports as missed."""
    recorded: int = 0
    """Records in the kernel's trace."""
    same_arguments: bool = True
    _hits: list[tuple[int, ...]] = field(default_factory=list, repr=False)

    @property
    def agrees(self) -> bool:
        """Whether both have the same hits."""
        return self.kernel is not None and self.ours == self.kernel + self.missed and self.same_arguments

    def hit(self, arguments: tuple[int, ...]) -> None:
        """Record a hit of Trapline's breakpoint."""
        self.ours += 1
        self._hits.append(arguments)

    def compare(self, records: list[tuple[int, ...]]) -> None:
        """Compare the kernel's records with Trapline's hits, which must include them in order.

        The kernel has no record of a hit that it has missed, or met while it wrote another.
        """
        self.recorded = len(records)
        hits = iter(self._hits)
        self.same_arguments = all(record in hits for record in records)


def compare(isa: Isa, functions: tuple[str, ...] = FUNCTIONS, workload: str = WORKLOAD) -> list[Row]:
    """Run the workload on an ISA's kernel with both probes; return a row for each function.

    A function whose entry displaces a branch, or that has no entry probe, is left out.

    Raises `emu.guest.linux_kernel.errors.KernelFileError`, and `emu.guest.base.GuestError`.
    """
    shown = bytearray()
    rows, places = [], []
    # The place of the kernel's probe depends on the kernel: it is found with a first machine, from the snapshot.
    asked = start(LinuxKernelOptions(isa=isa))
    for function in functions:
        place = _place(asked, function)
        if place is not None:
            rows.append(Row(function))
            places.append(place)
    traced = start(LinuxKernelOptions(isa=isa, commands=(_script(isa, rows, places, workload),), console=shown.extend))
    for row, place in zip(rows, places, strict=True):
        traced.text.add(place.ours, Hook(_hook(traced.text, row, place)))
    traced.guest.run(None)
    if traced.guest.machine.status:
        raise GuestError(f"the oracle's script ended with status {traced.guest.machine.status}: {shown[-200:]!r}")
    _read(bytes(shown), rows)
    return rows


@dataclass(frozen=True, slots=True)
class _Place:
    function: str
    start: int
    ours: int
    """Address of Trapline's breakpoint."""
    kernels: int
    """Address of the kernel's breakpoint: the next instruction."""


def _place(traced: TracedLinuxKernel, function: str) -> _Place | None:
    symbol = traced.guest.facts.symbols.get(function)
    if symbol is None:
        return None
    found = entry_site(traced.guest.isa, traced.text.code(symbol.value, 3 * LONGEST), symbol.value)
    if found is None:
        return None
    address, treatment = found
    if any(isinstance(operation, Branch) for operation in treatment.plan.operations):
        return None  # the kernel's probe, after it, would not be hit each time
    return _Place(function, symbol.value, address, address + treatment.length)


def _script(isa: Isa, rows: list[Row], places: list[_Place], workload: str) -> str:
    """Return the script for the guest's shell."""
    names = {ours: theirs for theirs, ours in isa.linux.probe_registers.items()}
    registers = [names[name] for name in isa.calling.arguments[:_ARGUMENTS]]
    fetched = " ".join(f"a{number}=%{name}" for number, name in enumerate(registers))
    lines = ["cd /sys/kernel/tracing", f"echo {_BUFFER_KIB} > buffer_size_kb"]
    for row, place in zip(rows, places, strict=True):
        where = f"{row.function}+{place.kernels - place.start}"
        lines.append(f"echo 'p:{_GROUP}/{row.function} {where} {fetched}' >> kprobe_events 2>/dev/null")
    lines += [
        f"echo 1 > events/{_GROUP}/enable",
        workload,
        f"echo 0 > events/{_GROUP}/enable",
        f"echo '{_PROFILE_BEGINS.decode().strip()}'",
        "cat kprobe_profile",
        f"echo '{_TRACE_BEGINS.decode().strip()}'",
        "cat trace",
        f"echo '{_TRACE_ENDS.decode().strip()}'",
    ]
    return "; ".join(lines)


def _hook(text: Text, row: Row, place: _Place) -> Callable[[Frame], None]:
    """Return a hook that records a hit while the kernel's text at its probe is changed."""
    at_rest = text.code(place.kernels, 4)

    def hook(frame: Frame) -> None:
        if text.code(place.kernels, 4) != at_rest:
            row.hit(frame.arguments()[:_ARGUMENTS])

    return hook


def _read(shown: bytes, rows: list[Row]) -> None:
    """Read the kernel's profile and its trace."""
    _, _, rest = shown.partition(_PROFILE_BEGINS)
    profile, _, rest = rest.partition(_TRACE_BEGINS)
    counts = {name.decode(): (int(hits), int(missed)) for name, hits, missed in _PROFILE.findall(profile)}
    records: dict[str, list[tuple[int, ...]]] = {}
    for name, values in _records(rest.partition(_TRACE_ENDS)[0]):
        records.setdefault(name, []).append(values)
    for row in rows:
        if row.function in counts:
            row.kernel, row.missed = counts[row.function]
        row.compare(records.get(row.function, []))


def _records(trace: bytes) -> Iterator[tuple[str, tuple[int, ...]]]:
    for name, fields in _RECORD.findall(trace):
        yield name.decode(), tuple(int(value.partition(b"=")[2], 16) for value in fields.split())
