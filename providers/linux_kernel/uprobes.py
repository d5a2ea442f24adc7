"""pid and USDT probes of programs on a real Linux kernel: by the kernel's own uprobes.

fasttrap would write breakpoints into the pages of a program, which on a real kernel are pages of
the page cache.  The kernel has what this needs: copies of the pages for each process, forks, execs
and execution out of line.  So `uprobe_register()` is called in the kernel for each offset, with a
consumer whose handler is a function of ours (`consumers`); DTrace for Linux does the same.  The
kernel decides which instructions may be probed.  Its work at a hit takes virtual time.

A probe on a return instruction fires before the instruction: the registers have the results
already.  Other jumps fire a return probe if they leave the function.

Source: Linux 6.12 kernel/events/uprobes.c (uprobe_register, handler_chain),
include/linux/uprobes.h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from emu.displaced.cpu_core import CpuFlag
from emu.displaced.decision import Emulated, OutOfLine
from emu.engine.hits.hit_steps import Argument, Call, Fire, InMemory, Number, Register
from emu.guest import processes
from emu.guest.linux_kernel.abi import of_program
from emu.guest.linux_kernel.errors import LinuxKernelError
from emu.guest.linux_kernel.kernel_calls import Answer, KernelCallError, error_name
from emu.guest.linux_kernel.program_cpu import ProgramCpu
from emu.guest.linux_kernel.programs import Process, Programs
from emu.probe.execute_plan import interpret
from emu.support.words import WORD_MASK, BadAddressError
from providers.fasttrap.fasttrap import Fasttrap
from providers.fasttrap.hits import PASSED
from providers.fasttrap.points import EVERYWHERE as ANY_FUNCTION
from providers.fasttrap.points import TracepointError
from providers.fasttrap.records import AFTER, Point, Probe, ProbeType, Target
from providers.fidelity import Fidelity
from providers.linux_kernel.consumers import EVERYWHERE, Consumer, Consumers, FileOffset, RefusedError
from providers.linux_kernel.native_uprobes import NativeUprobes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emu.guest.linux_kernel.guest import LinuxKernelGuest
    from providers.base import Framework

_ENTRY: Final = int(CpuFlag.ENTRY)


def _of_program(arguments: Sequence[Argument]) -> tuple[Argument, ...]:
    """Return arguments with the program's registers: those of the CPU are the kernel's."""
    return tuple(replace(one, name=of_program(one.name)) if isinstance(one, Register) else one for one in arguments)


class KernelUprobes(Fasttrap):
    """The probes of programs.

    Functions of the kernel are called when probes are enabled and disabled (`KernelCalls.call`).
    """

    def __init__(
        self,
        guest: LinuxKernelGuest,
        programs: Programs,
        framework: Framework,
        report: Callable[[str], object] = lambda _text: None,
    ) -> None:
        """Make none yet.  Raises `emu.guest.linux_kernel.executable.NoSpaceError`."""
        super().__init__(programs, framework, Fidelity.EXACT, report=report)
        self._guest = guest
        self._programs = programs
        self._framework = framework
        self.calls = guest.calls
        self.calls.called = self._called
        self.consumers = Consumers(guest, self.calls)
        self._watched: dict[tuple[int, int], Point] = {}
        """By the number of the consumer, and the address."""
        self._consumers: dict[Point, Consumer] = {}
        self._meet: Callable[[int, int], bool] | None = None
        self.calls.serving = self._serving

    def meet(self, met: Callable[[int, int], bool] | None) -> None:
        """Ask at each hit, with the process and the pc, before probes fire; None: no more.

        True: the machine is to stop, and the same hit is met again when it continues.
        """
        self._meet = met
        self._guest.traps.changed()

    # -- registering

    def watch_address(
        self, process: processes.Process, address: int, semaphore: int = 0, *, everywhere: bool = False
    ) -> Consumer:
        """Let the kernel watch an address of one process, or that offset of the file in all.

        Raises `TracepointError`.
        """
        assert isinstance(process, Process)
        loaded = self._programs.at(process, address)
        offset = None if loaded is None else loaded.image.offset_of(address - loaded.bias)
        if loaded is None or offset is None:
            raise TracepointError(f"no file is mapped at {address:#x} in pid {process.pid}")
        assert isinstance(loaded.file, int)
        counter = loaded.image.offset_of(semaphore - loaded.bias) if semaphore else 0
        position = FileOffset(EVERYWHERE if everywhere else process.space, loaded.file, offset)
        try:
            return self.consumers.register(position, counter or 0)
        except KernelCallError as error:
            raise TracepointError(str(error)) from None
        except RefusedError as error:
            why = f"the kernel refuses it ({error_name(error.number)})"
            raise TracepointError(f"no tracepoint at {address:#x} in {loaded.name}: {why}") from None

    def install_point(self, probe: Probe, address: int) -> None:
        """Let the kernel watch the address of a tracepoint.  Raises `TracepointError`."""
        target = probe.target
        point = self.points.get(target.process.pid, address)
        if point is None or not point.target.live:
            point = self._look_at(probe, target, address)
            semaphore = probe.semaphores[0] if probe.semaphores else 0
            consumer = self.watch_address(target.process, address, semaphore)
            self.points.put(point)
            self._watched[consumer.number, address] = point
            self._consumers[point] = consumer
        self._unlearn(self._consumers[point])
        (point.after if probe.type in AFTER else point.before).insert(0, probe)

    def _look_at(self, probe: Probe, target: Target, address: int) -> Point:
        try:
            decision = self.points.look(target, address, probe.function if probe.size != ANY_FUNCTION else 0)
            code = target.patcher.original(address, 1)
        except BadAddressError:
            raise TracepointError(f"no code is loaded at {address:#x} in pid {target.process.pid}") from None
        found = decision if isinstance(decision, Emulated | OutOfLine) else OutOfLine(decision.rule, 1, code)
        return Point(target, address, found, target.patcher.create(address, code, "uprobes"))

    def remove_point(self, probe: Probe, address: int) -> None:
        """Stop firing a probe; the kernel removes the breakpoint if no other probe needs it."""
        point = self.points.get(probe.target.process.pid, address)
        if point is None or point.target is not probe.target:
            return
        users = point.after if probe.type in AFTER else point.before
        if probe in users:
            users.remove(probe)
        self._unlearn(self._consumers[point])
        if point.before or point.after:
            return
        consumer = self._forget(point)
        if self._guest.machine.off or consumer in self._consumers.values():
            return
        try:
            self.consumers.unregister(consumer)
        except (KernelCallError, LinuxKernelError) as error:
            self.report(f"the tracepoint at {address:#x} in pid {probe.target.process.pid} stays: {error}")

    def _unlearn(self, consumer: Consumer) -> None:
        if self._native is not None:
            self._native.forget(consumer.number)

    def _forget(self, point: Point) -> Consumer:
        consumer = self._consumers.pop(point)
        self._unlearn(consumer)
        self.points.drop(point)
        del self._watched[consumer.number, point.address]
        return consumer

    def _count(self, probe: Probe, change: int) -> None:
        """Do nothing: the kernel counts in semaphores."""

    # -- events of processes

    def _retire(self, process: processes.Process) -> None:
        """Forget a process's tracepoints: its address space has ended."""
        target = self._targets.get(process.pid)
        if target is None or not target.live:
            return
        target.live = False
        for point in self.points.of(target):
            self.consumers.abandon(self._forget(point))

    def forked(self, parent: processes.Process, child: processes.Process) -> None:
        """Do nothing: the handler removes the breakpoints from the child."""

    def mapped(self, process: processes.Process, area: processes.Area) -> None:
        """Do nothing: the kernel writes the breakpoints."""

    def unmapped(self, process: processes.Process, areas: Sequence[processes.Area]) -> None:
        """Do nothing: the kernel writes the breakpoints if the file is mapped again."""

    # -- hits

    def _called(self, address: int, registers: int) -> Answer:
        """Fire the probes of a hit (the handler of a consumer)."""
        programs = self._programs
        consumer, thread = self.consumers.of(address), programs.current
        if consumer is None or thread is None:
            return Answer.ZERO
        if consumer.position.space not in {EVERYWHERE, thread.process.space}:
            return Answer.ONE
        with programs.trapped(registers):
            pc = programs.cpu.pc
            if self._meet is not None and self._meet(thread.process.pid, pc):
                return Answer.AGAIN
            point = self._watched.get((consumer.number, pc))
            if point is not None:
                self._hits.fire_before(thread, point, programs.frame)
                self._fire_returns(point, programs.cpu)
                self._learn(consumer, point)
        return Answer.ZERO

    # -- machine code

    @cached_property
    def _native(self) -> NativeUprobes | None:
        """The hits in machine code; None: this engine has none."""
        fire = self._guest.engine.tracepoints.fire
        return NativeUprobes(self._guest, self._programs.hit_frame) if fire else None

    def _serving(self) -> Call | None:
        native = self._native
        return None if native is None or self._meet is not None else Call(native.function, native.argument)

    def _learn(self, consumer: Consumer, point: Point) -> None:
        """Let machine code serve the next hits of an offset, if it can."""
        native = self._native
        if native is None or consumer.position.space == EVERYWHERE or native.knows(consumer.number):
            return
        fires = self._described(point)
        if fires is not None:
            native.set(consumer.number, point.address, fires)

    def _described(self, point: Point) -> list[Fire] | None:
        """Return what fires at an offset; None: Python must do it."""
        fires = []
        for probe, of_returns in (*((one, False) for one in point.before), *((one, True) for one in point.after)):
            runs = self._framework.native_runs(probe.id)
            arguments = self._returned(point, probe) if of_returns else self._passed(point, probe)
            if not runs or arguments is None:
                return None
            flags = _ENTRY if probe.type is ProbeType.ENTRY else 0
            fires.append(Fire(runs, arguments, flags=flags, late=self._late(point, probe)))
        return fires

    def _late(self, point: Point, probe: Probe) -> tuple[Argument, ...] | None:
        """Return the locations of arguments 5 to 9 of a marker; None: Python must read one of them."""
        located = None if probe.locate is None else probe.locate(point.address)
        if located is None or located.late is None or any(isinstance(one, InMemory) for one in located.late):
            return None
        return _of_program(located.late)

    def _passed(self, point: Point, probe: Probe) -> tuple[Argument, ...] | None:
        """Return the locations of a probe's arguments before an instruction."""
        if probe.read is None:
            names = self.port.arguments[:PASSED]
            return None if probe.types or probe.questions else tuple(Register(of_program(name)) for name in names)
        located = probe.locate(point.address) if probe.locate is not None else None
        if located is None or located.operations:
            return None
        return _of_program(located.arguments[:PASSED])

    def _returned(self, point: Point, probe: Probe) -> tuple[Argument, ...] | None:
        """Return the locations of a return probe's arguments, if the instruction always returns."""
        decision = point.decision
        if not isinstance(decision, Emulated) or not decision.leaves:
            return None
        results = (Register(of_program(name)) for name in self.port.results)
        return (Number(point.address - probe.function & WORD_MASK), *results)

    # -- returns

    def _fire_returns(self, point: Point, cpu: ProgramCpu) -> None:
        if not point.after:
            return
        decision = point.decision
        if not isinstance(decision, Emulated):
            return  # not a jump: the function is not left
        after = cpu.copy()
        try:
            interpret(decision.plan, cpu.isa, after, point.address)
        except (BadAddressError, KeyError):
            return
        self._hits.fire_after(point, after.pc)
