"""The experiments that find the state of Unicorn's x86 CPU, in both modes.

`emu.isa.x86.registers.KNOWN` names it.
"""

from __future__ import annotations

from typing import Final

import unicorn
from unicorn import x86_const as uc

from emu.unicorn_layout.bench import CODE, Bench, NotFoundError, RegisterRun, Subject, agreed, only, places

_SHORT: Final = 2
_INT: Final = 4
_WORD: Final = 8
# #GP, #DE, #DF
_PROTECTION, _DIVIDE, _DOUBLE = 13, 0, 8
# mov $selector,%ax    mov %ax,%ds: beyond the table's limit, which is 0.
_SELECTORS: Final = (0x1238, 0x2448)
_MOV_DS: Final = bytes.fromhex("8ed8")
# xor %ecx,%ecx    div %ecx
_DIVIDE_BY_ZERO: Final = bytes.fromhex("31c9f7f1")
_INT_41: Final = bytes.fromhex("cd41")
_INT3: Final = bytes.fromhex("cc")
_NOP: Final = bytes.fromhex("90")
_HLT: Final = bytes.fromhex("f4")
# 0/0 and 1/0: xorps %xmm0,%xmm0    divss %xmm0,%xmm0; xorps %xmm1,%xmm1    pcmpeqd %xmm0,%xmm0    psrld $25,%xmm0
# pslld $23,%xmm0    divss %xmm1,%xmm0.
_SSE_DIVISIONS: Final = (
    bytes.fromhex("0f57c0 f30f5ec0"),
    bytes.fromhex("0f57c9 660f76c0 660f72d019 660f72f017 f30f5ec1"),
)
# fldz    fldz    fdivp; fld1    fldz    fdivp.
_X87_DIVISIONS: Final = (bytes.fromhex("d9ee d9ee def9"), bytes.fromhex("d9e8 d9ee def9"))
_FXCH: Final = bytes.fromhex("d9c9")
# Instructions of two blocks, and the bytes of the context for translation that may have its counts.
_LENGTHS: Final = (20, 40)
_COUNTS: Final = 0x80
# fninit
_EMPTY_X87: Final = bytes.fromhex("dbe3")
# No exception, then invalid (1), and then divide by zero (4) as well (fpu/softfloat-types.h).
_ACCRUED: Final = (0, 1, 5)
# MSRs, by AMD's manual, volume 2, A.1.
_STAR, _LSTAR, _SFMASK = 0xC000_0081, 0xC000_0082, 0xC000_0084
_FS_BASE, _GS_BASE = 0xC000_0100, 0xC000_0101
# CR4.OSFXSR, and the bit of QEMU's hflags that repeats it; CR0.MP and its copy (target/i386/cpu.h, HF_*_SHIFT).
_OSFXSR: Final = (uc.UC_X86_REG_CR4, 1 << 9, 1 << 22)
_MONITOR: Final = (uc.UC_X86_REG_CR0, 1 << 1, 1 << 9)
# EFLAGS that QEMU does not compute lazily: IF, AC, ID; and the bit that is always set.
_FLAGS: Final = (1 << 9 | 1 << 21 | 2, 1 << 18 | 1 << 9 | 2)
# struct SegmentCache: selector, base, limit and flags; FS is the fifth.
_SEGMENT, _BASE, _FS = 24, 8, 4


def _subject(mode: int, general: tuple[int, ...], pc: int, values: tuple[int, int]) -> Subject:
    """Return the CPU in one of its modes: the ids of its general registers and of its pc."""
    return Subject(
        name="x86",
        architecture=unicorn.UC_ARCH_X86,
        mode=mode,
        target="x86_64",
        runs=(RegisterRun("REGS", general, values), RegisterRun("RIP", (pc,), (values[0] >> 1, values[1] >> 1))),
        traps=((_INT3, 3), (_INT_41, 0x41)),
        wait=_HLT,
        nop=_NOP,
        functions=("x86_cpu_do_interrupt_x86_64", "do_interrupt_x86_hardirq_x86_64"),
        experiments=_experiments,
        blocks=_blocks,
        block_functions=("x86_cpu_exec_enter_x86_64", "x86_cpu_exec_exit_x86_64"),
    )


