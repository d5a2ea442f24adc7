"""Whole programs, plain and with all their sites probed at once.

A program, or a boot of the kernel guest, runs plain and with every site patched.  What it prints,
its exit status, how many instructions it executes and what is in its memory at the end must be the
same.  If they are not, the sites are bisected to the first that makes the difference, and the two
runs are followed, instruction by instruction, to where they part.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from emu import disassembly
from emu.disassembly import Syntax
from emu.engine.access import Access
from emu.engine.clock import NANOSECONDS
from emu.guest.base import GuestError, RunState
from emu.guest.kernel.guest import KernelGuest, TrapPath
from emu.guest.linux.guest import LinuxGuest, Program
from emu.guest.linux.inodes import RegularFile
from emu.guest.linux.process import Process
from emu.guest.linux.stdio import Standard
from emu.guest.modules import Module
from emu.guest.observer import Observer
from emu.isa.base import Isa
from providers import fasttrap, fbt, uprobes
from providers.fasttrap.records import Probe, ProbeType
from trapline.lab.check.listener import Listener
from trapline.lab.check.results import RunResult
from trapline.lab.check.rules import Rules
from trapline.lab.check.site import Site
from trapline.lab.check.states import general_registers
from trapline.lab.check.subject import Subject

# Virtual time after which a run is stopped, and compared as far as it came.
LONGEST_RUN: Final = 120 * NANOSECONDS
# Instructions that are compared one by one.
_FOLLOWED: Final = 4_000_000


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What is run."""

    subject: Subject
    """The program whose sites are patched; its `kind` says by which provider."""
    arguments: tuple[str, ...] = ()
    root: Path | None = None
    trap_path: TrapPath = TrapPath.HOST
    accelerated: bool | None = None

    @property
    def name(self) -> str:
        """What people call it."""
        words = " ".join((str(self.subject.path), *self.arguments))
        return f"{words} ({self.subject.kind}{', guest path' if self.trap_path is TrapPath.GUEST else ''})"


class Ended(NamedTuple):
    """What is left of a run."""

    output: bytes
    status: str
    instructions: int
    memory: int
    """A checksum."""


class Run(Protocol):
    """A guest, ready to run, whose sites may be patched."""

    isa: Isa
    engine: Any

    @property
    def fired(self) -> int:
        """How often a probe was hit."""
        ...

    def prepare(self) -> None:
        """Let it come to where it may be patched."""
        ...

    def patch(self, sites: Sequence[Site]) -> None:
        """Put probes at sites."""
        ...

    def go(self) -> Ended:
        """Run to the end."""
        ...

    def in_program(self, pc: int) -> bool:
        """Tell whether a pc is not in code that a provider made."""
        ...


class _LinuxRun(Observer):
    """A Linux program."""

    def __init__(self, spec: RunSpec, rules: Rules) -> None:
        self._rules = rules
        self._provider = spec.subject.kind
        self._output = bytearray()
        self.isa = spec.subject.isa
        standard = Standard(write=self._output.extend, error=self._output.extend)
        program = Program(str(spec.subject.path), spec.arguments)
        self._guest = LinuxGuest(self.isa, program, root=spec.root, standard=standard, accelerated=spec.accelerated)
        self.engine = self._guest.engine
        self._kernel = self._guest.kernel
        assert self._kernel.first is not None
        self._process = self._kernel.first
        self._listener = Listener()
        self._memory = 0
        self._kernel.observers.append(self)

    @property
    def fired(self) -> int:
        """How often a probe was hit."""
        return self._listener.fired

    def prepare(self) -> None:
        """Do nothing: the program is at its first instruction."""

    def patch(self, sites: Sequence[Site]) -> None:
        """Put probes at sites; what is refused stays as it is."""
        loaded = next(one for one in self._guest.objects.of(self._process) if one.file is self._process.executable)
        if self._provider == "pid":
            framework: Any = self._listener
            provider = fasttrap.Fasttrap(self._kernel, framework, self._rules.pid_fidelity, port=self._rules.pid)
            target = provider.target(self._process)
            target.patcher = self._rules.patcher(target.code)
            for site in sites:
                function = (site.start or site.address) + loaded.bias
                probe = Probe(target, ProbeType.OFFSETS, function, 1 << 32, (site.address + loaded.bias,), id=1)
                provider.enable(probe)
            return
        consumer = uprobes.Consumer(handler=lambda _frame: self._listener.probe(1))
        registry = uprobes.Uprobes(self._kernel, port=self._rules.uprobe)
        space = registry.watch(self._process)
        space.patcher = self._rules.patcher(space.code)
        assert isinstance(loaded.file, RegularFile)
        for site in sites:
            offset = loaded.image.offset_of(site.address)
            if offset is not None:
                with suppress(uprobes.UprobeError):
                    registry.register(loaded.file, offset, consumer)

    def go(self) -> Ended:
        """Run to the end."""
        status = "nothing"
        try:
            finished = self._guest.run(LONGEST_RUN) is RunState.FINISHED
            status = f"exit status {self._guest.exit_status}" if finished else "not over in time"
        except GuestError as error:
            status = str(error)
        return Ended(bytes(self._output), status, self.engine.instructions, self._memory)

    def exited(self, process: Process) -> None:
        """Look at what is in the program's memory."""
        if process is self._process:
            for area in process.space.areas:
                if Access.WRITE in area.access and not area.shared:
                    for page in process.space.touched(area):
                        data = process.space.peek(page, 4096)
                        if any(data):
                            self._memory = zlib.crc32(data, zlib.crc32(page.to_bytes(8, "little"), self._memory))

    def in_program(self, pc: int) -> bool:
        """Tell whether a pc is not in scratch space."""
        area = self._process.space.area_at(pc)
        return area is None or not area.name.startswith(("[fasttrap]", "[uprobes]"))


