"""The programs of a real kernel and their probes: $target is run to where its probes are made.

The command of -c is executed by a shell.  A simple command replaces the shell; the shell forks for
others, and then the shell is $target itself.  A program with an interpreter is run to its `main`,
or to its entry: its libraries are loaded then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Final

from emu.displaced.frame import Frame
from emu.elf.file import ElfError
from emu.guest.base import GuestError
from emu.guest.linux_kernel.executable import NoSpaceError
from emu.guest.linux_kernel.guest import LinuxKernelGuest
from emu.guest.linux_kernel.machine.initramfs import runs_in_shell
from emu.guest.processes import ProcessObserver
from providers.fasttrap import parse_provider
from providers.fasttrap.points import TracepointError
from providers.linux_kernel.process_events import EXECUTED, EXITS, FORKS, ProcessEvents, entry_of
from providers.linux_kernel.text import Hook, Text
from providers.linux_kernel.uprobes import KernelUprobes
from trapline.consumer.program.compile import ProcessProbeError
from trapline.framework.base.glob import is_glob
from trapline.framework.base.program import ProbeDescription
from trapline.framework.device.dtrace import DTrace
from trapline.machine.process_probes import PID, ProcessProbes

if TYPE_CHECKING:
    from emu.guest.objects import LoadedObject
    from emu.guest.processes import Process

_GRAB: Final = "D_PROC_GRAB"


class _Event(Enum):
    """The events of the target, in the context of its process, by the kernel's functions."""

    EXECUTED = EXECUTED
    FORKS = FORKS
    EXITS = EXITS


class _End(ProcessObserver):
    """Makes the current run return soon when a process ends."""

    def __init__(self, pid: int, interrupt: Callable[[], object]) -> None:
        self._pid = pid
        self._interrupt = interrupt

    def exited(self, process: Process) -> None:
        """Act on the end of a process."""
        if process.pid == self._pid:
            self._interrupt()


