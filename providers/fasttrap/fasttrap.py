"""Fasttrap: breakpoints in user programs, and what happens when one is hit.

The life of a probe:

    add          the probe is made, with the addresses of its tracepoints (fasttrap_add_probe)
    enable       each instruction is looked at, decided about, and displaced by a breakpoint (a hit)
    the probes before it fire; the instruction is emulated, or its copy runs in scratch space; the
    probes
                 after it fire
    disable      the breakpoint goes when nobody is left at it
    retire       the process has ended, or runs something else: its tracepoints are dead

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/common/dtrace/fasttrap.c,
uts/intel/dtrace/fasttrap_isa.c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from emu.cpu_core import CpuFlag
from emu.displaced import Code, Emulated, OutOfLine, Refused, Treatment
from emu.engine.access import Access
from emu.frame import Frame
from emu.guest.base import BadAddressError
from emu.guest.observer import Observer
from emu.guest.processes import CARRIED_OUT
from emu.patcher import Patcher
from emu.plan_execution import compile_plan
from emu.plans import Load, Store
from providers.fasttrap.port import Port
from providers.fasttrap.ports import PORTS
from providers.fasttrap.records import AFTER, Point, Probe, ProbeType, Stepping, Target
from providers.fidelity import Fidelity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emu.guest.linux.space import Area
    from emu.guest.processes import Process, Processes, Thread
    from emu.isa.linux_signals import SignalInfo
    from providers.base import Framework

# FreeBSD's kern.dtrace.fasttrap.max_probes.
MAX_TRACEPOINTS: Final = 250_000
# Arguments that `dtrace_probe()` takes.
PASSED: Final = 5
# Bytes of scratch space per instruction (FASTTRAP_SCRATCH).
CHUNK: Final = 64
_NOBODY: Final = (1 << 64) - 1
# As a plain number: it is set and cleared at every firing.
_ENTRY: Final = int(CpuFlag.ENTRY)


class TracepointError(Exception):
    """A tracepoint that cannot be: the message says why."""


class Fasttrap(Observer):
    """All fasttrap probes of one guest.

    `report` is told why probes were not enabled: FreeBSD tells nobody.  `limit` is how many
    tracepoints there may be; None: as many as FreeBSD has room for when its behaviour is asked for,
    any number otherwise.  `port` is what the ISA brings, if it is not to be `PORTS`' own.
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
        self.framework = framework
        self.fidelity = fidelity
        self.port = port or PORTS[kernel.isa.name]
        self.limit = limit if limit is not None else (MAX_TRACEPOINTS if fidelity is Fidelity.FREEBSD else None)
        self.total = 0
        """Tracepoints of all probes there are."""
        self.report = report
        self._targets: dict[int, Target] = {}
        self._points: dict[tuple[int, int], Point] = {}
        self._gone: list[tuple[Probe, int, object]] = []
        """Probes whose tracepoints went away with an object: (probe, address, file)."""
        self._stepping: dict[Thread, Stepping] = {}
        self._chunks: dict[tuple[Thread, int], int] = {}
        self._again: dict[Thread, int] = {}
        """Where a thread is to take its latest hit up again: the probes before the instruction have
        fired."""
        self._uncovered: dict[Thread, list[Point]] = {}
        """Points that are out until a thread has met the fault of its own instruction there."""
        self._filled: dict[tuple[Thread, int], bool] = {}
        """Chunks that hold what they are to hold: whether with the return trap."""
        engine = kernel.engine
        self._engine = engine
        self._core = kernel.traps.core
        self._pc = kernel.isa.registers.slots[kernel.isa.registers.pc]
        slots = kernel.isa.registers.slots
        self._arguments = [slots[name] for name in self.port.arguments]
        self._late = [slots[name] for name in self.port.late_arguments]
        self._results = [slots[name] for name in self.port.results]
        kernel.traps.add(self._hit)
        kernel.exceptions.append(self._exception)
        kernel.watch(self)

    # -- making probes

    def target(self, process: Process) -> Target:
        """Return the record of a process that runs."""
        found = self._targets.get(process.pid)
        if found is None or not found.live:
            code = self.kernel.code(process)
            slots = self.kernel.slots(process, code, CHUNK, "[fasttrap]")
            found = self._targets[process.pid] = Target(process, code, Patcher(code), slots)
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

    def look(self, target: Target, address: int, function: int = 0) -> Treatment:
        """Decide about the instruction at an address; `function` is where its function begins, 0: unknown.

        Raises `BadAddressError`.
        """
        data = b""
        for size in (self.port.longest, 4, 2, 1):
            try:
                data = target.patcher.original(address, size)
                break
            except BadAddressError:
                continue
        if not data:
            raise BadAddressError(address)
        start = max(function, address - self.port.behind) if function else address
        before = target.patcher.original(start, address - start) if start < address else b""
        return self.port.treat(Code(data, address, before), self.fidelity)

    # -- enabling

    def enable(self, probe: Probe) -> None:
        """Install a probe's tracepoints; if one cannot be, those before it go again, and nothing fires."""
        if not probe.target.live:
            return
        probe.enabled = True
        done: list[int] = []
        for address in probe.addresses:
            try:
                self._install(probe, address)
            except TracepointError as error:
                self.report(str(error))
                for earlier in done:
                    self._remove(probe, earlier)
                probe.enabled = False
                return
            done.append(address)
        self._count(probe, 1)

    def disable(self, probe: Probe) -> None:
        """Remove a probe's tracepoints, each unless another probe still needs it."""
        if not probe.enabled:
            return
        probe.enabled = False
        for address in probe.addresses:
            self._remove(probe, address)
        self._count(probe, -1)

    def _count(self, probe: Probe, change: int) -> None:
        """Tell the program by its semaphores whether somebody listens."""
        if not probe.target.live:
            return
        for address in probe.semaphores:
            code = probe.target.code
            try:
                count = int.from_bytes(code.read(address, 2), "little") + change
                code.write(address, (count & 0xFFFF).to_bytes(2, "little"))
            except BadAddressError:
                continue

    def _install(self, probe: Probe, address: int) -> None:
        target = probe.target
        key = (target.process.pid, address)
        point = self._points.get(key)
        if point is None or not point.target.live:
            point = self._make(target, address, probe.function if probe.size != _NOBODY else 0)
            self._points[key] = point
        # At the front: the probe that was enabled last fires first.
        (point.after if probe.type in AFTER else point.before).insert(0, probe)
        target.patcher.install(point.tracepoint)

    def _make(self, target: Target, address: int, function: int) -> Point:
        try:
            treatment = self.look(target, address, function)
        except BadAddressError:
            raise TracepointError(f"no code at {address:#x} in pid {target.process.pid}") from None
        if isinstance(treatment, Refused):
            raise TracepointError(f"no tracepoint at {address:#x}: {treatment.rule.why} ({treatment.rule.source})")
        assert isinstance(treatment, Emulated | OutOfLine), "fasttrap runs code out of line, it does not step"
        patch = self.port.breakpoint(treatment.length)
        point = Point(target, address, treatment, target.patcher.create(address, patch, "fasttrap"))
        if isinstance(treatment, Emulated):
            point.run = compile_plan(treatment.plan, self.kernel.isa)
            reaches = any(isinstance(operation, (Load, Store)) for operation in treatment.plan.operations)
            if self.fidelity is not Fidelity.FREEBSD and not reaches:
                point.native = self._engine.plan(treatment.plan)
        return point

    def _remove(self, probe: Probe, address: int) -> None:
        point = self._points.get((probe.target.process.pid, address))
        if point is None or point.target is not probe.target:
            return
        users = point.after if probe.type in AFTER else point.before
        if probe in users:
            users.remove(probe)
        if not point.before and not point.after:
            if point.target.live:
                point.target.patcher.remove(point.tracepoint)
            point.target.patcher.forget(point.tracepoint)
            del self._points[point.target.process.pid, address]

    # -- a hit

    def _owner(self, process: Process) -> Process:
        """Return whose tracepoints a process has: after a vfork its parent's, up to the first that shares memory."""
        while process.parent is not None and process.parent.alive and process.parent.space == process.space:
            process = process.parent
        return process

    def _hit(self, address: int, frame: Frame, _extra: int) -> int:
        """Take a breakpoint (fasttrap_pid_probe); 0: it is not one of ours."""
        thread = self.kernel.current
        assert thread is not None
        stepping = self._stepping.get(thread)
        if stepping is not None and address == stepping.trap:
            return self._returned(thread, stepping)
        process = thread.process
        point = self._points.get((process.pid, address))
        if point is None:
            owner = self._owner(process)
            point = self._points.get((owner.pid, address)) if owner is not process else None
        if point is None or not point.target.live:
            return 0
        self._stepping.pop(thread, None)
        treatment = point.treatment
        if isinstance(treatment, OutOfLine) and not self._has_slot(thread, point):
            self.kernel.cpu.pc = address
            self.kernel.cpu.discount(1)
            return CARRIED_OUT
        if self._again.pop(thread, None) != address:
            self._fire_before(point, frame)
        if isinstance(treatment, Emulated):
            return self._emulate(point)
        assert isinstance(treatment, OutOfLine)
        return self._step(thread, point, treatment)

    def _fire_before(self, point: Point, frame: Frame) -> None:
        words, core = self.kernel.cpu.words, self._core
        for probe in tuple(point.before):
            if point.address in probe.questions:
                words[self._results[0]] = 1
            elif probe.type is ProbeType.ENTRY:
                core.flags |= _ENTRY
                self.framework.probe(probe.id, *self._read_arguments(self.port.stack_skip))
                core.flags &= ~_ENTRY
            elif probe.read is not None:
                self.framework.probe(probe.id, *probe.read(frame)[:PASSED])
            elif probe.types:
                self.framework.probe(probe.id, *self._read_natives([native for _, _, native in probe.types[:PASSED]]))
            elif probe.type is ProbeType.OFFSETS:
                self.framework.probe(probe.id, *self._read_arguments(0))

    def _read_arguments(self, skipped: int) -> list[int]:
        """Return arg0 to arg4: registers, or words of the stack after those that are `skipped`."""
        cpu = self.kernel.cpu
        if self._arguments:
            return [cpu.words[slot] for slot in self._arguments]
        return [*self.kernel.frame.stack_words(skipped)]

    def _read_natives(self, natives: Sequence[int]) -> list[int]:
        """Return arguments of the function whose call a probe's site is, by their indices."""
        registers = (*self._arguments, *self._late)
        if registers:
            words = self.kernel.cpu.words
            return [words[registers[one]] for one in natives if one < len(registers)]
        return [self._stack_word(one) for one in natives]

    def _stack_word(self, place: int) -> int:
        try:
            return self.kernel.frame.stack_word(place)
        except BadAddressError:
            return 0

    def _fire_after(self, point: Point, new_pc: int) -> None:
        """Fire the return probes, unless the instruction stays inside their function (fasttrap_return_common)."""
        treatment = point.treatment
        leaves = isinstance(treatment, Emulated) and treatment.leaves
        words = self.kernel.cpu.words
        for probe in tuple(point.after):
            if not leaves and new_pc - probe.function & _NOBODY < probe.size:
                continue
            results = [words[slot] for slot in self._results]
            self.framework.probe(probe.id, point.address - probe.function & _NOBODY, *results)

    def _emulate(self, point: Point) -> int:
        if not point.after and point.native and self.kernel.native:
            return point.native
        return self._carry_out(point)

    def _carry_out(self, point: Point) -> int:
        engine = self.kernel.cpu
        assert point.run is not None
        cpu: Any = _MinusOneFaults(engine) if self.fidelity is Fidelity.FREEBSD else engine
        try:
            point.run(cpu, point.address)
        except BadAddressError as error:
            engine.pc = point.address
            self.kernel.raise_bad_address(error.address)
            return CARRIED_OUT
        if point.after:
            new_pc = engine.pc
            engine.pc = point.address
            self._fire_after(point, new_pc)
            engine.pc = new_pc
        return CARRIED_OUT

    # -- out of line

    def _has_slot(self, thread: Thread, point: Point) -> bool:
        """Tell whether there is scratch space, or none to be had; False: the hit is to come again."""
        return (thread, point.address) in self._chunks or point.target.slots.ready()

    def _step(self, thread: Thread, point: Point, move: OutOfLine) -> int:
        """Have the copy of the instruction run in the thread's scratch space."""
        engine, port, slots = self.kernel.cpu, self.port, point.target.slots
        key = (thread, point.address)
        chunk = self._chunks.get(key)
        if chunk is None:
            try:
                chunk = self._chunks[key] = slots.take()
            except BadAddressError:
                return self._no_scratch(point)
        after = point.address + move.length
        saved = engine.read_register(move.scratch) if move.scratch else 0
        fires = bool(point.after)
        if move.scratch or self._filled.get(key) is not fires:
            slots.fill(chunk, port.chunk(move, chunk, after, saved))
            self._filled[key] = fires
        trapped = fires or port.always_steps
        start = chunk + (port.second_copy(move) if trapped else 0)
        trap = chunk + port.trap_offset(move) if trapped else None
        # The breakpoint has been counted, and the copy will be.  So will what is after it.
        discounted = 1 + (0 if trapped else port.copies + bool(move.scratch))
        engine.discount(discounted)
        self._stepping[thread] = Stepping(point, chunk, start, trap, after, saved, discounted, fires)
        if move.scratch:
            engine.write_register(move.scratch, after)
        engine.pc = start
        return CARRIED_OUT

    def _no_scratch(self, point: Point) -> int:
        """Take the tracepoint out for good: there is no scratch space to be had."""
        point.target.patcher.remove(point.tracepoint)
        self.kernel.cpu.pc = point.address
        return CARRIED_OUT

    def _exception(self, number: int, pc: int) -> bool:
        """Take the return trap of an ISA where it is no breakpoint; False: it is not ours."""
        thread = self.kernel.current
        stepping = self._stepping.get(thread) if thread is not None else None
        if stepping is None or number != self.port.return_trap or stepping.trap is None or pc <= stepping.trap:
            return False
        assert thread is not None
        self._returned(thread, stepping)
        return True

    def _returned(self, thread: Thread, stepping: Stepping) -> int:
        """Take the return trap (fasttrap_return_probe)."""
        engine = self.kernel.cpu
        del self._stepping[thread]
        engine.discount(1)  # the trap itself
        move = stepping.point.treatment
        assert isinstance(move, OutOfLine)
        if move.scratch and engine.read_register(move.scratch) == stepping.after:
            engine.write_register(move.scratch, stepping.saved)
        if stepping.fires:
            engine.pc = stepping.point.address
            self._fire_after(stepping.point, stepping.after)
        engine.pc = stepping.after
        return CARRIED_OUT

    def _in_chunk(self, thread: Thread) -> Stepping | None:
        """Return what the current thread runs out of line, None if its pc is not there any more."""
        stepping = self._stepping.get(thread)
        if stepping is None:
            return None
        return stepping if stepping.chunk <= self.kernel.cpu.pc < stepping.chunk + CHUNK else None

    # -- what happens to processes and threads

    def faulted(self, thread: Thread, info: SignalInfo) -> SignalInfo:
        """Put the thread back on the original instruction, whose copy has faulted."""
        stepping = self._in_chunk(thread)
        if stepping is None:
            return info
        engine, move = self.kernel.cpu, stepping.point.treatment
        assert isinstance(move, OutOfLine)
        at = engine.pc
        del self._stepping[thread]
        engine.discount(1 - stepping.discounted)
        if move.scratch:
            engine.write_register(move.scratch, stepping.saved)
        engine.pc = stepping.point.address
        if info.address == at:
            return replace(info, address=stepping.point.address)
        return info

    def again(self, thread: Thread, address: int) -> None:
        """Have a thread hit an address once more, without its probes: the page it needs has come meanwhile."""
        self._again[thread] = address

    def uncover(self, thread: Thread, address: int) -> None:
        """Have a thread run into the fault of its own instruction, which emulating it has met."""
        point = self._points.get((self._owner(thread.process).pid, address))
        if point is not None and point.target.live:
            point.target.patcher.remove(point.tracepoint)
            self._uncovered.setdefault(thread, []).append(point)

    def signalled(self, thread: Thread) -> None:
        """Have a signal's frame show the program itself, not the scratch space: before the instruction, or after it."""
        for point in self._uncovered.pop(thread, ()):
            if point.target.live:
                point.target.patcher.install(point.tracepoint)
        stepping = self._in_chunk(thread)
        if stepping is None:
            return
        if self.kernel.cpu.pc != stepping.start:
            self._finish(thread, stepping)
            return
        cpu, move = self.kernel.cpu, stepping.point.treatment
        assert isinstance(move, OutOfLine)
        del self._stepping[thread]
        cpu.discount(1 - stepping.discounted)
        if move.scratch:
            cpu.write_register(move.scratch, stepping.saved)
        cpu.pc = stepping.point.address
        self._again[thread] = stepping.point.address

    def may_be_interrupted(self, thread: Thread) -> bool:
        """Have a signal wait until the copy has run: its frame is not to show the scratch space."""
        stepping = self._in_chunk(thread)
        if stepping is None:
            return True
        if thread.call_name and self.kernel.cpu.pc == stepping.start + len(_code_of(stepping)):
            # A system call out of line, interrupted: it is over.
            self._finish(thread, stepping)
            return True
        return False

    def _stop_stepping(self, thread: Thread) -> None:
        """Forget what a thread that has ended, or runs something else, was doing out of line."""
        if thread is self.kernel.current and (stepping := self._in_chunk(thread)) is not None:
            self.kernel.cpu.discount(1 - stepping.discounted)  # it will not jump back
        self._stepping.pop(thread, None)

    def _finish(self, thread: Thread, stepping: Stepping) -> None:
        move = stepping.point.treatment
        assert isinstance(move, OutOfLine)
        del self._stepping[thread]
        if move.scratch:
            self.kernel.cpu.write_register(move.scratch, stepping.saved)
        if stepping.trap is None:
            self.kernel.cpu.discount(1 - stepping.discounted)
        self.kernel.cpu.pc = stepping.after

    def thread_ended(self, thread: Thread) -> None:
        """Forget a thread's scratch space."""
        self._stop_stepping(thread)
        self._again.pop(thread, None)
        self._uncovered.pop(thread, None)
        for key in [key for key in self._chunks if key[0] is thread]:
            chunk = self._chunks.pop(key)
            self._filled.pop(key, None)
            target = self._targets.get(self._owner(thread.process).pid)
            if target is not None and target.live:
                target.slots.give_back(chunk)

    def born(self, maker: Thread, thread: Thread) -> None:
        """Have a thread that was made out of line begin where its maker goes on: the scratch space is its maker's."""
        stepping = self._in_chunk(maker)
        if stepping is not None:
            self.kernel.set_pc(thread, stepping.after)

    def forked(self, parent: Process, child: Process) -> None:
        """Take the parent's tracepoints out of the child (fasttrap_fork), which has memory of its own."""
        if child.space == parent.space:
            return
        target = self._targets.get(self._owner(parent).pid)
        if target is None or not target.live:
            return
        code = self.kernel.code(child)
        for point in self._points.values():
            if point.target is target and point.tracepoint.installed:
                code.write_code(point.address, point.tracepoint.original)
        self.kernel.drop_slots(target.slots, child)

    def before_exec(self, process: Process) -> None:
        """Retire a process's tracepoints: it will run something else."""
        self._retire(process)

    def exited(self, process: Process) -> None:
        """Retire a process's tracepoints."""
        self._retire(process)

    def _retire(self, process: Process) -> None:
        target = self._targets.get(process.pid)
        for thread in process.threads:
            self._stop_stepping(thread)
        if target is None or not target.live:
            return
        target.live = False
        if self.kernel.is_shared(process):  # a vfork's child: the memory, with its breakpoints, is its parent's
            target.patcher.restore_all()
        for key in [key for key in self._points if self._points[key].target is target]:
            target.patcher.forget(self._points.pop(key).tracepoint)

    def unmapped(self, process: Process, areas: Sequence[Area]) -> None:
        """Drop the tracepoints of an object that is unmapped (dlclose); they may come back with it."""
        target = self._targets.get(process.pid)
        for area in areas if target is not None else ():
            for key, point in list(self._points.items()):
                if point.target is target and area.start <= point.address < area.end:
                    target.patcher.forget(point.tracepoint)
                    del self._points[key]
                    self._gone += [(probe, point.address, area.backing) for probe in (*point.before, *point.after)]

    def mapped(self, process: Process, area: Area) -> None:
        """Put tracepoints back that went away with an object, which has come back to the same place (dlopen).

        FreeBSD leaves such probes dead until they are enabled anew.
        """
        if self.fidelity is Fidelity.FREEBSD or Access.EXECUTE not in area.access:
            return
        for one in list(self._gone):
            probe, address, backing = one
            if backing is area.backing and probe.target.process is process and area.start <= address < area.end:
                self._gone.remove(one)
                if probe.enabled:
                    self._install(probe, address)


def _code_of(stepping: Stepping) -> bytes:
    move = stepping.point.treatment
    assert isinstance(move, OutOfLine)
    return move.code


class _MinusOneFaults:
    """A CPU whose loads take -1 for a failure, as fuword() leaves fasttrap no choice."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.words = engine.words
        self.store: Callable[[int, int, int], None] = engine.store
        self.read_register: Callable[[str], int] = engine.read_register
        self.write_vector: Callable[[int, int, int], None] = engine.write_vector

    def load(self, address: int, size: int) -> int:
        value: int = self._engine.load(address, size)
        if value == (1 << 8 * size) - 1:
            raise BadAddressError(address)
        return value
