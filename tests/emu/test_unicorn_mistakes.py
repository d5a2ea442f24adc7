"""The mistakes of Unicorn that Trapline works around, each shown on Unicorn alone.

A test that fails here is good news: this Unicorn does it right, and the workaround that
docs/unicorn.md names may go.
"""

from __future__ import annotations

import ctypes
import math
import re
import struct
from pathlib import Path

import pytest
import unicorn as uc
from unicorn import arm64_const as arm64
from unicorn import riscv_const as riscv
from unicorn import x86_const as x86

from emu.engine.qemu.temporaries import context
from emu.isa.x86.registers import OFFSETS

PAGE = Path(__file__).parents[2] / "docs" / "unicorn.md"
CODE, DATA, SIZE = 0x1000, 0x2000, 0x10000


def machine(cpu, code):
    """Return an engine with the code at CODE; `cpu` is "x86", "arm64" or "riscv"."""
    made = {
        "x86": (uc.UC_ARCH_X86, uc.UC_MODE_64),
        "arm64": (uc.UC_ARCH_ARM64, uc.UC_MODE_ARM),
        "riscv": (uc.UC_ARCH_RISCV, uc.UC_MODE_RISCV64),
    }[cpu]
    engine = uc.Uc(*made)
    engine.mem_map(0, SIZE)
    engine.mem_write(CODE, code)
    return engine


def words(*encodings):
    return struct.pack(f"<{len(encodings)}I", *encodings)


def run(engine, size):
    engine.emu_start(CODE, CODE + size)


def test_lock_is_skipped():
    engine = machine("x86", bytes.fromhex("f0 89 c3"))  # lock mov ebx, eax: #UD on a CPU
    engine.reg_write(x86.UC_X86_REG_EAX, 7)
    run(engine, 3)
    assert engine.reg_read(x86.UC_X86_REG_EBX) == 7


def test_ret_takes_a_signed_number_of_bytes():
    engine = machine("x86", bytes.fromhex("c2 00 80"))  # ret 0x8000
    engine.reg_write(x86.UC_X86_REG_RSP, DATA)
    engine.mem_write(DATA, struct.pack("<Q", CODE))
    engine.emu_start(CODE, CODE + 3, count=1)
    assert engine.reg_read(x86.UC_X86_REG_RSP) == (DATA + 8 - 0x8000) % (1 << 64)  # DATA + 8 + 0x8000 on a CPU


def test_a_block_that_cannot_be_fetched_is_not_begun():
    # inc eax, then the first byte of mov ebx, 0x04030201
    engine = machine("x86", b"")
    start = SIZE - 3
    engine.mem_write(start, bytes.fromhex("ff c0 bb"))
    with pytest.raises(uc.UcError):
        engine.emu_start(start, SIZE + 2)
    assert engine.reg_read(x86.UC_X86_REG_EAX) == 0  # 1 on a CPU
    assert engine.reg_read(x86.UC_X86_REG_RIP) == start  # start + 2


def test_avx_is_taken_for_sse():
    engine = machine("x86", bytes.fromhex("c5 f8 28 c1"))  # vmovaps xmm0, xmm1: #UD, as cpuid has no AVX
    engine.reg_write(x86.UC_X86_REG_XMM1, 5)
    run(engine, 4)
    assert engine.reg_read(x86.UC_X86_REG_XMM0) == 5


def test_cmpxchg_clears_half_of_rax():
    engine = machine("x86", bytes.fromhex("0f b1 0b"))  # cmpxchg [rbx], ecx
    engine.reg_write(x86.UC_X86_REG_RBX, DATA)
    engine.reg_write(x86.UC_X86_REG_RAX, 1 << 32)
    run(engine, 3)
    assert engine.reg_read(x86.UC_X86_REG_RAX) == 0  # 1 << 32 on a CPU


