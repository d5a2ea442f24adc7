"""The differences between the CPUs of QEMU when translated blocks are run.

What is said of QEMU's functions is from its source in Unicorn 2.1.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from emu.engine.qemu.block_layout import BlockLayout
from emu.isa.base import Isa
from emu.isa.riscv64.registers import OFFSETS as RISCV
from emu.isa.x86 import unicorn as x86
from emu.isa.x86.registers import OFFSETS as X86
from emu.native.builder import Callee, Function
from emu.native.operations import Value, Word

# x86: the code segment's base, and the bits of rflags that a block depends on.
_X86_CS_BASE: Final = x86.SEGMENTS + x86.SEGMENT_SIZE + 8
_X86_RFLAGS_USED: Final = 0x73100
_X86_RIP: Final = X86["RIP"]
# RISC-V: the pc, and the field FS of mstatus.
_RISCV_PC: Final = RISCV["PC"]
_RISCV_FS: Final = 0x6000

# A block's pc, code segment base and flags, which are its key.
Key = tuple[Word, Word, Word]
# Returns one of QEMU's functions for this CPU, by its name and the number of its arguments.
Callees = Callable[[str, int], Callee]


def _x86_key(f: Function, env: Value, _function: Callees, _offsets: BlockLayout) -> Key:
    base = f.load(env, _X86_CS_BASE)
    flags = f.or_(f.and_(f.load(env, x86.FLAGS, 4), _X86_RFLAGS_USED), f.load(env, x86.HFLAGS, 4))
    return f.add(f.load(env, _X86_RIP), base), base, flags


def _aarch64_key(f: Function, env: Value, function: Callees, _offsets: BlockLayout) -> Key:
    room = f.buffer(32)
    f.store(room, 0, 16)
    f.call(function("cpu_get_tb_cpu_state", 4), env, room, f.add(room, 8), f.add(room, 16))
    return f.load(room), f.load(room, 8), f.load(room, 16, 4)


def _riscv_key(f: Function, env: Value, function: Callees, offsets: BlockLayout) -> Key:
    index = f.and_(f.call(function("riscv_cpu_mmu_index", 2), env, 0), 0xFFFF_FFFF)
    enabled = f.and_(f.call(function("riscv_cpu_fp_enabled", 1), env), 0xFF)
    status = f.and_(f.load(env, offsets.riscv_mstatus), _RISCV_FS)
    return f.load(env, _RISCV_PC), 0, f.or_(index, f.select(f.ne(enabled, 0), status, 0))


def _x86_start(f: Function, env: Value, address: Value) -> Value:
    """Take the code segment's base off a block's address, which is linear."""
    return f.sub(address, f.load(env, _X86_CS_BASE))


def _x86_before_hook(f: Function, env: Value, offsets: BlockLayout) -> None:
    with f.when(f.ne(f.load(env, x86.IS_INT, 4), 0)):
        f.store(env, f.load(env, offsets.x86_next_rip), _X86_RIP)


class Target(NamedTuple):
    """A CPU of QEMU."""

    ends: int
    """The number of the exception that ends an instruction and does no more: of an undefined one,
    on x86 of a division.  No provider claims it."""
    key: Callable[[Function, Value, Callees, BlockLayout], Key]
    """(function under construction, CPU state, QEMU's functions, offsets) -> what finds a block
    (cpu_get_tb_cpu_state)."""
    start: Callable[[Function, Value, Value], Value] = lambda _f, _env, address: address
    """(function under construction, CPU state, address of a block) -> the pc where it begins
    (synchronize_from_tb)."""
    before_hook: Callable[[Function, Value, BlockLayout], None] = lambda _f, _env, _offsets: None
    """Changes the pc as QEMU does before the hook of an exception."""
    enter: str = ""
    """The function that QEMU calls with the CPU before a run (cpu_exec_enter); "": none."""
    leave: str = ""
    """The one after a run (cpu_exec_exit)."""


# By QEMU's name of a CPU; i386's is x86-64's.
TARGETS: Final[dict[str, Target]] = {
    "x86_64": Target(0, _x86_key, _x86_start, _x86_before_hook, "x86_cpu_exec_enter", "x86_cpu_exec_exit"),
    "aarch64": Target(1, _aarch64_key),
    "riscv64": Target(2, _riscv_key),
}


def before_hook(f: Function, isa: Isa, env: Value, offsets: BlockLayout) -> None:
    """Change the pc as Unicorn does before it calls an exception's hook (cpu_handle_exception)."""
    TARGETS[isa.unicorn.target].before_hook(f, env, offsets)
    if isa.unicorn.pc_ahead:
        pc = 8 * isa.registers.slots[isa.registers.pc]
        f.store(env, f.add(f.load(env, pc), isa.unicorn.pc_ahead), pc)
