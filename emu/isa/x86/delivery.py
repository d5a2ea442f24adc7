"""The delivery of exceptions and interrupts on x86, by public calls.

Source: Intel SDM volume 3, chapter 6 (6.12 and 6.14 for long mode), 7.7 and 7.2.1 (TSS), and volume
2, SYSCALL.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from unicorn import x86_const as uc

from emu.isa.unicorn_model import PublicCpu
from emu.isa.x86.instruction import LOCK, PREFIXES
from emu.isa.x86.public import Mode, change_to_kernel, level
from emu.isa.x86.unicorn import GENERAL_PROTECTION, INT, INVALID_OPCODE

_PAGE_FAULT: Final = 14
_WITH_ERROR: Final = frozenset({8, 10, 11, 12, GENERAL_PROTECTION, _PAGE_FAULT, 17})
_CLOCK: Final = 32
_RING3: Final = 3
_LONGEST: Final = 15
_PAGE: Final = 4096
# Error code of a page fault: the page was present; a write; of user mode; a fetch.
_PRESENT, _WRITE, _USER, _FETCH = 1, 2, 4, 16
# Error code of an `int` that is not permitted: the entry is of the interrupt table.
_IN_TABLE: Final = 2
# Flags: TF, IF, NT, RF, VM.
_TRAP, _INTERRUPTS, _CLEARED = 1 << 8, 1 << 9, 1 << 14 | 1 << 16 | 1 << 17
_INTERRUPT_GATE: Final = 0xE
# UC_PROT_READ.
_READS: Final = 1
_REX: Final = 0x40
# xchg with memory.
_EXCHANGES: Final = frozenset({b"\x86", b"\x87"})
# EFER.NXE, with which a fault tells fetches.
_EFER: Final = 0xC000_0080
_NXE: Final = 1 << 11
_MSR_STAR, _MSR_LSTAR, _MSR_SFMASK = 0xC000_0081, 0xC000_0082, 0xC000_0084
_SELECTOR: Final = 0xFFFC
_SYSCALL_LENGTH: Final = 2


class _Gate(NamedTuple):
    """An entry of the interrupt table."""

    address: int
    selector: int
    kind: int
    level: int
    stack: int
    """The number of a stack of the interrupt stack table; 0: none."""


def deliver(cpu: PublicCpu, number: int, mode: Mode) -> None:
    """Deliver an exception to the guest's own vector.  Raises `BadAddressError`."""
    vector = INVALID_OPCODE if number < 0 else number
    error = 0
    if vector == _PAGE_FAULT:
        error = _page_fault(cpu, mode)
    elif cpu.before(2) == bytes((INT, vector & 0xFF)) and level(cpu) > _gate(cpu, vector, mode).level:
        cpu.write_public(mode.pc, cpu.read_public(mode.pc) - 2)
        vector, error = GENERAL_PROTECTION, vector * 8 | _IN_TABLE
    _enter(cpu, vector, error if vector in _WITH_ERROR else None, mode)


def interrupt(cpu: PublicCpu, mode: Mode) -> None:
    """Deliver the clock interrupt.  Raises `BadAddressError`."""
    _enter(cpu, _CLOCK, None, mode)


def _page_fault(cpu: PublicCpu, mode: Mode) -> int:
    """Return the error code of a page fault, whose address is in cr2."""
    address, pc = cpu.read_public(uc.UC_X86_REG_CR2), cpu.pc_word.value
    error = _USER if level(cpu) == _RING3 else 0
    if cpu.present(address):
        error |= _PRESENT
    told = cpu.told_at(address)
    fetched = 0 <= address - pc < _LONGEST and (address == pc or not address % _PAGE)
    if not cpu.present(pc) or (fetched and not told):
        tells = cpu.read_any((uc.UC_X86_REG_MSR, _EFER)) & _NXE
        return error | (_FETCH if tells else 0)
    # A page that is present refuses a write, or it is the kernel's.
    denied = error & _PRESENT and not (error & _USER and address >= mode.kernel_start)
    return error | (_WRITE if denied or not told & _READS or _is_atomic(cpu.code()) else 0)


