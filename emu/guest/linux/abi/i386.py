"""Linux on i386 (arch/x86/include/uapi/asm): 32-bit programs, int $0x80."""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.abi.base import BLOCK, Abi, OpenFlags, SignalFrame, times
from emu.guest.linux.abi.i386_calls import CALLS
from emu.guest.linux.inodes import Inode

_STAT64: Final = struct.Struct("<Q4xIIIIIQ4xqIQIIIIIIQ")


def _stat(inode: Inode) -> bytes:
    return _STAT64.pack(
        1, inode.number & 0xFFFF_FFFF, inode.mode, inode.links, inode.uid, inode.gid, inode.device,
        inode.size, BLOCK, -(-inode.size // BLOCK) * (BLOCK // 512), *times(inode), inode.number,
    )  # fmt: skip


# struct rt_sigframe: return address, the handler's three arguments, struct siginfo, struct ucontext; struct sigcontext
# is at 20 in ucontext.
_SIGINFO: Final = 16
_UCONTEXT: Final = _SIGINFO + 128
_SIGCONTEXT: Final = _UCONTEXT + 20
_ORDER: Final = ("edi", "esi", "ebp", "esp", "ebx", "edx", "ecx", "eax")
_MASK: Final = _SIGCONTEXT + 88

ABI: Final = Abi(
    calls=CALLS,
    machine="i686",
    platform="i686",
    hwcap=0,
    highest=0xBFFF_F000,
    executable_base=0x5655_5000,
    call_number="eax",
    call_result="eax",
    system_call=b"\xcd\x80",
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
            **{name: _SIGCONTEXT + 16 + 4 * place for place, name in enumerate(_ORDER)},
            "eip": _SIGCONTEXT + 56,
            "eflags": _SIGCONTEXT + 64,
        },
        fault_address=_SIGCONTEXT + 84,
        return_address=0,
        arguments=(4, 8, 12),
    ),
    # int $0x80 with the number of rt_sigreturn: what the vDSO has.
    restorer=b"\xb8" + (173).to_bytes(4, "little") + b"\xcd\x80",
    action_has_restorer=True,
    red_zone=0,
    word=4,
    tls_is_descriptor=True,
)
