"""System calls that newer ones have replaced, and that C libraries and old programs still make.

Source: Linux fs/readdir.c, fs/utimes.c, kernel/signal.c, kernel/sched, arch/x86/kernel/tls.c.
"""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.fs.stat import entries_of
from emu.guest.linux.calls.kernel.sigaction import rt_sigpending
from emu.guest.linux.calls.table import Address, Blocking, Caller, Int, Path, Size, Unsigned, call
from emu.guest.linux.errno import EFAULT, EINTR, EINVAL, EPERM, ESRCH, LinuxError
from emu.guest.linux.process.cred import WRITE
from emu.guest.linux.process.process import NOTHING, Process, Wait
from emu.isa.linux_signals import LAST, SA_NODEFER, SA_RESETHAND, UNBLOCKABLE, Signal, SignalInfo
from emu.support.words import BadAddressError

_PARTS_MAX: Final = 1024
_KCMP_FILE, _KCMP_VM, _KCMP_FILES, _KCMP_FS, _KCMP_SIGHAND = 0, 1, 2, 3, 4
_SECOND: Final = 1_000_000_000
# The signals of the first calls about them.
_LOW: Final = 0xFFFF_FFFF


def _process(c: Caller, pid: int) -> Process:
    thread = c.kernel.tasks.find_thread(pid) if pid else c.thread
    if thread is None:
        raise LinuxError(ESRCH)
    return thread.process


def _traced(c: Caller, pid: int) -> Process:
    """Return a process whose memory the caller may look at.

    Raises `LinuxError`: ESRCH, EPERM.
    """
    process = _process(c, pid)
    if not process.may_be_traced(c.process.credentials):
        raise LinuxError(EPERM)
    return process