def test_load_acquire_may_be_misaligned():
    engine = machine("arm64", words(0x88DFFC01))  # ldar w1, [x0]
    engine.reg_write(arm64.UC_ARM64_REG_X0, DATA + 1)
    engine.mem_write(DATA + 1, b"\5")
    run(engine, 4)
    assert engine.reg_read(arm64.UC_ARM64_REG_X1) == 5  # an alignment fault on a CPU before Armv8.4


def risc_v_float(code, *operands):
    """Return ft0 after some code, whose operands are in ft1 and ft2."""
    engine = machine("riscv", code)
    engine.reg_write(riscv.UC_RISCV_REG_MSTATUS, 3 << 13)
    for register, value in zip((riscv.UC_RISCV_REG_F1, riscv.UC_RISCV_REG_F2), operands, strict=False):
        engine.reg_write(register, value)
    run(engine, len(code))
    return engine.reg_read(riscv.UC_RISCV_REG_F0)


def test_singles_are_not_boxed():
    (pattern,) = struct.unpack("<Q", struct.pack("<d", 1.5))
    assert risc_v_float(words(0x4010F053), pattern) == 0x3FC00000  # fcvt.s.d; 0xffffffff3fc00000 on a CPU


def test_the_smaller_of_a_signalling_nan_is_a_nan():
    signalling, one = 0x7FF0_0000_0000_0001, 0x3FF0_0000_0000_0000
    assert risc_v_float(words(0x2A208053), signalling, one) == 0x7FF8_0000_0000_0000  # fmin.d; 1.0 on a CPU


def test_movaps_may_be_misaligned():
    engine = machine("x86", bytes.fromhex("0f 28 03"))  # movaps xmm0, [rbx]
    engine.reg_write(x86.UC_X86_REG_RBX, DATA + 1)
    engine.mem_write(DATA + 1, b"\5")
    run(engine, 3)
    assert engine.reg_read(x86.UC_X86_REG_XMM0) == 5  # #GP on a CPU


def test_a_reciprocal_is_a_division():
    engine = machine("x86", bytes.fromhex("f3 0f 53 c1"))  # rcpss xmm0, xmm1
    engine.reg_write(x86.UC_X86_REG_XMM1, 0x40400000)  # 3.0
    run(engine, 4)
    # 1 / 3 by a division, which is inexact; a CPU takes 12 bits from a table, and accrues nothing
    assert engine.reg_read(x86.UC_X86_REG_XMM0) == 0x3EAAAAAB


def test_a_stepped_pause_has_no_exception():
    ends = []
    for code in ("90 ff c0 90", "f3 90 ff c0 90"):  # nop, or pause; inc eax; nop
        engine = machine("x86", bytes.fromhex(code))
        engine.reg_write(x86.UC_X86_REG_EFLAGS, engine.reg_read(x86.UC_X86_REG_EFLAGS) | 0x100)
        seen = []

        def took(engine, number, seen):
            seen.append((number, engine.reg_read(x86.UC_X86_REG_RIP), engine.reg_read(x86.UC_X86_REG_EAX)))
            engine.emu_stop()

        engine.hook_add(uc.UC_HOOK_INTR, took, seen)
        run(engine, 4)
        ends += seen[:1]
    assert ends == [(1, CODE + 1, 0), (1, CODE + 4, 1)]  # CODE + 2 and 0 on a CPU


def test_pc_of_a_trap_is_advanced_by_four():
    engine, seen = machine("riscv", words(0)), []  # c.unimp: two bytes

    def note(engine, number, _data):
        seen.append((number, engine.reg_read(riscv.UC_RISCV_REG_PC) - CODE))
        engine.emu_stop()

    engine.hook_add(uc.UC_HOOK_INTR, note)
    run(engine, 4)
    assert seen == [(2, 4)]


