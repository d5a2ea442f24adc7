"""The check of a compiled FBT: its scanner, patcher and handler against the package's rules."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Final, TypeVar

from emu.elf.image import SegmentFlag
from emu.elf.symbols import Symbol
from emu.guest.function import FunctionFaultError
from emu.guest.modules import Module, dependencies
from emu.isa import disassembly
from providers.fbt import PORTS, walk
from providers.fbt.port import ENTRY, Function, Port, ScanResult, Site
from trapline.lab.objects.decoder.displaced import DisplacedCheck
from trapline.lab.objects.findings import Difference, Failure, ObjectReport
from trapline.lab.objects.glue import GluePanicError
from trapline.lab.objects.kernels.dtrace_subr_check import SubrCheck
from trapline.lab.objects.kernels.fbt import HANDLER, FbtHandler, FbtKernel
from trapline.lab.objects.kernels.fbt_system import FbtSystem, ObjectSite, TrapHandler
from trapline.lab.objects.kernels.fuzz import ScanFuzzer
from trapline.lab.objects.kernels.trap_return import FREEBSD, ReturningHandler
from trapline.lab.objects.request import Request, RequestError
from trapline.lab.objects.user_code import UserCode

_T = TypeVar("_T")

_LONGEST: Final = 16
# The part of a sentence that differs between sites of one cause.
_NUMBER: Final = re.compile(r"0x[0-9a-f]+")
# Values that registers have at a probe: each is different.
_MARK: Final = 0x0101_0101


class FbtCheck:
    """Checks a compiled FBT on the functions of an image."""

    def __init__(self, code: UserCode, request: Request, report: ObjectReport) -> None:
        """Place the image's code.  Raises `RequestError`: there is no image."""
        glue, image = code.glue, request.image
        assert isinstance(glue, FbtSystem)
        if image is None:
            raise RequestError("FBT's glues compare the sites of a kernel or a module: name one, as testbins:kernel")
        self.image = image
        self._code, self._glue, self._report = code, glue, report
        self._request = request
        self._port: Port = PORTS[code.isa.name]
        self._records: Counter[int] = Counter()
        """The number of records that the code under test has made for each address."""
        self.found: dict[int, ObjectSite] = {}
        """The records, by their addresses."""
        for segment in image.segments:
            if segment.flags & SegmentFlag.EXECUTE:
                code.place(segment.vaddr, bytes(segment.data) + bytes(_LONGEST))

        self._texts = texts = [
            (one.vaddr, len(one.data) + _LONGEST) for one in image.segments if one.flags & SegmentFlag.EXECUTE
        ]
        self._handler = handler = glue.handler()
        self._displaced = (
            None if handler is None else DisplacedCheck(code, handler, texts, request.states, on_stack=handler.on_stack)
        )

    def run(self) -> None:
        """Call both scanners for each function, and compare their results."""
        module = Module(self.image.path.name, self.image.symbols, self.image.read, dependencies(self.image.symbols))
        counts = dict.fromkeys(("functions", "sites in both", "sites patched", "firings"), 0)
        self._report.counts = counts
        if self._request.given is not None:
            ScanFuzzer(self._code, self._port, self._request, self._report).run_one(self._request.given)
            return
        ended = False
        for symbol, scanned_function, scan_result in walk(
            self._port,
            module.functions(),
            self.image.read,
            self._wanted,
            self._request.fidelity,
            self._glue.exclusions,
        ):
            refusal = self._glue.refusal(symbol)
            function = scanned_function if refusal is None else None
            result = scan_result if refusal is None else ScanResult((), refusal)
            if function is None and not self._present(symbol):
                continue
            counts["functions"] += 1
            theirs: list[ObjectSite] = []
            if not ended:
                scanned = self._attempt(symbol.name, partial(self._glue.scan, symbol))
                if scanned is not None:
                    theirs, ends = scanned
                    self._records.update(site.address for site in theirs)
                    self.found.update((site.address, site) for site in theirs)
                    ended = ends
            self._compare(symbol, function, result, theirs)
        if self._displaced is not None:
            self._execute_answers(self._displaced)
            counts["displaced instructions"] = self._displaced.tried
        if self._request.fuzz:
            ScanFuzzer(self._code, self._port, self._request, self._report).run()
        self._report.omitted.extend(self._glue.missing())

    def _wanted(self, name: str) -> bool:
        return self._request.function is None or fnmatchcase(name, self._request.function)

    def _present(self, symbol: Symbol) -> bool:
        """Return whether the image has the bytes of a function that our rules refuse."""
        return any(
            segment.vaddr <= symbol.value and symbol.value + symbol.size <= segment.vaddr + len(segment.data)
            for segment in self.image.segments
            if segment.flags & SegmentFlag.EXECUTE
        )

    def _attempt(self, subject: str, call: Callable[[], _T]) -> _T | None:
        if self._code.shadow is not None:
            self._code.shadow.subject = subject
        try:
            return call()
        except FunctionFaultError as error:
            self._report.failures.append(Failure(subject, str(error), self._code.where(error.pc)))
        except GluePanicError as error:
            self._report.failures.append(Failure(subject, str(error), self._code.where(self._code.guest.engine.pc)))
        return None

    # -- sites

    def _compare(
        self, symbol: Symbol, function: Function | None, result: ScanResult, theirs: Sequence[ObjectSite]
    ) -> None:
        ours = {(site.probe, site.address): site for site in result.sites}
        found = {(site.probe, site.address): site for site in theirs}
        for key in sorted({*ours, *found}, key=lambda one: one[1]):
            mine, yours = ours.get(key), found.get(key)
            if mine is None:
                assert yours is not None
                self._differ("only theirs", symbol, key, self._why_not(function, result, key[1]), yours.where)
            elif yours is None:
                self._differ("only ours", symbol, key, "their scanner does not make it a site")
            else:
                self._report.counts["sites in both"] += 1
                self._same_site(symbol, mine, yours)

    def _why_not(self, function: Function | None, result: ScanResult, address: int) -> str:
        """Return the reason why our scanner makes no site at a place."""
        if result.refusal is not None:
            return f"our rule '{result.refusal.rule.name}': {result.refusal.rule.why} [{result.refusal.rule.source}]"
        if function is not None:
            for remark in self._port.remarks(function, result):
                if remark.address == address:
                    return f"our rule '{remark.rule.name}': {remark.rule.why} [{remark.rule.source}]"
        entry = next((site for site in result.sites if site.probe == ENTRY), None)
        return f"our scanner has the entry at +{entry.address - function.address:#x}" if entry and function else ""

    def _same_site(self, symbol: Symbol, mine: Site, yours: ObjectSite) -> None:
        key = mine.probe, mine.address
        # Only the bytes that the patch overwrites need to be saved; some scanners save more.
        mask = (1 << 8 * len(mine.patch)) - 1
        for name, value, other in (
            ("rval", mine.rval, yours.rval),
            ("roffset", mine.roffset, yours.roffset),
            ("savedval", mine.saved & mask, yours.saved & mask),
        ):
            if value != other:
                self._differ("differs", symbol, key, f"{name} is {other:#x} in theirs, {value:#x} in ours")
        if self._glue.patches:
            self._patch(symbol, mine, yours)
        if self._glue.fires:
            self._fire(symbol, mine)
            if self._displaced is not None:
                self._execute(symbol, key, self._displaced)

    def _execute(self, symbol: Symbol, key: tuple[str, int], displaced: DisplacedCheck) -> None:
        """Compare the handler's emulation with the instruction on a CPU."""
        code = self.image.read(key[1], _LONGEST)
        for what, where in self._displaced_differences(symbol.name, displaced, key[1], code):
            self._differ("displaced", symbol, key, what, where)

    def _execute_answers(self, displaced: DisplacedCheck) -> None:
        """Compare the emulation of instructions for which the image may have no site.

        Each stands at the address of a record that gives the answer for it.
        """
        assert self._handler is not None
        record = next((site for address, site in self.found.items() if self._records[address] == 1), None)
        place = self._texts[0][0] if record is None else record.address
        for answer, instruction in self._handler.answers.items():
            self._glue.answer(place, record, answer, instruction)
            found = disassembly.first(self._code.isa, instruction, place, self._request.syntax)
            text = found[2] if found else ""
            for what, where in self._displaced_differences(self._handler.name, displaced, place, instruction):
                self._report.differences.append(
                    Difference("displaced", self._handler.name, 0, f"answer {answer}", text, what, where, text)
                )

    def _displaced_differences(
        self, subject: str, displaced: DisplacedCheck, address: int, code: bytes
    ) -> Sequence[tuple[str, str]]:
        return self._attempt(subject, lambda: list(displaced.differences(address, code))) or ()

    def _patch(self, symbol: Symbol, mine: Site, yours: ObjectSite) -> None:
        start, size = symbol.value, symbol.size + _LONGEST
        after = self._attempt(symbol.name, lambda: self._glue.patched(yours, start, size))
        if after is None:
            return
        self._report.counts["sites patched"] += 1
        wanted = bytearray(self._code.guest.engine.read(start, size))
        wanted[mine.address - start : mine.address - start + len(mine.patch)] = mine.patch
        if after != wanted:
            at = mine.address - start
            self._differ(
                "differs", symbol, (mine.probe, mine.address),
                f"their patch leaves {after[at : at + 8].hex(' ')}, ours {bytes(wanted[at : at + 8]).hex(' ')}",
            )  # fmt: skip

    # -- firing

    def _fire(self, symbol: Symbol, mine: Site) -> None:
        isa = self._code.isa
        stack = self._code.allocate(32 * isa.word)
        words = [_MARK * (64 + index) for index in range(32)]
        self._code.store(stack, b"".join((word & isa.address_mask).to_bytes(isa.word, "little") for word in words))
        registers = {
            register.name: _MARK * number for number, register in enumerate(isa.registers.registers, 1)
            if register.slot is not None
        }  # fmt: skip
        registers[isa.registers.sp] = stack
        del self._glue.fired[:]
        failures = len(self._report.failures)
        self._attempt(symbol.name, lambda: self._glue.fire(mine.address, registers))
        if len(self._report.failures) > failures:
            return
        self._report.counts["firings"] += 1
        expected = self._expected(mine, registers, words)
        fired = [one.arguments[: len(expected)] for one in self._glue.fired]
        key = mine.probe, mine.address
        sharing = self._records[mine.address] if self._port.shares_tracepoints and self._glue.shares else 1
        if fired != [expected] * sharing:
            text = "; ".join(", ".join(f"{value:#x}" for value in one) for one in fired) or "nothing"
            self._differ(
                "arguments", symbol, key,
                f"their handler fires {text}; ours {', '.join(f'{value:#x}' for value in expected)}",
            )  # fmt: skip

    def _expected(self, site: Site, registers: Mapping[str, int], words: Sequence[int]) -> tuple[int, ...]:
        """Return the probe's arguments that our rules give."""
        isa = self._code.isa
        first, second = isa.calling.results
        if site.roffset:
            results = (registers[first], registers[second]) if self._port.both_results else (registers[first],)
            return tuple(value & isa.address_mask for value in (site.roffset, *results))
        passed = isa.calling.arguments[:5]
        if passed:
            return tuple(registers[name] & isa.address_mask for name in passed)
        begin = self._glue.first_argument
        return tuple(word & isa.address_mask for word in words[begin : begin + 5])

    def _differ(self, kind: str, symbol: Symbol, key: tuple[str, int], what: str, where: str = "") -> None:
        probe, address = key
        code = self.image.read(address, _LONGEST) if self._inside(address) else b""
        found = disassembly.first(self._code.isa, code, address, self._request.syntax) if code else None
        text = found[2] if found else ""
        row = f"{probe} {text.partition(' ')[0] if kind == 'only ours' else _NUMBER.sub('', what)}"
        offset = address - symbol.value
        self._report.differences.append(Difference(kind, symbol.name, offset, probe, text, what, where, row))

    def _inside(self, address: int) -> bool:
        return any(one.vaddr <= address < one.vaddr + len(one.data) for one in self.image.segments)


class FbtGlue(FbtKernel):
    """FreeBSD's FBT: fbt_isa.c, and dtrace_subr.c or dtrace_asm.S."""

    def handler(self) -> TrapHandler | None:
        """Return the user's handler of breakpoints, None if the objects have none."""
        if not self.code.defines(HANDLER):
            return None
        trap = PORTS[self.code.isa.name].assembly
        return ReturningHandler(self.code, trap, FREEBSD) if trap else FbtHandler(self.code)

    def examine(self, request: Request, report: ObjectReport) -> None:
        """Compare the objects with the package's rules, for each function of an image."""
        check = FbtCheck(self.code, request, report)
        check.run()
        SubrCheck(self.code, check.image, report).run(check.found)
