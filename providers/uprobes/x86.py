"""The rules of uprobes for x86-64 and i386: one row for each decision and each refusal.

Linux 6.12 treats the byte after a VEX or EVEX prefix as an opcode of the one-byte map, so it treats
some vector instructions as jumps, calls or returns.  And it takes a prefix for the opcode if it
follows a REX prefix or four others.  Under `Fidelity.LINUX` these tables do the same; otherwise
such instructions are treated as what they are.

Source: Linux 6.12 arch/x86/kernel/uprobes.c (arch_uprobe_analyze_insn), arch/x86/lib/insn.c
(insn_get_prefixes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from emu.displaced.decision import Code, Decision, Rule, Stepped
from emu.displaced.plans import Plan, Set, Store
from emu.isa.x86.instruction import LONG_MODE, PROTECTED_MODE, Instruction, Mode
from emu.isa.x86.length import PREFIXES, Parts
from emu.isa.x86.plans import jcc, transfer
from providers.fidelity import Fidelity, by_fidelity
from providers.uprobes.port import ENOEXEC, ENOTSUPP, Port
from providers.x86 import Row, Table, always, emulate, moved, offset, refuse

_SOURCE: Final = "Linux arch/x86/kernel/uprobes.c"
_OURS: Final = "this simulator: the copy would compute another result"
_JUMPS: Final = "it transfers control"
_BAD_PREFIXES: Final = frozenset({0x26, 0x2E, 0x36, 0x3E, 0xF0})
# One-byte opcodes that are refused in 64-bit mode (good_insns_64).
#
# The table for 0f xx never decides: the opcode 0f itself is looked up in the first one, and is good.  The opcodes of
# VEX instructions are looked up there too.
_BAD_OPCODES: Final = frozenset(
    bytes.fromhex("06070e16171e1f272f373f6061626c6d6e6f829acccdcecfd4d5d6e4e5e6e7eaecedeeeff1f4fafb")
)
# The same in 32-bit tasks (good_insns_32).
_BAD_OPCODES_32: Final = frozenset(bytes.fromhex("07171f6c6d6e6fcccdcecfe4e5e6e7ecedeeeff1f4fafb"))
_RETURNS: Final = frozenset({0xC2, 0xC3, 0xCA, 0xCB, 0xEA})
_FAR_CALL: Final = 0x9A
_COUNTED: Final = frozenset({0xE0, 0xE1, 0xE2, 0xE3})
_DIRECT: Final = frozenset({0xE8, 0xE9, 0xEB})
_NOP: Final = 0x90
_PUSHF, _POPF = 0x9C, 0x9D
_OPERAND_SIZE: Final = 0x66
_XOP: Final = 0x8F
_XBEGIN, _XBEGIN_MODRM = 0xC7, 0xF8
# The number of different prefixes, without REX, that Linux expects.
_MOST_PREFIXES: Final = 4
# Opcodes of VEX in map 1 whose instruction ends with an immediate byte; in map 3 all do.
_IMMEDIATES: Final = frozenset({0x70, 0x71, 0x72, 0x73, 0xC2, 0xC4, 0xC5, 0xC6})


def _opcode(insn: Instruction) -> int:
    """Return the opcode that Linux looks up: of VEX and EVEX, the byte after the prefix.

    It does not know XOP, and takes it for pop.
    """
    return insn.opcode if insn.vector_at is None or insn.opcode == _XOP else insn.data[insn.vector_at]


def _linux_opcode_at(insn: Instruction) -> int:
    """Return the offset of what Linux takes for the opcode: it is behind the prefixes it expects.

    These are up to four different prefixes, each as often as it likes, and then one REX prefix.

    Source: Linux 6.12 arch/x86/lib/insn.c (insn_get_prefixes).
    """
    known: set[int] = set()
    at = 0
    while at < insn.at and insn.data[at] in PREFIXES:
        if insn.data[at] not in known and len(known) == _MOST_PREFIXES:
            return at
        known.add(insn.data[at])
        at += 1
    return min(at + 1, insn.at)


def _is_misread(insn: Instruction) -> bool:
    """Return whether Linux takes a prefix for the opcode, and does not refuse those before it."""
    at = _linux_opcode_at(insn)
    return at < insn.at and _BAD_PREFIXES.isdisjoint(insn.data[:at])


def _is_plain(insn: Instruction) -> bool:
    return insn.vector_at is None


def _is_branch(insn: Instruction) -> bool:
    return insn.opcode in _DIRECT or insn.is_conditional


def _calls(insn: Instruction) -> bool:
    return insn.opcode == _FAR_CALL or (insn.opcode == 0xFF and insn.extension in {2, 3})


def _pushes_part_of_a_word(insn: Instruction) -> bool:
    """Return whether a call pushes less than Linux corrects.

    Linux writes the return address as a word.
    """
    far_in_long_mode = insn.mode is LONG_MODE and insn.extension == 3 and not insn.wide
    return _is_plain(insn) and _calls(insn) and (insn.narrow or far_in_long_mode)


def _is_push(insn: Instruction) -> bool:
    short = insn.length == 1 or (insn.length == 2 and insn.rex == 0x41)
    return _is_plain(insn) and 0x50 <= insn.opcode <= 0x57 and short


def _push(insn: Instruction) -> Plan:
    register = insn.mode.registers[insn.opcode - 0x50 | (insn.rex & 1) << 3]
    pc, sp, word = insn.mode.pc, insn.mode.sp, insn.mode.word
    return Plan((Store(register, sp, -word, word), Set(sp, sp, -word), Set(pc, pc, insn.length)))


def _nop(insn: Instruction) -> Plan:
    return Plan((Set(insn.mode.pc, insn.mode.pc, insn.length),))


def _step(rule: Rule, insn: Instruction) -> Decision:
    """Step an instruction that continues after itself, or at the same distance as its copy."""
    code, scratch = (insn.data, "") if insn.relative_at is None else moved(insn)
    return Stepped(rule, insn.length, code, scratch)


def _step_away(rule: Rule, insn: Instruction) -> Decision:
    """Step an instruction after which the pc is correct."""
    code, scratch = (insn.data, "") if insn.relative_at is None else moved(insn)
    return Stepped(rule, insn.length, code, scratch, absolute=True, calls=_is_plain(insn) and _calls(insn))


def _step_flags(rule: Rule, insn: Instruction) -> Decision:
    pushes, pops = insn.opcode == _PUSHF, insn.opcode == _POPF
    return Stepped(rule, insn.length, insn.data, pushes_flags=pushes, pops_flags=pops)


def _goes_away(insn: Instruction) -> bool:
    indirect = insn.opcode == 0xFF and insn.extension in {2, 3, 4, 5}
    return _is_plain(insn) and (insn.opcode in _RETURNS or insn.opcode == _FAR_CALL or indirect)


_Test = Callable[[Instruction], bool]


def _refused(name: str, test: _Test, why: str, source: str = _SOURCE) -> Row:
    return Row(name, why, source, test, refuse, errno=ENOTSUPP)


def _plain(test: _Test) -> _Test:
    return lambda insn: _is_plain(insn) and test(insn)


def _first(bad_opcodes: frozenset[int]) -> tuple[Row, ...]:
    """Return the rows that test opcodes, with any prefix."""
    return (
        _refused("prefix", lambda insn: bool(insn.prefixes & _BAD_PREFIXES), "it has a segment or lock prefix"),
        _refused("opcode", lambda insn: _opcode(insn) in bad_opcodes, "its opcode is among those that are not probed"),
        _refused(
            "mov to ss",
            lambda insn: _opcode(insn) == 0x8E and insn.extension == 2,
            "mov to ss masks interrupts for an instruction",
        ),
        _refused(
            "narrow branch",
            lambda insn: _is_plain(insn) and _is_branch(insn) and _OPERAND_SIZE in insn.prefixes,
            "CPUs differ about a branch with an operand-size prefix",
        ),
    )


# The instructions that Linux steps, and the errors that this causes.
_UNTRUSTWORTHY: Final = (
    _refused(
        "xbegin",
        lambda insn: insn.opcode == _XBEGIN and insn.second == _XBEGIN_MODRM,
        "the address of its handler is relative to the pc",
        _OURS,
    ),
    _refused(
        "narrow count",
        lambda insn: _is_plain(insn) and insn.narrow and insn.opcode in _COUNTED,
        "CPUs differ about a branch with an operand-size prefix",
        _OURS,
    ),
    _refused(
        "part of a word",
        _pushes_part_of_a_word,
        "it pushes a return address that is smaller than a word",
        _OURS,
    ),
)


def _simulated(name: str, test: _Test, plan: Callable[[Instruction], Plan], why: str = _JUMPS) -> Row:
    return Row(name, why, _SOURCE, _plain(test), emulate(plan))


_NOTHING: Final = "it does nothing"
_SIMULATED: Final = (
    _simulated("jmp", lambda insn: insn.opcode in {0xE9, 0xEB},
               lambda insn: transfer(insn, call=False, offset=offset(insn))),
    _simulated("call", lambda insn: insn.opcode == 0xE8, lambda insn: transfer(insn, call=True, offset=offset(insn))),
    _simulated("jcc", lambda insn: insn.is_conditional, jcc),
    _simulated("push", _is_push, _push, "functions begin with it"),
)  # fmt: skip
# Linux treats it as a nop with any prefixes: also `pause`, and `xchg %r8,%rax`, which is not a nop.
_ONLY_NOP: Final = _simulated(
    "nop", lambda insn: insn.opcode == _NOP and not insn.prefixes and not insn.rex, _nop, _NOTHING
)
_ANY_NOP: Final = replace(
    _simulated("nop", lambda insn: insn.opcode == _NOP, _nop, _NOTHING),
    quirk="accepted with any prefix: xchg %r8,%rax then does nothing",
)
_STEPPED: Final = (
    Row("stepped, goes away", "it jumps to an absolute address", _SOURCE, _goes_away, _step_away),
    Row("stepped, flags", "it saves or loads the flags, and the step has set the trap flag", _SOURCE,
        _plain(lambda insn: insn.opcode in {_PUSHF, _POPF}), _step_flags),
    Row("stepped", "it does the same at any address, once the pc is corrected", _SOURCE, always, _step),
)  # fmt: skip


# Linux' error: the opcode after VEX or EVEX is read as one of the one-byte map.


def _immediate(insn: Instruction) -> int:
    """Return the immediate of a vector instruction, which Linux reads as a jump's distance."""
    assert insn.vector_at is not None
    two_bytes = insn.opcode == 0xC5
    table = 1 if two_bytes else insn.data[insn.at + 1] & 0x1F
    there = table == 3 or (table == 1 and _opcode(insn) in _IMMEDIATES)
    return insn.signed(insn.length - 1, 1) if there else 0