def test_a_handled_exception_still_counts():
    engine, seen = machine("x86", bytes.fromhex("31 c9 f7 f1 90 f7 f1 90")), []  # two divisions by zero

    def skip(engine, number, _data):
        seen.append(number)
        engine.reg_write(x86.UC_X86_REG_RIP, engine.reg_read(x86.UC_X86_REG_RIP) + 2)

    engine.hook_add(uc.UC_HOOK_INTR, skip)
    run(engine, 8)
    assert seen == [0, 8]  # the second one should be 0 as well, and not a double fault


@pytest.mark.parametrize(
    ("cpu", "code", "address", "result", "skipped"),
    [
        ("arm64", words(0xC85F7C01, 0xD4200000, 0xC8027C01), arm64.UC_ARM64_REG_X0, arm64.UC_ARM64_REG_X2, True),
        ("riscv", words(0x100535AF, 0x00000073, 0x18B5362F), riscv.UC_RISCV_REG_A0, riscv.UC_RISCV_REG_A2, False),
    ],
    ids=["arm64", "riscv"],
)
def test_a_trap_keeps_the_reservation(cpu, code, address, result, skipped):
    """Load-exclusive, a trap, store-exclusive: 0 is its success."""
    engine = machine(cpu, code)
    engine.reg_write(address, DATA)
    engine.reg_write(result, 9)

    def resume(engine, _number, _data):
        if skipped:
            engine.reg_write(arm64.UC_ARM64_REG_PC, CODE + 8)

    engine.hook_add(uc.UC_HOOK_INTR, resume)
    run(engine, 12)
    assert engine.reg_read(result) == 0


def test_written_code_runs_as_it_was():
    engine = machine("x86", bytes.fromhex("b8 01 00 00 00 eb 00 90 90"))  # mov eax, 1; jmp
    run(engine, 9)
    engine.mem_write(CODE + 1, b"\2")
    run(engine, 9)
    assert engine.reg_read(x86.UC_X86_REG_EAX) == 1


def test_a_store_through_another_mapping_is_not_noticed():
    # mov eax, 0; jmp, executed at CODE; its number is increased at DATA, the same memory, which cannot be executed
    engine = machine("x86", bytes.fromhex("b8 00 00 00 00 eb 00 90 90"))
    engine.mem_write(CODE + 0x100, bytes.fromhex("fe 04 25 01 20 00 00 eb 00 90 90"))
    engine.ctl_set_tlb_mode(uc.UC_TLB_VIRTUAL)

    def fill(_engine, address, _access, entry, _data):
        entry.paddr = CODE
        entry.perms = uc.UC_PROT_READ | (uc.UC_PROT_WRITE if address >= DATA else uc.UC_PROT_EXEC)
        return True

    engine.hook_add(uc.UC_HOOK_TLB_FILL, fill)
    for _ in range(3):
        engine.emu_start(CODE + 0x100, CODE + 0x10B)
        engine.emu_start(CODE, CODE + 9)
    assert engine.mem_read(CODE + 1, 1) == b"\3"
    assert engine.reg_read(x86.UC_X86_REG_EAX) == 1