class _KernelRun:
    """A boot of the kernel guest and its start-up script."""

    def __init__(self, spec: RunSpec, rules: Rules) -> None:
        self._rules = rules
        self._spec = spec
        self._output = bytearray()
        self.isa = spec.subject.isa
        self._guest = KernelGuest(
            self.isa,
            image=spec.subject.path,
            trap_path=spec.trap_path,
            console=self._output.extend,
            accelerated=spec.accelerated,
            patcher=rules.patcher,
            displaced=rules.displaced,
        )
        self._patcher = self._guest.patcher
        self.engine = self._guest.engine
        self._listener = Listener()

    @property
    def fired(self) -> int:
        """How often a probe was hit."""
        return self._listener.fired

    def prepare(self) -> None:
        """Boot the kernel, up to process 1."""
        self._guest.boot()

    def patch(self, sites: Sequence[Site]) -> None:
        """Install the tracepoints of sites."""
        rules = self._rules
        framework: Any = self._listener
        provider = fbt.FBT(
            framework, self._patcher, self._guest.traps, self.isa, fidelity=rules.fbt_fidelity, port=rules.fbt
        )
        provider.provide_module(Module("kernel", self._guest.image.symbols, self._patcher.original))
        for site in sites:
            record = provider.table.find(site.address)
            if record is not None:
                self._patcher.install(record.tracepoint)

    def go(self) -> Ended:
        """Run to the power off."""
        try:
            finished = self._guest.run(LONGEST_RUN) is RunState.FINISHED
            status = f"exit status {self._guest.exit_status}" if finished else "not over in time"
        except GuestError as error:
            status = str(error)
        self._patcher.restore_all()
        # On the guest's own path the trap frames of probes stay behind on the stacks.
        memory = zlib.crc32(self.engine.memory.ram) if self._spec.trap_path is TrapPath.HOST else 0
        return Ended(bytes(self._output), status, self.engine.instructions, memory)

    def in_program(self, pc: int) -> bool:
        """Tell that every pc is the kernel's, or its programs'."""
        del pc
        return True


def _make(spec: RunSpec, rules: Rules) -> Run:
    """Return a guest of its own for each run."""
    run = _KernelRun(spec, rules) if spec.subject.kind == "fbt" else _LinuxRun(spec, rules)
    run.prepare()
    return run


def run_check(spec: RunSpec, rules: Rules, syntax: Syntax = Syntax.INTEL) -> RunResult:
    """Run plain and patched, and compare; if they differ, look for the cause.  Raises `GuestError`."""
    sites = spec.subject.sites(rules)
    plain = _make(spec, rules).go()
    fired = 0

    def patched(some: Sequence[Site]) -> Ended:
        nonlocal fired
        run = _make(spec, rules)
        run.patch(some)
        ended = run.go()
        fired = run.fired
        return ended

    differences = tuple(_differences(plain, patched(sites), spec))
    hits = fired
    culprit = ""
    if differences:
        first = _bisect(sites, lambda some: any(_differences(plain, patched(some), spec)))
        culprit = _explain(spec, rules, first, syntax)
    return RunResult(spec.name, not differences, plain.instructions, hits, differences, culprit)


