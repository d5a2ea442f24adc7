"""Linux on i386 (arch/x86/include/uapi/asm): 32-bit programs, int $0x80."""

from __future__ import annotations

import struct
from typing import Final

from emu.isa.disassembly import CS_MODE_32
from emu.isa.i386.elf import ELF
from emu.isa.i386.linux_calls import CALLS
from emu.isa.i386.registers import GENERAL
from emu.isa.i386.unicorn import UNICORN
from emu.isa.linux_abi import (
    BLOCK,
    PERSONALITY_DOMAIN,
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

_STAT64: Final = struct.Struct("<Q4xIIIIIQ4xqIQIIIIIIQ")


def _stat(file: FileStatus) -> bytes:
    return _STAT64.pack(
        1, file.number & 0xFFFF_FFFF, file.mode, file.links, file.uid, file.gid, file.device,
        file.size, BLOCK, blocks(file), *times(file), file.number,
    )  # fmt: skip


# struct rt_sigframe: return address, the handler's three arguments, struct siginfo, struct ucontext; struct sigcontext
# is at 20 in ucontext.
_SIGINFO: Final = 16
_UCONTEXT: Final = _SIGINFO + 128
_SIGCONTEXT: Final = _UCONTEXT + 20
_ORDER: Final = ("edi", "esi", "ebp", "esp", "ebx", "edx", "ecx", "eax")
_MASK: Final = _SIGCONTEXT + 88

_PROBE_REGISTERS: Final = {
    **{name: "e" + name for name in ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp", "ip")},
    "flags": "eflags",
    **{name: name for name in ("cs", "ss", "ds", "es", "fs", "gs")},
}

# hflags of Unicorn's 32-bit mode: hflags2 has the global interrupt flag.  HF_ADDSEG, which is set there, is left out:
# with it the bases of ds, es and ss, which are 0, are added to the address of each access to memory.
_PROTECTED_MODE: Final = 0x1_0040_00B0
# Limit and flags of ss: a present data segment of 32 bits and level 3 that can be written and has been used.  Unicorn
# derives the width of the stack from them whenever a segment is loaded.
_STACK: Final = 0xCF_F300 << 32 | 0xFFFF_FFFF
# mov $173, %eax; int $0x80
_RESTORER: Final = b"\xb8" + (173).to_bytes(4, "little") + b"\xcd\x80"

LINUX: Final = LinuxAbi(
    calls=CALLS,
    machine="i686",
    personality=PersonalityRules("i686", PERSONALITY_DOMAIN),
    elf_machine=ELF.number,
    platform="i686",
    hwcap=FEATURES,
    highest=0xBFFF_F000,
    executable_base=0x5655_5000,
    call_number="eax",
    call_number_mask=0xFFFF_FFFF,
    call_result="eax",
    system_call=b"\xcd\x80",
    call_overwrites={},
    tls="gs_base",
    clone_tls_first=True,
    open_flags=OpenFlags(directory=0o200000, no_follow=0o400000, direct=0o40000, large_file=0o100000),
    stat=_stat,
    frame=SignalFrame(
        size=_MASK + 8,
        siginfo=_SIGINFO,
        ucontext=_UCONTEXT,
        stack=_UCONTEXT + 8,
        mask=_MASK,
        registers={
            **{name: _SIGCONTEXT + 16 + 4 * index for index, name in enumerate(_ORDER)},
            "eip": _SIGCONTEXT + 56,
            "eflags": _SIGCONTEXT + 64,
        },
        trap={"number": _SIGCONTEXT + 48, "error": _SIGCONTEXT + 52, "address": _SIGCONTEXT + 84},
        words={_UCONTEXT: 1},  # UC_FP_XSTATE
        shown=(
            *((f"{name}_selector", _SIGCONTEXT + 4 * index, 4) for index, name in enumerate(("gs", "fs", "es", "ds"))),
            ("cs_selector", _SIGCONTEXT + 60, 4),
            ("esp", _SIGCONTEXT + 68, 4),
            ("ss_selector", _SIGCONTEXT + 72, 4),
        ),
        state=frame_state(UNICORN.vectors[0], _SIGCONTEXT + 76, legacy=True),
        return_address=0,
        arguments=(4, 8, 12),
        cleared=CLEARED,
    ),
    # int $0x80 with the number of rt_sigreturn, as in the vDSO.
    restorer=_RESTORER,
    # The other is of signals without a siginfo: pop %eax; mov $119, %eax; int $0x80.
    trampolines=(_RESTORER, b"\x58\xb8" + (119).to_bytes(4, "little") + b"\xcd\x80"),
    action_has_restorer=True,
    red_zone=0,
    packed_epoll_event=True,
    faults=FAULTS,
    breakpoint=FAULTS[BREAKPOINT],
    raised=raised,
    page_fault=page_fault,
    exception=exception,
    probe_registers=_PROBE_REGISTERS,
    initial_registers={
        "hflags": _PROTECTED_MODE | USER,
        "cs_selector": 0x23,  # as a 64-bit kernel has it (arch/x86/include/asm/segment.h)
        **dict.fromkeys(("ss_selector", "ds_selector", "es_selector"), USER_DATA),
        "ss_limit_and_flags": _STACK,
        "eflags": FLAGS,
        **FLOATING_POINT,
    },
    execute=Loads(CS_MODE_32, GENERAL, pc="eip", flags="eflags", mask=0xFFFF_FFFF).execute,
    word=4,
    segments={"fs_selector": "fs_base", "gs_selector": "gs_base"},
)
