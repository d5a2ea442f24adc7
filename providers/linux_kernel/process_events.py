"""The events of programs on a real kernel, for the providers of their probes.

Breakpoints in functions of the kernel report them, in the context of the process:

| function | event |
| --- | --- |
| `finalize_exec` | a program has been executed |
| `wake_up_new_task` | a process has forked |
| `do_exit` | a thread ends; with the last one its process |
| `uprobe_mmap` | a file is mapped; the mappings are locked |
| `userfaultfd_unmap_complete` | the mappings are unlocked again |

An observer may call functions of the kernel that sleep, so all but ends are reported when the CPU
has stopped there.

Source: Linux 6.12 fs/exec.c, kernel/fork.c, kernel/exit.c, mm/mmap.c (mmap_region), mm/util.c
(vm_mmap_pgoff), include/linux/sched/signal.h (signal_struct.live).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from emu.displaced.frame import Frame
from emu.engine.memory.access import Access
from emu.guest.linux_kernel.kernel_calls import KernelCalls
from providers.linux_kernel.sites import LONGEST, entry_site
from providers.linux_kernel.text import Hook, Text

if TYPE_CHECKING:
    from emu.guest.linux_kernel.areas import Area
    from emu.guest.linux_kernel.guest import LinuxKernelGuest
    from emu.guest.linux_kernel.programs import Process, Programs

EXECUTED: Final = "finalize_exec"
FORKS: Final = "kernel_clone"
EXITS: Final = "do_exit"
_FORKED: Final = "wake_up_new_task"
_MAPS: Final = "uprobe_mmap"
_MAPPED: Final = "userfaultfd_unmap_complete"
_POINTER: Final = 8
_INT: Final = 4


def entry_of(text: Text, guest: LinuxKernelGuest, function: str) -> int | None:
    """Return the address in a function of the kernel for a breakpoint, None if there is none."""
    symbol = guest.facts.symbols.get(function)
    code = text.code(symbol.value, 3 * LONGEST) if symbol is not None else b""
    site = None if symbol is None else entry_site(text.isa, code, symbol.value)
    return None if site is None else site[0]


class ProcessEvents:
    """Reports the events of one kernel's programs to their observers."""

    def __init__(self, guest: LinuxKernelGuest, programs: Programs, text: Text, calls: KernelCalls) -> None:
        """Write the breakpoints.

        Raises `emu.guest.linux_kernel.files.btf.BtfError` if the kernel keeps processes in another
        way.
        """
        self._guest = guest
        self._programs = programs
        self._calls = calls
        btf = guest.facts.btf
        self._signal_at, self._live_at = btf.offset("task_struct", "signal"), btf.offset("signal_struct", "live")
        self._areas: dict[int, list[Area]] = defaultdict(list)
        """The mappings that were made while they were locked, by address space."""
        hooks: dict[str, Callable[[Frame], None]] = {
            EXECUTED: self._executed,
            _FORKED: self._forked,
            EXITS: self._exits,
            _MAPS: self._maps,
            _MAPPED: self._mapped,
        }
        for function, call in hooks.items():
            address = entry_of(text, guest, function)
            if address is not None:
                text.add(address, Hook(call))

    def _later(self, report: Callable[[], object]) -> None:
        """Report an event once the CPU has stopped.

        Until then its process waits if functions of the kernel are being called for another event.
        """
        machine, calls = self._guest.machine, self._calls

        def stopped(nested: bool) -> None:
            if nested:
                calls.park(lambda: machine.pause(stopped))
            else:
                calls.here()
                report()

        machine.pause(stopped)

    def _current(self) -> Process | None:
        return self._programs.of_task(self._guest.tasks.current())

    def _executed(self, _frame: Frame) -> None:
        tasks = self._guest.tasks
        before = self._programs.known(tasks.pid(tasks.current()))
        process = self._current()
        if process is None:
            return
        self._areas.pop(process.space, None)

        def report() -> None:
            for one in self._programs.observers:
                one.before_exec(before or process)
            self._programs.of(process)
            for one in self._programs.observers:
                one.executed(process)

        self._later(report)

    def _forked(self, frame: Frame) -> None:
        parent, child = self._current(), self._programs.of_task(frame.arguments()[0])
        if parent is None or child is None or child.pid == parent.pid:
            return

        def report() -> None:
            for one in self._programs.observers:
                one.forked(parent, child)

        self._later(report)

    def _exits(self, _frame: Frame) -> None:
        load, task = self._guest.engine.load, self._guest.tasks.current()
        process = self._current()
        if process is None or load(load(task + self._signal_at, _POINTER) + self._live_at, _INT) != 1:
            return
        process.alive = False
        for one in self._programs.observers:
            one.exited(process)

    def _maps(self, frame: Frame) -> None:
        tasks = self._guest.tasks
        task = tasks.current()
        known = self._programs.known(tasks.pid(task))
        if known is not None and known.space != tasks.word(task, "task_struct.mm"):
            return  # it is executing a program
        process, area = self._current(), self._programs.area(frame.arguments()[0])
        if process is not None and area is not None and area.backing is not None and Access.EXECUTE in area.access:
            self._areas[process.space].append(area)

    def _mapped(self, frame: Frame) -> None:
        if not self._areas:
            return
        process = self._current()
        areas = self._areas.pop(frame.arguments()[0], None)
        if areas is None or process is None:
            return

        def report() -> None:
            self._programs.of(process)
            for area in areas:
                for one in self._programs.observers:
                    one.mapped(process, area)

        self._later(report)
