"""Where the probes of a function of a Linux kernel go.

Linux compiles its functions with a pad at the entry, which ftrace turns into a call and back again;
a landing pad for indirect jumps may come before it.  A breakpoint on the ftrace pad would be
overwritten when ftrace is switched on, so an entry probe goes, if it can,

1. onto the landing pad (x86-64 endbr64, AArch64 bti or paciasp), which nobody rewrites;
2. else onto the first instruction behind ftrace's pad;
3. else onto the pad itself;
4. in a function without pads, onto the first instruction.

"If it can" means that the instruction displaced there is one whose effect is known as a plan: the
host carries it out.  Return probes go onto every return instruction.

Source: Linux 6.12 arch/riscv/include/asm/ftrace.h (two nops of 4 bytes), arch/arm64/kernel/ftrace.c
(bti, then two nops, of which the kernel makes `mov x9, x30` and a nop when it boots),
arch/x86/kernel/ftrace.c (a nop of 5 bytes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from emu.displaced import Code, Displaced, Emulated, Rule
from emu.isa.base import Isa
from emu.plans import Operation, Plan, Set, Store
from providers.kinst.ports import PORTS

_SOURCE: Final = "this simulator"
NO_PLAN: Final = Rule("no plan", "what the instruction does is not known as a plan for the host", _SOURCE)
BLACKLISTED: Final = Rule(
    "kprobe blacklist",
    "Linux lets no kprobe be there (NOKPROBE_SYMBOL, __kprobes, entry code)",
    "Linux kernel/kprobes.c",
)
_NOP: Final = Rule("nop", "it does nothing", _SOURCE)
_ARITHMETIC: Final = Rule("add to a register", "a register gets a sum", _SOURCE)
_PUSH: Final = Rule("push", "a register goes onto the stack", _SOURCE)
_STUB: Final = Rule("stub", "FBT's own stub emulates it", "FreeBSD sys/cddl/dev/dtrace")

LONGEST: Final = 16


@dataclass(frozen=True, slots=True)
class TextPort:
    """One ISA's kernel text."""

    nop: Callable[[bytes], int]
    """Length of the nop that starts some code; 0: it is none."""
    landing: Callable[[bytes], int]
    """The same of a landing pad."""
    pad: Callable[[bytes], int]
    """Length of ftrace's pad that starts some code, as it is while ftrace is off; 0: it is none."""
    returns: Callable[[bytes], bool]
    """Whether an instruction is a return."""
    more: Callable[[bytes], tuple[Rule, tuple[Operation, ...], int] | None]
    """What other instructions do, beside moving the pc, and their length."""


# -- RISC-V


_RV_NOP: Final = bytes.fromhex("13000000")
_RV_C_NOP: Final = bytes.fromhex("0100")
_RV_RETURNS: Final = frozenset({bytes.fromhex("8280"), bytes.fromhex("67800000")})
_RV_SP: Final = 2


def _rv_nop(code: bytes) -> int:
    return 4 if code.startswith(_RV_NOP) else 2 if code.startswith(_RV_C_NOP) else 0


def _rv_pad(code: bytes) -> int:
    return 8 if code.startswith(_RV_NOP * 2) else 0


def _rv_more(code: bytes) -> tuple[Rule, tuple[Operation, ...], int] | None:
    """Know addi of sp, compressed or not: what functions begin with."""
    insn = Displaced(int.from_bytes(code[:4], "little"), 0)
    half = insn.word & 0xFFFF
    if half & 0xEF83 == 0x6101:  # c.addi16sp
        value = insn.signed(12, 12) << 9 | insn.bits(6, 6) << 4 | insn.bits(5, 5) << 6
        value |= insn.bits(4, 3) << 7 | insn.bits(2, 2) << 5
        return _ARITHMETIC, (Set("sp", "sp", value),), 2
    if half & 0xEF83 == 0x0101 and half != int.from_bytes(_RV_C_NOP, "little"):  # c.addi sp
        return _ARITHMETIC, (Set("sp", "sp", insn.signed(12, 12) << 5 | insn.bits(6, 2)),), 2
    if insn.word & 0x7FFF == 0x0013 | _RV_SP << 7 and insn.bits(19, 15) == _RV_SP:  # addi sp, sp
        return _ARITHMETIC, (Set("sp", "sp", insn.signed(31, 20)),), 4
    return None


_RISCV: Final = TextPort(_rv_nop, lambda _code: 0, _rv_pad, lambda code: code in _RV_RETURNS, _rv_more)

# -- AArch64

_A64_NOP: Final = bytes.fromhex("1f2003d5")
_A64_MOV_X9_LR: Final = bytes.fromhex("e9031eaa")
_A64_RET: Final = bytes.fromhex("c0035fd6")
_A64_HINT: Final = 0xD503_201F
# hint #number: bti in its four forms, paciasp and pacibsp, which a CPU without them takes for nops, as this one does.
_A64_LANDING: Final = frozenset({32, 34, 36, 38, 25, 27})


