"""Recording a run: from a request to a recording."""

from __future__ import annotations

from dataclasses import replace

from emu.guest.base import GuestError, RunState
from emu.isa import ISAS
from emu.isa.disassembly import Syntax, disassemble
from providers.sdt.sdt import OWNER as JUMPS
from trapline.consumer.tracer import Tracer
from trapline.d.codegen.disassemble import disassemble_program
from trapline.framework.base.engines import ProgramEngine
from trapline.framework.device.dtrace import DTrace
from trapline.framework.device.ioctl import OpenDevice
from trapline.lab.step.faults import AFTER, Fault, explained
from trapline.lab.step.hit_events import Hit, Kind
from trapline.lab.step.machines import SteppedMachine, StepRequest, open_machine
from trapline.lab.step.names import Names
from trapline.lab.step.recorder import MOST_INSTRUCTIONS, MOST_OF_FAULT, Recorder
from trapline.lab.step.recording import Recording, StepError
from trapline.lab.step.steps import FiringSteps, listed_fields, patching
from trapline.lab.step.subject import KernelSubject, Window

_STRSIZE = 256
# Instructions of the program's own that are shown before a call of dtrace_probe().
_BEFORE_CALL = 8
# Virtual nanoseconds for which a guest runs on after a mistake.
_FOLLOWED = 200_000_000


class _Reference:
    """A framework whose clauses run on the machine of DIF itself, where each instruction is seen."""

    def __init__(self, dtrace: DTrace) -> None:
        self._dtrace = dtrace
        self.state: OpenDevice | None = None

    def open(self) -> OpenDevice:
        """Open a device for one consumer."""
        self.state = self._dtrace.open(ProgramEngine.REFERENCE)
        return self.state


def record(request: StepRequest, syntax: Syntax = Syntax.INTEL) -> Recording:
    """Run a guest until a probe has fired as often as asked, and return what happened.

    Raises `StepError`, `trapline.d.errors.CompileError`, `trapline.consumer.errors.ConsumerError`
    and `emu.guest.base.GuestError`.
    """
    fault = request.fault
    if fault is not None:
        return _record_fault(request, fault, syntax)[0]
    return _record(request, syntax)


def record_pair(request: StepRequest, syntax: Syntax = Syntax.INTEL) -> tuple[Recording, Recording]:
    """Return the recording of a request with a fault, and that of the same without it.

    Raises what `record` does.
    """
    assert request.fault is not None
    return _record_fault(request, request.fault, syntax)


def _record_fault(request: StepRequest, fault: Fault, syntax: Syntax) -> tuple[Recording, Recording]:
    name = request.isa.name
    if not fault.possible(request.isa):
        others = ", ".join(isa.name for isa in ISAS.values() if fault.possible(isa))
        raise StepError(f"--fault {fault.name}: it cannot occur on {name}: {fault.reason}; try {others}")
    if request.kind != "kernel":
        raise StepError(
            f"--fault {fault.name}: faults are injected into the kernel guest; leave --guest and --root out"
        )
    request = replace(request, after=AFTER, trap_path=fault.path)
    right = _record(replace(request, fault=None), syntax)
    wrong = explained(fault, _record(request, syntax), right)
    return wrong, right


def _record(request: StepRequest, syntax: Syntax) -> Recording:
    if request.uprobe:
        from trapline.lab.step.uprobe_run import record_uprobe  # noqa: PLC0415  its user alone waits for Linux programs

        return record_uprobe(request, syntax)
    run = _Run(request, syntax, None)
    recording = run.record()
    if run.window is not None:
        # The kernel called dtrace_probe() without a trap: now that the address is known, the code before it is shown.
        # A run is the same each time.
        recording = _Run(request, syntax, run.window).record()
    return recording


