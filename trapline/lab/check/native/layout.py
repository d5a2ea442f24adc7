"""The layout of the pinned Unicorn build's data for running translated blocks.

It is used only with that build (`emu.wheel.layout`). Offsets are those of the 2.1.4 wheel for Linux
on x86-64, read from the v2.1.4 source (qemu/accel/tcg/cpu-exec.c cpu_exec() and cpu_loop_exit(),
qemu/softmmu/cpus.c resume_all_vcpus(), uc.c uc_emu_start()) and found again in the library's code.
"""

from __future__ import annotations

from typing import Final

# struct uc_struct
UC_STOP_INTERRUPT: Final = 0xE0
UC_TCG: Final = 0x300
# The hook with which emu_start counts, while it exists.
UC_COUNT_HOOK: Final = 0x550
UC_COUNTER: Final = 0x558
UC_COUNT: Final = 0x560
UC_STOP_REQUEST: Final = 0x56D
UC_QUIT_REQUEST: Final = 0x56E
UC_DONE: Final = 0x56F
# The list of hooks for pages: its first link, which has the next link and a hook.
UC_FILL_HOOKS: Final = 0x4D8
UC_INVALID_ADDRESS: Final = 0x588
UC_INVALID_ERROR: Final = 0x590
# One buffer for each level of emu_start; the first is free, because no emu_start is running.
UC_JUMP_BUFFERS: Final = 0x7F8
UC_LEVEL: Final = 0x39F8
# struct hook: whether it is disabled; the function.
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
# CPUClass: the functions that QEMU calls before and after a run.
CLASS_ENTER: Final = 0x80
CLASS_EXIT: Final = 0x88
# TranslationBlock
BLOCK_PC: Final = 0x0
BLOCK_CODE: Final = 0x20
# The lowest bits of a block's result if it did not start because of a request to end.
NOT_BEGUN: Final = 3
# Exceptions with numbers from here on are not the guest's (EXCP_INTERRUPT).
OWN_EXCEPTIONS: Final = 0x10000
NO_EXCEPTION: Final = 0xFFFF_FFFF
# UC_ERR_EXCEPTION: the error after a refused page.
ERROR_EXCEPTION: Final = 21
# Bit of a block's flags for translation: where the CPU's cluster begins.
CLUSTER_SHIFT: Final = 24