def _experiments(bench: Bench) -> dict[str, int]:
    return {
        "CR2": bench.found("cr2", uc.UC_X86_REG_CR2, (0x7531_2468, 0x1357_8642)),
        "CR3": bench.found("cr3", uc.UC_X86_REG_CR3, (0x7531_2000, 0x1357_8000)),
        "CR4": _control(bench),
        "EFLAGS": _flags(bench),
        "HFLAGS": _hidden(bench),
        "SEGMENTS": _segments(bench),
        "STAR": _msr(bench, _STAR),
        "LSTAR": _msr(bench, _LSTAR),
        "SFMASK": _msr(bench, _SFMASK),
        "MXCSR": bench.found("mxcsr", uc.UC_X86_REG_MXCSR, (0x1FA5, 0x3F8A), _INT),
        "FPUS": bench.found("the x87 status word", uc.UC_X86_REG_FPSW, (0x0145, 0x4601), _SHORT),
        "FPUC": bench.found("the x87 control word", uc.UC_X86_REG_FPCW, (0x0F7F, 0x0B7E), _SHORT),
        "SSE_FLAGS": _accrued(bench, "SSE", _SSE_DIVISIONS),
        "X87_FLAGS": _accrued(bench, "x87", _X87_DIVISIONS),
        **_exceptions(bench),
        **_translated(bench),
    }


def _control(bench: Bench) -> int:
    """Find cr4 by two bits that have no other effect here: PCE, DE."""

    def fits(number: int) -> set[int]:
        value = (1 << 8 | 1 << 3, 1 << 3 | 1 << 2)[number]
        bench.uc.reg_write(uc.UC_X86_REG_CR4, value)
        return places(bench.env_bytes(), value, _WORD)

    return agreed("cr4", map(fits, (0, 1)))


def _flags(bench: Bench) -> int:
    """Find eflags, which has all flags but those of arithmetic."""

    def fits(number: int) -> set[int]:
        bench.uc.reg_write(uc.UC_X86_REG_EFLAGS, _FLAGS[number])
        return places(bench.env_bytes(), _FLAGS[number], _WORD)

    return agreed("eflags", map(fits, (0, 1)))


def _hidden(bench: Bench) -> int:
    """Find hflags, in which bits of control registers are repeated elsewhere."""

    def fits(number: int) -> set[int]:
        register, bit, copy = (_OSFXSR, _MONITOR)[number]
        old = int(bench.uc.reg_read(register)) & ~bit
        bench.uc.reg_write(register, old)
        before = bench.env_bytes()
        bench.uc.reg_write(register, old | bit)
        after = bench.env_bytes()
        return {
            at
            for at in range(0, len(before) - _INT, _INT)
            if int.from_bytes(before[at : at + _INT], "little") ^ int.from_bytes(after[at : at + _INT], "little")
            == copy
        }

    offset = agreed("hflags", map(fits, (0, 1)))
    if offset % _WORD:
        raise NotFoundError("hflags: it is not at a whole word")
    return offset


def _accrued(bench: Bench, unit: str, divisions: tuple[bytes, ...]) -> int:
    """Find where the operations of a unit accrue exceptions, by two divisions."""
    bench.uc.reg_write(_OSFXSR[0], int(bench.uc.reg_read(_OSFXSR[0])) | _OSFXSR[1])
    bench.run(_EMPTY_X87 + _HLT)
    contents = [bench.env_bytes()]
    for division in divisions:
        bench.run(division + _HLT)
        contents.append(bench.env_bytes())
    return only(
        f"the exceptions of {unit}", (at for at, row in enumerate(zip(*contents, strict=True)) if row == _ACCRUED)
    )


def _translated(bench: Bench) -> dict[str, int]:
    """Find the counts of a block's temporaries and operations, by blocks of two lengths.

    Each fxch keeps two temporaries; a nop is one operation.
    """
    context = bench.reader.word(bench.handle + bench.facts["UC_TCG"]) or 0

    def grown(code: bytes) -> list[int]:
        counts = []
        for number in _LENGTHS:
            bench.run(code * number + _HLT)
            counts.append(list(memoryview(bench.reader.read(context, _COUNTS)).cast("i")))
        return [after - before for before, after in zip(*counts, strict=True)]

    length = _LENGTHS[1] - _LENGTHS[0]
    grown_by = list(zip(grown(_FXCH), grown(_NOP), strict=True))
    return {
        "TCG_TEMPS": _INT * only("temporaries", (at for at, grew in enumerate(grown_by) if grew == (2 * length, 0))),
        "TCG_OPS": _INT
        * only("operations", (at for at, (x87, nop) in enumerate(grown_by) if x87 > 2 * length and nop == length)),
    }