def _differences(plain: Ended, patched: Ended, spec: RunSpec) -> Iterator[str]:
    if plain.output != patched.output:
        pairs = enumerate(zip(plain.output, patched.output, strict=False))
        shorter = min(len(plain.output), len(patched.output))
        at = next((place for place, (one, other) in pairs if one != other), shorter)
        yield f"output from byte {at} on: {plain.output[at : at + 40]!r} became {patched.output[at : at + 40]!r}"
    for what in ("status", "memory", *(("instructions",) if spec.trap_path is TrapPath.HOST else ())):
        before, after = getattr(plain, what), getattr(patched, what)
        if before != after:
            yield f"{what}: {before} became {after}"


def _bisect(sites: Sequence[Site], differs: Callable[[Sequence[Site]], bool]) -> Site:
    """Return the last site of the shortest beginning of the list that makes a difference."""
    low, high = 0, len(sites)
    while high - low > 1:
        middle = (low + high) // 2
        if differs(sites[:middle]):
            high = middle
        else:
            low = middle
    return sites[high - 1]


def _explain(spec: RunSpec, rules: Rules, culprit: Site, syntax: Syntax) -> str:
    """Name a site, and the first instruction that does something else once it is patched."""
    found = disassembly.first(spec.subject.isa.capstone, culprit.code, culprit.address, syntax)
    text = f"{culprit.name} ({found.text if found else disassembly.NO_INSTRUCTION})"
    trace: list[tuple[int, bytes]] = []
    plain = _make(spec, rules)
    with suppress(_FollowedEnoughError):
        _follow(plain, trace.append)
    patched = _make(spec, rules)
    patched.patch([culprit])
    place = 0
    part: list[str] = []

    def compare(seen: tuple[int, bytes]) -> None:
        nonlocal place
        expected = trace[place] if place < len(trace) else None
        if expected is not None and expected != seen:
            part.extend(_tell(spec.subject, trace[place - 1][0] if place else 0, expected, seen))
            raise _FollowedEnoughError
        place += 1

    with suppress(_FollowedEnoughError):
        _follow(patched, compare)
    return f"{text}; {' '.join(part)}" if part else text


class _FollowedEnoughError(Exception):
    """Nothing more is to be seen."""


def _state(run: Run) -> tuple[int, bytes]:
    slots = [run.isa.registers.slots[name] for name in general_registers(run.isa)]
    return run.engine.pc, bytes(run.engine.words[slots[0] : slots[-1] + 1].cast("B"))


def _follow(run: Run, see: Callable[[tuple[int, bytes]], object]) -> None:
    """Run a guest one instruction at a time; `see` is shown the state before each of the program's own.

    Of one that repeats itself the first repetition is shown.
    """
    engine = run.engine
    last = -1
    shown = 0

    def one(_soft: int | None = None, _hard: int | None = None) -> bool:
        nonlocal last, shown
        pc = engine.pc
        if pc != last and run.in_program(pc):
            see(_state(run))
            last = pc
            shown += 1
            if shown > _FOLLOWED:
                raise _FollowedEnoughError
        waits: bool = engine.step()
        return waits

    engine.run = one
    with suppress(GuestError):
        run.go()


def _tell(subject: Subject, before: int, expected: tuple[int, bytes], seen: tuple[int, bytes]) -> Iterator[str]:
    if before:
        found = subject.image.symbol_at(before)
        yield f"after the instruction at {f'{found[0].name}+{found[1]:#x}' if found else f'{before:#x}'}:"
    if expected[0] != seen[0]:
        yield f"pc {expected[0]:#x} became {seen[0]:#x}"
    names = general_registers(subject.isa)
    words = (memoryview(one[1]).cast("Q") for one in (expected, seen))
    for name, one, other in zip(names, *words, strict=True):
        if one != other:
            yield f"{name} {one:#x} became {other:#x}"


def as_data(result: RunResult) -> dict[str, Any]:
    """Return a result as JSON has it."""
    return asdict(result)
