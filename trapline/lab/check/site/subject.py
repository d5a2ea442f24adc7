"""The subject of a check: a program's code, and the sites in it.

Every worker reads the file itself: only its name is sent to processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Final

from emu.elf.file import ElfKind
from emu.elf.image import FileSection, Image, SegmentFlag
from emu.elf.stripped import selected
from emu.elf.symbols import Symbol
from emu.engine.memory.pages import PAGE
from emu.guest.linux_kernel.files.kernel_file import open_image
from emu.guest.linux_kernel.files.text import LinuxText
from emu.guest.modules import Module, dependencies
from emu.isa import ISAS, Isa
from emu.support.did_you_mean import did_you_mean
from emu.support.words import BadAddressError
from providers import fasttrap, fbt
from providers.fidelity import Fidelity
from trapline.lab.check.cpu.cpu import Stretch, TrialCpu
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.prober.linux_kernel import LinuxKernelProber
from trapline.lab.check.prober.probers import FbtProber, PidProber, Prober, UprobeProber
from trapline.lab.sites.linux_kernel import KernelSites
from trapline.support.targets import default_provider

PROVIDERS: Final = ("fbt", "pid", "uprobe")
_LONGEST: Final = 16
# Size of a word in bytes -> the address at which position-independent programs are checked: it is valid on every ISA of
# that width.
_ANYWHERE: Final = {8: 0x15_5555_4000, 4: 0x1555_5000}
# The distance of near scratch space from a program: in reach of every relative branch.
_BEYOND: Final = 32 << 20


class SubjectError(Exception):
    """A subject that cannot be checked: the message says why, on one line."""


@dataclass(frozen=True)
class Subject:
    """A file, the provider whose probes are tried, and the selection of sites."""

    path: Path
    isa_name: str | None = None
    """None: the file's own; else it must be for this one."""
    provider: str = ""
    """One of `PROVIDERS`; "": fbt for kernels and their modules, else pid."""
    function: str | None = None
    """Only functions whose names match this glob."""
    every_instruction: bool = False
    """All instructions of the program; else only the entries and returns of functions."""
    moved: int = 0
    """The distance from its addresses in the file to those at which it is tried and reported."""
    label: str = ""
    """Its name in reports; "": the path."""

    @property
    def name(self) -> str:
        """The name in reports."""
        return self.label or str(self.path)

    def __reduce__(self) -> tuple[type[Subject], tuple[object, ...]]:
        """Pickle only the names: every process reads the file itself."""
        asked = self.isa_name, self.provider, self.function, self.every_instruction, self.moved, self.label
        return type(self), (self.path, *asked)

    @cached_property
    def image(self) -> Image:
        """The file.  Raises `emu.elf.image.ElfError`."""
        return open_image(self.path, ISAS[self.isa_name] if self.isa_name else None)

    @property
    def isa(self) -> Isa:
        """The ISA of the file."""
        return self.image.isa

    @cached_property
    def kind(self) -> str:
        """The provider."""
        return self.provider or default_provider(self.image)

    @property
    def boots(self) -> bool:
        """Return whether it is the kernel guest's kernel, which can be booted."""
        return self.kind == "fbt" and any(one.name == "dtrace_invop_return" for one in self.image.symbols)

    @property
    def bias(self) -> int:
        """The distance from a program's address in its file to that in the check.

        A position-independent program does not stay at address 0, where small numbers in registers
        would point into it: code that reads itself would find the breakpoint.
        """
        return self.moved + (_ANYWHERE[self.isa.word] if self.image.kind is ElfKind.SHARED else 0)

    def code(self, bias: int = 0) -> list[Stretch]:
        """Return the program's code, `bias` bytes from its address in the file."""
        executable = (segment for segment in self.image.segments if segment.flags & SegmentFlag.EXECUTE)
        return [Stretch(segment.vaddr + bias, segment.data) for segment in executable]

    def cpu(self, *, stepping: bool, accelerated: bool | None = None) -> TrialCpu:
        """Return a CPU with the program's code."""
        return TrialCpu(self.isa, self.code(self.bias), stepping=stepping, accelerated=accelerated)

    def prober(self, cpu: TrialCpu, rules: Rules, bias: int = 0) -> Prober:
        """Return the provider on a CPU that runs patched code `bias` bytes from its address."""
        if isinstance(self.image, LinuxText):
            return LinuxKernelProber(cpu, rules)
        if self.kind == "fbt":
            return FbtProber(cpu, self._new_module(bias), rules)
        end = max(segment.vaddr + segment.memsz for segment in self.image.segments)
        near = (end + bias) // PAGE * PAGE + _BEYOND
        return PidProber(cpu, near, rules) if self.kind == "pid" else UprobeProber(cpu, near, rules)

    # -- sites

    def sites(self, rules: Rules) -> list[CheckSite]:
        """Return the sites, by address; the same list in every process.  Raises `SubjectError`."""
        if not self.image.functions and (self.kind == "fbt" or self.function or not self.every_instruction):
            remedy = "" if self.kind == "fbt" or self.function else "; --every-instruction needs none"
            raise SubjectError(
                f"{self.path}: no function symbols, and no .eh_frame that tells where functions are (stripped?){remedy}"
            )
        if self.function is not None and not self.wanted:
            hint = did_you_mean(self.function, (one.name for one in self.image.functions))
            raise SubjectError(f"{self.path}: no function matches '{self.function}'{hint}")
        if isinstance(self.image, LinuxText):
            if self.kind != "fbt":
                raise SubjectError(
                    f"{self.path}: a {self.image.noun} has probes of fbt, not of {self.kind}, which probes programs"
                )
            found = self._linux_kernel(self.image)
        elif self.kind == "fbt":
            found = self._fbt(rules)
        elif self.every_instruction and self.function is None:
            found = (site for section in self.image.code_sections for site in self._section(section))
        else:
            found = (site for symbol in self.wanted for site in self._of_function(symbol))
        return sorted({site.address: site for site in found}.values())

    @cached_property
    def wanted(self) -> list[Symbol]:
        """The functions whose names match."""
        return [one for one in selected(self.image.functions, self.function or "") if one.size]

    def _new_module(self, bias: int = 0) -> Module:
        """Return a new object of the kernel or module, because it stores its probes.

        It is `bias` bytes from its address in the file.
        """
        glob = self.function
        needed = dependencies(self.image.symbols)
        symbols = self.image.symbols
        if glob is not None:
            symbols = tuple(one for one in symbols if not one.is_function or fnmatchcase(one.name, glob))
        moved = tuple(one._replace(value=one.value + bias) for one in symbols) if bias else symbols
        return Module(self.path.name, moved, lambda address, size: self.image.read(address - bias, size), needed)

    def _fbt(self, rules: Rules) -> Iterator[CheckSite]:
        port = rules.fbt or fbt.PORTS[self.isa.name]
        functions = self._new_module().functions()
        for symbol, function, result in fbt.walk(port, functions, self.image.read, fidelity=rules.fidelity):
            if function is None or not result.sites:
                continue
            sound = rules.fidelity is not Fidelity.FREEBSD
            for site in fbt.sound_sites(port, function, result) if sound else result.sites:
                code = self.image.read(site.address, _LONGEST)
                yield CheckSite(site.address, code, symbol.name, symbol.value, site.probe)

    def _linux_kernel(self, file: LinuxText) -> Iterator[CheckSite]:
        glob = self.function
        wanted = KernelSites(file).wanted_sites(lambda name: glob is None or fnmatchcase(name, glob))
        for symbol, probe, address in wanted:
            yield CheckSite(address, file.read(address, _LONGEST), symbol.name, symbol.value, probe)

    def _of_function(self, symbol: Symbol) -> Iterator[CheckSite]:
        port = fasttrap.PORTS[self.isa.name]
        try:
            code = self.image.code(symbol, beyond=_LONGEST)
        except BadAddressError:
            return
        body = code[: symbol.size]
        returns = set(port.returns(body, symbol.value, Fidelity.EXACT))
        offsets = port.boundaries(body) if self.every_instruction else sorted({0, *returns})
        for offset in offsets:
            probe = "entry" if not offset else "return" if offset in returns else ""
            data = code[offset : offset + _LONGEST]
            yield CheckSite(symbol.value + offset, data, symbol.name, symbol.value, probe)

    def _section(self, section: FileSection) -> Iterator[CheckSite]:
        """Yield the instructions of a section; decoding starts again at each function."""
        port = fasttrap.PORTS[self.isa.name]
        end = section.address + len(section.data)
        named = {one.value: one.name for one in self.image.functions if section.address <= one.value < end}
        starts = sorted({section.address, *named})
        for number, start in enumerate(starts):
            stop = starts[number + 1] if number + 1 < len(starts) else end
            body = section.data[start - section.address : stop - section.address]
            name = named.get(start, "")
            for offset in port.boundaries(body):
                at = start + offset - section.address
                yield CheckSite(start + offset, section.data[at : at + _LONGEST], name, start if name else 0)
