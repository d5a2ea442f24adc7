"""Real Linux kernels: booting, restoring and firing, and the same boot in qemu-system.

The kernels are those that `trapline kernel get` has stored; an ISA without one is left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.figures import Cell, Figures, Scale, seconds
from emu.guest.linux_kernel.errors import KernelFileError
from emu.guest.linux_kernel.files import store
from emu.guest.linux_kernel.machine import snapshot
from emu.guest.linux_kernel.machine.initramfs import MARK, READY
from emu.guest.linux_kernel.machine.machine import ARGUMENTS
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.isa.base import Isa
from trapline.framework.device.dtrace import DTrace
from trapline.framework.device.ioctl import OpenDevice
from trapline.machine.linux_kernel_machine import LinuxKernelOptions, machine_of, start

# ISA -> the program and its machine.  An x86-64 kernel is stored unpacked, and qemu loads only a bzImage.
_QEMU: Final[Mapping[str, tuple[str, ...]]] = {
    "riscv64": ("qemu-system-riscv64", "-M", "virt"),
    "aarch64": ("qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a57"),
}
_TIMEOUT: Final = 120
_READS: Final = 60_000


def with_kernels(isas: Sequence[Isa]) -> tuple[list[Isa], list[str]]:
    """Return the ISAs whose kernel is stored, and a line about each of the others."""
    present, left_out = list[Isa](), list[str]()
    for isa in isas:
        try:
            store.stored(isa)
        except KernelFileError as error:
            left_out.append(str(error))
        else:
            present.append(isa)
    return present, left_out


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Measure on some ISAs."""
    rows: list[list[Cell]] = []
    present, left_out = with_kernels(isas)
    for isa in present:
        rows += [[isa.title, what, figure] for what, figure in _rows(isa, scale)]
    return Figures(
        "Real kernels",
        ("ISA", "what", "figure"),
        rows,
        "Debian's kernels with 256 MiB of memory and the same command line and initramfs everywhere. A firing is one "
        "read() of one byte with fbt::vfs_read:entry counted, less one without a probe, in processor time. Least of 3 "
        "runs. qemu-system-x86_64 is not measured: it loads only a bzImage.",
        left_out=left_out,
    )


def _rows(isa: Isa, scale: Scale) -> list[tuple[str, Cell]]:
    turns = scale.turns(3)
    options = LinuxKernelOptions(isa)
    instructions = 0

    def boot() -> None:
        nonlocal instructions
        machine = machine_of(options)
        machine.load()
        machine.boot()
        instructions = machine.engine.instructions

    def restore() -> None:
        snapshot.booted(machine_of(options))

    booted = _least(boot, turns)
    snapshot.booted(machine_of(options))
    beside = _qemu(isa, turns)
    rows: list[tuple[str, Cell]] = [
        ("boot to user space, seconds", booted),
        ("boot, million instructions a second", instructions / booted / 1e6),
    ]
    if beside is not None:
        rows += [
            ("the same in qemu-system, seconds", beside),
            ("qemu-system is faster by a factor of", booted / beside),
        ]
    rows.append(("from the snapshot, seconds", _least(restore, turns)))
    reads = scale.rounds(_READS)
    times = {program: float("inf") for program in ("", _COUNT)}
    for _ in range(turns):
        for program, best in times.items():
            times[program] = min(best, _reading(isa, program, reads))
    plain, probed = times[""], times[_COUNT]
    rows += [
        ("read() of one byte, nanoseconds", plain / reads * 1e9),
        ("a firing that counts, nanoseconds", (probed - plain) / reads * 1e9),
    ]
    return rows


_COUNT: Final = "fbt::vfs_read:entry { @ = count(); }"


def _least(action: Callable[[], object], turns: int) -> float:
    return min(seconds(action) for _ in range(turns))


def _reading(isa: Isa, program: str, reads: int) -> float:
    """Return the processor time of a run with many reads."""
    traced = start(LinuxKernelOptions(isa, (f"dd if=/dev/zero of=/dev/null bs=1 count={reads}",)))
    if program:
        enable(traced.dtrace, program)
    began = time.process_time()
    traced.guest.run(None)
    return time.process_time() - began


def enable(dtrace: DTrace, program: str) -> OpenDevice:
    """Enable a program, and start tracing."""
    from trapline.d.compiler import CompileContext, Form, compile_program  # noqa: PLC0415  D is loaded when it is needed
    from trapline.dof import encode  # noqa: PLC0415
    from trapline.options import Options  # noqa: PLC0415

    device = dtrace.open()
    context = CompileContext(Options(), device.probes, form=Form.NAME, argument=device.probe_argument)
    device.enable(encode(compile_program(program, context)))
    device.go()
    return device


def _qemu(isa: Isa, turns: int) -> float | None:
    """Return how long qemu-system takes to user space; None: it is not installed."""
    words = _QEMU.get(isa.name)
    if words is None or shutil.which(words[0]) is None:
        return None
    parts = machine_of(LinuxKernelOptions(isa)).parts
    board = BOARDS[isa.name]
    with tempfile.TemporaryDirectory() as folder:
        initramfs = Path(folder) / "initramfs"
        initramfs.write_bytes(parts.initramfs)
        command = [
            *words, "-m", "256M", "-nographic", "-no-reboot", "-kernel", str(store.path_of(isa)),
            "-initrd", str(initramfs), "-append", f"console={board.console} quiet {ARGUMENTS}",
        ]  # fmt: skip
        found = [_until_ready(command) for _ in range(turns)]
    return None if None in found else min(one for one in found if one is not None)


def _until_ready(command: Sequence[str]) -> float | None:
    """Return how long it takes until /init says that it is ready; None: it does not."""
    began = time.perf_counter()
    wanted = f"{MARK}{READY}{MARK}".encode()
    shown = b""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        while wanted not in shown and time.perf_counter() - began < _TIMEOUT:
            data = os.read(process.stdout.fileno(), 4096)
            if not data:
                return None
            shown += data
        return time.perf_counter() - began if wanted in shown else None
    finally:
        process.kill()
        process.wait()