def _is_atomic(code: bytes) -> bool:
    """Return whether an instruction reads and writes at once: the fault is that of a write."""
    at = 0
    while at < len(code) and (code[at] in PREFIXES or code[at] & 0xF0 == _REX):
        at += 1
    return LOCK in code[:at] or code[at : at + 1] in _EXCHANGES


def _gate(cpu: PublicCpu, vector: int, mode: Mode) -> _Gate:
    """Return an entry of the interrupt table."""
    _, base, _, _ = cpu.read_any(uc.UC_X86_REG_IDTR)
    place = base + 2 * mode.word * vector
    low = cpu.load(place, 8)
    address = low & 0xFFFF | low >> 32 & 0xFFFF_0000
    if mode.word == 8:
        address |= cpu.load(place + 8, 4) << 32
    access = low >> 40
    return _Gate(address, low >> 16 & 0xFFFF, access & 0xF, access >> 5 & 3, low >> 32 & 7 if mode.word == 8 else 0)


def _enter(cpu: PublicCpu, vector: int, error: int | None, mode: Mode) -> None:
    gate = _gate(cpu, vector, mode)
    before = level(cpu)
    pc, sp, flags = (cpu.read_public(number) for number in (mode.pc, mode.sp, mode.flags))
    code, stack = cpu.read_public(uc.UC_X86_REG_CS), cpu.read_public(uc.UC_X86_REG_SS)
    new_sp, new_stack = _stack(cpu, gate, before, sp, stack, mode)
    frame = [flags, code, pc] if error is None else [flags, code, pc, error]
    if before == _RING3 or mode.word == 8:
        frame = [stack, sp, *frame]
    if mode.word == 8:
        new_sp &= -16
    for word in frame:
        new_sp -= mode.word
        cpu.store(new_sp, mode.word, word)
    change_to_kernel(cpu, mode, gate.selector, new_stack)
    cpu.write_public(mode.sp, new_sp)
    cleared = _TRAP | _CLEARED | (_INTERRUPTS if gate.kind == _INTERRUPT_GATE else 0)
    cpu.write_public(mode.flags, flags & ~cleared)
    cpu.write_public(mode.pc, gate.address)


def _stack(cpu: PublicCpu, gate: _Gate, before: int, sp: int, stack: int, mode: Mode) -> tuple[int, int]:
    """Return the stack pointer of a vector, and the selector of its stack."""
    _, tss, _, _ = cpu.read_any(uc.UC_X86_REG_TR)
    if gate.stack:
        return cpu.load(tss + 0x24 + 8 * (gate.stack - 1), 8), 0 if before == _RING3 else stack
    if before != _RING3:
        return sp, stack
    if mode.word == 8:
        return cpu.load(tss + 4, 8), 0
    return cpu.load(tss + 4, 4), cpu.load(tss + 8, 2)


def system_call(cpu: PublicCpu, mode: Mode) -> None:
    """Do what SYSCALL does; QEMU adds the instruction's length to rip afterwards."""
    star, entry, mask = (cpu.read_any((uc.UC_X86_REG_MSR, number)) for number in (_MSR_STAR, _MSR_LSTAR, _MSR_SFMASK))
    pc, flags = cpu.read_public(mode.pc), cpu.read_public(mode.flags)
    selector = star >> 32 & _SELECTOR
    change_to_kernel(cpu, mode, selector, selector + 8)
    cpu.write_public(uc.UC_X86_REG_RCX, pc + _SYSCALL_LENGTH)
    cpu.write_public(uc.UC_X86_REG_R11, flags)
    cpu.write_public(mode.flags, flags & ~mask)
    cpu.write_public(mode.pc, entry - _SYSCALL_LENGTH)
