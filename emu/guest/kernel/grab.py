"""Running the kernel guest to the start of a process (libproc's proc_create)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from emu.displaced.frame import Frame
from emu.elf.file import ElfError
from emu.guest.kernel.guest import KernelGuest
from emu.guest.kernel.user.processes import Process
from emu.guest.processes import EXECUTED
from emu.probe.patcher import Patcher

INIT = 1


def is_command(process: Process) -> bool:
    """Return whether a process is one that the start-up shell has started.

    The shell's parent is init.
    """
    shell = process.parent
    return shell is not None and shell.parent is not None and shell.pid != INIT and shell.parent.pid == INIT


def grab(guest: KernelGuest, wanted: Callable[[Process], bool]) -> Process | None:
    """Run until a wanted process is about to execute its first instruction.

    A process that exists already is taken at its current pc.  None: the guest has ended without
    such a process.
    """
    found = next(filter(wanted, guest.userland.alive()), None)

    def executed(process: Process) -> None:
        nonlocal found
        if found is None and wanted(process):
            found = process
            guest.interrupt()

    guest.userland.executed.append(executed)
    while found is None and guest.exit_status is None:
        guest.run(None)
    guest.userland.executed.remove(executed)
    return found


def run_to_start(guest: KernelGuest, process: Process, *, main: bool) -> None:
    """Run to a program's entry, with its libraries loaded, or to its `main` if it has that symbol.

    The run also ends if the program ends before that.
    """
    userland = guest.userland
    program = userland.objects.of(process)[0]
    address = program.image.entry
    if main:
        with suppress(ElfError):
            address = program.image.symbol("main").value
    address += program.bias
    patcher = Patcher(userland.code(process))
    tracepoint = patcher.create(address, guest.isa.traps.breakpoints[-1], "start")
    reached = False

    def stop(at: int, _frame: Frame, _extra: int) -> int:
        nonlocal reached
        current = userland.current
        if at != address or current is None or current.process is not process:
            return 0
        reached = True
        patcher.remove(tracepoint)
        userland.cpu.pc = address
        userland.cpu.discount(1)
        guest.interrupt()
        return EXECUTED

    userland.traps.add(stop)
    patcher.install(tracepoint)
    while not reached and process.alive and guest.exit_status is None:
        guest.run(None)
    userland.traps.remove(stop)