def _segments(bench: Bench) -> int:
    """Find the segments by the bases of two of them; their selectors are before these."""
    fs, gs = _msr(bench, _FS_BASE), _msr(bench, _GS_BASE)
    if gs - fs != _SEGMENT:
        raise NotFoundError("the segments: they have another size")
    return fs - _BASE - _FS * _SEGMENT


def _msr(bench: Bench, number: int) -> int:
    def fits(experiment: int) -> set[int]:
        value = (0x0123_4567_0000_0000, 0x0765_4321_0000_0000)[experiment] + (number << 8)
        bench.uc.reg_write(uc.UC_X86_REG_MSR, (number, value))
        return places(bench.env_bytes(), value, _WORD)

    return agreed(f"MSR {number:#x}", map(fits, (0, 1)))


def _exceptions(bench: Bench) -> dict[str, int]:
    """Find what QEMU notes of an exception: its error code, whether `int` raised it, the last.

    No exception is delivered here, so two that contribute to a double fault become one.
    """
    fresh = bench.env_bytes()
    faults = [bench.trapped(_load_segment(selector)) for selector in _SELECTORS]
    if [fault.number for fault in faults] != [_PROTECTION, _DOUBLE]:
        raise NotFoundError("#GP: it does not become #DF")
    old = places(fresh, -1, _INT) & places(faults[0].env, _PROTECTION, _INT) & places(faults[1].env, _DOUBLE, _INT)
    previous = only("the exception before", old)
    bench.write(bench.env + previous, -1, _INT)
    divide = bench.trapped(_DIVIDE_BY_ZERO)
    if divide.number != _DIVIDE or previous not in places(divide.env, _DIVIDE, _INT):
        raise NotFoundError("the exception before: clearing it has no effect")
    errors = places(faults[0].env, _SELECTORS[0], _INT)
    by_int = places(faults[0].env, 0, _INT)
    for selector in _SELECTORS:
        bench.write(bench.env + previous, -1, _INT)
        fault = bench.trapped(_load_segment(selector))
        errors &= places(fault.env, selector, _INT)
        by_int &= places(fault.env, 0, _INT)
        for code in (_INT_41, _INT3):
            by_int &= places(bench.trapped(code).env, 1, _INT)
    bench.write(bench.env + previous, -1, _INT)
    return {
        "ERROR_CODE": only("the error code", errors),
        "IS_INT": only("whether int raised the exception", by_int),
        "OLD_EXCEPTION": previous,
    }


def _blocks(bench: Bench) -> dict[str, int]:
    """Find the address behind an instruction that raises an exception on purpose."""

    def fits(instruction: bytes, before: int) -> set[int]:
        seen = bench.trapped(_NOP * before + instruction)
        return places(seen.env, CODE + before + len(instruction), _WORD)

    found = set.intersection(*(fits(code, before) for code in (_INT3, _INT_41) for before in (0, 5)))
    # Unicorn puts the address into the pc before it calls the hook.
    return {"X86_NEXT_RIP": only("the address behind int", found - {bench.find_run(bench.subject.runs[-1])})}


def _load_segment(selector: int) -> bytes:
    """Return code that raises #GP with the selector: mov $0xabab....,%eax    mov %ax,%ds."""
    return b"\xb8" + (0xABAB_0000 | selector).to_bytes(_INT, "little") + _MOV_DS


def _general(prefix: str) -> tuple[int, ...]:
    """Return the ids of the first eight general registers, in the order of their encoding."""
    return tuple(getattr(uc, f"UC_X86_REG_{prefix}{name}") for name in ("AX", "CX", "DX", "BX", "SP", "BP", "SI", "DI"))


X86_64: Final = _subject(
    unicorn.UC_MODE_64,
    (*_general("R"), *(getattr(uc, f"UC_X86_REG_R{number}") for number in range(8, 16))),
    uc.UC_X86_REG_RIP,
    (0x5A5A_1234_5678_9AB0, 0x1B1B_0123_4567_8AB0),
)
I386: Final = _subject(unicorn.UC_MODE_32, _general("E"), uc.UC_X86_REG_EIP, (0x5A5A_9AB0, 0x1B1B_8AB0))
