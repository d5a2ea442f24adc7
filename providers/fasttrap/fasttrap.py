"""Fasttrap: breakpoints in user programs. This module manages the probes and their tracepoints.

The life of a probe:

    add          the probe is made, with the addresses of its tracepoints (fasttrap_add_probe)
    enable       each instruction is read, decided about, and displaced by a breakpoint
    a hit        `hits`: the probes before it fire; the instruction is emulated, or `stepping` runs
                 its copy in scratch space; the probes after it fire
    disable      the breakpoint is removed with the last probe at it
    retire       the process has ended, or runs another program: its tracepoints are dead

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/common/dtrace/fasttrap.c,
uts/intel/dtrace/fasttrap_isa.c.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from emu.engine.memory.access import Access
from emu.guest.processes import ProcessObserver
from emu.probe.patcher import Patcher
from emu.support.one_line import one_line
from emu.support.words import BadAddressError
from providers.fasttrap.hits import Hits
from providers.fasttrap.out_of_line import CHUNK
from providers.fasttrap.points import Points, TracepointError
from providers.fasttrap.port import PORTS, Port
from providers.fasttrap.records import Point, Probe, Target
from providers.fidelity import Fidelity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emu.guest.processes import Area, Process, Processes, Thread
    from providers.base import Framework

# FreeBSD's kern.dtrace.fasttrap.max_probes.
MAX_TRACEPOINTS: Final = 250_000


class Fasttrap(ProcessObserver):
    """All fasttrap probes of one guest.

    `report` receives the reasons why probes were not enabled; FreeBSD does not report them.
    `limit` is the largest number of tracepoints; None: FreeBSD's limit if its behaviour is
    selected, no limit otherwise.  `port` replaces the ISA's port in `PORTS`.
    """

    def __init__(
        self,
        kernel: Processes,
        framework: Framework,
        fidelity: Fidelity = Fidelity.EXACT,
        limit: int | None = None,
        report: Callable[[str], object] = lambda _text: None,
        port: Port | None = None,
    ) -> None:
        self.kernel = kernel
        self.fidelity = fidelity
        self.port = port or PORTS[kernel.isa.name]
        self.limit = limit if limit is not None else (MAX_TRACEPOINTS if fidelity is Fidelity.FREEBSD else None)
        self.total = 0
        """Tracepoints of all probes there are."""
        self.reported = report
        """Takes the lines that `report` makes printable."""
        self._targets: dict[int, Target] = {}
        self.points = Points(kernel, self.port, fidelity)
        self._gone: list[tuple[Probe, int, object]] = []
        """Probes whose tracepoints went away with an object: (probe, address, file)."""
        self._listening: list[Probe] = []
        """Enabled probes with semaphores."""
        self._hits = Hits(kernel, framework, self.port, fidelity, self._find)
        kernel.watch(self)

    # -- making probes

    def report(self, text: str) -> None:
        """Say something about probes; names from a file cannot control a terminal."""
        self.reported(one_line(text))

    def target(self, process: Process) -> Target:
        """Return the record of a process that runs."""
        found = self._targets.get(process.pid)
        if found is None or not found.live:
            code = self.kernel.code(process)
            slots = self.kernel.slots(process, CHUNK, "[fasttrap]")
            found = self._targets[process.pid] = Target(process, code, Patcher(code), slots)
            found.patcher.on_change = self.kernel.traps.changed
        return found

    def add(self, probe: Probe) -> bool:
        """Count a new probe's tracepoints; False if there are too many (ENOMEM)."""
        if self.limit is not None and self.total + len(probe.addresses) > self.limit:
            return False
        self.total += len(probe.addresses)
        return True

    def drop(self, probe: Probe) -> None:
        """Forget a probe."""
        self.total -= len(probe.addresses)

    # -- enabling

    def enable(self, probe: Probe) -> None:
        """Install a probe's tracepoints.

        If one is impossible, those before it are removed again, and the probe does not fire.
        """
        if not probe.target.live:
            return
        probe.enabled = True
        done: list[int] = []
        for address in probe.addresses:
            try:
                self.install_point(probe, address)
            except TracepointError as error:
                self.report(str(error))
                for earlier in done:
                    self.remove_point(probe, earlier)
                probe.enabled = False
                return
            done.append(address)
        self._count(probe, 1)
        if probe.semaphores:
            self._listening.append(probe)

    def enable_all(self, probes: Sequence[Probe]) -> None:
        """Install the tracepoints of probes; each patch is in memory when all are decided about."""
        with self.points.together():
            for probe in probes:
                self.enable(probe)

    def disable_all(self, probes: Sequence[Probe]) -> None:
        """Remove the tracepoints of probes."""
        with self.points.together():
            for probe in probes:
                self.disable(probe)

    def disable(self, probe: Probe) -> None:
        """Remove a probe's tracepoints, each unless another probe still needs it."""
        if not probe.enabled:
            return
        probe.enabled = False
        for address in probe.addresses:
            self.remove_point(probe, address)
        self._count(probe, -1)
        if probe.semaphores:
            self._listening.remove(probe)

    def install_point(self, probe: Probe, address: int) -> None:
        """Install one tracepoint; on a real kernel the kernel does it.  Raises `TracepointError`."""
        self.points.install(probe, address)

    def remove_point(self, probe: Probe, address: int) -> None:
        """Remove one tracepoint; on a real kernel the kernel does it."""
        self.points.remove(probe, address)

    def _count(self, probe: Probe, change: int) -> None:
        """Set the program's semaphores, which say whether its probes are enabled."""
        if not probe.target.live:
            return
        for address in probe.semaphores:
            self._add_to(probe.target, address, change)

    @staticmethod
    def _add_to(target: Target, semaphore: int, change: int) -> None:
        try:
            count = int.from_bytes(target.code.read(semaphore, 2), "little") + change
            target.code.write(semaphore, (count & 0xFFFF).to_bytes(2, "little"))
        except BadAddressError:
            return

    def _find(self, process: Process, address: int) -> Point | None:
        """Return the tracepoint of a process at an address, None if it has none."""
        point = self.points.get(process.pid, address)
        if point is None:
            owner = self._owner(process)
            point = self.points.get(owner.pid, address) if owner is not process else None
        return point if point is not None and point.target.live else None

    def _owner(self, process: Process) -> Process:
        """Return the process whose tracepoints a process has.

        After a vfork they are its parent's, up to the first process that shares the memory.
        """
        while process.parent is not None and process.parent.alive and process.parent.space == process.space:
            process = process.parent
        return process

    def original(self, process: Process, address: int, size: int) -> bytes:
        """Return code of a process as it is in its program, without breakpoints.

        Of scratch space only the copy of the program's instruction is returned.

        Raises `BadAddressError`.
        """
        copy = self._hits.steps.copy_at(address)
        if copy is not None:
            return copy
        target = self._targets.get(self._owner(process).pid)
        if target is None or not target.live:
            return self.kernel.code(process).read(address, size)
        return target.patcher.original(address, size)

    # -- events of processes

    def release(self, thread: Thread) -> None:
        """Free the scratch space of a thread that is not stepping."""
        self._hits.steps.thread_ended(thread)

    def forked(self, parent: Process, child: Process) -> None:
        """Remove the parent's tracepoints from the child (fasttrap_fork)."""
        if child.space == parent.space:
            return
        target = self._targets.get(self._owner(parent).pid)
        if target is None or not target.live:
            return
        code = self.kernel.code(child)
        for point in self.points.of(target):
            if point.tracepoint.installed:
                code.write_code(point.address, point.tracepoint.original)
        self.kernel.drop_slots(target.slots, child)

    def before_exec(self, process: Process) -> None:
        """Retire a process's tracepoints: it will run another program."""
        self._retire(process)

    def exited(self, process: Process) -> None:
        """Retire a process's tracepoints."""
        self._retire(process)

    def _retire(self, process: Process) -> None:
        target = self._targets.get(process.pid)
        for thread in process.threads:
            self._hits.steps.stop(thread)
        if target is None or not target.live:
            return
        target.live = False
        self.kernel.traps.changed()
        if self.kernel.is_shared(process):  # a vfork's child: the memory, with its breakpoints, is its parent's
            target.patcher.restore_all()
        self.points.forget_all(target)

    def unmapped(self, process: Process, areas: Sequence[Area]) -> None:
        """Drop the tracepoints of an object that is unmapped (dlclose).

        They are restored if it is loaded again.
        """
        target = self._targets.get(process.pid)
        for area in areas:
            for point in () if target is None else self.points.of(target):
                if area.start <= point.address < area.end:
                    self.points.forget(point)
                    self._gone += [(probe, point.address, area.backing) for probe in (*point.before, *point.after)]

    def mapped(self, process: Process, area: Area) -> None:
        """Restore the tracepoints of an object that is loaded again at the same place (dlopen).

        FreeBSD leaves such probes dead until they are enabled again.  A library's data, with its
        semaphores, are mapped after its code.
        """
        for probe in self._listening:
            if probe.target.process is process and probe.target.live:
                for semaphore in probe.semaphores:
                    if area.start <= semaphore < area.end:
                        self._add_to(probe.target, semaphore, 1)
        if self.fidelity is Fidelity.FREEBSD or Access.EXECUTE not in area.access:
            return
        for one in list(self._gone):
            probe, address, backing = one
            if backing is area.backing and probe.target.process is process and area.start <= address < area.end:
                self._gone.remove(one)
                if probe.enabled:
                    self.install_point(probe, address)
