"""Real Linux kernels booted with a probe at the entry of every function, beside an unprobed boot.

Probes are enabled before the drivers start (`-x boot`), and the boot, a command and the power-off
follow.  The kernel's messages and the command's output must be those of the unprobed boot.  They
are compared without the values of the kernel's clock: a breakpoint ends a translated block, and
interrupts are taken between blocks, so a timer's interrupt comes a few instructions earlier or
later.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.figures import Cell, Figures, Scale
from benchmarks.kernels import enable, with_kernels
from emu.isa.base import Isa
from trapline.machine.linux_kernel_machine import LinuxKernelOptions, start

_COMMAND: Final = "uname -r; ls -l /bin /etc; seq 1 500 | sort | tail -n 3; dmesg | wc -l"
# The messages have no time stamps; the kernel prints two values of its clock nevertheless.
_APPEND: Final = "printk.time=0"
_CLOCK: Final = re.compile(rb"sched_clock: Marking stable .*")
_ALL, _FEW = "fbt:::entry { @ = count(); }", "fbt::*alloc*:entry { @ = count(); }"


@dataclass(frozen=True, slots=True)
class Boot:
    """One boot."""

    console: bytes
    status: int | None
    """The exit status of the command."""
    probes: int
    firings: int
    enabling: float
    """Processor time in seconds until the probes are enabled."""
    running: float
    """Processor time in seconds from there to power-off."""

    @property
    def lines(self) -> list[bytes]:
        """The output, without the values of the clock."""
        return _CLOCK.sub(b"", self.console).splitlines()


def boot(isa: Isa, program: str = "") -> Boot:
    """Boot an ISA's kernel, with a program that counts, or without one."""
    console = bytearray()
    began = time.process_time()
    options = LinuxKernelOptions(isa, (_COMMAND,), console=console.extend, quiet=False, append=_APPEND, boot=True)
    traced = start(options)
    device = enable(traced.dtrace, program) if program else None
    ready = time.process_time()
    traced.guest.run(None)
    ended = time.process_time()
    probes = len(traced.text) if program else 0
    firings = 0
    if device is not None:
        entries = device.aggregation_snapshot(0).entries
        firings = sum(int.from_bytes(entry[-8:], "little") for entry in entries)
    return Boot(bytes(console), traced.guest.machine.status, probes, firings, ready - began, ended - ready)


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Boot the kernels of some ISAs with and without probes."""
    rows: list[list[Cell]] = []
    present, left_out = with_kernels(isas)
    for isa in present:
        plain, probed = boot(isa), boot(isa, _FEW if scale.smallest else _ALL)
        different = sum(one != other for one, other in zip(plain.lines, probed.lines, strict=False))
        different += abs(len(plain.lines) - len(probed.lines)) + (plain.status != probed.status)
        found: list[tuple[str, Cell]] = [
            ("breakpoints", probed.probes),
            ("firings", probed.firings),
            ("lines on the console", len(plain.lines)),
            ("of these different", different),
            ("to enable the probes, seconds", probed.enabling - plain.enabling),
            ("boot, command and power-off, seconds", plain.running),
            ("the same with all probes, seconds", probed.running),
        ]
        rows += [[isa.title, what, figure] for what, figure in found]
    return Figures(
        "Booting with a probe at every function's entry",
        ("ISA", "what", "figure"),
        rows,
        "Debian's kernels, from before the drivers start to power-off, with `fbt:::entry { @ = count(); }` and without "
        "probes. Seconds are processor time. The output is compared without the clock's values.",
        left_out=left_out,
    )
