"""Behaviour of other systems that a thread can ask for.

Source: Linux include/uapi/linux/personality.h, kernel/sys.c, fs/exec.c, arch/*/include/asm/elf.h.
"""

from __future__ import annotations

from typing import Final

from emu.isa.linux_abi import LinuxAbi

# Memory that can be read can be executed.
READ_IMPLIES_EXEC: Final = 0x0040_0000
# uname calls this Linux 2.6.
UNAME26: Final = 0x0002_0000
# The execution domain, and those for Linux and for 32-bit Linux on a 64-bit kernel.
_DOMAIN, _LINUX, _LINUX32 = 0xFF, 0, 8
# Bits that a program with another owner does not inherit (PER_CLEAR_ON_SETID): also ADDR_NO_RANDOMIZE,
# ADDR_COMPAT_LAYOUT and MMAP_PAGE_ZERO.
_NOT_FOR_OTHERS: Final = READ_IMPLIES_EXEC | 0x0004_0000 | 0x0020_0000 | 0x0010_0000
# The name of the 32-bit machine, by that of the machine (COMPAT_UTS_MACHINE).  AArch64 has CPUs without 32-bit
# programs, and this is one of them.
_MACHINES: Final = {"x86_64": "i686", "riscv64": "riscv"}


def is_allowed(personality: int, abi: LinuxAbi) -> bool:
    """Return whether a thread on this machine can have a personality."""
    return personality & _DOMAIN != _LINUX32 or abi.machine != "aarch64"


def started(personality: int, abi: LinuxAbi, *, changed: bool) -> int:
    """Return the personality of a thread that has started a program (SET_PERSONALITY).

    `changed` says whether the program has another owner.
    """
    if changed:
        personality &= ~_NOT_FOR_OTHERS
    if abi.machine in {"x86_64", "aarch64"}:
        return personality & ~READ_IMPLIES_EXEC
    if abi.machine == "riscv64" and personality & _DOMAIN == _LINUX32:
        return personality
    return personality & ~_DOMAIN | _LINUX


def machine(personality: int, abi: LinuxAbi) -> str:
    """Return the name of the machine that uname reports."""
    return _MACHINES.get(abi.machine, abi.machine) if personality & _DOMAIN == _LINUX32 else abi.machine


def release(personality: int, known: str) -> str:
    """Return the version of the kernel that uname reports."""
    if not personality & UNAME26:
        return known
    _, patch_level, rest = known.split(".", 2)
    return f"2.6.{int(patch_level) + 60}{rest.lstrip('0123456789')}"
