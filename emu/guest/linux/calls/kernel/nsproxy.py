"""System calls that take threads and processes apart: unshare and setns.

Source: Linux kernel/fork.c (ksys_unshare), kernel/nsproxy.c (setns).
"""

from __future__ import annotations

from typing import Final

from emu.guest.linux.calls.table import Caller, Int, Size, call
from emu.guest.linux.errno import EINVAL, EPERM, LinuxError
from emu.guest.linux.fs.nsfs import ALL_KINDS, NameSpaceOpen
from emu.guest.linux.fs.pidfs import ProcessFile
from emu.guest.linux.process.process import unshare_files, unshare_surroundings

_VM, _FS, _FILES, _SIGHAND, _THREAD, _SYSVSEM = 0x100, 0x200, 0x400, 0x800, 0x1_0000, 0x4_0000
_NEWNS, _NEWUSER = 0x2_0000, 0x1000_0000
_KNOWN: Final = _VM | _FS | _FILES | _SIGHAND | _THREAD | _SYSVSEM | ALL_KINDS


@call("unshare")
def unshare(c: Caller, flags: Size) -> int:
    """Stop sharing descriptors or surroundings with others; name spaces need a privilege."""
    process = c.process
    if flags & _NEWUSER:
        flags |= _THREAD | _FS
    if flags & ~_KNOWN:
        raise LinuxError(EINVAL)
    alone = len(process.threads) == 1
    if flags & (_THREAD | _SIGHAND | _VM) and not alone:
        raise LinuxError(EINVAL)
    others = [other for other in c.kernel.processes.values() if other is not process and other.alive]
    if flags & (_SIGHAND | _VM) and any(other.signals is process.signals for other in others):
        raise LinuxError(EINVAL)
    if flags & _VM and process.space.users > 1:
        raise LinuxError(EINVAL)
    if flags & ALL_KINDS:
        raise LinuxError(EPERM)
    if flags & _FS:
        unshare_surroundings(c.thread)
    if flags & _FILES:
        unshare_files(c.thread)
    if flags & _SYSVSEM and alone:
        c.kernel.semaphores.ended(process)
    return 0


@call("setns")
def setns(c: Caller, fd: Int, kind: Int) -> int:
    """Refuse to enter a name space, which needs a privilege."""
    file = c.opened(fd)
    if isinstance(file, NameSpaceOpen):
        wrong = bool(kind) and kind != file.inode.flag
    elif isinstance(file, ProcessFile):
        wrong = not kind or bool(kind & ~ALL_KINDS)
    else:
        wrong = True
    raise LinuxError(EINVAL if wrong else EPERM)
