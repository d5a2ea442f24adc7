"""The layout of Unicorn's data for running translated blocks.

`KNOWN`: the 2.1.4 wheel for Linux on x86-64, read from the v2.1.4 source (qemu/accel/tcg/cpu-exec.c
cpu_exec() and cpu_loop_exit(), qemu/softmmu/cpus.c resume_all_vcpus(), uc.c uc_emu_start()) and
found again in the library's code.  For another library experiments find it
(`emu.unicorn_layout.blocks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from emu.unicorn_layout.find import CalibrationError
from emu.unicorn_layout.layout import BLOCKS, further

KNOWN: Final[Mapping[str, int]] = {
    # struct uc_struct
    "UC_STOP_INTERRUPT": 0xE0,
    # With a count of instructions, emu_start has a hook that counts, and that stays afterwards.
    "UC_COUNTER": 0x558,
    "UC_COUNT": 0x560,
    "UC_STOP_REQUEST": 0x56D,
    "UC_QUIT_REQUEST": 0x56E,
    "UC_DONE": 0x56F,
    "UC_INVALID_ADDRESS": 0x588,
    "UC_INVALID_ERROR": 0x590,
    # One buffer for each level of emu_start; the first is free, because no emu_start is running.
    "UC_JUMP_BUFFERS": 0x7F8,
    "UC_LEVEL": 0x39F8,
    # struct hook: whether it is disabled.
    "HOOK_OUT": 0x14,
    # TCGContext
    "TCG_PROLOGUE": 0x90,
    "TCG_EPILOGUE": 0x98,
    # CPUState
    "CPU_EXIT_REQUEST": 0x15,
    # The address of icount_decr, whose upper half makes blocks end.
    "CPU_BUDGET": 0x130,
    "CPU_CLUSTER": 0x8194,
    # TranslationBlock
    "BLOCK_PC": 0x0,
    "BLOCK_CODE": 0x20,
    # CPUX86State: the address behind an instruction that raises an exception on purpose.
    "X86_NEXT_RIP": 0x1510,
    # CPURISCVState
    "RISCV_MSTATUS": 0x270,
}
# The lowest bits of a block's result if it did not start because of a request to end.
NOT_BEGUN: Final = 3
# Exceptions with numbers from here on are not the guest's (EXCP_INTERRUPT).
OWN_EXCEPTIONS: Final = 0x10000
NO_EXCEPTION: Final = 0xFFFF_FFFF
# UC_ERR_EXCEPTION: the error after a refused page.
ERROR_EXCEPTION: Final = 21
# Bit of a block's flags for translation: where the CPU's cluster begins.
CLUSTER_SHIFT: Final = 24


class BlockLayout(NamedTuple):
    """The offsets in bytes; the names are those of `KNOWN`."""

    uc_stop_interrupt: int
    uc_counter: int
    uc_count: int
    uc_stop_request: int
    uc_quit_request: int
    uc_done: int
    uc_invalid_address: int
    uc_invalid_error: int
    uc_jump_buffers: int
    uc_level: int
    hook_out: int
    tcg_prologue: int
    tcg_epilogue: int
    cpu_exit_request: int
    cpu_budget: int
    cpu_cluster: int
    block_pc: int
    block_code: int
    x86_next_rip: int
    riscv_mstatus: int


def offsets() -> Mapping[str, int]:
    """Return the offsets for this library by their names; none if they cannot be found."""
    return _found()[0]


def find() -> BlockLayout | None:
    """Return the layout of this library, None if it cannot be found."""
    found = offsets()
    return BlockLayout(**{name.lower(): offset for name, offset in found.items()}) if found else None


def reason() -> str:
    """Return why the layout cannot be found; "" if it can."""
    return _found()[1]


@cache
def _found() -> tuple[Mapping[str, int], str]:
    try:
        return further(BLOCKS, KNOWN), ""
    except CalibrationError as error:
        return {}, str(error)