@call("getdents")
def getdents(c: Caller, fd: Int, buffer: Address, size: Unsigned) -> int:
    """Read entries of a directory; the kind of each is the last byte of its record."""
    word = "Q" if c.word == 8 else "I"

    def record(number: int, position: int, name: bytes, kind: int) -> bytes:
        length = -(-(2 * c.word + 2 + len(name) + 2) // c.word) * c.word
        head = struct.pack(f"<{word}{word}H", number & (1 << 8 * c.word) - 1, position, length)
        return (head + name).ljust(length - 1, b"\0") + bytes((kind,))

    data = entries_of(c, fd, size, record)
    c.write(buffer, data)
    return len(data)


@call("futimesat")
def futimesat(c: Caller, directory: Int, path: Path, at: Address) -> int:
    """Set the times of a file; in microseconds."""
    inode, wall = c.inode(directory, path), c.kernel.wall()
    c.need(inode, WRITE)
    if not at:
        inode.accessed = inode.modified = inode.changed = wall
        return 0
    fields = c.longs(at, 4)
    if any(not 0 <= rest < 1_000_000 for rest in fields[1::2]):
        raise LinuxError(EINVAL)
    inode.accessed, inode.modified = (seconds * _SECOND + rest * 1000 for seconds, rest in (fields[:2], fields[2:]))
    inode.changed = wall
    return 0


@call("signal")
def signal(c: Caller, number: Int, handler: Address) -> int:
    """Set a handler that is taken back when it is called."""
    if not 1 <= number <= LAST or number in {Signal.SIGKILL, Signal.SIGSTOP}:
        raise LinuxError(EINVAL)
    action = c.process.signals.actions[number]
    before = action.handler
    action.handler, action.flags, action.mask = handler, SA_RESETHAND | SA_NODEFER, 0
    return before


# The first 32 signals alone, as i386 had them at first: its getcontext still uses them.


def _set_low(c: Caller, bits: int) -> None:
    c.thread.mask = (c.thread.mask & ~_LOW | bits & _LOW) & ~UNBLOCKABLE


@call("sigprocmask")
def sigprocmask(c: Caller, how: Int, new: Address, old: Address) -> int:
    """Set or return which of the first 32 signals are blocked."""
    before = c.thread.mask
    if new:
        bits = c.number(new, 4)
        masks = {0: before | bits, 1: before & ~bits, 2: bits}
        if how not in masks:
            raise LinuxError(EINVAL)
        _set_low(c, masks[how])
    if old:
        c.write(old, struct.pack("<I", before & _LOW))
    return 0


@call("sgetmask")
def sgetmask(c: Caller) -> int:
    """Return which of the first 32 signals are blocked."""
    return c.thread.mask & _LOW


@call("ssetmask")
def ssetmask(c: Caller, bits: Unsigned) -> int:
    """Set which of the first 32 signals are blocked, and return which were."""
    before = c.thread.mask & _LOW
    _set_low(c, bits)
    return before


@call("sigpending")
def sigpending(c: Caller, to: Address) -> int:
    """Return which of the first 32 signals wait."""
    return rt_sigpending(c, to, 4)


@call("sigsuspend")
def sigsuspend(c: Caller, first: Int, second: Int, bits: Unsigned) -> Blocking:
    """Wait for a signal with another mask; the first two arguments are unused."""
    del first, second
    c.thread.saved_mask = c.thread.mask
    _set_low(c, bits)
    yield Wait(key=NOTHING)
    return -EINTR


@call("sigaction")
def sigaction(c: Caller, number: Int, new: Address, old: Address) -> int:
    """Set or return the action of a signal; the mask has 32 signals."""
    if not 1 <= number <= LAST:
        raise LinuxError(EINVAL)
    action = c.process.signals.actions[number]
    saved = struct.pack("<IIII", action.handler, action.mask & _LOW, action.flags, action.restorer)
    if new:
        if number in {Signal.SIGKILL, Signal.SIGSTOP}:
            raise LinuxError(EINVAL)
        action.handler, mask, action.flags, action.restorer = struct.unpack("<IIII", c.read(new, 16))
        action.mask = mask & ~UNBLOCKABLE
    if old:
        c.write(old, saved)
    return 0


@call("rt_tgsigqueueinfo")
def rt_tgsigqueueinfo(c: Caller, pid: Int, tid: Int, number: Int, info: Address) -> int:
    """Send a signal with a value to a thread."""
    thread = c.kernel.threads.get(tid)
    if not 0 <= number <= LAST or pid <= 0 or tid <= 0:
        raise LinuxError(EINVAL)
    form = struct.Struct("<8xi4xiIQ" if c.word == 8 else "<8xiiII")
    code, sender, uid, value = form.unpack(c.read(info, form.size))
    if thread is None or thread.process.pid != pid:
        raise LinuxError(ESRCH)
    if code >= 0 and thread.process is not c.process:
        raise LinuxError(EPERM)
    if number:
        c.kernel.sending.send_thread(thread, SignalInfo(number, code, pid=sender, uid=uid, value=value))
    return 0


def vector_of(c: Caller, address: int, count: int) -> list[tuple[int, int]]:
    """Read an array of struct iovec.  Raises `LinuxError` EINVAL."""
    if not 0 <= count <= _PARTS_MAX:
        raise LinuxError(EINVAL)
    words = iter(c.words(address, 2 * count)) if count else iter(())
    return list(zip(words, words, strict=True))


@call("process_vm_readv")
def process_vm_readv(
    c: Caller, pid: Int, local: Address, local_count: Size, remote: Address, remote_count: Size, flags: Size
) -> int:
    """Read another process's memory."""
    if flags:
        raise LinuxError(EINVAL)
    ours, theirs = vector_of(c, local, local_count), vector_of(c, remote, remote_count)
    space = _traced(c, pid).space
    data = bytearray()
    wanted = sum(size for _, size in ours)
    for start, size in theirs:
        part = space.peek_mapped(start, min(size, wanted - len(data)))
        data += part
        if len(part) < size:
            break
    if not data and wanted and any(size for _, size in theirs):
        raise LinuxError(EFAULT)
    done = 0
    for start, size in ours:
        c.write(start, bytes(data[done : done + size]))
        done += size
    return len(data)


@call("process_vm_writev")
def process_vm_writev(
    c: Caller, pid: Int, local: Address, local_count: Size, remote: Address, remote_count: Size, flags: Size
) -> int:
    """Write another process's memory."""
    if flags:
        raise LinuxError(EINVAL)
    ours, theirs = vector_of(c, local, local_count), vector_of(c, remote, remote_count)
    space = _traced(c, pid).space
    total = sum(size for _, size in theirs)
    data = b"".join(c.read(start, size) for start, size in ours if size <= total)[:total]
    done = 0
    for start, size in theirs:
        part = data[done : done + size]
        try:
            space.poke(start, part)
        except BadAddressError:
            if not done:
                raise LinuxError(EFAULT) from None
            break
        done += len(part)
    return done


@call("kcmp")
def kcmp(c: Caller, first: Int, second: Int, kind: Int, one: Size, other: Size) -> int:
    """Return whether two processes share something: 0 if they do."""
    left, right = _traced(c, first), _traced(c, second)
    if kind == _KCMP_FILE:
        files = left.files.get(one), right.files.get(other)
        return int(files[0] is not files[1])
    shared = {_KCMP_VM: "space", _KCMP_FILES: "files", _KCMP_FS: "surroundings", _KCMP_SIGHAND: "signals"}
    if kind not in shared:
        raise LinuxError(EINVAL)
    return int(getattr(left, shared[kind]) is not getattr(right, shared[kind]))


@call("get_thread_area")
def get_thread_area(c: Caller, descriptor: Address) -> int:
    """Report a segment of the thread that `set_thread_area` has set."""
    if c.word == 8:
        raise LinuxError(EINVAL)
    c.write(descriptor, c.thread.segments.describe(c.number(descriptor, 4)))
    return 0


@call("process_mrelease")
def process_mrelease(c: Caller, fd: Int, flags: Unsigned) -> int:
    """Refuse: no process that has ended keeps its memory."""
    c.file(fd)
    raise LinuxError(EINVAL if flags else ESRCH)
