"""System calls that 32-bit programs make in another way.

Source: Linux arch/x86/entry/syscalls/syscall_32.tbl, arch/x86/kernel/sys_ia32.c,
arch/x86/kernel/tls.c.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from emu.guest.linux.calls.fs.stat import statfs_fields
from emu.guest.linux.calls.ipc.ipc_util import ipc
from emu.guest.linux.calls.net.sendmsg import by_number
from emu.guest.linux.calls.table import (
    AT_FDCWD,
    HANDLERS,
    WHOLE,
    Address,
    Blocking,
    Caller,
    Handler,
    Int,
    Path,
    Size,
    Unsigned,
    call,
)
from emu.guest.linux.errno import EINVAL, LinuxError
from emu.guest.linux.process.process import SystemCall, Thread
from emu.guest.linux.sched.thread_segments import SIZE as SEGMENT_SIZE

if TYPE_CHECKING:
    from emu.guest.linux.kernel import Kernel

# Calls that do what an older or newer one does: the numbers in memory have the size that `Caller` tells.
_SAME: Final = {
    **{f"{name}32": name for name in """
        lchown getuid getgid geteuid getegid setreuid setregid getgroups setgroups fchown setresuid getresuid setresgid
        getresgid chown setuid setgid setfsuid setfsgid
    """.split()},
    **{f"{name}64": name for name in """
        stat lstat fstat fcntl clock_gettime clock_settime clock_adjtime timer_gettime timer_settime timerfd_gettime
        timerfd_settime
    """.split()},
    **{f"{name}_time64": name for name in """
        clock_getres clock_nanosleep utimensat pselect6 ppoll rt_sigtimedwait futex recvmmsg
        sched_rr_get_interval semtimedop mq_timedsend mq_timedreceive
    """.split()},
    "fstatat64": "newfstatat",
    "_newselect": "select",
    "umount": "umount2",
}  # fmt: skip
# The other name of a call, and its argument that is passed in two registers, the lower half first.
_SPLIT: Final = {
    "pread64": ("pread64", 3), "pwrite64": ("pwrite64", 3), "truncate64": ("truncate", 1),
    "ftruncate64": ("ftruncate", 1), "fallocate": ("fallocate", 2), "preadv": ("preadv", 3), "pwritev": ("pwritev", 3),
    "preadv2": ("preadv2", 3), "pwritev2": ("pwritev2", 3), "sync_file_range": ("sync_file_range", 1),
    "fadvise64_64": ("fadvise64", 1), "fadvise64": ("fadvise64", 1), "readahead": ("readahead", 1),
}  # fmt: skip
# Calls whose next argument is passed so too.
_SPLIT_TWICE: Final = frozenset({"fallocate", "sync_file_range", "fadvise64_64"})
_STATFS64: Final = struct.Struct("<IIQQQQQiiIII16x")


def _split(handler: Handler, index: int, *, both: bool) -> Handler:
    """Return a call that puts two registers together; with `both` the argument after them too."""

    def joined(kernel: Kernel, thread: Thread, arguments: list[int]) -> int | SystemCall | None:
        if kernel.abi.word == 8:
            return handler(kernel, thread, arguments)
        rest = list(arguments)
        for at in (index, index + 1) if both else (index,):
            rest[at : at + 2] = [rest[at] | rest[at + 1] << 32 | WHOLE]
        return handler(kernel, thread, rest)

    return joined


@call("_llseek")
def llseek(c: Caller, fd: Int, high: Unsigned, low: Unsigned, result: Address, whence: Unsigned) -> int:
    """Move in a file."""
    offset = high << 32 | low
    position = HANDLERS["lseek"](c.kernel, c.thread, [fd & 0xFFFF_FFFF, offset | WHOLE, whence])
    assert isinstance(position, int)
    c.write(result, struct.pack("<q", position))
    return 0


@call("mmap2")
def mmap2(
    c: Caller, address: Address, length: Size, protection: Unsigned, flags: Unsigned, fd: Int, pages: Unsigned
) -> int:
    """Map a file, or memory; the offset is in pages of 4 KiB."""
    mapped = HANDLERS["mmap"](c.kernel, c.thread, [address, length, protection, flags, fd & 0xFFFF_FFFF, pages << 12])
    assert isinstance(mapped, int)
    return mapped


@call("waitpid")
def waitpid(c: Caller, pid: Int, status: Address, options: Unsigned) -> Blocking:
    """Wait for a child."""
    waiting = HANDLERS["wait4"](c.kernel, c.thread, [pid & 0xFFFF_FFFF, status, options, 0])
    assert not isinstance(waiting, int)
    assert waiting is not None
    return (yield from waiting)


@call("statfs64")
def statfs64(c: Caller, path: Path, size: Size, buffer: Address) -> int:
    """Describe the file system."""
    if size != _STATFS64.size:
        raise LinuxError(EINVAL)
    c.write(buffer, _STATFS64.pack(*statfs_fields(c.inode(AT_FDCWD, path))))
    return 0


@call("fstatfs64")
def fstatfs64(c: Caller, fd: Int, size: Size, buffer: Address) -> int:
    """Describe the file system."""
    if size != _STATFS64.size:
        raise LinuxError(EINVAL)
    c.write(buffer, _STATFS64.pack(*statfs_fields(c.file(fd).inode)))
    return 0


@call("sigreturn")
def sigreturn(c: Caller) -> None:
    """Go back to what a signal interrupted: the restorer has popped the signal's number too."""
    c.kernel.delivery.leave(c.thread, popped=2)


@call("set_thread_area")
def set_thread_area(c: Caller, descriptor: Address) -> int:
    """Set a segment of the thread; a register that has it is loaded again."""
    number = c.thread.segments.put(c.read(descriptor, SEGMENT_SIZE), choose=True)
    c.write(descriptor, struct.pack("<I", number))
    engine, base = c.kernel.engine, c.thread.segments.base(number)
    for selector, register in c.kernel.abi.segments.items():
        if engine.read_register(selector) >> 3 == number:
            engine.write_register(register, base or 0)
    return 0


def _socketcall(kernel: Kernel, thread: Thread, arguments: list[int]) -> int | SystemCall | None:
    """Make a call of sockets by its number."""
    name, words = by_number(Caller(kernel, thread), arguments[0], arguments[1])
    return HANDLERS[name](kernel, thread, words)


def enter() -> None:
    """Enter these calls into the table; all others are there by now."""
    HANDLERS["ipc"] = ipc
    HANDLERS["socketcall"] = _socketcall
    for name, known in _SAME.items():
        HANDLERS[name] = HANDLERS[known]
    for name, (known, index) in _SPLIT.items():
        HANDLERS[name] = _split(HANDLERS[known], index, both=name in _SPLIT_TWICE)