class _Run:
    """One run."""

    def __init__(self, request: StepRequest, syntax: Syntax, window: Window | None) -> None:
        self.window: Window | None = None
        """The code that the next run has to record; None: this run has recorded all."""
        self._request = request
        self._machine: SteppedMachine = open_machine(request)
        self._subject = self._machine.subject
        self._names = Names(self._subject, syntax)
        self._recorder = Recorder(self._subject, request.count, request.after)
        self._given = window
        self._program = ""

    def record(self) -> Recording:
        """Run, and return the recording."""
        request, machine, recorder = self._request, self._machine, self._recorder
        dtrace = machine.dtrace
        reference = _Reference(dtrace)
        clause = request.clause.strip()
        target = machine.target() if "$target" in clause else 0
        tracer = Tracer(
            machine.guest,
            reference,
            {"quiet": None},
            target=target,
            provide=machine.provide,
            foreign=machine.foreign,
            libraries=machine.libraries,
        )
        with tracer:
            dtrace.wrapped = recorder.clauses.wrap_run
            # D wants an action behind a predicate; here the firing itself is what is wanted.
            program = tracer.compiled(f"{clause} {{ }}" if clause.endswith("/") else clause)
            self._program = disassemble_program(program, _STRSIZE)
            if not tracer.session.enable(program):
                raise StepError(f"{clause}: no probe matches (`trapline dtrace -l` lists them)")
            assert reference.state is not None
            recorder.clauses.watch_dif(reference.state, dtrace.enablings)
            recorder.attach(machine.chains())
            self._make_stale()
            for window in [*self._jumps(), *([self._given] if self._given else [])]:
                recorder.watch_window(window)
            tracer.session.go()
            ending = self._go()
            hits = recorder.hit_recorder.hits
            if not hits:
                raise StepError(f"{clause}: {ending or self._silence()}")
            listings = [self._names.listings(hit.address) for hit in hits]
            self._look_for_window(hits[0])
            notes = self._notes(hits)
            enabling = tuple(patching(self._subject, self._names, hits[0].address)) if request.from_enable else ()
            if request.from_enable and not enabling:
                notes.append("--from-enable: no code is patched at the address of this probe")
            steps = FiringSteps(self._subject, self._names)
            firings = [steps.firing(hit, listing) for hit, listing in zip(hits, listings, strict=True)]
            tracer.session.stop()
            tracer.session.work()
            output = tracer.text
        firings = [
            replace(
                one, probe=one.probe or clause, listing={**one.listing, "after": self._names.listing_now(hit.address)}
            )
            for one, hit in zip(firings, hits, strict=True)
        ]
        isa = self._subject.isa
        return Recording(
            isa.name,
            request.kind,
            request.trap_path.value if request.kind == "kernel" else "host",
            clause,
            request.command or "",
            recorder.hit_recorder.names,
            isa.registers.pc,
            isa.registers.sp,
            tuple(listed_fields(isa)),
            isa.word,
            self._program,
            enabling,
            tuple(firings),
            output,
            tuple(notes),
            request.fault.name if request.fault else "",
            ending,
        )

    def _silence(self) -> str:
        fault = self._request.fault
        if fault is not None and fault.stale:
            return f"its code is executed less than twice, and --fault {fault.name} shows at the second time"
        return "did not fire before the guest ended"

    def _make_stale(self) -> None:
        """Take the patches out again, to be written where the CPU does not see them."""
        fault, subject = self._request.fault, self._subject
        if fault is None or not fault.stale or not isinstance(subject, KernelSubject):
            return
        for point in subject.kernel.patcher.listing():
            if point.installed:
                size = subject.isa.instruction_length(
                    point.original + subject.read(point.address, 8)[len(point.original) :]
                )
                subject.engine.write_code(point.address, point.original)
                self._recorder.watch_stale(point.address, size, point.patch, fault.stale)

    def _jumps(self) -> list[Window]:
        """Return the sites that were patched with a jump, which raises no exception."""
        if not isinstance(self._subject, KernelSubject) or self._subject.kernel.probe_calls:
            return []
        breakpoints = self._subject.isa.traps.breakpoints
        return [
            Window(point.address, point.address + len(point.patch))
            for point in self._subject.kernel.patcher.listing()
            if point.installed and point.owner == JUMPS and point.patch not in breakpoints
        ]

    def _go(self) -> str:
        """Run until all is recorded; return how the guest ended if it ended badly."""
        guest = self._machine.guest
        try:
            while not self._recorder.hit_recorder.done:
                if guest.run(None) is RunState.FINISHED:
                    break
            if self._request.fault is not None and self._recorder.hit_recorder.done:
                return self._what_follows()
        except GuestError as error:
            hits = self._recorder.hit_recorder
            if hits.crashed() is None and not hits.done:
                raise
            return str(error)
        return ""

    def _what_follows(self) -> str:
        """Run on after a mistake; return how that ended.  Raises `GuestError` for a crash."""
        guest = self._machine.guest
        state = guest.run(guest.now() + _FOLLOWED)
        if self._recorder.hangs:
            return "the CPU meets this breakpoint again and again, and the program never continues"
        return "the guest runs to its end, and nothing tells of the mistake" if state is RunState.FINISHED else ""

    def _notes(self, hits: list[Hit]) -> list[str]:
        notes = []
        if self._recorder.cut:
            most = MOST_OF_FAULT if self._request.after else MOST_INSTRUCTIONS
            notes.append(f"A firing of more than {most:,} steps is cut there.")
        if len(hits) < self._request.count:
            notes.append(f"The probe fired {len(hits)} times, not {self._request.count}, before the guest ended.")
        return notes

    def _look_for_window(self, hit: Hit) -> None:
        """Find the code before a call of dtrace_probe() that no trap has led to."""
        subject = self._subject
        if self._given is not None or hit.taken or not isinstance(subject, KernelSubject):
            return
        fired = next(event for event in hit.events if event.kind is Kind.FIRED)
        if fired.pc not in subject.gates:
            return
        link = subject.isa.registers.link
        back = fired.registers[link] if link else dict(hit.stack)[fired.registers[subject.isa.registers.sp]]
        found = subject.function(back)
        if found is None:
            return
        code = subject.engine.read(found[0], back - found[0])
        starts = [one.address for one in disassemble(subject.isa, code, found[0])]
        if starts:
            self.window = Window(starts[max(0, len(starts) - _BEFORE_CALL)], back)
