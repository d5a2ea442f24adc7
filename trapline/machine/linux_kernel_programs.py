"""The programs of a real kernel and their probes: $target is run to where its probes are made.

The command of -c is executed by a shell.  A simple command replaces the shell; the shell forks for
others, and then the shell is $target itself.  A program with an interpreter is run to its `main`,
or to its entry: its libraries are loaded then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from emu.elf_file import ElfError
from emu.frame import Frame
from emu.guest.linux_kernel.executable import NoRoomError
from emu.guest.linux_kernel.guest import LinuxKernelGuest
from providers.fasttrap import parse_provider
from providers.fasttrap.fasttrap import TracepointError
from providers.linux_kernel.sites import LONGEST, entry_site
from providers.linux_kernel.text import Hook, Text
from providers.linux_kernel.uprobes import KernelUprobes
from trapline.consumer.compiling import ProcessProbeError
from trapline.framework.dtrace import DTrace
from trapline.framework.program import ProbeDescription
from trapline.machine.process_probes import ProcessProbes

if TYPE_CHECKING:
    from emu.guest.objects import LoadedObject

_GRAB: Final = "D_PROC_GRAB"


class _Event(Enum):
    """The events of the target, in the context of its process."""

    EXECUTED = auto()
    FORKS = auto()
    EXITS = auto()


# The functions of the kernel where these are seen.
_FUNCTIONS: Final = (
    (_Event.EXECUTED, "finalize_exec"),
    (_Event.FORKS, "kernel_clone"),
    (_Event.EXITS, "do_exit"),
)


class LinuxKernelPrograms:
    """The pid and USDT probes over one kernel."""

    def __init__(self, guest: LinuxKernelGuest, text: Text, dtrace: DTrace, report: Callable[[str], object]) -> None:
        self._guest = guest
        self._text = text
        self._dtrace = dtrace
        self._report = report
        self._probes: ProcessProbes | None = None

    def provide(self, wanted: ProbeDescription) -> ProbeDescription:
        """Make the probes of $target that a description asks for; return it as they are named.

        Raises `ProcessProbeError`.
        """
        parsed = parse_provider(wanted.provider)
        if parsed is None or parsed[1] != self._guest.machine.target:
            if parsed is not None and parsed[0] == "pid":
                raise ProcessProbeError(_GRAB, f"failed to grab process {parsed[1]}: only $target can be probed here")
            return wanted
        if self._probes is None:
            self._probes = self._start(parsed[1])
        return self._probes.provide(wanted)

    def rest(self) -> tuple[str, ...]:
        """Return a message about refusals that were not reported."""
        return () if self._probes is None else self._probes.refusals.rest()

    def objects(self, pid: int) -> Sequence[LoadedObject]:
        """Return what a process has loaded; nothing if its probes were not asked for."""
        return () if self._probes is None else self._probes.objects(pid)

    # -- the start

    def _start(self, pid: int) -> ProcessProbes:
        programs = self._guest.programs
        if programs is None:
            raise ProcessProbeError(_GRAB, "this kernel has no maple trees: the mappings of programs cannot be read")
        self.run_to_program(pid)
        try:
            uprobes = KernelUprobes(self._guest, programs, self._dtrace)
        except NoRoomError as error:
            raise ProcessProbeError(_GRAB, str(error)) from None
        probes = ProcessProbes(programs, programs, self._dtrace, report=self._report, fasttrap=uprobes)
        uprobes.report = probes.refusals.add
        self._run_to_main(pid, uprobes)
        return probes

    def run_to_program(self, pid: int) -> None:
        """Run to the program that the shell executes, or to where the shell forks or ends."""
        executed = 0
        while executed < 2:
            event = self._run_to_event(pid)
            if event is not _Event.EXECUTED:
                return
            executed += 1

    def _run_to_event(self, pid: int) -> _Event:
        found: list[_Event] = []
        hooks: list[tuple[int, Hook]] = []
        for event, name in _FUNCTIONS:
            place = self._place(name)
            hook = Hook(self._noting(pid, event, found))
            self._text.add(place, hook)
            hooks.append((place, hook))
        machine = self._guest.machine
        while not found and not machine.off:
            machine.run(None)
        for place, hook in hooks:
            self._text.remove(place, hook)
        if not found:
            raise ProcessProbeError(_GRAB, f"failed to grab process {pid}: the kernel was switched off")
        return found[0]

    def _place(self, name: str) -> int:
        symbol = self._guest.facts.symbols.get(name)
        code = self._text.code(symbol.value, 3 * LONGEST) if symbol is not None else b""
        site = None if symbol is None else entry_site(self._text.isa, code, symbol.value)
        if site is None:
            raise ProcessProbeError(_GRAB, f"the start of a program cannot be watched: no probe at {name}()")
        return site[0]

    def _noting(self, pid: int, event: _Event, found: list[_Event]) -> Callable[[Frame], None]:
        tasks, machine = self._guest.tasks, self._guest.machine

        def noted(_frame: Frame) -> None:
            if not found and tasks.pid(tasks.current()) == pid:
                found.append(event)
                machine.interrupt()

        return noted

    def _run_to_main(self, pid: int, uprobes: KernelUprobes) -> None:
        """Run a program with an interpreter to its `main`, or to its entry."""
        programs = self._guest.programs
        process = programs.process(pid) if programs is not None else None
        if programs is None or process is None:
            return
        objects = programs.of(process)
        program = next((one for one in objects if one.file == process.executable), None)
        if program is None or program.image.interpreter is None:
            return
        address = program.image.entry
        with suppress(ElfError):
            address = program.image.symbol("main").value
        address += program.bias
        met = False

        def meet(who: int, pc: int) -> bool:
            nonlocal met
            if met or who != pid or pc != address:
                return False
            met = True
            self._guest.machine.interrupt()
            return True

        uprobes.meet = meet
        try:
            uprobes.watch_place(process, address)
        except TracepointError as error:
            raise ProcessProbeError(_GRAB, str(error)) from None
        machine = self._guest.machine
        while not met and not machine.off:
            machine.run(None)
        programs.of(process)
