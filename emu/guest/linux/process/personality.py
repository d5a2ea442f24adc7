"""Behaviour of other systems that a thread can ask for.

Source: Linux include/uapi/linux/personality.h, kernel/sys.c, fs/exec.c.  What differs between ISAs
is in `emu.isa.linux_abi.PersonalityRules`.
"""

from __future__ import annotations

from typing import Final

from emu.isa.linux_abi import PERSONALITY_DOMAIN, READ_IMPLIES_EXEC, LinuxAbi

# uname calls this Linux 2.6.
UNAME26: Final = 0x0002_0000
# The execution domain of 32-bit Linux on a 64-bit kernel.
_LINUX32: Final = 8
# Bits that a program with another owner does not inherit (PER_CLEAR_ON_SETID): also ADDR_NO_RANDOMIZE,
# ADDR_COMPAT_LAYOUT and MMAP_PAGE_ZERO.
_NOT_FOR_OTHERS: Final = READ_IMPLIES_EXEC | 0x0004_0000 | 0x0020_0000 | 0x0010_0000


def _is_linux32(personality: int) -> bool:
    return personality & PERSONALITY_DOMAIN == _LINUX32


def is_allowed(personality: int, abi: LinuxAbi) -> bool:
    """Return whether a thread on this machine can have a personality."""
    return abi.personality.has_linux32 or not _is_linux32(personality)


def started(personality: int, abi: LinuxAbi, *, changed: bool) -> int:
    """Return the personality of a thread that has started a program (SET_PERSONALITY).

    `changed` says whether the program has another owner.
    """
    if changed:
        personality &= ~_NOT_FOR_OTHERS
    if abi.personality.keeps_linux32 and _is_linux32(personality):
        return personality
    return personality & ~abi.personality.cleared


def machine(personality: int, abi: LinuxAbi) -> str:
    """Return the name of the machine that uname reports."""
    return abi.personality.machine if _is_linux32(personality) else abi.machine


def release(personality: int, known: str) -> str:
    """Return the version of the kernel that uname reports."""
    if not personality & UNAME26:
        return known
    _, patch_level, rest = known.split(".", 2)
    return f"2.6.{int(patch_level) + 60}{rest.lstrip('0123456789')}"
