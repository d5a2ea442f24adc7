"""Known differences between the CPU below the guests and the judges, each a row of docs/unicorn.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.fuzz.judge.case import Case, Result

_ALL: Final = (1 << 64) - 1
# Parts of `Result.control` on x86: mxcsr, the x87's control word, its status word.
_STATUS: Final = 0xFFFF << 48
_C1: Final = 0x0200 << 48
_TOP: Final = 0x3800 << 48
_STACK_FAULT: Final = 0x0041 << 48
_DENORMAL: Final = 0x2
_TAGS: Final = 0xFF << 32
_AF, _SF, _OF = 0x10, 0x80, 0x800
_SIGILL, _SIGBUS, _SIGSEGV = 4, 7, 11
# The words of the x87's registers in `Result.vectors`.
_X87: Final = {f"vectors[{index}]": _ALL for index in range(32, 48)}
_EXPONENTS: Final = {f"vectors[{index}]": 0xFFFF for index in range(33, 48, 2)}
X86: Final = ("x86_64", "i386")
QEMU_JUDGED: Final = ("aarch64", "riscv64")

Masks = Mapping[str, int]
_NONE: Final[Masks] = {}


@dataclass(frozen=True)
class Known:
    """One kind of difference: where it is, and the bits of fields that it explains."""

    name: str
    """As in docs/unicorn.md."""
    isas: tuple[str, ...]
    explains: Callable[[Case, Result, Result], Masks]
    """(case, the judge's result, the guest's) -> the bits of each field that may differ."""


def _named(*names: str) -> Callable[[Case], bool]:
    def has(case: Case) -> bool:
        return any(name.split()[-1].startswith(names) for name in case.mnemonics)

    return has


_FAULTS: Final = {_SIGBUS, _SIGSEGV}
_SI_KERNEL: Final = 0x80
_ARITHMETIC: Final = 0x8D5
_RETURN, _ESCAPE, _OPERAND_SIZE, _REX = 0xC2, 0x0F, 0x66, 4
_REPEATS: Final = {0xF2, 0xF3}
_SEGMENTS: Final = {0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65}
# From here on a 64-bit kernel keeps the stack and the vdso of a 32-bit program.
_LAST_MAPPINGS, _LAST_OF_GUEST = 0xFF00_0000, 0xBF00_0000
_INVALID_OR_DENORMAL: Final = 0x83 << 48
_EVERYTHING: Final = {
    **dict.fromkeys(("signal", "code", "address", "data", "text", "pc", "control", "flags"), _ALL),
    **{f"general[{index}]": _ALL for index in range(16)},
    **{f"vectors[{index}]": _ALL for index in range(48)},
}
_returns, _enters, _x87 = _named("ret"), _named("enter"), _named("f")
_sse_compares, _cache, _decimals = _named("cmp"), _named("clflush"), _named("fbst")
_flags_in_ah, _from_memory = _named("lahf", "sahf"), _named("cvtpi2p")
_ssse3 = _named("pshufb", "ph", "pmadd", "psign", "pabs", "pmulhrsw", "palignr")
_tests, _stores = _named("test"), _named("fst", "fstp", "fstpnce", "fxch", "ffree")
_two_operands, _masked = _named("movs", "cmps"), _named("maskmov")
_emms, _compares = _named("emms"), _named("fcomi", "fucomi", "fcompi", "fucompi")


def _c1(_case: Case, _judge: Result, _guest: Result) -> Masks:
    return {"control": _C1}


def _stack_fault(_case: Case, judge: Result, _guest: Result) -> Masks:
    if judge.control & _STACK_FAULT != _STACK_FAULT:
        return _NONE
    return {"control": _STATUS, "flags": _TAGS | 0xFFF, "data": _ALL, "text": _ALL, "general[0]": 0xFFFF, **_X87}


def _fault(_case: Case, judge: Result, guest: Result) -> Masks:
    if not {judge.signal, guest.signal} & {_SIGILL, _SIGBUS, _SIGSEGV}:
        return _NONE
    return {"control": _STATUS, "flags": _TAGS, **_X87}


def _exponents(_case: Case, judge: Result, _guest: Result) -> Masks:
    return {field: mask for field, mask in _EXPONENTS.items() if judge.vectors[int(field[8:-1])] & mask == mask}


def _empty(case: Case, _judge: Result, _guest: Result) -> Masks:
    return {"control": _TOP, **_X87} if _emms(case) else _NONE


def _denormals(_case: Case, _judge: Result, _guest: Result) -> Masks:
    return {"control": _DENORMAL}


def _compared(case: Case, _judge: Result, _guest: Result) -> Masks:
    return {"flags": _AF | _SF | _OF} if _compares(case) else _NONE


def _both_fault(judge: Result, guest: Result) -> bool:
    return judge.signal in _FAULTS and guest.signal in _FAULTS


def _flags_at_fault(_case: Case, judge: Result, guest: Result) -> Masks:
    return {"flags": _ARITHMETIC} if _both_fault(judge, guest) else _NONE


def _far_target(_case: Case, judge: Result, guest: Result) -> Masks:
    if not _both_fault(judge, guest) or guest.pc + (1 << 47) & _ALL < 1 << 48:
        return _NONE
    return {"pc": _ALL, "general[4]": _ALL}


def _large_return(case: Case, _judge: Result, _guest: Result) -> Masks:
    if not _returns(case) or not any(
        case.code[at] == _RETURN and case.code[at + 2] & 0x80 for at in range(len(case.code) - 2)
    ):
        return _NONE
    return {"general[4]": _ALL, "pc": _ALL}


def _segments(case: Case, judge: Result, _guest: Result) -> Masks:
    protected = judge.signal in _FAULTS and judge.code == _SI_KERNEL
    return _EVERYTHING if protected and set(case.code) & _SEGMENTS else _NONE


def _own_mappings(_case: Case, judge: Result, guest: Result) -> Masks:
    theirs = guest.signal in _FAULTS and guest.address >= _LAST_MAPPINGS
    ours = judge.signal in _FAULTS and judge.address >= _LAST_OF_GUEST and guest.address != judge.address
    return _EVERYTHING if theirs or ours else _NONE


def _frame(case: Case, judge: Result, guest: Result) -> Masks:
    return _EVERYTHING if _enters(case) and {judge.signal, guest.signal} & _FAULTS else _NONE


def _predicates(case: Case, _judge: Result, guest: Result) -> Masks:
    return _EVERYTHING if guest.signal == _SIGILL and _sse_compares(case) else _NONE


def _together(case: Case, judge: Result, _guest: Result) -> Masks:
    bytes_ = set(case.code)
    marks = len(bytes_ & {*_REPEATS, _OPERAND_SIZE}) if _ESCAPE in bytes_ else 0
    return _EVERYTHING if marks > 1 or (marks and judge.signal == _SIGILL) else _NONE


def _extended_registers(case: Case, _judge: Result, _guest: Result) -> Masks:
    rex = any(byte >> 4 == _REX for byte in case.code)
    return _EVERYTHING if rex and (_flags_in_ah(case) or _ssse3(case)) else _NONE


def _flushes(case: Case, judge: Result, _guest: Result) -> Masks:
    return _EVERYTHING if _cache(case) and judge.signal in _FAULTS else _NONE


def _converted(case: Case, _judge: Result, _guest: Result) -> Masks:
    return {"control": _TOP, "flags": _TAGS, **_X87} if _from_memory(case) else _NONE


def _unsupported(case: Case, judge: Result, guest: Result) -> Masks:
    if not _x87(case) or not (judge.control ^ guest.control) & _INVALID_OR_DENORMAL:
        return _NONE
    return {"control": _STATUS, "data": _ALL, "flags": _ARITHMETIC if _compares(case) else 0, **_X87}


def _decimal(case: Case, _judge: Result, _guest: Result) -> Masks:
    return {"data": _ALL, "control": _STATUS} if _decimals(case) else _NONE


def _alias(case: Case, _judge: Result, guest: Result) -> Masks:
    return _EVERYTHING if guest.signal == _SIGILL and _tests(case) else _NONE


def _first_of_two(case: Case, judge: Result, guest: Result) -> Masks:
    if _masked(case):
        return _EVERYTHING
    return {"address": _ALL, "code": _ALL} if _both_fault(judge, guest) and _two_operands(case) else _NONE


def _tags_of_stores(case: Case, _judge: Result, _guest: Result) -> Masks:
    return {"flags": _TAGS, "data": _ALL, **_X87} if _stores(case) else _NONE


def _qemu_address(_case: Case, judge: Result, guest: Result) -> Masks:
    """Return what qemu-user tells about a signal in another way than Linux does on these ISAs."""
    if judge.signal == guest.signal == _SIGILL:
        return {"code": _ALL}
    return {"address": _ALL} if judge.signal == guest.signal == _SIGSEGV and not judge.address else _NONE


KNOWN: Final = (
    Known("x87 rounding direction", X86, _c1),
    Known("x87 stack faults", X86, _stack_fault),
    Known("x87 state behind a fault", X86, _fault),
    Known("MMX exponents", X86, _exponents),
    Known("emms and TOP", X86, _empty),
    Known("SSE denormal flag", X86, _denormals),
    Known("flags behind fcomi", X86, _compared),
    Known("flags at a fault", X86, _flags_at_fault),
    Known("jumps to where no code can be", X86, _far_target),
    Known("ret with 0x8000 bytes or more", X86, _large_return),
    Known("segments of 32-bit programs", ("i386",), _segments),
    Known("the judge's own mappings", ("i386",), _own_mappings),
    Known("frames of enter", X86, _frame),
    Known("predicates above 7", X86, _predicates),
    Known("prefixes together", X86, _together),
    Known("REX where it has no meaning", ("x86_64",), _extended_registers),
    Known("clflush of nothing", X86, _flushes),
    Known("cvtpi2ps of memory", X86, _converted),
    Known("unsupported numbers of the x87", X86, _unsupported),
    Known("decimals that do not fit", X86, _decimal),
    Known("test by its second encoding", X86, _alias),
    Known("the first of two operands", X86, _first_of_two),
    Known("tags of stored registers", X86, _tags_of_stores),
    Known("what qemu-user tells of a signal", QEMU_JUDGED, _qemu_address),
)


def unexplained(
    isa: str, case: Case, judge: Result, guest: Result, rows: Sequence[Known] = KNOWN
) -> dict[str, tuple[int, int]]:
    """Return the fields in which two results of a case differ for no known reason, with both values."""
    found = judge.differences(guest, case)
    if not found:
        return found
    ignored: dict[str, int] = {}
    for known in rows:
        if isa in known.isas:
            for name, mask in known.explains(case, judge, guest).items():
                ignored[name] = ignored.get(name, 0) | mask
    return {name: pair for name, pair in found.items() if (pair[0] ^ pair[1]) & ~ignored.get(name, 0)}