def _as_jump(insn: Instruction, *, call: bool = False) -> Plan:
    return transfer(insn, call=call, offset=insn.length + _immediate(insn))


def _as_jcc(insn: Instruction) -> Plan:
    jump = bytes((_opcode(insn), _immediate(insn) & 0xFF)).ljust(insn.length, b"\0")
    return jcc(replace(insn, data=jump, layout=Parts(insn.length, 0)))


def _vector(test: Callable[[int, Instruction], bool]) -> _Test:
    return lambda insn: not _is_plain(insn) and test(_opcode(insn), insn)


_MISTAKE: Final = "Linux reads the opcode after a VEX or EVEX prefix as a legacy opcode"


def _mistaken(
    name: str, test: Callable[[int, Instruction], bool], what: Callable[[Rule, Instruction], Decision]
) -> Row:
    return Row(name, _MISTAKE, _SOURCE, _vector(test), what, quirk="it is a vector instruction")


def _group5(*extensions: int) -> Callable[[int, Instruction], bool]:
    def test(opcode: int, insn: Instruction) -> bool:
        assert insn.vector_at is not None
        return opcode == 0xFF and insn.data[insn.vector_at + 1] >> 3 & 7 in extensions

    return test


def _step_call(rule: Rule, insn: Instruction) -> Decision:
    """Step it, and write a return address over the top of the stack."""
    code, scratch = (insn.data, "") if insn.relative_at is None else moved(insn)
    return Stepped(rule, insn.length, code, scratch, absolute=True, calls=True)


