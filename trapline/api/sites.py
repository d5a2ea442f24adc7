"""`trapline.sites`, `trapline.displace` and `trapline.execute`: nothing runs but a snippet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from emu.assembly import AssemblyError
from emu.elf.file import ElfError
from emu.guest.linux_kernel.files.kernel_file import open_image
from providers.fidelity import Fidelity
from trapline.api import TraplineError
from trapline.lab.displace import bench
from trapline.lab.displace.bench import DisplacedCode, DisplaceError, isa_of
from trapline.lab.displace.run import Run, run, setting
from trapline.lab.html_table import Cell, html_table
from trapline.lab.html_table import code as cell
from trapline.lab.sites.data import FunctionSites
from trapline.lab.sites.fbt import SitesError
from trapline.lab.sites.fbt import sites as fbt_sites
from trapline.lab.sites.instructions import PROVIDERS, UserSite, user_sites
from trapline.support.own_files import TargetError
from trapline.support.targets import default_provider, find_file


class Sites(tuple[FunctionSites | UserSite, ...]):
    """Probe sites: FBT's by function, those of the other providers by instruction."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return html_table(("place", "bytes", "instruction", "probe", "displaced"), map(list, _rows(self)))


def _rows(found: Sites) -> Iterator[list[Cell]]:
    for one in found:
        if isinstance(one, UserSite):
            site_name = f"{one.function}+{one.offset:#x}"
            yield [cell(site_name), cell(one.code), cell(one.text), Cell((one.probes,)), Cell((one.what, one.how))]
            continue
        if one.refusal is not None:
            rule = one.refusal
            yield [cell(one.name), cell(""), cell(""), Cell(("no probes",)), Cell((rule.name, rule.why))]
        for site in one.sites:
            insn, rule = site.instruction, site.decision.rule
            site_name = f"{one.name}+{insn.offset:#x}"
            how = Cell((rule.name, rule.why), title=rule.source)
            yield [cell(site_name), cell(insn.code.hex()), cell(insn.text), Cell((site.probe,)), how]


def sites(
    target: str | Path,
    *,
    provider: str | None = None,
    function: str | None = None,
    isa: str | None = None,
    root: str | Path | None = None,
    fidelity: str = "exact",
) -> Sites:
    """Return where probes go in an ELF file, and by which rule they do not go elsewhere.

        >>> found = trapline.sites("testbins:kernel", function="sys_getpid", isa="aarch64")
        >>> [(site.probe, site.instruction.text) for site in found[0].sites]
        [('entry', 'stp x29, x30, [sp, #-0x10]!'), ('return', 'ret')]

    `target` is a path, a program of `root` by its name, or testbins:NAME.  `provider` is fbt, pid,
    uprobe or kinst; None: fbt for kernels and modules, else pid.  `function` is a glob.  Raises
    `TraplineError`.
    """
    try:
        machine = None if isa is None else isa_of(isa)
        path = find_file(str(target), machine, Path(root) if root else None)
        chosen = provider or default_provider(open_image(path, machine))
        quirks = _fidelity(fidelity)
        if chosen == "fbt":
            return Sites(fbt_sites(path, isa=isa, function=function, fidelity=quirks))
        if chosen not in PROVIDERS:
            raise TraplineError(f"'{chosen}' is not a provider of sites: there are fbt, {', '.join(PROVIDERS)}")
        return Sites(user_sites(path, isa=isa, function=function, provider=chosen, fidelity=quirks))
    except (ElfError, SitesError, TargetError, DisplaceError) as error:
        raise TraplineError(str(error)) from None


def displace(isa: str, code: str | bytes, *, address: int = 0, fidelity: str = "exact") -> DisplacedCode:
    """Return what becomes of each instruction of assembly, or of bytes, when it is probed.

        >>> found = trapline.displace("x86_64", "push rbp; jne 5")
        >>> [(decision.provider, decision.what) for decision in found[0].decisions]
        [('fbt', 'emulated'), ('pid', 'emulated'), ('uprobe', 'emulated'), ('kinst', 'out of line')]
        >>> found[1].decision("pid").how
        'pc += 0x4 if flags satisfy ne (not ZF) else 0x2'

    `isa` is x86_64, aarch64, riscv64 or i386; the code is at `address`.  The result is a tuple
    of instructions, each with the decision that FBT, pid, uprobes and kinst have for it.  Raises
    `TraplineError`, which names the instruction.
    """
    try:
        return bench.displace(isa, code, address=address, fidelity=_fidelity(fidelity))
    except (AssemblyError, DisplaceError) as error:
        raise TraplineError(str(error)) from None


def execute(
    isa: str, code: str | bytes, registers: Mapping[str, int] | None = None, *, address: int = 0, count: int = 32
) -> Run:
    """Run assembly, the original beside what each provider replaces it with.

        >>> run = trapline.execute("riscv64", "c.sdsp ra, 8(sp); ret", {"ra": 0x1234})
        >>> run.same, run.stopped
        (True, 'the code was left for 0x1234')

    `registers` are by name, words of memory as "[0x100]"; at most `count` instructions are
    executed.  Raises `TraplineError`.
    """
    try:
        machine = isa_of(isa)
        settings = dict(setting(machine, f"{name}={value}") for name, value in (registers or {}).items())
        return run(bench.displace(isa, code, address=address), isa, settings, count=count)
    except (AssemblyError, DisplaceError) as error:
        raise TraplineError(str(error)) from None


def _fidelity(name: str) -> Fidelity:
    try:
        return Fidelity(name)
    except ValueError:
        raise TraplineError(
            f"'{name}' is not a fidelity: there are {', '.join(one.value for one in Fidelity)}"
        ) from None
