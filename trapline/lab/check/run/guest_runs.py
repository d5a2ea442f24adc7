"""Programs, boots of the kernel guest, and functions of modules, run with sites patched."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from emu.engine.memory.access import Access
from emu.engine.time.clock import NANOSECONDS
from emu.guest.base import GuestError, Location, RunState
from emu.guest.kernel.guest import KernelGuest
from emu.guest.kernel.trap_path import TrapPath
from emu.guest.linux.fs.regular import RegularFile
from emu.guest.linux.fs.stdio import Standard
from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.launch import Program
from emu.guest.linux.process.process import LinuxObserver, Process
from emu.guest.linux_kernel.files.module_file import ModuleFile
from emu.guest.modules import Module
from emu.isa.base import Isa
from providers import fasttrap, fbt, uprobes
from providers.fasttrap.records import Probe, ProbeType
from trapline.lab.check.cpu.listener import Listener
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.run.ended import Ended
from trapline.lab.check.run.module_run import ModuleRun
from trapline.lab.check.site.subject import Subject

# The mappings that the providers add to a program, for copies of displaced instructions.
SCRATCH: Final = frozenset({"[fasttrap]", "[uprobes]"})
# Virtual time after which a run is stopped, and compared up to there.
LONGEST_RUN: Final = 120 * NANOSECONDS


@dataclass(frozen=True, slots=True)
class RunSpec:
    """The program or boot to run."""

    subject: Subject
    """The program whose sites are patched; its `kind` is the provider."""
    arguments: tuple[str, ...] = ()
    root: Path | None = None
    program: str = ""
    """The program's path in `root`; "": its path on this host."""
    trap_path: TrapPath = TrapPath.HOST
    accelerated: bool | None = None
    returns: bool = False
    """Whether the returns of functions are probed, by Linux' way: a return address is replaced."""
    may_be_idle: bool = False
    """Whether a run in which no probe fires is accepted."""

    @property
    def recorded(self) -> bool:
        """Return whether its states are tried, too.

        Those on the guest path and with probes of returns are the same as without; functions of a
        module that are called alone meet no states of a real kernel.
        """
        return self.trap_path is TrapPath.HOST and not self.returns and not isinstance(self.subject.image, ModuleFile)

    @property
    def name(self) -> str:
        """Its name in reports."""
        words = " ".join((str(self.subject.path), *self.arguments))
        guest_path = ", guest path" if self.trap_path is TrapPath.GUEST else ""
        return f"{words} ({self.subject.kind}{guest_path}{', return probes' if self.returns else ''})"

    def chosen(self, sites: Sequence[CheckSite]) -> list[CheckSite]:
        """Return the sites that are probed: for probes of returns, where functions begin.

        Functions that need their own return address are left out.
        """
        if not self.returns:
            return list(sites)
        return [site for site in sites if site.probe == "entry" and not uprobes.needs_return_address(site.function)]


class GuestRun(Protocol):
    """A guest, ready to run, whose sites may be patched."""

    isa: Isa
    engine: Any

    @property
    def fired(self) -> int:
        """The number of hits of probes."""
        ...

    def prepare(self) -> None:
        """Run it to the point where it may be patched."""
        ...

    def patch(self, sites: Sequence[CheckSite]) -> None:
        """Put probes at sites."""
        ...

    def go(self, longest: int = LONGEST_RUN) -> Ended:
        """Run to the end, or for so many nanoseconds of virtual time."""
        ...

    def in_program(self, pc: int) -> bool:
        """Return whether a pc is outside the code of providers."""
        ...

    def locate(self, pc: int) -> Location | None:
        """Return the module and symbol of an address."""
        ...


