"""x86 in portable mode (`emu.engine.portable`): what the public calls do not reach, in either mode.

No call of Unicorn's changes the privilege level, or clears the mark of an exception that a hook has
served.  But a context has both: so the CPU is brought to each level once, by an `iret` over a
descriptor table of our own, and its contexts are kept.  To change the level, or to clear the mark,
every register that can be read is read, the kept context is restored, and they are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from unicorn import x86_const as uc

from emu.isa.unicorn_model import PAGE_ASIDE, PublicCpu
from emu.support.immutable import immutable

# The contexts that are kept.
USER: Final = "user"
_INITIAL: Final = "initial"
# The privilege level of programs.
_RING3: Final = 3
_SELECTORS_RING0: Final = (0x08, 0x10)
# Entries of eight bytes of the descriptor table.
_ENTRIES: Final = 16
_FLAT: Final = 0xF_FFFF
_PRESENT, _NOT_SYSTEM, _CODE, _WRITABLE_ACCESSED = 0x80, 0x10, 0x0B, 0x03
_PAGES, _WIDE, _LONG = 8, 4, 2
_DESCRIPTOR: Final = 8
# Places in the page aside.
_IRET: Final = PAGE_ASIDE + 0x400
_LANDING: Final = PAGE_ASIDE + 0x500
_STACK: Final = PAGE_ASIDE + 0x800
_FLAGS: Final = 0x202
# LOCK, and a bit test of a register (`emu.isa.x86.emulated`).
FATAL: Final = re.compile(
    rb"(?=(?:[\x26\x2e\x36\x3e\x40-\x4f\x64-\x67\xf2\xf3]*\xf0[\x26\x2e\x36\x3e\x40-\x4f\x64-\x67\xf0\xf2\xf3]*)"
    rb"\x0f[\xa3\xab\xb3\xbb\xba][\xc0-\xff])"
)
# Exceptions after which another one is a double fault (Intel SDM volume 3, table 6-5).
_CONTRIBUTORY: Final = frozenset({0, 10, 11, 12, 13, 14})
# Model-specific registers: EFER; then STAR, LSTAR, SFMASK, KERNEL_GS_BASE.
EFER: Final = (0xC000_0080,)
_MSRS: Final = (*EFER, 0xC000_0081, 0xC000_0082, 0xC000_0084, 0xC000_0102)


@immutable
class Mode:
    """What differs between 64 and 32 bits."""

    word: int
    iret: bytes
    code: int
    """The selector of programs' code."""
    stack: int
    """The selector of programs' stack, and of their data where the CPU has them in segments."""
    sp: int
    """Unicorn's number of the stack pointer; `flags` and `pc` are such numbers, too."""
    flags: int
    pc: int
    carried: tuple[int, ...]
    """The registers that do not depend on the level, the pc last."""
    kernel_start: int
    """The lowest address of a kernel."""
    data: tuple[int, ...] = ()
    """The segment registers for data."""
    more: tuple[int, ...] = ()
    """The segment registers beside those of code and stack."""
    msrs: tuple[int, ...] = _MSRS


# The registers that both modes have under one number.
COMMON: Final = (
    uc.UC_X86_REG_CR4, uc.UC_X86_REG_CR3, uc.UC_X86_REG_CR0, uc.UC_X86_REG_CR2, uc.UC_X86_REG_GDTR,
    uc.UC_X86_REG_IDTR, uc.UC_X86_REG_LDTR, uc.UC_X86_REG_TR, *range(uc.UC_X86_REG_FP0, uc.UC_X86_REG_FP7 + 1),
    uc.UC_X86_REG_FPSW, uc.UC_X86_REG_FPCW, uc.UC_X86_REG_FPTAG, uc.UC_X86_REG_MXCSR,
)  # fmt: skip


def descriptor(*, code: bool, level: int, base: int = 0, long: bool = False) -> bytes:
    """Return an entry of a descriptor table: a flat segment (Intel SDM volume 3, 3.4.5)."""
    access = _PRESENT | level << 5 | _NOT_SYSTEM | (_CODE if code else _WRITABLE_ACCESSED)
    flags = _PAGES | (_LONG if long else _WIDE)
    low = _FLAT & 0xFFFF | (base & 0xFF_FFFF) << 16 | access << 40
    return (low | (_FLAT >> 16) << 48 | flags << 52 | (base >> 24) << 56).to_bytes(_DESCRIPTOR, "little")


