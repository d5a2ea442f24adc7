"""The probes of the kernel: one system call, which passes each of them once, made again and again.

Each is counted in the kernel guest in three runs: without sites of its mechanism, with another
probe enabled, and firing; and one hit is recorded, instruction by instruction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from emu.elf.image import Image
from emu.guest.kernel.boot import images
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import Isa
from providers.sdt.sets import TRACEPOINTS
from trapline.cost.added import anatomy as added_anatomy
from trapline.cost.anatomy import anatomy
from trapline.cost.hit_work import Events
from trapline.cost.kernel import EachCall, per_call, recorded_call, run
from trapline.cost.rows import Anatomy, Idle, Row
from trapline.lab.sites.fbt import SitesError
from trapline.lab.sites.instructions import user_sites
from trapline.lab.step.machines import StepRequest
from trapline.lab.step.run import record
from trapline.machine.kernel_machine import ILLUMOS_SDT, SDT_GENERATION, NoKernelError

# The function of the kernel that the call runs, in which a static probe is, too.
_FUNCTION: Final = "sched_relinquish"
_STATIC: Final = "sched:::surrender"
# The function of the kernel that makes every system call.
_CALL: Final = "syscallenter"
# Calls that are counted.
_CALLS: Final = 60
_PROFILED_CALLS: Final = 600
_PROFILE: Final = "profile-5000hz"
# The generation of a kernel that has no static probes.
_NONE: Final = 0
_SITES: Final = "sched:::, lockstat:::, sdt:::"
_RECORDED: Final = "{ @[arg0] = count(); }"
_COUNTED: Final = "{ @ = count(); }"
# Words of struct sdt_tracepoint: probe, patch point, target.
_TRACEPOINT_WORDS: Final = 3


@dataclass(frozen=True, slots=True)
class KernelProbe:
    """A probe that is measured."""

    mechanism: str
    what: str
    probe: str
    other: str
    """Another probe of the mechanism, which does not fire."""
    generation: int = SDT_GENERATION
    path: TrapPath = TrapPath.GUEST
    inline: bool = False
    """Whether its sites are code that the kernel always executes."""
    jumps: bool = False
    """Whether its patch is a jump."""
    around: str = ""
    """The function in which a probe without a trap fires; "": its recording begins with its patch."""


_ENTRY: Final = KernelProbe("fbt", "entry", f"fbt::{_FUNCTION}:entry", "fbt::sys_getpid:entry")
_SDT: Final = KernelProbe(
    "sdt", "2024, FreeBSD: a nop becomes a jump", _STATIC, "priv:::priv-err", inline=True, jumps=True
)
PROBES: Final = (
    _ENTRY,
    replace(_ENTRY, what="return", probe=f"fbt::{_FUNCTION}:return"),
    replace(_ENTRY, what="entry, host path", path=TrapPath.HOST),
    replace(
        _SDT, what="2005, illumos: LOCK over a nop", generation=ILLUMOS_SDT, other="sdt:::priv-err", jumps=False
    ),
    replace(_SDT, what="2013, FreeBSD: the id is tested", generation=2013, around=_FUNCTION, jumps=False),
    replace(_SDT, what="2018, FreeBSD: a flag, then the id", generation=2018, around=_FUNCTION, jumps=False),
    _SDT,
    KernelProbe("syscall", "entry", "syscall::sched_yield:entry", "syscall::getpid:entry", around=_CALL),
)  # fmt: skip
_KINST: Final = ("emulated", "out of line")


class KernelLab:
    """The kernel of one ISA, whose runs are made once."""

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self._runs: dict[tuple[int, str, TrapPath], EachCall] = {}

    def row(self, probe: KernelProbe) -> Row | None:
        """Measure a probe; None: the ISA has no such kernel."""
        if not probe.other:
            return self._profile(probe)
        try:
            idle = self._idle(probe)
        except NoKernelError:
            return None
        other = self.per_call(probe, probe.other)
        fired = self.per_call(probe, probe.probe)
        assert fired.firings, f"{probe.probe} on {self.isa.name} has not fired"
        traps = (fired.breakpoints - other.breakpoints) / fired.firings
        instructions = (fired.instructions - other.instructions) / fired.firings
        events = Events(traps=round(traps), jumps=int(probe.jumps))
        hits = round(fired.firings * _CALLS)
        found = self.added(probe) if probe.around else self._anatomy(probe)
        own = probe.path is not TrapPath.HOST
        return Row(self.isa.name, probe.mechanism, probe.what, instructions, events, traps, hits, found, idle, own)

    def per_call(self, probe: KernelProbe, program: str, generation: int | None = None) -> EachCall:
        """Return what each call costs in the kernel of a probe while another one is enabled."""
        kernel = probe.generation if generation is None else generation
        key = kernel, program, probe.path
        if key not in self._runs:
            text = f"{program} {_COUNTED}" if program else ""
            self._runs[key] = per_call(self.isa, kernel, text, _CALLS, traps=True, path=probe.path)
        return self._runs[key]

    def _idle(self, probe: KernelProbe) -> Idle:
        """Return the cost of a probe that does not fire.  Raises `NoKernelError`."""
        plain, other = (self.per_call(probe, program).instructions for program in ("", probe.other))
        if not probe.inline:
            rest = None if probe.mechanism == "syscall" else 0.0
            return Idle(None if rest is None else 0.0, rest, other - plain)
        bare = self.per_call(probe, "", _NONE).instructions
        passed = self.per_call(probe, _SITES).firings
        grown = self._code(probe.generation) - self._code(_NONE)
        return Idle(grown / self._sites, (plain - bare) / passed, (other - bare) / passed)

    def _code(self, generation: int) -> int:
        """Return the number of bytes of code of a kernel."""
        return sum(len(section.data) for section in self._image(generation).code_sections)

    def _image(self, generation: int) -> Image:
        built = images.built(self.isa) / "kernel"
        return Image(built if generation == SDT_GENERATION else images.kernel(self.isa, f"sdt-{generation}"))

    @cached_property
    def _sites(self) -> int:
        """The sites of static probes in the source of the kernel: the same in each generation."""
        section = self._image(SDT_GENERATION).section(TRACEPOINTS)
        assert section is not None
        return len(section.data) // (_TRACEPOINT_WORDS * self.isa.word)

    def kinst(self, kind: str) -> KernelProbe | None:
        """Return a probe at the first instruction displaced like this, behind the entry."""
        try:
            sites = user_sites(images.built(self.isa) / "kernel", function=_FUNCTION, provider="kinst")
        except SitesError:
            return None
        site = next((one for one in sites if one.what == kind and one.offset), None)
        if site is None:
            return None
        return KernelProbe(
            "kinst", f"{kind}: {site.text}", f"kinst::{_FUNCTION}:{site.offset}", "kinst::sys_getpid:0"
        )  # fmt: skip

    def added(self, probe: KernelProbe) -> Anatomy:
        """Return the parts of a hit that begins with no patch: what it adds to a call."""
        calls = [
            recorded_call(self.isa, probe.generation, f"{one} {_RECORDED}", probe.around, _FUNCTION)
            for one in (probe.probe, probe.other)
        ]
        (guest, fired), (_, other) = calls
        return added_anatomy(guest, fired, other)

    def _anatomy(self, probe: KernelProbe) -> Anatomy:
        request = StepRequest(
            f"{probe.probe} {_RECORDED}",
            isa=self.isa,
            guest="kernel",
            trap_path=probe.path,
            command="spin -y 4",
            sdt=probe.generation,
        )
        return anatomy(record(request))

    def _profile(self, probe: KernelProbe) -> Row:
        plain = run(self.isa, SDT_GENERATION, _PROFILED_CALLS, "")
        fired = run(self.isa, SDT_GENERATION, _PROFILED_CALLS, f"{_PROFILE} {_COUNTED}", traps=True)
        assert fired.firings, f"{_PROFILE} on {self.isa.name} has not fired"
        instructions = (fired.instructions - plain.instructions) / fired.firings
        return Row(
            self.isa.name, probe.mechanism, probe.what, instructions, Events(), 0.0, fired.firings,
            self._anatomy(probe), modelled=False,
        )  # fmt: skip


KERNEL_MECHANISMS: Final = ("fbt", "kinst", "sdt", "syscall", "profile")


def kernel_rows(isa: Isa, wanted: Sequence[str]) -> Iterator[Row | None]:
    """Yield a row for each measurement that is wanted; None where the ISA does not have it."""
    lab = KernelLab(isa)
    probes: list[KernelProbe | None] = [one for one in PROBES if one.mechanism in wanted]
    if "kinst" in wanted:
        probes += [lab.kinst(kind) for kind in _KINST]
    if "profile" in wanted:
        probes.append(KernelProbe("profile", "997 times a second", "profile-997", ""))
    for probe in probes:
        yield lab.row(probe) if probe is not None else None
