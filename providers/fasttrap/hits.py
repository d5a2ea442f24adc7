"""Handling of a hit: probes fire, the instruction is executed, the probes after it fire.

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/intel/dtrace/fasttrap_isa.c (fasttrap_pid_probe,
fasttrap_return_common).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

from emu.displaced.cpu_core import CpuFlag
from emu.displaced.decision import Emulated, OutOfLine
from emu.displaced.frame import Frame
from emu.displaced.plans import Load, Plan, Set, Store
from emu.engine.hits.hit_steps import (
    COPY_FAULT,
    Argument,
    Fire,
    FireAfter,
    InMemory,
    Number,
    Register,
    Run,
    of_exception,
)
from emu.engine.hits.plan_encoding import NativeOperation
from emu.engine.state import HANDLED
from emu.guest.processes import EXECUTED, ProcessObserver
from emu.probe.arguments import function_arguments
from emu.probe.execute_plan import Cpu, interpret
from emu.probe.trap import Hit, Served
from emu.support.words import WORD_MASK, BadAddressError
from providers.fasttrap.out_of_line import Stepping, Steps
from providers.fasttrap.port import Port
from providers.fasttrap.records import Point, ProbeType
from providers.fidelity import Fidelity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emu.guest.processes import Process, Processes, Thread
    from providers.base import Framework

# Arguments that `dtrace_probe()` takes.
PASSED: Final = 5
# The number of firings that are remembered: one serves all hits at which the same runs, with the same arguments.
_REMEMBERED: Final = 64
# A plain number, because it is set and cleared at every firing.
_ENTRY: Final = int(CpuFlag.ENTRY)
# The target of an emulated instruction, while the probes after it fire.
_NEW_PC: Final = "%new pc"
# The bits of a hit's key that are the pc (`of_exception`).
_PC: Final = (1 << 56) - 1


class Hits(ProcessObserver):
    """Takes the breakpoints of a guest.

    `find(process, address)` returns the tracepoint of an address, None: there is none.
    """

    def __init__(
        self,
        kernel: Processes,
        framework: Framework,
        port: Port,
        fidelity: Fidelity,
        find: Callable[[Process, int], Point | None],
    ) -> None:
        self._kernel = kernel
        self._framework = framework
        self._port = port
        self._fidelity = fidelity
        self._find = find
        self.steps = Steps(kernel, port, self.fire_after, self.again)
        self._resumed: dict[Thread, int] = {}
        """Where a thread is to take its latest hit up again: the probes before the instruction have
        fired."""
        self._uncovered: dict[Thread, list[Point]] = {}
        """Points that are out until a thread has met the fault of its own instruction there."""
        self._core = kernel.traps.core
        slots = kernel.isa.registers.slots
        self._arguments = [slots[name] for name in port.arguments]
        self._late = [slots[name] for name in port.late_arguments]
        self._results = [slots[name] for name in port.results]
        self._fire_entry = lru_cache(_REMEMBERED)(self._make_fire_entry)
        self._fire_offset = lru_cache(_REMEMBERED)(self._make_fire_offset)
        self._fire_return = lru_cache(_REMEMBERED)(self._make_fire_return)
        kernel.traps.add(self._hit, self._describe)
        kernel.watch(self)

    # -- descriptions for machine code

    def _describe(self, address: int) -> Hit | Served | None:
        """Describe a hit, as `_hit` handles it."""
        thread = self._kernel.current
        if thread is None or not self._kernel.native or address in self._resumed.values():
            return Served.PYTHON
        if address == of_exception(COPY_FAULT, address & _PC):
            run = self.steps.describe_fault(thread, address & _PC)
            return None if run is None else Hit((run,), by_thread=True)
        # The pc of another exception is after the instruction that has raised it.
        stepping = self.steps.of(thread, (address & _PC) - (address > _PC))
        if stepping is not None and stepping.trap is not None and address == self._trap_of(stepping.trap):
            return self._describe_return(stepping)
        point = self._find(thread.process, address)
        if point is None:
            return None
        before = self._before(point)
        if before is None:
            return Served.PYTHON
        if isinstance(point.decision, OutOfLine):
            run = self.steps.describe(thread, point, point.decision)
            rest = partial(self._begin, point, point.decision)
            return Served.PYTHON if run is None else Hit((*before, run), rest=rest, by_thread=True)
        plan = point.decision.plan
        after = self._after(point, (), leaves=point.decision.leaves)
        if after is None or not self._is_safe(plan):
            return Served.PYTHON
        return Hit((*before, Run(plan.operations), *after), rest=partial(self._rest, point, plan))

    def _trap_of(self, trap: int) -> int:
        """Return the key of a return trap: its address, or that of its exception."""
        number = self._port.return_trap
        return trap if number is None else of_exception(number, trap + self._port.return_trap_length)

    def _describe_return(self, stepping: Stepping) -> Hit | Served:
        """Describe a return trap, as `Steps.returned` handles it."""
        pc, engine = self._kernel.isa.registers.pc, self._kernel.engine
        if stepping.move.scratch and self._fidelity is Fidelity.FREEBSD:
            return Served.PYTHON  # the instruction may have written the register, which is tested
        back = self.steps.restoring(stepping, *engine.discounting(1), Set(pc, "", stepping.after))
        after = self._after(stepping.point, back, leaves=False) if stepping.fires else [Run(back)]
        return Served.PYTHON if after is None else Hit(tuple(after), by_thread=True)

    def _is_safe(self, plan: Plan) -> bool:
        """Return whether machine code does the same as fasttrap: FreeBSD's loads fail at -1."""
        return self._fidelity is not Fidelity.FREEBSD or not any(isinstance(one, Load) for one in plan.operations)

    def _begin(self, point: Point, move: OutOfLine, _address: int) -> int:
        """Begin a step whose scratch space machine code could not reach."""
        thread = self._kernel.current
        assert thread is not None
        self.steps.begin(thread, point, move)
        return HANDLED

    def _rest(self, point: Point, plan: Plan, _address: int) -> int:
        """Carry out a plan whose memory machine code could not reach; fire the probes after it."""
        self._execute(point, plan)
        return HANDLED

    def _before(self, point: Point) -> list[Fire | FireAfter | Run] | None:
        """Describe the actions before an instruction; None: Python must do them."""
        steps: list[Fire | FireAfter | Run] = []
        for probe in point.before:
            if point.address in probe.questions:
                steps.append(Run((Set(self._port.results[0], "", 1),)))
                continue
            runs = self._framework.native_runs(probe.id)
            if not runs:
                return None
            if probe.type is ProbeType.ENTRY:
                steps.append(self._fire_entry(runs))
            elif probe.read is not None:
                located = probe.locate(point.address) if probe.locate is not None else None
                if located is None:
                    return None
                steps += [Run(located.operations)] if located.operations else []
                steps.append(Fire(runs, located.arguments, late=located.late))
            elif probe.types:
                steps.append(Fire(runs, tuple(self._natives([one for _, _, one in probe.types[:PASSED]]))))
            elif probe.type is ProbeType.OFFSETS:
                steps.append(self._fire_offset(runs))
        return steps

    def _make_fire_entry(self, runs: int) -> Fire:
        found = function_arguments(self._kernel.isa, self._port.arguments, self._port.stack_skip)
        return Fire(runs, found, flags=_ENTRY)

    def _make_fire_offset(self, runs: int) -> Fire:
        return Fire(runs, function_arguments(self._kernel.isa, self._port.arguments, 0))

    def _make_fire_return(self, runs: int, offset: int) -> Fire:
        return Fire(runs, (Number(offset), *map(Register, self._port.results)))

    def _natives(self, natives: Sequence[int]) -> Iterator[Argument]:
        """Return the locations of arguments at a site that replaced a call (`_read_natives`)."""
        isa = self._kernel.isa
        registers = (*self._port.arguments, *self._port.late_arguments)
        for one in natives:
            if not registers:
                yield InMemory(isa.registers.sp, isa.word * one, isa.word)
            elif one < len(registers):
                yield Register(registers[one])

    def _after(
        self, point: Point, first: tuple[NativeOperation, ...], *, leaves: bool
    ) -> list[Fire | FireAfter | Run] | None:
        """Describe the actions after an instruction has set the pc; None: Python must do them.

        `first` are operations before them; `leaves` says that it always leaves its function.
        """
        if not point.after:
            return []
        pc = self._kernel.isa.registers.pc
        steps: list[Fire | FireAfter | Run] = [Run((*first, Set(_NEW_PC, pc), Set(pc, "", point.address)))]
        for probe in point.after:
            runs = self._framework.native_runs(probe.id)
            if not runs:
                return None
            fire = self._fire_return(runs, point.address - probe.function & WORD_MASK)
            steps.append(fire if leaves else FireAfter(fire, probe.function, probe.size, _NEW_PC))
        return [*steps, Run((Set(pc, _NEW_PC),))]

    # -- a hit

    def _hit(self, address: int, frame: Frame, _extra: int) -> int:
        """Take a breakpoint (fasttrap_pid_probe); 0: it is not one of ours."""
        thread = self._kernel.current
        assert thread is not None
        steps = self.steps
        stepping = steps.of(thread, address)
        if stepping is not None and address == stepping.trap:
            return steps.returned(thread, stepping)
        point = self._find(thread.process, address)
        if point is None:
            return 0
        steps.forget(thread)
        decision = point.decision
        if isinstance(decision, Emulated):
            self.fire_before(thread, point, frame)
            return self._emulate(point, decision.plan)
        if not steps.has_room(thread, point):
            self._kernel.cpu.pc = address
            self._kernel.cpu.discount(1)
            return EXECUTED
        self.fire_before(thread, point, frame)
        return steps.begin(thread, point, decision)

    # -- firing

    def fire_before(self, thread: Thread, point: Point, frame: Frame) -> None:
        """Fire the probes before an instruction, unless the hit is a repeated one."""
        if self._resumed.pop(thread, None) == point.address:
            return
        words, core, framework = self._kernel.cpu.words, self._core, self._framework
        for probe in tuple(point.before):
            if point.address in probe.questions:
                words[self._results[0]] = 1
            elif probe.type is ProbeType.ENTRY:
                core.flags |= _ENTRY
                framework.probe(probe.id, *self._read_arguments(self._port.stack_skip))
                core.flags &= ~_ENTRY
            elif probe.read is not None:
                framework.probe(probe.id, *probe.read(frame)[:PASSED])
            elif probe.types:
                framework.probe(probe.id, *self._read_natives([native for _, _, native in probe.types[:PASSED]]))
            elif probe.type is ProbeType.OFFSETS:
                framework.probe(probe.id, *self._read_arguments(0))

    def _read_arguments(self, skipped: int) -> list[int]:
        """Return arg0 to arg4: registers, or words of the stack after those that are `skipped`."""
        cpu = self._kernel.cpu
        if self._arguments:
            return [cpu.words[slot] for slot in self._arguments]
        return [*self._kernel.frame.stack_words(skipped)]

    def _read_natives(self, natives: Sequence[int]) -> list[int]:
        """Return arguments at a site that replaced a call, by their indices."""
        registers = (*self._arguments, *self._late)
        if registers:
            words = self._kernel.cpu.words
            return [words[registers[one]] for one in natives if one < len(registers)]
        return [self._stack_word(one) for one in natives]

    def _stack_word(self, index: int) -> int:
        try:
            return self._kernel.frame.stack_word(index)
        except BadAddressError:
            return 0

    def fire_after(self, point: Point, new_pc: int) -> None:
        """Fire the return probes if the function is left (fasttrap_return_common)."""
        decision = point.decision
        leaves = isinstance(decision, Emulated) and decision.leaves
        words = self._kernel.cpu.words
        for probe in tuple(point.after):
            # A branch is a return only if it was taken, and leaves the function.  Its target is known only now, so the
            # test is here and not in the search for sites; ret needs no test, because a recursive function returns into
            # itself.
            if not leaves and new_pc - probe.function & WORD_MASK < probe.size:
                continue
            results = [words[slot] for slot in self._results]
            self._framework.probe(probe.id, point.address - probe.function & WORD_MASK, *results)

    # -- emulating

    def _emulate(self, point: Point, plan: Plan) -> int:
        if point.native is None:
            reaches = any(isinstance(operation, (Load, Store)) for operation in plan.operations)
            by_machine_code = self._fidelity is not Fidelity.FREEBSD and not reaches
            point.native = self._kernel.engine.plan(plan) if by_machine_code else 0
        if not point.after and point.native and self._kernel.native:
            return point.native
        return self._execute(point, plan)

    def _execute(self, point: Point, plan: Plan) -> int:
        engine = self._kernel.cpu
        cpu: Cpu = _MinusOneFaults(engine) if self._fidelity is Fidelity.FREEBSD else engine
        try:
            interpret(plan, self._kernel.isa, cpu, point.address)
        except BadAddressError as error:
            engine.pc = point.address
            self._kernel.raise_bad_address(error.address)
            return EXECUTED
        if point.after:
            # The probes after it see the new registers, but the pc of the instruction.
            new_pc = engine.pc
            engine.pc = point.address
            self.fire_after(point, new_pc)
            engine.pc = new_pc
        return EXECUTED

    # -- events of threads

    def again(self, thread: Thread, address: int) -> None:
        """Make a thread hit an address once more, without its probes.

        The page that it needs is present now.
        """
        self._resumed[thread] = address
        self._kernel.traps.changed()

    def uncover(self, thread: Thread, address: int) -> None:
        """Make a thread execute its own instruction and take the fault that emulation has found."""
        point = self._find(thread.process, address)
        if point is not None:
            point.target.patcher.remove(point.tracepoint)
            self._uncovered.setdefault(thread, []).append(point)

    def signalled(self, thread: Thread) -> None:
        """Restore the breakpoints that were removed to let a thread fault."""
        for point in self._uncovered.pop(thread, ()):
            if point.target.live:
                point.target.patcher.install(point.tracepoint)

    def thread_ended(self, thread: Thread) -> None:
        """Forget a thread."""
        self._resumed.pop(thread, None)
        self._uncovered.pop(thread, None)


class _MinusOneFaults:
    """A CPU whose loads treat -1 as a failure, because fuword() returns -1 for both."""

    def __init__(self, engine: Cpu) -> None:
        self._engine = engine
        self.words = engine.words
        self.store = engine.store
        self.read_register = engine.read_register
        self.write_vector = engine.write_vector

    def load(self, address: int, size: int) -> int:
        value = self._engine.load(address, size)
        if value == (1 << 8 * size) - 1:
            raise BadAddressError(address)
        return value
