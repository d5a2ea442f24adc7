"""The three that execute cases: the host's CPU, qemu-user, and Trapline's Linux guest."""

from __future__ import annotations

import io
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from emu.guest.kernel.boot import images
from emu.guest.linux.fs.stdio import Standard
from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.launch import Program
from emu.isa import ISAS
from tests.fuzz.judge.case import Case, Result, results

# The CPUs that have what the guests' have, and no more (docs/linux.md).
QEMU: Final = {
    "aarch64": ("qemu-aarch64", "-cpu", "cortex-a72"),
    "riscv64": ("qemu-riscv64", "-cpu", "rv64,zba=false,zbb=false,zbc=false,zbs=false"),
}
_HOST: Final = {"x86_64": ("x86_64",), "i386": ("x86_64",)}
# Seconds for the cases of one process: they have no loops.
_PATIENCE: Final = 300


class JudgeError(Exception):
    """A process ended before it had executed all of its cases; the message says how."""


def command(isa: str) -> tuple[str, ...] | None:
    """Return the command that executes a program of this ISA on other than ours; None if this host has none."""
    if platform.machine() in _HOST.get(isa, ()):
        return ()
    below = QEMU.get(isa)
    return below if below and shutil.which(below[0]) else None


def program(isa: str) -> Path:
    """Return the program that executes cases."""
    return Path(images.linux(ISAS[isa], "judge"))


def by_judge(isa: str, cases: Sequence[Case]) -> list[Result]:
    """Return the results on the host's CPU or below qemu-user.

    Raises JudgeError.
    """
    prefix = command(isa)
    if prefix is None:
        raise JudgeError(f"this host executes no {isa}: it needs {QEMU[isa][0] if isa in QEMU else 'an x86-64 CPU'}")
    ended = subprocess.run(
        [*prefix, program(isa)],
        input=_input([case.judged or case for case in cases]),
        capture_output=True,
        timeout=_PATIENCE,
        check=False,
    )
    return _all(cases, ended.stdout, f"the judge's process ended with {ended.returncode}")


def by_guest(isa: str, cases: Sequence[Case]) -> list[Result]:
    """Return the results on the Linux guest.

    Raises JudgeError.
    """
    output = bytearray()
    standard = Standard(read=io.BytesIO(_input(cases)).read, write=output.extend)
    guest = LinuxGuest(ISAS[isa], Program(str(program(isa))), standard=standard)
    guest.run(None)
    return _all(cases, bytes(output), f"the guest: {guest.ending()}, status {guest.exit_status}")


def _input(cases: Sequence[Case]) -> bytes:
    return b"".join(case.packed() for case in cases)


def _all(cases: Sequence[Case], output: bytes, ending: str) -> list[Result]:
    expected = sum(case.results for case in cases)
    found = results(output)
    if len(found) != expected:
        raise JudgeError(f"{len(found)} results of {expected}: {ending}")
    return found
