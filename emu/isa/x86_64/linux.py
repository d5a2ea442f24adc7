"""Linux on x86-64 (arch/x86/include/uapi/asm)."""

from __future__ import annotations

import struct
from typing import Final

from emu.isa.disassembly import CS_MODE_64
from emu.isa.linux_abi import (
    BLOCK,
    READ_IMPLIES_EXEC,
    FileStatus,
    LinuxAbi,
    OpenFlags,
    PersonalityRules,
    SignalFrame,
    blocks,
    times,
)
from emu.isa.x86.cpuid import FEATURES
from emu.isa.x86.linux import (
    CLEARED,
    FAULTS,
    FLAGS,
    FLOATING_POINT,
    USER,
    USER_DATA,
    Loads,
    exception,
    frame_state,
    page_fault,
    raised,
)
from emu.isa.x86.unicorn import BREAKPOINT
from emu.isa.x86_64.elf import ELF
from emu.isa.x86_64.linux_calls import CALLS
from emu.isa.x86_64.registers import GENERAL
from emu.isa.x86_64.unicorn import UNICORN
from emu.support.words import WORD_MASK

_STAT: Final = struct.Struct("<QQQIIIIQqqqqqqqqqqqq")


def _stat(file: FileStatus) -> bytes:
    return _STAT.pack(
        1, file.number, file.links, file.mode, file.uid, file.gid, 0, file.device,
        file.size, BLOCK, blocks(file), *times(file), 0, 0, 0,
    )  # fmt: skip


# struct rt_sigframe: the return address, struct ucontext, struct siginfo; struct sigcontext is at 40 in ucontext.
_UCONTEXT: Final = 8
_SIGCONTEXT: Final = _UCONTEXT + 40
_ORDER: Final = (
    "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rdi", "rsi", "rbp", "rbx", "rdx", "rax", "rcx", "rsp",
    "rip", "rflags",
)  # fmt: skip
# cs, gs, fs, ss, of two bytes each.
_SEGMENTS: Final = _SIGCONTEXT + 18 * 8
_MASK: Final = _SIGCONTEXT + 256
_SIGINFO: Final = _MASK + 8

_PROBE_REGISTERS: Final = {
    **{name: "r" + name for name in ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp")},
    **{f"r{number}": f"r{number}" for number in range(8, 16)},
    "ip": "rip",
    "flags": "rflags",
    "cs": "cs",
    "ss": "ss",
}

# HWCAP2_FSGSBASE (arch/x86/include/uapi/asm/hwcap2.h).
_FSGSBASE: Final = 1 << 1
# hflags of Unicorn's 64-bit mode: hflags2 has the global interrupt flag.
_LONG_MODE: Final = 0x1_0040_C0B0

LINUX: Final = LinuxAbi(
    calls=CALLS,
    machine="x86_64",
    personality=PersonalityRules("i686", READ_IMPLIES_EXEC),
    elf_machine=ELF.number,
    platform="x86_64",
    hwcap=FEATURES,
    highest=0x7FFF_FFFF_F000,
    executable_base=0x5555_5555_4000,
    call_number="rax",
    call_number_mask=0xFFFF_FFFF,
    call_result="rax",
    system_call=b"\x0f\x05",
    call_overwrites={"rcx": "rip", "r11": "rflags"},
    tls="fs_base",
    clone_tls_first=False,
    open_flags=OpenFlags(directory=0o200000, no_follow=0o400000, direct=0o40000, large_file=0o100000),
    stat=_stat,
    frame=SignalFrame(
        size=_SIGINFO + 128,
        siginfo=_SIGINFO,
        ucontext=_UCONTEXT,
        stack=_UCONTEXT + 16,
        mask=_MASK,
        registers={name: _SIGCONTEXT + 8 * index for index, name in enumerate(_ORDER)},
        return_address=0,
        trap={"error": _SIGCONTEXT + 19 * 8, "number": _SIGCONTEXT + 20 * 8, "address": _SIGCONTEXT + 22 * 8},
        # UC_FP_XSTATE, UC_SIGCONTEXT_SS and UC_STRICT_RESTORE_SS.
        words={_UCONTEXT: 7},
        shown=(("cs_selector", _SEGMENTS, 2), ("ss_selector", _SEGMENTS + 6, 2)),
        state=frame_state(UNICORN.vectors[0], _SIGCONTEXT + 23 * 8, legacy=False),
        cleared=CLEARED,
        on_entry={"rax": 0},  # no vector registers are passed to a function without a prototype
    ),
    restorer=b"",
    # mov $15, %rax (glibc) or %eax (musl); syscall
    trampolines=(b"\x48\xc7\xc0\x0f\0\0\0\x0f\x05", b"\xb8\x0f\0\0\0\x0f\x05"),
    action_has_restorer=True,
    red_zone=128,
    hwcap2=_FSGSBASE,
    packed_epoll_event=True,
    spaced_semaphore_times=True,
    faults=FAULTS,
    breakpoint=FAULTS[BREAKPOINT],
    raised=raised,
    page_fault=page_fault,
    exception=exception,
    execute=Loads(CS_MODE_64, GENERAL, pc="rip", flags="rflags", mask=WORD_MASK).execute,
    probe_registers=_PROBE_REGISTERS,
    initial_registers={
        "hflags": _LONG_MODE | USER,
        "cs_selector": 0x33,
        "ss_selector": USER_DATA,
        "rflags": FLAGS,
        **FLOATING_POINT,
    },
)