class LinuxKernelPrograms:
    """The pid and USDT probes over one kernel."""

    def __init__(
        self, guest: LinuxKernelGuest, text: Text, dtrace: DTrace, report: Callable[[str], object], command: str = ""
    ) -> None:
        """`command` is what the shell is given."""
        self._guest = guest
        self._command = command
        self._text = text
        self._dtrace = dtrace
        self._report = report
        self._uprobes: KernelUprobes | None = None
        self._probes: ProcessProbes | None = None
        self._grabbed: int | None = None
        """The process of -p."""
        self._executed = 0
        """How many programs the process of the command was seen to execute, before tracing."""
        self._is_at_start = False
        """Whether the process of the command was run to where its probes are made."""

    @property
    def target(self) -> int:
        """$target: the process of -p, or of the command; 0: there is none."""
        return self._grabbed or self._guest.machine.target or 0

    @property
    def gone(self) -> bool:
        """Whether the process of -p has ended."""
        return self._grabbed is not None and not self._is_alive(self._grabbed)

    def grab(self, pid: int) -> None:
        """Make a process $target; if there is no such process, run until one executes a program.

        Raises `GuestError` if there never is one.
        """
        try:
            programs = self._stopped().fasttrap.kernel
            if not self._is_alive(pid):
                while self.run_to_event(pid, grabbed=True) is not _Event.EXECUTED:
                    pass
                self._run_to_main(pid, self._here())
        except ProcessProbeError as error:
            raise GuestError(str(error)) from None
        self._grabbed = pid
        programs.watch(_End(pid, self._guest.interrupt))

    def provide(self, wanted: ProbeDescription) -> ProbeDescription:
        """Make the probes of programs that a description asks for; return it as they are named.

        Raises `ProcessProbeError`.
        """
        parsed = parse_provider(wanted.provider)
        if parsed is None:
            return self._stopped().provide(wanted) if is_glob(wanted.provider) else wanted
        name, pid = parsed
        if pid == self._guest.machine.target and self._grabbed is None:
            self._run_to_start(pid)
        elif name != PID and not self._is_alive(pid):
            return wanted
        return self._stopped().provide(wanted)

    def _is_alive(self, pid: int) -> bool:
        programs = self._guest.programs
        process = None if programs is None else programs.process(pid)
        return process is not None and process.alive

    def rest(self) -> tuple[str, ...]:
        """Return a message about refusals that were not reported."""
        return () if self._probes is None else self._probes.refusals.rest()

    def objects(self, pid: int) -> Sequence[LoadedObject]:
        """Return what a process has loaded; nothing if its probes were not asked for."""
        return () if self._probes is None else self._probes.objects(pid)

    # -- the start

    def _started(self) -> ProcessProbes:
        """Return the providers, which are created when they are needed."""
        if self._probes is not None:
            return self._probes
        guest, programs = self._guest, self._guest.programs
        if programs is None:
            raise ProcessProbeError(_GRAB, "this kernel has no maple trees: the mappings of programs cannot be read")
        try:
            self._uprobes = KernelUprobes(guest, programs, self._dtrace)
        except NoSpaceError as error:
            raise ProcessProbeError(_GRAB, str(error)) from None
        self._probes = ProcessProbes(programs, programs, self._dtrace, report=self._report, fasttrap=self._uprobes)
        self._uprobes.reported = self._probes.refusals.add
        ProcessEvents(guest, programs, self._text, self._uprobes.calls)
        return self._probes

    def _stopped(self) -> ProcessProbes:
        """Return the providers; if they are new, run to where the kernel may be called.

        That is not far: the shell is about to execute the command.
        """
        if self._probes is None:
            self._started()
            self.run_to_event(None)
            self._here()
        return self._started()

    def _run_to_start(self, pid: int) -> None:
        """Run the command to where its probes are made, if that was not done.

        Raises `ProcessProbeError`.
        """
        if self._is_at_start:
            return
        self._is_at_start = True
        self.run_to_program(pid)
        self._started()
        self._run_to_main(pid, self._here())

    def _here(self) -> KernelUprobes:
        """Note that functions of the kernel may be called where it has stopped; return the probes."""
        assert self._uprobes is not None
        self._uprobes.calls.here()
        return self._uprobes

    def run_to_program(self, pid: int) -> None:
        """Run to the program that the shell executes, or to where the shell forks or ends.

        If the shell itself may run the program, to where the shell begins.
        """
        in_shell = runs_in_shell(self._guest.machine.parts.initramfs, self._command)
        while self._executed < (1 if in_shell else 2):
            if self.run_to_event(pid) is not _Event.EXECUTED:
                return

    def run_to_event(self, pid: int | None, *, grabbed: bool = False) -> _Event:
        """Run to the next event of a process, None: of any."""
        found: list[_Event] = []
        hooks: list[tuple[int, Hook]] = []
        for event in _Event:
            address = self._address(event.value)
            hook = Hook(self._noting(pid, event, found))
            self._text.add(address, hook)
            hooks.append((address, hook))
        machine = self._guest.machine
        while not found and not machine.off:
            machine.run(None)
        for address, hook in hooks:
            self._text.remove(address, hook)
        if not found:
            why = "no process of that number executes a program" if grabbed else "the kernel was switched off"
            raise ProcessProbeError(_GRAB, f"failed to grab process {pid}: {why}")
        return found[0]

    def _address(self, name: str) -> int:
        address = entry_of(self._text, self._guest, name)
        if address is None:
            raise ProcessProbeError(_GRAB, f"the start of a program cannot be watched: no probe at {name}()")
        return address

    def _noting(self, pid: int | None, event: _Event, found: list[_Event]) -> Callable[[Frame], None]:
        tasks, machine = self._guest.tasks, self._guest.machine

        def noted(_frame: Frame) -> None:
            current = tasks.pid(tasks.current())
            if not found and pid in {None, current}:
                found.append(event)
                machine.interrupt()
                self._executed += event is _Event.EXECUTED and current == machine.target

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

        uprobes.meet(meet)
        try:
            uprobes.watch_address(process, address)
        except TracepointError as error:
            raise ProcessProbeError(_GRAB, str(error)) from None
        machine = self._guest.machine
        while not met and not machine.off:
            machine.run(None)
        uprobes.meet(None)
        uprobes.calls.here()
        programs.of(process)
