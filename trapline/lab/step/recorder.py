"""Watching a guest while probes fire: from the patched instruction to the resume, event by event.

The recorder puts itself in front of the engine's trap callback, around each handler of the chains,
around the enablings of probes, and behind each instruction of DIF.  On a hit it has the engine call
it before every instruction until the program itself continues.  Nothing of this changes what the
guest does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from emu.bad_address import BadAddressError
from emu.engine.engine import Engine
from emu.engine.errors import GuestCrashError
from emu.engine.state import DELIVER
from emu.frame import Frame
from emu.isa.base import Isa
from emu.plan_execution import interpret
from emu.plans import Plan
from emu.trap import Handler, TrapHandler
from emu.trap_frames import SavedFrame
from emu.words import WORD_MASK
from trapline.d.disassemble import instruction_text
from trapline.framework.dif import Var
from trapline.framework.ecb import Ecb, Run
from trapline.framework.machine import Loaded
from trapline.framework.probes import Probe
from trapline.framework.state import ConsumerState
from trapline.lab.step.events import Event, Hit, Kind, RawAccess
from trapline.lab.step.subject import Subject, Window

# What is kept of one firing; a trap takes some hundred instructions.
MOST_INSTRUCTIONS: Final = 20_000
# The same where a mistake is made: what follows is often a panic of thousands of instructions.
MOST_OF_FAULT: Final = 400
# Words of the stack that are shown below and above the stack pointer.
_STACK_WORDS: Final = 64
_LONGEST_INSTRUCTION: Final = 16
# So many hits of one breakpoint, each within so many instructions of the last, are a loop.
_OFTEN: Final = 200
_LOOP: Final = 1000
# The name by which a handler's own system knows it, by the package of its provider.
_HANDLERS: Final = {
    "fbt": "fbt_invop",
    "kinst": "kinst_invop",
    "sdt": "sdt_invop",
    "fasttrap": "fasttrap_pid_probe",
    "uprobes": "handle_swbp",
    "linux_kernel": "the breakpoints of the Linux kernel's text",
}


class _Rehearsal:
    """A CPU that tries a plan: it reads the real memory, and only notes what would be written."""

    def __init__(self, engine: Engine, registers: Mapping[str, int]) -> None:
        self.words = memoryview(bytearray(engine.words)).cast("Q")
        for name, value in registers.items():
            if name in engine.isa.registers.slots:
                self.words[engine.isa.registers.slots[name]] = value
        self.load = engine.load
        self.read_register = engine.read_register
        self.stores: list[tuple[int, int, int]] = []

    def store(self, address: int, size: int, value: int) -> None:
        self.stores.append((address, size, value & (1 << 8 * size) - 1))

    def write_vector(self, number: int, low: int, high: int) -> None:
        """Ignore the write: vector registers are not shown."""


def shown_registers(isa: Isa) -> tuple[str, ...]:
    """Return the registers that a recording has: what a trap frame holds, pc and flags."""
    roles = {isa.registers.pc, isa.registers.sp, isa.registers.fp, isa.registers.link, isa.traps.flags}
    held = {*isa.traps.frame, *roles} - {isa.registers.zero}
    kept = [name for name, register in isa.registers.by_name.items() if name in held and register.slot is not None]
    return (*kept, *([isa.traps.flags] if isa.traps.flags and isa.traps.flags not in kept else []))


class Recorder:
    """Records the hits of one guest until `wanted` firings are there."""

    def __init__(self, subject: Subject, wanted: int, after: int = 0) -> None:
        """`after`: how many instructions behind the resume are recorded."""
        self._after = after
        self.hangs = False
        """Whether the guest has met the same breakpoint again and again, once all is recorded."""
        self._again = self._again_at = 0
        self.hits: list[Hit] = []
        self.names = shown_registers(subject.isa)
        self.cut = False
        """Whether a firing was longer than is kept."""
        self._subject = subject
        self._engine = subject.engine
        self._wanted = wanted
        self._hit: Hit | None = None
        self._before: dict[int, Hit] = {}
        """By thread: its latest hit that fired nothing, such as the entry of a return probe."""
        self._gate: Event | None = None
        self._probe: Probe | None = None
        self._false = False
        self._state: ConsumerState | None = None
        self._enablings: Callable[[Probe], Sequence[Ecb]] = lambda _probe: ()
        self._original: Callable[[int], int] = subject.engine.handlers.on_breakpoint

    @property
    def done(self) -> bool:
        """Whether all wanted firings are recorded."""
        return len(self.hits) >= self._wanted

    # -- attaching

    def attach(self, chains: Sequence[TrapHandler]) -> None:
        """Watch breakpoints, and the handlers that there are now."""
        for chain in chains:
            chain.wrap(self._wrap)
        self._original = self._engine.handlers.on_breakpoint
        self._engine.handlers.on_breakpoint = self._trapped
        original = self._engine.handlers.on_trap

        def trapped(number: int) -> int:
            if self._hit is None and self._subject.is_breakpoint(self._engine.pc):
                return self._take(self._engine.pc, lambda: original(number))
            return original(number)

        self._engine.handlers.on_trap = trapped

    def begin(self) -> None:
        """Record from the next instruction on, without a breakpoint; `crashed` ends it."""
        self._hit = Hit(self._engine.pc, thread=self._subject.thread(), taken=True, fired=True, after=1)
        self._engine.watch(self._step, self._accessed)

    def watch_stale(self, address: int, size: int, patch: bytes, times: int) -> None:
        """Make the CPU execute an old instruction after its patch was written; record that.

        `times`: how often, -1: forever.  The patch is written when the CPU comes there, so that
        the old instruction has been translated, which stands for the instruction cache.
        """
        engine, state = self._engine, {"met": 0}

        def at_site() -> None:
            state["met"] += 1
            if state["met"] == 1:
                engine.memory.write(address, patch)
            elif not self.done and self._hit is None and (times < 0 or state["met"] <= 1 + times):
                self._hit = Hit(address, stack=self._stack(), thread=self._subject.thread(), taken=True, fired=True)
                self._add(Kind.STALE)

        def behind() -> None:
            hit = self._hit
            if hit is not None and hit.events and hit.events[-1].kind is Kind.STALE:
                self._close(hit)
            if times >= 0 and state["met"] == 1 + times:
                engine.write_code(address, patch)

        for place, function in ((address, at_site), (address + size, behind)):
            engine.on_code(place, function)
            engine.write_code(place, engine.read(place, 1))

    def watch_dif(self, state: ConsumerState, enablings: Callable[[Probe], Sequence[Ecb]]) -> None:
        """Note each instruction of DIF that a consumer executes."""
        self._state = state
        self._enablings = enablings
        state.runtime.machine.watcher = self._dif

    def wrap_run(self, probe: Probe, run: Run) -> Run:
        """Return what runs a probe's enablings, and notes that it does (`DTrace.wrapped`)."""

        def recorded(arguments: tuple[int, ...]) -> None:
            self.fire(probe, arguments, lambda: run(arguments))

        return recorded

    def watch_window(self, window: Window) -> None:
        """Record from where the CPU comes to a window's start, if no hit is under way."""

        def begin() -> None:
            if self._hit is not None or self.done:
                return
            self._hit = Hit(window.start, stack=self._stack(), thread=self._subject.thread(), window=window.end)
            self._hit.taken = True
            self._engine.watch(self._step, self._accessed)
            self._engine.leave()  # the hooked instruction is met once more, by the watcher

        self._engine.on_code(window.start, begin)
        # It may have been translated without the hook.
        self._engine.write_code(window.start, self._engine.read(window.start, 1))

    # -- events

    def event(self, kind: Kind, **details: Any) -> Event:
        """Make an event of the present state."""
        engine = self._engine
        registers = {name: engine.read_register(name) for name in self.names}
        pc = registers[engine.isa.registers.pc]
        code = b""
        with suppress(BadAddressError):
            code = self._subject.read(pc, _LONGEST_INSTRUCTION)
        return Event(kind, pc, registers, engine.instructions, code, **details)

    def _add(self, kind: Kind, **details: Any) -> None:
        hit = self._hit
        if hit is None or self.done:
            return
        event = self.event(kind, **details)
        if self._gate is not None:
            # The gate's return instruction comes after what the emulator does in the gate.
            event.pc, event.code, event.registers = self._gate.pc, b"", self._gate.registers
        hit.events.append(event)

    # -- a hit

    def _trapped(self, address: int) -> int:
        return self._take(address, lambda: self._original(address))

    def _take(self, address: int, handle: Callable[[], int]) -> int:
        if self.done:
            self._count_again(address)
            return handle()
        hit = self._hit
        if hit is None:
            hit = self._hit = Hit(address, stack=self._stack(), thread=self._subject.thread(), taken=True)
            self._add(Kind.FETCH)
        elif not self._engine.watched:
            self._add(Kind.FETCH)
        try:
            answer = handle()
        except BaseException:
            self._close(hit)
            raise
        if answer == DELIVER:
            hit.handling = True
        elif hit.events and hit.events[-1].kind is Kind.FETCH:
            self._hit = None  # nobody's
            return answer
        if hit.handling or self._subject.is_machinery(self._engine.pc):
            if not self._engine.watched:
                self._engine.watch(self._step, self._accessed)
        elif not self._engine.watched:
            self._end(hit)
        return answer

    def _count_again(self, address: int) -> None:
        """Notice that the guest does not get past a breakpoint any more."""
        instructions = self._engine.instructions
        same = address == self.hits[-1].address and instructions - self._again_at < _LOOP
        self._again, self._again_at = (self._again + 1 if same else 0), instructions
        if self._again > _OFTEN:
            self.hangs = True
            self._subject.interrupt()

    def _end(self, hit: Hit) -> None:
        """End a hit, or go on behind its resume."""
        if self._after and (hit.fired or self._engine.watched):
            self._engine.watch(self._step, self._accessed)
        else:
            self._close(hit)

    def _stack(self) -> tuple[tuple[int, int], ...]:
        engine, size = self._engine, self._engine.isa.word
        top = engine.read_register(engine.isa.registers.sp)
        words = []
        for place in range(-_STACK_WORDS, _STACK_WORDS):
            with suppress(BadAddressError):
                words.append((top + place * size, engine.load(top + place * size, size)))
        return tuple(words)

    def _step(self) -> bool:
        """Note the instruction that comes next; False: the program itself continues."""
        hit = self._hit
        if hit is None:
            return False
        self._leave_gate(hit)
        pc = self._engine.pc
        if hit.events and hit.events[-1].kind is Kind.EXECUTE and hit.events[-1].pc == self._subject.handler_end:
            hit.handling = False
        if hit.handling and not self._engine.isa.is_kernel_address(pc):
            hit.handling = False
        if hit.window is not None:
            if pc == hit.window:
                self._close(hit)
                return False
        elif not hit.handling and not self._subject.is_machinery(pc):
            hit.after += 1
            if hit.after > self._after or not hit.fired:
                self._close(hit)
                return False
            self._add(Kind.RESUMED if hit.after == 1 else Kind.AFTER)
            return True
        if len(hit.events) > (MOST_OF_FAULT if self._after else MOST_INSTRUCTIONS):
            self.cut = True
            self._close(hit)
            return False
        self._add(Kind.EXECUTE)
        if pc in self._subject.gates:
            self._gate = hit.events.pop()
            hit.events.append(self.event(Kind.CALLED, name=self._subject.gates[pc]))
            hit.events[-1].code = b""
        return True

    def _leave_gate(self, hit: Hit) -> None:
        """Put the return instruction of a gate behind what the emulator did in it."""
        gate, self._gate = self._gate, None
        if gate is None:
            return
        results = set(self._engine.isa.calling.results)
        now = {name: self._engine.read_register(name) for name in self.names}
        gate.registers = {name: now[name] if name in results else old for name, old in gate.registers.items()}
        gate.accesses, moved = [], [one for event in hit.events for one in event.accesses if event.kind is Kind.CALLED]
        for event in hit.events:
            if event.kind is Kind.CALLED and moved:
                event.accesses = []
        gate.accesses = moved
        hit.events.append(gate)

    def _accessed(self, write: bool, physical: int, size: int, value: int) -> None:
        hit = self._hit
        if hit is None or self.done or not hit.events:
            return
        event = hit.events[-1]
        address = self._subject.virtual(physical, event.registers.values())
        data = self._subject.physical(physical, size)
        event.accesses.append(RawAccess(write, address, size, value if write else data, data if write else None))

    def _close(self, hit: Hit) -> None:
        """End a hit: keep it if it has fired."""
        self._hit = None
        hit.over = True
        hit.events.append(self.event(Kind.AFTER if hit.after > 1 else Kind.RESUMED))
        if not hit.fired:
            told = {Kind.FIRED, Kind.UNWANTED}
            if not any(event.kind in told for event in hit.events):
                self._before[hit.thread[1]] = hit
            return
        if self.done:
            return
        earlier = self._before.pop(hit.thread[1], None)
        if earlier is not None and self._subject.is_machinery(hit.address):
            between = earlier.events.pop()
            hit.events = [*earlier.events, Event(Kind.ELSEWHERE, between.pc, between.registers, between.instructions),
                          *hit.events]  # fmt: skip
            hit.stack, hit.address = earlier.stack, earlier.address
        self.hits.append(hit)
        if self.done:
            self._subject.interrupt()

    def crashed(self) -> Hit | None:
        """Keep the hit under way, in which the guest has crashed or hung."""
        hit = self._hit
        if hit is None:
            return None
        self._hit = None
        self._leave_gate(hit)
        with suppress(BadAddressError, GuestCrashError):
            hit.events.append(self.event(Kind.RESUMED))
        self.hits.append(hit)
        return hit

    # -- handlers and probes

    def _wrap(self, handler: Handler) -> Handler:
        package = handler.__module__.split(".")
        if package[0] != "providers":
            return handler
        name = _HANDLERS.get(package[1], package[1])

        def recorded(address: int, frame: Frame, extra: int) -> int:
            hit = self._hit
            if hit is not None and isinstance(frame, SavedFrame):
                hit.frame = frame.address
            self._add(Kind.ASKED, name=name, arguments=(address, frame.address if isinstance(frame, SavedFrame) else 0))
            before = self._interrupted_pc(frame)
            answer = handler(address, frame, extra)
            self._answered(name, address, frame, answer, moved=self._interrupted_pc(frame) != before)
            return answer

        return recorded

    def _interrupted_pc(self, frame: Frame) -> int:
        """Return the pc at which the program will go on, unless a stub adds to it."""
        return frame.register(self._engine.isa.registers.pc) if isinstance(frame, SavedFrame) else self._engine.pc

    def _answered(self, name: str, address: int, frame: Frame, answer: int, *, moved: bool) -> None:
        hit = self._hit
        if hit is None or self.done:
            return
        plan = self._subject.plan(address, answer) if answer and not moved else None
        before = hit.events[-1] if hit.events else None
        self._add(Kind.ANSWERED, name=name, answer=answer, plan=plan, moved=moved)
        if before is not None:
            hit.events[-1].registers, hit.events[-1].pc = (
                before.registers,
                before.pc,
            )  # what the handler has changed belongs to its answer
        if moved and not isinstance(frame, SavedFrame) and not self._subject.is_machinery(self._engine.pc):
            hit.events[-1].accesses = self._written(hit)
        if plan is not None and not isinstance(frame, SavedFrame):
            event = self.event(Kind.PLANNED, plan=plan)
            event.accesses = self._rehearse(plan, event.registers)
            hit.events.append(event)

    def _written(self, hit: Hit) -> list[RawAccess]:
        """Return the words of the stack that a handler has changed."""
        size, load = self._engine.isa.word, self._engine.load
        now = ((address, before, load(address, size)) for address, before in hit.stack)
        return [
            RawAccess(write=True, address=address, size=size, value=value, before=before)
            for address, before, value in now
            if value != before
        ]

    def _rehearse(self, plan: Plan, registers: Mapping[str, int]) -> list[RawAccess]:
        rehearsal = _Rehearsal(self._engine, registers)
        try:
            interpret(plan, self._engine.isa, rehearsal)
        except BadAddressError:
            return []
        load = self._engine.load
        return [
            RawAccess(write=True, address=address & WORD_MASK, size=size, value=value, before=load(address, size))
            for address, size, value in rehearsal.stores
        ]

    def fire(self, probe: Probe | None, arguments: tuple[int, ...], run: Callable[[], object], name: str = "") -> None:
        """Note a firing while `run` runs the enablings."""
        if self._hit is None and not self.done:
            self._hit = Hit(self._engine.pc, stack=self._stack(), thread=self._subject.thread())
        hit = self._hit
        self._probe, self._false = probe, False
        known = name if probe is None else str(probe.description)
        if hit is not None and not self.done:
            self._add(Kind.FIRED, name=known, arguments=arguments, probe_id=probe.id if probe else 0)
            fired = hit.events[-1]
        before = [(buffer, buffer.offset) for buffer in self._state.runtime.buffers] if self._state else []
        run()
        if hit is None or self.done:
            return
        if self._state is not None and probe is not None:
            number = Var.CALLER if self._subject.in_kernel else Var.UCALLER
            context = self._state.runtime.context
            context.probe, context.args = probe, arguments
            with suppress(BadAddressError):
                fired.caller = self._state.runtime.machine.builtins.scalar(context, number)
            record = b"".join(bytes(buffer.data[start : buffer.offset]) for buffer, start in before)
            self._add(Kind.UNWANTED if self._false and not record else Kind.RECORDED, record=record)
        hit.fired = hit.fired or not self._false
        if hit.fired and not self._engine.watched and not hit.taken:
            self._close(hit)

    def _dif(self, loaded: Loaded, at: int, registers: Sequence[int]) -> None:
        probe = self._probe
        if self._hit is None or self.done or probe is None:
            return
        role, text = "", instruction_text(loaded.difo, loaded.difo.code[at])
        for ecb in self._enablings(probe):
            if loaded.difo == ecb.clause.predicate:
                role = "predicate"
            for number, placed in enumerate(ecb.clause.layout.actions, start=1):
                if loaded.difo == placed.action.difo and not role:
                    role = f"action {number}, {placed.action.kind.name.lower()}"
        if role == "predicate" and text.startswith("ret"):
            self._false = not registers[int(text.split("%r")[1].split()[0])]
        self._add(Kind.DIF, dif=(role, at, " ".join(text.split()), tuple(registers)))
