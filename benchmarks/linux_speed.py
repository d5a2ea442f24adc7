"""The speed of a Linux program without probes, with the virtual clock counting.

It is compared with bare Unicorn in virtual-TLB mode (the same guest on an engine that does not
count, and so has no clock), and with qemu-user and Qiling, if they are installed, from their start
to the program's end.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import unicorn

from benchmarks.figures import Cell, Figures, Scale, seconds
from emu.engine import engine
from emu.engine.qemu.hooks import Hooks
from emu.guest.kernel.boot import images
from emu.isa import Isa
from trapline.machine import linux_machine

CASE = "cxx"
# The exit status of the case.
STATUS = 13
_TURNS = 7


class _Uncounted(Hooks):
    """The hooks of an engine, without that of every block: it counts nothing and has no clock."""

    def add(self, kind: int, *arguments: Any, **options: Any) -> int:
        return 0 if kind == unicorn.UC_HOOK_BLOCK else super().add(kind, *arguments, **options)


def _start(isa: Isa, hooks: type[Hooks] = Hooks) -> linux_machine.LinuxGuest:
    words = (str(images.linux(isa, "zoo")), CASE)
    options = linux_machine.LinuxOptions(words, isa=isa, evaltime=linux_machine.EvalTime.EXEC)
    with mock.patch.object(engine, "Hooks", hooks):
        return linux_machine.start_guest(options)


def _seconds(isa: Isa, hooks: type[Hooks]) -> tuple[float, float]:
    """Run the program; return the seconds of the run, and those with loading."""
    began = time.perf_counter()
    guest = _start(isa, hooks)
    loaded = time.perf_counter()
    guest.run(None)
    ended = time.perf_counter()
    if guest.exit_status != STATUS:
        raise SystemExit(f"{isa.name}: {CASE} ended with {guest.exit_status}")
    return ended - loaded, ended - began


def _qemu(isa: Isa) -> Callable[[], object] | None:
    command = shutil.which(f"qemu-{isa.name}")
    if command is None:
        return None
    words = [command, str(images.linux(isa, "zoo")), CASE]
    return lambda: subprocess.run(words, stdout=subprocess.DEVNULL, check=False)


def _qiling(isa: Isa) -> Callable[[], object] | None:
    if importlib.util.find_spec("qiling") is None:
        return None
    from qiling import Qiling  # type: ignore[import-not-found]  # noqa: PLC0415  (not a dependency)
    from qiling.const import QL_VERBOSE  # type: ignore[import-not-found]  # noqa: PLC0415

    return lambda: Qiling([str(images.linux(isa, "zoo")), CASE], "/", verbose=QL_VERBOSE.OFF).run()


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Measure on some ISAs."""
    return Figures(
        "A Linux program with nothing probed",
        ("ISA", "counting, MIPS", "% of bare Unicorn", "times qemu-user's seconds", "times Qiling's seconds"),
        [_row(isa, scale) for isa in isas],
        f"zoo {CASE} (C++: containers, exceptions), started anew each time; least of {_TURNS} turns. Bare Unicorn: the "
        "same guest, nothing counted; both without loading. The other two from start to end.",
    )


def _row(isa: Isa, scale: Scale) -> list[Cell]:
    guest = _start(isa)
    guest.run(None)
    others = {"qemu": _qemu(isa), "qiling": _qiling(isa)}
    counted, bare, outside = [], [], {name: [] for name, run in others.items() if run is not None}
    for _ in range(scale.turns(_TURNS)):
        counted.append(_seconds(isa, Hooks))
        bare.append(_seconds(isa, _Uncounted))
        for name, times in outside.items():
            run = others[name]
            assert run is not None
            times.append(seconds(run))
    (fastest, _), (unclocked, _) = min(counted), min(bare)
    whole = min(total for _, total in counted)
    ratios = [whole / min(outside[name]) if name in outside else "not installed" for name in others]
    return [isa.title, guest.engine.instructions / fastest / 1e6, 100 * unclocked / fastest, *ratios]
