"""Known differences between the CPU below the guests and the judges, each a row of docs/unicorn.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    Known("what qemu-user tells of a signal", QEMU_JUDGED, _qemu_address),
)


def unexplained(isa: str, case: Case, judge: Result, guest: Result) -> dict[str, tuple[int, int]]:
    """Return the fields in which two results of a case differ for no known reason, with both values."""
    found = judge.differences(guest, case)
    if not found:
        return found
    ignored: dict[str, int] = {}
    for known in KNOWN:
        if isa in known.isas:
            for name, mask in known.explains(case, judge, guest).items():
                ignored[name] = ignored.get(name, 0) | mask
    return {name: pair for name, pair in found.items() if (pair[0] ^ pair[1]) & ~ignored.get(name, 0)}