@pytest.mark.parametrize(
    ("cpu", "block"),
    [
        ("x86", bytes.fromhex("90 eb 00")),  # nop; jmp to the next instruction
        ("arm64", words(0xD503201F, 0x14000001)),  # nop; b
        ("riscv", words(0x00000013, 0x0040006F)),  # nop; j
    ],
    ids=["x86", "arm64", "riscv"],
)
def test_code_that_a_hook_forgets_links_the_next_block_to_itself(cpu, block):
    engine, seen = machine(cpu, 4 * block), []

    def entered(_engine, address, _size, _data):
        seen.append((address - CODE) // len(block))
        if len(seen) == 1:
            engine.ctl_flush_tb()
        if len(seen) == 6:
            engine.emu_stop()

    engine.hook_add(uc.UC_HOOK_BLOCK, entered)
    run(engine, 4 * len(block))
    assert seen == [0, 1, 1, 1, 1, 1]


def test_a_hook_misses_translated_code():
    engine, seen = machine("x86", bytes.fromhex("b8 01 00 00 00 eb 00 90 90")), []
    run(engine, 9)
    engine.hook_add(uc.UC_HOOK_CODE, lambda _engine, address, _size, _data: seen.append(address))
    run(engine, 9)
    assert CODE not in seen


@pytest.mark.parametrize(
    ("cpu", "code", "register"),
    [
        ("x86", bytes.fromhex("0f 31 90"), x86.UC_X86_REG_RAX),  # rdtsc
        ("x86", bytes.fromhex("48 0f c7 f0"), x86.UC_X86_REG_RAX),  # rdrand rax
        ("arm64", words(0xD53BE040), arm64.UC_ARM64_REG_X0),  # mrs x0, cntvct_el0
        ("riscv", words(0xC0002573), riscv.UC_RISCV_REG_A0),  # rdcycle a0
    ],
    ids=["rdtsc", "rdrand", "cntvct_el0", "rdcycle"],
)
def test_the_host_answers(cpu, code, register):
    values = set()
    for _ in range(3):
        engine = machine(cpu, code)
        run(engine, len(code))
        values.add(engine.reg_read(register))
    assert len(values) > 1


def test_rdtime_is_illegal():
    engine, seen = machine("riscv", words(0xC0102573)), []

    def note(engine, number, _data):
        seen.append(number)
        engine.emu_stop()

    engine.hook_add(uc.UC_HOOK_INTR, note)
    run(engine, 4)
    assert seen == [2]


def test_a_fault_names_the_page():
    engine, seen = machine("x86", bytes.fromhex("48 8b 03")), []  # mov rax, [rbx]
    engine.ctl_set_tlb_mode(uc.UC_TLB_VIRTUAL)

    def fill(_engine, address, _access, result, _data):
        seen.append(address)
        result.paddr, result.perms = address, uc.UC_PROT_ALL
        return address < SIZE

    engine.hook_add(uc.UC_HOOK_TLB_FILL, fill)
    engine.reg_write(x86.UC_X86_REG_RBX, 0x5432101)
    with pytest.raises(uc.UcError):
        run(engine, 3)
    assert seen[-1] == 0x5432000


def test_icebp_is_unknown():
    engine = machine("x86", b"\xf1")
    with pytest.raises(uc.UcError, match="UC_ERR_INSN_INVALID"):
        run(engine, 1)


def test_a_software_interrupt_looks_like_an_exception():
    engine, seen = machine("x86", bytes.fromhex("cd 0e 90")), []  # int 14
    engine.hook_add(uc.UC_HOOK_INTR, lambda _engine, number, _data: seen.append(number))
    run(engine, 3)
    assert seen == [14]


def test_a_register_of_the_system_is_not_written_in_user_mode():
    engine = machine("riscv", words(0x13))
    engine.reg_write(riscv.UC_RISCV_REG_PRIV, 0)
    engine.reg_write(riscv.UC_RISCV_REG_STVEC, 0x4000)  # no error
    engine.reg_write(riscv.UC_RISCV_REG_PRIV, 3)
    assert engine.reg_read(riscv.UC_RISCV_REG_STVEC) == 0


def test_a_served_ebreak_ends_with_an_error():
    engine = machine("riscv", words(0x00100073, 0x13))

    def serve(engine, _data):
        engine.reg_write(riscv.UC_RISCV_REG_PC, CODE + 4)
        return True

    engine.hook_add(uc.UC_HOOK_INSN_INVALID, serve)
    with pytest.raises(uc.UcError, match="UC_ERR_EXCEPTION"):
        run(engine, 8)


def exceptions(code, register):
    """Run floating-point instructions of x86; return the exceptions that a status register shows."""
    engine = machine("x86", bytes.fromhex(code))
    engine.reg_write(x86.UC_X86_REG_CR4, 1 << 9)  # SSE is on
    engine.reg_write(x86.UC_X86_REG_FPCW, 0x37F)
    run(engine, len(bytes.fromhex(code)))
    return engine.reg_read(register) & 0x3F


def test_accrued_exceptions_are_not_shown():
    # 0 / 0: xorps %xmm0,%xmm0    divss %xmm0,%xmm0.
    assert exceptions("0f57c0 f30f5ec0", x86.UC_X86_REG_MXCSR) == 0
    assert exceptions("d9e8 d9eb def9", x86.UC_X86_REG_FPSW) == 0  # 1 / pi is inexact


def test_zero_by_zero_is_a_division_by_zero():
    assert exceptions("d9ee d9ee def9", x86.UC_X86_REG_FPSW) == 4  # a CPU: invalid


def test_the_x87_computes_with_double():
    # fldl (%rsi)    fldl (%rdi)    fprem    fstpl (%rdi): 70.3 and 0.3.
    engine = machine("x86", bytes.fromhex("dd06 dd07 d9f8 dd1f"))
    engine.reg_write(x86.UC_X86_REG_FPCW, 0x37F)
    engine.mem_write(DATA, struct.pack("<2d", 70.3, 0.3))
    engine.reg_write(x86.UC_X86_REG_RDI, DATA)
    engine.reg_write(x86.UC_X86_REG_RSI, DATA + 8)
    run(engine, 8)
    (found,) = struct.unpack("<d", engine.mem_read(DATA, 8))
    assert found != math.fmod(70.3, 0.3)
    assert abs(found - math.fmod(70.3, 0.3)) < 1e-14


def test_the_x87_keeps_temporaries():
    """More than 240 without a branch would end this process."""
    most = 200
    engine = machine("x86", bytes.fromhex("d9 c9") * most)  # fxch
    run(engine, 2 * most)
    assert ctypes.c_int32.from_address(context(engine._uch.value) + OFFSETS["TCG_TEMPS"]).value > 2 * most


def test_pstate_takes_no_effect():
    engine = machine("arm64", words(0xD5384240))  # mrs x0, CurrentEL: undefined in EL0
    engine.reg_write(arm64.UC_ARM64_REG_PSTATE, 0)
    run(engine, 4)
    assert engine.reg_read(arm64.UC_ARM64_REG_X0) == 4  # EL1


def test_a_context_has_no_accrued_exceptions():
    engine = machine("riscv", b"")
    engine.reg_write(riscv.UC_RISCV_REG_MSTATUS, 3 << 13)  # else there is no floating point
    engine.reg_write(riscv.UC_RISCV_REG_FCSR, 0)
    context = engine.context_save()
    engine.reg_write(riscv.UC_RISCV_REG_FCSR, 0xFF)
    engine.context_restore(context)
    assert engine.reg_read(riscv.UC_RISCV_REG_FCSR) & 0xFF == 0x1F  # the rounding mode is kept


def test_wfi_counts_twice():
    engine = machine("riscv", words(0x10500073, 0))
    engine.hook_add(uc.UC_HOOK_INTR, lambda engine, _number, _data: engine.emu_stop())
    run(engine, 8)
    assert engine.ctl_request_cache(CODE) == (CODE, 2, 4)  # two instructions in four bytes


def test_syscall_does_not_enter_the_kernel():
    engine = machine("x86", bytes.fromhex("0f 05 90"))
    engine.reg_write(x86.UC_X86_REG_RCX, 5)
    run(engine, 2)
    assert engine.reg_read(x86.UC_X86_REG_RCX) == 5  # a CPU puts the next pc there


def test_the_page_names_every_test():
    named = {
        name
        for name in re.findall(r"`(test_\w+)`", PAGE.read_text(encoding="utf-8"))
        if name != "test_unicorn_mistakes"
    }
    here = {name for name in globals() if name.startswith("test_")} - {"test_the_page_names_every_test"}
    assert named == here
