"""The probe sites of the file of a Linux kernel or a module, as in `--guest linux-kernel`.

The functions of a kernel are those of kallsyms.  `fbt` has at most one entry site for each, and a
return site at each return instruction; a function that is left by a jump to another one has no
return there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from emu.displaced.decision import Decision, Emulated, Refused, Rule
from emu.elf.symbols import Symbol
from emu.guest.linux_kernel.files.kernel_file import KernelFile
from emu.guest.linux_kernel.files.module_file import ModuleFile
from emu.guest.linux_kernel.files.tables import Table, addresses
from emu.guest.linux_kernel.files.text import LinuxText
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.support.words import BadAddressError
from providers import kinst
from providers.linux_kernel.kinst import instructions
from providers.linux_kernel.refusals import SECTIONS, Blacklist, reserved
from providers.linux_kernel.sites import LONGEST, entry_site, return_sites, tail_calls
from trapline.lab.sites.data import FunctionSites, Instruction, PassedOver, ProbeSite

_SOURCE: Final = "Linux 6.12 kernel/kprobes.c"
BLACKLISTED: Final = Rule("on the blacklist of kprobes", "Linux allows no kprobe in this function", _SOURCE)
NO_ENTRY: Final = Rule(
    "no plan for the entry",
    "no plan emulates the first instruction, or ftrace's pad: there is no entry probe",
    "this simulator",
)
TAIL_CALL: Final = Rule(
    "tail call",
    "a jump that leaves the function, or may leave it: a return probe is only on a return instruction",
    "FreeBSD sys/cddl/dev/fbt/x86/fbt_isa.c",
)
REWRITTEN: Final = Rule("jump label or static call", "the kernel rewrites this instruction while it runs", _SOURCE)
MAY_FAULT: Final = Rule(
    "in the exception table", "the kernel mends a fault of this instruction by its address", _SOURCE
)
NO_CODE: Final = Rule("no code", "the file has no code at this address", "this simulator")
# The output's description of the text that is scanned.
NOTE: Final = (
    "the text is that of the file, with ftrace's pads and the returns as boot makes them; "
    "alternatives, jump labels and static calls are not applied"
)

Sites = tuple[ProbeSite, ...]
Passed = tuple[PassedOver, ...]
# (function, address) -> the instruction at the address.
Read = Callable[[Symbol, int], Instruction]


def blacklist_of(file: LinuxText) -> Blacklist:
    """Return the blacklist that a kernel makes when it boots, or of a module when it loads that."""
    if isinstance(file, KernelFile):
        return Blacklist.from_image(file.facts)
    assert isinstance(file, ModuleFile)
    names = (f".{name}.text" for name in (*SECTIONS, *BOARDS[file.isa.name].unprobed))
    found = (file.sections[name] for name in names if name in file.sections)
    areas = (range(one.start, one.start + len(one.content)) for one in found)
    return Blacklist.from_tables(file.table, file.by_address, areas)


class KernelSites:
    """The sites of one kernel or module."""

    def __init__(self, file: LinuxText) -> None:
        self._file = file
        self._isa = file.isa
        self._blacklist = blacklist_of(file)
        self._reserved = reserved(file.table)
        mends = frozenset(addresses(file.table, Table.EXCEPTIONS))
        self._refusing: tuple[tuple[Rule, Blacklist | frozenset[int]], ...] = (
            (BLACKLISTED, self._blacklist),
            (REWRITTEN, self._reserved),
            (MAY_FAULT, mends),
        )

    def functions(self, wanted: Callable[[str], bool], read: Read) -> Iterator[FunctionSites]:
        """Yield what FBT makes of each function, by address."""
        for symbol in self._file.functions:
            if wanted(symbol.name):
                yield self._function(symbol, read)

    def _function(self, symbol: Symbol, read: Read) -> FunctionSites:
        start = symbol.value

        def found(rule: Rule | None, sites: Sites = (), passed: Passed = ()) -> FunctionSites:
            return FunctionSites(symbol.name, start, symbol.size, sites, passed, rule)

        if start in self._blacklist:
            return found(BLACKLISTED)
        try:
            code = self._file.code(symbol, beyond=LONGEST)
        except BadAddressError:
            return found(NO_CODE)
        body = code[: symbol.size]
        sites = [self._site("entry", *each, symbol, read) for each in self._entry(symbol)]
        sites += [self._site("return", *each, symbol, read) for each in return_sites(self._isa, body, start)]
        passed = [PassedOver(read(symbol, address), TAIL_CALL) for address in tail_calls(self._isa, body, start)]
        if not sites:
            return found(NO_ENTRY)
        if sites[0].probe != "entry":
            site = entry_site(self._isa, code[: 3 * LONGEST], start)
            rule, place = (NO_ENTRY, start) if site is None else (REWRITTEN, site[0])
            passed.insert(0, PassedOver(read(symbol, place), rule))
        return found(None, tuple(sites), tuple(passed))

    def _entry(self, symbol: Symbol) -> Iterator[tuple[int, Emulated]]:
        site = entry_site(self._isa, self._file.read(symbol.value, 3 * LONGEST), symbol.value)
        if site is not None and site[0] not in self._reserved:
            yield site

    def _site(self, probe: str, address: int, treated: Emulated, symbol: Symbol, read: Read) -> ProbeSite:
        patch = kinst.PORTS[self._isa.name].patch(treated.length)
        return ProbeSite(probe, read(symbol, address), patch, None, "", treated, None)

    def places(self, wanted: Callable[[str], bool]) -> Iterator[tuple[Symbol, str, int]]:
        """Yield function, name of the probe, and address of each site of FBT."""
        for symbol in self._file.functions:
            if not wanted(symbol.name) or symbol.value in self._blacklist:
                continue
            try:
                body = self._file.code(symbol)
            except BadAddressError:
                continue
            for address, _ in self._entry(symbol):
                yield symbol, "entry", address
            for address, _ in return_sites(self._isa, body, symbol.value):
                yield symbol, "return", address

    def kinst(self, symbol: Symbol) -> Iterator[tuple[int, Decision]]:
        """Yield how kinst displaces each instruction of a function, by offset."""
        code = self._file.code(symbol, beyond=LONGEST)
        for offset, decision in instructions(self._isa, code, symbol.size, symbol.value).items():
            address = symbol.value + offset
            rule = next((rule for rule, places in self._refusing if address in places), None)
            yield offset, decision if rule is None else Refused(rule)