def _step_popf(rule: Rule, insn: Instruction) -> Decision:
    code, scratch = (insn.data, "") if insn.relative_at is None else moved(insn)
    return Stepped(rule, insn.length, code, scratch, pops_flags=True)


def _step_misread(rule: Rule, insn: Instruction) -> Decision:
    """Step it at the place of its copy, whatever it does."""
    return Stepped(rule, insn.length, insn.data, pushes_flags=insn.opcode == _PUSHF)


_MISTAKEN: Final = (
    _mistaken("vector as nop", lambda opcode, _: opcode == _NOP, emulate(_nop)),
    _mistaken("vector as jmp", lambda opcode, _: opcode in {0xE9, 0xEB}, emulate(_as_jump)),
    _mistaken("vector as call", lambda opcode, _: opcode == 0xE8, emulate(partial(_as_jump, call=True))),
    _mistaken("vector as jcc", lambda opcode, _: opcode >> 4 == 7, emulate(_as_jcc)),
    _mistaken("vector as return", lambda opcode, insn: opcode in _RETURNS or _group5(4, 5)(opcode, insn), _step_away),
    _mistaken(
        "vector as far call", lambda opcode, insn: opcode == _FAR_CALL or _group5(2, 3)(opcode, insn), _step_call
    ),
    _mistaken("vector as popf", lambda opcode, _: opcode == _POPF, _step_popf),
)
# All prefixes are among the opcodes that are probed.
_MISREAD: Final = Row(
    "prefix as opcode",
    "Linux reads a prefix that follows REX, or four others, as the opcode",
    "Linux arch/x86/lib/insn.c",
    _is_misread,
    _step_misread,
    quirk="it is stepped and nothing but the pc is corrected",
)
# A prefix before VEX or EVEX is no instruction to the CPU in 64-bit mode; the decoder of 32-bit mode accepts it.
_NARROW_VECTOR: Final = _refused(
    "narrow vector as branch",
    lambda insn: not _is_plain(insn) and _OPERAND_SIZE in insn.prefixes
    and (_opcode(insn) in _DIRECT or _opcode(insn) >> 4 == 7),
    _MISTAKE,
)  # fmt: skip
_MALFORMED: Final = Rule("malformed", "the bytes are not an instruction", _SOURCE, errno=ENOEXEC)


def _tables(mode: Mode, bad_opcodes: frozenset[int]) -> Mapping[Fidelity, Table]:
    first = _first(bad_opcodes)
    exact = Table(mode, _MALFORMED, (*first, *_UNTRUSTWORTHY, _ONLY_NOP, *_SIMULATED, *_STEPPED))
    linux = Table(mode, _MALFORMED, (_MISREAD, *first, _NARROW_VECTOR, *_MISTAKEN, _ANY_NOP, *_SIMULATED, *_STEPPED))
    return by_fidelity(exact, linux=linux)


LONG_TABLES: Final = _tables(LONG_MODE, _BAD_OPCODES)
PROTECTED_TABLES: Final = _tables(PROTECTED_MODE, _BAD_OPCODES_32)


def port(tables: Mapping[Fidelity, Table]) -> Port:
    """Return uprobes by the tables of a mode (arch_uprobe_analyze_insn)."""

    def treat(code: Code, fidelity: Fidelity) -> Decision:
        return tables[fidelity].decide(code)

    return Port(breakpoint=b"\xcc", longest=16, alignment=1, slot=128, step_trap=b"", treat=treat)