class LinuxRun(LinuxObserver):
    """A Linux program."""

    def __init__(self, spec: RunSpec, rules: Rules) -> None:
        self._rules = rules
        self._provider, self._returns = spec.subject.kind, spec.returns
        self._output = bytearray()
        self.isa = spec.subject.isa
        standard = Standard(write=self._output.extend, error=self._output.extend)
        program = Program(spec.program or str(spec.subject.path), spec.arguments)
        self._guest = LinuxGuest(self.isa, program, root=spec.root, standard=standard, accelerated=spec.accelerated)
        self.engine = self._guest.engine
        self._kernel = self._guest.kernel
        # A program that reads its own mappings would find those of the probes, on a real system, too.
        self._kernel.left_out_of_maps = SCRATCH
        assert self._kernel.first is not None
        self._process = self._kernel.first
        self._listener = Listener()
        self._memory = 0
        self._kernel.observers.append(self)

    @property
    def fired(self) -> int:
        """The number of hits of probes."""
        return self._listener.fired

    def prepare(self) -> None:
        """Do nothing: the program is at its first instruction."""

    def patch(self, sites: Sequence[CheckSite]) -> None:
        """Put probes at sites; a refused site is not changed."""
        loaded = next(one for one in self._guest.objects.of(self._process) if one.file is self._process.executable)
        if self._provider == "pid":
            framework = self._listener
            provider = fasttrap.Fasttrap(self._kernel, framework, self._rules.fidelity, port=self._rules.pid)
            target = provider.target(self._process)
            target.patcher = self._rules.patcher(target.code)
            for site in sites:
                function = (site.start or site.address) + loaded.bias
                at, symbol = (site.address + loaded.bias,), loaded.image.symbol_at(site.start)
                provider.enable(Probe(target, ProbeType.OFFSETS, function, 1 << 32, at, id=1))
                if site.probe == "return" and symbol is not None:
                    provider.enable(Probe(target, ProbeType.RETURN, function, symbol[0].size, at, id=2))
            return
        consumer = uprobes.Consumer(handler=lambda _frame: self._listener.probe(1))
        if self._returns:
            consumer = uprobes.Consumer(ret_handler=lambda _function, _frame: self._listener.probe(2))
        registry = uprobes.Uprobes(self._kernel, self._rules.fidelity, self._rules.uprobe)
        space = registry.watch(self._process)
        space.patcher = self._rules.patcher(space.code)
        assert isinstance(loaded.file, RegularFile)
        for site in sites:
            offset = loaded.image.offset_of(site.address)
            if offset is not None:
                with suppress(uprobes.UprobeError):
                    registry.register(loaded.file, offset, consumer)

    def go(self, longest: int = LONGEST_RUN) -> Ended:
        """Run to the end, or for so many nanoseconds of virtual time."""
        status = "nothing"
        try:
            finished = self._guest.run(min(longest, LONGEST_RUN)) is RunState.FINISHED
            status = f"exit status {self._guest.exit_status}" if finished else "not over in time"
        except GuestError as error:
            status = str(error)
        return Ended(bytes(self._output), status, self.engine.instructions, self._memory, self._guest.now())

    def exited(self, process: Process) -> None:
        """Compute the checksum of the program's memory."""
        # What replaces a return address stays below the stack pointer, as on Linux.
        if process is self._process and not self._returns:
            for area in process.space.areas:
                if Access.WRITE in area.access and not area.shared:
                    for page in process.space.touched(area):
                        data = process.space.peek(page, 4096)
                        if any(data):
                            self._memory = zlib.crc32(data, zlib.crc32(page.to_bytes(8, "little"), self._memory))

    def locate(self, pc: int) -> Location | None:
        """Return the module and symbol of an address."""
        return self._guest.locate_user(pc)

    def in_program(self, pc: int) -> bool:
        """Return whether a pc is outside of scratch space."""
        area = self._process.space.area_at(pc)
        return area is None or area.name not in SCRATCH


class KernelRun:
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
        """The number of hits of probes."""
        return self._listener.fired

    def prepare(self) -> None:
        """Boot the kernel, up to process 1."""
        self._guest.boot()

    def patch(self, sites: Sequence[CheckSite]) -> None:
        """Install the tracepoints of sites."""
        rules = self._rules
        framework = self._listener
        provider = fbt.FBT(
            framework, self._patcher, self._guest.traps, self.isa, fidelity=rules.fidelity, port=rules.fbt
        )
        provider.provide_module(Module("kernel", self._guest.image.symbols, self._patcher.original))
        for site in sites:
            record = provider.table.find(site.address)
            if record is not None:
                self._patcher.install(record.tracepoint)

    def go(self, longest: int = LONGEST_RUN) -> Ended:
        """Run to the power off, or for so many nanoseconds of virtual time."""
        try:
            finished = self._guest.run(min(longest, LONGEST_RUN)) is RunState.FINISHED
            status = f"exit status {self._guest.exit_status}" if finished else "not over in time"
        except GuestError as error:
            status = str(error)
        self._patcher.restore_all()
        # On the guest's own path the trap frames of probes remain on the stacks.
        memory = zlib.crc32(self.engine.memory.ram) if self._spec.trap_path is TrapPath.HOST else 0
        return Ended(bytes(self._output), status, self.engine.instructions, memory, self._guest.now())

    def locate(self, pc: int) -> Location | None:
        """Return the module and symbol of an address."""
        return self._guest.locate(pc)

    def in_program(self, pc: int) -> bool:
        """Return True: every pc is in the kernel or in its programs."""
        del pc
        return True


def make_run(spec: RunSpec, rules: Rules) -> GuestRun:
    """Return a guest of its own for each run."""
    run: GuestRun
    if isinstance(spec.subject.image, ModuleFile):
        run = ModuleRun(spec.subject, rules, accelerated=spec.accelerated)
    else:
        run = KernelRun(spec, rules) if spec.subject.kind == "fbt" else LinuxRun(spec, rules)
    run.prepare()
    return run
