"""Fasttrap on x86-64 and i386: the rules for instructions, and the common part of the ports.

The tables have one row for each kind of tracepoint and each refusal.

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/intel/dtrace/fasttrap_isa.c
(fasttrap_tracepoint_init).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from emu.displaced.decision import Code, Decision, OutOfLine, Rule
from emu.displaced.plans import Plan, Set
from emu.isa.x86.instruction import LONG_MODE, PROTECTED_MODE, REGISTERS, Instruction, Mode
from emu.isa.x86.plans import indirect, jcc, jcxz, loop, push_fp, ret, transfer
from providers.dis_tables import SOURCE, read
from providers.fasttrap.port import Port
from providers.fasttrap.x86_functions import boundaries, decoded, returns
from providers.fidelity import Fidelity, by_fidelity
from providers.x86 import Row, Table, always, copy, emulate, extended, moved, offset, opcodes, refuse

_ISA: Final = "FreeBSD sys/cddl/contrib/opensolaris/uts/intel/dtrace/fasttrap_isa.c"
_OURS: Final = "this simulator: the copy would compute another result"
_JUMPS: Final = "it transfers control"
# The instruction for system calls on i386.
SYSTEM_CALL: Final = b"\xcd\x80"
_ADDRESS_SIZE: Final = 0x67
_REX2: Final = 0xD5
_COUNTED: Final = frozenset({0xE0, 0xE1, 0xE2})


def _by_register(rule: Rule, insn: Instruction) -> Decision:
    """Run a copy that names its operand by a register that the instruction does not use."""
    code, scratch = moved(insn)
    return OutOfLine(rule, insn.length, code, scratch)


def _by_rax(rule: Rule, insn: Instruction) -> Decision:
    """Run a copy that names its operand by rax, or by rcx beside rax, as FreeBSD does.

    A REX prefix with B turns them into r8 or r9. cmpxchg, mul and div use
    rax although no operand names it, and instructions with VEX may name it by their third operand:
    their results are then wrong.
    """
    at = _taken_as_relative_at(insn)
    assert at is not None
    other = insn.data[at] >> 3 & 7
    number = 0 if other else 1
    code = bytearray(insn.data)
    code[at] = 0x80 | other << 3 | number
    return OutOfLine(rule, insn.length, bytes(code), REGISTERS[number | (insn.rex & 1) << 3])


def _taken_as_relative_at(insn: Instruction) -> int | None:
    """Return the offset of a ModRM byte that FreeBSD takes for an operand relative to rip.

    It looks at mod and rm only, so it does so in moves of control and debug registers, too.
    """
    at = insn.modrm_at if insn.mode is LONG_MODE else None
    return None if at is None or insn.data[at] & 0xC7 != 0x05 else at


def _nop(insn: Instruction) -> Plan:
    return Plan((Set(insn.mode.pc, insn.mode.pc, insn.length),))


def _direct(insn: Instruction, *, call: bool) -> Plan:
    return transfer(insn, call=call, offset=offset(insn))


def _is_narrow_branch(insn: Instruction) -> bool:
    return insn.narrow and insn.is_near_branch


def _has_short_address(insn: Instruction) -> bool:
    counts = insn.opcode in _COUNTED or (insn.opcode == 0xFF and insn.extension in {2, 4})
    return _ADDRESS_SIZE in insn.prefixes and counts


_Planner = Callable[[Instruction], Plan]


def _emulated(
    name: str, test: Callable[[Instruction], bool], plan: _Planner, why: str = _JUMPS, *, leaves: bool = False
) -> Row:
    return Row(name, why, _ISA, test, emulate(plan, leaves=leaves))


def _refused(name: str, test: Callable[[Instruction], bool], why: str, source: str = _ISA) -> Row:
    return Row(name, why, source, test, refuse)


_SYSTEM_CALL: Final = Row(
    "SYSTEM_CALL",
    "it makes a system call, which is the same at any address; FreeBSD refuses every software interrupt",
    "this simulator",
    lambda insn: insn.data == SYSTEM_CALL,
    copy,
)
_SHORT_ADDRESS: Final = _refused(
    "SHORT_ADDRESS", _has_short_address, "a 16-bit address size: it counts cx, or adds 16-bit registers", _OURS
)
# The instructions that FreeBSD accepts, and the errors that this causes.
_UNTRUSTWORTHY: Final = (
    _refused(
        "XBEGIN",
        lambda insn: insn.opcode == 0xC7 and insn.second == 0xF8,
        "the address of xbegin's handler is relative to the pc",
        _OURS,
    ),
    _refused(
        "FAR_CALL",
        lambda insn: insn.opcode == 0x9A or (insn.opcode == 0xFF and insn.extension == 3),
        "a far call would push the address after its copy",
        _OURS,
    ),
    _refused("LOCK", lambda insn: insn.refuses_lock, "the CPU refuses its LOCK prefix (#UD)", _OURS),
    _refused("NARROW_BRANCH", _is_narrow_branch, "CPUs differ about a branch with an operand-size prefix", _OURS),
)
_APX: Final = _refused("REX2", opcodes(_REX2), "no rule reads APX", _OURS)
_FIRST: Final = (
    _refused("TWO_SEGMENTS", lambda insn: len(insn.segments) > 1, "it has two segment prefixes"),
    _refused("INT", opcodes(0xCC, 0xCD), "it is a breakpoint, or a software interrupt"),
)
_KINDS: Final = (
    _emulated("JCC", lambda insn: insn.is_conditional, jcc),
    _emulated("LOOP", opcodes(*_COUNTED), loop),
    _emulated("JCXZ", opcodes(0xE3), jcxz),
    _emulated("CALL", opcodes(0xE8), partial(_direct, call=True)),
    _emulated("JMP", opcodes(0xE9, 0xEB), partial(_direct, call=False)),
    _emulated("CALL, indirect", extended(0xFF, 2), partial(indirect, call=True)),
    _emulated("JMP, indirect", extended(0xFF, 4), partial(indirect, call=False)),
    _emulated("RET", opcodes(0xC3), ret, leaves=True),
    _emulated("RET16", opcodes(0xC2), ret, leaves=True),
    _emulated(
        "PUSHL_EBP", lambda insn: insn.opcode == 0x55 and insn.length == 1, push_fp, "most functions begin with it"
    ),
    _emulated("NOP", lambda insn: insn.opcode == 0x90 and not insn.rex & 1, _nop, "it does nothing"),
)
# FreeBSD's plans where they differ from the CPU: the plan, and how it differs.
_QUIRKS: Final[Mapping[str, tuple[_Planner, str]]] = {
    "LOOP": (partial(loop, quirks=True), "the count is tested before it is decremented; no prefix changes its size"),
    "JCXZ": (partial(jcxz, quirks=True), "no prefix changes the size of the count"),
    "CALL, indirect": (partial(indirect, call=True, quirks=True), "see JMP, indirect"),
    "JMP, indirect": (
        partial(indirect, call=False, quirks=True),
        (
            "an address with a SIB byte always has a displacement, from the next instruction where there is none; "
            "in 64-bit mode fs and gs have the bases of the GDT, 0"
        ),
    ),
}
_RELATIVE_NAME: Final = "COMMON, by a register"
_BY_REGISTER: Final = Row(
    _RELATIVE_NAME, "it uses an address relative to rip", _ISA, lambda insn: insn.relative_at is not None, _by_register
)
_BY_RAX: Final = replace(
    _BY_REGISTER,
    test=lambda insn: _taken_as_relative_at(insn) is not None,
    what=_by_rax,
    quirk="the register is rax or rcx, which the instruction may use although its ModRM byte does not name it; "
    "moves of control and debug registers are taken for relative",
)
_COMMON: Final = Row("COMMON", "it does the same at any address", _ISA, always, copy)
_MALFORMED: Final = Rule("MALFORMED", "the bytes are not an instruction", _ISA)


def _quirky(row: Row) -> Row:
    if row.name not in _QUIRKS:
        return row
    plan, quirk = _QUIRKS[row.name]
    return replace(row, what=emulate(plan), quirk=quirk)


def _exact(mode: Mode, *rows: Row) -> Table:
    return Table(mode, _MALFORMED, (*rows, _COMMON))


# It does not trace instructions that its disassembler cannot decode.
_UNKNOWN: Final = Rule("UNKNOWN", "the kernel's disassembler does not decode it", SOURCE)
_FREEBSD: Final = (*_FIRST, *map(_quirky, _KINDS))


def _freebsd(mode: Mode, *rows: Row) -> Table:
    return Table(mode, _UNKNOWN, (*_FREEBSD, *rows, _COMMON), read)


LONG_TABLES: Final = by_fidelity(
    _exact(LONG_MODE, *_FIRST, _APX, *_UNTRUSTWORTHY, *_KINDS, _BY_REGISTER),
    freebsd=_freebsd(LONG_MODE, _BY_RAX),
)
PROTECTED_TABLES: Final = by_fidelity(
    _exact(PROTECTED_MODE, _SYSTEM_CALL, *_FIRST, *_UNTRUSTWORTHY, _SHORT_ADDRESS, *_KINDS),
    freebsd=_freebsd(PROTECTED_MODE),
)


_INT3: Final = b"\xcc"
# Number of the exception that ends a copy (FreeBSD sys/x86/include/trap.h).
_T_DTRACE_RET: Final = 32
RETURN_TRAP: Final = bytes((0xCD, _T_DTRACE_RET))


def port(
    mode: Mode,
    tables: Mapping[Fidelity, Table],
    *,
    arguments: tuple[str, ...],
    late_arguments: tuple[str, ...],
    results: tuple[str, ...],
    chunk: Callable[[OutOfLine, int, int], bytes],
    second_copy: Callable[[OutOfLine], int],
    saved_offset: Callable[[OutOfLine], int] = lambda _move: 0,
) -> Port:
    """Return fasttrap in a mode, by its tables, registers and scratch code (`Port`)."""

    def treat(code: Code, fidelity: Fidelity) -> Decision:
        """Decide about an instruction (fasttrap_tracepoint_init)."""
        return tables[fidelity].decide(code)

    return Port(
        breakpoint=lambda _length: _INT3,
        longest=15,
        treat=treat,
        returns=partial(returns, mode=mode),
        boundaries=partial(boundaries, mode=mode),
        decoded=partial(decoded, mode=mode),
        arguments=arguments,
        late_arguments=late_arguments,
        stack_skip=1,
        results=results,
        chunk=chunk,
        copies=1,
        second_copy=second_copy,
        saved_offset=saved_offset,
        trap_offset=lambda move: second_copy(move) + len(move.code),
        always_steps=False,
        return_trap=_T_DTRACE_RET,
        return_trap_length=len(RETURN_TRAP),
    )
