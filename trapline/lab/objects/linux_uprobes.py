"""The glue for uprobes of Linux: uprobes.c, decode-insn.c and simulate-insn.c of arm64 and riscv.

Source: Linux arch/*/kernel/probes/, kernel/events/uprobes.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar, Final

from emu import disassembly
from emu.bad_address import BadAddressError
from emu.displaced import Code, Emulated, Refused
from emu.guest.function import CODE, FunctionFaultError
from providers import fasttrap, uprobes
from providers.fidelity import Fidelity
from providers.uprobes.port import ENOTSUPP
from trapline.d.type_rules import size_of
from trapline.lab.check.encodings.tables import tables
from trapline.lab.objects.building import Recipe
from trapline.lab.objects.displaced import DisplacedCheck
from trapline.lab.objects.findings import Difference, Failure, ObjectReport
from trapline.lab.objects.glue import Glue, GluePanicError, extern
from trapline.lab.objects.request import Request, RequestError
from trapline.lab.objects.structures import View
from trapline.lab.objects.sweep import DECISIONS, STRIDE, WORDS, Decoder, Sweep

_ANALYZE: Final = "arch_uprobe_analyze_insn"
_SKIP: Final = "arch_uprobe_skip_sstep"
_INT: Final = 1 << 32
_LONGEST: Final = 16
# A register -> its member in pt_regs, where it is neither its own name nor regs[NUMBER].
_MEMBERS: Final[Mapping[str, tuple[Any, ...]]] = {
    "pc": ("pc", "epc"),
    "fp": (("regs", 29),),
    "lr": (("regs", 30),),
    "nzcv": ("pstate",),
}


class LinuxUprobesGlue(Glue):
    """The glue for the uprobes of Linux."""

    entries = (_ANALYZE,)
    recipe = Recipe(
        "linux",
        ("kernel/probes/uprobes.c", "kernel/probes/decode-insn.c", "kernel/probes/simulate-insn.c", "lib/insn.c"),
        required=3,
        includes=("arch/{folder}/include",),
    )
    data: ClassVar[Mapping[str, int]] = {"trapline_task": 512}
    frame = "pt_regs"
    sweeps = True

    def set_up(self) -> None:
        """Make the structures that the functions get as arguments."""
        code = self.code
        self._probe = code.view("arch_uprobe")
        self._size = size_of(code.layout("arch_uprobe"))
        self._mm = code.view("mm_struct")

    @extern("int printk(const char *format, ...)")
    def printk(self, _text: str) -> int:
        """Print nothing."""
        return 0

    @extern("void *kmap_atomic(void *page)")
    def kmap_atomic(self, page: int) -> int:
        """Return the page's own address."""
        return page

    @extern("void kunmap_atomic(void *address)")
    def kunmap_atomic(self, _address: int) -> None:
        """Do nothing."""

    @extern("void sync_icache_aliases(unsigned long start, unsigned long end)")
    def sync_icache(self, _start: int, _end: int) -> None:
        """Do nothing."""

    @extern("void flush_icache_range(unsigned long start, unsigned long end)")
    def flush_icache(self, _start: int, _end: int) -> None:
        """Do nothing."""

    @extern("void user_enable_single_step(void *task)")
    def enable_step(self, _task: int) -> None:
        """Do nothing."""

    @extern("void user_disable_single_step(void *task)")
    def disable_step(self, _task: int) -> None:
        """Do nothing."""

    @extern("void register_user_break_hook(void *hook)")
    def register_break(self, _hook: int) -> None:
        """Do nothing."""

    @extern("void register_user_step_hook(void *hook)")
    def register_step(self, _hook: int) -> None:
        """Do nothing."""

    @extern("int uprobe_pre_sstep_notifier(void *registers)")
    def before_step(self, _registers: int) -> int:
        """Return 0: no probe is hit."""
        return 0

    @extern("int uprobe_post_sstep_notifier(void *registers)")
    def after_step(self, _registers: int) -> int:
        """Return 0: no probe is hit."""
        return 0

    # -- the functions under test

    def analyze(self, address: int, instruction: bytes) -> int:
        """Return 0, or the negative error number, of an instruction for an address.

        Raises `FunctionFaultError` and `GluePanicError`.
        """
        code, probe = self.code, self._probe
        code.store(probe.address, bytes(self._size))
        code.store(probe.place("insn"), instruction)
        status = code.call(_ANALYZE, probe.address, self._mm.address, address) % _INT
        return status - _INT if status >> 31 else status

    def decoder(self) -> Decoder:
        """Return how a sweep asks the decoder.  Raises `RequestError` if our rules are code."""
        code, probe = self.code, self._probe
        try:
            rows = tables(code.isa.name)["uprobe"]
        except KeyError:
            raise RequestError(
                f"--sweep compares with rules that are a table; those of {code.isa.name} are code"
            ) from None
        arguments = probe.address, self._mm.address, CODE + 0x10_0000
        return Decoder(
            _ANALYZE, arguments, probe.address, self._size, probe.place("insn"), probe.place("simulate"),
            rows,
        )  # fmt: skip

    @property
    def simulates(self) -> bool:
        """Whether the last analyzed instruction is simulated; False: its copy is executed."""
        return bool(self._probe["simulate"])

    def key(self, frame: View, register: str) -> Any:
        """Return the member of pt_regs that holds a register, None if there is none."""
        numbered = ("regs", int(register[1:])) if register[1:].isdigit() else register
        for key in (*_MEMBERS.get(register, ()), register, numbered):
            if frame.has(key[0] if isinstance(key, tuple) else key):
                return key
        return None

    def execute(self, frame: int, address: int, instruction: bytes) -> str:
        """Simulate an instruction on a frame."""
        if self.analyze(address, instruction.ljust(4, b"\0")) or not self.simulates:
            return "their decoder does not simulate it"
        done = self.code.call(_SKIP, self._probe.address, frame) & 0xFF
        return "" if done else f"{_SKIP} returns false for an instruction that is simulated"

    def examine(self, request: Request, report: ObjectReport) -> None:
        """Compare the decisions about instructions of a program, or of a sample of all encodings."""
        _UprobesCheck(self, request, report).run()