def prepare(cpu: PublicCpu, mode: Mode) -> None:
    """Bring the CPU to the level of programs, keep that context, and return."""
    cpu.keep(_INITIAL)
    cpu.aside(lambda write: _descend(cpu, mode, write))
    cpu.go_back(_INITIAL)


def _descend(cpu: PublicCpu, mode: Mode, write: Any) -> None:
    long = not mode.data
    ring0_code, ring0_stack = _SELECTORS_RING0
    for selector, code, level in (
        (ring0_code, True, 0), (ring0_stack, False, 0), (mode.code, True, _RING3), (mode.stack, False, _RING3),
    ):  # fmt: skip
        write(PAGE_ASIDE + (selector & -_DESCRIPTOR), descriptor(code=code, level=level, long=long and code))
    write(_IRET, mode.iret)
    frame = (_LANDING, mode.code, _FLAGS, _STACK, mode.stack)
    write(_STACK, b"".join(word.to_bytes(mode.word, "little") for word in frame))
    cpu.write_public(uc.UC_X86_REG_GDTR, (0, PAGE_ASIDE, _ENTRIES * _DESCRIPTOR - 1, 0))
    for segment in mode.data and (uc.UC_X86_REG_SS, *mode.data):
        cpu.write_public(segment, ring0_stack)
    if mode.data:
        cpu.write_public(uc.UC_X86_REG_CS, ring0_code)
    cpu.write_public(mode.sp, _STACK)
    cpu.run_between(_IRET, _LANDING)
    for segment in mode.data:
        cpu.write_public(segment, mode.stack)
    cpu.write_public(uc.UC_X86_REG_GDTR, (0, 0, 0, 0))
    cpu.keep(USER)


def change(cpu: PublicCpu, mode: Mode, context: str) -> None:
    """Exchange what no call reaches for that of a kept context."""
    values = [(number, cpu.read_any(number)) for number in mode.carried]
    msrs = [(number, cpu.read_any((uc.UC_X86_REG_MSR, number))) for number in mode.msrs]
    cpu.go_back(context)
    for number, value in msrs:
        cpu.write_public(uc.UC_X86_REG_MSR, (number, value))
    for number, value in values:
        cpu.write_public(number, value)


def change_to_kernel(cpu: PublicCpu, mode: Mode, code: int, stack: int) -> None:
    """Bring the CPU to the kernel's level, with these selectors; no exception is marked then."""
    data = [(number, cpu.read_public(number)) for number in (*mode.data, *mode.more)]
    change(cpu, mode, _INITIAL)
    cpu.write_public(uc.UC_X86_REG_CS, code)
    cpu.write_public(uc.UC_X86_REG_SS, stack)
    for number, selector in data:
        cpu.write_public(number, selector)


def level(cpu: PublicCpu) -> int:
    """Return the privilege level."""
    return cpu.read_public(uc.UC_X86_REG_CS) & _RING3


def set_level(cpu: PublicCpu, value: int, mode: Mode) -> None:
    """Bring the CPU to the privilege level that the lowest bits of QEMU's hflags say."""
    if value & _RING3 == _RING3 != level(cpu):
        change(cpu, mode, USER)


def keep_selector(_cpu: PublicCpu, _value: int) -> None:
    """Leave a selector as it is: the kept context has the one that Linux gives programs."""


def handled(cpu: PublicCpu, number: int, mode: Mode) -> None:
    """Clear the mark of an exception, if the next one would be a double fault."""
    if number in _CONTRIBUTORY and level(cpu) == _RING3:
        change(cpu, mode, USER)


def vectors(count: int) -> Iterator[int]:
    """Return Unicorn's numbers of so many vector registers."""
    return iter(range(uc.UC_X86_REG_XMM0, uc.UC_X86_REG_XMM0 + count))
