"""The layout of the pinned Unicorn build's data for running translated blocks.

`emu.engine.layout` checks that it is that build.  Offsets are those of the 2.1.4 wheel for Linux on
x86-64, read from the v2.1.4 source (qemu/accel/tcg/cpu-exec.c cpu_exec() and cpu_loop_exit(),
qemu/softmmu/cpus.c resume_all_vcpus(), uc.c uc_emu_start()) and found again in the library's code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.isa.base import Isa
from emu.isa.x86 import unicorn as x86
from emu.native.builder import Callee, Function
from emu.native.values import Value, Word

# struct uc_struct
UC_STOP_INTERRUPT: Final = 0xE0
UC_TCG: Final = 0x300
# The hook with which emu_start counts, while it is there.
UC_COUNT_HOOK: Final = 0x550
UC_COUNTER: Final = 0x558
UC_COUNT: Final = 0x560
UC_STOP_REQUEST: Final = 0x56D
UC_QUIT_REQUEST: Final = 0x56E
UC_DONE: Final = 0x56F
# The list of hooks that are asked for pages: its first link, which is the next link and a hook.
UC_FILL_HOOKS: Final = 0x4D8
UC_INVALID_ADDRESS: Final = 0x588
UC_INVALID_ERROR: Final = 0x590
# One buffer for each level of emu_start; the first is ours, since no emu_start is under way.
UC_JUMP_BUFFERS: Final = 0x7F8
UC_LEVEL: Final = 0x39F8
# struct hook: whether it is not called any more; what is called.
HOOK_OUT: Final = 0x14
HOOK_CALLBACK: Final = 0x28
# TCGContext
TCG_PROLOGUE: Final = 0x90
TCG_EPILOGUE: Final = 0x98
# CPUState
CPU_EXIT_REQUEST: Final = 0x15
CPU_INTERRUPTS: Final = 0x1C
# The address of icount_decr, whose upper half makes blocks end.
CPU_BUDGET: Final = 0x130
CPU_CLUSTER: Final = 0x8194
CPU_EXCEPTION: Final = 0x81A0
CPU_CAN_DO_IO: Final = 0x819C
CPU_CLASS: Final = 0x81B0
# CPUClass: what QEMU calls before a run and after it.
CLASS_ENTER: Final = 0x80
CLASS_EXIT: Final = 0x88
# TranslationBlock
BLOCK_PC: Final = 0x0
BLOCK_CODE: Final = 0x20
# What a block's code returns in the lowest bits if it was not begun: something has asked it to end.
NOT_BEGUN: Final = 3
# Exceptions from here on are not the guest's (EXCP_INTERRUPT).
OWN_EXCEPTIONS: Final = 0x10000
NO_EXCEPTION: Final = 0xFFFF_FFFF
# UC_ERR_EXCEPTION: what a refused page leaves.
ERROR_EXCEPTION: Final = 21
# Bit of a block's flags for translation: where the CPU's cluster begins.
CLUSTER_SHIFT: Final = 24

# x86: the code segment's base, rflags, and which of those a block depends on.
_X86_CS_BASE: Final = x86.SEGMENTS + x86.SEGMENT_SIZE + 8
_X86_RFLAGS: Final = 0x88
_X86_RFLAGS_USED: Final = 0x73100
_X86_RIP: Final = 0x80
_X86_NEXT_RIP: Final = 0x1510
_X86_IS_INT: Final = 0x150C
# RISC-V: mstatus, and its field FS.
_RISCV_PC: Final = 0x200
_RISCV_MSTATUS: Final = 0x270
_RISCV_FS: Final = 0x6000

# A block's pc, code segment base and flags, by which it is found.
Key = tuple[Word, Word, Word]


def _x86_key(f: Function, env: Value, _function: Callable[[str, int], Callee]) -> Key:
    base = f.load(env, _X86_CS_BASE)
    flags = f.or_(f.and_(f.load(env, _X86_RFLAGS, 4), _X86_RFLAGS_USED), f.load(env, x86.HFLAGS, 4))
    return f.add(f.load(env, _X86_RIP), base), base, flags


def _aarch64_key(f: Function, env: Value, function: Callable[[str, int], Callee]) -> Key:
    room = f.room(32)
    f.store(room, 0, 16)
    f.call(function("cpu_get_tb_cpu_state", 4), env, room, f.add(room, 8), f.add(room, 16))
    return f.load(room), f.load(room, 8), f.load(room, 16, 4)


def _riscv_key(f: Function, env: Value, function: Callable[[str, int], Callee]) -> Key:
    index = f.and_(f.call(function("riscv_cpu_mmu_index", 2), env, 0), 0xFFFF_FFFF)
    enabled = f.and_(f.call(function("riscv_cpu_fp_enabled", 1), env), 0xFF)
    status = f.and_(f.load(env, _RISCV_MSTATUS), _RISCV_FS)
    return f.load(env, _RISCV_PC), 0, f.or_(index, f.select(f.ne(enabled, 0), status, 0))


# QEMU's name of a CPU -> (function under construction, CPU state, QEMU's functions) -> what finds a block
# (cpu_get_tb_cpu_state).
KEYS: Final[dict[str, Callable[[Function, Value, Callable[[str, int], Callee]], Key]]] = {
    "x86_64": _x86_key,
    "aarch64": _aarch64_key,
    "riscv64": _riscv_key,
}


def before_hook(f: Function, isa: Isa, env: Value) -> None:
    """Do to the pc what Unicorn does before it calls an exception's hook (cpu_handle_exception)."""
    if isa.unicorn.target == "x86_64":
        with f.when(f.ne(f.load(env, _X86_IS_INT, 4), 0)):
            f.store(env, f.load(env, _X86_NEXT_RIP), _X86_RIP)
    if isa.unicorn.pc_ahead:
        pc = 8 * isa.registers.slots[isa.registers.pc]
        f.store(env, f.add(f.load(env, pc), isa.unicorn.pc_ahead), pc)
