"""The glue for uprobes of Linux: uprobes.c and what decodes and simulates for it.

These are decode-insn.c and simulate-insn.c on arm64 and riscv, insn.c and inat.c on x86.

Source: Linux arch/*/kernel/probes/, arch/x86/kernel/uprobes.c, kernel/events/uprobes.c.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from emu.displaced.decision import Code, Emulated, Refused, Stepped
from emu.guest.function import FunctionFaultError
from emu.support.words import BadAddressError
from providers import uprobes
from providers.fidelity import Fidelity
from trapline.d.types.rules import size_of
from trapline.lab.check.encodings.tables import tables
from trapline.lab.objects.decoder.batches import Answer, Member, Question
from trapline.lab.objects.decoder.displaced import Frame
from trapline.lab.objects.decoder.sweep_check import examine
from trapline.lab.objects.decoder.trial import PLACE
from trapline.lab.objects.decoder.word_sweep import Decoder
from trapline.lab.objects.findings import ObjectReport
from trapline.lab.objects.glue import extern
from trapline.lab.objects.kernels.linux import LinuxGlue, recipe_of
from trapline.lab.objects.plain_cpu import SLOT
from trapline.lab.objects.request import Request
from trapline.lab.objects.structures import View
from trapline.lab.objects.verdict import COPIED, REFUSED, SIMULATED, Verdict

_ANALYZE: Final = "arch_uprobe_analyze_insn"
_SKIP: Final = "arch_uprobe_skip_sstep"
_BEFORE: Final = "arch_uprobe_pre_xol"
_AFTER: Final = "arch_uprobe_post_xol"
_INT: Final = 1 << 32
# The end of a step by x86's trap flag, which pre_xol sets.
_STEPPED: Final = "exception 1"
# The structure of a decision that a copy is made, and what its bits say is corrected behind the copy (x86).
_COPIED_BY: Final = "defparam"
_FIXES: Final = {1: "pc", 2: "call", 4: "flags", 8: "rsi", 16: "rdi", 32: "rbx"}
_NO_OPERATIONS: Final = "accepted without operations (ops)"
# The generic code's rules begin with this.
_GENERIC: Final = "Linux kernel/events/uprobes.c"


def _correcting(names: Iterable[str]) -> str:
    return f"corrected: {', '.join(names) or 'nothing'}"


class LinuxUprobesGlue(LinuxGlue):
    """The glue for the uprobes of Linux."""

    sweeps = True

    entries = (_ANALYZE,)
    recipe = recipe_of("kernel/probes/uprobes.c", x86="x86/kernel/uprobes.c")

    def set_up(self) -> None:
        """Make the structures that the functions get as arguments."""
        code = self.code
        self._probe = code.view("arch_uprobe")
        self._size = size_of(code.layout("arch_uprobe"))
        # x86 has operations where the others have a flag; a decoder of x86's own may have the flag, too.
        self._decides = "ops" if code.isa.registers.link is None and self._probe.has("ops") else "simulate"
        self._probe.field(self._decides)
        self._mm = code.view("mm_struct")
        self._port = uprobes.PORTS[code.isa.name]
        self._parts: dict[str, View] = {}
        self._analyzed, self._decision = (0, b""), ""
        self._copies = code.defines(_BEFORE) and code.defines(_AFTER)
        if self._copies:
            task = code.view("task_struct", code.address("trapline_task"))
            self._task = code.view("uprobe_task")
            task["utask"] = self._task.address

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

    @extern("void send_sig(int signal, void *task, int how)")
    def send_sig(self, _signal: int, _task: int, _how: int) -> None:
        """Do nothing: no program waits for it."""

    @extern("void force_sig(int signal)")
    def force_sig(self, _signal: int) -> None:
        """Do nothing: no program waits for it."""

    @extern("void uprobe_handle_trampoline(void *registers)")
    def trampoline(self, _registers: int) -> None:
        """Do nothing: there are no return probes."""

    @extern("int kallsyms_lookup_size_offset(unsigned long address, unsigned long *size, unsigned long *offset)")
    def lookup(self, _address: int, _size: int, _offset: int) -> int:
        """Return 0: no symbol is known.  Only the decoder's part for kprobes asks."""
        return 0

    # -- the functions under test

    def decide(self, address: int, instruction: bytes) -> str:
        """Return the decision of the code under test.

        Raises `FunctionFaultError` and `GluePanicError`.
        """
        code, probe = self.code, self._probe
        code.store(probe.address, bytes(self._size))
        code.store(probe.place("insn"), instruction.ljust(4, b"\0"))
        self._analyzed = address, instruction
        if code.call(_ANALYZE, probe.address, self._mm.address, address) % _INT:
            self._decision = REFUSED
        elif self._decides == "simulate":
            self._decision = SIMULATED if probe["simulate"] else COPIED
        else:
            emulates = self._emulates(probe["ops"])
            if emulates is None:
                raise FunctionFaultError(_NO_OPERATIONS, code.address(_ANALYZE))
            self._decision = SIMULATED if emulates else COPIED
        return self._decision

    def decoder(self) -> Decoder:
        """Return how a sweep of words asks the decoder."""
        code, probe = self.code, self._probe
        rows = tables(code.isa.name)["uprobe"]
        arguments = probe.address, self._mm.address, PLACE
        return Decoder(
            _ANALYZE, arguments, probe.address, self._size, probe.place("insn"), probe.place("simulate"), rows
        )

    def question(self) -> Question:
        """Return how a sweep of x86 asks the decoder."""
        probe = self._probe
        members = [Member(probe.place(self._decides), probe.field(self._decides)[1])]
        self._parts = {name: probe.view(name) for name in ("defparam", "branch", "push") if probe.has(name)}
        for part in self._parts.values():
            members += [Member(part.place(name), 1) for name in ("ilen", "fixups") if part.has(name)]
        arguments = probe.address, self._mm.address, PLACE
        return Question(
            _ANALYZE, arguments, Member(probe.address, self._size), bytes(self._size), probe.place("insn"), members
        )

    def verdict(self, answer: Answer) -> Verdict:
        """Return what an answer of the decoder means."""
        if answer.result:
            return Verdict(REFUSED, how=f"error {-answer.result}")
        decided, *values = answer.members
        if self._decides == "simulate":
            return Verdict(SIMULATED if decided else COPIED)
        names = [(kind, name) for kind, part in self._parts.items() for name in ("ilen", "fixups") if part.has(name)]
        found = dict(zip(names, values, strict=True))
        emulates = self._emulates(decided)
        if emulates is None:
            return Verdict(_NO_OPERATIONS)
        if not emulates:
            fixes = found.get((_COPIED_BY, "fixups"))
            how = "" if fixes is None else _correcting(name for bit, name in _FIXES.items() if fixes & bit)
            return Verdict(COPIED, found.get((_COPIED_BY, "ilen"), 0), how)
        symbol = self.code.image.symbol_at(decided)
        kind = symbol[0].name.partition("_")[0] if symbol else ""
        return Verdict(SIMULATED, found.get((kind, "ilen"), 0), kind if kind in self._parts else "")

    def _emulates(self, operations: int) -> bool | None:
        """Return whether operations emulate an instruction; None if there are none at this address."""
        try:
            return bool(self.code.view("uprobe_xol_ops", operations)["emulate"])
        except BadAddressError:
            return None

    def our_verdict(self, code: bytes, fidelity: Fidelity) -> tuple[Verdict | None, str]:
        """Return the decision of the package's rules, and the rule's name."""
        decision = self._port.treat(Code(code, PLACE), fidelity)
        rule = decision.rule
        match decision:
            case Refused():
                if rule.source.startswith(_GENERIC):
                    return None, rule.name
                return Verdict(REFUSED, how=f"error {rule.errno}" if rule.errno else ""), rule.name
            case Emulated(_, length):
                return Verdict(SIMULATED, length, "push" if rule.name == "push" else "branch"), rule.name
            case Stepped(_, length, _, scratch, absolute, calls, _, pops_flags):
                parts = {"pc": not absolute, "call": calls, "flags": pops_flags, scratch: bool(scratch)}
                return Verdict(COPIED, length, _correcting(name for name, there in parts.items() if there)), rule.name
            case _:
                return Verdict(COPIED, decision.length), rule.name

    def decided_at(self) -> int:
        """Return the address of the member that holds the last decision."""
        return self._probe.place(self._decides)

    def ours(self, address: int, instruction: bytes, fidelity: Fidelity) -> tuple[str, str]:
        """Return the decision of the package's rules; "" if the code under test does not decide it."""
        decision = self._port.treat(Code(instruction, address), fidelity)
        if isinstance(decision, Refused):
            # The generic code refuses breakpoints before it asks the ISA's.
            return "" if decision.rule.source.startswith(_GENERIC) else REFUSED, decision.rule.name
        return SIMULATED if isinstance(decision, Emulated) else COPIED, decision.rule.name

    def executes(self, decision: str) -> bool:
        """Return whether the code has what executes instructions of this decision."""
        return self._copies if decision == COPIED else self.code.defines(_SKIP)

    def execute(self, frame: Frame, address: int, instruction: bytes) -> str:
        """Execute an instruction on a frame, as the uprobe's handler does."""
        code, probe = self.code, self._probe.address
        if (address, instruction) != self._analyzed:
            self.decide(address, instruction)
        if self._decision == SIMULATED:
            done = code.call(_SKIP, probe, frame.address) & 0xFF
            return "" if done else f"{_SKIP} returns false for an instruction that is simulated"
        self._task["vaddr"] = address
        self._task["xol_vaddr"] = SLOT
        for function in (_BEFORE, _AFTER):
            if code.call(function, probe, frame.address) % _INT:
                return f"{function} fails"
            if function == _BEFORE and not frame.run_copy(self._copy(), steps=1, end=_STEPPED):
                return ""
        return ""

    def _copy(self) -> bytes:
        """Return the code that the kernel writes to the slot."""
        start = self._probe.place("ixol" if self._probe.has("ixol") else "insn")
        return self.code.load(start, self._probe.address + self._size - start)

    def examine(self, request: Request, report: ObjectReport) -> None:
        """Compare the decisions about a program's instructions, a sample, or all encodings."""
        examine(self, request, report)
