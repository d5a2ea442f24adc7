"""The glue for kprobes of Linux: kprobes.c and what decodes and simulates for it.

These are decode-insn.c and simulate-insn.c on arm64 and riscv, insn.c and inat.c on x86, where
kprobes.c is kprobes/core.c.

Source: Linux arch/*/kernel/probes/kprobes.c, arch/x86/kernel/kprobes/core.c, kernel/kprobes.c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from providers.fidelity import Fidelity
from trapline.lab.objects.decoder.batches import Answer, Member, Question
from trapline.lab.objects.decoder.displaced import Frame
from trapline.lab.objects.decoder.sweep_check import examine
from trapline.lab.objects.decoder.trial import PLACE, PLACE_SIZE
from trapline.lab.objects.decoder.word_sweep import Decoder
from trapline.lab.objects.findings import ObjectReport
from trapline.lab.objects.glue import extern
from trapline.lab.objects.kernels.linux import LinuxGlue, recipe_of
from trapline.lab.objects.plain_cpu import SLOT, SLOT_SIZE
from trapline.lab.objects.request import Request, RequestError
from trapline.lab.objects.structures import View
from trapline.lab.objects.verdict import COPIED, REFUSED, SIMULATED, Verdict

_PREPARE: Final = "arch_prepare_kprobe"
# The functions that the trap code calls at the probe, and those that it calls after the copy: the first that is there.
_HIT: Final = ("kprobe_int3_handler", "kprobe_brk_handler", "kprobe_breakpoint_handler")
_STEPPED: Final = (
    "kprobe_int3_handler", "kprobe_ss_brk_handler", "kprobe_breakpoint_ss_handler", "kprobe_single_step_handler"
)  # fmt: skip
_INT: Final = 1 << 32
# The members with the function that simulates, and with the length.
_EMULATES: Final = "emulate_op"
_SIZE: Final = "size"
_SLOT_LENGTH: Final = 32


class LinuxKprobesGlue(LinuxGlue):
    """The glue for the kprobes of Linux."""

    sweeps = True
    entries = (_PREPARE,)
    recipe = recipe_of("kernel/probes/kprobes.c", x86="x86/kernel/kprobes/core.c")
    data: ClassVar[Mapping[str, int]] = {
        **LinuxGlue.data,
        "x86_nops": 128,
        "__kretprobe_trampoline": 16,
        **{f"__{part}_text_{end}": 8 for part in ("entry", "irqentry", "hyp", "idmap", "hyp_idmap")
           for end in ("start", "end")},
    }  # fmt: skip

    def set_up(self) -> None:
        """Make the probe."""
        code = self.code
        self._probe = code.view("kprobe")
        self._probe["addr"] = PLACE
        self._instruction = instruction = code.view("arch_specific_insn", self._probe.place("ainsn"))
        self._decoded: View = (
            code.view("arch_probe_insn", instruction.place("api")) if instruction.has("api") else (instruction)
        )
        self._slot = bytearray()
        self._prepared, self._decision = b"", ""
        self._armed = False
        code.place(PLACE, bytes(PLACE_SIZE))

    # -- what the kernel offers

    @extern("void *get_insn_slot(void)")
    def get_slot(self) -> int:
        """Return the slot for a copy."""
        self._slot = bytearray(SLOT_SIZE)
        return SLOT

    @extern("void free_insn_slot(void *slot, int dirty)")
    def free_slot(self, _slot: int, _dirty: int) -> None:
        """Do nothing."""

    @extern("void *get_kprobe(void *address)")
    def get_kprobe(self, address: int) -> int:
        """Return the probe at an address."""
        return self._probe.address if self._armed and address == PLACE else 0

    @extern("void *text_poke(void *to, const void *from, size_t size)")
    def text_poke(self, to: int, source: int, size: int) -> int:
        """Write code."""
        self._poke(to, self.code.load(source, size))
        return to

    @extern("int patch_text_nosync(void *to, const void *from, size_t size)")
    def patch_text(self, to: int, source: int, size: int) -> int:
        """Write code."""
        self._poke(to, self.code.load(source, size))
        return 0

    @extern("int aarch64_insn_patch_text_nosync(void *to, uint32_t word)")
    def patch_word(self, to: int, word: int) -> int:
        """Write an instruction."""
        self._poke(to, word.to_bytes(4, "little"))
        return 0

    @extern("int kallsyms_lookup_size_offset(unsigned long address, unsigned long *size, unsigned long *offset)")
    def lookup(self, _address: int, size: int, offset: int) -> int:
        """Return that the address begins a function."""
        for place, value in ((size, PLACE_SIZE), (offset, 0)):
            if place:
                self.code.store(place, value.to_bytes(self.code.isa.word, "little"))
        return 1

    @extern("const void *search_exception_tables(unsigned long address)")
    def search_exceptions(self, _address: int) -> int:
        """Return that there is no entry."""
        return 0

    @extern("int alternatives_text_reserved(void *start, void *end)")
    def reserved(self, _start: int, _end: int) -> int:
        """Return that nothing is reserved."""
        return 0

    @extern("void kprobes_inc_nmissed_count(void *probe)")
    def missed(self, _probe: int) -> None:
        """Do nothing."""

    @extern("void dump_kprobe(void *probe)")
    def dump(self, _probe: int) -> None:
        """Do nothing."""

    def _poke(self, to: int, data: bytes) -> None:
        if to >= SLOT and to + len(data) <= SLOT + len(self._slot):
            self._slot[to - SLOT : to - SLOT + len(data)] = data

    # -- the functions under test

    def decide(self, address: int, instruction: bytes) -> str:
        """Return the decision of the code under test.

        Raises `FunctionFaultError` and `GluePanicError`.
        """
        code = self.code
        code.guest.engine.memory.write(address, instruction.ljust(_SLOT_LENGTH, b"\0"))
        self._prepared, self._armed = instruction, False
        with code.showing(address, len(instruction)):
            refused = code.call(_PREPARE, self._probe.address) % _INT
        if refused:
            self._decision = REFUSED
        elif self._decoded.has(_EMULATES):
            self._decision = SIMULATED if self._decoded[_EMULATES] else COPIED
        else:
            self._decision = COPIED if self._decoded["insn"] else SIMULATED
        return self._decision

    def decided_at(self) -> int:
        """Return the address of the member that holds the last decision."""
        return self._decoded.place(_EMULATES if self._decoded.has(_EMULATES) else "insn")

    def ours(self, address: int, instruction: bytes, fidelity: Fidelity) -> tuple[str, str]:
        """Return nothing: the package has no rules of kprobes, only the CPU to compare with."""
        _ = address, instruction, fidelity
        return "", ""

    def executes(self, decision: str) -> bool:
        """Return whether the code has what executes instructions of this decision."""
        return bool(self._first(_HIT) and (decision == SIMULATED or self._first(_STEPPED)))

    def execute(self, frame: Frame, address: int, instruction: bytes) -> str:
        """Execute an instruction on a frame, as the kernel's breakpoint handlers do."""
        code, isa = self.code, self.code.isa
        if instruction != self._prepared:
            self.decide(address, instruction)
        code.store(code.address("current_kprobe"), bytes(isa.word))
        self._armed = True
        with code.showing(address, len(instruction)):
            frame.pc = address + isa.traps.saved_user_pc_after
            code.call(self._first(_HIT), frame.address, 0)
            if frame.pc == address + isa.traps.saved_user_pc_after and isa.traps.saved_user_pc_after:
                return "their handler does not claim the breakpoint"
            # A copy on x86 ends with a breakpoint or a jump; elsewhere an address says that it has run.
            steps = 1 if isa.registers.link else 0
            if frame.pc != SLOT or not frame.run_copy(bytes(self._slot), steps=steps):
                return ""
            if SLOT <= frame.pc < SLOT + SLOT_SIZE:
                frame.pc += isa.traps.saved_user_pc_after
                code.call(self._first(_STEPPED), frame.address, 0)
        return ""

    def _first(self, names: Sequence[str]) -> str:
        """Return the first function that the objects define, "" if there is none."""
        return next((name for name in names if self.code.defines(name)), "")

    def decoder(self) -> Decoder:
        """Refuse.  Raises `RequestError`: only of x86 there is something to compare, the lengths."""
        raise RequestError("--sweep: there are no rules of kprobes to compare with; on x86 their lengths are compared")

    def question(self) -> Question:
        """Return how a sweep of x86 asks the decoder."""
        probe, instruction = self._probe, self._instruction
        names = [name for name in (_EMULATES, "insn", _SIZE) if instruction.has(name)]
        members = [Member(instruction.place(name), instruction.field(name)[1]) for name in names]
        structure = Member(probe.address, probe.size)
        empty = self.code.load(probe.address, probe.size)
        return Question(_PREPARE, (probe.address,), structure, empty, PLACE, members)

    def verdict(self, answer: Answer) -> Verdict:
        """Return what an answer of the decoder means."""
        if answer.result:
            return Verdict(REFUSED, how=f"error {-answer.result}")
        first, *_, last = answer.members
        simulated = first if self._instruction.has(_EMULATES) else not first
        return Verdict(SIMULATED if simulated else COPIED, last if self._instruction.has(_SIZE) else 0)

    def our_verdict(self, code: bytes, fidelity: Fidelity) -> tuple[Verdict | None, str]:
        """Return the length by the package's disassembler; there are no rules of kprobes."""
        del fidelity
        return Verdict("", self.code.isa.instruction_length(code)), "length"

    def examine(self, request: Request, report: ObjectReport) -> None:
        """Execute a program's instructions or a sample, or compare the lengths of all encodings."""
        examine(self, request, report)
