"""The contract of FBT's port to an ISA, as FreeBSD's fbt_isa.c is.

A port finds the sites of a function's probes, and handles their hits.

To add an ISA write `providers/fbt/<isa>.py` with a `Port` and list it in `PORTS`
(docs/adding-a-provider.md).  It has

1. `scan`: a function's bytes -> its entry site and return sites, or the rule that refuses it;
2. `remarks`: instructions that look like returns and are not sites, and sites that should not be;
3. `handler`: handles a hit of a breakpoint, in the fewest possible steps;
4. the names it excludes beyond `exclusions.EXCLUSIONS`, and `aframes`.

A scan only decides and writes nothing: its result is data, which `fbt.py` turns into probes and the
`sites` command prints.

FBT's invop handler on ISAs with instructions of one word is `handler`: the fbt_invop() of AArch64
and that of RISC-V are equal (FreeBSD sys/cddl/dev/fbt/{aarch64,riscv}/fbt_isa.c).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from emu.displaced.cpu_core import CpuCore, CpuFlag
from emu.displaced.decision import Rule
from emu.displaced.frame import Frame
from emu.probe.trap import Handler
from emu.support.by_name import ByName
from emu.support.immutable import immutable
from providers.fbt.records import TABLE_MASK, RecordTable
from providers.fidelity import Fidelity

ENTRY = "entry"
# FBT's probe names; there are no others.
RETURN = "return"

# `Framework.probe`.
Fire = Callable[..., None]


@immutable
class Function:
    """A function to be scanned: [address, address + size)."""

    name: str
    address: int
    size: int
    code: bytes
    """Its bytes, and up to `Port.lookahead` of those that follow: the scan may read these, but not
    probe them."""
    fidelity: Fidelity = Fidelity.EXACT
    """The disassembler to be used: FreeBSD's does not know every instruction."""

    @property
    def limit(self) -> int:
        """The address after its last byte."""
        return self.address + self.size


class Site(NamedTuple):
    """An instruction that gets a probe."""

    probe: str
    """`ENTRY` or `RETURN`."""
    address: int
    patch: bytes
    saved: int
    """The saved part of the original: the byte on x86, elsewhere the 32-bit word, whatever the
    instruction's length is."""
    rval: int
    """Invop code (DTRACE_INVOP_*)."""
    roffset: int = 0
    """Offset of a return site in its function; 0 means that this is an entry."""


class Refusal(NamedTuple):
    """An instruction to which a rule applies."""

    address: int
    rule: Rule


class ScanResult(NamedTuple):
    """The sites of a function, the entry first, or the rule that denies it any."""

    sites: tuple[Site, ...]
    refusal: Refusal | None = None


@immutable
class Exclusion:
    """Names that never get probes: those in `names`, and all with `prefix` but not `unless`.

    Those with `infix` anywhere, too.
    """

    rule: Rule
    prefix: str = ""
    unless: str = ""
    infix: str = ""
    names: frozenset[str] = frozenset()
    ends_walk: bool = False
    """The remaining functions of the module are not scanned, either."""

    def matches(self, name: str) -> bool:
        """Return whether a function of this name is excluded."""
        if self.prefix and name.startswith(self.prefix):
            return not (self.unless and name.startswith(self.unless))
        return name in self.names or bool(self.infix and self.infix in name)


class AssemblyHandler(NamedTuple):
    """How a handler in assembly begins and ends: with registers saved on the interrupted stack."""

    pushed: tuple[str, ...] | None
    """The registers that the kernel's entry saves, lowest first; None: it makes a trap frame."""
    returned: tuple[str, ...]
    """The registers that the return from the trap takes off the stack, lowest first."""
    alignment: int
    """The multiple of bytes to which the CPU aligns sp before it pushes."""
    clobbered: tuple[str, ...]
    """The registers that a call of C does not keep, beside the result's."""
    answers: tuple[tuple[int, bytes], ...]
    """The answers of dtrace_invop, each with the instruction that the handler then emulates."""
    pushing: int = 0
    """The answer for a call: the saved pc is its target then, and the return address is in the
    words that the handler gives to dtrace_invop; 0: the handler knows none."""


class ProbeTrap(NamedTuple):
    """A kind of trap while a probe runs, and what DTrace notes then (dtrace_trap)."""

    number: int
    name: str
    flag: CpuFlag = CpuFlag(0)
    """No flag: it is not expected, and left to the kernel."""


@immutable
class Port:
    """FBT on one ISA."""

    aframes: int
    """Number of frames between the probed function and `dtrace_probe`, which stack traces omit."""
    exclusions: tuple[Exclusion, ...]
    lookahead: int
    """The number of bytes after a function that `scan` may read."""
    shares_tracepoints: bool
    """Whether the records of one address are linked, and a hit fires all of them; otherwise it
    fires only the newest."""
    scan: Callable[[Function], ScanResult]
    remarks: Callable[[Function, ScanResult], Iterator[Refusal]]
    handler: Callable[[RecordTable, CpuCore, Fire], Handler]
    entry_caller: Callable[[Frame], int]
    """Finds the caller of an entry probe's function for stack traces."""
    return_caller: Callable[[Frame], int] | None
    """Finds the caller of a return probe's function for stack traces; None: the frame still
    exists, and a stack trace finds the caller."""
    both_results: bool = False
    """Whether a return probe has the second result as well."""
    unsound: frozenset[Rule] = frozenset()
    """Rules of `remarks` about sites where a breakpoint changes the function's behaviour."""
    probe_traps: tuple[ProbeTrap, ...] = ()
    """The traps that dtrace_trap() may be called for, some of which it does not expect."""
    assembly: AssemblyHandler | None = None
    """FreeBSD's handler of a hit, if it is assembly; None: it is C that gets a trap frame."""
    illumos: AssemblyHandler | None = None
    """illumos' handler of a hit; None: the system has no FBT on this ISA."""


PORTS: Final[ByName[Port]] = ByName("providers.fbt", ("x86_64", "aarch64", "riscv64", "i386"), "PORT")


def handler(
    table: RecordTable, core: CpuCore, fire: Fire, *, caller: Callable[[Frame], int], both_results: bool = False
) -> Handler:
    """Make FBT's invop handler (fbt_invop).

    `caller` finds the caller for stack traces; `both_results`: a return probe has the second result
    as well.
    """
    buckets = table.buckets

    def fbt_invop(address: int, frame: Frame, _extra: int) -> int:
        record = buckets[address >> 4 & TABLE_MASK]
        while record is not None and record.address != address:
            record = record.hash_next
        if record is None:
            return 0
        core.find_caller = caller
        if record.roffset:
            first, second = frame.results()
            fire(record.probe_id, record.roffset, first, second if both_results else 0)
        else:
            arg0, arg1, arg2, arg3, arg4 = frame.arguments()
            fire(record.probe_id, arg0, arg1, arg2, arg3, arg4)
        core.find_caller = None
        return record.saved

    return fbt_invop
