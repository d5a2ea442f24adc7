"""Seals of files: promises that what others see of a file changes no more.

Source: Linux mm/memfd.c, mm/shmem.c; fcntl(2), "File Sealing".
"""

from __future__ import annotations

from enum import IntFlag

from emu.guest.linux.errno import EPERM, LinuxError


class Seal(IntFlag):
    """What is forbidden (F_SEAL_*)."""

    NONE = 0
    SEAL = 1
    """More seals."""
    SHRINK = 2
    GROW = 4
    WRITE = 8
    FUTURE_WRITE = 0x10
    """Writing, but through mappings that are there."""
    EXEC = 0x20
    """To change whether it may be executed."""


# With EXEC, these are added to a file that may be executed.
OF_PROGRAMS = Seal.SHRINK | Seal.GROW | Seal.WRITE | Seal.FUTURE_WRITE
NO_WRITING = Seal.WRITE | Seal.FUTURE_WRITE


def need_unsealed(seals: Seal, forbidding: Seal) -> None:
    """Check that a file has none of these seals.  Raises `LinuxError` EPERM."""
    if seals & forbidding:
        raise LinuxError(EPERM)


def need_size(seals: Seal, old: int, new: int) -> None:
    """Check that a file may get another size.  Raises `LinuxError` EPERM."""
    need_unsealed(seals, Seal.SHRINK if new < old else Seal.GROW if new > old else Seal.NONE)