def _a64_landing(code: bytes) -> int:
    word = int.from_bytes(code[:4], "little")
    return 4 if word & 0xFFFF_F01F == _A64_HINT and word >> 5 & 0x7F in _A64_LANDING else 0


def _a64_pad(code: bytes) -> int:
    return 8 if code[4:8] == _A64_NOP and code[:4] in {_A64_NOP, _A64_MOV_X9_LR} else 0


def _a64_more(code: bytes) -> tuple[Rule, tuple[Operation, ...], int] | None:
    """Know what the kernel makes of the first nop of a pad, and sub sp, sp, #imm."""
    if code.startswith(_A64_MOV_X9_LR):
        return _ARITHMETIC, (Set("x9", "lr"),), 4
    insn = Displaced(int.from_bytes(code[:4], "little"), 0)
    if insn.word & 0xFF80_03FF == 0xD100_03FF:
        return _ARITHMETIC, (Set("sp", "sp", -(insn.bits(21, 10) << 12 * insn.bits(22, 22))),), 4
    return None


_AARCH64: Final = TextPort(
    lambda code: 4 if code.startswith(_A64_NOP) else 0, _a64_landing, _a64_pad, lambda code: code == _A64_RET, _a64_more
)

# -- x86-64

_X86_ENDBR64: Final = bytes.fromhex("f30f1efa")
# nopl -42(%rax): what the kernel makes of an endbr64 that is not needed (arch/x86/kernel/alternative.c).
_X86_SEALED: Final = bytes.fromhex("0f1f40d6")
_X86_PAD: Final = bytes.fromhex("0f1f440000")
_X86_NOPS: Final = tuple(
    map(bytes.fromhex, ("6690", "90", "0f1f00", "0f1f4000", "0f1f440000", "660f1f440000", "0f1f8000000000"))
)
_X86_RETURNS: Final = (0xC3, 0xC2)
_X86_REX_B: Final = 0x41
_X86_REGISTERS: Final = (
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
)  # fmt: skip


def _x86_landing(code: bytes) -> int:
    return 4 if code.startswith((_X86_ENDBR64, _X86_SEALED)) else 0


def _x86_more(code: bytes) -> tuple[Rule, tuple[Operation, ...], int] | None:
    """Know push of a register, which functions begin with."""
    prefixed = code[0] == _X86_REX_B
    opcode = code[prefixed]
    if not 0x50 <= opcode <= 0x57:
        return None
    register = _X86_REGISTERS[opcode - 0x50 + 8 * prefixed]
    return _PUSH, (Store(register, "rsp", -8), Set("rsp", "rsp", -8)), 1 + prefixed


_X86: Final = TextPort(
    lambda code: next((len(nop) for nop in _X86_NOPS if code.startswith(nop)), 0),
    _x86_landing,
    lambda code: 5 if code.startswith(_X86_PAD) else 0,
    lambda code: code[0] in _X86_RETURNS,
    _x86_more,
)

TEXT_PORTS: Final[Mapping[str, TextPort]] = {"riscv64": _RISCV, "aarch64": _AARCH64, "x86_64": _X86}


# -- what follows from them


def treat(isa: Isa, code: bytes, address: int) -> Emulated | None:
    """Return the plan of the instruction that starts `code`; None: there is none for it."""
    port, pc = TEXT_PORTS[isa.name], isa.registers.pc
    length = port.nop(code) or port.landing(code)
    if length:
        return Emulated(_NOP, length, Plan((Set(pc, pc, length),)))
    known = port.more(code)
    if known is not None:
        rule, operations, length = known
        return Emulated(rule, length, Plan((*operations, Set(pc, pc, length))))
    plan = isa.stub.plan(code, address)
    if plan is not None:
        return Emulated(_STUB, isa.instruction_length(code), plan)
    found = PORTS[isa.name].treat(Code(code, address))
    return found if isinstance(found, Emulated) else None


def entry_site(isa: Isa, code: bytes, address: int) -> tuple[int, Emulated] | None:
    """Return where the entry probe of a function goes, and what it displaces; None: nowhere."""
    port = TEXT_PORTS[isa.name]
    landing = port.landing(code)
    pad = port.pad(code[landing:])
    candidates = ([0] if landing or not pad else []) + ([landing + pad, landing] if pad else [])
    for offset in candidates:
        found = treat(isa, code[offset:], address + offset)
        if found is not None:
            return address + offset, found
    return None


def return_sites(isa: Isa, code: bytes, address: int) -> Iterator[tuple[int, Emulated]]:
    """Yield the return instructions of a function, with what they do."""
    port = TEXT_PORTS[isa.name]
    for offset in PORTS[isa.name].boundaries(code):
        length = isa.instruction_length(code[offset : offset + LONGEST])
        if length and port.returns(code[offset : offset + length]):
            found = treat(isa, code[offset : offset + LONGEST], address + offset)
            if found is not None:
                yield address + offset, found
