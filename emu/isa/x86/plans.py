"""Plans of the x86 instructions that transfer control, and the conditions of jumps.

Source: Intel SDM volume 2; volume 1, appendix B (condition codes: the low four bits of jcc's
opcode).
"""

from __future__ import annotations

from typing import Final

from emu.displaced.plans import Branch, Check, Clear, Compare, Load, Operation, Plan, Set, Store, Sum
from emu.isa.x86.instruction import LONG_MODE, Instruction

CF: Final = 0x001
PF: Final = 0x004
ZF: Final = 0x040
SF: Final = 0x080
OF: Final = 0x800

# Each pair of codes asks one question and its opposite: o, b, e, be, s, p, l, le.
_ANY_OF: Final = (OF, CF, ZF, CF | ZF, SF, PF, 0, ZF)
_SIGNED: Final = frozenset({6, 7})

# The assembler's name of each condition (j<name>), and the flags that it tests.
NAMES: Final = (
    "o (OF)", "no (not OF)", "b (CF)", "ae (not CF)", "e (ZF)", "ne (not ZF)", "be (CF or ZF)", "a (neither CF nor ZF)",
    "s (SF)", "ns (not SF)", "p (PF)", "np (not PF)", "l (SF is not OF)", "ge (SF is OF)",
    "le (ZF, or SF is not OF)", "g (not ZF, and SF is OF)",
)  # fmt: skip


def condition(number: int, flags: int) -> bool:
    """Return whether condition `number` (0: o, 1: no ... 15: g) holds in these flags."""
    question = number >> 1
    yes = bool(flags & _ANY_OF[question]) or (question in _SIGNED and bool(flags & SF) is not bool(flags & OF))
    return yes is not bool(number & 1)


_LOW_HALF: Final = 0xFFFF_FFFF_0000_0000


def _branch(tests: tuple[Check, ...], taken: int, missed: int, *before: Operation) -> Plan:
    return Plan((*before, Branch(tests, taken, missed)))


def _condition(number: int) -> Check:
    return Check(Compare.FLAGS, right=number, name=NAMES[number])


def jcc(insn: Instruction) -> Plan:
    """Plan a conditional jump, short or near."""
    if insn.opcode == 0x0F:
        number, displacement = insn.second & 15, insn.lengthened.signed(insn.at + 2, 4)
    else:
        number, displacement = insn.opcode & 15, insn.signed(insn.at + 1, 1)
    return _branch((_condition(number),), insn.length + displacement, insn.length)


def loop(insn: Instruction, *, quirks: bool = False) -> Plan:
    """Plan loop, loope, loopne; with `quirks` as FreeBSD's fasttrap_isa.c has them."""
    extra = {0xE0: (_condition(5),), 0xE1: (_condition(4),), 0xE2: ()}[insn.opcode]
    taken = insn.length + insn.signed(insn.at + 1, 1)
    count = insn.mode.count
    if quirks:
        # It tests the count before it decrements it, and knows no address-size prefix.
        before = (Set("%0", count), Set(count, count, -1))
        return _branch((Check(Compare.NE, "%0", 0), *extra), taken, insn.length, *before)
    counted = Clear(count, "%0", _LOW_HALF) if 0x67 in insn.prefixes else Set(count, "%0")
    test = Check(Compare.NE, count, 0)
    return _branch((test, *extra), taken, insn.length, Set("%0", count, -1), counted)


def jcxz(insn: Instruction, *, quirks: bool = False) -> Plan:
    """Plan jrcxz, jecxz and jcxz; with `quirks` the prefix is ignored."""
    bits = 8 * insn.mode.word >> (0x67 in insn.prefixes and not quirks)
    test = Check(Compare.EQ, insn.mode.count, 0, bits)
    return _branch((test,), insn.length + insn.signed(insn.at + 1, 1), insn.length)


def transfer(insn: Instruction, *before: Operation, call: bool, target: str = "", offset: int = 0) -> Plan:
    """Jump to `target`, or by `offset` if it is the pc.

    A call leaves the address after the original.
    """
    pc, sp, word = insn.mode.pc, insn.mode.sp, insn.mode.word
    push = (Set("%0", pc, insn.length), Store("%0", sp, -word, word), Set(sp, sp, -word)) if call else ()
    return Plan((*before, *push, Set(pc, target or pc, offset)))


def indirect(insn: Instruction, *, call: bool, quirks: bool = False) -> Plan:
    """Plan a jump or a call through a register or memory.

    With a 16-bit address, which this does not know, it is shorter than it seems: the bytes behind
    it are read then, as FreeBSD reads them.  With `quirks` it is FreeBSD's plan in full: any
    address with a SIB byte has a displacement, and the GDT's bases of fs and gs are 0 in 64-bit
    mode (fasttrap_isa.c, fasttrap_tracepoint_init and fasttrap_do_seg).
    """
    registers, word = insn.mode.registers, insn.mode.word
    whole = insn.lengthened
    modrm = insn.data[insn.at + 1]
    mod, rm = modrm >> 6, modrm & 7
    if mod == 3:
        register = registers[rm | (insn.rex & 1) << 3]
        return transfer(insn, Set("%2", register), call=call, target="%2")
    base, index, shift, displacement, at = "", "", 0, 0, insn.at + 2
    if rm == 4:
        sib = whole.data[at]
        at += 1
        scaled = sib >> 3 & 7 | (insn.rex & 2) << 2
        index, shift = ("" if scaled == 4 else registers[scaled]), sib >> 6
        if sib & 7 == 5 and mod == 0:
            displacement = whole.signed(at, 4)
        else:
            base = registers[sib & 7 | (insn.rex & 1) << 3]
            if quirks and mod == 0:
                displacement = whole.signed(at, 4)
    elif rm == 5 and mod == 0:
        # 64-bit mode: relative to the next instruction; 32-bit mode: the address itself.
        relative = word == LONG_MODE.word
        base, displacement = insn.mode.pc * relative, whole.signed(at, 4) + insn.length * relative
    else:
        base = registers[rm | (insn.rex & 1) << 3]
    if mod:
        displacement = whole.signed(at, 1 if mod == 1 else 4)
    address: list[Operation] = [Sum("%1", base, index, shift, displacement)]
    if 0x67 in insn.prefixes:  # in 64-bit mode: the 16-bit addresses of the other are refused
        address.append(Clear("%1", "%1", _LOW_HALF))
    if insn.segment in {"fs", "gs"} and not (quirks and insn.mode is LONG_MODE):
        address.append(Sum("%1", "%1", f"{insn.segment}_base"))
    return transfer(insn, *address, Load("%2", "%1", 0, word), call=call, target="%2")


def push_fp(insn: Instruction) -> Plan:
    """Plan push rbp, or push ebp."""
    sp, word = insn.mode.sp, insn.mode.word
    return Plan((Store(insn.mode.fp, sp, -word, word), Set(sp, sp, -word), Set(insn.mode.pc, insn.mode.pc, 1)))


def ret(insn: Instruction) -> Plan:
    """Plan ret, with or without a number."""
    sp, word = insn.mode.sp, insn.mode.word
    popped = word + (int.from_bytes(insn.data[insn.at + 1 : insn.at + 3], "little") if insn.opcode == 0xC2 else 0)
    return Plan((Load("%0", sp, 0, word), Set(sp, sp, popped), Set(insn.mode.pc, "%0")))