class _UprobesCheck:
    """A check that asks both decoders about instructions, and executes the simulated ones."""

    def __init__(self, glue: LinuxUprobesGlue, request: Request, report: ObjectReport) -> None:
        self._glue, self._code, self._request, self._report = glue, glue.code, request, report
        self._port = uprobes.PORTS[glue.code.isa.name]
        texts = [(CODE + 0x10_0000, 0x1000)]
        self._address = texts[0][0]
        simulates = glue.code.defines(_SKIP)
        self._displaced = DisplacedCheck(glue.code, glue, texts, request.states) if simulates else None
        report.counts = dict.fromkeys(("encodings", "refused", "simulated", "executed as copies"), 0)

    def run(self) -> None:
        """Compare each instruction."""
        if self._request.sweep is not None:
            self._sweep(self._request.sweep)
            return
        for name, offset, instruction in self._instructions():
            self._one(name, offset, instruction)
        if self._displaced is None:
            self._report.omitted.append(f"{self._code.name} does not define {_SKIP}: nothing was simulated")
        if self._request.image is None:
            first, count = self._request.first, self._request.sample
            self._report.omitted.append(
                f"encodings {first:,} to {first + count - 1:,} of 4,294,967,296; --first {first + count} continues"
            )

    def _sweep(self, kept: Path) -> None:
        """Compare the decisions about the next of all encodings, and one simulation of each rule."""
        sweep = Sweep(self._code, self._glue.decoder(), kept)
        sweep.run(self._request.sample, self._request.bar)
        done, groups = sweep.progress.done, list(sweep.groups())
        for group in groups:
            word = group.example
            self._one(f"{word:08x}", 0, word.to_bytes(4, "little"), f"{group.words:,} encodings ")
        self._report.counts["encodings"] = done
        for decision in DECISIONS:
            self._report.counts[decision] = sum(group.words for group in groups if group.decision == decision)
        for word, what, where in sweep.progress.failures:
            code = word.to_bytes(4, "little")
            self._report.failures.append(Failure(code.hex(), what, where, code))
        if done < WORDS:
            self._report.omitted.append(f"{WORDS - done:,} of {WORDS:,} encodings; the same command continues")

    def _instructions(self) -> Iterator[tuple[str, int, bytes]]:
        """Yield (function, offset, bytes) of the instructions; equal ones once."""
        image, request = self._request.image, self._request
        if image is None:
            for number in range(request.first, request.first + request.sample):
                word = number * STRIDE % _INT
                yield f"{word:08x}", 0, word.to_bytes(4, "little")
            return
        known: set[bytes] = set()
        port = fasttrap.PORTS[image.isa.name]
        for symbol in image.functions:
            if not symbol.size or (request.function and not fnmatchcase(symbol.name, request.function)):
                continue
            try:
                body = image.code(symbol)
            except BadAddressError:
                continue
            for offset in port.boundaries(body):
                length = image.isa.instruction_length(body[offset : offset + _LONGEST])
                instruction = body[offset : offset + length]
                if instruction and instruction not in known:
                    known.add(instruction)
                    yield symbol.name, offset, instruction

    def _one(self, name: str, offset: int, instruction: bytes, times: str = "") -> None:
        glue, counts = self._glue, self._report.counts
        counts["encodings"] += 1
        shadow = self._code.shadow
        if shadow is not None:
            shadow.subject = instruction.hex()
        try:
            status = glue.analyze(self._address, instruction.ljust(4, b"\0"))
            found = "refused" if status else "simulated" if glue.simulates else "executed as copies"
            counts[found] += 1
            ours, why = self._ours(instruction)
            if ours and found != ours:
                self._differ(name, offset, instruction, f"{times}{found} by theirs, {ours} by ours ({why})", "decoded")
            elif found == "simulated" and self._displaced is not None:
                for what in self._displaced.differences(self._address, instruction):
                    self._differ(name, offset, instruction, what, "simulated")
        except FunctionFaultError as error:
            self._fail(instruction, str(error), error.pc)
        except GluePanicError as error:
            self._fail(instruction, str(error), self._code.guest.engine.pc)

    def _ours(self, instruction: bytes) -> tuple[str, str]:
        """Return our decision and its rule; "" if the code under test does not decide it."""
        treatment = self._port.treat(Code(instruction, self._address), Fidelity.EXACT)
        if isinstance(treatment, Refused):
            # The generic code refuses breakpoints before it asks the ISA's.
            return "" if treatment.rule.errno == ENOTSUPP else "refused", treatment.rule.name
        return "simulated" if isinstance(treatment, Emulated) else "executed as copies", treatment.rule.name

    def _fail(self, instruction: bytes, what: str, pc: int) -> None:
        self._report.failures.append(Failure(instruction.hex(), what, self._code.where(pc), instruction))

    def _differ(self, name: str, offset: int, instruction: bytes, what: str, kind: str) -> None:
        found = disassembly.first(self._code.isa.capstone, instruction, self._address, self._request.syntax)
        text = f"{instruction.hex()} {found[2] if found else disassembly.NO_INSTRUCTION}"
        self._report.differences.append(Difference(kind, name, offset, "", text, what))
